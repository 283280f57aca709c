"""Constant-variance baseline: fitted on other images, with standard errors of differences."""

from __future__ import annotations

import math
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest

from probox import Detections, GroundTruth, InputError
from probox_experiments import ResultTable, Run, constant_sigma, synthetic_truth
from probox_experiments.beyond.constant_sigma import (
    FRACTION,
    KINDS,
    NONE,
    OWN,
    PIXELS,
    SHUFFLED,
    MeasuredImages,
    _inside,
    _search_constant,
    _version,
    claims_of_constant_sigma,
    draw_constant_sigma,
    draw_errors,
    drawn_with,
    estimate_contrast,
)
from probox_experiments.synthetic import classes_within_images

QUICK = Run(presets=["reference"])


def grid(images: int = 8) -> GroundTruth:
    """Return images with four objects of 60 x 60 each, away from the borders."""
    boxes = [[x, y, x + 59, y + 59] for x in (60, 260) for y in (60, 260)]
    ids = np.repeat(np.arange(1, images + 1), 4)
    return GroundTruth.from_boxes(
        ["cup"], dict.fromkeys(range(1, images + 1), (400, 400)), ids, np.tile(boxes, (images, 1)), [0] * len(ids)
    )


def erring(truth: GroundTruth, sigmas: np.ndarray, seed: int = 0) -> Detections:
    """Return a detection of every object with errors of these standard deviations, which it reports."""
    errors = np.random.default_rng(seed).standard_normal((len(truth), 4)) * sigmas[:, None]
    return Detections(
        classes=truth.classes,
        image_ids=truth.image_ids[truth.image_rows],
        boxes=truth.masks.boxes + errors,
        label_probs=np.ones((len(truth), 1), np.float32),
        covariances=np.square(sigmas)[:, None, None, None] * np.broadcast_to(np.eye(2), (len(truth), 2, 2, 2)),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_as_large_as_reported(kind: str) -> None:
    sides = np.random.default_rng(1).uniform(5, 300, (40_000, 2))
    errors, sigmas = draw_errors(kind, sides, np.random.default_rng(0))
    assert errors.shape == sigmas.shape == (40_000, 4)
    z = errors / sigmas
    assert abs(z.mean()) < 0.02
    # Student's t with 3 degrees of freedom has a variance, but no variance of it.
    assert z.std() == pytest.approx(1.0, abs=0.1 if kind == "heavy tails" else 0.01)
    spread = {"all alike": 1, "by size": None, "two kinds": 2, "heavy tails": 1}[kind]
    assert spread is None or len(np.unique(sigmas)) == spread
    if kind == "by size":
        np.testing.assert_allclose(sigmas, np.maximum(0.06 * np.tile(sides, 2), 0.5))


def test_a_kind_of_detector_has_certain_labels() -> None:
    truth = classes_within_images(synthetic_truth(5))
    found = drawn_with("by size", truth, np.random.default_rng(0))
    assert len(found) == len(truth)
    np.testing.assert_array_equal(found.labels, truth.labels)
    assert (found.scores == 1.0).all()
    assert (found.boxes[:, 2:] >= found.boxes[:, :2]).all()


def test_the_constant_of_a_half_is_found_on_the_other() -> None:
    truth = grid()
    sigmas = np.where(truth.image_rows % 2 == 0, 2.0, 10.0)
    scene = MeasuredImages(truth, erring(truth, sigmas), None, np.arange(8))
    first, second = (_search_constant(QUICK, scene, PIXELS, half, 7) for half in (0, 1))
    assert first == pytest.approx(10.0, rel=0.35)  # used on even images, where 2 would be right
    assert second == pytest.approx(2.0, rel=0.35)
    used = _version(scene, PIXELS, (first, second), np.random.default_rng(0)).covariances
    assert used is not None
    np.testing.assert_allclose(used[:, 0, 0, 0], np.where(truth.image_rows % 2 == 0, first, second) ** 2)
    first, second = (_search_constant(QUICK, scene, FRACTION, half, 7) for half in (0, 1))
    assert first == pytest.approx(10.0 / 60, rel=0.4)
    assert second == pytest.approx(2.0 / 60, rel=0.4)


def test_all_that_is_claimed_of_corners_lies_inside() -> None:
    truth = grid(4)
    found = erring(truth, np.full(len(truth), 4.0))
    found = found.replace(boxes=found.boxes - np.array([70.0, 0.0, 0.0, 0.0]), extents=None)
    assert found.covariances is not None
    inside = _inside(truth, found, found.covariances)
    assert inside.covariances is not None
    assert inside.boxes.min() >= 0.5
    touching = found.boxes[:, 0] < 0.5
    assert touching.any()
    assert (inside.covariances[touching][:, 0, 0, 0] < 1.0).all()  # that edge is known
    np.testing.assert_array_equal(inside.covariances[:, 1], found.covariances[:, 1])


def rows_of(numbers: dict[str, list[float]], counts: dict[str, list[int]] | None = None) -> ResultTable:
    """Return a table of one detector with PDQ by sigmas, one number for each repeat."""
    return ResultTable.from_rows(
        [
            {
                "detector": "mine",
                "sigmas": sigmas,
                "repeat": repeat,
                "PDQ": value,
                "TP": (counts or {}).get(sigmas, [10] * len(values))[repeat],
                "FP": 0,
                "FN": 0,
            }
            for sigmas, values in numbers.items()
            for repeat, value in enumerate(values)
        ],
        ["detector", "sigmas", "repeat"],
    )


def test_repeats_of_one_size_have_a_mean_and_its_standard_error() -> None:
    table = rows_of({OWN: [0.5, 0.6, 0.7, 0.4], NONE: [0.1, 0.1, 0.3, 0.1]})
    own = estimate_contrast(table, "mine", "reference", itemgetter(OWN), OWN)
    assert own is not None
    assert own.value == pytest.approx(0.55)
    assert own.error == pytest.approx(np.std([0.5, 0.6, 0.7, 0.4], ddof=1) / 2)
    gain = estimate_contrast(table, "mine", "reference", lambda pdq: pdq[OWN] - pdq[NONE], OWN, NONE)
    assert gain is not None
    assert gain.value == pytest.approx(0.4)
    assert gain.error == pytest.approx(np.std([0.4, 0.5, 0.4, 0.3], ddof=1) / 2)
    assert gain.is_above()


def test_parts_count_by_their_size() -> None:
    table = rows_of({OWN: [0.5, 1.0, math.nan]}, {OWN: [30, 10, 0]})
    whole = estimate_contrast(table, "mine", "reference", itemgetter(OWN), OWN)
    assert whole is not None
    assert whole.value == pytest.approx(25 / 40)
    left_out = np.array([1.0, 0.5, 25 / 40])
    assert whole.error == pytest.approx(math.sqrt(2 / 3 * np.square(left_out - left_out.mean()).sum()))


def test_what_is_missing_is_not_estimated() -> None:
    table = rows_of({OWN: [0.5, 0.6], NONE: [0.1]})
    alone = estimate_contrast(table, "mine", "reference", itemgetter(NONE), NONE)
    assert alone is not None
    assert (alone.value, math.isnan(alone.error)) == (0.1, True)
    assert claims_of_constant_sigma(rows_of({NONE: [0.1], PIXELS: [0.2]}))[0].holds is None
    assert estimate_contrast(table, "mine", "reference", itemgetter(FRACTION), FRACTION) is None
    assert estimate_contrast(table, "mine", "reference", itemgetter(OWN), OWN, NONE) is None
    assert {claim.holds for claim in claims_of_constant_sigma(ResultTable({}))} == {None}


@pytest.mark.parametrize(
    ("own", "shuffled", "verdicts"),
    [
        ([0.60, 0.61, 0.62], [0.3, 0.31, 0.32], [True, True, True, True, True]),
        ([0.50, 0.51, 0.52], [0.3, 0.31, 0.32], [True, False, False, True, True]),
        ([0.50, 0.80, 0.20], [0.3, 0.31, 0.32], [True, False, False, True, False]),
        ([0.60, 0.61, 0.62], [0.55, 0.56, 0.57], [True, True, True, False, True]),
        ([0.91, 0.92, 0.93], [0.3, 0.31, 0.32], [True, True, True, True, False]),
    ],
)
def test_a_detectors_sigmas_are_judged(own: list[float], shuffled: list[float], verdicts: list[bool]) -> None:
    numbers = {NONE: [0.1, 0.11, 0.12], PIXELS: [0.5, 0.51, 0.521], FRACTION: [0.5, 0.51, 0.522]}
    table = rows_of(numbers | {OWN: own, SHUFFLED: shuffled})
    assert [claim.holds for claim in claims_of_constant_sigma(table)] == verdicts
    (first,) = claims_of_constant_sigma(rows_of(numbers))  # plain boxes alone have nothing of their own
    assert first.holds


def test_given_detections_are_compared_part_by_part() -> None:
    truth = grid(6)
    own = erring(truth, np.where(np.arange(len(truth)) % 2 == 0, 2.0, 10.0))
    plain = own.replace(covariances=None, image_ids=np.where(own.image_ids == 6, 99, own.image_ids))
    detectors = {"own": own, "plain": plain}
    table = constant_sigma(truth, detectors=detectors, parts=4, steps=3, run=QUICK)
    assert list(dict.fromkeys(table.where(detector="plain")["sigmas"].tolist())) == [NONE, PIXELS, FRACTION]
    every = [NONE, PIXELS, FRACTION, OWN, SHUFFLED]
    assert list(dict.fromkeys(table.where(detector="own")["sigmas"].tolist())) == every
    assert sorted(set(table["repeat"].tolist())) == [0, 1, 2, 3]
    # Parts add up to the whole.
    for name, found in detectors.items():
        whole = estimate_contrast(table, name, "reference", itemgetter(NONE), NONE)
        assert whole is not None
        expected = QUICK.measure(truth, found.replace(covariances=None), measures=())["PDQ"]
        assert whole.value == pytest.approx(expected, abs=1e-12)
    own_rows = table.where(detector="own")
    assert own_rows.where(sigmas=OWN)["PDQ"].mean() > own_rows.where(sigmas=SHUFFLED)["PDQ"].mean()
    # One constant for all parts, and none where there is nothing to choose.
    assert len(set(own_rows.where(sigmas=PIXELS)["chosen"].tolist())) == 1
    assert np.isnan(own_rows.where(sigmas=OWN)["chosen"]).all()
    (axes,) = draw_constant_sigma(table).axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["own", "plain"]


def test_what_cannot_be_compared_is_refused() -> None:
    truth = grid(6)
    found = erring(truth, np.full(len(truth), 3.0))
    with pytest.raises(InputError, match="none of the 24 detections of mine is in"):
        constant_sigma(truth, detectors={"mine": found.replace(image_ids=found.image_ids + 100)})
    heatmaps = [np.ones((400, 400), np.float32)] + [None] * (len(found) - 1)
    with pytest.raises(InputError, match="mine has heatmaps"):
        constant_sigma(truth, detectors={"mine": found.replace(heatmaps=heatmaps)})
    with pytest.raises(InputError, match="even number"):
        constant_sigma(truth, detectors={"mine": found}, parts=3)
    with pytest.raises(InputError, match="at least 4 images"):
        constant_sigma(grid(3), detectors={"mine": found})
    with pytest.raises(InputError, match="unknown kind of errors 'new'"):
        constant_sigma(truth, kinds=["new"])


def test_kept_points_belong_to_their_detections(tmp_path: Path) -> None:
    truth = grid(4)
    first, second = (erring(truth, np.full(len(truth), 4.0), seed) for seed in (0, 1))
    run = Run(presets=["reference"], keep=tmp_path)
    constant_sigma(truth, detectors={"mine": first}, parts=2, steps=2, run=run)
    kept = constant_sigma(truth, detectors={"mine": second}, parts=2, steps=2, run=run)
    fresh = constant_sigma(truth, detectors={"mine": second}, parts=2, steps=2, run=QUICK)
    assert kept.to_csv() == fresh.to_csv()
