"""The kernel's rooms: kernel/ holds numbers, readers/ files, bindings/ what Python sees of both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CPP = Path(__file__).resolve().parents[1] / "cpp"
MAY_INCLUDE = {"kernel": {"kernel"}, "readers": {"kernel", "readers"}, "bindings": {"kernel", "readers", "bindings"}}
FILES = sorted(path for path in CPP.rglob("*") if path.suffix in (".hpp", ".cpp", ".inl"))


def test_every_file_has_a_room() -> None:
    assert {path.parent.relative_to(CPP).as_posix() for path in FILES} == set(MAY_INCLUDE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(CPP).as_posix())
def test_a_room_includes_only_rooms_below_it(path: Path) -> None:
    text = path.read_text()
    room = path.parent.name
    for name in re.findall(r'#include "(.*)"', text):
        found = path.parent / name if (path.parent / name).exists() else CPP / name
        assert found.exists(), name
        assert found.parent.name in MAY_INCLUDE[room], name
    if room != "bindings":
        assert not re.search(r"nanobind|Python\.h|PyErr|PyObject", text)


def test_the_kernel_has_no_words_for_users() -> None:
    for path in (CPP / "kernel").iterdir():
        strings = re.findall(
            r'"([^"\n]*)"', re.sub(r"//.*|#include.*|static_assert.*|__attribute__.*|.*_Pragma.*", "", path.read_text())
        )
        assert not [text for text in strings if " " in text], path.name


def test_words_of_the_readers_stand_together() -> None:
    """All but troubles.hpp hold keys of files, formats of numbers and pieces of JSON, never a sentence."""
    for path in (CPP / "readers").iterdir():
        if path.name == "troubles.hpp":
            continue
        strings = re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r"//.*|#include.*", "", path.read_text()))
        assert not [text for text in strings if re.search(r"[a-z]+ [a-z]+", text)], path.name
