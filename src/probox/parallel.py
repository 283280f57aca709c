"""How many threads to use."""

from __future__ import annotations

import os

import numpy as np

from probox.errors import InputError

__all__ = ["thread_count"]


def thread_count(threads: int | None) -> int:
    """Return `threads`, or as many as this process may use."""
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
            remedy = "leave it out to use all processors"
            raise InputError(f"expected threads to be a whole number of at least 1, got {threads!r:.40}", remedy=remedy)
        return int(threads)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
