"""A folder as the recipes expect it, and what one process makes of its files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.recipes.recipes import BEFORE, ROOT, run_line

import probox
from probox.demo import Demo


@pytest.fixture(scope="session")
def files(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the demo's files, where one image has lost all its detections."""
    folder = tmp_path_factory.mktemp("recipes")
    ((language, line),) = BEFORE
    run = run_line(line, folder)
    assert (language, run.returncode) == ("sh", 0), run.stderr
    told = json.loads((folder / "demo" / "probabilistic.json").read_text())
    fewer = [entry for entry in told if entry["image_id"] != demo.truth.image_ids[4]]
    assert 0 < len(fewer) < len(told)
    (folder / "demo" / "probabilistic.json").write_text(json.dumps(fewer))
    broken = [*fewer[:-1], fewer[-1] | {"bbox": [1, 2, "wide", 4]}]
    (folder / "demo" / "broken.json").write_text(json.dumps(broken))
    return folder


@pytest.fixture(scope="session")
def alone(files: Path) -> probox.Evaluation:
    """Return what one process makes of the files."""
    return probox.evaluate(files / "demo" / "truth.json", files / "demo" / "probabilistic.json")


@pytest.fixture
def here(files: Path, tmp_path: Path) -> Path:
    """Return a folder with these files and the examples, for one test alone; there is a space in its name."""
    folder = tmp_path / "my files"
    shutil.copytree(files / "demo", folder / "demo")
    (folder / "examples").symlink_to(ROOT / "examples")
    return folder
