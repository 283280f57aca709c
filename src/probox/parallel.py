"""How many threads to use."""

from __future__ import annotations

import os

from probox.errors import InputError

__all__ = ["thread_count"]


def thread_count(threads: int | None) -> int:
    """Return `threads`, or as many as this process may use."""
    if threads is not None:
        if threads < 1:
            raise InputError(f"expected threads to be at least 1, got {threads}")
        return threads
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
