"""COCO's greedy matching of detections with objects by IoU of boxes or masks; every box metric follows from it.

Images are matched separately. Matches of a single image are therefore available, and resampling changes only how often
each detection and object counts. A resampled image counts as adjacent copies with consecutive ids.
`box_definition.copied_images` makes such copies; the functions here give the same values without copying.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.convention import COCO_LIMITS, SIZE_NAMES, Convention, Ranges, thresholds_in_words
from probox.errors import InputError
from probox.measures.boxes.mask_overlaps import masks_of_detections, overlaps_of_masks
from probox.support.formatting import with_count
from probox.support.parallel import thread_count, threads_for
from probox.support.types import Bools, Floats, Ints
from probox.tables.dataset import MAX_SIDE, Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import column_of_each
from probox.tables.results import DetectionTable, ObjectTable, OverlapTable
from probox.tables.table import check_tables

if TYPE_CHECKING:
    from probox.measures.measure import Evaluated

Geometry = Literal["box", "mask"]
"""What IoU is computed from."""

SomeValue = TypeVar("SomeValue")

PAIR_IOU = 0.5
"""IoU threshold of LRP and of matched pairs, whatever the thresholds of mAP."""

SIZES = ("all", *SIZE_NAMES)
"""Names of the area ranges."""

ALL_AREAS = (0.0, 1e10)
"""Limits of the area range ``all`` in square pixels."""


def in_area_ranges(areas: Floats, ranges: Iterable[tuple[float, float]]) -> list[Bools]:
    """Return for each range of a convention which areas lie in it; both limits are included, as in COCO.

    >>> [own.tolist() for own in in_area_ranges(np.array([9.0, 1024.0]), Convention.area_ranges[:2])]
    [[True, True], [False, True]]
    """
    return [(areas >= low) & (areas <= high) for low, high in ranges]


@dataclasses.dataclass(frozen=True)
class BoxRules:
    """Fields of a `Convention` and of a dataset that decide matches and mAP; by default those of COCO.

    Parameters
    ----------
    iou_thresholds, max_detections, area_ranges
        As in `Convention`.
    pair_iou : float
        IoU threshold of matched pairs.
    frequencies : tuple of str
        As in `Dataset`.
    """

    iou_thresholds: tuple[float, ...] = Convention.iou_thresholds
    max_detections: tuple[int, ...] = COCO_LIMITS
    area_ranges: Ranges = Convention.area_ranges
    pair_iou: float = PAIR_IOU
    frequencies: tuple[str, ...] = ()

    @classmethod
    def of(cls, convention: Convention, dataset: Dataset) -> BoxRules:
        """Return the rules of a convention for a dataset."""
        limits = convention.for_rules(dataset.rules).max_detections
        assert limits is not None  # resolved
        return cls(convention.iou_thresholds, limits, convention.area_ranges, frequencies=dataset.frequencies)

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """Return the IoU threshold of each bit of matches: that of pairs, then the others of mAP."""
        return (self.pair_iou, *(iou for iou in self.iou_thresholds if iou != self.pair_iou))

    @cached_property
    def averaged(self) -> Ints:
        """Return the bits of the thresholds of mAP, in their order."""
        return np.array([self.levels.index(iou) for iou in self.iou_thresholds])

    def select_averaged(self, table: Floats, axis: int = 0) -> Floats:
        """Return the entries of the thresholds of mAP from those of all levels, without a copy if they are the same."""
        same = len(self.averaged) == len(self.levels) and bool((np.diff(self.averaged) > 0).all())
        return table if same else np.take(table, self.averaged, axis)

    @cached_property
    def areas(self) -> Floats:
        """Return the limits of the area ranges `SIZES`, both included, (4, 2)."""
        return np.array([ALL_AREAS, *self.area_ranges])

    @property
    def most(self) -> int:
        """Return the limit of detections per image and class; those with the highest scores are kept."""
        return self.max_detections[-1]

    def classes_of(self, frequency: str) -> Ints:
        """Return the classes of a frequency, one of `FREQUENCIES`."""
        return np.flatnonzero(np.array(self.frequencies) == frequency)

    def row_of(self, iou: float) -> int | None:
        """Return the place of a threshold among those of mAP; None if it is not one of them."""
        near = np.flatnonzero(np.isclose(self.iou_thresholds, iou, rtol=0.0, atol=1e-9))
        return int(near[0]) if len(near) else None

    def iou_words(self) -> str:
        """Return the IoU thresholds as text."""
        return thresholds_in_words(self.iou_thresholds, ",")


COCO_RULES = BoxRules()
"""The rules of published COCO numbers."""

IOU_THRESHOLDS = np.array(COCO_RULES.iou_thresholds)
"""IoU thresholds of COCO."""

AREA_RANGES = COCO_RULES.areas
"""COCO's limits of the area ranges in square pixels, both included."""

