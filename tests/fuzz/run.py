"""Runs workers, watches them, and keeps what they find."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from .targets import ALL_TARGETS
from .worker import STATE, input_files, put

__all__ = ["Finding", "Job", "Limits", "Runner"]

ROOT = Path(__file__).resolve().parents[2]
BATCH = 2000
"""Inputs per target and process, or their milliseconds where cheap targets have more of them: enough that starting it
does not count, few enough that targets take turns."""

EXHAUSTED = "AddressSanitizer: allocator is out of memory"

Job = tuple[str, int, int]
"""A target, the number of its first input, and the number after its last."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What an input may cost: seconds of a processor, seconds of waiting on a busy machine, bytes."""

    seconds: float = 5.0
    waiting: float = 60.0
    memory: int = 1 << 30


USUAL = Limits()


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
        Of the workers; with sanitizers, what makes Python use them. Address space is limited only without.
    on_finding : callable, optional
        Called with each finding at once.
    """

    def __init__(
        self,
        targets: Sequence[str],
        seed: int,
        limits: Limits = USUAL,
        *,
        environment: dict[str, str] | None = None,
        on_finding: Callable[[Finding], None] = lambda finding: None,
    ) -> None:
        self.targets = list(targets)
        self.seed = seed
        self.limits = limits
        self.environment = environment or {}
        self.tried: dict[str, int] = dict.fromkeys(targets, 0)
        self.findings: list[Finding] = []
        self._on_finding = on_finding
        self._lock = threading.Lock()

    def run(
        self,
        first: int = 0,
        last: int | None = None,
        *,
        total: int | None = None,
        seconds: float | None = None,
        processes: int = 1,
    ) -> None:
        """Try the inputs of each target from `first` up to `last`, or `total` inputs in all, or for so long.

        Without a `last`, cheap targets have more inputs than others.
        """
        groups = self._groups(first, last, total)
        until = None if seconds is None else time.monotonic() + seconds
        errors: list[BaseException] = []

        def work() -> None:
            while not errors and (until is None or time.monotonic() < until):
                with self._lock:
                    jobs = next(groups, None)
                if jobs is None:
                    return
                try:
                    self._run_group(jobs, until)
                except BaseException as error:
                    errors.append(error)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _groups(self, first: int, last: int | None, total: int | None) -> Iterator[list[Job]]:
        begin = dict.fromkeys(self.targets, first)
        left = math.inf if total is None else total
        pace = min(BATCH, left / sum(1 / ALL_TARGETS[target].cost for target in self.targets))
        while True:
            jobs: list[Job] = []
            for target, number in begin.items():
                count = BATCH if last is not None else math.ceil(pace / ALL_TARGETS[target].cost)
                count = int(min(count, left, math.inf if last is None else last - number))
                if count > 0:
                    jobs.append((target, number, number + count))
                    begin[target] += count
                    left -= count
            if not jobs:
                return
            # Under ASan those that may exhaust memory often end their process: it must not have warmed all targets.
            groups = [[job for job in jobs if ALL_TARGETS[job[0]].may_exhaust == ends] for ends in (True, False)]
            yield from (group for group in groups if group)

    def _run_group(self, jobs: list[Job], until: float | None) -> None:
        """Run processes until the jobs are done; what ends one is a finding, and the next goes on after it."""
        while jobs and (until is None or time.monotonic() < until):
            findings, (job, number) = self._run_worker(jobs, until)
            with self._lock:
                for finding in findings:
                    self.findings.append(finding)
                    self._on_finding(finding)
                for target, first, last in jobs[:job]:
                    self.tried[target] += last - first
                if job < len(jobs):
                    self.tried[jobs[job][0]] += number - jobs[job][1]
            jobs = [(jobs[job][0], number, jobs[job][2]), *jobs[job + 1 :]] if job < len(jobs) else []

    def _run_worker(self, jobs: list[Job], until: float | None) -> tuple[list[Finding], tuple[int, int]]:
        """Run one process; return what it found, and with which job and input the next one has to go on."""
        with tempfile.TemporaryDirectory(prefix="probox-fuzz-") as name:
            folder = Path(name)
            (folder / "state").write_bytes(STATE.pack(0, -1, time.monotonic(), 0.0))
            options = {
                "jobs": jobs, "seed": self.seed, "memory": self.limits.memory, "limit_addresses": not self.environment
            }  # fmt: skip
            command = [sys.executable, "-m", "tests.fuzz.worker", name, json.dumps(options)]
            with open(folder / "words", "wb") as words, open(folder / "errors", "wb") as errors:
                process = subprocess.Popen(
                    command, cwd=ROOT, stdout=words, stderr=errors, env=os.environ | self.environment
                )
                try:
                    why = self._watch(process, folder / "state", until)
                finally:
                    process.kill()
                    process.wait()
            said = [json.loads(line) for line in (folder / "words").read_text().splitlines()]
            findings = [Finding(w["target"], self.seed, w["number"], w["problem"]) for w in said if "problem" in w]
            for line in said:
                if "next" in line:
                    return findings, tuple(line["next"])
            job, number, _, _ = _steady(folder / "state")
            last_words = (folder / "errors").read_text(errors="replace")
        if why == "time is up":
            return findings, (job, max(number, jobs[job][1]))
        if number < 0:
            raise RuntimeError(f"a worker could not start ({why}): {last_words[-3000:]}")
        if not (EXHAUSTED in last_words and ALL_TARGETS[jobs[job][0]].may_exhaust):
            findings.append(Finding(jobs[job][0], self.seed, number, f"{why}; {_telling(last_words)}"))
        return findings, (job, number + 1)

    def _watch(self, process: subprocess.Popen[bytes], state: Path, until: float | None) -> str:
        """Wait for a worker to end, or to take more than it may; return which."""
        while True:
            try:
                return f"the process ended with {process.wait(0.05)}"
            except subprocess.TimeoutExpired:
                pass
            _, number, begun, used = _steady(state)
            if number >= 0 and _processor_time(process.pid) - used > self.limits.seconds:
                return f"took more than {self.limits.seconds:g} s of processor time"
            if time.monotonic() - begun > self.limits.waiting:
                return f"took more than {self.limits.waiting:g} s"
            if _resident(process.pid) > 2 * self.limits.memory:
                return f"took {_resident(process.pid) >> 20} MB of memory"
            if until is not None and time.monotonic() > until:
                return "time is up"


def _steady(state: Path) -> tuple[int, int, float, float]:
    """Return a worker's state; one that is being written is read again, for its parts may be of two inputs."""
    before, found = b"", state.read_bytes()
    while found != before:
        time.sleep(0.001)
        before, found = found, state.read_bytes()
    job, number, begun, used = STATE.unpack(found)
    return job, number, begun, used


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
        if "ERROR: AddressSanitizer" in line or "runtime error:" in line or "Error" in line or "what()" in line:
            return line[:300]
    return lines[-1][:300] if lines else "it said nothing"
