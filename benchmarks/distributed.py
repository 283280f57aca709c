"""Evaluation on a local Dask cluster against one process: time, bit-identical results, and recovery from failures.

    pip install 'probox[distributed]'
    python -m benchmarks.distributed
    python -m benchmarks.distributed --detections 100000 --kill-worker --kill-scheduler

Simulated detections with full covariances are written as Parquet shards in advance. Both evaluations read these and
must give bit-identical results. One process has one thread, and so has each worker of the cluster. Starting the cluster
is not timed.

`--kill-worker` evaluates again and kills one of the workers after a third of the images. `--kill-scheduler` kills the
scheduler of a cluster of separate processes, starts another, and resumes from the checkpoint.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import probox
from benchmarks.workloads import PER_IMAGE, jittered, simulated_truth
from probox import InputError, write_parquet
from probox.distributed import evaluate, open_client


def main() -> None:
    """Print one line per evaluation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--detections", type=int, default=2_000_000)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", default="matches", help="summary, matches or all")
    parser.add_argument("--repeat", type=int, default=1, help="number of alternating runs; the minimum time counts")
    parser.add_argument("--kill-worker", action="store_true")
    parser.add_argument("--kill-scheduler", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.perf_counter()
        truth = simulated_truth(max(1, options.detections // PER_IMAGE))
        found = jittered(truth, "full", PER_IMAGE)
        write_parquet(folder / "truth", truth, shards=options.shards)
        write_parquet(folder / "found", found, shards=options.shards)
        print(
            f"{len(found):,} detections with full covariances in {len(truth.image_ids):,} images, "
            f"{options.shards} shards, keep={options.keep}; made in {time.perf_counter() - started:.1f} s"
        )
        del truth, found
        compare(folder, options)


def compare(folder: Path, options: argparse.Namespace) -> None:
    """Print the lines of all evaluations."""
    truth, found, keep = folder / "truth", folder / "found", options.keep
    alone, shared = float("inf"), float("inf")
    with open_client(f"local:{options.workers}") as client:
        few = simulated_truth(8)
        write_parquet(folder / "few-truth.parquet", few)
        write_parquet(folder / "few-found.parquet", jittered(few, "full", 4))
        warm_up = folder / "few-truth.parquet", folder / "few-found.parquet"
        evaluate(*warm_up, client=client, keep=keep)  # workers import probox
        for _ in range(options.repeat):
            started = time.perf_counter()
            expected = probox.evaluate(truth, found, keep=keep, threads=1).to_bytes()
            alone = min(alone, time.perf_counter() - started)
            started = time.perf_counter()
            data = evaluate(truth, found, client=client, keep=keep, checkpoint=folder / "parts").to_bytes()
            shared = min(shared, time.perf_counter() - started)
            check(data, expected)
        print(f"one process, one thread:    {alone:8.2f} s")
        print(f"{options.workers} workers, one thread each: {shared:8.2f} s; {alone / shared:.2f} times as fast, equal")
        if options.kill_worker:
            kill_worker(client, folder, expected, keep)
    if options.kill_scheduler:
        kill_scheduler(folder, expected, options)


def check(data: bytes, expected: bytes) -> None:
    """Exit if results differ."""
    if data != expected:
        sys.exit("the results differ")


def kill_worker(client: Any, folder: Path, expected: bytes, keep: Any) -> None:
    """Evaluate while one of the workers is killed."""
    victim = next(iter(client.run(os.getpid).values()))

    def kill(done: int, total: int) -> None:
        if 3 * done >= total:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)

    started = time.perf_counter()
    data = evaluate(
        folder / "truth", folder / "found", client=client, keep=keep, checkpoint=folder / "parts", progress=kill
    )
    seconds = time.perf_counter() - started
    check(data.to_bytes(), expected)
    print(f"one worker killed:          {seconds:8.2f} s; bit-identical")


def kill_scheduler(folder: Path, expected: bytes, options: argparse.Namespace) -> None:
    """Evaluate while the scheduler is killed, and resume with another."""
    given: dict[str, Any] = {"keep": options.keep, "checkpoint": folder / "parts"}
    truth, found = folder / "truth", folder / "found"
    with dask_processes(folder, options.workers) as (file, scheduler), open_client(file, timeout=30) as client:

        def kill(done: int, total: int) -> None:
            if 3 * done >= total:
                scheduler.kill()

        client.wait_for_workers(options.workers)
        started = time.perf_counter()
        try:
            evaluate(truth, found, client=client, progress=kill, **given)
        except InputError as error:
            print(f"scheduler killed:           {time.perf_counter() - started:8.2f} s; {error}")
    kept = len(list((folder / "parts").glob("part-*")))
    with dask_processes(folder, options.workers) as (file, _), open_client(file, timeout=30) as client:
        client.wait_for_workers(options.workers)
        started = time.perf_counter()
        data = evaluate(truth, found, client=client, **given).to_bytes()
        seconds = time.perf_counter() - started
    check(data, expected)
    print(f"resumed:                    {seconds:8.2f} s; {kept} parts were finished before, bit-identical")


@contextmanager
def dask_processes(folder: Path, workers: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Yield the scheduler file and the process of a scheduler with workers, as on a real cluster."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    quiet: dict[str, Any] = {
        "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True,
    }  # fmt: skip
    place = ["--scheduler-file", str(file), "--no-dashboard"]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    scheduler = subprocess.Popen([*command, *place], **quiet)
    started = [scheduler]
    try:
        while not file.exists():
            time.sleep(0.05)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1"]
        started += [subprocess.Popen([*command, *place], **quiet) for _ in range(workers)]
        yield str(file), scheduler
    finally:
        for process in started:  # kill the process group: each worker has a nanny process that would restart it
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    main()
