"""Gaussian corners of clusters of boxes: weighted mean and covariance, and what to say when members are few."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, get_args

import numpy as np

from probox.errors import InputError
from probox.support.types import Bools, Floats, Ints

__all__ = [
    "BORDERS",
    "Border",
    "Spread",
    "apply_border",
    "check_border",
    "cluster_gaussians",
    "floor_std",
    "keep_inside",
    "pinned_edges",
    "pinned_note",
]

Border = Literal["keep", "pin"]
BORDERS: tuple[str, ...] = get_args(Border)
"""What happens to corners at the image border, see `apply_border`."""
PIN_SIGMAS = 2.0
"""How many standard deviations `keep_inside` leaves between a corner and the border."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spread:
    """How a corner's covariance is estimated from few members.

    With the members' covariance ``S`` (unbiased, so worth ``n - 1`` observations), a prior ``T`` worth ``shrinkage``
    observations, and box width and height ``w``, ``h``::

        Sigma = ((n - 1) S + shrinkage T) / (n - 1 + shrinkage),    T = diag((prior_std w)^2, (prior_std h)^2)

    and then every direction's standard deviation is raised to at least `min_std` pixels. A cluster of one has no
    covariance of its own: it gets ``T``, because the errors of box corners grow with the box. `shrinkage` 0 takes the
    members' covariance alone, and for a cluster of one the `min_std` circle.

    Parameters
    ----------
    min_std : float
        No corner is known better than this, in pixels. The default of 1 is the raster's own resolution, and keeps a
        cluster whose members agree by chance from claiming certainty.
    prior_std : float
        The prior's standard deviation as a share of the box's width and height.
    shrinkage : float
        How many observations the prior is worth.
    """

    min_std: float = 1.0
    prior_std: float = 0.1
    shrinkage: float = 1.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not 0.0 <= value < float("inf"):
                raise InputError(f"expected {field.name} to be at least 0 and finite, but got {value!r}")

    def apply(self, covariances: Floats, observations: Floats, boxes: Floats) -> Floats:
        """Return the covariances (N, 2, 2, 2) of N clusters after shrinkage and flooring.

        Parameters
        ----------
        covariances : (N, 2, 2, 2) float64
            The members' unbiased covariances; ignored where there are no observations.
        observations : (N,) float64
            How many observations beyond the mean each is worth: ``n - 1``, or its weighted equivalent.
        boxes : (N, 4) float64
            The mean boxes, for the prior's size.
        """
        prior = np.zeros((len(boxes), 1, 2, 2))
        sides = self.prior_std * np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0)
        prior[:, 0, [0, 1], [0, 1]] = sides**2
        own = observations[:, None, None, None]
        worth = own + self.shrinkage
        with np.errstate(invalid="ignore", divide="ignore"):
            shrunk = np.where(worth > 0, (own * covariances + self.shrinkage * prior) / worth, 0.0)
        return floor_std(shrunk, self.min_std)


def floor_std(covariances: Floats, min_std: float) -> Floats:
    """Return 2 x 2 covariances whose standard deviation is at least `min_std` in every direction.

    Eigenvalues below ``min_std^2`` are raised to it; matrices that have none stay as they are, to the bit.
    """
    values, vectors = np.linalg.eigh(covariances)
    floor = min_std**2
    raised = (vectors * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    raised = (raised + np.swapaxes(raised, -1, -2)) / 2  # the product need not be symmetric to the last bit
    return np.where((values[..., :1] >= floor)[..., None], covariances, raised)


def apply_border(
    boxes: Floats, covariances: Floats, image_size: tuple[float, float] | None, border: str
) -> tuple[Floats, Floats]:
    """Return boxes inside the image, and their covariances.

    Parameters
    ----------
    boxes, covariances
        As for `keep_inside`.
    image_size : (width, height), optional
        In pixels. Default: boxes stay where they are, which ``pin`` refuses.
    border : {"keep", "pin"}
        ``keep``: clip the boxes to the image, as detectors do, and keep the estimated std. ``pin``: `keep_inside`,
        PDQ-optimal; a std of 0.25 px at the border is overconfident wherever the object does not end there.
    """
    check_border(border)
    if border == "pin":
        if image_size is None:
            raise InputError('border="pin" needs the size of the image', remedy="give image_size=(width, height)")
        return keep_inside(boxes, covariances, image_size)
    return boxes if image_size is None else np.clip(boxes, 0.0, np.array([*image_size] * 2, np.float64)), covariances


def check_border(border: str) -> None:
    """Raise unless this is one of `BORDERS`."""
    if border not in BORDERS:
        raise InputError(f"expected border to be one of {', '.join(BORDERS)}, but got {border!r:.40}")


def keep_inside(
    boxes: Floats,
    covariances: Floats,
    image_size: tuple[float, float] | Floats,
    *,
    sigmas: float = PIN_SIGMAS,
    margin: float = 0.5,
) -> tuple[Floats, Floats]:
    """Return boxes and covariances whose corners lie inside the image, borders included.

    What lies beyond a border can't be seen, and PDQ takes away the probability that a corner has there: a corner whose
    mean is on the border loses half of it, over the whole box. But a box that reaches the border is cut off by it:
    that edge is known. So corners are moved to at least `margin` pixels within, and the standard deviation of each
    coordinate is limited such that its border is at least `sigmas` of them away::

        Sigma' = R Sigma R,    R = diag(r_x, r_y),    r = min(1, distance to the border / (sigmas std))

    The top-left corner's borders are the left and upper ones, the bottom-right corner's the others.

    Parameters
    ----------
    boxes : (N, 4) float64
        ``x1, y1, x2, y2``, the last pixel being x2, y2.
    covariances : (N, 2, 2, 2) float64
        Of the corners, in square pixels.
    image_size : (width, height) or (N, 2) array
        In pixels, of all boxes or of each.
    sigmas : float
        How many standard deviations a border is away at least.
    margin : float
        How far inside a corner is at least, in pixels.

    Returns
    -------
    boxes, covariances
        New ones, of the same shapes.

    Examples
    --------
    >>> boxes, covariances = keep_inside(np.array([[-3.0, 20.0, 60.0, 80.0]]), np.full((1, 2, 2, 2), 16.0), (100, 100))
    >>> boxes.tolist(), covariances[0, 0].tolist()
    ([[0.5, 20.0, 60.0, 80.0]], [[0.0625, 1.0], [1.0, 16.0]])
    """
    far = np.asarray(image_size, np.float64) - 1.0  # a bottom-right corner is the last pixel's
    top_left = np.clip(boxes[:, :2], margin, np.maximum(far - margin, margin))
    bottom_right = np.maximum(np.minimum(boxes[:, 2:], far - margin), top_left)
    distance = np.stack([top_left, np.maximum(far - bottom_right, margin)], axis=1)
    std = np.sqrt(np.maximum(np.diagonal(covariances, axis1=-2, axis2=-1), np.finfo(np.float64).tiny))
    ratio = np.minimum(1.0, distance / (sigmas * std))
    limited = covariances * ratio[..., :, None] * ratio[..., None, :]
    return np.concatenate([top_left, bottom_right], axis=1), limited


def pinned_edges(boxes: Floats, covariances: Floats, image_size: tuple[float, float] | Floats) -> Bools:
    """Return which edges x1, y1, x2, y2 have exactly the std that `keep_inside` allows them, (N, 4).

    >>> boxes, covariances = keep_inside(np.array([[-3.0, 20.0, 60.0, 80.0]]), np.full((1, 2, 2, 2), 16.0), (100, 100))
    >>> pinned_edges(boxes, covariances, (100, 100)).tolist()
    [[True, False, False, False]]
    """
    far = np.asarray(image_size, np.float64) - 1.0
    distance = np.concatenate([boxes[:, :2], far - boxes[:, 2:]], axis=1)
    std = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1).reshape(-1, 4))
    return np.asarray((std > 0.0) & np.isclose(std, distance / PIN_SIGMAS, rtol=1e-6, atol=1e-9))


