"""NanoDet-Plus and PicoDet: any strides and bins, in any arrangement, with each project's own points and pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from detect_graphs import fixed_outputs
from hypothesis import given
from hypothesis import strategies as st

from probox.detect import Detector, Options, choose_family, detect
from probox.detect.families import Signature, Tensor
from probox.detect.families.base import count_cells, grid
from probox.detect.families.one_stage import strides_of_maps
from probox.errors import InputError

CLASSES = ("cup", "dog", "car")
IMAGE = np.full((100, 200, 3), 90, np.uint8)  # 200 wide, 100 high
STRIDES = (8, 16, 32, 64)
BINS = 6


def _logits(bins: int = BINS) -> np.ndarray:
    """Edges of one cell: left 1, top 1 or 3, right 2, bottom 0 or 2 strides."""
    logits = np.full((4, bins), -60.0)
    logits[0, 1] = logits[1, [1, 3]] = logits[2, 2] = logits[3, [0, 2]] = 0
    return logits.ravel()


def _maps(size: tuple[int, int], at: int, level: int, bins: int = BINS) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Score and edge maps of an input, where one cell of one level has an object."""
    cells = [count_cells(size, (stride,)) for stride in STRIDES]
    scores = [np.full((1, n, 3), 0.01, np.float32) for n in cells]
    edges = [np.zeros((1, n, 4 * bins), np.float32) for n in cells]
    scores[level][0, at] = [0.1, 0.8, 0.05]
    edges[level][0, at] = _logits(bins)
    return scores, edges


def _arranged(scores: list, edges: list, order: str) -> dict[str, np.ndarray]:
    turns = [part for pair in zip(scores, edges, strict=True) for part in pair]
    swapped = [part for pair in zip(edges, scores, strict=True) for part in pair]
    ways = {"halves": [*scores, *edges], "turns": turns, "edges first": [*edges, *scores], "edges in turn": swapped}
    return {f"out{number}": part for number, part in enumerate(ways[order])}


@pytest.mark.parametrize("order", ["halves", "turns", "edges first", "edges in turn"])
def test_picodet_decodes(tmp_path: Path, order: str) -> None:
    # The image is stretched to 96 x 64: stride 16 has 6 x 4 cells, and 64 rounds up to 2 x 1.
    size, level, column, row = (96, 64), 1, 4, 2
    outputs = _arranged(*_maps(size, 6 * row + column, level), order)
    path = fixed_outputs(tmp_path / "m.onnx", {"image": [1, 3, 64, 96]}, outputs)
    detector = Detector(path, classes=CLASSES)
    assert (detector.family.name, detector.family.strides) == ("picodet", STRIDES)
    found = detector.candidates([IMAGE])[0]
    best = 12 * 8 + 6 * row + column
    assert found.scores.argmax() == 3 * best + 1
    point = np.array([(column + 0.5) * 16, (row + 0.5) * 16])
    expected = np.array([point[0] - 16, point[1] - 32, point[0] + 32, point[1] + 16])
    scale = np.array([200 / 96, 100 / 64, 200 / 96, 100 / 64])
    np.testing.assert_allclose(found.boxes[best], expected * scale, rtol=1e-6)
    np.testing.assert_allclose(found.covariances[[best]][0, 0], np.diag([0, (16 * 100 / 64) ** 2]), atol=1e-3)
    np.testing.assert_allclose(found.covariances[[best]][0, 1], np.diag([0, (16 * 100 / 64) ** 2]), atol=1e-3)
    sure = detect(detector, [IMAGE], [1], Options(uncertainty="edge-distribution", score_threshold=0.5))[0]
    assert len(sure) == 1


