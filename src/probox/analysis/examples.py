"""Example detections of a result: overconfident, underconfident, calibrated and mislabelled boxes.

With r the errors of the four edges and Sigma their predicted covariance, the squared distance d^2 = r' Sigma^-1 r of a
calibrated box follows a chi-squared distribution with 4 degrees of freedom, whose mean is 4. Examples are chosen by it:

=============== =================================================================================================
overconfident   d^2 above the 99% quantile (13.28); the largest d^2 first
underconfident  d^2 below the 1% quantile (0.297); the largest std relative to the box first
calibrated      d^2 between the quartiles (1.92 to 5.39); the highest spatial quality first, else the highest IoU
wrong-label     a true positive of PDQ, with a probability of at least 0.5 for another class
=============== =================================================================================================

Pairs are COCO's at IoU 0.5, which do not depend on covariances. Only the upper half of scores is used, without boxes at
the image border. If no box has a covariance, examples follow the IoU instead: ``off`` has the lowest, ``close`` the
highest. No image has two examples of a kind.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from probox.analysis.calibration_table import note_last_pixels, tabulate_edges
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.matched import MatchedPairs
from probox.measures.scoring.scores import invertible, squared_distances
from probox.notes import Note
from probox.support.types import Bools, Floats, Ints
from probox.tables.results import Verdict

KINDS = {
    "overconfident": "Overconfident: errors far beyond what the stds allow",
    "underconfident": "Underconfident: stds far beyond the errors",
    "calibrated": "Calibrated: errors about as large as the stds",
    "wrong-label": "Confident in the wrong class",
    "off": "Confident with a misplaced box (boxes without covariance)",
    "close": "Confident with a correct box (boxes without covariance)",
}
"""The kinds of examples and their titles."""

FREEDOM = 4

RARE_LOW, QUARTER, THREE_QUARTERS, RARE_HIGH = 0.2971095, 1.9225575, 5.3852691, 13.2767041
"""Quantiles of chi-squared with 4 degrees of freedom at 1, 25, 75 and 99%."""

LEAST_WRONG_SCORE = 0.5

_EDGES = ("left", "top", "right", "bottom")


@dataclasses.dataclass(frozen=True)
class Example:
    """One example detection.

    Parameters
    ----------
    kind : str
        ``overconfident``, ``underconfident``, ``calibrated`` or ``wrong-label``; ``off`` or ``close`` if no box has a
        covariance.
    image_id : int
        Image id.
    detection, object : int
        Rows of the evaluation's tables.
    caption : str
        The reason, with numbers.
    numbers : dict of str to float
        The numbers by name: ``distance`` (d^2), ``error`` and ``sigma`` (root mean square error and std of the four
        edges, in pixels), ``iou``, ``score``, ``spatial``, ``foreground``, ``background``, ``label``; NaN if undefined.
    """

    kind: str
    image_id: int
    detection: int
    object: int
    caption: str
    numbers: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Examples:
    """Result of `probox.example_detections`; iteration yields each `Example`.

    Parameters
    ----------
    examples : tuple of Example
        Examples by kind, the clearest first.
    notes : tuple of Note
        How examples were chosen, if not by covariances.
    """

    examples: tuple[Example, ...]
    notes: tuple[Note, ...]

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    def __len__(self) -> int:
        return len(self.examples)


def example_detections(result: Evaluation, n: int = 3) -> Examples:
    """Return example detections that are overconfident, underconfident or well calibrated.

    Parameters
    ----------
    result : Evaluation
        Result to choose from.
    n : int
        Maximum number of examples per kind.

    Returns
    -------
    Examples
        Examples by kind, and notes on how they were chosen.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["probabilistic"])
    >>> for example in probox.example_detections(result, 1):
    ...     print(example.caption)  # doctest: +ELLIPSIS
    overconfident: ...
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"expected n to be a whole number from 1, got {n!r:.40}")
    if not isinstance(result, Evaluation):
        raise InputError(f"expected an Evaluation to find examples in, but got {type(result).__name__}")
    pairs = result.matched_pairs
    usable = np.asarray(~pairs.truncated.any(axis=1), np.bool_)
    if len(pairs):
        usable = usable & np.asarray(pairs.scores >= np.median(pairs.scores))
    spread = invertible(pairs.covariances) & ~pairs.plain
    notes: list[Note] = []
    if (usable & spread).any():
        found = _find_by_distance(result, pairs, usable & spread, n)
        left = int((usable & ~spread).sum())
        if left:
            notes.append(Note("plain-boxes-skipped", left))
        notes += note_last_pixels(tabulate_edges(result))
    else:
        found = _find_by_overlap(result, pairs, usable, n)
        if found:  # without matches, covariances are unknown
            notes.append(Note("overlaps-only"))
    found += _find_wrong_labels(result, n)
    if not found:
        notes.append(Note("no-examples"))
    return Examples(tuple(found), tuple(notes))


