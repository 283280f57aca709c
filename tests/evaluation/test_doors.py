"""Ways upstairs: an evaluation leads to plots without importing them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import probox.evaluation
from probox import Evaluation
from probox.plots import Plots

HIGHER = ("analysis", "detect", "pictures", "plots", "explorer", "demo", "experiments", "cli")


def test_plot_is_made_of_the_evaluation(results: dict[str, Evaluation]) -> None:
    plots = results["sure"].plot
    assert isinstance(plots, Plots)
    assert list(plots.results.values()) == [results["sure"]]
    assert "result.plot.thresholds()" in str(Evaluation.plot.__doc__)


def test_importing_probox_loads_no_plots() -> None:
    script = (
        "import sys, probox; print([name for name in sys.modules if name.startswith(('probox.plots', 'matplotlib'))])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


def test_no_import_names_a_higher_room() -> None:
    named = set()
    for file in Path(probox.evaluation.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                named.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                named.update(f"{node.module}.{alias.name}" for alias in node.names)
    rooms = {name.split(".")[1] for name in named if name.startswith("probox.")}
    assert {"measures", "tables"} <= rooms
    assert rooms.isdisjoint(HIGHER)
