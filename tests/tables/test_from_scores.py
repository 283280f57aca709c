"""Detections from arrays: the numbers of the same detections in a COCO results file, and mistakes that are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.readers import read_coco_results
from tests.strategies import random_world
from tests.tensors import Tensor
from tests.worlds import boxes_truth, simulated

from probox import PDQ, Dataset, Detections, GroundTruth, InputError, evaluate
from probox.adapters import from_torchvision
from probox.formats import write_coco_results
from probox.fusion import fuse_samples
from probox.notes import as_notes
from probox.tables.labels import to_distribution

CLASSES = ("cup", "dog", "cat")
BOX = [[10.0, 20.0, 50.0, 60.0]]


def one(**changes: Any) -> Detections:
    arguments = {"boxes": BOX, "scores": [0.8], "labels": [1], "classes": CLASSES, "image_ids": 7} | changes
    return Detections.from_scores(**arguments)


def test_numbers_are_those_of_a_results_file(tmp_path: Path) -> None:
    truth, made = random_world(3)
    file = tmp_path / "found.json"
    write_coco_results(file, made.replace(covariances=None, heatmaps=None), truth)
    keys = ("image_id", "category_id", "bbox", "score")
    entries = [{key: entry[key] for key in keys} for entry in json.loads(file.read_text())]
    file.write_text(json.dumps(entries))
    read = read_coco_results(file, truth)
    arrays = Detections.from_scores(
        [entry["bbox"] for entry in entries],
        [entry["score"] for entry in entries],
        [entry["category_id"] for entry in entries],
        classes=truth.classes,
        category_ids=truth.dataset.category_ids,
        image_ids=[entry["image_id"] for entry in entries],
        box_format="xywh",
    )
    for name, values in read.columns().items():
        np.testing.assert_array_equal(getattr(arrays, name), values, err_msg=name)
    np.testing.assert_equal(evaluate(truth, arrays).summary(), evaluate(truth, read).summary())
    assert len(entries) > 5


@pytest.mark.parametrize(("box_format", "given"), [("xywh", [10, 20, 40, 40]), ("cxcywh", [30, 40, 40, 40])])
def test_formats_of_boxes_are_one_box(box_format: Any, given: list[float]) -> None:
    assert one(boxes=[given], box_format=box_format).boxes.tolist() == BOX
    shares = [[given[0] / 100, given[1] / 80, given[2] / 100, given[3] / 80]]
    for sizes in ((100, 80), {7: (100, 80)}, Dataset.from_sizes(CLASSES, {7: (100, 80), 8: (1, 1)}), [[100, 80]]):
        found = one(boxes=shares, box_format=box_format, normalised=True, image_sizes=sizes)
        np.testing.assert_allclose(found.boxes, BOX, rtol=1e-15)
    assert one(boxes=shares, box_format=box_format, normalised=(100, 80)).boxes.shape == (1, 4)


def test_uncertainty_has_many_shapes_and_one_meaning() -> None:
    wanted = np.zeros((1, 2, 2, 2))
    wanted[0, 0], wanted[0, 1] = np.diag([1.0, 4.0]), np.diag([9.0, 16.0])
    diagonal = np.diag([1.0, 4.0, 9.0, 16.0])
    for given_as in (
        {"covariances": wanted},
        {"covariances": diagonal[None]},
        {"covariances": [[1, 4, 9, 16]]},
        {"var": [[1, 4, 9, 16]]},
        {"std": [[1, 2, 3, 4]]},
    ):
        np.testing.assert_array_equal(one(**given_as).covariances, wanted, err_msg=str(given_as))
    for even in ({"covariances": 9.0}, {"var": 9}, {"std": 3.0}, {"var": [9]}, {"std": [3]}):
        np.testing.assert_array_equal(one(**even).covariances, np.broadcast_to(9 * np.eye(2), (1, 2, 2, 2)))
    assert one().covariances is None
    for uncertainty in ({"std": 3}, {"std": [3]}, {"std": [[3] * 4]}, {"var": 9}):
        sizes = one(**uncertainty, covariance_format="xywh").covariances
        assert sizes[0, :, 0, 0].tolist() == [9.0, 18.0], uncertainty


@given(st.integers(0, 2**32 - 1), st.sampled_from(["xyxy", "xywh", "cxcywh"]), st.booleans())
def test_covariances_follow_the_samples(seed: int, box_format: Any, normalised: bool) -> None:
    """A Gaussian over four numbers of a box is the Gaussian of its corners: linear maps, tried on factors of it."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(4, 4)) / (100 if normalised else 1)
    full = factor @ factor.T
    numbers = np.array([0.4, 0.5, 0.6, 0.7]) if normalised else np.array([40.0, 50.0, 60.0, 70.0])
    sizes = {"normalised": True, "image_sizes": (320, 200)} if normalised else {}
    shape = {"box_format": box_format, "covariance_format": box_format, **sizes}
    found = one(boxes=numbers[None], covariances=full[None], **shape)
    # Each column of a factor is a step of the four numbers; their corners' steps make the corners' covariance.
    steps = [
        one(boxes=(numbers + step)[None], box_format=box_format, **sizes).boxes[0]
        - one(boxes=numbers[None], box_format=box_format, **sizes).boxes[0]
        for step in 0.01 * factor.T
    ]
    corners = np.array(steps).T / 0.01
    wanted = corners @ corners.T
    np.testing.assert_allclose(found.covariances[0, 0], wanted[:2, :2], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.covariances[0, 1], wanted[2:, 2:], rtol=1e-6, atol=1e-8)