def test_picodet_sees_rgb_with_imagenet_s_mean(tmp_path: Path) -> None:
    outputs = _arranged(*_maps((64, 64), 0, 0), "halves")
    family = Detector(fixed_outputs(tmp_path / "m.onnx", {"image": [1, 3, 64, 64]}, outputs), classes=CLASSES).family
    image = np.zeros((64, 64, 3), np.uint8)
    image[..., 0] = 255
    fed, _ = family.prepare(image)
    expected = (np.array([1, 0, 0]) - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(fed["image"][0, :, 3, 3], expected, rtol=1e-4)


def test_the_number_of_names_tells_scores_from_edges(tmp_path: Path) -> None:
    # 24 classes and two bins for each edge, or 8 classes and six bins.
    cells = [count_cells((64, 64), (stride,)) for stride in STRIDES]
    scores = [np.full((1, n, 24), 0.2, np.float32) for n in cells]
    edges = [np.zeros((1, n, 8), np.float32) for n in cells]
    for number, (order, names) in enumerate((("halves", 24), ("edges first", 24))):
        path = tmp_path / f"{number}.onnx"
        fixed_outputs(path, {"image": [1, 3, 64, 64]}, _arranged(scores, edges, order))
        found = Detector(path, classes=[f"c{k}" for k in range(names)]).candidates([IMAGE])[0]
        np.testing.assert_allclose(found.scores, 0.2)
    with pytest.raises(InputError, match=r"expected 24 class names"):
        Detector(tmp_path / "0.onnx", classes=[f"c{k}" for k in range(23)])  # there is no background to leave out


def test_nanodet_of_other_bins(tmp_path: Path) -> None:
    scores, edges = _maps((64, 64), 0, 0, bins=17)
    outputs = {f"out{k}": part for k, part in enumerate([*scores[:3], *edges[:3]])}
    detector = Detector(fixed_outputs(tmp_path / "m.onnx", {"image": [1, 3, 64, 64]}, outputs), classes=CLASSES)
    assert (detector.family.name, detector.family.strides) == ("nanodet", (8, 16, 32))
    found = detector.candidates([np.zeros((64, 64, 3), np.uint8)])[0]
    np.testing.assert_allclose(found.boxes[0], [3.5 - 8, 3.5 - 16, 3.5 + 16, 3.5 + 8], atol=1e-5)


def test_nanodet_plus_decodes(tmp_path: Path) -> None:
    # One output over 64 + 16 + 4 + 1 cells of a 64 x 64 input: 3 classes, then 4 edges.
    scores, edges = _maps((64, 64), 2, 2)
    rows = np.concatenate([np.concatenate(scores, axis=1), np.concatenate(edges, axis=1)], axis=2)
    path = fixed_outputs(tmp_path / "m.onnx", {"data": [1, 3, 64, 64]}, {"output": rows})
    detector = Detector(path, classes=CLASSES)
    assert detector.family.name == "nanodet-plus"
    found = detector.candidates([IMAGE])[0]
    best = 64 + 16 + 2
    np.testing.assert_allclose(found.scores[best], [0.1, 0.8, 0.05], rtol=1e-6)
    # Column 0, row 1 of stride 32: the point is its first pixel.
    expected = np.array([0 - 32, 32 - 64, 0 + 64, 32 + 32]) * np.array([200 / 64, 100 / 64] * 2)
    np.testing.assert_allclose(found.boxes[best], expected, rtol=1e-6)
    np.testing.assert_allclose(found.covariances[[best]][0, 0], np.diag([0, (32 * 100 / 64) ** 2]), atol=1e-3)
    fed, _ = detector.family.prepare(IMAGE)
    expected = (90 - np.array([103.53, 116.28, 123.675])) / np.array([57.375, 57.12, 58.395])
    np.testing.assert_allclose(fed["data"][0, :, 9, 9], expected, rtol=1e-5)
    # Stretched from the first pixel: the second of 64 columns lies 200 / 64 pixels on, between the 4th and the 5th.
    ramp = np.repeat(np.arange(200, dtype=np.uint8)[None, :, None], 3, axis=2).repeat(100, axis=0)
    fed, _ = detector.family.prepare(ramp)
    np.testing.assert_allclose(fed["data"][0, 0, 5, :3] * 57.375 + 103.53, [0, 3, 6], atol=1e-4)


def _open(shapes: list[tuple[int, ...]]) -> Signature:
    """Outputs whose every axis is open, but for what a run on 320 x 640 showed."""
    tensors = tuple(Tensor(f"out{number}", (None, None, None)) for number in range(len(shapes)))
    return Signature((Tensor("image", (None, 3, None, None)),), tensors, trial=tuple(shapes), trial_size=(320, 640))


def test_open_axes_are_tried() -> None:
    cells = [count_cells((320, 640), (stride,)) for stride in STRIDES]
    maps = [shape for n in cells for shape in ((1, n, 3), (1, n, 24))]
    family = choose_family(_open(maps), classes=CLASSES, size=(96, 64))
    assert (family.name, family.strides, family.input_size()) == ("picodet", STRIDES, (96, 64))
    plus = choose_family(_open([(1, sum(cells), 35)]), classes=CLASSES)
    assert (plus.name, plus.classes) == ("nanodet-plus", CLASSES)


def test_nanodet_plus_needs_the_number_of_classes(tmp_path: Path) -> None:
    path = fixed_outputs(tmp_path / "m.onnx", {"data": [1, 3, 64, 64]}, {"output": np.zeros((1, 85, 35), np.float32)})
    with pytest.raises(InputError, match=r"35 columns are not 80 classes .*give the names of its classes"):
        Detector(path)
    with pytest.raises(InputError, match="35 columns are not 2 classes"):
        Detector(path, classes=CLASSES[:2])
    assert Detector(path, classes=CLASSES).family.classes == CLASSES


def test_maps_of_no_stride_are_refused(tmp_path: Path) -> None:
    scores, edges = _maps((64, 64), 0, 0)
    outputs = {f"out{k}": part for k, part in enumerate([*scores, *edges])}
    path = fixed_outputs(tmp_path / "m.onnx", {"image": [1, 3, 72, 72]}, outputs)
    with pytest.raises(InputError, match=r"no stride makes 64 cells of an input of 72 x 72"):
        Detector(path, classes=CLASSES)


@given(st.integers(32, 900), st.integers(32, 900))
def test_strides_are_told_from_cells(width: int, height: int) -> None:
    cells = [len(grid((width, height), (stride,))[0]) for stride in STRIDES]
    assert strides_of_maps(cells, (width, height)) == STRIDES or len(set(cells)) < len(cells)
    assert strides_of_maps([None, None], (width, height)) == (8, 16)
    assert sum(cells) == count_cells((width, height), STRIDES)
