"""The table of plain, constant, own and calibrated sigmas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.sigmas import files_of
from benchmarks.uncertainty import HEADINGS, main, measured

import probox
from probox.calibration import fit
from probox.demo import Demo


@pytest.mark.slow
def test_rows_are_what_the_library_says(demo: Demo, demo_files: Path) -> None:
    truth = demo.truth.select_images(demo.truth.image_ids[:5])
    got = measured(truth, demo_files / "probabilistic.json", 0.6, seed=0)
    assert [row[0] for row in got["table"]] == ["plain", "best constant", "own", "own, calibrated"]
    values = {name: {key: number["value"] for key, number in of.items()} for name, of in got["numbers"].items()}

    found = probox.read_detections(demo_files / "probabilistic.json", truth)
    result = probox.evaluate(truth, found, measures=("pdq", "nll", "energy")).at_threshold(0.6)
    pdq, nll, energy = (result.summary()[key] for key in ("PDQ", "NLL", "energy"))
    assert [values["own"][key] for key in ("PDQ", "NLL", "energy")] == pytest.approx([pdq, nll, energy])
    shown = [got["table"][2][column].split()[0] for column in (1, 3, 4)]
    assert shown == [f"{100 * pdq:.1f}", f"{nll:.1f}", f"{energy:.1f}"]

    sure = found.select(found.label_probs.max(axis=1) > 0.6)
    for method, name in (("constant", "constant"), ("isotonic", "calibrated")):
        gain = fit(truth, sure, method=method, target="nll").gain
        assert gain is not None
        assert values[f"{name}, NLL"]["NLL"] == pytest.approx(gain.changes["NLL"].after)
        assert values[f"{name}, PDQ"]["PDQ"] > values[f"{name}, NLL"]["PDQ"]
        assert values[f"{name}, energy"]["energy"] < values[f"{name}, PDQ"]["energy"]
    for row, name in (("own", "own"), ("own, calibrated", "calibrated, {}")):
        skill = got["skill"][row]
        first, second = values[name.format("PDQ")]["PDQ"], values["constant, PDQ"]["PDQ"]
        assert skill["PDQ"]["value"] == pytest.approx(first - second)
        first, second = values[name.format("energy")]["energy"], values["constant, energy"]["energy"]
        assert skill["energy"]["value"] == pytest.approx(1 - first / second)
        assert all(of["low"] < of["value"] < of["high"] for of in skill.values())


def test_plain_boxes_have_two_rows_and_no_skill(
    demo_files: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    main([str(demo_files / "truth.json"), str(demo_files / "deterministic.json"), "--json", str(out)])
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["detections", *HEADINGS]
    assert [line[1] for line in lines[2:]] == ["plain", "best constant"]
    assert all(line[3] == line[6] == "" for line in lines[2:])
    assert [lines[2][column] for column in (4, 7, 8, 9)] == [""] * 4, "nothing that needs a sigma"
    (kept,) = json.loads(out.read_text())
    assert lines[2][0] == f"deterministic ({kept['detections']}, {kept['pairs']['plain']} pairs)"


def test_boxes_that_meet_nothing_are_said(demo_files: Path) -> None:
    with pytest.raises(probox.InputError, match="no matched boxes: no detection reaches"):
        main([str(demo_files / "truth.json"), str(demo_files / "probabilistic.json"), "--threshold", "0.9999"])


def test_a_folder_is_its_files_by_name(tmp_path: Path) -> None:
    for name in ("b.json.gz", "a.parquet", "log.txt", "c.json"):
        (tmp_path / name).touch()
    given = [tmp_path, tmp_path / "c.json"]
    assert [file.name for file in files_of(given)] == ["a.parquet", "b.json.gz", "c.json", "c.json"]
