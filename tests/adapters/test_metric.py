"""The metric of a training loop: the same numbers as from files, however batches and processes share the images."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples

import probox
from probox import PDQ, InputError
from probox.adapters import from_torchvision, truth_from_torchvision
from probox.notes import Note

CLASSES = ("cup", "dog", "car")
WIDTH, HEIGHT = 400, 300
Batch = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def some_images(count: int, seed: int = 0, *, ids: bool = True, sized: bool = True, **kinds: bool) -> Batch:
    rng = np.random.default_rng(seed)
    preds, target = [], []
    for image in range(count):
        n = 0 if image == 0 else int(rng.integers(1, 5))
        corners = np.stack([rng.uniform(60, 250, n), rng.uniform(60, 170, n)], axis=1)
        boxes = np.concatenate([corners, corners + rng.uniform(10, 60, (n, 2))], axis=1).round(2)
        labels = rng.integers(0, 3, n)
        truth: dict[str, Any] = {"boxes": boxes, "labels": labels}
        if ids:
            truth["image_id"] = 100 - image
        if sized:
            truth["image_size"] = (WIDTH, HEIGHT)
        if kinds.get("crowd"):
            truth["iscrowd"] = (rng.random(n) < 0.2).astype(int)
        if kinds.get("area"):
            truth["area"] = rng.uniform(100, 5000, n).round()
        extra = rng.uniform(40, 150, (2, 2))
        guesses = np.concatenate([boxes + rng.normal(0, 2, boxes.shape), np.hstack([extra, extra + 30])]).round(2)
        named = np.concatenate([labels, rng.integers(0, 3, 2)])
        found: dict[str, Any] = {"boxes": guesses, "labels": named, "scores": rng.uniform(0.4, 1, n + 2).round(3)}
        if kinds.get("probs"):
            probs = rng.dirichlet(np.ones(3), n + 2).astype(np.float32) * np.float32(0.99)
            found |= {"label_probs": probs, "labels": probs.argmax(axis=1), "scores": probs.max(axis=1)}
        if kinds.get("covariances"):
            root = rng.normal(0, 1.5, (n + 2, 2, 2, 2))
            found["covariances"] = root @ np.swapaxes(root, 2, 3) + np.eye(2)
        preds.append(found)
        target.append(truth)
    return preds, target


def coco_files(folder: Path, batch: Batch) -> tuple[Path, Path]:
    images, annotations, results = [], [], []
    for found, truth in zip(*batch, strict=True):
        image_id = truth["image_id"]
        images.append({"id": image_id, "width": WIDTH, "height": HEIGHT})
        for row, box in enumerate(truth["boxes"].tolist()):
            width, height = box[2] - box[0], box[3] - box[1]
            area = float(truth["area"][row]) if "area" in truth else width * height
            crowd = int(truth["iscrowd"][row]) if "iscrowd" in truth else 0
            bbox = [box[0], box[1], width, height]
            annotations.append(
                {"id": len(annotations) + 1, "image_id": image_id, "bbox": bbox, "area": area, "iscrowd": crowd}
                | {"category_id": int(truth["labels"][row]) + 1}
            )
        for row, box in enumerate(found["boxes"].tolist()):
            bbox = [box[0], box[1], box[2] - box[0], box[3] - box[1]]
            result = {"image_id": image_id, "bbox": bbox, "score": float(found["scores"][row])}
            result["category_id"] = int(found["labels"][row]) + 1
            if "label_probs" in found:
                result["all_scores"] = found["label_probs"][row].astype(float).tolist()
            if "covariances" in found:
                result["covars"] = found["covariances"][row].tolist()
            results.append(result)
    categories = [{"id": number + 1, "name": name} for number, name in enumerate(CLASSES)]
    paths = folder / "truth.json", folder / "found.json"
    paths[0].write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    paths[1].write_text(json.dumps(results))
    return paths


def filled(batch: Any, **options: Any) -> PDQ:
    metric = PDQ(**({"classes": CLASSES} | options))
    metric.update(*batch)
    return metric


def assert_equal(one: probox.Evaluation, other: probox.Evaluation) -> None:
    for table in ("dataset", "objects", "detections", "pairs"):
        mine, theirs = getattr(one, table).columns(), getattr(other, table).columns()
        for name in mine.keys() - {"ids"}:  # rows are numbered in each table anew
            np.testing.assert_array_equal(mine[name], theirs[name], err_msg=f"{table}.{name}")
    np.testing.assert_equal(one.summary(), other.summary())


@pytest.mark.parametrize("kinds", [(), ("probs",), ("covariances",), ("probs", "covariances", "crowd", "area")])
@pytest.mark.parametrize("preset", ["reference", "paper"])
def test_numbers_are_those_of_the_files(tmp_path: Path, kinds: tuple[str, ...], preset: str) -> None:
    batch = some_images(8, **dict.fromkeys(kinds, True))
    truth_file, found_file = coco_files(tmp_path, batch)
    truth = probox.read_truth(truth_file)
    found = probox.read_detections(found_file, truth)
    expected = probox.evaluate(truth, found, convention=probox.Convention.preset(preset, label_threshold=0.45))
    metric = filled(batch, preset=preset, label_threshold=0.45)
    assert 0.01 < expected.pdq < 0.99
    assert metric.compute() == pytest.approx(expected.summary(), rel=1e-12, nan_ok=True)
    assert metric.result().convention == expected.convention


@pytest.mark.parametrize("box_format", ["xywh", "cxcywh"])
def test_other_formats_of_boxes(box_format: str) -> None:
    batch = some_images(6)
    expected = filled(batch).compute()
    changed = copy.deepcopy(batch)
    for entry in (*changed[0], *changed[1]):
        low, size = entry["boxes"][:, :2], entry["boxes"][:, 2:] - entry["boxes"][:, :2]
        entry["boxes"] = np.hstack([low if box_format == "xywh" else low + size / 2, size])
    assert filled(changed, box_format=box_format).compute() == pytest.approx(expected, nan_ok=True)


@examples(12)
@given(st.lists(st.integers(0, 2), min_size=6, max_size=6), st.booleans())
def test_batches_and_processes_do_not_matter(owners: list[int], ids: bool) -> None:
    preds, target = some_images(6, ids=ids, probs=True, covariances=True)
    parts = []
    for process in range(3):
        metric = PDQ(CLASSES)
        for row in [row for row, owner in enumerate(owners) if owner == process]:
            metric.update([preds[row]], [target[row]])
        parts.append(metric)
    order = np.argsort(owners, kind="stable")
    whole = filled(([preds[row] for row in order], [target[row] for row in order])).result()
    parts[1].sync(lambda part: [other._seen for other in parts])
    assert_equal(parts[1].result(), whole)
    merged = PDQ(CLASSES)
    for metric in parts:
        merged.merge(metric)
    assert_equal(merged.result(), whole)


def test_images_that_several_processes_saw_count_once() -> None:
    preds, target = some_images(5)
    first, second = filled((preds[:3], target[:3])), filled((preds[2:], target[2:]))
    first.sync(lambda part: [part, second._seen])
    assert len(first) == 5
    assert first.compute() == filled((preds, target)).compute()
    assert Note("repeated-images", 1) in first.result().notes


def test_what_comes_after_a_sync_is_not_lost() -> None:
    preds, target = some_images(5)
    metric = filled((preds[:2], target[:2]))
    metric.sync(lambda part: [part, filled((preds[2:4], target[2:4]))._seen])
    metric.update(preds[4:], target[4:])
    assert len(metric) == 3  # its own; the others' may have more by now
    metric.sync(lambda part: [part, filled((preds[2:4], target[2:4]))._seen])
    assert metric.compute() == pytest.approx(filled((preds, target)).compute())


def test_used_like_a_metric_of_torchmetrics() -> None:
    preds, target = some_images(6)
    metric = PDQ(CLASSES)
    assert np.isnan(metric.compute()["PDQ"])
    of_batch = metric(preds[:3], target[:3])
    assert of_batch == filled((preds[:3], target[:3])).compute()
    assert metric.forward(preds[3:], target[3:]) == filled((preds[3:], target[3:])).compute()
    assert metric.compute() == filled((preds, target)).compute()
    assert all(type(value) is float for value in metric.compute().values())
    assert metric.to("cuda:0") is metric
    for twin in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
        assert twin.compute() == metric.compute()
        twin.reset()
        assert len(twin) == 0
        twin.update(preds, target)
        assert twin.compute() == metric.compute()
    assert len(metric) == 6
    assert metric.sync() is metric  # alone


@pytest.mark.parametrize("options", [{}, {"preset": "paper"}, {"fixed_variance": 30.0}])
def test_sizes_that_nobody_says(options: dict[str, Any]) -> None:
    preds, target = some_images(8, covariances=True)
    expected = filled((preds, target), **options)
    for entry in target:
        del entry["image_size"]
    metric = filled((preds, target), **options)
    assert metric.compute() == pytest.approx(expected.compute(), rel=1e-9)
    assert any(note.code == "sizes-unknown" for note in metric.result().notes)
    given_size = filled((preds, target), image_size=(WIDTH, HEIGHT), **options)
    assert given_size.compute() == expected.compute()
    assert not any(note.code == "sizes-unknown" for note in given_size.result().notes)


def test_a_box_that_is_unsure_of_everything_needs_no_huge_image() -> None:
    preds, target = some_images(3, covariances=True, sized=False)
    expected = filled((preds, target)).compute()
    preds[1]["covariances"] = np.concatenate(
        [np.full((1, 2, 2, 2), 0.0) + 1e9 * np.eye(2), preds[1]["covariances"][1:]]
    )
    found = filled((preds, target)).compute()
    assert found["mAP"] == expected["mAP"]
    assert found["PDQ"] < expected["PDQ"]


@pytest.mark.parametrize("key", ["orig_size", "size"])
def test_sizes_as_detr_writes_them(key: str) -> None:
    preds, target = some_images(4, sized=False)
    expected = filled((preds, target), image_size=(WIDTH, HEIGHT)).result()
    metric = filled((preds, [entry | {key: np.array([HEIGHT, WIDTH])} for entry in target]))
    assert_equal(metric.result(), expected)


def test_boxes_that_know_their_format_and_canvas() -> None:

    class Boxes(list):  # type: ignore[type-arg]
        canvas_size = (HEIGHT, WIDTH)
        format = type("Format", (), {"name": "CXCYWH"})()

    preds, target = some_images(4, sized=False)
    expected = filled((preds, target), image_size=(WIDTH, HEIGHT)).compute()
    for entry in target:
        low, high = entry["boxes"][:, :2], entry["boxes"][:, 2:]
        entry["boxes"] = Boxes(np.hstack([(low + high) / 2, high - low]).tolist())
    metric = filled((preds, target))
    assert metric.compute() == pytest.approx(expected, rel=1e-9)
    assert not any("size" in note for note in map(str, metric.result().notes))


def test_masks_are_the_objects_pixels() -> None:
    mask = np.zeros((2, HEIGHT, WIDTH), bool)
    mask[0, 100:140, 100:180] = True
    mask[0, 100:110, 100:110] = False
    mask[1, 20:60, 30:90] = True
    boxes = [[100, 100, 180, 140], [30, 20, 90, 60]]
    target = [{"boxes": boxes, "labels": [0, 1], "masks": mask.astype(np.uint8)}]
    preds = [{"boxes": boxes, "labels": [0, 1], "scores": [0.9, 0.9]}]
    result = filled((preds, target)).result()
    truth = probox.GroundTruth.from_masks(CLASSES, [(0, list(mask), [0, 1])])
    found = probox.Detections(
        classes=CLASSES, image_ids=[0, 0], boxes=boxes, label_probs=[[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]]
    )
    expected = probox.evaluate(truth, found)
    assert result.pdq == pytest.approx(expected.pdq, rel=1e-12)
    assert result.objects.pixels.tolist() == [80 * 40 - 100, 60 * 40]
    assert result.objects.areas.tolist() == [80 * 40, 60 * 40]  # of the boxes, as torchmetrics has it
    assert result.objects.boxes.tolist() == boxes
    assert not any("size" in note for note in map(str, result.notes))  # masks say it
    as_boxes = filled((preds, [{"boxes": boxes, "labels": [0, 1], "image_size": (WIDTH, HEIGHT)}])).result()
    assert as_boxes.pdq != result.pdq


def test_an_empty_mask_is_no_object() -> None:
    mask = np.zeros((2, HEIGHT, WIDTH), bool)
    mask[1, 10:30, 10:30] = True
    target = {"boxes": [[10, 10, 30, 30]] * 2, "labels": [1, 2], "masks": mask, "area": [4, 5], "iscrowd": [1, 0]}
    result = filled(([{"boxes": [], "labels": [], "scores": []}], [target | {"image_id": 7}])).result()
    truth = truth_from_torchvision(target, classes=("bg", "bg cup", "cup"), image_ids=7)
    left_out = probox.GroundTruth.from_masks(CLASSES, [(7, list(mask), [1, 2])])
    assert (result.fn, len(result.objects), result.objects.labels.tolist()) == (1, 1, [2])
    assert truth.areas.tolist() == result.objects.areas.tolist() == [5]
    assert truth.crowd.tolist() == [False]
    assert truth.notes == left_out.notes == (Note("pixelless-masks", 1),)
    assert truth.notes[0] in result.notes


def test_masks_tell_which_of_two_sizes_is_theirs() -> None:
    mask = np.zeros((1, 40, 60), bool)
    mask[0, 10:30, 10:30] = True
    target = {"boxes": [[10, 10, 30, 30]], "labels": [1], "masks": mask, "size": (40, 60), "orig_size": (80, 120)}
    found = {"boxes": [[10, 10, 30, 30]], "labels": [1], "scores": [0.5]}
    assert filled(([found], [target])).result().dataset.shapes.tolist() == [[60, 40]]
    truth = truth_from_torchvision(target, classes=CLASSES, image_ids=7)
    assert truth.dataset.shapes.tolist() == [[60, 40]]


def some_probs(rows: int) -> dict[str, Any]:
    """Detections whose scores are not among their probabilities, so that only the largest tells the order."""
    labels = np.arange(rows) % 3
    probs = np.eye(3)[labels] * 0.6 + 0.1
    boxes = np.tile([10.0, 10, 40, 40], (rows, 1))
    return {"boxes": boxes, "labels": labels, "scores": np.full(rows, 0.9), "label_probs": probs}


def test_label_probs_in_another_order_are_noticed() -> None:
    found, target = some_probs(20), [TARGET | {"image_size": (WIDTH, HEIGHT)}]
    message = r"label_probs seem to be in another order of classes: .* in only 9 of 20 detections; bring"
    turned = found["label_probs"][:, [1, 2, 0]]
    less, half = (np.where(np.arange(20)[:, None] < right, found["label_probs"], turned) for right in (9, 10))
    wrong = found | {"label_probs": less}
    PDQ(CLASSES).update([found | {"label_probs": half}], target)
    with pytest.raises(InputError, match=message):
        PDQ(CLASSES).update([wrong], target)
    with pytest.raises(InputError, match=message):
        from_torchvision(wrong | {"labels": wrong["labels"] + 1}, classes=CLASSES, image_ids=7)
    assert filled(([found], target)).compute()["FP"] == 19
    few = {name: values[9:15] for name, values in wrong.items()}  # too few for one batch, not for all of them
    metric = filled(([few], target))
    with pytest.raises(InputError, match="in only 0 of 6 detections"):
        metric.compute()


@pytest.mark.parametrize("end", ["first", "last"])
def test_background_at_the_other_end_is_noticed(end: str) -> None:
    probs = np.array(
        [[0.1, 0.2, 0.5, 0.05, 0.15], [0.2, 0.1, 0.1, 0.55, 0.05]]
    )  # background, three classes, background
    right = probs[:, :4] if end == "first" else probs[:, 1:]
    wrong = probs[:, 1:] if end == "first" else probs[:, :4]
    shift = 1 if end == "first" else 0
    found = {"boxes": [[10, 10, 30, 40]] * 2, "labels": np.array([1, 2]) + shift, "scores": np.array([0.5, 0.55])}
    target = [TARGET | {"labels": [1 + shift], "image_size": (WIDTH, HEIGHT)}]
    classes = ("background", *CLASSES) if end == "first" else (*CLASSES, "background")
    expected = filled(([found | {"label_probs": right}], target), classes=classes)
    alone = filled(([found | {"label_probs": probs[:, 1:4]}], target), classes=classes)  # without background's column
    assert_equal(alone.result(), expected.result())
    message = f"expected the {end} of 4 columns to be background, but the"
    with pytest.raises(InputError, match=message):
        PDQ(classes).update([found | {"label_probs": wrong}], target)
    if end == "first":
        with pytest.raises(InputError, match=message):
            from_torchvision(found | {"label_probs": wrong}, classes=classes, image_ids=7)


def test_numbers_that_are_no_class_are_left_out() -> None:
    categories = ("__background__", "cup", "N/A", "dog", "car")
    found = {"boxes": [[10, 10, 30, 40]] * 2, "labels": [3, 2], "scores": [0.5, 0.6]}
    target = TARGET | {"labels": [3], "image_size": (WIDTH, HEIGHT), "image_id": 7}
    result = filled(([found], [target]), classes=categories).result()
    assert result.classes == CLASSES
    assert Note("nameless-detections", 1, name="N/A") in result.notes
    tables = probox.evaluate(
        truth_from_torchvision(target, classes=categories), from_torchvision(found, classes=categories, image_ids=7)
    )
    assert_equal(result, tables)
    with pytest.raises(InputError, match="an object has the label of N/A, expected a class"):
        PDQ(categories).update([found], [target | {"labels": [2]}])
    most = from_torchvision(found | {"labels": [2, 2]}, classes=categories, image_ids=7)
    assert (len(most), most.notes) == (0, (Note("nameless-detections", 2, name="N/A"),))


def test_images_without_an_id_get_unused_numbers() -> None:
    target = TARGET | {"image_size": (WIDTH, HEIGHT)}
    result = filled(([FOUND] * 3, [target, target | {"image_id": 7}, target])).result()
    assert result.dataset.image_ids.tolist() == [7, 8, 9]


@pytest.mark.parametrize("name", ["label_probs", "covariances"])
def test_what_only_some_images_have_is_no_number(name: str) -> None:
    preds, target = some_images(4, probs=True, covariances=True)
    del preds[2][name]
    with pytest.raises(InputError, match=f"some images have {name}, others do not"):
        filled((preds, target)).compute()


def test_labels_count_in_the_classes() -> None:
    preds, target = some_images(6, probs=True)
    expected = filled((preds, target))
    from_one = copy.deepcopy((preds, target))
    for entry in (*from_one[0], *from_one[1]):
        entry["labels"] = entry["labels"] + 1
    assert_equal(filled(from_one, first_label=1).result(), expected.result())
    # With a background first, labels and columns count from it.
    for entry in from_one[0]:
        entry["label_probs"] = np.hstack([np.full((len(entry["boxes"]), 1), 0.01), entry["label_probs"]])
    metric = PDQ(("__background__", *CLASSES))
    metric.update(*from_one)
    assert metric.result().classes == CLASSES
    assert metric.compute() == pytest.approx(expected.compute(), rel=1e-6)
    # With one at the end they do not.
    last = copy.deepcopy((preds, target))
    for entry in last[0]:
        entry["label_probs"] = np.hstack([entry["label_probs"], np.full((len(entry["boxes"]), 1), 0.01)])
    metric = PDQ((*CLASSES, "background"))
    metric.update(*last)
    assert metric.compute() == pytest.approx(expected.compute(), rel=1e-6)


def test_classes_that_nobody_names() -> None:
    preds, target = some_images(6, probs=True)
    metric = PDQ()
    metric.update(preds, target)
    assert metric.result().classes == ("0", "1", "2")
    assert metric.compute() == filled((preds, target)).compute()
    assert any("3 classes assumed, as label_probs have columns" in note for note in map(str, metric.result().notes))
    for entry in preds:
        del entry["label_probs"]
    metric = PDQ(first_label=1)
    metric.update(
        [entry | {"labels": entry["labels"] + 1} for entry in preds],
        [entry | {"labels": entry["labels"] + 1} for entry in target],
    )
    assert metric.result().classes == ("1", "2", "3")
    assert metric.compute() == filled((preds, target)).compute()
    assert any("highest label that was seen" in note for note in map(str, metric.result().notes))
    assert PDQ().result().notes == ()


def test_label_probs_alone_say_class_and_score() -> None:
    preds, target = some_images(6, probs=True)
    expected = filled((preds, target))
    for entry in preds:
        del entry["labels"], entry["scores"]
    assert_equal(filled((preds, target)).result(), expected.result())


def test_rows_above_one_are_a_choice() -> None:
    preds = [{"boxes": [[10, 10, 40, 40]], "label_probs": [[0.9, 0.6, 0.3]]}]
    target = [{"boxes": [[10, 10, 40, 40]], "labels": [0], "image_size": (64, 64)}]
    label = {choice: filled((preds, target), above_one=choice).compute()["label"] for choice in ("limit", "normalise")}
    assert label == pytest.approx({"limit": 0.9, "normalise": 0.5})
    with pytest.raises(InputError, match="add up to"):
        filled((preds, target), above_one="refuse").compute()


def test_covariances_of_four_numbers() -> None:
    preds, target = some_images(4)
    for entry in preds:
        entry["covariances"] = np.tile(np.diag([4.0, 9.0, 16.0, 25.0]), (len(entry["boxes"]), 1, 1))
    corners = filled((preds, target)).result().detections.covariances
    assert corners[0].tolist() == [[[4, 0], [0, 9]], [[16, 0], [0, 25]]]
    sizes = filled((preds, target), covariance_format="xywh").result().detections.covariances
    assert sizes[0].tolist() == [[[4, 0], [0, 9]], [[20, 0], [0, 34]]]


def test_nothing_at_all_and_empty_images() -> None:
    empty = np.zeros((0, 4))
    metric = filled(([{"boxes": [], "scores": [], "labels": []}], [{"boxes": empty, "labels": []}]))
    assert np.isnan(metric.compute()["PDQ"])
    metric.update([], [])
    preds = [{"boxes": empty, "label_probs": np.zeros((0, 3)), "covariances": np.zeros((0, 2, 2, 2))}]
    metric.update(preds, [{"boxes": [[5, 5, 20, 20]], "labels": [2]}])
    assert metric.compute()["FN"] == 1.0
    metric.update([{"boxes": [[5, 5, 20, 20]], "labels": [0], "scores": [0.5]}], [{"boxes": [], "labels": []}])
    assert metric.compute()["FP"] == 1.0
    unnamed = PDQ()
    unnamed.update([{"boxes": [], "scores": [], "labels": []}], [{"boxes": [], "labels": []}])
    assert unnamed.compute()["FP"] == 0.0


TARGET = {"boxes": [[10, 10, 30, 40]], "labels": [1]}
FOUND = {"boxes": [[10, 10, 30, 40]], "labels": [1], "scores": [0.8]}
MANY = {"boxes": np.tile([0.1, 0.1, 0.4, 0.5], (5, 1)), "labels": [0] * 5, "scores": [0.8] * 5}
MISTAKES: dict[str, tuple[Any, ...]] = {
    "another name": ({"covariance": np.eye(4)[None]}, {}, "mean 'covariances'"),
    "one more": ({"std": [[1, 1, 1, 1]]}, {}, "unknown entry 'std' of predictions; did you mean 'cov"),
    "a letter less": ({"label_prob": [[0, 0.8, 0]]}, {}, "did you mean 'label_probs'"),
    "fewer targets": ([FOUND, FOUND], {}, "as many predictions as targets, but got 2 and 1"),
    "no scores": ([{"boxes": [[1, 2, 3, 4]], "labels": [1]}], {}, "to have 'scores', but got 'boxes'"),
    "no labels": ({}, [{"boxes": [[1, 2, 3, 4]]}], r"target\[0\] to have 'labels'"),
    "a tuple": ([([1, 2, 3, 4], 0.5)], {}, r"preds\[0\] to be a dictionary, but got tuple"),
    "labels from 1": ({}, {"labels": [3]}, "from 0 to 2, but got 3; if they begin at 1.*first_label=1"),
    "label 0": (
        {},
        {"labels": [0]},
        "label 0 is background, expected the label of an object; leave out first_label",
        {"first_label": 1},
    ),
    "background": (
        {},
        {"labels": [0]},
        "label 0 is background, expected the label of an object",
        {"classes": ("bg", "cup")},
    ),
    "far labels": ({"labels": [9]}, {}, "predictions' labels from 0 to 2.*but got 9; check"),
    "negative label": ({}, {"labels": [-1]}, "from 0 to 2, but got -1"),
    "columns off by one": (
        {"label_probs": [[0.1, 0.1, 0.8]]},
        {},
        r"label_probs of label \+1: labels and columns are off by one",
    ),
    "a column too many": ({"label_probs": [[0.1] * 4]}, {}, "and 3 classes, but got 1 x 4; if one column is"),
    "logits": (
        {"label_probs": [[-1.0, 2.0, 3.0]]},
        {},
        "label_probs between 0 and 1, but got -1; these look like logits",
    ),
    "logit scores": ({"scores": [-2.0]}, {}, "scores between 0 and 1.*logits"),
    "percentages": ({"scores": [80.0]}, {}, "but got 80; divide percentages by 100"),
    "xywh boxes": ({"boxes": [[100, 90, 30, 40]]}, {}, 'x1 <= x2.*read as "xyxy".*box_format='),
    "normalised truth": ({}, {"boxes": [[0.1, 0.1, 0.2, 0.2]]}, "target's boxes in pixels, but none reaches beyond 1"),
    "normalised boxes": ([MANY], {}, "predictions' boxes are between 0 and 1, the targets' are not"),
    "size of three": ({}, {"image_size": (3, 100, 320)}, "image_size to be width, height"),
    "two sizes": (
        {},
        {"size": (80, 90), "orig_size": (160, 180)},
        "two sizes, orig_size 180 x 160 and size 90 x 80; give the size that boxes refer to as image_size",
    ),
    "masks of another size": (
        {},
        {"masks": np.ones((1, 100, 320)), "image_size": (100, 320)},
        "image is 100 x 320, but its masks are 320 x 100; image_size and",
    ),
    "mask of ids": ({}, {"masks": np.full((1, 50, 50), 7)}, "expected masks of True and False, or of 0 and 1; compare"),
    "masks are missing": ({}, {"masks": np.ones((2, 50, 50))}, "shape 1 x H x W, but got 2 x 50 x 50"),
    "an id in words": ({}, {"image_id": "000139"}, "image_id to be a whole number"),
    "scores of others": ({"scores": [0.5, 0.6]}, {}, "got 1 boxes, but 2 scores"),
    "the same image": ([FOUND] * 2, [TARGET | {"image_id": 7}] * 2, "image 7: the image was added before; call reset"),
    "wide covariances": ({"covariances": np.ones((1, 3, 3))}, {}, "covariances of 1 boxes as N x 2"),
    "negative variances": ({"covariances": -np.eye(4)[None]}, {}, "positive semi-definite"),
    "NaN box": ({"boxes": [[np.nan, 1, 2, 3]]}, {}, "finite"),
    "an image before the mistake": ([FOUND, FOUND | {"scores": [2.0]}], [TARGET] * 2, "update's entry 1: .*scores"),
}
"""Changes to `FOUND` and to `TARGET` or lists in their place, what is said, and options."""


@pytest.mark.parametrize("box", [[10, 10, 403, 50], [-30, 10, 60, 320], [-60, 10, -5, 30], [370, 10, 520, 50]])
def test_objects_may_reach_outside_the_image(box: list[int], tmp_path: Path) -> None:
    boxes, labels = np.array([[10, 20, 40, 60], box]), np.array([1, 1])
    preds = [{"boxes": boxes, "labels": labels, "scores": np.array([0.75, 0.5])}]
    target = [{"boxes": boxes, "labels": labels, "image_id": 7, "image_size": (WIDTH, HEIGHT)}]
    metric = filled((preds, target))
    expected = probox.evaluate(*map(str, coco_files(tmp_path, (preds, target))))
    assert metric.compute() == pytest.approx(expected.summary(), rel=0, abs=0, nan_ok=True)
    assert not any("exchanged" in note for note in map(str, metric.result().notes))


@pytest.mark.parametrize("wrong", [3, 2])
def test_sizes_that_seem_exchanged_are_noted(wrong: int) -> None:
    metric = PDQ(classes=CLASSES)
    for image in range(5):
        size = (100, 320) if image < wrong else (320, 100)
        target = {"boxes": [[10, 10, 300, 40]], "labels": [1], "image_id": image, "image_size": size}
        metric.update([FOUND], [target])
    noted = [(note.code, note.count) for note in metric.result().warnings if note.code == "image-sizes-swapped"]
    assert noted == ([("image-sizes-swapped", 3)] if wrong == 3 else [])


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    preds, target, message, *options = MISTAKES[name]
    preds = [FOUND | preds] if isinstance(preds, dict) else preds
    target = [TARGET | target] if isinstance(target, dict) else target
    with pytest.raises(InputError, match=message):
        filled((preds, target), **(options[0] if options else {})).compute()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "cup"}, "sequence of names"),
        ({"first_label": 2}, "first_label to be 0 or 1"),
        ({"classes": ["background", "cup"], "first_label": 1}, "labels count from it"),
        ({"box_format": "yxyx"}, "box_format"),
        ({"above_one": "softmax"}, "above_one"),
        ({"image_size": 640}, r"image_size to be \(width, height\)"),
        ({"preset": "papers"}, "preset to be one of"),
        ({"measures": ["quality"]}, "measures"),
        ({"treshold": 0.5}, "the keyword `treshold`; did you mean label_threshold"),
        ({"label_threshold": 50}, "label_threshold between 0 and 1"),
    ],
)
def test_wrong_arguments_are_named_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PDQ(**options)


def test_a_failed_update_leaves_the_metric_as_it_was() -> None:
    preds, target = some_images(3)
    metric = filled((preds, target))
    before = metric.compute()
    with pytest.raises(InputError):
        metric.update([FOUND, FOUND], [TARGET, TARGET | {"labels": [7]}])
    assert metric.compute() == before
    with pytest.raises(InputError, match=r"preds to be a list of dictionaries.*write \[preds\]"):
        metric.update(FOUND, [TARGET])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="do not merge"):
        metric.merge(PDQ())
