"""Comparisons of results: swaps against real mixtures of detections, refusals, and what is concluded."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import CLASSES, random_world, with_box_masks

import probox
from probox import Convention, Detections, Evaluation, GroundTruth, InputError
from probox.analysis import comparison
from probox.analysis.comparison import Difference, align_classes, compare
from probox.analysis.comparison_text import comparison_table, conclude, format_p
from probox.analysis.permutation import Sampler, apply_holm, take_class
from probox.analysis.resampling import Interval, bootstrap
from probox.measures.measure import Column
from probox.measures.registry import MEASURES, measure_names, measures_called
from probox.notes import Note

RESAMPLED = [measure for measure in MEASURES if measure.resampled is not None]


def mixture(first: Detections, second: Detections, swapped: Mapping[int, bool]) -> Detections:
    """Return the first detector's detections, those of swapped images being the second's."""
    parts = [
        found.select(np.array([row for row, image in enumerate(found.image_ids.tolist()) if swapped[image] == side]))
        for found, side in ((first, False), (second, True))
    ]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("image_ids", "boxes", "label_probs", "covariances")
    }
    return Detections(classes=first.classes, **columns)


@given(st.integers(0, 2**32 - 1), st.lists(st.booleans(), min_size=4, max_size=4))
@examples(25)
def test_a_swap_is_the_evaluation_of_the_mixed_files(seed: int, sides: list[bool]) -> None:
    truth, first = random_world(seed, heatmaps=False)
    random = np.random.default_rng(seed)
    # Another detector: other boxes, some gone, equal scores among the rest.
    kept = np.flatnonzero(random.random(len(first)) < 0.8)
    second = first.select(kept)
    boxes = second.boxes + np.round(random.normal(0, 1, second.boxes.shape))
    second = dataclasses.replace(second, boxes=np.sort(boxes.reshape(-1, 2, 2), axis=1).reshape(-1, 4), extents=None)
    a, b = (probox.evaluate(truth, found) for found in (first, second))
    joined = align_classes(a, b, a.measures)
    chosen = np.array(sides[: len(truth.image_ids)])
    weights = np.stack([~chosen, chosen], axis=1).reshape(1, -1).astype(np.int64)
    mixed = mixture(first, second, dict(zip(truth.image_ids.tolist(), chosen.tolist(), strict=True)))
    expected = probox.evaluate(truth, mixed).summary()
    for measure in RESAMPLED:
        if measure.standard:
            assert measure.resampled is not None
            numbers = {key: float(values[0]) for key, values in measure.resampled(joined, weights).items()}
            assert numbers == pytest.approx({key: expected[key] for key in numbers}, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("measure", [m for m in RESAMPLED if m.per_class is not None], ids=lambda m: m.name)
@given(seed=st.integers(0, 2**32 - 1))
@examples(15)
def test_parts_of_classes_are_what_per_class_measures(measure, seed: int) -> None:
    truth, found = random_world(seed)
    result = probox.evaluate(truth, with_box_masks(truth, found), measures=measure_names())
    groups = measure.per_class(result)
    key = measure.headline.key
    for label, name in enumerate(CLASSES):
        part, images = take_class(result, label, measure)
        expected = pytest.approx(groups[name][key], abs=1e-9, nan_ok=True)
        assert float(measure.resampled(part, np.ones((1, len(images)), np.int64))[key][0]) == expected
        assert measure.summary(part)[key] == expected


def found_of(rows: list[int]) -> Evaluation:
    """Return the evaluation of six images with a cup and a dog each, of which these objects are found."""
    images = range(6)
    boxes = [[10, 10, 40, 40], [50, 10, 80, 40]] * 6
    ids = np.repeat(images, 2)
    truth = GroundTruth.from_boxes(["cup", "dog"], dict.fromkeys(images, (99, 60)), ids, boxes, [0, 1] * 6)
    probs = np.array([[0.81, 0.0], [0.0, 0.81]] * 6)
    return probox.evaluate(
        truth,
        Detections(classes=["cup", "dog"], image_ids=ids[rows], boxes=np.array(boxes)[rows], label_probs=probs[rows]),
    )


def test_p_is_the_share_of_swaps() -> None:
    """B finds a dog more in each of three images: 2 of 8 swaps of these leave all of them on one side."""
    (pair,) = compare({"A": found_of([0, 2, 4]), "B": found_of([0, 2, 4, 5, 7, 9])}, ["pdq"], replicates=4000).pairs
    assert pair.columns["PDQ"].difference.value == pytest.approx(-0.9 * 3 / 12)
    p = pair.columns["PDQ"].p
    assert p == pytest.approx(2 / 8, abs=0.03)
    assert p * 4001 == pytest.approx(round(p * 4001))  # the unswapped one is one of them
    (pair,) = compare({"A": found_of([0, 2]), "B": found_of([0, 2, 4])}, ["pdq"], replicates=99).pairs
    assert pair.columns["PDQ"].p == 1.0  # one image differs: a swap turns the difference round


def test_intervals_are_those_of_the_bootstrap(results: dict[str, Evaluation]) -> None:
    found = compare(results, replicates=60, seed=5)
    (pair,) = found.pairs
    assert (pair.first, pair.second) == ("deterministic", "probabilistic")
    for key, interval in bootstrap(results["deterministic"], replicates=60, seed=5).items():
        assert pair.columns[key].first == interval
    for key, interval in bootstrap(results["probabilistic"], replicates=60, seed=5).items():
        assert pair.columns[key].second == interval
    pdq = pair.columns["PDQ"]
    assert pdq.difference.value == pdq.first.value - pdq.second.value
    # Images are the same for both, so the difference is surer than if they were not.
    assert pdq.difference.error < math.hypot(pdq.first.error, pdq.second.error)
    assert pdq.p == 1 / 61
    assert pdq.claimed
    assert found.to_dict()["pairs"][0]["columns"]["PDQ"]["p"] == pdq.p


def test_the_same_result_twice_is_equal(results: dict[str, Evaluation]) -> None:
    (pair,) = compare(
        {"A": results["deterministic"], "B": results["deterministic"]}, replicates=30, per_class=True
    ).pairs
    for found in [*pair.columns.values(), *pair.classes["PDQ"].values()]:
        assert (found.difference.value, found.difference.low, found.difference.high, found.p) == (0, 0, 0, 1)
        assert not found.claimed
    assert pair.conclusion == "In PDQ, mAP and 1-moLRP they are equal."


def test_pairs(results: dict[str, Evaluation]) -> None:
    three = {
        "a": results["deterministic"],
        "b": results["probabilistic"],
        "c": results["deterministic"].at_threshold(0.6),
    }
    found = compare(three, ["pdq"], replicates=50)
    assert [(pair.first, pair.second) for pair in found.pairs] == [("a", "b"), ("a", "c")]
    assert "Holm's correction for 2 pairs" in found.pairs[0].conclusion
    columns = [pair.columns["PDQ"] for pair in found.pairs]
    assert [column.adjusted for column in columns] == pytest.approx(apply_holm([column.p for column in columns]))
    assert found.notes[0] == Note(
        "settings-differ", first="a", second="c", setting="label threshold", a="none", b="0.6"
    )
    everyone = compare(three, ["pdq"], replicates=5, all_pairs=True)
    assert [(pair.first, pair.second) for pair in everyone.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_classes_have_holms_correction(results: dict[str, Evaluation]) -> None:
    (pair,) = compare(results, replicates=200, per_class=True).pairs
    assert list(pair.classes) == ["PDQ", "mAP", "moLRP"]
    table = results["probabilistic"].per_class()
    for key, classes in pair.classes.items():
        assert list(classes) == [name for name in table if not math.isnan(table[name][key])]
        for name, found in classes.items():
            assert found.second.value == table[name][key]
            assert found.images <= 12
        assert [found.adjusted for found in classes.values()] == apply_holm(found.p for found in classes.values())


@given(seed=st.integers(0, 2**32 - 1))
@examples(10)
def test_classes_in_one_pass_are_those_of_their_parts(seed: int) -> None:
    truth, found = random_world(seed)
    result = probox.evaluate(truth, found, measures=["map", "lrp"])
    weights = np.random.default_rng(seed).integers(0, 3, (4, len(truth.image_ids)))
    for measure in measures_called(["map", "lrp"]):
        whole, together = measure.resampled_classes(result, weights)
        expected = measure.resampled(result, weights)
        assert list(whole) == [column.key for column in measure.columns if not column.optional] == list(expected)
        for label in range(len(CLASSES)):
            part, images = take_class(result, label, measure)
            alone = measure.resampled(part, weights[:, images])[measure.headline.key]
            np.testing.assert_allclose(together[:, label], alone, atol=1e-12)
        sampler = Sampler(result, [measure], per_class=True)
        for label, name in enumerate(CLASSES):
            place = name, measure.headline.key
            assert sampler.images[place].tolist() == take_class(result, label, measure)[1].tolist()
            np.testing.assert_array_equal(sampler.numbers(weights)[place], together[:, label])
            np.testing.assert_array_equal(sampler.numbers(weights, classes_alone=True)[place], together[:, label])
        for key, values in expected.items():
            np.testing.assert_array_equal(whole[key], values)
            np.testing.assert_array_equal(sampler.numbers(weights)["", key], values)
            np.testing.assert_array_equal(Sampler(result, [measure], per_class=False).numbers(weights)["", key], values)
        assert ("", measure.headline.key) not in sampler.numbers(weights, classes_alone=True)


def test_without_swaps_nothing_is_claimed(results: dict[str, Evaluation]) -> None:
    found = compare(results, ["pdq"], replicates=20, swaps=False).pairs[0].columns["PDQ"]
    assert math.isnan(found.p)
    assert not found.claimed
    assert found.difference.high < 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm(p: list[float]) -> None:
    adjusted = apply_holm(p)
    order = np.argsort(p, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()
    assert all(own <= corrected <= 1 for own, corrected in zip(p, adjusted, strict=True))
    assert min(adjusted) == pytest.approx(min(1.0, len(p) * min(p)))
    assert apply_holm([*p, math.nan])[:-1] == adjusted


# --- results that cannot be compared ---


def test_other_truths_are_refused(results: dict[str, Evaluation]) -> None:
    a = results["deterministic"]
    ids = a.dataset.image_ids
    objects = a.objects
    moved = objects.replace(boxes=objects.boxes + 1.0)
    others = {
        "B cannot be compared with A: only the ground truth of A has the class star": dataclasses.replace(
            a, dataset=a.dataset.replace(classes=("sun", *a.classes[1:]))
        ),
        f"image {ids[0]} of A is not in B": a.select_images(ids[1:]),
        f"image {ids[0]} and 1 more of A are not in B": a.select_images(ids[2:]),
        f"image {ids[0]} has another size": dataclasses.replace(
            a, dataset=a.dataset.replace(widths=a.dataset.widths + 1)
        ),
        f"the objects of image {ids[0]} differ in boxes": dataclasses.replace(a, objects=moved),
        f"the objects of image {ids[0]} differ in mask boxes": dataclasses.replace(
            a, objects=objects.replace(mask_boxes=objects.mask_boxes + 1)
        ),
        "A was evaluated with background box, B with mask": dataclasses.replace(
            a, convention=Convention.preset("reference", background="mask")
        ),
        "A was evaluated with confidence_denominator off, B with on": dataclasses.replace(
            a, convention=Convention.preset("challenge")
        ),
    }
    for message, other in others.items():
        with pytest.raises(InputError) as caught:
            compare({"A": a, "B": other})
        assert message in str(caught.value)
        assert str(caught.value).endswith("; evaluate both on the same ground truth and with the same options")
        assert "\n" not in str(caught.value)


def test_another_number_of_objects_is_refused() -> None:
    found = Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
    one, two = (
        probox.evaluate(GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7] * n, [[1, 1, 9, 9]] * n, [0] * n), found)
        for n in (1, 2)
    )
    with pytest.raises(InputError, match="image 7 has 1 objects in A and 2 in B"):
        compare({"A": one, "B": two})


def test_wrong_arguments(results: dict[str, Evaluation]) -> None:
    with pytest.raises(InputError, match="expected two results or more to compare, but got 1"):
        compare({"A": results["deterministic"]})
    with pytest.raises(InputError, match="expected results to be evaluations by name"):
        compare([results["deterministic"], results["probabilistic"]])
    by_measures = {name: dataclasses.replace(results["deterministic"], measures=(name,)) for name in ("pdq", "map")}
    with pytest.raises(InputError, match="the results have no metric in common"):
        compare(by_measures)


def nothing_of(images: int, objects: int, detections: int) -> Evaluation:
    """Return an evaluation of images of which the first have an object, or a detection, each."""
    box = [[5, 5, 25, 20]]
    ids = list(range(images))
    truth = GroundTruth.from_boxes(
        ["cup"], dict.fromkeys(ids, (64, 48)), ids[:objects], np.reshape(box * objects, (-1, 4)), [0] * objects
    )
    found = Detections(
        classes=["cup"], image_ids=ids[:detections], boxes=np.reshape(box * detections, (-1, 4)),
        label_probs=np.full((detections, 1), 0.6),
    )  # fmt: skip
    return probox.evaluate(truth, found)


@pytest.mark.parametrize(
    ("images", "objects", "found", "conclusion"),
    [
        (0, 0, 0, "Nothing can be concluded about A and B from 0 images."),
        (3, 0, 0, "In PDQ, mAP and 1-moLRP one value is not finite."),
        (3, 0, 3, "In PDQ they are equal; in mAP and 1-moLRP one value is not finite."),
        (3, 3, 0, "In PDQ, mAP and 1-moLRP they are equal."),
    ],
)
def test_results_with_little_in_them(images: int, objects: int, found: int, conclusion: str) -> None:
    result = nothing_of(images, objects, found)
    compared = compare({"A": result, "B": result}, per_class=True, replicates=20)
    assert compared.pairs[0].conclusion == conclusion
    assert conclusion in str(compared)


def test_replicates_without_a_number_are_counted() -> None:
    compared = compare({"A": nothing_of(4, 4, 1), "B": nothing_of(4, 4, 4)}, ["pdq"], replicates=200)
    few, note = tuple(map(str, compared.notes))
    assert few.startswith("only 4 images: ")
    missing = compared.pairs[0].columns["pPDQ"].difference.undefined
    assert missing == pytest.approx(200 * 0.75**4, abs=25)
    expected = f"undefined in {missing} of 200 replicates, which were excluded"
    assert note == f"A - B: pPDQ, spatial, label, foreground, background: {expected}"


def named_dogs(probs: list[float]) -> Evaluation:
    """Return an evaluation of images with a dog each; detections say that it is one, with these probabilities."""
    ids = np.arange(len(probs))
    boxes = np.array([[10, 10, 40, 40]] * len(probs))
    truth = GroundTruth.from_boxes(["cup", "dog"], {int(i): (64, 48) for i in ids}, ids, boxes, [1] * len(probs))
    labels = np.array([[0.0, p] for p in probs])
    found = Detections(
        classes=["cup", "dog"], image_ids=ids, boxes=boxes, label_probs=labels, labels=[1] * len(probs)
    )  # fmt: skip
    return probox.evaluate(truth, found, measures=["ignorance"])


@pytest.mark.filterwarnings("error")
def test_nothing_is_claimed_of_what_is_infinite() -> None:
    """A dog that is said to be impossible makes the ignorance infinite, also in most replicates and swaps."""
    finite, infinite = named_dogs([0.9, 0.8, 0.7, 0.6]), named_dogs([0.9, 0.8, 0.7, 0.0])
    others = ((finite, infinite, -math.inf), (infinite, finite, math.inf), (infinite, infinite, math.nan))
    for first, second, value in others:
        compared = compare({"A": first, "B": second}, replicates=50, per_class=True)
        (pair,) = compared.pairs
        found = pair.columns["ignorance"]
        assert str(found.difference.value) == str(value)
        assert math.isnan(found.p)
        assert math.isnan(found.difference.low)
        assert not found.claimed
        assert pair.conclusion == "In ignorance one value is not finite."
        assert math.isnan(pair.classes["ignorance"]["dog"].p)
        assert "nan" not in str(compared)
    sure = bootstrap(infinite, replicates=50)
    assert math.isnan(sure["ignorance"].low)
    assert Note("infinite-columns", 1, names="ignorance") in sure.notes
    assert sure["ignorance_possible"].low < sure["ignorance_possible"].high


def test_few_images_have_no_small_p() -> None:
    """Four images have 16 swaps, two of which do as much as none: p is 1/8, however few are tried."""
    (pair,) = compare({"A": nothing_of(4, 4, 0), "B": nothing_of(4, 4, 4)}, per_class=True, replicates=9).pairs
    assert pair.columns["PDQ"].p >= 1 / 8
    assert pair.classes["PDQ"]["cup"].p >= 1 / 8
    assert not pair.columns["PDQ"].claimed
    seeds = [
        compare({"A": nothing_of(4, 4, 0), "B": nothing_of(4, 4, 4)}, ["pdq"], replicates=9, seed=n) for n in range(30)
    ]
    assert min(found.pairs[0].columns["PDQ"].p for found in seeds) == 1 / 8


def test_one_image_concludes_nothing() -> None:
    truth, found = random_world(1, max_images=1, heatmaps=False)
    result = probox.evaluate(truth, found)
    compared = compare({"A": result, "B": result}, per_class=True)
    assert compared.pairs[0].conclusion == "Nothing can be concluded about A and B from 1 image."
    assert compared.notes == (Note("too-few-images-for-intervals", 1),)
    assert "Nothing can be concluded" in str(compared)


# --- words ---


def difference(low: float, value: float, high: float, p: float, adjusted: float, claimed: bool) -> Difference:
    return Difference(Interval(0.5), Interval(0.5), Interval(value, low, high, 0.1), p, adjusted, 9, claimed)


def said(value: float, low: float, high: float, p: float = 0.004, *, claimed: bool = True, **column: object) -> str:
    named = Column(key="X", **{"heading": "X", **column})
    return conclude(("A", "B"), [(named, difference(low, value, high, p, p, claimed))], 206, 0.95)


def test_conclusions() -> None:
    assert said(0.013, 0.004, 0.022) == (
        "A is better than B in X by 1.30 points (95% CI 0.40 to 2.20, p = 0.004, 206 images)."
    )
    assert said(-0.013, -0.022, -0.004).startswith("B is better than A in X by 1.30 points (95% CI 0.40 to 2.20")
    assert said(-0.013, -0.022, -0.004, better="low").startswith("A is better than B in X by 1.30 points")
    assert said(0.013, 0.004, 0.022, better="low", complement=True).startswith("B is better than A in X by 1.30")
    assert said(-3.25, -4.0, -2.0, better="low", unit="plain", symbol="px").startswith(
        "A is better than B in X by 3.2 px (95% CI 2.0 to 4.0,"
    )
    assert said(-3.25, -4.0, -2.0, better=None, unit="plain").startswith("A is lower than B in X by 3.2 (")
    assert said(1200.0, 900.0, 1500.0, unit="count").startswith("A is better than B in X by 1,200 (95%")
    assert said(-0.002, -0.009, 0.005, 0.6, claimed=False) == (
        "In X no difference can be claimed: A minus B is -0.20 points (95% CI -0.90 to 0.50, p = 0.600, 206 images)."
    )
    assert said(math.nan, math.nan, math.nan, claimed=False) == "In X one value is not finite."
    assert said(math.inf, math.nan, math.nan, claimed=False) == "In X one value is not finite."
    assert format_p(0.0001) == "p < 0.001"
    assert said(0.0013, 0.0004, 0.0022).startswith("A is better than B in X by 0.130 points (95% CI 0.040 to 0.220")
    assert said(0.01, math.nan, math.nan, math.nan, claimed=False) == (
        "In X no difference can be claimed: A minus B is 1.00 points (no interval, 206 images)."
    )


def test_conclusions_of_many_measures() -> None:
    def found(name: str, value: float, claimed: bool) -> tuple[Column, Difference]:
        return Column(key=name), difference(value - 0.01, value, value + 0.01, 0.01, 0.02, claimed)

    claims = [found("P", 0.05, True), found("Q", -0.05, True), found("R", 0.03, True)]
    assert conclude(("A", "B"), claims, 99, 0.9, pairs=2) == (
        "A is better than B in P by 5.0 points (90% CI 4.0 to 6.0, p = 0.010, adjusted p = 0.020, 99 images, "
        "Holm's correction for 2 pairs) and in R by 3.0 points (2.0 to 4.0, p = 0.010, adjusted p = 0.020); "
        "B is better than A in Q by 5.0 points (4.0 to 6.0, p = 0.010, adjusted p = 0.020)."
    )
    mixed = [found("P", 0.002, False), found("Q", 0.05, True)]
    assert conclude(("A", "B"), mixed, 99, 0.9) == (
        "A is better than B in Q by 5.0 points (90% CI 4.0 to 6.0, p = 0.020, 99 images); "
        "in P no difference can be claimed: A minus B is 0.2 points (-0.8 to 1.2, p = 0.020)."
    )
    unclaimed = [found(name, 0.002, False) for name in "PQRS"]
    assert conclude(("A", "B"), unclaimed, 99, 0.9) == "In P, Q, R and S no difference can be claimed."
    assert conclude(("A", "B"), unclaimed[:2], 99, 0.9) == (
        "In P and Q no difference can be claimed: A minus B is 0.2 points (90% CI -0.8 to 1.2, p = 0.020, "
        "99 images) and 0.2 points (-0.8 to 1.2, p = 0.020)."
    )


@pytest.mark.parametrize(("p", "adjusted", "pairs"), [(0.01, 0.08, 8), (0.06, 0.06, 1), (0.06, 0.12, 2)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_sentence_agrees_with_an_interval_that_excludes_0(p: float, adjusted: float, pairs: int, sign: int) -> None:
    """An interval without 0 beside "no difference" needs its reason: the correction, or the permutation test."""
    low, high = sorted((sign * 0.01, sign * 0.03))
    column, value = Column(key="PDQ"), sign * 0.02
    text = conclude(("A", "B"), [(column, difference(low, value, high, p, adjusted, False))], 99, 0.95, pairs)
    if p <= 0.05:
        reason = " after Holm's correction for 8 pairs, although the interval of this pair alone excludes 0: A minus B"
    else:
        reason = " by the permutation test (p above 0.05), although the interval excludes 0: A minus B"
    assert text.startswith(f"In PDQ no difference can be claimed{reason}")
    assert (f"p = {p:.3f}, adjusted p = {adjusted:.3f}" in text) == (pairs > 1)
    low, high = sorted((0.0, sign * 0.03))
    touching = difference(low, value, high, p, adjusted, False)
    assert "In PDQ no difference can be claimed: A minus" in conclude(("A", "B"), [(column, touching)], 99, 0.95, pairs)


def test_permutations_follow_the_number_of_pairs(results: dict[str, Evaluation]) -> None:
    """Twelve results make 66 pairs: with 1,000 permutations the least adjusted p would be 66 / 1001 = 0.066."""
    unsure = results["probabilistic"]
    many = {f"{n}": unsure.at_threshold(0.01 * n) for n in range(1, 12)} | {"deterministic": results["deterministic"]}
    found = compare(many, ["pdq"], all_pairs=True)
    assert (len(found.pairs), found.permutations) == (66, 2640)
    assert found.to_dict()["permutations"] == 2640
    best = min((pair.columns["PDQ"] for pair in found.pairs), key=lambda difference: difference.p)
    assert best.p < 1 / 1001
    assert best.adjusted == pytest.approx(66 * best.p)
    assert best.claimed
    assert "1,000 bootstrap replicates and 2,640 permutations" in str(found)
    assert compare(many, ["pdq"], replicates=10).permutations == 440
    assert compare(results, ["pdq"], replicates=10).permutations == 10


def test_many_classes_are_swapped_often_enough_to_be_claimed(results: dict[str, Evaluation]) -> None:
    """7 classes and level 0.95: Holm's p of the best would be 7 / 51 with 50 swaps; with 280 it is 7 / 281."""
    (pair,) = compare(results, ["pdq"], replicates=50, per_class=True).pairs
    classes = pair.classes["PDQ"].values()
    # Of a class in n images p is 2^(1 - n) at least.
    assert all(
        found.p == 2.0 ** (1 - found.images) or round(found.p * 281) == pytest.approx(found.p * 281)
        for found in classes
    )
    assert any(found.p > 2.0 ** (1 - found.images) for found in classes)
    assert any(found.claimed for found in classes)
    assert pair.columns["PDQ"].p == 1 / 51


