"""Gaussian boxes in other coordinates: mean and covariance, exactly."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.support.types import Floats
from probox.tables.box_formats import CORNERS_OF

__all__ = ["Parametrisation", "convert_boxes"]

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

    Between corners, centre-size and edge distances all is linear: ``mean' = A mean + b``, ``Sigma' = A Sigma A^T``. A
    Gaussian log size makes a log-normal size, whose moments are exact too: for a log size ``y`` of mean ``m`` and
    variance ``v``, another one ``z`` and any linear coordinate ``x``::

        E e^y = exp(m + v / 2)                                Var e^y = (exp(v) - 1) (E e^y)^2
        Cov(x, e^y) = Cov(x, y) E e^y                         Cov(e^y, e^z) = E e^y E e^z (exp(Cov(y, z)) - 1)

    So the mean size is larger than ``exp(m)``, the median. To log sizes the same equations are solved backwards: the
    Gaussian log size whose size has this mean and this variance. There and back is where one started.

    Parameters
    ----------
    mean : (N, 4) or (4,)
        ``corners`` x1, y1, x2, y2; ``centre-size`` cx, cy, w, h; ``centre-log-size`` cx, cy, log w, log h;
        ``edge-distances`` left, top, right, bottom, counted outwards from `point`.
    source, target : str
        The parametrisation of `mean`, and the wanted one.
    std, var : (N, 4) or (4,)
        Standard deviations or variances of the four coordinates, taken as independent. Exactly one of `std`, `var`
        and `cov` must be given, by name, so that they cannot be mistaken for one another.
    cov : (N, 4, 4) or (4, 4)
        The full covariance of the four coordinates.
    point : (N, 2) or (2,), optional
        Where edge distances start; needed when `source` or `target` is ``edge-distances``.

    Returns
    -------
    mean : same shape as `mean`
    cov : (N, 4, 4) or (4, 4)
        The full covariance; `corner_covariances` takes the corners' blocks from it.

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
            raise _unknown(name, value)
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
            remedy="a head that predicts log variances needs exp first" if given[0] == "var" else None,
        )
    variances = np.broadcast_to(spread**2 if std is not None else spread, means.shape)
    return np.asarray(variances[..., :, None] * np.eye(4))


def _points(means: Floats, point: npt.ArrayLike | None, source: str, target: str) -> Floats:
    if "edge-distances" not in (source, target):
        return np.zeros(2)
    if point is None:
        raise InputError("expected point= where edge distances start", remedy="pass the cell centres, N x 2")
    points = np.asarray(point, np.float64)
    if points.shape not in ((*means.shape[:-1], 2), (2,)):
        raise InputError(f"expected point of shape {(*means.shape[:-1], 2)}, but got {points.shape}")
    return points


def _to_corners(means: Floats, covariances: Floats, source: str, points: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance of the corners."""
    if source == "centre-size":
        return _moved(means, covariances, _CORNERS)
    if source == "centre-log-size":
        return _moved(*sizes_of_log_sizes(means, covariances), _CORNERS)
    if source == "edge-distances":
        away, spread = _moved(means, covariances, np.diag(_AWAY_FROM_POINT))
        return np.concatenate([points, points], axis=-1) + away, spread
    return means, covariances


def _from_corners(corners: Floats, covariances: Floats, target: str, points: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance of the coordinates of `target`."""
    if target == "centre-size":
        return _moved(corners, covariances, _CENTRE_SIZE)
    if target == "centre-log-size":
        return log_sizes_of_sizes(*_moved(corners, covariances, _CENTRE_SIZE))
    if target == "edge-distances":
        return _moved(corners - np.concatenate([points, points], axis=-1), covariances, np.diag(_AWAY_FROM_POINT))
    return corners, covariances


def _moved(means: Floats, covariances: Floats, matrix: Floats) -> tuple[Floats, Floats]:
    return means @ matrix.T, matrix @ covariances @ matrix.T


def sizes_of_log_sizes(means: Floats, covariances: Floats) -> tuple[Floats, Floats]:
    """Return the moments of centre and size, the last two coordinates being exponentials of Gaussians."""
    log_variances = np.diagonal(covariances, axis1=-2, axis2=-1)[..., 2:]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.exp(means[..., 2:] + log_variances / 2)
        scale = np.concatenate([np.ones_like(sizes), sizes], axis=-1)
        grown = covariances.copy()
        grown[..., 2:, 2:] = np.expm1(covariances[..., 2:, 2:])
        grown = grown * scale[..., :, None] * scale[..., None, :]
    if np.isfinite(means).all() and np.isfinite(covariances).all() and not np.isfinite(grown).all():
        raise InputError(
            "sizes have no finite mean and variance: their log sizes are too unsure, or too large",
            remedy="give log sizes and their standard deviations, of pixels or shares of the image",
        )
    return np.concatenate([means[..., :2], sizes], axis=-1), grown


def log_sizes_of_sizes(means: Floats, covariances: Floats) -> tuple[Floats, Floats]:
    """Return the Gaussian centres and log sizes whose sizes have these moments."""
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
            "no Gaussian log sizes have these moments: a size is tied too closely to its centre or to the other size",
            remedy='convert to "centre-size", which is exact for any covariance',
        )
    log_variances = np.diagonal(shrunk, axis1=-2, axis2=-1)[..., 2:]
    return np.concatenate([means[..., :2], np.log(sizes) - log_variances / 2], axis=-1), shrunk


def _is_covariance(matrices: Floats, rounding: Floats) -> bool:
    """Return whether no direction has a variance below 0, if variances may be off by `rounding`."""
    if not np.isfinite(matrices).all():
        return False
    allowed = matrices + rounding[..., :, None] * np.eye(matrices.shape[-1])
    std = np.sqrt(np.maximum(np.diagonal(allowed, axis1=-2, axis2=-1), np.finfo(np.float64).tiny))
    correlations = allowed / std[..., :, None] / std[..., None, :]
    return not matrices.size or float(np.linalg.eigvalsh(correlations).min()) > -1e-9


def _unknown(name: str, value: str) -> InputError:
    return InputError(
        f"expected {name} to be 'corners', 'centre-size', 'centre-log-size' or 'edge-distances', but got {value!r}"
    )
