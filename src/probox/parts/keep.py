"""How much of an evaluation is kept: everything, or what numbers follow from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from probox.errors import InputError

__all__ = ["KEEP", "MEASURES", "Keep", "expect_keep", "kept_measures"]

Keep = Literal["summary", "matches", "all"]
"""`all`: the tables of an `Evaluation`, about 200 bytes a detection. `matches`: about 10 bytes a detection, from which
mAP and LRP follow, and sums for each image. `summary`: sums alone."""

KEEP: tuple[Keep, ...] = get_args(Keep)

MEASURES: dict[Keep, tuple[str, ...]] = {"matches": ("pdq", "map", "lrp"), "summary": ("pdq",)}
"""The measures that follow from what is kept where that is not all."""


def expect_keep(keep: Any) -> Keep:
    """Return what is to be kept, or say what it must be."""
    if keep not in KEEP:
        raise InputError(f"expected keep to be one of {', '.join(KEEP)}, but got {keep!r:.40}")
    chosen: Keep = keep
    return chosen


def kept_measures(measures: Sequence[str], keep: Keep, *, asked: bool) -> tuple[str, ...]:
    """Return the measures that can be kept.

    Parameters
    ----------
    measures : sequence of str
        Those that are wanted.
    keep : {"summary", "matches", "all"}
        How much is kept.
    asked : bool
        Somebody named them, so that none may be left out.
    """
    if keep == "all":
        return tuple(measures)
    possible = tuple(name for name in measures if name in MEASURES[keep])
    lacking = [name for name in measures if name not in possible]
    if (asked and lacking) or not possible:
        wider = "matches" if set(lacking) <= set(MEASURES["matches"]) else "all"
        raise InputError(
            f"{', '.join(lacking)} cannot follow from what keep={keep!r} keeps, which is for "
            f"{', '.join(MEASURES[keep])}",
            remedy=f'use keep="{wider}", or leave out these measures',
        )
    return possible
