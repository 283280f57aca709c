"""Gaussians of discrete distributions of edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.fusion.gaussian import Border, apply_border, floor_std
from probox.support.types import Floats
from probox.tables.detections import Detections
from probox.tables.labels import limit_to_distribution, softmax


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


def edge_moments(probabilities: npt.ArrayLike, bins: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Return mean and variance of distributions over bins, along the last axis.

    ``mean = sum_k p_k b_k`` and ``var = sum_k p_k (b_k - mean)^2`` with the bins' values ``b``, by default 0, 1, 2...

    >>> [moment.tolist() for moment in edge_moments([0.0, 0.5, 0.5])]
    [1.5, 0.25]
    """
    probs = np.asarray(probabilities)
    probs = probs.astype(np.float64) if probs.dtype != np.float32 else probs
    values = np.arange(probs.shape[-1]) if bins is None else np.asarray(bins)
    values = values.astype(probs.dtype)
    if values.shape != probs.shape[-1:]:
        raise InputError(f"expected {probs.shape[-1]} bin values, but got {values.shape}")
    mean = probs @ values
    var = np.maximum(np.einsum("...k,...k->...", probs, (values - mean[..., None]) ** 2), 0.0)
    return mean.astype(np.float64), var.astype(np.float64)


def edge_corners(points: Floats, strides: Floats, mean: Floats, var: Floats) -> tuple[Floats, Floats]:
    """Return boxes (N, 4) and corner covariances (N, 2, 2, 2) from edge distances in strides around points.

    ``x1 = px - stride * left`` and so on; each edge is independent, so covariances are diagonal.
    """
    distance = mean * strides[:, None]
    boxes = np.concatenate([points - distance[:, :2], points + distance[:, 2:]], axis=1)
    covariances = np.zeros((len(boxes), 2, 2, 2))
    covariances[:, [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]] = var * (strides**2)[:, None]
    return boxes, covariances


def from_edge_distributions(
    edges: npt.ArrayLike,
    points: npt.ArrayLike,
    strides: npt.ArrayLike,
    label_probs: npt.ArrayLike,
    *,
    classes: Sequence[str],
    image_id: int = 0,
    image_size: tuple[float, float] | None = None,
    border: Border = "keep",
    bins: npt.ArrayLike | None = None,
    logits: bool = False,
    min_std: float = 0.0,
) -> Detections:
    """Return detections whose corner variances are those of the predicted edge distributions.

    Parameters
    ----------
    edges : (N, 4, B)
        Probabilities of the left, top, right and bottom edge over `bins`; with ``logits=True`` softmax is applied.
    points : (N, 2)
        Where distances start: the centre of each cell, in pixels.
    strides : (N,) or float
        Pixels per unit of `bins`.
    label_probs : (N, C)
        Class probabilities; scores of one sigmoid per class are accepted, see `limit_to_distribution`.
    classes : sequence of str
        Class names.
    image_id : int
        The image's id, for the result.
    image_size : (width, height), optional
        Clip boxes to the image. Default: leave them as they are.
    border : {"keep", "pin"}
        ``keep`` the estimated std of edges at the image border, or ``pin`` them, which is PDQ-optimal and needs
        `image_size`: see `keep_inside`.
    bins : (B,), optional
        What the bins stand for. Default: 0, 1, 2...
    logits : bool
        Whether `edges` are logits.
    min_std : float
        Raise standard deviations to at least this, in pixels. A certain edge has all its mass in one bin, variance 0.

    Returns
    -------
    Detections
        One row per row of `edges`, in their order: run non-maximum suppression before.

    Examples
    --------
    >>> edges = [[[0, 1, 0], [0, 0.5, 0.5], [0, 0, 1], [0.5, 0, 0.5]]]
    >>> found = from_edge_distributions(edges, [[100, 80]], 8, [[0.9]], classes=["cup"])
    >>> found.boxes.tolist(), found.covariances[0, 1].tolist()
    ([[92.0, 68.0, 116.0, 88.0]], [[0.0, 0.0], [0.0, 64.0]])
    """
    given = np.asarray(edges, np.float64)
    if given.ndim != 3 or given.shape[1] != 4:
        raise InputError(
            f"expected edges of shape N x 4 x B, but got {' x '.join(map(str, given.shape)) or 'a scalar'}"
        )
    if logits:
        given = softmax(given)
    elif given.size and (given.min() < 0 or np.abs(given.sum(axis=2) - 1.0).max() > 1e-3):
        raise InputError("expected each edge's probabilities to add up to 1", remedy="pass logits=True for logits")
    mean, var = edge_moments(given, bins)
    scale = np.broadcast_to(np.asarray(strides, np.float64), len(given))
    boxes, covariances = edge_corners(np.asarray(points, np.float64).reshape(-1, 2), scale, mean, var)
    boxes, covariances = apply_border(boxes, floor_std(covariances, min_std), image_size, border)
    scores = np.asarray(label_probs, np.float64).reshape(len(given), len(classes))
    return Detections(
        classes=tuple(classes),
        image_ids=np.full(len(given), image_id, np.int64),
        boxes=boxes,
        covariances=covariances,
        label_probs=limit_to_distribution(scores),
    )
