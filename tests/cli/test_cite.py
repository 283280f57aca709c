"""`probox --cite` and CITATION.cff: what to cite, in two formats that say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from probox import __version__
from probox.cli import main
from probox.cli.console import YEAR

ROOT = Path(__file__).resolve().parents[2]
ACCENTS = {r"{\"u}": "ü", r"{\'a}": "á"}

# Of version 1.2.0 of the format: what a file and a reference must have, and what else they have here.
CFF_NEEDS = {"cff-version", "message", "title", "authors"}
CFF_MAY = CFF_NEEDS | {"type", "license", "keywords", "references"}
REFERENCE_NEEDS = {"type", "title", "authors"}
REFERENCE_MAY = REFERENCE_NEEDS | {"notes", "collection-title", "year", "url", "identifiers"}


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    assert not exit_.value.code
    return capsys.readouterr().out


def entries(text: str) -> dict[str, dict[str, str]]:
    """Return the fields of BibTeX entries by key, read by counting braces."""
    found: dict[str, dict[str, str]] = {}
    for head in re.finditer(r"@(\w+)\{(\w+),", text):
        end = closing(text, text.index("{", head.start()))
        body = text[head.end() : end]
        fields = {"entry": head[1]}
        for field in re.finditer(r"(\w+) = \{", body):
            fields[field[1]] = " ".join(body[field.end() : closing(body, field.end() - 1)].split())
        assert head[2] not in found
        found[head[2]] = fields
    return found


def closing(text: str, opening: int) -> int:
    """Return where the brace that opens there is closed."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at
    raise AssertionError("a brace is not closed")


@pytest.fixture
def bibtex(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    return entries(shown(capsys, "--cite"))


@pytest.fixture
def cff() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_bibtex_is_whole(bibtex: dict[str, dict[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--cite")
    assert text.isascii()
    assert text.count("{") == text.count("}")
    assert text.count("@") == len(bibtex) == 4
    assert list(bibtex)[:2] == ["probox", "hall2020probabilistic"]
    for key, fields in bibtex.items():
        assert fields["entry"] == ("misc" if key == "probox" else "inproceedings")
        assert {"author", "title", "year"} <= set(fields)
        assert key == "probox" or "booktitle" in fields
        assert key in text.splitlines()[0]  # which is for what


def test_the_version_is_this_one(bibtex: dict[str, dict[str, str]]) -> None:
    assert bibtex["probox"]["note"] == f"Version {__version__}"
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert bibtex["probox"]["year"] == str(YEAR)
    assert f"Copyright (c) {YEAR}, " in licence


def test_help_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--cite" in shown(capsys, "--help")


def test_the_citation_file_is_valid(cff: dict[str, Any]) -> None:
    assert CFF_NEEDS <= set(cff) <= CFF_MAY
    assert cff["cff-version"] == "1.2.0"
    assert cff["type"] == "software"
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'license = "{cff["license"]}"' in project
    assert cff["authors"] == [{"name": "The probox developers"}]
    assert f'authors = [{{ name = "{cff["authors"][0]["name"]}" }}]' in project
    for reference in cff["references"]:
        assert REFERENCE_NEEDS <= set(reference) <= REFERENCE_MAY
        assert reference["type"] == "conference-paper"
        assert isinstance(reference["year"], int)
        assert all(set(author) == {"family-names", "given-names"} for author in reference["authors"])
        assert all(set(each) == {"type", "value"} for each in reference.get("identifiers", ()))


def test_both_say_the_same(bibtex: dict[str, dict[str, str]], cff: dict[str, Any]) -> None:
    def plain(text: str) -> str:
        for coded, letter in ACCENTS.items():
            text = text.replace(coded, letter)
        return text.replace("{", "").replace("}", "")

    papers = [fields for key, fields in bibtex.items() if key != "probox"]
    assert plain(bibtex["probox"]["title"]) == cff["title"]
    assert plain(bibtex["probox"]["author"]) == cff["authors"][0]["name"]
    for fields, reference in zip(papers, cff["references"], strict=True):
        names = [f"{author['family-names']}, {author['given-names']}" for author in reference["authors"]]
        assert plain(fields["author"]) == " and ".join(names)
        assert plain(fields["title"]) == reference["title"]
        assert fields["booktitle"] == reference["collection-title"]
        assert fields["year"] == str(reference["year"])
    assert papers[0]["eprint"] == "1811.10800"
    assert cff["references"][0]["identifiers"][0]["value"] == f"arXiv:{papers[0]['eprint']}"
