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
    # The profile is chosen by tests/conftest.py before test files are read; only the quick one has fewer than 100.
    quick = settings.default is not None and settings.default.max_examples < 100
    return max(min(number, FEWEST), round(PART * number)) if quick else number


def examples(number: int, **more: Any) -> settings:
    """Return settings of Hypothesis for a test that needs so many examples, and others that it needs."""
    return settings(max_examples=some_of(number), **more)


def others_slow(values: Iterable[Any], now: int = 1) -> list[Any]:
    """Return parameters of a test of which only the first are tried in every run, the others with `--slow`."""
    return [value if index < now else pytest.param(value, marks=pytest.mark.slow) for index, value in enumerate(values)]
