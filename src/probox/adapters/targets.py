"""torchvision's dictionaries: what detectors are trained on, and ground truth made of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.adapters.dictionaries import NO_CLASS, Naming, column_of, corners_of, image_id_of
from probox.errors import InputError
from probox.tables.arrays import to_numpy
from probox.tables.box_formats import BoxFormat
from probox.tables.boxes import extents_of, pixels_of_boxes
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks

__all__ = ["Target", "read_target", "truth_of"]

Floats = npt.NDArray[np.float64]
Size = tuple[int, int]

SIZE_KEYS = {"image_size": True, "orig_size": False, "size": False}
"""Where a target says how large its image is, and whether width comes first; DETR's sizes are height, width."""

OUTSIDE = 1.1
"""Boxes that reach so many times the image's size are no objects at its border."""

ORDER = "image_size and image_sizes are (width, height); orig_size and size are (height, width)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """The objects of one image. Labels are columns of classes."""

    image_id: int | None
    size: Size | None
    labels: npt.NDArray[np.int64]
    boxes: Floats
    extents: Floats
    masks: Masks | None
    areas: Floats
    crowd: npt.NDArray[np.bool_]
    empty: int
    """How many masks had no pixel; these objects are left out."""


def read_target(
    given: Mapping[str, Any], naming: Naming, box_format: BoxFormat = "xyxy", size: Size | None = None
) -> Target:
    """Return what one image's target says; a `size` that is given goes before its own."""
    boxes, extents = corners_of(given["boxes"], "the target's", box_format)
    count = len(boxes)
    labels = naming.columns_at(given["labels"], count, "the target's")
    if (labels < 0).any():
        raise InputError(f"an object is of {NO_CLASS}, which is no class", remedy="leave it out")
    flags = _flags(given.get("masks"), count)
    size = _size(given, flags, size)
    _check_boxes(boxes, size)
    areas, crowd = given.get("area"), given.get("iscrowd")
    with np.errstate(over="ignore", invalid="ignore"):  # such boxes are rejected by the table, in words
        sides = extents_of(boxes) if extents is None else extents
        usual = sides.prod(axis=1)  # as torchmetrics has it
    kept = np.arange(count) if flags is None or not count else np.flatnonzero(flags.any(axis=(1, 2)))
    return Target(
        image_id=image_id_of(given),
        size=size,
        labels=labels[kept],
        boxes=boxes[kept],
        extents=sides[kept],
        masks=None if flags is None or not count else Masks.from_arrays(list(flags[kept])),
        areas=(usual if areas is None else column_of(areas, count, "area", np.float64))[kept],
        crowd=(np.zeros(count, bool) if crowd is None else column_of(crowd, count, "iscrowd", bool))[kept],
        empty=count - len(kept),
    )


