"""A child process that measures on request."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ERROR = "error: "


class Child:
    """A process that prints ``ready``, then answers every line with one line of JSON.

    Instead of ``ready`` it may print a line that starts with `ERROR`, which ends the benchmark with this message.

    Parameters
    ----------
    python : str
        Its interpreter, which determines the measured probox; the benchmarks are those beside this file.
    arguments : sequence of str
        Arguments of the interpreter.
    """

    def __init__(self, python: str, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [python, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        line = self._line()
        if line.startswith(ERROR):
            raise SystemExit(line.removeprefix(ERROR))
        if line != "ready":
            raise SystemExit(f"{python} {' '.join(arguments)} did not start: check that probox is installed")

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self) -> Any:
        """Request one measurement, and return it."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return json.loads(self._line())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
