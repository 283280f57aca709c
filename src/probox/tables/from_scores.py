"""Detections from the arrays that a detector leaves behind: boxes, scores and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.arguments import check_classes, to_numpy
from probox.tables.geometry import BoxFormat, boxes_from, check_box_format, corners_from, sizes_of_rows
from probox.tables.labels import AboveOne, shared_rest, to_distribution
from probox.tables.row_problems import ROUNDING
from probox.tables.table import frozen


def columns_from_scores(
    boxes: Any,
    scores: Any,
    labels: Any,
    *,
    classes: Sequence[str],
    image_ids: Any,
    box_format: BoxFormat,
    normalised: Any,
    image_sizes: Any,
    covariances: Any,
    std: Any,
    var: Any,
    covariance_format: BoxFormat | None,
    category_ids: Any,
    above_one: AboveOne,
) -> dict[str, Any]:
    """Return the columns of `Detections`; see `Detections.from_scores`."""
    names = check_classes(classes)
    given = frozen(boxes, np.float64, (-1, 4), "boxes")
    n = len(given)
    ids = images_of(image_ids, n)
    check_box_format(box_format)
    sizes = sizes_of_rows(normalised, image_sizes, ids, given)
    corners, extents = boxes_from(given, box_format, sizes)
    return {
        "classes": names,
        "image_ids": ids,
        "boxes": corners,
        "extents": extents,
        "covariances": corners_from(
            n,
            covariances=covariances,
            std=std,
            var=var,
            covariance_format=covariance_format,
            box_format=box_format,
            sizes=sizes,
        ),
        **_labels(scores, labels, names, n, category_ids, above_one),
    }


def images_of(image_ids: Any, rows: int) -> npt.NDArray[np.int64]:
    """Return the image of each row, given for each or once for all."""
    ids = to_numpy(image_ids, "image_ids")
    refuse_text(ids)
    if ids.ndim == 0:
        ids = np.broadcast_to(ids, rows)
    one = ids.shape == (1,) and rows != 1
    if one or (ids.ndim == 1 and len(ids) != rows):
        raise InputError(
            f"expected one image id per box, but got {len(ids)} for {rows} boxes",
            remedy="give one number if all boxes are of one image" if one else "repeat each image's id for its boxes",
        )
    return frozen(ids, np.int64, (rows,), "image_ids")


def refuse_text(ids: npt.NDArray[Any]) -> None:
    """Raise for image ids that are text."""
    if ids.dtype.kind in "US" or (ids.dtype.kind == "O" and any(isinstance(entry, str) for entry in ids.flat)):
        raise InputError(
            f"expected image_ids to be whole numbers, but got the text {str(ids.flat[0])!r:.60}",
            remedy="give the ids of the ground truth's images, as int(...) of COCO's names of files",
        )


def _labels(
    scores: Any, labels: Any, classes: tuple[str, ...], rows: int, category_ids: Any, above_one: AboveOne
) -> dict[str, Any]:
    """Return the columns about labels: from the scores of all classes, or from a label and its score."""
    values = to_numpy(scores, "scores")
    if values.dtype.kind not in "fiu" and values.size:
        raise InputError(f"expected scores to be numbers, but got {values.dtype}", remedy="give numbers from 0 to 1")
    check_scores(values)
    if labels is None:
        if values.ndim == 1 and values.size:
            raise InputError(
                "expected labels beside one score per box", remedy="give labels=, or the scores of all classes, N x C"
            )
        wide = values.dtype.kind == "f" and values.dtype.itemsize > 4  # a matrix of single precision stays as small
        matrix = frozen(values, np.float64 if wide else np.float32, (rows, len(classes)), "scores of all classes")
        return {"label_probs": to_distribution(matrix, above_one), **_winners(matrix)}
    if values.ndim > 1:
        raise InputError(
            f"expected one score per box beside labels, but got {' x '.join(map(str, values.shape))}",
            remedy="leave labels out: the best class follows from the scores of all",
        )
    stated = frozen(values, np.float64, (rows,), "scores")
    columns = label_columns(labels, classes, rows, category_ids)
    probs = shared_rest(stated, columns, len(classes))
    return {"label_probs": probs, "labels": columns, "scores": stated}


def _winners(matrix: npt.NDArray[np.floating[Any]]) -> dict[str, Any]:
    """Return the best class of each row and its score as given, which making a distribution of the row may change."""
    if matrix.size == 0:
        return {}
    labels = matrix.argmax(axis=1).astype(np.int32)
    return {"labels": labels, "scores": matrix[np.arange(len(matrix)), labels].astype(np.float64)}


def check_scores(values: npt.NDArray[Any], name: str = "scores") -> None:
    """Raise for scores that are no probabilities, with what they look like."""
    if values.size == 0:
        return
    low, high = float(values.min()), float(values.max())
    if np.isnan(low):  # one NaN makes the smallest NaN
        raise InputError(f"expected finite {name}, but got NaN", remedy="leave out detections that diverged")
    if low >= -ROUNDING and high <= 1 + ROUNDING:
        return
    problem = f"expected {name} between 0 and 1, but got {low if low < -ROUNDING else high:g}"
    if low < -ROUNDING:
        raise InputError(problem, remedy="these look like logits: apply softmax or sigmoid first")
    if high <= 100:
        raise InputError(problem, remedy="divide percentages by 100; of logits take softmax or sigmoid first")
    raise InputError(problem, remedy="give probabilities: divide them by what stands for certain")


def label_columns(labels: Any, classes: tuple[str, ...], rows: int, category_ids: Any) -> npt.NDArray[np.int32]:
    """Return the class of each row as a number that counts in `classes` from 0.

    Parameters
    ----------
    labels : (N,)
        Numbers that count in `classes` from 0, or names of classes; with `category_ids`, these.
    classes : tuple of str
        Names of the classes.
    rows : int
        How many labels there must be.
    category_ids : (C,), optional
        The number that stands for each class.
    """
    values = to_numpy(labels, "labels")
    if values.size and values.dtype.kind in "USO":
        return _columns_of_names(values, classes, rows)
    if values.dtype.kind == "b":
        raise InputError("expected labels to be numbers of classes or names, but got True and False")
    if values.dtype.kind == "f" and values.size and not (values == np.floor(values)).all():
        part = float(values[values != np.floor(values)].flat[0])
        raise InputError(
            f"expected labels to be whole numbers or names, but got {part:g}",
            remedy="the order is boxes, scores, labels",
        )
    numbers = frozen(values, np.int64, (rows,), "labels")
    if category_ids is not None:
        ids = frozen(category_ids, np.int64, (len(classes),), "category_ids")
        order = np.argsort(ids, kind="stable")
        if (np.diff(ids[order]) == 0).any():
            twice = int(ids[order][:-1][np.diff(ids[order]) == 0][0])
            raise InputError(f"category id {twice} stands for several classes", remedy="give each class its own")
        place = np.minimum(np.searchsorted(ids[order], numbers), max(len(ids) - 1, 0))
        known = ids[order][place] == numbers if len(ids) else np.zeros(rows, bool)
        if not known.all():
            raise InputError(
                f"label {int(numbers[~known][0])} is none of the {len(ids)} category ids",
                remedy="leave category_ids out if labels count in classes from 0",
            )
        return order[place].astype(np.int32)
    wrong = numbers[(numbers < 0) | (numbers >= len(classes))]
    if len(wrong):
        from_one = int(numbers.max()) == len(classes) and int(numbers.min()) >= 1
        raise InputError(
            f"expected labels to count in {len(classes)} classes from 0, but got {int(wrong[0])}",
            remedy="subtract 1: they seem to count from 1"
            if from_one
            else "give category_ids= if labels are COCO's category ids",
        )
    return numbers.astype(np.int32)


def _columns_of_names(values: npt.NDArray[Any], classes: tuple[str, ...], rows: int) -> npt.NDArray[np.int32]:
    column = {name: number for number, name in enumerate(classes)}
    names = [str(name) if isinstance(name, str | np.str_) else name for name in values.ravel().tolist()]
    if values.ndim != 1 or len(names) != rows:
        raise InputError(f"expected one label per box, but got {len(names)} for {rows} boxes")
    for name in names:
        if name not in column:
            hint = "give numbers as numbers: int(...)" if str(name).lstrip("-").isdigit() else "use names of classes="
            raise InputError(
                f"expected labels to be among the {len(classes)} classes, but got {name!r:.60}", remedy=hint
            )
    return np.array([column[name] for name in names], np.int32)
