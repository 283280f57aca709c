"""Every snippet of the documentation runs, and prints what its page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.in_process import probox
from tests.docs.pages import DOCS, RUN, blocks_of, run_page

ROOT = DOCS.parent
OWN = {
    "load-data.md": "tests/docs/test_load_data.py",
    "cluster.md": "tests/docs/test_cluster_page.py",
    "extending.md": "tests/test_extending.py",
    "training.md": "tests/docs/test_training.py",
}
"""Pages whose snippets a test of their own runs; so does tests/docs/test_readme.py."""

EVERY_PAGE = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
MARKS = {page: {block.mark for block in blocks_of(DOCS / page) if block.runs} for page in EVERY_PAGE}
PAGES = [page for page, marks in MARKS.items() if page not in OWN and marks - {"slow"}]
SLOW = [page for page, marks in MARKS.items() if page not in OWN and "slow" in marks]
LONG = (
    "pictures.md",
    "tutorials/",
    "formats/",
    "boxes.md",
    "which-measure.md",
    "faq.md",
    "own-detector.md",
    "diagnosis.md",
    "calibration.md",
    "explorer.md",
    "comparing.md",
)
"""Pages that take long: many pictures or commands, a cluster, a training. What they call has tests of its own."""


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what ``probox demo --save demo`` writes, and prints."""
    folder = tmp_path_factory.mktemp("scene")
    done = probox("demo", "--save", "demo", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "printed").write_text(done.stdout)
    return folder


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow if page.startswith(LONG) else ()) for page in PAGES]
)
def test_snippets_of_a_page(page: str, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(DOCS / page, tmp_path, demo=scene) > 0


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW)
def test_slow_snippets_of_a_page(page: str, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(DOCS / page, tmp_path, demo=scene, slow=True) > 0


def test_pages_with_a_test_of_their_own_are_named_there() -> None:
    for page, test in OWN.items():
        assert (DOCS / page).is_file()
        assert (ROOT / test).is_file()


@pytest.mark.parametrize("page", [*EVERY_PAGE, "../README.md", "../CONTRIBUTING.md"])
def test_what_is_not_run_is_a_snippet_and_says_why(page: str) -> None:
    for block in blocks_of(DOCS / page):
        if block.mark in ("not run", "slow", "needs"):
            assert block.language in RUN, f"{page}:{block.line}: {block.language} is never run"
            assert block.reason, f"{page}:{block.line}: say why this is not run"
            for test in re.findall(r"(?:experiments/)?tests/[\w/]+\.py", block.reason):
                assert (ROOT / test).is_file(), f"{page}:{block.line}: {test} is not there"


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


def test_what_is_slow_or_needs_more_is_run_where_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr("tests.docs.pages.DOCS", tmp_path)
    monkeypatch.chdir(tmp_path)
    page.write_text("<!-- slow: an hour -->\n```sh\necho ran >> log\n```\n\n<!-- output -->\n```text\n```\n")
    assert (run_page(page, tmp_path), run_page(page, tmp_path, slow=True)) == (0, 1)
    assert Path("log").read_text() == "ran\n"
    page.write_text("<!-- needs: not_a_package -->\n```python\nimport not_a_package\n```\n")
    assert run_page(page, tmp_path) == 0
    page.write_text("<!-- needs: json -->\n```python\nprint(1)\n```\n\n<!-- output -->\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match=r"printed\n1"):
        run_page(page, tmp_path)


def test_shells_scripts_and_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr("tests.docs.pages.DOCS", tmp_path)
    monkeypatch.chdir(tmp_path)
    page.write_text("```python\nnumber = 4\n```\n```pycon\n>>> number\n4\n```\n")
    assert run_page(page, tmp_path) == 2
    page.write_text("```pycon\n>>> 2 + 3\n4\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:2: "):
        run_page(page, tmp_path)
    page.write_text('```python\nimport sys\nif __name__ == "__main__":\n    sys.exit(3)\n```\n')
    with pytest.raises(AssertionError, match=r"page.md:2: "):
        run_page(page, tmp_path)
    page.write_text("```sh\npip install 'probox[report,nonsense]' torch\n```\n")
    with pytest.raises(AssertionError, match="report,nonsense"):
        run_page(page, tmp_path)
    page.write_text("```sh\npip download probox\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:2: "):
        run_page(page, tmp_path)
