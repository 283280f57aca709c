"""Gaussian boxes: covariances of clusters, behaviour at the image border, and conversion of parametrisations."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.notes import Note
from probox.support.types import Bools, Floats, Ints
from probox.tables.geometry import CORNERS_OF

Border = Literal["keep", "pin"]

BORDERS: tuple[str, ...] = get_args(Border)
"""Treatments of corners at the image border, see `apply_border`."""

PIN_SIGMAS = 2.0
"""Distance in standard deviations between a corner and the border that `keep_inside` enforces."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spread:
    """Estimator of a corner's covariance from few samples.

    With the members' covariance ``S`` (unbiased, ``n - 1`` degrees of freedom), a prior ``T`` with the weight of
    ``shrinkage`` observations, and box width and height ``w``, ``h``::

        Sigma = ((n - 1) S + shrinkage T) / (n - 1 + shrinkage),    T = diag((prior_std w)^2, (prior_std h)^2)

    and then the standard deviation in every direction is raised to at least `min_std` pixels. A cluster of one has no
    sample covariance: its covariance is ``T``, because errors of box corners grow with the box. With `shrinkage` 0 the
    result is the sample covariance, and for a cluster of one the `min_std` circle.

    Parameters
    ----------
    min_std : float
        Minimum standard deviation in pixels. The default of 1 is the pixel size, and prevents near-zero covariances of
        clusters whose members agree by chance.
    prior_std : float
        Standard deviation of the prior, as a fraction of box width and height.
    shrinkage : float
        Weight of the prior, in observations.

    Examples
    --------
    >>> Spread(min_std=2.0).prior_std > 0
    True
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
            Unbiased covariances of the members; ignored where there are no observations.
        observations : (N,) float64
            Degrees of freedom of each: ``n - 1``, or its weighted equivalent.
        boxes : (N, 4) float64
            Mean boxes, for the scale of the prior.

        Returns
        -------
        (N, 2, 2, 2) float64 array
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

    Eigenvalues below ``min_std^2`` are raised to it; matrices without such eigenvalues stay bit-identical.
    """
    values, vectors = np.linalg.eigh(covariances)
    floor = min_std**2
    raised = (vectors * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    raised = (raised + np.swapaxes(raised, -1, -2)) / 2  # rounding can make the product asymmetric
    return np.where((values[..., :1] >= floor)[..., None], covariances, raised)


def apply_border(
    boxes: Floats, covariances: Floats, image_size: tuple[float, float] | None, border: str
) -> tuple[Floats, Floats]:
    """Return boxes inside the image, and their covariances.

    ``keep``: clip the boxes to the image, as detectors do, if its size is known, and keep the estimated std. ``pin``:
    `keep_inside`, PDQ-optimal; a std of 0.25 px at the border is overconfident wherever the object does not end there.
    """
    check_border(border)
    if border == "pin":
        if image_size is None:
            raise InputError(
                "{option:border=pin} needs the size of the image", remedy="give image_size=(width, height)"
            )
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

    Mass beyond a border is removed by PDQ: a corner whose mean is on the border loses half of its probability over the
    whole box. But the border truncates such a box, so the position of that edge is known. Corners are therefore moved
    to at least `margin` pixels inside, and each standard deviation is limited so that the border is at least `sigmas`
    standard deviations away::

        Sigma' = R Sigma R,    R = diag(r_x, r_y),    r = min(1, distance to the border / (sigmas std))

    The top-left corner is limited by the left and upper borders, the bottom-right corner by the others.

    Parameters
    ----------
    boxes : (N, 4) float64
        ``x1, y1, x2, y2``; x2, y2 are the last pixel.
    covariances : (N, 2, 2, 2) float64
        Covariances of the corners, in square pixels.
    image_size : (width, height) or (N, 2) array
        Size in pixels, of all boxes or of each.
    sigmas : float
        Minimum distance to the border, in standard deviations.
    margin : float
        Minimum distance of a corner to the border, in pixels.

    Returns
    -------
    boxes, covariances
        Arrays of the same shapes.

    Examples
    --------
    >>> boxes, covariances = keep_inside(np.array([[-3.0, 20.0, 60.0, 80.0]]), np.full((1, 2, 2, 2), 16.0), (100, 100))
    >>> boxes.tolist(), covariances[0, 0].tolist()
    ([[0.5, 20.0, 60.0, 80.0]], [[0.0625, 1.0], [1.0, 16.0]])
    """
    far = np.asarray(image_size, np.float64) - 1.0  # a bottom-right corner is the last pixel
    top_left = np.clip(boxes[:, :2], margin, np.maximum(far - margin, margin))
    bottom_right = np.maximum(np.minimum(boxes[:, 2:], far - margin), top_left)
    distance = np.stack([top_left, np.maximum(far - bottom_right, margin)], axis=1)
    std = np.sqrt(np.maximum(np.diagonal(covariances, axis1=-2, axis2=-1), np.finfo(np.float64).tiny))
    ratio = np.minimum(1.0, distance / (sigmas * std))
    limited = covariances * ratio[..., :, None] * ratio[..., None, :]
    return np.concatenate([top_left, bottom_right], axis=1), limited


def pinned_edges(boxes: Floats, covariances: Floats, image_size: tuple[float, float] | Floats) -> Bools:
    """Return which edges x1, y1, x2, y2 have the maximum std that `keep_inside` allows, (N, 4).

    >>> boxes, covariances = keep_inside(np.array([[-3.0, 20.0, 60.0, 80.0]]), np.full((1, 2, 2, 2), 16.0), (100, 100))
    >>> pinned_edges(boxes, covariances, (100, 100)).tolist()
    [[True, False, False, False]]
    """
    far = np.asarray(image_size, np.float64) - 1.0
    distance = np.concatenate([boxes[:, :2], far - boxes[:, 2:]], axis=1)
    std = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1).reshape(-1, 4))
    return np.asarray((std > 0.0) & np.isclose(std, distance / PIN_SIGMAS, rtol=1e-6, atol=1e-9))


def pinned_note(boxes: Floats, covariances: Floats, image_size: Floats) -> Note:
    """Return the note on detections that were made with ``border="pin"``."""
    count = int(pinned_edges(boxes, covariances, image_size).sum())
    return Note("pinned-edges", count, total=4 * len(boxes))


def cluster_gaussians(
    boxes: Floats, weights: Floats, cluster: Ints, clusters: int, covariances: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return mean boxes, corner covariances and observations of clusters of boxes.

    For each corner with members ``x_i`` and weights ``w_i`` of sum ``W``::

        mean  = sum_i w_i x_i / W
        Sigma = sum_i w_i (x_i - mean)(x_i - mean)^T / (W - sum_i w_i^2 / W)

    which is unbiased (``n - 1`` for equal weights). Gaussian members add the mean of their covariances: the covariance
    of the mixture. A cluster of one has its member's covariance, if any. Observations are ``W^2 / sum w_i^2 - 1``, the
    effective degrees of freedom. No cluster of ``0..clusters-1`` may be empty.
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


Parametrisation = Literal["corners", "centre-size", "centre-log-size", "edge-distances"]

# Rows are the coordinates of the name, columns x1, y1, x2, y2: centre-size = matrix @ corners.
_CENTRE_SIZE = np.array([[0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [-1, 0, 1, 0], [0, -1, 0, 1]])

_CORNERS = CORNERS_OF["cxcywh"]

_AWAY_FROM_POINT = np.array([-1.0, -1.0, 1.0, 1.0])


def convert_boxes(
    mean: npt.ArrayLike,
    *,
    source: Parametrisation,
    target: Parametrisation,
    std: npt.ArrayLike | None = None,
    var: npt.ArrayLike | None = None,
    cov: npt.ArrayLike | None = None,
    point: npt.ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Return means and covariances of Gaussian boxes in another parametrisation.

    Conversions between corners, centre-size and edge distances are linear: ``mean' = A mean + b``,
    ``Sigma' = A Sigma A^T``. A Gaussian log size is a log-normal size, with exact moments: for a log size ``y`` of mean
    ``m`` and variance ``v``, another one ``z`` and any linear coordinate ``x``::

        E e^y = exp(m + v / 2)                                Var e^y = (exp(v) - 1) (E e^y)^2
        Cov(x, e^y) = Cov(x, y) E e^y                         Cov(e^y, e^z) = E e^y E e^z (exp(Cov(y, z)) - 1)

    So the mean size is larger than ``exp(m)``, the median. Conversion to log sizes inverts these equations: the result
    is the Gaussian log size whose size has this mean and variance. A round trip restores the input.

    Parameters
    ----------
    mean : (N, 4) or (4,)
        ``corners`` x1, y1, x2, y2; ``centre-size`` cx, cy, w, h; ``centre-log-size`` cx, cy, log w, log h;
        ``edge-distances`` left, top, right, bottom, positive outwards from `point`.
    source, target : str
        Parametrisation of `mean`, and of the result.
    std, var : (N, 4) or (4,)
        Standard deviations or variances of the four coordinates, assumed independent. Exactly one of `std`, `var`
        and `cov` must be given by keyword.
    cov : (N, 4, 4) or (4, 4)
        Full covariance of the four coordinates.
    point : (N, 2) or (2,), optional
        Reference point of edge distances; required if `source` or `target` is ``edge-distances``.

    Returns
    -------
    mean : same shape as `mean`
    cov : (N, 4, 4) or (4, 4)
        Full covariance; `corner_covariances` returns its blocks of the corners.

    Examples
    --------
    >>> mean, cov = convert_boxes([50, 40, 20, 10], std=[1, 1, 2, 2], source="centre-size", target="corners")
    >>> mean.tolist(), np.diag(cov).tolist()
    ([40.0, 35.0, 60.0, 45.0], [2.0, 2.0, 2.0, 2.0])
    >>> mean, cov = convert_boxes(
    ...     [50, 40, 3, 2], std=[0, 0, 0.5, 0], source="centre-log-size", target="centre-size"
    ... )
    >>> mean.round(3).tolist(), float(np.sqrt(cov[2, 2]).round(3))  # the median width is 20.086
    ([50.0, 40.0, 22.76, 7.389], 12.13)
    """
    means = np.asarray(mean, np.float64)
    if means.shape[-1:] != (4,) or means.ndim > 2:
        raise InputError(f"expected mean of shape N x 4, but got {' x '.join(map(str, means.shape)) or 'a scalar'}")
    covariances = _covariances(means, std, var, cov)
    points = _points(means, point, source, target)
    for name, value in (("source", source), ("target", target)):
        if value not in get_args(Parametrisation):
            *others, last = map(repr, get_args(Parametrisation))
            raise InputError(f"expected {name} to be {', '.join(others)} or {last}, but got {value!r}")
    if source == target:
        return means.copy(), covariances.copy()
    corners, result = _from_corners(*_to_corners(means, covariances, source, points), target, points)
    return corners, (result + np.swapaxes(result, -1, -2)) / 2


def _covariances(
    means: Floats, std: npt.ArrayLike | None, var: npt.ArrayLike | None, cov: npt.ArrayLike | None
) -> Floats:
    given = [name for name, value in (("std", std), ("var", var), ("cov", cov)) if value is not None]
    if len(given) != 1:
        raise InputError(f"expected exactly one of std=, var= and cov=, but got {' and '.join(given) or 'none'}")
    if cov is not None:
        full = np.asarray(cov, np.float64)
        if full.shape != (*means.shape, 4):
            raise InputError(f"expected cov of shape {(*means.shape, 4)}, but got {full.shape}")
        return full
    spread = np.asarray(std if std is not None else var, np.float64)
    if spread.shape not in (means.shape, (4,)):
        raise InputError(f"expected {given[0]} of shape {means.shape}, but got {spread.shape}")
    if not (spread >= 0).all():
        raise InputError(
            f"expected {given[0]} to be at least 0, but got {np.nanmin(spread):.6g}",
            remedy="apply exp to log variances first" if given[0] == "var" else None,
        )
    variances = np.broadcast_to(spread**2 if std is not None else spread, means.shape)
    return np.asarray(variances[..., :, None] * np.eye(4))


def _points(means: Floats, point: npt.ArrayLike | None, source: str, target: str) -> Floats:
    if "edge-distances" not in (source, target):
        return np.zeros(2)
    if point is None:
        raise InputError("expected point=, where edge distances start", remedy="pass the cell centres, N x 2")
    points = np.asarray(point, np.float64)
    if points.shape not in ((*means.shape[:-1], 2), (2,)):
        raise InputError(f"expected point of shape {(*means.shape[:-1], 2)}, but got {points.shape}")
    return points


def _to_corners(means: Floats, covariances: Floats, source: str, points: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance of the corners."""
    if source == "centre-size":
        return _move_gaussians(means, covariances, _CORNERS)
    if source == "centre-log-size":
        return _move_gaussians(*sizes_of_log_sizes(means, covariances), _CORNERS)
    if source == "edge-distances":
        away, spread = _move_gaussians(means, covariances, np.diag(_AWAY_FROM_POINT))
        return np.concatenate([points, points], axis=-1) + away, spread
    return means, covariances


def _from_corners(corners: Floats, covariances: Floats, target: str, points: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance of the coordinates of `target`."""
    if target == "centre-size":
        return _move_gaussians(corners, covariances, _CENTRE_SIZE)
    if target == "centre-log-size":
        return log_sizes_of_sizes(*_move_gaussians(corners, covariances, _CENTRE_SIZE))
    if target == "edge-distances":
        return _move_gaussians(
            corners - np.concatenate([points, points], axis=-1), covariances, np.diag(_AWAY_FROM_POINT)
        )
    return corners, covariances


def _move_gaussians(means: Floats, covariances: Floats, matrix: Floats) -> tuple[Floats, Floats]:
    return means @ matrix.T, matrix @ covariances @ matrix.T


def sizes_of_log_sizes(means: Floats, covariances: Floats) -> tuple[Floats, Floats]:
    """Return the moments of centre and size; the last two coordinates of `means` are log sizes."""
    log_variances = np.diagonal(covariances, axis1=-2, axis2=-1)[..., 2:]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.exp(means[..., 2:] + log_variances / 2)
        scale = np.concatenate([np.ones_like(sizes), sizes], axis=-1)
        grown = covariances.copy()
        grown[..., 2:, 2:] = np.expm1(covariances[..., 2:, 2:])
        grown = grown * scale[..., :, None] * scale[..., None, :]
    if np.isfinite(means).all() and np.isfinite(covariances).all() and not np.isfinite(grown).all():
        raise InputError(
            "sizes have no finite mean and variance: the std of the log sizes, or the log sizes, are too large",
            remedy="give log sizes and their standard deviations, in pixels or relative to the image size",
        )
    return np.concatenate([means[..., :2], sizes], axis=-1), grown


def log_sizes_of_sizes(means: Floats, covariances: Floats) -> tuple[Floats, Floats]:
    """Return the Gaussian centres and log sizes that correspond to these moments of sizes."""
    sizes = means[..., 2:]
    if not (sizes > 0).all():
        raise InputError(f"expected boxes of positive size for log sizes, but got {np.nanmin(sizes):.6g}")
    scale = np.concatenate([np.ones_like(sizes), 1.0 / sizes], axis=-1)
    shrunk = covariances * scale[..., :, None] * scale[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        shrunk[..., 2:, 2:] = np.log1p(shrunk[..., 2:, 2:])
    finite = np.isfinite(means).all() and np.isfinite(covariances).all()
    rounding = 1e-12 * np.abs(covariances).max(axis=(-2, -1))[..., None] * scale**2
    if finite and not _is_covariance(shrunk, rounding):
        raise InputError(
            "no Gaussian log sizes have these moments: a size correlates too much with its centre or the other size",
            remedy='convert to "centre-size", which is exact for any covariance',
        )
    log_variances = np.diagonal(shrunk, axis1=-2, axis2=-1)[..., 2:]
    return np.concatenate([means[..., :2], np.log(sizes) - log_variances / 2], axis=-1), shrunk


def _is_covariance(matrices: Floats, rounding: Floats) -> bool:
    """Return whether matrices are positive semi-definite, with a tolerance for rounding."""
    if not np.isfinite(matrices).all():
        return False
    allowed = matrices + rounding[..., :, None] * np.eye(matrices.shape[-1])
    std = np.sqrt(np.maximum(np.diagonal(allowed, axis1=-2, axis2=-1), np.finfo(np.float64).tiny))
    correlations = allowed / std[..., :, None] / std[..., None, :]
    return not matrices.size or float(np.linalg.eigvalsh(correlations).min()) > -1e-9
