"""Several tasks at a time, their results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

__all__ = ["in_order"]

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_order(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, workers: int, ahead: int = 1
) -> Iterator[Result]:
    """Yield the result of each task in the order of the tasks, while threads work on the next ones.

    What a task raises is raised in its turn. Whoever stops early, by an error or by Ctrl-C, waits for the tasks that
    are being worked on; those that wait are never begun.

    Parameters
    ----------
    function : callable
        What to do with a task. It is called from several threads.
    tasks : iterable
        The tasks.
    workers : int
        How many tasks are worked on at a time.
    ahead : int
        How many more results may wait to be taken: with `workers`, this bounds the memory.

    Examples
    --------
    >>> list(in_order(lambda number: number**2, range(5), workers=2))
    [0, 1, 4, 9, 16]
    """
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
        with suppress(RuntimeError):  # the interpreter is already ending
            pool.shutdown(wait=True, cancel_futures=True)
