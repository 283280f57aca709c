"""Which detection met which object, for fitting: by boxes alone, so that it cannot depend on what is calibrated."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from probox.calibration.gaussians import sigmas_of
from probox.calibration.given import Given
from probox.measures.boxes.matching import match_boxes
from probox.measures.matched import at_border
from probox.measures.scoring.scores import invertible
from probox.support.types import Bools, Floats, Ints
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["FittingPairs", "Outcome"]


class Outcome:
    """What became of a detection; the values of `FittingPairs.outcomes`."""

    ASIDE, MATCHED, UNMATCHED = 0, 1, 2


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class FittingPairs:
    """Pairs of a detection and its object under COCO's matching at an IoU of 0.5: by class, in order of score.

    Crowds are left aside, and so are detections that meet nothing but one.

    Parameters
    ----------
    detections, objects : (K,) int64
        Ints of the tables.
    image_rows : (K,) int64
        The image of each pair, as a row of the truth's data set.
    labels : (K,) int32
        The object's class, counted in the truth's classes.
    residuals : (K, 4) float64
        Truth minus box, in the order x1, y1, x2, y2.
    sides : (K, 4) float64
        The side of the detection's box that an edge is measured by: width, height, width, height.
    boxes : (K, 4) float64
        The detection's box.
    image_sizes : (K, 2) float64
        Width and height of its image.
    covariances : (K, 2, 2, 2) float64
        The detection's; all zero for a plain box.
    free : (K, 4) bool
        Edges that count: those whose ground truth does not lie on the image border, as `at_border` has it.
    names : (K,) str
        The class that the detection names.
    scores : (K,) float64
        The detection's score.
    usable : (K,) bool
        Pairs whose covariances have an inverse: NLL and z are defined.
    outcomes : (N,) uint8
        For every detection of the table, one of `Outcome`.
    """

    detections: Ints
    objects: Ints
    image_rows: Ints
    labels: npt.NDArray[np.int32]
    residuals: Floats
    sides: Floats
    boxes: Floats
    image_sizes: Floats
    covariances: Floats
    free: Bools
    names: npt.NDArray[np.str_]
    scores: Floats
    usable: Bools
    outcomes: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.detections)

    @classmethod
    def of(cls, truth: GroundTruth, found: Detections, *, threads: int | None = None) -> FittingPairs:
        """Return the pairs of these tables."""
        matches = match_boxes(truth, found, threads=threads, call="fit")
        place = truth.dataset.rows_of(found.image_ids)
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(len(truth.dataset)))
        rows = order[starts[matches.image_rows] + matches.numbers]
        hit = (matches.matched_objects >= 0) & (matches.ignored[:, 0] & 1 == 0)
        aside = matches.ignored[:, 0] & 1 == 1
        outcomes = np.full(len(found), Outcome.ASIDE, np.uint8)
        outcomes[rows[~aside]] = np.where(hit, Outcome.MATCHED, Outcome.UNMATCHED)[~aside]
        first = truth.dataset.offsets(truth.image_rows)
        images = matches.image_rows[hit].astype(np.int64)
        objects = first[images] + matches.matched_objects[hit]
        detections = rows[hit]
        boxes = truth.boxes[objects]
        shapes = truth.dataset.shapes[images].astype(np.float64)
        covariances = _gaussian_covariances(found)[detections]
        given = Given.of(found, detections, covariances)
        return cls(
            detections=detections,
            objects=objects,
            image_rows=images,
            labels=truth.labels[objects],
            residuals=boxes - found.boxes[detections],
            sides=given.sides,
            boxes=found.boxes[detections],
            image_sizes=shapes,
            covariances=covariances,
            free=~at_border(boxes, shapes),
            names=given.classes,
            scores=given.scores,
            usable=invertible(covariances),
            outcomes=outcomes,
        )

    def take(self, rows: Bools | Ints) -> FittingPairs:
        """Return these pairs alone; outcomes stay those of all detections."""
        columns = {name: values[rows] for name, values in vars(self).items() if name != "outcomes"}
        return dataclasses.replace(self, **columns)

    def after(self, truth: GroundTruth, found: Detections) -> FittingPairs:
        """Return the same pairs with boxes and covariances of the same detections after a calibration."""
        covariances = _gaussian_covariances(found)[self.detections]
        boxes = found.boxes[self.detections]
        residuals = truth.boxes[self.objects] - boxes
        return dataclasses.replace(
            self, residuals=residuals, boxes=boxes, covariances=covariances, usable=invertible(covariances)
        )

    @property
    def given(self) -> Given:
        """Return what maps may look at."""
        return Given(
            sigmas=sigmas_of(self.covariances), sides=self.sides, classes=self.names, scores=self.scores
        )  # fmt: skip

    @property
    def z(self) -> Floats:
        """Return residuals over standard deviations, (K, 4); defined for usable pairs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.residuals / sigmas_of(self.covariances))


def _gaussian_covariances(found: Detections) -> Floats:
    """Return the covariances that count: none where a heatmap takes the box's place."""
    if found.covariances is None:
        return np.zeros((len(found), 2, 2, 2))
    return np.where(found.has_heatmap[:, None, None, None], 0.0, found.covariances)
