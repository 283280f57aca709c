"""Closed forms of metrics, and claims that compare them with computed values."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.measures.pdq.definition import heatmap
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Claim, Floats, ResultTable, close_enough, column_of, not_measured, presets_in
from probox_experiments.synthetic import tight_box

# --- Qualities of one object and one detection in NumPy ---

# A copy of the convention's constant, so that a wrong constant there is detected.
EPSILON = 1e-14
"""The paper's constant that keeps logarithms finite. A pixel with probability 1 of the wrong value multiplies the
quality by this value, to the power of one over the object's pixels."""


def box_map(box: npt.ArrayLike, covariances: npt.ArrayLike, width: int, height: int) -> Floats:
    """Return the probability of every pixel under preset `paper`, by the NumPy definition instead of the kernel.

    A box from 2 to 6 covers its pixels, and each pixel beside them with probability 1/2.

    >>> box_map([2, 2, 6, 6], 0.0625 * np.broadcast_to(np.eye(2), (2, 2, 2)), 9, 9)[4].round(3).tolist()
    [0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0]
    """
    return np.asarray(heatmap(box, covariances, width, height, Convention.preset("paper")), dtype=np.float64)


def region_v(probability: Floats, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the paper's region V: the pixels with probability above 0 outside the box around the object's pixels."""
    x1, y1, x2, y2 = tight_box(mask)
    outside = np.ones(mask.shape, dtype=bool)
    outside[y1 : y2 + 1, x1 : x2 + 1] = False
    return outside & (probability > 0)


def foreground_background(probability: npt.ArrayLike, mask: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return exp(-L_FG) and exp(-L_BG) of an object with these pixels (equations 2 and 3 of the paper).

    >>> mask = np.zeros((3, 4), bool); mask[1, 1:3] = True
    >>> probability = np.where(mask, 0.25, 0.0); probability[0, 0] = 0.75
    >>> [round(value, 6) for value in foreground_background(probability, mask)]
    [0.25, 0.5]
    """
    values = np.asarray(probability, dtype=np.float64)
    missed = np.log(values[mask] + EPSILON).mean()
    # Smaller probabilities have no effect in double precision.
    wrong = np.log(1.0 - values[region_v(values, mask) & (values > 1e-17)] + EPSILON).sum() / mask.sum()
    return min(math.exp(missed), 1.0), min(math.exp(wrong), 1.0)


def agrees(claim: str, table: ResultTable, numbers: Sequence[str]) -> Claim:
    """Return the claim that numbers equal their closed forms, in columns like ``by_hand_foreground_paper``.

    Rows without closed form (NaN) are ignored; rows without measured value fail the claim.
    """
    apart: dict[str, float] = {}
    for number in numbers:
        for preset, column in presets_in(table, number).items():
            expected = column_of(f"by_hand_{number}", preset)
            known = ~np.isnan(table[expected]) if expected in table else np.zeros(len(table), dtype=bool)
            if known.any():
                distance = np.abs(table[column] - table[expected])[known]
                apart[f"{number} under `{preset}`"] = float(distance.max())  # NaN stays NaN
    if not apart:
        return not_measured(claim, f"{' and '.join(numbers)} under a preset with a closed form")
    return close_enough(claim, apart)


# --- Claims on closed forms ---

NOTHING = 1e-8
"""Spatial qualities up to this value are 0, except under `paper`."""
ROUNDING = 1e-9
"""Relative tolerance without rounding to float32: under `paper`, and for probabilities of 0 and 1."""
KEPT_PER_CLASS = 100
"""Number of detections per image and class that mAP uses."""


def pair_equals(
    claim: str,
    table: ResultTable,
    foreground: npt.ArrayLike,
    background: npt.ArrayLike,
    *,
    presets: Collection[str] | None = None,
    tolerance: float = ROUNDING,
    explanation: str = "",
) -> Claim:
    """Return the claim that one detection of one object, with label probability 1, has known qualities and PDQ.

    Parameters
    ----------
    claim : str
        The sentence.
    table : ResultTable
        The results: PDQ, and foreground and background if present.
    foreground, background : array
        Expected values, row by row; PDQ is the root of their product. If the product is so small that all presets
        except `paper` set it to 0, there is no true positive: PDQ must be exactly 0.
    presets : collection of str, optional
        Presets to compare. Default: all that were measured.
    tolerance : float
        Relative tolerance.
    explanation : str
        Reason for the result, if it is not obvious.

    Examples
    --------
    >>> table = ResultTable({"PDQ": [0.1, 0.0], "foreground": [0.1, np.nan], "PDQ_paper": [0.1, 1e-5]})
    >>> pair_equals("known", table, [0.1, 1e-5], [0.1, 1e-5]).measured
    'largest relative difference: PDQ 0, foreground 0; under `paper`: PDQ 0'
    """
    wanted = {"foreground": np.asarray(foreground, np.float64), "background": np.asarray(background, np.float64)}
    product = wanted["foreground"] * wanted["background"]
    apart: dict[str, dict[str, float]] = {}
    for preset in presets_in(table):
        if presets is not None and preset not in presets:
            continue
        scored = product > (0.0 if preset == "paper" else NOTHING)
        expected = {"PDQ": np.where(scored, np.sqrt(product), 0.0), **wanted}
        for key, values in expected.items():
            column = column_of(key, preset)
            compared = scored | (key == "PDQ")
            if column in table and compared.any():
                apart.setdefault(preset, {})[key] = _furthest(table[column][compared], values[compared])
    required = f"at most {tolerance:g} of each value"
    if not apart or not len(table):
        return not_measured(claim, required)
    words = [
        ("" if preset == "reference" else f"under `{preset}`: ")
        + ", ".join(f"{key} {value:.2g}" for key, value in distances.items())
        for preset, distances in apart.items()
    ]
    return Claim(
        claim,
        all(value <= tolerance for distances in apart.values() for value in distances.values()),
        "largest relative difference: " + "; ".join(words),
        required,
        {f"{key}, {preset}": value for preset, distances in apart.items() for key, value in distances.items()},
        explanation,
    )


def _furthest(measured: Floats, expected: Floats) -> float:
    """Return the largest relative difference; infinite if 0 is expected and another value measured."""
    distance = np.abs(measured - expected)
    known = (expected > 0) | (distance == 0)
    return float(np.where(known, distance / np.where(expected > 0, expected, 1.0), np.inf).max(initial=0.0))


def box_scores(overlap: npt.ArrayLike) -> dict[str, Floats]:
    """Return mAP and 1 - moLRP of one detection of one object with probability 1, from the IoU of their boxes.

    >>> scores = box_scores([1.0, 0.62, 0.4])
    >>> {name: values.round(3).tolist() for name, values in scores.items()}
    {'mAP': [1.0, 0.3, 0.0], '1 - moLRP': [1.0, 0.24, 0.0]}
    """
    iou = np.asarray(overlap, np.float64)
    thresholds = np.arange(10, 20) / 20
    passed = iou[:, None] >= thresholds - 1e-12  # an IoU equal to the threshold passes
    return {"mAP": passed.mean(axis=1), "1 - moLRP": np.maximum(1 - (1 - iou) / (1 - 0.5), 0.0)}


def duplicates_map(truth: GroundTruth, detections: int, order: Literal["objects", "rounds"] = "objects") -> float:
    """Return mAP of perfect detections with probability 1, n per object, ordered by object or by round.

    The k-th object of a class is first detected by detection number

        n (k - 1) + 1  object by object,     n m + (k - m)  round by round, with m objects in the images before,

    so its precision is k over that number: above 1/n, and higher if fewer objects came before. Two effects are
    ignored, and both raise mAP slightly: a duplicate may match a neighbour of the same class, and crowd regions absorb
    duplicates.

    >>> from probox_experiments import square_scene
    >>> duplicates_map(square_scene(), 5)
    1.0
    """
    images = len(truth.image_ids)
    places = (truth.labels * np.int64(images) + truth.image_rows)[~truth.crowd]
    distinct, counts = np.unique(places, return_counts=True)
    classes, begin = np.unique(distinct // max(images, 1), return_index=True)
    averages = []
    for in_images in np.split(counts, begin[1:]) if len(classes) else ():
        kept = np.minimum(detections * in_images, KEPT_PER_CLASS)
        before = np.cumsum(kept) - kept
        apart = detections if order == "objects" else 1  # from one object's first detection to the next one's
        last = kept if order == "objects" else np.minimum(in_images, kept)
        ranks = [first + np.arange(1, count + 1, apart) for first, count in zip(before, last, strict=True)]
        found = np.concatenate(ranks)
        averages.append(sampled_precision(np.arange(1, len(found) + 1) / found, int(in_images.sum())).mean())
    return float(np.mean(averages)) if averages else float("nan")


def sampled_precision(precision: npt.ArrayLike, objects: int) -> Floats:
    """Return the precision at 101 recalls, given the precision at each detected object and the number of objects.

    >>> sampled_precision([1, 2 / 3, 3 / 5], 3)[[0, 33, 34, 66, 67, 100]].round(3).tolist()
    [1.0, 1.0, 0.667, 0.667, 0.6, 0.6]
    """
    found = np.asarray(precision, np.float64)
    highest = np.append(np.maximum.accumulate(found[::-1])[::-1], 0.0)  # beyond the last one: 0
    # The object that reaches recall 0, 0.01 .. 1, compared as in COCO's evaluator, where 0.7 exceeds 7/10.
    reached = np.searchsorted(np.arange(1, objects + 1) / objects, np.linspace(0, 1, 101))
    return np.asarray(highest[np.minimum(reached, len(found))])
