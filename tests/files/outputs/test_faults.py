"""A signal, a full disk or a broken one at any moment leaves the old output or the new one; the next run cleans up."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.amounts import others_slow
from tests.files.outputs.commands import COMMANDS, Command
from tests.files.outputs.faults import FAULTS, Request


class Faults:
    """The program that runs commands with faults."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("faults.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def check(self, words: list[str], folder: Path, **request: Any) -> dict[str, Any]:
        """Try faults of a command; return what was tried."""
        usual: dict[str, Any] = {"earlier": [], "mine": [], "faults": FAULTS, "every": True}
        given = Request(**{"words": words, "folder": str(folder), "mixed": False, "no_exchange": False, **usual,
                           **request})  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(dataclasses.asdict(given)), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert not answer["wrong"], "\n".join(answer["wrong"])
        return answer

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def tool() -> Iterator[Faults]:
    started = Faults()
    yield started
    started.close()


def try_command(tool: Faults, command: Command, inputs: Path, folder: Path, **request: Any) -> dict[str, Any]:
    earlier = command.line(inputs, folder, earlier=True)
    request["mixed"] = any(name.startswith(f"{command.out}/") for name in command.mine)
    return tool.check(command.line(inputs, folder), folder, earlier=earlier, mine=list(command.mine), **request)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_signal_right_after_the_first_move(command: Command, tool: Faults, inputs: Path, tmp_path: Path) -> None:
    """One fault per command; `test_every_fault` has all of them."""
    try_command(tool, command, inputs, tmp_path / "work", faults=["INT"], every=False)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_fault(command: Command, tool: Faults, inputs: Path, tmp_path: Path) -> None:
    answer = try_command(tool, command, inputs, tmp_path / "work")
    print(f"{answer['points']} of {len(answer['operations'])} operations, {len(FAULTS)} faults each")
    assert answer["points"] > 10


WRITE_FOLDER = """
from probox.files.output import output_folder

with output_folder("OUT", "draw", fresh=FRESH) as out:
    out.write("kept.txt", b"the same")
    out.write("one.txt", VERSION * 2)
    out.write("more/two.txt", lambda file: file.write(VERSION * 3))
    if VERSION == b"old":
        out.write("more/gone.txt", b"gone")
        out.write("left/gone.txt", b"gone")
    else:
        out.write("new/three.txt", b"new")
"""
WRITE_FILES = """
from pathlib import Path
from probox.files.output import write_files

write_files({Path("OUT/a"): VERSION, Path("OUT/b"): VERSION, Path("OUT/c") / "d": VERSION})
"""
WRITE_RESULTS = """
from pathlib import Path
from probox import Detections, GroundTruth, evaluate
from probox.evaluation.storage import save_results

truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
scores = [[0.5 if VERSION == b"old" else 0.75]]
detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 40, 40]], label_probs=scores)
result = evaluate(truth, detections, threads=1)
save_results({Path("OUT") / name: result for name in RESULTS})
"""


def code(text: str, folder: Path, version: bytes, **names: object) -> list[str]:
    for name, value in {"OUT": str(folder / "out"), **names}.items():
        text = text.replace(name, value if isinstance(value, str) else repr(value))
    return ["-c", text.replace("VERSION", repr(version))]


HERE = [["KILL"], ["TERM", "ENOSPC", "EIO", "INT"], ["INT again and again"]]
"""Faults that are tried at every moment; in every run, only some of them."""


@pytest.mark.parametrize("faults", others_slow(HERE))
@pytest.mark.parametrize(("fresh", "earlier"), others_slow([(True, True), (True, False), (False, True)], several=True))
def test_every_moment_of_writing_a_folder(
    faults: list[str], fresh: bool, earlier: bool, tool: Faults, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    before = code(WRITE_FOLDER, work, b"old", FRESH=fresh) if earlier else []
    words = code(WRITE_FOLDER, work, b"new", FRESH=fresh)
    answer = tool.check(words, work, earlier=before, mine=["mine.txt"], faults=faults, mixed=not fresh)
    assert ("exchange" in answer["operations"]) == (earlier and fresh)  # otherwise, other files of probox stay


@pytest.mark.parametrize("faults", others_slow(HERE))
@pytest.mark.parametrize("results", others_slow([("a", "b"), ("a",)]))
def test_every_moment_of_writing_results(
    faults: list[str], results: tuple[str, ...], tool: Faults, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    before = code(WRITE_RESULTS, work, b"old", RESULTS=results)
    words = code(WRITE_RESULTS, work, b"new", RESULTS=results)
    answer = tool.check(words, work, earlier=before, mine=["mine.txt"], faults=faults)
    assert "exchange" in answer["operations"]


@pytest.mark.parametrize("faults", others_slow(HERE[::-1]))
@pytest.mark.parametrize(
    ("text", "names"),
    others_slow(
        [(WRITE_FOLDER, {"FRESH": True}), (WRITE_RESULTS, {"RESULTS": ["a", "b"]}), (WRITE_FILES, {})], several=True
    ),
)
@pytest.mark.parametrize("no_exchange", others_slow([False, True]))
def test_files_that_are_replaced_one_by_one(
    no_exchange: bool, faults: list[str], text: str, names: dict[str, Any], tool: Faults, tmp_path: Path
) -> None:
    """Where a folder holds other files, a killed run leaves old and new files; the next run makes it whole."""
    work = tmp_path / "work"
    before = ["-c", f"import os; os.makedirs({str(work / 'out')!r}); " + code(text, work, b"old", **names)[1]]
    request = {"earlier": before, "mine": ["out/mine.txt", "out/more/mine.txt"], "mixed": True}
    answer = tool.check(code(text, work, b"new", **names), work, faults=faults, no_exchange=no_exchange, **request)
    assert "exchange" not in answer["operations"]
