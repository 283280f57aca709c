"""What readers of label files share: rows with boxes become tables, as COCO's files with the same boxes do."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.formats.draft import Draft
from probox.formats.image_names import ids_of_names
from probox.formats.problems import Problems
from probox.notes import Note
from probox.tables.boxes import pixels_of_boxes
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import canonical_name, shared_rest
from probox.tables.masks import Masks
from probox.tables.row_problems import FARTHEST

__all__ = ["LabelRows", "columns_of_names", "dataset_of_images", "draft_of", "truth_of"]

MOST_ROUNDING = 0.02
"""Pixels: detections whose boxes were rounded by more are not put on edges of pixels, where few of theirs lie."""

_MAX_RUNS, _MAX_CROSSINGS, _MAX_OBJECT_CROSSINGS = 1 << 24, 1 << 27, 1 << 23
"""How many runs of pixels the masks of all polygons may have, and how often edges may cross columns of pixels: far more
than those of photographs do, whatever the polygons."""

Polygon = npt.NDArray[np.float64]


def dataset_of_images(
    stems: Sequence[str], names: Sequence[str], sizes: Sequence[tuple[int, int]], **others: Any
) -> tuple[Dataset, npt.NDArray[np.int64]]:
    """Return the data set of images in order of their ids, and the row of each.

    Parameters
    ----------
    stems, names, sizes
        Of each image: its name without folder and ending, which tells its id; its file name; width and height.
    **others
        Further columns of the data set, such as its classes.
    """
    ids = ids_of_names(stems)
    order = np.argsort(ids, kind="stable")
    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order))
    shapes = np.array(sizes, np.int32).reshape(-1, 2)[order]
    dataset = Dataset(
        image_ids=ids[order],
        widths=shapes[:, 0],
        heights=shapes[:, 1],
        file_names=tuple(names[at] for at in order.tolist()),
        **others,
    )
    return dataset, row_of


@dataclasses.dataclass
class LabelRows:
    """Boxes as they are gathered, one entry each: lists that grow together."""

    files: list[str] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)
    images: list[int] = dataclasses.field(default_factory=list)
    """The row of the image in the data set; -1 for none."""
    labels: list[int] = dataclasses.field(default_factory=list)
    boxes: list[tuple[float, float, float, float]] = dataclasses.field(default_factory=list)
    """x, y, width, height in pixels."""
    scores: list[float] = dataclasses.field(default_factory=list)
    """Of detections alone."""
    crowd: list[bool] = dataclasses.field(default_factory=list)
    """Of truth alone: a region that mAP and LRP ignore."""
    polygons: dict[int, Polygon] = dataclasses.field(default_factory=dict)
    """By row: x1, y1, x2, y2, ... in pixels, where an object has more than a box."""
    regions: set[int] = dataclasses.field(default_factory=set)
    """Rows of regions without an object, which have no pixels."""

    entry: str = "line"
    """What messages call a line."""

    def place(self, row: int) -> tuple[str, str]:
        """Return the file and the entry of a row, for messages."""
        return self.files[row], f"{self.entry} {self.lines[row]}"

    def usable(self, problems: Problems, *, scored: bool) -> npt.NDArray[np.int64]:
        """Return the rows that a table can hold, in their order; the others are reported."""
        boxes = np.array(self.boxes, np.float64).reshape(-1, 4)
        with np.errstate(over="ignore", invalid="ignore"):
            reach = np.concatenate([boxes, boxes[:, :2] + boxes[:, 2:]], axis=1)
            finite = (np.abs(reach) <= FARTHEST).all(axis=1)  # NaN is not
        ordered = (boxes[:, 2:] >= 0).all(axis=1)
        self._add(problems, "non-finite box", ~finite, lambda row: (
            f"expected a box of finite numbers, up to {FARTHEST:g} pixels", "leave it out, or correct it"
        ))  # fmt: skip
        self._add(problems, "inverted box", finite & ~ordered, lambda row: (
            f"expected width and height of at least 0, but got {boxes[row, 2]:g} x {boxes[row, 3]:g} pixels",
            "check the order of the numbers",
        ))  # fmt: skip
        good = finite & ordered
        if scored:
            scores = np.array(self.scores, np.float64)
            fine = (scores >= 0) & (scores <= 1)
            self._add(problems, "label probability outside [0, 1]", good & ~fine, lambda row: (
                f"expected a score between 0 and 1, but got {scores[row]:g}", "apply softmax or sigmoid before writing"
            ))  # fmt: skip
            good &= fine
        return np.flatnonzero(good)

    def _add(
        self,
        problems: Problems,
        kind: str,
        wrong: npt.NDArray[np.bool_],
        words: Callable[[int], tuple[str, str]],
    ) -> None:
        def describe(row: int) -> InputError:
            file, entry = self.place(row)
            problem, remedy = words(row)
            return InputError(problem, file=file, entry=entry, remedy=remedy)

        problems.add(kind, np.flatnonzero(wrong).tolist(), describe)


def truth_of(
    rows: LabelRows, dataset: Dataset, problems: Problems, notes: Sequence[Note], *, rounding: Sequence[float] = ()
) -> GroundTruth:
    """Return the table of objects; those without a polygon have the pixels of their box, as in COCO's files.

    `rounding` is that of `_restore_corners`, for boxes that were written as fractions of the image.
    """
    kept = rows.usable(problems, scored=False)
    images = np.array(rows.images, np.int64)
    kept = kept[np.argsort(images[kept], kind="stable")]
    shapes = dataset.shapes[images] if len(images) else np.ones((0, 2), np.int32)
    corners, extents = _restore_corners(np.array(rows.boxes, np.float64).reshape(-1, 4), shapes, rounding)
    masks = _masks(rows, kept, corners, shapes)
    sizes = extents[kept]
    drawn = np.isin(kept, list(rows.polygons))
    said = list(notes)
    plain = len(kept) - int(drawn.sum()) - len(rows.regions.intersection(kept.tolist()))
    if plain:
        said.append(Note("objects-without-mask", plain))
    crowd = np.array(rows.crowd, bool) if rows.crowd else np.zeros(len(images), bool)
    return GroundTruth(
        dataset=dataset,
        image_rows=images[kept],
        labels=np.array(rows.labels, np.int32)[kept],
        boxes=corners[kept],
        masks=masks,
        extents=sizes,
        areas=np.where(drawn & (masks.pixels > 0), masks.pixels, sizes[:, 0] * sizes[:, 1]),
        crowd=crowd[kept],
        notes=tuple(said),
    )


def _restore_corners(
    boxes: npt.NDArray[np.float64], shapes: npt.NDArray[np.int32], rounding: Sequence[float], most: float = math.inf
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return corners and extents of boxes (x, y, width, height), without the effect of rounding on whole pixels.

    A corner that rounding alone keeps from the edge of a pixel is put there, unless nothing of the box would be left:
    199.9999998 would otherwise begin a pixel before 200 does. `rounding` is how far it may move a corner of each box,
    in fractions of the image; empty where boxes were written in pixels. Where that is more than `most` pixels, corners
    stay: most of those near an edge would be there by chance.
    """
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    if not len(rounding):
        return corners, boxes[:, 2:]
    edges = np.round(corners)
    reach = np.array(rounding)[:, None] * np.tile(shapes, 2)
    moved = np.where(np.abs(corners - edges) <= np.where(reach <= most, reach, 0.0), edges, corners)
    thin = np.tile((moved[:, :2] == moved[:, 2:]) & (corners[:, :2] < corners[:, 2:]), 2)
    corners = np.where(thin, corners, moved)
    extents = corners[:, 2:] - corners[:, :2]
    whole = (corners[:, :2] == edges[:, :2]) & (corners[:, 2:] == edges[:, 2:])
    return corners, np.where(whole | (np.abs(extents - boxes[:, 2:]) > 1e-9), extents, boxes[:, 2:])


