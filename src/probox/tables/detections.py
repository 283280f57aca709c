"""The table of what a detector says: boxes with Gaussian corners and distributions over labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.tables.arguments import check_classes
from probox.tables.columns import frozen, rows_where_all
from probox.tables.labels import best_classes, named_classes, probabilities_of

__all__ = ["Detections"]

ROUNDING = 1e-3
"""How far label probabilities may add up above 1, or leave [0, 1], through rounding in a file."""

FARTHEST = 1e9
"""Corners beyond this many pixels, and covariances beyond its square, are no measurements any more."""

SIZE_ROUNDING = 1.5
"""How many pixels a stated width may be off x2 - x1: all three may have been rounded to whole pixels."""

SYMMETRY = 1e-6
"""How far, as a share of its largest entry, a covariance may be from symmetric and positive semi-definite."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Detections:
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
    labels : (N,) int32, optional
        The class that a detector names. Default: the most probable one.
    scores : (N,) float64, optional
        The score of that class, 0 to 1, which mAP and LRP sort by. Default: its probability.
    sizes : (N, 2) float64, optional
        Width and height as the detector states them, those of `boxes` but for rounding. Default: from `boxes`.
    source : str
        The file it came from, for messages.
    notes : sequence of str
        What a reader left out or replaced, one sentence each.
    """

    classes: tuple[str, ...]
    image_ids: npt.NDArray[np.int64]
    boxes: npt.NDArray[np.float64]
    label_probs: npt.NDArray[np.float32]
    covariances: npt.NDArray[np.float64] | None = None
    heatmaps: tuple[npt.NDArray[np.generic] | None, ...] | None = None
    labels: npt.NDArray[np.int32] = None  # type: ignore[assignment]
    scores: npt.NDArray[np.float64] = None  # type: ignore[assignment]
    sizes: npt.NDArray[np.float64] = None  # type: ignore[assignment]
    source: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # the dataclass is frozen for everybody else
        put("classes", check_classes(self.classes))
        put("notes", tuple(self.notes))
        put("image_ids", frozen(self.image_ids, np.int64, (-1,), "image_ids"))
        n = len(self.image_ids)
        put("boxes", frozen(self.boxes, np.float64, (n, 4), "boxes"))
        put("label_probs", frozen(self.label_probs, np.float32, (n, len(self.classes)), "label_probs"))
        if self.covariances is not None:
            put("covariances", frozen(self.covariances, np.float64, (n, 2, 2, 2), "covariances"))
        if self.heatmaps is not None:
            put("heatmaps", _checked_heatmaps(self.heatmaps, n))
        with np.errstate(over="ignore", invalid="ignore"):  # such boxes are rejected below, in words
            sizes = self.boxes[:, 2:] - self.boxes[:, :2] if self.sizes is None else self.sizes
        put("sizes", frozen(sizes, np.float64, (n, 2), "sizes"))
        best = best_classes(self.label_probs) if self.labels is None else self.labels
        put("labels", frozen(best, np.int32, (n,), "labels"))
        scores = probabilities_of(self.label_probs, self.labels) if self.scores is None else self.scores
        put("scores", frozen(scores, np.float64, (n,), "scores"))
        self._check()

    def __len__(self) -> int:
        """Return the number of detections."""
        return len(self.image_ids)

    def __repr__(self) -> str:
        text = (
            f"Detections({len(self)} detections in {len(np.unique(self.image_ids))} images, {len(self.classes)} classes"
        )
        if self.covariances is not None:
            text += f", {int(self.covariances.any(axis=(1, 2, 3)).sum())} probabilistic"
        if self.heatmaps is not None:
            text += f", {sum(heatmap is not None for heatmap in self.heatmaps)} with heatmaps"
        return text + ")"

    def select(self, rows: npt.ArrayLike) -> Detections:
        """Return the detections of these rows (numbers or a boolean mask), in this order."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        maps = self.heatmaps
        return dataclasses.replace(
            self,
            image_ids=self.image_ids[chosen],
            boxes=self.boxes[chosen],
            label_probs=self.label_probs[chosen],
            covariances=None if self.covariances is None else self.covariances[chosen],
            heatmaps=None if maps is None else tuple(maps[int(row)] for row in chosen),
            labels=self.labels[chosen],
            scores=self.scores[chosen],
            sizes=self.sizes[chosen],
        )

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
            self.boxes, self.label_probs, self.covariances, self.heatmaps, self.sizes, self.scores
        ):
            row = int(problem.rows[0])
            raise self._fail(row, problem.text(row), problem.remedy)
        wrong = np.flatnonzero((self.labels < 0) | (self.labels >= max(len(self.classes), 1)))
        if len(wrong):
            text = f"expected labels to count in {len(self.classes)} classes from 0, but got {self.labels[wrong[0]]}"
            raise self._fail(int(wrong[0]), text, "give the number of a class")


