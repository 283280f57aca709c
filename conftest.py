"""Where test data lies, the demo that many tests look at, and how much Hypothesis tries."""

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

# In CI the same examples every time: a new counter-example is a discovery for a desk, not a reason to stop a landing.
settings.register_profile(
    "probox",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# All of Hypothesis's hundred are for `--slow`; `examples` says the same of tests that ask for another number.
settings.register_profile("probox quick", settings.get_profile("probox"), max_examples=round(100 * PART))
os.environ.setdefault("MPLBACKEND", "Agg")
# Some virtual machines name AMX among what their processor can do, and do not let programs use it: torch then ends in
# "could not create a primitive". What comes before it is enough for tests.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# What a shell starts with & is born deaf to a Ctrl-C, and so would be the commands that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(os.environ.get("PROBOX_SHARED", Path(__file__).resolve().parents[1] / "shared"))


NEEDED = {"coco_dir": pytest.mark.data, "chromium": pytest.mark.browser, "site": pytest.mark.slow}
"""Fixtures that stand for what may be missing or takes long, and how the tests that ask for them are marked."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run what is marked slow")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("probox" if config.option.slow else "probox quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by what they need, and leave slow ones out unless they are asked for."""
    for item in items:
        for fixture in NEEDED.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(NEEDED[fixture])
    if not config.option.slow and "slow" not in config.option.markexpr:
        left = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


@pytest.fixture(scope="session")
def coco_dir() -> Path:
    """Return the folder of third-party COCO data, which is not part of the project."""
    if not (SHARED / "coco").is_dir():
        pytest.skip("COCO data is not on this machine")
    return SHARED / "coco"


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    """Return the folder of golden cases: a copy of the small ones lives beside the tests."""
    return Path(__file__).resolve().parent / "tests" / "golden"


_made_once = cache(make_demo)


@pytest.fixture(scope="session")
def demo() -> Demo:
    return _made_once()


@pytest.fixture
def one_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let examples that make the same scene share it: its tables are frozen, and it is always the same."""
    monkeypatch.setattr(probox.demo, "make_demo", _made_once)


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


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return the one window of this process."""
    require_chromium()
    window = Browser(tmp_path_factory.mktemp("profile"))
    yield window
    window.close()


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
