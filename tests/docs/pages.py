"""Pages of the documentation as programs: their snippets, run from top to bottom, and what they say comes out.

Every block of ``sh``, ``bash`` or ``python`` on a page is run, in one folder and, for Python, in one namespace.

- ``<!-- not run: REASON -->`` on the line before a block leaves it out;
- ``<!-- output -->`` on the line before a block says that it is what the block before printed. ``...`` stands for
  anything, and runs of spaces are alike.

A page that needs files or names of somebody's gets them from ``hold(folder)`` of ``tests/docs/holding/page_NAME.py``.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["DOCS", "Block", "blocks_of", "run_page"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>output|not run)(?:: (?P<reason>[^\n]+))? -->\n)?```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```$",
    re.M | re.S,
)
RUN = ("sh", "bash", "python")
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, where it begins, and what a comment before it says."""

    language: str
    code: str
    line: int
    mark: str | None
    reason: str | None


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["language"], m["code"], text.count("\n", 0, m.start("code")) + 1, m["mark"], m["reason"])
        for m in BLOCK.finditer(text)
    ]


def run_page(page: Path, folder: Path) -> int:
    """Run the snippets of a page in a folder, which is the current one; return how many ran."""
    name = page.relative_to(DOCS).with_suffix("").as_posix()
    space = _held(name, folder)
    printed, ran = None, 0
    for block in blocks_of(page):
        place = f"{name}.md:{block.line}"
        if block.mark == "output":
            assert printed is not None, f"{place}: nothing ran before this output"
            assert doctest.OutputChecker().check_output(block.code, printed, ALIKE), f"{place}: printed\n{printed}"
        elif block.mark == "not run":
            assert block.reason, f"{place}: say why this is not run"
        elif block.language in RUN:
            printed = _python(block, space, place) if block.language == "python" else _shell(block, place)
            ran += 1
    return ran


def _held(name: str, folder: Path) -> dict[str, Any]:
    module = "tests.docs.holding.page_" + re.sub(r"\W", "_", name)
    return importlib.import_module(module).hold(folder) if find_spec(module) else {}


def _python(block: Block, space: dict[str, Any], place: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (block.line - 1) + block.code, place, "exec"), space)
    return printed.getvalue()


def _shell(block: Block, place: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        ["bash", "-euc", block.code],
        env=os.environ | {"PATH": path, "COLUMNS": "120", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, f"{place}: {run.stderr}"
    return run.stdout
