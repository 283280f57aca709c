"""`probox table`: the paper's Table 1 for any detectors."""

from __future__ import annotations

from typing import Any

import click

from probox.cli.console import note, print_json, progress_bar, results, say_notes, table_width, warnings_of
from probox.cli.intervals import intervals_of, intervals_option, limits_of, say_intervals
from probox.cli.naming import Named, named_argument, titles_of
from probox.cli.scoring import Scoring, choice_of, scoring_options
from probox.evaluation.inputs import share_truth
from probox.evaluation.notes import all_detections_note
from probox.evaluation.oddities.clutter import CLUTTER
from probox.evaluation.text import (
    STYLES,
    format_table,
    list_directions,
    measured_words,
    shown_columns,
    threshold_words,
)
from probox.support.words import with_count


class _Command(click.Command):
    """A command whose --thresholds takes any number of numbers: ``--thresholds 0.5 0.05``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        for before, arg in zip([None, *args], args, strict=False):
            if _is_number(arg) and before != "--thresholds" and "--thresholds" in spread and _is_number(spread[-1]):
                spread.append("--thresholds")
            spread.append(arg)
        return super().parse_args(ctx, spread)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@click.command("table", cls=_Command)
@click.argument("truth", type=click.Path())
@named_argument("detections", "DETECTIONS")
@click.option(
    "--thresholds",
    multiple=True,
    type=click.FloatRange(0.0, 1.0),
    metavar="T...",
    help="One row per detector and threshold: detections with a label probability above it [default: all].",
)
@scoring_options(measures=True, auto=True)
@click.option(
    "--format",
    "style",
    type=click.Choice([*STYLES, "json"]),
    default="text",
    show_default=True,
    help="How to print it.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@intervals_option
def command(
    truth: str,
    detections: tuple[Named, ...],
    scoring: Scoring,
    thresholds: tuple[float, ...],
    style: str,
    as_json: bool,
    intervals: bool,
) -> None:
    """Print the paper's Table 1 for detectors, best values marked.

    Each detector is NAME=DETECTIONS, or just a file, which then names itself.

    \b
    probox table instances_val2017.json SSD=ssd.json YOLO=yolo.json --thresholds 0.5 0.05
    probox table truth.json sure.json unsure.json --format latex
    """
    if thresholds and scoring.convention.label_threshold is not None:
        raise click.UsageError(
            "--label-threshold is one threshold for all rows, --thresholds a row for each: give one of the two"
        )
    convention = scoring.convention
    paths = [given.path for given in detections]
    there = share_truth(truth, paths)
    skip = CLUTTER if thresholds else ""  # no row is of all detections
    described = []
    measured = []
    for name, path in zip(titles_of(detections), paths, strict=True):
        with progress_bar(name, quiet=as_json or style == "json") as progress:
            everything = scoring.evaluate(there, path, progress)
        for threshold in thresholds or (None,):
            evaluation = everything if threshold is None else everything.at_threshold(threshold)
            measured.append(evaluation)
            described.append((name, path, threshold, evaluation.summary(), warnings_of(everything, skip=skip)))
        if style != "json" and not as_json:
            say_notes(everything, f"{name}: ", skip=skip)
            if thresholds and "map" in everything.measures:
                note(f"{name}: note: {all_detections_note(everything.average_precision.map)}")
    sure = intervals_of(measured) if intervals else None
    if as_json or style == "json":
        keys = ("name", "detections", "threshold", "summary", "warnings")
        rows: list[dict[str, Any]] = [dict(zip(keys, row, strict=True)) for row in described]
        for one, evaluation in zip(rows, measured, strict=True):
            one.update(choice_of(evaluation))
        for one, own in zip(rows, sure or (), strict=False):
            one["intervals"] = own.to_dict()
        against = measured[0].scored_against
        print_json({"rows": rows, "convention": convention.to_dict(), "scored_against": against})
        return
    titled = [(name if t is None else f"{name} ({t:g})", summary) for name, _, t, summary, _ in described]
    heading = "Approach (threshold)" if thresholds else "Approach"
    above = threshold_words(convention)
    if thresholds:
        above = f"{thresholds[0]:g}" if len(set(thresholds)) == 1 else "threshold"
    text = format_table(titled, style, heading=heading, limits=limits_of(sure), width=table_width(), threshold=above)
    results().print(text, markup=False, soft_wrap=True)
    say_intervals(sure)
    parts = [list_directions(shown_columns(titled)), measured_words(convention, measured[0].scored_against)]
    note("; ".join(part for part in [*parts, with_count(len(measured[0].dataset), "image")] if part))
