"""`probox convert`: detections from one format to another, and ground truth to Parquet."""

from __future__ import annotations

from pathlib import Path

import click

from probox.cli.console import note, print_json
from probox.errors import InputError

_NAMES = {"coco": "COCO results", "rvc1": "RVC1", "parquet": "Parquet"}


@click.command("convert", short_help="Write detections in another format.")
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@click.option("--truth", type=click.Path(), help="The ground truth that the detections belong to.")
@click.option("--to", "wanted", type=click.Choice(list(_NAMES)), help="The format to write.")
@click.option("--repair", is_flag=True, help="Replace invalid covariances by the nearest valid ones.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(source: str, target: str, truth: str | None, wanted: str | None, repair: bool, as_json: bool) -> None:
    """Convert detections between COCO results, RVC1 (.json, .json.gz) and Parquet (.parquet).

    Images and class names come from the ground truth. With --truth and without --to, COCO results become RVC1
    and the other way round; an OUT that ends in .parquet is Parquet, and one that does not end in .json or .json.gz a
    folder of RVC1 sequences. Without --truth the format stays, and the file is checked, and compressed or not by
    the name of OUT; ground truth becomes Parquet. An OUT that is there is replaced if it holds detections (or ground
    truth, if that is written), and never if it is IN or the ground truth.

    \b
    Examples:
      probox convert results.json detections.rvc1.json.gz --truth instances_val2017.json
      probox convert results.json results.json.gz
      probox convert results.json detections.parquet --truth instances_val2017.json
      probox convert instances_val2017.json truth.parquet
    """
    from probox.files.replacing import check_not_input
    from probox.formats import detection_format

    given = detection_format(source)
    what = "detections"
    if wanted is None and target.endswith(".parquet"):
        wanted = "parquet"
    if wanted is None:
        is_file = target.endswith((".json", ".json.gz"))
        other = "coco" if given != "coco" and is_file else "rvc1"
        wanted = other if truth is not None or given == "parquet" else given
    check_not_input(target, (source, truth))
    if truth is not None:
        count, notes = _rewrite(source, target, truth, wanted, repair)
    elif wanted == "parquet":
        what, count, notes = _to_parquet(source, target, given, repair)
    elif wanted == given and not repair:
        count, notes = None, _repack(source, target, given)
    else:
        raise _needs_truth(source, wanted)
    if as_json:
        print_json({"input": source, "output": target, "format": wanted, what: count, "notes": list(notes)})
        return
    for text in notes:
        note(f"note: {text}")
    counted = what if count is None else f"{count:,} {what}"
    note(f"wrote {counted} to {target} ({_NAMES[wanted]})")


def _needs_truth(source: str, wanted: str) -> InputError:
    return InputError(
        f"cannot become {_NAMES[wanted]} without the images and classes of the ground truth",
        file=source,
        remedy="add --truth FILE",
    )


def _rewrite(source: str, target: str, truth: str, wanted: str, repair: bool) -> tuple[int, tuple[str, ...]]:
    from probox.formats import read_detections, read_truth, write_coco_results, write_parquet, write_rvc1

    table = read_truth(truth)
    found = read_detections(source, table, repair=repair)
    if wanted == "parquet":
        write_parquet(target, found)
        return len(found), found.notes
    write = write_coco_results if wanted == "coco" else write_rvc1
    return len(found), found.notes + write(target, found, table)


def _to_parquet(source: str, target: str, given: str, repair: bool) -> tuple[str, int, tuple[str, ...]]:
    """Write Parquet of what needs no ground truth beside it: ground truth itself, and detections in Parquet."""
    from probox.formats import read_parquet, read_truth, write_parquet
    from probox.formats.parquet.file import holds_truth

    if given == "coco":
        raise _needs_truth(source, "parquet")
    if given == "parquet" and not holds_truth(source):
        found = read_parquet(source, repair=repair)
        write_parquet(target, found)
        return "detections", len(found), found.notes
    try:
        truth = read_truth(source)
    except InputError:
        if given == "rvc1" and _is_rvc1(source):
            raise _needs_truth(source, "parquet") from None
        raise
    write_parquet(target, truth)
    return "objects", len(truth), truth.notes


def _is_rvc1(source: str) -> bool:
    from probox.files.reading import read_bytes
    from probox.formats.rvc1.detections import check_rvc1

    try:
        check_rvc1(read_bytes(source), source)
    except InputError:
        return False
    return True


def _repack(source: str, target: str, form: str) -> tuple[str, ...]:
    """Copy a file, checked, with or without compression."""
    from probox.files.output import json_bytes, write_files
    from probox.files.reading import read_bytes
    from probox.files.replacing import check_replaceable
    from probox.formats.coco.results import check_coco_results
    from probox.formats.rvc1.detections import check_rvc1

    data = read_bytes(source)
    check = check_coco_results if form == "coco" else check_rvc1
    check(data, source)
    check_replaceable(target, "detections")
    write_files({Path(target): json_bytes(Path(target), data)})
    return ()
