"""What the page of the spread head shows works as pasted, and says the constants of the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probox.calibration.std_regression import NU, OFFSET_RIDGE, RIDGES, feature_names

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spread.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.M | re.S)


@pytest.mark.slow
def test_lines_work_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shell = next(code for language, code in BLOCKS if language == "sh")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        ["bash", "-euc", shell], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    space: dict[str, Any] = {}
    exec(compile(next(code for language, code in BLOCKS if language == "python"), PAGE.name, "exec"), space)
    assert space["better"].covariances is not None
    rows = space["found"].boxes[:, :2]
    regressor = space["StdRegressor"]().fit(rows, np.random.default_rng(0).normal(size=(len(rows), 4)))
    assert regressor.n_features_in_ == 2


def test_constants_are_those_of_the_code() -> None:
    assert f"({NU + 1:g} / 2) ln(1 + e^2 exp(-2 u) / {NU:g})" in TEXT
    assert f"Student's likelihood with {NU:g} degrees of freedom" in TEXT
    assert f"ridge of {RIDGES[0]:g} to {RIDGES[-1]:,.0f}" in TEXT
    assert f"towards all ({OFFSET_RIDGE:g}," in " ".join(TEXT.split())
    for name in feature_names(own_sigmas=True):
        assert re.search(rf"^\| [^|]*{name}", TEXT, re.M), name
