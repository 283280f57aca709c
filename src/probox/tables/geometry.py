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
    """Return width and height, (N, 2); corners that are no numbers give what they give, and are rejected elsewhere."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(boxes[:, 2:] - boxes[:, :2])


def pixels_of_boxes(boxes: npt.NDArray[np.float64], shapes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the pixels of boxes ``x1, y1, x2, y2`` in images of these widths and heights, as inclusive boxes.

    Pixels floor(x1)..ceil(x2) and floor(y1)..ceil(y2), as far as they lie in the image; a box that lies wholly
    outside has none, which is written ``0, 0, -1, -1``.
    """
    last = shapes.astype(np.float64) - 1.0
    low, high = np.floor(boxes[:, :2]), np.ceil(boxes[:, 2:])
    inside = rows_where_all((high >= 0) & (low <= last) & (low <= high))
    pixels = np.concatenate([np.clip(low, 0.0, last), np.clip(high, 0.0, last)], axis=1)
    return np.where(inside[:, None], pixels, [0.0, 0.0, -1.0, -1.0]).astype(np.int32)


SYMMETRY = 1e-6

"""How far, as a share of its largest entry, a covariance may be from symmetric and positive semi-definite."""


def smallest_eigenvalues(matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the smaller eigenvalue of symmetric 2 x 2 matrices: (a + d)/2 - sqrt(((a - d)/2)^2 + b^2)."""
    a, b, d = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
    result: npt.NDArray[np.float64] = (a + d) / 2 - np.hypot((a - d) / 2, b)
    return result


def nearest_covariances(matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the nearest symmetric positive semi-definite matrices: negative eigenvalues become 0."""
    symmetric = (matrices + np.swapaxes(matrices, -1, -2)) / 2
    values, vectors = np.linalg.eigh(symmetric)
    nearest: npt.NDArray[np.float64] = (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return np.where((values[..., :1] >= 0)[..., None], symmetric, nearest)  # eigh sorts ascending


def constant_covariances(
    boxes: npt.NDArray[np.float64], share: float | npt.NDArray[np.float64], *, least_side: float = 1.0
) -> npt.NDArray[np.float64]:
    """Return covariances of one standard deviation per axis, a share of the box's width and height.

    It takes nothing from the detector but the box: the control of every uncertainty. A side below `least_side` counts
    as that: by default a pixel, so that no corner is certain.

    >>> constant_covariances(np.array([[0.0, 0.0, 20.0, 10.0]]), 0.1)[0].tolist()
    [[[4.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 1.0]]]
    """
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], least_side)
    variances = (np.reshape(share, (-1, 1)) * sides) ** 2
    return np.asarray(np.broadcast_to(np.eye(2) * variances[:, None, None, :], (len(boxes), 2, 2, 2)).copy())


def corner_covariances(cov: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the corners' 2 x 2 blocks (N, 2, 2, 2) of full covariances (N, 4, 4) of ``x1, y1, x2, y2``.

    PDQ takes a box's two corners as independent: what ties one corner to the other is left out.

    >>> corner_covariances(np.diag([1.0, 4.0, 9.0, 16.0]))[1].tolist()
    [[9.0, 0.0], [0.0, 16.0]]
    """
    full = np.asarray(cov, np.float64)
    if full.shape[-2:] != (4, 4):
        raise InputError(f"expected cov of shape N x 4 x 4, but got {' x '.join(map(str, full.shape)) or 'a scalar'}")
    return np.stack([full[..., :2, :2], full[..., 2:, 2:]], axis=-3)


BoxFormat = Literal["xyxy", "xywh", "cxcywh"]

"""Two corners; the top-left corner, width and height; the centre, width and height."""

CORNERS_OF: dict[str, Floats] = {
    "xyxy": np.eye(4),
    "xywh": np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]),
    "cxcywh": np.array([[1, 0, -0.5, 0], [0, 1, 0, -0.5], [1, 0, 0.5, 0], [0, 1, 0, 0.5]]),
}

"""``x1, y1, x2, y2`` as a matrix times the four numbers of a format; also the Jacobian of corners."""

NORMALISED_REACH = 2.0

"""Boxes in shares of an image rarely reach beyond it; those that reach twice its size are pixels."""


def check_box_format(value: Any, name: str = "box_format") -> None:
    """Raise unless a value names a layout of boxes."""
    if not isinstance(value, str) or value not in get_args(BoxFormat):
        choices = ", ".join(map(repr, get_args(BoxFormat)))
        hints = {"yxyx": "reorder its columns: boxes[:, [1, 0, 3, 2]]", "xyxyn": 'write "xyxy" and normalised=True'}
        hints |= {"xywhn": 'write "cxcywh" and normalised=True, as YOLO means it', "ltrb": 'write "xyxy"'}
        raise InputError(
            f"expected {name} to be one of {choices}, but got {value!r:.40}", remedy=hints.get(str(value).lower())
        )


def boxes_from(given: Floats, box_format: BoxFormat, sizes: Floats | None) -> tuple[Floats, Floats | None]:
    """Return corners (N, 4) in pixels, and widths and heights (N, 2) where the format says them itself.

    Parameters
    ----------
    given : (N, 4)
        Boxes in `box_format`.
    box_format : {"xyxy", "xywh", "cxcywh"}
        What the four numbers are.
    sizes : (N, 2), optional
        Width and height of each box's image, for boxes in shares of it; None for boxes in pixels.
    """
    check_box_format(box_format)
    if box_format != "xyxy" and (given[:, 2:] < 0).any():
        row = int(np.argmax((given[:, 2:] < 0).any(axis=1)))
        problem = f"expected width and height of at least 0 in {box_format}, but box {row} is {given[row].tolist()}"
        raise InputError(problem, remedy="check the order of its numbers")
    with np.errstate(over="ignore", invalid="ignore"):  # such boxes are rejected by the table, in words
        boxes = given if sizes is None else given * np.tile(sizes, 2)
        if box_format == "xyxy":
            return boxes, None
        # Written out: a sum of products with 0 would turn one infinite number into four that are none.
        low = boxes[:, :2] if box_format == "xywh" else boxes[:, :2] - boxes[:, 2:] / 2
        return np.concatenate([low, low + boxes[:, 2:]], axis=1), boxes[:, 2:]


def sizes_of_rows(normalised: Any, image_sizes: Any, image_ids: npt.NDArray[np.int64], given: Floats) -> Floats | None:
    """Return the width and height of each row's image where boxes are shares of it; None where they are pixels.

    Parameters
    ----------
    normalised : bool
        Whether boxes are shares of their image. Sizes in its place mean yes.
    image_sizes : (width, height), mapping of image id to (width, height), Dataset, GroundTruth or None
        The sizes.
    image_ids : (N,)
        The image of each row.
    given : (N, 4)
        The boxes, to see whether they can be what they are said to be.
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
    """Return the width and height of each of these images, where a mapping, a data set or truth tells; None elsewhere.

    >>> known_sizes({7: (64, 48)}, [7]).tolist()
    [[64.0, 48.0]]
    """
    dataset = getattr(image_sizes, "dataset", image_sizes)  # of ground truth
    if isinstance(dataset, Mapping):
        dataset = Dataset.from_sizes((), dataset)
    if not isinstance(dataset, Dataset):
        return None
    ids = np.asarray(image_ids, np.int64)
    rows = dataset.rows_of(ids)
    if (rows < 0).any():
        unknown = int(ids[rows < 0][0])
        raise InputError("the size of this image is not known", image=unknown, remedy="add it to image_sizes")
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
