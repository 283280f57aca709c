"""Run as a program: commands that get a signal after a file operation, or in which one file operation fails.

Reads requests from standard input, one JSON object per line (see `Request`), and answers each with one line: the names
of all file operations of the command, and for each fault what is wrong afterwards. A fork of this process runs the
command once for each fault, so that nothing is imported twice.

File operations are those that write below the folder: files opened for writing and writes to them, folders made,
anything moved, linked, synchronised, changed or removed. A signal arrives exactly as the operation returns.
"""

from __future__ import annotations

import builtins
import ctypes
import dataclasses
import errno
import hashlib
import io
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from probox.cli import _exit_on_sigterm, main

SIGNALS = {"INT": signal.SIGINT, "TERM": signal.SIGTERM, "KILL": signal.SIGKILL, "INT again and again": signal.SIGINT}
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO}
FAULTS = (*SIGNALS, *ERRORS)
AGAIN = "INT again and again"
ENDS = {"INT": (130,), AGAIN: (130,), "TERM": (143,), "KILL": (-signal.SIGKILL,), "ENOSPC": (0, 1), "EIO": (0, 1)}
"""How a command ends; where cleaning up fails, it may be that it was done before."""
HIDDEN = re.compile(r"\.part$|\.partial$|^\.points$|\.probox\.lock$")
MOVES = ("os.replace", "os.rename", "exchange")
FIRST_MOVE = -1
"""The point at which something is first moved into place."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What to try."""

    folder: str
    """A new folder, in which everything is written."""
    words: list[str]
    """The command, or -c and Python code."""
    earlier: list[str]
    """A command that writes an earlier output; none for an output that is not there yet."""
    mine: list[str]
    """Files of the user's, which are put there when the earlier output is."""
    faults: list[str]
    every: bool
    """Each operation, not only the first that moves something into place."""
    mixed: bool
    """Whether a killed run may leave old and new files."""
    no_exchange: bool
    """Pretend that folders cannot be exchanged."""


