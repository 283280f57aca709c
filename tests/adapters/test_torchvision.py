"""torchvision's dictionaries: a real model where it is installed, and dictionaries of the same shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests import frameworks

from probox import GroundTruth, InputError, evaluate
from probox.adapters import from_torchvision, truth_from_torchvision

CLASSES = ("cup", "dog", "cat")
CATEGORIES = ("__background__", "cup", "N/A", "dog", "cat")


def output(**changes: Any) -> dict[str, Any]:
    made = {
        "boxes": np.array([[10.0, 20, 50, 60], [5, 5, 30, 40]], np.float32),
        "labels": np.array([2, 3]),
        "scores": np.array([0.8, 0.25], np.float32),
    }
    return made | changes


def target(**changes: Any) -> dict[str, Any]:
    made = {"boxes": np.array([[10.0, 20, 50, 60], [5, 5, 30, 40]]), "labels": np.array([2, 3]), "image_id": 7}
    return made | changes


@pytest.mark.torch
def test_a_real_model() -> None:
    torchvision, torch = frameworks.torchvision(), frameworks.torch()
    torch.manual_seed(0)
    with frameworks.quiet(), torch.no_grad():
        detection, features = torchvision.models.detection, torch.nn.Conv2d(3, 8, 8, stride=8)
        features.out_channels = 8
        model = detection.FasterRCNN(
            features,
            num_classes=4,
            min_size=48,
            max_size=64,
            rpn_anchor_generator=detection.anchor_utils.AnchorGenerator(((16, 32),), ((0.5, 1.0, 2.0),)),
            box_roi_pool=torchvision.ops.MultiScaleRoIAlign(["0"], output_size=4, sampling_ratio=2),
            box_detections_per_img=20,
        ).eval()
        results = model([torch.rand(3, 48, 64), torch.rand(3, 64, 48)])
    found = from_torchvision(results, classes=["__background__", *CLASSES], image_ids=[7, 9])
    assert len(found) == sum(len(result["boxes"]) for result in results) > 10
    assert found.classes == CLASSES
    np.testing.assert_array_equal(found.labels, torch.cat([result["labels"] for result in results]).numpy() - 1)
    np.testing.assert_array_equal(found.boxes, torch.cat([result["boxes"] for result in results]).double().numpy())
    np.testing.assert_array_equal(found.scores, torch.cat([result["scores"] for result in results]).double().numpy())
    counts = [len(result["boxes"]) for result in results]
    assert found.image_ids.tolist() == [7] * counts[0] + [9] * counts[1]
    weights = torchvision.models.detection.FasterRCNN_MobileNet_V3_Large_320_FPN_Weights.DEFAULT
    names = weights.meta["categories"]
    coco = from_torchvision(output(labels=np.array([1, 90])), classes=names, image_ids=7)
    assert (len(names), len(coco.classes)) == (91, 80)
    assert [coco.classes[label] for label in coco.labels] == ["person", "toothbrush"]


def test_labels_count_from_1_with_background_and_without() -> None:
    with_background = from_torchvision(output(), classes=["__background__", *CLASSES], image_ids=7)
    without = from_torchvision(output(), classes=CLASSES, image_ids=7)
    assert with_background.labels.tolist() == without.labels.tolist() == [1, 2]
    assert with_background.classes == without.classes == CLASSES
    np.testing.assert_array_equal(with_background.label_probs, without.label_probs)


@pytest.mark.parametrize("background", [[], [0.1]])
def test_probabilities_and_covariances_beside_them(background: list[float]) -> None:
    probs = np.array([[*background, 0.05, 0.8, 0.05], [*background, 0.1, 0.3, 0.25]])
    covariances = np.tile(np.diag([1.0, 4, 9, 16]), (2, 1, 1))
    found = from_torchvision(
        output(label_probs=probs, covariances=covariances), classes=["background", *CLASSES], image_ids=7
    )
    np.testing.assert_allclose(found.label_probs, probs[:, len(background) :], rtol=1e-6)
    assert found.labels.tolist() == [1, 2]  # as stated, though the second row's best is another
    np.testing.assert_array_equal(found.scores, output()["scores"].astype(float))
    assert found.covariances[0].tolist() == [[[1, 0], [0, 4]], [[9, 0], [0, 16]]]


def test_no_class_has_no_column() -> None:
    probs = np.array([[0.0, 0.1, 0.0, 0.2, 0.6]])
    made = {name: values[:1] for name, values in output(labels=np.array([4, 4])).items()} | {"label_probs": probs}
    found = from_torchvision(made, classes=CATEGORIES, image_ids=7)
    np.testing.assert_allclose(found.label_probs, [[0.1, 0.2, 0.6]], rtol=1e-6)


def test_empty_images_and_none() -> None:
    nothing = {"boxes": np.zeros((0, 4)), "labels": np.zeros(0, np.int64), "scores": np.zeros(0)}
    found = from_torchvision([nothing, output(), nothing], classes=CLASSES, image_ids=[1, 2, 3])
    assert found.image_ids.tolist() == [2, 2]
    for empty in (nothing, [nothing], []):
        found = from_torchvision(empty, classes=CLASSES, image_ids=[7][: len(empty) if isinstance(empty, list) else 1])
        assert len(found) == 0
        assert found.classes == CLASSES
    lists = {"boxes": [], "labels": [], "scores": []}
    assert len(from_torchvision(lists, classes=CLASSES, image_ids=7)) == 0


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"labels": np.array([0, 3])}, "image 7: label 0 is background, .* use Detections.from_scores"),
        (
            {"labels": np.array([1, 4])},
            "labels from 1 to 3, but got 4; give all classes: weights",
        ),
        ({"labels": np.array([-1, 2])}, "labels from 1 to 3, but got -1"),
        ({"labels": np.array([1.5, 2.0])}, "labels to be whole numbers"),
        ({"boxes": np.array([[0.1, 0.2, 0.5, 0.6], [0, 0, 1, 1]])}, "multiply them by the image's size"),
        ({"boxes": np.array([[50, 20, 10, 60.0], [0, 0, 9, 9]])}, "expected x1 <= x2"),
        ({"boxes": np.zeros((2, 5))}, "expected boxes of shape N x 4, but got 2 x 5"),
        ({"scores": None}, None),
        ({"label_probs": np.full((2, 7), 0.1)}, "optionally with background first, but got 2 x 7"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], match: str | None) -> None:
    made = output(**changes)
    if made["scores"] is None:
        del made["scores"]
        match = "a training target: use truth_from_torchvision"
    with pytest.raises(InputError, match=match):
        from_torchvision(made, classes=CLASSES, image_ids=7)


def test_losses_are_no_detections() -> None:
    with pytest.raises(InputError, match=r"put the model into model.eval\(\)"):
        from_torchvision({"loss_classifier": 3.0}, classes=CLASSES, image_ids=7)


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        (["7", "9"], "but got the text '7'"),
        ([7], "got outputs of 2 images, but 1 image ids"),
        (7, "got outputs of 2 images, but 1 image ids"),
        ([7, 7], "image 7: several outputs have this image id"),
        ([7.5, 8], "whole numbers"),
        ([True, False], "image_ids to be numbers, but got bool"),
        (None, "give image_ids="),
    ],
)
def test_wrong_ids(ids: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        from_torchvision([output(), output()], classes=CLASSES, image_ids=ids)


def test_truth_with_boxes() -> None:
    targets = [target(image_id=np.array([9])), target(labels=np.array([1, 1]))]
    truth = truth_from_torchvision(targets, classes=CLASSES, image_sizes={9: (64, 70), 7: (60, 64)})
    assert truth.image_ids.tolist() == [7, 9]
    assert truth.labels.tolist() == [0, 0, 1, 2]
    by_hand = GroundTruth.from_boxes(
        CLASSES, {9: (64, 70), 7: (60, 64)}, [9, 9, 7, 7], np.tile(target()["boxes"], (2, 1)), [1, 2, 0, 0]
    )
    np.testing.assert_array_equal(truth.boxes, by_hand.boxes)
    np.testing.assert_array_equal(truth.areas, by_hand.areas)
    np.testing.assert_array_equal(truth.masks.pixels, by_hand.masks.pixels)
    found = from_torchvision([output(), output()], classes=CLASSES, image_ids=[9, 7])
    assert evaluate(truth, found).summary() == evaluate(by_hand, found).summary()


def test_truth_with_masks_crowds_and_areas() -> None:
    masks = np.zeros((2, 64, 80), np.uint8)
    masks[0, 20:60, 10:50] = 1
    masks[1, 5:40, 5:20] = 1
    made = target(masks=masks, iscrowd=np.array([0, 1]), area=np.array([1600.0, 77.0]))
    truth = truth_from_torchvision([made, target(image_id=9, size=np.array([64, 80]))], classes=CLASSES)
    assert truth.dataset.shapes.tolist() == [[80, 64], [80, 64]]
    assert truth.masks.pixels.tolist()[:2] == [1600, 525]
    assert truth.crowd.tolist() == [False, True, False, False]
    assert truth.areas.tolist()[:2] == [1600.0, 77.0]
    np.testing.assert_array_equal(truth.masks.to_array(1, 64, 80), masks[1])
    assert truth.boxes[1].tolist() == [5, 5, 30, 40]


def test_truth_of_empty_images() -> None:
    nothing = {"boxes": np.zeros((0, 4)), "labels": np.zeros(0, np.int64), "image_id": 9, "orig_size": (48, 64)}
    truth = truth_from_torchvision([nothing, target(size=(64, 64))], classes=CLASSES)
    assert truth.dataset.shapes.tolist() == [[64, 64], [64, 48]]
    assert len(truth_from_torchvision([nothing], classes=CLASSES)) == 0
    assert len(truth_from_torchvision([], classes=CLASSES).dataset) == 0


@pytest.mark.parametrize(
    ("changes", "sizes", "match"),
    [
        ({}, None, "image 7: the size of this image is unknown; give image_sizes="),
        ({"labels": np.array([0, 1])}, (64, 64), "label 0 is background"),
        ({"labels": np.array([1])}, (64, 64), "got 2 boxes, but 1 labels"),
        ({"boxes": np.array([[0, 0, 0.9, 0.4], [0, 0, 1, 1.0]])}, (48, 100), "they look normalised"),
        ({"masks": np.ones((1, 64, 64), bool)}, None, "expected masks of shape 2 x H x W, but got 1 x 64 x 64"),
        ({"iscrowd": np.array([1])}, (64, 64), "got 2 boxes, but 1 iscrowd"),
    ],
)
def test_mistakes_in_targets_are_named(changes: dict[str, Any], sizes: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        truth_from_torchvision(target(**changes), classes=CLASSES, image_sizes=sizes)


def test_background_in_the_middle_and_no_class() -> None:
    with pytest.raises(InputError, match=r"background .'background'. is in the middle"):
        from_torchvision(output(), classes=["cup", "background", "dog"], image_ids=7)
    with pytest.raises(InputError, match="an object has the label of N/A"):
        truth_from_torchvision(target(), classes=CATEGORIES, image_sizes=(64, 64))
