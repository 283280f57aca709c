"""Pieces of work for tests: workers import them by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from probox.errors import InputError
from probox.support.parallel import thread_count


def scaled(factor: int, numbers: Any, added: int) -> Any:
    time.sleep(0.3 if factor == 0 else 0.0)
    return factor * numbers + added


def total(item: int, numbers: Any) -> tuple[int, int]:
    """Return the sum of the numbers and the item, and how many threads this process would use."""
    return int(numbers.sum()) + item, thread_count(None)


def as_given(item: Any, shared: Any) -> Any:
    return item, shared


def scaled_unless_odd(factor: int, numbers: Any) -> Any:
    if factor % 2:
        raise InputError("is odd", file=f"{factor}.json", remedy="take another")
    return factor * numbers


def scaled_after_a_death(factor: int, numbers: Any, folder: str) -> Any:
    """Kill the own process when it is the first to do factor 3."""
    mark = Path(folder) / "died"
    if factor == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return factor * np.asarray(numbers)
