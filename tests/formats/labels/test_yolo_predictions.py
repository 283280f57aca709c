"""YOLO's predictions: what lines mean, the order of their numbers, and a sentence for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.readers import read_yolo

from probox import GroundTruth, InputError, read_detections, read_truth
from probox.analysis.validation import validate
from probox.formats.yolo import find_order
from probox.notes import Note
from probox.tables.labels import COCO_CLASSES

from .world import LABELS, data_set, header, make_scene, predicted, put, yolo


@pytest.fixture
def truth(tmp_path: Path) -> GroundTruth:
    return read_truth(data_set(tmp_path / "truth"))


def test_predictions(truth: GroundTruth, tmp_path: Path) -> None:
    """Class numbers are columns, the other classes share the rest, folders of runs are looked into."""
    folder = predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n0 0.25 0.25 0.125 0.125 0.01\n")
    for path in (folder, folder.parent):
        found = read_detections(path, truth)
        assert found.boxes.tolist() == [[24, 8, 40, 24], [12, 6, 20, 10]]
        assert found.labels.tolist() == [1, 0]
        np.testing.assert_allclose(found.label_probs, [[0.25, 0.75], [0.01, 0.99]])


def test_polygons_and_tracks(truth: GroundTruth, tmp_path: Path) -> None:
    folder = predicted(tmp_path, "1 0.25 0.25 0.75 0.25 0.75 0.75 0.9\n")
    found = read_detections(folder, truth)
    assert (found.boxes.tolist(), found.scores.tolist()) == ([[16, 8, 48, 24]], [0.9])
    assert Note("polygons", 1) in found.notes
    predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.9 1\n1 0.5 0.5 0.25 0.25 0.8 12\n")
    found = read_detections(folder, truth)
    assert (found.boxes[0].tolist(), found.scores.tolist()) == ([24, 8, 40, 24], [0.9, 0.8])


WRONG_PREDICTIONS = {
    "1 0.5 0.5 0.25 0.5": "line 1: expected a score beside class cx cy w h, but it is missing; run the detector with "
    "save_txt=True save_conf=True",
    "1 0.5 0.5": "line 1: expected class cx cy w h score, but got 3 numbers",
    "1 0.1 0.1 0.5 0.1 0.5 0.5": "line 1: expected class cx cy w h score, or class x1 y1 x2 y2 ... score, but got 7",
    "2 0.5 0.5 0.25 0.5 0.9": "line 1: class 2 is not among the 2 classes, 0 to 1",
    "dog 0.5 0.5 0.25 0.5 0.9": "line 1: expected the number of a class first",
    "1 320 240 64 48 0.9": "from 0 to 1, but got 320; divide pixels by the image's width and height",
    "1 0.5 0.5 0.25 nan 0.9": "line 1: expected finite numbers",
    "1 0.9 0.9 0.9 0.9 0.9": "with the score in the last column 1 of 1 box exceeds its image",
}


@pytest.mark.parametrize("text", WRONG_PREDICTIONS)
def test_wrong_predictions(truth: GroundTruth, tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_detections(predicted(tmp_path, text), truth)
    assert WRONG_PREDICTIONS[text] in str(caught.value)
    report = validate(tmp_path / "truth" / "data.yaml", predicted(tmp_path, text))
    assert not report.ok


def test_tracks_in_place_of_scores(truth: GroundTruth, tmp_path: Path) -> None:
    folder = predicted(tmp_path, "0 0.5 0.5 0.25 0.5 1\n1 0.25 0.25 0.5 0.125 2\n")
    with pytest.raises(InputError, match=r"line 2: expected a score from 0 to 1, but .* up to 2: tracks; .*save_conf"):
        read_yolo(folder, truth)
    predicted(tmp_path, "0 0.5 0.5 0.25 0.5 1\n" * 10)
    with pytest.raises(InputError, match="up to 1: tracks"):
        read_yolo(folder, truth)
    assert len(read_yolo(folder, truth, order="score-last")) == 10
    predicted(tmp_path, "0 0.5 0.5 0.25 0.5 1\n" * 9)
    assert read_yolo(folder, truth).scores.tolist() == [1.0] * 9


def test_an_empty_folder_is_called_empty(truth: GroundTruth, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InputError, match="this folder is empty; name the folder of text files"):
        read_detections(tmp_path / "nothing", truth)


def test_scores_that_are_none(truth: GroundTruth, tmp_path: Path) -> None:
    folder = predicted(tmp_path, "1 0.5 0.5 0.25 0.5 90\n")
    with pytest.raises(InputError, match="line 1: expected a score between 0 and 1, but got 90"):
        read_yolo(folder, truth, order="score-last")
    with pytest.raises(InputError, match="expected order to be one of score-last, score-first, but got 'first'"):
        read_yolo(folder, truth, order="first")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected one of score-last, score-first after the colon, but got 'first'"):
        read_detections(f"{folder}:first", truth)


def test_images_that_nobody_knows(truth: GroundTruth, tmp_path: Path) -> None:
    folder = predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n")
    predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n" * 2, "8.txt")
    predicted(tmp_path, "", "9.txt")
    found = read_detections(folder, truth)
    assert len(found) == 1
    assert Note("unknown-images", 2, images=1) in found.notes
    (folder / "7.txt").unlink()
    with pytest.raises(InputError, match=r"none of its 2 images is in the ground truth .*'8', in the ground truth"):
        read_detections(folder, truth)


def test_equal_names_in_two_folders(tmp_path: Path) -> None:
    for part in ("a", "b"):
        put(tmp_path / "images" / part / "7.png", header(64, 32))
        put(tmp_path / "labels" / part / "7.txt", LABELS)
    truth = read_truth(put(tmp_path / "data.yaml", "val: images\nnames: [cup, dog]\n"))
    assert truth.image_ids.tolist() == [1, 2]
    folder = predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n")
    with pytest.raises(InputError, match=r"'7' may be 'images/a/7.png' or 'images/b/7.png'; name images with their"):
        read_detections(folder, truth)
    (folder / "7.txt").unlink()
    predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n", "b/7.txt")
    assert read_detections(folder, truth).image_ids.tolist() == [2]


def test_truth_of_other_formats(tmp_path: Path) -> None:
    """COCO truth: names of files, or ids where there are none; class numbers count in order of category id."""
    coco = {
        "images": [{"id": 7, "width": 64, "height": 32}],
        "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "cup"}],
        "annotations": [],
    }
    folder = predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n", "000007.txt")
    found = read_detections(folder, read_truth(put(tmp_path / "c.json", json.dumps(coco))))
    assert (found.image_ids.tolist(), found.classes[found.labels[0]]) == ([7], "dog")
    assert any(note.code == "class-numbers" for note in found.notes)


def test_category_ids_are_those_of_results(tmp_path: Path) -> None:
    """Of COCO's 80 classes COCO's own, 1 to 90; of others, numbers from 1."""
    names = ", ".join(COCO_CLASSES)
    truth = read_truth(data_set(tmp_path, yaml=f"val: images/val\nnames: [{names}]\n"))
    assert (truth.dataset.category_ids[0], truth.dataset.category_ids[-1]) == (1, 90)
    result = [{"image_id": 7, "category_id": 90, "bbox": [1, 2, 3, 4], "score": 0.5}]
    found = read_detections(put(tmp_path / "predictions.json", json.dumps(result)), truth)
    assert found.classes[found.labels[0]] == "toothbrush"
    assert not read_detections(predicted(tmp_path, "79 0.5 0.5 0.1 0.1 0.9\n"), truth).notes
    plain = read_truth(data_set(tmp_path / "plain"))
    assert plain.dataset.category_ids.tolist() == [1, 2]


# --- the order of the numbers ---


def scene_numbers(order: str, folder: Path, seed: int) -> np.ndarray:
    _, found = yolo(make_scene(seed=seed, empty=False), folder, order=order)
    return np.array([line.split()[1:] for f in sorted(found.iterdir()) for line in f.read_text().splitlines()], float)


@pytest.mark.parametrize("order", ["score-last", "score-first"])
@pytest.mark.parametrize("seed", range(4))
def test_boxes_tell_the_order(tmp_path: Path, order: str, seed: int) -> None:
    numbers = scene_numbers(order, tmp_path, seed)
    assert find_order(numbers, np.arange(len(numbers))) == order


def lines_of(boxes: str, scores: str, outside: float, n: int = 400) -> np.ndarray:
    """Return cx, cy, w, h and scores, a share of the boxes reaching outside their images, and nothing sorted."""
    rng = np.random.default_rng(0)
    sides = {"small": (0.02, 0.15), "any": (0.02, 0.6), "large": (0.4, 0.98)}[boxes]
    w = rng.uniform(*sides, (n, 2))
    c = rng.uniform(w / 2, 1 - w / 2)
    stray = rng.permutation(n) < outside * n
    c[stray, 0] = rng.choice([0.0, 1.0], stray.sum())
    drawn = rng.uniform(0, 1, (n, 1))
    spread = {
        "deterministic": 0.8 + 0.19 * drawn,
        "above a quarter": 0.25 + 0.72 * drawn,
        "all": 0.001 + 0.9 * drawn**8,
    }
    return np.concatenate([c, w, spread[scores]], axis=1)


@pytest.mark.parametrize("outside", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("scores", ["deterministic", "above a quarter", "all"])
@pytest.mark.parametrize("boxes", ["small", "any", "large"])
def test_boxes_outside_do_not_decide(boxes: str, scores: str, outside: float) -> None:
    last = lines_of(boxes, scores, outside)
    files = np.arange(len(last))
    assert find_order(last[:, [4, 0, 1, 2, 3]], files) == "score-first"
    # Unsure detections fit in both orders: then it is ultralytics', and a note says so.
    assert find_order(last, files) in (("score-last", None) if scores == "all" else ("score-last",))


def test_one_box_outside_among_boxes_that_fit_both_ways(truth: GroundTruth, tmp_path: Path) -> None:
    both = "1 0.5 0.5 0.4 0.4 0.6\n1 0.52 0.5 0.4 0.41 0.7\n1 0.5 0.5 0.41 0.4 0.65\n"
    stray = "1 0.05 0.5 0.4 0.4 0.7\n"
    found = read_detections(predicted(tmp_path, both * 5 + stray), truth)
    assert sorted(set(found.scores.tolist())) == [0.6, 0.65, 0.7]
    said = (
        "score read from the last column (Ultralytics): 1 of 16 boxes exceeds its image; with the score second, 0 do. "
        "Use "
    )
    assert any(
        n.startswith(said) and n.endswith(":score-first if the score comes second.")
        for n in tuple(map(str, found.notes))
    )
    assert read_detections(predicted(tmp_path, stray), truth).scores.tolist() == [0.7]
    assert not any(
        "exceed" in n for n in read_detections(f"{predicted(tmp_path, both + stray)}:score-last", truth).notes
    )


def test_so_many_lines_tell_that_the_score_is_first() -> None:
    line = np.array([[0.9, 0.5, 0.5, 0.1, 0.2]])
    assert [find_order(np.repeat(line, n, axis=0), np.arange(n)) for n in (1, 4, 5)] == [None, None, "score-first"]
    both = np.array([[0.5, 0.5, 0.4, 0.4, 0.6]])
    for n, order in ((56, "score-first"), (57, None)):  # 10 of 66 are more than 15 %, 10 of 67 are not
        lines = np.concatenate([np.repeat(line, 10, axis=0), np.repeat(both, n, axis=0)])
        assert find_order(lines, np.arange(len(lines))) == order
    other = np.array([[0.5, 0.5, 0.1, 0.1, 0.9]])
    for n, order in ((3, "score-first"), (4, None)):
        lines = np.concatenate([np.repeat(line, 12, axis=0), np.repeat(other, n, axis=0)])
        assert find_order(lines, np.arange(len(lines))) == order
    assert find_order(other, np.zeros(1)) == "score-last"


def test_falling_scores_tell_where_boxes_do_not() -> None:
    numbers = np.tile([0.5, 0.5, 0.4, 0.4, 0.0], (11, 1))
    numbers[:, 4] = np.linspace(0.6, 0.4, 11)
    numbers[::2, 0] += 0.01
    numbers[::2, 3] += 0.01
    numbers[1::2, 1] += 0.01
    first = numbers[:, [4, 0, 1, 2, 3]]
    together, apart = np.zeros(11, int), np.arange(11)
    assert (find_order(numbers, together), find_order(numbers, apart)) == ("score-last", None)
    assert (find_order(first, together), find_order(first[:10], together[:10])) == ("score-first", None)


def test_what_is_said_of_the_order(truth: GroundTruth, tmp_path: Path) -> None:
    first = predicted(tmp_path, "1 0.9 0.5 0.5 0.1 0.2\n1 0.8 0.25 0.5 0.1 0.1\n" * 5)
    found = read_detections(first, truth)
    assert set(found.scores.tolist()) == {0.9, 0.8}
    assert any(n.startswith("score read from the second column; ") for n in tuple(map(str, found.notes)))
    forced = read_detections(f"{first}:score-last", truth)
    assert set(forced.scores.tolist()) == {0.2, 0.1}
    assert any(
        "requested order, score last: 10 of 10 boxes exceed their images" in n for n in tuple(map(str, forced.notes))
    )
    doubt = read_detections(predicted(tmp_path, "1 0.5 0.5 0.4 0.4 0.6\n"), truth)
    assert doubt.scores.tolist() == [0.6]
    assert any(note.code == "order-unknown" for note in doubt.notes)
    assert read_yolo(first, truth, order="score-first").scores.tolist() == [0.5]
    with pytest.raises(InputError, match=r"2 of 2 boxes exceed .*; .*labels:score-last skips this check"):
        read_detections(predicted(tmp_path, "1 0.95 0.95 0.95 0.95 0.95\n0 0.05 0.05 0.9 0.9 0.9\n"), truth)
