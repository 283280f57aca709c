"""Gaussian boxes in other coordinates: mean and covariance by the Jacobian."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.box_formats import CORNERS_OF

__all__ = ["Parametrisation", "convert_boxes"]

Floats = npt.NDArray[np.float64]
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

    ``mean' = f(mean)`` and ``Sigma' = J Sigma J^T`` with the Jacobian ``J`` of ``f`` at the mean. Between corners,
    centre-size and edge distances ``f`` is linear and both are exact; to and from log sizes they are the first
    order, good to about ``(std of log size)^2`` of the size.

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
    """
    means = np.asarray(mean, np.float64)
    if means.shape[-1:] != (4,) or means.ndim > 2:
        raise InputError(f"expected mean of shape N x 4, but got {' x '.join(map(str, means.shape)) or 'a scalar'}")
    covariances = _covariances(means, std, var, cov)
    points = _points(means, point, source, target)
    corners, to_corners = _to_corners(means, source, points)
    converted, from_corners = _from_corners(corners, target, points)
    jacobian = from_corners @ to_corners
    result = jacobian @ covariances @ np.swapaxes(jacobian, -1, -2)
    return converted, (result + np.swapaxes(result, -1, -2)) / 2


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


def _to_corners(means: Floats, source: str, points: Floats) -> tuple[Floats, Floats]:
    """Return corners and the Jacobian of corners with respect to `source`."""
    if source == "corners":
        return means, np.eye(4)
    if source == "centre-size":
        return means @ _CORNERS.T, _CORNERS
    if source == "centre-log-size":
        sized = np.concatenate([means[..., :2], np.exp(means[..., 2:])], axis=-1)
        growth = np.concatenate([np.ones_like(sized[..., :2]), sized[..., 2:]], axis=-1)
        return sized @ _CORNERS.T, _CORNERS * growth[..., None, :]
    if source == "edge-distances":
        return np.concatenate([points, points], axis=-1) + means * _AWAY_FROM_POINT, np.diag(_AWAY_FROM_POINT)
    raise _unknown("source", source)


def _from_corners(corners: Floats, target: str, points: Floats) -> tuple[Floats, Floats]:
    """Return the coordinates of `target` and their Jacobian with respect to corners."""
    if target == "corners":
        return corners, np.eye(4)
    if target == "centre-size":
        return corners @ _CENTRE_SIZE.T, _CENTRE_SIZE
    if target == "centre-log-size":
        sized = corners @ _CENTRE_SIZE.T
        sizes = sized[..., 2:]
        if not (sizes > 0).all():
            raise InputError(f"expected boxes of positive size for log sizes, but got {np.nanmin(sizes):.6g}")
        shrink = np.concatenate([np.ones_like(sizes), 1.0 / sizes], axis=-1)
        return np.concatenate([sized[..., :2], np.log(sizes)], axis=-1), _CENTRE_SIZE * shrink[..., :, None]
    if target == "edge-distances":
        away = (corners - np.concatenate([points, points], axis=-1)) * _AWAY_FROM_POINT
        return away, np.diag(_AWAY_FROM_POINT)
    raise _unknown("target", target)


def _unknown(name: str, value: str) -> InputError:
    return InputError(
        f"expected {name} to be 'corners', 'centre-size', 'centre-log-size' or 'edge-distances', but got {value!r}"
    )
