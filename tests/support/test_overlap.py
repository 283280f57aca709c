"""Several tasks at a time."""

from __future__ import annotations

import threading
import time

import pytest

from probox.support.parallel import in_order


def test_results_come_in_order_though_tasks_end_in_another() -> None:
    def slow_first(number: int) -> int:
        time.sleep(0.05 if number == 0 else 0)
        return number

    assert list(in_order(slow_first, range(6), workers=3)) == list(range(6))


def test_so_many_at_a_time_and_so_many_ahead() -> None:
    lock, running, most, begun = threading.Lock(), 0, 0, 0
    together = threading.Barrier(2, timeout=10)

    def work(number: int) -> int:
        nonlocal running, most, begun
        with lock:
            running, begun = running + 1, begun + 1
            most = max(most, running)
        if number < 2:
            together.wait()  # passes only if two are worked on at a time
        with lock:
            running -= 1
        return number

    results = in_order(work, iter(range(20)), workers=2, ahead=1)
    assert next(results) == 0
    time.sleep(0.05)
    assert begun == 3  # two workers and one ahead: no more is begun until a result is taken
    assert list(results) == list(range(1, 20))
    assert most == 2


def test_an_error_comes_in_its_turn_and_nothing_else_is_begun() -> None:
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 2:
            raise ValueError("no")
        return number

    results = in_order(work, range(50), workers=2)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="no"):
        next(results)
    assert len(begun) <= 6
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def test_whoever_stops_early_leaves_no_thread() -> None:
    results = in_order(lambda number: number, range(50), workers=2)
    assert next(results) == 0
    results.close()
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]
