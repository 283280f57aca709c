"""The table of what a detector says: boxes with Gaussian corners and distributions over labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.arguments import check_classes
from probox.tables.boxes import extents_of
from probox.tables.columns import Column, Table, column
from probox.tables.labels import best_classes, named_classes, probabilities_of
from probox.tables.row_problems import find_problems

__all__ = ["DetectionColumns", "Detections"]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class DetectionColumns(Table):
    """The columns of detections, whether anybody has looked at their values yet or not.

    A detector speaks of images and classes by names of its own, before anybody says which data set it is about; so
    detections hold image ids, and get image rows when they are evaluated.
    """

    classes: tuple[str, ...]
    image_ids: npt.NDArray[np.int64] = column(np.int64)
    boxes: npt.NDArray[np.float64] = column(np.float64, 4)
    label_probs: npt.NDArray[np.float32] = column(np.float32, "classes")
    covariances: npt.NDArray[np.float64] | None = column(np.float64, 2, 2, 2, optional=True)
    heatmaps: tuple[npt.NDArray[np.generic] | None, ...] | None = column(object, optional=True)
    extents: npt.NDArray[np.float64] = column(np.float64, 2, optional=True)
    labels: npt.NDArray[np.int32] = column(np.int32, optional=True)
    scores: npt.NDArray[np.float64] = column(np.float64, optional=True)
    source: str = ""
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Detections(DetectionColumns):
    """Detections of many images, one row each, in any order of images.

    >>> found = Detections(
    ...     classes=["cup", "dog"], image_ids=[7], boxes=[[10, 20, 50, 60]], label_probs=[[0.2, 0.8]],
    ...     covariances=[[[[4, 0], [0, 4]], [[9, 3], [3, 9]]]])
    >>> found
    Detections(1 detections in 1 images, 2 classes, 1 probabilistic)

    Parameters
    ----------
    classes : sequence of str
        Class names, one per column of `label_probs`.
    image_ids : (N,) int64
        The image of each detection.
    boxes : (N, 4) float64
        ``x1, y1, x2, y2``; for a probabilistic box the means of its corners.
    label_probs : (N, C) float32
        The probability of each class; a row may add up to less than 1.
    covariances : (N, 2, 2, 2) float64, optional
        ``[[xx, xy], [xy, yy]]`` of the top-left and of the bottom-right corner. All zero: a plain box.
    heatmaps : sequence of (H, W) arrays or None, optional
        Probabilistic segmentation: the probability of every pixel, floats in [0, 1] or uint8 in 0..255.
        Used instead of the box where it is not None.
    extents : (N, 2) float64, optional
        Width and height as the detector states them, those of `boxes` but for rounding. Default: from `boxes`.
    labels : (N,) int32, optional
        The class that a detector names. Default: the most probable one.
    scores : (N,) float64, optional
        The score of that class, 0 to 1, which mAP and LRP sort by. Default: its probability.
    source : str
        The file it came from, for messages.
    notes : sequence of str
        What a reader left out or replaced, one sentence each.
    """

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # the dataclass is frozen for everybody else
        put("classes", check_classes(self.classes))
        put("notes", tuple(self.notes))
        super().__post_init__()
        self._check()

    def _default(self, name: str) -> Any:
        if name == "extents":
            return extents_of(self.boxes)
        if name == "labels":
            return best_classes(self.label_probs)
        if name == "scores":
            return probabilities_of(self.label_probs, self.labels)
        return None

    def _checked(self, name: str, declared: Column, values: Any, rows: int) -> Any:
        return _checked_heatmaps(values, rows) if name == "heatmaps" else super()._checked(name, declared, values, rows)

    def __repr__(self) -> str:
        text = (
            f"Detections({len(self)} detections in {len(np.unique(self.image_ids))} images, {len(self.classes)} classes"
        )
        if self.covariances is not None:
            text += f", {int(self.covariances.any(axis=(1, 2, 3)).sum())} probabilistic"
        if self.heatmaps is not None:
            text += f", {int(self.has_heatmap.sum())} with heatmaps"
        return text + ")"

    def select(self, rows: npt.ArrayLike) -> Detections:
        """Return the detections of these rows (numbers or a boolean mask), in this order."""
        chosen = np.asarray(rows)
        return self.take(chosen if chosen.dtype == bool else chosen.astype(np.int64))

    @property
    def has_heatmap(self) -> npt.NDArray[np.bool_]:
        """Return which detections have a heatmap, which is used instead of their box."""
        if self.heatmaps is None:
            return np.zeros(len(self), np.bool_)
        return np.fromiter((heatmap is not None for heatmap in self.heatmaps), np.bool_, len(self))

    def numbers_in_image(self) -> npt.NDArray[np.int64]:
        """Return each detection's number within its image, counting from 0 in the order of the table."""
        order = np.argsort(self.image_ids, kind="stable")
        ids = self.image_ids[order]
        starts = np.concatenate([[True], ids[1:] != ids[:-1]]) if len(ids) else np.zeros(0, bool)
        first = np.maximum.accumulate(np.where(starts, np.arange(len(ids)), 0))
        numbers = np.empty(len(ids), np.int64)
        numbers[order] = np.arange(len(ids)) - first
        return numbers

    def named_classes(self, classes: Sequence[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return the class that each detection names among `classes`, and its score; see `probox.tables.labels`."""
        return named_classes(self.label_probs, self.classes, classes, self.labels, self.scores)

    def _fail(self, row: int, problem: str, remedy: str) -> InputError:
        return InputError(
            problem,
            file=self.source or None,
            image=int(self.image_ids[row]),
            entry=f"detection {int(self.numbers_in_image()[row])}",
            remedy=remedy,
        )

    def _check(self) -> None:
        """Raise for the first row that no measure could use; `probox validate` lists them all."""
        for problem in find_problems(
            self.boxes, self.label_probs, self.covariances, self.heatmaps, self.extents, self.scores
        ):
            row = int(problem.rows[0])
            raise self._fail(row, problem.text(row), problem.remedy)
        wrong = np.flatnonzero((self.labels < 0) | (self.labels >= max(len(self.classes), 1)))
        if len(wrong):
            text = f"expected labels to count in {len(self.classes)} classes from 0, but got {self.labels[wrong[0]]}"
            raise self._fail(int(wrong[0]), text, "give the number of a class")


def _checked_heatmaps(heatmaps: Sequence[Any], rows: int) -> tuple[npt.NDArray[np.generic] | None, ...]:
    given = tuple(heatmaps)
    if len(given) != rows:
        raise InputError(
            f"expected one heatmap (or None) per detection, but got {len(given)} for {rows} detections",
            remedy="give None for detections without one",
        )
    for row, heatmap in enumerate(given):
        # Not only arrays of NumPy: heatmaps in files look like them and are read when they are used.
        if heatmap is not None and not all(hasattr(heatmap, name) for name in ("__array__", "dtype", "shape")):
            raise InputError(
                f"expected heatmaps[{row}] to be an array or None, but got {type(heatmap).__name__}",
                remedy="wrap it in numpy.asarray",
            )
    return given
