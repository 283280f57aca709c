"""Mutants: metrics with one defect."""

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
"""Function that takes the original function and returns the mutated one."""

MODULES: dict[str, ModuleType] = {"pdq": pdq, "space": pdq, "boxes": boxes}
"""Plain definitions that mutants change: PDQ, its pixel probabilities, mAP and moLRP."""

OF_SPACE = ("pdq.heatmap", "pdq.detection_heatmap")
"""Functions of `pdq` that compute pixel probabilities."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A metric with one defect.

    Parameters
    ----------
    name : str
        Name on the command line.
    sentence : str
        Description of the defect.
    where : str
        Name of the replaced function: ``pdq.losses``, ``space.corner_map``, ``boxes.match_greedily`` ...
    broken : callable
        Function that takes the original function and returns its replacement.
    """

    name: str
    sentence: str
    where: str
    broken: Broken

    @property
    def of_boxes(self) -> bool:
        """Whether the defect is in mAP and moLRP instead of PDQ."""
        return self.where.startswith("boxes.")

    @property
    def of_space(self) -> bool:
        """Whether the defect may change pixel probabilities."""
        return self.where.startswith("space.") or self.where in OF_SPACE


IDENTITY = Mutant("identity", "No defect.", "pdq.losses", lambda true: true)
"""Control without a defect: no claim may fail with it."""


@contextmanager
def patched(mutant: Mutant) -> Iterator[None]:
    """Replace the function of a mutant within the block."""
    module, name = mutant.where.split(".")
    with swapped(MODULES[module], name, mutant.broken(getattr(MODULES[module], name))):
        yield


@contextmanager
def swapped(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute by `value` within the block."""
    true = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, true)
