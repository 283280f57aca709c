"""COCO matches in about ten bytes per detection; mAP and LRP follow from them, bit-identical to those of the tables.

A detection has a score, a class, and an index of its *outcome*: at which IoU thresholds and for which object sizes it
is right, wrong or ignored. Different outcomes are few, and each is stored once. The IoU itself is stored for detections
that are right. Rows are ordered by image, class and rank, so these need no columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.measures.boxes.matching import COCO_RULES, SIZES, BoxMatches, BoxRules
from probox.measures.boxes.mean_ap import RECALL_POINTS, AveragePrecisionResult
from probox.measures.boxes.optimal_lrp import LRPResult, Rated, curve_of_totals, thresholds_kept, totals_of_rows
from probox.support.types import Floats, Ints

Flags = npt.NDArray[np.bool_]

_AT_ONCE = 1 << 18
_MANY = 1 << 22
"""Classes with more detections process fewer IoU thresholds at a time: each takes 16 bytes per right detection."""
_SIZES = len(SIZES)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class BoxColumns:
    """Outcomes of detections, and objects, in columns.

    Parameters
    ----------
    counts : (I,) int32
        Number of detections of each image.
    object_counts : (I,) int32
        Number of objects of each image.
    scores : (N,) float32 or float64
        Scores; single precision if that is exact.
    labels : (N,) uint8, uint16 or int32
        Classes of detections.
    outcomes : (N,) uint16 or int32
        Rows of `patterns`.
    patterns : (P, 8) uint16
        `matched` and `ignored` of `BoxMatches`, four numbers each, ascending.
    overlaps : (K,) float64
        IoU with the match of each right detection, in the order of rows, among objects of all sizes. NaN if a detection
        is only right among objects of some size.
    odd_rows, odd_sizes, odd_overlaps : (E,) int64, uint8, float64
        Exceptions: detections whose IoU among objects of one size differs from that among all.
    object_labels : (M,) uint8, uint16 or int32
        Classes of objects, by image.
    object_sizes : (M,) uint8
        Bit a is set for objects that count in size range a.
    left_out : int
        Number of detections whose class the ground truth does not have.
    """

    counts: npt.NDArray[np.int32]
    object_counts: npt.NDArray[np.int32]
    scores: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    outcomes: npt.NDArray[Any]
    patterns: npt.NDArray[np.uint16]
    overlaps: npt.NDArray[np.float64]
    odd_rows: Ints
    odd_sizes: npt.NDArray[np.uint8]
    odd_overlaps: npt.NDArray[np.float64]
    object_labels: npt.NDArray[Any]
    object_sizes: npt.NDArray[np.uint8]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def of(cls, matches: BoxMatches, object_images: Ints) -> BoxColumns:
        """Return the columns of matches; `object_images` are the rows of the objects' images, ascending."""
        classes, images = len(matches.classes), matches.images
        patterns, outcomes = _encode(np.concatenate([matches.matched, matches.ignored], axis=1))
        right = _rightness(patterns)[outcomes]
        rows = np.flatnonzero(right.any(axis=1))
        base = np.where(right[rows, 0], matches.ious[rows, 0], np.nan)
        exception, size = np.nonzero(right[rows] & (matches.ious[rows] != base[:, None]))
        return cls(
            counts=np.bincount(matches.image_rows, minlength=images).astype(np.int32),
            object_counts=np.bincount(object_images, minlength=images).astype(np.int32),
            scores=_in_single(matches.scores),
            labels=matches.labels.astype(_small_type(classes)),
            outcomes=outcomes,
            patterns=patterns,
            overlaps=base,
            odd_rows=rows[exception],
            odd_sizes=size.astype(np.uint8),
            odd_overlaps=matches.ious[rows[exception], size],
            object_labels=matches.object_labels.astype(_small_type(classes)),
            object_sizes=matches.object_counts,
            left_out=matches.left_out,
        )

    @property
    def bytes(self) -> int:
        """Return the memory of the columns in bytes."""
        return sum(values.nbytes for values in vars(self).values() if isinstance(values, np.ndarray))

    def object_images(self) -> Ints:
        """Return the row of each object's image."""
        return np.repeat(np.arange(len(self.object_counts)), self.object_counts)

    # --- metrics ---

    def objects_per_class(self, classes: int) -> Ints:
        """Return the number of objects of each class in each area range, (C, 4)."""
        counts = np.zeros((classes, _SIZES), np.int64)
        for size in range(_SIZES):
            counts[:, size] = np.bincount(self.object_labels[(self.object_sizes >> size) & 1 == 1], minlength=classes)
        return counts

    def average_precision(self, classes: tuple[str, ...], rules: BoxRules = COCO_RULES) -> AveragePrecisionResult:
        """Return average precision by the rules of matching, class by class and size by size to limit memory."""
        objects = self.objects_per_class(len(classes))
        return AveragePrecisionResult.from_tables(classes, objects, partial(self._precision, objects, rules), rules)

    def _precision(self, objects: Ints, rules: BoxRules, start: int, stop: int) -> tuple[Floats, Floats, Floats]:
        """Return precision, score and recall of a range of classes."""
        levels, shape, limits = len(rules.levels), (stop - start, _SIZES), np.array(rules.max_detections, np.int64)
        precision, score = (np.full((levels, len(RECALL_POINTS), *shape), np.nan) for _ in range(2))
        recall = np.full((levels, *shape, len(limits)), np.nan)
        image_starts = self._image_starts()
        for label, rows in self._classes(start, stop):
            # One class may hold most detections: arrays are deleted as early as possible.
            ranks, outcomes, own = _ranks(rows, image_starts), self.outcomes[rows], self.scores[rows]
            offsets = np.array([0, len(rows)])
            del rows
            order = np.argsort(-own, kind="stable")
            scores = own.astype(np.float64)
            del own
            at_once = levels if len(outcomes) <= _MANY else 2
            for first in range(0, levels, at_once):
                some = slice(first, min(first + at_once, levels))
                for size in range(_SIZES):
                    found = _core.precision_at_recall(
                        order=order,
                        offsets=offsets,
                        scores=scores,
                        ranks=ranks,
                        matched=(self.patterns[:, size] >> first)[outcomes][:, None],
                        ignored=(self.patterns[:, _SIZES + size] >> first)[outcomes][:, None],
                        objects=objects[label : label + 1, size : size + 1],
                        thresholds=some.stop - some.start,
                        recall_points=RECALL_POINTS,
                        limits=limits,
                        threads=1,
                    )
                    precision[some, :, label - start, size] = found[0][:, :, 0, 0]
                    score[some, :, label - start, size] = found[1][:, :, 0, 0]
                    recall[some, label - start, size] = found[2][:, 0, 0]
        return rules.select_averaged(precision), rules.select_averaged(score), rules.select_averaged(recall)

    def lrp(self, classes: tuple[str, ...]) -> LRPResult:
        """Return LRP on the paper's grid of thresholds, one class after the other."""
        objects = self.objects_per_class(len(classes))
        rightness = _rightness(self.patterns)
        right_rows = self._right_rows(rightness)

        def curves() -> Iterator[Any]:
            for label, rows in self._classes(0, len(classes)):
                rows = rows[np.argsort(-self.scores[rows], kind="stable")]
                thresholds, kept = thresholds_kept(self.scores[rows], "grid")
                totals = totals_of_rows(self._rate(rows, rightness, right_rows), kept)
                yield curve_of_totals(thresholds, objects[label], *totals)

        return LRPResult.from_curves(curves(), classes, objects)

    def _rate(self, ranked: Ints, rightness: Flags, right_rows: Ints) -> Iterator[Rated]:
        """Yield the outcomes of detections at IoU 0.5, in blocks."""
        wrongness = _wrongness(self.patterns)
        for start in range(0, len(ranked), _AT_ONCE):
            some = ranked[start : start + _AT_ONCE]
            right = rightness[self.outcomes[some]]
            errors = np.where(right, 1.0 - self._overlaps(some, right, right_rows), 0.0)
            yield right, wrongness[self.outcomes[some]], errors

    def _overlaps(self, rows: Ints, right: Flags, right_rows: Ints) -> npt.NDArray[np.float64]:
        """Return the IoU of some rows for each size, (n, 4); NaN if not right."""
        overlaps = np.full((len(rows), _SIZES), np.nan)
        has = right.any(axis=1)
        overlaps[has] = self.overlaps[np.searchsorted(right_rows, rows[has])][:, None]
        for size in range(_SIZES):
            mine = self.odd_sizes == size
            exceptions = self.odd_rows[mine]
            if len(exceptions):
                at = np.minimum(np.searchsorted(exceptions, rows), len(exceptions) - 1)
                there = exceptions[at] == rows
                overlaps[there, size] = self.odd_overlaps[mine][at[there]]
        return np.where(right, overlaps, np.nan)

    def _classes(self, start: int, stop: int) -> Iterator[tuple[int, Ints]]:
        """Yield each class of a range with its rows, ascending."""
        totals = np.bincount(self.labels, minlength=stop)[start:stop]
        for first, last in _cut_classes(totals):
            if last - first == 1:
                yield start + first, np.flatnonzero(self.labels == start + first)
                continue
            chosen = np.flatnonzero((self.labels >= start + first) & (self.labels < start + last))
            by_class = chosen[np.argsort(self.labels[chosen], kind="stable")]
            rows = np.split(by_class, np.cumsum(totals[first : last - 1]))
            yield from zip(range(start + first, start + last), rows, strict=True)

    def _image_starts(self) -> Ints:
        """Return the first row of each image."""
        return np.cumsum(self.counts, dtype=np.int64) - self.counts

    def _right_rows(self, rightness: Flags) -> Ints:
        """Return the rows that are right at any IoU threshold or size, ascending: those with a stored IoU."""
        return np.flatnonzero(np.asarray(rightness.any(axis=1))[self.outcomes])

    def box_matches(self, classes: tuple[str, ...], rules: BoxRules = COCO_RULES) -> BoxMatches:
        """Return the matches as `BoxMatches`, for the bootstrap; matched objects are unknown."""
        rightness = _rightness(self.patterns)
        rows = np.arange(len(self))
        other_class = np.flatnonzero(self.labels[1:] != self.labels[:-1]) + 1
        patterns = self.patterns[self.outcomes]
        unknown = np.full(len(self), -1, np.int32)
        return BoxMatches(
            classes=classes,
            images=len(self.counts),
            image_rows=np.repeat(np.arange(len(self.counts), dtype=np.int32), self.counts),
            labels=self.labels.astype(np.int32),
            scores=self.scores.astype(np.float64),
            ranks=_ranks(rows, np.append(self._image_starts(), other_class)),
            numbers=unknown,
            matched=np.ascontiguousarray(patterns[:, :_SIZES]),
            ignored=np.ascontiguousarray(patterns[:, _SIZES:]),
            ious=self._overlaps(rows, rightness[self.outcomes], self._right_rows(rightness)),
            matched_objects=unknown,
            object_labels=self.object_labels.astype(np.int32),
            object_counts=self.object_sizes,
            left_out=self.left_out,
            rules=rules,
        )


