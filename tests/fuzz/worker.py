"""The process that tries inputs: what kills it must be told from what it survives, so another one watches."""

from __future__ import annotations

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

from .targets import TARGETS, Files, try_input

__all__ = ["STATE", "input_files", "put", "run_one"]

STATE = struct.Struct("<qdd")
"""What the watcher reads while this process may be hanging: the number of the input, when it was begun, and after how
much processor time."""

MORE_ADDRESSES = 3 << 29
"""How much address space inputs may take beyond what the process has once it is warm."""


def input_files(target: str, seed: int, number: int) -> Files:
    """Return the files of an input; its three names decide every byte."""
    return TARGETS[target].make(random.Random(f"{target} {seed} {number}"))


def put(files: Files, folder: Path) -> None:
    """Make the folder hold these files and no others."""
    for path in folder.rglob("*"):
        if path.is_file() and str(path.relative_to(folder)) not in files:
            path.unlink()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def run_one(target: str, folder: Path) -> str | None:
    """Try the files in a folder; return what is wrong with what came of it, if anything is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try_input(TARGETS[target], folder)
    except MemoryError:
        return "out of memory"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())[:300]
        return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {text}"
    return None


def _peak() -> int:
    """Return the most memory in bytes that this process has had at a time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MORE_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _begin(state: mmap.mmap, number: int) -> None:
    state[:] = STATE.pack(number, time.monotonic(), time.process_time())  # in one piece, unlike `pack_into`


def _say(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Try inputs from `first` to `last` of a target; say what is found, one JSON object per line."""
    target, seed, first, last, folder, state_file, most, is_limited = sys.argv[1:]
    place = Path(folder)
    with open(state_file, "r+b") as file:
        state = mmap.mmap(file.fileno(), STATE.size)
    _begin(state, -1)
    put(input_files(target, int(seed), -1), place)  # warm: modules, seeds
    run_one(target, place)
    if is_limited == "1":
        _limit_memory()
    start = _peak()
    for number in range(int(first), int(last)):
        _begin(state, number)
        put(input_files(target, int(seed), number), place)
        _begin(state, number)
        problem = run_one(target, place)
        if _peak() > start + int(most):
            _say(number=number, problem=f"took {(_peak() - start) >> 20} MB of memory")
            _say(next=number + 1)  # the peak never falls: a new process must go on
            return
        if problem is not None:
            _say(number=number, problem=problem)
    _say(next=int(last))


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):  # small inputs: threads would only wait for each other
        os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})
    main()
