"""How many threads to use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from probox.errors import InputError

__all__ = ["thread_count", "threads_at_most", "threads_for"]

MOST_THREADS = 4096

FEW_ROWS = 400
"""Up to so many rows, at 0.4 to 2 microseconds each, one thread was faster than two when plain boxes were scored and
matched: starting a thread takes 30 to 60 microseconds."""

_at_most: ContextVar[int] = ContextVar("threads_at_most", default=MOST_THREADS)


def thread_count(threads: int | None) -> int:
    """Return `threads`, or as many as this process may use, at most as many as `threads_at_most` allows."""
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= MOST_THREADS:
            remedy = "leave it out to use all processors"
            raise InputError(
                f"expected threads to be a whole number from 1 to {MOST_THREADS}, got {threads!r:.40}", remedy=remedy
            )
        return int(threads)
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(there, _at_most.get())


def threads_for(rows: int, threads: int | None) -> int:
    """Return `thread_count`, or one where so few rows are done before another thread has started.

    >>> threads_for(10, 4), threads_for(100_000, 4)
    (1, 4)
    """
    wanted = thread_count(threads)
    return wanted if rows > FEW_ROWS else 1


@contextmanager
def threads_at_most(most: int) -> Iterator[None]:
    """Use no more threads in a block, where nobody says how many: others work on the same processors.

    >>> with threads_at_most(1):
    ...     thread_count(None), thread_count(3)
    (1, 3)
    """
    before = _at_most.set(most)
    try:
        yield
    finally:
        _at_most.reset(before)
