"""Every snippet of the documentation runs, and prints what its page says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.pages import DOCS, run_page

PAGES = sorted(
    page.relative_to(DOCS).as_posix() for folder in ("measures", "tutorials") for page in (DOCS / folder).glob("*.md")
)
PAGES += ["which-measure.md", "eight-d-eces.md"]


@pytest.mark.parametrize("page", PAGES)
def test_snippets_of_a_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(DOCS / page, tmp_path) > 0


def test_an_output_that_is_not_printed_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr("tests.docs.pages.DOCS", tmp_path)
    page.write_text("```python\nprint(1 + 1)\n```\n\n<!-- output -->\n```text\n2\n```\n")
    assert run_page(page, tmp_path) == 1
    page.write_text(page.read_text().replace("\n2\n", "\n3\n"))
    with pytest.raises(AssertionError, match=r"page.md:7: printed\n2"):
        run_page(page, tmp_path)


def test_what_is_not_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr("tests.docs.pages.DOCS", tmp_path)
    page.write_text("<!-- not run: needs a GPU -->\n```sh\nfalse\n```\n")
    assert run_page(page, tmp_path) == 0
    page.write_text(page.read_text().replace(": needs a GPU", ""))
    with pytest.raises(AssertionError, match="say why"):
        run_page(page, tmp_path)
