"""`probox calibrate`: fit and apply calibrations of standard deviations and label probabilities."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probox.calibration.calibration import TARGETS
from probox.calibration.corner_fit import CORNER_METHODS
from probox.calibration.label_maps import LABEL_METHODS
from probox.cli.console import (
    as_option,
    note,
    print_json,
    print_notes,
    print_outcome,
    print_text,
    progress_bar,
    table_width,
)
from probox.cli.fuse import PathOrUrl, border_option, out_option
from probox.cli.scoring import Scoring, scoring_options
from probox.cli.shared_options import FILE, GroupedCommand, json_option, option_group, output_option
from probox.errors import InputError
from probox.notes import as_notes

if TYPE_CHECKING:
    from probox.calibration import CalibrationFit, Change
    from probox.calibration.cross_validation import NumberColumn
    from probox.formats.format import DetectionFormat

calibration_option = option_group("Calibration")
validation_option = option_group("Validation")


@click.group("calibrate")
def command() -> None:
    """Calibrate standard deviations and label probabilities.

    `fit` estimates a calibration on images with ground truth, `apply` uses it on other images (docs/calibration.md).

    \b
    Examples:
      probox calibrate fit truth.json detections.json --out calibration.json
      probox calibrate apply calibration.json more.json --out calibrated.json
    """


@command.command(
    "fit",
    cls=GroupedCommand,
    context_settings={"show_default": True},
    short_help="Fit a calibration and report its gain on held-out images.",
)
@click.argument("truth", type=click.Path())
@click.argument("detections", type=click.Path())
@calibration_option(
    "--method", type=click.Choice(CORNER_METHODS), default="scale", help="Calibrate standard deviations by this method."
)
@calibration_option(
    "--label-method",
    type=click.Choice(LABEL_METHODS),
    default="none",
    help="Calibrate label probabilities by this method.",
)
@calibration_option(
    "--target",
    type=click.Choice(TARGETS),
    show_default=False,
    help="Maximize PDQ, minimize NLL of matched boxes, or reach the coverage of --level.  "
    "[default: pdq; coverage for conformal]",
)
@calibration_option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.1,
    help="conformal: allow the box to miss this fraction of objects.",
)
@calibration_option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    help="--target coverage: nominal coverage of an edge's central interval, 0 to 1.",
)
@border_option
@validation_option(
    "--folds", type=click.IntRange(2, 1_000_000), default=5, help="Split images into N cross-validation folds."
)
@validation_option("--seed", type=click.IntRange(0, 1_000_000), default=0, help="Random seed for folds and bootstrap.")
# A fixed variance leaves no standard deviations to calibrate; pairs match at IoU 0.5 and have no sizes here.
@scoring_options(leave_out=["fixed_variance", "iou_thresholds", "area_ranges"])
@output_option("--out", required=True, type=FILE, help="Write the calibration to this JSON file.")
@output_option(
    "--held-out",
    type=PathOrUrl(dir_okay=False),
    metavar="FILE",
    help="Write detections, each calibrated by a fit without its image, to FILE.",
)
@json_option
def fit_command(
    truth: str,
    detections: str,
    out: Path,
    scoring: Scoring,
    as_json: bool,
    held_out: Path | None,
    **choices: Any,
) -> None:
    """Fit a calibration on images with ground truth.

    Detections are matched to objects (same class, IoU >= 0.5). Gains are cross-validated by image and shown with 95%
    confidence intervals, next to a constant-variance baseline. The saved calibration is fitted on all images
    (docs/calibration.md).

    \b
    Methods (--method):
      scale        one factor for all standard deviations
      edge-scale   one factor each for x1, y1, x2, y2
      class-scale  one factor per class (at least 30 matched boxes)
      isotonic     monotone map per edge, relative to box size
      learned      regression on score, size, class and predicted std
      constant     fixed fraction of the box size (baseline)
      conformal    one factor with a 1 - alpha coverage guarantee
    `learned` and `constant` also work for boxes without covariances.

    \b
    Examples:
      probox calibrate fit truth.json detections.json --out calibration.json
      probox calibrate fit truth.json detections.json --method isotonic --target nll --out calibration.json
      probox calibrate fit truth.json detections.json --out calibration.json --held-out calibrated.coco.json
    """
    from probox.calibration import fit
    from probox.calibration.calibration import KIND
    from probox.files.output import check_not_input, check_replaceable
    from probox.formats.registry import check_output, write_detections

    check_replaceable(out, KIND, folder=True)
    check_not_input(out, (truth, detections))
    if held_out is not None:
        check_output(held_out)
        check_not_input(held_out, (truth, detections, out))
    started = time.perf_counter()
    ground_truth, table = scoring.read(truth, detections, "fit")
    with progress_bar("fits", quiet=as_json) as progress:
        fitted = fit(
            ground_truth, table, convention=scoring.convention, threads=scoring.threads, progress=progress,
            **choices,
        )  # fmt: skip
    if held_out is not None and fitted.held_out is None:
        raise InputError(fitted.notes[-1].spell(as_option), file="--held-out", remedy="leave it out")
    fitted.calibration.save(out)
    notes = [*ground_truth.notes, *table.notes, *fitted.notes]
    wrote = [out]
    if held_out is not None and fitted.held_out is not None:
        notes += write_detections(held_out, fitted.held_out, ground_truth)
        wrote.append(held_out)
    if as_json:
        files = {"out": str(out)} | ({"held_out_file": str(held_out)} if held_out else {})
        print_json(files | {"notes": as_notes(notes)} | _as_dict(fitted))
        return
    _print_gain(fitted)
    note(str(fitted.calibration))
    print_notes(notes)
    note(f"{time.perf_counter() - started:.2f} s; wrote {' and '.join(map(str, wrote))}")


@command.command("apply", short_help="Apply a calibration to detections.")
@click.argument("calibration", metavar="FILE", type=click.Path())
@click.argument("detections", type=click.Path())
@out_option(json="format of DETECTIONS")
@click.option("--truth", type=click.Path(), help="Ground truth, for another format, heatmaps or --border pin.")
@click.option("--repair", is_flag=True, help="Replace invalid covariances with the nearest valid ones.")
@json_option
def apply_command(calibration: str, detections: str, out: Path, truth: str | None, repair: bool, as_json: bool) -> None:
    """Apply the calibration in FILE to detections of any images.

    The name of the output determines its format; a plain .json keeps the format of DETECTIONS, COCO results or RVC1.

    \b
    Examples:
      probox calibrate apply calibration.json detections.json --out calibrated.json
      probox calibrate apply calibration.json detections.json --truth truth.json --out calibrated.parquet
    """
    from probox.calibration import Calibration
    from probox.files.output import check_not_input
    from probox.files.reading import Source
    from probox.formats import read_truth
    from probox.formats.problems import Problems
    from probox.formats.registry import check_place, dataset_alone, format_of_detections

    check_not_input(out, (calibration, detections, truth))
    fitted = Calibration.load(calibration)
    source = Source(detections)
    given = format_of_detections(source)
    form = _format_to_write(out, given)
    check_place(out, form)
    if truth is None and form is not given:
        raise InputError(
            f"cannot be written as {form.title} without the images and classes of the ground truth",
            file=detections,
            remedy="add --truth FILE",
        )
    dataset = dataset_alone(source, given, fitted.classes) if truth is None else read_truth(truth).dataset
    table = given.read(source, dataset, Problems()).to_table(repair=repair)
    calibrated = fitted.apply(table, None if truth is None else dataset)
    assert form.write is not None
    notes = (*calibrated.notes, *form.write(out, calibrated, dataset))
    described = {"out": str(out), "detections": len(calibrated), "format": form.name}
    line = f"wrote {len(calibrated):,} detections to {out} ({form.title}): {fitted}"
    print_outcome(described, notes, line, as_json=as_json)


def _format_to_write(out: Path, given: DetectionFormat) -> DetectionFormat:
    """Return the format of the output by its name; a plain .json has the format of the input, if that is JSON."""
    from probox.formats.registry import endings_in_words, format_of_name

    named = format_of_name(out)
    if named is None:
        raise InputError("unknown format of this file name", file=str(out), remedy=f"use {endings_in_words()}")
    plain = named.suffix_in(out) == ".json"
    return given if plain and any(suffix.endswith(".json") for suffix in given.suffixes) else named


def _print_gain(fitted: CalibrationFit) -> None:
    """Print held-out metrics before and after, and those of the constant-variance baseline."""
    from probox.support.text_table import grid

    gain = fitted.gain
    if gain is None:
        return
    baseline = bool(gain.over_constant)
    rows = [["held out", "before", "after", "better by", "95% interval"]]
    rows[0] += ["constant", "better by", "95% interval"] if baseline else []
    for column in gain.columns:
        if column.key not in gain.changes:
            continue
        cells = [column.words, *_cells(column, gain.changes[column.key])]
        if baseline:
            cells += [cell for at, cell in enumerate(_cells(column, gain.over_constant[column.key])) if at != 1]
        rows.append(cells)
    width = table_width()
    text = grid(rows, width=width)
    if baseline and text != grid(rows):
        # Columns about the baseline have the same headings as the others, so they get a block of their own.
        parts = ([cells[:5] for cells in rows], [[cells[0], *cells[5:]] for cells in rows])
        text = "\n\n".join(grid(part, width=width) for part in parts)
    print_text(text)
    units = "PDQ and coverages in percent; " if not math.isnan(gain.changes["PDQ"].after) else ""
    note(
        f"{units}{gain.folds:,} folds of {gain.images:,} images, {gain.pairs:,} matched boxes (COCO IoU 0.5, without "
        "larger errors); error/std is best at 1, a coverage at its nominal value"
    )
    if baseline:
        target = fitted.calibration.target
        note(
            f"the constant is fitted for {target if target == 'coverage' else target.upper()} only; gains over it in "
            "other metrics are optimistic"
        )


def _cells(column: NumberColumn, change: Change) -> list[str]:
    """Return before, after, gain and interval as text."""

    def shown(value: float, sign: str = "") -> str:
        if math.isnan(value):
            return "-"
        return f"{100 * value:{sign}.2f}" if column.per_cent else f"{value:{sign}.3f}"

    interval = "-" if math.isnan(change.low) else f"{shown(change.low, '+')} .. {shown(change.high, '+')}"
    return [shown(change.before), shown(change.after), shown(change.gain, "+"), interval]


def _as_dict(fitted: CalibrationFit) -> dict[str, Any]:
    """Return a fit for JSON: the calibration, and held-out metrics by key."""
    gain = fitted.gain
    described: dict[str, Any] = {"calibration": fitted.calibration.to_json(), "held_out": None}
    if gain is not None:

        def changes(given: Any) -> dict[str, Any]:
            return {
                key: {"before": c.before, "after": c.after, "gain": c.gain, "interval": [c.low, c.high]}
                for key, c in given.items()
            }

        described["held_out"] = {
            "folds": gain.folds,
            "images": gain.images,
            "pairs": gain.pairs,
            "gain": changes(gain.changes),
            "over_constant": changes(gain.over_constant),
        }
    return described
