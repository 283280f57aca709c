"""Boxes in the layouts that people hold them in, and what a Gaussian over four such numbers says of the corners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.arrays import to_numpy
from probox.tables.columns import frozen
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth

__all__ = ["CORNERS_OF", "BoxFormat", "boxes_from", "check_box_format", "known_sizes", "sizes_of_rows"]

Floats = npt.NDArray[np.float64]

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
    dataset = image_sizes.dataset if isinstance(image_sizes, GroundTruth) else image_sizes
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
