"""The recipe for Ray: one task per part, and batches of a data set of predictions."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.evaluation.equal import assert_equal
from tests.recipes.recipes import lines_of, run_line

import probox

BY_PARTS, BY_BATCHES = lines_of("ray")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")]


@pytest.fixture
def short() -> Iterator[str]:
    """Return a folder for Ray's sockets, whose paths must be short."""
    folder = tempfile.mkdtemp(prefix="ray")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(("line", "out"), [(BY_PARTS, "R"), (BY_BATCHES, "B")])
def test_workers_give_the_result_of_one_process(
    line: str, out: str, here: Path, alone: probox.Evaluation, short: str
) -> None:
    run = run_line(line, here, RAY_TMPDIR=short)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{alone}\n"
    assert_equal(probox.load(here / out), alone)


def test_a_task_that_fails_leaves_no_result(here: Path, short: str) -> None:
    line = BY_PARTS.replace("probabilistic.json", "broken.json").replace("--out R", "--out broken")
    run = run_line(line, here, RAY_TMPDIR=short)
    assert run.returncode != 0
    assert run.stdout == ""
    assert "broken.json: image" in run.stderr
    assert not (here / "broken").exists()