def _find_by_distance(result: Evaluation, pairs: MatchedPairs, usable: Bools, n: int) -> list[Example]:
    distances = np.where(usable, squared_distances(pairs.residuals, pairs.covariances), np.nan)
    sigmas = np.sqrt(pairs.variances)
    relative = np.sqrt(np.square(sigmas / np.maximum(np.tile(pairs.sides, 2), 1.0)).mean(axis=1))
    quality = np.array([_quality(result, pairs, row, "spatial") for row in range(len(pairs))])
    mean = f"calibrated boxes have {FREEDOM} on average"

    def overconfident(row: int) -> str:
        times = np.abs(pairs.residuals[row]) / sigmas[row]
        edge = int(np.argmax(times))
        return (
            f"error of the {_EDGES[edge]} edge {abs(pairs.residuals[row, edge]):.1f} px, std "
            f"{sigmas[row, edge]:.1f} px, |z| {times[edge]:.1f}; d² is {distances[row]:.0f}, {mean}"
        )

    def others(row: int, digits: int) -> str:
        errors = f"RMS error {_rms(pairs.residuals[row]):.1f} px, RMS std {_rms(sigmas[row]):.1f} px"
        return f"{errors}; d² is {distances[row]:.{digits}f}, {mean}"

    kinds: dict[str, tuple[Bools, Floats, Callable[[int], str]]] = {
        "overconfident": (distances > RARE_HIGH, distances, overconfident),
        "underconfident": (distances < RARE_LOW, relative, partial(others, digits=2)),
        "calibrated": (
            (distances >= QUARTER) & (distances <= THREE_QUARTERS),
            pairs.ious if np.isnan(quality).all() else np.nan_to_num(quality, nan=-1.0),
            partial(others, digits=1),
        ),
    }
    return [
        _make_example(result, pairs, row, kind, f"{kind}: {describe(row)}", distances[row])
        for kind, (is_one, key, describe) in kinds.items()
        for row in _take_first(pairs, np.flatnonzero(is_one), key, n)
    ]


def _find_by_overlap(result: Evaluation, pairs: MatchedPairs, usable: Bools, n: int) -> list[Example]:
    """Return examples of boxes without covariance."""
    rows = np.flatnonzero(usable)
    middle = np.median(pairs.ious[rows]) if len(rows) else 0.0
    found = []
    for kind, is_one, key in (
        ("off", pairs.ious[rows] < middle, -pairs.ious),
        ("close", pairs.ious[rows] >= middle, pairs.ious),
    ):
        for row in _take_first(pairs, rows[is_one], key, n):
            edge = int(np.argmax(np.abs(pairs.residuals[row])))
            caption = (
                f"{kind}: no covariance, score {pairs.scores[row]:.2f}; error of the {_EDGES[edge]} edge "
                f"{abs(pairs.residuals[row, edge]):.1f} px; IoU with the ground truth {pairs.ious[row]:.2f}"
            )
            found.append(_make_example(result, pairs, row, kind, caption, np.nan))
    return found


def _find_wrong_labels(result: Evaluation, n: int) -> list[Example]:
    """Return true positives of PDQ whose label is another than the object's, the most confident first."""
    if not result.has_pairs:
        return []
    pairs = MatchedPairs.of(result, "pdq")
    predicted = result.detections.labels[pairs.detections]
    wrong = (predicted != pairs.labels) & (predicted >= 0) & (pairs.scores >= LEAST_WRONG_SCORE)
    found = []
    for row in _take_first(pairs, np.flatnonzero(wrong), pairs.scores, n):
        truth = result.classes[pairs.labels[row]]
        if pairs.label_probs is not None:
            truth += f" {pairs.label_probs[row, pairs.labels[row]]:.2f}"
        caption = f"wrong class: predicted {result.classes[predicted[row]]} {pairs.scores[row]:.2f}, true class {truth}"
        found.append(_make_example(result, pairs, row, "wrong-label", caption, np.nan))
    return found


def _take_first(pairs: MatchedPairs, rows: Ints, key: Floats, n: int) -> list[int]:
    """Return the `n` rows with the highest key, one per image; ties follow the order of pairs."""
    chosen: list[int] = []
    images: set[int] = set()
    for row in rows[np.argsort(-key[rows], kind="stable")].tolist():
        image = int(pairs.image_rows[row])
        if image not in images and len(chosen) < n:
            chosen.append(row)
            images.add(image)
    return chosen


def _quality(result: Evaluation, pairs: MatchedPairs, row: int, name: str) -> float:
    """Return a quality of a pair that PDQ also matches; NaN for others, or if PDQ was not measured."""
    detection, table = int(pairs.detections[row]), result.detections
    if not result.has_pairs or table.partners[detection] != pairs.objects[row]:
        return float("nan")
    return float(table.quality(name)[detection]) if table.verdicts[detection] == Verdict.TP else float("nan")


def _make_example(
    result: Evaluation, pairs: MatchedPairs, row: int, kind: str, caption: str, distance: float
) -> Example:
    qualities = {name: _quality(result, pairs, row, name) for name in ("spatial", "foreground", "background", "label")}
    known = [f"{name} {100 * value:.0f}%" for name, value in qualities.items() if not np.isnan(value)]
    if known:
        caption += f"; qualities: {', '.join(known)}"
    elif result.has_pairs:
        caption += "; not matched by PDQ"
    image_id = int(result.dataset.image_ids[pairs.image_rows[row]])
    numbers = {
        "distance": float(distance),
        "error": _rms(pairs.residuals[row]),
        "sigma": float("nan") if pairs.plain[row] else _rms(np.sqrt(pairs.variances[row])),
        "iou": float(pairs.ious[row]),
        "score": float(pairs.scores[row]),
        **qualities,
    }
    caption = f"{caption} ({result.classes[pairs.labels[row]]}, image {image_id})"
    return Example(kind, image_id, int(pairs.detections[row]), int(pairs.objects[row]), caption, numbers)


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.square(values).mean()))
