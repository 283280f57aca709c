"""The calibrated detector, its degradations, and their detection by metrics."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from probox import GroundTruth, InputError
from probox.measures.registry import MEASURES
from probox_experiments import ResultTable, Run, synthetic_truth, which_notices_what
from probox_experiments.beyond import sensitivity
from probox_experiments.beyond.perturbations import (
    BOXES,
    CLEAR,
    COUNTS,
    LABELS,
    LIMIT,
    MOST,
    PERTURBATIONS,
    SIGMAS,
    CalibratedDetector,
    Drawn,
    Matrix,
    false_positive_boxes,
    label_rows,
)
from probox_experiments.beyond.sensitivity import claims_of_sensitivity, draw_sensitivity
from probox_experiments.synthetic import pixel_aligned

NAMES = [one.name for one in PERTURBATIONS]
BOX_MEASURES = [measure for measure in MEASURES if "masks" not in measure.needs]
CHANGES = {one.name: one.change for one in PERTURBATIONS}


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return pixel_aligned(synthetic_truth(250))


@pytest.fixture(scope="module")
def drawn(truth: GroundTruth) -> Drawn:
    return CalibratedDetector().detect(truth, seed=[0, 0])


def sigmas_of(drawn: Drawn) -> np.ndarray:
    assert drawn.found.covariances is not None
    return np.sqrt(np.diagonal(drawn.found.covariances, axis1=2, axis2=3).reshape(-1, 4))


# --- the detector ---


def test_its_sigmas_are_those_of_its_errors(truth: GroundTruth, drawn: Drawn) -> None:
    of = drawn.objects >= 0
    middle = truth.masks.boxes[drawn.objects[of]] + np.array([0.0, 0.0, 0.5, 0.5])
    z = (drawn.found.boxes[of] - middle) / sigmas_of(drawn)[of]
    # Boxes that an error turned inside out are not turned back here; there are hardly any.
    assert abs(z.mean()) < 0.05
    assert np.std(z) == pytest.approx(1.0, abs=0.03)
    shares = sigmas_of(drawn)[of] / np.tile(truth.boxes[drawn.objects[of], 2:] - truth.boxes[drawn.objects[of], :2], 2)
    large = sigmas_of(drawn)[of] > 1.5
    assert shares[large].max() <= 0.1 + 1e-9
    assert shares[large].min() >= 0.02 - 1e-9
    assert sigmas_of(drawn).min() == 1.5


def test_its_labels_are_right_as_often_as_it_says(truth: GroundTruth, drawn: Drawn) -> None:
    said = drawn.found.label_probs[~drawn.wide].astype(np.float64)
    objects = drawn.objects[~drawn.wide]
    exists, existence = objects >= 0, said.sum(axis=1)
    true = np.where(exists, truth.labels[np.maximum(objects, 0)], -1)
    first, second = np.argsort(-said, axis=1)[:, :2].T
    for claimed, happened in (
        (existence, exists),
        (said.max(axis=1), first == true),
        (said[np.arange(len(said)), second], second == true),
    ):
        confident = claimed > np.median(claimed)
        for part in (confident, ~confident):
            error = math.sqrt((claimed[part] * (1 - claimed[part])).sum()) / part.sum()
            assert abs(claimed[part].mean() - happened[part].mean()) < 4 * error
    assert said.max(axis=1).min() >= 0.1 - 1e-7


def test_it_misses_the_small_and_a_tenth_of_the_others(truth: GroundTruth, drawn: Drawn) -> None:
    short = (truth.boxes[:, 2:] - truth.boxes[:, :2]).min(axis=1)
    found = np.isin(np.arange(len(truth)), drawn.objects)
    assert not found[short < 12].any()
    # A few more than a tenth: those whose label is below the threshold.
    assert 0.87 < found[short >= 12].mean() < 0.91


def test_one_wide_point_in_each_image_hits_nothing(truth: GroundTruth, drawn: Drawn) -> None:
    wide = drawn.found[drawn.wide]
    assert sorted(wide.image_ids.tolist()) == truth.image_ids.tolist()
    assert (drawn.objects[drawn.wide] == -1).all()
    assert wide.extents.max() == 0.5
    assert wide.label_probs.max() < 0.1
    np.testing.assert_allclose(sigmas_of(drawn)[drawn.wide][:, :2], truth.dataset.shapes / 3.0)


def test_where_nothing_is_nothing_is(truth: GroundTruth) -> None:
    images = np.repeat(np.arange(50), 4)
    boxes = false_positive_boxes(np.random.default_rng(0), truth, images)
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] <= truth.dataset.shapes[images] - 1).all()
    clear = 0
    for image, box in zip(images, boxes + np.array([0, 0, 1, 1]), strict=True):
        there = truth.boxes[truth.image_rows == image]
        low, high = np.maximum(box[:2], there[:, :2]), np.minimum(box[2:], there[:, 2:])
        common = np.maximum(high - low, 0).prod(axis=1)
        areas = (box[2:] - box[:2]).prod() + (there[:, 2:] - there[:, :2]).prod(axis=1)
        clear += bool((common / (areas - common) < CLEAR).all())
    assert clear >= 0.99 * len(images)


@pytest.mark.parametrize("classes", [1, 2, 3, 80])
def test_label_rows_leave_background_what_existence_leaves(classes: int) -> None:
    top, second = np.array([0, classes - 1]), np.array([classes - 1, 0])
    rows = label_rows(top, second, np.array([0.5, 0.8]), np.array([0.75, 0.9]), classes)
    np.testing.assert_allclose(rows.sum(axis=1), [0.5, 0.8])
    assert rows.argmax(axis=1).tolist() == (top if classes > 1 else np.zeros(2)).tolist()


def test_any_truth_can_be_detected() -> None:
    for count in (1, 2, 3):
        names = ["a", "b", "c"][:count]
        scene = GroundTruth.from_boxes(names, {1: (100, 80), 2: (90, 60)}, [1, 1], [[5, 5, 40, 40]] * 2, [0, count - 1])
        for repeat in range(3):
            base = CalibratedDetector().detect(scene, seed=repeat)
            for change in CHANGES.values():
                change(base, scene, np.random.default_rng(repeat))


# --- degradations ---


def changed(name: str, drawn: Drawn, truth: GroundTruth) -> Drawn:
    return CHANGES[name](drawn, truth, np.random.default_rng(3))


@pytest.mark.parametrize("name", NAMES)
def test_each_changes_one_thing_alone(truth: GroundTruth, drawn: Drawn, name: str) -> None:
    after = changed(name, drawn, truth)
    groups = {"boxes": BOXES, "covariances": SIGMAS, "label_probs": LABELS}
    if name in [one.name for one in COUNTS]:
        assert len(after.found) != len(drawn.found)
        return
    for column, group in groups.items():
        same = np.array_equal(getattr(after.found, column), getattr(drawn.found, column))
        assert same == (name not in [one.name for one in group])
        if name != "confidences x 0.8":
            wide = drawn.wide
            assert np.array_equal(getattr(after.found, column)[wide], getattr(drawn.found, column)[wide])
    assert np.array_equal(after.found.labels, drawn.found.labels) == (name != "labels wrong")
    resized = name in ("boxes grown", "boxes shrunk", "boxes jittered")
    assert np.allclose(after.found.extents, drawn.found.extents) == (not resized)


def test_boxes_move_as_told(truth: GroundTruth, drawn: Drawn) -> None:
    rest = ~drawn.wide
    sides = np.maximum(drawn.found.extents, 1.0)[rest]

    def moved(name: str) -> np.ndarray:
        return np.asarray((changed(name, drawn, truth).found.boxes - drawn.found.boxes)[rest])

    nothing = np.zeros(rest.sum())
    np.testing.assert_allclose(moved("boxes shifted"), 0.1 * np.stack([sides[:, 0], nothing] * 2, axis=1), atol=1e-9)
    np.testing.assert_allclose(moved("boxes grown"), 0.05 * np.concatenate([-sides, sides], axis=1), atol=1e-9)
    np.testing.assert_allclose(moved("boxes shrunk"), 0.05 * np.concatenate([sides, -sides], axis=1), atol=1e-9)
    assert np.std(moved("boxes jittered") / sigmas_of(drawn)[rest]) == pytest.approx(1.0, abs=0.03)
    grown = changed("boxes grown", drawn, truth).found.extents[rest]
    np.testing.assert_allclose(grown - drawn.found.extents[rest], 0.1 * sides, atol=1e-9)


def test_sigmas_change_as_told(truth: GroundTruth, drawn: Drawn) -> None:
    rest, before = ~drawn.wide, sigmas_of(drawn)

    def after(name: str) -> np.ndarray:
        return sigmas_of(changed(name, drawn, truth))

    for name, factor in (("1/4", 0.25), ("1/2", 0.5), ("2", 2.0), ("4", 4.0)):
        np.testing.assert_allclose(after(f"std x {name}")[rest], factor * before[rest])
    np.testing.assert_allclose(after("std constant")[rest], before[rest].mean())
    np.testing.assert_allclose(after("x, y exchanged")[rest], before[rest][:, [1, 0, 3, 2]])
    sides = np.tile(np.maximum(drawn.found.extents, 1.0), 2)
    shuffled = (after("std shuffled") / sides)[rest]
    assert not np.allclose(shuffled, (before / sides)[rest])
    np.testing.assert_allclose(np.sort(shuffled, axis=0), np.sort((before / sides)[rest], axis=0))
    correlated = changed("correlated", drawn, truth).found.covariances
    assert correlated is not None
    np.testing.assert_allclose(after("correlated"), before)
    correlation = correlated[rest][..., 0, 1] / np.sqrt(correlated[rest][..., 0, 0] * correlated[rest][..., 1, 1])
    np.testing.assert_allclose(correlation, 0.9)


def test_labels_change_as_told(truth: GroundTruth, drawn: Drawn) -> None:
    rest, before = ~drawn.wide, drawn.found.label_probs.astype(np.float64)

    def after(name: str) -> np.ndarray:
        return changed(name, drawn, truth).found.label_probs.astype(np.float64)

    sharp = after("labels sharpened")
    np.testing.assert_allclose(sharp.sum(axis=1), before.sum(axis=1), rtol=1e-5)
    shares = np.square(before) / np.square(before).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sharp / sharp.sum(axis=1, keepdims=True), shares, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(after("confidences x 0.8"), 0.8 * before, rtol=1e-6)
    shuffled = after("confid. shuffled")
    np.testing.assert_allclose(np.sort(shuffled.max(axis=1)), np.sort(before.max(axis=1)))
    assert (shuffled[rest].max(axis=1) != before[rest].max(axis=1)).mean() > 0.9
    wrong = after("labels wrong")
    moved = wrong.argmax(axis=1) != before.argmax(axis=1)
    assert 0.07 < moved[rest].mean() < 0.13
    np.testing.assert_array_equal(np.sort(wrong, axis=1), np.sort(before, axis=1))


def test_numbers_of_detections_change_as_told(truth: GroundTruth, drawn: Drawn) -> None:
    count = int((~drawn.wide).sum())
    twice = changed("duplicates", drawn, truth)
    extra = len(twice.found) - len(drawn.found)
    assert extra == pytest.approx(0.2 * count, rel=0.1)
    assert not twice.wide[len(drawn.found) :].any()
    fewer = changed("misses", drawn, truth)
    found = int((drawn.objects >= 0).sum())
    assert (fewer.objects >= 0).sum() == pytest.approx(0.9 * found, rel=0.03)
    assert (fewer.objects < 0).sum() == (drawn.objects < 0).sum()
    uncertain, confident = (changed(f"false, {how}", drawn, truth) for how in ("uncertain", "confident"))
    more = slice(len(drawn.found), None)
    for after, confidence in ((uncertain, 0.05), (confident, 0.9)):
        assert len(after.found) == len(drawn.found) + round(0.2 * count)
        np.testing.assert_allclose(after.found.scores[more], confidence, rtol=1e-6)
    np.testing.assert_array_equal(uncertain.found.boxes, confident.found.boxes)
    assert uncertain.found.scores[more].max() < drawn.found.scores[~drawn.wide].min()


# --- detection of changes ---


def table_of(columns: dict[str, dict[str, list[float]]]) -> ResultTable:
    """Return a table from numbers by column and perturbation, one for each repeat."""
    names = list(next(iter(columns.values())))
    repeats = len(next(iter(columns.values()))[names[0]])
    rows = [
        {"perturbation": name, "repeat": repeat} | {key: of[name][repeat] for key, of in columns.items()}
        for repeat in range(repeats)
        for name in names
    ]
    return ResultTable.from_rows(rows, ["perturbation", "repeat"])


def test_z_is_the_mean_difference_over_its_standard_error() -> None:
    base = [1.0, 5.0, 3.0]
    nan = math.nan
    matrix = Matrix(
        table_of(
            {
                "mAP": {"none": base, "a": [2.0, 7.0, 6.0], "b": base, "c": [1.5, 5.5, 3.5], "d": [nan, 5.0, 3.0]},
                "energy": {"none": base, "a": [0.0, 3.0, 0.0], "b": [1.0, 5.0, 3.1], "c": base, "d": base},
            }
        )
    )
    assert (matrix.measures, matrix.perturbations, matrix.repeats) == (("mAP", "energy"), ("a", "b", "c", "d"), 3)
    assert matrix["mAP", "a"].z == pytest.approx(2.0 / (1.0 / math.sqrt(3)))  # differences of 1, 2, 3
    assert matrix["mAP", "b"].z == 0.0
    assert matrix["mAP", "c"].z == MOST  # the same in all repeats
    assert math.isnan(matrix["mAP", "d"].z)
    assert matrix["energy", "a"].z == pytest.approx(-2.0 / (1.0 / math.sqrt(3)))
    assert matrix["energy", "b"].z == pytest.approx(1.0)  # one difference among zeros is one standard error
    assert [matrix["mAP", name].seen for name in "abc"] == [False, False, True]
    assert len(matrix.every()) == 7


def test_worse_is_lower_or_higher_or_farther_from_the_ideal() -> None:
    columns = {
        "mAP": ([0.5, 0.5, 0.5], [0.4, 0.4, 0.4], 1),
        "moLRP": ([0.5, 0.5, 0.5], [0.4, 0.4, 0.4], -1),
        "NEES": ([3.1, 3.1, 3.1], [4.1, 4.1, 4.1], -1),
        "coverage_90": ([0.89, 0.89, 0.89], [0.99, 0.99, 0.99], 1),
        "sharpness": ([5.0, 5.0, 5.0], [4.0, 4.0, 4.0], 0),
        "PDQ_paper": ([0.5, 0.5, 0.5], [0.6, 0.6, 0.6], -1),
    }
    matrix = Matrix(table_of({key: {"none": base, "a": after} for key, (base, after, _) in columns.items()}))
    for key, (_, _, harm) in columns.items():
        cell = matrix[key, "a"]
        assert (cell.harm, cell.worse, cell.better) == (harm, harm > 0, harm < 0)


def test_fewer_than_three_repeats_can_only_tell_what_stays_the_same() -> None:
    matrix = Matrix(table_of({"mAP": {"none": [1.0, 2.0], "a": [2.0, 4.0], "b": [1.0, 2.0]}}))
    assert math.isnan(matrix["mAP", "a"].z)
    assert matrix["mAP", "b"].z == 0.0


Effect = Callable[[str, str], float]


def predicted(measure: str, name: str) -> float:
    """Return by how much a number gets worse, if all that was claimed were so."""
    sigmas, counts = [one.name for one in SIGMAS], [one.name for one in COUNTS]
    same = {
        *((m, s) for m in (*sensitivity.OF_BOXES, *sensitivity.OF_LABELS) for s in sigmas),
        *((m, s) for m in sensitivity.ORDER for s in (*sensitivity.FACTORS, "correlated")),
        *((m, c) for m in sensitivity.OF_PAIRS for c in counts),
        *((m, "false, uncertain") for m in ("mAP", "moLRP")),
        *(
            (m, "confidences x 0.8")
            for m in ("mAP", "moLRP", "NLL", "CRPS", *sensitivity.CALIBRATION, *sensitivity.ORDER)
        ),
        ("energy", "confidences x 0.8"),
    }
    better = {
        *((m, "labels sharpened") for m in ("PDQ", "PDQ_paper", "Brier", "ignorance")),
        *((m, "false, uncertain") for m in ("QGC@50", "LaACE@50", "MUE@50")),
    }
    return 0.0 if (measure, name) in same else -0.1 if (measure, name) in better else 0.1


def judged(effect: Effect = predicted, presets: tuple[str, ...] = ("PDQ", "PDQ_paper"), repeats: int = 8) -> dict:
    """Return the results on a table whose numbers change by known amounts, a bit differently in each repeat."""
    noise = 0.02 * np.random.default_rng(0).standard_normal(repeats)
    columns: dict[str, dict[str, list[float]]] = {}
    for measure in BOX_MEASURES:
        key, lower = measure.headline.key, measure.headline.better == "low"
        for column in presets if key == "PDQ" else (key,):
            base = (4.0 if key == "NEES" else 0.9) + np.arange(repeats) / 100
            columns[column] = {"none": base.tolist()}
            for name in NAMES:
                by = effect(column, name)
                gone = (by + noise * (by != 0)) * (1 if lower else -1)
                after = (
                    base * math.sqrt(0.8) if key == "PDQ" and name == "confidences x 0.8" and by == 0.1 else base + gone
                )
                columns[column][name] = after.tolist()
    for preset in presets:
        columns |= {preset.replace("PDQ", key): columns[preset] for key in ("pPDQ",)}
        columns[preset.replace("PDQ", "TP")] = {name: [10.0] * repeats for name in ["none", *NAMES]}
    return {claim.claim: claim.holds for claim in claims_of_sensitivity(table_of(columns))}


def test_all_claims_hold_where_all_is_as_predicted() -> None:
    results = judged()
    assert len(results) == 20
    assert [claim for claim, holds in results.items() if not holds] == []


@pytest.mark.parametrize(
    ("measure", "name", "by", "denied"),
    [
        ("Brier", "std x 2", 1e-6, "Metrics of boxes without covariance and of labels"),
        ("moLRP", "correlated", 0.1, "Metrics of boxes without covariance and of labels"),
        ("ENCE/10m", "std x 1/4", 0.0, "PDQ, proper scores and calibration metrics"),
        ("PDQ_paper", "std x 4", 0.0, "PDQ, proper scores and calibration metrics"),
        ("AUSE", "std x 2", 1e-6, "AUSE and Spearman's correlation are identical"),
        ("Spearman", "std shuffled", 0.0, "AUSE and Spearman's correlation get worse"),
        ("AUSE", "std constant", -0.1, "AUSE and Spearman's correlation get worse"),
        ("mAP", "confidences x 0.8", 1e-6, "mAP is identical for lower"),
        ("moLRP", "false, uncertain", 1e-6, "mAP is identical for lower"),
        ("NLL", "duplicates", 0.1, "Metrics of matched pairs do not detect"),
        ("OCE@50", "misses", -0.1, "PDQ, mAP, moLRP, QGC and PMB-NLL get worse"),
        ("PDQ", "false, confident", -0.1, "PDQ, mAP, moLRP, QGC and PMB-NLL get worse"),
        ("PDQ", "confidences x 0.8", 0.2, "PDQ under confidences x 0.8"),
        ("PDQ_paper", "confidences x 0.8", 0.2, "The sum of the matches' pPDQ"),
        ("PDQ_paper", "labels sharpened", 0.1, "PDQ improves with sharpened labels"),
        ("ignorance", "labels sharpened", 0.1, "Brier score and ignorance"),
        ("MUE@50", "false, uncertain", 0.1, "QGC, LaACE and MUE improve"),
        ("PMB_NLL", "boxes grown", -0.1, "PMB-NLL gets worse with every change"),
        ("CRPS", "std x 2", -0.1, "NLL and energy score get worse"),
        ("PDQ", "misses", 0.001, "PDQ detects every change"),
        ("PDQ", "boxes shrunk", -0.1, "PDQ gets worse with every change"),
        ("energy", "labels wrong", -0.1, "NLL, energy score, CRPS and PMB-NLL improve with no change"),
    ],
)
def test_a_claim_falls_with_one_cell(measure: str, name: str, by: float, denied: str) -> None:
    results = judged(lambda m, n: by if (m, n) == (measure, name) else predicted(m, n))
    (claim,) = [claim for claim in results if claim.startswith(denied)]
    assert results[claim] is False


def test_claims_about_all_measures_fall_too() -> None:
    blind = judged(lambda m, n: 0.0 if n == "misses" and m not in ("PDQ", "PMB_NLL") else predicted(m, n))
    assert blind["Every change is detected by a metric other than PDQ and PMB-NLL"] is False
    all_seeing = judged(lambda m, n: 0.1 if m == "mAP" else predicted(m, n))
    assert all_seeing["Every metric except PDQ and PMB-NLL does not detect some change"] is False


def test_the_sum_of_qualities_is_not_their_mean() -> None:
    root = math.sqrt(0.8)
    numbers = {"PDQ": (0.4, 0.4 * root), "pPDQ": (0.5, 0.25 * root), "TP": (10.0, 20.0)}
    table = table_of({key: {"none": [a] * 3, "confidences x 0.8": [b] * 3} for key, (a, b) in numbers.items()})
    about = [claim for claim in claims_of_sensitivity(table) if "confidences x 0.8 is sqrt(0.8)" in claim.claim]
    assert [claim.holds for claim in about] == [True, True]


def test_what_was_not_measured_is_not_judged() -> None:
    apart = table_of({"PDQ": {"none": [0.5] * 2, "confidences x 0.8": [0.4] * 2}}).rows()
    rows = [row for row in apart if (row["perturbation"] == "none") == (row["repeat"] == 0)]
    without_pairs = ResultTable.from_rows(rows, ["perturbation", "repeat"])
    (about,) = (
        claim for claim in claims_of_sensitivity(without_pairs) if claim.claim.startswith("PDQ under confidences")
    )
    assert about.holds is None
    about_pdq = "PDQ detects every change"
    assert judged(presets=())[about_pdq] is None
    assert judged(presets=("PDQ_paper",))[about_pdq] is True
    assert judged(repeats=2)[about_pdq] is None
    exact = (
        "Metrics of boxes without covariance and of labels",
        "AUSE and Spearman's correlation are identical",
        "mAP is identical",
        "PDQ is defined",
        "PDQ under",
        "The sum",
    )
    for claim, holds in judged(repeats=2).items():  # what stays the same needs no standard error
        assert holds is (True if claim.startswith(exact) else None), claim
    touched = judged(lambda measure, name: 0.1 if measure == "mAP" else predicted(measure, name), repeats=2)
    assert {claim for claim, holds in touched.items() if holds is False} == {
        claim for claim in touched if claim.startswith((exact[0], exact[2]))
    }
    few = table_of({"mAP": {"none": [0.5] * 3, "misses": [0.4, 0.41, 0.42]}})
    assert {claim.holds for claim in claims_of_sensitivity(few)} == {None, False, True}


def test_claims_name_measures_and_changes_that_there_are() -> None:
    keys = {measure.headline.key for measure in BOX_MEASURES}
    assert {*sensitivity.OF_BOXES, *sensitivity.OF_LABELS, *sensitivity.OF_PAIRS, "PDQ", "PMB_NLL"} == keys
    assert {
        *sensitivity.FACTORS,
        sensitivity.SHARPENED,
        sensitivity.LESS_CONFIDENT,
        sensitivity.UNCERTAIN,
        sensitivity.CONFIDENT,
    } <= set(NAMES)


def test_the_picture_has_a_number_in_every_cell() -> None:
    nan = math.nan
    table = table_of(
        {
            "PDQ": {"none": [0.5] * 3, "misses": [0.4, 0.41, 0.42], "duplicates": [0.5] * 3},
            "NLL": {"none": [0.5] * 3, "misses": [0.49, 0.5, 0.52], "duplicates": [nan] * 3},
            "Brier": {"none": [0.5] * 3, "misses": [0.4] * 3, "duplicates": [0.5001, 0.4999, 0.50001]},
        }
    )
    (axes,) = draw_sensitivity(table).axes
    assert [text.get_text() for text in axes.texts] == ["16", ".4", "99+", "0", "", ".1"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["misses", "duplicates"]
    assert abs(Matrix(table)["PDQ", "misses"].z) > LIMIT


def test_an_unknown_change_is_refused(truth: GroundTruth) -> None:
    with pytest.raises(InputError, match="unknown perturbation 'smile'"):
        which_notices_what(truth, perturbations=["smile"])


def test_the_same_numbers_with_any_number_of_threads(truth: GroundTruth) -> None:
    tables = [
        which_notices_what(truth, perturbations=["misses"], images=6, repeats=1, run=Run(threads=threads))
        for threads in (1, 2)
    ]
    assert tables[0].to_csv() == tables[1].to_csv()
    assert tables[0]["perturbation"].tolist() == ["none", "misses"]
    assert {measure.headline.key for measure in BOX_MEASURES} <= set(tables[0].columns)
