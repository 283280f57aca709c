"""Real detectors are silent as they are, and each mistake is noticed in each of them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from tests.amounts import others_slow
from tests.evaluation.input_checks.mistakes import (
    MISTAKES,
    TRUTH_MISTAKES,
    inverted,
    normalised_variances,
    rooted,
    scores_of_1,
    squared,
)
from tests.readers import read_coco

from probox import Detections, GroundTruth, evaluate, read_detections

FILES = {
    "nanodet": "nanodet_m_416_2881.json.gz",
    "nanodet with variances": "nanodet_m_416_2881.rvc1.json.gz",
    "ssdlite": "ssdlite_mbv2_2881.json.gz",
    "yolox": "yolox_nano_2881.json.gz",
}


@pytest.fixture(scope="module")
def whole(coco_dir: Path) -> GroundTruth:
    return read_coco(coco_dir / "val2017_boxes.json")


@pytest.fixture(scope="module")
def truth(coco_dir: Path, whole: GroundTruth) -> GroundTruth:
    return whole.select_images(json.loads((coco_dir / "subset_2881_image_ids.json").read_text()))


@pytest.fixture(scope="module", params=others_slow(FILES))
def found(request: pytest.FixtureRequest, coco_dir: Path, truth: GroundTruth) -> Detections:
    return read_detections(coco_dir / "results" / FILES[request.param], truth)


def kinds(truth: GroundTruth, found: Detections) -> list[str]:
    return [warning.code for warning in evaluate(truth, found, measures=("map",)).warnings]


@pytest.mark.parametrize("threshold", others_slow([0.0, 0.5, 0.1, 0.3, 0.7], 2))
def test_silent_at_every_threshold(truth: GroundTruth, found: Detections, threshold: float) -> None:
    assert kinds(truth, found.select(found.label_probs.max(axis=1) > threshold)) == []


@pytest.mark.parametrize("name", others_slow([name for name in MISTAKES if name != "a part"], 5))
def test_mistakes(truth: GroundTruth, found: Detections, name: str) -> None:
    mistake, kind = MISTAKES[name]
    assert kinds(truth, mistake(truth, found)) == [kind]


@pytest.mark.parametrize("name", others_slow(TRUTH_MISTAKES))
def test_mistakes_in_the_ground_truth(truth: GroundTruth, found: Detections, name: str) -> None:
    mistake, kind, _ = TRUTH_MISTAKES[name]
    assert kinds(mistake(truth), found) == [kind]


def test_scores_of_1(truth: GroundTruth, found: Detections) -> None:
    for threshold in (0.0, 0.5):
        chosen = found.select(found.label_probs.max(axis=1) > threshold)
        assert kinds(truth, scores_of_1(truth, chosen)) == ["constant-scores"]


def test_mirrored_above_a_high_threshold(truth: GroundTruth, found: Detections) -> None:
    """Such a detector finds few of the objects, however its boxes are read."""
    chosen = found.select(found.label_probs.max(axis=1) > 0.5)
    assert kinds(truth, MISTAKES["mirrored"][0](truth, chosen)) == ["mirrored-left-to-right"]


def test_a_part_of_the_images(whole: GroundTruth, found: Detections) -> None:
    result = evaluate(whole, found, measures=("map",))
    assert [warning.code for warning in result.warnings] == ["images-without-detections"]
    assert result.warnings[0].message.startswith("2,07")
    assert "of 4,952 images with objects have no detections" in result.warnings[0].message


@pytest.mark.parametrize("file", ["nanodet_m_416_206", "nanodet_m_416_2881"])
def test_variances(coco_dir: Path, truth: GroundTruth, file: str) -> None:
    there = read_coco(coco_dir / "val2017_masks_206.json") if file.endswith("206") else truth
    honest = read_detections(coco_dir / "results" / f"{file}.rvc1.json.gz", there)
    for threshold in (0.0, 0.3, 0.4):
        sure = honest.select(honest.label_probs.max(axis=1) > threshold)
        assert kinds(there, sure) == []
        assert kinds(there, rooted(sure)) == ["deviations-as-variances"]
        assert kinds(there, normalised_variances(there, sure)) == ["normalised-variances"]
        assert kinds(there, inverted(sure)) == ["inverse-variances"]
        small = dataclasses.replace(sure, covariances=sure.covariances / np.float64(100))
        assert kinds(there, small) == []  # too sure by a factor of ten, but these are variances
    mixed = dataclasses.replace(honest, covariances=honest.covariances[:, :, ::-1, ::-1])
    assert kinds(there, mixed) == ["variances-in-other-order"]
    assert kinds(there, squared(honest)) == ["variance-larger-than-image"]
