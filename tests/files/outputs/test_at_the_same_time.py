"""Two runs to one output: one of them whole, or a clear refusal."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock
from tests.files.outputs.commands import COMMANDS, MAIN, leftovers, run, tree

from probox.errors import InputError
from probox.files import output
from probox.files.output import output_folder, sweep, write_files


def start(words: list[str], program: str = MAIN) -> subprocess.Popen[str]:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", program, *words], text=True, **pipes)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report", "report --embed"])
def test_the_result_is_one_of_the_two(name: str, inputs: Path, tmp_path: Path) -> None:
    (command,) = (command for command in COMMANDS if command.name == name)
    alone = []
    for number, earlier in enumerate((False, True)):
        (tmp_path / str(number)).mkdir()
        assert run(command.line(inputs, tmp_path / str(number), earlier=earlier)).returncode == 0
        alone.append(tree(tmp_path / str(number)))
    assert alone[0] != alone[1]
    both = tmp_path / "both"
    both.mkdir()
    running = [start(command.line(inputs, both, earlier=number % 2 == 1)) for number in range(3)]
    for process in running:
        assert process.wait(300) == 0, process.communicate()[1]
        process.communicate()
    assert tree(both) in alone
    assert leftovers(both) == []


def test_files_of_two_runs_come_together(tmp_path: Path) -> None:
    """Many runs that add to one folder: none loses another's files."""
    out = tmp_path / "out"
    failures: list[BaseException] = []

    def add(number: int) -> None:
        try:
            for step in range(5):
                with output_folder(out, "draw") as folder:
                    folder.write(f"{number}-{step}", b"x" * number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert len(tree(out)) == 6 * 5 + 1
    assert leftovers(tmp_path) == []


def test_a_lock_of_somebody_else_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probox.files.output._PATIENCE", 0.1)
    with FileLock(tmp_path / ".out.probox.lock"), output_folder(tmp_path / "out", "draw") as folder:
        folder.write("a", b"a")
    assert (tmp_path / "out" / "a").read_bytes() == b"a"


def test_the_folder_one_stands_in_stays_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    for version in (b"old", b"new"):
        with output_folder(out, "draw", fresh=True) as folder:
            folder.write("a", version)
        if version == b"old":
            number = out.stat().st_ino
            monkeypatch.chdir(out)
    assert Path("a").read_bytes() == b"new"
    assert out.stat().st_ino == number
    monkeypatch.chdir(tmp_path)
    with output_folder(out, "draw", fresh=True) as folder:
        folder.write("a", b"newer")
    assert out.stat().st_ino != number  # swapped as a whole
    assert (out / "a").read_bytes() == b"newer"


def test_what_a_program_writes_at_the_moment_of_the_exchange_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    swap = output._swap

    def late(one: Path, other: Path) -> bool:
        (out / "late").mkdir()
        (out / "late" / "new.txt").write_text("late")
        return swap(one, other)

    for version in (b"old", b"new"):
        with output_folder(out, "draw") as folder:
            folder.write("a", version)
        monkeypatch.setattr("probox.files.output._swap", late)
    files = tree(out)
    assert files.pop(".probox.json")
    assert files == {"a": b"new", "late/new.txt": b"late"}
    assert leftovers(tmp_path) == []


HOLD = """
import sys
from pathlib import Path
from probox.detect import run
from probox.cli import main

real = run.Partial.put
def put(self, *given):
    real(self, *given)
    print("one image done", flush=True)
    sys.stdin.readline()

run.Partial.put = put
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_second_run_of_detect_is_told(inputs: Path, tmp_path: Path) -> None:
    (command,) = (command for command in COMMANDS if command.name == "detect")
    words = command.line(inputs, tmp_path)
    assert run(words).returncode == 0
    expected = tree(tmp_path)
    (tmp_path / "found.json").unlink()
    first = start(words, HOLD)
    assert first.stdout is not None
    assert first.stdout.readline() == "one image done\n"
    second = run(words)
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr.splitlines() == [
        f"probox: {tmp_path / 'found.json.partial'}: another run is working on this output; "
        "wait for it, or choose another output"
    ]
    _, said = first.communicate("\n\n", timeout=120)
    assert first.returncode == 0, said
    assert tree(tmp_path) == expected
    assert leftovers(tmp_path) == []


def test_a_lock_ends_with_its_process(inputs: Path, tmp_path: Path) -> None:
    (command,) = (command for command in COMMANDS if command.name == "detect")
    words = command.line(inputs, tmp_path)
    first = start(words, HOLD)
    assert first.stdout is not None
    first.stdout.readline()
    first.kill()
    first.communicate()
    assert not (tmp_path / "found.json").exists()
    again = run(words)
    assert again.returncode == 0, again.stderr
    assert "1 of them from an earlier run" in " ".join(again.stderr.split())
    assert leftovers(tmp_path) == []


class TestSweeping:
    """Only places that a killed run left are removed."""

    def test_places_in_use_stay(self, tmp_path: Path) -> None:
        with output._stage(tmp_path, "a") as place:
            sweep(tmp_path, "a")
            write_files({tmp_path / "a": b"other"})
            assert (place / "files").is_dir()
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_what_only_looks_like_one_stays(self, tmp_path: Path) -> None:
        for name in (".a.0123abcd.part", ".a.0123abcde.part", ".a.0123abcd.part2"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "mine").write_text("mine")
        (tmp_path / ".a.00000000.part").write_text("a file")
        (tmp_path / ".a.11111111.part" / "made-by-probox").mkdir(parents=True)
        os.symlink(tmp_path / ".a.0123abcd.part", tmp_path / ".a.22222222.part")
        before = sorted(path.name for path in tmp_path.rglob("*"))
        write_files({tmp_path / "a": b""})
        assert sorted(path.name for path in tmp_path.rglob("*") if path.name != "a") == before


def test_a_failing_move_brings_back_what_was_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    real, calls = os.replace, []

    def broken(source: Path, target: Path) -> None:
        calls.append(target)
        if target == tmp_path / "c":
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(InputError, match="c: cannot be written: Input/output error"):
        write_files({tmp_path / "a": b"new", tmp_path / "b": b"new", tmp_path / "c": b"new"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}


def test_a_move_that_is_done_although_it_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        (tmp_path / name).write_text("old")
    real = os.replace

    def interrupted(source: Path, target: Path) -> None:
        real(source, target)
        if target == tmp_path / "b" and Path(source).parent.name == "files":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "a": b"new", tmp_path / "b": b"new", tmp_path / "c": b"new"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old", "b": "old"}
