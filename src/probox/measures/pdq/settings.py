"""What the kernel needs of a convention."""

from __future__ import annotations

from probox import _core
from probox.convention import Convention

__all__ = ["reach_sigmas", "settings_of"]

_AS_GOOD_AS_ALL = 9.5
"""Standard deviations beyond which a Gaussian has 1e-21 of its mass: nothing to the equations."""


def reach_sigmas(convention: Convention) -> float:
    """Return within how many standard deviations of its mean a corner's distribution is computed."""
    return convention.rough_sigmas if convention.region_of_interest else _AS_GOOD_AS_ALL


def settings_of(convention: Convention) -> _core.Settings:
    """Return the kernel's settings, every one of them from the convention."""
    return _core.Settings(
        epsilon=convention.epsilon,
        region_of_interest=convention.region_of_interest,
        reach_sigmas=reach_sigmas(convention),
        mahalanobis=convention.mahalanobis,
        min_determinant=convention.min_determinant,
        min_probability=convention.min_probability,
        single_precision=convention.single_precision,
        snap_zero=convention.snap_zero,
        snap_one=convention.snap_one,
        min_quality=convention.min_quality,
        label_weight=convention.label_weight,
        mask_background=convention.background == "mask",
    )
