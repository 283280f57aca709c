"""Markers say what tests need, so that they can be chosen: ``pytest -m "not browser and not torch"``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import settings
from tests.amounts import examples, others_slow, some_of

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
    assert len(loading) >= 15
    assert [module.name for module in loading if "pytest.mark.torch" not in module.read_text(encoding="utf-8")] == []


def test_what_reads_data_is_marked(request: pytest.FixtureRequest, coco_dir: Path) -> None:
    assert request.node.get_closest_marker("data")
    assert not request.node.get_closest_marker("browser")


def test_the_first_parameters_are_tried_in_every_run() -> None:
    for several, values in ((False, ["a", "b", "c"]), (True, [("a", 1), ("b", 2), ("c", 3)])):
        params = others_slow(values, 2, several=several)
        assert [param.values for param in params] == [value if several else (value,) for value in values]
        assert [[mark.name for mark in param.marks] for param in params] == [[], [], ["slow"]]
    assert [len(param.marks) for param in others_slow("ab")] == [0, 1]


def test_a_part_of_the_examples_is_tried_unless_all_are_asked_for(request: pytest.FixtureRequest) -> None:
    expected = {1000: 1000, 10: 10, 3: 3} if request.config.option.slow else {1000: 300, 10: 8, 3: 3}
    assert {number: some_of(number) for number in expected} == expected
    assert {number: examples(number).max_examples for number in expected} == expected
    assert settings().max_examples == some_of(100)


def test_slow_tests_are_left_out_unless_asked_for(request: pytest.FixtureRequest) -> None:
    option = request.config.option
    chosen = [item for item in request.session.items if item.get_closest_marker("slow")]
    assert not chosen or option.slow or "slow" in option.markexpr
