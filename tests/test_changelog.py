"""The changelog has a place for the version, and the version stands nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from probox import __version__

ROOT = Path(__file__).resolve().parents[1]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def headings(level: int) -> list[str]:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.findall(rf"^{'#' * level} (.+)$", text, re.MULTILINE)


def test_the_version_has_its_place() -> None:
    sections = headings(2)
    assert sections[0] == "Unreleased"
    versions = [re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d|not released yet)", title) for title in sections[1:]]
    assert all(versions)
    assert versions[0] is not None
    assert versions[0][1] == __version__.partition(".dev")[0]
    # Only the newest may be without a date.
    assert all(found is not None and found[2] != "not released yet" for found in versions[1:])


def test_changes_are_of_the_six_kinds() -> None:
    assert set(headings(3)) <= KINDS


def test_the_citation_leaves_the_version_to_the_package() -> None:
    assert "version" not in yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
