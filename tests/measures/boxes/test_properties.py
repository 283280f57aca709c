"""Generated tables: the kernel against pycocotools and against the plain definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples

from probox import Detections, GroundTruth, Masks
from probox.measures.boxes import AveragePrecisionResult, BoxMatches, LRPResult, box_definition, lrp_curve, match_boxes
from probox.tables.dataset import Dataset

CLASSES = ("cup", "dog", "tv")
IMAGES = (3, 10, 11, 40)


@st.composite
def tables(draw: st.DrawFn) -> tuple[GroundTruth, Detections]:
    """Draw a truth and detections, with empty images, empty classes, crowds, ties, and crowds of detections.

    Hypothesis chooses how many and a seed: values drawn one by one stay too simple to meet in one image and class.
    Image 40 and class "tv" never have an object, image 11 never a detection.
    """
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(0, 25)), draw(st.integers(0, 25))
    # Wrong detections that go before most others: enough of them push right ones over the limit of 100.
    flood = draw(st.sampled_from([0, 0, 92, 96, 99]))
    corners, sizes = random_boxes(random, m)
    truth = GroundTruth(
        dataset=Dataset(classes=CLASSES, image_ids=IMAGES, widths=[600] * len(IMAGES), heights=[600] * len(IMAGES)),
        image_rows=np.sort(random.choice([0, 0, 0, 1, 2], m)),
        labels=random.choice([0, 0, 1], m),
        boxes=corners,
        extents=sizes,
        masks=Masks.from_boxes(np.zeros((m, 4), np.int32)),
        areas=sizes.prod(axis=1) * random.choice([1.0, 0.6], m),
        crowd=random.random(m) < 0.25,
    )
    corners, sizes = random_boxes(random, n)
    far = np.array([[500, 500, 510, 510]] * flood).reshape(-1, 4)
    # Few scores, so that many are equal; some on the grid of LRP, where the last bit decides.
    scores = np.where(random.random(n) < 0.5, random.choice([0.0, 0.07, 0.29, 0.57, 0.95, 1.0], n), random.random(n))
    found = Detections(
        classes=CLASSES,
        image_ids=np.concatenate([random.choice([3, 3, 3, 10, 40], n), np.full(flood, 3)]).astype(int),
        boxes=np.concatenate([corners, far]),
        extents=np.concatenate([sizes, far[:, 2:] - far[:, :2]]),
        label_probs=np.zeros((n + flood, len(CLASSES))),
        labels=np.concatenate([random.choice([0, 0, 1, 2], n), np.zeros(flood)]).astype(int),
        scores=np.concatenate([scores, np.full(flood, 0.9)]),
    )
    return truth, found.select(random.permutation(n + flood))


def random_boxes(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return corners and sizes on a coarse lattice, where overlaps are often large and often equal.

    Some have areas of exactly 32 x 32 and 96 x 96, where ranges meet.
    """
    scale = random.choice([10, 10, 8, 9.7, 32], (count, 1))
    corners, sizes = random.integers(0, 3, (count, 2)) * scale, random.integers(2, 5, (count, 2)) * scale
    return np.concatenate([corners, corners + sizes], axis=1), sizes


@given(tables())
@examples(300)
def test_twelve_numbers_are_those_of_pycocotools(coco_twelve, pair):
    found = list(AveragePrecisionResult.from_matches(match_boxes(*pair)).summary().values())
    np.testing.assert_allclose(found, coco_twelve(*pair), rtol=0, atol=1e-12)


@given(tables())
@examples(60)
def test_curves_are_those_of_pycocotools(coco_evaluate, pair):
    reference = coco_evaluate(*pair).eval
    ours = AveragePrecisionResult.from_matches(match_boxes(*pair))
    precision = reference["precision"][..., 2]
    np.testing.assert_array_equal(np.isnan(ours.precision), precision == -1)
    defined = precision > -1
    np.testing.assert_array_equal(ours.precision[defined], precision[defined])
    recall = reference["recall"]
    np.testing.assert_array_equal(ours.recall[recall > -1], recall[recall > -1])
    reached = ~np.isnan(ours.score)
    np.testing.assert_array_equal(ours.score[reached], reference["scores"][..., 2][reached])


@given(tables())
@examples(20)
def test_twelve_numbers_are_those_of_the_definition(pair):
    expected = box_definition.coco_numbers(*pair)
    found = AveragePrecisionResult.from_matches(match_boxes(*pair)).summary()
    assert found.keys() == expected.keys()
    np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=0, atol=1e-12)


@given(tables(), st.sampled_from(["all", "small", "medium", "large"]))
@examples(100)
def test_lrp_is_that_of_a_sweep_from_scratch(pair, size):
    matches = match_boxes(*pair)
    column = ("all", "small", "medium", "large").index(size)
    grid, exact = LRPResult.from_matches(matches), LRPResult.from_matches(matches, variant="exact")
    for row, name in enumerate(CLASSES):
        outcome = box_definition.class_outcome(*pair, row, size, 0.5)
        for ours, thresholds in ((grid, np.linspace(0, 1, 101)), (exact, np.unique(outcome.score))):
            least, errors = box_definition.optimal_lrp(outcome, thresholds)
            assert ours.olrp[row, column] == pytest.approx(least, rel=0, abs=1e-12, nan_ok=True)
            curve = lrp_curve(matches, name, size=size, variant=ours.variant)
            if errors:
                np.testing.assert_allclose(curve.score, list(errors), rtol=0, atol=1e-15)
                np.testing.assert_allclose(curve.lrp, list(errors.values()), rtol=0, atol=1e-12)
            if not np.isnan(ours.thresholds[row, column]):
                at = int(np.flatnonzero(curve.score == ours.thresholds[row, column])[0])
                assert curve.lrp[at] == least or curve.lrp[at] == pytest.approx(least, rel=0, abs=1e-12)
                assert curve.true_positives[at] > 0


@given(tables())
@examples(25)
def test_any_number_of_threads_gives_the_same_bits(pair):
    one = match_boxes(*pair, threads=1)
    for threads in (2, 5):
        many = match_boxes(*pair, threads=threads)
        assert_same(many, one)
        for name in ("precision", "score", "recall"):
            np.testing.assert_array_equal(
                getattr(AveragePrecisionResult.from_matches(many, threads=threads), name),
                getattr(AveragePrecisionResult.from_matches(one, threads=1), name),
            )


def assert_same(one: BoxMatches, other: BoxMatches) -> None:
    for name, values in vars(one).items():
        np.testing.assert_array_equal(getattr(other, name), values, err_msg=name)
