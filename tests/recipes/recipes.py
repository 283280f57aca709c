"""The recipes of docs/cluster.md; their shell commands run as pasted, in a process of their own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

__all__ = ["BEFORE", "PAGE", "RECIPES", "ROOT", "blocks_of", "lines_of", "run_line"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cluster.md"
SECTION = re.compile(r'^### .+\n<a id="recipe-(?P<slug>\w+)"></a>\n(?P<text>(?:(?!^##).*\n)*)', re.M)
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```", re.M | re.S)
RECIPES = {match["slug"]: match["text"] for match in SECTION.finditer(PAGE.read_text(encoding="utf-8"))}

BEFORE = BLOCK.findall(PAGE.read_text(encoding="utf-8").partition("## Recipes\n")[2].partition("\n### ")[0])
"""Language and code of the blocks between the heading and the first recipe."""

LONGEST = 300
"""Timeout of a recipe on a busy machine, in seconds."""


def blocks_of(slug: str, language: str) -> list[str]:
    """Return the blocks of a recipe's section in this language."""
    return [match["code"] for match in BLOCK.finditer(RECIPES[slug]) if match["language"] == language]


def lines_of(slug: str) -> list[str]:
    """Return the shell commands of a recipe."""
    return [line for code in blocks_of(slug, "sh") for line in dedent(code).splitlines()]


def run_line(line: str, folder: Path, *, first: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a line in a folder, and end the processes that it leaves running.

    Parameters
    ----------
    line : str
        Command for bash.
    folder : Path
        The current folder, also the home: engines write files there.
    first : Path, optional
        Folder of commands that precede those of this environment.
    **more : str
        Environment variables.
    """
    path = [str(first)] if first else []
    path += [str(Path(sys.executable).parent), os.environ["PATH"]]
    env = os.environ | {"PATH": os.pathsep.join(path), "HOME": str(folder)} | more
    process = subprocess.Popen(
        ["bash", "-euc", line],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=LONGEST)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(line, process.returncode, out, err)
