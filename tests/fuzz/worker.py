"""The process that tries inputs: what kills it must be told from what it survives, so another one watches."""

from __future__ import annotations

import contextlib
import io
import json
import mmap
import os
import random
import resource
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from .targets import ALL_TARGETS, TARGETS, Files, try_input

__all__ = ["STATE", "input_files", "put", "run_one"]

STATE = struct.Struct("<qqdd")
"""What the watcher reads while this process may be hanging: the job, the number of the input, when it was begun, and
after how much processor time."""

MORE_ADDRESSES = 3 << 29
"""How much address space inputs may take beyond what the process has once it is warm."""

MAY_EXHAUST = 1 << 29
"""The same where inputs may ask for any amount."""


def input_files(target: str, seed: int, number: int) -> Files:
    """Return the files of an input; its three names decide every byte."""
    return ALL_TARGETS[target].make(random.Random(f"{target} {seed} {number}"))


def put(files: Files, folder: Path, before: Files | None = None) -> None:
    """Make the folder hold these files and no others; `before` are those that it holds already."""
    if before is None:
        before = {str(path.relative_to(folder)): b"" for path in folder.rglob("*") if path.is_file()}
        changed = files
    else:
        changed = {name: data for name, data in files.items() if before.get(name) != data}
    for name in before.keys() - files.keys():
        (folder / name).unlink()
    for name, data in changed.items():
        path = folder / name
        if name not in before:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def run_one(target: str, folder: Path) -> str | None:
    """Try the files in a folder; return what is wrong with what came of it, if anything is."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as printed:
            warnings.simplefilter("error")
            try_input(ALL_TARGETS[target], folder)
    except MemoryError:
        return "out of memory"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())[:300]
        return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {text}"
    return f"printed {printed.getvalue()[:200]!r}" if printed.getvalue() else None


def _peak() -> int:
    """Return the most memory in bytes that this process has had at a time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _limit_memory(more: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class _Progress:
    """Tells the watcher which input is being tried."""

    def __init__(self, file: Path) -> None:
        with open(file, "r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), STATE.size)

    def begin(self, job: int, number: int) -> None:
        # In one piece, unlike `pack_into`, which fills it with zeros first.
        self._memory[:] = STATE.pack(job, number, time.monotonic(), time.process_time())


def _say(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def main(folder: Path, options: dict[str, Any]) -> None:
    """Try the inputs of all jobs; say what is found, one JSON object per line."""
    jobs, seed = options["jobs"], options["seed"]
    progress = _Progress(folder / "state")
    for target in (target for target, _, _ in jobs if target in TARGETS):  # warm: modules, seeds
        put(input_files(target, seed, -1), folder / target)
        run_one(target, folder / target)
    if options["limit_addresses"]:
        _limit_memory(MAY_EXHAUST if all(ALL_TARGETS[target].may_exhaust for target, _, _ in jobs) else MORE_ADDRESSES)
    start = _peak()
    for job, (target, first, last) in enumerate(jobs):
        before = None
        for number in range(first, last):
            progress.begin(job, number)
            files = input_files(target, seed, number)
            put(files, folder / target, before)
            before = files
            progress.begin(job, number)  # making the input does not count
            problem = run_one(target, folder / target)
            too_much = _peak() > start + options["memory"]
            if too_much:
                problem = f"took {(_peak() - start) >> 20} MB of memory"
            if problem is not None:
                _say(target=target, number=number, problem=problem)
            if too_much:
                _say(next=(job, number + 1))  # the peak never falls: a new process must go on
                return
    _say(next=(len(jobs), 0))


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):  # small inputs: threads would only wait for each other
        os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
