"""`probox demo`: no arguments, no downloads, a table and a sentence; files that hold what was scored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import probox
from probox.cli import main
from probox.demo import Demo, make_demo


@pytest.fixture(scope="module")
def demo() -> Demo:
    return make_demo()


def run(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    return int(exit_.value.code or 0)


def test_prints_the_papers_table_and_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["mAP", "1-moLRP", "PDQ", "pPDQ", "Sp", "Lbl", "FG", "BG", "TP", "FP", "FN"]
    assert lines[2].split()[0] == "deterministic"
    assert lines[3].split()[0] == "probabilistic"
    assert "same boxes" in lines[5]


def test_json_is_one_object_and_the_unsure_detector_wins_by_its_corners(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    deterministic, probabilistic = (row["summary"] for row in answer["results"])
    assert probabilistic["mAP"] == deterministic["mAP"]
    assert probabilistic["PDQ"] > 1.3 * deterministic["PDQ"]
    assert probabilistic["spatial"] > 1.5 * deterministic["spatial"]
    assert abs(probabilistic["label"] - deterministic["label"]) < 0.02


def test_both_detectors_name_the_same_boxes_and_labels(demo: Demo) -> None:
    deterministic, probabilistic = demo.detectors.values()
    np.testing.assert_array_equal(deterministic.boxes, probabilistic.boxes)
    np.testing.assert_array_equal(deterministic.label_probs, probabilistic.label_probs)
    assert deterministic.covariances is None
    assert probabilistic.covariances is not None


def test_covariances_match_the_real_errors() -> None:
    """Over many scenes the squared Mahalanobis distance of a corner's error is 2 on average, as it must be."""
    many = make_demo(images=60, seed=11)
    found = many.detectors["probabilistic"]
    result = probox.evaluate(many.truth, found)
    table = result.detections
    hit = np.flatnonzero((table.partners >= 0) & (table.quality("label") > 0.5))
    error = table.boxes[hit] - result.objects.mask_boxes[table.partners[hit]]
    distances = []
    for corner in range(2):
        # Corners at the image's border are put there, not drawn; leave them out.
        spread = table.covariances[hit, corner]
        drawn = (spread[:, 0, 0] != 0.25) & (spread[:, 1, 1] != 0.25)
        solved = np.linalg.solve(spread[drawn], error[drawn, 2 * corner : 2 * corner + 2, None])[..., 0]
        distances.append((error[drawn, 2 * corner : 2 * corner + 2] * solved).sum(axis=1))
    assert np.concatenate(distances).mean() == pytest.approx(2.0, abs=0.2)


def test_the_scene_has_variety(demo: Demo) -> None:
    truth = demo.truth
    assert set(truth.labels.tolist()) == set(range(len(truth.classes)))
    right = truth.dataset.widths[truth.image_rows] - 1
    bottom = truth.dataset.heights[truth.image_rows] - 1
    boxes = truth.masks.boxes
    at_border = (boxes[:, :2] == 0).any(axis=1) | (boxes[:, 2] == right) | (boxes[:, 3] == bottom)
    assert at_border.sum() >= 8
    ring = truth.classes.index("ring")
    row = int(np.flatnonzero((truth.labels == ring) & ~at_border)[0])
    x0, y0, x1, y1 = boxes[row]
    image = int(truth.image_rows[row])
    mask = truth.masks.to_array(row, int(truth.dataset.heights[image]), int(truth.dataset.widths[image]))
    assert not mask[(y0 + y1) // 2, (x0 + x1) // 2]  # a ring has a hole
    verdicts = probox.evaluate(truth, demo.detectors["probabilistic"]).summary()
    assert min(verdicts["TP"], verdicts["FP"], verdicts["FN"]) > 5


def test_same_seed_same_demo_another_seed_another(demo: Demo) -> None:
    again, other = make_demo(), make_demo(seed=5)
    np.testing.assert_array_equal(demo.truth.masks.runs, again.truth.masks.runs)
    np.testing.assert_array_equal(demo.detectors["deterministic"].boxes, again.detectors["deterministic"].boxes)
    assert len(other.truth) != len(demo.truth) or not np.array_equal(other.truth.boxes, demo.truth.boxes)


def test_picture_shows_the_things(demo: Demo) -> None:
    picture = demo.picture(3)
    assert picture.shape == (480, 640, 3)
    assert picture.dtype == np.uint8
    masks = demo.truth.masks
    rows = np.flatnonzero(demo.truth.image_rows == 2)
    things = np.any([masks.to_array(int(row), 480, 640) for row in rows], axis=0)
    assert picture[things].std() > picture[~things].std()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # pycocotools' own
def test_saved_files_hold_what_was_scored(demo: Demo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL")
    folder = tmp_path / "a demo"
    assert run(["demo", "--save", str(folder)]) == 0
    assert "probox evaluate" in capsys.readouterr().err
    assert len(list((folder / "images").glob("*.jpg"))) == len(demo.truth.image_ids)
    from pycocotools.coco import COCO

    coco = COCO(str(folder / "truth.json"))
    for row, annotation in enumerate(coco.loadAnns(sorted(coco.getAnnIds()))):
        image = int(demo.truth.image_rows[row])
        height, width = int(demo.truth.dataset.heights[image]), int(demo.truth.dataset.widths[image])
        mask = demo.truth.masks.to_array(row, height, width)
        np.testing.assert_array_equal(coco.annToMask(annotation).astype(bool), mask)
    probabilistic = json.loads((folder / "probabilistic.json").read_text())
    found = demo.detectors["probabilistic"]
    assert len(probabilistic) == len(found)
    np.testing.assert_array_equal([entry["covars"] for entry in probabilistic], found.covariances)


def test_loads_nothing_that_it_does_not_need() -> None:
    program = (
        "import sys\nfrom probox.cli import main\n"
        "try:\n main(['demo'])\nexcept SystemExit:\n pass\n"
        "assert not {'matplotlib', 'PIL', 'onnx', 'onnxruntime', 'pyarrow'} & set(sys.modules), 'loaded too much'"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
