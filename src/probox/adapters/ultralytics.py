"""Ultralytics' results: one label and one score for each box."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from probox.detect.ultralytics import names_of
from probox.errors import InputError
from probox.formats.draft import mask_note
from probox.tables.arguments import check_classes, dataset_of
from probox.tables.arrays import to_numpy
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["from_ultralytics"]


def from_ultralytics(
    results: Any,
    *,
    image_ids: int | Sequence[int] | None = None,
    classes: Sequence[str] | None = None,
    truth: GroundTruth | Dataset | None = None,
) -> Detections:
    """Return the detections of Ultralytics' results: each box's class gets its score, the others share the rest.

    `Results` hold one label and no uncertainty; `probox.adapters.UltralyticsDetector` gets both from the
    model.

    Parameters
    ----------
    results : Results, or an iterable of them
        What ``model(...)``, ``model.predict(...)`` or ``model.track(...)`` return, streamed or not.
    image_ids : int or sequence of int, optional
        The id of each result's image. Default: by file name in `truth`; or else the number that a file name is
        (``000000000139.jpg`` is 139).
    classes : sequence of str, optional
        Class names, in the order of the model's. Default: the results' own.
    truth : GroundTruth or Dataset, optional
        What it will be compared with: tells ids by file names.

    Examples
    --------
    >>> from types import SimpleNamespace as Of  # what a Results looks like
    >>> boxes = Of(data=[[10.0, 20.0, 50.0, 60.0, 0.8, 1.0]])
    >>> result = Of(boxes=boxes, names={0: "cup", 1: "dog"}, orig_shape=(480, 640), path="photos/000000000139.jpg")
    >>> found = from_ultralytics(result)
    >>> found.image_ids.tolist(), found.classes, found.label_probs.round(2).tolist()
    ([139], ('cup', 'dog'), [[0.20000000298023224, 0.800000011920929]])
    """
    if hasattr(results, "orig_shape"):
        results = [results]
    elif not isinstance(results, Iterable):
        raise InputError(
            f"expected Ultralytics' results, but got {type(results).__name__}", remedy="give what model(...) returns"
        )
    # Each holds its photo: of a stream only the numbers are kept.
    masked, rows, paths, names = 0, [], [], None if classes is None else check_classes(classes)
    for number, result in enumerate(results):
        own = names_of(_names(result, number))
        if classes is not None and len(own) != len(names or ()):
            raise InputError(f"expected names of the model's {len(own)} classes, but got {len(names or ())}")
        if classes is None and names is not None and own != names:
            raise InputError(
                f"result {number} has other class names than those before it", remedy="convert each model's results"
            )
        names = own if names is None else names
        rows.append(_rows(result, number, len(names)))
        masked += 0 if getattr(result, "masks", None) is None else len(rows[-1])
        paths.append(str(getattr(result, "path", "") or ""))
    if names is None:
        raise InputError("there is not one result to take class names from", remedy="give classes=[...]")
    ids = _ids(paths, image_ids, truth)
    table = np.concatenate([np.zeros((0, 6)), *rows])
    return Detections.from_scores(
        table[:, :4],
        table[:, 4],
        table[:, 5].astype(np.int64),
        classes=names,
        image_ids=np.repeat(np.array(ids, np.int64), [len(part) for part in rows]),
        notes=(mask_note(masked),) if masked else (),
    )


def _names(result: Any, number: int) -> Any:
    """Return a result's class names; raise for what is no result, or none with boxes."""
    if getattr(result, "obb", None) is not None:
        raise InputError(
            f"result {number} holds oriented boxes, which PDQ does not know",
            remedy="use a detection model, or the boxes around them (result.obb.xyxy) with Detections.from_scores",
        )
    if getattr(result, "boxes", None) is None:
        if getattr(result, "probs", None) is not None:
            raise InputError(
                f"result {number} classifies the image as a whole and has no boxes", remedy="use a detection model"
            )
        raise InputError(
            f"expected result {number} to have boxes, but got {type(result).__name__}",
            remedy="give what model(...) returns",
        )
    return result.names


def _rows(result: Any, number: int, classes: int) -> Any:
    """Return ``x1, y1, x2, y2, score, class`` of a result's boxes."""
    data = to_numpy(result.boxes.data, "boxes.data").astype(np.float64)
    if data.size == 0:
        return np.zeros((0, 6))
    if data.ndim != 2 or data.shape[1] not in (6, 7):
        got = " x ".join(map(str, data.shape))
        raise InputError(f"expected boxes.data of 6 columns, or 7 with a track's id, but got {got}")
    rows = data[:, [0, 1, 2, 3, -2, -1]]  # a track's id stands between box and score
    labels = rows[:, 5]
    wrong = np.flatnonzero((labels != np.floor(labels)) | (labels < 0) | (labels >= classes))
    if len(wrong):
        raise InputError(
            f"expected classes of result {number} to count in {classes} names from 0, but got {labels[wrong[0]]:g}",
            remedy="give the names of all classes that the model has",
        )
    return rows


def _ids(paths: Sequence[str], image_ids: int | Sequence[int] | None, truth: Any) -> list[int]:
    if image_ids is not None:
        given = np.atleast_1d(to_numpy(image_ids, "image_ids"))
        if given.dtype.kind not in "iu" and given.size:
            raise InputError("expected image_ids to be whole numbers", remedy="number the images as the truth does")
        if given.shape != (len(paths),):
            raise InputError(f"expected an image id for each of {len(paths)} results, but got {given.size}")
        ids = [int(number) for number in given]
    else:
        by_name = {} if truth is None else _by_name(dataset_of(truth, "give truth=truth"))
        ids = [_id_of(path, by_name, truth is not None) for path in paths]
    twice = [number for number in dict.fromkeys(ids) if ids.count(number) > 1] if len(set(ids)) < len(ids) else []
    if twice:
        raise InputError(
            "several results are of this image", image=twice[0], remedy="give image_ids, one for each result"
        )
    return ids


def _by_name(dataset: Dataset) -> dict[str, list[tuple[PurePath, int]]]:
    """Return the images of each base name, with all of their names."""
    images: dict[str, list[tuple[PurePath, int]]] = {}
    for name, number in zip(dataset.file_names, dataset.image_ids.tolist(), strict=True):
        if name:
            path = PurePath(name.replace("\\", "/"))
            images.setdefault(path.name, []).append((path, number))
    return images


def _id_of(path: str, by_name: dict[str, list[tuple[PurePath, int]]], has_truth: bool) -> int:
    name = PurePath(path.replace("\\", "/"))
    there = by_name.get(name.name, [])
    if len(there) > 1:  # folders tell images of one name apart
        there = [(other, number) for other, number in there if name.parts[-len(other.parts) :] == other.parts]
        if len(there) != 1:
            raise InputError(
                f"several images of the truth are called {name.name!r:.60}",
                remedy="give image_ids, one for each result",
            )
    if there:
        return there[0][1]
    # With file names in the truth, a number that is not among them is another image's.
    if re.fullmatch(r"[0-9]{1,18}", name.stem) and not by_name:
        return int(name.stem)
    problem = f"the file name {name.name!r:.60} is no number"
    if has_truth:
        problem = f"the truth has no image called {name.name!r:.60}"
    raise InputError(problem, remedy="give image_ids, one for each result" + ("" if has_truth else ", or truth="))
