"""The option --dask of commands that can share their work over a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from probox.cli.option_groups import option
from probox.support.mapping import Mapper, here

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["client_at", "dask_option", "mappers_at"]


def dask_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --dask to a command, which gets the address, or None, as its argument `dask`."""
    return option(
        "--dask",
        group="Execution",
        metavar="ADDRESS",
        help="Share the work over a Dask cluster: local, or a scheduler's.",
    )(command)


@contextmanager
def client_at(address: str) -> Iterator[Client]:
    """Give a client of the cluster at an address."""
    from probox.distributed.cluster import open_client

    with open_client(address) as client:
        yield client


@contextmanager
def mappers_at(address: str | None) -> Iterator[Callable[[], Mapper]]:
    """Give what makes those who do pieces of work: on the cluster at an address, or in this process.

    One for each result: what it has sent to workers stays there as long as it is kept.
    """
    if address is None:
        yield lambda: here
        return
    from probox.distributed.mapper import ClusterMapper

    with client_at(address) as client:
        yield lambda: ClusterMapper(client)
