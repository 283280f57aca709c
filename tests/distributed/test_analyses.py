"""Intervals, comparisons, diagnoses and calibrations over a cluster: the same to the bit, also on the command line."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.worlds import boxes_truth, simulated

pytest.importorskip("distributed")

import probox
from probox import Detections, Evaluation, GroundTruth
from probox import distributed as over
from probox.calibration import Fitted, fit
from probox.cli import main
from probox.errors import InputError

World = tuple[GroundTruth, dict[str, Detections], dict[str, Evaluation]]


@pytest.fixture(scope="module")
def world() -> World:
    truth = boxes_truth(30)
    found = {
        "one": simulated(truth, false_per_image=1, miss_rate=0.1),
        "two": simulated(truth, seed=3, sigma=6.0, reported=7.0),
    }
    return truth, found, {name: probox.evaluate(truth, own) for name, own in found.items()}


def same(here: Any, there: Any) -> bool:
    """Return whether two results are the same in every bit: what JSON writes of a number tells all of it."""
    return json.dumps(here, default=float) == json.dumps(there, default=float)


def described(fitted: Fitted) -> Any:
    assert fitted.gain is not None
    assert fitted.held_out is not None
    changes = [*fitted.gain.changes.values(), *fitted.gain.over_constant.values()]
    table = [fitted.held_out.boxes, fitted.held_out.covariances, fitted.held_out.label_probs]
    hexes = [np.ascontiguousarray(column).tobytes().hex() for column in table]
    return [fitted.calibration.to_json(), [dataclasses.astuple(change) for change in changes], fitted.notes, hexes]


def test_intervals(client: Any, world: World) -> None:
    result = world[2]["one"]
    choices: dict[str, Any] = {"replicates": 31, "seed": 4, "level": 0.9}
    there = over.bootstrap(result, "all", client=client, **choices)
    assert same(result.intervals("all", **choices).to_dict(), there.to_dict())
    assert not same(result.intervals("all", **choices | {"seed": 5}).to_dict(), there.to_dict())


def test_comparisons(client: Any, world: World) -> None:
    choices: dict[str, Any] = {"per_class": True, "replicates": 31}
    there = over.compare(world[2], client=client, **choices)
    assert same(probox.compare(world[2], **choices).to_dict(), there.to_dict())
    assert over.compare(world[2], ["pdq"], replicates=31).pairs[0].columns["PDQ"].p  # by the client that is open


def test_diagnoses(client: Any, world: World) -> None:
    result = world[2]["one"]
    choices: dict[str, Any] = {"replicates": 31, "thresholds_for": ["lrp"]}
    assert same(result.diagnose(**choices).to_dict(), over.diagnose(result, client=client, **choices).to_dict())
    with pytest.raises(InputError, match="expected measure to be one of") as told:
        over.diagnose(result, client=client, thresholds_for=["nothing"])
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("method", ["scale", "learned"])
def test_calibrations(client: Any, world: World, method: str) -> None:
    truth, found, _ = world
    choices: dict[str, Any] = {"method": method, "labels": "temperature", "folds": 3, "resamples": 31}
    there = over.calibrate(truth, found["one"], client=client, **choices)
    assert same(described(fit(truth, found["one"], **choices)), described(there))


@pytest.mark.slow
def test_the_command_line(
    client: Any, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    truth, found, results = world
    monkeypatch.chdir(tmp_path)
    probox.formats.write_coco_results("found.json", found["one"], truth)
    probox.write_parquet("truth.parquet", truth)
    for name, result in results.items():
        result.save(f"results/{name}")
    address = client.scheduler.address

    def said(*words: str) -> Any:
        capsys.readouterr()
        with pytest.raises(SystemExit) as done:
            main([*words, "--json"])
        assert not done.value.code
        return json.loads(capsys.readouterr().out)

    for words in (
        ["compare", "results", "--replicates", "31"],
        ["diagnose", "results/one", "--replicates", "31"],
        ["calibrate", "fit", "truth.parquet", "found.json", "--out", "calibration.json"],
    ):
        assert same(said(*words), said(*words, "--dask", address))
    with pytest.raises(SystemExit) as done:
        main(["compare", "results", "--dask", "nowhere"])
    assert done.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("probox: expected an address with a port, but got 'nowhere'")
