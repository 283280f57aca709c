"""`probox calibrate`: what it prints, writes and refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.cli import in_process

import probox
from probox.calibration import Calibration
from probox.calibration.corner_maps import ClassScale, Constant, Scale
from probox.cli import cli
from probox.notes import Note


def run(*words: object) -> tuple[int, str, str]:
    return in_process.run("calibrate", *words)


def test_fit_prints_held_out_numbers(demo_files: Path, tmp_path: Path) -> None:
    out = tmp_path / "cal.json"
    status, shown, said = run("fit", demo_files / "truth.json", demo_files / "probabilistic.json", "--out", out)
    assert status == 0
    lines = shown.splitlines()
    assert lines[0].split("  ")[0] == "held out"
    assert [line[:20].strip() for line in lines[1:]] == [
        "PDQ", "NLL of matched boxes", "energy score [px]", "error/std (68% |z|)",
        "edge coverage 68%", "edge coverage 90%", "box coverage 90%",
    ]  # fmt: skip
    assert "5 folds of 12 images, 134 matched boxes" in said
    assert "note: 18 of 536 edges lie on the image border and are excluded: " in said
    assert "the constant is fitted for PDQ only; gains over it in other metrics are optimistic" in said
    assert "note: only 12 images: confidence intervals of fewer than 30 images tend to be too narrow" in said
    calibration = Calibration.load(out)
    assert isinstance(calibration.corners, Scale)
    truth = probox.read_truth(demo_files / "truth.json")
    found = probox.read_detections(demo_files / "probabilistic.json", truth)
    inside = probox.evaluate(truth, calibration.apply(found, truth), measures=["pdq"]).pdq
    gain = probox.calibration.fit(truth, found).gain
    assert gain is not None
    change = gain.changes["PDQ"]
    assert inside != change.after
    cells = lines[1].split()
    assert cells[1:4] == [f"{100 * change.before:.2f}", f"{100 * change.after:.2f}", f"{100 * change.gain:+.2f}"]
    assert cells[7] == f"{100 * gain.over_constant['PDQ'].before:.2f}"
    assert f"{inside:.6f}" not in shown


def test_detections_can_be_held_out(demo_files: Path, tmp_path: Path) -> None:
    truth, probabilistic = demo_files / "truth.json", demo_files / "probabilistic.json"
    cal, kept = tmp_path / "cal.json", tmp_path / "kept.coco.json"
    status, shown, said = run("fit", truth, probabilistic, "--out", cal, "--held-out", kept, "--json")
    assert status == 0, said
    told = json.loads(shown)
    assert told["held_out_file"] == str(kept)
    # The file scores as reported for held-out images.
    assert probox.evaluate(truth, kept, measures=["pdq"]).pdq == pytest.approx(
        told["held_out"]["gain"]["PDQ"]["after"], abs=1e-9
    )
    before = kept.read_bytes()
    for other in (probabilistic, truth, cal):
        assert run("fit", truth, probabilistic, "--out", cal, "--held-out", other)[0] == 1
    status, _, said = run("fit", truth, probabilistic, "--image-ids", "1", "--out", cal, "--held-out", kept)
    assert status == 1
    assert said == "probox: --held-out: no held-out gain: cross-validation needs two or more images; leave it out\n"
    assert kept.read_bytes() == before


def test_fit_as_json(demo_files: Path, tmp_path: Path) -> None:
    words = (
        "fit",
        demo_files / "truth.json",
        demo_files / "deterministic.json",
        "--method",
        "constant",
        "--label-method",
        "temperature",
    )
    status, shown, said = run(*words, "--out", tmp_path / "c.json", "--json")
    assert (status, said) == (0, "")
    content = json.loads(shown)
    assert set(content) == {"out", "notes", "calibration", "held_out"}
    assert content["held_out"]["gain"]["NLL"]["before"] is None, "boxes without covariance have no NLL"
    low, high = content["held_out"]["gain"]["PDQ"]["interval"]
    assert 0.1 < low < content["held_out"]["gain"]["PDQ"]["gain"] < high
    assert content["held_out"]["over_constant"] == {}
    assert content["calibration"] == json.loads((tmp_path / "c.json").read_text())
    assert isinstance(Calibration.load(tmp_path / "c.json").corners, Constant)


def test_boxes_without_covariance_are_refused_with_a_fix(demo_files: Path, tmp_path: Path) -> None:
    deterministic = demo_files / "deterministic.json"
    status, shown, said = run("fit", demo_files / "truth.json", deterministic, "--out", tmp_path / "c.json")
    assert (status, shown) == (1, "")
    assert (
        said
        == f"probox: {deterministic}: expected covariances, but got none; use --method constant or --method learned\n"
    )
    assert not (tmp_path / "c.json").exists()


def test_conformal_is_for_coverage(demo_files: Path, tmp_path: Path) -> None:
    words = (
        "fit",
        demo_files / "truth.json",
        demo_files / "probabilistic.json",
        "--method",
        "conformal",
        "--target",
        "pdq",
    )
    status, _, said = run(*words, "--out", tmp_path / "c.json")
    assert status == 1
    assert said == (
        "probox: expected target coverage for method conformal, but got pdq; omit --target, or use another --method\n"
    )


def test_own_files_stay(demo_files: Path, tmp_path: Path) -> None:
    for name in ("truth.json", "probabilistic.json"):
        shutil.copy(demo_files / name, tmp_path)
    truth, probabilistic, cal = tmp_path / "truth.json", tmp_path / "probabilistic.json", tmp_path / "cal.json"
    assert "does not contain a calibration" in run("fit", truth, probabilistic, "--out", truth)[2]
    assert (
        "the folder of this file does not exist"
        in run("fit", truth, probabilistic, "--out", tmp_path / "no" / "c.json")[2]
    )
    Calibration(corners=Scale(2.0)).save(cal)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for out in (cal, probabilistic, truth):
        status, _, said = run("apply", cal, probabilistic, "--truth", truth, "--out", out)
        assert status == 1
        assert "would replace what it is made from" in said
    (tmp_path / "mine.json").write_text('{"mine": 1}')
    assert "does not contain detections" in run("apply", cal, probabilistic, "--out", tmp_path / "mine.json")[2]
    (tmp_path / "mine.json").unlink()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.fixture
def formats(demo_files: Path, tmp_path: Path) -> dict[str, Path]:
    """Return the probabilistic detector's file in each format."""
    files = {"coco": demo_files / "probabilistic.json"}
    for form, name in (("rvc1", "probabilistic.rvc1.json"), ("parquet", "probabilistic.parquet")):
        files[form] = tmp_path / name
        words = ["convert", str(files["coco"]), str(files[form]), "--truth", str(demo_files / "truth.json")]
        assert CliRunner().invoke(cli, words).exit_code == 0
    return files


