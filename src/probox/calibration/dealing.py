"""Dealing images into folds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["dealt"]


def dealt(images: int, folds: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the fold of each image; images are in ascending order of their ids, so their order in files is nothing."""
    fold = np.empty(images, np.int64)
    fold[np.random.default_rng(seed).permutation(images)] = np.arange(images) % folds
    return fold
