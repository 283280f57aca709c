"""The uncertainty of boxes in the shapes that people hold it in, as covariances of corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.arrays import to_numpy
from probox.tables.box_formats import CORNERS_OF, BoxFormat, check_box_format
from probox.tables.covariances import corner_covariances
from probox.tables.row_problems import SYMMETRY

__all__ = ["corners_from"]

Floats = npt.NDArray[np.float64]

SHAPES = {
    "covariances": "N x 2 x 2 x 2 (corners), N x 4 x 4, N x 4 (variances) or one number",
    "var": "N x 4, N or one number",
    "std": "N x 4, N or one number",
}


def corners_from(
    rows: int,
    *,
    covariances: Any = None,
    std: Any = None,
    var: Any = None,
    covariance_format: BoxFormat | None = None,
    box_format: BoxFormat = "xyxy",
    sizes: Floats | None = None,
) -> Floats | None:
    """Return covariances of corners (N, 2, 2, 2) in square pixels; None where nothing is given.

    ``Sigma' = S J Sigma J' S`` with the Jacobian ``J`` of corners and the image's width and height in ``S``; what ties
    one corner to the other is left out.

    Parameters
    ----------
    rows : int
        How many boxes there are.
    covariances, std, var
        At most one of them. Covariances are of corners (N, 2, 2, 2), or of the four numbers of a box: (N, 4, 4), or
        their variances (N, 4). Standard deviations and variances are of the four numbers (N, 4), or the same for all
        coordinates of the corners of a box (N,), or of all boxes (one number).
    covariance_format : {"xyxy", "xywh", "cxcywh"}, optional
        Whose four numbers these are; must be said where boxes are not ``xyxy``.
    box_format : {"xyxy", "xywh", "cxcywh"}
        What the boxes are.
    sizes : (N, 2), optional
        Width and height of each box's image, for uncertainty in shares of it.

    >>> corners_from(1, std=[[1, 1, 2, 2]], covariance_format="xywh")[0, 1].tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    named = {"covariances": covariances, "std": std, "var": var}
    given = [name for name, values in named.items() if values is not None]
    if len(given) > 1:
        raise InputError(
            f"expected at most one of covariances=, std= and var=, but got {' and '.join(given)}",
            remedy="give the one that you have: a variance is the square of a standard deviation",
        )
    if not given:
        if covariance_format is not None:
            raise InputError("covariance_format says what covariances, std or var are of, but none is given")
        return None
    name = given[0]
    array = _numbers(named[name], name)
    if covariance_format is not None:
        check_box_format(covariance_format, "covariance_format")
    if sizes is not None:
        _refuse_pixels(array, name)
    scale = np.ones((rows, 2)) if sizes is None else sizes
    if name == "covariances" and array.shape == (rows, 2, 2, 2):
        if covariance_format not in (None, "xyxy"):
            raise InputError(
                f"covariances of 2 x 2 x 2 are of corners, but covariance_format is {covariance_format}",
                remedy="leave covariance_format out",
            )
        return np.asarray(array * (scale[:, None, :, None] * scale[:, None, None, :]))
    if name != "std" and array.shape == (rows, 4, 4):
        return _from_full(_symmetric(array, name), _format(covariance_format, box_format), scale)
    if array.shape not in ((), (rows, 4)) and (name == "covariances" or array.shape != (rows,)):
        raise _wrong_shape(name, array.shape, rows)
    if not (array >= 0).all():
        _refuse_negative(array, name)
    if name == "covariances" and array.shape == (4, 4):
        _refuse_one_matrix(array)
    variances = array**2 if name == "std" else array
    if array.shape == (rows, 4):
        return _from_full(variances[:, :, None] * np.eye(4), _format(covariance_format, box_format), scale)
    # One number is that of every coordinate of the corners, unless other coordinates are named.
    full = np.broadcast_to(variances, rows)[:, None, None] * np.eye(4)
    return _from_full(full, covariance_format or "xyxy", scale)


