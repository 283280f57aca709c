"""Mutants of P(x), the probability that a pixel belongs to the detected box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.mutants.mutant import Broken, Mutant
from probox.convention import Convention
from probox.measures.pdq import definition as space

__all__ = ["OF_SPACE"]

Floats = npt.NDArray[Any]
Change = Callable[[Floats], Floats]


def _covariances(change: Change) -> Broken:
    """Change a box's covariances, (2, 2, 2)."""

    def broken(true: Any) -> Any:
        def heatmap(box: Any, covariances: Any, width: int, height: int, convention: Convention) -> Floats:
            if covariances is not None:
                covariances = change(np.asarray(covariances, dtype=np.float64))
            return np.asarray(true(box, covariances, width, height, convention))

        return heatmap

    return broken


def _box(change: Change) -> Broken:
    """Change the position of a box, ``x1, y1, x2, y2``."""
    return lambda true: lambda box, *rest: true(change(np.asarray(box, dtype=np.float64)), *rest)


def _convention(**changes: Any) -> Broken:
    """Change the computation of corner maps."""
    return lambda true: (
        lambda box, covariances, width, height, convention: true(
            box, covariances, width, height, convention.replace(**changes)
        )
    )


def _map(change: Change) -> Broken:
    """Change the finished map of any source; its type stays."""

    def broken(true: Any) -> Any:
        def heatmap(*given: Any) -> Floats:
            found = true(*given)
            return change(found).astype(found.dtype)

        return heatmap

    return broken


def _joined(join: Callable[[Floats, Floats], Floats]) -> Broken:
    """Combine the maps of both corners in another way than by their product."""

    def broken(true: Any) -> Any:
        def heatmap(box: Any, covariances: Any, width: int, height: int, convention: Convention) -> Floats:
            if space.is_plain(covariances, convention):
                return np.asarray(true(box, covariances, width, height, convention))
            x1, y1, x2, y2 = np.asarray(box, dtype=np.float64)
            first, second = np.asarray(covariances, dtype=np.float64)
            begins = space.corner_map((x1, y1), first, width, height, convention)
            ends = space.corner_map((width - (x2 + 1), height - (y2 + 1)), second, width, height, convention)
            return join(begins, ends[::-1, ::-1])

        return heatmap

    return broken


def _within_mean_box(true: Any) -> Any:
    def heatmap(box: Any, covariances: Any, width: int, height: int, convention: Convention) -> Floats:
        inside = true(box, None, width, height, convention) > 0
        found: Floats = np.where(inside, true(box, covariances, width, height, convention), 0)
        return found

    return heatmap


def _outside_kept(true: Any) -> Any:
    def gaussian_cdf(x: Any, y: Any, mean: Any, covariance: Any) -> Floats:
        # Mass left of or above the image is requested with a single negative coordinate.
        if (np.ndim(x) == 0 and x < 0) or (np.ndim(y) == 0 and y < 0):
            return np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y)))
        return np.asarray(true(x, y, mean, covariance))

    return gaussian_cdf


def _given_ignored(true: Any) -> Any:
    return lambda found, *rest: true(found.replace(heatmaps=None), *rest)


def _turned(covariances: Floats) -> Floats:
    return covariances[:, ::-1, ::-1]


def _without(corner: int) -> Change:
    return lambda covariances: np.where(np.arange(2)[:, None, None] == corner, 0.0, covariances)


OF_SPACE: tuple[Mutant, ...] = (
    Mutant(
        "variance-as-sigma",
        "Variances are used as standard deviations.",
        "pdq.heatmap",
        _covariances(lambda covariances: covariances @ covariances),
    ),
    Mutant("variance-halved", "Covariances are halved.", "pdq.heatmap", _covariances(lambda c: c / 2)),
    Mutant("variance-doubled", "Covariances are doubled.", "pdq.heatmap", _covariances(lambda c: c * 2)),
    Mutant("variance-ignored", "Every box is without covariance.", "pdq.heatmap", _covariances(np.zeros_like)),
    Mutant("axes-exchanged", "The variances of x and y are exchanged.", "pdq.heatmap", _covariances(_turned)),
    Mutant(
        "correlation-ignored",
        "x and y of a corner are uncorrelated, whatever the covariance says.",
        "pdq.heatmap",
        _covariances(lambda covariances: covariances * np.eye(2)),
    ),
    Mutant(
        "one-covariance",
        "Both corners have the covariance of the first.",
        "pdq.heatmap",
        _covariances(lambda covariances: covariances[[0, 0]]),
    ),
    Mutant(
        "corners-exchanged",
        "The covariances of the two corners are exchanged.",
        "pdq.heatmap",
        _covariances(lambda covariances: covariances[::-1]),
    ),
    Mutant("last-corner-certain", "Only the first corner is uncertain.", "pdq.heatmap", _covariances(_without(1))),
    Mutant("first-corner-certain", "Only the second corner is uncertain.", "pdq.heatmap", _covariances(_without(0))),
    Mutant("corners-minimum", "P is the smaller of both corners' maps.", "pdq.heatmap", _joined(np.minimum)),
    Mutant(
        "corners-average",
        "P is the mean of both corners' maps.",
        "pdq.heatmap",
        _joined(lambda begins, ends: (begins + ends) / 2),
    ),
    Mutant(
        "certain-at-half", "P is 1 where it is at least 0.5, and 0 elsewhere.", "pdq.heatmap", _map(lambda p: p >= 0.5)
    ),
    Mutant("mean-box-only", "P is 0 outside the box at the means of the corners.", "pdq.heatmap", _within_mean_box),
    Mutant("peak-at-one", "P is divided by its largest value.", "pdq.detection_heatmap", _map(lambda p: p / p.max())),
    Mutant("probability-squared", "P is squared.", "pdq.detection_heatmap", _map(np.square)),
    Mutant(
        "region-one-sigma",
        "A corner's distribution ends one standard deviation from its mean.",
        "pdq.heatmap",
        _convention(region_of_interest=True, rough_sigmas=1.0, mahalanobis=1.0),
    ),
    Mutant(
        "tails-cut", "Probabilities below 0.1 are 0.", "pdq.heatmap", _convention(min_probability=0.1)
    ),
    Mutant(
        "pixel-larger",
        "Boxes end one pixel later.",
        "pdq.heatmap",
        _box(lambda box: box + np.array([0.0, 0.0, 1.0, 1.0])),
    ),
    Mutant(
        "pixel-smaller",
        "Boxes end one pixel earlier.",
        "pdq.heatmap",
        _box(lambda box: box - np.array([0.0, 0.0, 1.0, 1.0])),
    ),
    Mutant(
        "pixel-centres",
        "A corner's distribution is evaluated at the centres of pixels.",
        "space.corner_map",
        lambda true: lambda mean, *rest: true((mean[0] + 0.5, mean[1] + 0.5), *rest),
    ),
    Mutant("outside-kept", "Mass left of or above the image is kept.", "space.gaussian_cdf", _outside_kept),
    Mutant(
        "plain-rounded",
        "Boxes without covariance are rounded to whole pixels.",
        "space.plain_heatmap",
        _box(lambda box: np.round(box)),
    ),
    Mutant(
        "plain-outward",
        "Boxes without covariance cover every pixel that they touch.",
        "space.plain_cover",
        lambda true: lambda *given: np.ceil(true(*given)),
    ),
    Mutant("own-map-ignored", "A given heatmap of a detection is not used.", "pdq.detection_heatmap",
           _given_ignored),
)  # fmt: skip
