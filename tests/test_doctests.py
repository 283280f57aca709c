"""Examples in docstrings and in the README are run, so they stay true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import probox
import probox_experiments

pytestmark = pytest.mark.usefixtures("one_demo")

NEED_TORCH = ("probox.torch", "probox_experiments.training.detector")
LEFT_OUT = ("probox.detect.torchvision_detector", *(() if find_spec("torch") else NEED_TORCH))
"""Modules that import what may not be there."""

MODULES = sorted(
    module.name
    for package in (probox, probox_experiments)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda name: None)
    if not module.name.endswith("._core") and not module.name.startswith(LEFT_OUT)
)


CODE = re.compile(r"^```(?:python|pycon)\n.*?^```|`[^`\n]+`", re.M | re.S)


@pytest.mark.parametrize("name", ["probox", "probox_experiments", *MODULES])
def test_examples_of_a_module(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    modules = [importlib.import_module(name) for name in ["probox", "probox_experiments", *MODULES]]
    assert sum(len(test.examples) > 0 for module in modules for test in finder.find(module)) >= 25


def test_names_in_the_documents_exist():
    root = Path(__file__).resolve().parents[1]
    named = {
        name
        for document in [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
        for text in CODE.findall(document.read_text(encoding="utf-8"))
        if not re.match(r"```python\n# [\w/]+\.py\n", text)  # modules that docs/extending.md adds
        for name in re.findall(r"(?<![\w./])probox(?:_experiments)?(?:\.[A-Za-z_]\w*)+", text)
    }
    assert {"probox.evaluate", "probox.measures.pdq.definition"} <= named
    for name in sorted(named):
        if not name.startswith((*LEFT_OUT, "probox.commands", "probox.detectors")):  # groups of entry points
            pkgutil.resolve_name(name)
