"""An evaluation scored anew with other boxes, covariances or labels: what a repair would be worth.

A result keeps the objects' pixels and all of the detections but given heatmaps, so nothing needs to be read again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.evaluate import evaluate
from probox.evaluation.result import Evaluation
from probox.tables.columns import joined
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["Scene", "golden_section", "pixel_covariances", "scene_of"]

FloatArray = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """What an evaluation was made of: truth, detections, and a convention under which they give its numbers."""

    truth: GroundTruth
    found: Detections
    costs: npt.NDArray[np.float32]
    convention: Convention
    threads: int | None = None

    def scored(self, **changes: Any) -> Evaluation:
        """Return PDQ's evaluation with some columns of the detections changed."""
        return self._scored(self.truth, self.found.replace(**changes) if changes else self.found)

    def _scored(self, truth: GroundTruth, found: Detections) -> Evaluation:
        scored = evaluate(truth, found, convention=self.convention, measures=("pdq",), threads=self.threads)
        # A false positive costs what it did: its label may be of a class that the truth, and so the scene, lacks.
        return dataclasses.replace(scored, detections=scored.detections.replace(costs=self.costs))

    def with_right_labels(self) -> Evaluation:
        """Return the evaluation in which every detection is sure of the class of whatever object it meets."""
        dataset = self.truth.dataset.replace(classes=("object",), category_ids=None)
        truth = self.truth.replace(dataset=dataset, labels=np.zeros(len(self.truth), np.int32))
        found = Detections(
            classes=("object",),
            image_ids=self.found.image_ids,
            boxes=self.found.boxes,
            covariances=self.found.covariances,
            label_probs=np.ones((len(self.found), 1), np.float32),
        )
        return self._scored(truth, found)

    def with_rows(self, evaluation: Evaluation, rows: npt.NDArray[np.bool_], **changes: Any) -> Evaluation:
        """Return the evaluation that the scene is of, with some columns of some of its detections changed.

        Only these are scored anew; all are matched anew.
        """
        anew = self.of(evaluation.dataset.image_ids, rows).scored(**changes)
        kept = evaluation.pairs.take(np.flatnonzero(~rows[evaluation.pairs.detections]))
        pairs = joined([anew.pairs.replace(detections=np.flatnonzero(rows)[anew.pairs.detections]), kept])
        pairs = pairs.take(np.lexsort((pairs.detections, pairs.objects)))
        table = evaluation.detections
        columns = {name: getattr(table, name).copy() for name in ("boxes", "extents", "covariances")}
        for name, values in columns.items():
            values[rows] = getattr(anew.detections, name)
        changed = dataclasses.replace(evaluation, pairs=pairs, detections=table.replace(**columns), measures=("pdq",))
        return changed.rematched()

    def of(self, images: npt.NDArray[np.int64], detections: npt.NDArray[np.bool_]) -> Scene:
        """Return the scene of some images, given by ids, and of some detections in them."""
        rows = detections & np.isin(self.found.image_ids, images)
        truth, found = self.truth.select_images(images), self.found.select(rows)
        return dataclasses.replace(self, truth=truth, found=found, costs=self.costs[rows])


def scene_of(evaluation: Evaluation, *, threads: int | None = None) -> Scene:
    """Return what an evaluation was made of; raise where it cannot be scored anew."""
    found, there = evaluation.detections, evaluation.objects
    if not evaluation.has_pairs:
        raise InputError("PDQ was not measured", remedy="evaluate with PDQ among the measures")
    if found.label_probs is None:
        raise InputError(
            "label probabilities were not kept, so nothing can be scored anew",
            remedy='evaluate anew, a Parquet file with measures="all"',
        )
    if found.heatmaps.any():
        raise InputError(f"{int(found.heatmaps.sum()):,} detections are heatmaps, which results do not keep")
    truth = GroundTruth(
        dataset=evaluation.dataset,
        image_rows=there.image_rows,
        labels=there.labels,
        boxes=there.boxes,
        masks=evaluation.masks,
        extents=there.extents,
        areas=there.areas,
        crowd=there.crowd,
        ids=there.ids,
    )
    detections = Detections(
        classes=evaluation.classes,
        image_ids=evaluation.dataset.image_ids[found.image_rows],
        boxes=found.boxes,
        label_probs=found.label_probs,
        covariances=found.covariances,
    )
    # Masks and covariances are those that were scored, and what a threshold left out is gone.
    convention = evaluation.convention.replace(box_truth=False, fixed_variance=None, label_threshold=None)
    return Scene(truth, detections, found.costs, convention, threads)


def pixel_covariances(boxes: FloatArray, sigma: float | FloatArray) -> FloatArray:
    """Return covariances of one standard deviation in pixels for every corner."""
    variances = np.broadcast_to(np.square(np.reshape(sigma, (-1, 1, 1, 1))), (len(boxes), 1, 1, 1))
    return np.asarray(np.eye(2) * variances * np.ones((1, 2, 1, 1)))


def golden_section(loss: Callable[[float], float], low: float, high: float, *, steps: int) -> float:
    """Return where a function with one valley between `low` and `high` is lowest; each step costs one call.

    >>> round(golden_section(lambda x: (x - 2.0) ** 2, 0.0, 10.0, steps=40), 6)
    2.0
    """
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(steps - 2):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(right)
    return float(left if at_left <= at_right else right)
