"""Pieces of work on a Dask cluster: what analyses are handed in place of doing them one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from probox.convention import Convention
from probox.distributed.cluster import current_client, thread_total
from probox.distributed.engine import AGAIN, DroppedError, cluster_errors, submit_tasks, watch_tasks
from probox.support.parallel import threads_at_most

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["ClusterMapper"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_SMALL = (bool, int, float, str, bytes, type(None), Convention)
"""What is sent with each task: it takes no more than the task itself."""
TRIES = 3
"""How often what calls share is sent, at most, before a cluster that loses it is given up."""


class ClusterMapper:
    """Calls functions on the workers of a cluster; a `probox.support.mapping.Mapper`.

    What calls share is sent to the cluster once, and stays there as long as this object is kept; which workers hold a
    copy is Dask's affair, and they hand it on to each other. A piece whose worker dies runs again on another; if none
    has what is shared any more, it is sent again.

    Parameters
    ----------
    client : Client, optional
        The cluster. Default: the client that the program has opened.
    what : str
        What a piece is called in messages.
    """

    def __init__(self, client: Client | None = None, *, what: str = "piece") -> None:
        self.client = current_client() if client is None else client
        self.what = what
        self.at_once = thread_total(self.client)
        self._sent: list[tuple[Any, Future]] = []

    def __call__(self, function: Callable[..., Result], items: Sequence[Item], /, *shared: Any) -> Iterator[Result]:
        """Send the calls at once; yield their results in the order of the items, waiting for each."""
        return self._in_order(self._send(function, items, shared), function, items, shared)

    def _send(self, function: Callable[..., Any], items: Sequence[Any], shared: Sequence[Any]) -> list[Future]:
        given = [self._to_workers(value) for value in shared]
        tasks = [[_Sealed(item), *given] for item in items]
        return submit_tasks(
            self.client, partial(_call, function), tasks, key_prefix=f"probox-{function.__name__.strip('_')}"
        )

    def _to_workers(self, value: Any) -> Any:
        """Return what stands for a value in a task: itself, or where it is on the workers."""
        if isinstance(value, _SMALL) or (isinstance(value, tuple) and all(isinstance(one, _SMALL) for one in value)):
            return _Sealed(value)
        for known, future in self._sent:
            if known is value:
                return future
        with cluster_errors(self.client, AGAIN):
            # To all workers at first, who all begin at once, and of whom one may die.
            (future,) = self.client.scatter([value], broadcast=True, hash=False)
        self._sent.append((value, future))
        return future

    def _in_order(
        self, futures: list[Future], function: Callable[..., Any], items: Sequence[Any], shared: Sequence[Any]
    ) -> Iterator[Any]:
        waiting: dict[int, Any] = {}
        wanted = 0
        left = list(range(len(items)))  # which item each of the futures is about
        for tried in range(1, TRIES + 1):
            try:
                for index, value in watch_tasks(self.client, futures, what=self.what, keep=False):
                    waiting[left[index]] = value
                    while wanted in waiting:
                        yield waiting.pop(wanted)
                        wanted += 1
                return
            except DroppedError:
                if tried == TRIES or self.client.status != "running":
                    raise
            # The last process that had what is shared died with it: here it still is.
            self._sent.clear()
            left = [index for index in range(wanted, len(items)) if index not in waiting]
            futures = self._send(function, [items[index] for index in left], shared)


class _Sealed:
    """A value that Dask does not look into: it would take a tuple that begins with a function for a task."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _call(function: Callable[..., Result], given: Sequence[Any]) -> Result:
    """Call a function on a worker, which runs as many such calls at a time as it has threads."""
    with threads_at_most(1):
        return function(*(value.value if isinstance(value, _Sealed) else value for value in given))
