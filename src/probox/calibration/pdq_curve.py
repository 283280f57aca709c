"""PDQ of many maps of corners on the same detections, image by image, so that any fold can be summed up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from probox.calibration.corners import CornerMap, calibrated
from probox.calibration.labels import background_columns
from probox.convention import Convention
from probox.evaluation.evaluate import evaluate
from probox.evaluation.result import Evaluation
from probox.measures.pdq.pdq_measure import sums_per_image
from probox.support.mapping import Mapper, here
from probox.support.types import Bools, Floats, Ints
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import align_labels

__all__ = ["PdqCurve", "pdq_by_image", "pdq_parts", "shortlist"]

PIECES = 3
"""Pieces of images for each that is worked on at once: images differ in what they take."""

PER_OBJECT = 2
"""How many detections of an object take part in a search: those that overlap it most, by box and label."""


def pdq_parts(evaluation: Evaluation) -> Floats:
    """Return for each image the sum of its pPDQ and its part of the denominator, (I, 2); PDQ is the ratio of sums."""
    sums = sums_per_image(evaluation)
    return np.stack([sums["pPDQ"], sums["TP"] + sums["cost"] + sums["FN"]], axis=1)


def pdq_by_image(
    truth: GroundTruth,
    found: Detections,
    convention: Convention,
    *,
    threads: int | None = None,
    mapper: Mapper = here,
) -> Floats:
    """Return `pdq_parts` of detections, some images in each piece of work."""
    if mapper.at_once == 1:
        return _parts_of((truth, found), convention, threads)
    count = len(truth.dataset)
    rows = truth.dataset.rows_of(found.image_ids)
    cuts = np.linspace(0, count, min(count, PIECES * mapper.at_once) + 1).astype(int).tolist()
    pieces = [
        (truth.select_images(truth.dataset.image_ids[start:stop]), found.select((rows >= start) & (rows < stop)))
        for start, stop in pairwise(cuts)
    ]
    return np.concatenate(list(mapper(_parts_of, pieces, convention, threads)))


def _parts_of(piece: tuple[GroundTruth, Detections], convention: Convention, threads: int | None) -> Floats:
    return pdq_parts(evaluate(*piece, convention=convention, measures=("pdq",), threads=threads))


class PdqCurve:
    """The parts of PDQ as a function of a map, measured when they are first asked for.

    A search looks at the few detections that an object may be matched with; all others are false positives whatever
    their sigmas. Numbers that are shown are measured on all of them.
    """

    def __init__(
        self,
        truth: GroundTruth,
        found: Detections,
        convention: Convention,
        *,
        threads: int | None = None,
        border: str = "keep",
    ) -> None:
        self._pinned_in = truth.dataset if border == "pin" else None
        rows = truth.dataset.rows_of(found.image_ids)
        taken = rows >= 0
        if convention.fixed_threshold is not None:
            taken &= found.label_probs.max(axis=1, initial=0.0) > np.float32(convention.fixed_threshold)
        listed = shortlist(truth, found, rows, taken)
        self._truth, self._found = truth, found.select(listed)
        self._convention, self._threads = convention, threads
        others = taken & ~listed
        real = np.ones(len(found.classes), bool)
        real[background_columns(found.classes)] = False
        costs = found.label_probs[others][:, real].max(axis=1, initial=0.0)
        weights = costs if convention.confidence_denominator else np.ones(int(others.sum()))
        self._others = np.bincount(rows[others], weights, len(truth.dataset))
        self._known: dict[CornerMap, Floats] = {}

    def parts(self, mapping: CornerMap) -> Floats:
        """Return the parts of PDQ of each image, (I, 2)."""
        if mapping not in self._known:
            changed = calibrated(self._found, mapping, self._pinned_in)
            parts = pdq_by_image(self._truth, changed, self._convention, threads=self._threads)
            parts[:, 1] += self._others
            self._known[mapping] = parts
        return self._known[mapping]

    def pdq(self, mapping: CornerMap, images: Bools) -> float:
        """Return the PDQ of these images, 0 where there is nothing to score."""
        total, counted = self.parts(mapping)[images].sum(axis=0)
        return float(total / counted) if counted else 0.0


def shortlist(truth: GroundTruth, found: Detections, rows: Ints, taken: Bools) -> Bools:
    """Return which detections are among the `PER_OBJECT` of an object with the highest IoU times root of label.

    Parameters
    ----------
    truth, found : tables
        Objects and detections.
    rows : (N,) int64
        Image rows of the detections.
    taken : (N,) bool
        The detections to choose from.
    """
    listed = np.zeros(len(found), bool)
    order = np.flatnonzero(taken)[np.argsort(rows[taken], kind="stable")]
    starts = np.searchsorted(rows[order], np.arange(len(truth.dataset) + 1))
    offsets = truth.dataset.offsets(truth.image_rows)
    probs = align_labels(found.label_probs, found.classes, truth.classes)
    for image in range(len(truth.dataset)):
        here = order[starts[image] : starts[image + 1]]
        there = slice(offsets[image], offsets[image + 1])
        if len(here) <= PER_OBJECT or there.start == there.stop:
            listed[here] = True
            continue
        label = np.sqrt(np.clip(probs[here][:, truth.labels[there]].T, 0.0, 1.0))
        closeness = _ious(truth.boxes[there], found.boxes[here]) * label
        best = np.argpartition(-closeness, PER_OBJECT - 1, axis=1)[:, :PER_OBJECT]
        chosen = np.unique(best[np.take_along_axis(closeness, best, axis=1) > 0])
        listed[here[chosen]] = True
    return listed | (taken & found.has_heatmap)  # the boxes of heatmaps say little


def _ious(some: Floats, others: Floats) -> Floats:
    low = np.maximum(some[:, None, :2], others[None, :, :2])
    high = np.minimum(some[:, None, 2:], others[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0.0), axis=2)
    areas = [np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0), axis=1) for boxes in (some, others)]
    union = areas[0][:, None] + areas[1][None, :] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros_like(shared), where=union > 0))
