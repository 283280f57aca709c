"""What pictures, plots and pages are made of: the demo's two detectors, evaluated once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.report.browser import Browser, require_chromium

import probox
from probox import Evaluation
from probox.demo import Demo, make_demo

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="session")
def demo() -> Demo:
    return make_demo()


@pytest.fixture(scope="session")
def results(demo: Demo) -> dict[str, Evaluation]:
    return {name: probox.evaluate(demo.truth, found) for name, found in demo.detectors.items()}


@pytest.fixture(scope="session")
def demo_files(demo: Demo, results: dict[str, Evaluation], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the demo's files, its photos and both evaluations."""
    folder = tmp_path_factory.mktemp("demo files")
    demo.save(folder)
    for name, result in results.items():
        result.save(folder / "results" / name)
    return folder


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="session")
def page(results: dict[str, Evaluation], demo_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the explorer of both detectors, in a folder whose name is no help."""
    from probox.report.explorer import write_report

    folder = tmp_path_factory.mktemp("a report") / "with spaces & signs #1"
    path, notes = write_report(results, folder, images=demo_files / "images", title="Odd <b>things</b>")
    assert notes == []
    return path


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    require_chromium()
    window = Browser(tmp_path_factory.mktemp("profile"))
    yield window
    window.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Return a plain window; what is done in it must end without a word on the console."""
    chromium.resize(1360, 900)
    chromium.complaints()
    chromium.requests()
    yield chromium
    assert chromium.complaints() == []
