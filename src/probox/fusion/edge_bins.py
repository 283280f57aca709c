"""D-FINE's edges: each side of a box as a distribution over bins of unequal width (also DEIM's and DEIMv2's)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.support.types import Floats
from probox.tables.distributions import softmax

__all__ = ["bin_values", "edges_of"]


def bin_values(bins: int, reach: float, scale: float) -> Floats:
    """Return W(n), what each of the bins 0, 1, ..., `bins` - 1 says of a side's distance.

    0 in the middle; ``g^i - 1`` in the i-th bin from there with ``g = (a b + 1)^(2 / (bins - 3))``, outwards positive;
    ``2 a b`` in the last one.

    Parameters
    ----------
    bins : int
        How many there are, an odd number; 33 in the published models.
    reach, scale : float
        a and b, `up` and `reg_scale` in the models' configuration.

    >>> bin_values(33, 0.5, 4)[[0, 1, 15, 16, 17, 31, 32]].round(3).tolist()
    [-4.0, -2.0, -0.076, 0.0, 0.076, 2.0, 4.0]
    """
    if bins < 5 or bins % 2 == 0:
        raise InputError(f"expected an odd number of bins per side, 5 or more, but got {bins}")
    most = abs(reach) * abs(scale)
    growth = (most + 1) ** (2 / (bins - 3))
    inner = growth ** np.arange(1, (bins - 1) // 2) - 1
    return np.concatenate([[-2 * most], -inner[::-1], [0.0], inner, [2 * most]])


def edges_of(
    logits: npt.NDArray[Any], reference: npt.NDArray[Any], reach: float, scale: float, bins: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return mean and variance of ``x1, y1, x2, y2``, in shares of the image.

    A side's distance is ``d = sum p W`` beyond half the reference box: ``x1 = cx - (b / 2 + d) w / b``, so
    ``var(x1) = Var_p(W) (w / b)^2``.

    Parameters
    ----------
    logits : (..., 4 * bins)
        Of left, top, right and bottom.
    reference : (..., 4)
        The boxes that distances are counted from: cx, cy, w, h.
    reach, scale : float
        See `bin_values`.
    bins : (bins,), optional
        W, where it is known. Default: `bin_values` of `reach` and `scale`.

    >>> mean, var = edges_of(np.zeros((1, 4 * 33)), np.array([[0.5, 0.5, 0.2, 0.4]]), 0.5, 4)
    >>> mean.round(6).tolist(), bool((var > 0).all())
    ([[0.4, 0.3, 0.6, 0.7]], True)
    """
    given = np.asarray(logits, np.float64).reshape(*logits.shape[:-1], 4, -1)
    values = bin_values(given.shape[-1], reach, scale) if bins is None else bins
    shares = softmax(given)
    distance = shares @ values
    spread = (shares * (values - distance[..., None]) ** 2).sum(axis=-1)
    boxes = np.asarray(reference, np.float64)
    unit = np.tile(boxes[..., 2:], 2) / abs(scale)
    outwards = np.array([-1.0, -1.0, 1.0, 1.0])
    mean = np.tile(boxes[..., :2], 2) + outwards * (abs(scale) / 2 + distance) * unit
    return mean, spread * unit**2