@pytest.mark.parametrize("given", ["coco", "rvc1", "parquet"])
def test_apply_needs_no_truth(formats: dict[str, Path], demo_files: Path, tmp_path: Path, given: str) -> None:
    truth = probox.read_truth(demo_files / "truth.json")
    classes = tuple(zip(truth.classes, truth.dataset.category_ids.tolist(), strict=True))
    Calibration(corners=ClassScale(3.0, (("ring", 2.0),)), classes=classes).save(tmp_path / "cal.json")
    before = probox.read_detections(formats[given], truth)
    out = tmp_path / ("out.parquet" if given == "parquet" else "out.json.gz")
    status, shown, said = run("apply", tmp_path / "cal.json", formats[given], "--out", out)
    assert (status, shown) == (0, "")
    assert str(Note("classes-not-fitted", 6, what="note: corners", names="star, banana, pebble, ...")) in said
    assert f"wrote 167 detections to {out}" in said
    after = probox.read_detections(out, truth)
    factor = np.where(np.array(before.classes)[before.labels] == "ring", 4.0, 9.0)[:, None, None, None]
    assert before.covariances is not None
    assert after.covariances == pytest.approx(before.covariances * factor)
    for name in ("image_ids", "boxes", "label_probs", "scores", "labels", "extents"):
        assert (getattr(after, name) == getattr(before, name)).all(), name
    with_truth = tmp_path / out.name.replace("out", "other")
    assert run("apply", tmp_path / "cal.json", formats[given], "--out", with_truth, "--truth",
               demo_files / "truth.json")[0] == 0  # fmt: skip
    if given != "parquet":
        assert with_truth.read_bytes() == out.read_bytes()


