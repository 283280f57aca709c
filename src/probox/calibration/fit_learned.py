"""Learning sigmas from matched boxes: the features of their edges, and the law that suits their errors."""

from __future__ import annotations

import numpy as np

from probox.calibration.learned import Learned
from probox.calibration.learning import EdgeErrors, Learner, LinearLearner
from probox.calibration.pairs import FittingPairs
from probox.calibration.spread_features import edge_features, feature_names
from probox.calibration.spread_fit import LawFit
from probox.errors import InputError
from probox.measures.matched import FEW_PAIRS

__all__ = ["check_pairs", "fit_learned"]


def fit_learned(pairs: FittingPairs, *, own_sigmas: bool, learner: Learner | None = None) -> tuple[Learned, LawFit]:
    """Return the map that suits matched boxes best, up to a factor, and how its law was fitted.

    Parameters
    ----------
    pairs : FittingPairs
        Matched boxes; edges that are not free do not count.
    own_sigmas : bool
        Whether the detector's own sigmas are to be learned from.
    learner : Learner, optional
        Who learns the law. Default: a linear one.
    """
    check_pairs(len(pairs))
    given = pairs.given
    errors = EdgeErrors(
        features=edge_features(given, own_sigmas),
        residuals=np.where(pairs.free, pairs.residuals, np.nan),
        sides=pairs.sides,
        names=feature_names(own_sigmas),
        classes=given.classes,
        images=pairs.image_rows,
        boxes=pairs.boxes,
        image_sizes=pairs.image_sizes,
    )
    fitted = (learner or LinearLearner())(errors)
    return Learned(fitted.law), fitted


def check_pairs(count: int) -> None:
    """Raise if there are too few pairs to learn from."""
    if count < FEW_PAIRS:
        raise InputError(
            f"only {count} matched {'box' if count == 1 else 'boxes'} to learn sigmas from, fewer than {FEW_PAIRS}",
            remedy='fit on more images, or use method="constant"',
        )
