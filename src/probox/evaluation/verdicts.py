"""Matches and outcomes of objects and detections, and label thresholds per image."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.convention import Convention
from probox.errors import InputError
from probox.measures.pdq.kernel import assign
from probox.tables.results import DetectionTable, ObjectTable, PairTable, Verdict

Columns = dict[str, npt.NDArray[Any]]

_NONE = -1.0
"""Threshold of folds without one: all confidences are at least 0."""


def judge(
    objects: ObjectTable, detections: DetectionTable, pairs: PairTable, convention: Convention
) -> tuple[ObjectTable, DetectionTable]:
    """Return both tables with the partners, outcomes and qualities that follow from the pairs."""
    there, found = matched_columns(objects.ignored, detections.image_rows, pairs, convention.assignment)
    return objects.replace(**there), detections.replace(**found)


def matched_columns(
    ignored: npt.NDArray[np.bool_], image_rows: npt.NDArray[np.int64], pairs: PairTable, how: str
) -> tuple[Columns, Columns]:
    """Return the match columns of objects and of detections.

    Parameters
    ----------
    ignored : (N,) bool
        Objects that PDQ ignores.
    image_rows : (M,) int64
        Image row of each detection.
    pairs : PairTable
        Possible matches.
    how : {"optimal", "greedy"}
        Matching algorithm.
    """
    found, there = _core.judge_matches(
        matched=assign(image_rows[pairs.detections], pairs, how),
        detections=pairs.detections,
        objects=pairs.objects,
        qualities=pairs.qualities,
        detection_count=len(image_rows),
        ignored_objects=ignored,
        ignored=Verdict.IGNORED,
        right=Verdict.TP,
        wrong=Verdict.FP,
        missed=Verdict.FN,
    )
    names = ("verdicts", "partners", "qualities")
    return dict(zip(names, there, strict=True)), dict(zip(names, found, strict=True))


@dataclasses.dataclass(frozen=True, eq=False)
class ThresholdChoice:
    """A label threshold for each fold of the images, chosen on the images of the other folds.

    Parameters
    ----------
    thresholds : tuple of float or None
        Threshold of each fold; None for all detections.
    folds : (images,) int64
        Fold of each image row.
    on_all : float or None
        Threshold chosen on all images, to use for new images.

    Examples
    --------
    >>> choice = ThresholdChoice((0.4, 0.5), np.array([0, 1, 1]), 0.45)
    >>> choice.keeps(np.array([0.45, 0.45], np.float32), np.array([0, 2])).tolist()
    [True, False]
    """

    thresholds: tuple[float | None, ...]
    folds: npt.NDArray[np.int64]
    on_all: float | None

    def keeps(self, confidences: npt.NDArray[np.float32], image_rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return the detections with a confidence above the threshold of their image."""
        levels = np.array([_NONE if t is None else t for t in self.thresholds], np.float32)
        return np.asarray(confidences > levels[self.folds][image_rows])

    def take(self, rows: npt.NDArray[np.int64]) -> ThresholdChoice:
        """Return the choice for some images."""
        return dataclasses.replace(self, folds=self.folds[rows])

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
        images = np.bincount(self.folds, minlength=len(self.thresholds)).tolist()
        folds = [{"threshold": t, "images": n} for t, n in zip(self.thresholds, images, strict=True)]
        return {"method": "cross-fitting over images", "folds": folds, "chosen_on_all_images": self.on_all}

    def to_words(self) -> dict[str, Any]:
        """Return the input of `from_words`."""
        return {"thresholds": list(self.thresholds), "folds": self.folds.tolist(), "on_all": self.on_all}

    @classmethod
    def from_words(cls, words: dict[str, Any], images: int) -> ThresholdChoice:
        """Return the choice that `to_words` described; raise if it is invalid or has another number of images."""
        if words.keys() != {"thresholds", "folds", "on_all"}:
            raise InputError("expected thresholds, folds and on_all")
        thresholds, folds = words["thresholds"], words["folds"]
        if not isinstance(thresholds, list) or not isinstance(folds, list):
            raise InputError("expected lists of thresholds and folds")
        if not all(t is None or (type(t) is float and 0.0 <= t <= 1.0) for t in (*thresholds, words["on_all"])):
            raise InputError("expected thresholds between 0 and 1")
        if len(folds) != images or not all(type(n) is int and 0 <= n < len(thresholds) for n in folds):
            raise InputError("expected the fold of each image")
        return cls(tuple(thresholds), np.array(folds, np.int64), words["on_all"])

    def __str__(self) -> str:
        folds = ", ".join(map(_written, self.thresholds))
        return (
            f"label threshold of PDQ chosen by cross-fitting over {len(self.thresholds)} folds of images: {folds}; "
            f"for new images use {_written(self.on_all)}, chosen on all images; other metrics use all detections"
        )


def join_choices(
    choices: Sequence[ThresholdChoice | None], images: Sequence[int], order: npt.NDArray[np.int64]
) -> ThresholdChoice | None:
    """Return the merged choice of several evaluations, with image rows in `order`; None if none has a choice."""
    if all(choice is None for choice in choices):
        return None
    given = [
        ThresholdChoice((None,), np.zeros(n, np.int64), None) if choice is None else choice
        for choice, n in zip(choices, images, strict=True)
    ]
    before = np.cumsum([0, *(len(choice.thresholds) for choice in given)])
    folds = np.concatenate([choice.folds + shift for choice, shift in zip(given, before, strict=False)])
    on_all = given[0].on_all if len({choice.on_all for choice in given}) == 1 else None
    return ThresholdChoice(tuple(t for choice in given for t in choice.thresholds), folds[order], on_all)


def _written(threshold: float | None) -> str:
    return "none" if threshold is None else f"{threshold:.4g}"
