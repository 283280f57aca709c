"""`probox table`: the paper's Table 1 for any detectors."""

from __future__ import annotations

from typing import Any

import click

from probox.cli.console import file_title, note, print_json, progress_bar, results, say_notes, warnings_of
from probox.cli.image_choice import images_option, parse_images
from probox.cli.intervals import intervals_of, intervals_option, limits_of, say_intervals
from probox.convention import PRESETS
from probox.evaluation.text import STYLES, format_table


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
@click.argument("detectors", nargs=-1, required=True, metavar="NAME=DETECTIONS...")
@click.option(
    "--thresholds",
    multiple=True,
    type=click.FloatRange(0.0, 1.0),
    metavar="T...",
    help="One row per detector and threshold: detections with a label probability above it [default: all].",
)
@click.option(
    "--preset", type=click.Choice(list(PRESETS)), default="reference", show_default=True, help="The convention."
)
@click.option("--box-truth", is_flag=True, help="Use annotated boxes in place of masks.")
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
@images_option
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use [default: all processors].")
def command(
    truth: str,
    detectors: tuple[str, ...],
    thresholds: tuple[float, ...],
    preset: str,
    box_truth: bool,
    style: str,
    as_json: bool,
    intervals: bool,
    images: str | None,
    threads: int | None,
) -> None:
    """Print the paper's Table 1 for detectors, best values marked.

    Each detector is NAME=DETECTIONS, or just a file, which then names itself.

    \b
    probox table instances_val2017.json SSD=ssd.json YOLO=yolo.json --thresholds 0.5 0.05
    probox table truth.json sure.json unsure.json --format latex
    """
    from probox.convention import Convention
    from probox.evaluation.run import evaluate
    from probox.formats.reading import read_detections_of_part, read_truth

    whole = read_truth(truth)
    table = whole if images is None else whole.select_images(parse_images(images))
    convention = Convention.preset(preset, box_truth=box_truth)
    described = []
    measured = []
    for name, path in [_named(detector) for detector in detectors]:
        found = read_detections_of_part(path, whole, table, repair=False)
        with progress_bar(name, quiet=as_json or style == "json") as progress:
            everything = evaluate(table, found, convention=convention, threads=threads, progress=progress)
        for threshold in thresholds or (None,):
            evaluation = everything if threshold is None else everything.at_threshold(threshold)
            measured.append(evaluation)
            described.append((name, path, threshold, evaluation.summary(), warnings_of(everything)))
        if style != "json" and not as_json:
            say_notes(everything, f"{name}: ")
    sure = intervals_of(measured) if intervals else None
    if as_json or style == "json":
        keys = ("name", "detections", "threshold", "summary", "warnings")
        rows: list[dict[str, Any]] = [dict(zip(keys, row, strict=True)) for row in described]
        for one, own in zip(rows, sure or (), strict=False):
            one["intervals"] = own.to_dict()
        print_json({"rows": rows, "convention": convention.to_dict()})
        return
    titled = [(name if t is None else f"{name} ({t:g})", summary) for name, _, t, summary, _ in described]
    heading = "Approach (threshold)" if thresholds else "Approach"
    text = format_table(titled, style, heading=heading, limits=limits_of(sure))
    results().print(text, markup=False, soft_wrap=True)
    say_intervals(sure)
    note(f"convention: {convention.describe()}; {len(table.image_ids):,} images")


def _named(detector: str) -> tuple[str, str]:
    name, equals, path = detector.partition("=")
    if not equals:
        return file_title(detector), detector
    if not name or not path:
        raise click.BadParameter(f"expected NAME=DETECTIONS, got {detector!r}", param_hint="NAME=DETECTIONS")
    return name, path
