"""Writing detections in the format that a file name asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from probox.errors import InputError
from probox.files.reading import Paths
from probox.files.replacing import check_replaceable
from probox.formats.parquet.detections import write_parquet
from probox.formats.writers import write_coco_results, write_rvc1
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["check_output", "write_detections"]

_COCO = (".coco.json", ".coco.json.gz", ".bbox.json", ".bbox.json.gz")


def write_detections(path: Paths, found: Detections, truth: GroundTruth) -> tuple[str, ...]:
    """Write detections in the format that the file name asks for.

    ``*.coco.json`` and ``*.bbox.json`` are COCO results, ``*.parquet`` is Parquet, any other ``*.json`` is RVC1; JSON
    may end in ``.gz``.

    Parameters
    ----------
    path : path
        The file.
    found : Detections
        What to write.
    truth : GroundTruth
        The images and category ids; its objects don't matter.

    Returns
    -------
    tuple of str
        What the file cannot hold, one sentence each.
    """
    wanted = format_of_name(path)
    if wanted == "parquet":
        write_parquet(path, found)
        return ()
    return (write_coco_results if wanted == "coco" else write_rvc1)(path, found, truth)


def check_output(path: Paths) -> None:
    """Raise if `write_detections` could not write this file, before any work is done."""
    wanted = format_of_name(path)
    check_replaceable(path, "detections in Parquet" if wanted == "parquet" else "detections", folder=True)


def format_of_name(path: Paths) -> Literal["coco", "rvc1", "parquet"]:
    """Return the format that a file name asks for."""
    name = Path(path).name.lower()
    if name.endswith(_COCO):
        return "coco"
    if name.endswith((".json", ".json.gz")):
        return "rvc1"
    if name.endswith(".parquet"):
        return "parquet"
    raise InputError(
        "can't tell a format from this file name",
        file=str(path),
        remedy="use .json (RVC1), .coco.json (COCO results) or .parquet",
    )
