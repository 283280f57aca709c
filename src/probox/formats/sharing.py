"""How many threads share the reading of one file. No number and no message depends on it."""

from __future__ import annotations

from typing import TypedDict

from probox.support.parallel import thread_count

__all__ = ["LEAST_PIECE", "Sharing", "sharing"]

LEAST_PIECE = 1 << 18
"""How many bytes are worth a thread, which has read them in half a millisecond."""


class Sharing(TypedDict):
    """What the kernel's readers want to know."""

    threads: int
    least_piece: int


def sharing() -> Sharing:
    """Return how a file is read: by all processors, or by as many as `threads_at_most` allows."""
    return {"threads": thread_count(None), "least_piece": LEAST_PIECE}
