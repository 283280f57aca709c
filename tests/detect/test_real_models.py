"""Real detectors on real photos: the published mAP comes out, and certainty helps PDQ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.amounts import others_slow

import probox
from probox.detect import Candidates, Detector, Dropout, Options, find_images, read_image
from probox.detect.uncertainty import detect
from probox.formats import read_truth

# Detections that others made with the same models, on which pycocotools gives the published mAP.
PUBLISHED = {
    "nanodet_m_416": "nanodet_m_416_2881",
    "ssdlite_mobilenet_v2_300": "ssdlite_mbv2_2881",
    "yolox_nano_416": "yolox_nano_2881",
}
PROBABILISTIC = {
    "ssdlite_mobilenet_v2_300": "nms-clusters",
    "yolox_nano_416": "nms-clusters",
    "nanodet_m_416": "edge-distribution",
}


class Remembered:
    """A detector's candidates, computed once for several ways to make detections of them."""

    batch = 1
    fingerprint = ""

    def __init__(self, detector: Detector, images: list[np.ndarray]) -> None:
        self.family = detector.family
        self._found = {id(image): detector.candidates([image])[0] for image in images}

    def candidates(self, images: list[np.ndarray]) -> list[Candidates]:
        return [self._found[id(image)] for image in images]

    def sample(self, images: list[np.ndarray], passes: int, image_ids: list[int]) -> list[list[Candidates]]:
        raise NotImplementedError


@pytest.mark.parametrize("name", others_slow(PUBLISHED))
def test_the_published_map_comes_out_and_certainty_raises_pdq(coco_dir: Path, name: str) -> None:
    truth_file = coco_dir / "val2017_masks_206.json"
    files = find_images(coco_dir / "images", truth_file)[::3]
    images = [read_image(file.path) for file in files]
    ids = [file.image_id for file in files]
    whole = read_truth(truth_file)
    truth = whole.select_images(ids)
    detector = Remembered(Detector(coco_dir / "models" / f"{name}.onnx", threads=1), images)
    plain = probox.Detections.concatenate(detect(detector, images, ids, Options(score_threshold=0.005)))
    theirs = probox.read_detections(coco_dir / "results" / f"{PUBLISHED[name]}.json.gz", whole)
    wanted = probox.average_precision(truth, theirs.select(np.isin(theirs.image_ids, ids))).map
    assert wanted > 0.25
    assert probox.average_precision(truth, plain).map == pytest.approx(wanted, abs=0.005)

    probabilistic = probox.Detections.concatenate(
        detect(detector, images, ids, Options(uncertainty=PROBABILISTIC[name]))
    )
    before = {cut: probox.evaluate(truth, plain.select(plain.scores > cut)).summary() for cut in (0.5, 0.05)}
    after = {
        cut: probox.evaluate(truth, probabilistic.select(probabilistic.scores > cut)).summary() for cut in (0.5, 0.05)
    }
    for cut in (0.5, 0.05):
        assert after[cut]["PDQ"] > 2 * before[cut]["PDQ"]
        assert after[cut]["spatial"] > 2 * before[cut]["spatial"]
        assert after[cut]["mAP"] == pytest.approx(before[cut]["mAP"], abs=0.01)
    # Thousands of doubtful detections: mAP takes them, PDQ does not.
    assert before[0.05]["PDQ"] < before[0.5]["PDQ"]
    assert after[0.05]["PDQ"] < after[0.5]["PDQ"]


@pytest.mark.slow
def test_twenty_passes_of_dropout_raise_spatial_quality(coco_dir: Path) -> None:
    truth = read_truth(coco_dir / "val2017_masks_206.json")
    files = find_images(coco_dir / "images", coco_dir / "val2017_masks_206.json")[:12]
    ids = [file.image_id for file in files]
    images = [read_image(file.path) for file in files]
    model = coco_dir / "models" / "ssdlite_mobilenet_v2_300.onnx"
    plain = probox.Detections.concatenate(detect(Detector(model, threads=1), images, ids, Options(score_threshold=0.3)))
    masked = Detector(model, dropout=Dropout(rate=0.05, masks="elements"), threads=1)
    assert len(masked.dropout_layers) == 24  # two layers of a box and of a class predictor on six maps
    fused = probox.Detections.concatenate(detect(masked, images, ids, Options(uncertainty="mc-dropout", passes=20)))
    fused = fused.select(fused.scores > 0.3)
    judged = truth.select_images(ids)  # only these photos are judged
    before, after = probox.evaluate(judged, plain).summary(), probox.evaluate(judged, fused).summary()
    assert after["spatial"] > 3 * before["spatial"]
    assert after["PDQ"] > 2 * before["PDQ"]
