"""Random numbers of bootstrap and permutations, and confidence intervals over images."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests.strategies import with_box_masks
from tests.worlds import boxes_truth, simulated

import probox
from probox import Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.analysis import resampling
from probox.analysis.resampling import (
    DRAWS,
    SWAPS,
    Block,
    Interval,
    bootstrap,
    compute_interval,
    cut_blocks,
    draw_block,
    draw_images,
    note_undefined,
    random_words,
    stream_key,
    swap_block,
)
from probox.measures.measure import Measure
from probox.measures.registry import MEASURES
from probox.notes import Note

SIZES = [2, 3, 12, 77, 1000]
SEEDS = [0, 1, 2, 2**32, 2**70 + 1]


def test_words_are_those_of_the_definition() -> None:
    def mix(word: int) -> int:
        word = (word ^ word >> 16) * 0x7FEB352D % 2**32
        word = (word ^ word >> 15) * 0x846CA68B % 2**32
        return word ^ word >> 16

    def step(key: int, number: int) -> int:
        return mix(key ^ mix((number + 0x9E3779B9) % 2**32))

    key = step(step(SWAPS, 7), 5)  # a seed of two words
    assert stream_key(5 * 2**32 + 7, SWAPS) == key
    words = random_words(key, Block(998, 1001), 50)
    assert words.tolist() == [[step(step(key, r), image) for image in range(50)] for r in range(998, 1001)]
    # These are on the page, too: a change moves every interval.
    assert random_words(stream_key(0, DRAWS), Block(0, 1), 3).tolist() == [[725753817, 2820623602, 2774981801]]


@pytest.mark.parametrize("images", SIZES)
def test_draws_and_swaps_do_not_depend_on_blocks(images: int) -> None:
    drawn, swapped = draw_block(Block(0, 23), images, 5), swap_block(Block(0, 23), images, 5)
    np.testing.assert_array_equal(np.concatenate(list(draw_images(images, 23, 5))), drawn)
    for block in (Block(16, 23), Block(0, 1), Block(7, 20), Block(1, 7), Block(22, 23)):
        np.testing.assert_array_equal(draw_block(block, images, 5), drawn[block.start : block.stop])
        np.testing.assert_array_equal(swap_block(block, images, 5), swapped[block.start : block.stop])
    assert (drawn.sum(axis=1) == images).all()


def z_of_chi_square(counts: np.ndarray) -> float:
    """Return by how many standard deviations counts that should be equal differ from it."""
    expected, degrees = counts.mean(), counts.size - 1
    return float((((counts - expected) ** 2).sum() / expected - degrees) / np.sqrt(2 * degrees))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("images", [2, 7, 206, 1000])
def test_every_image_is_drawn_and_swapped_as_often(images: int, seed: int) -> None:
    drawn, swapped = draw_block(Block(0, 4000), images, seed), swap_block(Block(0, 4000), images, seed)
    assert abs(z_of_chi_square(drawn.sum(axis=0))) < 4.5
    squares = (swapped.sum(axis=0) - 2000) ** 2 / 1000  # a binomial's variance is 4000 / 4
    assert abs((squares.sum() - images) / np.sqrt(2 * images)) < 4.5
    # An image is drawn k times as often as the binomial distribution has it: left out with (1 - 1/n)^n.
    left_out = (1 - 1 / images) ** images
    assert abs((drawn == 0).mean() - left_out) < 4.5 * np.sqrt(left_out * (1 - left_out) / drawn.size)
    assert abs(swapped.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(swapped.size)


@pytest.mark.parametrize("seed", SEEDS)
def test_replicates_images_seeds_and_streams_are_independent(seed: int) -> None:
    block, images = Block(0, 2000), 200
    words = random_words(stream_key(seed, DRAWS), block, images)
    others = {
        "next replicate": (words[:-1], words[1:]),
        "replicate after 64": (words[:-64], words[64:]),
        "next image": (words[:, :-1], words[:, 1:]),
        "diagonal": (words[:-1, :-1], words[1:, 1:]),
        "antidiagonal": (words[:-1, 1:], words[1:, :-1]),
        "next seed": (words, random_words(stream_key(seed + 1, DRAWS), block, images)),
        "other stream": (words, random_words(stream_key(seed, SWAPS), block, images)),
    }
    for name, (one, other) in others.items():
        a, b = one.ravel(), other.ravel()
        together = np.bincount((a >> 28).astype(np.int64) * 16 + (b >> 28).astype(np.int64), minlength=256)
        assert abs(z_of_chi_square(together)) < 4.5, name
        assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / np.sqrt(len(a)), name
        bits = np.unpackbits((a ^ b).view(np.uint8)).reshape(len(a), 32).mean(axis=0)
        assert np.abs(bits - 0.5).max() < 5 * 0.5 / np.sqrt(len(a)), name


@pytest.mark.parametrize(
    ("replicates", "images", "expected"),
    [(1000, 10, [(0, 1000)]), (5, 2_000_000, [(0, 2), (2, 4), (4, 5)]), (0, 10, [])],
)
def test_blocks(replicates: int, images: int, expected: list[tuple[int, int]]) -> None:
    assert cut_blocks(replicates, images) == expected


@pytest.fixture(scope="module")
def measured() -> Evaluation:
    truth = boxes_truth(67)
    return evaluate(truth, with_box_masks(truth, simulated(truth, false_per_image=1, miss_rate=0.1)), measures="all")


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_a_replicate_does_not_depend_on_others(measured: Evaluation, measure: Measure) -> None:
    assert measure.resampled is not None
    weights = draw_block(Block(0, 12), len(measured.dataset), 0)
    whole = measure.resampled(measured, weights)
    for cuts in ([1, 2, 3], [5], [4, 8], [11]):
        parts = [measure.resampled(measured, part) for part in np.split(weights, cuts)]
        for key, values in whole.items():
            np.testing.assert_array_equal(np.concatenate([part[key] for part in parts]), values, err_msg=key)


def world(images: int, found: int | None = None) -> Evaluation:
    """Return an evaluation of images with a cup each; the first `found` (default: all) are found."""
    ids = np.arange(images)
    box = [10, 10, 40, 40]
    truth = GroundTruth.from_boxes(["cup"], {int(i): (64, 48) for i in ids}, ids, [box] * images, [0] * images)
    there = ids[: images if found is None else found]
    return probox.evaluate(
        truth,
        Detections(
            classes=["cup"], image_ids=there, boxes=np.array([box] * len(there)).reshape(-1, 4),
            label_probs=np.linspace(0.3, 0.9, len(there))[:, None],
        ),
    )  # fmt: skip


def test_every_number_has_its_interval(results: dict[str, Evaluation]) -> None:
    result = results["probabilistic"]
    found = bootstrap(result, replicates=200)
    assert {key: interval.value for key, interval in found.items()} == result.summary()
    for key, interval in found.items():
        assert interval.low <= interval.value <= interval.high, key
        assert 0 < interval.error < interval.high - interval.low, key
    assert (found.images, found.level, found.replicates, found.seed) == (12, 0.95, 200, 0)
    assert found.notes == (Note("few-images", 12, least=30),)
    assert result.intervals(replicates=200).columns == found.columns
    assert repr(found).endswith("; 95%, 12 images)")
    assert found.limits()["PDQ"] == (found["PDQ"].low, found["PDQ"].high)
    assert found.to_dict()["columns"]["PDQ"]["error"] == found["PDQ"].error


def test_the_same_for_a_seed_and_any_memory(results: dict[str, Evaluation], monkeypatch: pytest.MonkeyPatch) -> None:
    result = results["deterministic"]
    once = bootstrap(result, ["pdq"], replicates=50, seed=3)
    assert once.columns == bootstrap(result, ["pdq"], replicates=50, seed=3).columns
    assert once.columns != bootstrap(result, ["pdq"], replicates=50, seed=4).columns
    monkeypatch.setattr(resampling, "_CELLS", 12 * 7)
    parts = [len(weights) for weights in draw_images(12, 50, 3)]
    assert parts == [7] * 7 + [1]
    assert once.columns == bootstrap(result, ["pdq"], replicates=50, seed=3).columns


# --- the interval of replicates ---


def test_interval_of_normal_replicates() -> None:
    """Student's quantiles, as wide as n / (n - 1) asks, around the value and not around the replicates' mean."""
    numbers = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    for images, level in ((10, 0.95), (50, 0.9), (1000, 0.99)):
        reach = stats.t.ppf(0.5 + level / 2, images - 1) * math.sqrt(images / (images - 1))
        found = compute_interval(5.0, numbers + 5.5, images, level)
        assert (found.high - 5.0, 5.0 - found.low) == pytest.approx((reach, reach), abs=0.02)
        assert found.error == pytest.approx(1.0, abs=1e-3)


def test_students_quantile() -> None:
    for degrees in (9, 30, 200):
        for level in (0.8, 0.95, 0.99):
            z = stats.norm.ppf(0.5 + level / 2)
            assert resampling._student_quantile(z, degrees) == pytest.approx(
                stats.t.ppf(0.5 + level / 2, degrees), abs=5e-3
            )


def test_ends_stay_where_numbers_can_be() -> None:
    low = np.array([0.0] * 60 + [0.1] * 40)
    assert compute_interval(0.01, low, 50, 0.95, "per cent").low == 0.0
    assert compute_interval(0.01, low, 50, 0.95, "count").low == 0.0
    assert compute_interval(0.01, low, 50, 0.95).low == pytest.approx(-0.03)
    assert compute_interval(0.99, 1 - low, 50, 0.95, "per cent").high == 1.0
    assert compute_interval(0.99, 1 - low, 50, 0.95, "count").high == pytest.approx(1.03)
    assert compute_interval(0.01, low - 0.5, 50, 0.95, "per cent").low == pytest.approx(-0.03)  # such as skill
    assert compute_interval(0.2, np.full(9, 0.2), 9, 0.95) == Interval(0.2, 0.2, 0.2, 0.0)


def test_what_is_not_defined_is_counted() -> None:
    found = compute_interval(0.5, np.array([0.4, np.nan, 0.6, 0.5]), 10, 0.95)
    assert found.undefined == 1
    assert found.error == pytest.approx(0.1)
    assert math.isnan(compute_interval(math.nan, np.array([0.4, 0.6]), 10, 0.95).low)
    assert math.isnan(compute_interval(0.5, np.array([0.4]), 10, 0.95).low)
    finite = compute_interval(0.5, np.array([0.4, np.inf, 0.6, -np.inf, 0.5]), 10, 0.95)
    assert (finite.undefined, finite.low, finite.high) == (2, found.low, found.high)
    infinite = compute_interval(math.inf, np.array([0.4, np.inf, 0.6]), 10, 0.95)
    assert math.isnan(infinite.low)
    assert math.isnan(infinite.error)
    columns = {"a": infinite, "b": finite, "c": compute_interval(math.nan, np.full(3, np.nan), 10, 0.95)}
    assert note_undefined(columns, 5) == (
        Note("infinite-columns", 1, names="a"),
        Note("undefined-replicates", 2, names="b", total=5),
    )
    (few, note) = bootstrap(world(8, found=1), ["pdq"], replicates=400).notes
    assert few == Note("few-images", 8, least=30)
    assert note.code == "undefined-replicates"
    assert str(note).startswith("pPDQ, spatial, label, foreground, background: undefined in 1")
    assert str(note).endswith("of 400 replicates, which were excluded")


def simulated_sums(random: np.random.Generator, images: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what PDQ divides, image by image: images differ in how many objects they have and how hard they are."""
    ease = random.beta(2, 2, images)
    objects = random.geometric(1 / 7, images)
    hits = random.binomial(objects, 0.2 + 0.7 * ease)
    false = random.poisson(3 * (1.2 - ease) * random.gamma(1, 1, images))
    return np.clip(0.15 + 0.6 * ease + random.normal(0, 0.1, images), 0, 1) * hits, objects + false


