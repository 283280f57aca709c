"""How many threads to use."""

from __future__ import annotations

import os

import numpy as np

from probox.errors import InputError

__all__ = ["thread_count"]

MOST_THREADS = 4096


def thread_count(threads: int | None) -> int:
    """Return `threads`, or as many as this process may use."""
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= MOST_THREADS:
            remedy = "leave it out to use all processors"
            raise InputError(
                f"expected threads to be a whole number from 1 to {MOST_THREADS}, got {threads!r:.40}", remedy=remedy
            )
        return int(threads)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
