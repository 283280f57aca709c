"""Every snippet of the page for people who hold something is run, with what they hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.snippets import PAGE, SECTIONS, SNIPPETS, WITH_FRAMEWORKS, run_section


def test_every_section_was_found() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(SECTIONS) == text.count("\n## ") >= 15
    assert sum(map(len, SNIPPETS.values())) == text.count("\n```") // 2


@pytest.mark.parametrize("slug", WITH_FRAMEWORKS)
def test_other_tests_run_the_sections_of_heavy_frameworks(slug: str) -> None:
    assert SNIPPETS[slug]
    there = (Path(__file__).resolve().parents[1] / WITH_FRAMEWORKS[slug]).read_text(encoding="utf-8")
    assert there.count(f'run_section("{slug}", tmp_path, monkeypatch)') == 1


@pytest.mark.filterwarnings("ignore")  # frameworks warn of their own affairs
@pytest.mark.parametrize("slug", [slug for slug, blocks in SNIPPETS.items() if blocks and slug not in WITH_FRAMEWORKS])
def test_the_snippets_of_a_section_run(slug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_section(slug, tmp_path, monkeypatch)
