"""Writing detections in the format that a file name asks for."""

from __future__ import annotations

from probox.errors import InputError
from probox.files.kinds import check_replaceable
from probox.files.reading import Paths
from probox.files.source import is_url
from probox.formats.format import DetectionFormat, Notes
from probox.formats.parquet.format import PARQUET_DETECTIONS, check_parquet_output, in_shards
from probox.formats.registry import detection_formats, endings_in_words, format_of_name
from probox.tables.arguments import dataset_of
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["check_output", "check_place", "check_url", "write_detections"]


def write_detections(
    path: Paths, found: Detections, truth: GroundTruth | Dataset, *, shards: int | None = None
) -> Notes:
    """Write detections in the format that the file name asks for.

    ``*.coco.json`` and ``*.bbox.json`` are COCO results, ``*.parquet`` is Parquet, any other ``*.json`` is RVC1; JSON
    may end in ``.gz``.

    Parameters
    ----------
    path : path
        The file.
    found : Detections
        What to write.
    truth : GroundTruth or Dataset
        The images and category ids.
    shards : int, optional
        Write a folder of so many Parquet files instead, as `write_parquet` does.

    Returns
    -------
    tuple of str
        What the file cannot hold, one sentence each.
    """
    write = _asked_for(path, shards).write
    assert write is not None
    return write(path, found, dataset_of(truth, "the order is write_detections(path, found, truth)"))


def check_output(path: Paths, *, heatmaps: bool = False, shards: int | None = None) -> None:
    """Raise if `write_detections` could not write this file (or heatmaps with it), before any work is done."""
    form = _asked_for(path, shards)
    if heatmaps and not form.heatmaps:
        able = " or ".join(f"*{known.suffixes[-1]}" for known in detection_formats() if known.heatmaps)
        raise InputError(f"{form.title} cannot hold heatmaps", file=str(path), remedy=f"use {able}")
    check_place(path, form, shards=shards)


def check_place(path: Paths, form: DetectionFormat, *, shards: int | None = None) -> None:
    """Raise if a file or set of this format may not be written to a place, or cannot be."""
    check_url(path, form)
    if form.name == PARQUET_DETECTIONS.name:
        check_parquet_output(path, "detections", shards=shards, folder=True)
    else:
        check_replaceable(path, form.kind, folder=True)


def check_url(path: Paths, form: DetectionFormat) -> None:
    """Raise for a URL if a format writes files alone."""
    if is_url(path) and not form.urls:
        raise InputError(
            f"{form.title} cannot be written to a URL", file=str(path), remedy="write Parquet there, or name a file"
        )


def _asked_for(path: Paths, shards: int | None) -> DetectionFormat:
    if shards is not None:
        return in_shards(shards)[0]
    form = format_of_name(path)
    if form is None:
        raise InputError("can't tell a format from this file name", file=str(path), remedy=f"use {endings_in_words()}")
    check_url(path, form)
    return form
