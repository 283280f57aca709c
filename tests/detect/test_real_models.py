"""Real detectors on real photos: the published mAP comes out, and certainty helps PDQ."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from tests.amounts import others_slow

import probox
from probox.detect import Candidates, Detector, Dropout, Options, detect, find_images, read_image
from probox.errors import InputError
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


@pytest.fixture(scope="module")
def graph() -> Path:
    spec = importlib.util.find_spec("nudenet")
    path = None if spec is None or spec.origin is None else Path(spec.origin).with_name("320n.onnx")
    if path is None or not path.is_file():
        pytest.skip("nudenet is not installed")
    return path


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    y, x = np.mgrid[:240, :200]
    picture = np.full((240, 200, 3), (190, 205, 220), np.uint8)
    picture[((x - 100) / 55) ** 2 + ((y - 110) / 75) ** 2 < 1] = (224, 172, 140)
    for at in ((78, 95), (122, 95)):
        picture[((x - at[0]) / 9) ** 2 + ((y - at[1]) / 5) ** 2 < 1] = (40, 30, 30)
    picture[((x - 100) / 22) ** 2 + ((y - 150) / 6) ** 2 < 1] = (170, 70, 80)
    return picture


def test_it_is_recognised_named_and_run_at_its_size(graph: Path, photo: np.ndarray) -> None:
    family = Detector(graph, threads=1).family
    assert (family.name, family.input_size(), len(family.classes)) == ("yolov8", (320, 320), 18)
    assert "FACE_FEMALE" in family.classes
    assert family.has_edges
    own = [f"part {number}" for number in range(18)]
    assert Detector(graph, classes=own, threads=1).family.classes == tuple(own)
    with pytest.raises(InputError, match="expected 18 class names"):
        Detector(graph, classes=own[:17])
    with pytest.raises(InputError, match="multiples of 32"):
        Detector(graph, size=(330, 320))


@pytest.mark.parametrize("size", [None, (416, 256)])
def test_its_boxes_are_the_means_of_its_edges(graph: Path, photo: np.ndarray, size: tuple[int, int] | None) -> None:
    detector = Detector(graph, size=size, threads=1)
    found = detector.candidates([photo])[0]
    wide, high = size or (320, 320)
    assert found.boxes.shape == (sum((wide // stride) * (high // stride) for stride in (8, 16, 32)), 4)
    covariances = found.covariances[:]  # raises if means and boxes differ
    assert covariances.shape == (len(found), 2, 2, 2)
    scale = max(photo.shape[1] / wide, photo.shape[0] / high)
    assert 0 < covariances[:, :, [0, 1], [0, 1]].max() <= (7.5 * 32 * scale) ** 2 * 1.001  # half of 15 bins at most
    best = float(found.scores.max())
    options = Options(score_threshold=best / 2, uncertainty="edge-distribution", recipe="paper")
    kept = detect(detector, [photo], [1], options)[0]
    assert len(kept) > 0
    row = int(found.scores.max(axis=1).argmax())
    np.testing.assert_allclose(kept.covariances[0], covariances[row])
    plain = detect(detector, [photo], [1], dataclasses.replace(options, uncertainty="none"))[0]
    np.testing.assert_array_equal(plain.scores, kept.scores)
