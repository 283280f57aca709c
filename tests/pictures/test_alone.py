"""Detections that are read without truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probox import Detections, GroundTruth, InputError, evaluate
from probox.pictures.standalone import read_standalone
from probox.pictures.view import view_of_image
from probox.tables.coco_classes import COCO_CATEGORY_IDS


@pytest.mark.parametrize("seen", [(1, 90), (1, 62)])
def test_eighty_scores_are_those_of_coco(tmp_path: Path, seen: tuple[int, ...]) -> None:
    entries = []
    for category in seen:  # 90 can't be the number of one of 80 classes; 62 could, but `probox detect` writes COCO's
        scores = [0.001] * 80
        scores[COCO_CATEGORY_IDS.index(category)] = 0.9
        box = [1.0, 2.0, 3.0, 4.0]
        entries.append({"image_id": 3, "category_id": category, "bbox": box, "score": 0.9, "all_scores": scores})
    path = tmp_path / "found.coco.json"
    path.write_text(json.dumps(entries))
    found = read_standalone(str(path), None).detections
    names = {1: "person", 62: "chair", 90: "toothbrush"}
    assert [found.classes[label] for label in found.label_probs.argmax(axis=1)] == [names[number] for number in seen]


def test_eighty_classes_of_ones_own_are_not_taken_for_those_of_coco(tmp_path: Path) -> None:
    scores = [0.001] * 80
    scores[61] = 0.9  # COCO's 62 is its 57th class
    entry = {"image_id": 3, "category_id": 62, "bbox": [1, 2, 3, 4], "score": 0.9, "all_scores": scores}
    path = tmp_path / "found.coco.json"
    path.write_text(json.dumps([entry]))
    found = read_standalone(str(path), None).detections
    assert found.classes[found.label_probs[0].argmax()] == "class 62"


def test_fewer_scores_are_numbered_from_one(tmp_path: Path) -> None:
    entry = {"image_id": 3, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.9, "all_scores": [0, 0.9, 0.1]}
    path = tmp_path / "found.coco.json"
    path.write_text(json.dumps([entry]))
    assert read_standalone(str(path), None).detections.classes == ("class 1", "class 2", "class 3")


def test_names_of_images_need_ground_truth(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps([{"image_id": "a", "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]))
    with pytest.raises(
        InputError, match=r"\[0\]\.image_id: expected the number of an image, but got the name 'a'; say on"
    ):
        read_standalone(str(path), None)


def test_an_image_with_too_many_pixels_is_not_drawn() -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (900_000, 1_000)}, [7], [[1, 2, 30, 40]], [0])
    found = Detections(classes=["cup"], image_ids=[7], boxes=[[1, 2, 30, 40]], label_probs=[[0.9]])
    with pytest.raises(InputError, match="image 7: expected at most 134,217,728 pixels to draw, but got 900000 x 1000"):
        view_of_image(evaluate(truth, found), 7)
