"""What the checks look at: the columns of an evaluation or of the tables it would be made of."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from probox.tables.columns import rows_of
from probox.tables.labels import named_classes

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation
    from probox.formats.draft import Draft
    from probox.tables.groundtruth import GroundTruth

__all__ = ["Columns", "Floats", "Oddity", "Rows"]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """Images, objects and detections; objects and detections point at image rows.

    Parameters
    ----------
    shapes : (I, 2) float64
        Width and height of each image.
    object_image, object_class, object_box, crowd
        One row per object.
    image, class_index, box, score
        One row per detection; `class_index` counts in the truth's classes, -1: none of them.
    covariances : (M, 2, 2, 2) float64, optional
        Of the detections' corners.
    clipped : bool
        Whether corners outside the image are moved onto its border before they are scored.
    """

    shapes: Floats
    object_image: Rows
    object_class: npt.NDArray[np.int32]
    object_box: Floats
    crowd: npt.NDArray[np.bool_]
    image: Rows
    class_index: npt.NDArray[np.int32]
    box: Floats
    score: Floats
    covariances: Floats | None
    clipped: bool = False

    @classmethod
    def of_evaluation(cls, evaluation: Evaluation) -> Columns:
        """Return the columns of what was scored."""
        images, objects, found = evaluation.images, evaluation.objects, evaluation.detections
        own = evaluation.convention.set_covariance is None and found.covariances.any()
        return cls(
            shapes=np.stack([images.width, images.height], axis=1).astype(np.float64),
            object_image=np.searchsorted(images.id, objects.image_id),
            object_class=objects.class_index,
            object_box=objects.box,
            crowd=objects.crowd,
            image=np.searchsorted(images.id, found.image_id),
            class_index=found.class_index,
            box=found.box,
            score=found.score,
            covariances=found.covariances if own else None,
            clipped=evaluation.convention.clip == "corners",
        )

    @classmethod
    def of_draft(cls, truth: GroundTruth, draft: Draft, rows: Rows) -> Columns:
        """Return the columns of ground truth and of the rows of a draft that are fit to be scored."""
        part = draft.select(rows)
        named, scores = named_classes(part.label_probs, part.classes, truth.classes, part.labels, part.scores)
        return cls(
            shapes=np.stack([truth.widths, truth.heights], axis=1).astype(np.float64),
            object_image=truth.object_image,
            object_class=truth.object_class,
            object_box=truth.boxes,
            crowd=truth.crowd,
            image=rows_of(part.image_ids, truth.image_ids),
            class_index=named,
            box=part.boxes,
            score=scores,
            covariances=None if part.covariances is None or not part.covariances.any() else part.covariances,
        )

    @property
    def probabilistic(self) -> npt.NDArray[np.bool_]:
        """Return which detections have Gaussian corners."""
        if self.covariances is None:
            return np.zeros(len(self.box), bool)
        return np.asarray(self.covariances.any(axis=(1, 2, 3)))

    @property
    def variances(self) -> Floats:
        """Return the variances of ``x1, y1, x2, y2`` of each detection; 0 where there are none."""
        if self.covariances is None:
            return np.zeros((len(self.box), 4))
        return np.maximum(np.diagonal(self.covariances, axis1=2, axis2=3), 0.0).reshape(-1, 4)


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
