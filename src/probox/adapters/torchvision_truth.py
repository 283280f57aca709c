"""torchvision's dictionaries: what its detectors are trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.adapters.images import image_ids_of, listed, sizes_of
from probox.adapters.torchvision import NO_CLASS, arrays_of, class_columns, labels_from_one, own_id
from probox.errors import InputError
from probox.tables.arrays import to_numpy
from probox.tables.box_formats import boxes_from, check_box_format
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks

__all__ = ["truth_from_torchvision"]

HALF_SURE = 0.5
"""Masks of numbers: pixels above this are the object's."""


def truth_from_torchvision(
    targets: Any,
    *,
    classes: Sequence[str],
    image_ids: Any = None,
    image_sizes: Any = None,
) -> GroundTruth:
    """Return ground truth of the dictionaries that torchvision's detectors are trained on.

    Parameters
    ----------
    targets : dict, or list of them
        Of each image: ``boxes (n, 4)`` in pixels and ``labels (n,)``. Optional: ``masks (n, H, W)``, whose pixels PDQ
        goes by (without them, those of the boxes), ``iscrowd (n,)``, ``area (n,)``, ``image_id``, and ``size`` or
        ``orig_size`` as (height, width).
    classes : sequence of str
        As for `from_torchvision`: labels count from 1.
    image_ids : int or sequence of int
        The id of each image; by default that of an entry ``image_id``.
    image_sizes : mapping of image id to (width, height), Dataset, or (width, height) of each image, optional
        How large images are, where neither masks nor ``size`` tell.

    Examples
    --------
    >>> target = {"boxes": [[10, 20, 50, 60]], "labels": [2], "image_id": 7}
    >>> truth_from_torchvision(target, classes=["cup", "dog"], image_sizes=(64, 64))
    GroundTruth(1 images, 1 objects, 2 classes)
    """
    results = listed(targets, isinstance(targets, Mapping))
    ids = image_ids_of(image_ids, len(results), [own_id(result) for result in results])
    names, columns = class_columns(classes)
    kept = [name for name, column in zip(names, columns, strict=True) if column >= 0]
    parts: list[dict[str, Any]] = []
    for number, (image, target) in enumerate(zip(ids, results, strict=True)):
        given = arrays_of(target, image, ("boxes", "labels"), ("masks", "iscrowd", "area"))
        boxes = _corners(target["boxes"], given["boxes"])
        labels = columns[labels_from_one(given["labels"], names, image)]
        if (labels < 0).any():
            raise InputError(f"an object is of {NO_CLASS}, which is no class", image=image)
        size = _size(target, given["masks"], image_sizes, ids, number)
        _check_boxes(boxes, size, image)
        parts.append(given | {"boxes": boxes, "labels": labels, "size": size, "image": image})
    sizes = {image: (int(part["size"][0]), int(part["size"][1])) for image, part in zip(ids, parts, strict=True)}
    dataset = Dataset.from_sizes(kept, sizes)
    order = np.argsort(np.asarray(ids, np.int64), kind="stable")
    ordered = [parts[at] for at in order]
    return _truth(dataset, ordered)


