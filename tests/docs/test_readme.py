"""What the README shows works as pasted, but for installing, which is only written down."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.docs.holding import sections

import probox

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
INSTALLING = """
python3() { [ "$*" = "-m venv .venv" ] && mkdir -p .venv/bin && touch .venv/bin/activate; }
pip() { echo "$*" >> pip.log; }
"""
"""A venv that is there already, and a pip that notes what it is asked for."""


@pytest.fixture
def folder(golden_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with files of the names that the README uses."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(golden_dir / "mixed" / "ground_truth.json", "instances_val2017.json")
    shutil.copy(golden_dir / "mixed" / "detections.json", "detections.json")
    sections.yolo_folder(tmp_path)
    return tmp_path


def test_lines_for_the_shell(folder: Path) -> None:
    lines = "".join(code for language, code in BLOCKS if language == "sh" and "tests/run.sh" not in code)
    assert lines.count("\n") >= 6
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        ["bash", "-euc", INSTALLING + lines],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    (table,) = [code for language, code in BLOCKS if language == "text"]
    assert table in run.stdout
    assert (folder / "report" / "index.html").is_file()
    assert any((folder / "pictures").glob("*.png"))
    base, *extras = (folder / "pip.log").read_text().splitlines()
    assert base == "install ."
    assert extras == ["install probox[report]"]


def test_every_extra_that_is_named_is_one() -> None:
    named = set(re.findall(r"'(?:probox|\.)\[(\w+)\]'", README.read_text(encoding="utf-8")))
    assert {"all", "detect", "parquet", "report"} <= named <= set(metadata("probox").get_all("Provides-Extra"))


def test_lines_for_a_notebook(folder: Path) -> None:
    truth = probox.read_truth("instances_val2017.json")
    found = probox.read_detections("detections.json", truth)
    parts = [truth.select_images([image_id]) for image_id in truth.image_ids[:3].tolist()]
    space: dict[str, Any] = {
        "classes": truth.classes,
        "boxes": np.concatenate([found.boxes[:, :2], found.extents], axis=1),
        "scores": found.scores,
        "labels": found.labels,
        "image_of_each_box": found.image_ids,
        "val_loader": [([int(part.image_ids[0])], [target_of(part)]) for part in parts],
        "model": lambda images: [prediction_of(found[found.image_ids == image]) for image in images],
    }
    codes = [code for language, code in BLOCKS if language == "python"]
    assert len(codes) >= 2
    for code in codes:
        exec(compile(code, README.name, "exec"), space)
    whole = probox.evaluate(truth, found).select_images(truth.image_ids[:3])
    assert space["metric"].compute() == pytest.approx(whole.summary(), rel=1e-9, nan_ok=True)


def target_of(part: probox.GroundTruth) -> dict[str, Any]:
    """Return the objects of one image as torchvision's dictionary."""
    width, height = part.dataset.shapes[0].tolist()
    masks = [part.masks.to_array(row, height, width) for row in range(len(part))]
    size = {"image_id": int(part.image_ids[0]), "image_size": (width, height)}
    return {
        "boxes": part.boxes,
        "labels": part.labels,
        "masks": masks,
        "iscrowd": part.crowd,
        "area": part.areas,
    } | size


def prediction_of(found: probox.Detections) -> dict[str, Any]:
    """Return the detections of one image as torchvision's dictionary."""
    names = ("boxes", "scores", "labels", "label_probs", "covariances")
    return {name: getattr(found, name) for name in names if getattr(found, name) is not None}
