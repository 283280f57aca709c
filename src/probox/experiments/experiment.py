"""What describes an experiment: each has one beside its code, and `registry` lists them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from probox.experiments.claims import Verdict
from probox.experiments.table import ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Experiment"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """One of the paper's experiments.

    Parameters
    ----------
    name : str
        What the command line calls it.
    section : str
        Where the paper has it.
    varied : str
        What it varies.
    claim : str
        What the paper concludes.
    function : callable
        Measures, and returns a table.
    judge : callable
        Returns the verdicts on a table.
    draw : callable
        Returns the figure of a table.
    takes : tuple of str
        Which of `truth`, `repeats` and `seed` the function takes.
    """

    name: str
    section: str
    varied: str
    claim: str
    function: Callable[..., ResultTable]
    judge: Callable[[ResultTable], list[Verdict]]
    draw: Callable[[ResultTable], Figure]
    takes: tuple[str, ...] = ()
