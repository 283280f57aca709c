"""Box layouts and covariances of corners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.support.types import Floats
from probox.tables.dataset import Dataset
from probox.tables.table import frozen, rows_where_all, to_numpy


def extents_of(boxes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return width and height, (N, 2), without warnings for invalid corners, which are rejected later."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(boxes[:, 2:] - boxes[:, :2])


def pixels_of_boxes(boxes: npt.NDArray[np.float64], shapes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the pixels covered by boxes ``x1, y1, x2, y2``, as inclusive boxes, in images of the given sizes.

    Pixels floor(x1)..ceil(x2) and floor(y1)..ceil(y2), clipped to the image. A box outside the image gets the empty
    box ``0, 0, -1, -1``.
    """
    last = shapes.astype(np.float64) - 1.0
    low, high = np.floor(boxes[:, :2]), np.ceil(boxes[:, 2:])
    inside = rows_where_all((high >= 0) & (low <= last) & (low <= high))
    pixels = np.concatenate([np.clip(low, 0.0, last), np.clip(high, 0.0, last)], axis=1)
    return np.where(inside[:, None], pixels, [0.0, 0.0, -1.0, -1.0]).astype(np.int32)


def polygon_pixels_of_boxes(boxes: npt.NDArray[np.float64], shapes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the pixels of boxes ``x1, y1, x2, y2`` rasterised as polygons by the COCO API, as inclusive boxes.

    It rounds corners to fifths of a pixel. Columns and rows from ``ceil(x1 - 0.4)`` and below ``ceil(x2 - 0.4)`` of
    the rounded corners belong to the box, clipped to images of the given sizes; an empty box is ``0, 0, -1, -1``.

    >>> polygon_pixels_of_boxes(np.array([[1.5, 0.0, 3.4, 9.0]]), np.array([[8, 4]])).tolist()
    [[2, 0, 2, 3]]
    """
    ends = np.ceil((np.trunc(5.0 * boxes + 0.5) - 2.0) / 5.0)
    low, high = np.maximum(ends[:, :2], 0.0), np.minimum(ends[:, 2:], shapes) - 1.0
    some = rows_where_all(low <= high)
    return np.where(some[:, None], np.concatenate([low, high], axis=1), [0.0, 0.0, -1.0, -1.0]).astype(np.int32)


SYMMETRY = 1e-6

"""Tolerance for symmetry and positive semi-definiteness of covariances, as a fraction of their largest entry."""


def smallest_eigenvalues(matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the smaller eigenvalue of symmetric 2 x 2 matrices: (a + d)/2 - sqrt(((a - d)/2)^2 + b^2)."""
    a, b, d = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
    result: npt.NDArray[np.float64] = (a + d) / 2 - np.hypot((a - d) / 2, b)
    return result


def nearest_covariances(matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the nearest positive semi-definite matrices: symmetrized, with negative eigenvalues set to 0."""
    symmetric = (matrices + np.swapaxes(matrices, -1, -2)) / 2
    values, vectors = np.linalg.eigh(symmetric)
    nearest: npt.NDArray[np.float64] = (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return np.where((values[..., :1] >= 0)[..., None], symmetric, nearest)  # eigh sorts ascending


def constant_covariances(
    boxes: npt.NDArray[np.float64], share: float | npt.NDArray[np.float64], *, least_side: float = 1.0
) -> npt.NDArray[np.float64]:
    """Return constant covariances: one standard deviation per axis, as a fraction of the box's width and height.

    This is the constant-variance baseline. Sides below `least_side` count as `least_side`, by default one pixel, so
    that no variance is 0.

    >>> constant_covariances(np.array([[0.0, 0.0, 20.0, 10.0]]), 0.1)[0].tolist()
    [[[4.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 1.0]]]
    """
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], least_side)
    variances = (np.reshape(share, (-1, 1)) * sides) ** 2
    return np.asarray(np.broadcast_to(np.eye(2) * variances[:, None, None, :], (len(boxes), 2, 2, 2)).copy())


def corner_covariances(cov: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the corners' 2 x 2 blocks (N, 2, 2, 2) of full covariances (N, 4, 4) of ``x1, y1, x2, y2``.

    PDQ assumes independent corners, so covariances between the corners are dropped.

    >>> corner_covariances(np.diag([1.0, 4.0, 9.0, 16.0]))[1].tolist()
    [[9.0, 0.0], [0.0, 16.0]]
    """
    full = np.asarray(cov, np.float64)
    if full.shape[-2:] != (4, 4):
        raise InputError(f"expected cov of shape N x 4 x 4, but got {' x '.join(map(str, full.shape)) or 'a scalar'}")
    return np.stack([full[..., :2, :2], full[..., 2:, 2:]], axis=-3)


BoxFormat = Literal["xyxy", "xywh", "cxcywh"]

"""Two corners; top-left corner, width and height; center, width and height."""

CORNERS_OF: dict[str, Floats] = {
    "xyxy": np.eye(4),
    "xywh": np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]),
    "cxcywh": np.array([[1, 0, -0.5, 0], [0, 1, 0, -0.5], [1, 0, 0.5, 0], [0, 1, 0, 0.5]]),
}

