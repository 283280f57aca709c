"""Counts in words."""

from __future__ import annotations

__all__ = ["count_of_classes"]


def count_of_classes(n: int) -> str:
    """Return how many classes there are.

    >>> count_of_classes(1), count_of_classes(1203)
    ('1 class', '1,203 classes')
    """
    return f"{n:,} class{'' if n == 1 else 'es'}"
