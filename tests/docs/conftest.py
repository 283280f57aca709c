"""What tests of pages share: the demo's scene, which most pages begin with, is made once in each process."""

from __future__ import annotations

from functools import cache

import pytest

from probox import demo

_made_once = cache(demo.make_demo)


@pytest.fixture(autouse=True)
def one_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages that make the same scene share it: its tables are frozen, and it is always the same."""
    monkeypatch.setattr(demo, "make_demo", _made_once)
