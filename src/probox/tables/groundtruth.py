"""Table of ground truth: the objects of a dataset, with their masks as run lengths."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.notes import Note, as_notes
from probox.support.formatting import with_count
from probox.tables.dataset import Dataset
from probox.tables.flat import box_columns, class_columns, image_columns
from probox.tables.geometry import extents_of, pixels_of_boxes
from probox.tables.masks import Masks
from probox.tables.row_problems import FARTHEST, RowProblems, boxes_are_valid, extent_problems
from probox.tables.table import ColumnSpec, Table, column, expect, frozen, rows_where_all, to_numpy


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroundTruth(Table):
    """Objects of a dataset, one row each, sorted by image.

    Create it with `GroundTruth.from_masks`, `GroundTruth.from_boxes` or `probox.read_truth`. The constructor takes
    complete columns.

    Parameters
    ----------
    dataset : Dataset
        Images and classes.
    image_rows : (N,) int64
        Row of the object's image in `dataset`, ascending.
    labels : (N,) int32
        Class of each object, as an index of ``dataset.classes``.
    boxes : (N, 4) float64
        Annotated boxes ``x1, y1, x2, y2`` in pixels. Detections must use the same convention for the far edge: COCO
        boxes end at the far edge of the last pixel, boxes of RVC1 ground truth and `from_masks` on the last pixel
        itself.
    masks : Masks
        Masks of the objects, as run lengths. Objects with an empty mask are excluded from PDQ; mAP and LRP
        count them.
    extents : (N, 2) float64, optional
        Annotated width and height. Stored because ``(x1 + w) - x1`` may differ from ``w`` by rounding, and COCO's
        metrics are computed from ``w``. Default: from `boxes`.
    areas : (N,) float64, optional
        Annotated area in pixels, used for COCO's size ranges. Default: number of pixels of the mask.
    crowd : (N,) bool, optional
        Regions of many objects: ordinary objects in PDQ, ignore regions in mAP and LRP.
    ids : (N,) int64, optional
        Annotation ids. Default: row numbers.
    notes : sequence of Note
        Data that a reader excluded or replaced.

    Examples
    --------
    >>> truth = GroundTruth.from_boxes(["cup", "dog"], {7: (640, 480)}, [7], [[10, 20, 49, 59]], [1])
    >>> truth.classes[truth.labels[0]], truth.areas.tolist(), truth.masks.pixels.tolist()
    ('dog', [1521.0], [1600])
    """

    dataset: Dataset
    image_rows: npt.NDArray[np.int64] = column(np.int64)
    labels: npt.NDArray[np.int32] = column(np.int32)
    boxes: npt.NDArray[np.float64] = column(np.float64, 4)
    masks: Masks = column(object)
    extents: npt.NDArray[np.float64] = column(np.float64, 2, optional=True)
    areas: npt.NDArray[np.float64] = column(np.float64, optional=True)
    crowd: npt.NDArray[np.bool_] = column(np.bool_, optional=True)
    ids: npt.NDArray[np.int64] = column(np.int64, optional=True)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        expect(
            self.dataset, Dataset, "dataset", "give the images and classes: Dataset(classes=..., image_ids=..., ...)"
        )
        object.__setattr__(self, "notes", as_notes(self.notes))
        super().__post_init__()
        self._check()

    def _default(self, name: str) -> Any:
        if name == "extents":
            return extents_of(self.boxes)
        if name == "areas":
            return self.masks.pixels
        if name == "crowd":
            return np.zeros(len(self.image_rows), bool)
        return np.arange(len(self.image_rows)) if name == "ids" else None

    def _check_column(self, name: str, declared: ColumnSpec, values: Any, rows: int) -> Any:
        if name != "masks":
            return super()._check_column(name, declared, values, rows)
        expect(values, Masks, "masks", "use GroundTruth.from_masks for arrays")
        if len(values) != rows:
            raise InputError(f"expected one mask per object, but got {len(values)} masks", file=self.source or None)
        return values

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names of the dataset."""
        return self.dataset.classes

    @property
    def image_ids(self) -> npt.NDArray[np.int64]:
        """Image ids of the dataset, ascending."""
        return self.dataset.image_ids

    @property
    def source(self) -> str:
        """File of origin, for messages."""
        return self.dataset.source

    def _flat_columns(self, label_probs: bool) -> dict[str, Any]:
        self._has_no_label_probs(label_probs)
        return {
            **image_columns(self.dataset, self.image_rows),
            "object_id": self.ids,
            **class_columns(self.labels, self.classes),
            **box_columns(self.boxes),
            "area": self.areas,
            "pixels": self.masks.pixels,
            "crowd": self.crowd,
        }

    def _check(self) -> None:
        file = self.source or None
        rows = self.image_rows
        if len(rows) == 0:
            return
        if rows[0] < 0 or rows[-1] >= len(self.dataset) or np.any(np.diff(rows) < 0):
            raise InputError("expected image_rows to be ascending rows of the dataset", file=file)
        self._check_objects()
        reach = self.masks.boxes
        outside = ~rows_where_all((reach[:, :2] >= 0) & (reach[:, 2:] < self.dataset.shapes[rows]))
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise InputError(
                "the mask reaches outside the image",
                file=file,
                image=int(self.image_ids[rows[at]]),
                entry=f"object {self.ids[at]}",
            )

    def _check_objects(self) -> None:
        """Raise for the first invalid object."""
        strange = (self.labels < 0) | (self.labels >= len(self.classes))
        problems = [
            RowProblems(
                "class",
                np.flatnonzero(strange),
                lambda row: f"expected a class below {len(self.classes)}, but got {self.labels[row]}",
                "count in classes from 0",
            ),
            *([] if boxes_are_valid(self.boxes, self.extents) else self._box_problems()),
            RowProblems(
                "unusable area",
                np.flatnonzero(~((self.areas >= 0) & (self.areas <= FARTHEST**2))),
                lambda row: f"expected an area that is finite and at least 0, but got {self.areas[row]:g}",
                "leave areas out to use the pixels of the masks",
            ),
        ]
        for problem in problems:
            for row in problem.rows[:1].tolist():
                raise InputError(
                    problem.text(row),
                    file=self.source or None,
                    image=int(self.image_ids[self.image_rows[row]]),
                    entry=f"object {self.ids[row]}",
                    remedy=problem.remedy,
                )

    def _box_problems(self) -> list[RowProblems]:
        finite = rows_where_all(np.abs(self.boxes) <= FARTHEST)  # False for NaN
        ordered = rows_where_all(self.boxes[:, 2:] >= self.boxes[:, :2])
        return [
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
            *extent_problems(self.boxes, self.extents, finite & ordered),
        ]

    def __repr__(self) -> str:
        counts = {"image": len(self.dataset), "object": int(self.countable.sum()), "class": len(self.classes)}
        return f"GroundTruth({', '.join(with_count(n, noun) for noun, n in counts.items())})"

    @property
    def countable(self) -> npt.NDArray[np.bool_]:
        """Which rows are objects: all except crowds with an empty mask, which are ignore regions."""
        return ~self.crowd | (self.masks.pixels > 0)

    def select_images(self, image_ids: npt.ArrayLike) -> GroundTruth:
        """Return the table of these images only; raise for unknown ids.

        Parameters
        ----------
        image_ids : sequence of int
            Image ids.

        Returns
        -------
        GroundTruth
            These images and their objects.

        Examples
        --------
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48), 9: (64, 48)}, [7], [[10, 20, 30, 40]], [0])
        >>> truth.select_images([9])
        GroundTruth(1 image, 0 objects, 1 class)
        """
        kept = self.dataset.chosen_rows(image_ids)
        rows = np.flatnonzero(np.isin(self.image_rows, kept))
        columns = self.columns_at(rows) | {"image_rows": np.searchsorted(kept, self.image_rows[rows])}
        return self.replace(dataset=self.dataset.take(kept), **columns)

    def as_box_masks(self) -> Masks:
        """Return masks from the annotated boxes: pixels floor(x1)..ceil(x2), floor(y1)..ceil(y2), clipped to the image.

        A crowd with an empty mask is an ignore region and gets no pixels.

        Returns
        -------
        Masks
            One mask per object.

        Examples
        --------
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10.5, 20, 30, 40]], [0])
        >>> truth.as_box_masks().boxes.tolist()
        [[10, 20, 30, 40]]
        """
        pixels = pixels_of_boxes(self.boxes, self.dataset.shapes[self.image_rows])
        pixels[self.crowd & (self.masks.pixels == 0)] = [0, 0, -1, -1]
        return Masks.from_boxes(pixels)

    @classmethod
    def from_boxes(
        cls,
        classes: Sequence[str],
        images: Mapping[int, tuple[int, int]],
        object_image: Sequence[int],
        boxes: npt.ArrayLike,
        labels: Sequence[int],
    ) -> GroundTruth:
        """Create ground truth from boxes; the mask of an object is its box.

        Parameters
        ----------
        classes : sequence of str
            Class names.
        images : mapping of image id to (width, height)
            Sizes of all images in pixels, including those without objects.
        object_image : sequence of int
            Image id of each object.
        boxes : (N, 4) array
            ``x1, y1, x2, y2`` of each object in pixels. Its mask has the pixels ``floor(x1)..ceil(x2)`` and
            ``floor(y1)..ceil(y2)``, both ends included, clipped to the image: for PDQ ``[10, 20, 49, 59]`` is 40 x 40
            pixels. mAP and LRP use boxes as given, so use the convention of the detections.
        labels : sequence of int
            Class index of each object.

        Returns
        -------
        GroundTruth
            The ground truth, sorted by image.

        Examples
        --------
        >>> GroundTruth.from_boxes(["cup"], {7: (640, 480)}, [7], [[10, 20, 50, 60]], [0])
        GroundTruth(1 image, 1 object, 1 class)
        """
        dataset = Dataset.from_sizes(classes, images)
        wanted = frozen(object_image, np.int64, (-1,), "object_image")
        unknown = dataset.rows_of(wanted) < 0
        if unknown.any():
            raise InputError(
                "unknown image of an object",
                image=int(wanted[unknown][0]),
                remedy="list every image in `images`",
            )
        order = np.argsort(wanted, kind="stable")
        corners, columns = frozen(boxes, np.float64, (-1, 4), "boxes"), frozen(labels, np.int32, (-1,), "labels")
        if len(corners) != len(wanted) or len(columns) != len(wanted):
            raise InputError(
                f"expected as many boxes and labels as objects, but got {len(wanted)} objects, "
                f"{len(corners)} boxes and {len(columns)} labels"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # the constructor rejects such boxes with a message
            areas = np.prod(corners[order, 2:] - corners[order, :2], axis=1)
        empty = cls(
            dataset=dataset,
            image_rows=dataset.rows_of(wanted[order]),
            labels=columns[order],
            boxes=corners[order],
            masks=Masks.from_boxes(np.zeros((len(wanted), 4), np.int32)),
            areas=areas,
        )
        return empty.replace(masks=empty.as_box_masks())

    @classmethod
    def from_masks(
        cls,
        classes: Sequence[str],
        masks: Iterable[tuple[int, Sequence[npt.ArrayLike], Sequence[int]]],
        *,
        shapes: Mapping[int, tuple[int, int]] | None = None,
    ) -> GroundTruth:
        """Create ground truth from boolean masks.

        Parameters
        ----------
        classes : sequence of str
            Class names.
        masks : iterable of (image id, list of (H, W) boolean arrays, list of class columns)
            Objects by image. Boxes are those of the masks, with ``x2, y2`` on the last pixel, as in RVC1 detections.
            Empty masks are excluded and counted in `notes`.
        shapes : dict of image id to (height, width), optional
            Required for images without objects; otherwise taken from the masks.

        Returns
        -------
        GroundTruth
            The ground truth, sorted by image.

        Examples
        --------
        >>> import numpy as np
        >>> mask = np.zeros((48, 64), bool); mask[10:20, 5:30] = True
        >>> GroundTruth.from_masks(["cup", "dog"], [(1, [mask], [1])])
        GroundTruth(1 image, 1 object, 2 classes)
        """
        sizes = dict(shapes or {})
        rows: list[tuple[int, npt.NDArray[np.bool_], int]] = []
        empty = 0
        for image_id, arrays, labels in _triples(masks):
            if len(arrays) != len(labels):
                raise InputError(f"got {len(arrays)} masks but {len(labels)} classes", image=image_id)
            for array, label in zip(arrays, labels, strict=True):
                given = to_numpy(array, "masks")
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
                if not isinstance(label, int | np.integer) or isinstance(label, bool):
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
        dataset = Dataset.from_sizes(
            classes, {image_id: (width, height) for image_id, (height, width) in sizes.items()}
        )
        rows.sort(key=lambda row: row[0])
        runs = Masks.from_arrays([mask for _, mask, _ in rows])
        return cls(
            dataset=dataset,
            image_rows=dataset.rows_of([image_id for image_id, _, _ in rows]),
            labels=np.array([label for _, _, label in rows], dtype=np.int32),
            boxes=runs.boxes.astype(np.float64),
            masks=runs,
            notes=(Note("pixelless-masks", empty),) if empty else (),
        )


def _triples(masks: Iterable[Any]) -> Iterator[tuple[int, Sequence[npt.ArrayLike], Sequence[int]]]:
    """Yield image id, masks and classes of each image."""
    remedy = "give (image id, [mask, ...], [class column, ...]) for each image"
    if not isinstance(masks, Iterable) or isinstance(masks, str | Mapping):
        raise InputError(f"expected argument `masks` to be a list, but got {type(masks).__name__}", remedy=remedy)
    for entry in masks:
        if not isinstance(entry, Sequence) or len(entry) != 3 or not isinstance(entry[0], int | np.integer):
            raise InputError("expected an image id, its masks and their classes", remedy=remedy)
        yield int(entry[0]), entry[1], entry[2]
