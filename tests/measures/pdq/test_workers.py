"""Work on several threads: what one of them throws reaches the caller, and leaves nothing behind."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.strategies import random_world

from probox import Detections, GroundTruth, evaluate

IMAGES = 12
SIDE = 2**31 - 1
"""An image whose map no memory can hold: its builder refuses to make room, deep inside a worker."""


def world(bad: set[int]) -> tuple[GroundTruth, Detections]:
    """Return images of one found object each; those in `bad` are too large for the map of their vague box."""
    sizes = {image: (SIDE, SIDE) if image in bad else (60, 50) for image in range(IMAGES)}
    truth = GroundTruth.from_boxes(["cup"], sizes, range(IMAGES), [[10, 10, 30, 30]] * IMAGES, [0] * IMAGES)
    variances = [1e18 if image in bad else 4.0 for image in range(IMAGES)]
    found = Detections(
        classes=["cup"],
        image_ids=np.arange(IMAGES),
        boxes=[[5e8, 5e8, 1e9, 1e9] if image in bad else [10, 10, 30, 30] for image in range(IMAGES)],
        label_probs=np.ones((IMAGES, 1)),
        covariances=[[np.eye(2) * variance] * 2 for variance in variances],
    )
    return truth, found


@pytest.mark.parametrize("threads", [1, 2, 4, 40])
@pytest.mark.parametrize("bad", [{0}, {IMAGES - 1}, {5}, set(range(IMAGES))], ids=["first", "last", "one", "all"])
def test_a_worker_s_exception_reaches_the_caller(bad, threads):
    before = threading.active_count()
    for _ in range(5):  # which worker meets the image is left to chance
        with pytest.raises((ValueError, MemoryError)):
            evaluate(*world(bad), threads=threads)
    assert threading.active_count() == before
    fine = evaluate(*world(set()), threads=threads)
    assert fine.tp == IMAGES


def test_more_threads_than_images_and_none_at_all():
    nothing = GroundTruth.from_boxes(["cup"], {}, [], np.zeros((0, 4)), [])
    none = Detections(classes=["cup"], image_ids=[], boxes=[], label_probs=np.zeros((0, 1)))
    assert np.isnan(evaluate(nothing, none, threads=8).pdq)
    truth, found = random_world(2, max_images=1)
    np.testing.assert_equal(evaluate(truth, found, threads=8).summary(), evaluate(truth, found, threads=1).summary())


def test_a_table_scored_in_pieces_has_the_rows_of_its_images():
    # From 2000 detections on the work is cut up: every piece counts its rows from its own first image.
    rng = np.random.default_rng(0)
    images, each = 9, 700
    truth = GroundTruth.from_boxes(
        ["cup"], dict.fromkeys(range(images), (60, 50)), np.arange(images).repeat(2),
        np.tile([[10, 10, 30, 30], [35, 5, 55, 25]], (images, 1)), [0] * 2 * images,
    )  # fmt: skip
    boxes = np.tile([[10, 10, 30, 30]], (images * each, 1)) + rng.integers(-3, 4, (images * each, 4))
    found = Detections(
        classes=["cup"],
        image_ids=np.arange(images).repeat(each),
        boxes=boxes,
        label_probs=rng.random((images * each, 1)),
    )
    seen = []
    whole = evaluate(truth, found, measures=["pdq"], progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 1 + images * each // 2000
    assert seen[-1] == (images, images)
    alone = [
        evaluate(truth.select_images([n]), found.select(found.image_ids == n), measures=["pdq"]) for n in range(images)
    ]
    starts = np.arange(images) * each
    expected = np.concatenate([part.pairs.detections + start for part, start in zip(alone, starts, strict=True)])
    np.testing.assert_array_equal(whole.pairs.detections, expected)
    expected = np.concatenate([part.pairs.objects + 2 * n for n, part in enumerate(alone)])
    np.testing.assert_array_equal(whole.pairs.objects, expected)
    expected = np.concatenate([part.pairs.qualities for part in alone])
    np.testing.assert_array_equal(whole.pairs.qualities, expected)
    assert whole.tp == sum(part.tp for part in alone)
