"""Pieces of work that do not need each other: done here one after another, or elsewhere by whoever is handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

__all__ = ["Mapper", "here"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Mapper(Protocol):
    """Calls a function with each of some items; `probox.distributed` has one that calls on a cluster."""

    @property
    def at_once(self) -> int:
        """How many pieces are worked on at a time: into fewer nothing that can be cut need be cut."""

    def __call__(self, function: Callable[..., Result], items: Sequence[Item], /, *shared: Any) -> Iterator[Result]:
        """Yield ``function(item, *shared)`` of each item, in the order of the items.

        Parameters
        ----------
        function : callable
            Of a module, so that other processes find it; its result may not depend on other calls.
        items : sequence
            What differs between the calls.
        *shared
            What all calls are given: sent to each process once, however large.
        """


class _Here:
    """One piece after another, when its result is asked for."""

    at_once = 1

    def __call__(self, function: Callable[..., Result], items: Sequence[Item], /, *shared: Any) -> Iterator[Result]:
        return (function(item, *shared) for item in items)


here = _Here()
"""Does the work in this process.

>>> list(here(pow, [2, 3], 2))
[4, 9]
"""
