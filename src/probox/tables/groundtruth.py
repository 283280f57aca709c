"""The table of what is really there: images, classes and objects with their masks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.arguments import check_classes, expect
from probox.tables.columns import chosen_ids, frozen, rows_where_all
from probox.tables.detections import FARTHEST, RowProblems, size_problems
from probox.tables.masks import Masks

__all__ = ["GroundTruth"]

LONGEST_NAME = 1024
"""The most characters of an image's file name."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class GroundTruth:
    """Images and their objects, one row per object, objects of an image next to each other.

    Build it with `GroundTruth.from_masks`, `GroundTruth.from_boxes` or a reader such as
    `probox.read_coco`; the constructor takes the columns as they are.

    Parameters
    ----------
    classes : sequence of str
        Class names; `object_class` counts in them.
    image_ids : (I,) int64
        Distinct image ids in ascending order.
    widths, heights : (I,) int32
        Image sizes in pixels.
    object_image : (N,) int64
        Row of the object's image, ascending.
    object_class : (N,) int32
        Column of `classes`.
    boxes : (N, 4) float64
        Annotated boxes ``x1, y1, x2, y2``. Where a box ends is the data set's own affair, and detections must end
        there too: COCO's on the far edge of the last pixel, those of challenge truth and `from_masks` on the last
        pixel itself.
    masks : Masks
        The pixels of every object, as run lengths. An object without any is left out of PDQ; mAP and LRP, which
        go by boxes, count it.
    sizes : (N, 2) float64, optional
        Annotated width and height. Kept because ``(x1 + w) - x1`` need not be ``w`` to the last bit
        and COCO's measures are computed from ``w``. Default: from `boxes`.
    areas : (N,) float64, optional
        Annotated area, which COCO's size ranges go by. Default: the number of pixels of the mask.
    crowd : (N,) bool, optional
        Regions of many objects: objects like any other in PDQ, ignore regions in mAP and LRP.
    object_ids : (N,) int64, optional
        Annotation ids. Default: row numbers.
    file_names : sequence of str, optional
        One per image; empty where unknown.
    category_ids : (C,) int64, optional
        COCO's number of each class. Default: 1, 2, ...
    filter_small : bool
        Whether small objects are ignored unless asked otherwise (challenge truth).
    source : str
        The file it came from, for messages.
    notes : sequence of str
        What a reader left out or replaced, one sentence each.
    """

    classes: tuple[str, ...]
    image_ids: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int32]
    heights: npt.NDArray[np.int32]
    object_image: npt.NDArray[np.int64]
    object_class: npt.NDArray[np.int32]
    boxes: npt.NDArray[np.float64]
    masks: Masks
    sizes: npt.NDArray[np.float64] = None  # type: ignore[assignment]
    areas: npt.NDArray[np.float64] = None  # type: ignore[assignment]
    crowd: npt.NDArray[np.bool_] = None  # type: ignore[assignment]
    object_ids: npt.NDArray[np.int64] = None  # type: ignore[assignment]
    file_names: tuple[str, ...] = ()
    category_ids: npt.NDArray[np.int64] = None  # type: ignore[assignment]
    filter_small: bool = False
    source: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # the dataclass is frozen for everybody else
        put("classes", check_classes(self.classes))
        expect(self.masks, Masks, "masks", "use GroundTruth.from_masks for arrays")
        put("notes", tuple(self.notes))
        put("image_ids", frozen(self.image_ids, np.int64, (-1,), "image_ids"))
        images = len(self.image_ids)
        put("widths", frozen(self.widths, np.int32, (images,), "widths"))
        put("heights", frozen(self.heights, np.int32, (images,), "heights"))
        put("object_image", frozen(self.object_image, np.int64, (-1,), "object_image"))
        objects = len(self.object_image)
        put("object_class", frozen(self.object_class, np.int32, (objects,), "object_class"))
        put("boxes", frozen(self.boxes, np.float64, (objects, 4), "boxes"))
        with np.errstate(over="ignore", invalid="ignore"):  # such boxes are rejected below, in words
            sizes = self.boxes[:, 2:] - self.boxes[:, :2] if self.sizes is None else self.sizes
        put("sizes", frozen(sizes, np.float64, (objects, 2), "sizes"))
        areas = self.masks.pixels if self.areas is None else self.areas
        put("areas", frozen(areas, np.float64, (objects,), "areas"))
        crowd = np.zeros(objects, bool) if self.crowd is None else self.crowd
        put("crowd", frozen(crowd, np.bool_, (objects,), "crowd"))
        ids = np.arange(objects) if self.object_ids is None else self.object_ids
        put("object_ids", frozen(ids, np.int64, (objects,), "object_ids"))
        put("file_names", tuple(self.file_names) or ("",) * images)
        categories = np.arange(1, len(self.classes) + 1) if self.category_ids is None else self.category_ids
        put("category_ids", frozen(categories, np.int64, (len(self.classes),), "category_ids"))
        self._check()

    def _check(self) -> None:
        file = self.source or None
        if len(self.file_names) != len(self.image_ids):
            raise InputError(
                f"expected one file name per image, but got {len(self.file_names)} for {len(self.image_ids)} images",
                file=file,
            )
        numbers, counts = np.unique(self.category_ids, return_counts=True)
        if (counts > 1).any():
            twice = int(numbers[counts > 1][0])
            raise InputError(
                f"the category id {twice} stands for several classes", file=file, remedy="give each class its own"
            )
        lengths = [len(name) for name in self.file_names]
        if lengths and max(lengths) > LONGEST_NAME:  # a column of names is as wide as its longest
            at = lengths.index(max(lengths))
            raise InputError(
                f"expected a file name of at most {LONGEST_NAME:,} characters, but got one of {lengths[at]:,}",
                file=file,
                image=int(self.image_ids[at]),
                remedy="shorten it, or leave it out",
            )
        if len(self.masks) != len(self.object_image):
            raise InputError(f"expected one mask per object, but got {len(self.masks)} masks", file=file)
        if np.any(np.diff(self.image_ids) <= 0):
            at = int(np.flatnonzero(np.diff(self.image_ids) <= 0)[0]) + 1
            raise InputError("image ids must be distinct and ascending", file=file, image=int(self.image_ids[at]))
        bad = (self.widths <= 0) | (self.heights <= 0)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"expected a size of at least 1 x 1, but got {self.widths[at]} x {self.heights[at]}",
                file=file,
                image=int(self.image_ids[at]),
            )
        if len(self.object_image) == 0:
            return
        if (
            self.object_image[0] < 0
            or self.object_image[-1] >= len(self.image_ids)
            or np.any(np.diff(self.object_image) < 0)
        ):
            raise InputError("object_image must be ascending rows of the image table", file=file)
        self._check_objects()
        outside = (
            (self.masks.boxes[:, 0] < 0)
            | (self.masks.boxes[:, 1] < 0)
            | (self.masks.boxes[:, 2] >= self.widths[self.object_image])
            | (self.masks.boxes[:, 3] >= self.heights[self.object_image])
        )
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise InputError(
                "the mask reaches outside the image",
                file=file,
                image=int(self.image_ids[self.object_image[at]]),
                entry=f"object {self.object_ids[at]}",
            )

    def _check_objects(self) -> None:
        """Raise for the first object that no measure could use."""
        finite = rows_where_all(np.abs(self.boxes) <= FARTHEST)  # NaN is not
        ordered = rows_where_all(self.boxes[:, 2:] >= self.boxes[:, :2])
        strange = (self.object_class < 0) | (self.object_class >= len(self.classes))
        problems = [
            RowProblems(
                "class",
                np.flatnonzero(strange),
                lambda row: f"expected a class below {len(self.classes)}, but got {self.object_class[row]}",
                "count in classes from 0",
            ),
            RowProblems(
                "non-finite box",
                np.flatnonzero(~finite),
                lambda row: (
                    f"expected box corners to be finite, up to {FARTHEST:g}, but got {self.boxes[row].tolist()}"
                ),
                "leave the object out, or correct its box",
            ),
            RowProblems(
                "inverted box",
                np.flatnonzero(finite & ~ordered),
                lambda row: f"expected x1 <= x2 and y1 <= y2, but got {self.boxes[row].tolist()}",
                "write corners as [x1, y1, x2, y2]",
            ),
            *size_problems(self.boxes, self.sizes, finite & ordered),
            RowProblems(
                "unusable area",
                np.flatnonzero(~((self.areas >= 0) & (self.areas <= FARTHEST**2))),
                lambda row: f"expected an area that is finite and at least 0, but got {self.areas[row]:g}",
                "leave areas out: then the pixels of the mask are counted",
            ),
        ]
        for problem in problems:
            for row in problem.rows[:1].tolist():
                raise InputError(
                    problem.text(row),
                    file=self.source or None,
                    image=int(self.image_ids[self.object_image[row]]),
                    entry=f"object {self.object_ids[row]}",
                    remedy=problem.remedy,
                )

    @property
    def object_offsets(self) -> npt.NDArray[np.int64]:
        """Return where each image's objects start; one more entry than images."""
        return np.searchsorted(self.object_image, np.arange(len(self.image_ids) + 1)).astype(np.int64)

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self.object_image)

    def __repr__(self) -> str:
        return f"GroundTruth({len(self.image_ids)} images, {len(self)} objects, {len(self.classes)} classes)"

    def select_images(self, image_ids: npt.ArrayLike) -> GroundTruth:
        """Return the table of these images alone; all of them must be here."""
        chosen = chosen_ids(image_ids, self.image_ids, file=self.source or None)
        kept = np.flatnonzero(np.isin(self.image_ids, chosen))
        rows = np.flatnonzero(np.isin(self.object_image, kept))
        return dataclasses.replace(
            self,
            image_ids=self.image_ids[kept],
            widths=self.widths[kept],
            heights=self.heights[kept],
            file_names=tuple(self.file_names[int(row)] for row in kept),
            object_image=np.searchsorted(kept, self.object_image[rows]),
            object_class=self.object_class[rows],
            boxes=self.boxes[rows],
            masks=self.masks.take(rows),
            sizes=self.sizes[rows],
            areas=self.areas[rows],
            crowd=self.crowd[rows],
            object_ids=self.object_ids[rows],
        )

    def as_box_masks(self) -> Masks:
        """Return masks made of the annotated boxes: pixels floor(x1)..ceil(x2), floor(y1)..ceil(y2), in the image."""
        shapes = np.stack([self.widths, self.heights], axis=1)[self.object_image]
        return Masks.from_boxes(pixels_of_boxes(self.boxes, shapes))

    @classmethod
    def from_boxes(
        cls,
        classes: Sequence[str],
        images: Mapping[int, tuple[int, int]],
        object_image: Sequence[int],
        boxes: npt.ArrayLike,
        labels: Sequence[int],
    ) -> GroundTruth:
        """Build a table of boxes; the pixels of an object are those of its box.

        Parameters
        ----------
        classes : sequence of str
            Class names.
        images : mapping of image id to (width, height)
            All images, also those without objects.
        object_image : sequence of int
            The image id of each object.
        boxes : (N, 4) array
            ``x1, y1, x2, y2`` of each object. Its pixels are ``floor(x1)..ceil(x2)`` and ``floor(y1)..ceil(y2)``,
            both ends included, in the image: for PDQ ``[10, 20, 49, 59]`` is 40 x 40 pixels. mAP and LRP
            take boxes as they are, so end them where the detections' boxes end.
        labels : sequence of int
            The column of `classes` of each object.

        Examples
        --------
        >>> GroundTruth.from_boxes(["cup"], {7: (640, 480)}, [7], [[10, 20, 50, 60]], [0])
        GroundTruth(1 images, 1 objects, 1 classes)
        """
        ids, shapes = _checked_images(images)
        wanted = frozen(object_image, np.int64, (-1,), "object_image")
        unknown = ~np.isin(wanted, ids)
        if unknown.any():
            raise InputError(
                "an object lies in an unknown image",
                image=int(wanted[unknown][0]),
                remedy="name every image in `images`, and its id in `object_image`",
            )
        order = np.argsort(wanted, kind="stable")
        corners, columns = frozen(boxes, np.float64, (-1, 4), "boxes"), frozen(labels, np.int32, (-1,), "labels")
        if len(corners) != len(wanted) or len(columns) != len(wanted):
            raise InputError(
                f"expected as many boxes and labels as objects, but got {len(wanted)} objects, "
                f"{len(corners)} boxes and {len(columns)} labels"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # such boxes are rejected by the constructor, in words
            areas = np.prod(corners[order, 2:] - corners[order, :2], axis=1)
        empty = cls(
            classes=classes,  # type: ignore[arg-type]  # the constructor makes a tuple of it, or says what is wrong
            image_ids=ids,
            widths=shapes[:, 0],
            heights=shapes[:, 1],
            object_image=np.searchsorted(ids, wanted[order]),
            object_class=columns[order],
            boxes=corners[order],
            masks=Masks.from_boxes(np.zeros((len(wanted), 4), np.int32)),
            areas=areas,
        )
        return dataclasses.replace(empty, masks=empty.as_box_masks())

    @classmethod
    def from_masks(
        cls,
        classes: Sequence[str],
        masks: Iterable[tuple[int, Sequence[npt.ArrayLike], Sequence[int]]],
        *,
        shapes: Mapping[int, tuple[int, int]] | None = None,
    ) -> GroundTruth:
        """Build a table from boolean arrays.

        Parameters
        ----------
        classes : sequence of str
            Class names.
        masks : iterable of (image id, list of (H, W) boolean arrays, list of class columns)
            The objects, image by image; their boxes are the masks', ``x2, y2`` being the last pixel, as in the
            boxes of challenge detections. A mask without pixels is no object: left out, counted in `notes`.
        shapes : dict of image id to (height, width), optional
            Needed for images without objects; otherwise the masks tell.

        Examples
        --------
        >>> import numpy as np
        >>> mask = np.zeros((48, 64), bool); mask[10:20, 5:30] = True
        >>> GroundTruth.from_masks(["cup", "dog"], [(1, [mask], [1])])
        GroundTruth(1 images, 1 objects, 2 classes)
        """
        sizes = dict(shapes or {})
        rows: list[tuple[int, npt.NDArray[np.bool_], int]] = []
        empty = 0
        for image_id, arrays, labels in _triples(masks):
            if len(arrays) != len(labels):
                raise InputError(f"got {len(arrays)} masks but {len(labels)} classes", image=image_id)
            for array, label in zip(arrays, labels, strict=True):
                given = np.asarray(array)
                if given.dtype != bool and not np.isin(given, (0, 1)).all():
                    raise InputError(
                        "expected masks of True and False, or of 0 and 1",
                        image=image_id,
                        remedy="compare with a threshold or an id first: values == 7",
                    )
                mask = given.astype(bool)
                if mask.ndim != 2:
                    raise InputError(f"expected masks of shape H x W, but got {mask.ndim} dimensions", image=image_id)
                if sizes.setdefault(image_id, mask.shape) != mask.shape:
                    raise InputError("masks of one image differ in shape", image=image_id)
                if not isinstance(label, int | np.integer):
                    raise InputError(
                        f"expected the column of a class, but got {label!r:.40}",
                        image=image_id,
                        remedy="count in classes: classes.index(name)",
                    )
                if mask.any():
                    rows.append((image_id, mask, int(label)))
                else:
                    empty += 1
            if image_id not in sizes:
                raise InputError("an image without masks needs its shape", image=image_id, remedy="pass shapes=")
        ids = np.array(sorted(sizes), dtype=np.int64)
        row_of = {int(image_id): row for row, image_id in enumerate(ids)}
        rows.sort(key=lambda row: row_of[row[0]])
        runs = Masks.from_arrays([mask for _, mask, _ in rows])
        return cls(
            classes=tuple(classes),
            image_ids=ids,
            widths=np.array([sizes[int(i)][1] for i in ids], dtype=np.int32),
            heights=np.array([sizes[int(i)][0] for i in ids], dtype=np.int32),
            object_image=np.array([row_of[image_id] for image_id, _, _ in rows], dtype=np.int64),
            object_class=np.array([label for _, _, label in rows], dtype=np.int32),
            boxes=runs.boxes.astype(np.float64),
            masks=runs,
            notes=(f"{empty} masks have no pixel: left out",) if empty else (),
        )


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


def _checked_images(
    images: Mapping[int, tuple[int, int]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return ascending image ids and their widths and heights."""
    expect(images, Mapping, "images", "give a dictionary of image id to (width, height)")
    ids = np.sort(frozen(list(images), np.int64, (-1,), "image ids"))
    return ids, frozen([images[int(i)] for i in ids], np.int32, (len(ids), 2), "width and height of images")


def _triples(masks: Iterable[Any]) -> Iterator[tuple[int, Sequence[npt.ArrayLike], Sequence[int]]]:
    """Yield image id, masks and classes of each image."""
    remedy = "give (image id, [mask, ...], [class column, ...]) for each image"
    if not isinstance(masks, Iterable) or isinstance(masks, str | Mapping):
        raise InputError(f"expected argument `masks` to be a list, but got {type(masks).__name__}", remedy=remedy)
    for entry in masks:
        if not isinstance(entry, Sequence) or len(entry) != 3 or not isinstance(entry[0], int | np.integer):
            raise InputError("expected an image id, its masks and their classes", remedy=remedy)
        yield int(entry[0]), entry[1], entry[2]
