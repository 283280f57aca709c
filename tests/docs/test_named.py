"""Commands, options, modules and files that pages name are there."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from probox.cli import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
}
CODE = re.compile(r"^```(?:sh|bash)\n(.*?)^```|(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)", re.M | re.S)
PLACES = (ROOT, ROOT / "src", ROOT / "src" / "probox")
OTHERS = ("docs/figures/measures.py", "docs/figures/tutorials.py")
"""There if their figures are, which tests/docs/test_figures.py looks at."""


def lines_of(text: str) -> list[str]:
    """Return the lines of code of a page, continued ones joined, without comments."""
    code = [one or other.replace("\n", " ") for one, other in CODE.findall(text)]
    return [re.sub(r"\s#.*", "", line) for part in code for line in part.replace("\\\n", " ").splitlines()]


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that words begin with, and the others."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        assert found, f"{words[0]}: no such command"
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_their_options(name: str) -> None:
    for line in lines_of(PAGES[name]):
        for call in re.findall(r"(?:^|[;&|] |\$\()probox ([a-z-][^;&|]*)", line):
            if name == "docs/extending.md" and call.split()[0].strip("`.") == "count":
                continue  # a command of the distribution that is an example there
            command, words = command_of(call.split())
            known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
            for word in words:
                if word.startswith("--"):
                    assert word.split("=")[0] in known, f"{name}: {line.strip()}: {word}"


def test_there_are_commands() -> None:
    calls = [line for text in PAGES.values() for line in lines_of(text) if line.startswith("probox ")]
    assert len(calls) > 150
    with pytest.raises(AssertionError, match="no such command"):
        command_of(["evaluat", "truth.json"])


@pytest.mark.parametrize("name", PAGES)
def test_modules_that_are_run(name: str) -> None:
    for line in lines_of(PAGES[name]):
        for module in re.findall(r"python -m ([\w.]+)", line):
            assert find_spec(module), f"{name}: {line.strip()}"


@pytest.mark.parametrize("name", PAGES)
def test_files_of_the_project(name: str) -> None:
    for line in lines_of(PAGES[name]):
        for path in re.findall(r"(?<![\w./=*-])((?:[\w-]+/)+[\w-]+\.(?:py|pyi|hpp|cpp|inl|js|sh)\b)", line):
            first = path.split("/")[0]
            if any((place / first).is_dir() for place in PLACES) and path not in OTHERS:
                assert any((place / path).is_file() for place in PLACES), f"{name}: {line.strip()}: {path}"
