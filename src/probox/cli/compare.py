"""`probox compare`: is one result better than another?"""

from __future__ import annotations

from typing import Any, Literal

import click

from probox.cli.console import note, print_json, print_notes, print_text, progress_bar, table_width
from probox.cli.scoring import label_threshold_option, measures_option, parse_measures
from probox.cli.shared_options import (
    GroupedCommand,
    Named,
    json_option,
    load_named,
    named_argument,
    option_group,
    output_option,
)
from probox.errors import InputError
from probox.evaluation.text import STYLES

metric_option = option_group("Metrics")
statistics_option = option_group("Statistics")


def _check_measures(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Return a list of metrics as it is: `all` means all that results hold."""
    parse_measures(context, parameter, text)
    return text


@click.command("compare", cls=GroupedCommand, context_settings={"show_default": True})
@named_argument("folders", "RESULT_DIR")
@measures_option(
    "Metrics, separated by commas, or `all`.  [default: all stored]", group="Metrics", callback=_check_measures
)
@metric_option("--per-class", is_flag=True, help="Compare classes too (Holm-corrected).")
@metric_option("--all-pairs", is_flag=True, help="Compare every pair of results.")
@label_threshold_option("Compare detections with a label probability above T.", auto=True, group="Metrics")
@statistics_option(
    "--replicates",
    type=click.IntRange(min=2),
    default=1000,
    help="Bootstrap and permutation replicates; more for several pairs or classes, as Holm's correction needs.",
)
@statistics_option(
    "--level", type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True), default=0.95, help="Confidence level."
)
@statistics_option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
@output_option("--format", "style", type=click.Choice(STYLES), default="text", help="Format of printed tables.")
@json_option
def command(
    folders: tuple[Named, ...],
    measures: str | None,
    label_threshold: float | Literal["auto"] | None,
    style: str,
    as_json: bool,
    **settings: Any,
) -> None:
    """Compare two or more results on the same ground truth.

    Reports each metric with a bootstrap confidence interval, and each difference with a confidence interval and a
    paired permutation p-value. Images are the resampling unit. By default every result is compared with the first.

    RESULT_DIR is a directory written by `probox evaluate --out`, or a parent directory of several, in the order in
    which `probox evaluate` was given the files. NAME=RESULT_DIR gives a result another name.

    \b
    probox evaluate truth.json ssd.json yolo.json --out results
    probox compare results/ssd results/yolo
    probox compare results --all-pairs --per-class --json
    probox compare results --label-threshold auto
    probox compare A=results/ssd B=elsewhere/ssd
    probox compare results --all-pairs --replicates 10000
    """
    from probox.analysis.comparison import compare

    # Only tables know what is above a threshold.
    loaded = load_named(folders, tables=label_threshold is not None)
    if label_threshold is not None:
        loaded = {name: result.at_threshold(label_threshold) for name, result in loaded.items()}
    if len(loaded) < 2:
        raise InputError("there is only one result", file=folders[0].path, remedy="name two or more to compare")
    with progress_bar("bootstrap and permutations", quiet=as_json) as progress:
        compared = compare(loaded, measures, progress=progress, **settings)
    if as_json:
        print_json(compared.to_dict())
        return
    from probox.analysis.comparison_text import comparison_table, explain_signs

    for number, pair in enumerate(compared.pairs):
        tables = [comparison_table(compared, pair, style, width=table_width())]
        if pair.classes:
            tables.append(comparison_table(compared, pair, style, of_classes=True, width=table_width()))
        print_text(("\n" if number else "") + "\n\n".join(tables))
        # For people in a table for people, else beside it: what is printed goes into a file as it is.
        if style == "text":
            print_text(pair.conclusion)
        else:
            note(pair.conclusion)
    note(explain_signs(compared))
    print_notes(compared.notes)
