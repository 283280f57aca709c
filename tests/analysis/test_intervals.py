"""Intervals by the bootstrap over images."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import probox
from probox import Detections, Evaluation, GroundTruth, InputError
from probox.analysis import resampling
from probox.analysis.resampling import Interval, bootstrap, compute_interval, draw_images, note_undefined
from probox.notes import Note


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
    result = results["unsure"]
    found = bootstrap(result, replicates=200)
    assert {key: interval.value for key, interval in found.items()} == result.summary()
    for key, interval in found.items():
        assert interval.low <= interval.value <= interval.high, key
        assert 0 < interval.error < interval.high - interval.low, key
    assert (found.images, found.level, found.replicates, found.seed) == (12, 0.95, 200, 0)
    assert found.notes == (Note("few-images", 12, least=30),)
    assert repr(found).endswith("; 95 %, 12 images)")
    assert found.limits()["PDQ"] == (found["PDQ"].low, found["PDQ"].high)
    assert found.to_dict()["columns"]["PDQ"]["error"] == found["PDQ"].error  # type: ignore[index]


def test_the_same_for_a_seed_and_any_memory(results: dict[str, Evaluation], monkeypatch: pytest.MonkeyPatch) -> None:
    result = results["sure"]
    once = bootstrap(result, ["pdq"], replicates=50, seed=3)
    assert once.columns == bootstrap(result, ["pdq"], replicates=50, seed=3).columns
    assert once.columns != bootstrap(result, ["pdq"], replicates=50, seed=4).columns
    monkeypatch.setattr(resampling, "_CELLS", 12 * 7)
    parts = [len(weights) for weights in draw_images(12, 50, 3)]
    assert parts == [7] * 7 + [1]
    assert once.columns == bootstrap(result, ["pdq"], replicates=50, seed=3).columns


def test_as_many_images_are_drawn_as_there_are() -> None:
    (weights,) = draw_images(40, 500, 0)
    assert weights.shape == (500, 40)
    assert (weights.sum(axis=1) == 40).all()
    np.testing.assert_allclose(weights.mean(axis=0), 1.0, atol=0.2)
    assert (weights == 0).mean() == pytest.approx((1 - 1 / 40) ** 40, abs=0.01)


def test_the_door_is_the_function(results: dict[str, Evaluation]) -> None:
    result = results["sure"]
    assert result.intervals(["map"], replicates=20).columns == bootstrap(result, ["map"], replicates=20).columns
    assert "result.intervals()" in str(Evaluation.intervals.__doc__)


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
    assert str(note).startswith("pPDQ, spatial, label, foreground, background: no number in 1")
    assert str(note).endswith("of 400 replicates, which were left out")


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
        ({"level": 95}, "expected level to be between 0 and 1, got 95; write 0.95 for 95 %"),
        ({"level": True}, "expected level to be between 0 and 1, got True"),
        ({"level": math.nan}, "expected level to be between 0 and 1, got nan"),
        ({"measures": ["iou"]}, "expected measures to be some of pdq, map, lrp.*, got 'iou'"),
        ({"measures": "pdq,iou"}, "expected measures to be some of pdq, map, lrp.*, got 'iou'"),
        ({"measures": []}, "expected measures to be some of pdq, map, lrp"),
    ],
)
def test_wrong_options(results: dict[str, Evaluation], options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bootstrap(results["sure"], **options)  # type: ignore[arg-type]


def test_measures_that_the_result_does_not_hold() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48), 2: (64, 48)}, [1], [[1, 1, 9, 9]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[1, 1, 9, 9]], label_probs=[[1]], source="found.json")
    result = probox.evaluate(truth, found, measures=["map"])
    assert list(bootstrap(result)) == ["mAP", "AP50", "AP75"]
    assert "moLRP" in bootstrap(result, ["lrp"])  # follows from what is there
    with pytest.raises(InputError, match=r"found.json: pdq needs matches by pixels.*evaluate with pdq among"):
        bootstrap(result, ["pdq"])
