"""What is odd is noticed, what is not is passed over: made-up detectors, so that every threshold is met on purpose."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluation.input_checks.mistakes import (
    MISTAKES,
    TRUTH_MISTAKES,
    inverted,
    normalised_variances,
    rooted,
    scores_of_1,
    squared,
)

from probox import Detections, Evaluation, Evaluator, GroundTruth, evaluate, read_truth, write_parquet
from probox.analysis.validation import validate
from probox.demo import make_demo
from probox.formats import read_detections, write_coco_results

CLASSES = tuple(f"class {number}" for number in range(10))


def kinds(evaluation: Evaluation) -> list[str]:
    return [warning.code for warning in evaluation.warnings]


SIZES = ((640, 480), (480, 640), (500, 375))


def world(
    images: int = 60,
    seed: int = 5,
    *,
    image_sizes: tuple[tuple[int, int], ...] = SIZES,
    classes: tuple[str, ...] = CLASSES,
    objects: tuple[int, int] = (2, 9),
    whole: bool = False,
) -> tuple[GroundTruth, Detections]:
    """Return images with two to eight objects, and a detector whose corners are as wrong as it says.

    With `whole`, boxes have integer corners and end on the far edge of the last pixel.
    """
    rng = np.random.default_rng(seed)
    shapes = {10 + 3 * i: image_sizes[i % len(image_sizes)] for i in range(images)}
    owner = np.repeat(list(shapes), rng.integers(*objects, images))
    sizes = np.array([shapes[int(i)] for i in owner], float)
    extent = sizes * np.exp(rng.uniform(np.log(0.05), np.log(0.6), (len(owner), 1))) * rng.uniform(0.7, 1, sizes.shape)
    low = rng.uniform(0, 1, sizes.shape) * (sizes - extent)
    boxes = np.concatenate([low, low + extent], axis=1)
    if whole:
        boxes = np.concatenate([np.floor(low), np.ceil(low + extent)], axis=1)
    labels = rng.integers(0, len(classes), len(owner))
    truth = GroundTruth.from_boxes(classes, shapes, owner.tolist(), boxes, labels.tolist())
    sigmas = np.tile(0.06 * extent, 2)
    guess = boxes + rng.normal(size=boxes.shape) * sigmas
    guess = np.concatenate([np.minimum(guess[:, :2], guess[:, 2:]), np.maximum(guess[:, :2], guess[:, 2:])], axis=1)
    guess = np.clip(guess.round() if whole else guess, 0, np.tile(sizes, 2) - (not whole))
    covariances = np.zeros((len(owner), 2, 2, 2))
    covariances[:, :, 0, 0], covariances[:, :, 1, 1] = sigmas[:, [0, 2]] ** 2, sigmas[:, [1, 3]] ** 2
    probs = np.full((len(owner), len(classes)), 0.2 / len(classes), np.float32)
    probs[np.arange(len(owner)), labels] = 0.5 + 0.3 * rng.random(len(owner))
    return truth, Detections(classes=classes, image_ids=owner, boxes=guess, label_probs=probs, covariances=covariances)


@pytest.fixture(scope="module")
def good() -> tuple[GroundTruth, Detections]:
    return world()


def test_good_detections_are_passed_over(good: Any) -> None:
    result = evaluate(*good)
    assert kinds(result) == []
    assert result.notes == ()
    assert "warning" not in str(result)


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_named_once(good: Any, name: str) -> None:
    truth, found = good
    mistake, kind = MISTAKES[name]
    result = evaluate(truth, mistake(truth, found), measures=("map",))
    assert kinds(result) == [kind]
    (warning,) = result.warnings
    assert warning in result.warnings
    assert f"warning: {warning.message}" in str(result)
    assert "--" not in str(warning)


@pytest.mark.parametrize("name", TRUTH_MISTAKES)
def test_each_mistake_in_the_ground_truth_is_named_once(good: Any, name: str) -> None:
    truth, found = good
    mistake, kind, words = TRUTH_MISTAKES[name]
    result = evaluate(mistake(truth), found, measures=("map",))
    assert kinds(result) == [kind]
    assert words in str(result)


def test_masks_do_not_count_where_boxes_are_the_masks(good: Any) -> None:
    truth, found = good
    turned = TRUTH_MISTAKES["masks turned"][0](truth)
    assert kinds(evaluate(turned, found, box_truth=True)) == []


def test_scores_of_1(good: Any) -> None:
    """A perfect detector may say so; one that is wrong may not."""
    truth, found = good
    assert kinds(evaluate(truth, scores_of_1(truth, found), measures=("map",))) == []
    everywhere = scores_of_1(truth, Detections.concatenate([found, MISTAKES["mirrored"][0](truth, found)]))
    (warning,) = evaluate(truth, everywhere, measures=("map",)).warnings
    assert warning.code == "constant-scores"
    assert "have the score 1, but only 6" in warning.message


def test_normalised_and_inverse_covariances(good: Any) -> None:
    truth, found = good
    assert kinds(evaluate(truth, normalised_variances(truth, found))) == ["normalised-variances"]
    assert kinds(evaluate(truth, inverted(found))) == ["inverse-variances"]


def test_deviations_and_squares_in_place_of_variances(good: Any) -> None:
    truth, found = good
    assert kinds(evaluate(truth, rooted(found), measures=("map",))) == ["deviations-as-variances"]
    assert kinds(evaluate(truth, squared(found), measures=("map",))) == ["squared-variances"]


@pytest.mark.parametrize("order", [[0, 2, 1, 3], [1, 0, 3, 2]])
def test_variances_in_another_order(order: list[int]) -> None:
    truth, found = world(images=200)
    diagonal = np.diagonal(found.covariances, axis1=2, axis2=3).reshape(-1, 4)
    wrong = Detections.from_scores(
        found.boxes, found.label_probs, classes=CLASSES, image_ids=found.image_ids, var=diagonal[:, order]
    )
    (warning,) = evaluate(truth, wrong, measures=("map",)).warnings
    assert warning.code == "variances-in-other-order"
    assert ("x1, x2, y1, y2" if order[0] == 0 else "y1, x1, y2, x2") in warning.message


@pytest.mark.parametrize("factor", [0.3, 1.7])
def test_a_detector_too_sure_or_not_sure_enough_is_no_mistake(good: Any, factor: float) -> None:
    truth, found = good
    assert kinds(evaluate(truth, dataclasses.replace(found, covariances=found.covariances * factor**2))) == []


@pytest.mark.parametrize("variance", [0.01, 1.0, 25.0, 400.0])
def test_one_variance_for_all_is_no_mistake(good: Any, variance: float) -> None:
    truth, found = good
    same = np.tile(np.eye(2) * variance, (len(found), 2, 1, 1))
    assert kinds(evaluate(truth, dataclasses.replace(found, covariances=same), measures=("map",))) == []


def test_a_variance_that_the_convention_replaces_is_not_judged(good: Any) -> None:
    from probox import Convention

    truth, found = good
    replaced = Convention.preset("reference", fixed_variance=10.0)
    assert kinds(evaluate(truth, rooted(found), convention=replaced, measures=("map",))) == []


# --- thresholds ---


def test_from_ten_duplicates_on(good: Any) -> None:
    truth, found = good
    for copies, expected in ((9, []), (10, ["duplicate-detections"])):
        rows = np.concatenate([np.arange(len(found)), np.arange(copies)])
        assert kinds(evaluate(truth, found.select(rows), measures=("map",))) == expected


@pytest.mark.parametrize("boxes", ["of objects", "of pixels"])
def test_a_box_as_often_as_in_the_truth_is_no_duplicate(boxes: str) -> None:
    """Images of 8 x 8 pixels hold the same box of the same class twice, and detections are the objects."""
    n = 20
    there = [[1, 1, 5, 5], [1, 1, 5, 5], [2, 3, 7, 8]] * n
    sizes = dict.fromkeys(range(n), (8, 8))
    truth = GroundTruth.from_boxes(["cup"], sizes, np.repeat(np.arange(n), 3), there, [0] * len(there))
    found = Detections(
        classes=["cup"], image_ids=np.repeat(np.arange(n), 3), label_probs=np.ones((3 * n, 1)),
        boxes=truth.boxes if boxes == "of objects" else truth.masks.boxes.astype(float),
    )  # fmt: skip
    assert "duplicate-detections" not in kinds(evaluate(truth, found, measures=("map",)))
    thrice = found.select(np.repeat(np.arange(3 * n), np.tile([2, 1, 1], n)))
    assert "duplicate-detections" in kinds(evaluate(truth, thrice, measures=("map",)))


def test_the_same_box_of_another_class_is_no_duplicate(good: Any) -> None:
    truth, found = good
    rows = np.tile(np.arange(len(found)), 2)
    both = found.select(rows)
    labels = both.labels.copy()
    labels[len(found) :] = (labels[len(found) :] + 1) % len(CLASSES)
    assert kinds(evaluate(truth, dataclasses.replace(both, labels=labels, scores=None), measures=("map",))) == []


def test_from_a_tenth_of_images_without_detections_on(good: Any) -> None:
    truth, found = good
    for empty, expected in ((9, []), (10, ["images-without-detections"])):
        rest = found.select(found.image_ids >= truth.image_ids[empty])
        assert kinds(evaluate(truth, rest, measures=("map",))) == expected


def test_a_rarely_sure_detector_leaves_images_empty(good: Any) -> None:
    truth, found = good
    for threshold in (0.6, 0.7, 0.75, 0.78):
        result = evaluate(truth, found, measures=("map",)).at_threshold(threshold)
        assert len(np.unique(result.detections.image_rows)) < 60
        assert kinds(result) == []


def test_half_of_the_classes_unknown(good: Any) -> None:
    truth, found = good
    for unknown, expected in ((0.45, []), (0.5, ["classes-unknown"])):
        labels = np.arange(len(found)) >= unknown * len(found)
        renamed = tuple(f"x{name}" for name in CLASSES)
        probs = np.concatenate([found.label_probs * ~labels[:, None], found.label_probs * labels[:, None]], axis=1)
        mixed = dataclasses.replace(found, classes=renamed + CLASSES, label_probs=probs, labels=None, scores=None)
        assert kinds(evaluate(truth, mixed, measures=("map",))) == expected


def test_corners_outside_are_counted(good: Any) -> None:
    from probox import Convention

    truth, found = good
    moved = found.boxes.copy()
    moved[::10, 0] = -200.0
    outside = dataclasses.replace(found, boxes=moved, extents=None)
    assert kinds(evaluate(truth, outside)) == ["corner-outside-image"]
    assert kinds(evaluate(truth, outside, convention=Convention.preset("reference", clip="corners"))) == []


def test_no_detections(good: Any) -> None:
    truth, found = good
    assert kinds(evaluate(truth, found.select([]))) == ["no-detections"]
    nothing = GroundTruth.from_boxes(CLASSES, {1: (64, 48)}, [], np.zeros((0, 4)), [])
    assert kinds(evaluate(nothing, found.select([]))) == []


def test_no_objects(good: Any) -> None:
    truth, found = good
    nothing = truth.from_boxes(truth.classes, {int(i): (640, 480) for i in truth.image_ids}, [], np.zeros((0, 4)), [])
    assert "no-objects" in [warning.code for warning in evaluate(nothing, found).warnings]


def test_few_objects_prove_nothing() -> None:
    truth, found = world(images=1, seed=3)
    for mistake, _ in MISTAKES.values():
        few = truth.select_images([10])
        assert set(kinds(evaluate(few, mistake(few, found.select([0, 1])), measures=("map",)))) <= {
            "all-classes-unknown", "variance-larger-than-image", "no-detections",
        }  # fmt: skip


# --- one set of checks for everything ---


def test_parts_are_judged_together(good: Any) -> None:
    """A few images at a time look odd, or not odd, for being few; all of them count."""
    truth, found = good
    part = MISTAKES["a part"][0](truth, found)
    evaluator = Evaluator(CLASSES, measures=("map",))
    halves: list[Evaluation] = []
    for ids in (truth.image_ids[:30], truth.image_ids[30:]):
        some = truth.select_images(ids), part.select(np.isin(part.image_ids, ids))
        evaluator.update(*some)
        halves.append(evaluate(*some, measures=("map",)))
    whole = evaluate(truth, part, measures=("map",))
    assert evaluator.result().warnings == whole.warnings
    assert halves[0].warnings == ()
    assert halves[1].warnings not in ((), whole.warnings)
    assert (halves[0] + halves[1]).warnings == whole.warnings


def test_parquet_in_parts(good: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from probox.formats.parquet import writing as parquet_writing

    monkeypatch.setattr(parquet_writing, "GROUP_BYTES", 2000)
    truth, found = good
    wrong = MISTAKES["xyxy"][0](truth, found)
    write_parquet(tmp_path / "found.parquet", wrong)
    result = evaluate(truth, tmp_path / "found.parquet", measures=("map",))
    assert result.warnings == evaluate(truth, wrong, measures=("map",)).warnings != ()


def write_coco(folder: Path, truth: GroundTruth, found: Detections) -> tuple[Path, Path]:
    """Write both as COCO files; the masks of objects fill their boxes."""
    write_coco_results(folder / "found.json", found, truth)
    corners = truth.masks.boxes.tolist()
    coco: dict[str, Any] = {
        "images": [
            {"id": int(i), "width": int(w), "height": int(h)}
            for i, w, h in zip(truth.image_ids, truth.dataset.widths, truth.dataset.heights, strict=True)
        ],
        "categories": [{"id": n + 1, "name": each} for n, each in enumerate(CLASSES)],
        "annotations": [
            {"image_id": int(truth.image_ids[i]), "category_id": int(c) + 1, "bbox": [*map(float, (*b[:2], *s))]}
            | {"segmentation": [[x1, y1, x2 + 1, y1, x2 + 1, y2 + 1, x1, y2 + 1]]}
            for i, c, b, s, (x1, y1, x2, y2) in zip(
                truth.image_rows, truth.labels, truth.boxes, truth.extents, corners, strict=True
            )
        ],
    }
    (folder / "truth.json").write_text(json.dumps(coco))
    return folder / "truth.json", folder / "found.json"


@pytest.mark.parametrize(
    "name", ["xyxy", "twice", "a part", "shifted classes", "later classes shifted", "huge variances", "scores over 100"]
)
def test_validate_sees_the_same(good: Any, tmp_path: Path, name: str) -> None:
    truth, found = good
    mistake, kind = MISTAKES[name]
    wrong = mistake(truth, found)
    report = validate(*write_coco(tmp_path, truth, wrong))
    assert report.ok
    finding = next(finding for finding in report.warnings if finding.code == kind)
    evaluated = evaluate(truth, wrong, measures=("map",)).warnings[0]
    assert finding.count == max(1, len(evaluated.rows))
    assert str(finding.examples[0]).endswith(str(evaluated))


@pytest.mark.parametrize("name", TRUTH_MISTAKES)
def test_validate_names_the_ground_truth(good: Any, tmp_path: Path, name: str) -> None:
    truth, found = good
    mistake, kind, _ = TRUTH_MISTAKES[name]
    files = write_coco(tmp_path, mistake(truth), found)
    (finding,) = validate(*files).warnings
    assert finding.code == kind
    assert str(finding.examples[0]) == f"{files[0]}: {evaluate(*files).warnings[0]}"


def test_notes_survive_saving(good: Any, tmp_path: Path) -> None:
    truth, found = good
    result = evaluate(truth, MISTAKES["twice"][0](truth, found))
    result.save(tmp_path / "r")
    loaded = Evaluation.load(tmp_path / "r")
    assert loaded.warnings == result.warnings != ()
    assert loaded.input_notes == ()


# --- detectors and files that are as they should be ---

UNUSUAL: dict[str, dict[str, Any]] = {
    "8 x 8": {"image_sizes": ((8, 8),), "images": 200},
    "8 x 8, integers": {"image_sizes": ((8, 8),), "images": 200, "whole": True},
    "16 x 16, integers": {"image_sizes": ((16, 16),), "images": 200, "whole": True},
    "16 x 16, integers, one class": {"image_sizes": ((16, 16),), "images": 200, "whole": True, "classes": ("cup",)},
    "64 x 64, integers, one class": {"image_sizes": ((64, 64),), "images": 200, "whole": True, "classes": ("cup",)},
    "8k": {"image_sizes": ((7680, 4320),), "images": 20},
    "one class": {"classes": ("cup",)},
    "1,000 classes": {"classes": tuple(f"class {number}" for number in range(1000))},
    "one image": {"images": 1},
    "one object per image": {"objects": (1, 2), "images": 200},
    "many objects per image": {"objects": (40, 50), "images": 10},
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_data_sets_are_silent(name: str) -> None:
    truth, found = world(**UNUSUAL[name])
    assert kinds(evaluate(truth, found, measures=("map",))) == []
    crowds = truth.replace(crowd=np.ones(len(truth), bool))
    assert kinds(evaluate(crowds, found, measures=("map",))) == []
    perfect = dataclasses.replace(found, boxes=truth.boxes, extents=None)
    assert kinds(evaluate(truth, perfect, measures=("map",))) == []
    plain = dataclasses.replace(found, covariances=None)
    assert kinds(evaluate(truth, plain, measures=("map",))) == []


@pytest.mark.parametrize("largest", [1, 2, 4])
def test_objects_of_few_pixels_are_silent(largest: int) -> None:
    """Boxes of `from_masks` end on the last pixel: those of a single pixel have no area."""
    rng = np.random.default_rng(0)
    images = []
    for image in range(1, 101):
        mask = np.zeros((8, 8), bool)
        x, y = rng.integers(0, 8 - largest + 1, 2)
        wide, high = rng.integers(1, largest + 1, 2)
        mask[y : y + high, x : x + wide] = True
        images.append((image, [mask], [image % 10]))
    truth = GroundTruth.from_masks(CLASSES, images)
    labels, scores, noise = truth.labels, rng.uniform(0.5, 0.9, 100), rng.uniform(-0.2, 0.2, (100, 2))
    moved = np.clip(truth.boxes + np.tile(noise, 2), 0, 7)
    for boxes in (truth.boxes, moved):
        found = Detections.from_scores(boxes, scores, labels, classes=CLASSES, image_ids=truth.image_ids, std=0.2)
        assert kinds(evaluate(truth, found)) == []


@pytest.mark.parametrize("name", ["deterministic", "probabilistic"])
def test_the_demo_is_silent(name: str) -> None:
    demo = make_demo()
    assert kinds(evaluate(demo.truth, demo.detectors[name])) == []


@pytest.mark.parametrize(
    "case", ["bbox", "mixed", "outside", "pbox_corr", "pbox_diag", "pbox_full", "pbox_huge", "pbox_tiny", "probseg"]
)
def test_golden_cases_are_silent(golden_dir: Path, case: str) -> None:
    truth = read_truth(golden_dir / case / "ground_truth.json")
    found = read_detections(golden_dir / case / "detections.json", truth)
    assert kinds(evaluate(truth, found, measures=("map",))) == []