MAX_DETECTIONS = COCO_RULES.most
"""COCO's limit of detections per image and class."""

_RANGES_OF_BITS = np.arange(1 << len(SIZES))[:, None] >> np.arange(len(SIZES)) & 1
"""For each set of area ranges as bits: 1 for the members."""

for _constant in (IOU_THRESHOLDS, AREA_RANGES, COCO_RULES.averaged):
    _constant.flags.writeable = False


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BoxMatches:
    """Outcomes of all detections and objects under COCO's matching.

    This is everything that average precision and LRP need, without boxes: a table of detections, a table of objects,
    and the number of images. Detections take part if their class is known and if they are among the best of their image
    and class: 100, or the last of the rules' `max_detections`.

    Parameters
    ----------
    classes : tuple of str
        Class names; `labels` and `object_labels` are indices into them.
    images : int
        Number of images, including those without objects or detections.
    image_rows : (N,) int32
        Row of the detection's image, ascending; within an image by label, then rank.
    labels : (N,) int32
        The class.
    scores : (N,) float64
        Its score.
    ranks : (N,) int32
        Number of detections of the same image and class with a higher rank.
    numbers : (N,) int32
        Number within the image, over all detections in the order of their table.
    matched : (N, 4) uint16
        Bit t of column a: matched at IoU threshold t of ``rules.levels`` if only objects of area range a count.
    ignored : (N, 4) uint16
        Bit t of column a: neither right nor wrong. Its match is a crowd or outside the range, or it is unmatched and
        outside the range itself.
    ious : (N, 4) float64
        IoU with the match at IoU 0.5; NaN without match.
    matched_objects : (N,) int32
        Number within the image of the match at IoU 0.5, area range all; -1 without match.
    object_labels : (M,) int32
        The class of each object.
    object_counts : (M,) uint8
        Bit a: it counts in area range a.
    left_out : int
        Excluded detections, of images or classes that the ground truth does not have.
    rules : BoxRules
        IoU thresholds, limits of detections and area ranges.
    """

    classes: tuple[str, ...]
    images: int
    image_rows: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    scores: Floats
    ranks: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.int32]
    matched: npt.NDArray[np.uint16]
    ignored: npt.NDArray[np.uint16]
    ious: Floats
    matched_objects: npt.NDArray[np.int32]
    object_labels: npt.NDArray[np.int32]
    object_counts: npt.NDArray[np.uint8]
    left_out: int = 0
    rules: BoxRules = COCO_RULES

    def __post_init__(self) -> None:
        for values in vars(self).values():
            if isinstance(values, np.ndarray):
                values.flags.writeable = False

    def __len__(self) -> int:
        """Return the number of detections that take part."""
        return len(self.image_rows)

    def __repr__(self) -> str:
        counts = {"detection": len(self), "object": len(self.object_labels), "image": self.images}
        return f"BoxMatches({', '.join(with_count(n, noun) for noun, n in counts.items())})"

    def objects_per_class(self) -> Ints:
        """Return the number of objects of each class in each area range, (C, 4)."""
        kinds = len(_RANGES_OF_BITS)  # of objects: in which of the area ranges they count
        places = self.object_labels.astype(np.int64) * kinds + self.object_counts
        counts = np.bincount(places, minlength=len(self.classes) * kinds).reshape(-1, kinds)
        return np.asarray(counts @ _RANGES_OF_BITS)

    def by_score(self, threads: int | None = None) -> tuple[Ints, Ints]:
        """Return rows by class, then descending score (ties by image, then rank), and the start of each class."""
        return _core.score_order(self.labels, self.scores, len(self.classes), threads_for(len(self), threads))


