"""A page of the demo's two detectors, and a window to open it in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.explorer.browser import Browser

from probox import Evaluation


@pytest.fixture(scope="session")
def page(results: dict[str, Evaluation], demo_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the explorer of both detectors, in a folder whose name is no help."""
    from probox.explorer.page import write_report

    folder = tmp_path_factory.mktemp("a report") / "with spaces & signs #1"
    path, notes = write_report(results, folder, images=demo_files / "images", title="Odd <b>things</b>")
    assert notes == ()
    return path


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Return a plain window; what is done in it must end without a word on the console."""
    chromium.resize(1360, 900)
    chromium.complaints()
    chromium.requests()
    yield chromium
    chromium.js("try { localStorage.clear() } catch {}")  # whether light or dark was chosen
    assert chromium.complaints() == []
