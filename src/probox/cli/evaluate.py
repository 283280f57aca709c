"""`probox evaluate`: PDQ of detection files."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from probox.cli.console import file_title, in_flags, note, print_json, progress_bar, results, say_notes, warnings_of
from probox.cli.csv_folder import check_csv_folder, csv_folders, csv_option, write_csv_folder
from probox.cli.image_choice import images_option, parse_images
from probox.cli.intervals import intervals_of, intervals_option, limits_of, say_intervals
from probox.cli.keeping import keep_results, refuse_other_runs
from probox.cli.measure_choice import parse_measures
from probox.convention import CHOICES, PRESETS, Convention
from probox.evaluation.grouped import COUNTS, is_filled
from probox.measures.boxes.matching import AREA_RANGES, SIZES
from probox.measures.matched import FEW_PAIRS
from probox.measures.registry import measures_called, standard_names
from probox.support.words import some_names


@click.command("evaluate")
@click.argument("truth", type=click.Path())
@click.argument("detections", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    default="reference",
    show_default=True,
    help="The published numbers, the equations alone, or the robotic vision challenge's form.",
)
@click.option("--assignment", type=click.Choice(CHOICES["assignment"]), help="How detections meet objects.")
@click.option(
    "--background",
    type=click.Choice(CHOICES["background"]),
    help="The background lies outside an object's box or mask.",
)
@click.option("--box-truth", is_flag=True, help="Use annotated boxes in place of masks.")
@click.option("--set-cov", type=float, metavar="V", help="Give every corner the variance V (square pixels).")
@click.option("--label-threshold", type=float, metavar="T", help="Keep detections with a label probability above T.")
@click.option("--label-weight", type=float, metavar="W", help="Weight of the label in pPDQ, 0 to 1 [default: 0.5].")
@click.option("--clip", type=click.Choice(CHOICES["clip"]), help="Move corners outside the image onto its border.")
@click.option("--object-filter/--no-object-filter", default=None, help="Ignore small objects [default: as truth asks].")
@click.option(
    "--measures",
    metavar="LIST",
    help=f"What to measure, separated by commas, or `all`.  [default: {','.join(standard_names())}]",
)
@intervals_option
@click.option("--per-class", is_flag=True, help="The numbers of each class, too, of measures that have them.")
@click.option("--per-size", is_flag=True, help="The numbers of small, medium and large objects, too.")
@click.option("--repair", is_flag=True, help="Replace covariances that are none by the nearest valid ones.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use [default: all processors].")
@images_option
@click.option("--out", type=click.Path(), metavar="DIR", help="Keep the full evaluation of each file in DIR/NAME.")
@csv_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    truth: str,
    detections: tuple[str, ...],
    preset: str,
    measures: str | None,
    per_class: bool,
    per_size: bool,
    intervals: bool,
    repair: bool,
    threads: int | None,
    images: str | None,
    out: str | None,
    csv_folder: str | None,
    as_json: bool,
    **choices: Any,
) -> None:
    """Measure DETECTIONS (one file or several) against TRUTH.

    TRUTH is COCO ground truth (.json, .json.gz), Parquet, or a folder of challenge sequences; DETECTIONS are
    COCO results, RVC1 or Parquet files; all are told apart by their content. Parquet files may be larger than
    memory. What is odd about a file is said in a warning with its likely cause.

    --out keeps each result in DIR/NAME, NAME being the file's without endings. Results of the same names are
    replaced, all of them or none; others in DIR must have been measured alike, on the same images.

    --csv writes summary.csv, per_class.csv, per_size.csv, per_image.csv, detections.csv and objects.csv into DIR, or
    for several files into DIR/NAME each: numbers in full, fractions instead of per cent, nothing where there is none.

    \b
    probox evaluate instances_val2017.json detections.json
    probox evaluate truth.json ssd.json yolo.json --label-threshold 0.5 --out results
    probox evaluate truth.json unsure.json --measures nll,energy,coverage --per-class
    probox evaluate instances_val2017.json detections.json --images ids.json
    """
    convention = _convention(preset, choices)
    wanted = standard_names() if measures is None else parse_measures(measures)
    import probox.evaluation.streaming  # noqa: F401  (loading it is no part of the time that is told)

    started = time.perf_counter()
    source = _Truth(truth, detections, images)
    names = _row_names(detections)
    if out is not None:
        refuse_other_runs(Path(out), names, convention, wanted, source.image_ids, source.classes)
    if csv_folder is not None:
        check_csv_folder(csv_folder, names)
    rows: dict[str, Any] = {}
    for path, name in zip(detections, names, strict=True):
        with progress_bar(name, quiet=as_json) as progress:
            rows[name] = source.evaluate(
                path, repair, convention=convention, measures=wanted, threads=threads, progress=progress
            )
    if out is not None:
        keep_results(Path(out), rows)
    if csv_folder is not None:
        write_csv_folder(csv_folder, rows)
    sure = intervals_of(rows.values()) if intervals else None
    seconds = time.perf_counter() - started

    if as_json:
        described = [_as_dict(path, evaluation) for path, evaluation in zip(detections, rows.values(), strict=True)]
        for row, evaluation in zip(described, rows.values(), strict=True):
            row.update({name: groups for name, _, groups in _groups(evaluation, per_class, per_size)})
            row["notes"] += _group_notes(evaluation, per_class, per_size)
        for row, own in zip(described, sure or (), strict=False):
            row["intervals"] = own.to_dict()
            row["notes"] += own.notes
        print_json(described[0] if len(described) == 1 else {"results": described})
        return
    from probox.evaluation.text import format_table, summary_text

    named = [(name if len(rows) > 1 else "", evaluation.summary()) for name, evaluation in rows.items()]
    text = summary_text(named, convention, limits_of(sure))
    results().print(text, markup=False, soft_wrap=True)
    for name, evaluation in rows.items():
        for _, heading, groups in _groups(evaluation, per_class, per_size):
            title = f"{heading} ({name})" if len(rows) > 1 else heading
            filled = [(group, summary) for group, summary in groups.items() if is_filled(summary)]
            if filled:
                results().print(
                    f"\n{format_table(filled, heading=title, mark_best=False)}", markup=False, soft_wrap=True
                )
    for name, evaluation in rows.items():
        counts = _counts(evaluation)
        title = f"{name}: " if len(rows) > 1 else ""
        note(f"{title}{counts['images']:,} images, {counts['objects']:,} objects, {counts['detections']:,} detections")
        say_notes(evaluation, title)
        for text in _group_notes(evaluation, per_class, per_size):
            note(f"{title}note: {text}")
    say_intervals(sure)
    kept = f"; kept in {', '.join(str(Path(out) / name) for name in names)}" if out else ""
    note(f"{seconds:.2f} s{kept}" + (f"; tables in {', '.join(csv_folders(csv_folder, names))}" if csv_folder else ""))


def _groups(evaluation: Any, per_class: bool, per_size: bool) -> list[tuple[str, str, dict[str, dict[str, float]]]]:
    """Return the groups that were asked for: name in JSON, heading, and the summary of each."""
    measured = {*COUNTS, *evaluation.summary()}
    found = []
    for name, heading, asked in (("per_class", "Class", per_class), ("per_size", "Size", per_size)):
        groups = getattr(evaluation, name)() if asked else {}
        kept = {group: {key: own[key] for key in own if key in measured} for group, own in groups.items()}
        found += [(name, heading, kept)] if asked else []
    return found


def _group_notes(evaluation: Any, per_class: bool, per_size: bool) -> list[str]:
    """Say which classes and sizes have too few pairs for measures of pairs, and which measures have no groups."""
    notes = []
    asked = measures_called(evaluation.measures)
    for name, wanted in (("class", per_class), ("size", per_size)):
        without = [measure.name for measure in asked if wanted and getattr(measure, f"per_{name}") is None]
        if without:
            notes.append(f"{', '.join(without)}: no numbers per {name}")
    if all(measure.standard for measure in asked):
        return notes
    pairs = evaluation.matched_pairs
    few = []
    if per_class:
        counts = np.bincount(pairs.labels, minlength=len(evaluation.classes))
        few += [name for name, n in zip(evaluation.classes, counts, strict=True) if 0 < n < FEW_PAIRS]
    if per_size:
        inside = [(pairs.areas >= low) & (pairs.areas <= high) for low, high in AREA_RANGES[1:]]
        few += [name for name, own in zip(SIZES[1:], inside, strict=True) if 0 < own.sum() < FEW_PAIRS]
    if few:
        notes.append(f"fewer than {FEW_PAIRS} pairs, so numbers of pairs say little: {some_names(few)}")
    return notes


class _Truth:
    """The ground truth of a command: a table, or a Parquet file that is read part by part.

    The latter as long as no file of detections needs the table whole.
    """

    def __init__(self, path: str, detections: tuple[str, ...], images: str | None) -> None:
        from probox.evaluation.notes import notes_of_part
        from probox.formats import read_truth
        from probox.formats.parquet.columns import is_parquet
        from probox.formats.parquet.truth import TruthFile
        from probox.tables.dataset import chosen_ids

        in_parts = is_parquet(path) and all(map(is_parquet, detections))
        self.whole: Any = TruthFile(path) if in_parts else read_truth(path)
        self.classes = self.whole.classes
        self.image_ids = self.whole.image_ids
        self.images = None
        if images is not None:
            self.images = self.image_ids = chosen_ids(parse_images(images), self.image_ids, file=path)
        self.path = path if in_parts else None
        self.part: Any = self.whole
        if images is not None and not in_parts:
            part = self.whole.select_images(self.image_ids)
            notes = notes_of_part(self.whole.notes, len(self.image_ids), len(self.whole.image_ids))
            self.part = dataclasses.replace(part, notes=notes)

    def evaluate(self, path: str, repair: bool, **options: Any) -> Any:
        """Return the evaluation of one file; Parquet files go row group by row group."""
        from probox.evaluation.run import evaluate
        from probox.evaluation.streaming import evaluate_parquet
        from probox.formats.parquet.columns import is_parquet
        from probox.formats.reading import read_detections_of_part

        if is_parquet(path):
            return evaluate_parquet(self.path or self.whole, path, repair=repair, images=self.images, **options)
        return evaluate(self.part, read_detections_of_part(path, self.whole, self.part, repair=repair), **options)


def _convention(preset: str, choices: dict[str, Any]) -> Convention:
    renamed = {"set_cov": "set_covariance"}
    changes = {renamed.get(name, name): value for name, value in choices.items() if value is not None}
    try:
        return Convention.preset(preset, **changes)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _row_names(paths: tuple[str, ...]) -> list[str]:
    """Return a short name per file: its own name without endings, with a number where two are alike."""
    names: list[str] = []
    for path in paths:
        base = file_title(path)
        base = base if base.strip(".") else "detections"  # "." and ".." are no names for a folder
        name, number = base, 2
        while name in names:
            name, number = f"{base}-{number}", number + 1
        names.append(name)
    return names


def _counts(evaluation: Any) -> dict[str, int]:
    return {
        "images": len(evaluation.dataset),
        "objects": len(evaluation.objects),
        "detections": len(evaluation.detections),
    }


def _as_dict(path: str, evaluation: Any) -> dict[str, Any]:
    return {
        "detections": path,
        "summary": evaluation.summary(),
        "convention": evaluation.convention.to_dict(),
        "counts": _counts(evaluation),
        "notes": [in_flags(text) for text in evaluation.notes],
        "warnings": warnings_of(evaluation),
    }
