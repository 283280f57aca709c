"""`kill -9` at any moment leaves the output as it was before the run, or as it is after it; the next run cleans up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.amounts import others_slow
from tests.files.outputs.commands import COMMANDS, Command, leftovers, run, tree

KILLER = Path(__file__).with_name("killer.py")


def kill_often(folder: Path, words: list[str], tries: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run a command again and again, killed a little later each time; return what was before and after, and between."""
    done = subprocess.run(
        [sys.executable, str(KILLER), str(folder), str(tries), *words],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *others = map(json.loads, done.stdout.splitlines())
    assert sum(other["killed"] for other in others) >= len(others) - 1
    return first, others


# The others make their files in the same way as `fuse`, or as the folder below; killing them often takes minutes.
OFTEN = [pytest.param(command, marks=() if command.name == "fuse" else pytest.mark.slow) for command in COMMANDS]


@pytest.mark.parametrize("command", OFTEN, ids=[command.name for command in COMMANDS])
def test_the_old_output_or_the_new_one(command: Command, inputs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    if command.before:
        done = run(command.line(inputs, folder, earlier=True))
        assert done.returncode == 0, done.stderr
    words = command.line(inputs, folder)
    known, moments = kill_often(folder, words, 3)
    assert known["before"] != known["after"]
    assert bool(known["before"]) == bool(command.before)
    for moment in moments:
        assert moment["state"] in (known["before"], known["after"]), moment["moment"]
    assert moments[0]["state"] == known["before"]
    done = run(words)
    assert done.returncode == 0, done.stderr
    assert tree(folder)
    assert leftovers(folder) == []


WRITE = """
from probox.files.folder import output_folder

with output_folder(folder / "out", "draw", fresh=FRESH) as out:
    out.write("kept.txt", b"the same")
    out.write("one.txt", VERSION * 2)
    out.write("more/two.txt", lambda file: file.write(VERSION * 3))
    if VERSION == b"old":
        out.write("more/gone.txt", b"gone")
        out.write("left/gone.txt", b"gone")
    else:
        out.write("new/three.txt", b"new")
"""


def program(version: str, fresh: bool) -> str:
    return WRITE.replace("VERSION", f"b{version!r}").replace("FRESH", str(fresh))


@pytest.mark.parametrize("fresh", others_slow([True, False]))
@pytest.mark.parametrize("earlier", others_slow([True, False]))
def test_every_moment_of_writing_a_folder(fresh: bool, earlier: bool, tmp_path: Path) -> None:
    if earlier:
        exec(program("old", fresh), {"folder": tmp_path})
    before = tree(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    if earlier:
        (tmp_path / "out").rename(work / "out")
    known, moments = kill_often(work, ["-c", program("new", fresh)], 100)
    assert len(moments) == known["moments"] > 10
    assert len(known["before"]) == len(before)
    for moment in moments:
        assert moment["state"] in (known["before"], known["after"]), moment["moment"]
    assert ("out/left/gone.txt" in known["after"]) == (earlier and not fresh)
    exec(program("new", fresh), {"folder": work})
    assert leftovers(work) == []


def test_every_moment_beside_files_of_the_users(tmp_path: Path) -> None:
    """Files are replaced one by one there: each is an old or a new one, the user's stay, and the next run works."""
    work = tmp_path / "work"
    work.mkdir()
    exec(program("old", True), {"folder": work})
    mine = work / "out" / "more" / "thesis.txt"
    mine.write_text("three years")
    (work / "out" / "mine").mkdir()
    known, moments = kill_often(work, ["-c", program("new", True)], 100)
    before, after = known["before"], known["after"]
    assert len(moments) == known["moments"] > 10
    for moment in moments:
        state = moment["state"]
        assert state["out/more/thesis.txt"] == before["out/more/thesis.txt"]
        for name, digest in state.items():
            assert name == "out/.probox.json" or digest in (before.get(name), after.get(name)), name
        assert before.keys() & after.keys() <= state.keys()
    # From wherever it was killed, the next run makes it whole.
    assert "out/more/gone.txt" not in after
    exec(program("old", True), {"folder": work})
    for moment in range(1, known["moments"], 4):
        stopped = subprocess.run(
            [sys.executable, "-c", AT_A_MOMENT, str(KILLER), str(work), str(moment), program("new", True)], check=False
        )
        assert stopped.returncode == 0
        exec(program("new", True), {"folder": work})
        assert {name: content for name, content in tree(work).items() if "probox" not in name} == {
            "out/kept.txt": b"the same",
            "out/one.txt": b"newnew",
            "out/more/two.txt": b"newnewnew",
            "out/new/three.txt": b"new",
            "out/more/thesis.txt": b"three years",
        }
        assert leftovers(work) == []
        assert (work / "out" / "mine").is_dir()
        exec(program("old", True), {"folder": work})


AT_A_MOMENT = """
import os, runpy, sys
from pathlib import Path

killer = runpy.run_path(sys.argv[1])
killer["in_a_fork"](["-c", sys.argv[4]], Path(sys.argv[2]), int(sys.argv[3]), os.pipe()[1])
"""


def test_every_moment_of_writing_a_file(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("old")
    code = "from probox.files.output import write_files; write_files({folder / 'a': b'new', folder / 'b' / 'c': b'c'})"
    known, moments = kill_often(work, ["-c", code], 100)
    assert known["after"].keys() == {"a", "b/c"}
    mixed = [moment for moment in moments if moment["state"] not in (known["before"], known["after"])]
    # Between two moves there is a moment with the first file alone; every file is whole at all times.
    assert all(moment["state"] == {"a": known["after"]["a"]} for moment in mixed)
    assert len(mixed) <= 1
    exec(code, {"folder": work})
    assert leftovers(work) == []