def merge_boxes(parts: Sequence[BoxColumns], image_order: Ints) -> BoxColumns:
    """Return the merged columns of consecutive parts, with images in `image_order`."""
    patterns = np.unique(np.concatenate([part.patterns for part in parts]), axis=0)
    outcomes = [_small(_rows_in(part.patterns, patterns), len(patterns))[part.outcomes] for part in parts]
    starts = np.cumsum([0, *map(len, parts)])
    together: dict[str, npt.NDArray[Any]] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("counts", "object_counts", "scores", "labels", "overlaps", "odd_sizes", "odd_overlaps",
                     "object_labels", "object_sizes")
    }  # fmt: skip
    together["odd_rows"] = np.concatenate([part.odd_rows + start for part, start in zip(parts, starts, strict=False)])
    together["outcomes"] = np.concatenate(outcomes)
    if not np.array_equal(image_order, np.arange(len(image_order))):
        together = _reorder(together, patterns, image_order)
    return BoxColumns(patterns=patterns, left_out=sum(part.left_out for part in parts), **together)


def _reorder(columns: dict[str, npt.NDArray[Any]], patterns: npt.NDArray[np.uint16], order: Ints) -> dict[str, Any]:
    """Return columns with images in another order."""
    rows = _rows_of_images(columns["counts"], order)
    objects = _rows_of_images(columns["object_counts"], order)
    has: Flags = np.asarray(_rightness(patterns).any(axis=1))[columns["outcomes"]]
    place = np.cumsum(has, dtype=np.int64) - 1
    new_row = np.empty(len(rows), np.int64)
    new_row[rows] = np.arange(len(rows))
    exceptions = new_row[columns["odd_rows"]]
    by_row = np.lexsort((columns["odd_sizes"], exceptions))
    return {
        "counts": columns["counts"][order],
        "object_counts": columns["object_counts"][order],
        "scores": columns["scores"][rows],
        "labels": columns["labels"][rows],
        "outcomes": columns["outcomes"][rows],
        "overlaps": columns["overlaps"][place[rows[has[rows]]]],
        "odd_rows": exceptions[by_row],
        "odd_sizes": columns["odd_sizes"][by_row],
        "odd_overlaps": columns["odd_overlaps"][by_row],
        "object_labels": columns["object_labels"][objects],
        "object_sizes": columns["object_sizes"][objects],
    }


