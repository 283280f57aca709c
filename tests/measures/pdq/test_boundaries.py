"""On which side a number falls that lies exactly on a bound: the same in the kernel and in the definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from probox import Convention, Detections, GroundTruth, InputError, evaluate
from probox.measures.pdq import definition
from probox.measures.pdq.kernel import heatmap as kernel_heatmap
from probox.measures.pdq.kernel import pair_tables

PAPER = Convention.preset("paper")
COLUMNS = ("overall", "spatial", "label", "fg", "bg")
BELOW, ABOVE = 0.0, 2.0


def next_to(value: float, towards: float) -> float:
    return float(np.nextafter(value, towards))


def scene(probability: float = 0.3, label: float = 0.7, outside: float = 0.0) -> tuple[GroundTruth, Detections]:
    """Return an object of 8 pixels with a probability for them all, and one for a pixel outside its box."""
    mask = np.zeros((4, 6), bool)
    mask[1:3, 1:5] = True
    values = np.where(mask, probability, 0.0).astype(np.float32)
    values[0, 0] = outside
    truth = GroundTruth.from_masks(["cup"], [(1, [mask], [0])])
    found = Detections(classes=["cup"], image_ids=[1], boxes=np.zeros((1, 4)), label_probs=[[label]], heatmaps=[values])
    return truth, found


def kernel_pair(truth: GroundTruth, found: Detections, convention: Convention) -> dict[str, float]:
    return dict(zip(COLUMNS, pair_tables(truth, found, convention, 0)[0, 0].tolist(), strict=True))


def definition_pair(truth: GroundTruth, found: Detections, convention: Convention) -> dict[str, float]:
    tables = definition.evaluate(truth, found, convention).images[0].tables
    return {name: float(tables[name][0, 0]) for name in COLUMNS}


BOTH_WAYS = pytest.mark.parametrize("pair", [kernel_pair, definition_pair], ids=["kernel", "definition"])
HEATMAPS = pytest.mark.parametrize("heatmap", [kernel_heatmap, definition.heatmap], ids=["kernel", "definition"])
Pair = Callable[..., dict[str, float]]


# --- qualities ------------------------------------------------------------------------------------------------------


@BOTH_WAYS
def test_a_quality_of_exactly_snap_zero_is_zero(pair: Pair) -> None:
    world = scene(outside=0.5)
    plain = pair(*world, PAPER)
    for name in ("spatial", "fg"):
        snapped = pair(*world, PAPER.replace(snap_zero=plain[name]))
        assert snapped[name] == 0.0
        assert pair(*world, PAPER.replace(snap_zero=next_to(plain[name], BELOW)))[name] == plain[name]
    # The foreground is better than the whole and stays; a pair without spatial quality is no match.
    assert plain["spatial"] < plain["fg"]
    only_spatial = pair(*world, PAPER.replace(snap_zero=plain["spatial"]))
    assert only_spatial["fg"] == plain["fg"]
    assert only_spatial["overall"] == 0.0


@BOTH_WAYS
def test_a_quality_of_exactly_snap_one_below_one_is_one(pair: Pair) -> None:
    world = scene(probability=0.9, outside=0.5)
    plain = pair(*world, PAPER)
    for name in ("spatial", "fg", "bg"):
        gap = 1.0 - plain[name]
        assert 1.0 - gap == plain[name]
        assert pair(*world, PAPER.replace(snap_one=gap))[name] == 1.0
        assert pair(*world, PAPER.replace(snap_one=next_to(gap, BELOW)))[name] == plain[name]
    assert pair(*world, PAPER.replace(snap_one=1.0 - plain["bg"]))["fg"] == plain["fg"]


@BOTH_WAYS
def test_zero_goes_before_one(pair: Pair) -> None:
    assert pair(*scene(), PAPER.replace(snap_zero=1.0, snap_one=1.0))["spatial"] == 0.0


@BOTH_WAYS
def test_a_pair_of_exactly_the_least_quality_is_no_match(pair: Pair) -> None:
    world = scene()
    plain = pair(*world, PAPER)
    assert plain["overall"] == pytest.approx((0.3 * 0.7) ** 0.5, rel=1e-6)
    assert pair(*world, PAPER.replace(min_quality=plain["overall"]))["overall"] == 0.0
    assert pair(*world, PAPER.replace(min_quality=next_to(plain["overall"], BELOW)))["overall"] == plain["overall"]


@pytest.mark.parametrize("field", ["snap_zero", "min_quality"])
def test_an_evaluation_draws_the_line_where_a_pair_does(field: str) -> None:
    world = scene(label=1.0)
    name = {"snap_zero": "spatial", "min_quality": "overall"}[field]
    value = kernel_pair(*world, PAPER)[name]
    for bound, matches in ((value, 0), (value * (1 - 1e-12), 1)):
        convention = PAPER.replace(**{field: bound})
        assert evaluate(*world, convention=convention).tp == matches
        assert definition.evaluate(*world, convention).tp == matches


@BOTH_WAYS
@pytest.mark.parametrize(
    ("label", "counts"),
    [(1.0009, 1.0), (1.0, 1.0), (float(np.float32(0.99999994)), 0.99999994), (-0.0009, 0.0), (0.0, 0.0)],
)
def test_a_label_that_rounding_left_outside_counts_as_the_bound(pair: Pair, label: float, counts: float) -> None:
    result = pair(*scene(probability=1.0, label=label), PAPER)
    assert result["label"] == pytest.approx(counts, abs=1e-9)
    assert result["overall"] == pytest.approx(counts**0.5, abs=1e-9)
    assert result["label"] <= 1.0


# --- probabilities --------------------------------------------------------------------------------------------------

STEP = np.zeros((2, 2))
HALF = np.diag([0.25, 0.0])  # a corner on an edge has half of its mass before it, along x


@HEATMAPS
@pytest.mark.parametrize("single_precision", [True, False])
def test_a_corner_s_probability_of_exactly_the_least_is_kept(heatmap: Any, single_precision: bool) -> None:
    # Pixel 3 ends at 4, where the corner's mean lies: its probability is one half, but for the last bit of a double.
    def pixel(cut: float) -> float:
        convention = Convention(min_probability=cut, single_precision=single_precision)
        return float(heatmap([4, 0, 7, 0], [HALF, STEP], 8, 1, convention)[0, 3])

    assert pixel(0.5 if single_precision else next_to(0.5, BELOW) - 1e-13) == pytest.approx(0.5, abs=1e-13)
    assert pixel(float(np.nextafter(np.float32(0.5), np.float32(1)))) == 0.0


@HEATMAPS
def test_what_stands_for_the_pixels_beyond_the_region_is_cut_alike(heatmap: Any) -> None:
    # A region of the mean's pixel alone; all to its right have its value, one half.
    def beyond(cut: float) -> list[float]:
        convention = Convention(min_probability=cut, rough_sigmas=1e-12)
        return heatmap([4 - 1e-9, 0, 7, 0], [HALF, STEP], 8, 1, convention)[0].tolist()

    assert beyond(0.5) == [0.0] * 3 + [0.5] * 5
    assert beyond(float(np.nextafter(np.float32(0.5), np.float32(1)))) == [0.0] * 8


@HEATMAPS
def test_a_product_is_cut_too_and_kept_at_the_bound(heatmap: Any) -> None:
    # Both corners say one half of pixel 3: together a quarter.
    def pixel(cut: float) -> float:
        return float(heatmap([4, 0, 2, 0], [HALF, HALF], 8, 1, Convention(min_probability=cut))[0, 3])

    assert pixel(0.25) == 0.25
    assert pixel(float(np.nextafter(np.float32(0.25), np.float32(1)))) == 0.0
    assert pixel(0.2) == 0.25


@HEATMAPS
def test_a_plain_box_is_never_cut(heatmap: Any) -> None:
    assert heatmap([2.875, 0, 5, 0], None, 8, 1, Convention(min_probability=0.5))[0, 2] == 0.125


# --- thresholds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.3, 0.5, 1.0, 0.0])
def test_a_confidence_of_exactly_the_threshold_is_left_out(confidence: float) -> None:
    world = scene(probability=1.0, label=confidence)
    at = evaluate(*world, convention=Convention(label_threshold=confidence))
    assert len(at.detections) == 0
    assert (at.fp, at.fn) == (0, 1)
    assert len(evaluate(*world).at_threshold(confidence).detections) == 0
    score = definition.evaluate(*world, Convention(label_threshold=confidence))
    assert (score.tp, score.fp, score.fn) == (0, 0, 1)


@pytest.mark.parametrize("confidence", [0.3, 0.5, 1.0])
def test_a_confidence_of_the_next_float_is_kept(confidence: float) -> None:
    world = scene(probability=1.0, label=confidence)
    threshold = float(np.nextafter(np.float32(confidence), np.float32(0)))
    assert evaluate(*world, convention=Convention(label_threshold=threshold)).tp == 1
    assert evaluate(*world).at_threshold(threshold).tp == 1
    assert definition.evaluate(*world, Convention(label_threshold=threshold)).tp == 1


# --- what a convention is ------------------------------------------------------------------------------------------

PUBLISHED = {
    "name": "reference", "epsilon": 1e-14, "region_of_interest": True, "rough_sigmas": 5.0, "mahalanobis": 3.439,
    "min_determinant": 1e-8, "min_probability": 0.0027, "single_precision": True, "snap_zero": 1e-8,
    "snap_one": 1.001e-5, "min_quality": 2.0**-25, "label_weight": 0.5,
    "assignment": "optimal", "background": "box", "box_truth": False, "fixed_variance": None, "label_threshold": None,
    "clip": "none", "object_filter": None, "min_width": 10, "min_height": 10, "min_pixels": 100,
    "confidence_denominator": False, "iou_thresholds": np.linspace(0.5, 0.95, 10).tolist(),
    "max_detections": [1, 10, 100], "area_ranges": [[0.0, 32**2], [32**2, 96**2], [96**2, 1e10]],
}  # fmt: skip
EQUATIONS = {
    "name": "paper", "region_of_interest": False, "min_probability": 0.0, "single_precision": False, "snap_zero": 0.0,
    "snap_one": 0.0, "min_quality": 0.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("preset", "changes"),
    [("reference", {}), ("paper", EQUATIONS), ("challenge", {"name": "challenge", "confidence_denominator": True})],
)
def test_presets_are_those_of_the_documentation(preset: str, changes: dict[str, Any]) -> None:
    convention = Convention.preset(preset)
    fields = convention.to_dict()
    covariances_in_sum = fields.pop("sum_zero_is_plain")
    assert fields.pop("max_detections") is None
    assert fields | {"max_detections": [*convention.for_rules("coco").max_detections]} == {**PUBLISHED, **changes}
    assert (covariances_in_sum is False) == (preset == "paper")


# --- what a convention accepts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "accepted", "refused"),
    [
        ("epsilon", [1e-300, 1e-9], [next_to(1e-300, BELOW), next_to(1e-9, ABOVE), 0.0, np.nan]),
        ("label_weight", [0.0, 1.0], [-1e-12, next_to(1.0, ABOVE), np.nan]),
        ("label_threshold", [0.0, 1.0, None], [-1e-12, next_to(1.0, ABOVE), np.nan]),
        ("fixed_variance", [0.0, 1e300, None], [-1e-12, np.inf, np.nan]),
        ("assignment", ["optimal", "greedy"], ["best", ""]),
        ("background", ["box", "mask"], ["none", ""]),
        ("clip", ["none", "corners"], ["box", ""]),
        (
            "iou_thresholds",
            [(1e-9,), (1.0,), (0.5, *np.linspace(0.51, 1, 15).tolist())],
            [
                (),
                (0.0,),
                (next_to(1.0, ABOVE),),
                (np.nan,),
                (0.5, 0.5),
                (0.6, 0.5),
                tuple(np.linspace(0.51, 1, 16)),
                0.5,
                "0.5",
                (True,),
                ("0.5",),
                {0.5: 1},
            ],
        ),
        ("max_detections", [(1,), (2, 3), (2**31 - 1,)], [(), (0,), (2**31,), (10, 10), (10, 1), (1.0,), (True,), 10]),
        (
            "area_ranges",
            [((0.0, 5e-324), (0.0, 1.0), (1e300, 1.7e308))],
            [
                (),
                ((0, 1), (1, 2)),
                ((0, 1), (1, 2), (2, 3), (3, 4)),
                ((0, 0), (1, 2), (2, 3)),
                ((0, 1), (1, 2), (2, np.inf)),
                ((0, np.nan), (1, 2), (2, 3)),
                ((-1, 1), (1, 2), (2, 3)),
                ((1, 2), (0, 1), (2, 3)),
                (0, 1, 2),
                ((0, 1, 2),) * 3,
            ],
        ),
    ],
)
def test_a_field_has_bounds_that_it_may_reach(field: str, accepted: list[Any], refused: list[Any]) -> None:
    for value in accepted:
        assert getattr(Convention(**{field: value}), field) == value
    for value in refused:
        with pytest.raises(InputError, match=field):
            Convention(**{field: value})


@pytest.mark.parametrize("pair", [kernel_pair, definition_pair], ids=["kernel", "definition"])
def test_the_largest_epsilon_says_nothing_of_pixels_without_probability(pair: Pair) -> None:
    # log(1 + 1e-9) of each would begin to count; pixels without probability are no background at all.
    result = pair(*scene(probability=1.0), PAPER.replace(epsilon=1e-9))
    assert result["fg"] == 1.0
    assert result["bg"] == 1.0
    mask = np.zeros((300, 300), bool)
    mask[1:3, 1:5] = True
    values = mask.astype(np.float32)
    values[200, 200] = 0.5
    truth = GroundTruth.from_masks(["cup"], [(1, [mask], [0])])
    wide = Detections(classes=["cup"], image_ids=[1], boxes=np.zeros((1, 4)), label_probs=[[1.0]], heatmaps=[values])
    # The kernel lets each of them add its log(1 + epsilon): so much, and no more.
    least = values.size * 1e-9 / 8 if pair is kernel_pair else 0.0
    assert pair(truth, wide, PAPER.replace(epsilon=1e-9))["bg"] == pytest.approx(0.5**0.125, rel=1e-9 + least)
