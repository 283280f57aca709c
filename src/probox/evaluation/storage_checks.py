"""Consistency of a stored evaluation: rows exist, numbers are valid, matches follow from the pairs."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.archive import LABELS, Arrays
from probox.evaluation.box_columns import BoxColumns
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import SIZES, BoxRules
from probox.measures.registry import need_masks
from probox.support.types import Bools, Floats, Ints
from probox.tables.dataset import CLASS_LISTS
from probox.tables.masks import count_pixels, unusable_masks
from probox.tables.results import QUALITIES, JudgedTable
from probox.tables.row_problems import FARTHEST, ROUNDING

LAST_CHARACTER = 0x10FFFF
ROUNDED = 1e-9
"""Relative tolerance between pPDQ and the product of spatial and label quality: libraries round powers differently."""
ROUNDED_OFF = 2.0**-537
"""Absolute tolerance: pPDQ is the root of a product, which loses digits near the smallest positive float."""


class StorageChecks:
    """Checks of the columns of a file; any invalid row raises `InputError`."""

    def __init__(self, file: str) -> None:
        self.file = file

    def fail(self, problem: str, entry: str) -> NoReturn:
        """Raise with the name of the file."""
        raise InputError(problem, file=self.file, entry=entry, remedy="evaluate again")

    def require(self, fine: Bools, column: str, problem: str) -> None:
        """Raise for the first invalid row; all numbers of a row must be valid."""
        if not fine.all():
            rows = fine.all(axis=tuple(range(1, fine.ndim)))
            self.fail(problem, f"{column}[{int(np.flatnonzero(~rows)[0])}]")

    def check_images(self, arrays: Arrays) -> None:
        """Raise for invalid file names of images, and for lists of classes that do not fit."""
        names = arrays["images.file_name"]
        characters = names.view(np.uint32).reshape(len(names), names.dtype.itemsize // 4)
        self.require(characters <= LAST_CHARACTER, "images.file_name", "expected text")
        for name in CLASS_LISTS:
            counts, listed = (arrays.get(f"{name}.{part}") for part in ("count", "class_index"))
            if (counts is None) != (listed is None):
                self.fail("expected both count and class_index", name)
            if counts is None or listed is None:
                continue
            self.require(counts >= 0, f"{name}.count", "expected a number of classes")
            if int(counts.sum(dtype=np.int64)) != len(listed):
                self.fail(f"expected {len(listed)} classes in all", f"{name}.count")

    def check_labels(self, arrays: Arrays, classes: int) -> None:
        """Raise for invalid label probabilities."""
        counts, class_index, probability, rest, shares_rest = (arrays[name] for name in LABELS)
        if len(shares_rest) != classes:
            self.fail(f"expected {classes} classes, but got {len(shares_rest)}", "labels.shares_rest")
        self.require((counts >= 0) & (counts <= classes), "labels.count", "expected at most one probability per class")
        if int(counts.sum(dtype=np.int64)) != len(probability):
            total = int(counts.sum(dtype=np.int64))
            self.fail(f"expected {len(probability)} probabilities in all, but got {total}", "labels.count")
        for name, values in (("probability", probability), ("rest", rest)):
            fine = (values >= -ROUNDING) & (values <= 1 + ROUNDING)
            self.require(fine, f"labels.{name}", "expected probabilities between 0 and 1")
        if not len(class_index) and (counts == classes).all():  # a matrix
            return
        if len(class_index) != len(probability):
            self.fail(f"expected a class of each of {len(probability)} probabilities", "labels.class_index")
        self.require((class_index >= 0) & (class_index < classes), "labels.class_index", "no such class")
        row = np.repeat(np.arange(len(counts)), counts)
        later = (row[1:] > row[:-1]) | (class_index[1:] > class_index[:-1])
        self.require(_after_start(later)[: len(row)], "labels.class_index", "expected each class once, ascending")

    def check_boxes(self, boxes: BoxColumns, classes: int, rules: BoxRules, group: str) -> None:
        """Raise for invalid columns of a group of box columns, such as references to missing rows."""

        def require(fine: Any, entry: str, problem: str) -> None:
            if not fine:
                self.fail(problem, f"{group}.{entry}")

        def below(values: npt.NDArray[Any], count: int) -> bool:
            return not len(values) or bool(values.min() >= 0 and values.max() < count)

        for name, rows in (("counts", boxes.scores), ("object_counts", boxes.object_labels)):
            values = getattr(boxes, name)
            fine = (values >= 0).all() and int(values.sum(dtype=np.int64)) == len(rows)
            require(fine, name, "expected as many as there are rows")
        for name in ("labels", "object_labels"):
            require(below(getattr(boxes, name), classes), name, "no such class")
        outcomes = boxes.outcomes
        require(below(outcomes, len(boxes.patterns)), "outcomes", "no such outcome")
        require(np.isfinite(boxes.scores).all(), "scores", "expected finite numbers")
        right = boxes.patterns[:, : len(SIZES)] & ~boxes.patterns[:, len(SIZES) :]
        kept = ((right & 1) == 1).any(axis=1)
        require(int(kept[outcomes].sum()) == len(boxes.overlaps), "overlaps", "expected one per right detection")
        for name in ("overlaps", "odd_overlaps"):
            values = getattr(boxes, name)
            require((np.isnan(values) | ((values >= 0) & (values <= 1 + 1e-3))).all(), name, "expected 0 to 1")
        rows = np.flatnonzero((right != 0).any(axis=1)[outcomes])
        labels, found, objects = boxes.labels[rows], right[outcomes[rows]], boxes.objects_per_class(classes)
        for level, size in np.ndindex(len(rules.levels), len(SIZES)):
            counts = np.bincount(labels[(found[:, size] >> level) & 1 == 1], minlength=classes)
            require((counts <= objects[:, size]).all(), "outcomes", "expected no more right detections than objects")
        inside = below(boxes.odd_rows, len(outcomes)) and (np.diff(boxes.odd_rows) >= 0).all()
        require(inside and (boxes.odd_sizes < len(SIZES)).all(), "odd_rows", "no such detection")

    def check_evaluation(self, evaluation: Evaluation) -> None:
        """Raise for invalid tables of an evaluation."""
        self._check_objects(evaluation)
        self._check_masks(evaluation)
        self._check_detections(evaluation)
        self._check_pairs(evaluation)
        self._check_overlaps(evaluation)
        self._check_matches(evaluation)

    def _check_objects(self, evaluation: Evaluation) -> None:
        there = evaluation.objects
        self._check_image_rows(there.image_rows, "objects")
        fine = (there.labels >= 0) & (there.labels < len(evaluation.classes))
        self.require(fine, "objects.class_index", "no such class")
        self._check_corners(there.boxes, there.extents, "objects")
        fine = (there.areas >= 0) & np.isfinite(there.areas)
        self.require(fine, "objects.area", "expected a finite number, at least 0")

    def _check_masks(self, evaluation: Evaluation) -> None:
        masks, there, offsets = evaluation.masks, evaluation.objects, evaluation.masks.offsets
        if offsets[0] != 0 or offsets[-1] != len(masks.runs) or bool((offsets[1:] < offsets[:-1]).any()):
            self.fail("expected ascending rows of the runs", "masks.offsets")
        self.require(~unusable_masks(masks.boxes, offsets, masks.runs), "masks.runs", "expected runs that fill the box")
        last = evaluation.dataset.shapes[there.image_rows]
        inside = (masks.boxes[:, :2] >= 0) & (masks.boxes[:, 2:] < last)
        self.require(inside, "masks.boxes", "expected a mask inside the image")
        counted = count_pixels(masks.boxes, offsets, masks.runs)
        self.require(masks.pixels == counted, "masks.pixels", "expected the number of pixels of the mask")
        self.require(there.pixels == masks.pixels, "objects.pixels", "expected the number of pixels of the mask")
        self.require(there.mask_boxes == masks.boxes, "objects.mask_box", "expected the box of the mask")

    def _check_detections(self, evaluation: Evaluation) -> None:
        found = evaluation.detections
        self._check_image_rows(found.image_rows, "detections")
        self.require(found.numbers >= 0, "detections.number", "expected a number that counts from 0")
        fine = (found.labels >= -1) & (found.labels < len(evaluation.classes))
        self.require(fine, "detections.class_index", "no such class")
        self.require(np.isfinite(found.scores), "detections.score", "expected a finite number")
        for name, values in (("confidence", found.confidences), ("cost", found.costs)):
            fine = (values >= 0) & (values <= 1 + ROUNDING)
            self.require(fine, f"detections.{name}", "expected a probability")
        self.require(found.costs <= found.confidences, "detections.cost", "expected at most the confidence")
        threshold = evaluation.convention.fixed_threshold
        if threshold is not None:
            fine = found.confidences > np.float32(threshold)
            self.require(fine, "detections.confidence", "expected one above the label threshold")
        self._check_corners(found.boxes, found.extents, "detections")
        self.require(np.abs(found.covariances) <= FARTHEST**2, "detections.covariances", "expected finite numbers")

    def _check_corners(self, boxes: Floats, extents: Floats, table: str) -> None:
        """Raise for invalid corners and extents of objects or detections."""
        self.require(np.abs(boxes) <= FARTHEST, f"{table}.box", "expected finite corners")
        self.require(boxes[:, :2] <= boxes[:, 2:], f"{table}.box", "expected x1 <= x2 and y1 <= y2")
        fine = (extents >= 0) & (extents <= 2 * FARTHEST + 2)
        self.require(fine, f"{table}.size", "expected finite numbers, at least 0")

    def _check_image_rows(self, rows: Ints, table: str) -> None:
        self.require(rows >= 0, f"{table}.image_id", "no such image")
        self.require(_after_start(rows[1:] >= rows[:-1]), f"{table}.image_id", "expected rows by image")

    def _check_pairs(self, evaluation: Evaluation) -> None:
        pairs = evaluation.pairs
        self._check_pair_rows(evaluation, "pairs")
        step, next_one = np.diff(pairs.objects), np.diff(pairs.detections) > 0
        later = _after_start((step > 0) | ((step == 0) & next_one))
        self.require(later, "pairs.object", "expected each pair once, by object, then detection")
        for name in QUALITIES:
            values = pairs.quality(name)
            self.require((values >= 0) & (values <= 1), f"pairs.{name}", "expected a quality between 0 and 1")
        overall, weight = pairs.quality("pPDQ"), evaluation.convention.label_weight
        fine = overall > evaluation.convention.min_quality
        self.require(fine, "pairs.pPDQ", "expected a quality above the convention's minimum")
        product = pairs.quality("spatial") ** (1.0 - weight) * pairs.quality("label") ** weight
        close = np.abs(overall - product) <= ROUNDED * product + ROUNDED_OFF
        self.require(close, "pairs.pPDQ", "expected the product of spatial and label quality")

    def _check_overlaps(self, evaluation: Evaluation) -> None:
        overlaps, found = evaluation.overlaps, evaluation.detections
        if not need_masks(evaluation.measures):
            if len(overlaps) or found.areas is not None:
                self.fail("expected no overlaps where no metric of masks was measured", "overlaps")
            return
        if found.areas is None:
            self.fail("expected areas of masks", "detections.area")
        fine = (found.areas >= 0) & np.isfinite(found.areas)
        self.require(fine, "detections.area", "expected a finite number, at least 0")
        self._check_pair_rows(evaluation, "overlaps")
        step, next_one = np.diff(overlaps.detections), np.diff(overlaps.objects) > 0
        later = _after_start((step > 0) | ((step == 0) & next_one))
        self.require(later, "overlaps.detection", "expected each pair once, by detection, then object")
        self.require((overlaps.ious > 0) & (overlaps.ious <= 1), "overlaps.iou", "expected above 0, at most 1")

    def _check_pair_rows(self, evaluation: Evaluation, name: str) -> None:
        """Raise for pairs of missing rows, or of different images."""
        pairs, found, there = getattr(evaluation, name), evaluation.detections, evaluation.objects
        for column, rows, table in (("detection", pairs.detections, found), ("object", pairs.objects, there)):
            self.require((rows >= 0) & (rows < len(table)), f"{name}.{column}", "no such row")
        alike = found.image_rows[pairs.detections] == there.image_rows[pairs.objects]
        self.require(alike, f"{name}.detection", "expected a detection in the image of the object")

    def _check_matches(self, evaluation: Evaluation) -> None:
        """Raise unless outcomes, partners and qualities follow from the pairs."""
        if not evaluation.has_pairs:
            if len(evaluation.pairs):
                self.fail("expected no pairs where PDQ was not measured", "pairs")
            if _is_blank(evaluation.objects) and _is_blank(evaluation.detections):
                return
        matched = evaluation.rematch()
        for name in ("objects", "detections"):
            given, expected = (_matches_of(getattr(one, name)) for one in (evaluation, matched))
            for column, values in given.items():
                same = (values == expected[column]) | (np.isnan(values) & np.isnan(expected[column]))
                self.require(same, f"{name}.{column}", "does not follow from the pairs")


def _matches_of(table: JudgedTable) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that follow from the pairs, by their names in files."""
    qualities = {name: table.quality(name) for name in QUALITIES}
    return {"verdict": table.verdicts, "partner": table.partners, **qualities}


def _is_blank(table: JudgedTable) -> bool:
    """Return whether no row is matched, as in results without PDQ."""
    nothing = not table.verdicts.any() and bool((table.partners == -1).all())
    return nothing and bool(np.isnan(table.qualities).all())


def _after_start(flags: npt.NDArray[Any]) -> Bools:
    """Return flags of the differences between rows, with True for the first row added."""
    return np.concatenate([np.ones(1, bool), flags])
