"""The golden folders: mAP and moLRP as published, and pycocotools' twelve numbers on the same boxes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from probox import Detections, GroundTruth, evaluate
from probox.formats import read_detections, read_truth
from probox.measures.boxes import average_precision, lrp
from probox.measures.boxes.mean_ap import coco_labels

FOLDERS = ("bbox", "mixed", "outside", "pbox_corr", "pbox_diag", "pbox_full", "pbox_huge", "pbox_tiny")


def read_case(folder: Path) -> tuple[GroundTruth, Detections]:
    challenge = folder.name == "rvc1"
    truth = read_truth(folder / ("gt" if challenge else "ground_truth.json"))
    return truth, read_detections(folder / ("det" if challenge else "detections.json"), truth)


@pytest.mark.parametrize("name", FOLDERS)
def test_map_and_molrp_are_the_published_ones(golden_dir, name):
    expected = json.loads((golden_dir / name / "expected.json").read_text())["summary"]
    truth, found = read_case(golden_dir / name)
    result = lrp(truth, found)
    ours = (average_precision(truth, found).map, result.molrp, result.loc, result.fp, result.fn)
    published = [expected[key] for key in ("mAP", "moLRP", "moLRPLoc", "moLRPFP", "moLRPFN")]
    np.testing.assert_allclose(ours, published, rtol=0, atol=1e-9)


def test_map_of_the_challenge_is_the_references(golden_dir):
    """Its boxes end on the last pixel, in the truth and in the detections."""
    expected = json.loads((golden_dir / "rvc1" / "expected.json").read_text())["summary"]
    assert average_precision(*read_case(golden_dir / "rvc1")).map == pytest.approx(expected["mAP"], abs=1e-9)
    assert expected["mAP"] == 0.40775577557755777


@pytest.mark.parametrize("name", [*FOLDERS, "probseg", "rvc1"])
def test_twelve_numbers_are_those_of_pycocotools(golden_dir, coco_twelve, name):
    truth, found = read_case(golden_dir / name)
    ours = average_precision(truth, found)
    assert ours.map > 0
    np.testing.assert_allclose(list(ours.summary().values()), coco_twelve(truth, found), rtol=0, atol=1e-12)
    np.testing.assert_equal(evaluate(truth, found, measures="map").coco(), ours.summary())
    assert list(ours.summary()) == list(coco_labels())
