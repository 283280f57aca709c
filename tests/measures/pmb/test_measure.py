"""PMB-NLL as a measure: which numbers it reads, what it leaves out and says, and what resampling gives."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_world

import probox
from probox import Detections, Evaluation, GroundTruth
from probox.demo import Demo
from probox.measures.measure import Summary
from probox.measures.pmb_definition import SetDensity, pmb_nll_of_image
from probox.measures.pmb_nll import MEANS, PMB_NLL, log_floors, pmb_of_images
from probox.notes import Note
from probox.tables.labels import align_labels

CLASSES = ("cup", "dog", "hat")
SIZE = (64, 48)
BOX = [10.0, 12.0, 30.0, 40.0]
FLOOR = math.log(1e-6 * 4 / (3 * 64**2 * 48**2))
AT_MEAN = 2.0 * math.log(2.0 * math.pi) + 2.0 * math.log(4.0)  # with variances of 4


def world(
    found: list[tuple[int, list[float], list[float], float]],
    there: list[tuple[int, list[float], int]],
    classes: tuple[str, ...] = CLASSES,
    images: int = 2,
) -> Evaluation:
    """Evaluate detections (image, box, label probabilities, variance) of objects (image, box, label)."""
    truth = GroundTruth.from_boxes(
        classes,
        dict.fromkeys(range(images), SIZE),
        [image for image, _, _ in there],
        np.array([box for _, box, _ in there]).reshape(-1, 4),
        [label for _, _, label in there],
    )
    detections = Detections(
        classes=classes,
        image_ids=[image for image, *_ in found],
        boxes=np.array([box for _, box, *_ in found]).reshape(-1, 4),
        label_probs=np.array([probs for _, _, probs, _ in found], np.float32).reshape(-1, len(classes)),
        covariances=np.array([variance * np.eye(2)[None].repeat(2, 0) for *_, variance in found]).reshape(-1, 2, 2, 2),
    )
    return probox.evaluate(truth, detections, measures=["pmb-nll"])


def by_definition(truth: GroundTruth, found: Detections) -> list[Summary]:
    """Return the numbers of each image, without what the measure does to scores that stand alone."""
    floors = log_floors(truth.dataset, len(truth.classes))
    probs = align_labels(found.label_probs, found.classes, truth.classes)
    covariances = np.zeros((len(found), 2, 2, 2)) if found.covariances is None else found.covariances
    numbers = []
    for row, image in enumerate(truth.image_ids.tolist()):
        mine, objects = found.image_ids == image, (truth.image_rows == row) & ~truth.crowd
        density = SetDensity.of_detections(found.boxes[mine], covariances[mine], probs[mine])
        measured = pmb_nll_of_image(density, truth.boxes[objects], truth.labels[objects], log_floor=floors[row])
        numbers.append({key: getattr(measured, name) for key, name in MEANS.items()})
    return numbers


@examples(25)
@given(st.integers(0, 2**32 - 1))
def test_it_is_the_mean_of_what_is_defined(seed: int) -> None:
    truth, found = random_world(seed, heatmaps=False)
    result = probox.evaluate(truth, found, convention="paper", measures=["pmb-nll"])
    images = pmb_of_images(result)
    assert images is not None
    summary = result.summary()
    if not images.defined(np.ones((1, len(truth.image_ids))))[0]:
        assert all(math.isnan(summary[key]) for key in MEANS)
        return
    if any(note.code == "pmb-scores-alone" for note in images.notes):
        return
    defined = by_definition(truth, found)
    for key in MEANS:
        mean = sum(numbers[key] for numbers in defined) / len(defined)
        assert summary[key] == pytest.approx(mean, rel=1e-9, abs=1e-9), key


def test_all_images_count() -> None:
    """One image has a right detection, one a wrong one, one an object that nobody found, one nothing."""
    result = world(
        [(0, BOX, [0.7, 0.1, 0.0], 4.0), (1, BOX, [0.7, 0.1, 0.0], 4.0)], [(0, BOX, 0), (2, BOX, 1)], images=4
    )
    summary = result.summary()
    right, wrong = AT_MEAN - math.log(0.7), -math.log(0.2)
    # Missing the object and claiming another is less likely by far, but it adds up.
    right -= math.log1p(math.exp(FLOOR - wrong + right))
    assert summary["PMB_NLL_floored"] == pytest.approx((right + wrong - FLOOR) / 4, abs=1e-6)
    assert summary["PMB_box"] == pytest.approx(AT_MEAN / 4)
    assert summary["PMB_label"] == pytest.approx(-math.log(0.7) / 4, abs=1e-6)
    assert summary["PMB_unmatched"] == pytest.approx(wrong / 4, abs=1e-6)
    assert summary["PMB_missed"] == pytest.approx(-FLOOR / 4)
    assert summary["PMB_clutter"] == 0.0
    assert (summary["PMB_at_floor"], summary["PMB_infinite"]) == (1, 1)
    assert math.isnan(summary["PMB_NLL"])
    assert tuple(map(str, result.notes)) == (
        "PMB-NLL: 1 of 2 objects is far from every detection, or in images with too few; the value is infinite in 1 of "
        f"4 images, and {summary['PMB_NLL_floored']:.2f} on average with a floor of 1e-6 objects spread evenly over "
        "the image",
    )


def test_far_objects_stand_at_the_floor() -> None:
    far = [50.0, 2.0, 60.0, 10.0]
    result = world([(0, BOX, [0.7, 0.1, 0.0], 1.0), (0, BOX, [0.05, 0.0, 0.0], 1.0)], [(0, far, 0)], images=1)
    summary = result.summary()
    assert summary["PMB_missed"] == pytest.approx(-FLOOR)
    assert summary["PMB_NLL"] > summary["PMB_NLL_floored"] + 500
    assert f"the value is {summary['PMB_NLL']:.2f}, and" in next(map(str, result.notes))


def test_plain_boxes_have_no_density() -> None:
    right = (0, BOX, [0.7, 0.1, 0.0])
    result = world([(*right, 0.0), (*right, 4.0)], [(0, BOX, 0)], images=1)
    summary = result.summary()
    assert summary["PMB_unmatched"] == pytest.approx(-math.log(0.2), abs=1e-6)
    assert summary["PMB_box"] == pytest.approx(AT_MEAN)
    assert result.notes == (Note("pmb-left-out", 1, total=2),)
    alone = world([(*right, 0.0)], [(0, BOX, 0)])
    assert all(math.isnan(alone.summary()[key]) for key in (*MEANS, "PMB_NLL"))
    assert alone.summary()["PMB_at_floor"] == alone.summary()["PMB_infinite"] == 0
    assert alone.notes == (Note("pmb-no-density", 1),)


def test_singular_covariances_have_no_density() -> None:
    """A corner of perfect correlation, and one plain corner of two; nearly perfect correlation is sound."""
    truth = GroundTruth.from_boxes(["cup"], {1: SIZE}, [1], [BOX], [0])
    sound, nearly, perfect = (np.array([[4.0, 4 * rho], [4 * rho, 4.0]]) for rho in (0.0, 1 - 1e-9, 1.0))
    found = Detections(
        classes=["cup"],
        image_ids=[1, 1, 1, 1],
        boxes=[BOX] * 4,
        label_probs=[[0.7]] * 4,
        covariances=np.array([[sound, nearly], [sound, perfect], [perfect, sound], [sound, 0 * sound]]),
    )
    result = probox.evaluate(truth, found, measures=["pmb-nll"])
    assert result.notes[0] == Note("pmb-left-out", 3, total=4)
    assert result.summary()["PMB_unmatched"] == pytest.approx(-3 * math.log(0.3), abs=1e-6)
    assert result.summary()["PMB_box"] == pytest.approx(AT_MEAN + 0.5 * math.log(2e-9), abs=1e-6)


def test_scores_that_stand_alone_leave_the_rest_to_background() -> None:
    shared = [0.8, 0.1, 0.1]
    given_alone, given_so = world([(0, BOX, shared, 4.0)], []), world([(0, BOX, [0.8, 0.0, 0.0], 4.0)], [])
    assert given_alone.summary() == given_so.summary()
    assert given_alone.summary()["PMB_NLL_floored"] == pytest.approx(-math.log(0.2) / 2, abs=1e-6)
    assert given_so.notes == ()
    assert given_alone.notes == (Note("pmb-scores-alone", 1, total=1),)
    # The class of the score is kept, not the first one.
    there = [(0, BOX, 2)]
    turned = world([(0, BOX, shared[::-1], 4.0)], there).summary()
    assert turned == world([(0, BOX, [0.0, 0.0, 0.8], 4.0)], there).summary()


def test_honest_labels_are_not_taken_for_a_score_alone() -> None:
    """Two classes that are equal and a third that differs: the one that is named is among the equal ones."""
    result = world([(0, BOX, [0.49, 0.49, 0.02], 4.0)], [(0, BOX, 0)], images=1)
    assert result.summary()["PMB_label"] == pytest.approx(-math.log(0.49), abs=1e-6)
    assert not any("one score alone" in text for text in tuple(map(str, result.notes)))


def test_little_background_is_said() -> None:
    result = world([(0, BOX, [0.7, 0.2, 0.0999], 4.0), (0, BOX, [0.05, 0.0, 0.0], 4.0)], [(0, BOX, 0)])
    assert result.notes == (Note("pmb-little-background", 1, total=1, least=0.001),)


def test_background_is_no_class() -> None:
    found = [(0, BOX, [0.7, 0.0, 0.3], 4.0), (0, BOX, [0.05, 0.0, 0.9], 4.0)]
    there = [(0, BOX, 0), (0, [1.0, 1.0, 2.0, 2.0], 1)]  # one at the floor, which counts classes too
    named = world(found, there, classes=("cup", "dog", "background"), images=1).summary()
    assert named["PMB_at_floor"] == 1
    assert named["PMB_label"] == pytest.approx(-math.log(0.7), abs=1e-6)
    assert named["PMB_clutter"] == pytest.approx(0.05, abs=1e-8)
    unnamed = [(image, box, probs[:2], variance) for image, box, probs, variance in found]
    assert named == world(unnamed, there, classes=("cup", "dog"), images=1).summary()


def test_crowds_are_no_objects(tmp_path: Path) -> None:
    """A crowd is left out; what was found in it is unmatched."""
    annotation = {"image_id": 1, "category_id": 1, "bbox": [10, 12, 20, 28], "area": 560, "id": 1}
    crowd = annotation | {"id": 2, "iscrowd": 1, "segmentation": {"size": [48, 64], "counts": [600, 100, 2372]}}
    text = {
        "images": [{"id": 1, "width": 64, "height": 48}],
        "categories": [{"id": 1, "name": "cup"}],
        "annotations": [annotation | {"iscrowd": 0}, crowd],
    }
    (tmp_path / "truth.json").write_text(json.dumps(text))
    truth = probox.read_truth(tmp_path / "truth.json")
    found = Detections(
        classes=["cup"],
        image_ids=[1, 1],
        boxes=truth.boxes[:1].repeat(2, 0),
        label_probs=[[0.7], [0.6]],
        covariances=4 * np.eye(2)[None, None].repeat(2, 0).repeat(2, 1),
    )
    result = probox.evaluate(truth, found, measures=["pmb-nll"])
    assert result.summary()["PMB_box"] == pytest.approx(AT_MEAN)
    assert result.summary()["PMB_missed"] == 0.0
    assert Note("pmb-crowds", 1) in result.notes


def test_results_without_labels_have_none(demo: Demo) -> None:
    result = probox.evaluate(demo.truth, demo.detectors["probabilistic"], measures=["pmb-nll"])
    older = dataclasses.replace(result, detections=result.detections.replace(label_probs=None))
    nothing = older.summary()
    assert math.isnan(nothing["PMB_NLL_floored"])
    assert nothing["PMB_at_floor"] == 0
    assert "label probabilities were not stored" in next(map(str, older.notes))
    replicates = PMB_NLL.resampled(older, np.ones((2, len(older.dataset)), np.int64))
    assert np.isnan(replicates["PMB_NLL_floored"]).tolist() == [True, True]


# --- resampling ---


def drawn(result: Evaluation, replicates: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    n = len(result.dataset)
    return rng.multinomial(n, np.full(n, 1 / n), size=replicates)


def test_resampled_numbers_are_those_of_the_images(demo: Demo) -> None:
    result = probox.evaluate(demo.truth, demo.detectors["probabilistic"], measures=["pmb-nll"])
    ids = result.dataset.image_ids
    weights = np.stack([np.ones(len(ids), np.int64), np.arange(len(ids)) % 2, (np.arange(len(ids)) < 3).astype(int)])
    replicates = PMB_NLL.resampled(result, weights)
    assert list(replicates) == [column.key for column in PMB_NLL.columns]
    for row, weight in enumerate(weights):
        summary = result.select_images(ids[weight > 0]).summary()
        for key, value in summary.items():
            assert replicates[key][row] == pytest.approx(value, rel=1e-12, nan_ok=True), key
    twice = PMB_NLL.resampled(result, 2 * weights)
    np.testing.assert_allclose(twice["PMB_NLL_floored"], replicates["PMB_NLL_floored"], rtol=1e-12)
    np.testing.assert_array_equal(twice["PMB_at_floor"], 2 * replicates["PMB_at_floor"])
    assert np.std(PMB_NLL.resampled(result, drawn(result, 50))["PMB_NLL_floored"]) > 0


def test_infinite_images_are_lost_only_where_they_are_drawn() -> None:
    result = world([(0, BOX, [0.7, 0.1, 0.0], 4.0)], [(0, BOX, 0), (1, BOX, 0)])
    replicates = PMB_NLL.resampled(result, np.array([[2, 0], [1, 1], [0, 2], [0, 0]]))
    assert np.isnan(replicates["PMB_NLL"]).tolist() == [False, True, True, True]
    assert replicates["PMB_infinite"].tolist() == [0, 1, 2, 0]
    assert np.isnan(replicates["PMB_NLL_floored"]).tolist() == [False, False, False, True]


def test_images_of_plain_boxes_alone_have_no_number() -> None:
    probs = [0.7, 0.1, 0.0]
    result = world([(0, BOX, probs, 0.0), (1, BOX, probs, 4.0)], [(0, BOX, 0), (1, BOX, 0)], images=3)
    replicates = PMB_NLL.resampled(result, np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]]))
    assert np.isnan(replicates["PMB_NLL_floored"]).tolist() == [True, False, False]
    assert math.isnan(result.select_images([0]).summary()["PMB_NLL_floored"])
    assert replicates["PMB_at_floor"].tolist() == [0, 1, 0]
