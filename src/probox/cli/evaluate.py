"""`probox evaluate`: PDQ of detection files."""

from __future__ import annotations

import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from probox.cli.cluster import dask_option, measuring
from probox.cli.console import in_flags, note, print_json, progress_bar, results, say_notes, table_width, warnings_of
from probox.cli.csv_folder import check_csv_folder, csv_folders, csv_option, write_csv_folder
from probox.cli.intervals import intervals_of, intervals_option, limits_of, say_intervals
from probox.cli.keeping import keep_results, refuse_other_runs
from probox.cli.naming import Named, named_argument, titles_of
from probox.cli.scoring import Scoring, choice_of, keep_option, part_option, scoring_options
from probox.evaluation.group_tables import COUNTS, is_filled
from probox.evaluation.parts import Keep
from probox.measures.boxes.matching import AREA_RANGES, SIZES
from probox.measures.matched import FEW_PAIRS
from probox.measures.registry import measures_called
from probox.support.words import some_names


@click.command("evaluate")
@click.argument("truth", type=click.Path())
@named_argument("detections", "DETECTIONS")
@scoring_options(measures=True, auto=True)
@intervals_option
@click.option("--per-class", is_flag=True, help="The numbers of each class, too, of measures that have them.")
@click.option("--per-size", is_flag=True, help="The numbers of small, medium and large objects, too.")
@click.option("--coco", is_flag=True, help="COCO's twelve numbers, too: AP, AP50, AP75, AR and those of sizes.")
@part_option
@keep_option
@click.option("--out", type=click.Path(), metavar="DIR", help="Keep the evaluation of each file in DIR/NAME.")
@dask_option
@csv_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    truth: str,
    detections: tuple[Named, ...],
    scoring: Scoring,
    per_class: bool,
    per_size: bool,
    coco: bool,
    intervals: bool,
    part: tuple[int, int] | None,
    keep: Keep,
    out: str | None,
    dask: str | None,
    csv_folder: str | None,
    as_json: bool,
) -> None:
    """Measure DETECTIONS (one file or several) against TRUTH.

    TRUTH is COCO ground truth (.json, .json.gz), Parquet, a folder of challenge sequences, or labels of YOLO
    (data.yaml, or data.yaml:test for another part than val), Pascal VOC, KITTI or Open Images; DETECTIONS are COCO
    results, RVC1, Parquet, or files as those formats have them; all are told apart by their content. Parquet files may
    be larger than memory. What is odd about a file is said in a warning with its likely cause.

    --out keeps each result in DIR/NAME, NAME being the file's without .json, .gz or .parquet unless it is given:
    NAME=DETECTIONS. Results of the same names are replaced in one step, all of them or none; others in DIR must have
    been measured alike, on the same images. If DIR cannot be replaced as a whole (the current folder, a mount point,
    beside folders of your own, a system other than Linux), `kill -9` can leave old and new results there.

    --csv writes summary.csv, per_class.csv, per_size.csv, per_image.csv, confusion.csv, detections.csv and objects.csv
    into DIR, or for several files into DIR/NAME each: numbers in full, fractions instead of per cent, nothing where
    there is none.

    --part 3/16 is for many machines: the third of sixteen ranges of images. `probox merge` makes one result of all
    parts, to the bit that of one machine. --keep matches is for results that are larger than memory: about 10 bytes a
    detection, for PDQ, mAP and LRP; --keep summary keeps sums alone, for PDQ.

    --dask shares the work over the processes of this machine (local, or local:4 for four of them) or over a cluster
    that runs already: the address of its scheduler, or its scheduler file. Every number is bit-identical to that of one
    process. With --out, finished parts are kept in DIR.partial: after a crash, the same command does what is missing.

    \b
    probox evaluate instances_val2017.json detections.json
    probox evaluate instances_val2017.json detections.json --measures map --coco
    probox evaluate data.yaml runs/detect/predict/labels
    probox evaluate truth.json ssd.json YOLO=results/17.json --label-threshold 0.5 --out results
    probox evaluate truth.json ssd.json --label-threshold auto
    probox evaluate truth.json unsure.json --measures nll,energy,coverage --per-class
    probox evaluate instances_val2017.json detections.json --images ids.json
    probox evaluate truth.parquet found.parquet --part 3/16 --keep matches --out parts/3
    probox evaluate truth/ found/ --dask tcp://head:8786 --out results
    """
    import probox.evaluation.evaluate  # noqa: F401  (the time that is reported is without loading it)
    from probox.evaluation.inputs import share_truth

    started = time.perf_counter()
    scoring = dataclasses.replace(scoring, part=part, keep=keep)
    if scoring.convention.label_threshold == "auto" and (part is not None or keep != "all" or dask is not None):
        flag = "--part" if part is not None else "--dask" if dask is not None else f"--keep {keep}"
        raise click.UsageError(
            f"--label-threshold auto needs the tables of all images, which {flag} does not have: leave out one of both"
        )
    if coco and "map" not in scoring.measures:
        raise click.UsageError("--coco shows the numbers of map: add it to --measures")
    if coco and keep == "summary":
        raise click.UsageError("--coco needs the matches of boxes, which --keep matches and --keep all keep")
    paths, names = [given.path for given in detections], titles_of(detections)
    there = share_truth(truth, paths)
    if out is not None:
        measures, image_ids = scoring.measures_to_keep, scoring.image_ids(there)
        refuse_other_runs(Path(out), names, scoring.convention, measures, image_ids, there.classes)
    if csv_folder is not None:
        if keep != "all":
            raise click.UsageError("--csv writes tables, which --keep all keeps")
        check_csv_folder(csv_folder, names)
    rows: dict[str, Any] = {}
    with measuring(there, truth, scoring, dask, out) as measure:
        for path, name in zip(paths, names, strict=True):
            with progress_bar(name, quiet=as_json) as progress:
                rows[name] = measure(path, name, progress)
        if out is not None:
            keep_results(Path(out), rows)
    if csv_folder is not None:
        write_csv_folder(csv_folder, rows)
    sure = intervals_of(rows.values()) if intervals else None
    seconds = time.perf_counter() - started

    if as_json:
        described = [_as_dict(name, path, rows[name]) for name, path in zip(names, paths, strict=True)]
        for row, evaluation in zip(described, rows.values(), strict=True):
            row.update({name: groups for name, _, groups in _groups(evaluation, per_class, per_size)})
            row["notes"] += _group_notes(evaluation, per_class, per_size)
            row.update({"coco": evaluation.coco()} if coco else {})
        for row, own in zip(described, sure or (), strict=False):
            row["intervals"] = own.to_dict()
            row["notes"] += own.notes
        print_json(described[0] if len(described) == 1 else {"results": described})
        return
    from probox.evaluation.text import format_table, summary_text, threshold_words

    threshold = threshold_words(scoring.convention)
    alone = len(rows) == 1 and detections[0].name is None
    named = [("" if alone else name, evaluation.summary()) for name, evaluation in rows.items()]
    against = next(iter(rows.values())).scored_against
    text = summary_text(named, scoring.convention, limits_of(sure), against=against, width=table_width())
    results().print(text, markup=False, soft_wrap=True)
    for name, evaluation in rows.items():
        for _, heading, groups in _groups(evaluation, per_class, per_size):
            title = f"{heading} ({name})" if len(rows) > 1 else heading
            filled = [(group, summary) for group, summary in groups.items() if is_filled(summary)]
            if filled:
                table = format_table(
                    filled, heading=title, mark_best=False, width=table_width(), by_metric=False, threshold=threshold
                )
                results().print(f"\n{table}", markup=False, soft_wrap=True)
    if coco:
        results().print(f"\n{_coco_table(rows, threshold)}", markup=False, soft_wrap=True)
    for name, evaluation in rows.items():
        title = f"{name}: " if len(rows) > 1 else ""
        note(f"{title}{evaluation.counts_in_words}" + ("" if evaluation.part is None else f"; {evaluation.part}"))
        say_notes(evaluation, title)
        for text in _group_notes(evaluation, per_class, per_size):
            note(f"{title}note: {text}")
    say_intervals(sure)
    kept = f"; kept in {', '.join(str(Path(out) / name) for name in names)}" if out else ""
    note(f"{seconds:.2f} s{kept}" + (f"; tables in {', '.join(csv_folders(csv_folder, names))}" if csv_folder else ""))


def _coco_table(rows: dict[str, Any], threshold: str | None) -> str:
    """Return COCO's twelve numbers, a row each, in the order and the words of pycocotools."""
    from probox.measures.boxes.mean_ap import COCO_LABELS
    from probox.support.grids import grid

    heading = "COCO [%], higher is better" + ("" if threshold is None else f", scores > {threshold}")
    numbers = [evaluation.coco() for evaluation in rows.values()]
    lines = [
        [label, *("-" if math.isnan(own[key]) else f"{100 * own[key]:.2f}" for own in numbers)]
        for key, label in COCO_LABELS.items()
    ]
    return grid([[heading, *(rows if len(rows) > 1 else [""])], *lines], width=table_width())


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


def _as_dict(name: str, path: str, evaluation: Any) -> dict[str, Any]:
    return {
        "detections": path,
        "summary": evaluation.summary(),
        "convention": evaluation.convention.to_dict(),
        "scored_against": evaluation.scored_against,
        **choice_of(evaluation),
        "counts": evaluation.counts,
        **({} if evaluation.part is None else {"part": str(evaluation.part)}),
        "notes": [in_flags(text) for text in evaluation.notes],
        "warnings": warnings_of(evaluation),
        "name": name,
    }
