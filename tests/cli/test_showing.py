"""`probox draw`, `probox plot` and `probox report`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.amounts import others_slow
from tests.cli.in_process import run
from tests.pictures.test_saving import font_kinds

import probox
from probox import Detections, Evaluation, GroundTruth, evaluate
from probox.plots import PLOTS


def messages(answer: Any) -> list[str]:
    """Return the sentences of an answer's notes."""
    return [note["message"] for note in answer["notes"]]


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def draw(*arguments: object) -> dict[str, object]:
    code, out, err = run("draw", *arguments, "--json")
    assert (code, err) == (0, "")
    answer: dict[str, object] = json.loads(out)
    return answer


def ids(answer: dict[str, object]) -> list[int]:
    return [picture["image_id"] for picture in answer["pictures"]]  # type: ignore[attr-defined]


@pytest.mark.parametrize("ending", others_slow(["png", "svg", "pdf"]))
def test_draws_one_image_in_every_format(demo_files: Path, tmp_path: Path, ending: str) -> None:
    source, photos = demo_files / "results" / "probabilistic", demo_files / "images"
    answer = draw(source, "--images", photos, "--out", tmp_path, "--image", "scene-05.jpg", "--format", ending)
    assert ids(answer) == [5]
    data = (tmp_path / f"scene-05.{ending}").read_bytes()
    assert data.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])
    if ending == "png":
        height, width, _ = pixels(tmp_path / "scene-05.png").shape
        assert width / height == pytest.approx(480 / 640, rel=0.01)


@pytest.mark.parametrize(
    ("choice", "column"), [("worst", "lost"), ("best", "PDQ"), ("false-positives", "FP"), ("missed", "FN")]
)
def test_chooses_images(
    demo_files: Path, results: dict[str, Evaluation], tmp_path: Path,
    choice: str, column: str,
) -> None:  # fmt: skip
    options = ["--show-above", 0, "--label-text", "none"]
    answer = draw(demo_files / "results" / "probabilistic", "--out", tmp_path, f"--{choice}", 2, *options)
    table = results["probabilistic"].per_image().columns
    lost = table["TP"] + table["FP"] + table["FN"] - table["sum_pPDQ"]
    order = np.lexsort((table["image_id"], -(lost if column == "lost" else table[column])))[:2]
    assert ids(answer) == table["image_id"][order].tolist()


def test_worst_skips_images_without_lost_points(tmp_path: Path) -> None:
    """Image 1 has nothing in it, image 2 is perfect, image 3 has one missed object and 4 a false positive."""
    every = [1, 2, 3, 4]
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys(every, (64, 48)), [2, 3], [[10, 10, 40, 40]] * 2, [0, 0])
    boxes = [[10, 10, 40, 40], [10, 10, 40, 40]]
    evaluate(truth, Detections(classes=["cup"], image_ids=[2, 4], boxes=boxes, label_probs=[[1.0], [1.0]])).save(
        tmp_path / "r"
    )
    answer = draw(tmp_path / "r", "--out", tmp_path / "p", "--worst", 3, "--label-text", "none")
    assert ids(answer) == [3, 4]
    assert messages(answer) == ["--worst: requested 3 images with lost points, found 2"]
    (perfect,) = [draw(tmp_path / "r", "--out", tmp_path / "p", "--best", 1, "--label-text", "none")]
    assert (ids(perfect), messages(perfect)) == ([2], [])


def test_worst_images_at_the_drawn_threshold(tmp_path: Path) -> None:
    """Image 1 has only six false positives of 0.1: it lost most points if all detections count."""
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48), 2: (64, 48)}, [2], [[10, 10, 40, 40]], [0])
    boxes = [[10 + k, 10, 40 + k, 40] for k in range(6)] + [[10, 10, 40, 44]]
    probs = [[0.1]] * 6 + [[0.6]]
    found = Detections(classes=["cup"], image_ids=[1] * 6 + [2], boxes=boxes, label_probs=probs)
    evaluate(truth, found).save(tmp_path / "r")
    answer = draw(tmp_path / "r", "--out", tmp_path / "p", "--worst", 1, "--label-text", "none")
    assert ids(answer) == [2]
    assert answer["convention"]["label_threshold"] == pytest.approx(0.1)  # type: ignore[index]
    assert (
        "only detections above 0.1 are matched and drawn: PDQ of these images is highest there (" in messages(answer)[0]
    )
    everything = draw(tmp_path / "r", "--out", tmp_path / "p", "--worst", 1, "--show-above", 0)
    assert (ids(everything), messages(everything)) == ([1], [])


