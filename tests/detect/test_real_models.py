"""Real detectors on real photos: the published mAP comes out, and certainty helps PDQ."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest

import probox
from probox.detect import Candidates, Detector, Dropout, Options, find_images, read_image
from probox.detect.classes import COCO_CATEGORY_IDS
from probox.detect.uncertainty import detect
from probox.formats import read_truth
from probox.tables.dataset import Dataset

# mAP by pycocotools of each detector on the same photos: score above 0.005, at most 100 detections of an image.
PUBLISHED = {"ssdlite_mobilenet_v2_300": 0.297, "yolox_nano_416": 0.285, "nanodet_m_416": 0.249}
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

    def sample(self, images: list[np.ndarray], passes: int) -> list[list[Candidates]]:
        raise NotImplementedError


def _coco_map(truth: Path, found: probox.Detections) -> float:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    sizes = found.boxes[:, 2:] - found.boxes[:, :2]
    results = [
        {"image_id": int(image), "category_id": COCO_CATEGORY_IDS[label], "bbox": [*box[:2], *size], "score": score}
        for image, label, box, size, score in zip(
            found.image_ids, found.labels, found.boxes.tolist(), sizes.tolist(), found.scores.tolist(), strict=True
        )
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(truth))
        evaluation = COCOeval(coco, coco.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0])


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_map_comes_out_and_certainty_raises_pdq(coco_dir: Path, name: str) -> None:
    truth_file = coco_dir / "val2017_masks_206.json"
    files = find_images(coco_dir / "images", truth_file)
    images = [read_image(file.path) for file in files]
    ids = [file.image_id for file in files]
    assert len(ids) == 206
    detector = Remembered(Detector(coco_dir / "models" / f"{name}.onnx", threads=1), images)
    plain = probox.Detections.concatenate(detect(detector, images, ids, Options(score=0.005)))
    assert _coco_map(truth_file, plain) == pytest.approx(PUBLISHED[name], abs=0.005)

    truth = read_truth(truth_file)
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


def test_twenty_passes_of_dropout_raise_spatial_quality(coco_dir: Path) -> None:
    truth = read_truth(coco_dir / "val2017_masks_206.json")
    files = find_images(coco_dir / "images", coco_dir / "val2017_masks_206.json")[:12]
    ids = [file.image_id for file in files]
    images = [read_image(file.path) for file in files]
    model = coco_dir / "models" / "ssdlite_mobilenet_v2_300.onnx"
    plain = probox.Detections.concatenate(detect(Detector(model, threads=1), images, ids, Options(score=0.3)))
    masked = Detector(model, dropout=Dropout(rate=0.05, masks="elements"), threads=1)
    assert len(masked.dropout_layers) == 24  # two layers of a box and of a class predictor on six maps
    fused = probox.Detections.concatenate(detect(masked, images, ids, Options(uncertainty="mc-dropout", passes=20)))
    fused = fused.select(fused.scores > 0.3)
    rows = np.isin(truth.image_ids, ids)
    judged = _only(truth, rows)  # only these photos are judged
    before, after = probox.evaluate(judged, plain).summary(), probox.evaluate(judged, fused).summary()
    assert after["spatial"] > 3 * before["spatial"]
    assert after["PDQ"] > 2 * before["PDQ"]


def _only(truth: probox.GroundTruth, rows: np.ndarray) -> probox.GroundTruth:
    """Return the truth of some images."""
    keep = np.flatnonzero(rows[truth.image_rows])
    renumbered = np.cumsum(rows) - 1
    return probox.GroundTruth(
        dataset=Dataset(
            classes=truth.classes,
            image_ids=truth.image_ids[rows],
            widths=truth.dataset.widths[rows],
            heights=truth.dataset.heights[rows],
        ),
        image_rows=renumbered[truth.image_rows[keep]],
        labels=truth.labels[keep],
        boxes=truth.boxes[keep],
        masks=truth.masks.take(keep),
        crowd=truth.crowd[keep],
    )
