"""Three real detectors on 206 photos with official masks, against the reference's numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from probox import evaluate
from probox.formats import read_detections, read_truth

NAMES = {"pPDQ": "overall", "spatial": "spatial", "label": "label", "foreground": "fg", "background": "bg"}


@pytest.mark.parametrize("name", ["ssdlite", "yolox_nano", "nanodet_m"])
def test_summary_counts_and_sums_equal_the_reference(coco_dir, name):
    expected = json.loads((coco_dir / "results" / "expected_206.json").read_text())[name]
    truth = read_truth(coco_dir / "val2017_masks_206.json")
    found = read_detections(coco_dir / expected["detections"], truth)
    if name != "nanodet_m":
        found = found.select(found.scores >= 0.05)
    evaluation = evaluate(truth, found)

    summary = evaluation.summary()
    for ours, theirs in {"PDQ": "PDQ", **{key: f"avg_{value}" for key, value in NAMES.items()}}.items():
        theirs = "avg_pPDQ" if theirs == "avg_overall" else theirs
        assert summary[ours] == pytest.approx(expected["summary"][theirs], abs=1e-6), ours
    assert [summary[key] for key in ("TP", "FP", "FN")] == [expected["summary"][key] for key in ("TP", "FP", "FN")]

    per_image = evaluation.per_image().columns
    for key in ("TP", "FP", "FN"):
        np.testing.assert_array_equal(per_image[key], [image[key] for image in expected["images"]])
    for ours, theirs in NAMES.items():
        sums = [image[theirs] for image in expected["images"]]
        np.testing.assert_allclose(per_image[f"sum_{ours}"], sums, rtol=0, atol=2e-5, err_msg=ours)
