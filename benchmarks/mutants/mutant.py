"""What a mutant is: a measure with one thing wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from probox.measures.boxes import box_definition as boxes
from probox.measures.pdq import definition as pdq

__all__ = ["IDENTITY", "Mutant", "patched", "swapped"]

Broken = Callable[[Any], Any]
"""Takes the true function, returns the broken one."""

MODULES: dict[str, ModuleType] = {"pdq": pdq, "space": pdq, "boxes": boxes}
"""The plain definitions that mutants change: PDQ, its pixel probabilities, mAP and moLRP."""

OF_SPACE = ("pdq.heatmap", "pdq.detection_heatmap")
"""What `pdq` has of the pixel probabilities."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A broken measure.

    Parameters
    ----------
    name : str
        What the command line calls it.
    sentence : str
        What is wrong, as a sentence.
    where : str
        The function that is replaced: ``pdq.losses``, ``space.corner_map``, ``boxes.match_greedily`` ...
    broken : callable
        Given the true function, returns what stands in its place.
    """

    name: str
    sentence: str
    where: str
    broken: Broken

    @property
    def of_boxes(self) -> bool:
        """Whether mAP and moLRP are broken, and PDQ is not."""
        return self.where.startswith("boxes.")

    @property
    def of_space(self) -> bool:
        """Whether pixels may get other probabilities."""
        return self.where.startswith("space.") or self.where in OF_SPACE


IDENTITY = Mutant("identity", "Nothing is wrong.", "pdq.losses", lambda true: true)
"""No claim may fail under it: for trying the table itself."""


@contextmanager
def patched(mutant: Mutant) -> Iterator[None]:
    """Have the mutant's function in its place as long as the block lasts."""
    module, name = mutant.where.split(".")
    with swapped(MODULES[module], name, mutant.broken(getattr(MODULES[module], name))):
        yield


@contextmanager
def swapped(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Have `value` in the place of an attribute as long as the block lasts."""
    true = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, true)