def match_boxes(
    truth: GroundTruth,
    detections: Detections,
    *,
    convention: Convention | None = None,
    geometry: Geometry = "box",
    threads: int | None = None,
    call: str = "match_boxes",
) -> BoxMatches:
    """Match detections with objects as COCO does, at all IoU thresholds and for four area ranges at once.

    In each image and class, up to 100 detections, or the last of `max_detections`, are matched in the order of their
    scores, ties in table order. At threshold t a detection takes the unmatched object of highest IoU, if that is at
    least t. Crowds and objects outside the area range are matched only if no other object remains, and the detection is
    then ignored. A crowd can match any number of detections; its IoU is the fraction of the detection inside it.

    Classes are matched by name, including synonyms. A detection's class is the given one, or else the most probable of
    the ground truth's classes. Detections of other classes or images are excluded and counted in
    `BoxMatches.left_out`.

    With ground truth of LVIS or Open Images, so are detections that `judged_detections` excludes. Unmatched detections
    of a class that is not exhaustively annotated in their image are ignored.

    Parameters
    ----------
    truth : GroundTruth
        Ground truth.
    detections : Detections
        Detections with class, score and box.
    convention : Convention, optional
        Its `iou_thresholds`, `max_detections` and `area_ranges` are used. Default: those of COCO.
    geometry : {"box", "mask"}
        IoU of boxes or of masks. In metrics of masks, a detection without a mask has the pixels of its box.
    threads : int, optional
        Number of threads. Default: all available. Results are bit-identical for any number.
    call : str
        Name of the function that the user called, for messages.

    Returns
    -------
    BoxMatches
        Outcomes of detections and objects.

    Examples
    --------
    >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
    >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
    >>> float(match_boxes(truth, detections).ious[0, 0])
    0.9
    """
    check_tables(truth, detections, call)
    labels, scores = detections.named_classes(truth.classes)
    rules = BoxRules.of(Convention() if convention is None else convention, truth.dataset)
    image_rows = truth.dataset.rows_of(detections.image_ids)
    if truth.dataset.partly_annotated:
        within, checked = judged_detections(truth, rules.most, image_rows, labels, scores)
        labels = np.where(within & checked, labels, -1).astype(np.int32)
    overlaps = None
    if check_geometry(geometry) == "mask":
        if not detections.has_pixels:
            raise InputError("expected detections with masks", remedy='give them masks, or use geometry="box"')
        detections = detections.with_binary_masks()
        known = np.flatnonzero(image_rows >= 0)
        shapes = np.full((len(image_rows), 2), MAX_SIDE, np.int32)  # of unknown images
        shapes[known] = truth.dataset.shapes[image_rows[known]]
        masks = masks_of_detections(detections, shapes)
        overlaps = overlaps_of_masks(truth.dataset, image_rows, labels, masks, truth, truth.masks, threads=threads)
    named = NamedBoxes(image_rows, labels, detections.boxes, detections.extents, scores, detections.areas)
    return match_columns(truth.dataset, named, truth, rules, overlaps, threads=threads)


def judged_detections(
    truth: GroundTruth, most: int, image_rows: Ints, labels: npt.NDArray[np.int32], scores: Floats
) -> tuple[Bools, Bools]:
    """Return which detections are among the best `most` of their image (LVIS), and which are of a checked class.

    An image is checked for the classes of its objects and its `negatives`. Scores are ranked over all classes, ties in
    table order; -1 stands for unknown images and classes.

    >>> truth = GroundTruth.from_boxes(["cup", "dog"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
    >>> truth = truth.replace(dataset=truth.dataset.replace(rules="lvis"))
    >>> best, checked = judged_detections(truth, 1, np.array([0, 0]), np.array([0, 1]), np.array([0.3, 0.5]))
    >>> best.tolist(), checked.tolist()
    ([False, True], [True, False])
    """
    dataset = truth.dataset
    within = np.ones(len(scores), bool)
    if dataset.rules == "lvis" and np.bincount(image_rows + 1).max(initial=0) > most:
        order = np.lexsort((-scores, image_rows))
        first = np.searchsorted(image_rows[order], image_rows[order])
        within[order] = np.arange(len(order)) - first < most
    positive = dataset.are_among(truth.image_rows, truth.labels, image_rows, labels)
    return within, positive | dataset.is_listed(dataset.negatives or (), image_rows, labels)


