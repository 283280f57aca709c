"""Markers say what tests need, so that they can be chosen: ``pytest -m "not browser and not torch"``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
LOADS_TORCH = re.compile(
    r"""importorskip\(["']torch["']\)|find_spec\(["']torch["']\) is None"""
    r"|frameworks\.(?:torch|torchvision|transformers|ultralytics)\(|\bultralytics\(\)|\btiny_model\("
)


def test_modules_that_load_torch_say_so() -> None:
    loading = [
        module
        for module in TESTS.rglob("test_*.py")
        if LOADS_TORCH.search(module.read_text(encoding="utf-8")) and module != Path(__file__).resolve()
    ]
    assert len(loading) >= 20
    assert [module.name for module in loading if "pytest.mark.torch" not in module.read_text(encoding="utf-8")] == []


def test_what_reads_data_is_marked(request: pytest.FixtureRequest, coco_dir: Path) -> None:
    assert request.node.get_closest_marker("data")
    assert not request.node.get_closest_marker("browser")


def test_slow_tests_are_left_out_unless_asked_for(request: pytest.FixtureRequest) -> None:
    option = request.config.option
    chosen = [item for item in request.session.items if item.get_closest_marker("slow")]
    assert not chosen or option.slow or "slow" in option.markexpr