def truth_of(dataset: Dataset, targets: Sequence[Target]) -> GroundTruth:
    """Return the objects of images, which are in the order of the data set."""
    masks = []
    for target, shape in zip(targets, dataset.shapes, strict=True):
        shapes = np.broadcast_to(shape, (len(target.boxes), 2))
        masks.append(target.masks or Masks.from_boxes(pixels_of_boxes(target.boxes, shapes)))
    empty = sum(target.empty for target in targets)
    notes = [f"{empty} masks have no pixel: left out"] if empty else []

    def joined(name: str, nothing: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([nothing, *(getattr(target, name) for target in targets)])

    return GroundTruth(
        dataset=dataset,
        image_rows=np.repeat(np.arange(len(targets)), [len(target.boxes) for target in targets]),
        labels=joined("labels", np.zeros(0, np.int64)).astype(np.int32),
        boxes=joined("boxes", np.zeros((0, 4))),
        masks=Masks.concatenate(masks),
        extents=joined("extents", np.zeros((0, 2))),
        areas=joined("areas", np.zeros(0)),
        crowd=joined("crowd", np.zeros(0, bool)),
        notes=(*notes, *_note_swapped(dataset, targets)),
    )


def _note_swapped(dataset: Dataset, targets: Sequence[Target]) -> list[str]:
    """Return a note if boxes of most images reach far outside, but would fit with width and height exchanged."""
    reach = np.array([target.boxes[:, 2:].max(axis=0, initial=0.0) for target in targets]).reshape(-1, 2)
    sizes = dataset.shapes.astype(np.float64)
    outside = (reach > OUTSIDE * sizes + 1).any(axis=1) & (reach <= sizes[:, ::-1] + 1).all(axis=1)
    told = (reach > 0).any(axis=1) & (sizes[:, 0] != sizes[:, 1])
    if not outside.any() or 2 * outside.sum() < told.sum():
        return []
    return [
        f"boxes of {outside.sum()} of {told.sum()} images reach outside, and would fit if width and height were "
        f"exchanged: {ORDER}"
    ]


def _flags(masks: Any, rows: int) -> npt.NDArray[np.bool_] | None:
    """Return the objects' masks (n, H, W); without objects they still tell the image's size."""
    if masks is None:
        return None
    arrays = to_numpy(masks, "masks")
    if arrays.ndim == 4 and arrays.shape[1] == 1:
        arrays = arrays[:, 0]
    if rows == 0 and arrays.size == 0:
        return arrays.astype(bool) if arrays.ndim == 3 and min(arrays.shape[1:]) > 0 else None
    if arrays.ndim != 3 or len(arrays) != rows:
        got = " x ".join(map(str, arrays.shape))
        raise InputError(f"expected masks of shape {rows} x H x W, but got {got}", remedy="one mask for each box")
    if arrays.dtype != bool and not np.isin(arrays, (0, 1)).all():
        raise InputError(
            "expected masks of True and False, or of 0 and 1", remedy="compare with a threshold or an id first"
        )
    return arrays.astype(bool)


def _size(target: Mapping[str, Any], flags: npt.NDArray[np.bool_] | None, given: Size | None) -> Size | None:
    """Return width and height: as given, or where the target or its masks say them."""
    said = {"image_size": given} if given is not None else _said_sizes(target)
    if flags is not None:
        height, width = flags.shape[1:]
        if said and (width, height) not in said.values():
            first = next(iter(said.values()))
            raise InputError(
                f"the image is {first[0]} x {first[1]}, but its masks are {width} x {height}", remedy=ORDER
            )
        return width, height
    if len(set(said.values())) > 1:
        sizes = " and ".join(f"{key} {width} x {height}" for key, (width, height) in said.items())
        raise InputError(
            f"the target says two sizes, {sizes}", remedy="give the one that boxes are in as image_size (width, height)"
        )
    return next(iter(said.values()), None)


def _said_sizes(target: Mapping[str, Any]) -> dict[str, Size]:
    """Return each width and height that a target says; its image_size goes before all others."""
    entries = {key: target.get(key) for key in SIZE_KEYS}
    entries["canvas_size"] = getattr(target["boxes"], "canvas_size", None)
    said: dict[str, Size] = {}
    for key, entry in entries.items():
        if entry is None:
            continue
        width_first = SIZE_KEYS.get(key, False)
        numbers = to_numpy(entry, key).reshape(-1)
        if numbers.shape != (2,) or numbers.dtype.kind not in "iuf" or not (numbers >= 1).all():
            order = "width, height" if width_first else "height, width"
            raise InputError(f"expected {key} to be {order}, but got {entry!r:.60}")
        first, second = (int(number) for number in numbers)
        said[key] = (first, second) if width_first else (second, first)
    return {"image_size": said["image_size"]} if "image_size" in said else said


def _check_boxes(boxes: Floats, size: Size | None) -> None:
    """Raise for boxes that are shares of the image."""
    if not len(boxes):
        return
    if np.abs(boxes).max() <= 1.0 and (size is None or max(size) > 1):
        raise InputError(
            "expected the target's boxes in pixels, but none reaches beyond 1: these are shares of the image",
            remedy="multiply them, and the predictions', by the image's width and height",
        )
