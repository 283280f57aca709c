"""A folder with the files of the recipes, and the result of one process."""

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
    """Return a folder with the demo's files; one image has no detections."""
    folder = tmp_path_factory.mktemp("recipes")
    ((language, line),) = BEFORE
    run = run_line(line, folder)
    assert (language, run.returncode) == ("sh", 0), run.stderr
    entries = json.loads((folder / "demo" / "probabilistic.json").read_text())
    fewer = [entry for entry in entries if entry["image_id"] != demo.truth.image_ids[4]]
    assert 0 < len(fewer) < len(entries)
    (folder / "demo" / "probabilistic.json").write_text(json.dumps(fewer))
    broken = [*fewer[:-1], fewer[-1] | {"bbox": [1, 2, "wide", 4]}]
    (folder / "demo" / "broken.json").write_text(json.dumps(broken))
    return folder


@pytest.fixture(scope="session")
def alone(files: Path) -> probox.Evaluation:
    """Return the result of one process."""
    return probox.evaluate(files / "demo" / "truth.json", files / "demo" / "probabilistic.json")


@pytest.fixture
def here(files: Path, tmp_path: Path) -> Path:
    """Return a folder of one test with these files and the examples; its name contains a space."""
    folder = tmp_path / "my files"
    shutil.copytree(files / "demo", folder / "demo")
    (folder / "examples").symlink_to(ROOT / "examples")
    return folder
