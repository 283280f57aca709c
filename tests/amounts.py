"""How much of a test is tried: all of it with `--slow`, a part in every other run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

__all__ = ["PART", "examples", "others_slow"]

PART = 0.4
"""Of the examples of Hypothesis."""
FEWEST = 8


def examples(number: int, **more: Any) -> settings:
    """Return settings for a test that needs so many examples where time does not matter, and other settings of it.

    Parameters
    ----------
    number : int
        How many with `--slow`.
    more
        Further settings of Hypothesis.
    """
    # The profile is chosen by tests/conftest.py before test files are read; only the quick one has fewer than 100.
    if settings.default is not None and settings.default.max_examples < 100:
        number = max(min(number, FEWEST), round(PART * number))
    return settings(max_examples=number, **more)


def others_slow(values: Iterable[Any], now: int = 1) -> list[Any]:
    """Return parameters of a test of which only the first are tried in every run, the others with `--slow`."""
    return [value if index < now else pytest.param(value, marks=pytest.mark.slow) for index, value in enumerate(values)]
