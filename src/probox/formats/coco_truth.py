"""COCO ground truth: one JSON object with ``images``, ``categories`` and ``annotations``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.reading import TRUTH_EXPANDS, Source
from probox.formats.format import TruthFormat
from probox.formats.problems import MAX_EXAMPLES, Problems
from probox.notes import InputWarning, Note
from probox.tables.dataset import MAX_PIXELS, MAX_SIDE, Dataset
from probox.tables.geometry import pixels_of_boxes
from probox.tables.groundtruth import GroundTruth, Masks

_MAX_MASK_NUMBERS = 1 << 23
"""How many coordinates and run lengths one mask may have. The masks of a file may have as many more as it has bytes:
COCO's compressed run lengths take about a byte each."""

_MAX_MASK_CROSSINGS = 1 << 23
"""How often the edges of one object may cross columns of pixels."""

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def coco_truth_from_bytes(data: bytes, file: str, problems: Problems) -> GroundTruth:
    """Return the table of a COCO ground-truth file's content; rows with problems are left out if they may be."""
    columns, found = _core.read_coco_truth(
        data,
        lenient=problems.lenient,
        max_examples=MAX_EXAMPLES,
        max_side=MAX_SIDE,
        max_pixels=MAX_PIXELS,
        max_mask_numbers=_MAX_MASK_NUMBERS,
        max_numbers=_MAX_MASK_NUMBERS + len(data),
    )
    if problems.add_raw(found, file):
        _require_sections(columns, file, problems)
    notes: list[Note] = []
    partly = columns["partly_annotated_images"]
    if partly:
        notes.append(InputWarning("partial-annotations", partly))
        problems.warn_note(notes[0], file)
    return _table(columns, file, problems, len(data), notes)


def _require_sections(columns: Mapping[str, Any], file: str, problems: Problems) -> None:
    for key in ("images", "categories", "annotations"):
        if columns[f"has_{key}"]:
            continue
        others = columns["other_keys"]
        found = ", ".join(f'"{name}"' for name in others) or "no other keys"
        remedy = "give COCO ground truth (instances_*.json)"
        if {"classes", "detections"} & set(others):
            remedy = "this looks like detections: name the ground truth first, then the detections"
        error = InputError(f'expected a key "{key}", but got {found}', file=file, remedy=remedy)
        problems.stop(error, "missing key")


def _table(columns: _core._CocoTruth, file: str, problems: Problems, file_bytes: int, notes: list[Note]) -> GroundTruth:
    image_order, image_ids = _distinct(columns["image_ids"], "images", file, problems)
    category_order, category_ids = _distinct(columns["category_ids"], "categories", file, problems)
    image_rows, image_known = _rows_of("image", columns["images"], image_ids, columns, file, problems)
    class_columns, class_known = _rows_of("category", columns["categories"], category_ids, columns, file, problems)
    object_ids = _object_ids(columns, file, problems)
    usable = image_known & class_known
    shapes = np.ones((len(usable), 2), np.int32)
    image_shapes = np.stack([columns["heights"], columns["widths"]], axis=1)[image_order]
    shapes[usable] = image_shapes[image_rows[usable]]
    usable &= _fitting_run_lengths(columns, shapes, usable, file, problems)

    order = np.flatnonzero(usable)
    order = order[np.argsort(image_rows[order], kind="stable")]
    masks = _rasterise(columns, order, shapes, file, file_bytes)
    nothing = (masks.pixels == 0) & np.isnan(columns["boxes"][order, 0])
    if nothing.any():
        notes.append(Note("annotations-without-place", nothing.sum()))
        kept = np.flatnonzero(~nothing)
        order, masks = order[kept], masks.take(kept)
    without = int((columns["kinds"][order] == _core.NO_MASK).sum())
    if without:
        notes.append(Note("annotations-without-mask", without))
    corners, extents = _boxes(columns["boxes"][order], masks, notes)
    areas = columns["areas"][order]
    usual_areas = np.where(masks.pixels > 0, masks.pixels, extents[:, 0] * extents[:, 1])
    return GroundTruth(
        dataset=Dataset(
            classes=tuple(columns["category_names"][int(at)] for at in category_order),
            image_ids=image_ids,
            widths=image_shapes[:, 1],
            heights=image_shapes[:, 0],
            file_names=tuple(columns["file_names"][int(at)] for at in image_order),
            category_ids=category_ids,
            source=file,
        ),
        image_rows=image_rows[order],
        labels=class_columns[order].astype(np.int32),
        boxes=corners,
        masks=masks,
        extents=extents,
        areas=np.where(np.isnan(areas), usual_areas, areas),
        crowd=columns["crowd"][order].astype(bool),
        ids=object_ids[order],
        notes=tuple(notes),
    )