class Watch:
    """Counts file operations below a folder; lets one of them fail, or sends a signal after it."""

    def __init__(self, folder: str, fault: str, point: int, no_exchange: bool) -> None:
        self.folder, self.fault, self.point, self.no_exchange = folder, fault, point, no_exchange
        self.seen: list[str] = []

    def operation(self, name: str, real: Callable[[], Any], path: object = None) -> Any:
        self.seen.append(name)
        now = len(self.seen) == self.point or (self.point == FIRST_MOVE and name in MOVES)
        if now and self.fault == AGAIN:
            self.point += 1
        elif now:
            self.point = 0
        if now and self.fault in ERRORS:
            raise OSError(ERRORS[self.fault], os.strerror(ERRORS[self.fault]), path)
        try:
            return real()
        finally:
            if now and self.fault in SIGNALS:
                os.kill(os.getpid(), SIGNALS[self.fault])

    def is_inside(self, values: Iterable[object]) -> bool:
        return any(f"{self.folder}/" in os.fsdecode(v) for v in values if isinstance(v, str | bytes | os.PathLike))

    def install(self) -> None:
        """Watch this process."""
        for name in ("replace", "rename", "link", "symlink", "mkdir", "rmdir", "unlink", "remove", "chmod", "utime"):
            self._wrap(name)
        self._wrap_open()
        real_fsync = os.fsync

        def fsync(file: int) -> None:
            self.operation("os.fsync", lambda: real_fsync(file))

        os.fsync = fsync
        self._wrap_exchange()

    def _wrap(self, name: str) -> None:
        real = getattr(os, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dir_fd") is None and not self.is_inside(args[:2]):
                return real(*args, **kwargs)
            return self.operation(f"os.{name}", lambda: real(*args, **kwargs), args[0])

        setattr(os, name, call)

    def _wrap_open(self) -> None:
        watch = self
        real_open, real_low = builtins.open, os.open

        class Raw(io.FileIO):
            def write(self, data: Any) -> int:
                return int(watch.operation("write", lambda: io.FileIO.write(self, data)))

        def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if not isinstance(file, str | os.PathLike) or not set(mode) & set("wxa") or not watch.is_inside([file]):
                return real_open(file, mode, *args, **kwargs)
            raw = watch.operation("open", lambda: Raw(file, mode.replace("b", "").replace("t", "")))
            buffered = io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding=kwargs.get("encoding") or "utf-8")

        def opened_low(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            if flags & 3 == os.O_RDONLY or not watch.is_inside([path]):
                return real_low(path, flags, *args, **kwargs)
            return int(watch.operation("os.open", lambda: real_low(path, flags, *args, **kwargs)))

        builtins.open, io.open, os.open = opened, opened, opened_low

    def _wrap_exchange(self) -> None:
        from probox.files import output

        watch, real_library = self, ctypes.CDLL

        class Library:
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                self.real = real_library(*args, **kwargs)

            def renameat2(self, *args: Any) -> int:
                if watch.no_exchange:
                    return -1
                try:
                    return int(watch.operation("exchange", lambda: self.real.renameat2(*args)))
                except OSError:
                    return -1

        output.ctypes.CDLL = Library  # type: ignore[misc, assignment]


def in_a_fork(words: list[str], watch: Watch | None, log: Path) -> tuple[int, str, list[str]]:
    """Run a command in a fork; return how it ended, what it said, and its file operations."""
    child = os.fork()
    if not child:
        os.dup2(os.open(log.with_suffix(".err"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        status = 130
        try:
            if watch is not None:
                watch.install()
            status = run(words)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # threads may still send it
            sys.stderr.flush()
            log.write_text(json.dumps(watch.seen if watch else []))
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, log.with_suffix(".err").read_text(), json.loads(log.read_text()) if status == 0 else []


def run(words: list[str]) -> int:
    """Run a command in this process; return its status."""
    try:
        if words[0] == "-c":
            with _exit_on_sigterm():
                exec(words[1], {})
        else:
            main(words)
    except SystemExit as done:
        return int(done.code or 0)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # of code; commands say it themselves
        print(f"probox: {error}", file=sys.stderr)
        return 1
    return 0


def state(folder: Path) -> dict[str, str]:
    """Return everything below a folder by name, with digests of files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = re.sub(r"\.[0-9a-f]{8}\.part", ".????????.part", path.relative_to(folder).as_posix())
        kind = "link" if path.is_symlink() else "folder"
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else kind
    return found


def visible(found: dict[str, str]) -> dict[str, str]:
    """Return the files without those in hidden folders."""
    return {
        name: content
        for name, content in found.items()
        if content != "folder" and not any(HIDDEN.search(part) for part in name.split("/"))
    }


def points_of(operations: list[str]) -> list[int]:
    """Return which operations to try, from 1: all, but of many writes in a row the first and the last."""
    inside = {
        number
        for number in range(1, len(operations) - 1)
        if operations[number - 1 : number + 2] == ["write", "write", "write"]
    }
    return [number + 1 for number in range(len(operations)) if number not in inside]


class Trial:
    """A command and its faults."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.folder = Path(request.folder)
        self.log = self.folder.with_name(self.folder.name + ".log")
        self.start = self.folder.with_name(self.folder.name + "-start")
        self.before: dict[str, str] = {}
        self.after: dict[str, str] = {}
        self.known: dict[str, list[str]] = {}

    def watch(self, fault: str = "", point: int = 0) -> Watch:
        return Watch(str(self.folder), fault, point, self.request.no_exchange)

    def answer(self) -> dict[str, Any]:
        request = self.request
        self.folder.mkdir()
        if request.earlier:
            assert run(request.earlier) == 0  # in this process, so that the forks have everything imported
        for name in request.mine:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("three years")
        shutil.copytree(self.folder, self.start, symlinks=True)
        self.before = state(self.start)
        operations = self._operations() if request.every else []
        wrong: list[str] = []
        for fault in request.faults:
            for point in points_of(operations) if request.every else (FIRST_MOVE,):
                name = operations[point - 1] if request.every else "the first move"
                wrong += [f"{fault} at {point} ({name}): {problem}" for problem in self.problems(fault, point)]
        if self.before == self.after:
            wrong.append("the two outputs are the same")
        return {"operations": operations, "points": len(points_of(operations)), "wrong": wrong}

    def _operations(self) -> list[str]:
        """Run the command without a fault."""
        status, said, operations = in_a_fork(self.request.words, self.watch(), self.log)
        assert status == 0, said
        self.after = state(self.folder)
        return operations

    def problems(self, fault: str, point: int) -> list[str]:
        """Run the command with a fault, and then without; return what is wrong."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.start, self.folder, symlinks=True)
        status, said, _ = in_a_fork(self.request.words, self.watch(fault, point), self.log)
        problems = [] if status in ENDS[fault] else [f"ended with {status}: {said}"]
        if "Traceback" in said:
            problems.append(said)
        if status == 1 and not (f"probox: {self.folder}" in said and os.strerror(ERRORS[fault]) in said):
            problems.append(f"an unclear message: {said}")
        now = state(self.folder)
        if any(now.get(name) != self.before[name] for name in self.request.mine):
            problems.append("a file of the user's was changed")
        key = json.dumps(now)
        if key not in self.known:  # the next run depends on nothing else
            self.known[key] = self._problems_of_next_run()
        seen, before, after = visible(now), visible(self.before), visible(self.after)
        may_mix = self.request.mixed and fault == "KILL"
        if seen not in (before, after) and not (may_mix and self._is_mix(seen)):
            problems.append(f"neither old nor new: {sorted(seen.items() ^ before.items())}")
        return problems + self.known[key]

    def _is_mix(self, seen: dict[str, str]) -> bool:
        before, after = visible(self.before), visible(self.after)
        whole = all(
            content in (before.get(name), after.get(name)) or name.endswith(".probox.json")
            for name, content in seen.items()
        )
        return whole and before.keys() & after.keys() <= seen.keys()

    def _problems_of_next_run(self) -> list[str]:
        status, said, _ = in_a_fork(self.request.words, None, self.log)
        if status != 0:
            return [f"the next run ended with {status}: {said}"]
        now = state(self.folder)
        self.after = self.after or now
        left = [name for name in now if ".part" in name or name.endswith(".probox.lock")]
        problems = [f"left behind: {left}"] if left else []
        if visible(now) != visible(self.after):
            problems.append(f"the next run wrote something else: {sorted(now.items() ^ self.after.items())}")
        return problems


def main_() -> None:
    os.environ["MPLBACKEND"] = "Agg"
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        request = Request(**json.loads(line))
        try:
            answer = Trial(request).answer()
        except Exception as error:
            answer = {"operations": [], "wrong": [f"{type(error).__name__}: {error}"]}
        finally:
            shutil.rmtree(request.folder, ignore_errors=True)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main_()
