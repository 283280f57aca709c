"""`probox compare`: is one result better than another?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from probox.cli.completing import complete_measures
from probox.cli.console import note, print_json, progress_bar, results, table_width
from probox.cli.measure_choice import checked_measures
from probox.cli.naming import Named, load_named, named_argument
from probox.cli.scoring import label_threshold_option
from probox.evaluation.text import STYLES

if TYPE_CHECKING:
    from probox.analysis.comparison import Comparison


@click.command("compare")
@named_argument("folders", "RESULT_DIR")
@click.option(
    "--measures",
    metavar="LIST",
    shell_complete=complete_measures,
    help="What to compare by, separated by commas, or `all` [default: what they hold].",
)
@label_threshold_option("Compare detections with a label probability above T.", auto=True)
@click.option("--per-class", is_flag=True, help="Compare classes too, with Holm's correction.")
@click.option("--all-pairs", is_flag=True, help="Compare each with each [default: each with the first].")
@click.option(
    "--replicates",
    type=click.IntRange(min=2),
    default=1000,
    show_default=True,
    help="Bootstrap replicates, and permutations; several pairs or classes get as many as Holm's correction needs.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of draws and swaps.")
@click.option(
    "--level",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of intervals; claims may be wrong with 1 minus this.",
)
@click.option(
    "--format", "style", type=click.Choice(STYLES), default="text", show_default=True, help="How to print tables."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    folders: tuple[Named, ...],
    measures: str | None,
    label_threshold: float | Literal["auto"] | None,
    per_class: bool,
    all_pairs: bool,
    replicates: int,
    seed: int,
    level: float,
    style: str,
    as_json: bool,
) -> None:
    """Say whether results differ, and by how much, by drawing and swapping whole images.

    RESULT_DIR are folders that `probox evaluate --out` wrote, or a folder of such folders: two results or more of the
    same truth, measured alike; NAME=RESULT_DIR gives one another name. The others are compared with the first as
    given; a folder of such folders keeps the order in which `probox evaluate --out` was given the files. Each number
    has an interval, each difference an interval and p, and a sentence says what may be concluded.


    \b
    probox evaluate truth.json ssd.json yolo.json --out results
    probox compare results/ssd results/yolo
    probox compare results --all-pairs --per-class --json
    probox compare results --label-threshold auto
    probox compare A=results/ssd B=elsewhere/ssd
    probox compare results --all-pairs --replicates 10000
    """
    from probox.analysis.comparison import compare
    from probox.errors import InputError

    # Only tables know what is above a threshold.
    loaded = load_named(folders, tables=label_threshold is not None)
    if label_threshold is not None:
        loaded = {name: result.at_threshold(label_threshold) for name, result in loaded.items()}
    if len(loaded) < 2:
        raise InputError("there is only one result", file=folders[0].path, remedy="name two or more to compare")
    with progress_bar("images drawn and swapped", quiet=as_json) as progress:
        compared = compare(
            loaded, None if measures is None else checked_measures(measures), per_class=per_class, all_pairs=all_pairs,
            replicates=replicates, seed=seed, level=level, progress=progress,
        )  # fmt: skip
    if as_json:
        print_json(compared.to_dict())
        return
    _print(compared, style)


def _print(compared: Comparison, style: str) -> None:
    from probox.analysis.comparison_text import comparison_table, explain_signs

    console = results()
    for number, pair in enumerate(compared.pairs):
        tables = [comparison_table(compared, pair, style, width=table_width())]
        if pair.classes:
            tables.append(comparison_table(compared, pair, style, of_classes=True, width=table_width()))
        console.print(("\n" if number else "") + "\n\n".join(tables), markup=False, soft_wrap=True)
        # For people in a table for people, else beside it: what is printed goes into a file as it is.
        if style == "text":
            console.print(pair.conclusion, markup=False, soft_wrap=True)
        else:
            note(pair.conclusion)
    note(explain_signs(compared))
    for text in compared.notes:
        note(f"note: {text}")
