"""Tasks on a Dask cluster: sent, watched, run again where a process died, and combined where their results are.

Dask does the distribution. What is added here: errors in the input are results of tasks (Dask would try them again,
and stop at the first), and errors of the cluster are said in one line that names the task.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError as FuturesCancelled
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from probox.distributed.cluster import current_client, open_client, thread_total
from probox.errors import InputError, ProboxError

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = [
    "DroppedError",
    "cluster_errors",
    "current_client",
    "map_tasks",
    "open_client",
    "submit_tasks",
    "thread_total",
    "tree_reduce",
    "watch_tasks",
]

Progress = Callable[[int, int], None]
AGAIN = "run it again"
"""What to do after a failure of the cluster, where nothing better is known."""


class DroppedError(InputError):
    """The scheduler is gone, or has dropped a task: what it was to work on was lost with the processes that had it."""


class Outcome:
    """What became of a task: its value, or the error in its input; it stays on the worker until somebody asks."""

    def __init__(self, value: Any = None, error: ProboxError | None = None) -> None:
        self.value = value
        self.error = error

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + _bytes_in(self.value)


def map_tasks(
    client: Client,
    function: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    retries: int = 2,
    progress: Progress | None = None,
    weights: Sequence[int] | None = None,
    key_prefix: str = "probox",
    what: str = "part",
    remedy: str = AGAIN,
) -> Iterator[tuple[int, Any]]:
    """Yield ``(index, function(item))`` for each item, in the order in which a cluster completes them.

    A task whose process dies runs again on another. One that raises a `ProboxError` does not: the others still run and
    are yielded, and the error is raised at the end. Whoever leaves the loop early cancels what is left.

    Parameters
    ----------
    client : Client
        The cluster.
    function : callable
        Takes one item. Workers import it by its name; a `functools.partial` of such a function will do.
    items : iterable
        What the tasks are about, sent with them.
    retries : int
        How often a task runs again that failed with another error than a `ProboxError`, say of a file system.
    progress : callable, optional
        Called with what is done and what is to be done, in `weights`.
    weights : sequence of int, optional
        The work in each task, in images for example; default: 1 each.
    key_prefix : str
        What Dask's pages call these tasks.
    what : str
        What one task is called in messages: ``"part"`` is named as ``part 7 of 16``.
    remedy : str
        What to do if the cluster fails.
    """
    futures = submit_tasks(client, function, items, retries=retries, key_prefix=key_prefix)
    yield from watch_tasks(client, futures, progress=progress, weights=weights, what=what, remedy=remedy, keep=False)


def submit_tasks(
    client: Client,
    function: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    retries: int = 2,
    key_prefix: str = "probox",
) -> list[Future]:
    """Send tasks to a cluster, and return a future of each, for `tree_reduce`; `map_tasks` is for values one by one.

    Parameters
    ----------
    client : Client
        The cluster.
    function : callable
        Takes one item. Workers import it by its name.
    items : iterable
        What the tasks are about, sent with them.
    retries : int
        How often a task runs again that failed with another error than a `ProboxError`.
    key_prefix : str
        What Dask's pages call these tasks.
    """
    import dask

    listed = list(items)
    if not listed:
        return []
    run = uuid4().hex[:12]
    keys = [f"{key_prefix}-{run}-{index}" for index in range(len(listed))]
    with cluster_errors(client, AGAIN), dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        futures: list[Future] = client.map(partial(_attempt, function), listed, key=keys, retries=retries, pure=False)
    return futures


def watch_tasks(
    client: Client,
    futures: Sequence[Future],
    *,
    look: Callable[[Any], Any] | None = None,
    progress: Progress | None = None,
    weights: Sequence[int] | None = None,
    what: str = "part",
    remedy: str = AGAIN,
    keep: bool = True,
) -> Iterator[tuple[int, Any]]:
    """Yield ``(index, value)`` of tasks as they complete; errors in their input are raised when all are through.

    Parameters
    ----------
    client : Client
        The cluster.
    futures : sequence of Future
        What `submit_tasks` returned.
    look : callable, optional
        Applied to each value where it is; what it returns is yielded, and the value stays on its worker.
    progress, weights, what, remedy
        As for `map_tasks`.
    keep : bool
        Whether values are wanted later on, by `tree_reduce`; otherwise each is released as soon as it was yielded, and
        `futures` is emptied.
    """
    from distributed import as_completed

    sizes = [1] * len(futures) if weights is None else [int(weight) for weight in weights]
    looks = list(futures)
    if look is not None:
        with cluster_errors(client, remedy):
            looks = [
                client.submit(partial(_look, look), future, key=f"{future.key}-look", retries=2, pure=False)
                for future in futures
            ]
    total, done = sum(sizes), 0
    place = {future.key: index for index, future in enumerate(looks)}
    left = dict(enumerate(zip(looks, futures, strict=True)))
    if not keep and isinstance(futures, list):
        futures.clear()
    failed: dict[int, ProboxError] = {}
    try:
        watched = as_completed(looks)
        looks.clear()  # the last references are those of `left`
        if progress is not None:
            progress(0, total)
        for future in watched:
            index = place[future.key]
            outcome = _outcome_of(future, client, f"{what} {index + 1} of {len(place)}", remedy)
            del left[index], future
            done += sizes[index]
            if outcome.error is not None:
                failed[index] = outcome.error
                continue
            if progress is not None:
                progress(done, total)
            yield index, outcome.value
    finally:
        if left:  # an error of the cluster, Ctrl-C, or nobody wants the rest
            with suppress(Exception):
                client.cancel([future for pair in left.values() for future in pair], force=True)
    if failed:
        raise _first_of(failed, what, len(place))


def tree_reduce(
    client: Client,
    futures: Sequence[Future],
    join: Callable[[list[Any]], Any],
    *,
    fan_in: int = 8,
    remedy: str = AGAIN,
    key_prefix: str = "probox-join",
) -> Any:
    """Combine the values of tasks on the workers, a few at a time, and return the last one, which has all.

    Parameters
    ----------
    client : Client
        The cluster.
    futures : list of Future
        What `probox.distributed.engine.submit_tasks` returned; the list is emptied, so that results are released once
        they are combined.
    join : callable
        Makes one value out of a list of values. The order of combining must not matter to it.
    fan_in : int
        How many are combined at a time.
    remedy : str
        What to do if the cluster fails.
    key_prefix : str
        What Dask's pages call these tasks.
    """
    if not futures:
        raise InputError("there is nothing to join")
    level = list(futures)
    if isinstance(futures, list):
        futures.clear()
    run, number = uuid4().hex[:12], 0
    joined = partial(_join, join)
    with cluster_errors(client, remedy):
        while len(level) > 1:
            groups = [level[start : start + fan_in] for start in range(0, len(level), fan_in)]
            level = []
            for group in groups:
                key = f"{key_prefix}-{run}-{number}"
                number += 1
                one = len(group) == 1
                level.append(group[0] if one else client.submit(joined, group, key=key, retries=2, pure=False))
            groups.clear()
    (last,) = level
    level.clear()
    try:
        outcome = _outcome_of(last, client, "joining the results", remedy)
    except BaseException:
        with suppress(Exception):
            client.cancel([last], force=True)
        raise
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


# --- on workers ---


def _attempt(function: Callable[[Any], Any], item: Any) -> Outcome:
    """Return what a function makes of an item; what is wrong in the input is a result like any other."""
    try:
        return Outcome(function(item))
    except ProboxError as error:
        return Outcome(error=error)


def _look(look: Callable[[Any], Any], outcome: Outcome) -> Outcome:
    return outcome if outcome.error is not None else _attempt(look, outcome.value)


def _join(join: Callable[[list[Any]], Any], outcomes: Sequence[Outcome]) -> Outcome:
    for outcome in outcomes:
        if outcome.error is not None:
            return outcome
    return _attempt(join, [outcome.value for outcome in outcomes])


def _bytes_in(value: Any, depth: int = 4) -> int:
    """Return about how many bytes the arrays and texts in a value have: Dask decides by it where tasks go."""
    if isinstance(getattr(value, "nbytes", None), int):
        return int(value.nbytes)
    if isinstance(value, bytes | bytearray | str) or depth == 0:
        return sys.getsizeof(value)
    inside: Iterable[Any] = ()
    if isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    elif hasattr(value, "__dict__"):
        inside = vars(value).values()
    return sys.getsizeof(value) + sum(_bytes_in(entry, depth - 1) for entry in inside)


# --- errors ---


def _outcome_of(future: Future, client: Client, name: str, remedy: str) -> Outcome:
    """Return what became of a task that is complete, also if it is that its processes died."""
    with cluster_errors(client, remedy, name):
        try:
            outcome: Outcome = future.result()
        except Exception as error:
            problem = _problem_of_task(error)
            if problem is None:
                raise
            return Outcome(error=InputError(problem, entry=name, remedy=remedy))
        return outcome


@contextmanager
def cluster_errors(client: Client, remedy: str, name: str | None = None) -> Iterator[None]:
    """Turn what Dask raises in a block into an `InputError` that names the task and what to do."""
    try:
        yield
    except ProboxError:
        raise
    except BaseException as error:
        problem = _problem_of(error, client)
        if problem is None:
            raise
        kind = DroppedError if _of_connection(error) else InputError
        raise kind(problem, entry=name, remedy=remedy) from None


def _problem_of_task(error: BaseException) -> str | None:
    """Return what an error means that is of one task alone; None for others."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        times = f"{error.allowed_failures + 1} times"
        return f"the worker process that ran it died, {times}; it may need more memory than workers have"
    if isinstance(error, MemoryError):
        return "a Dask worker is out of memory"
    if isinstance(error, OSError) and not _of_connection(error):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error!s:.200}"
    return None


