"""Table of detections: boxes, label probabilities, and optionally covariances of corners, masks or heatmaps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.notes import Note, as_notes, merge_notes
from probox.support.formatting import with_count
from probox.tables.flat import box_columns, class_columns, corner_columns, probability_columns
from probox.tables.geometry import (
    BoxFormat,
    boxes_from,
    check_box_format,
    corners_from,
    extents_of,
    sizes_of_rows,
)
from probox.tables.heatmaps import threshold_heatmaps
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import (
    AboveOne,
    align_labels,
    named_classes,
    probabilities_of,
    to_distribution,
)
from probox.tables.masks import Masks
from probox.tables.row_problems import ROUNDING, find_problems
from probox.tables.table import ColumnSpec, Table, check_classes, check_shape, column, expect, frozen, to_numpy


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class DetectionColumns(Table):
    """Columns of detections, checked or not.

    Detection files are read without a dataset and may contain images or classes that the ground truth lacks. So
    detections hold image ids; an evaluation maps them to image rows.
    """

    classes: tuple[str, ...]
    image_ids: npt.NDArray[np.int64] = column(np.int64)
    boxes: npt.NDArray[np.float64] = column(np.float64, 4)
    label_probs: LabelProbs = column(np.float32, "classes")
    covariances: npt.NDArray[np.float64] | None = column(np.float64, 2, 2, 2, optional=True)
    heatmaps: tuple[npt.NDArray[np.generic] | None, ...] | None = column(object, optional=True)
    masks: Masks | None = column(object, optional=True)
    has_mask: npt.NDArray[np.bool_] | None = column(np.bool_, optional=True)
    extents: npt.NDArray[np.float64] = column(np.float64, 2, optional=True)
    areas: npt.NDArray[np.float64] | None = column(np.float64, optional=True)
    labels: npt.NDArray[np.int32] = column(np.int32, optional=True)
    scores: npt.NDArray[np.float64] = column(np.float64, optional=True)
    source: str = ""
    notes: tuple[Note, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Detections(DetectionColumns):
    """Detections of many images, one row each, in any order of images.

    Parameters
    ----------
    classes : sequence of str
        Class names, one per column of `label_probs`.
    image_ids : (N,) int64
        Image of each detection.
    boxes : (N, 4) float64
        ``x1, y1, x2, y2`` in pixels; the mean corners if there are covariances.
    label_probs : (N, C) float32
        Probability of each class; a row may add up to less than 1. Kept as `LabelProbs`, which takes little memory for
        detections with one score; ``np.asarray(label_probs)`` is the matrix.
    covariances : (N, 2, 2, 2) float64, optional
        Covariance ``[[xx, xy], [xy, yy]]`` of the top-left and of the bottom-right corner, in pixels squared. All
        zero: a box without covariance.
    heatmaps : sequence of (H, W) arrays or None, optional
        Probability of each pixel to belong to the object: floats in [0, 1], or uint8 in 0..255.
        Replaces the box where it is not None.
    masks : Masks, optional
        Pixels of the detections. A mask replaces the box in PDQ; mAP of masks uses it.
    has_mask : (N,) bool, optional
        Which detections have a mask, possibly an empty one. Default with masks: all.
    extents : (N, 2) float64, optional
        Width and height as written by the detector, which may differ from `boxes` by rounding. Default: from `boxes`.
    areas : (N,) float64, optional
        Area in pixels, by which mAP of masks assigns detections to size ranges. Default with masks: number of pixels.
    labels : (N,) int32, optional
        Predicted class of each detection. Default: the most probable one.
    scores : (N,) float64, optional
        Score of that class, 0 to 1, by which mAP and LRP sort. Default: its probability.
    source : str
        File of origin, for messages.
    notes : sequence of Note
        Data that a reader excluded or replaced.

    Examples
    --------
    >>> found = Detections(
    ...     classes=["cup", "dog"], image_ids=[7], boxes=[[10, 20, 50, 60]], label_probs=[[0.2, 0.8]],
    ...     covariances=[[[[4, 0], [0, 4]], [[9, 3], [3, 9]]]])
    >>> found
    Detections(1 detection in 1 image, 2 classes, 1 probabilistic)
    """

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            classes: Sequence[str],
            image_ids: npt.ArrayLike,
            boxes: npt.ArrayLike,
            label_probs: npt.ArrayLike,
            covariances: npt.ArrayLike | None = None,
            heatmaps: Sequence[Any] | None = None,
            masks: Masks | None = None,
            has_mask: npt.ArrayLike | None = None,
            extents: npt.ArrayLike | None = None,
            areas: npt.ArrayLike | None = None,
            labels: npt.ArrayLike | None = None,
            scores: npt.ArrayLike | None = None,
            source: str = "",
            notes: Sequence[Note | str] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # assignment in a frozen dataclass
        put("classes", check_classes(self.classes, file=self.source or None))
        put("notes", as_notes(self.notes))
        super().__post_init__()
        self._check()

    def _default(self, name: str) -> Any:
        if name == "extents":
            return extents_of(self.boxes)
        if name == "has_mask":
            return None if self.masks is None else np.ones(len(self), bool)
        if name == "areas" and self.masks is not None and self.has_mask is not None:
            return np.where(self.has_mask, self.masks.pixels, self.extents.prod(axis=1))
        if name == "labels":
            return self.label_probs.argmax(axis=1)
        if name == "scores":
            return probabilities_of(self.label_probs, self.labels)
        return None

    def _check_column(self, name: str, declared: ColumnSpec, values: Any, rows: int) -> Any:
        if name == "heatmaps":
            return _checked_heatmaps(values, rows)
        if name == "label_probs":
            shape = (rows, len(self.classes))
            if isinstance(values, LabelProbs):
                check_shape(values.shape, shape, name)
                return values
            return LabelProbs(frozen(values, np.float32, shape, name))
        if name == "masks":
            expect(values, Masks, "masks", "use Masks.from_arrays for arrays")
            if len(values) != rows:
                raise InputError(f"expected one mask per detection, but got {len(values)} for {rows} detections")
            return values
        return super()._check_column(name, declared, values, rows)

    def __repr__(self) -> str:
        images, classes = with_count(len(np.unique(self.image_ids)), "image"), with_count(len(self.classes), "class")
        text = f"Detections({with_count(len(self), 'detection')} in {images}, {classes}"
        if self.covariances is not None:
            text += f", {int(self.covariances.any(axis=(1, 2, 3)).sum())} probabilistic"
        if self.heatmaps is not None:
            text += f", {int(self.has_heatmap.sum())} with heatmaps"
        if self.has_mask is not None:
            text += f", {int(self.has_mask.sum())} with masks"
        return text + ")"

    @classmethod
    def from_scores(
        cls,
        boxes: Any,
        scores: Any,
        labels: Any = None,
        *,
        classes: Sequence[str],
        image_ids: Any,
        box_format: BoxFormat = "xyxy",
        normalised: Any = False,
        image_sizes: Any = None,
        covariances: Any = None,
        std: Any = None,
        var: Any = None,
        covariance_format: BoxFormat | None = None,
        category_ids: Any = None,
        above_one: AboveOne = "limit",
        source: str = "",
        notes: Sequence[Note | str] = (),
    ) -> Detections:
        """Create detections from boxes with one score and label each, or with the scores of all classes.

        All arrays may be lists, NumPy arrays, or tensors on any device.

        Parameters
        ----------
        boxes : (N, 4)
            Boxes in `box_format`, in pixels unless `normalised`.
        scores : (N,) or (N, C)
            Between 0 and 1. With `labels`, the score of each label; the other classes share the rest evenly, as in COCO
            results. Without, the scores of all classes.
        labels : (N,), optional
            Class indices from 0, class names, or `category_ids`.
        classes : sequence of str
            Names of all classes of the detector; the rest of a score is shared among them.
        image_ids : int or (N,)
            Image of all boxes, or of each box.
        box_format : {"xyxy", "xywh", "cxcywh"}
            Two corners; top-left corner and size, as in COCO files; center and size.
        normalised : bool
            True if boxes and their uncertainty are fractions of the image, 0 to 1; requires `image_sizes`.
        image_sizes : (width, height), mapping of image id to (width, height), Dataset or GroundTruth, optional
            Sizes of the images in pixels.
        covariances, std, var : optional
            Uncertainty of the boxes, given as at most one of the three. `covariances` takes corner covariances
            (N, 2, 2, 2), covariances of the four box coordinates (N, 4, 4), their variances (N, 4), or one variance
            for all. `std` takes standard deviations and `var` variances: of the four coordinates (N, 4), one per box
            (N,), or one for all.
        covariance_format : {"xyxy", "xywh", "cxcywh"}, optional
            Coordinates that the uncertainty refers to. Required for four numbers per box unless `box_format` is
            ``xyxy``. A single number refers to the corner coordinates by default.
        category_ids : (C,), optional
            Label numbers of the classes, such as COCO's category ids.
        above_one : {"limit", "normalise", "refuse"}
            Treatment of rows whose class scores add up to more than 1, as with one sigmoid per class. ``limit``: the
            best class keeps its score and the others share the rest (`probox.fusion.limit_to_distribution`).
            ``normalise``: every nonzero row is divided by its sum, which raises low scores and lowers PDQ. ``refuse``:
            raise an error. The scores that mAP sorts by stay as given.
        source : str
            Origin of the data, for messages.
        notes : sequence of str
            Data that was excluded or replaced, one note each.

        Returns
        -------
        Detections
            The detections.

        Examples
        --------
        >>> found = Detections.from_scores(
        ...     [[10, 20, 40, 40]], [0.8], ["dog"],
        ...     classes=["cup", "dog", "cat"], image_ids=7, box_format="xywh", std=2)
        >>> found.boxes.tolist(), found.label_probs.sum().round(6).item(), found.covariances[0, 0].tolist()
        ([[10.0, 20.0, 50.0, 60.0]], 1.0, [[4.0, 0.0], [0.0, 4.0]])
        """
        names = check_classes(classes)
        given = frozen(boxes, np.float64, (-1, 4), "boxes")
        ids = images_of(image_ids, len(given))
        check_box_format(box_format)
        sizes = sizes_of_rows(normalised, image_sizes, ids, given)
        corners, extents = boxes_from(given, box_format, sizes)
        return cls(
            classes=names,
            image_ids=ids,
            boxes=corners,
            extents=extents,
            covariances=corners_from(
                len(given),
                covariances=covariances,
                std=std,
                var=var,
                covariance_format=covariance_format,
                box_format=box_format,
                sizes=sizes,
            ),
            source=source,
            notes=as_notes(notes),
            **_label_columns(scores, labels, names, len(given), category_ids, above_one),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Detections]) -> Detections:
        """Concatenate detections.

        Classes are merged by name, in order of first appearance; a class that a part lacks gets probability 0 there.
        Parts without covariances get boxes without covariance.

        Parameters
        ----------
        parts : sequence of Detections
            At least one table.

        Returns
        -------
        Detections
            All rows, in the order of `parts`.

        Examples
        --------
        >>> day = Detections.from_scores([[1, 2, 3, 4]], [0.9], [0], classes=["cup"], image_ids=1)
        >>> Detections.concatenate([day, day.replace(image_ids=[2])])
        Detections(2 detections in 2 images, 1 class)
        """
        given = list(parts)
        wrong = [part for part in given if not isinstance(part, Detections)]
        if wrong or not given:
            got = type(wrong[0]).__name__ if wrong else "nothing"
            raise InputError(f"expected Detections to concatenate, but got {got}", remedy="give a list of them")
        classes = given[0].classes
        if any(part.classes != classes for part in given):
            classes = tuple(dict.fromkeys(name for part in given for name in part.classes))
            twice = [part.classes for part in given if len(set(part.classes)) < len(part.classes)]
            if twice:
                name = next(name for name in twice[0] if twice[0].count(name) > 1)
                problem = f"classes differ, and one part has two named {name!r:.60}"
                raise InputError(problem, remedy="give each class a unique name")
        columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in given]) for name in _PLAIN}
        place = {name: number for number, name in enumerate(classes)}
        labels = [
            part.labels
            if part.classes == classes
            else np.array([place[name] for name in part.classes] or [0], np.int32)[part.labels]
            for part in given
        ]
        return cls(
            classes=classes,
            label_probs=LabelProbs.concatenate(
                [align_labels(part.label_probs, part.classes, classes) for part in given]
            ),
            labels=np.concatenate(labels),
            **optional_columns(given),
            source=next((part.source for part in given if len({p.source for p in given}) == 1), ""),
            notes=merge_notes(part.notes for part in given),
            **columns,
        )

    def __getitem__(self, rows: Any) -> Detections:
        """Return the detections selected by a slice, a boolean mask, row numbers or one row.

        >>> found = Detections.from_scores(
        ...     [[1, 2, 3, 4], [5, 6, 7, 8]], [0.9, 0.3], [0, 0], classes=["cup"], image_ids=[1, 2])
        >>> found[found.scores > 0.5], len(found[1:]), found[-1].boxes.tolist()
        (Detections(1 detection in 1 image, 1 class), 1, [[5.0, 6.0, 7.0, 8.0]])
        """
        if isinstance(rows, slice):
            return self.take(np.arange(len(self))[rows])
        chosen = to_numpy(rows, "rows")
        if chosen.dtype == bool and chosen.shape != (len(self),):
            raise InputError(f"expected a mask of {len(self)} detections, but got {' x '.join(map(str, chosen.shape))}")
        if chosen.dtype.kind not in "iub" and chosen.size:
            raise InputError(
                f"expected row numbers, a mask or a slice, but got {rows!r:.40}",
                remedy="for an image's detections write found[found.image_ids == image_id]",
            )
        numbers = np.flatnonzero(chosen) if chosen.dtype == bool else np.atleast_1d(chosen).astype(np.int64)
        if len(numbers) and not (-len(self) <= numbers.min() and numbers.max() < len(self)):
            raise IndexError(f"expected a row of {len(self)} detections, but got row {rows!r:.40}")
        return self.take(numbers)

    def by_image(self) -> Iterator[tuple[int, Detections]]:
        """Yield each image id in ascending order, with its detections in table order.

        Yields
        ------
        tuple of int and Detections
            Image id, and its detections.

        Examples
        --------
        >>> found = Detections.from_scores([[1, 2, 3, 4]] * 3, [0.9] * 3, [0] * 3, classes=["cup"], image_ids=[2, 1, 2])
        >>> [(image_id, len(part)) for image_id, part in found.by_image()]
        [(1, 1), (2, 2)]
        """
        order = np.argsort(self.image_ids, kind="stable")
        ids, starts = np.unique(self.image_ids[order], return_index=True)
        for image_id, rows in zip(ids.tolist(), np.split(order, starts[1:]) if len(ids) else (), strict=True):
            yield image_id, self.take(rows)

    def take(self, rows: npt.NDArray[Any]) -> Detections:
        """Return the table of these rows, in this order; rows of a valid table are not checked again.

        Parameters
        ----------
        rows : (K,) int64 or bool
            Row numbers or a mask.

        Returns
        -------
        Detections
            The chosen rows.

        Examples
        --------
        >>> found = Detections.from_scores(
        ...     [[1, 2, 3, 4], [5, 6, 7, 8]], [0.9, 0.3], [0, 0], classes=["cup"], image_ids=[1, 2])
        >>> found.take(np.array([1, 0])).scores.tolist()
        [0.3, 0.9]
        """
        return self._with_sound(self.columns_at(rows)) if rows.ndim == 1 else super().take(rows)

    def select(self, rows: npt.ArrayLike) -> Detections:
        """Return the detections of these rows, given by numbers or a boolean mask, in this order.

        Parameters
        ----------
        rows : sequence of int or bool
            Row numbers or a mask.

        Returns
        -------
        Detections
            The chosen rows.

        Examples
        --------
        >>> found = Detections.from_scores(
        ...     [[1, 2, 3, 4], [5, 6, 7, 8]], [0.9, 0.3], [0, 0], classes=["cup"], image_ids=[1, 2])
        >>> found.select(found.scores > 0.5).image_ids.tolist()
        [1]
        """
        chosen = np.asarray(rows)
        return self.take(chosen if chosen.dtype == bool else chosen.astype(np.int64))

    @property
    def has_heatmap(self) -> npt.NDArray[np.bool_]:
        """Return which detections have a heatmap, which is used instead of their box."""
        if self.heatmaps is None:
            return np.zeros(len(self), np.bool_)
        return np.fromiter((heatmap is not None for heatmap in self.heatmaps), np.bool_, len(self))

    def replace(self, **changes: Any) -> Detections:
        """Return the table with some fields changed; the result is checked.

        With other masks, `has_mask` and `areas` follow from them unless they are given.

        Parameters
        ----------
        **changes
            Fields by name.

        Returns
        -------
        Detections
            The changed table.

        Examples
        --------
        >>> found = Detections.from_scores([[1, 2, 3, 4]], [0.9], [0], classes=["cup"], image_ids=2)
        >>> found.replace(image_ids=[7]).image_ids.tolist()
        [7]
        """
        return super().replace(**({"has_mask": None, "areas": None} if "masks" in changes else {}) | changes)

    def check_masks(self, shapes: npt.NDArray[np.int32]) -> None:
        """Raise an error if a mask leaves its image; `shapes` are width and height of each detection's image."""
        if self.masks is None:
            return
        outside = np.flatnonzero((self.masks.boxes[:, 2:] >= shapes).any(axis=1))
        if len(outside):
            row = int(outside[0])
            width, height = shapes[row].tolist()
            pixels = self.masks.boxes[row].tolist()
            problem = f"expected a mask in an image of {width} x {height} pixels, but got pixels {pixels}"
            raise self._fail(row, problem, "give masks at the image's size")

    @property
    def has_pixels(self) -> bool:
        """Whether detections may have masks or heatmaps."""
        return self.masks is not None or self.heatmaps is not None

    def with_binary_masks(self, threshold: float = 0.5) -> Detections:
        """Return the detections with masks in place of heatmaps, for metrics and formats of binary masks.

        Parameters
        ----------
        threshold : float
            Pixels with a probability above this belong to the mask, 0 to 1.

        Returns
        -------
        Detections
            The detections, without heatmaps.

        Examples
        --------
        >>> found = Detections.from_scores([[0, 0, 2, 1]], [0.9], [0], classes=["cup"], image_ids=1)
        >>> found.replace(heatmaps=[np.array([[0.4, 0.8]])]).with_binary_masks().masks.boxes.tolist()
        [[1, 0, 1, 0]]
        """
        if self.heatmaps is None:
            return self
        if not 0.0 <= threshold < 1.0:
            raise InputError(f"expected threshold to be at least 0 and below 1, but got {threshold!r:.40}")
        given = _no_masks(self) if self.masks is None else vars(self)
        rows = np.flatnonzero(self.has_heatmap)
        own = threshold_heatmaps([self.heatmaps[row] for row in rows.tolist()], threshold)
        source, areas = np.arange(len(self)), given["areas"].copy()
        source[rows], areas[rows] = len(self) + np.arange(len(rows)), own.pixels
        masks = Masks.concatenate([given["masks"], own]).take(source)
        return self.replace(masks=masks, has_mask=given["has_mask"] | self.has_heatmap, areas=areas, heatmaps=None)

    def numbers_in_image(self) -> npt.NDArray[np.int64]:
        """Return each detection's number within its image, from 0 in table order.

        Returns
        -------
        (N,) int64
            Numbers.

        Examples
        --------
        >>> found = Detections.from_scores([[1, 2, 3, 4]] * 3, [0.9] * 3, [0] * 3, classes=["cup"], image_ids=[2, 1, 2])
        >>> found.numbers_in_image().tolist()
        [0, 0, 1]
        """
        order = np.argsort(self.image_ids, kind="stable")
        _, starts, counts = np.unique(self.image_ids[order], return_index=True, return_counts=True)
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order)) - np.repeat(starts, counts)
        return numbers

    def named_classes(self, classes: Sequence[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return each detection's class among `classes`, -1 if it is not one of them, and its score.

        Parameters
        ----------
        classes : sequence of str
            Class names, for example of the ground truth.

        Returns
        -------
        tuple of (N,) int32 and (N,) float64
            Class indices and scores.

        Examples
        --------
        >>> found = Detections.from_scores([[1, 2, 3, 4]], [0.9], [1], classes=["cup", "dog"], image_ids=2)
        >>> labels, scores = found.named_classes(["dog", "cat"])
        >>> labels.tolist(), scores.tolist()
        ([0], [0.9])
        """
        return named_classes(self.label_probs, self.classes, classes, self.labels, self.scores)

    def _flat_columns(self, label_probs: bool) -> dict[str, Any]:
        columns: dict[str, Any] = {
            "image_id": self.image_ids,
            **class_columns(self.labels, self.classes),
            "score": self.scores,
            **box_columns(self.boxes),
        }
        if self.covariances is not None:
            columns |= corner_columns(self.covariances)
        if self.heatmaps is not None:
            columns["heatmap"] = self.has_heatmap
        if self.masks is not None and self.has_mask is not None:
            columns |= {"mask": self.has_mask, "pixels": self.masks.pixels}
        return columns | (probability_columns(self.classes, self.label_probs) if label_probs else {})

    def _fail(self, row: int, problem: str, remedy: str) -> InputError:
        return InputError(
            problem,
            file=self.source or None,
            image=int(self.image_ids[row]),
            entry=f"detection {int(self.numbers_in_image()[row])}",
            remedy=remedy,
        )

    def _check(self) -> None:
        """Raise for the first invalid row; `probox validate` lists all of them."""
        for problem in find_problems(
            self.boxes, self.label_probs, self.covariances, self.heatmaps, self.extents, self.scores,
            self.masks, self.areas,
        ):  # fmt: skip
            row = int(problem.rows[0])
            raise self._fail(row, problem.text(row), problem.remedy)
        wrong = np.flatnonzero((self.labels < 0) | (self.labels >= max(len(self.classes), 1)))
        if len(wrong):
            text = f"expected labels from 0 to {max(len(self.classes), 1) - 1}, but got {self.labels[wrong[0]]}"
            raise self._fail(int(wrong[0]), text, "give the number of a class")


def optional_columns(parts: Sequence[DetectionColumns]) -> dict[str, Any]:
    """Concatenate covariances, heatmaps and masks of all parts, if any part has them.

    Parts without covariances get zeros: boxes without covariance.
    """
    columns: dict[str, Any] = {}
    if any(part.covariances is not None for part in parts):
        own = [np.zeros((len(part), 2, 2, 2)) if part.covariances is None else part.covariances for part in parts]
        columns["covariances"] = np.concatenate(own)
    if any(part.heatmaps is not None for part in parts):
        columns["heatmaps"] = tuple(entry for part in parts for entry in (part.heatmaps or [None] * len(part)))
    if any(part.masks is not None for part in parts):
        given = [_no_masks(part) if part.masks is None else vars(part) for part in parts]
        columns["masks"] = Masks.concatenate([part["masks"] for part in given])
        columns |= {name: np.concatenate([part[name] for part in given]) for name in ("has_mask", "areas")}
    return columns


def _no_masks(part: DetectionColumns) -> dict[str, Any]:
    """Return the columns of masks of detections that have no mask."""
    sizes = extents_of(part.boxes) if part.extents is None else part.extents
    return {"masks": Masks.empty(len(part)), "has_mask": np.zeros(len(part), bool), "areas": sizes.prod(axis=1)}


_PLAIN = ("image_ids", "boxes", "extents", "scores")
"""Columns that every table has and that do not depend on the classes."""


def _checked_heatmaps(heatmaps: Sequence[Any], rows: int) -> tuple[npt.NDArray[np.generic] | None, ...]:
    given = tuple(heatmaps)
    if len(given) != rows:
        raise InputError(
            f"expected one heatmap (or None) per detection, but got {len(given)} for {rows} detections",
            remedy="give None for detections without one",
        )
    for row, heatmap in enumerate(given):
        # Not only NumPy arrays: heatmaps of files are lazy arrays, decoded when they are used.
        if heatmap is not None and not all(hasattr(heatmap, name) for name in ("__array__", "dtype", "shape")):
            raise InputError(
                f"expected heatmaps[{row}] to be an array or None, but got {type(heatmap).__name__}",
                remedy="wrap it in numpy.asarray",
            )
    return given


def images_of(image_ids: Any, rows: int) -> npt.NDArray[np.int64]:
    """Return the image id of each row, from one id per row or one for all."""
    ids = to_numpy(image_ids, "image_ids")
    refuse_text(ids)
    if ids.ndim == 0:
        ids = np.broadcast_to(ids, rows)
    one = ids.shape == (1,) and rows != 1
    if one or (ids.ndim == 1 and len(ids) != rows):
        raise InputError(
            f"expected one image id per box, but got {len(ids)} for {rows} boxes",
            remedy="give one number if all boxes are of one image" if one else "repeat each image's id for its boxes",
        )
    return frozen(ids, np.int64, (rows,), "image_ids")


def refuse_text(ids: npt.NDArray[Any]) -> None:
    """Raise for image ids given as text."""
    if ids.dtype.kind in "US" or (ids.dtype.kind == "O" and any(isinstance(entry, str) for entry in ids.flat)):
        raise InputError(
            f"expected image_ids to be whole numbers, but got the text {str(ids.flat[0])!r:.60}",
            remedy="use the image ids of the ground truth; for COCO, int(...) of the file name",
        )


def _label_columns(
    scores: Any, labels: Any, classes: tuple[str, ...], rows: int, category_ids: Any, above_one: AboveOne
) -> dict[str, Any]:
    """Return the label columns, from the scores of all classes or from a label and its score."""
    values = to_numpy(scores, "scores")
    if values.dtype.kind not in "fiu" and values.size:
        raise InputError(f"expected scores to be numbers, but got {values.dtype}", remedy="give numbers from 0 to 1")
    check_scores(values)
    if labels is None:
        if values.ndim == 1 and values.size:
            raise InputError(
                "expected labels beside one score per box", remedy="give labels=, or the scores of all classes, N x C"
            )
        wide = values.dtype.kind == "f" and values.dtype.itemsize > 4  # float32 stays float32, to save memory
        matrix = frozen(values, np.float64 if wide else np.float32, (rows, len(classes)), "scores of all classes")
        return {"label_probs": to_distribution(matrix, above_one), **_winners(matrix)}
    if values.ndim > 1:
        raise InputError(
            f"expected one score per box beside labels, but got {' x '.join(map(str, values.shape))}",
            remedy="leave labels out: the best class follows from the scores of all",
        )
    stated = frozen(values, np.float64, (rows,), "scores")
    columns = label_columns(labels, classes, rows, category_ids)
    probs = LabelProbs.from_scores(stated, columns, len(classes))
    return {"label_probs": probs, "labels": columns, "scores": stated}


def _winners(matrix: npt.NDArray[np.floating[Any]]) -> dict[str, Any]:
    """Return the best class of each row and its score as given; normalising the row may change the score."""
    if matrix.size == 0:
        return {}
    labels = matrix.argmax(axis=1).astype(np.int32)
    return {"labels": labels, "scores": matrix[np.arange(len(matrix)), labels].astype(np.float64)}


def check_scores(values: npt.NDArray[Any], name: str = "scores") -> None:
    """Raise for scores outside [0, 1], with the likely cause."""
    if values.size == 0:
        return
    low, high = float(values.min()), float(values.max())
    if np.isnan(low):  # the minimum is NaN if any value is
        raise InputError(f"expected finite {name}, but got NaN", remedy="leave out detections that diverged")
    if low >= -ROUNDING and high <= 1 + ROUNDING:
        return
    problem = f"expected {name} between 0 and 1, but got {low if low < -ROUNDING else high:g}"
    if low < -ROUNDING:
        raise InputError(problem, remedy="these look like logits: apply softmax or sigmoid first")
    if high <= 100:
        raise InputError(problem, remedy="divide percentages by 100; of logits take softmax or sigmoid first")
    raise InputError(problem, remedy="rescale them to probabilities")


def label_columns(labels: Any, classes: tuple[str, ...], rows: int, category_ids: Any) -> npt.NDArray[np.int32]:
    """Return the class index of each row.

    Parameters
    ----------
    labels : (N,)
        Class indices from 0, class names, or `category_ids` if these are given.
    classes : tuple of str
        Class names.
    rows : int
        Required number of labels.
    category_ids : (C,), optional
        Label number of each class.
    """
    values = to_numpy(labels, "labels")
    if values.size and values.dtype.kind in "USO":
        return _columns_of_names(values, classes, rows)
    if values.dtype.kind == "b":
        raise InputError("expected labels to be numbers of classes or names, but got True and False")
    if values.dtype.kind == "f" and values.size and not (values == np.floor(values)).all():
        part = float(values[values != np.floor(values)].flat[0])
        raise InputError(
            f"expected labels to be whole numbers or names, but got {part:g}",
            remedy="the order is boxes, scores, labels",
        )
    numbers = frozen(values, np.int64, (rows,), "labels")
    if category_ids is not None:
        ids = frozen(category_ids, np.int64, (len(classes),), "category_ids")
        order = np.argsort(ids, kind="stable")
        if (np.diff(ids[order]) == 0).any():
            twice = int(ids[order][:-1][np.diff(ids[order]) == 0][0])
            raise InputError(f"category id {twice} is given to several classes", remedy="give each class its own")
        place = np.minimum(np.searchsorted(ids[order], numbers), max(len(ids) - 1, 0))
        known = ids[order][place] == numbers if len(ids) else np.zeros(rows, bool)
        if not known.all():
            raise InputError(
                f"label {int(numbers[~known][0])} is not among the {len(ids)} category ids",
                remedy="omit category_ids if labels count from 0",
            )
        return order[place].astype(np.int32)
    wrong = numbers[(numbers < 0) | (numbers >= len(classes))]
    if len(wrong):
        from_one = int(numbers.max()) == len(classes) and int(numbers.min()) >= 1
        raise InputError(
            f"expected labels from 0 to {max(len(classes), 1) - 1}, but got {int(wrong[0])}",
            remedy="subtract 1: they seem to count from 1"
            if from_one
            else "give category_ids= if labels are COCO's category ids",
        )
    return numbers.astype(np.int32)


def _columns_of_names(values: npt.NDArray[Any], classes: tuple[str, ...], rows: int) -> npt.NDArray[np.int32]:
    column = {name: number for number, name in enumerate(classes)}
    names = [str(name) if isinstance(name, str | np.str_) else name for name in values.ravel().tolist()]
    if values.ndim != 1 or len(names) != rows:
        raise InputError(f"expected one label per box, but got {len(names)} for {rows} boxes")
    for name in names:
        if name not in column:
            hint = "give numbers as numbers: int(...)" if str(name).lstrip("-").isdigit() else "use names of classes="
            raise InputError(
                f"expected labels to be among the {len(classes)} classes, but got {name!r:.60}", remedy=hint
            )
    return np.array([column[name] for name in names], np.int32)
