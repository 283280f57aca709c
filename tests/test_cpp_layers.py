"""Layers of the C++ code: kernel/ computes, readers/ parse files, bindings/ expose both to Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CPP = Path(__file__).resolve().parents[1] / "cpp"
MAY_INCLUDE = {"kernel": {"kernel"}, "readers": {"kernel", "readers"}, "bindings": {"kernel", "readers", "bindings"}}
FILES = sorted(path for path in CPP.rglob("*") if path.suffix in (".hpp", ".cpp", ".inl"))


def test_every_file_has_a_layer() -> None:
    assert {path.parent.relative_to(CPP).as_posix() for path in FILES} == set(MAY_INCLUDE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(CPP).as_posix())
def test_a_layer_includes_only_lower_layers(path: Path) -> None:
    text = path.read_text()
    layer = path.parent.name
    for name in re.findall(r'#include "(.*)"', text):
        found = path.parent / name if (path.parent / name).exists() else CPP / name
        assert found.exists(), name
        assert found.parent.name in MAY_INCLUDE[layer], name
    if layer != "bindings":
        assert not re.search(r"nanobind|Python\.h|PyErr|PyObject", text)


def test_the_kernel_has_no_messages() -> None:
    for path in (CPP / "kernel").iterdir():
        strings = re.findall(
            r'"([^"\n]*)"', re.sub(r"//.*|#include.*|static_assert.*|__attribute__.*|.*_Pragma.*", "", path.read_text())
        )
        assert not [text for text in strings if " " in text], path.name


def test_messages_of_the_readers_are_in_one_file() -> None:
    """Strings outside troubles.hpp are keys of files, number formats and pieces of JSON, not sentences."""
    for path in (CPP / "readers").iterdir():
        if path.name == "troubles.hpp":
            continue
        strings = re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r"//.*|#include.*", "", path.read_text()))
        assert not [text for text in strings if re.search(r"[a-z]+ [a-z]+", text)], path.name