def test_another_format_needs_the_truth(formats: dict[str, Path], demo_files: Path, tmp_path: Path) -> None:
    Calibration(corners=Scale(2.0)).save(tmp_path / "cal.json")
    words = ("apply", tmp_path / "cal.json", formats["coco"], "--out", tmp_path / "out.rvc1.json")
    assert run(*words)[2] == (
        f"probox: {formats['coco']}: cannot be written as RVC1 without the images and classes of the ground truth; "
        "add --truth FILE\n"
    )
    status, shown, _ = run(*words, "--truth", demo_files / "truth.json", "--json")
    assert status == 0
    assert json.loads(shown)["format"] == "rvc1"
    assert "unknown format of this file name" in run(*words[:3], "--out", tmp_path / "x.txt")[2]


def test_coco_results_of_other_categories(formats: dict[str, Path], tmp_path: Path) -> None:
    Calibration(corners=Scale(2.0), classes=(("cup", 99),)).save(tmp_path / "cal.json")
    status, _, said = run("apply", tmp_path / "cal.json", formats["coco"], "--out", tmp_path / "o.json")
    assert status == 1
    assert said.count("\n") == 1
    assert "category" in said


def test_heatmaps_need_the_truth_and_stay(golden_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "maps.json").write_text(
        json.dumps({"classes": ["cup"], "detections": [[{"label_probs": [1.0], "masks_file": "a.npy", "mask_id": 0}]]})
    )
    np.save(tmp_path / "a.npy", np.ones((1, 20, 30), np.float32))
    Calibration(corners=Constant(0.1)).save(tmp_path / "cal.json")
    words = ("apply", tmp_path / "cal.json", tmp_path / "maps.json", "--out", tmp_path / "out.json")
    status, _, said = run(*words)
    assert status == 1
    assert "--truth FILE" in said
    (tmp_path / "truth.json").write_text(
        json.dumps({
            "images": [{"id": 1, "width": 30, "height": 20, "file_name": "a.jpg"}],
            "categories": [{"id": 1, "name": "cup"}], "annotations": [],
        })
    )  # fmt: skip
    status, _, said = run(*words, "--truth", tmp_path / "truth.json")
    assert status == 0, said
    assert str(Note("heatmaps-kept", 1, total=1)) in said


def test_help_names_every_choice() -> None:
    shown = CliRunner().invoke(cli, ["calibrate", "fit", "--help"]).output
    for word in ("edge-scale", "learned", "conformal", "temperature", "coverage", "--alpha", "baseline", "held-out"):
        assert word in shown


def test_a_missing_or_damaged_file_is_one_line(demo_files: Path, tmp_path: Path) -> None:
    status, _, said = run(
        "apply", tmp_path / "no.json", demo_files / "probabilistic.json", "--out", tmp_path / "o.json"
    )
    assert (status, said.count("\n")) == (1, 1)
    status, _, said = run(
        "apply", demo_files / "truth.json", demo_files / "probabilistic.json", "--out", tmp_path / "o.json"
    )
    assert (status, said.count("\n")) == (1, 1)
    assert 'expected a calibration with "format"' in said


def test_the_page_shows_what_is_printed(demo_files: Path, tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "calibration.md").read_text(encoding="utf-8")
    table = page.split("```text\n")[1].split("```")[0].splitlines()
    words = next(line for line in page.splitlines() if line.startswith("probox calibrate fit")).split()[2:]
    words = [word.replace("demo/", f"{demo_files}/") for word in words if not word.endswith("calibration.json")]
    status, shown, said = run(*words, tmp_path / "c.json")
    assert status == 0
    assert shown.splitlines() == table[:-1]
    assert table[-1] in said.splitlines()