"""Matrix that maps the four numbers of a format to ``x1, y1, x2, y2``; also the Jacobian of the corners."""

NORMALISED_REACH = 2.0

"""Limit for normalised boxes: they rarely exceed 1, so values above 2 are pixels."""


def check_box_format(value: Any, name: str = "box_format") -> None:
    """Raise unless a value is a box format."""
    if not isinstance(value, str) or value not in get_args(BoxFormat):
        choices = ", ".join(map(repr, get_args(BoxFormat)))
        hints = {"yxyx": "reorder its columns: boxes[:, [1, 0, 3, 2]]", "xyxyn": 'write "xyxy" and normalised=True'}
        hints |= {"xywhn": 'write "cxcywh" and normalised=True, as YOLO means it', "ltrb": 'write "xyxy"'}
        raise InputError(
            f"expected {name} to be one of {choices}, but got {value!r:.40}", remedy=hints.get(str(value).lower())
        )


def boxes_from(given: Floats, box_format: BoxFormat, sizes: Floats | None) -> tuple[Floats, Floats | None]:
    """Return corners (N, 4) in pixels, and widths and heights (N, 2) if the format contains them.

    Parameters
    ----------
    given : (N, 4)
        Boxes in `box_format`.
    box_format : {"xyxy", "xywh", "cxcywh"}
        Meaning of the four numbers.
    sizes : (N, 2), optional
        Width and height of each box's image, for normalised boxes; None for boxes in pixels.
    """
    check_box_format(box_format)
    if box_format != "xyxy" and (given[:, 2:] < 0).any():
        row = int(np.argmax((given[:, 2:] < 0).any(axis=1)))
        problem = f"expected width and height of at least 0 in {box_format}, but box {row} is {given[row].tolist()}"
        raise InputError(problem, remedy="check the order of its numbers")
    with np.errstate(over="ignore", invalid="ignore"):  # the table rejects such boxes with a message
        boxes = given if sizes is None else given * np.tile(sizes, 2)
        if box_format == "xyxy":
            return boxes, None
        # Written out: in a matrix product, 0 times infinity would make four coordinates NaN instead of one infinite.
        low = boxes[:, :2] if box_format == "xywh" else boxes[:, :2] - boxes[:, 2:] / 2
        return np.concatenate([low, low + boxes[:, 2:]], axis=1), boxes[:, 2:]


def sizes_of_rows(normalised: Any, image_sizes: Any, image_ids: npt.NDArray[np.int64], given: Floats) -> Floats | None:
    """Return the width and height of each row's image for normalised boxes; None for boxes in pixels.

    Parameters
    ----------
    normalised : bool
        Whether boxes are fractions of the image. Image sizes in its place imply True.
    image_sizes : (width, height), mapping of image id to (width, height), Dataset, GroundTruth or None
        Image sizes.
    image_ids : (N,)
        Image of each row.
    given : (N, 4)
        Boxes, checked for values that are not normalised.
    """
    if not isinstance(normalised, bool | np.bool_):
        if image_sizes is not None:
            raise InputError("expected normalised to be True or False beside image_sizes", remedy="give sizes once")
        normalised, image_sizes = True, normalised
    if not normalised:
        return None
    if image_sizes is None:
        raise InputError(
            "normalised boxes need the size of their image",
            remedy="give image_sizes=(width, height), or {image id: (width, height)}, or the ground truth",
        )
    finite = np.abs(given[np.isfinite(given)])
    if finite.size and finite.max() > NORMALISED_REACH:
        raise InputError(
            f"expected normalised boxes to lie between 0 and 1, but got {finite.max():g}",
            remedy="leave normalised out: these are pixels",
        )
    known = known_sizes(image_sizes, image_ids)
    if known is not None:
        return known
    sizes = to_numpy(image_sizes, "image_sizes")
    shape = (2,) if sizes.ndim == 1 else (len(image_ids), 2)
    size = frozen(sizes, np.float64, shape, "image_sizes")
    if not (size > 0).all():
        raise InputError(f"expected image sizes above 0, but got {size.min():g}")
    return np.broadcast_to(size, (len(image_ids), 2))


