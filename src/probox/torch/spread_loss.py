"""The losses that a spread network can be trained with, of boxes some of whose edges do not count."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from probox.calibration.learning import EdgeErrors
from probox.errors import InputError
from probox.torch.arguments import MIN_SIGMA
from probox.torch.box_losses import crps_loss, energy_score_loss, nll_loss
from probox.torch.ppdq import ppdq_loss

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LOSSES", "SpreadLoss", "unit_of"]

LOSSES: dict[str, Callable[..., Any]] = {
    "nll": nll_loss,
    "energy": energy_score_loss,
    "crps": crps_loss,
    "ppdq": ppdq_loss,
}
"""By the names that they have here."""

WIDEST = 1e5
"""No standard deviation is more than so many units: losses refuse what is far beyond."""


ENOUGH_PIXELS = 40.0
"""For pPDQ boxes are shrunk until no side is longer: it hardly depends on how fine the pixels are."""

Floats = npt.NDArray[np.float64]


class SpreadLoss:
    """A loss of boxes as a function of ln(sigma / side) alone.

    An edge that does not count is taken as known: it has no error, and the least sigma that a loss looks at. So it adds
    a constant to NLL and CRPS, nothing to the length of an error, and for pPDQ it is where it is.

    Parameters
    ----------
    errors : EdgeErrors
        The boxes.
    name : str
        Which of `LOSSES`.
    unit : float
        What lengths are measured in; see `unit_of`.
    """

    def __init__(self, errors: EdgeErrors, name: str, unit: float | Floats) -> None:
        known = np.isfinite(errors.residuals)
        residuals = np.where(known, errors.residuals, 0.0) / unit
        if name == "ppdq":
            assert errors.boxes is not None
            # Looking at every pixel of a large box takes long, and that of a smaller copy is nearly as good.
            smaller = np.maximum(errors.sides.max(axis=1, keepdims=True) / ENOUGH_PIXELS, 1.0)
            boxes, residuals = errors.boxes / smaller, residuals / smaller
            unit = smaller
        else:
            # Where boxes lie is nothing to these losses; so large ones have their corners in order, whatever the error.
            far = 1.0 + 2.0 * np.abs(residuals).max(axis=1, initial=0.0)
            boxes = np.stack([0 * far, 0 * far, far, far], axis=1)
        self._loss, self._known = LOSSES[name], torch.from_numpy(known)
        self._boxes, self._truth = torch.from_numpy(boxes), torch.from_numpy(boxes + residuals)
        self._log_sides = torch.from_numpy(np.log(errors.sides / unit))
        sizes = errors.image_sizes
        self._sizes = None if sizes is None or name != "ppdq" else torch.from_numpy(np.ceil(sizes / unit))

    def __len__(self) -> int:
        return len(self._boxes)

    def each(self, logarithms: Tensor) -> Tensor:
        """Return the losses of boxes, (N,), from ln(sigma / side) of their edges, (N, 4)."""
        least, most = math.log(MIN_SIGMA), math.log(WIDEST)
        log_std = torch.where(self._known, (logarithms + self._log_sides).clamp(least, most), least)
        values: Tensor = self._loss(
            self._boxes, log_std=log_std, truth_boxes=self._truth, image_size=self._sizes, reduction="none"
        )
        return values


def unit_of(errors: EdgeErrors, name: str) -> float:
    """Return what a loss measures lengths in: pixels for pPDQ, which counts them, and else the median error.

    So neither the unit of arrays nor the size of photos decides how much a penalty weighs beside a loss.
    """
    if name == "ppdq":
        if errors.boxes is None:
            raise InputError("pPDQ needs boxes", remedy='use another loss, such as "nll", or fit on tables')
        return 1.0
    known = np.abs(errors.residuals[np.isfinite(errors.residuals)])
    return float(np.median(known[known > 0]))
