"""`probox convert` and `probox validate`: convert files, and check them for problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from probox.cli.console import as_option, print_json, print_outcome, results
from probox.cli.shared_options import json_option, output_option
from probox.errors import InputError
from probox.formats.registry import (
    detection_formats,
    format_of_detections,
    format_of_name,
    format_of_truth,
    truth_formats,
)
from probox.support.formatting import one_line

if TYPE_CHECKING:
    from probox.analysis.validation import Report
    from probox.files.reading import Source
    from probox.formats.format import DetectionFormat, Notes, TruthFormat
    from probox.tables.groundtruth import GroundTruth

PLAIN = ".json"
"""The ending of several JSON formats."""


def _names() -> list[str]:
    return [form.name for form in detection_formats() if form.write is not None]


def _known(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Check the name of a format; plug-ins may add some."""
    return None if value is None else click.Choice(_names()).convert(value, option, context)


@click.command("convert")
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@click.option("--truth", type=click.Path(), metavar="FILE", help="Read images and classes from this ground truth.")
@click.option("--to", "wanted", metavar=f"[{'|'.join(_names())}]", callback=_known, help="Write this format.")
@output_option("--shards", type=click.IntRange(min=1), help="Write N Parquet files to the folder OUT.")
@click.option("--repair", is_flag=True, help="Replace invalid covariances with the nearest valid ones.")
@json_option
def command(
    source: str, target: str, truth: str | None, wanted: str | None, shards: int | None, repair: bool, as_json: bool
) -> None:
    """Convert detections to COCO results, RVC1 or Parquet, and ground truth to Parquet.

    IN is a file or folder in any supported format. The name of OUT determines the format: .coco.json, .rvc1.json (both
    also with .gz) or .parquet. A change of format needs --truth (docs/formats.md).

    With --truth and a plain .json, COCO results become RVC1 and other formats COCO results. Without --truth, the file
    is checked and copied, compressed if OUT ends in .gz.

    \b
    Examples:
      probox convert results.json detections.rvc1.json.gz --truth instances_val2017.json
      probox convert runs/detect/predict/labels detections.coco.json --truth data.yaml
      probox convert results.json results.json.gz
      probox convert instances_val2017.json truth.parquet
      probox convert detections.parquet detections --shards 16
    """
    from probox.files.output import check_none_is_input
    from probox.files.reading import Source
    from probox.formats.parquet.format import PARQUET_DETECTIONS, files_to_replace, in_shards
    from probox.formats.registry import check_url

    read = Source(source)
    given = format_of_detections(read)
    form, truth_writers = _choose_format(target, given, wanted, has_truth=truth is not None), truth_formats()
    if shards is not None:
        if wanted not in (None, PARQUET_DETECTIONS.name):
            raise click.UsageError(f"--shards writes Parquet, but --to is {wanted}: leave out one of the two")
        form, writer = in_shards(shards)
        truth_writers = [writer]
    check_url(target, form)
    check_none_is_input([target, *files_to_replace(target)], (source, truth))
    what = "detections"
    count: int | None
    if truth is not None:
        count, notes = _rewrite(read, target, truth, given, form, repair)
    else:
        what, count, notes = _without_truth(read, target, given, form, truth_writers, repair)
    described = {"input": source, "output": target, "format": form.name, what: count}
    counted = what if count is None else f"{count:,} {what}"
    print_outcome(described, notes, f"wrote {counted} to {target} ({form.title})", as_json=as_json)


