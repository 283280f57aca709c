"""The recipe for Spark, with two processors of one machine."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tests.recipes.recipes import lines_of, run_line

import probox

(LINE,) = lines_of("spark")
QUICK = {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Less compilation by Java, which is faster for a run of seconds."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed"),
    pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="there is no Java"),
]


def test_tasks_give_the_result_of_one_process(here: Path, alone: probox.Evaluation, tmp_path: Path) -> None:
    run = run_line(LINE, here, SPARK_LOCAL_DIRS=str(tmp_path), **QUICK)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{alone}\n"
    np.testing.assert_equal(probox.load(here / "R").summary(), alone.summary())  # bit-identical; matches have no tables


def test_a_task_that_fails_leaves_no_result(here: Path, tmp_path: Path) -> None:
    line = LINE.replace("probabilistic.json", "broken.json").replace("--out R", "--out broken")
    run = run_line(line, here, SPARK_LOCAL_DIRS=str(tmp_path), **QUICK)
    assert run.returncode != 0
    assert run.stdout == ""
    assert "broken.json: image" in run.stderr
    assert not (here / "broken").exists()
