"""What pictures, plots and pages are made of: the demo's two detectors, evaluated once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
