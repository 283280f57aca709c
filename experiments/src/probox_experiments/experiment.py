"""Description of an experiment, defined beside its code; `registry` lists all of them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from probox.convention import CHOICES, Convention
from probox.errors import InputError
from probox.support.formatting import nearest_word
from probox_experiments.claims import Claim, ResultTable
from probox_experiments.figures import Figure

# --- Description of an experiment ---


class TooFewImagesError(InputError):
    """An experiment needs more images than are available; a run continues with the others."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment of the paper or of this project.

    Parameters
    ----------
    name : str
        Name on the command line.
    section : str
        Section of the paper, or ``none``.
    varied : str
        The variable.
    claim : str
        The conclusion, of the paper or of this project.
    function : callable
        Runs the experiment and returns a table.
    judge : callable
        Returns the claims about a table, each with its result.
    draw : callable
        Returns the figure of a table.
    extra : str
        Required extra of probox, named like its package.
    in_all : bool
        Whether `all` runs it. Slow experiments that are not in the paper are run by name only.
    own_presets : bool
        Whether it always uses its own presets.
    """

    name: str
    section: str
    varied: str
    claim: str
    function: Callable[..., ResultTable]
    judge: Callable[[ResultTable], list[Claim]]
    draw: Callable[[ResultTable], Figure]
    extra: str = ""
    in_all: bool = True
    own_presets: bool = False

    @property
    def takes(self) -> tuple[str, ...]:
        """Parameters of the function that have their own option on the command line."""
        return tuple(name for name in ELSEWHERE if name in inspect.signature(self.function).parameters)


# --- Settings of experiments and of PDQ as text, ``name=value`` ---

ELSEWHERE = {"truth": "--truth", "detectors": "--detections", "repeats": "--repeats", "seed": "--seed"}
"""Parameters with their own option on the command line."""


@dataclasses.dataclass(frozen=True)
class Changes:
    """Settings parsed from texts.

    Parameters
    ----------
    convention : dict
        Fields of the convention.
    experiments : dict
        Settings of experiments; each applies to all experiments that have it.
    """

    convention: dict[str, Any] = dataclasses.field(default_factory=dict)
    experiments: dict[str, Any] = dataclasses.field(default_factory=dict)

    def for_experiment(self, experiment: Experiment) -> dict[str, Any]:
        """Return the settings that an experiment has."""
        own = settable(experiment)
        return {name: value for name, value in self.experiments.items() if name in own}


def settable(experiment: Experiment) -> dict[str, Any]:
    """Return the settings of an experiment that can be written as text, with their defaults.

    >>> from probox_experiments.paper.duplicates import DUPLICATES
    >>> settable(DUPLICATES)
    {'times': (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)}
    """
    signature = inspect.signature(experiment.function)
    return {
        name: entry.default
        for name, entry in signature.parameters.items()
        if name not in ELSEWHERE and name != "run" and isinstance(entry.default, bool | int | float | str | tuple)
    }


def parse_settings(texts: Sequence[str], experiments: Sequence[Experiment]) -> Changes:
    """Return the settings in texts like ``epsilon=1e-10`` or ``times=1,2,4``.

    A name is a field of `Convention`, which changes every preset, or a setting of one of the experiments. Values have
    Python's syntax; commas separate the entries of sequences.

    Examples
    --------
    >>> from probox_experiments import EXPERIMENTS
    >>> parse_settings(["assignment=greedy", "true_variances=1,10", "fine_steps=0"], EXPERIMENTS)
    Changes(convention={'assignment': 'greedy'}, experiments={'true_variances': (1.0, 10.0), 'fine_steps': 0})
    """
    changes = Changes()
    of_pdq = {field.name: field for field in dataclasses.fields(Convention) if field.name != "name"}
    of_experiments = {name: value for one in reversed(experiments) for name, value in settable(one).items()}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise InputError(f"expected name=value, got {text!r:.80}", remedy="write epsilon=1e-10, or times=1,2,4")
        field = of_pdq.get(name)
        if name in changes.convention or name in changes.experiments:
            raise InputError(f"{name} is set twice", remedy="set it once")
        if field is not None:
            changes.convention[field.name] = _field_value(field, value)
        elif name in of_experiments:
            changes.experiments[name] = _value_like(of_experiments[name], name, value)
        else:
            raise _reject_unknown(name, [*of_experiments, *of_pdq])
    Convention.preset("reference", **changes.convention)  # raises if a value is invalid
    return changes


def _reject_unknown(name: str, known: Sequence[str]) -> InputError:
    if name in ELSEWHERE:
        return InputError(f"{name} cannot be set with --set", remedy=f"use {ELSEWHERE[name]}")
    near = nearest_word(name, known)
    return InputError(
        f"unknown setting {name!r:.80} of these experiments or of PDQ",
        remedy=f"did you mean {near}?" if near else f"choose from: {', '.join(known)}",
    )


def _field_value(field: dataclasses.Field[Any], value: str) -> Any:
    """Return the value of a convention's field, of the type of its default."""
    if field.name in CHOICES:
        return value
    if value.lower() == "none" and field.default is None:
        return None
    if isinstance(field.default, bool) or field.name in ("object_filter", "sum_zero_is_plain"):
        return _convert(_flag, field.name, value)
    return _convert(int if isinstance(field.default, int) else float, field.name, value)


def _value_like(default: Any, name: str, value: str) -> Any:
    """Return a value converted to the type of a default."""
    if not isinstance(default, tuple):
        return _convert(_kind(default), name, value)
    # The type of entries is unknown if the default is empty; all such settings contain numbers.
    kind = _kind(default[0]) if default else float
    if any(isinstance(entry, float) for entry in default):
        kind = float
    values = tuple(_convert(kind, name, part.strip()) for part in value.split(",") if part.strip())
    if default and not values:
        raise InputError(f"expected {name} to have at least one value", remedy=f"write {name}={default[0]}")
    return values


def _kind(default: Any) -> Callable[[str], Any]:
    return _flag if isinstance(default, bool) else type(default)


def _convert(kind: Callable[[str], Any], name: str, value: str) -> Any:
    words = {int: "a whole number", float: "a number", _flag: "true or false"}
    try:
        return kind(value)
    except ValueError:
        raise InputError(f"expected {name} to be {words.get(kind, 'text')}, got {value!r:.40}") from None


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false", "yes", "no"):
        raise ValueError(value)
    return value.lower() in ("true", "yes")
