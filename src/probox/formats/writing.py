"""Writing detections in the format that a file name asks for."""

from __future__ import annotations

from probox.errors import InputError
from probox.files.reading import Paths
from probox.files.replacing import check_replaceable
from probox.formats.format import DetectionFormat, Notes
from probox.formats.registry import detection_formats, endings_in_words, format_of_name
from probox.tables.arguments import dataset_of
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["check_output", "write_detections"]


def write_detections(path: Paths, found: Detections, truth: GroundTruth | Dataset) -> Notes:
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

    Returns
    -------
    tuple of str
        What the file cannot hold, one sentence each.
    """
    write = _asked_for(path).write
    assert write is not None
    return write(path, found, dataset_of(truth, "the order is write_detections(path, found, truth)"))


def check_output(path: Paths, *, heatmaps: bool = False) -> None:
    """Raise if `write_detections` could not write this file (or heatmaps with it), before any work is done."""
    form = _asked_for(path)
    if heatmaps and not form.heatmaps:
        able = " or ".join(f"*{known.suffixes[-1]}" for known in detection_formats() if known.heatmaps)
        raise InputError(f"{form.title} cannot hold heatmaps", file=str(path), remedy=f"use {able}")
    check_replaceable(path, form.kind, folder=True)


def _asked_for(path: Paths) -> DetectionFormat:
    form = format_of_name(path)
    if form is None:
        raise InputError("can't tell a format from this file name", file=str(path), remedy=f"use {endings_in_words()}")
    return form
