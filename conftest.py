"""Paths of test data, fixtures of the demo, and settings of Hypothesis."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.amounts import PART
from tests.explorer.browser import Browser, require_chromium

import probox
from probox import Evaluation
from probox.demo import Demo, make_demo

# CI generates the same examples in each run: a new counter-example must not block an unrelated change.
settings.register_profile(
    "probox",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# `--slow` runs Hypothesis's default of 100 examples; `examples` scales other numbers in the same way.
settings.register_profile("probox quick", settings.get_profile("probox"), max_examples=round(100 * PART))
os.environ.setdefault("MPLBACKEND", "Agg")
# Some virtual machines report AMX but do not allow its use: torch then fails with "could not create a primitive". The
# instruction set before it is sufficient for tests.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# A shell starts background jobs (`&`) with SIGINT ignored. Commands that tests interrupt would inherit this.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(os.environ.get("PROBOX_SHARED", Path(__file__).resolve().parents[1] / "shared"))


NEEDED = {"coco_dir": pytest.mark.data, "chromium": pytest.mark.browser, "site": pytest.mark.slow}
"""Fixtures that may be unavailable or slow, and the marks of tests that use them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run tests that are marked slow")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("probox" if config.option.slow else "probox quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures, and deselect slow tests without --slow."""
    for item in items:
        for fixture in NEEDED.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(NEEDED[fixture])
    if not config.option.slow and "slow" not in config.option.markexpr:
        left = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


@pytest.fixture(scope="session")
def coco_dir() -> Path:
    """Return the folder of third-party COCO data; the project does not contain it."""
    if not (SHARED / "coco").is_dir():
        pytest.skip("COCO data is not on this machine")
    return SHARED / "coco"


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    """Return the folder of the small golden cases."""
    return Path(__file__).resolve().parent / "tests" / "golden"


_made_once = cache(make_demo)


@pytest.fixture(scope="session")
def demo() -> Demo:
    return _made_once()


@pytest.fixture
def one_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share one demo between examples: it is deterministic, and its tables are frozen."""
    monkeypatch.setattr(probox.demo, "make_demo", _made_once)


@pytest.fixture(scope="session")
def results(demo: Demo) -> dict[str, Evaluation]:
    return {name: probox.evaluate(demo.truth, found) for name, found in demo.detectors.items()}


@pytest.fixture(scope="session")
def demo_files(demo: Demo, results: dict[str, Evaluation], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with files, photos and both results of the demo."""
    folder = tmp_path_factory.mktemp("demo files")
    demo.save(folder)
    for name, result in results.items():
        result.save(folder / "results" / name)
    return folder


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return the browser window of this process."""
    require_chromium()
    window = Browser(tmp_path_factory.mktemp("profile"))
    yield window
    window.close()


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
