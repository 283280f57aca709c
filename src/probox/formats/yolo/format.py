"""YOLO's two formats: data sets with labels beside their images, and folders of predictions."""

from __future__ import annotations

from pathlib import Path

from probox.errors import InputError
from probox.files.reading import file_head, is_folder
from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.format import DetectionFormat, TruthFormat
from probox.formats.label_text import divided, has_json, has_sequences, kind_of_texts
from probox.formats.problems import Problems
from probox.formats.yolo.data_yaml import looks_like_data_yaml
from probox.formats.yolo.detections import check_predictions, folder_of_predictions, yolo_predictions
from probox.formats.yolo.order import ORDERS, Order
from probox.formats.yolo.places import YAML, yaml_in
from probox.formats.yolo.truth import yolo_truth
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth

_LOOKED_AT = 20
"""So many folders in a folder are looked into."""

__all__ = ["YOLO_DETECTIONS", "YOLO_TRUTH"]


def _is_data_set(source: Source) -> bool:
    """Return whether this is a data.yaml, or a folder of a data set."""
    place, _ = divided(source.path)
    if not is_folder(place):
        named = place.suffix.lower() in YAML and place.is_file()
        return named or looks_like_data_yaml(source.head if place == Path(source.path) else file_head(place))
    if has_sequences(place):
        return False
    if (place / "images").is_dir() and (place / "labels").is_dir():
        return True
    try:
        return yaml_in(place) is not None
    except InputError:
        return True  # several, which the reader says


def _sniff_truth(source: Source) -> bool:
    if _is_data_set(source):
        return True
    place, _ = divided(source.path)
    return kind_of_texts(place) == "yolo" and not has_sequences(place)  # labels alone, which the reader says


def _read_truth(source: Source, problems: Problems, *, split: str | None = None) -> GroundTruth:
    place, part = divided(source.path)
    if not _is_data_set(source):
        raise InputError(
            "expected a data.yaml, or folders images and labels, but this is a folder of label files alone",
            file=source.name,
            remedy="give data.yaml, or the folder that holds images and labels",
        )
    return yolo_truth(place, split or part, source.name, problems)


def _sniff_predictions(source: Source) -> bool:
    place, _ = divided(source.path)
    if not is_folder(place):
        return _is_data_set(source)  # which is none, as its reader says
    if has_sequences(place):
        return False
    kind = kind_of_texts(folder_of_predictions(place))
    if kind == "none" and not _is_data_set(source):
        kinds = [kind_of_texts(entry) for entry in sorted(folder_of_predictions(place).iterdir())[:_LOOKED_AT]]
        kind = "yolo" if "yolo" in kinds else kind  # a folder of predictions for each folder of images
    if kind == "yolo":
        return True
    if kind == "other":
        return not has_json(place)
    empty = kind == "none" and place.name == "labels" and not any(place.iterdir())  # of a detector that found nothing
    return empty or (kind == "none" and _is_data_set(source))


def _read_predictions(source: Source, dataset: Dataset, problems: Problems, *, order: Order | None = None) -> Draft:
    _refuse_data_set(source)
    if order is not None and order not in ORDERS:
        raise InputError(f"expected order to be one of {', '.join(ORDERS)}, but got {order!r:.40}")
    place, word = divided(source.path)
    return yolo_predictions(place, order or word, source.name, dataset, problems)


def _refuse_data_set(source: Source) -> None:
    place, _ = divided(source.path)
    if not is_folder(place) or ((place / "images").is_dir() and _is_data_set(source)):
        raise InputError(
            "expected a folder of predictions, but this is a data set",
            file=source.name,
            remedy="name the ground truth first, then the detections: data.yaml runs/detect/predict/labels",
        )


def _check(source: Source) -> None:
    _refuse_data_set(source)
    check_predictions(divided(source.path)[0], source.name)


YOLO_TRUTH = TruthFormat(name="yolo", title="YOLO data.yaml", sniff=_sniff_truth, read=_read_truth, options=("split",))

YOLO_DETECTIONS = DetectionFormat(
    name="yolo",
    title="YOLO predictions",
    sniff=_sniff_predictions,
    read=_read_predictions,
    check=_check,
    options=("order",),
)