class NamedBoxes(NamedTuple):
    """The columns of detections that matching needs; image rows and labels are those of the ground truth."""

    image_rows: Ints
    labels: npt.NDArray[np.int32]
    boxes: Floats
    extents: Floats
    scores: Floats
    areas: Floats | None = None


def match_columns(
    dataset: Dataset,
    found: NamedBoxes | DetectionTable,
    there: GroundTruth | ObjectTable,
    rules: BoxRules = COCO_RULES,
    overlaps: OverlapTable | None = None,
    *,
    threads: int | None = None,
) -> BoxMatches:
    """Match detections by image row and class of the dataset (-1: unknown), as `match_boxes` does.

    With `overlaps`, these and the areas of masks replace those of boxes.
    """
    given: _Columns = {} if overlaps is None else {
        "areas": found.areas,
        "overlap_offsets": np.searchsorted(overlaps.detections, np.arange(len(found.labels) + 1)),
        "overlap_objects": overlaps.objects,
        "overlap_ious": overlaps.ious,
    }  # fmt: skip
    columns = match_levels(
        rules,
        lenient=not_exhaustive(dataset, found.image_rows, found.labels),
        image_rows=found.image_rows,
        labels=found.labels,
        boxes=found.boxes,
        extents=found.extents,
        scores=found.scores,
        object_offsets=dataset.offsets(there.image_rows),
        object_labels=there.labels,
        object_boxes=there.boxes,
        object_extents=there.extents,
        object_areas=there.areas,
        object_crowd=there.crowd,
        threads=threads_for(len(found.labels), threads),
        **given,
    )
    areas, crowd = there.areas, there.crowd
    counted = np.stack(in_area_ranges(areas, (ALL_AREAS, *rules.area_ranges)), axis=1) & ~crowd[:, None]
    return BoxMatches(
        classes=dataset.classes,
        images=len(dataset),
        object_labels=there.labels,
        object_counts=np.packbits(counted, axis=1, bitorder="little")[:, 0],
        left_out=int(np.count_nonzero((found.image_rows < 0) | (found.labels < 0))),
        rules=rules,
        **columns,
    )


def not_exhaustive(dataset: Dataset, image_rows: Ints, labels: npt.NDArray[np.int32]) -> Bools:
    """Return the detections of classes that are not exhaustively annotated in their image: ignored without a match."""
    return dataset.is_listed(dataset.not_exhaustive or (), image_rows, labels)


def match_levels(rules: BoxRules, **columns: Any) -> _Columns:
    """Return the kernel's matches; those of bit 0 have an IoU of 0.5, also if a threshold is lower."""
    levels = np.array(rules.levels)
    match: Callable[..., Any] = partial(
        _core.match_boxes, area_ranges=rules.areas, max_detections=rules.most, **columns
    )
    if (np.diff(levels) > 0).all():
        found: _Columns = match(iou_thresholds=levels)
        return found
    # The kernel takes ascending thresholds and matches each on its own.
    first, others = match(iou_thresholds=levels[:1]), match(iou_thresholds=levels[1:])
    return {**first, **{name: first[name] | (others[name] << 1) for name in ("matched", "ignored")}}


PREFIXES: dict[Geometry, str] = {"box": "", "mask": "mask_"}
"""Prefix of the keys of values."""


