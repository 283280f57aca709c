"""Threads, and parallel tasks with results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from probox.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Future

MOST_THREADS = 4096

FEW_ROWS = 400

"""For up to this many rows, at 0.4 to 2 microseconds each, one thread was faster than two when boxes without covariance
were scored and matched: starting a thread takes 30 to 60 microseconds."""

_at_most: ContextVar[int] = ContextVar("threads_at_most", default=MOST_THREADS)


def thread_count(threads: int | None) -> int:
    """Return `threads`, or the processors available to this process, limited by `threads_at_most`."""
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= MOST_THREADS:
            remedy = "leave it out to use all processors"
            raise InputError(
                f"expected threads to be a whole number from 1 to {MOST_THREADS}, got {threads!r:.40}", remedy=remedy
            )
        return int(threads)
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(there, _at_most.get())


def threads_for(rows: int, threads: int | None) -> int:
    """Return `thread_count`, or 1 for so few rows that another thread would start too late.

    >>> threads_for(10, 4), threads_for(100_000, 4)
    (1, 4)
    """
    wanted = thread_count(threads)
    return wanted if rows > FEW_ROWS else 1


@contextmanager
def threads_at_most(most: int) -> Iterator[None]:
    """Limit the default number of threads in a block, because other processes use the same processors.

    >>> with threads_at_most(1):
    ...     thread_count(None), thread_count(3)
    (1, 3)
    """
    before = _at_most.set(most)
    try:
        yield
    finally:
        _at_most.reset(before)


Task = TypeVar("Task")

Result = TypeVar("Result")


def in_order(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, workers: int, ahead: int = 1
) -> Iterator[Result]:
    """Yield the results of tasks in order, while threads work on the next ones.

    The exception of a task is raised in its turn. On early exit, by an error or Ctrl-C, running tasks are awaited and
    waiting tasks are cancelled. At most `workers` and `ahead` results wait in memory.

    >>> list(in_order(lambda number: number**2, range(5), workers=2))
    [0, 1, 4, 9, 16]
    """
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(workers)
    waiting: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(function, task))
            if len(waiting) >= workers + ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        with suppress(RuntimeError):  # the interpreter is shutting down
            pool.shutdown(wait=True, cancel_futures=True)
