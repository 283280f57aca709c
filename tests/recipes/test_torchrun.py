"""The recipe for torchrun: two processes, with parts of files and in a validation loop."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.evaluation.equal import assert_equal
from tests.recipes.recipes import lines_of, run_line

import probox

BY_FILES, BY_LOOP = lines_of("torchrun")
QUIET = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
pytestmark = [pytest.mark.torch, pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")]


@pytest.mark.slow
@pytest.mark.parametrize(("line", "out"), [(BY_FILES, "R"), (BY_LOOP, "L")])
def test_two_processes_give_the_result_of_one(line: str, out: str, here: Path, alone: probox.Evaluation) -> None:
    run = run_line(line, here, **QUIET)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{alone}\n"  # once, not by each process
    assert_equal(probox.load(here / out), alone)


@pytest.mark.slow
def test_a_process_that_fails_leaves_no_result(here: Path) -> None:
    run = run_line(
        BY_FILES.replace("probabilistic.json", "broken.json").replace("--out R", "--out broken"), here, **QUIET
    )
    assert run.returncode != 0
    assert run.stdout == ""
    assert "demo/broken.json: image" in run.stderr
    assert not (here / "broken").exists()
