"""Small inputs for every command that writes, and a way to look at what is on the disk."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import probox
from probox.calibration.fitting import fit
from probox.demo import make_demo


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with truth, detections, photos, an evaluation of two images, and a tiny model."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("inputs")
    demo = make_demo(images=2)
    demo.save(folder)
    make_demo(images=2, seed=5).save(folder / "other")
    for name, found in demo.detectors.items():
        probox.evaluate(demo.truth, found).save(folder / "results" / name)
        for part in (1, 2):
            probox.evaluate(demo.truth, found, part=(part, 2)).save(folder / "parts" / str(part) / name)
    fitted = fit(demo.truth, demo.detectors["probabilistic"], method="constant", target="nll", folds=2)
    fitted.calibration.save(folder / "calibration.json")
    pytest.importorskip("onnx")
    path = Path(__file__).resolve().parents[2] / "detect" / "graphs.py"
    spec = importlib.util.spec_from_file_location("output_graphs", path)
    assert spec is not None
    assert spec.loader is not None
    graphs = importlib.util.module_from_spec(spec)
    sys.modules["output_graphs"] = graphs
    spec.loader.exec_module(graphs)
    graphs.small_ssd(folder / "ssd.onnx")
    (folder / "names.txt").write_text("cup\ndog\ncar\n")
    from PIL import Image

    (folder / "photos").mkdir()
    for number in (3, 7):
        pixels = np.random.default_rng(number).integers(0, 255, (48, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{number}.png")
    return folder