def _ranks(rows: Ints, starts: Ints) -> npt.NDArray[np.int32]:
    """Return the number of rows before each one since the last of `starts`, where images (or classes) begin."""
    first = np.zeros(len(rows) + 1, bool)
    first[np.searchsorted(rows, starts)] = True
    first[:1] = True
    begins = np.flatnonzero(first[: len(rows)])
    ranks = np.arange(len(rows), dtype=np.int32)
    ranks -= np.repeat(begins.astype(np.int32), np.diff(np.append(begins, len(rows))))
    return ranks


def _rows_of_images(counts: npt.NDArray[np.int32], order: Ints) -> Ints:
    """Return the rows of images in another order."""
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    lengths = counts[order].astype(np.int64)
    shift = starts[:-1][order] - (np.cumsum(lengths) - lengths)
    return np.repeat(shift, lengths) + np.arange(int(lengths.sum()))


def _rightness(patterns: npt.NDArray[np.uint16]) -> Flags:
    """Return whether each outcome is right at IoU 0.5, (P, 4)."""
    return np.asarray((patterns[:, :_SIZES] & ~patterns[:, _SIZES:]) & 1 == 1, np.bool_)


def _wrongness(patterns: npt.NDArray[np.uint16]) -> Flags:
    """Return whether each outcome is wrong at IoU 0.5, (P, 4)."""
    return np.asarray((patterns[:, :_SIZES] | patterns[:, _SIZES:]) & 1 == 0, np.bool_)


