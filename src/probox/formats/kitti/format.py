"""KITTI's two formats."""

from __future__ import annotations

from pathlib import Path

from probox.errors import InputError
from probox.files.reading import is_folder
from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.format import DetectionFormat, TruthFormat
from probox.formats.kitti.labels import check_kitti, kitti_detections, kitti_truth, labels_of
from probox.formats.label_text import has_sequences, kind_of_texts
from probox.formats.problems import Problems
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth

__all__ = ["KITTI_DETECTIONS", "KITTI_TRUTH"]


def _sniff_truth(source: Source) -> bool:
    place = Path(source.path)
    return is_folder(place) and not has_sequences(place) and labels_of(place) is not None


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    return kitti_truth(Path(source.path), source.name, problems)


def _folder(source: Source) -> Path:
    """Return where detections are: the folder itself, or ``data`` in it, as the benchmark wants them."""
    place = Path(source.path)
    return place / "data" if kind_of_texts(place) == "none" and kind_of_texts(place / "data") == "kitti" else place


def _sniff_detections(source: Source) -> bool:
    return kind_of_texts(_folder(source)) == "kitti" or _sniff_truth(source)  # truth is none, as the reader says


def _refuse_truth(source: Source) -> None:
    if kind_of_texts(_folder(source)) != "kitti":
        raise InputError(
            "expected detections, but these are KITTI's labels",
            file=source.name,
            remedy="name the ground truth first, then the detections",
        )


def _read_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    _refuse_truth(source)
    return kitti_detections(_folder(source), source.name, dataset, problems)


def _check(source: Source) -> None:
    _refuse_truth(source)
    check_kitti(_folder(source))


KITTI_TRUTH = TruthFormat(name="kitti", title="KITTI labels", sniff=_sniff_truth, read=_read_truth)

KITTI_DETECTIONS = DetectionFormat(
    name="kitti",
    title="KITTI detections",
    sniff=_sniff_detections,
    read=_read_detections,
    check=_check,
)
