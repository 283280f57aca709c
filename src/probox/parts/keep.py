"""How much of an evaluation is kept: everything, or what numbers follow from."""

from __future__ import annotations

from typing import Any, Literal, get_args

from probox.errors import InputError

__all__ = ["KEEP", "Keep", "expect_keep"]

Keep = Literal["summary", "matches", "all"]
"""`all`: the tables of an `Evaluation`, about 200 bytes a detection. `matches`: about 10 bytes a detection, from which
mAP and LRP follow, and sums for each image. `summary`: sums alone."""

KEEP: tuple[Keep, ...] = get_args(Keep)


def expect_keep(keep: Any) -> Keep:
    """Return what is to be kept, or say what it must be."""
    if keep not in KEEP:
        raise InputError(f"expected keep to be one of {', '.join(KEEP)}, but got {keep!r:.40}")
    chosen: Keep = keep
    return chosen
