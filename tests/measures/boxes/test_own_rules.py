"""Own IoU thresholds, limits of detections and area ranges: pycocotools with the same parameters, the definition, and
the kernel from tables, kept columns and stored results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.measures.boxes.conftest import coco_numbers, found_of, truth_of
from tests.measures.boxes.test_properties import tables

import probox
from probox import Convention, Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.measures.boxes import average_precision, box_definition, lrp, match_boxes
from probox.measures.boxes.matching import BoxRules
from probox.measures.boxes.mean_ap import coco_labels
from probox.notes import Note

AREAS = [0.0, 100.0, 400.0, 1024.0, 1600.0, 9216.0, 1e10]
LEVELS = [0.05, 0.3, 0.5, 0.55, 0.6, 0.75, 0.9, 1.0]


@st.composite
def conventions(draw: st.DrawFn) -> Convention:
    """Draw rules: thresholds around 0.5 and with or without it, limits that bind, ranges with gaps or overlaps."""
    ranges = st.lists(st.sampled_from(AREAS), min_size=2, max_size=2, unique=True).map(lambda pair: tuple(sorted(pair)))
    return Convention(
        iou_thresholds=sorted(draw(st.sets(st.sampled_from(LEVELS), min_size=1))),
        max_detections=sorted(draw(st.sets(st.sampled_from([1, 2, 5, 98, 100, 300]), min_size=1, max_size=4))),
        area_ranges=sorted(draw(st.lists(ranges, min_size=3, max_size=3))),
    )


def close(found: dict[str, float], expected: dict[str, float]) -> None:
    assert list(found) == list(expected)
    np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=0, atol=1e-12)


@given(tables(), conventions())
@examples(200)
def test_numbers_are_those_of_pycocotools(pair: tuple[GroundTruth, Detections], convention: Convention) -> None:
    close(
        average_precision(*pair, convention=convention).summary(),
        coco_numbers(*pair, BoxRules.of(convention, pair[0].dataset)),
    )


@given(tables(), conventions())
@examples(15)
def test_the_definition_has_the_numbers_of_pycocotools_and_of_the_kernel(
    pair: tuple[GroundTruth, Detections], convention: Convention
) -> None:
    rules = BoxRules.of(convention, pair[0].dataset)
    expected = box_definition.coco_numbers(*pair, rules)
    close(expected, coco_numbers(*pair, rules))
    close(average_precision(*pair, convention=convention).summary(), expected)


@given(tables(), conventions())
@examples(60)
@example((truth_of([[0, 0, 20, 10]]), found_of([[0, 0, 9, 10]])), Convention(iou_thresholds=(0.3, 0.75)))
def test_pairs_and_lrp_use_an_iou_of_a_half(pair: tuple[GroundTruth, Detections], convention: Convention) -> None:
    own = match_boxes(*pair, convention=convention)
    half = match_boxes(*pair, convention=convention.replace(iou_thresholds=(0.5,)))
    for name in ("ious", "matched_objects", "ranks", "numbers", "object_counts"):
        np.testing.assert_array_equal(getattr(own, name), getattr(half, name), err_msg=name)
    for name in ("matched", "ignored"):
        np.testing.assert_array_equal(getattr(own, name) & 1, getattr(half, name), err_msg=name)
    one, other = (evaluate(*pair, convention=each, measures="lrp") for each in (
        convention, convention.replace(iou_thresholds=(0.5,)))
    )  # fmt: skip
    np.testing.assert_array_equal(one.lrp.olrp, other.lrp.olrp)
    np.testing.assert_array_equal(one.matched_pairs.detections, other.matched_pairs.detections)


@given(tables(), conventions())
@examples(40)
def test_every_way_to_the_numbers_has_the_same(pair: tuple[GroundTruth, Detections], convention: Convention) -> None:
    whole = evaluate(*pair, convention=convention, measures="map,lrp")
    expected = average_precision(*pair, convention=convention).summary()
    kept = evaluate(*pair, convention=convention, measures="map,lrp", keep="matches")
    parts = probox.merge([evaluate(*pair, convention=convention, measures="map,lrp", part=(k, 3)) for k in (3, 1, 2)])
    for result in (whole, kept, parts, probox.from_bytes(kept.to_bytes()), probox.from_bytes(whole.to_bytes())):
        assert result.convention == convention
        assert_equal(result.coco(), expected)
        assert_equal(result.summary(), whole.summary())
        assert_equal(result.box_matches.rules.levels, whole.box_matches.rules.levels)
        own = np.ones((1, len(result.dataset)), np.int64)
        for measure in (probox.measures.boxes.mean_ap.MEAN_AP, probox.measures.boxes.optimal_lrp.OPTIMAL_LRP):
            drawn = measure.resampled(result, own)
            for key, value in measure.summary(result).items():
                np.testing.assert_allclose(drawn[key], [value], rtol=0, atol=1e-12, err_msg=key)
    for image_id in pair[0].image_ids[:2].tolist():
        alone = evaluate(pair[0].select_images([image_id]), pair[1], convention=convention, measures="map,lrp")
        for key, value in alone.summary().items():
            assert whole.per_image()[image_id][key] == pytest.approx(value, abs=1e-12, nan_ok=True)


def assert_equal(one: Any, other: Any) -> None:
    np.testing.assert_equal(one, other)


def test_sixteen_thresholds_fill_every_bit() -> None:
    thresholds = np.linspace(0.25, 1.0, 16)
    truth = truth_of([[0, 0, 20, 10]])
    for width, right in ((20, 16), (19.5, 15), (11.5, 7), (5.5, 1), (4.5, 0)):
        result = average_precision(
            truth, found_of([[0, 0, width, 10]]), convention=Convention(iou_thresholds=thresholds)
        )
        assert result.map == pytest.approx(right / 16, abs=1e-12)
    assert 0.5 in BoxRules(tuple(thresholds)).levels
    with pytest.raises(InputError, match=r"at most 16 of iou_thresholds, with 0.5, which moLRP uses, got 17"):
        Convention(iou_thresholds=np.linspace(0.51, 0.99, 16))


def test_defaults_are_cocos(truth) -> None:
    rules = BoxRules.of(Convention(), truth.dataset)
    np.testing.assert_array_equal(rules.iou_thresholds, np.linspace(0.5, 0.95, 10))  # as pycocotools computes them
    assert rules.levels == rules.iou_thresholds
    assert rules.averaged.tolist() == list(range(10))
    assert rules.max_detections == (1, 10, 100)
    assert rules.areas.tolist() == [[0, 1e5**2], [0, 32**2], [32**2, 96**2], [96**2, 1e5**2]]


def test_curves_and_columns_follow_the_rules(truth) -> None:
    own = Convention(iou_thresholds=(0.3, 0.75), max_detections=(2, 300), area_ranges=((0, 9), (9, 99), (99, 9999)))
    result = average_precision(truth, found_of([[0, 0, 100, 60], [200, 0, 300, 77]], [0.9, 0.8]), convention=own)
    np.testing.assert_allclose(result.per_class()["cup"]["AP"], (1 + 0.25) / 2, atol=0.01)
    assert np.isnan([result.ap50, result.ar_1, result.ar_10, result.ar_100]).all()
    assert list(result.per_class().columns)[6:9] == ["AP_large", "AR_2", "AR_300"]
    assert "AR_300" in result.per_size().columns
    assert result.curve("cup", 0.3).precision.tolist() == [1.0] * 101
    with pytest.raises(InputError, match=r"expected iou to be one of 0.30,0.75, got 0.5"):
        result.curve("cup")
    assert coco_labels(BoxRules.of(own, truth.dataset)) == {
        "mAP": "AP @[ IoU=0.30,0.75 | area=all | maxDets=300 ]",
        "AP50": "AP @[ IoU=0.50 | area=all | maxDets=300 ]",
        "AP75": "AP @[ IoU=0.75 | area=all | maxDets=300 ]",
        **{f"AP_{size}": f"AP @[ IoU=0.30,0.75 | area={size} | maxDets=300 ]" for size in ("small", "medium", "large")},
        "AR_2": "AR @[ IoU=0.30,0.75 | area=all | maxDets=2 ]",
        "AR_300": "AR @[ IoU=0.30,0.75 | area=all | maxDets=300 ]",
        **{f"AR_{size}": f"AR @[ IoU=0.30,0.75 | area={size} | maxDets=300 ]" for size in ("small", "medium", "large")},
    }


def test_sizes_of_every_metric_follow_the_rules() -> None:
    truth, found = truth_of([[0, 0, 10, 10], [100, 0, 150, 50]]), found_of([[0, 0, 10, 10], [100, 0, 150, 50]])
    own = evaluate(truth, found, measures="all", area_ranges=((0, 10), (10, 2500), (2500, 1e10)))
    kept = evaluate(truth, found, keep="matches", area_ranges=((0, 10), (10, 2500), (2500, 1e10)))
    for result in (own, kept):
        sizes = result.per_size()
        assert [sizes[size]["objects"] for size in ("small", "medium", "large")] == [0, 2, 1]  # 2500: both ends
    assert own.per_size()["medium"]["TP"] + own.per_size()["medium"]["FN"] == 2


@pytest.mark.parametrize(
    "changed", [{"iou_thresholds": (0.5,)}, {"max_detections": (1, 10, 99)}, {"area_ranges": ((0, 1), (1, 2), (2, 3))}]
)
def test_other_rules_are_neither_merged_nor_compared(changed: dict[str, Any]) -> None:
    truth, found = truth_of([[0, 0, 10, 10], [0, 0, 10, 10]], images=[1, 2]), found_of([[0, 0, 10, 10]])
    one, other = evaluate(truth, found), evaluate(truth, found, **changed)
    (name,) = changed
    with pytest.raises(InputError, match=f"was evaluated with {name} "):
        probox.compare({"one": one, "other": other})
    parts = [evaluate(truth, found, part=(1, 2)), evaluate(truth, found, part=(2, 2), **changed)]
    with pytest.raises(InputError, match="another convention"):
        probox.merge(parts)


# --- comparability --------------------------------------------------------------------------------------------------


def told(result: Evaluation) -> list[str]:
    assert all(note.code == "not-standard" for note in result.comparability)
    return [str(note) for note in result.comparability]


def test_standard_numbers_are_comparable(demo_truth_and_detections) -> None:
    assert evaluate(*demo_truth_and_detections).comparability == ()
    assert "not comparable" not in str(evaluate(*demo_truth_and_detections))


@pytest.fixture(scope="module")
def demo_truth_and_detections() -> tuple[GroundTruth, Detections]:
    from probox.demo import make_demo

    demo = make_demo()
    return demo.truth, demo.detectors["probabilistic"]


SIZES_TOLD = (
    "area ranges small=0:9/medium=9:99/large=99:1e+10 instead of small=0:1024/medium=1024:9216/large=9216:1e+10"
)
DEVIATIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"max_detections": (1, 10, 300)}, ["max detections 1/10/300 instead of 1/10/100"]),
    ({"iou_thresholds": (0.5,)}, ["IoU thresholds 0.50 instead of 0.50:0.95"]),
    ({"area_ranges": ((0, 9), (9, 99), (99, 1e10))}, [SIZES_TOLD]),
    ({"label_threshold": 0.3}, ["label threshold 0.3"]),
    ({"label_threshold": "auto"}, ["label threshold auto"]),
    ({"box_truth": True}, ["box truth instead of masks"]),
    ({"assignment": "greedy"}, ["assignment greedy instead of optimal"]),
    ({"fixed_variance": 10}, ["fixed variance 10"]),
    ({"clip": "corners"}, ["clip corners instead of none"]),
    ({"preset": "paper"}, ["preset paper instead of reference"]),
    (
        {"preset": "challenge", "label_weight": 0.25},
        ["preset challenge instead of reference", "label weight 0.25 instead of 0.5"],
    ),
    ({"convention": Convention(name="mine")}, []),
    ({"convention": Convention(name="mine", min_quality=0.0)}, ["min quality 0 instead of 2.98023e-08"]),
    ({"object_filter": False}, []),  # as for COCO ground truth
    ({"object_filter": True}, ["object filter"]),
    ({"iou_thresholds": (0.5,), "measures": "pdq"}, []),  # PDQ does not depend on it
    ({"box_truth": True, "measures": "map", "label_threshold": 0.3}, ["label threshold 0.3"]),
    ({"part": "1/3"}, ["images: part 1 of 3"]),
]


@pytest.mark.parametrize(("words", "expected"), DEVIATIONS, ids=lambda value: str(value)[:40])
def test_each_deviation_is_told(words: dict[str, Any], expected: list[str], demo_truth_and_detections) -> None:
    truth, found = demo_truth_and_detections
    result = evaluate(truth, found, **words)
    assert told(result) == expected
    text = f"not comparable with published values: {', '.join(expected)}"
    assert (text in str(result)) == bool(expected)
    assert (text in result._repr_html_()) == bool(expected)


def test_some_images_are_told(demo_truth_and_detections) -> None:
    truth, found = demo_truth_and_detections
    for result in (
        evaluate(truth, found, image_ids=truth.image_ids[:2].tolist()),
        evaluate(truth, found).select_images(truth.image_ids[:2]),
    ):
        assert told(result) == ["images: 2 of the ground truth's 12"]


def test_boxes_alone_are_box_truth() -> None:
    result = evaluate(truth_of([[0, 0, 10, 10]]), found_of([[0, 0, 10, 10]]))
    assert told(result) == ["box truth instead of masks"]
    assert result.comparability == (Note("not-standard", field="box_truth", words="box truth instead of masks"),)


def test_every_field_is_told_of() -> None:
    changes: dict[str, Any] = {
        "epsilon": 1e-12, "region_of_interest": False, "rough_sigmas": 4.5, "mahalanobis": 3.0, "min_determinant": 1e-7,
        "min_probability": 0.01, "single_precision": False, "snap_zero": 1e-7, "snap_one": 1e-4, "min_quality": 1e-3,
        "sum_zero_is_plain": False, "label_weight": 0.25, "assignment": "greedy", "background": "mask",
        "box_truth": True, "fixed_variance": 2.5, "label_threshold": 0.1, "clip": "corners", "object_filter": True,
        "min_width": 3, "min_height": 4, "min_pixels": 5, "confidence_denominator": True, "iou_thresholds": (0.5,),
        "max_detections": (100,), "area_ranges": ((0, 9), (9, 99), (99, 1e10)),
    }  # fmt: skip
    assert {*changes, "name"} == set(vars(Convention()))
    for name, value in changes.items():
        assert list(Convention(**{name: value}).deviations()) == [name]
    assert Convention().deviations() == Convention().deviations("challenge") == {}


def test_lrp_is_at_a_half_whatever_the_thresholds() -> None:
    truth, found = truth_of([[0, 0, 20, 10]]), found_of([[0, 0, 9, 10]])  # an IoU of 0.45
    result = evaluate(truth, found, iou_thresholds=(0.3, 0.75), measures="map,lrp")
    assert result.summary()["mAP"] == pytest.approx(0.5)
    assert np.isnan(result.summary()["AP50"])
    assert result.summary()["AP75"] == 0.0
    assert result.summary()["moLRP"] == lrp(truth, found).molrp == 1.0
    assert len(result.matched_pairs) == 0