def _masks(
    rows: LabelRows, order: npt.NDArray[np.int64], corners: npt.NDArray[np.float64], shapes: npt.NDArray[np.int32]
) -> Masks:
    """Return the masks of these rows, in this order."""
    n = len(rows.images)
    pixels = np.tile(np.array([0, 0, -1, -1], np.int32), (n, 1))
    pixels[order] = pixels_of_boxes(corners[order], shapes[order])
    pixels[list(rows.regions)] = [0, 0, -1, -1]
    drawn = np.zeros(n, bool)
    drawn[list(rows.polygons)] = True
    polygons = [rows.polygons[row] for row in sorted(rows.polygons)]
    numbers = np.concatenate([np.zeros(0), *polygons])
    masks = Masks(*_core.rasterise(
        order=order,
        kinds=np.where(drawn, _core.POLYGONS, _core.NO_MASK).astype(np.uint8),
        piece_offsets=np.concatenate([[0], np.cumsum(drawn)]).astype(np.int64),
        number_offsets=np.array(list(accumulate(map(len, polygons), initial=0)), np.int64),
        numbers=numbers,
        box_pixels=pixels,
        heights=np.ascontiguousarray(shapes[:, 1]),
        widths=np.ascontiguousarray(shapes[:, 0]),
        max_runs=_MAX_RUNS + 4 * len(numbers),
        max_crossings=_MAX_CROSSINGS + 32 * len(numbers),
        max_object_crossings=_MAX_OBJECT_CROSSINGS,
    ))  # fmt: skip
    if len(masks) < len(order):
        file, entry = rows.place(int(order[len(masks)]))
        raise InputError(
            "the masks up to this one take far more memory than polygons of so many points should need",
            file=file,
            entry=entry,
            remedy="check the polygon and the size of the image",
        )
    return masks


