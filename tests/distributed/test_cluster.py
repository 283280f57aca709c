"""Reaching a cluster: whatever is wrong with it is said in one line, and soon."""

from __future__ import annotations

import gc
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from probox.distributed import open_client
from probox.errors import InputError
from probox.support import dask_cluster as cluster

pytest.importorskip("distributed")

FREE = 1.0
"""Seconds to wait for somebody who is not there."""


def refused(address: str) -> str:
    """Return what is said of an address at which there is no cluster."""
    started = time.monotonic()
    with pytest.raises(InputError) as caught, open_client(address, timeout=FREE):
        pass
    assert time.monotonic() - started < 10
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_local_cluster_has_as_many_processes_as_asked_for(client: Any) -> None:
    assert cluster.count_threads(client) == 2
    assert len(client.nthreads()) == 2
    with open_client("local:1") as other:  # beside the first one
        assert cluster.count_threads(other) == 1


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs PYTHONSAFEPATH")
def test_processes_do_not_import_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    (tmp_path / "pickle.py").write_text("open('ran', 'w')")
    command = [sys.executable, "-c", "from multiprocessing.spawn import spawn_main"]
    with cluster._isolate_processes():
        subprocess.run(command, check=True, capture_output=True)
        assert not (tmp_path / "ran").exists()
    subprocess.run(command, check=False, capture_output=True)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "refusal"), [("pickle.py", True), ("json.cpython-310.so", True), ("random", True), ("own.py", False)]
)
def test_a_python_that_would_import_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, refusal: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    if not refusal:
        cluster._check_current_folder()
        return
    with pytest.raises(InputError, match=f"{name}: would be imported by Dask's processes .*; start probox in another"):
        cluster._check_current_folder()


def test_loggers_are_as_before(client: Any) -> None:
    logger = logging.getLogger("distributed.client")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        refused("127.0.0.1:1")
        assert logger.level == logging.WARNING
    finally:
        logger.setLevel(before)


def test_nobody_listens(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:  # bound, but it does not listen
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        message = refused(f"tcp://127.0.0.1:{port}")
    assert message.startswith(f"no Dask scheduler answers at tcp://127.0.0.1:{port} (")
    assert message.endswith("; start one with `dask scheduler`, and check the address")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "carrier-pigeon://head:8786"])
def test_a_client_that_reached_nobody_is_closed(address: str) -> None:
    """Left open, it is closed when Python finds it, maybe while another one starts: Dask then waits for itself."""
    import distributed

    gc.collect()
    gc.disable()
    try:
        refused(address)
        # By type(): what others keep may look like any class that it is asked for, and warn of it.
        clients = [one for one in gc.get_objects() if issubclass(type(one), distributed.Client)]
        assert [one.status for one in clients if one.status not in ("running", "closed")] == []
    finally:
        gc.enable()


def test_somebody_else_listens(capfd: pytest.CaptureFixture[str]) -> None:
    def answer(server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" * 8)
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,), daemon=True)
        thread.start()
        message = refused(f"127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)
    thread.join()
    assert message.startswith("no Dask scheduler answers at 127.0.0.1:")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("", "expected the address of a Dask scheduler, but got nothing"),
        ("head", "expected an address with a port, but got 'head'"),
        ("tcp://head", "expected an address with a port, but got 'tcp://head'"),
        ("head:99999", "expected an address with a port, but got 'head:99999'"),
        ("local:0", "expected local or local:N with N processes, but got 'local:0'"),
        ("local:four", "expected local or local:N with N processes, but got 'local:four'"),
        ("nowhere/scheduler.json", "nowhere/scheduler.json: cannot be read: No such file or directory"),
        ("carrier-pigeon://head:8786", "no Dask scheduler answers at carrier-pigeon://head:8786 (unknown address"),
    ],
)
def test_addresses_that_are_none(address: str, problem: str) -> None:
    message = refused(address)
    assert message.startswith(problem)
    assert "; " in message


@pytest.mark.parametrize("content", ["{}", "[1]", "{", '{"address": 7}', '{"address": ""}'])
def test_files_of_no_scheduler(tmp_path: Path, content: str) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(content)
    assert refused(str(file)).startswith(f"{file}: contains no address of a Dask scheduler; ")


@pytest.mark.slow
def test_a_program_that_starts_itself_again_ends_in_one_error(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import probox.distributed\nwith probox.distributed.open_client('local:1'):\n    print('open')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(cluster.__file__).parents[2])}
    ended = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.count("Traceback") == 1
    assert ended.stderr.endswith('open the cluster below `if __name__ == "__main__":`\n')


@pytest.mark.slow
def test_workers_of_another_version(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "__version__", "99.9")
    message = refused(client.scheduler.address)
    assert message.startswith("the Dask worker tcp://")
    assert message.endswith(", but this is 99.9; install the same version everywhere")


def test_workers_without_probox(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_VERSION", "__import__('probox_that_is_not_here')")
    message = refused(client.scheduler.address)
    assert message.endswith("has no probox; install probox for the Python that runs workers")
