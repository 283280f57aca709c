"""Detectors and photos small enough to make in a moment."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from probox.cli import main

# Without onnx only the tests of torchvision's detectors can run, in an interpreter that has them.
if importlib.util.find_spec("onnx") is None:
    collect_ignore_glob = ["test_[!t]*.py"]
else:
    # Tests are imported by path, not as a package: helpers beside them have to be put where they can be found.
    _spec = importlib.util.spec_from_file_location("detect_graphs", Path(__file__).with_name("graphs.py"))
    graphs = importlib.util.module_from_spec(_spec)
    sys.modules["detect_graphs"] = graphs
    _spec.loader.exec_module(graphs)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of four small photos called 3.png, 7.png, 12.png and 20.png."""
    from PIL import Image

    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for number, size in ((3, (64, 48)), (7, (40, 80)), (12, (64, 64)), (20, (100, 30))):
        coarse = rng.integers(0, 255, (6, 6, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(folder / f"{number}.png")
    return folder


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `probox detect`; return its status and what it printed, the words of standard error one space apart."""

    def detect(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as done:
            main(["detect", *map(str, arguments)])
        out, err = capsys.readouterr()
        if done.value.code == 1:
            assert len(err.strip().splitlines()) == 1
        return int(done.value.code or 0), out, " ".join(err.split())

    return detect


@pytest.fixture
def ssd(tmp_path: Path) -> Path:
    """A tiny SSD of three classes."""
    return sys.modules["detect_graphs"].small_ssd(tmp_path / "ssd.onnx")


@pytest.fixture
def names(tmp_path: Path) -> Path:
    """Its class names."""
    path = tmp_path / "names.txt"
    path.write_text("cup\ndog\ncar\n")
    return path
