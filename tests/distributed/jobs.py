"""What tests let workers do: they import it by name, from the folder of the tests."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from probox.errors import InputError


def double(number: int) -> int:
    return 2 * number


def double_unless_odd(number: int) -> int:
    """Find fault with odd numbers."""
    if number % 2:
        raise InputError("is odd", file=f"{number}.parquet", remedy="take another")
    return 2 * number


def count_calls(item: tuple[str, int]) -> int:
    """Leave a file for each call in a folder; odd numbers are wrong."""
    folder, number = item
    (Path(folder) / f"{number}-{time.time_ns()}-{os.getpid()}").touch()
    return double_unless_odd(number)


def die_at_first(item: tuple[str, int]) -> int:
    """Kill the own process when it is the first to do number 3."""
    folder, number = item
    mark = Path(folder) / "died"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def die_always(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def fail_at_disk(item: tuple[str, int]) -> int:
    """Fail once with an error of the system, and then no more."""
    folder, number = item
    mark = Path(folder) / f"failed {number}"
    if not mark.exists():
        mark.touch()
        raise OSError(5, "Input/output error", "shard.parquet")
    return 2 * number


def always_fail_at_disk(number: int) -> int:
    raise OSError(28, "No space left on device", "shard.parquet")


def be_wrong(number: int) -> int:
    return {1: 2}["nowhere"]  # type: ignore[index]


def mark_and_wait(item: tuple[str, int]) -> int:
    """Leave a file for the call in a folder, and take a while."""
    folder, number = item
    (Path(folder) / str(number)).touch()
    time.sleep(0.2)
    return number


def scale(factor: int, numbers: Any, added: int) -> Any:
    return factor * numbers + added


def slow_down(seconds: float) -> int:
    """Let the evaluation of every part take so much longer in this process; return which process it is."""
    from probox import distributed

    measure = distributed.evaluate_here

    def slowly(*args: Any, **given: Any) -> Any:
        time.sleep(seconds)
        return measure(*args, **given)

    distributed.evaluate_here = slowly  # type: ignore[assignment]
    return os.getpid()