def test_draws_detections_with_and_without_ground_truth(demo_files: Path, tmp_path: Path) -> None:
    photos, found = demo_files / "images", demo_files / "probabilistic.json"
    alone = draw(found, "--images", photos, "--out", tmp_path / "alone", "--image", 3)
    assert ids(alone) == [3]
    assert (tmp_path / "alone" / "scene-03.png").is_file()
    plain = draw(found, "--out", tmp_path / "plain", "--crowded", 1)
    assert len(ids(plain)) == 1
    judged = draw(found, "--truth", demo_files / "truth.json", "--out", tmp_path / "judged", "--missed", 1)
    assert len(ids(judged)) == 1


@pytest.mark.slow
def test_limit_of_pictures(demo_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probox.cli.draw.LIMIT", 2)
    plain = [demo_files / "results" / "probabilistic", "--label-text", "none", "--corners", "none", "--show-above", 0]
    few = draw(*plain, "--out", tmp_path / "few")
    assert ids(few) == [1, 2]
    assert messages(few) == ["drew the first 2 of 12 images; use --all, --limit N, --worst N or --image ID for others"]
    assert ids(draw(*plain, "--out", tmp_path / "more", "--limit", 3)) == [1, 2, 3]
    everything = draw(*plain, "--out", tmp_path / "all", "--all", "--threads", 1)
    assert len(ids(everything)) == 12
    assert messages(everything) == []
    alone = draw(demo_files / "probabilistic.json", "--label-text", "none", "--out", tmp_path / "alone")
    assert ids(alone) == [1, 2]
    assert "drew the first 2 of 12 images" in messages(alone)[-1]
    code, _, err = run("draw", *plain, "--out", tmp_path, "--all", "--limit", 3)
    assert code == 2
    assert "--limit" in err


def save_uncertain_result(folder: Path) -> Path:
    """Save a result: 30 of 42 images with a true positive of 0.1 and false positives of 0.2 and 0.9."""
    every = list(range(1, 43))
    seen = every[12:]
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys(every, (64, 48)), every, [[10, 10, 40, 40]] * 42, [0] * 42)
    boxes = [[10, 10, 40, 40], [42, 2, 60, 20], [42, 22, 60, 46]] * 30
    found = Detections(
        classes=["cup"], image_ids=np.repeat(seen, 3), boxes=boxes, label_probs=np.tile([[0.1], [0.2], [0.9]], (30, 1))
    )
    evaluate(truth, found).save(folder)
    return folder


def test_note_on_detections_that_are_not_drawn(tmp_path: Path) -> None:
    source = save_uncertain_result(tmp_path / "r")
    two = ["--image", 13, "--image", 14, "--label-text", "none"]
    answer = draw(source, "--out", tmp_path / "a", *two, "--show-above", 0.3)
    assert messages(answer) == [
        "2 detections in 2 pictures are not drawn: pictures show matched ones and those above 0.3; "
        "--show-above 0 draws all"
    ]
    assert answer["show_above"] == 0.3
    one = draw(source, "--out", tmp_path / "a", *two[:2], "--show-above", 0.3)
    assert messages(one)[0].startswith("1 detection in 1 picture is not drawn: ")
    assert answer["summary"]["FP"] == 60  # type: ignore[index]
    everything = draw(source, "--out", tmp_path / "b", "--image", 13, "--show-above", 0, "--label-text", "none")
    assert messages(everything) == []
    some, every = (pixels(tmp_path / name / "image-13.png") for name in "ab")
    assert not np.array_equal(some, every)
    rematched = draw(source, "--out", tmp_path / "c", "--image", 13, "--label-threshold", 0.15, "--label-text", "none")
    assert (messages(rematched), rematched["show_above"]) == ([], None)  # draws all that remain
    assert rematched["summary"]["TP"] == 0  # type: ignore[index]


