"""A real YOLOv8 graph of 18 classes with open axes, 320n.onnx of the package nudenet, where it is installed."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from probox.detect import Detector, Options, detect
from probox.errors import InputError


@pytest.fixture(scope="module")
def graph() -> Path:
    """The file; the package itself is not imported."""
    spec = importlib.util.find_spec("nudenet")
    path = None if spec is None or spec.origin is None else Path(spec.origin).with_name("320n.onnx")
    if path is None or not path.is_file():
        pytest.skip("nudenet is not installed")
    return path


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    """Something like a portrait: an ellipse with dark spots, on a bright ground."""
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