def _numbers(values: Any, name: str) -> Floats:
    """Return numbers of any shape as float64."""
    array = to_numpy(values, name)
    if array.dtype.kind not in "fiu":
        raise InputError(f"expected {name} to be numbers, but got {array.dtype}", remedy=f"give {SHAPES[name]}")
    return array.astype(np.float64)


def _format(covariance_format: BoxFormat | None, box_format: BoxFormat) -> str:
    if covariance_format is not None:
        return covariance_format
    if box_format != "xyxy":
        raise InputError(
            f"boxes are {box_format}, but whose four numbers the uncertainty is of is not said",
            remedy=f'write covariance_format="{box_format}" or "xyxy"',
        )
    return "xyxy"


def _from_full(full: Floats, covariance_format: str, scale: Floats) -> Floats:
    jacobian = CORNERS_OF[covariance_format]
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is rejected by the table, in words
        corners = jacobian @ full @ jacobian.T if covariance_format != "xyxy" else full
        double = np.tile(scale, 2)
        corners = corners * (double[:, :, None] * double[:, None, :])
        return corner_covariances((corners + np.swapaxes(corners, 1, 2)) / 2)


def _symmetric(full: Floats, name: str) -> Floats:
    """Return 4 x 4 covariances; raise for the first that is not symmetric."""
    with np.errstate(invalid="ignore"):
        skew = np.abs(full - np.swapaxes(full, 1, 2)).max(axis=(1, 2), initial=0.0)
        wrong = np.flatnonzero(skew > SYMMETRY * np.abs(full).max(axis=(1, 2), initial=0.0))
    if len(wrong):
        raise InputError(
            f"expected symmetric {name}, but entry {wrong[0]} differs from its transpose by {skew[wrong[0]]:.6g}",
            remedy="give whole 4 x 4 covariances, not factors of them (L: give L @ L.T)",
        )
    return full


def _refuse_pixels(array: Floats, name: str) -> None:
    """Raise for uncertainty that is larger than the image, where it should be a share of it."""
    largest = np.abs(array[np.isfinite(array)]).max(initial=0.0)
    if largest > 1:
        raise InputError(
            f"expected {name} in shares of the image, as the boxes are, but got {largest:g}",
            remedy="divide it by the image's size (squared, for variances), or give boxes in pixels",
        )


def _refuse_one_matrix(array: Floats) -> None:
    """Raise if the variances of four boxes are rather the covariance of one."""
    if (array == array.T).all() and not (array == array[0, 0]).all():
        raise InputError(
            "four boxes, and a symmetric 4 x 4: one covariance for all of them, or variances of each?",
            remedy="repeat a covariance for each box (N x 4 x 4), or give variances as var=",
        )


def _refuse_negative(array: Floats, name: str) -> None:
    lowest = float(np.nanmin(array)) if not np.isnan(array).all() else float("nan")
    if np.isnan(array).any():
        raise InputError(f"expected {name} to be numbers, but got NaN", remedy="leave out detections that diverged")
    remedy = "a head that predicts their logarithms needs exp first"
    raise InputError(f"expected {name} to be at least 0, but got {lowest:.6g}", remedy=remedy)


def _wrong_shape(name: str, shape: tuple[int, ...], rows: int) -> InputError:
    got = " x ".join(map(str, shape)) or "a number"
    problem = f"expected {name} of {rows} boxes as {SHAPES[name]}, but got {got}"
    if name != "covariances" and len(shape) > 2:
        return InputError(problem, remedy="give matrices as covariances=")
    if shape == (rows,) and name == "covariances":
        return InputError(problem, remedy="give one variance per box as var=")
    if shape == (4,):
        return InputError(problem, remedy="give a row for each box: numpy.tile(values, (N, 1))")
    return InputError(problem, remedy="give one entry for each box")
