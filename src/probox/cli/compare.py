"""`probox compare`: differences between results, with confidence intervals and p-values."""

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
    """Check a list of metrics and return it: `all` means all that the results contain."""
    parse_measures(context, parameter, text)
    return text


@click.command("compare", cls=GroupedCommand, context_settings={"show_default": True})
@named_argument("folders", "RESULT_DIR")
@measures_option(
    "Metrics, separated by commas, or `all`.  [default: all stored]", group="Metrics", callback=_check_measures
)
@metric_option("--per-class", is_flag=True, help="Compare classes too (Holm-corrected).")
@metric_option("--all-pairs", is_flag=True, help="Compare every pair of results.")
@label_threshold_option("Compare only detections with a label probability above T.", auto=True, group="Metrics")
@statistics_option(
    "--replicates",
    type=click.IntRange(min=2),
    default=1000,
    help="Draw N bootstrap and permutation replicates; use more for several pairs or classes.",
)
@statistics_option(
    "--level", type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True), default=0.95, help="Confidence level."
)
@statistics_option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
@output_option("--format", "style", type=click.Choice(STYLES), default="text", help="Print tables in this format.")
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

    Prints each metric with a bootstrap confidence interval, and each difference with an interval and a paired
    permutation p-value. Images are the resampling unit. Every result is compared with the first (docs/comparing.md).

    RESULT_DIR is a folder written by `probox evaluate --out DIR`: DIR/NAME, or DIR with several results. NAME= gives
    a result another name.

    \b
    Examples:
      probox compare results
      probox compare base=results/ssd new=results/yolo --per-class
      probox compare results --label-threshold auto
      probox compare results --all-pairs --replicates 10000
    """
    from probox.analysis.comparison import compare

    # A threshold needs the tables of detections.
    loaded = load_named(folders, tables=label_threshold is not None)
    if label_threshold is not None:
        loaded = {name: result.at_threshold(label_threshold) for name, result in loaded.items()}
    if len(loaded) < 2:
        raise InputError("expected two or more results, got one", file=folders[0].path, remedy="name another")
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
        # Tables for programs go to files, so the conclusion goes to standard error.
        if style == "text":
            print_text(pair.conclusion)
        else:
            note(pair.conclusion)
    note(explain_signs(compared))
    print_notes(compared.notes)