def _choose_format(target: str, given: DetectionFormat, wanted: str | None, *, has_truth: bool) -> DetectionFormat:
    """Return the format to write: that of --to, or by the name of OUT."""
    from probox.files.reading import is_url
    from probox.formats.coco import COCO_RESULTS
    from probox.formats.parquet.format import PARQUET_DETECTIONS
    from probox.formats.rvc1_detections import RVC1_DETECTIONS

    if wanted is not None:
        return next(form for form in detection_formats() if form.name == wanted)
    named = format_of_name(target)
    if named is None and is_url(target):
        return PARQUET_DETECTIONS
    if named is None:
        return RVC1_DETECTIONS if has_truth else given  # a folder of sequences
    if named.suffix_in(target) != PLAIN:
        return named
    if not has_truth and given in (COCO_RESULTS, RVC1_DETECTIONS):
        return given
    return RVC1_DETECTIONS if given is COCO_RESULTS else COCO_RESULTS


def _rewrite(
    source: Source, target: str, truth: str, given: DetectionFormat, form: DetectionFormat, repair: bool
) -> tuple[int, Notes]:
    from probox.formats import read_truth
    from probox.formats.problems import Problems
    from probox.formats.registry import fit_heatmaps

    assert form.write is not None
    dataset = read_truth(truth).dataset
    table, notes = fit_heatmaps(given.read(source, dataset, Problems()).to_table(repair=repair), form)
    return len(table), table.notes + notes + form.write(target, table, dataset)


def _without_truth(
    source: Source,
    target: str,
    given: DetectionFormat,
    form: DetectionFormat,
    truth_writers: list[TruthFormat],
    repair: bool,
) -> tuple[str, int | None, Notes]:
    """Write ground truth, or a copy of detections; return which, their number, and notes."""
    for writer in truth_writers:
        if writer.name == form.name and writer.write is not None:
            truth = _as_truth(source, given)
            if truth is not None:
                return "objects", int(truth.countable.sum()), truth.notes + writer.write(target, truth)
    copied = form.copy(source, target, repair) if form.name == given.name and form.copy is not None else None
    if copied is None:
        raise InputError(
            f"cannot be written as {form.title} without the images and classes of the ground truth",
            file=source.name,
            remedy="add --truth FILE",
        )
    return ("detections", *copied)


def _as_truth(source: Source, given: DetectionFormat) -> GroundTruth | None:
    """Return the ground truth in a file, or None if it contains detections."""
    from probox.formats.problems import Problems

    try:
        return format_of_truth(source).read(source, Problems())
    except InputError:
        if _is_complete(source, given):
            return None
        raise


def _is_complete(source: Source, given: DetectionFormat) -> bool:
    try:
        if given.check is not None:
            given.check(source)
    except InputError:
        return False
    return True


@click.command("validate")
@click.argument("truth", type=click.Path())
@click.argument("detections", type=click.Path())
@json_option
def validate_command(truth: str, detections: str, as_json: bool) -> int:
    """Check ground truth and detections for errors and likely mistakes.

    Prints each kind of problem with its first examples. Errors prevent an evaluation and exit with status 1; warnings
    do not (docs/formats.md).

    \b
    Examples:
      probox validate instances_val2017.json detections.json
      probox validate data.yaml runs/detect/predict/labels --json
    """
    from probox.analysis.validation import validate

    report = validate(truth, detections)
    if as_json:
        print_json(report.to_dict(as_option))
    else:
        _print_report(report)
    return 0 if report.ok else 1


def _print_report(report: Report) -> None:
    from rich.text import Text

    console = results()
    for title, style, findings in (("error", "bold red", report.errors), ("warning", "yellow", report.warnings)):
        for finding in findings:
            console.print(Text.assemble((title, style), f": {finding.kind} ({finding.count:,})"), soft_wrap=True)
            for example in finding.examples:
                console.print(Text(f"  {example.message(as_option)}"), soft_wrap=True)
            if finding.count > len(finding.examples):
                console.print(Text(f"  and {finding.count - len(finding.examples):,} more"), soft_wrap=True)
    for note in report.notes:
        console.print(Text(one_line(note.with_label(as_option))), soft_wrap=True)
    read = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in report.counts.items())
    verdict = "can be evaluated" if report.ok else "cannot be evaluated"
    console.print(Text(f"{verdict}: {read}" if read else verdict), soft_wrap=True)