def test_at_most_20_detections_are_drawn(tmp_path: Path) -> None:
    """25 false positives of 0.5 to 0.74: with ground truth and without it, 20 are drawn."""
    entries = [
        {"image_id": 1, "category_id": 1, "bbox": [42 + k % 5, 2 + k, 14, 14], "score": 0.5 + k / 100}
        for k in range(25)
    ]
    (tmp_path / "found.json").write_text(json.dumps(entries))
    truth = {
        "images": [{"id": 1, "width": 64, "height": 48, "file_name": "1.jpg"}],
        "categories": [{"id": 1, "name": "cup"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 30, 30], "area": 900, "iscrowd": 0}
        ],
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    both = ["--out", tmp_path / "p", "--label-text", "none"]
    alone = draw(tmp_path / "found.json", *both)
    assert messages(alone) == [
        "5 detections in 1 picture are not drawn: pictures show at most 20 each, above 0.3; --show-above 0 draws all"
    ]
    judged = draw(tmp_path / "found.json", "--truth", tmp_path / "truth.json", "--label-threshold", 0.1, *both)
    assert messages(judged) == [
        "5 detections in 1 picture are not drawn: pictures show at most 20 each; --show-above 0 draws all"
    ]
    kept = draw(tmp_path / "found.json", "--label-threshold", 0.71, *both)
    assert messages(kept) == []


def test_images_without_detections_are_skipped(tmp_path: Path) -> None:
    source = save_uncertain_result(tmp_path / "r")
    plain = ["--label-text", "none", "--corners", "none", "--show-above", 0]
    worst = draw(source, "--out", tmp_path / "a", "--worst", 1, *plain)
    assert ids(worst) == [13]
    assert "skipped 12 images without detections: the detector probably ran on the others only;" in messages(worst)[0]
    assert ids(draw(source, "--out", tmp_path / "a", "--limit", 1, *plain)) == [13]
    missed = draw(source, "--out", tmp_path / "a", "--missed", 1, *plain)
    assert (ids(missed), messages(missed)) == ([1], [])
    named = draw(source, "--out", tmp_path / "a", "--image", 2, *plain)
    assert (ids(named), messages(named)) == ([2], [])
    strict = draw(source, "--out", tmp_path / "a", "--worst", 1, "--label-threshold", 0.95, "--label-text", "none")
    assert ids(strict) == [13]  # a threshold does not skip images


@pytest.mark.slow
def test_examples_are_drawn(demo_files: Path, tmp_path: Path) -> None:
    source = demo_files / "results" / "probabilistic"
    answer = draw(source, "--images", demo_files / "images", "--out", tmp_path / "s", "--examples", 1)
    told = answer["examples"]
    expected = list(probox.example_detections(Evaluation.load(source), 1))
    assert [story["caption"] for story in told] == [story.caption for story in expected]  # type: ignore[attr-defined]
    page = (tmp_path / "s" / "index.html").read_text(encoding="utf-8")
    for story in told:  # type: ignore[attr-defined]
        assert Path(story["file"]).read_bytes().startswith(b"\x89PNG")
        assert f'src="{Path(story["file"]).name}"' in page
        assert story["caption"].split(";")[0] in page
    assert "http" not in page
    (tmp_path / "none").mkdir()
    code, _, err = run("draw", source, "--images", tmp_path / "none", "--out", tmp_path / "v", "--examples", 1)
    bare = list(dict.fromkeys(story.image_id for story in expected))
    assert code == 0
    place = f"{tmp_path / 'none'} (first: {bare[0]})"
    assert f"note: {len(bare)} images without a photo in {place}: drawn on a plain background" in err
    assert err.count("without a photo") == 1

    code, _, err = run("draw", source, "--out", tmp_path / "t", "--format", "svg", "--examples")
    assert code == 0
    assert "examples written to" in err
    for path in (tmp_path / "t").glob("*.svg"):
        assert ">overconfident" in path.read_text() or "</text>" in path.read_text()


def test_draws_rvc1_detections_alone(golden_dir: Path, tmp_path: Path) -> None:
    answer = draw(golden_dir / "mixed" / "detections.json", "--out", tmp_path, "--crowded", 1)
    assert len(ids(answer)) == 1
    maps = draw(golden_dir / "probseg" / "detections.json", "--out", tmp_path, "--heatmap", "--crowded", 1)
    assert len(ids(maps)) == 1