def pinned_note(boxes: Floats, covariances: Floats, image_size: Floats) -> str:
    """Return the note on detections that were made with ``border="pin"``."""
    count = int(pinned_edges(boxes, covariances, image_size).sum())
    return (
        f'border="pin": {count:,} of {4 * len(boxes):,} edges have a std of half their distance to the image border, '
        "which raises PDQ and is overconfident; do not use these covariances in a filter"
    )


def cluster_gaussians(
    boxes: Floats,
    weights: Floats,
    cluster: Ints,
    clusters: int,
    covariances: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Return mean boxes, corner covariances and observations of clusters of boxes.

    For each corner with members ``x_i`` and weights ``w_i`` of sum ``W``::

        mean  = sum_i w_i x_i / W
        Sigma = sum_i w_i (x_i - mean)(x_i - mean)^T / (W - sum_i w_i^2 / W)

    which is unbiased (``n - 1`` for equal weights). Members that are Gaussians themselves add the mean of their own
    covariances: the covariance of the mixture.

    Parameters
    ----------
    boxes : (M, 4) float64
        Members.
    weights : (M,) float64
        Their weights, positive.
    cluster : (M,) int64
        Their clusters, ``0..clusters-1``, none of which is empty.
    clusters : int
        How many clusters there are.
    covariances : (M, 2, 2, 2) float64, optional
        The members' own corner covariances.

    Returns
    -------
    means : (K, 4) float64
    covariances : (K, 2, 2, 2) float64
        Zero for a cluster of one whose member has no covariance of its own.
    observations : (K,) float64
        ``W^2 / sum w_i^2 - 1``: how many observations the covariance is worth.
    """

    def total(values: Floats) -> Floats:
        columns = values.reshape(len(values), math.prod(values.shape[1:])).T
        sums: list[Floats] = [np.bincount(cluster, column, clusters).astype(np.float64) for column in columns]
        return np.stack(sums, axis=1).reshape(clusters, *values.shape[1:])

    weight = total(weights)
    means = total(weights[:, None] * boxes) / weight[:, None]
    error = (boxes - means[cluster]).reshape(-1, 2, 2)
    xx, yy = error[:, :, 0] ** 2, error[:, :, 1] ** 2
    xy = error[:, :, 0] * error[:, :, 1]
    scatter = total(weights[:, None, None] * np.stack([xx, xy, yy], axis=2))
    squares = total(weights**2)
    observations = np.maximum(weight**2 / squares - 1.0, 0.0)
    observations[np.bincount(cluster, minlength=clusters) < 2] = 0.0
    freedom = weight - squares / weight
    several = observations > 0.0
    unbiased = np.zeros_like(scatter)
    unbiased[several] = scatter[several] / freedom[several, None, None]
    estimate = unbiased[:, :, [0, 1, 1, 2]].reshape(clusters, 2, 2, 2)
    if covariances is not None:
        estimate = estimate + total(weights[:, None, None, None] * covariances) / weight[:, None, None, None]
    return means, estimate, np.asarray(observations, np.float64)
