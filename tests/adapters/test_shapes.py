"""detectron2's instances and mmdet's samples, in objects of their shape, and probdet's entries."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests import frameworks
from tests.adapters.shapes import Boxes, DetDataSample, Instances
from tests.tensors import Tensor

import probox.adapters
from probox import Detections, GroundTruth, InputError, read_detections
from probox.adapters import (
    from_detectron2,
    from_mmdet,
    from_probdet,
    from_supervision,
    to_supervision,
    to_supervision_key_points,
)
from probox.tables.dataset import Dataset

CLASSES = ("cup", "dog", "cat")
BOXES = np.array([[10.0, 20, 50, 60], [5, 5, 30, 40]], np.float32)
SCORES = np.array([0.8, 0.25], np.float32)
LABELS = np.array([1, 2])
PROBS = np.array([[0.05, 0.8, 0.05, 0.1], [0.1, 0.3, 0.25, 0.35]])
COVARIANCE = np.array([[4.0, 1, 2, 0], [1, 9, 0, 1], [2, 0, 16, 3], [0, 1, 3, 25]])
PLAIN = Detections.from_scores(BOXES, SCORES, LABELS, classes=CLASSES, image_ids=7)


def instances(**changes: Any) -> Instances:
    made = {"pred_boxes": Boxes(Tensor(BOXES)), "scores": Tensor(SCORES), "pred_classes": Tensor(LABELS)}
    made |= changes
    return Instances((64, 80), **{name: values for name, values in made.items() if values is not None})


def sample(**changes: Any) -> DetDataSample:
    made = {"bboxes": Tensor(BOXES), "scores": Tensor(SCORES), "labels": Tensor(LABELS)} | changes
    kept = {name: values for name, values in made.items() if values is not None}
    return DetDataSample(SimpleNamespace(**kept), img_id=7, ori_shape=(64, 80))


def test_instances_one_or_many() -> None:
    for each in (instances(), {"instances": instances()}, [{"instances": instances()}], [instances()]):
        found = from_detectron2(each, classes=CLASSES, image_ids=[7])
        assert_same(found, PLAIN)
        assert found.covariances is None
    assert_same(from_detectron2({"image_id": 7, "instances": instances()}, classes=CLASSES), PLAIN)
    empty = instances(
        pred_boxes=Boxes(Tensor(np.zeros((0, 4)))), scores=Tensor(np.zeros(0)), pred_classes=Tensor(np.zeros(0, int))
    )
    found = from_detectron2([empty, instances(), empty], classes=CLASSES, image_ids=[1, 7, 9])
    assert_same(found, PLAIN)
    assert len(from_detectron2(empty, classes=CLASSES, image_ids=7)) == 0
    assert len(from_detectron2([], classes=CLASSES)) == 0


def test_boxes_may_fill_a_wide_image() -> None:
    wide = np.array([[0.0, 0, 80, 64], [5, 5, 30, 40]])
    found = from_detectron2(instances(pred_boxes=Boxes(Tensor(wide))), classes=CLASSES, image_ids=7)
    np.testing.assert_array_equal(found.boxes, wide)
    tall = np.array([[0.0, 0, 64, 80], [5, 5, 30, 40]])
    with pytest.raises(InputError, match="inside the image of 80 x 64, but they reach 64, 80"):
        from_detectron2(instances(pred_boxes=Boxes(Tensor(tall))), classes=CLASSES, image_ids=7)


@pytest.mark.parametrize("columns", [3, 4])
def test_the_fields_of_probdet(columns: int) -> None:
    every = {"pred_cls_probs": Tensor(PROBS[:, :columns]), "pred_boxes_covariance": Tensor([COVARIANCE] * 2)}
    found = from_detectron2(instances(**every), classes=CLASSES, image_ids=7)
    np.testing.assert_array_equal(found.label_probs, PROBS[:, :3].astype(np.float32))
    assert found.labels.tolist() == [1, 2]
    assert found.covariances[0].tolist() == [[[4, 1], [1, 9]], [[16, 3], [3, 25]]]
    given = from_detectron2([instances()], classes=CLASSES, image_ids=7, probs=[Tensor(PROBS[:, :columns])])
    np.testing.assert_array_equal(given.label_probs, found.label_probs)
    for probs in (PROBS[:, :columns], [PROBS[:, :columns]], [Tensor(PROBS[:, :columns])]):  # beside a single output
        alone = from_detectron2({"instances": instances()}, classes=CLASSES, image_ids=7, probs=probs)
        np.testing.assert_array_equal(alone.label_probs, found.label_probs)
    with pytest.raises(InputError, match="got 1 images, but probs of 2; give one array per image"):
        from_detectron2(instances(), classes=CLASSES, image_ids=7, probs=[PROBS, PROBS])


def test_sigmoids_of_instances_are_limited_by_choice() -> None:
    high = np.array([[0.5, 0.8, 0.5], [0.1, 0.2, 0.25]])
    found = from_detectron2(instances(), classes=CLASSES, image_ids=7, probs=high)
    np.testing.assert_allclose(found.label_probs, [[0.1, 0.8, 0.1], [0.1, 0.2, 0.25]], rtol=1e-6)
    with pytest.raises(InputError, match=r"Detections.from_scores\(..., above_one=\"limit\"\)"):
        from_detectron2(instances(), classes=CLASSES, image_ids=7, probs=high, above_one="refuse")


@pytest.mark.parametrize(
    ("changes", "arguments", "match"),
    [
        ({"pred_classes": Tensor([18, 1])}, {}, "category ids of a dataset are not pred_classes"),
        ({"pred_classes": Tensor([-1, 1])}, {}, "from 0 to 2, but got -1"),
        ({"pred_boxes": None}, {}, "expected instances, but got Instances without pred_boxes"),
        ({"pred_boxes": Boxes(BOXES * 4)}, {}, "inside the image of 80 x 64, but they reach 200, 240; scale boxes"),
        ({"pred_boxes": Boxes(BOXES / 100)}, {}, "they look normalised"),
        ({"scores": Tensor([3.0, -2.0])}, {}, "these look like logits"),
        ({}, {"probs": PROBS[:, [3, 0, 1, 2]]}, "expected the last of 4 columns to be background, but the first one"),
        ({}, {"probs": PROBS[:1]}, "got 2 boxes, but 1 label_probs"),
        ({}, {"probs": np.full((2, 9), 0.1)}, "optionally with background last, but got 2 x 9"),
        ({}, {"image_ids": None}, "give image_ids="),
        ({"pred_boxes_covariance": Tensor(np.tile(np.tril(COVARIANCE), (2, 1, 1)))}, {}, r"L: give L @ L.T"),
    ],
)
def test_mistakes_in_instances_are_named(changes: dict[str, Any], arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        from_detectron2(instances(**changes), **{"classes": CLASSES, "image_ids": 7} | arguments)
    with pytest.raises(InputError, match="got 1 images, but probs of 2"):
        from_detectron2([instances()], classes=CLASSES, image_ids=7, probs=[PROBS, PROBS])


def test_samples_one_or_many() -> None:
    model = SimpleNamespace(dataset_meta={"classes": CLASSES})
    as_dict = {"img_id": 7, "pred_instances": {"bboxes": BOXES, "scores": SCORES, "labels": LABELS}}
    for each in (sample(), [sample()], sample(bboxes=Boxes(Tensor(BOXES))), as_dict):
        for classes in (CLASSES, model, model.dataset_meta, {"CLASSES": CLASSES}):
            assert_same(from_mmdet(each, classes=classes), PLAIN)
    found = from_mmdet(sample(), classes=CLASSES, image_ids=9)
    assert found.image_ids.tolist() == [9, 9]
    empty = sample(bboxes=Tensor(np.zeros((0, 4))), scores=Tensor(np.zeros(0)), labels=Tensor(np.zeros(0, int)))
    assert_same(from_mmdet([empty, sample()], classes=CLASSES, image_ids=[1, 7]), PLAIN)
    assert len(from_mmdet([], classes=CLASSES)) == 0


def test_samples_with_more_to_say() -> None:
    found = from_mmdet(sample(label_probs=Tensor(PROBS), covariances=Tensor(np.ones((2, 4)))), classes=CLASSES)
    np.testing.assert_array_equal(found.label_probs, PROBS[:, :3].astype(np.float32))
    assert found.covariances is not None
    given = from_mmdet(sample(), classes=CLASSES, probs=PROBS)
    np.testing.assert_array_equal(given.label_probs, found.label_probs)


def test_lists_of_arrays_of_mmdet_2() -> None:
    rows = np.concatenate([BOXES, SCORES[:, None]], axis=1)
    legacy = [np.zeros((0, 5), np.float32), rows[:1], rows[1:]]
    for each in (legacy, [legacy]):
        assert_same(from_mmdet(each, classes=CLASSES, image_ids=7), PLAIN)
    with pytest.raises(InputError, match="expected an array for each of 3 classes, but got 2"):
        from_mmdet(legacy[:2], classes=CLASSES, image_ids=7)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"labels": Tensor([1, 3])}, "expected labels from 0 to 2, but got 3"),
        ({"labels": Tensor([1, -1])}, "expected labels from 0 to 2, but got -1"),
        ({"scores": None}, "but got DetDataSample without scores; give what inference_detector"),
        ({"bboxes": Tensor(BOXES * 3)}, "but they reach 150, 180; give boxes of the original image: rescale=True"),
        ({"bboxes": Tensor(BOXES / 64)}, "they look normalised"),
        ({"bboxes": Tensor(BOXES[:1])}, "got 1 boxes, but 2 scores"),
    ],
)
def test_mistakes_in_samples_are_named(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        from_mmdet(sample(**changes), classes=CLASSES)


def test_entries_of_probdet_are_those_of_its_file(tmp_path: Path) -> None:
    truth = Dataset.from_sizes(CLASSES, {7: (80, 64)}, category_ids=[3, 5, 18])
    first = {"image_id": 7, "category_id": 5, "bbox": np.array([10.0, 20, 40, 40]), "score": np.float32(0.8)}
    second = {"image_id": 7, "category_id": 18, "bbox": [5, 5, 25, 35], "score": 0.25, "bbox_covar": []}
    entries = [first | {"cls_prob": Tensor(PROBS[0], "cpu"), "bbox_covar": COVARIANCE}, second]
    found = from_probdet(entries, truth)
    path = tmp_path / "probdet.json"
    path.write_text(json.dumps(entries, default=lambda value: np.asarray(getattr(value, "values", value)).tolist()))
    of_file = read_detections(path, truth)
    assert_same(found, of_file)
    assert found.covariances[0].tolist() == [[[4, 1], [1, 9]], [[24, 4 + 0], [4 + 0, 36]]]
    given = {"box_format": "xywh", "covariances": COVARIANCE[None], "covariance_format": "xywh"}
    by_arrays = Detections.from_scores([[10, 20, 40, 40]], PROBS[:1, :3], classes=CLASSES, image_ids=7, **given)
    np.testing.assert_allclose(by_arrays.covariances, found.covariances[:1])
    np.testing.assert_array_equal(by_arrays.label_probs, found.label_probs[:1])


def test_other_things_are_no_entries() -> None:
    truth = GroundTruth.from_boxes(CLASSES, {7: (64, 64)}, [7], [[1, 2, 3, 4]], [0])
    with pytest.raises(InputError, match=r"read files with probox\.read_detections"):
        from_probdet("probdet.json", truth)
    with pytest.raises(InputError, match="the order is from_probdet"):
        from_probdet(truth, [])  # type: ignore[arg-type]
    assert len(from_probdet([], truth)) == 0


def drawn(count: int = 2) -> np.ndarray:
    """Return masks of the boxes without their first row, (n, H, W)."""
    masks = np.zeros((count, 64, 80), bool)
    for mask, (x1, y1, x2, y2) in zip(masks, BOXES.astype(int), strict=False):
        mask[y1 + 1 : y2, x1:x2] = True
    return masks


def assert_masks(found: Detections, flags: np.ndarray) -> None:
    assert found.masks is not None
    assert found.heatmaps is None
    assert found.has_mask.all()
    assert found.areas.tolist() == flags.sum(axis=(1, 2)).tolist()
    for row, mask in enumerate(flags):
        np.testing.assert_array_equal(found.masks.to_array(row, *mask.shape), mask)


def test_masks_of_every_framework() -> None:
    masks = drawn()
    bitmaps = SimpleNamespace(to_ndarray=lambda: masks.astype(np.uint8))  # mmdet's BitmapMasks
    legacy = [np.zeros((0, 5)), *(np.append(box, score)[None] for box, score in zip(BOXES, SCORES, strict=True))]
    for found in (
        from_detectron2(instances(pred_masks=Tensor(masks)), classes=CLASSES, image_ids=7),
        from_detectron2(instances(pred_masks=Boxes(Tensor(masks))), classes=CLASSES, image_ids=7),  # BitMasks
        from_mmdet(sample(masks=Tensor(masks)), classes=CLASSES),
        from_mmdet(sample(masks=bitmaps), classes=CLASSES),
        from_mmdet((legacy, [[], [masks[0]], [masks[1]]]), classes=CLASSES, image_ids=7),
        from_supervision(held(mask=masks), image_ids=7, classes=CLASSES),
    ):
        assert_masks(found, masks)
        assert found.notes == ()
    assert from_detectron2(instances(), classes=CLASSES, image_ids=7).masks is None
    none = instances(
        pred_boxes=Boxes(np.zeros((0, 4))), scores=[], pred_classes=[], pred_masks=np.zeros((0, 64, 80), bool)
    )
    found = from_detectron2([none, instances(pred_masks=masks)], classes=CLASSES, image_ids=[6, 7])
    assert_masks(found, masks)


def test_an_image_without_masks_beside_one_with_masks() -> None:
    found = from_supervision([held(), held(mask=drawn())], image_ids=[6, 7], classes=CLASSES)
    assert found.has_mask.tolist() == [False, False, True, True]
    assert found.masks.pixels.tolist() == [0, 0, *drawn().sum(axis=(1, 2)).tolist()]
    assert found.areas[:2].tolist() == found.extents[:2].prod(axis=1).tolist()
    empty = from_supervision(held(mask=np.zeros((2, 64, 80), bool)), image_ids=7, classes=CLASSES)
    assert empty.has_mask.all()
    assert empty.areas.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("masks", "match"),
    [
        (np.zeros((2, 32, 40), bool), "image 7: the image is 80 x 64, but its masks are 40 x 32; scale masks"),
        (np.zeros((2, 1, 28, 28), np.float32), "the image is 80 x 64, but its masks are 28 x 28"),
        (np.zeros((1, 64, 80), bool), "image 7: expected masks of shape 2 x H x W, but got 1 x 64 x 80"),
        (np.zeros((64, 80, 2), bool), "expected masks of shape 2 x H x W, but got 64 x 80 x 2"),
        (np.full((2, 64, 80), 7), "expected masks of True and False, or of 0 and 1"),
        (np.full((2, 64, 80), -1.5), "with probabilities from 0 to 1, but got -1.5 to 0; apply a sigmoid"),
        (np.full((2, 64, 80), np.nan), "with probabilities from 0 to 1, but got nan"),
    ],
)
def test_mistakes_in_masks_are_named(masks: np.ndarray, match: str) -> None:
    with pytest.raises(InputError, match=match):
        from_detectron2(instances(pred_masks=Tensor(masks)), classes=CLASSES, image_ids=7)
    with pytest.raises(InputError, match=match):
        from_mmdet(sample(masks=masks), classes=CLASSES)


def table(n: int = 12, seed: int = 0) -> Detections:
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 200, (n, 2))
    roots = rng.normal(0, 3, (n, 2, 2, 2))
    return Detections(
        classes=CLASSES,
        image_ids=rng.integers(1, 4, n),
        boxes=np.concatenate([low, low + rng.uniform(20, 90, (n, 2))], axis=1),
        label_probs=rng.dirichlet([0.5, 0.5, 0.5, 0.5], n)[:, :3],
        covariances=roots @ roots.swapaxes(-1, -2),
    )


def held(**changes: Any) -> SimpleNamespace:
    made = {
        "xyxy": np.array([[10.0, 20, 50, 60], [5, 5, 30, 40]], np.float32),
        "confidence": np.array([0.8, 0.25], np.float32),
        "class_id": np.array([1, 2]),
        "data": {"class_name": np.array(["dog", "cat"])},
        "metadata": {},
    }
    return SimpleNamespace(**made | changes)


def assert_same(one: Detections, other: Detections) -> None:
    assert one.classes == other.classes
    for name in ("image_ids", "boxes", "label_probs", "covariances", "labels", "scores"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_there_and_back_again_through_all_that_supervision_does() -> None:
    library = frameworks.supervision()
    found = table()
    held = to_supervision(found)
    assert isinstance(held, library.Detections)
    assert held.data["class_name"].tolist() == [CLASSES[label] for label in found.labels]
    assert_same(from_supervision(held), found)
    sure = found.scores > 0.5
    assert 0 < sure.sum() < len(found)
    assert_same(from_supervision(held[held.confidence > 0.5]), found[sure])
    parts = [to_supervision(found, image_id) for image_id in (1, 2, 3)]
    merged = library.Detections.merge(parts)
    by_image = Detections.concatenate([part for _, part in found.by_image()])
    assert_same(from_supervision(merged), by_image)
    assert_same(from_supervision(parts, image_ids=[1, 2, 3]), by_image)
    assert_same(from_supervision(parts), by_image)
    twice = library.Detections.merge([held, held])
    kept = from_supervision(twice.with_nms(threshold=0.99))
    assert len(kept) == len(found)
    at = [int(np.flatnonzero((found.boxes == box).all(axis=1))[0]) for box in kept.boxes]
    assert_same(kept, found[at])


def test_nothing_there_and_back() -> None:
    frameworks.supervision()
    nothing = table()[:0]
    assert len(to_supervision(nothing)) == 0
    assert_same(from_supervision(to_supervision(nothing), image_ids=7), nothing.replace(covariances=None))
    assert len(to_supervision(table(), 99)) == 0
    assert len(from_supervision([], classes=CLASSES)) == 0
    mixed = from_supervision([to_supervision(table(), 99), to_supervision(table(), 1)])
    assert_same(mixed, table()[table().image_ids == 1])


def test_ellipses_are_drawn_where_the_covariances_say() -> None:
    library = frameworks.supervision()
    covariances = np.array([[[[144.0, 0], [0, 36]], [[100, 60], [60, 100]]]])
    found = Detections.from_scores(
        [[60, 50, 160, 150]], [0.8], [0], classes=CLASSES, image_ids=7, covariances=covariances
    )
    points = to_supervision_key_points(found, 7)
    assert isinstance(points, library.KeyPoints)
    assert points.xy.tolist() == [[[60, 50], [160, 150]]]
    with frameworks.quiet():
        annotator = library.VertexEllipseAreaAnnotator(sigma=2.0, color=library.Color.WHITE)
        scene = annotator.annotate(np.zeros((240, 240, 3), np.uint8), points)
    lit = scene.max(axis=2) > 0
    for corner, (x, y) in enumerate([(60, 50), (160, 150)]):
        rows, columns = np.nonzero(lit)
        near = (np.abs(columns - x) < 45) & (np.abs(rows - y) < 45)
        reach = np.stack([columns[near] - x, rows[near] - y], axis=1)
        values, vectors = np.linalg.eigh(covariances[0, corner])
        extent = np.abs(reach @ vectors).max(axis=0)
        np.testing.assert_allclose(extent, 2 * np.sqrt(values), atol=1.6)  # it rounds axes to pixels


def test_plain_boxes_and_heatmaps_have_no_ellipses() -> None:
    with pytest.raises(InputError, match="expected boxes with covariances"):
        to_supervision_key_points(table().replace(covariances=None))
    heatmap = table()[:1].replace(heatmaps=(np.zeros((4, 4)),))
    with pytest.raises(InputError, match=r"supervision does not support heatmaps; write found.with_binary_masks\(\)"):
        to_supervision(heatmap)
    with pytest.raises(InputError, match=r"write to_supervision\(found, image_id\)"):
        to_supervision(held())


def test_without_supervision_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "supervision", None)
    with pytest.raises(InputError, match=r"need supervision; install it with: .*pip install 'probox\[supervision\]'"):
        to_supervision(table())


def test_one_score_each_is_what_arrays_give() -> None:
    for each in (held(), held(class_id=None), held(data={}), [held()]):
        found = from_supervision(each, image_ids=7, classes=CLASSES)
        plain = Detections.from_scores(held().xyxy, held().confidence, [1, 2], classes=CLASSES, image_ids=7)
        assert_same(found, plain)


def test_detections_may_know_their_images() -> None:
    many = held(data={"image_id": np.array([9, 3])}, metadata={"classes": list(CLASSES)})
    assert from_supervision(many).image_ids.tolist() == [9, 3]
    assert from_supervision(many).classes == CLASSES
    assert from_supervision(many, image_ids=7).image_ids.tolist() == [7, 7]


@pytest.mark.parametrize(
    ("changes", "arguments", "match"),
    [
        ({}, {"classes": None}, "give classes=, all names that class_id counts in"),
        ({}, {"classes": ("dog", "cat", "cup")}, "class_id 1 is 'cat' in classes, but 'dog' in the detections"),
        ({}, {"classes": ("cup", "dog")}, "expected class_id from 0 to 1, but got 2"),
        ({"confidence": None}, {}, "expected detections with a confidence; annotations have none"),
        ({"class_id": None, "data": {}}, {}, "expected detections with a class_id"),
        ({"xyxy": np.array([[0, 0, 0.5, 0.5], [0, 0, 1, 1.0]])}, {}, "they look normalised"),
        ({"confidence": np.array([5.0, -3.0])}, {}, "these look like logits"),
        ({"data": {"label_probs": np.full((2, 4), 0.2)}}, {}, "expected scores of all classes of shape 2 x 3"),
        ({}, {"image_ids": None}, "give image_ids="),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        from_supervision(held(**changes), **{"image_ids": 7, "classes": CLASSES} | arguments)


def test_other_things_are_refused() -> None:
    with pytest.raises(InputError, match="or a list of them, but got int"):
        from_supervision(3, image_ids=7)
    with pytest.raises(InputError, match="expected supervision's Detections"):
        from_supervision([{"boxes": 3}], image_ids=7)


FRAMEWORKS = ("torch", "torchvision", "transformers", "ultralytics", "supervision", "lightning", "pytorch_lightning")
MODULES = sorted(Path(probox.adapters.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_framework_is_imported_by_name(path: Path) -> None:
    lines = [line.split()[1].split(".")[0] for line in path.read_text().splitlines() if _is_import(line)]
    assert not set(FRAMEWORKS) & set(lines)
    assert "probox" in lines


def _is_import(line: str) -> bool:
    return line.lstrip().startswith(("import ", "from ")) and len(line.split()) > 1 and not line.endswith(".")


def test_importing_adapters_loads_no_framework() -> None:
    code = f"import probox.adapters, sys; print(sorted(set({FRAMEWORKS!r}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