def _corners(given: Any, boxes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return boxes (n, 4) as corners; torchvision's own type of boxes says what its four numbers are."""
    if boxes.size == 0:
        return np.zeros((0, 4))
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise InputError(f"expected boxes of shape N x 4, but got {' x '.join(map(str, boxes.shape))}")
    name: Any = getattr(getattr(given, "format", None), "name", "XYXY").lower()
    check_box_format(name)
    return boxes_from(boxes.astype(np.float64), name, None)[0]


def _size(target: Mapping[str, Any], masks: Any, image_sizes: Any, ids: Sequence[int], number: int) -> Any:
    """Return width and height of an image."""
    if image_sizes is not None:
        return sizes_of(image_sizes, ids)[number]
    if masks is not None and masks.ndim == 3:
        return masks.shape[:0:-1]
    for size in (getattr(target["boxes"], "canvas_size", None), target.get("size"), target.get("orig_size")):
        if size is not None:
            return to_numpy(size, "size").reshape(-1)[::-1]
    raise InputError(
        "the size of this image is not known", image=ids[number], remedy="give image_sizes={image id: (width, height)}"
    )


def _check_boxes(boxes: npt.NDArray[np.float64], size: Any, image: int) -> None:
    """Raise for boxes that are shares of the image, or fit it only when its width and height are swapped."""
    if not len(boxes):
        return
    if np.abs(boxes).max() <= 1.0 < max(size):
        raise InputError(
            "expected boxes in pixels, but none reaches beyond 1: these are shares of the image",
            image=image,
            remedy="multiply them by the image's size",
        )
    reach = boxes[:, 2:].max(axis=0)
    width, height = float(size[0]), float(size[1])
    if (reach > (width + 1, height + 1)).any() and (reach <= (height + 1, width + 1)).all():
        raise InputError(
            f"boxes reach to {reach[0]:g}, {reach[1]:g} in an image of {width:g} x {height:g}, which would fit "
            f"{height:g} x {width:g}",
            image=image,
            remedy="image_sizes are (width, height), size in a target is (height, width)",
        )


def _truth(dataset: Dataset, parts: Sequence[Mapping[str, Any]]) -> GroundTruth:
    """Return the table of images in the order of the data set."""
    counts = [len(part["boxes"]) for part in parts]

    def column(name: str, usual: Any) -> npt.NDArray[Any]:
        values = []
        for part, count in zip(parts, counts, strict=True):
            given = usual(part) if part.get(name) is None else part[name].reshape(-1)
            if len(given) != count:
                raise InputError(f"got {count} boxes, but {len(given)} entries of {name}", image=part["image"])
            values.append(given)
        return np.concatenate([np.zeros(0), *values])

    with np.errstate(over="ignore", invalid="ignore"):  # such boxes are rejected by the table, in words
        areas = column("area", lambda part: np.prod(part["boxes"][:, 2:] - part["boxes"][:, :2], axis=1))
    truth = GroundTruth(
        dataset=dataset,
        image_rows=np.repeat(np.arange(len(parts)), counts),
        labels=column("labels", lambda part: part["labels"]).astype(np.int32),
        boxes=np.concatenate([np.zeros((0, 4)), *(part["boxes"] for part in parts)]),
        masks=Masks.from_boxes(np.zeros((sum(counts), 4), np.int32)),
        areas=areas,
        crowd=column("iscrowd", lambda part: np.zeros(len(part["boxes"]))).astype(bool),
    )
    boxed = truth.as_box_masks()
    if all(part.get("masks") is None for part in parts):
        return truth.replace(masks=boxed)
    return truth.replace(masks=_masks(boxed, parts, counts))


def _masks(boxed: Masks, parts: Sequence[Mapping[str, Any]], counts: Sequence[int]) -> Masks:
    """Return the pixels of objects: those of their mask, or of their box in images without masks."""
    pieces, at = [], 0
    for part, count in zip(parts, counts, strict=True):
        masks = part.get("masks")
        rows = np.arange(at, at + count)
        if masks is None or count == 0:
            pieces.append(boxed.take(rows))
        else:
            width, height = (int(side) for side in part["size"])
            if masks.shape != (count, height, width):
                shape = " x ".join(map(str, masks.shape))
                problem = f"expected masks of shape {count} x {height} x {width}, but got {shape}"
                raise InputError(problem, image=part["image"])
            pixels = masks if masks.dtype == bool else masks > HALF_SURE
            if not pixels.reshape(count, -1).any(axis=1).all():
                raise InputError("a mask has no pixel", image=part["image"], remedy="leave out objects without pixels")
            pieces.append(Masks.from_arrays(list(pixels)))
        at += count
    return Masks.concatenate(pieces)
