"""A full disk: one line that names the file, and everything as it was before."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.files.outputs.commands import COMMANDS, Command, leftovers, run, tree

from probox.errors import InputError
from probox.files.output import output_folder


def check_failed(done: subprocess.CompletedProcess[str], folder: Path, command: Command, reason: str) -> None:
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("duplicates:", "plane:"))]
    assert (done.returncode, done.stdout) == (1, "")
    assert len(lines) == 1, lines
    assert str(folder / command.out) in lines[0]
    assert reason in lines[0]
    assert leftovers(folder) in ([], [f"{command.out}.partial"])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    ) if os.geteuid() == 0 else None  # fmt: skip
    if mounted is None or mounted.returncode != 0:
        pytest.skip("only root can make a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize(
    "name",
    [
        "draw",
        "fuse",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("report", "report --embed", "demo", "detect")),
    ],
)
def test_a_disk_that_is_really_full(name: str, inputs: Path, small_disk: Path) -> None:
    (command,) = (command for command in COMMANDS if command.name == name)
    filler = small_disk / "filler"
    with filler.open("wb") as file:
        file.write(b"\0" * (60 * 1024))
    done = run(command.line(inputs, small_disk))
    check_failed(done, small_disk, command, "No space left on device; make room there")
    assert set(tree(small_disk)) == {"filler"}
    filler.unlink()
    if name in ("detect", "fuse"):  # small enough for an empty disk
        assert run(command.line(inputs, small_disk)).returncode == 0
        assert leftovers(small_disk) == []


def test_output_onto_a_disk_of_its_own(small_disk: Path) -> None:
    """A folder that is a disk can't be swapped for another one: its files are replaced one by one."""
    for version in (b"old", b"new"):
        with output_folder(small_disk, "draw") as folder:
            folder.write("a/b", version)
            folder.write("c", version * 2)
    files = tree(small_disk)
    assert files.pop(".probox.json")
    assert files == {"a/b": b"new", "c": b"newnew"}

    def fill() -> None:
        with output_folder(small_disk, "draw") as folder:
            folder.write("a/b", b"newer")
            folder.write("c", b"x" * (1 << 17))

    with pytest.raises(InputError, match="disk/c: cannot be written: No space left on device"):
        fill()
    assert (small_disk / "a" / "b").read_bytes() == b"new"
    assert leftovers(small_disk) == []
