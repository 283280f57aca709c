"""The snippets of the page for people who hold something, and how to run those of a section with what they hold."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.holding import sections

__all__ = ["PAGE", "SECTIONS", "SNIPPETS", "WITH_FRAMEWORKS", "run_section"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "load-data.md"
SECTION = re.compile(r'^## (?P<title>.+)\n<a id="(?P<slug>[\w-]+)"></a>\n(?P<text>(?:(?!^## ).*\n)*)', re.M)
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```", re.M | re.S)
SECTIONS = {match["slug"]: match["text"] for match in SECTION.finditer(PAGE.read_text(encoding="utf-8"))}
SNIPPETS = {slug: [match.groups() for match in BLOCK.finditer(text)] for slug, text in SECTIONS.items()}

WITH_FRAMEWORKS = {
    "training-loop": "adapters/test_lightning.py",
    "transformers": "adapters/test_transformers.py",
    "ultralytics-model": "adapters/test_ultralytics.py",
}
"""Sections whose frameworks take long to load, and the tests that have loaded them anyway and run these sections."""


def run_section(slug: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the snippets of a section one after the other, in a folder of their own, and check what came out."""
    monkeypatch.chdir(folder)
    space = getattr(sections, slug.replace("-", "_"))(folder)
    check = space.pop("check", None)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for language, code in SNIPPETS[slug]:
        if language == "python":
            exec(compile(code, f"{PAGE.name}#{slug}", "exec"), space)
        elif language == "sh":
            run = subprocess.run(
                ["bash", "-euc", code], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
            )
            assert run.returncode == 0, run.stderr
    if check is not None:
        check(space)