def test_corner_covariances_are_scaled_with_normalised_boxes() -> None:
    shares = np.array([[[[1e-4, 2e-5], [2e-5, 4e-4]], [[9e-4, 0], [0, 1e-4]]]])
    found = one(boxes=[[0.1, 0.2, 0.5, 0.6]], normalised=True, image_sizes=(100, 50), covariances=shares)
    np.testing.assert_allclose(found.covariances[0], [[[1, 0.1], [0.1, 1]], [[9, 0], [0, 0.25]]])
    even = one(boxes=[[0.1, 0.2, 0.5, 0.6]], normalised=True, image_sizes=(100, 50), std=0.02)
    np.testing.assert_allclose(even.covariances[0, 1], [[4, 0], [0, 1]])


def test_labels_may_be_names_numbers_or_category_ids() -> None:
    for labels, more in (([1], {}), (["dog"], {}), ([18], {"category_ids": [3, 18, 17]}), ([1.0], {})):
        assert one(labels=labels, **more).labels.tolist() == [1]


def test_scores_of_all_classes() -> None:
    found = one(scores=[[0.9, 0.8, 0.2]], labels=None)
    np.testing.assert_allclose(found.label_probs, [[0.9, 0.08, 0.02]], rtol=1e-6)
    assert found.scores.tolist() == [0.9]
    assert found.labels.tolist() == [0]
    shared = one(scores=[[0.9, 0.8, 0.2]], labels=None, above_one="normalise")
    np.testing.assert_allclose(shared.label_probs, np.array([[0.9, 0.8, 0.2]]) / 1.9, rtol=1e-6)
    assert shared.scores.tolist() == [0.9]
    with pytest.raises(InputError, match="add up to at most 1"):
        one(scores=[[0.9, 0.8, 0.2]], labels=None, above_one="refuse")
    barely = np.array([[0.7, 0.4], [0.7, 0.3]], np.float32)  # 1.1 and 1: the first alone is changed
    assert (to_distribution(barely) == barely).all(axis=1).tolist() == [False, True]
    many = np.random.default_rng(1).random((5, 3)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probox.tables.labels.ROWS_AT_ONCE", 2)
        in_parts = to_distribution(many)
    np.testing.assert_array_equal(in_parts, to_distribution(many))
    assert to_distribution([[0.1, 0.2]], "limit").tolist() == to_distribution([[0.1, 0.2]], "refuse").tolist()
    assert to_distribution([[0.0, 0.0]], "normalise").tolist() == [[0.0, 0.0]]


def test_tensors_of_any_device_and_type() -> None:
    plain = one(std=[[1, 2, 3, 4]])
    for dtype in (None, "bfloat16"):
        tensors = one(
            boxes=Tensor(BOX, dtype=dtype), scores=Tensor([0.8]), labels=Tensor([1]), std=Tensor([[1, 2, 3, 4]])
        )
        np.testing.assert_array_equal(tensors.boxes, plain.boxes)
        np.testing.assert_array_equal(tensors.covariances, plain.covariances)
    listed = one(boxes=[Tensor(BOX[0])], scores=[Tensor(0.8)], labels=(Tensor(1),), image_ids=Tensor(7))
    np.testing.assert_array_equal(listed.boxes, plain.boxes)
    made = Detections(classes=CLASSES, image_ids=Tensor([7]), boxes=Tensor(BOX), label_probs=Tensor([[0, 0.8, 0]]))
    assert made.boxes.tolist() == BOX


class Exporter:
    """An array of a library that speaks DLPack and nothing else."""

    def __init__(self, values: Any, device: str = "cpu") -> None:
        self.values, self.device = np.array(values), device

    def __dlpack__(self, **options: Any) -> Any:
        if self.device != "cpu":
            raise BufferError("on another device")
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()


def test_arrays_that_speak_dlpack_alone() -> None:
    boxes = Exporter(BOX)
    found = one(boxes=boxes, scores=Exporter([0.8]), labels=Exporter([1]), image_ids=Exporter([7]), std=Exporter(2.0))
    listed = one(boxes=[Exporter(BOX[0])], scores=[Exporter(0.8)], labels=[Exporter(1)])
    expected = one(std=2.0)
    boxes.values[:] = 0
    for name in ("boxes", "label_probs", "image_ids", "labels", "covariances"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert listed.boxes.tolist() == BOX
    fused = fuse_samples([Exporter(BOX)] * 2, [Exporter([[0.1, 0.8, 0.1]])] * 2, classes=CLASSES)
    assert fused.boxes.tolist() == BOX
    mask = np.zeros((8, 8), bool)
    mask[2:4, 2:4] = True
    truth = GroundTruth.from_masks(CLASSES, [(7, [Exporter(mask.astype(np.uint8))], [1])])
    assert truth.masks.to_array(0, 8, 8).tolist() == mask.tolist()
    with pytest.raises(InputError, match=r"expected boxes to be a tensor that NumPy can take, .*on another device"):
        one(boxes=Exporter(BOX, device="gpu"))


@pytest.mark.parametrize("kind", [bool, complex])
def test_boxes_and_ids_are_numbers(kind: Any) -> None:
    boxes, ids = np.array(BOX).astype(kind), np.array([1]).astype(kind)
    named = f"to be numbers, but got {np.dtype(kind)}"
    dictionary = {"scores": [0.8], "labels": [1]}
    for call in (
        lambda: one(boxes=boxes),
        lambda: one(image_ids=ids),
        lambda: one(image_ids=ids[0]),
        lambda: Detections(classes=CLASSES, image_ids=[7], boxes=boxes, label_probs=[[0.1, 0.8, 0.1]]),
        lambda: Detections(classes=CLASSES, image_ids=ids, boxes=BOX, label_probs=[[0.1, 0.8, 0.1]]),
        lambda: Dataset(image_ids=ids, widths=[9], heights=[9], classes=CLASSES),
        lambda: GroundTruth.from_boxes(CLASSES, {7: (99, 99)}, [7], boxes, [1]),
        lambda: from_torchvision({"boxes": boxes, **dictionary}, classes=CLASSES, image_ids=7),
        lambda: from_torchvision({"boxes": BOX, **dictionary}, classes=CLASSES, image_ids=ids),
        lambda: PDQ(classes=CLASSES).update([{"boxes": BOX, **dictionary}], [{"boxes": boxes, "labels": [1]}]),
        lambda: fuse_samples([boxes], [[[0.1, 0.8, 0.1]]], classes=CLASSES),
    ):
        with pytest.raises(InputError, match=named):
            call()
    target = {"boxes": BOX, "labels": [1], "image_id": ids[0]}
    with pytest.raises(InputError, match="image_id to be a whole number"):
        PDQ(classes=CLASSES).update([{"boxes": BOX, **dictionary}], [target])


def test_a_tensor_without_data_is_named() -> None:
    class Meta(Tensor):
        def cpu(self) -> Tensor:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")

        def detach(self) -> Tensor:
            return self

    with pytest.raises(InputError, match=r"expected boxes to be a tensor that NumPy can take, .*no data!\); give"):
        one(boxes=Meta(BOX))


MISTAKES = {
    "percentages": ({"scores": [87.5]}, "divide percentages by 100"),
    "logits": ({"scores": [-2.5]}, "look like logits"),
    "nan score": ({"scores": [float("nan")]}, "diverged"),
    "labels from 1": ({"labels": [3]}, "subtract 1"),
    "category ids as labels": ({"labels": [18]}, "category_ids"),
    "unknown category": ({"labels": [4], "category_ids": [1, 2, 3]}, "not among the 3 category ids"),
    "two classes of one category": ({"category_ids": [1, 1, 2]}, "several classes"),
    "unknown name": ({"labels": ["unicorn"]}, "'unicorn'"),
    "numbers as text": ({"labels": ["1"]}, "as numbers"),
    "image ids as text": ({"image_ids": ["000000000139"]}, "whole numbers"),
    "one id for many": (
        {"boxes": BOX * 2, "scores": [0.8] * 2, "labels": [1] * 2, "image_ids": [7]},
        "give one number",
    ),
    "ids of images, not of boxes": ({"image_ids": [7, 8]}, "repeat each image's id"),
    "xywh as xyxy": ({"boxes": [[50, 60, 40, 40]]}, "x1 <= x2"),
    "layout unknown": ({"box_format": "xywhn"}, "cxcywh"),
    "rows first": ({"box_format": "yxyx"}, "reorder"),
    "pixels as shares": ({"normalised": True, "image_sizes": (640, 480)}, "leave normalised out"),
    "shares without sizes": ({"boxes": [[0.1, 0.2, 0.3, 0.4]], "normalised": True}, "image_sizes"),
    "size of another image": ({"boxes": [[0.1, 0.2, 0.3, 0.4]], "normalised": {8: (640, 480)}}, "is unknown"),
    "sizes twice": ({"normalised": (64, 48), "image_sizes": (64, 48)}, "once"),
    "std and var": ({"std": 2, "var": 4}, "at most one"),
    "matrix as std": ({"std": np.eye(4)[None]}, "as covariances="),
    "negative variance": ({"var": -1.0}, "logarithms"),
    "log variances": ({"var": [[-3.0, 1.0, 1.0, 1.0]]}, "exp first"),
    "NaN sigma": ({"std": float("nan")}, "diverged"),
    "one row of sigmas for all": ({"std": [1, 2, 3, 4]}, "a row for each box"),
    "variance per box": ({"covariances": [4.0]}, "as var="),
    "order of the 4 x 4 unsaid": ({"box_format": "xywh", "covariances": np.eye(4)[None]}, "covariance_format"),
    "factor as covariance": ({"covariances": np.tril(np.ones((4, 4)))[None]}, "L @ L.T"),
    "corners in another format": (
        {"covariances": np.zeros((1, 2, 2, 2)), "covariance_format": "xywh"},
        "leave covariance_format out",
    ),
    "format unknown": ({"std": 3, "covariance_format": "xyxyx"}, "covariance_format to be one of"),
    "format of nothing": ({"covariance_format": "xywh"}, "requires one of"),
    "pixels as shares of sigma": (
        {"boxes": [[0.1, 0.2, 0.3, 0.4]], "normalised": (640, 480), "std": 3.0},
        "fractions of the image",
    ),
    "pixels as shares of four sigmas": (
        {"boxes": [[0.1, 0.2, 0.3, 0.4]], "normalised": (640, 480), "var": [[9.0, 4, 4, 4]]},
        "fractions of the image",
    ),
    "pixels as shares of matrices": (
        {"boxes": [[0.1, 0.2, 0.3, 0.4]], "normalised": (640, 480), "covariances": 9 * np.eye(4)[None]},
        "squared, for variances",
    ),
    "one matrix for four boxes": (
        {"boxes": BOX * 4, "scores": [0.8] * 4, "labels": [1] * 4, "covariances": np.diag([1.0, 4, 9, 16])},
        "four boxes",
    ),
    "negative width": ({"boxes": [[50, 60, -40, 40]], "box_format": "xywh"}, "at least 0 in xywh, but box 0"),
    "rows of different lengths": ({"boxes": [[1, 2, 3, 4], [1, 2]]}, "all of them equally long"),
    "scores and labels swapped": ({"scores": [1], "labels": [0.8]}, "the order is boxes, scores, labels"),
    "numbered names": ({"classes": {0: "cup", 1: "dog", 2: "cat"}}, "names.values"),
    "no labels": ({"labels": None}, "labels="),
    "labels beside all scores": ({"scores": [[0.1, 0.8, 0.1]]}, "leave labels out"),
    "other number of classes": ({"scores": [[0.2, 0.8]], "labels": None}, "1 x 3"),
    "choice unknown": ({"scores": [[0.2, 0.8, 0]], "labels": None, "above_one": "softmax"}, "'limit'"),
    "fewer scores": ({"scores": [0.8, 0.9]}, "shape 1"),
    "transposed boxes": ({"boxes": np.ones((4, 3))}, "transpose"),
    "text scores": ({"scores": ["0.8"]}, "numbers"),
    "flags as labels": ({"labels": [True]}, "True and False"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name: str) -> None:
    changes, said = MISTAKES[name]
    with pytest.raises(InputError, match=said):
        one(**changes)


def test_nothing_found_is_fine() -> None:
    for labels, scores in (([], []), (None, np.zeros((0, 3)))):
        found = one(boxes=[], scores=scores, labels=labels, image_ids=[])
        assert len(found) == 0
        assert found.label_probs.shape == (0, 3)
    assert len(one(boxes=np.zeros((0, 4)), scores=[], labels=[], image_ids=7, std=2.0)) == 0
    assert one(boxes=[], scores=[], labels=[], image_ids=7, std=np.zeros((0, 4))).covariances.shape == (0, 2, 2, 2)


def test_parts_are_put_together_by_names_of_classes() -> None:
    cups = Detections.from_scores(BOX, [0.9], [0], classes=["cup", "dog"], image_ids=1, std=2, notes=["a"])
    cats = Detections.from_scores(BOX, [0.7], [1], classes=["dog", "cat"], image_ids=2, notes=["a", "b"])
    both = Detections.concatenate([cups, cats])
    assert both.classes == ("cup", "dog", "cat")
    np.testing.assert_allclose(both.label_probs, [[0.9, 0.1, 0], [0, 0.3, 0.7]], rtol=1e-6)
    assert both.labels.tolist() == [0, 2]
    assert both.scores.tolist() == [0.9, 0.7]
    assert both.covariances[:, 0, 0, 0].tolist() == [4.0, 0.0]
    assert both.notes == as_notes(["a", "b"])
    again = Detections(classes=["cup", "cup"], image_ids=[1], boxes=BOX, label_probs=[[0.2, 0.7]])
    np.testing.assert_array_equal(Detections.concatenate([again, again]).label_probs, [again.label_probs[0]] * 2)
    assert Detections.concatenate([again, again]).labels.tolist() == [1, 1]
    with pytest.raises(InputError, match="two named 'cup'"):
        Detections.concatenate([cats, again])
    with pytest.raises(InputError, match="got nothing"):
        Detections.concatenate([])
    with pytest.raises(InputError, match="got list"):
        Detections.concatenate([cups, []])  # type: ignore[list-item]


def test_images_of_a_table_together_are_the_table() -> None:
    truth = boxes_truth(5)
    found = simulated(truth)
    mixed = found[np.random.default_rng(0).permutation(len(found))]
    images = list(mixed.by_image())
    assert [image for image, _ in images] == truth.image_ids.tolist()
    assert all((part.image_ids == image).all() for image, part in images)
    again = Detections.concatenate([part for _, part in images])
    assert evaluate(truth, again).summary() == evaluate(truth, mixed).summary()
    assert list(found[:0].by_image()) == []


def test_rows_are_chosen_as_in_an_array() -> None:
    found = simulated(boxes_truth(2))
    assert len(found[1:4]) == 3
    assert found[-1].boxes.tolist() == found.boxes[-1:].tolist()
    assert found[[2, 0]].boxes.tolist() == found.boxes[[2, 0]].tolist()
    np.testing.assert_array_equal(found[found.scores > 0.5].scores, found.scores[found.scores > 0.5])
    assert len(found[[]]) == 0
    for wrong, said in ((found.scores > 2, None), ([True], "mask"), ("cup", "slice"), (1.5, "slice")):
        if said is None:
            assert len(found[wrong]) == 0
        else:
            with pytest.raises(InputError, match=said):
                found[wrong]
    with pytest.raises(IndexError, match="row 99"):
        found[99]
