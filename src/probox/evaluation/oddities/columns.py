"""What the checks look at: the columns of an evaluation or of the tables it would be made of."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.tables.labels import named_classes

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation
    from probox.formats.draft import Draft
    from probox.tables.dataset import Dataset
    from probox.tables.groundtruth import GroundTruth
    from probox.tables.masks import Masks
    from probox.tables.results import ObjectTable

__all__ = ["Columns", "Floats", "Oddity", "Rows", "median"]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """Images, objects and detections; objects and detections point at image rows.

    Parameters
    ----------
    shapes : (I, 2) float64
        Width and height of each image.
    classes : tuple of str
        The truth's classes.
    object_rows, object_labels, object_boxes, crowd
        One row per object: its image row, class and box.
    mask_boxes : (N, 4) float64
        The box around each object's pixels, x2 and y2 on the far edge of the last pixel.
    image_rows, labels, boxes, scores
        One row per detection; `labels` count in the truth's classes, -1: none of them.
    covariances : (M, 2, 2, 2) float64, optional
        Of the detections' corners.
    clipped : bool
        Whether corners outside the image are moved onto its border before they are scored.
    """

    shapes: Floats
    classes: tuple[str, ...]
    object_rows: Rows
    object_labels: npt.NDArray[np.int32]
    object_boxes: Floats
    crowd: npt.NDArray[np.bool_]
    mask_boxes: Floats
    image_rows: Rows
    labels: npt.NDArray[np.int32]
    boxes: Floats
    scores: Floats
    covariances: Floats | None
    clipped: bool = False

    @classmethod
    def of_evaluation(cls, evaluation: Evaluation) -> Columns:
        """Return the columns of what was scored."""
        objects, found = evaluation.objects, evaluation.detections
        own = evaluation.convention.fixed_variance is None and found.covariances.any()
        return cls(
            **_of_objects(evaluation.dataset, objects, evaluation.masks),
            image_rows=found.image_rows,
            labels=found.labels,
            boxes=found.boxes,
            scores=found.scores,
            covariances=found.covariances if own else None,
            clipped=evaluation.convention.clip == "corners",
        )

    @classmethod
    def of_draft(cls, truth: GroundTruth, draft: Draft, rows: Rows) -> Columns:
        """Return the columns of ground truth and of the rows of a draft that are fit to be scored."""
        part = draft.select(rows)
        named, scores = named_classes(part.label_probs, part.classes, truth.classes, part.labels, part.scores)
        return cls(
            **_of_objects(truth.dataset, truth, truth.masks),
            image_rows=truth.dataset.rows_of(part.image_ids),
            labels=named,
            boxes=part.boxes,
            scores=scores,
            covariances=None if part.covariances is None or not part.covariances.any() else part.covariances,
        )

    @property
    def probabilistic(self) -> npt.NDArray[np.bool_]:
        """Return which detections have Gaussian corners."""
        if self.covariances is None:
            return np.zeros(len(self.boxes), bool)
        return np.asarray(self.covariances.any(axis=(1, 2, 3)))

    @property
    def variances(self) -> Floats:
        """Return the variances of ``x1, y1, x2, y2`` of each detection; 0 where there are none."""
        if self.covariances is None:
            return np.zeros((len(self.boxes), 4))
        return np.maximum(np.diagonal(self.covariances, axis1=2, axis2=3), 0.0).reshape(-1, 4)


def _of_objects(dataset: Dataset, objects: ObjectTable | GroundTruth, masks: Masks) -> dict[str, Any]:
    """Return the columns about what is there."""
    return {
        "shapes": dataset.shapes.astype(np.float64),
        "classes": dataset.classes,
        "object_rows": objects.image_rows,
        "object_labels": objects.labels,
        "object_boxes": objects.boxes,
        "crowd": objects.crowd,
        "mask_boxes": masks.boxes + np.array([0.0, 0.0, 1.0, 1.0]),
    }


@dataclasses.dataclass(frozen=True)
class Oddity:
    """Something odd that stops nothing, but makes numbers low or meaningless.

    Parameters
    ----------
    kind : str
        A short name, the same whatever the numbers are.
    text : str
        What was seen, with numbers.
    remedy : str
        The likely cause, or what to do.
    rows : array of int
        The detections that show it, if it is about single ones.
    """

    kind: str
    text: str
    remedy: str
    rows: Rows = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}"


def median(values: npt.NDArray[Any]) -> float:
    """Return the median of all numbers, none of which is missing.

    As `numpy.median` has it, which loads NumPy's masked arrays when it is first called: as long as a small file takes.

    >>> median(np.array([5, 1, 4])), median(np.array([[4.0, 1.0], [2.0, 9.0]]))
    (4.0, 3.0)
    """
    ordered = np.sort(values, axis=None)
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return float(middle.mean())
