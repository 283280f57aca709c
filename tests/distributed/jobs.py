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


def join_lists(lists: list[list[int]]) -> list[int]:
    assert len(lists) <= 3
    return sorted(entry for one in lists for entry in one)


def join_badly(lists: list[Any]) -> Any:
    raise InputError("these do not add up", remedy="evaluate both alike")


def as_list(number: int) -> list[int]:
    return [number]


def length_of(values: list[int]) -> int:
    return len(values)


def slow_down(seconds: float) -> int:
    """Let the evaluation of every part take so much longer in this process; return which process it is."""
    from probox.distributed import part_task

    measure = part_task.evaluate

    def slowly(*args: Any, **given: Any) -> Any:
        time.sleep(seconds)
        return measure(*args, **given)

    part_task.evaluate = slowly
    return os.getpid()


def limit_files(size: int) -> None:
    """Let this process write no file of more than so many bytes, as if the disk were full; 0 for any."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size or hard, hard))
