"""Pipes and devices among the data: never waited for, never read without end."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.amounts import others_slow

from probox import InputError
from probox.files.reading import open_regular, read_bytes, read_regular

from .conftest import TRUTH

Write = Callable[..., Path]

COMMAND = [sys.executable, "-c", "from probox.cli import main; main()"]
LIMIT = 60
"""Seconds after which a command hangs."""


def probox(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT, check=False)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS = {pipe: "this is a pipe", link_to_pipe: "this is a pipe", link_to_device: "this is a device"}


def replaced(path: Path, make: Callable[[Path], None]) -> None:
    path.unlink()
    make(path)


@pytest.mark.parametrize("make", KINDS)
def test_the_helper_refuses_what_is_no_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "data"
    make(path)
    for read in (open_regular, read_regular, lambda path: read_bytes(path, pipe=False)):
        with pytest.raises(InputError, match=f"data: expected a file, but {KINDS[make]}; put a regular file in"):
            read(path)


def test_the_helper_reads_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"12345")
    assert read_regular(path, most=5) == b"12345"
    with pytest.raises(InputError, match="data: expected at most 4 bytes"):
        read_regular(path, most=4)
    with pytest.raises(InputError, match="expected a file, but this is a folder"):
        read_regular(tmp_path)
    with pytest.raises(InputError, match="missing: no such file"):
        read_regular(tmp_path / "missing")


@pytest.mark.parametrize("make", others_slow(KINDS))
@pytest.mark.parametrize("name", ["labels.json", "0.png"])
def test_challenge_truth(tmp_path: Path, golden_dir: Path, name: str, make: Callable[[Path], None]) -> None:
    shutil.copytree(golden_dir / "rvc1" / "gt", tmp_path / "gt")
    replaced(tmp_path / "gt" / "000000" / name, make)
    done = probox("evaluate", tmp_path / "gt", golden_dir / "rvc1" / "det")
    assert done.returncode == 1
    assert f"{name}: expected a file, but {KINDS[make]}" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("make", others_slow(KINDS))
def test_a_sequence_of_detections(tmp_path: Path, golden_dir: Path, make: Callable[[Path], None]) -> None:
    shutil.copytree(golden_dir / "rvc1" / "det", tmp_path / "det")
    replaced(tmp_path / "det" / "000001.json", make)
    done = probox("evaluate", golden_dir / "rvc1" / "gt", tmp_path / "det")
    assert done.returncode == 1
    assert f"000001.json: expected a file, but {KINDS[make]}" in done.stderr


@pytest.mark.parametrize("make", others_slow(KINDS))
def test_heatmaps(tmp_path: Path, truth_file: Path, write: Write, make: Callable[[Path], None]) -> None:
    row = {"label_probs": [1.0], "masks_file": "maps.npy", "mask_id": 0}
    found = write({"classes": ["cup"], "detections": [[], [row]]})
    make(tmp_path / "maps.npy")
    done = probox("evaluate", truth_file, found)
    assert done.returncode == 1
    assert f"image 9: detections[1][0]: {tmp_path / 'maps.npy'}: expected a file, but {KINDS[make]}" in done.stderr


def test_a_pipe_that_the_user_names_is_read(tmp_path: Path, write: Write) -> None:
    truth = write(gzip.compress(json.dumps(TRUTH).encode()), "truth.json.gz")
    found = write([{"image_id": 9, "category_id": 7, "bbox": [1, 2, 3, 4], "score": 0.5}])
    named = tmp_path / "named"
    os.mkfifo(named)
    script = f"""
    cat {found} > {named} &
    {shlex.join(COMMAND)} evaluate --json <(zcat {truth}) {named}
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"images": 2, "objects": 3, "detections": 1}


@pytest.mark.slow
def test_many_empty_gzip_members_take_time_in_proportion(tmp_path: Path) -> None:
    """Each of 400,000 members is looked at once: when what follows was copied for each, this took hours."""
    path = tmp_path / "truth.json.gz"
    path.write_bytes(gzip.compress(b"") * 400_000 + gzip.compress(json.dumps(TRUTH).encode()))
    script = f"import probox; print(len(probox.read_truth({str(path)!r})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.stdout == "3\n", done.stderr
