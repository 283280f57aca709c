"""Whether a stored evaluation is one: rows exist, numbers are possible, matches follow from the pairs."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.pdq.pairs import QUALITIES
from probox.tables.columns import rows_of
from probox.tables.detections import FARTHEST, ROUNDING
from probox.tables.masks import box_pixels, unusable_masks
from probox.tables.results import JudgedTable

__all__ = ["check_evaluation"]

LAST_CHARACTER = 0x10FFFF
ROUNDED = 1e-9
"""How far, as a share, pPDQ may be from what spatial and label quality make: libraries round powers differently."""

Flags = npt.NDArray[np.bool_]


def check_evaluation(evaluation: Evaluation, file: str) -> None:
    """Raise unless the tables could be those of an evaluation; `file` is named as the culprit."""
    _Checks(evaluation, file).run()


class _Checks:
    def __init__(self, evaluation: Evaluation, file: str) -> None:
        self.evaluation = evaluation
        self.file = file

    def run(self) -> None:
        self._images()
        self._objects()
        self._masks()
        self._detections()
        self._pairs()
        self._matches()

    def _fail(self, problem: str, entry: str) -> NoReturn:
        raise InputError(problem, file=self.file, entry=entry, remedy="evaluate anew")

    def _require(self, fine: Flags, column: str, problem: str) -> None:
        """Raise for the first row that is not fine; a row of several numbers is fine if all of them are."""
        if fine.all():
            return
        rows = fine.all(axis=tuple(range(1, fine.ndim)))
        self._fail(problem, f"{column}[{int(np.flatnonzero(~rows)[0])}]")

    def _images(self) -> None:
        images = self.evaluation.images
        self._require(_after_start(images.id[1:] > images.id[:-1]), "images.id", "expected ascending ids")
        self._require(images.width > 0, "images.width", "expected at least 1 pixel")
        self._require(images.height > 0, "images.height", "expected at least 1 pixel")
        names = images.file_name
        characters = names.view(np.uint32).reshape(len(names), names.dtype.itemsize // 4)
        self._require(characters <= LAST_CHARACTER, "images.file_name", "expected text")

    def _objects(self) -> None:
        there = self.evaluation.objects
        self._image_ids(there.image_id, "objects")
        classes = len(self.evaluation.classes)
        self._require((there.class_index >= 0) & (there.class_index < classes), "objects.class_index", "no such class")
        self._boxes(there.box, there.size, "objects")
        fine = (there.area >= 0) & np.isfinite(there.area)
        self._require(fine, "objects.area", "expected a finite number, at least 0")

    def _masks(self) -> None:
        masks, there, images = self.evaluation.masks, self.evaluation.objects, self.evaluation.images
        offsets = masks.offsets
        falls = offsets[0] != 0 or offsets[-1] != len(masks.runs) or bool((offsets[1:] < offsets[:-1]).any())
        if falls:
            self._fail("expected ascending rows of the runs", "masks.offsets")
        self._require(
            ~unusable_masks(masks.boxes, offsets, masks.runs), "masks.runs", "expected runs that fill the box"
        )
        at = np.searchsorted(images.id, there.image_id)
        last = np.stack([images.width, images.height], axis=1)[at]
        inside = (masks.boxes[:, :2] >= 0) & (masks.boxes[:, 2:] < last)
        self._require(inside, "masks.boxes", "expected a mask inside the image")
        lengths = masks.runs[:, 2].astype(np.int64) - masks.runs[:, 1]
        upto = np.concatenate([[0], np.cumsum(lengths)])
        counted = np.where(offsets[1:] > offsets[:-1], upto[offsets[1:]] - upto[offsets[:-1]], box_pixels(masks.boxes))
        self._require(masks.pixels == counted, "masks.pixels", "expected the number of pixels of the mask")
        self._require(there.pixels == masks.pixels, "objects.pixels", "expected the number of pixels of the mask")
        self._require(there.mask_box == masks.boxes, "objects.mask_box", "expected the box of the mask")

    def _detections(self) -> None:
        found = self.evaluation.detections
        self._image_ids(found.image_id, "detections")
        self._require(found.number >= 0, "detections.number", "expected a number that counts from 0")
        classes = len(self.evaluation.classes)
        fine = (found.class_index >= -1) & (found.class_index < classes)
        self._require(fine, "detections.class_index", "no such class")
        self._require(np.isfinite(found.score), "detections.score", "expected a finite number")
        for name in ("confidence", "cost"):
            values = getattr(found, name)
            fine = (values >= 0) & (values <= 1 + ROUNDING)
            self._require(fine, f"detections.{name}", "expected a probability")
        self._require(found.cost <= found.confidence, "detections.cost", "expected at most the confidence")
        threshold = self.evaluation.convention.label_threshold
        if threshold is not None:
            fine = found.confidence > np.float32(threshold)
            self._require(fine, "detections.confidence", "expected one above the label threshold")
        self._boxes(found.box, found.size, "detections")
        self._require(np.abs(found.covariances) <= FARTHEST**2, "detections.covariances", "expected finite numbers")

    def _boxes(self, boxes: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64], table: str) -> None:
        """Raise for corners and sizes that no table of objects or detections could have."""
        self._require(np.abs(boxes) <= FARTHEST, f"{table}.box", "expected finite corners")
        self._require(boxes[:, :2] <= boxes[:, 2:], f"{table}.box", "expected x1 <= x2 and y1 <= y2")
        fine = (sizes >= 0) & (sizes <= 2 * FARTHEST + 2)
        self._require(fine, f"{table}.size", "expected finite numbers, at least 0")

    def _image_ids(self, ids: npt.NDArray[np.int64], table: str) -> None:
        self._require(rows_of(ids, self.evaluation.images.id) >= 0, f"{table}.image_id", "no such image")
        self._require(_after_start(ids[1:] >= ids[:-1]), f"{table}.image_id", "expected rows by image")

    def _pairs(self) -> None:
        pairs, found, there = self.evaluation.pairs, self.evaluation.detections, self.evaluation.objects
        for name, rows, table in (("detection", pairs.detection, found), ("object", pairs.object, there)):
            self._require((rows >= 0) & (rows < len(table)), f"pairs.{name}", "no such row")
        alike = found.image_id[pairs.detection] == there.image_id[pairs.object]
        self._require(alike, "pairs.detection", "expected a detection in the image of the object")
        later = (pairs.object[1:] > pairs.object[:-1]) | (
            (pairs.object[1:] == pairs.object[:-1]) & (pairs.detection[1:] > pairs.detection[:-1])
        )
        self._require(_after_start(later), "pairs.object", "expected each pair once, by object, then detection")
        for name in QUALITIES:
            values = getattr(pairs, name)
            self._require((values >= 0) & (values <= 1), f"pairs.{name}", "expected a quality between 0 and 1")
        convention = self.evaluation.convention
        self._require(pairs.pPDQ > convention.min_quality, "pairs.pPDQ", "expected a quality above the convention's")
        weight = convention.label_weight
        product = pairs.spatial ** (1.0 - weight) * pairs.label**weight
        close = np.abs(pairs.pPDQ - product) <= ROUNDED * product
        self._require(close, "pairs.pPDQ", "expected what spatial and label quality make")

    def _matches(self) -> None:
        """Raise unless verdicts, partners and qualities are those that the pairs make."""
        stored = self.evaluation
        if "pdq" not in stored.measures:
            if len(stored.pairs):
                self._fail("expected no pairs where PDQ was not measured", "pairs")
            if _is_blank(stored.objects) and _is_blank(stored.detections):
                return
        matched = stored.rematched()
        for name in ("objects", "detections"):
            self._same(getattr(stored, name), getattr(matched, name), name)

    def _same(self, stored: JudgedTable, wanted: JudgedTable, name: str) -> None:
        for column in ("verdict", "partner", *QUALITIES):
            given, expected = getattr(stored, column), getattr(wanted, column)
            same = (given == expected) | ((given != given) & (expected != expected))
            self._require(same, f"{name}.{column}", "does not follow from the pairs")


def _is_blank(table: JudgedTable) -> bool:
    """Return whether nobody was matched with anybody, as it is where PDQ was not measured."""
    nothing = not table.verdict.any() and bool((table.partner == -1).all())
    return nothing and all(bool(np.isnan(getattr(table, name)).all()) for name in QUALITIES)


def _after_start(flags: npt.NDArray[Any]) -> Flags:
    """Return what holds for each row but the first, with the first one added."""
    return np.concatenate([np.ones(1, bool), flags])
