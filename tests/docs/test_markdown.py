"""Pages are well-formed: one title, headings in steps, languages with lexers, links and anchors that are there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    page.relative_to(ROOT).as_posix(): page
    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])
}
FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>```+)(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)(?P=ticks) *$", re.M | re.S
)
HEADING = re.compile(r"^(#{1,6}) +(.+?) *#* *$", re.M)
LINK = re.compile(r"!?\[(?:[^][]|\[[^][]*\])*\]\((?P<target>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?: +\"[^\"]*\")?\)")
IMAGE = re.compile(r'<img [^>]*src="(?P<target>[^"]+)"')
LANGUAGES = ("bash", "bibtex", "cpp", "diff", "ini", "json", "pycon", "python", "sh", "text", "toml", "yaml")
"""What pages are written in: names of lexers of Pygments, which GitHub knows too."""


@cache
def prose(page: Path) -> str:
    """Return a page without fenced blocks, comments, code and equations."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "`", text)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return what links may name on a page: GitHub's slugs of headings, and anchors of its own."""
    text = re.sub(r"<!--.*?-->", "", FENCE.sub("", page.read_text(encoding="utf-8")), flags=re.S)
    slugs: set[str] = set()
    for _, heading in HEADING.findall(text):
        slug = slug_of(heading)
        number, numbered = 0, slug
        while numbered in slugs:
            number += 1
            numbered = f"{slug}-{number}"
        slugs.add(numbered)
    return frozenset(slugs | set(re.findall(r'<a (?:id|name)="([^"]+)"', text)))


def slug_of(heading: str) -> str:
    """Return a heading's anchor by GitHub's rules."""
    shown = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.replace("`", "").replace("*", "").strip().lower()).replace(" ", "-")


def line_of(page: Path, part: str) -> str:
    return f"{page.relative_to(ROOT)}:{page.read_text(encoding='utf-8').split(part)[0].count(chr(10)) + 1}"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_one_title_and_no_step_is_left_out(name: str) -> None:
    page = PAGES[name]
    headings = HEADING.findall(re.sub(r"<!--.*?-->", "", FENCE.sub("", page.read_text(encoding="utf-8")), flags=re.S))
    levels = [len(marks) for marks, _ in headings]
    assert levels[:1] == [1], f"{name}: begins without a title"
    assert levels.count(1) == 1, f"{name}: {[text for marks, text in headings if marks == '#']}"
    for before, level, (_, text) in zip(levels, levels[1:], headings[1:], strict=False):
        assert level <= before + 1, f"{name}: {text!r} is {level - before} levels deeper than what is before it"


@pytest.mark.parametrize("name", PAGES)
def test_every_block_names_a_language(name: str) -> None:
    text = PAGES[name].read_text(encoding="utf-8")
    assert len(re.findall(r"^ *```", text, re.M)) == 2 * len(FENCE.findall(text)), f"{name}: a block does not end"
    for block in FENCE.finditer(text):
        language = block["info"].split()[0] if block["info"].strip() else ""
        line = text.count("\n", 0, block.start()) + 1
        assert language in LANGUAGES, f"{name}:{line}: {language or 'no language'}"


def test_languages_have_lexers() -> None:
    lexers = pytest.importorskip("pygments.lexers")
    for language in LANGUAGES:
        assert lexers.get_lexer_by_name(language)


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = PAGES[name]
    text = prose(page)
    for found in [*LINK.finditer(text), *IMAGE.finditer(text)]:
        target = found["target"]
        assert target, f"{line_of(page, found[0])}: a link without a target"
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{line_of(page, found[0])}: {target}: no such file"
        assert there == ROOT or ROOT in there.parents, f"{line_of(page, found[0])}: {target}: outside the project"
        if anchor:
            assert there.suffix == ".md", f"{line_of(page, found[0])}: {target}: an anchor in what is no page"
            assert anchor in anchors(there), f"{line_of(page, found[0])}: {target}: no such heading"


def test_brackets_that_look_like_links_are_links() -> None:
    for name, page in PAGES.items():
        text = prose(page)
        assert text.count("](") == len(LINK.findall(text)), f"{name}: a link that is not understood"


def test_slugs_are_those_of_github() -> None:
    assert slug_of("Corners: `--method`") == "corners---method"
    assert slug_of("I have ... → do this") == "i-have---do-this"
    assert slug_of("`paper` and the letter of the equations") == "paper-and-the-letter-of-the-equations"
    assert slug_of("Is *PDQ* proper?") == "is-pdq-proper"
    assert slug_of("Küppers, [2020](a.md)") == "küppers-2020"


def test_what_is_wrong_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(PAGES, "page.md", page)
    for test, text, message in (
        (test_a_page_has_one_title_and_no_step_is_left_out, "# A\n\n### B\n", "levels deeper"),
        (test_a_page_has_one_title_and_no_step_is_left_out, "# A\n\n# B\n", "page.md"),
        (test_a_page_has_one_title_and_no_step_is_left_out, "words\n", "without a title"),
        (test_every_block_names_a_language, "# A\n\n```\nx\n```\n", "page.md:3: no language"),
        (test_every_block_names_a_language, "# A\n\n```text\nx\n", "does not end"),
        (test_links_lead_somewhere, "# A\n\n[b](no.md)\n", "page.md:3: no.md: no such file"),
        (test_links_lead_somewhere, "# A\n\n[b](#b)\n", "no such heading"),
        (test_links_lead_somewhere, '# A\n\n<img src="b.png">\n', "no such file"),
    ):
        page.write_text(text)
        prose.cache_clear()
        anchors.cache_clear()
        with pytest.raises(AssertionError, match=message):
            test("page.md")
    page.write_text("# A b\n\n[b](#a-b)\n\n## A b\n\n[c](page.md#a-b-1) `[d](no.md)`\n")
    prose.cache_clear()
    anchors.cache_clear()
    test_links_lead_somewhere("page.md")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_not_two_versions_of_itself(name: str) -> None:
    lines = PAGES[name].read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line.startswith(("<<<<<<< ", ">>>>>>> "))]