def _encode(rows: npt.NDArray[np.uint16]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[Any]]:
    """Return the distinct rows, ascending, and the index of each row among them."""
    if not len(rows):
        return rows.copy(), np.zeros(0, np.uint16)
    # As two 64-bit numbers per row, which is 20 times as fast as sorting rows of eight.
    halves = np.ascontiguousarray(rows).view(np.uint64)
    first, second = (np.unique(half, return_inverse=True)[1].reshape(-1) for half in halves.T)
    _, example, number = np.unique(first * (int(second.max()) + 1) + second, return_index=True, return_inverse=True)
    patterns, place = np.unique(rows[example], axis=0, return_inverse=True)
    return patterns, _small(place.reshape(-1)[number.reshape(-1)], len(patterns))


def _rows_in(rows: npt.NDArray[np.uint16], known: npt.NDArray[np.uint16]) -> Ints:
    """Return the index of each row among the known ones, which include all rows."""
    return _encode(np.concatenate([known, rows]))[1][len(known) :].astype(np.int64)


def _small(numbers: Ints, count: int) -> npt.NDArray[Any]:
    return numbers.astype(np.uint16 if count <= 1 << 16 else np.int32)


def _small_type(classes: int) -> Any:
    """Return the smallest type that holds every class."""
    return np.uint8 if classes <= 1 << 8 else np.uint16 if classes <= 1 << 16 else np.int32


def _in_single(scores: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Return scores in single precision if that loses nothing."""
    with np.errstate(over="ignore"):
        single = scores.astype(np.float32)
    return single if np.array_equal(single.astype(np.float64), scores) else scores


def _cut_classes(totals: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of classes: several with few detections together, or one with many; each range is one pass."""
    first, size = 0, 0
    for label, total in enumerate(totals.tolist()):
        if label > first and size + total > 4 * _AT_ONCE:
            yield first, label
            first, size = label, 0
        size += total
    if len(totals):
        yield first, len(totals)