def test_heatmaps_are_read_again(golden_dir: Path, tmp_path: Path) -> None:
    folder = golden_dir / "probseg"
    truth = probox.read_truth(folder / "ground_truth.json")
    found = probox.read_detections(folder / "detections.json", truth)
    probox.evaluate(truth, found).save(tmp_path / "r")
    with_maps = ["--detections", folder / "detections.json"]
    draw(tmp_path / "r", "--out", tmp_path / "a", "--heatmap", "--best", 1, *with_maps)
    draw(tmp_path / "r", "--out", tmp_path / "b", "--heatmap", "--best", 1)
    (one,), (other,) = list((tmp_path / "a").glob("*.png")), list((tmp_path / "b").glob("*.png"))
    assert not np.array_equal(pixels(one), pixels(other))
    code, _, err = run("report", tmp_path / "r", "--out", tmp_path / "page", *with_maps)
    assert code == 0
    assert "data:image/png" in (tmp_path / "page" / "data" / "chunk-0.js").read_text()
    code, _, err = run("report", tmp_path / "r", "--out", tmp_path / "page", *with_maps, *with_maps)
    assert code == 1
    assert "--detections" in err


@pytest.mark.parametrize("replaced", [False, True])
def test_missing_and_damaged_photos(
    demo_files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    replaced: bool,
) -> None:
    if replaced:  # as ultralytics does, for all who use Pillow in the same process

        def opened(file: Any, *more: Any, own: Any = Image.open) -> Any:
            try:
                return own(file, *more)
            except Image.UnidentifiedImageError:
                raise ModuleNotFoundError("No module named 'pi_heif'") from None

        monkeypatch.setattr("PIL.Image.open", opened)
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "scene-01.jpg").write_bytes(b"\xff\xd8\xff not a photo")
    source = demo_files / "results" / "probabilistic"
    two = ["--image", 1, "--image", 2, "--show-above", 0]
    answer = draw(source, "--images", photos, "--out", tmp_path / "p", *two)
    assert ids(answer) == [1, 2]
    assert "without a photo" in messages(answer)[0]
    assert "scene-01.jpg" in messages(answer)[1]
    code, out, _ = run("report", source, "--images", photos, "--out", tmp_path / "r", "--json")
    assert code == 0
    assert len(json.loads(out)["notes"]) == 2


@pytest.mark.slow
def test_plots_all(demo_files: Path, tmp_path: Path) -> None:
    code, out, _ = run("plot", demo_files / "results", "--out", tmp_path, "--dark", "--json")
    assert code == 0
    assert [plot["name"] for plot in json.loads(out)["plots"]] == list(PLOTS)
    for name in PLOTS:
        corner = pixels(tmp_path / f"{name}.png")[2, 2]
        assert corner.max() < 60
    code, _, err = run("plot", demo_files / "results" / "deterministic", "--out", tmp_path, "--format", "svg")
    assert code == 0
    assert f"wrote {len(PLOTS) - 1} plots to {tmp_path}" in err
    assert "skipped" not in err  # one result has no differences
    for name in set(PLOTS) - {"difference"}:
        assert f">{PLOTS[name].title}" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


def keep_plots(monkeypatch: pytest.MonkeyPatch, *kept: str) -> None:
    """Remove all other plots, which take seconds to draw."""
    assert set(kept) <= set(PLOTS)
    for name in set(PLOTS) - set(kept):
        monkeypatch.delitem(PLOTS, name)