def _distinct(ids: Ids, section: str, file: str, problems: Problems) -> tuple[Ids, Ids]:
    """Return the order that sorts ids, and the sorted ids; a second one of the same id is a problem."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    second = np.concatenate([[False], ordered[1:] == ordered[:-1]]) if len(ids) else np.zeros(0, bool)

    def describe(at: int) -> InputError:
        first = int(order[np.searchsorted(ordered, ordered[at])])
        return InputError(
            f"id {ordered[at]} is also that of {section}[{first}]",
            file=file,
            entry=f"{section}[{order[at]}]",
            remedy="give every entry an id of its own",
        )

    problems.add("duplicate id", np.flatnonzero(second).tolist(), describe)
    return order[~second], ordered[~second]


def _rows_of(
    noun: str, wanted: Ids, known: Ids, columns: _core._CocoTruth, file: str, problems: Problems
) -> tuple[Ids, Flags]:
    """Return the row of each annotation's image or category, and whether there is one."""
    rows = np.searchsorted(known, wanted).astype(np.int64)
    present = rows < len(known)
    present[present] = known[rows[present]] == wanted[present]

    def describe(at: int) -> InputError:
        plural = "images" if noun == "image" else "categories"
        return InputError(
            f"expected the id of one of the {len(known)} {plural}, but got {wanted[at]}",
            file=file,
            image=None if noun == "image" else int(columns["images"][at]),
            entry=f"annotations[{columns['entries'][at]}].{noun}_id",
            remedy=f"add the {noun}, or leave the annotation out",
        )

    problems.add(f"unknown {noun}", np.flatnonzero(~present).tolist(), describe)
    return rows, present


def _object_ids(columns: _core._CocoTruth, file: str, problems: Problems) -> Ids:
    has_id = columns["has_id"].astype(bool)
    entries: Ids = columns["entries"]
    if not has_id.any():
        return entries
    problems.add(
        "missing key",
        np.flatnonzero(~has_id).tolist(),
        lambda at: InputError(
            'expected a key "id" as other annotations have',
            file=file,
            image=int(columns["images"][at]),
            entry=f"annotations[{entries[at]}]",
            remedy="give every annotation an id",
        ),
    )
    ids: Ids = columns["ids"]
    _distinct(ids[has_id], "annotations", file, problems)
    return ids


def _fitting_run_lengths(
    columns: _core._CocoTruth, shapes: npt.NDArray[np.int32], usable: Flags, file: str, problems: Problems
) -> Flags:
    sizes = columns["rle_sizes"]
    wrong: Flags = usable & (columns["kinds"] == _core.RUN_LENGTHS) & (sizes != shapes).any(axis=1)

    def describe(at: int) -> InputError:
        return InputError(
            f"expected run lengths of size {shapes[at].tolist()}, the image's height and width, "
            f"but got {sizes[at].tolist()}",
            file=file,
            image=int(columns["images"][at]),
            entry=f"annotations[{columns['entries'][at]}].segmentation.size",
            remedy="correct the size of the image or of the mask",
        )

    problems.add("mask size", np.flatnonzero(wrong).tolist(), describe)
    return np.logical_not(wrong)


def _rasterise(
    columns: _core._CocoTruth, order: Ids, shapes: npt.NDArray[np.int32], file: str, file_bytes: int
) -> Masks:
    """Return the masks of the annotations in this order; empty ones have 0 pixels."""
    rasterised = _core.rasterise(
        order=order,
        kinds=columns["kinds"],
        piece_offsets=columns["piece_offsets"],
        number_offsets=columns["number_offsets"],
        numbers=columns["numbers"],
        box_pixels=pixels_of_boxes(np.nan_to_num(_corners(columns["boxes"]), nan=0.0), shapes[:, ::-1]),
        heights=np.ascontiguousarray(shapes[:, 0]),
        widths=np.ascontiguousarray(shapes[:, 1]),
        # A few bytes can describe a billion runs; masks of photographs have about one run for every four bytes.
        max_runs=(1 << 24) + file_bytes // 2,
        max_crossings=(1 << 27) + 32 * file_bytes,
        max_object_crossings=_MAX_MASK_CROSSINGS,
    )
    masks = Masks(*rasterised)
    if len(masks) < len(order):
        at = int(order[len(masks)])
        raise InputError(
            f"the masks up to this one take far more memory than a file of {file_bytes:,} bytes should need",
            file=file,
            image=int(columns["images"][at]),
            entry=f"annotations[{columns['entries'][at]}].segmentation",
            remedy="check the size of the image and the mask, or split the file by images",
        )
    return masks


def _corners(boxes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return x1, y1, x2, y2 of boxes x, y, w, h."""
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def _boxes(
    boxes: npt.NDArray[np.float64], masks: Masks, notes: list[Note]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return corners and sizes of boxes x, y, w, h; those of an annotation without one are its mask's."""
    corners = _corners(boxes)
    sizes = boxes[:, 2:].copy()
    without = np.isnan(boxes[:, 0])
    if without.any():
        corners[without] = masks.boxes[without].astype(np.float64) + np.array([0.0, 0.0, 1.0, 1.0])
        sizes[without] = corners[without, 2:] - corners[without, :2]
        notes.append(Note("annotations-without-box", without.sum()))
    return corners, sizes


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    if source.first_character == "[":
        raise InputError(
            "expected COCO ground truth, but got a list",
            file=source.name,
            remedy="this looks like COCO results: name the ground truth first, then the detections",
        )
    return coco_truth_from_bytes(source.content(TRUTH_EXPANDS), source.name, problems)


COCO_TRUTH = TruthFormat(
    name="coco",
    title="COCO ground truth",
    sniff=lambda source: source.first_character in ("{", "["),  # a list is none, which its reader says
    read=_read_truth,
)