@dataclasses.dataclass(frozen=True)
class RowProblems:
    """One kind of problem: the rows that have it (at least one), words for each of them, and what to do."""

    kind: str
    rows: npt.NDArray[np.int64]
    text: Callable[[int], str]
    remedy: str


def find_problems(
    boxes: npt.NDArray[np.float64],
    label_probs: npt.NDArray[np.float32],
    covariances: npt.NDArray[np.float64] | None = None,
    heatmaps: Sequence[npt.NDArray[np.generic] | None] | None = None,
    sizes: npt.NDArray[np.float64] | None = None,
    scores: npt.NDArray[np.float64] | None = None,
) -> list[RowProblems]:
    """Return what makes rows of these columns unusable, by kind; an empty list if nothing does."""
    diverged = "leave out detections that diverged"
    finite = rows_where_all(np.abs(boxes) <= FARTHEST)  # NaN is not
    inverted = finite & ((boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1]))
    low, high, total = _core.row_ranges(label_probs)
    usable = np.isfinite(total)
    outside = usable & ((low < -ROUNDING) | (high > 1.0 + ROUNDING))
    above = usable & ~outside & (total > 1.0 + ROUNDING)
    found = [
        RowProblems(
            "non-finite box",
            np.flatnonzero(~finite),
            lambda row: f"expected four finite box corners, up to {FARTHEST:g}, but got {boxes[row].tolist()}",
            diverged,
        ),
        RowProblems(
            "inverted box",
            np.flatnonzero(inverted),
            lambda row: f"expected x1 <= x2 and y1 <= y2, but got {boxes[row].tolist()}",
            "write corners as [x1, y1, x2, y2] (COCO results: [x, y, width, height])",
        ),
        RowProblems(
            "non-finite label probability",
            np.flatnonzero(~usable),
            lambda row: "expected finite label probabilities, but one is NaN or infinite",
            diverged,
        ),
        RowProblems(
            "label probability outside [0, 1]",
            np.flatnonzero(outside),
            lambda row: (
                f"expected label probabilities between 0 and 1, but got {low[row] if low[row] < 0 else high[row]:.6g}"
            ),
            "apply softmax or sigmoid before writing",
        ),
        RowProblems(
            "label probabilities above 1 in sum",
            np.flatnonzero(above),
            lambda row: f"expected label probabilities to add up to at most 1, but they make {total[row]:.6g}",
            "normalise them (a sigmoid per class is no distribution)",
        ),
    ]
    if sizes is not None:
        found += size_problems(boxes, sizes, finite & ~inverted)
    if scores is not None:
        found += _score_problems(scores, ~(usable & ~outside))
    if covariances is not None:
        found += _covariance_problems(covariances)
    if heatmaps is not None:
        found += _heatmap_problems(heatmaps)
    return [problem for problem in found if len(problem.rows)]


def size_problems(
    boxes: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64], rows: npt.NDArray[np.bool_]
) -> list[RowProblems]:
    """Return which of some rows, whose boxes are sound, state a width and height that are none or not the box's."""
    sound = rows_where_all((sizes >= 0) & (sizes <= 2 * FARTHEST))  # NaN is not
    with np.errstate(invalid="ignore", over="ignore"):  # such boxes are reported as such
        extent = boxes[:, 2:] - boxes[:, :2]
        allowed = SIZE_ROUNDING + 1e-9 * np.abs(boxes).max(axis=1, initial=0.0, keepdims=True)
        agree = rows_where_all(np.abs(sizes - extent) <= allowed)
    return [
        RowProblems(
            "unusable size",
            np.flatnonzero(rows & ~sound),
            lambda row: f"expected width and height to be finite and at least 0, but got {sizes[row].tolist()}",
            "leave sizes out: they follow from boxes",
        ),
        RowProblems(
            "size not that of the box",
            np.flatnonzero(rows & sound & ~agree),
            lambda row: f"expected the box's width and height {extent[row].tolist()}, but got {sizes[row].tolist()}",
            "leave sizes out, or give those of the boxes",
        ),
    ]


