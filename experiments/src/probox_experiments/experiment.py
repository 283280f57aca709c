"""What describes an experiment: each has one beside its code, and `registry` lists them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from probox.errors import InputError
from probox_experiments.claims import Claim
from probox_experiments.table import ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Experiment", "TooFewImagesError"]


class TooFewImagesError(InputError):
    """An experiment needs more images than there are; the others of a run can go on without it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment, of the paper or of ours.

    Parameters
    ----------
    name : str
        What the command line calls it.
    section : str
        Where the paper has it; for one of ours, what it is about.
    varied : str
        What it varies.
    claim : str
        What is concluded, by the paper or by us.
    function : callable
        Measures, and returns a table.
    judge : callable
        Returns the claims about a table, each with whether it holds.
    draw : callable
        Returns the figure of a table.
    takes : tuple of str
        Which of `truth`, `repeats` and `seed` the function takes.
    extra : str
        The extra of probox that it needs, if any, called what its package is called.
    in_all : bool
        Whether `all` runs it; what is not the paper's and takes minutes is run by its name.
    own_presets : bool
        Whether it measures under presets of its own, whatever a run asks for.
    """

    name: str
    section: str
    varied: str
    claim: str
    function: Callable[..., ResultTable]
    judge: Callable[[ResultTable], list[Claim]]
    draw: Callable[[ResultTable], Figure]
    takes: tuple[str, ...] = ()
    extra: str = ""
    in_all: bool = True
    own_presets: bool = False
