"""One image with many objects or detections: what is looked at, who works on which piece, what is too much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_covariance, random_mask

from probox import Convention, Detections, GroundTruth, _core
from probox.measures.pdq.kernel import KernelTables, pair_tables, score_pairs, settings_of
from probox.tables.results import PairTable

FEW = 7
"""Detections of an image for which the kernel looks at every object in turn."""


def make_boxes(rng: np.random.Generator, count: int, size: np.ndarray, largest: int) -> np.ndarray:
    """Return whole boxes of 1 to `largest` pixels a side within an image, many of them at the ends of buckets."""
    extent = np.minimum(rng.integers(1, largest + 1, (count, 2)), size)
    bucket = 1 << max(0, int(size.max() - 1).bit_length() - 6)
    low = rng.integers(0, size - extent + 1)
    at_ends = rng.random((count, 2)) < 0.5
    low = np.where(at_ends, low // bucket * bucket - rng.integers(0, 2, (count, 2)), low)
    low = np.clip(low, 0, size - extent)
    return np.concatenate([low, low + extent - 1], axis=1)


def make_world(seed: int, objects: int, detections: int, largest: int = 4) -> tuple[GroundTruth, Detections]:
    """Return one image of up to 1,000 pixels a side, and boxes on its objects, beside them and outside."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.uniform(np.log(4), np.log(1000), 2)).astype(np.int64)
    boxes = make_boxes(rng, objects, size, largest)
    truth = GroundTruth.from_boxes(
        ["cup", "dog"], {1: tuple(size.tolist())}, np.ones(objects, np.int64), boxes, rng.integers(0, 2, objects)
    )
    found = boxes[rng.integers(0, objects, detections)] + rng.integers(-1, 2, (detections, 4)) * (
        rng.random((detections, 1)) < 0.5
    )
    found = np.where(rng.random((detections, 1)) < 0.1, found + 2.0 * np.tile(size, 2), found)  # outside
    found = np.sort(found.reshape(-1, 2, 2), axis=1).reshape(-1, 4).astype(np.float64)
    variance = np.where(rng.random(detections) < 0.5, 0.0, rng.uniform(0.1, 2.0, detections))
    probs = rng.random((detections, 2)).astype(np.float32) / 2 * (rng.random((detections, 2)) < 0.9)
    return truth, Detections(
        classes=["cup", "dog"],
        image_ids=np.ones(detections, np.int64),
        boxes=found,
        label_probs=probs,
        covariances=variance[:, None, None, None] * np.tile(np.eye(2), (2, 1, 1)),
    )


