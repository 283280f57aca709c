"""Closed forms are correct."""

from __future__ import annotations

import math

import numpy as np
import pytest

import probox_experiments as experiments
from probox import GroundTruth
from probox_experiments import Experiment, ResultTable
from probox_experiments.paper.closed_form import box_scores, duplicates_map, pair_equals
from probox_experiments.paper.duplicates import DUPLICATES_COCO_100
from probox_experiments.paper.misalignment import SCALING, TRANSLATION, half_width
from probox_experiments.paper.perfect_boxes import (
    BOX_PROBABILITY,
    CORNER_VARIANCE,
    LABEL_UNCERTAINTY,
)
from probox_experiments.paper.pixel_regions import PLANE, coverage_of_quality, quality_of_coverage


def holds_of(experiment: Experiment, table: ResultTable, words: str) -> bool | None:
    """Return the result of the claim that contains these words."""
    (claim,) = [claim for claim in experiment.judge(table) if words in claim.claim]
    return claim.holds


def test_a_pair_is_compared_under_every_preset() -> None:
    known = {
        "PDQ": [1e-2, 0.0], "foreground": [1e-3, np.nan], "background": [0.1, np.nan],
        "PDQ_paper": [1e-2, 1e-5], "foreground_paper": [1e-3, 1e-6], "background_paper": [0.1, 1e-4],
    }  # fmt: skip
    wanted = ([1e-3, 1e-6], [0.1, 1e-4])
    assert pair_equals("", ResultTable(known), *wanted).holds is True
    for name, values in known.items():
        for row in (0, 1):
            if np.isnan(values[row]):
                continue
            wrong = [value * (1 + 1e-8) if i == row else value for i, value in enumerate(values)]
            if values[row] == 0:
                wrong[row] = 1e-30
            assert pair_equals("", ResultTable({**known, name: wrong}), *wanted).holds is False, name
            wrong[row] = np.nan
            assert pair_equals("", ResultTable({**known, name: wrong}), *wanted).holds is False, name
    other = ResultTable({**known, "PDQ": [0.5, 0.5]})
    assert pair_equals("", other, *wanted, presets=["paper"]).holds is True
    assert pair_equals("", other, *wanted, presets=["challenge"]).holds is None
    assert pair_equals("", ResultTable({"PDQ": []}), [], []).holds is None


def test_scores_of_one_box_by_its_overlap() -> None:
    scores = box_scores([0.0, 0.499, 0.5, 0.55, 0.949, 0.95, 1.0])
    assert scores["mAP"] == pytest.approx([0, 0, 0.1, 0.2, 0.9, 1.0, 1.0])
    assert scores["1 - moLRP"] == pytest.approx([0, 0, 0, 0.1, 0.898, 0.9, 1.0])


def test_half_widths_need_the_half() -> None:
    setting = np.array([2.0, 0.0, 1.0])  # in any order
    assert half_width(setting, np.array([0.0, 1.0, 0.6]), 0.0) == pytest.approx(1 + 1 / 6)
    assert math.isnan(half_width(setting, np.array([0.5, 1.0, 0.6]), 0.0))


def test_the_papers_numbers_of_the_plane_contradict_each_other() -> None:
    most, least = quality_of_coverage(0.16), coverage_of_quality(3.64e-6)
    assert most == pytest.approx(1.318e-6, rel=1e-3)
    assert least == pytest.approx(0.2230, abs=1e-4)
    assert most == pytest.approx(10 ** (-14 * 0.84 / 2))
    assert coverage_of_quality(most) == pytest.approx(0.16)
    (told,) = [one.explanation for one in PLANE.judge(experiments.plane()) if "contradict" in one.explanation]
    assert "at most 1.32e-06" in told
    assert "requires 22%" in told


def test_a_truth_of_one_image_has_no_half() -> None:
    table = experiments.duplicates_coco_100(experiments.synthetic_truth(1), times=(1, 2))
    assert table["images"].tolist() == [1, 1]
    assert holds_of(DUPLICATES_COCO_100, table, "every halving") is None
    assert holds_of(DUPLICATES_COCO_100, table, "larger than on all") is None
    assert holds_of(DUPLICATES_COCO_100, table, "PDQ is 1/n") is True


def test_the_closed_form_of_duplicates() -> None:
    def in_a_row(count: int, crowd: bool = False) -> GroundTruth:
        boxes = [[12 * number, 0, 12 * number + 10, 10] for number in range(count)]
        marks = np.array([crowd and number == 0 for number in range(count)])
        scene = GroundTruth.from_boxes(["thing"], {1: (12 * count, 10)}, [1] * count, np.array(boxes), [0] * count)
        return experiments.pixel_aligned(scene.replace(crowd=marks))

    for count, times in ((1, 3), (2, 2), (7, 4), (12, 10)):  # of the last, the first ten objects are looked at
        scene = in_a_row(count)
        found = experiments.SimulatedDetector(detections_per_object=times).detect(scene)
        measured = experiments.Run(presets=["paper"]).measure(scene, found)["mAP"]
        assert duplicates_map(scene, times) == pytest.approx(measured, abs=1e-12)
    assert duplicates_map(in_a_row(2), 2) == pytest.approx((51 * 1 + 50 * 2 / 3) / 101)
    assert duplicates_map(in_a_row(3, crowd=True), 2) == duplicates_map(in_a_row(2), 2)
    assert math.isnan(duplicates_map(in_a_row(1, crowd=True), 2))


def test_boxes_that_hardly_miss_a_pixel_lie_on_it() -> None:
    # 4/9 of the area are 200 pixels of 300, which the root of 0.444444444 is not quite.
    table = experiments.scaling(sizes=(0.444444444, 0.45), variances=(0,), side=300, image=600)
    assert (table["pixels"] % 1 == 0).tolist() == [True, False]
    assert holds_of(SCALING, table, "e^(1 - a)") is True
    beyond = experiments.translation(shifts=(0.5, 0.6), variances=(0,), side=100, image=200)
    assert beyond["inside"].tolist() == [True, False]


def test_settings_at_the_end_of_the_scale_deny_nothing() -> None:
    tables = {
        LABEL_UNCERTAINTY: experiments.label_uncertainty(probabilities=(0.0, 0.05, 0.1, 0.5)),
        BOX_PROBABILITY: experiments.box_probability(probabilities=(0.0, 1e-9, 0.5)),
        TRANSLATION: experiments.translation(
            shifts=(-1.5, -1.2025, 0.0, 1.0, 2.0), variances=(0,), side=100, image=400
        ),
        SCALING: experiments.scaling(sizes=(0.0004, 16.0, 25.0), variances=(0,), side=100, image=400),
        CORNER_VARIANCE: experiments.corner_variance(variances=(0, 0.3, 4, 60), side=12, image=41),  # beyond the image
    }
    for experiment, table in tables.items():
        claims = experiment.judge(table)
        assert not [str(claim) for claim in claims if claim.holds is False]
        assert any(claim.holds for claim in claims)
