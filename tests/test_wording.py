"""Texts use the terms of the field: no idioms in pages, help, messages, docstrings, diagnosis, or the HTML report.

`WORDS` is the list. Add a line to forbid another word: a regular expression, and what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.explorer.browser import Browser

import probox
from probox import Evaluation
from probox.cli import cli
from probox.explorer.page import write_report
from probox.notes import NOTES, WARNINGS

ROOT = Path(__file__).resolve().parents[1]

WORDS = {
    r"nobody|anybody|whoever": "name the actor: users, readers, a detector",
    r"anew": "again, re-evaluate",
    r"honest(?:y|ly)?": "calibrated",
    r"(?:un|too |over-)?sure(?:r|st)?": "confident, overconfident, uncertain, underconfident",
    r"odd(?:ity|ities|ly)?": "suspicious, unusual; an input warning",
    r"told apart": "distinguished, detected",
    r"(?:is|are) (?:said|told)": "name the actor: probox prints, a note lists",
    r"says so|a note says": "probox prints a note",
    r"that (?:is|are) none|is no (?:pair|object|part)": "invalid, unmatched, unknown, missing",
    r"no (?:pair|part|object) of": "unmatched, missing, without",
    r"to the (?:last )?bit": "bit-identical",
    r"made-up": "synthetic",
    r"wander\w*": "browse",
    r"dealt": "split into folds",
    r"speaks?": "is about, uses",
    r"claims? to be": "is predicted as",
    r"where the points went": "loss breakdown",
    r"worth anything": "informative",
    r"by hand of": "with",
}
"""Regular expressions of whole words, and what to write in their place."""

IN_PROSE = {
    r"the truth|the truth's": "the ground truth",
    r"sigmas?": "standard deviation, std",
    r"plain (?:box|boxes|pairs?)": "box without covariance",
    r"verdicts?": "outcome (TP, FP, FN); summary",
    r"share of": "fraction of",
    r"anywhere else|somebody|everybody|everyone": "name the actor",
}
"""Words of code that texts for users do not have."""

ALLOWED = (
    "odd number",
    "odd sizes",
    "odd size",
    "odd kernel",
    "odd length",
    "odd or even",
    "even or odd",
    "constant-sigma",
)
"""Where a word has its literal meaning."""


def find_words(text: str, words: dict[str, str]) -> list[str]:
    """Return each forbidden word of a text, with its line and what to write instead."""
    for allowed in ALLOWED:
        text = text.replace(allowed, " " * len(allowed))
    return [
        f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}: {instead}"
        for pattern, instead in words.items()
        for match in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
    ]


def prose_of(page: str) -> str:
    """Return a page of Markdown without code and comments, its lines where they were."""
    blank = lambda match: "\n" * match[0].count("\n")  # noqa: E731
    page = re.sub(r"<!--.*?-->", blank, page, flags=re.S)
    page = re.sub(r"^```.*?^```", blank, page, flags=re.S | re.M)
    page = re.sub(r"\]\([^)\s]*\)", "]", page)
    return re.sub(r"`[^`]*`", blank, page)


def commands(command: click.Command, name: str = "probox") -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its whole name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands(found, f"{name} {below}")


HELP = {
    name: " ".join(command.get_help(click.Context(command, info_name=name, max_content_width=100)).split())
    for name, command in commands(cli)
}
PAGES = [
    path
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])
    if ".pytest_cache" not in path.parts
]
SOURCES = [
    path
    for folder in ("src/probox", "experiments", "examples", "docs/figures", "docs/machinery", "cpp")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".pyi", ".js", ".html", ".css", ".hpp", ".cpp", ".sh")
]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_a_forbidden_word_is_found() -> None:
    (line,) = find_words("a\nsays so", WORDS)
    assert line.startswith("line 2: 'says so'")
    assert find_words("An odd number of pixels, assured, a measure of doing", WORDS) == []
    assert len(find_words("Unsure, surer, surest, made-up, oddities", WORDS)) == 5


@pytest.mark.parametrize("name", HELP)
def test_help(name: str) -> None:
    assert find_words(HELP[name], {**WORDS, **IN_PROSE}) == []


@pytest.mark.parametrize("code", [*NOTES, *WARNINGS])
def test_sentences_of_notes_and_warnings(code: str) -> None:
    assert find_words({**NOTES, **WARNINGS}[code], {**WORDS, **IN_PROSE}) == []


def test_diagnosis_and_comparison(results: dict[str, Evaluation]) -> None:
    for text in (*(str(result.diagnose()) for result in results.values()), str(probox.compare(results, replicates=50))):
        assert len(text) > 500
        assert find_words(text, {**WORDS, **IN_PROSE}) == []


def test_report(chromium: Browser, results: dict[str, Evaluation], tmp_path: Path) -> None:
    """Visible text, tooltips and labels, with a comparison, the gallery and an open image."""
    write_report(results, tmp_path / "page")
    chromium.open(tmp_path / "page" / "index.html", "image=1")
    chromium.wait(lambda: chromium.count("#items .item"))
    chromium.js("probox.update({rival: 1})")
    text = chromium.js(
        "return [document.body.innerText, ...[...document.querySelectorAll('*')].flatMap(e => "
        "['title', 'aria-label', 'placeholder', 'alt'].map(name => e.getAttribute(name) || ''))].join('\\n')"
    )
    assert len(text) > 5000
    assert find_words(text, {**WORDS, **IN_PROSE}) == []


@pytest.mark.parametrize("path", PAGES, ids=relative)
def test_pages(path: Path) -> None:
    assert find_words(prose_of(path.read_text(encoding="utf-8")), WORDS) == []


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_sources(path: Path) -> None:
    """Docstrings, comments, messages and names alike."""
    assert find_words(path.read_text(encoding="utf-8"), WORDS) == []