@pytest.mark.slow
def test_plots_in_pdf_have_fonts_that_publishers_take(
    demo_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_plots(monkeypatch, "thresholds", "confusion", "pit")
    code, _, _ = run("plot", demo_files / "results" / "probabilistic", "--out", tmp_path, "--format", "pdf")
    assert code == 0
    written = list(tmp_path.glob("*.pdf"))
    assert len(written) == 3
    for path in written:
        kinds = font_kinds(path.read_bytes())
        assert "Type3" not in kinds
        assert {"CIDFontType2", "FontFile2"} <= kinds


def test_skipped_plots_are_reported(
    demo_files: Path, tmp_path: Path, results: dict[str, Evaluation],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    keep_plots(monkeypatch, "thresholds", "difference")
    results["probabilistic"].select_images(results["probabilistic"].dataset.image_ids[1:]).save(tmp_path / "few")
    both = (demo_files / "results" / "deterministic", tmp_path / "few")
    code, _, err = run("plot", *both, "--out", tmp_path / "plots")
    assert code == 0
    (line,) = [line for line in err.splitlines() if line.startswith("note: ")]
    assert line.startswith("note: skipped plot difference: few cannot be compared with deterministic: image ")
    code, out, _ = run("plot", *both, "--out", tmp_path / "plots", "--json")
    assert [plot["name"] for plot in json.loads(out)["left_out"]] == ["difference"]


def test_report_goes_into_a_new_folder_or_that_of_an_earlier_one(demo_files: Path, tmp_path: Path) -> None:
    source, out = demo_files / "results", tmp_path / "my report"
    code, text, _ = run("report", source, "--images", demo_files / "images", "--out", out, "--json")
    assert code == 0
    answer = json.loads(text)
    assert answer["results"] == ["deterministic", "probabilistic"]
    assert answer["bytes"] == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert len(list((out / "photos").iterdir())) == 12
    code, _, _ = run("report", source, "--out", out)
    assert code == 0
    assert not (out / "photos").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    code, _, err = run("report", source, "--out", tmp_path / "full")
    assert code == 1
    assert "is not empty" in err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.txt"]


def test_report_shows_masks_of_the_ground_truth_where_boxes_were_scored(demo_files: Path, tmp_path: Path) -> None:
    truth, found = demo_files / "truth.json", demo_files / "deterministic.json"
    assert run("evaluate", truth, found, "--box-truth", "--out", tmp_path / "boxes")[0] == 0
    assert run("report", tmp_path / "boxes", "--out", tmp_path / "a")[0] == 0
    assert run("report", tmp_path / "boxes", "--truth", truth, "--out", tmp_path / "b")[0] == 0
    sizes = [len((tmp_path / name / "data" / "chunk-0.js").read_bytes()) for name in "ab"]
    assert sizes[1] > 2 * sizes[0]  # run lengths of masks against boxes


def test_report_refuses_results_of_different_ground_truth(demo_files: Path, golden_dir: Path, tmp_path: Path) -> None:
    truth = probox.read_truth(golden_dir / "bbox" / "ground_truth.json")
    found = probox.read_detections(golden_dir / "bbox" / "detections.json", truth)
    probox.evaluate(truth, found).save(tmp_path / "other")
    code, _, err = run("report", demo_files / "results" / "deterministic", tmp_path / "other", "--out", tmp_path / "r")
    assert code == 1
    assert "'deterministic' and 'other' were evaluated on different ground truth; " in err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("draw", "contains no results; give a folder written by `probox evaluate --out`, or add --truth FILE"),
        ("plot", "evaluation.json"),
        ("report", "evaluation.json"),
    ],
)
def test_wrong_folders_are_reported_in_one_line(tmp_path: Path, command: str, problem: str) -> None:
    (tmp_path / "empty").mkdir()
    code, out, err = run(command, tmp_path / "empty", "--out", tmp_path / "out")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert problem in err
    assert not (tmp_path / "out").exists()
    code, _, err = run(command, tmp_path / "missing", "--out", tmp_path / "out")
    assert code == 1
    assert err.count("\n") == 1


def test_unknown_image(demo_files: Path, tmp_path: Path) -> None:
    code, _, err = run("draw", demo_files / "results" / "deterministic", "--out", tmp_path, "--image", "77")
    assert code == 1
    assert "'77'" in err


def test_a_folder_without_any_photo_replaces_no_report(demo_files: Path, tmp_path: Path) -> None:
    source = demo_files / "results" / "probabilistic"
    assert run("report", source, "--images", demo_files / "images", "--out", tmp_path / "r")[0] == 0
    before = sorted(path.name for path in (tmp_path / "r").rglob("*"))
    (tmp_path / "empty").mkdir()
    code, _, err = run("report", source, "--images", tmp_path / "empty", "--out", tmp_path / "r")
    assert code == 1
    assert "has no photo of any of the 12 images" in err
    assert sorted(path.name for path in (tmp_path / "r").rglob("*")) == before


@pytest.mark.slow
def test_class_names_with_missing_letters_and_control_characters(tmp_path: Path) -> None:
    """No warnings about fonts, and no control characters in messages."""
    truth = GroundTruth.from_boxes(["\x1b[31m杯子\x07"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    found = Detections(classes=truth.classes, image_ids=[7], boxes=[[10, 20, 41, 40]], label_probs=[[0.9]])
    evaluate(truth, found).save(tmp_path / "r")
    for command in ("plot", "draw"):
        answer = subprocess.run(
            [sys.executable, "-c", "from probox.cli import main; main()", command, "r", "--out", command],
            cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        assert "\x1b" not in answer.stderr
        assert "Glyph" not in answer.stderr
