"""Pascal VOC's two formats."""

from __future__ import annotations

from probox.errors import InputError
from probox.files.reading import is_folder
from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.format import DetectionFormat, TruthFormat
from probox.formats.label_text import divided, has_sequences, kind_of_texts
from probox.formats.problems import Problems
from probox.formats.voc.detections import check_voc_results, voc_detections
from probox.formats.voc.truth import annotations_of, voc_truth
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth

__all__ = ["VOC_DETECTIONS", "VOC_TRUTH"]


def _sniff_truth(source: Source) -> bool:
    place, _ = divided(source.path)
    return is_folder(place) and not has_sequences(place) and annotations_of(place) is not None


def _read_truth(source: Source, problems: Problems, *, split: str | None = None) -> GroundTruth:
    place, part = divided(source.path)
    return voc_truth(place, split or part, source.name, problems)


def _sniff_detections(source: Source) -> bool:
    place, _ = divided(source.path)
    return kind_of_texts(place) == "voc" or _sniff_truth(source)  # truth is none, as the reader says


def _read_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    _refuse_truth(source)
    place, _ = divided(source.path)
    return voc_detections(place, source.name, dataset, problems)


def _refuse_truth(source: Source) -> None:
    if _sniff_truth(source):
        raise InputError(
            "expected detections, but these are Pascal VOC annotations",
            file=source.name,
            remedy="name the ground truth first, then the detections",
        )


def _check(source: Source) -> None:
    _refuse_truth(source)
    check_voc_results(divided(source.path)[0])


VOC_TRUTH = TruthFormat(
    name="voc", title="Pascal VOC annotations", sniff=_sniff_truth, read=_read_truth, options=("split",)
)

VOC_DETECTIONS = DetectionFormat(
    name="voc",
    title="Pascal VOC detections",
    sniff=_sniff_detections,
    read=_read_detections,
    check=_check,
)