def test_a_claim_needs_both_the_test_and_the_interval(results: dict[str, Evaluation]) -> None:
    sampler = {name: Sampler(result, RESAMPLED[:1], False) for name, result in results.items()}
    place = ("", "PDQ")
    apart = {"deterministic": {place: np.array([0.1, 0.2])}, "probabilistic": {place: np.array([0.5, 0.7])}}
    across = {"deterministic": {place: np.array([0.1, 0.9])}, "probabilistic": {place: np.array([0.5, 0.4])}}
    for drawn, adjusted, claimed in ((apart, 0.05, True), (apart, 0.051, False), (across, 0.01, False)):
        found = comparison._compare_numbers(
            place, ("deterministic", "probabilistic"), sampler, drawn, 0.01, adjusted, 40, 0.95
        )
        assert found.claimed is claimed


def test_tables(results: dict[str, Evaluation]) -> None:
    compared = compare({"a_b": results["deterministic"], "c": results["probabilistic"]}, replicates=50, per_class=True)
    (pair,) = compared.pairs
    header, first, *_ = comparison_table(compared, pair).splitlines()
    assert header.split() == ["a_b", "c", "a_b", "-", "c", "p"]
    assert first.startswith("mAP [%]      62.5 [")
    marked = [line for line in comparison_table(compared, pair).splitlines() if line.endswith("*")]
    assert [line.split()[0] for line in marked] == [
        key for key in ("PDQ", "pPDQ", "Sp", "FG", "BG") if pair.columns[_key(key)].claimed
    ]
    assert comparison_table(compared, pair, "markdown").startswith(r"|  | a\_b | c | a\_b - c | p |")
    assert r"a\_b" in comparison_table(compared, pair, "latex")
    classes = comparison_table(compared, pair, "csv", of_classes=True).splitlines()
    assert classes[0] == (
        "class,column,images,a_b,a_b low,a_b high,c,c low,c high,difference,difference low,difference high,p,p Holm"
    )
    assert len(classes) == 1 + sum(map(len, pair.classes.values()))
    assert {line.split(",")[1] for line in classes[1:]} == {"mAP", "1-moLRP", "PDQ"}
    assert comparison_table(compared, pair, of_classes=True).startswith("class                  images")
    alone = compare(results, ["pdq"], replicates=5, per_class=True)
    assert comparison_table(alone, alone.pairs[0], of_classes=True).startswith("class (PDQ [%])  images")
    rows = {line.split(",")[0]: line.split(",")[1:] for line in comparison_table(compared, pair, "csv").splitlines()}
    lrp = pair.columns["moLRP"]
    assert [float(cell) for cell in rows["1-moLRP"][:3]] == [1 - lrp.first.value, 1 - lrp.first.high, 1 - lrp.first.low]
    assert float(rows["PDQ"][6]) == pair.columns["PDQ"].difference.value
    assert str(compared).count(pair.conclusion) == 1
    assert "50 bootstrap replicates and permutations of 12 images, seed 0; * significant difference" in str(compared)


