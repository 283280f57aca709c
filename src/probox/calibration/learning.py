"""What laws of spread are learned from, and who learns them: rows of edges in, a law out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.calibration.spread_fit import LawFit, fit_law

__all__ = ["EdgeErrors", "Learner", "LinearLearner"]

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class EdgeErrors:
    """Boxes whose truth is known: what a law may look at, and how far they are off.

    Parameters
    ----------
    features : (N, 4, F) float64
        Of each edge; finite.
    residuals : (N, 4) float64
        Truth minus box; NaN for an edge that does not count.
    sides : (N, 4) float64
        What residuals are relative to.
    names : tuple of str
        What the features are called.
    classes : (N,) str, optional
        The classes, if they are to count.
    images : (N,) int64, optional
        Whose rows stay together when images are held out; each for itself if left out.
    boxes : (N, 4) float64, optional
        The boxes, in pixels; left out where there are numbers alone.
    image_sizes : (N, 2) float64, optional
        Width and height of their images.
    """

    features: Floats
    residuals: Floats
    sides: Floats
    names: tuple[str, ...]
    classes: npt.NDArray[np.str_] | None = None
    images: npt.NDArray[np.int64] | None = None
    boxes: Floats | None = None
    image_sizes: Floats | None = None

    def __len__(self) -> int:
        return len(self.residuals)

    def take(self, rows: npt.NDArray[np.bool_]) -> EdgeErrors:
        """Return these rows alone."""
        columns: dict[str, Any] = {
            name: values[rows] for name, values in vars(self).items() if isinstance(values, np.ndarray)
        }
        return dataclasses.replace(self, **columns)


Learner = Callable[[EdgeErrors], LawFit]
"""Whatever makes a law of errors. `probox.torch.NetworkLearner` is another one than that below."""


@dataclasses.dataclass(frozen=True)
class LinearLearner:
    """Learns a linear law; parameters are those of `probox.calibration.spread_fit.fit_law`."""

    ridge: float | None = None
    folds: int = 5
    seed: int = 0

    def __call__(self, errors: EdgeErrors) -> LawFit:
        """Return the law that suits errors best."""
        return fit_law(
            errors.features, errors.residuals / errors.sides, errors.names, classes=errors.classes,
            images=errors.images, ridge=self.ridge, folds=self.folds, seed=self.seed,
        )  # fmt: skip
