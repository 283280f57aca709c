"""COCO ground truth: one JSON object with ``images``, ``categories`` and ``annotations``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.formats.files import Paths, read_bytes
from probox.formats.problems import raise_first
from probox.groundtruth import GroundTruth
from probox.masks import Masks

__all__ = ["coco_truth_from_bytes", "read_coco"]

_NO_MASK, _POLYGONS, _RUN_LENGTHS = 0, 1, 2


def read_coco(path: Paths) -> GroundTruth:
    """Read COCO ground truth from a ``.json`` or ``.json.gz`` file.

    Polygons and run lengths become exactly the pixels that the COCO API gives. An annotation without
    ``segmentation`` gets the pixels of its box; one whose mask has no pixel is left out. Both are
    counted in the table's `notes`.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    GroundTruth
        Images in ascending order of id, objects in the order of the file within an image, classes in
        ascending order of category id.
    """
    return coco_truth_from_bytes(read_bytes(path), str(path))


def coco_truth_from_bytes(data: bytes, file: str) -> GroundTruth:
    """Return the table of a COCO ground-truth file's content."""
    columns, problems = _core.read_coco_truth(data, lenient=False)
    raise_first(problems, file)
    _require_sections(columns, file)
    return truth_from_columns(columns, file)


def _require_sections(columns: dict[str, Any], file: str) -> None:
    for key in ("images", "categories", "annotations"):
        if columns[f"has_{key}"]:
            continue
        others = set(columns["other_keys"])
        found = ", ".join(f'"{name}"' for name in columns["other_keys"]) or "no other keys"
        remedy = "give COCO ground truth (instances_*.json)"
        if {"classes", "detections"} & others:
            remedy = "this looks like detections: name the ground truth first, then the detections"
        raise InputError(f'expected a key "{key}", but got {found}', file=file, remedy=remedy)


def truth_from_columns(columns: dict[str, Any], file: str) -> GroundTruth:
    """Return the table made of the kernel's columns; anything that does not fit together raises."""
    image_order, image_ids = _distinct(columns["image_ids"], "images", file)
    category_order, category_ids = _distinct(columns["category_ids"], "categories", file)
    image_rows = _rows_of(columns["images"], image_ids, columns, "image_id", "image", file)
    class_columns = _rows_of(columns["categories"], category_ids, columns, "category_id", "category", file)
    object_ids = _object_ids(columns, file)
    widths = columns["widths"][image_order]
    heights = columns["heights"][image_order]

    order = np.argsort(image_rows, kind="stable")
    masks = _rasterise(columns, order, image_rows, widths, heights, file)
    notes: list[str] = []
    empty = masks.pixels == 0
    if empty.any():
        kept = np.flatnonzero(~empty)
        order, masks = order[kept], masks.take(kept)
        notes.append(f"{int(empty.sum())} annotations whose mask has no pixel were left out")
    without = int((columns["kinds"][order] == _NO_MASK).sum())
    if without:
        notes.append(f"{without} annotations have no segmentation: their boxes are used as masks")

    sizes = columns["boxes"][order, 2:]
    corners = np.concatenate([columns["boxes"][order, :2], columns["boxes"][order, :2] + sizes], axis=1)
    unboxed = np.isnan(corners[:, 0])
    if unboxed.any():
        inclusive = masks.boxes[unboxed].astype(np.float64)
        corners[unboxed] = inclusive + np.array([0.0, 0.0, 1.0, 1.0])
        sizes[unboxed] = corners[unboxed, 2:] - corners[unboxed, :2]
        notes.append(f"{int(unboxed.sum())} annotations have no bbox: the box around their mask is used")
    areas = columns["areas"][order]
    areas = np.where(np.isnan(areas), masks.pixels, areas)
    return GroundTruth(
        classes=tuple(columns["category_names"][int(at)] for at in category_order),
        image_ids=image_ids,
        widths=widths,
        heights=heights,
        object_image=image_rows[order],
        object_class=class_columns[order].astype(np.int32),
        boxes=corners,
        masks=masks,
        sizes=sizes,
        areas=areas,
        crowd=columns["crowd"][order].astype(bool),
        object_ids=object_ids[order],
        file_names=tuple(columns["file_names"][int(at)] for at in image_order),
        category_ids=category_ids,
        source=file,
        notes=tuple(notes),
    )


