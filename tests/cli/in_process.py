"""The command line without a process of its own: as quick as the library. `test_evaluate.py` has some real ones."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from probox.cli import main

__all__ = ["probox", "run"]


def probox(*arguments: object, cwd: Path | None = None) -> CompletedProcess[str]:
    """Run a command in a folder; return what came of it."""
    out, err, words = io.StringIO(), io.StringIO(), [str(argument) for argument in arguments]
    with _in(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(words)
    return CompletedProcess(words, int(ended.value.code or 0), out.getvalue(), err.getvalue())


def run(*arguments: object) -> tuple[int, str, str]:
    """Run a command; return its exit code, output and words."""
    done = probox(*arguments)
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def _in(folder: Path | None) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder or before)
    try:
        yield
    finally:
        os.chdir(before)
