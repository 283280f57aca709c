"""A short round of the fuzzer over every reader, and the watcher itself: what it must notice, it notices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from .mutate import dump, mutate_bytes, mutate_json, parse
from .run import ROOT, Limits, Runner
from .targets import DEEDS, JSON_SEEDS, TARGETS
from .worker import input_files, put

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")


NEVER_REFUSED = ("bindings", "detect-partial", "onnx-metadata", "validate")
"""Targets that look at errors themselves, or raise none."""


@pytest.mark.slow
def test_a_short_round() -> None:
    runner = Runner(list(TARGETS), seed=1)
    runner.run(0, 25)
    assert [f"{finding.problem} ({finding.command})" for finding in runner.findings] == []
    assert runner.tried == dict.fromkeys(TARGETS, 25)


@pytest.mark.parametrize("target", TARGETS)
def test_seeds_are_valid_and_inputs_are_not(tmp_path: Path, target: str) -> None:
    """Some inputs are read to the end, some are refused: a round of nothing but refusals would show nothing."""
    outcomes: set[str] = set()
    expected = {"read"} if target in NEVER_REFUSED else {"read", "refused"}
    for number in range(40):
        if outcomes == expected:
            break
        put(input_files(target, 3, number), tmp_path)
        try:
            TARGETS[target].use(tmp_path)
            outcomes.add("read")
        except ValueError:
            outcomes.add("refused")
    assert outcomes == expected


def test_a_total_is_shared_by_cost() -> None:
    runner = Runner(["image-size", "coco-truth", "detect-partial"], seed=1)
    jobs = [job for group in runner._groups(0, None, 10_000) for job in group]
    counts = {target: sum(last - first for name, first, last in jobs if name == target) for target in runner.targets}
    assert sum(counts.values()) == 10_000
    assert counts["image-size"] > counts["coco-truth"] > counts["detect-partial"] > 0


def test_an_input_is_its_seed() -> None:
    for target in TARGETS:
        assert input_files(target, 5, 3) == input_files(target, 5, 3)
        assert input_files(target, 5, 3) != input_files(target, 6, 3)


def test_mutations_change_something_and_leave_the_seed() -> None:
    text = JSON_SEEDS["truth"]
    value = parse(text)
    rng = Random(1)
    assert dump(value) == text
    assert len({dump(mutate_json(rng, value)) for _ in range(200)}) > 150
    assert len({mutate_bytes(rng, text) for _ in range(200)}) > 190
    assert dump(value) == text


NOTICED = {
    b"abort": "the process ended with -6",
    b"spin": "took more than 3 s of processor time",
    b"gorge": "MB of memory",
    b"ask": "out of memory",
    b"fail": "KeyError in targets.py",
    b"mutter": "names no file: something is wrong",
    b"warn": "UserWarning in targets.py",
}


@pytest.mark.slow
def test_the_watcher_notices(tmp_path: Path) -> None:
    """Whatever an input does to its process, it is told apart from its neighbours, kept, and the rest is tried."""
    deeds = {number: input_files("deeds", 434, number)["file"] for number in range(8)}
    assert set(deeds.values()) == set(DEEDS)
    runner = Runner(["deeds"], seed=434, limits=Limits(seconds=3.0, memory=256 << 20))
    runner.run(0, 8)
    assert runner.tried == {"deeds": 8}
    found = {finding.number: finding.problem for finding in runner.findings}
    assert sorted(found) == [number for number, deed in deeds.items() if deed]
    for number, problem in found.items():
        assert NOTICED[deeds[number]] in problem
    place = runner.findings[0].save(tmp_path)
    assert (place / "input" / "file").read_bytes() == deeds[runner.findings[0].number]
    assert f"--target deeds --seed 434 --only {runner.findings[0].number}" in (place / "finding.txt").read_text()


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    deeds = {number: input_files("deeds", 434, number)["file"] for number in range(8)}
    number = next(number for number, deed in deeds.items() if deed == b"fail")
    command = [sys.executable, "-m", "tests.fuzz", "--seed", "434", "--target", "deeds", "--out", str(tmp_path)]
    done = subprocess.run([*command, "--only", str(number)], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "deeds: KeyError in targets.py" in done.stdout
    assert f"python -m tests.fuzz --target deeds --seed 434 --only {number}" in done.stdout
    number = next(number for number, deed in deeds.items() if not deed)
    done = subprocess.run([*command, "--only", str(number)], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "0 findings" in done.stdout