def _key(heading: str) -> str:
    return {"Sp": "spatial", "FG": "foreground", "BG": "background"}.get(heading, heading)


def test_progress_is_told(results: dict[str, Evaluation]) -> None:
    told: list[tuple[int, int]] = []
    compare(results, ["pdq"], replicates=5, progress=lambda done, total: told.append((done, total)))
    assert told == [(5, 10), (10, 10)]


def test_a_difference_is_json(results: dict[str, Evaluation]) -> None:
    found = compare(results, ["pdq"], replicates=5).pairs[0].columns["PDQ"]
    assert isinstance(found, Difference)
    assert list(found.to_dict()) == ["first", "second", "difference", "p", "p_adjusted", "images", "claimed"]


def test_what_only_one_was_evaluated_for_is_said(results: dict[str, Evaluation]) -> None:
    a, b = results.values()
    more = dataclasses.replace(b, measures=("pdq", "map", "nll", "energy"))
    some = {"A": dataclasses.replace(a, measures=("pdq", "map", "lrp")), "B": more, "C": more}
    notes = compare(some, replicates=5).notes
    assert Note("measured-in-some", 1, many=1, names="lrp", results="A") in notes
    assert Note("measured-in-some", 2, many=2, names="nll and energy", results="B and C") in notes
    assert not any("not compared" in note for note in tuple(map(str, compare(some, ["pdq"], replicates=5).notes)))
    assert not any("not compared" in note for note in map(str, compare(results, replicates=5).notes))


def test_measures_without_classes_are_said(results: dict[str, Evaluation]) -> None:
    told = Note("no-classes-compared", 1, names="pmb-nll")
    both = {name: dataclasses.replace(result, measures=("pdq", "pmb-nll")) for name, result in results.items()}
    assert told in compare(both, ["pdq", "pmb-nll"], per_class=True, replicates=5).notes
    assert told not in compare(both, ["pdq", "pmb-nll"], replicates=5).notes
    assert told not in compare(both, per_class=True, replicates=5).notes  # nobody named it
    alone = {name: dataclasses.replace(result, measures=("pmb-nll",)) for name, result in results.items()}
    assert told in compare(alone, per_class=True, replicates=5).notes
