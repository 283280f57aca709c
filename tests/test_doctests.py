"""Examples in docstrings and in the README are run, so they stay true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import probox

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(probox.__path__, "probox.")
    if not module.name.endswith("._core") and not module.name.startswith("probox.detect.torchvision")
)


@pytest.mark.parametrize("name", ["probox", *MODULES])
def test_examples_of_a_module(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    modules = [importlib.import_module(name) for name in ["probox", *MODULES]]
    assert sum(len(test.examples) > 0 for module in modules for test in finder.find(module)) >= 25


def test_links_in_the_documents_lead_somewhere():
    root = Path(__file__).resolve().parents[1]
    for document in [root / "README.md", *(root / "docs").glob("*.md")]:
        for part in document.read_text(encoding="utf-8").split("](")[1:]:
            target = part.split(")")[0].split("#")[0]
            if target and "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
