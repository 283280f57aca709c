"""Learning sigmas from matched boxes: the features of their edges, and the law that suits their errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from probox.calibration.learned import Learned
from probox.calibration.pairs import FittingPairs
from probox.calibration.spread_features import edge_features, feature_names
from probox.calibration.spread_fit import LawFit, fit_law
from probox.errors import InputError
from probox.measures.matched import FEW_PAIRS

__all__ = ["check_pairs", "fit_learned"]


def fit_learned(pairs: FittingPairs, *, own_sigmas: bool, **choices: Any) -> tuple[Learned, LawFit]:
    """Return the map that suits matched boxes best, up to a factor, and how its law was fitted.

    Parameters
    ----------
    pairs : FittingPairs
        Matched boxes; edges that are not free do not count.
    own_sigmas : bool
        Whether the detector's own sigmas are to be learned from.
    **choices
        `ridge`, `folds` and `seed` of `probox.calibration.spread_fit.fit_law`.
    """
    check_pairs(len(pairs))
    given = pairs.given
    errors = np.where(pairs.free, pairs.residuals, np.nan) / pairs.sides
    fitted = fit_law(
        edge_features(given, own_sigmas), errors, feature_names(own_sigmas), classes=given.classes,
        images=pairs.image_rows, **choices,
    )  # fmt: skip
    return Learned(fitted.law), fitted


def check_pairs(count: int) -> None:
    """Raise if there are too few pairs to learn from."""
    if count < FEW_PAIRS:
        raise InputError(
            f"only {count} matched {'box' if count == 1 else 'boxes'} to learn sigmas from, fewer than {FEW_PAIRS}",
            remedy='fit on more images, or use method="constant"',
        )
