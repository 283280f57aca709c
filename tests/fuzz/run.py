"""Runs workers, watches them, and keeps what they find."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from .worker import STATE, input_files, put

__all__ = ["Finding", "Limits", "Runner", "reproduce"]

ROOT = Path(__file__).resolve().parents[2]
BATCH = 2000
"""Inputs per process: enough that starting it does not count, few enough that targets take turns."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What an input may cost: seconds of a processor, seconds of waiting on a busy machine, bytes."""

    seconds: float = 5.0
    waiting: float = 60.0
    memory: int = 1 << 30


@dataclasses.dataclass(frozen=True)
class Finding:
    """An input of which neither a table nor a proper error came."""

    target: str
    seed: int
    number: int
    problem: str

    @property
    def command(self) -> str:
        """Return the line that tries it again."""
        return f"python -m tests.fuzz --target {self.target} --seed {self.seed} --only {self.number}"

    def save(self, folder: Path) -> Path:
        """Keep the input's files, and beside them what was found and how to find it again."""
        place = folder / f"{self.target}-{self.seed}-{self.number}"
        put(input_files(self.target, self.seed, self.number), place / "input")
        (place / "finding.txt").write_text(f"{self.problem}\n{self.command}\n", encoding="utf-8")
        return place


class Runner:
    """Tries inputs of several targets in turns, in as many processes as wanted.

    Parameters
    ----------
    targets : sequence of str
        Their names.
    seed : int
        Decides all inputs, together with target and number.
    limits : Limits
        What an input may cost.
    environment : dict, optional
        Of the workers; with sanitizers their own library.
    is_limited : bool
        Whether address space is limited too; sanitizers need all of it.
    """

    def __init__(
        self,
        targets: Sequence[str],
        seed: int,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        *,
        environment: dict[str, str] | None = None,
        is_limited: bool = True,
    ) -> None:
        self.targets = list(targets)
        self.seed = seed
        self.limits = limits
        self.environment = environment or {}
        self.is_limited = is_limited
        self.tried: dict[str, int] = dict.fromkeys(targets, 0)
        self.findings: list[Finding] = []
        self._lock = threading.Lock()

    def run(
        self,
        per_target: int | None,
        seconds: float | None,
        processes: int,
        on_finding: Callable[[Finding], None] = lambda finding: None,
    ) -> None:
        """Try so many inputs of each target, or for so long."""
        batches = self._batches(per_target)
        until = None if seconds is None else time.monotonic() + seconds
        errors: queue.Queue[BaseException] = queue.Queue()

        def work() -> None:
            while until is None or time.monotonic() < until:
                with self._lock:
                    batch = next(batches, None)
                if batch is None or not errors.empty():
                    return
                try:
                    self._run_batch(*batch, until, on_finding)
                except BaseException as error:
                    errors.put(error)
                    return

        threads = [threading.Thread(target=work, daemon=True) for _ in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not errors.empty():
            raise errors.get()

    def _batches(self, per_target: int | None) -> Iterator[tuple[str, int, int]]:
        first = 0
        while per_target is None or first < per_target:
            last = first + BATCH if per_target is None else min(first + BATCH, per_target)
            for target in self.targets:
                yield target, first, last
            first = last

    def _run_batch(
        self, target: str, first: int, last: int, until: float | None, on_finding: Callable[[Finding], None]
    ) -> None:
        """Run processes until the batch is done; one that dies or hangs is a finding, and the next goes on after it."""
        while first < last and (until is None or time.monotonic() < until):
            after = first
            for number, problem in self._run_worker(target, first, last, until):
                if number is not None and problem:
                    finding = Finding(target, self.seed, number, problem)
                    with self._lock:
                        self.findings.append(finding)
                        on_finding(finding)
                after = after if number is None else max(after, number + 1)
            with self._lock:
                self.tried[target] += max(0, after - first)
            if after <= first:
                return
            first = after

    def _run_worker(
        self, target: str, first: int, last: int, until: float | None
    ) -> Iterator[tuple[int | None, str | None]]:
        """Yield findings as (number, problem), and at last the last number that was tried."""
        with tempfile.TemporaryDirectory(prefix="probox-fuzz-") as folder:
            state, place, words = Path(folder) / "state", Path(folder) / "input", Path(folder) / "words"
            state.write_bytes(STATE.pack(-1, time.monotonic(), 0.0))
            place.mkdir()
            command = [
                sys.executable, "-m", "tests.fuzz.worker", target, str(self.seed), str(first), str(last), str(place),
                str(state), str(self.limits.memory), str(int(self.is_limited)),
            ]  # fmt: skip
            with open(words, "wb") as out, open(Path(folder) / "errors", "wb") as errors:
                process = subprocess.Popen(
                    command, cwd=ROOT, stdout=out, stderr=errors, env=os.environ | self.environment
                )
                ended = self._watch(process, state, until)
            said = [json.loads(line) for line in words.read_text().splitlines()]
            for line in said:
                if "problem" in line:
                    yield line["number"], line["problem"]
            following = next((line["next"] for line in said if "next" in line), None)
            if following is not None:
                yield following - 1, None
                return
            number, _, _ = _steady(state)
            if ended == "time is up":
                yield (number - 1 if number > first else None), None
                return
            last_words = (Path(folder) / "errors").read_text(errors="replace")
            if number < 0:
                raise RuntimeError(f"a worker could not start ({ended}): {last_words[-2000:]}")
            yield number, f"{ended}; {_telling(last_words)}"

    def _watch(self, process: subprocess.Popen[bytes], state: Path, until: float | None) -> str:
        """Wait for a worker; end it when its input takes too long or too much. Return why it ended."""
        while True:
            try:
                code = process.wait(0.05)
                return f"the process ended with {code}"
            except subprocess.TimeoutExpired:
                pass
            number, begun, used = _steady(state)
            why = None
            if number >= 0 and _processor_time(process.pid) - used > self.limits.seconds:
                why = f"took more than {self.limits.seconds:g} s of processor time"
            elif time.monotonic() - begun > self.limits.waiting:
                why = f"took more than {self.limits.waiting:g} s"
            elif until is not None and time.monotonic() > until:
                why = "time is up"
            elif _resident(process.pid) > 2 * self.limits.memory:
                why = f"took {_resident(process.pid) >> 20} MB of memory"
            if why is not None:
                process.kill()
                process.wait()
                return why


def _steady(state: Path) -> tuple[int, float, float]:
    """Return a worker's state; one that is being written is read again, for its parts may be of two inputs."""
    before, found = b"", state.read_bytes()
    while found != before:
        time.sleep(0.001)
        before, found = found, state.read_bytes()
    number, begun, used = STATE.unpack(found)
    return number, begun, used


def _processor_time(pid: int) -> float:
    """Return the seconds of processor time that a process has used; 0 where nothing tells."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def _telling(text: str) -> str:
    """Return the line of a worker's last words that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if "ERROR: AddressSanitizer" in line or "runtime error:" in line or "Error" in line:
            return line[:300]
    return lines[-1][:300] if lines else "it said nothing"


def reproduce(target: str, seed: int, number: int, limits: Limits, environment: dict[str, str]) -> list[Finding]:
    """Try one input in a process of its own."""
    runner = Runner([target], seed, limits, environment=environment, is_limited=not environment)
    runner._run_batch(target, number, number + 1, None, lambda finding: None)
    return runner.findings
