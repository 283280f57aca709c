"""Graphs as they are run: batches, sizes, half precision, several threads at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from detect_graphs import small_yolo
from onnx import helper, numpy_helper

from probox.detect import Detector
from probox.errors import InputError

CLASSES = ("cup", "dog", "car")
IMAGE = np.random.default_rng(2).integers(0, 255, (100, 200, 3), dtype=np.uint8)


def test_batches_are_stacked_and_split(tmp_path: Path) -> None:
    path = small_yolo(tmp_path / "m.onnx")
    tall = np.full((200, 100, 3), 90, np.uint8)
    images = [IMAGE, tall, IMAGE[::-1]]
    detector = Detector(path, classes=CLASSES, batch=2, threads=1)
    assert detector.batch == 2
    alone = Detector(path, classes=CLASSES, threads=1)
    for found, expected in zip(detector.candidates(images), alone.candidates(images), strict=True):
        np.testing.assert_allclose(found.boxes, expected.boxes, rtol=1e-5)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)


@pytest.mark.parametrize("declared", [("n", 7, 84), (1, 7, 84), ("a", 7, "b")])
def test_a_graph_that_mixes_the_images_of_a_batch_runs_one_at_a_time(tmp_path: Path, declared: tuple) -> None:
    path = small_yolo(tmp_path / "m.onnx", out_shape=declared, keeps_batch=False)
    detector = Detector(path, family="yolov8", classes=CLASSES, batch=2, threads=1)
    assert detector.batch == 1
    first, second = detector.candidates([IMAGE, IMAGE[::-1]])
    assert first.scores.shape == second.scores.shape == (84, 3)
    assert not np.array_equal(first.scores, second.scores)


def test_a_graph_whose_images_colour_each_other_runs_one_at_a_time(tmp_path: Path) -> None:
    # Shapes are right, but a tenth of every number is the mean over the batch.
    path = small_yolo(tmp_path / "m.onnx")
    model = onnx.load(str(path))
    model.graph.node[-1].output[0] = "own"
    for name, value in (("most", 0.9), ("little", 0.1)):
        model.graph.initializer.append(numpy_helper.from_array(np.float32(value), name))
    model.graph.node.extend(
        [
            helper.make_node("ReduceMean", ["own"], ["mean"], axes=[0], keepdims=1),
            helper.make_node("Mul", ["own", "most"], ["mostly"]),
            helper.make_node("Mul", ["mean", "little"], ["shared"]),
            helper.make_node("Add", ["mostly", "shared"], ["output0"]),
        ]
    )
    onnx.save(model, str(path))
    assert Detector(path, classes=CLASSES, batch=2, threads=1).batch == 1


def test_half_precision_goes_in_and_comes_out_as_single(tmp_path: Path) -> None:
    half, single = (small_yolo(tmp_path / f"{half}.onnx", half=half) for half in (True, False))
    found, expected = (Detector(path, classes=CLASSES, batch=2).candidates([IMAGE])[0] for path in (half, single))
    assert found.scores.dtype == np.float32
    assert found.boxes.dtype == np.float64
    np.testing.assert_allclose(found.scores, expected.scores, atol=5e-3)
    np.testing.assert_allclose(found.boxes, expected.boxes, atol=0.5)


def test_a_graph_that_takes_any_size_gets_what_is_asked_for(tmp_path: Path) -> None:
    path = small_yolo(tmp_path / "m.onnx", shape=("n", 3, "h", "w"), out_shape=("n", 7, "cells"))
    asked = Detector(path, family="yolov8", classes=CLASSES, size=(96, 64))
    assert len(asked.candidates([IMAGE])[0]) == 12 * 8 + 6 * 4 + 3 * 2
    assert asked.fingerprint != Detector(path, family="yolov8", classes=CLASSES, size=(64, 96)).fingerprint
    named = Detector(path, family="yolov8", classes=CLASSES[::-1], size=asked.family.input_size())
    assert asked.fingerprint != named.fingerprint
    fixed = small_yolo(tmp_path / "f.onnx")
    with pytest.raises(InputError, match="the graph's input is 64 x 64, and can't be 96 x 64"):
        Detector(fixed, classes=CLASSES, size=(96, 64))


def test_a_fixed_batch_is_kept(ssd: Path) -> None:
    assert Detector(ssd, classes=CLASSES, batch=8).batch == 1


def test_workers_share_the_threads_and_find_the_same(tmp_path: Path) -> None:
    path = small_yolo(tmp_path / "m.onnx")
    images = [np.random.default_rng(seed).integers(0, 255, (80, 90, 3), dtype=np.uint8) for seed in range(12)]
    alone = Detector(path, classes=CLASSES, threads=1)
    shared = Detector(path, classes=CLASSES, threads=2, workers=2)
    assert (alone.workers, shared.workers) == (1, 2)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda image: shared.candidates([image])[0], images))
    for one, expected in zip(found, alone.candidates(images), strict=True):
        np.testing.assert_array_equal(one.boxes, expected.boxes)
        np.testing.assert_array_equal(one.scores, expected.scores)


@pytest.mark.parametrize("given", [{"workers": 0}, {"batch": 0}])
def test_nothing_runs_with_none(tmp_path: Path, given: dict[str, int]) -> None:
    with pytest.raises(InputError, match="at least 1"):
        Detector(small_yolo(tmp_path / "m.onnx"), classes=CLASSES, **given)
