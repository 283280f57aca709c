"""Standard streams that are closed, or whose reader has gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.amounts import others_slow

from probox.demo import make_demo

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scene")
    make_demo().save(folder)
    return folder


def shell(folder: Path, command: str, streams: str) -> subprocess.CompletedProcess[str]:
    line = f"{sys.executable} -m probox {command} {streams}"
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("streams", others_slow([">&-", "2>&-", ">&- 2>&- <&-", "<&-"]))
def test_closed_streams(scene: Path, streams: str) -> None:
    done = shell(scene, "evaluate truth.json probabilistic.json", streams)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert ("PDQ" in done.stdout) != streams.startswith(">&-")


@pytest.mark.slow
@pytest.mark.parametrize("streams", [">&-", ">&- 2>&- <&-"])
def test_closed_streams_and_wrong_input(scene: Path, streams: str) -> None:
    assert shell(scene, "evaluate truth.json missing.json", streams).returncode == 1
    assert shell(scene, "evaluate", streams).returncode == 2


@pytest.mark.parametrize(
    "command", others_slow(["rank probabilistic.json", "evaluate truth.json probabilistic.json --json"])
)
def test_a_reader_that_goes_away(scene: Path, command: str) -> None:
    done = shell(scene, command, "| true; exit ${PIPESTATUS[0]}")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


@pytest.mark.parametrize("option", others_slow(["--help", "--version", "--cite"]))
def test_a_reader_of_help_that_goes_away(tmp_path: Path, option: str) -> None:
    done = shell(tmp_path, option, "| true; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_words_that_nobody_reads(scene: Path) -> None:
    done = shell(scene, "evaluate truth.json probabilistic.json", "2> >(true)")
    assert (done.returncode, "PDQ" in done.stdout) == (0, True)
