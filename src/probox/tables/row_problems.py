"""Checks of table rows, shared by constructors, which raise the first problem, and `validate`, which lists all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.tables.geometry import SYMMETRY, smallest_eigenvalues
from probox.tables.label_probs import LabelProbs
from probox.tables.masks import Masks, count_pixels, unusable_masks
from probox.tables.table import rows_where_all

ROUNDING = 1e-3
"""Tolerance for label probabilities outside [0, 1], and for sums above 1: files contain rounded numbers."""

FARTHEST = 1e9
"""Limit on corners in pixels, and its square on covariances: larger values come from diverged models."""

SIZE_ROUNDING, RELATIVE_ROUNDING = 1.5, 1e-9
"""Tolerance of a stated width against x2 - x1: in pixels, as all three may be rounded to whole pixels, and relative to
the largest coordinate."""


@dataclasses.dataclass(frozen=True, eq=False)
class RowProblems:
    """One kind of problem: the affected rows, a message for each of them, and a fix."""

    kind: str
    rows: npt.NDArray[np.int64]
    text: Callable[[int], str]
    remedy: str


def boxes_are_valid(boxes: npt.NDArray[np.float64], extents: npt.NDArray[np.float64]) -> bool:
    """Return whether no box has a problem: a fast check of the usual case.

    >>> boxes_are_valid(np.array([[1.0, 2.0, 4.0, 6.0]]), np.array([[3.0, 4.0]]))
    True
    """
    limits = {"farthest": FARTHEST, "rounding": SIZE_ROUNDING, "relative_rounding": RELATIVE_ROUNDING}
    return _core.boxes_are_valid(boxes, extents, **limits)


def find_problems(
    boxes: npt.NDArray[np.float64],
    label_probs: LabelProbs,
    covariances: npt.NDArray[np.float64] | None = None,
    heatmaps: Sequence[npt.NDArray[np.generic] | None] | None = None,
    extents: npt.NDArray[np.float64] | None = None,
    scores: npt.NDArray[np.float64] | None = None,
    masks: Masks | None = None,
    areas: npt.NDArray[np.float64] | None = None,
) -> list[RowProblems]:
    """Return the problems of rows by kind; empty if all rows are valid."""
    diverged = "leave out detections that diverged"
    boxes_valid = extents is not None and boxes_are_valid(boxes, extents)
    finite = np.ones(len(boxes), bool) if boxes_valid else rows_where_all(np.abs(boxes) <= FARTHEST)  # False for NaN
    inverted = ~finite if boxes_valid else finite & ((boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1]))
    low, high, total = _core.row_ranges(label_probs.table)
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
            "for one sigmoid per class use probox.fusion.limit_to_distribution(scores) "
            'or Detections.from_scores(..., above_one="limit")',
        ),
    ]
    if extents is not None and not boxes_valid:
        found += extent_problems(boxes, extents, finite & ~inverted)
    if scores is not None:
        sound = (scores >= -ROUNDING) & (scores <= 1.0 + ROUNDING)  # False for NaN
        found.append(
            RowProblems(
                "score outside [0, 1]",
                np.flatnonzero(usable & ~outside & ~sound),  # other label probabilities are reported above
                lambda row: (
                    f"expected a {'score between 0 and 1' if np.isfinite(scores[row]) else 'finite score'}, "
                    f"but got {scores[row]:.6g}"
                ),
                "apply softmax or sigmoid first, and leave out detections that diverged",
            )
        )
    if covariances is not None:
        found += _covariance_problems(covariances)
    if heatmaps is not None:
        found += _heatmap_problems(heatmaps)
    if masks is not None:
        found.append(
            RowProblems(
                "unusable mask",
                np.flatnonzero(_unusable_masks(masks)),
                lambda row: "expected runs by row and column, not touching, that fill the mask's box to its edges",
                "use Masks.from_arrays for arrays",
            )
        )
    if areas is not None:
        found.append(
            RowProblems(
                "unusable area",
                np.flatnonzero(~((areas >= 0) & (areas <= FARTHEST**2))),
                lambda row: f"expected an area that is finite and at least 0, but got {areas[row]:g}",
                "leave areas out to use the pixels of the masks",
            )
        )
    return [problem for problem in found if len(problem.rows)]


def _unusable_masks(masks: Masks) -> npt.NDArray[np.bool_]:
    """Return which masks have wrong runs or a wrong number of pixels; all if rows of runs do not follow each other."""
    offsets, runs = masks.offsets, masks.runs
    if offsets[0] != 0 or offsets[-1] != len(runs) or (np.diff(offsets) < 0).any():
        return np.ones(len(masks), bool)
    miscounted = masks.pixels != count_pixels(masks.boxes, offsets, runs)
    return np.asarray(miscounted | unusable_masks(masks.boxes, offsets, runs))


def extent_problems(
    boxes: npt.NDArray[np.float64], extents: npt.NDArray[np.float64], rows: npt.NDArray[np.bool_]
) -> list[RowProblems]:
    """Return which of the given rows with valid boxes have an invalid width and height, or one unlike the box's."""
    sound = rows_where_all((extents >= 0) & (extents <= 2 * FARTHEST))  # False for NaN
    with np.errstate(invalid="ignore", over="ignore"):  # such boxes are reported elsewhere
        extent = boxes[:, 2:] - boxes[:, :2]
        allowed = SIZE_ROUNDING + RELATIVE_ROUNDING * np.abs(boxes).max(axis=1, initial=0.0, keepdims=True)
        agree = rows_where_all(np.abs(extents - extent) <= allowed)
    return [
        RowProblems(
            "unusable size",
            np.flatnonzero(rows & ~sound),
            lambda row: f"expected width and height to be finite and at least 0, but got {extents[row].tolist()}",
            "leave sizes out: they follow from boxes",
        ),
        RowProblems(
            "size not that of the box",
            np.flatnonzero(rows & sound & ~agree),
            lambda row: f"expected the box's width and height {extent[row].tolist()}, but got {extents[row].tolist()}",
            "leave sizes out, or give those of the boxes",
        ),
    ]


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
            "write [[xx, xy], [xy, yy]], or read them with {option:repair=True} to take their mean",
        ),
        RowProblems(
            "covariance not positive semi-definite",
            np.flatnonzero(symmetric & (smallest < -SYMMETRY * scale)),
            lambda row: (
                f"expected positive semi-definite covariances, but the smallest eigenvalue is {smallest[row]:.6g}"
            ),
            "estimate them from at least two samples, or read them with {option:repair=True} to take the nearest "
            "valid ones",
        ),
    ]


def _all_valid(covariances: npt.NDArray[np.float64]) -> bool:
    """Return whether all are finite, symmetric and have nonnegative minors: a fast check of the usual case."""
    xx, xy, yx, yy = np.ascontiguousarray(covariances.reshape(-1, 4).T)  # contiguous columns are far faster
    usual = (xx >= 0) & (xx <= FARTHEST**2) & (yy >= 0) & (yy <= FARTHEST**2) & (xy == yx)  # False for NaN
    with np.errstate(over="ignore"):  # xy may still be anything; infinity exceeds every product
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
            wrong_range.append(row)  # NaN fails both comparisons

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
