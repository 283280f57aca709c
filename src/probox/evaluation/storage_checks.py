"""Whether a stored evaluation is one: rows exist, numbers are possible, matches follow from the pairs."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.archive import LABELS, Arrays
from probox.evaluation.box_columns import BoxColumns
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import IOU_THRESHOLDS, SIZES
from probox.tables.groundtruth import box_pixels, unusable_masks
from probox.tables.results import QUALITIES, JudgedTable
from probox.tables.row_problems import FARTHEST, ROUNDING

LAST_CHARACTER = 0x10FFFF
ROUNDED = 1e-9
"""How far, as a share, pPDQ may be from what spatial and label quality make: libraries round powers differently."""
ROUNDED_OFF = 2.0**-537
"""How far it may be besides: it is the root of a product, of which digits are lost where that is hardly above 0."""

Flags = npt.NDArray[np.bool_]


def check_evaluation(evaluation: Evaluation, file: str) -> None:
    """Raise unless the tables could be those of an evaluation; `file` is named as the culprit."""
    _Checks(evaluation, file).run()


def check_images(arrays: Arrays, file: str) -> None:
    """Raise unless the arrays of images could be those of a data set."""
    checks = _Columns(file)
    names = arrays["images.file_name"]
    characters = names.view(np.uint32).reshape(len(names), names.dtype.itemsize // 4)
    checks.require(characters <= LAST_CHARACTER, "images.file_name", "expected text")


def check_labels(arrays: Arrays, classes: int, file: str) -> None:
    """Raise unless the arrays of label probabilities could be those of detections."""
    checks = _Columns(file)
    counts, class_index, probability = (arrays[name] for name in LABELS)
    checks.require((counts >= 0) & (counts <= classes), "labels.count", "expected at most one probability per class")
    if int(counts.sum()) != len(class_index):
        checks.fail(f"expected {len(class_index)} probabilities in all, but got {int(counts.sum())}", "labels.count")
    checks.require((class_index >= 0) & (class_index < classes), "labels.class_index", "no such class")
    row = np.repeat(np.arange(len(counts)), counts)
    later = (row[1:] > row[:-1]) | (class_index[1:] > class_index[:-1])
    checks.require(_after_start(later)[: len(row)], "labels.class_index", "expected each class once, ascending")
    fine = (probability > 0) & (probability <= 1 + ROUNDING)
    checks.require(fine, "labels.probability", "expected a probability above 0")


def check_boxes(boxes: BoxColumns, classes: int, file: str) -> None:
    """Raise unless columns could be those of boxes: everything that is pointed at is there."""

    def require(fine: Any, entry: str, problem: str) -> None:
        if not fine:
            raise InputError(problem, file=file, entry=f"boxes.{entry}", remedy="evaluate anew")

    for name, rows in (("counts", boxes.scores), ("object_counts", boxes.object_labels)):
        values = getattr(boxes, name)
        require(
            (values >= 0).all() and int(values.sum(dtype=np.int64)) == len(rows), name, "expected as many as there are"
        )
    for name in ("labels", "object_labels"):
        values = getattr(boxes, name)
        require(not len(values) or (values.min() >= 0 and values.max() < classes), name, "no such class")
    known = len(boxes.patterns)
    outcomes = boxes.outcomes
    require(not len(outcomes) or (outcomes.min() >= 0 and outcomes.max() < known), "outcomes", "no such outcome")
    require(np.isfinite(boxes.scores).all(), "scores", "expected finite numbers")
    right = boxes.patterns[:, : len(SIZES)] & ~boxes.patterns[:, len(SIZES) :]
    kept = ((right & 1) == 1).any(axis=1)
    require(int(kept[outcomes].sum()) == len(boxes.overlaps), "overlaps", "expected one of each that is right")
    for name in ("overlaps", "odd_overlaps"):
        values = getattr(boxes, name)
        require((np.isnan(values) | ((values >= 0) & (values <= 1 + 1e-3))).all(), name, "expected 0 to 1")
    rows = np.flatnonzero((right != 0).any(axis=1)[outcomes])
    labels, found, objects = boxes.labels[rows], right[outcomes[rows]], boxes.objects_per_class(classes)
    for level, size in np.ndindex(len(IOU_THRESHOLDS), len(SIZES)):
        counts = np.bincount(labels[(found[:, size] >> level) & 1 == 1], minlength=classes)
        require((counts <= objects[:, size]).all(), "outcomes", "expected no more right detections than objects")
    odd = boxes.odd_rows
    inside = not len(odd) or (odd.min() >= 0 and odd.max() < len(outcomes) and (np.diff(odd) >= 0).all())
    require(inside and (boxes.odd_sizes < len(SIZES)).all(), "odd_rows", "no such detection")


class _Columns:
    """Columns of a file, each of which must be fine in every row."""

    def __init__(self, file: str) -> None:
        self.file = file

    def fail(self, problem: str, entry: str) -> NoReturn:
        raise InputError(problem, file=self.file, entry=entry, remedy="evaluate anew")

    def require(self, fine: Flags, column: str, problem: str) -> None:
        """Raise for the first row that is not fine; a row of several numbers is fine if all of them are."""
        if fine.all():
            return
        rows = fine.all(axis=tuple(range(1, fine.ndim)))
        self.fail(problem, f"{column}[{int(np.flatnonzero(~rows)[0])}]")


class _Checks(_Columns):
    def __init__(self, evaluation: Evaluation, file: str) -> None:
        super().__init__(file)
        self.evaluation = evaluation

    def run(self) -> None:
        self._objects()
        self._masks()
        self._detections()
        self._pairs()
        self._matches()

    def _objects(self) -> None:
        there = self.evaluation.objects
        self._image_rows(there.image_rows, "objects")
        classes = len(self.evaluation.classes)
        self.require((there.labels >= 0) & (there.labels < classes), "objects.class_index", "no such class")
        self._boxes(there.boxes, there.extents, "objects")
        fine = (there.areas >= 0) & np.isfinite(there.areas)
        self.require(fine, "objects.area", "expected a finite number, at least 0")

    def _masks(self) -> None:
        masks, there = self.evaluation.masks, self.evaluation.objects
        offsets = masks.offsets
        falls = offsets[0] != 0 or offsets[-1] != len(masks.runs) or bool((offsets[1:] < offsets[:-1]).any())
        if falls:
            self.fail("expected ascending rows of the runs", "masks.offsets")
        self.require(~unusable_masks(masks.boxes, offsets, masks.runs), "masks.runs", "expected runs that fill the box")
        last = self.evaluation.dataset.shapes[there.image_rows]
        inside = (masks.boxes[:, :2] >= 0) & (masks.boxes[:, 2:] < last)
        self.require(inside, "masks.boxes", "expected a mask inside the image")
        lengths = masks.runs[:, 2].astype(np.int64) - masks.runs[:, 1]
        upto = np.concatenate([[0], np.cumsum(lengths)])
        counted = np.where(offsets[1:] > offsets[:-1], upto[offsets[1:]] - upto[offsets[:-1]], box_pixels(masks.boxes))
        self.require(masks.pixels == counted, "masks.pixels", "expected the number of pixels of the mask")
        self.require(there.pixels == masks.pixels, "objects.pixels", "expected the number of pixels of the mask")
        self.require(there.mask_boxes == masks.boxes, "objects.mask_box", "expected the box of the mask")

    def _detections(self) -> None:
        found = self.evaluation.detections
        self._image_rows(found.image_rows, "detections")
        self.require(found.numbers >= 0, "detections.number", "expected a number that counts from 0")
        classes = len(self.evaluation.classes)
        fine = (found.labels >= -1) & (found.labels < classes)
        self.require(fine, "detections.class_index", "no such class")
        self.require(np.isfinite(found.scores), "detections.score", "expected a finite number")
        for name, values in (("confidence", found.confidences), ("cost", found.costs)):
            fine = (values >= 0) & (values <= 1 + ROUNDING)
            self.require(fine, f"detections.{name}", "expected a probability")
        self.require(found.costs <= found.confidences, "detections.cost", "expected at most the confidence")
        threshold = self.evaluation.convention.fixed_threshold
        if threshold is not None:
            fine = found.confidences > np.float32(threshold)
            self.require(fine, "detections.confidence", "expected one above the label threshold")
        self._boxes(found.boxes, found.extents, "detections")
        self.require(np.abs(found.covariances) <= FARTHEST**2, "detections.covariances", "expected finite numbers")

    def _boxes(self, boxes: npt.NDArray[np.float64], extents: npt.NDArray[np.float64], table: str) -> None:
        """Raise for corners and extents that no table of objects or detections could have."""
        self.require(np.abs(boxes) <= FARTHEST, f"{table}.box", "expected finite corners")
        self.require(boxes[:, :2] <= boxes[:, 2:], f"{table}.box", "expected x1 <= x2 and y1 <= y2")
        fine = (extents >= 0) & (extents <= 2 * FARTHEST + 2)
        self.require(fine, f"{table}.size", "expected finite numbers, at least 0")

    def _image_rows(self, rows: npt.NDArray[np.int64], table: str) -> None:
        self.require(rows >= 0, f"{table}.image_id", "no such image")
        self.require(_after_start(rows[1:] >= rows[:-1]), f"{table}.image_id", "expected rows by image")

    def _pairs(self) -> None:
        pairs, found, there = self.evaluation.pairs, self.evaluation.detections, self.evaluation.objects
        for name, rows, table in (("detection", pairs.detections, found), ("object", pairs.objects, there)):
            self.require((rows >= 0) & (rows < len(table)), f"pairs.{name}", "no such row")
        alike = found.image_rows[pairs.detections] == there.image_rows[pairs.objects]
        self.require(alike, "pairs.detection", "expected a detection in the image of the object")
        later = (pairs.objects[1:] > pairs.objects[:-1]) | (
            (pairs.objects[1:] == pairs.objects[:-1]) & (pairs.detections[1:] > pairs.detections[:-1])
        )
        self.require(_after_start(later), "pairs.object", "expected each pair once, by object, then detection")
        for name in QUALITIES:
            values = pairs.quality(name)
            self.require((values >= 0) & (values <= 1), f"pairs.{name}", "expected a quality between 0 and 1")
        convention = self.evaluation.convention
        overall = pairs.quality("pPDQ")
        self.require(overall > convention.min_quality, "pairs.pPDQ", "expected a quality above the convention's")
        weight = convention.label_weight
        product = pairs.quality("spatial") ** (1.0 - weight) * pairs.quality("label") ** weight
        close = np.abs(overall - product) <= ROUNDED * product + ROUNDED_OFF
        self.require(close, "pairs.pPDQ", "expected what spatial and label quality make")

    def _matches(self) -> None:
        """Raise unless verdicts, partners and qualities are those that the pairs make."""
        stored = self.evaluation
        if not stored.has_pairs:
            if len(stored.pairs):
                self.fail("expected no pairs where PDQ was not measured", "pairs")
            if _is_blank(stored.objects) and _is_blank(stored.detections):
                return
        matched = stored.rematch()
        for name in ("objects", "detections"):
            self._same(getattr(stored, name), getattr(matched, name), name)

    def _same(self, stored: JudgedTable, wanted: JudgedTable, name: str) -> None:
        columns = {
            "verdict": (stored.verdicts, wanted.verdicts),
            "partner": (stored.partners, wanted.partners),
            **{quality: (stored.quality(quality), wanted.quality(quality)) for quality in QUALITIES},
        }
        for column, (given, expected) in columns.items():
            same: Flags = np.asarray((given == expected) | ((given != given) & (expected != expected)))
            self.require(same, f"{name}.{column}", "does not follow from the pairs")


def _is_blank(table: JudgedTable) -> bool:
    """Return whether nobody was matched with anybody, as it is where PDQ was not measured."""
    nothing = not table.verdicts.any() and bool((table.partners == -1).all())
    return nothing and bool(np.isnan(table.qualities).all())


def _after_start(flags: npt.NDArray[Any]) -> Flags:
    """Return what holds for each row but the first, with the first one added."""
    return np.concatenate([np.ones(1, bool), flags])