def in_many_images(truth: GroundTruth, found: Detections, size: int) -> tuple[GroundTruth, Detections]:
    """Return copies of one image with all of its objects each, among which its detections are dealt out in turn."""
    copies = -(-len(found) // size)
    width, height = truth.dataset.shapes[0].tolist()
    many = GroundTruth.from_boxes(
        truth.classes,
        dict.fromkeys(range(1, copies + 1), (width, height)),
        np.repeat(np.arange(1, copies + 1), len(truth)),
        np.tile(truth.boxes, (copies, 1)),
        np.tile(truth.labels, copies),
    )
    return many, found.replace(image_ids=1 + np.arange(len(found)) // size)


def one_by_one(truth: GroundTruth, found: Detections, convention: Convention, size: int = FEW) -> PairTable:
    """Return the pairs of one image, found with few detections in the image at a time."""
    many, dealt = in_many_images(truth, found, size)
    pairs = score_pairs(many, many.masks, dealt, convention)
    objects = pairs.objects % len(truth)
    order = np.lexsort((pairs.detections, objects))
    return PairTable(detections=pairs.detections[order], objects=objects[order], qualities=pairs.qualities[order])


def assert_same(one: PairTable, other: PairTable) -> None:
    np.testing.assert_array_equal(one.detections, other.detections)
    np.testing.assert_array_equal(one.objects, other.objects)
    np.testing.assert_array_equal(one.qualities, other.qualities)


@pytest.mark.parametrize("preset", ["reference", "paper"])
@examples(60)
@given(seed=st.integers(0, 2**32 - 1), objects=st.integers(16, 140), detections=st.integers(8, 60))
def test_objects_that_are_not_looked_at_could_not_have_scored(preset, seed, objects, detections):
    truth, found = make_world(seed, objects, detections)
    convention = Convention.preset(preset)
    assert_same(score_pairs(truth, truth.masks, found, convention), one_by_one(truth, found, convention))


def test_a_smallest_quality_that_spares_distant_objects_spares_them():
    """An object outside the support scores epsilon; above a threshold of less than that it counts."""
    truth, found = make_world(5, objects=40, detections=30)
    convention = Convention(snap_zero=1e-40, min_quality=0.0)
    pairs = score_pairs(truth, truth.masks, found, convention)
    assert_same(pairs, one_by_one(truth, found, convention))
    strict = score_pairs(truth, truth.masks, found, Convention())
    assert len(pairs) > 2 * len(strict)


@pytest.mark.parametrize(("objects", "detections"), [(1, 1500), (40, 1500), (5000, 30)])
def test_pieces_and_threads_give_the_same_bits(objects, detections):
    truth, found = make_world(objects, objects, detections, largest=40)
    whole = score_pairs(truth, truth.masks, found, Convention())
    assert len(whole) > 20
    for threads in (2, 3, 8):
        assert_same(whole, score_pairs(truth, truth.masks, found, Convention(), threads=threads))
    assert_same(whole, one_by_one(truth, found, Convention()))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_first_image_with_too_many_pairs_is_named(threads):
    truth, found = make_world(0, objects=60, detections=4000, largest=30)
    many, dealt = in_many_images(truth, found, 1000)
    tables = KernelTables(many, many.masks, dealt, Convention())

    def score(max_pairs: int) -> np.ndarray:
        found, _, _ = _core.score_images(
            settings_of(Convention()), *tables.of_images(0, 4), max_pairs=max_pairs, threads=threads
        )
        return np.bincount(found // 1000, minlength=4)

    counts = score(1 << 20)
    assert len(set(counts.tolist())) == 4
    for most in sorted(counts.tolist()):
        np.testing.assert_array_equal(score(int(counts.max())), counts)
        with pytest.raises(_core.TooManyPairsError) as caught:
            score(most - 1)
        assert caught.value.args == (int(np.argmax(counts > most - 1)),)


def test_every_pair_of_an_image_is_listed_whatever_is_near():
    truth, found = make_world(1, objects=40, detections=30)
    tables = KernelTables(truth, truth.masks, found, Convention())
    every = _core.pair_qualities(settings_of(Convention()), *tables.of_images(0, 1))
    assert every.shape == (40, 30, 5)
    np.testing.assert_array_equal(every[..., 2], found.label_probs.matrix.T.astype(np.float64)[truth.labels])
    pairs = score_pairs(truth, truth.masks, found, Convention())
    # Sums for many objects are taken from a table, those for a few by multiplying floats in pairs.
    np.testing.assert_allclose(every[pairs.objects, pairs.detections], pairs.qualities, rtol=5e-7, atol=0)
    assert np.count_nonzero(every[..., 0]) == len(pairs)


@pytest.mark.parametrize("preset", ["reference", "paper"])
@pytest.mark.parametrize("background", ["box", "mask"])
@examples(15)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=1112)
@example(seed=59394)
def test_many_objects_get_the_qualities_that_each_gets_alone(preset, background, seed):
    rng = np.random.default_rng(seed)
    width, height = (int(n) for n in rng.integers(20, 90, 2))
    masks = [random_mask(rng, height, width) for _ in range(30)]
    labels = rng.integers(0, 2, len(masks)).tolist()
    corners = np.sort(rng.uniform(-5, [width + 5, height + 5], (3, 2, 2)), axis=1)
    found = Detections(
        classes=["cup", "dog"],
        image_ids=[1] * 3,
        boxes=corners.reshape(3, 4),
        label_probs=rng.random((3, 2)) / 2,
        covariances=np.stack([[random_covariance(rng), random_covariance(rng)] for _ in range(3)]),
    )
    convention = Convention.preset(preset, background=background)
    together = pair_tables(GroundTruth.from_masks(["cup", "dog"], [(1, masks, labels)]), found, convention, 0)
    for number, (mask, label) in enumerate(zip(masks, labels, strict=True)):
        alone = pair_tables(GroundTruth.from_masks(["cup", "dog"], [(1, [mask], [label])]), found, convention, 0)
        # Maps are in single precision under `reference`: where P is near to 1, the logarithm of 1 - P is off by more.
        near = {"rtol": 5e-6, "atol": 1e-9} if preset == "reference" else {"rtol": 1e-9, "atol": 1e-12}
        np.testing.assert_allclose(together[number], alone[0], **near)
