"""Adapters know frameworks by the shape of their objects: none is imported, but what makes an object of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import probox.adapters

FRAMEWORKS = ("torch", "torchvision", "transformers", "ultralytics", "supervision", "lightning", "pytorch_lightning")
MODULES = sorted(Path(probox.adapters.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_framework_is_imported_by_name(path: Path) -> None:
    lines = [line.split()[1].split(".")[0] for line in path.read_text().splitlines() if _is_import(line)]
    assert not set(FRAMEWORKS) & set(lines)
    assert "probox" in lines


def _is_import(line: str) -> bool:
    return line.lstrip().startswith(("import ", "from ")) and len(line.split()) > 1 and not line.endswith(".")


def test_importing_adapters_loads_no_framework() -> None:
    code = f"import probox.adapters, sys; print(sorted(set({FRAMEWORKS!r}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
