"""COCO's greedy matching of detections with objects, kept so that every box measure follows from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.support.parallel import thread_count
from probox.tables.arguments import check_tables
from probox.tables.columns import frozen, rows_of
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import column_of_each

__all__ = ["AREA_RANGES", "IOU_THRESHOLDS", "MAX_DETECTIONS", "SIZES", "BoxMatches", "match_boxes"]

IOU_THRESHOLDS = np.linspace(0.5, 0.95, 10)
"""The overlaps at which COCO matches; LRP uses the first."""

SIZES = ("all", "small", "medium", "large")
"""Names of the area ranges."""

AREA_RANGES = np.array([[0.0, 1e10], [0.0, 32.0**2], [32.0**2, 96.0**2], [96.0**2, 1e10]])
"""Square pixels, both ends included."""

MAX_DETECTIONS = 100
"""How many detections of an image and class take part, those of the highest scores."""

for _constant in (IOU_THRESHOLDS, AREA_RANGES):
    _constant.flags.writeable = False


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class BoxMatches:
    """What became of every detection and object under COCO's matching.

    All that average precision and LRP need, without boxes: a table of detections (those that take
    part: of a known class, among the 100 best of their image and class), a table of objects, and the
    images. Rows are sorted by image id, so parts of a set of images can be put together in any order.

    Parameters
    ----------
    classes : sequence of str
        Class names; `label` and `object_label` count in them.
    image_ids : (I,) int64
        Ids of all images, ascending, also of those without objects or detections.
    image : (N,) int32
        Row of the detection's image, ascending; within an image by `label`, then `rank`.
    label : (N,) int32
        The class.
    score : (N,) float64
        Its score.
    rank : (N,) int32
        How many detections of its image and class go before it.
    number : (N,) int32
        Its number in its image, counting all detections in the order of their table.
    matched : (N, 4) uint16
        Bit t of column a: it has a match at IoU threshold t when only objects of area range a count.
    ignored : (N, 4) uint16
        Bit t of column a: it is neither right nor wrong there (its match is a crowd or outside the
        range; or it has none and is outside the range itself).
    iou : (N, 4) float64
        Overlap with its match at the first threshold, 0.5; NaN without one.
    matched_object : (N,) int32
        Number in its image of its match at IoU 0.5, area range all; -1 without one.
    object_image : (M,) int32
        Row of the object's image, ascending.
    object_label : (M,) int32
        Its class.
    object_counts : (M,) uint8
        Bit a: it counts in area range a.
    left_out : int
        Detections whose class or image the truth does not know.
    """

    classes: tuple[str, ...]
    image_ids: npt.NDArray[np.int64]
    image: npt.NDArray[np.int32]
    label: npt.NDArray[np.int32]
    score: npt.NDArray[np.float64]
    rank: npt.NDArray[np.int32]
    number: npt.NDArray[np.int32]
    matched: npt.NDArray[np.uint16]
    ignored: npt.NDArray[np.uint16]
    iou: npt.NDArray[np.float64]
    matched_object: npt.NDArray[np.int32]
    object_image: npt.NDArray[np.int32]
    object_label: npt.NDArray[np.int32]
    object_counts: npt.NDArray[np.uint8]
    left_out: int = 0

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # the dataclass is frozen for everybody else
        put("classes", tuple(self.classes))
        put("left_out", int(self.left_out))
        put("image_ids", frozen(self.image_ids, np.int64, (-1,), "image_ids"))
        rows, objects = len(self.image), len(self.object_image)
        for name, (dtype, width) in _DETECTION_COLUMNS.items():
            put(name, frozen(getattr(self, name), dtype, (rows, width) if width else (rows,), name))
        for name, dtype in _OBJECT_COLUMNS.items():
            put(name, frozen(getattr(self, name), dtype, (objects,), name))
        if np.any(np.diff(self.image_ids) <= 0):
            raise InputError("image ids must be distinct and ascending")
        for name, column in (("image", self.image), ("object_image", self.object_image)):
            if len(column) and (column[0] < 0 or column[-1] >= len(self.image_ids) or np.any(np.diff(column) < 0)):
                raise InputError(f"{name} must be ascending rows of the image table")
        for name, column in (("label", self.label), ("object_label", self.object_label)):
            if len(column) and (column.min() < 0 or column.max() >= len(self.classes)):
                raise InputError(f"{name} must count in classes")

    def __len__(self) -> int:
        """Return the number of detections that take part."""
        return len(self.image)

    def __repr__(self) -> str:
        return f"BoxMatches({len(self)} detections, {len(self.object_image)} objects, {len(self.image_ids)} images)"

    def objects_per_class(self) -> npt.NDArray[np.int64]:
        """Return how many objects of each class count in each area range, (C, 4)."""
        counts = np.zeros((len(self.classes), len(SIZES)), np.int64)
        for size in range(len(SIZES)):
            labels = self.object_label[(self.object_counts >> size) & 1 == 1]
            counts[:, size] = np.bincount(labels, minlength=len(self.classes))
        return counts

    def by_score(self, threads: int | None = None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return rows by class, then descending score (ties by image, then rank), and where each class starts."""
        return _core.score_order(self.label, self.score, len(self.classes), thread_count(threads))

    def above(self, threshold: float) -> BoxMatches:
        """Return what matching only detections of a score greater than `threshold` would give.

        Matching goes from the highest score down, so detections further down never change a match.
        """
        return self._with(detections=self.score > threshold)

    def select_images(self, image_ids: npt.ArrayLike) -> BoxMatches:
        """Return the matches of these images alone; ids that are not here are passed over.

        What was left out is not known per image and stays as it is.
        """
        kept = np.isin(self.image_ids, np.asarray(image_ids, dtype=np.int64))
        row = np.cumsum(kept, dtype=np.int32) - 1
        part = self._with(detections=kept[self.image], objects=kept[self.object_image])
        return dataclasses.replace(
            part, image_ids=self.image_ids[kept], image=row[part.image], object_image=row[part.object_image]
        )

    def _with(
        self, *, detections: npt.NDArray[np.bool_] | None = None, objects: npt.NDArray[np.bool_] | None = None
    ) -> BoxMatches:
        changes: dict[str, Any] = {}
        if detections is not None:
            changes.update((name, getattr(self, name)[detections]) for name in _DETECTION_COLUMNS)
        if objects is not None:
            changes.update((name, getattr(self, name)[objects]) for name in _OBJECT_COLUMNS)
        return dataclasses.replace(self, **changes)

    @classmethod
    def concatenate(cls, parts: Sequence[BoxMatches]) -> BoxMatches:
        """Return the matches of all parts' images; the order of the parts does not matter.

        The parts must know the same classes and share no image.
        """
        if not parts:
            raise InputError("expected at least one part to concatenate")
        for part in parts:
            if part.classes != parts[0].classes:
                raise InputError("expected parts with the same classes in the same order")
        ids = np.concatenate([part.image_ids for part in parts])
        order = np.argsort(ids, kind="stable")
        if np.any(np.diff(ids[order]) == 0):
            twice = int(ids[order][1:][np.diff(ids[order]) == 0][0])
            raise InputError("an image is in two parts", image=twice, remedy="evaluate each image once")
        row = np.empty(len(ids), np.int32)
        row[order] = np.arange(len(ids), dtype=np.int32)
        starts = np.concatenate([[0], np.cumsum([len(part.image_ids) for part in parts])])
        columns: dict[str, npt.NDArray[Any]] = {}
        for key, names in (("image", list(_DETECTION_COLUMNS)), ("object_image", list(_OBJECT_COLUMNS))):
            images = np.concatenate(
                [row[start + getattr(part, key)] for start, part in zip(starts, parts, strict=False)]
            )
            by_image = np.argsort(images, kind="stable")
            for name in names:
                values = images if name == key else np.concatenate([getattr(part, name) for part in parts])
                columns[name] = values[by_image]
        left_out = sum(part.left_out for part in parts)
        return cls(classes=parts[0].classes, image_ids=ids[order], left_out=left_out, **columns)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as plain arrays, ready for `numpy.savez`."""
        arrays = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("classes", "left_out")
        }
        return {"classes": np.array(self.classes, dtype=np.str_), "left_out": np.array(self.left_out), **arrays}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> BoxMatches:
        """Return the matches that `to_arrays` described."""
        missing = sorted({field.name for field in dataclasses.fields(cls)} - set(arrays))
        if missing:
            raise InputError(f"expected box matches with a column {missing[0]!r}, but there is none")
        columns = {field.name: arrays[field.name] for field in dataclasses.fields(cls)}
        columns["classes"] = tuple(str(name) for name in arrays["classes"])  # type: ignore[assignment]
        return cls(**columns)  # type: ignore[arg-type]


_DETECTION_COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "image": (np.int32, 0),
    "label": (np.int32, 0),
    "score": (np.float64, 0),
    "rank": (np.int32, 0),
    "number": (np.int32, 0),
    "matched": (np.uint16, len(SIZES)),
    "ignored": (np.uint16, len(SIZES)),
    "iou": (np.float64, len(SIZES)),
    "matched_object": (np.int32, 0),
}
"""Columns with one row per detection: their type, and their width where they are wider than one."""

_OBJECT_COLUMNS: dict[str, type[np.generic]] = {
    "object_image": np.int32,
    "object_label": np.int32,
    "object_counts": np.uint8,
}


def match_boxes(
    truth: GroundTruth, found: Detections, *, threads: int | None = None, call: str = "match_boxes"
) -> BoxMatches:
    """Match detections with objects as COCO does, at ten IoU thresholds and for four area ranges at once.

    In each image and class, detections take objects in the order of their scores, the earlier row
    first among equals, at most 100 of them. At threshold t a detection takes, of the objects still
    free with IoU >= t, the one it overlaps most. Crowds and objects outside the area range are
    taken only when nothing else is left and make the detection ignored; a crowd takes any number, and
    its IoU is the share of the detection that lies in it.

    Classes are matched by name with synonyms. A detection's class is the one it states, or its most probable one
    among the truth's. Detections of classes or images that the truth does not have are left out, and counted in
    `BoxMatches.left_out`.

    Parameters
    ----------
    truth : GroundTruth
        What is there.
    found : Detections
        What was found: stated class, score, box.
    threads : int, optional
        Default: as many as the process may use. The result is the same to the bit for any number.
    call : str
        What the user called, for messages.

    Examples
    --------
    >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
    >>> found = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
    >>> float(match_boxes(truth, found).iou[0, 0])
    0.9
    """
    check_tables(truth, found, call)
    image = rows_of(found.image_ids, truth.image_ids)
    label, scores = found.named_classes(truth.classes)
    return match_columns(
        truth.classes,
        truth.image_ids,
        detections=(image, label, found.boxes, found.sizes, scores),
        objects=(truth.object_image, truth.object_class, truth.boxes, truth.sizes, truth.areas, truth.crowd),
        threads=threads,
    )


def match_columns(
    classes: tuple[str, ...],
    image_ids: npt.NDArray[np.int64],
    *,
    detections: tuple[npt.NDArray[Any], ...],
    objects: tuple[npt.NDArray[Any], ...],
    threads: int | None = None,
) -> BoxMatches:
    """Match columns as `match_boxes` matches tables.

    Parameters
    ----------
    classes, image_ids
        Names of the classes, ascending ids of the images.
    detections : image, label, box, size, score
        One row per detection; image and label count in the above, -1 where unknown.
    objects : image, label, box, size, area, crowd
        One row per object, ascending by image.
    """
    object_image, object_label, object_boxes, object_sizes, areas, crowd = objects
    image, label, boxes, sizes, scores = detections
    columns = _core.match_boxes(
        image=image,
        label=label,
        boxes=boxes,
        sizes=sizes,
        score=scores,
        object_offsets=np.searchsorted(object_image, np.arange(len(image_ids) + 1)).astype(np.int64),
        object_label=object_label,
        object_boxes=object_boxes,
        object_sizes=object_sizes,
        object_area=areas,
        object_crowd=crowd,
        iou_thresholds=IOU_THRESHOLDS,
        area_ranges=AREA_RANGES,
        max_detections=MAX_DETECTIONS,
        threads=thread_count(threads),
    )
    counted = (areas[:, None] >= AREA_RANGES[:, 0]) & (areas[:, None] <= AREA_RANGES[:, 1]) & ~crowd[:, None]
    return BoxMatches(
        classes=classes,
        image_ids=image_ids,
        object_image=object_image.astype(np.int32),
        object_label=object_label,
        object_counts=np.packbits(counted, axis=1, bitorder="little")[:, 0],
        left_out=int(np.count_nonzero((image < 0) | (label < 0))),
        **columns,
    )


def mean_of_defined(values: npt.NDArray[np.float64]) -> float:
    """Return the mean of what is not NaN; NaN when nothing is left."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def size_index(size: str) -> int:
    """Return the column of the area range called `size`."""
    if size not in SIZES:
        raise InputError(f"expected size to be one of {', '.join(SIZES)}, got {size!r}")
    return SIZES.index(size)


def class_index(classes: Sequence[str], name: str) -> int:
    """Return the row of the class called `name`, in any of its spellings."""
    row = classes.index(name) if name in classes else int(column_of_each([name], classes)[0])
    if row < 0:
        raise InputError(f"there is no class {name!r}", remedy=f"choose one of {', '.join(classes)}")
    return row
