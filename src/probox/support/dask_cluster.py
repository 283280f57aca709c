"""Connect to a Dask cluster: on this machine, or through a running scheduler; errors are one line."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from probox.errors import InputError
from probox.support.optional import require
from probox.support.parallel import thread_count
from probox.version import __version__

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 8.0
"""Seconds to wait for a scheduler's answer, and for its first worker."""
_LOGGERS = ("distributed", "tornado", "asyncio")
"""Loggers of connection errors, which are silenced because the error message names the cause."""
_ADDRESS = "give local, the address of a scheduler (tcp://host:8786) or its --scheduler-file"
_VERSION = "__import__('probox.version', fromlist=['version']).__version__"
"""Expression that workers evaluate: a function of probox could not be loaded on workers without probox."""


@contextmanager
def open_client(address: str = "local", *, timeout: float | None = None) -> Iterator[Client]:
    """Yield a client of a Dask cluster, and close it at the end of the block.

    Parameters
    ----------
    address : str
        ``"local"``: a cluster on this machine, with one process per processor, or ``"local:4"`` for four processes.
        It ends with the block. Processes that start in the block do not import modules from the current folder
        (``PYTHONSAFEPATH``). Any other value is a running scheduler: its address (``"tcp://host:8786"``) or the file
        that it wrote with ``--scheduler-file``.
    timeout : float, optional
        Seconds to wait for a scheduler's answer, and for its first worker. Default: 8.

    Returns
    -------
    context manager
        Yields a `distributed.Client`.

    Examples
    --------
    >>> from probox.distributed import open_client
    >>> with open_client("tcp://head:8786") as client:  # doctest: +SKIP
    ...     result = probox.distributed.evaluate("truth/", "found/", client=client)
    """
    require("distributed", extra="distributed", purpose="a Dask cluster needs")
    timeout = PATIENCE if timeout is None else timeout
    workers = _parse_workers(address)
    opened = _connect(_find_address(address), timeout) if workers is None else _start(workers, timeout)
    with _quiet(), opened as client:
        _check_workers(client, timeout)
        yield client


def current_client() -> Client:
    """Return the client that the program has opened, as `dask` chooses it."""
    distributed = require("distributed", extra="distributed", purpose="a Dask cluster needs")
    with suppress(ValueError):
        client: Client = distributed.get_client()
        return client
    raise InputError(
        "expected an open Dask client, but got none",
        remedy='open one: `with probox.distributed.open_client("local") as client:`, and pass client=client',
    )


def count_threads(client: Client) -> int:
    """Return the number of tasks that a cluster runs at a time."""
    return max(1, sum(int(threads) for threads in client.nthreads().values()))


def _parse_workers(address: str) -> int | None:
    """Return the number of processes of a local cluster; None for the address of another.

    >>> _parse_workers("local:3"), _parse_workers("tcp://head:8786")
    (3, None)
    """
    word, colon, number = address.partition(":")
    if word != "local":
        return None
    if not colon:
        return thread_count(None)
    if not (number.isascii() and number.isdigit() and 0 < int(number) <= 1024):
        problem = f"expected local or local:N with N processes, but got {address!r:.60}"
        raise InputError(problem, remedy="write local:4 for four")
    return int(number)


def _find_address(given: str) -> str:
    """Return the address of a scheduler, or read it from the file that the scheduler wrote."""
    if not given.strip():
        raise InputError("expected the address of a Dask scheduler, but got nothing", remedy=_ADDRESS)
    if "://" not in given and (os.path.exists(given) or given.endswith(".json") or os.sep in given):
        try:
            with open(given, "rb") as file:
                address = json.load(file)["address"]
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=given, remedy=_ADDRESS) from None
        except (ValueError, KeyError, TypeError, RecursionError):
            address = None
        if not isinstance(address, str) or not address:
            raise InputError("contains no address of a Dask scheduler", file=given, remedy=_ADDRESS)
        return address
    _, _, port = given.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise InputError(f"expected an address with a port, but got {given!r:.80}", remedy=_ADDRESS)
    return given