def keys_for(geometry: Geometry, values: dict[str, SomeValue]) -> dict[str, SomeValue]:
    """Return values by the keys of the metric of boxes or of masks.

    >>> keys_for("mask", {"AP50": 0.5})
    {'mask_AP50': 0.5}
    """
    return {f"{PREFIXES[geometry]}{key}": value for key, value in values.items()}


def check_geometry(geometry: Any) -> Geometry:
    """Return what IoU is computed from, or raise if it is unknown."""
    if geometry not in get_args(Geometry):
        raise InputError(f"expected geometry to be 'box' or 'mask', got {geometry!r:.40}")
    known: Geometry = geometry
    return known


def matches_by(evaluated: Evaluated, geometry: Geometry) -> BoxMatches:
    """Return the matches of an evaluation by IoU of boxes or masks."""
    return evaluated.box_matches if geometry == "box" else evaluated.mask_matches


def mean_of_defined(values: Floats) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    defined = values[~np.isnan(values)]
    # Equal to `mean`, whose checks take longer than the sum of a few classes.
    return float(np.add.reduce(defined) / defined.size) if defined.size else float("nan")


def size_index(size: str) -> int:
    """Return the column of the area range `size`."""
    if size not in SIZES:
        raise InputError(f"expected size to be one of {', '.join(SIZES)}, got {size!r}")
    return SIZES.index(size)


def class_index(classes: Sequence[str], name: str) -> int:
    """Return the index of the class `name`, in any of its spellings."""
    row = classes.index(name) if name in classes else int(column_of_each([name], classes)[0])
    if row < 0:
        raise InputError(f"unknown class {name!r}", remedy=f"use one of {', '.join(classes)}")
    return row


def means_of_defined(values: Floats) -> Floats:
    """Return the mean over the last axis of values that are not NaN; NaN if there are none."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(defined, values, 0.0).sum(axis=-1) / defined.sum(axis=-1)
    return mean


_Columns = dict[str, Any]
"""The kernel's input columns of detections and objects by class, for objects of all sizes."""


def resampled_precision(
    matches: BoxMatches, object_images: Ints, weights: Ints, recall_points: Floats, *, threads: int | None = None
) -> Floats:
    """Return average precision of each replicate by IoU threshold and class, (R, T, C), for objects of all sizes.

    Parameters
    ----------
    matches : BoxMatches
        Outcomes of detections and objects.
    object_images : (M,) int64
        Image row of each object.
    weights : (R, I) int64
        Number of times each image counts in each replicate.
    recall_points : array of float
        Recalls at which precision is evaluated, ascending.
    threads : int, optional
        Number of threads. Default: all available. Results are bit-identical for any number.
    """
    columns = _by_class(matches, object_images, weights, threads)
    return _precision(matches.rules, columns, recall_points, thread_count(threads))


def resampled_lrp(
    matches: BoxMatches, object_images: Ints, weights: Ints, score_thresholds: Floats, *, threads: int | None = None
) -> Floats:
    """Return optimal LRP and its components loc, fp and fn for each replicate and class, (R, C, 4).

    Parameters are those of `resampled_precision`; `score_thresholds`, ascending, are the candidates of the optimum.
    """
    columns = _by_class(matches, object_images, weights, threads)
    return _lrp(columns, matches.ious[:, 0], score_thresholds, thread_count(threads))


def image_precision(matches: BoxMatches, object_images: Ints, recall_points: Floats) -> Floats:
    """Return average precision of each image by IoU threshold, the last row being the mean over them, (T + 1, I)."""
    rules = matches.rules
    precision, images = _measure_groups(
        matches,
        object_images,
        len(rules.iou_thresholds),
        lambda columns, rows: _precision(rules, columns, recall_points, 1)[0],
    )
    return _means(np.concatenate([precision, precision.mean(axis=0, keepdims=True)]), images, matches.images)


def image_lrp(matches: BoxMatches, object_images: Ints, score_thresholds: Floats) -> Floats:
    """Return optimal LRP and its components loc, fp and fn for each image, as means over its classes, (4, I).

    `score_thresholds` are the candidates of the optimum of a class in an image.
    """
    optima, images = _measure_groups(
        matches, object_images, 4, lambda columns, rows: _lrp(columns, matches.ious[rows, 0], score_thresholds, 1)[0].T
    )
    return _means(optima, images, matches.images)


