"""The qualities of one object and one detection, worked out again in plain NumPy.

Written down from the paper's sections 4 and 5 and the rule of pixels in docs/measure.md, without the kernel and without
`probox.measures.pdq.definition`: what experiments compare the measure with must not be the measure itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox_experiments.claims import Claim, close_enough, not_measured
from probox_experiments.table import ResultTable, column_of, presets_in

__all__ = ["EPSILON", "agrees", "box_map", "foreground_background", "normal", "region_v", "two_normals"]

# Written down again and not taken from the convention: a wrong constant there must not be expected here.
EPSILON = 1e-14
"""What the paper keeps logarithms finite with: a pixel that is surely wrong costs a factor of this, to the power of its
share of the object's pixels."""

Floats = npt.NDArray[np.float64]


def normal(values: npt.ArrayLike) -> Floats:
    """Return the distribution function of the standard normal distribution.

    >>> normal([0, 1]).round(6).tolist()
    [0.5, 0.841345]
    """
    given = np.asarray(values, dtype=np.float64)
    tails = [0.5 * math.erfc(-value / math.sqrt(2.0)) for value in given.ravel().tolist()]
    return np.array(tails).reshape(given.shape)


def two_normals(x: npt.ArrayLike, y: npt.ArrayLike, correlation: float) -> Floats:
    """Return Pr(X <= x, Y <= y) of two standard normal variables for all pairs, a row for each `y`.

    Its derivative by the correlation is the density of both at (x, y) (Plackett, 1954), which is summed up from 0 on
    along correlation = sin(t).

    >>> float(two_normals([0], [0], 0.5)[0, 0].round(12)) == round(0.25 + math.asin(0.5) / (2 * math.pi), 12)
    True
    """
    columns, rows = np.asarray(x, dtype=np.float64)[None, :], np.asarray(y, dtype=np.float64)[:, None]
    apart = normal(rows) * normal(columns)
    if correlation == 0.0:
        return apart
    nodes, weights = np.polynomial.legendre.leggauss(64)
    end = math.asin(correlation)
    angles = 0.5 * end * (nodes + 1.0)
    squares, products = rows**2 + columns**2, 2.0 * rows * columns
    together = np.zeros_like(apart)
    for angle, weight in zip(angles.tolist(), weights.tolist(), strict=True):
        together += weight * np.exp((products * math.sin(angle) - squares) / (2.0 * math.cos(angle) ** 2))
    return np.asarray(apart + 0.5 * end * together / (2.0 * math.pi))


def box_map(
    box: Sequence[float], sigmas: Sequence[float], correlations: Sequence[float], width: int, height: int
) -> Floats:
    """Return the probability of every pixel under a box with Gaussian corners, as preset `paper` has it.

    Parameters
    ----------
    box : (4,)
        The means ``x1, y1, x2, y2``, the last two being the last pixel.
    sigmas : (4,)
        Standard deviations of the left, top, right and bottom edge, all above 0.
    correlations : (2,)
        Of x and y of the top-left and of the bottom-right corner.
    width, height : int
        The image's size.

    Examples
    --------
    A box from 2 to 6 covers its pixels, and each pixel beside them with probability 1/2.

    >>> box_map([2, 2, 6, 6], [0.25] * 4, [0, 0], 9, 9)[4].round(3).tolist()
    [0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0]
    """
    left, top, right, bottom = box
    first = _in_image((left, top), sigmas[:2], correlations[0], width, height)
    # The other corner is the first one of the image turned by half a turn.
    turned = (width - (right + 1.0), height - (bottom + 1.0))
    second = _in_image(turned, sigmas[2:], correlations[1], width, height)
    return np.asarray(first * second[::-1, ::-1])


def _in_image(
    mean: tuple[float, float], sigmas: Sequence[float], correlation: float, width: int, height: int
) -> Floats:
    """Return Pr(0 <= X <= x + 1, 0 <= Y <= y + 1) for every pixel."""
    x = (np.arange(width + 1) - mean[0]) / sigmas[0]
    y = (np.arange(height + 1) - mean[1]) / sigmas[1]
    if correlation == 0.0:  # the same, and a large image does not take a second
        across, down = normal(x), normal(y)
        return np.outer(down[1:] - down[0], across[1:] - across[0])
    reached = two_normals(x, y, correlation)
    inside = reached[1:, 1:] - reached[:1, 1:] - reached[1:, :1] + reached[0, 0]
    return np.asarray(np.maximum(inside, 0.0))


def region_v(probability: Floats, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the paper's region V: the pixels with some probability outside the box around the object's pixels."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    outside = np.ones(mask.shape, dtype=bool)
    outside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = False
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
    # To double precision, a pixel of next to no probability costs nothing.
    wrong = np.log(1.0 - values[region_v(values, mask) & (values > 1e-17)] + EPSILON).sum() / mask.sum()
    return min(math.exp(missed), 1.0), min(math.exp(wrong), 1.0)


def agrees(claim: str, table: ResultTable, numbers: Sequence[str]) -> Claim:
    """Return the claim that numbers are what was worked out, which columns like ``by_hand_foreground_paper`` hold.

    A row in which nothing was worked out (NaN) is left out; one in which nothing was measured counts against it.
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
        return not_measured(claim, f"{' and '.join(numbers)} under a preset for which they were worked out")
    return close_enough(claim, apart)