def _problem_of(error: BaseException, client: Client) -> str | None:
    """Return what an error of the cluster means; None for one that is of the program."""
    if _of_connection(error):
        return f"the Dask scheduler at {_address_of(client)} is gone, or has dropped the task"
    if isinstance(error, ImportError):
        return f"a Dask worker cannot import what it needs ({error!s:.200})"
    return _problem_of_task(error)


def _of_connection(error: BaseException) -> bool:
    from asyncio import CancelledError

    import distributed
    from distributed.comm import CommClosedError

    closed = getattr(distributed.client, "ClosedClientError", CommClosedError)  # older ones have none
    return isinstance(error, CancelledError | FuturesCancelled | CommClosedError | closed | TimeoutError)


def _address_of(client: Client) -> str:
    scheduler = client.scheduler
    return "?" if scheduler is None else str(scheduler.address)


def _first_of(failed: dict[int, ProboxError], what: str, total: int) -> ProboxError:
    """Return one error for all: the first task's, and how many others failed otherwise."""
    first, error = min(failed.items())
    if len({str(one) for one in failed.values()}) == 1 or not isinstance(error, InputError):
        return error
    others = f"{len(failed) - 1} other{'s' if len(failed) > 2 else ''} of {total} failed, too"
    named = (error.entry or "").startswith(f"{what} {first + 1} of")
    return type(error)(
        f"{error.problem} ({others})" if named else f"{error.problem} ({what} {first + 1}; {others})",
        file=error.file, image=error.image, entry=error.entry, remedy=error.remedy,
    )  # fmt: skip
