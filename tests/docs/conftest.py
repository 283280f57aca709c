"""What tests of pages share: the demo's scene, which most pages begin with."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _scene_of_pages(one_demo: None) -> None:
    """Let pages that make the same scene share it."""