def _distinct(
    ids: npt.NDArray[np.int64], section: str, file: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the order that sorts ids, and the sorted ids; two equal ones raise."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        at = int(twice[0])
        raise InputError(
            f"id {ordered[at]} is also that of {section}[{order[at]}]",
            file=file,
            entry=f"{section}[{order[at + 1]}]",
            remedy="give every entry an id of its own",
        )
    return order, ordered


def _rows_of(
    wanted: npt.NDArray[np.int64],
    known: npt.NDArray[np.int64],
    columns: dict[str, Any],
    key: str,
    noun: str,
    file: str,
) -> npt.NDArray[np.int64]:
    """Return the row of each annotation's image or category."""
    rows = np.searchsorted(known, wanted)
    present = rows < len(known)
    present[present] = known[rows[present]] == wanted[present]
    if not present.all():
        at = int(np.flatnonzero(~present)[0])
        raise InputError(
            f"expected the id of one of the {len(known)} {'images' if noun == 'image' else 'categories'}, "
            f"but got {wanted[at]}",
            file=file,
            image=None if noun == "image" else int(columns["images"][at]),
            entry=f"annotations[{columns['entries'][at]}].{key}",
            remedy=f"add the {noun}, or leave the annotation out",
        )
    return rows.astype(np.int64)


def _object_ids(columns: dict[str, Any], file: str) -> npt.NDArray[np.int64]:
    has_id = columns["has_id"].astype(bool)
    entries: npt.NDArray[np.int64] = columns["entries"]
    if not has_id.any():
        return entries
    if not has_id.all():
        at = int(np.flatnonzero(~has_id)[0])
        raise InputError(
            'expected a key "id" as other annotations have', file=file, entry=f"annotations[{entries[at]}]"
        )
    ids: npt.NDArray[np.int64] = columns["ids"]
    _distinct(ids, "annotations", file)
    return ids


def _rasterise(
    columns: dict[str, Any],
    order: npt.NDArray[np.int64],
    image_rows: npt.NDArray[np.int64],
    widths: npt.NDArray[np.int32],
    heights: npt.NDArray[np.int32],
    file: str,
) -> Masks:
    """Return the masks of the annotations in this order; empty ones have 0 pixels."""
    object_widths, object_heights = widths[image_rows], heights[image_rows]
    sizes = columns["rle_sizes"]
    wrong = (columns["kinds"] == _RUN_LENGTHS) & ((sizes[:, 0] != object_heights) | (sizes[:, 1] != object_widths))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"expected run lengths of size [{object_heights[at]}, {object_widths[at]}] (the image's), "
            f"but got [{sizes[at, 0]}, {sizes[at, 1]}]",
            file=file,
            image=int(columns["images"][at]),
            entry=f"annotations[{columns['entries'][at]}].segmentation.size",
            remedy="correct the size of the image or of the mask",
        )
    boxes, pixels, offsets, runs = _core.rasterise(
        order,
        columns["kinds"],
        columns["piece_offsets"],
        columns["number_offsets"],
        columns["numbers"],
        box_pixels(columns["boxes"], object_widths, object_heights),
        object_heights,
        object_widths,
    )
    return Masks(boxes, pixels, offsets, runs)


def box_pixels(
    boxes: npt.NDArray[np.float64], widths: npt.NDArray[np.int32], heights: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Return the inclusive pixels of boxes x, y, w, h: floor(x)..ceil(x + w), floor(y)..ceil(y + h), in the image."""
    known = np.nan_to_num(boxes, nan=0.0)
    last = np.stack([widths, heights], axis=1).astype(np.float64) - 1.0
    low = np.clip(np.floor(known[:, :2]), 0.0, last)
    high = np.clip(np.ceil(known[:, :2] + known[:, 2:]), low, last)
    return np.ascontiguousarray(np.concatenate([low, high], axis=1), dtype=np.int32)
