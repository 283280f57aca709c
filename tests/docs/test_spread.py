"""The page on calibration states the constants of the std regressor, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import probox
from probox.calibration.std_regression import NU, OFFSET_RIDGE, REACH, RIDGES, feature_names

PAGE = Path(__file__).resolve().parents[2] / "docs" / "calibration.md"
TEXT = PAGE.read_text(encoding="utf-8").split("## Learned standard deviations\n")[1].split("\n## ")[0]


def test_lines_work_as_pasted(demo_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").symlink_to(demo_files)
    space: dict[str, Any] = {"probox": probox, "truth": probox.read_truth("demo/truth.json")}
    (example,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
    exec(compile(example, PAGE.name, "exec"), space)
    assert space["probabilistic"].covariances is not None
    variances = np.diagonal(space["probabilistic"].covariances, axis1=2, axis2=3).reshape(-1, 4)
    np.testing.assert_allclose(np.sqrt(variances), space["std"])
    rows = space["detections"].boxes[:, :2]
    regressor = space["StdRegressor"]().fit(rows, np.random.default_rng(0).normal(size=(len(rows), 4)))
    assert regressor.n_features_in_ == 2


def test_constants_are_those_of_the_code() -> None:
    text = " ".join(TEXT.split())
    assert f"({NU + 1:g} / 2) ln(1 + e^2 exp(-2 u) / {NU:g})" in text
    assert f"Student-t likelihood with {NU:g} degrees of freedom" in text
    assert f"ridge penalty of {RIDGES[0]:g} to {RIDGES[-1]:,.0f}" in text
    assert f"penalty of edge and class effects is {OFFSET_RIDGE:g}" in text
    assert f"clipped at {REACH:g} standard deviations" in text
    for name in feature_names(own_sigmas=True):
        assert re.search(rf"^\| [^|]*{name}", TEXT, re.M), name
