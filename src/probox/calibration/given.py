"""What a way to replace standard deviations may look at: a row for each detection."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from probox.calibration.gaussians import sigmas_of
from probox.support.types import Floats, Ints
from probox.tables.boxes import extents_of
from probox.tables.detections import Detections

__all__ = ["Given"]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Given:
    """What a detector says of each detection, as far as sigmas may follow from it.

    Parameters
    ----------
    sigmas : (N, 4) float64
        The detector's own standard deviations of x1, y1, x2, y2; 0 where it has none.
    sides : (N, 4) float64
        The side of the box that an edge is measured by: width, height, width, height.
    classes : (N,) str
        The names of the classes.
    scores : (N,) float64
        The scores.
    """

    sigmas: Floats
    sides: Floats
    classes: npt.NDArray[np.str_]
    scores: Floats

    @classmethod
    def of(cls, found: Detections, rows: Ints, covariances: Floats) -> Given:
        """Return what these rows of a table say, with covariances that may be others than the table's."""
        return cls(
            sigmas=sigmas_of(covariances),
            sides=np.tile(extents_of(found.boxes[rows]), 2),
            classes=np.array(found.classes or ("",))[found.labels[rows]],
            scores=found.scores[rows],
        )
