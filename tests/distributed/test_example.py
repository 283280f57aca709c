"""The example of analyses over a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import probox
from probox.demo import make_demo

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "dask_analyses.py"

pytest.importorskip("distributed")


@pytest.mark.slow
def test_analyses_of_several_results(tmp_path: Path) -> None:
    demo = make_demo(images=3)
    words = [sys.executable, str(EXAMPLE)]
    for name, found in demo.detectors.items():
        probox.evaluate(demo.truth, found).save(tmp_path / name)
        words.append(name)
    done = subprocess.run(
        [*words, "--dask", "local:2"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in demo.detectors:
        result = probox.load(tmp_path / name)
        interval = result.intervals(replicates=200)["PDQ"]
        first = f"{name}: PDQ {interval.value:.4f} [{interval.low:.4f}, {interval.high:.4f}]\n"
        assert f"{first}{result.diagnose(replicates=200)}\n" in done.stdout