def _precision(rules: BoxRules, columns: _Columns, recall_points: Floats, threads: int) -> Floats:
    levels = _core.resampled_precision(
        **columns, thresholds=len(rules.levels), recall_points=recall_points, threads=threads
    )
    return rules.select_averaged(levels, axis=1)


def _lrp(columns: _Columns, ious: Floats, score_thresholds: Floats, threads: int) -> Floats:
    right = columns["right"] & 1 == 1  # at IoU 0.5
    return _core.resampled_lrp(
        **columns,
        errors=np.where(right, 1.0 - ious, 0.0),
        score_thresholds=score_thresholds,
        slack=1.0 - PAIR_IOU,
        threads=threads,
    )


def _by_class(matches: BoxMatches, object_images: Ints, weights: Ints, threads: int | None) -> _Columns:
    order, offsets = matches.by_score(threads)
    counted = np.flatnonzero(matches.object_counts & 1)
    counted = counted[np.argsort(matches.object_labels[counted], kind="stable")]
    per_class = np.bincount(matches.object_labels[counted], minlength=len(matches.classes))
    return {
        "order": order,
        "offsets": offsets,
        "image_rows": matches.image_rows,
        **_outcomes(matches, slice(None)),
        "object_offsets": np.concatenate([[0], np.cumsum(per_class)]).astype(np.int64),
        "object_images": object_images[counted].astype(np.int32),
        "weights": np.ascontiguousarray(weights, np.int64),
    }


def _outcomes(matches: BoxMatches, rows: Ints | slice) -> _Columns:
    matched, ignored = matches.matched[rows, 0], matches.ignored[rows, 0]
    return {
        "scores": matches.scores[rows],
        "right": matched & ~ignored,
        "wrong": ~(matched | ignored) & np.uint16(2 ** len(matches.rules.levels) - 1),
    }


_GROUPS = 50_000  # at a time: each holds a value per score threshold


def _measure_groups(
    matches: BoxMatches, object_images: Ints, numbers: int, measure: Callable[[_Columns, Ints], Floats]
) -> tuple[Floats, Ints]:
    """Return values of each class of each image that has objects of it, (numbers, G), and the images, (G,).

    The kernel receives each such group as a class, and all groups as one image that counts once.
    """
    classes = max(len(matches.classes), 1)
    counted = matches.object_counts & 1 == 1
    keys, objects = np.unique(
        object_images[counted].astype(np.int64) * classes + matches.object_labels[counted], return_counts=True
    )
    # Within an image and class, matches are ordered by descending score.
    found = matches.image_rows.astype(np.int64) * classes + matches.labels
    first, last = (np.searchsorted(found, keys, side=side) for side in ("left", "right"))
    parts = [np.zeros((numbers, 0))]
    for some in (slice(start, start + _GROUPS) for start in range(0, len(keys), _GROUPS)):
        lengths = last[some] - first[some]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(offsets[-1]) + np.repeat(first[some] - offsets[:-1], lengths)
        columns = {
            "order": np.arange(len(rows)),
            "offsets": offsets,
            "image_rows": np.zeros(len(rows), np.int32),
            **_outcomes(matches, rows),
            "object_offsets": np.concatenate([[0], np.cumsum(objects[some])]),
            "object_images": np.zeros(objects[some].sum(), np.int32),
            "weights": np.ones((1, 1), np.int64),
        }
        parts.append(measure(columns, rows))
    return np.concatenate(parts, axis=1), keys // classes


def _means(values: Floats, images: Ints, count: int) -> Floats:
    """Return the means over each image's groups of values that are not NaN; NaN if there are none."""
    means = np.full((len(values), count), np.nan)
    for row, own in enumerate(values):
        defined = ~np.isnan(own)
        sums, numbers = np.bincount(images[defined], own[defined], count), np.bincount(images[defined], minlength=count)
        np.divide(sums, numbers, out=means[row], where=numbers > 0)
    return means
