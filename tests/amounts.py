"""How much of a test is tried: all of it with `--slow`, a part in every other run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

__all__ = ["PART", "examples", "others_slow", "some_of"]

PART = 0.3
"""Of many examples of the same."""
FEWEST = 8


def some_of(number: int) -> int:
    """Return how many of so many examples are tried: all of them with `--slow`."""
    # The profile is chosen by conftest.py before test files are read; only the quick one has fewer than 100.
    quick = settings.default is not None and settings.default.max_examples < 100
    return max(min(number, FEWEST), round(PART * number)) if quick else number


def examples(number: int, **more: Any) -> settings:
    """Return settings of Hypothesis for a test that needs so many examples, and others that it needs."""
    return settings(max_examples=some_of(number), **more)


def others_slow(values: Iterable[Any], now: int = 1, *, several: bool = False) -> list[Any]:
    """Return parameters of a test of which only the first are tried in every run, the others with `--slow`.

    Parameters
    ----------
    values : iterable
        The parameters, first what is tried in every run.
    now : int, default: 1
        How many these are.
    several : bool, default: False
        Whether each is a tuple for as many arguments of the test.
    """
    given = [value if several else (value,) for value in values]
    return [pytest.param(*one, marks=() if index < now else pytest.mark.slow) for index, one in enumerate(given)]
