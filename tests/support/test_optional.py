"""Packages of extras: imported on demand, and missing ones are named with what installs them."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

import probox
from probox.errors import InputError
from probox.support.optional import check_installed, pip_command, require


def test_a_module_that_is_there_is_returned() -> None:
    import json.decoder

    assert require("json.decoder", extra="report") is json.decoder


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("PIL.Image", "this needs Pillow; install it with: pip install 'probox[report]'"),
        ("matplotlib.pyplot", "this needs matplotlib; install it with: pip install 'probox[report]'"),
    ],
)
def test_a_missing_one_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, module: str, told: str) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))  # as in an environment that was activated
    monkeypatch.setitem(sys.modules, module.split(".")[0], None)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(InputError) as caught:
        require(module, extra="report")
    assert str(caught.value) == told


def test_the_pip_that_is_named_is_that_of_this_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    elsewhere = tmp_path / "pip"
    elsewhere.write_text("#!/bin/sh\n")
    elsewhere.chmod(0o755)
    for path in (tmp_path, tmp_path / "nowhere"):
        monkeypatch.setenv("PATH", str(path))
        assert pip_command() == f"{shlex.quote(sys.executable)} -m pip"
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert pip_command() == "pip"


def test_every_extra_that_is_advised_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path(probox.__file__).parent.rglob("*.py"))
    advised = {*re.findall(r'extra="(\w+)"', source), *re.findall(r'"extra": "(\w+)"', source)}
    assert {"detect", "parquet", "report"} <= advised
    assert advised <= set(metadata("probox").get_all("Provides-Extra"))


def test_all_that_are_missing_are_named_at_once_and_none_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    there = "this"  # of the standard library, and nobody loads it
    with pytest.raises(InputError) as caught:
        check_installed(("nowhere_one", there, "nowhere_two"), extra="detect", purpose="running detectors needs")
    remedy = "install them with: pip install 'probox[detect]'"
    assert str(caught.value) == f"running detectors needs nowhere_one, nowhere_two; {remedy}"
    check_installed((there,), extra="detect")
    assert there not in sys.modules
