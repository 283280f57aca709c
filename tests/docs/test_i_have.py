"""Every snippet of the page for people who hold something is run, with what they hold."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "i-have.md"
SECTION = re.compile(r'^## (?P<title>.+)\n<a id="(?P<slug>[\w-]+)"></a>\n(?P<text>(?:(?!^## ).*\n)*)', re.M)
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```", re.M | re.S)
SECTIONS = {match["slug"]: match["text"] for match in SECTION.finditer(PAGE.read_text(encoding="utf-8"))}
SNIPPETS = {slug: [match.groups() for match in BLOCK.finditer(text)] for slug, text in SECTIONS.items()}


def test_every_section_was_found() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(SECTIONS) == text.count("\n## ") >= 15
    assert sum(map(len, SNIPPETS.values())) == text.count("\n```") // 2


@pytest.mark.filterwarnings("ignore")  # frameworks warn of their own affairs
@pytest.mark.parametrize("slug", [slug for slug, blocks in SNIPPETS.items() if blocks])
def test_the_snippets_of_a_section_run(slug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space = importlib.import_module(f"tests.docs.holding.{slug.replace('-', '_')}").hold(tmp_path)
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