def draft_of(
    rows: LabelRows,
    dataset: Dataset,
    problems: Problems,
    *,
    classes: Sequence[str],
    source: str,
    notes: Sequence[Note] = (),
    rounding: Sequence[float] = (),
) -> Draft:
    """Return the draft of detections: the stated class has the score, the others share the rest evenly.

    `rounding` is that of `_restore_corners`, for boxes that were written as fractions of the image.
    """
    kept = rows.usable(problems, scored=True)
    images = np.array(rows.images, np.int64)
    kept = kept[images[kept] >= 0]
    shapes = dataset.shapes[images] if len(dataset) else np.ones((len(images), 2), np.int32)
    boxes = np.array(rows.boxes, np.float64).reshape(-1, 4)
    corners, extents = _restore_corners(boxes, shapes, rounding, most=MOST_ROUNDING)
    labels, scores = np.array(rows.labels, np.int32)[kept], np.array(rows.scores, np.float64)[kept]
    return Draft(
        classes=tuple(classes),
        image_ids=dataset.image_ids[images[kept]],
        boxes=corners[kept],
        label_probs=shared_rest(scores, labels, len(classes), source),
        labels=labels,
        scores=scores,
        extents=extents[kept],
        source=source,
        place=lambda row: rows.place(int(kept[row])),
        notes=tuple(notes),
    )


def columns_of_names(names: Sequence[str], classes: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the column of each name, and all classes: the truth's, then those that it does not have.

    Names are compared as everywhere (case and synonyms), equal ones first. A class that the truth lacks keeps its
    detections, which are wrong wherever they are.

    >>> columns_of_names(["Car", "ufo"], ["car", "dog"])
    ({'Car': 0, 'ufo': 2}, ('car', 'dog', 'ufo'))
    """
    known = list(classes)
    by_name = {name: at for at, name in reversed(list(enumerate(known)))}
    by_meaning: dict[str, int] = {}
    for at, name in enumerate(known):
        by_meaning[canonical_name(name)] = -1 if canonical_name(name) in by_meaning else at
    columns: dict[str, int] = {}
    for name in names:
        at = by_name.get(name, by_meaning.get(canonical_name(name), -1))
        if at < 0:
            at = by_name[name] = len(known)
            known.append(name)
        columns[name] = at
    return columns, tuple(known)
