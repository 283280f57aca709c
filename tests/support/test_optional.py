"""Packages of extras: imported on demand, and missing ones are named with what installs them."""

from __future__ import annotations

import sys

import pytest

from probox.errors import InputError
from probox.support.optional import check_installed, require


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
    monkeypatch.setitem(sys.modules, module.split(".")[0], None)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(InputError) as caught:
        require(module, extra="report")
    assert str(caught.value) == told


def test_all_that_are_missing_are_named_at_once_and_none_is_loaded() -> None:
    there = "this"  # of the standard library, and nobody loads it
    with pytest.raises(InputError) as caught:
        check_installed(("nowhere_one", there, "nowhere_two"), extra="detect", purpose="running detectors needs")
    remedy = "install them with: pip install 'probox[detect]'"
    assert str(caught.value) == f"running detectors needs nowhere_one, nowhere_two; {remedy}"
    check_installed((there,), extra="detect")
    assert there not in sys.modules