def known_sizes(image_sizes: Any, image_ids: npt.ArrayLike) -> Floats | None:
    """Return the sizes of images from a mapping, dataset or ground truth; None for other types.

    >>> known_sizes({7: (64, 48)}, [7]).tolist()
    [[64.0, 48.0]]
    """
    dataset = getattr(image_sizes, "dataset", image_sizes)  # for ground truth
    if isinstance(dataset, Mapping):
        dataset = Dataset.from_sizes((), dataset)
    if not isinstance(dataset, Dataset):
        return None
    ids = np.asarray(image_ids, np.int64)
    rows = dataset.rows_of(ids)
    if (rows < 0).any():
        unknown = int(ids[rows < 0][0])
        raise InputError("the size of this image is unknown", image=unknown, remedy="add it to image_sizes")
    return dataset.shapes[rows].astype(np.float64)


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
    """Return covariances of corners (N, 2, 2, 2) in pixels squared; None if no uncertainty is given.

    ``Sigma' = S J Sigma J' S`` with the Jacobian ``J`` of the corners and the image's width and height in ``S``.
    Covariances between the corners are dropped.

    Parameters
    ----------
    rows : int
        Number of boxes.
    covariances, std, var
        At most one of them. Covariances of corners (N, 2, 2, 2) or of the four box coordinates (N, 4, 4), or
        their variances (N, 4). Standard deviations and variances of the four coordinates (N, 4), or one for all
        corner coordinates of a box (N,), or one for all boxes.
    covariance_format : {"xyxy", "xywh", "cxcywh"}, optional
        Coordinates of the uncertainty; required for four numbers per box unless boxes are ``xyxy``.
    box_format : {"xyxy", "xywh", "cxcywh"}
        Format of the boxes.
    sizes : (N, 2), optional
        Width and height of each box's image, for uncertainty in fractions of the image.

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
            raise InputError("covariance_format requires one of covariances, std and var")
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
    # One number is the variance of every corner coordinate, unless another format is given.
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
            f"boxes are {box_format}, but the format of the uncertainty is missing",
            remedy=f'write covariance_format="{box_format}" or "xyxy"',
        )
    return "xyxy"


def _from_full(full: Floats, covariance_format: str, scale: Floats) -> Floats:
    jacobian = CORNERS_OF[covariance_format]
    with np.errstate(over="ignore", invalid="ignore"):  # the table rejects non-finite values with a message
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
    """Raise for uncertainty larger than the image where fractions are expected."""
    largest = np.abs(array[np.isfinite(array)]).max(initial=0.0)
    if largest > 1:
        raise InputError(
            f"expected {name} in fractions of the image, as the boxes are, but got {largest:g}",
            remedy="divide it by the image's size (squared, for variances), or give boxes in pixels",
        )


def _refuse_one_matrix(array: Floats) -> None:
    """Raise if the variances of four boxes look like one 4 x 4 covariance."""
    if (array == array.T).all() and not (array == array[0, 0]).all():
        raise InputError(
            "expected one 4 x 4 covariance per box, or variances of each box, but got a symmetric 4 x 4 for four boxes",
            remedy="repeat a covariance for each box (N x 4 x 4), or give variances as var=",
        )


def _refuse_negative(array: Floats, name: str) -> None:
    lowest = float(np.nanmin(array)) if not np.isnan(array).all() else float("nan")
    if np.isnan(array).any():
        raise InputError(f"expected {name} to be numbers, but got NaN", remedy="leave out detections that diverged")
    remedy = "apply exp first if the model predicts logarithms"
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
