"""Pages of the documentation as programs: their snippets, run from top to bottom, and what they say comes out.

Every block of ``sh``, ``bash``, ``python`` or ``pycon`` on a page is run, in one folder and, for Python, in one
namespace; a block with ``if __name__ == "__main__":`` is a script of its own. A comment on the line before a block says
otherwise:

- ``<!-- not run: REASON -->`` leaves it out;
- ``<!-- slow: REASON -->`` leaves it out but where slow ones are asked for;
- ``<!-- needs: PACKAGE -->`` leaves it out where a package is not installed;
- ``<!-- output -->`` says that this block is what the block before printed. ``...`` stands for anything, and runs of
  spaces are alike.

A page that needs files or names of somebody's gets them from ``tests/docs/holding/pages.py``.
What ``pip install`` is told must be an extra of probox, or a package's name; nothing is installed.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.docs.holding.pages import hold

__all__ = ["DOCS", "RUN", "Block", "blocks_of", "name_of", "run_page"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>output|not run|slow|needs)(?:: (?P<reason>[^\n]+))? -->\n)?"
    r"```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```$",
    re.M | re.S,
)
RUN = ("sh", "bash", "python", "pycon")
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SCRIPT = 'if __name__ == "__main__":'

PRELUDE = """
pip() { [ "$1" = install ] && echo "$*" >> "$PROBOX_PIP"; }
probox() {
  if [ "$*" = "demo --save demo" ] && [ -n "$PROBOX_DEMO" ]; then
    cp -r "$PROBOX_DEMO/demo" . && cat "$PROBOX_DEMO/printed"
  else command probox "$@"; fi
}
"""
"""A pip that notes what it is asked for, and a scene that was saved once and is copied."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, where it begins, and what a comment before it says."""

    language: str
    code: str
    line: int
    mark: str | None
    reason: str | None

    @property
    def runs(self) -> bool:
        """Whether it is a snippet that runs, if only somewhere."""
        return self.language in RUN and self.mark not in ("not run", "output")


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["language"], m["code"], text.count("\n", 0, m.start("code")) + 1, m["mark"], m["reason"])
        for m in BLOCK.finditer(text)
    ]


def name_of(page: Path) -> str:
    """Return a page's path in the documentation, without ending."""
    return page.relative_to(DOCS).with_suffix("").as_posix()


def run_page(page: Path, folder: Path, *, demo: Path | None = None, slow: bool = False) -> int:
    """Run the snippets of a page in a folder, which is the current one; return how many ran.

    Parameters
    ----------
    page : Path
        In the documentation.
    folder : Path
        The current folder.
    demo : Path, optional
        What ``probox demo --save`` wrote: making it again for every page would take most of the time.
    slow : bool, default: False
        Run blocks that are marked as slow, too.
    """
    name = name_of(page)
    shell = _Shell(folder, demo)
    space = {"__name__": f"docs.{name}"} | hold(name, folder)
    printed: str | None = None
    left_out, ran = False, 0
    for block in blocks_of(page):
        place = f"{name}.md:{block.line}"
        if block.mark in ("not run", "slow", "needs"):
            assert block.reason, f"{place}: say why this is not run"
        if block.mark == "output" and left_out:
            continue
        if block.mark == "output":
            assert printed is not None, f"{place}: nothing ran before this output"
            assert doctest.OutputChecker().check_output(block.code, printed, ALIKE), f"{place}: printed\n{printed}"
        elif block.runs:
            left_out = (block.mark == "slow" and not slow) or (
                block.mark == "needs" and not find_spec(block.reason or "")
            )
            if left_out:
                continue
            if block.language in ("sh", "bash"):
                printed = shell.run(block.code, place)
            elif SCRIPT in block.code:
                printed = shell.run_script(block, place)
            else:
                printed = _python(block, space, place)
            ran += 1
    shell.check_installs()
    return ran


def _python(block: Block, space: dict[str, Any], place: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.code, {}, place, place, block.line)
            test.globs = space
            failed = doctest.DocTestRunner(optionflags=ALIKE).run(test, clear_globs=False).failed
            assert failed == 0, f"{place}: {printed.getvalue()}"
        else:
            exec(compile("\n" * (block.line - 1) + block.code, place, "exec"), space)
    return printed.getvalue()


class _Shell:
    """Where the commands of a page are run: bash, with this environment's programs."""

    def __init__(self, folder: Path, demo: Path | None) -> None:
        self.folder = folder
        self.log = folder / ".pip.log"
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        mine = {"PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "PROBOX_PIP": str(self.log)}
        self.env = os.environ | mine | {"PROBOX_DEMO": str(demo) if demo else ""}

    def run(self, code: str, place: str) -> str:
        run = subprocess.run(
            ["bash", "-euc", PRELUDE + code], env=self.env, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"{place}: {run.stderr}"
        return run.stdout

    def run_script(self, block: Block, place: str) -> str:
        script = self.folder / f".line{block.line}.py"
        script.write_text(block.code, encoding="utf-8")
        return self.run(f"python {script.name}", place)

    def check_installs(self) -> None:
        """Look whether all that was to be installed has a name, and whether extras of probox are some."""
        asked = self.log.read_text(encoding="utf-8").split() if self.log.exists() else []
        extras = set(metadata("probox").get_all("Provides-Extra") or [])
        for words in re.findall(r"probox\[([^]]*)\]", " ".join(asked)):
            assert set(words.split(",")) <= extras, words
