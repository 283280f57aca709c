"""Learning sigmas from matched boxes: the features of their edges, and the law that suits their errors."""

from __future__ import annotations

import numpy as np

from probox.calibration.learned import Learned
from probox.calibration.pairs import FittingPairs
from probox.calibration.spread_features import edge_features, feature_names
from probox.calibration.spread_fit import fit_law
from probox.errors import InputError
from probox.measures.matched import FEW_PAIRS

__all__ = ["check_pairs", "fit_learned"]


def fit_learned(
    pairs: FittingPairs, *, own_sigmas: bool, ridge: float | None = None, folds: int = 5, seed: int = 0
) -> tuple[Learned, float]:
    """Return the map that suits matched boxes best, up to a factor, and the ridge that it was fitted with.

    Parameters
    ----------
    pairs : FittingPairs
        Matched boxes; edges that are not free do not count.
    own_sigmas : bool
        Whether the detector's own sigmas are to be learned from.
    ridge, folds, seed
        As for `probox.calibration.spread_fit.fit_law`.
    """
    check_pairs(len(pairs))
    given = pairs.given
    fitted = fit_law(
        edge_features(given, own_sigmas),
        np.where(pairs.free, pairs.residuals / pairs.sides, np.nan),
        feature_names(own_sigmas),
        classes=given.classes,
        images=pairs.image_rows,
        ridge=ridge,
        folds=folds,
        seed=seed,
    )
    return Learned(fitted.law), fitted.ridge


def check_pairs(count: int) -> None:
    """Raise if there are too few pairs to learn from."""
    if count < FEW_PAIRS:
        raise InputError(
            f"only {count} matched {'box' if count == 1 else 'boxes'} to learn sigmas from, fewer than {FEW_PAIRS}",
            remedy='fit on more images, or use method="constant"',
        )
