"""Workers, schedulers and runs that are killed half-way: the bits are the same, and nothing that was done is lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.distributed import jobs

import probox
import probox.distributed
from probox import Convention, evaluate
from probox.distributed import open_client, run_evaluation
from probox.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
PARTS = 12

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


@pytest.mark.slow
@pytest.mark.parametrize("keeping", [True, False])
def test_a_worker_killed_half_way_changes_no_bit(client: Any, sets: Path, tmp_path: Path, keeping: bool) -> None:
    client.wait_for_workers(2)
    victim = next(iter(client.run(jobs.slow_down, 0.05).values()))
    killed_at: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if 0 < done < total and not killed_at:
            killed_at.append(done)
            os.kill(victim, signal.SIGKILL)

    files = sets / "truth", sets / "found"
    folder = tmp_path / "parts" if keeping else None
    result = probox.distributed.evaluate(*files, client=client, parts=PARTS, checkpoint=folder, progress=kill_one)
    assert killed_at
    assert victim not in client.run(os.getpid).values()
    assert result.to_bytes() == evaluate(*files).to_bytes()
    assert not (tmp_path / "parts").exists()


@contextmanager
def dask_processes(folder: Path, workers: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Give the scheduler file and the process of a scheduler with workers, processes of their own as on a cluster."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(probox.__file__).parents[1])])}
    # Their own session, so that everybody goes together: a worker has a nanny who would start it again.
    shared: dict[str, Any] = {
        "cwd": folder, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
        "start_new_session": True,
    }  # fmt: skip
    place = ["--scheduler-file", str(file)]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    scheduler = subprocess.Popen([*command, "--no-dashboard", *place], **shared)
    started = [scheduler]
    try:
        deadline = time.monotonic() + 30
        while not file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard"]
        started += [subprocess.Popen([*command, *place], **shared) for _ in range(workers)]
        yield str(file), scheduler
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.slow
def test_a_scheduler_killed_half_way_and_started_again(sets: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    files, folder = (sets / "truth", sets / "found"), tmp_path / "parts"
    with dask_processes(tmp_path, 2) as (file, scheduler):

        def kill_scheduler(done: int, total: int) -> None:
            if done:
                scheduler.kill()

        with open_client(file, timeout=20) as client:
            client.wait_for_workers(2, timeout=20)
            client.run(jobs.slow_down, 0.3)
            with pytest.raises(InputError) as caught:
                probox.distributed.evaluate(
                    *files, client=client, parts=PARTS, checkpoint=folder, progress=kill_scheduler
                )
    assert re.fullmatch(
        r"(part \d+ of 12: )?the Dask scheduler at tcp://127\.0\.0\.1:\d+ does not respond, or has dropped the task; "
        r"run the same command again: finished parts are kept",
        str(caught.value),
    )
    kept = len(list(folder.glob("part-*")))
    assert 0 < kept < PARTS
    with (
        dask_processes(tmp_path, 1) as (file, _),
        open_client(file, timeout=20) as client,
        run_evaluation(*files, client=client, checkpoint=folder, convention=Convention()) as run,
    ):
        assert (run.kept, run.parts) == (kept, PARTS)
    assert run.result.to_bytes() == evaluate(*files).to_bytes()
    assert not folder.exists()


@pytest.mark.slow
def test_a_scheduler_without_workers(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with (
        dask_processes(tmp_path, 0) as (file, _),
        pytest.raises(
            InputError, match=r"the Dask scheduler at tcp://\S+ has no workers; start some with `dask worker"
        ),
        open_client(file, timeout=1),
    ):
        pass


def start_probox(*arguments: str | Path, folder: Path) -> subprocess.Popen[str]:
    """Start the command line with slow workers, in a group of processes as a terminal would have it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(probox.__file__).parents[1])])}
    command = [sys.executable, "-m", "tests.distributed.slow_probox", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=folder, env=environment, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.slow
def test_control_c_ends_in_two_lines_and_the_same_command_goes_on(sets: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    arguments = ("evaluate", sets / "truth", sets / "found", "--dask", "local:2", "--out", "results")
    process = start_probox(*arguments, folder=tmp_path)
    parts = tmp_path / "results.partial" / "found"
    deadline = time.monotonic() + 60
    while not list(parts.glob("part-*.probox")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to workers, too
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    first, second = err.split("\n\n")  # the line break is click's, after the ^C of the terminal
    kept, of = len(list(parts.glob("part-*.probox"))), 8
    assert 0 < kept < of
    assert first == f"{kept} finished parts are kept in results.partial; the same command goes on from there"
    assert second == "probox: interrupted\n"
    process = start_probox(*arguments, "--json", folder=tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == f"found: {kept} of {of} parts were done before\n"
    alone = probox.evaluate(sets / "truth", sets / "found")
    assert f'"PDQ": {alone.summary()["PDQ"]!r}' in out
    assert probox.Evaluation.load(tmp_path / "results" / "found").summary() == alone.summary()
    assert not (tmp_path / "results.partial").exists()