def coverage(images: int, sets: int, replicates: int, seed: int) -> float:
    """Return how many intervals of simulated sets hold the PDQ of all images that there could be."""
    random = np.random.default_rng(seed)
    inside = 0
    for number in range(sets):
        quality, counted = simulated_sums(random, images)
        (weights,) = draw_images(images, replicates, number)
        drawn = (weights @ quality) / (weights @ counted)
        found = compute_interval(quality.sum() / counted.sum(), drawn, images, 0.95)
        inside += found.low <= 0.2067 <= found.high
    return inside / sets


def test_intervals_cover_the_truth() -> None:
    quality, counted = simulated_sums(np.random.default_rng(9), 400_000)
    assert quality.sum() / counted.sum() == pytest.approx(0.2067, abs=1e-3)
    assert 0.93 <= coverage(images=100, sets=200, replicates=300, seed=0) <= 0.97


# --- input ---


def test_one_image_has_no_interval() -> None:
    found = bootstrap(world(1))
    assert found.notes == (Note("too-few-images-for-intervals", 1),)
    assert found["PDQ"].value > 0
    assert all(math.isnan(interval.low) and math.isnan(interval.error) for interval in found.values())
    assert bootstrap(world(0)).notes == (Note("too-few-images-for-intervals", 0),)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replicates": 1}, "expected replicates to be a whole number of at least 2, got 1"),
        ({"replicates": 2.5}, "expected replicates to be a whole number of at least 2, got 2.5"),
        ({"seed": -1}, "expected seed to be a whole number of at least 0, got -1"),
        ({"level": 95}, "expected level to be between 0 and 1, got 95; write 0.95 for 95%"),
        ({"level": True}, "expected level to be between 0 and 1, got True"),
        ({"level": math.nan}, "expected level to be between 0 and 1, got nan"),
        ({"measures": ["iou"]}, "expected measures to be some of pdq, map, lrp.*, got 'iou'"),
        ({"measures": "pdq,iou"}, "expected measures to be some of pdq, map, lrp.*, got 'iou'"),
        ({"measures": []}, "expected measures to be some of pdq, map, lrp"),
    ],
)
def test_wrong_options(results: dict[str, Evaluation], options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bootstrap(results["deterministic"], **options)


def test_measures_that_the_result_does_not_hold() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48), 2: (64, 48)}, [1], [[1, 1, 9, 9]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[1, 1, 9, 9]], label_probs=[[1]], source="found.json")
    result = probox.evaluate(truth, found, measures=["map"])
    assert list(bootstrap(result)) == ["mAP", "AP50", "AP75"]
    assert "moLRP" in bootstrap(result, ["lrp"])  # follows from what is there
    with pytest.raises(InputError, match=r"found.json: pdq needs matches by pixels.*evaluate again with measures="):
        bootstrap(result, ["pdq"])