@contextmanager
def _start(workers: int, timeout: float) -> Iterator[Client]:
    """Yield the client of a local cluster with one process per worker, which ends with the block."""
    import dask
    import distributed

    if getattr(multiprocessing.current_process(), "_inheriting", False):
        # Worker processes import the main program, which must not start a cluster again.
        raise SystemExit(1)
    # Workers get one task at a time: if a worker dies, only its current task is affected.
    one_by_one = {"distributed.scheduler.worker-saturation": 1.0}
    # Dask makes workers return freed memory at once, which halves the speed of NumPy's repeated allocations.
    keep_memory = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}
    with _isolate_processes(), ExitStack() as stack:
        # Worker processes inherit the mask: Ctrl-C is handled by this process only.
        with _hold_interrupts(), dask.config.set(one_by_one | keep_memory):
            try:
                cluster = distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )  # fmt: skip
            except Exception as error:
                raise InputError(
                    f"the processes of a local Dask cluster did not start ({_reason(error)})",
                    remedy='open the cluster below `if __name__ == "__main__":`',
                ) from None
            stack.enter_context(cluster)
            client = stack.enter_context(_new_client(cluster, timeout))
        yield client


@contextmanager
def _new_client(place: Any, timeout: float) -> Iterator[Client]:
    """Yield a client of a cluster or of a scheduler at an address, and close it, even if the connection failed.

    Dask leaves failed clients open and closes them at garbage collection. If that happens while another client starts,
    both wait for the same lock forever.
    """
    import distributed

    client: Client = distributed.Client.__new__(distributed.Client)
    try:
        client.__init__(place, timeout=timeout)
        yield client
    finally:
        with suppress(Exception):  # the scheduler may have ended
            client.close(timeout=2)


@contextmanager
def _connect(address: str, timeout: float) -> Iterator[Client]:
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": f"{timeout}s"}), ExitStack() as stack:
        try:
            client = stack.enter_context(_new_client(address, timeout))
        except Exception as error:  # no host, no answer, or another protocol
            raise InputError(
                f"no Dask scheduler answers at {address:.200} ({_reason(error)})",
                remedy="start one with `dask scheduler`, and check the address",
            ) from None
        yield client


def _check_workers(client: Client, timeout: float) -> None:
    """Raise unless there are workers, and all have the same version of probox."""
    address = client.scheduler.address
    try:
        client.wait_for_workers(1, timeout=timeout)
    except Exception:
        problem, remedy = f"the Dask scheduler at {address} has no workers", f"start some with `dask worker {address}`"
        raise InputError(problem, remedy=remedy) from None
    try:
        versions = client.run(eval, _VERSION, on_error="return")
    except Exception as error:
        problem = f"the workers of the Dask scheduler at {address} do not answer ({_reason(error)})"
        raise InputError(problem, remedy="look into their logs, and start them again") from None
    for worker, version in sorted(versions.items()):
        name = f"the Dask worker {worker}"
        if isinstance(version, ImportError):
            raise InputError(f"{name} has no probox", remedy="install probox for the Python that runs workers")
        if version != __version__:
            found = f"has probox {version}" if isinstance(version, str) else f"has an unknown probox ({version!r:.120})"
            raise InputError(f"{name} {found}, expected {__version__}", remedy="install the same version everywhere")


def _reason(error: BaseException) -> str:
    """Return a short reason for an error: the message of the innermost cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{first or 'no answer in time':.160}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's log messages, which an `InputError` replaces, and its minor warnings."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in _LOGGERS]
    loggers = [logging.getLogger(name) for name in {*names, *_LOGGERS}]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"distributed\b")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def _isolate_processes() -> Iterator[None]:
    """Prevent processes that start in the block from importing modules of the current folder instead of Python's own.

    Dask and multiprocessing start ``python -c``, which searches that folder first; workers may be restarted later.
    """
    if sys.version_info < (3, 11):  # without PYTHONSAFEPATH
        _check_current_folder()
    before = {name: os.environ[name] for name in ("PYTHONSAFEPATH",) if name in os.environ}
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        os.environ.pop("PYTHONSAFEPATH", None)
        os.environ.update(before)


def _check_current_folder() -> None:
    """Raise if the current folder contains a module with the name of one that Dask's processes import from Python."""
    for name in sorted(os.listdir()):
        if name.split(".")[0] in sys.stdlib_module_names:
            raise InputError(
                "would be imported by Dask's processes in place of Python's own module",
                file=os.path.abspath(name),
                remedy="start probox in another folder, or use Python 3.11 or newer",
            )


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Block Ctrl-C in threads and processes that start in the block; this thread handles it at the end."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it later would unblock Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