def _score_problems(scores: npt.NDArray[np.float64], known: npt.NDArray[np.bool_]) -> list[RowProblems]:
    """Return which scores are none; `known` rows have label probabilities that are none, and are reported as such."""
    sound = (scores >= -ROUNDING) & (scores <= 1.0 + ROUNDING)  # NaN is not
    return [
        RowProblems(
            "score outside [0, 1]",
            np.flatnonzero(~known & ~sound),
            lambda row: (
                f"expected a {'score between 0 and 1' if np.isfinite(scores[row]) else 'finite score'}, "
                f"but got {scores[row]:.6g}"
            ),
            "apply softmax or sigmoid first, and leave out detections that diverged",
        )
    ]


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


def _covariance_problems(covariances: npt.NDArray[np.float64]) -> list[RowProblems]:
    if _all_valid(covariances):
        return []
    finite = rows_where_all(np.abs(covariances) <= FARTHEST**2)
    known = covariances if finite.all() else np.where(finite[:, None, None, None], covariances, 0.0)
    scale = np.abs(known).max(axis=(1, 2, 3), initial=0.0)
    skew = np.abs(known[:, :, 0, 1] - known[:, :, 1, 0]).max(axis=1, initial=0.0)
    symmetric = finite & (skew <= SYMMETRY * scale)
    smallest = smallest_eigenvalues(known).min(axis=1, initial=0.0)
    return [
        RowProblems(
            "non-finite covariance",
            np.flatnonzero(~finite),
            lambda row: f"expected finite covariances, up to {FARTHEST**2:g}, but got {covariances[row].tolist()}",
            "leave out detections that diverged",
        ),
        RowProblems(
            "covariance not symmetric",
            np.flatnonzero(finite & ~symmetric),
            lambda row: f"expected symmetric covariances, but xy and yx differ by {skew[row]:.6g}",
            "write [[xx, xy], [xy, yy]], or read them with repair=True to take their mean",
        ),
        RowProblems(
            "covariance not positive semi-definite",
            np.flatnonzero(symmetric & (smallest < -SYMMETRY * scale)),
            lambda row: (
                f"expected positive semi-definite covariances, but the smallest eigenvalue is {smallest[row]:.6g}"
            ),
            "estimate them from at least two samples, or read them with repair=True to take the nearest valid ones",
        ),
    ]


def _all_valid(covariances: npt.NDArray[np.float64]) -> bool:
    """Return whether all are finite, symmetric and have no negative minor: what is common is found out quickly."""
    xx, xy, yx, yy = np.ascontiguousarray(covariances.reshape(-1, 4).T)  # columns in one piece are far faster
    usual = (xx >= 0) & (xx <= FARTHEST**2) & (yy >= 0) & (yy <= FARTHEST**2) & (xy == yx)  # NaN is not
    with np.errstate(over="ignore"):  # xy may be anything yet; infinity is above every product
        return bool(usual.all() and (xx * yy >= xy * xy).all())


def _heatmap_problems(heatmaps: Sequence[npt.NDArray[np.generic] | None]) -> list[RowProblems]:
    remedy = "store float arrays in [0, 1] or uint8 arrays, one H x W map per detection"
    wrong_type: list[int] = []
    wrong_range: list[int] = []
    for row, heatmap in enumerate(heatmaps):
        if heatmap is None:
            continue
        if heatmap.ndim != 2 or not (heatmap.dtype == np.uint8 or np.issubdtype(heatmap.dtype, np.floating)):
            wrong_type.append(row)
        elif heatmap.dtype != np.uint8 and not (heatmap.size == 0 or (heatmap.min() >= 0 and heatmap.max() <= 1)):
            wrong_range.append(row)  # NaN fails both comparisons, so it is caught here too

    def describe(row: int) -> str:
        heatmap = heatmaps[row]
        assert heatmap is not None
        return f"expected an H x W heatmap, but got {heatmap.dtype} {' x '.join(map(str, heatmap.shape))}"

    return [
        RowProblems("heatmap type", np.array(wrong_type, np.int64), describe, remedy),
        RowProblems(
            "heatmap range",
            np.array(wrong_range, np.int64),
            lambda row: "expected heatmap values between 0 and 1",
            remedy,
        ),
    ]


def smallest_eigenvalues(matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the smaller eigenvalue of symmetric 2 x 2 matrices: (a + d)/2 - sqrt(((a - d)/2)^2 + b^2)."""
    a, b, d = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
    result: npt.NDArray[np.float64] = (a + d) / 2 - np.hypot((a - d) / 2, b)
    return result


def nearest_covariances(matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the nearest symmetric positive semi-definite matrices: negative eigenvalues become 0."""
    symmetric = (matrices + np.swapaxes(matrices, -1, -2)) / 2
    values, vectors = np.linalg.eigh(symmetric)
    nearest: npt.NDArray[np.float64] = (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return np.where((values[..., :1] >= 0)[..., None], symmetric, nearest)  # eigh sorts ascending
