"""The registered measures: golden numbers end to end, groups, resamplings, and what they say of themselves."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.measures.scoring.packages import oracle, packages
from tests.measures.test_matched import scene
from tests.strategies import random_world

import probox
from probox import Detections, Evaluation, GroundTruth
from probox.demo import Demo
from probox.measures import registry
from probox.measures.measure import Measure
from probox.measures.scoring import box_scores, honesty, informative, score_calibration, separation, sigma_bins
from probox.measures.scoring.bins import Bins
from probox.measures.scoring.covariances import edge_variances

NAMES = [
    *("nll", "energy", "crps", "nees", "coverage", "pit", "mqce", "ence", "sharpness", "brier", "ignorance"),
    *("d-ece", "laece", "laace", "oce", "qgc", "mue", "ause", "spearman"),
]
OURS = [measure for measure in registry.MEASURES if measure.name in NAMES]
EVERY = pytest.mark.parametrize("measure", OURS, ids=lambda measure: measure.name)

CLASSES = ("a", "b", "c")


def world(**changes: object) -> tuple[GroundTruth, Detections]:
    """Return the golden images as truth and detections."""
    images = packages()["images"]
    sizes = {image["image_id"]: (image["width"], image["height"]) for image in images}
    there = [
        (i["image_id"], box, c) for i in images for box, c in zip(i["truth_boxes"], i["truth_labels"], strict=True)
    ]
    truth = GroundTruth.from_boxes(CLASSES, sizes, [t[0] for t in there], [t[1] for t in there], [t[2] for t in there])
    rows = [
        (i["image_id"], *row) for i in images for row in zip(i["boxes"], i["label_probs"], i["variances"], strict=True)
    ]
    columns = {
        "classes": CLASSES,
        "image_ids": [row[0] for row in rows],
        "boxes": [row[1] for row in rows],
        "label_probs": np.array([row[2] for row in rows], np.float32),
        "covariances": np.array([row[3] for row in rows]).reshape(-1, 2, 2)[..., None] * np.eye(2),
    }
    return truth, Detections(**(columns | changes))


@pytest.fixture(scope="module")
def golden() -> Evaluation:
    return probox.evaluate(*world(), measures=NAMES)


def test_all_are_registered_and_none_is_taken_unless_asked_for() -> None:
    assert [measure.name for measure in OURS] == NAMES
    assert not any(measure.standard for measure in OURS)


def test_an_evaluation_has_the_golden_numbers(golden: Evaluation) -> None:
    """Label probabilities are kept in single precision, so what depends on scores agrees to about seven digits."""
    own, netcal, numbers = oracle("own"), oracle("netcal"), golden.summary()
    exact = {
        "NLL": own["nll mean"],
        "NLL_pairs": 14,
        "energy": own["energy score exact (mean)"],
        "NEES": own["NEES mean (chi2_4 -> 4)"],
        "NEES_factor": math.sqrt(own["NEES mean (chi2_4 -> 4)"] / 4),
        "M-QCE": netcal["M-QCE joint"],
        "CRPS": np.mean(oracle("scoringrules")["crps_normal mean per coordinate"]),
        "ENCE/5w": np.mean(netcal["ENCE 5 bins"]),
        "MPIW_90": np.mean(netcal["MPIW q=.9"]),
        "coverage_90": np.mean(netcal["PICP q=.9"]),
    }
    for column, edge in enumerate(("x1", "y1", "x2", "y2")):
        exact[f"CRPS_{edge}"] = oracle("scoringrules")["crps_normal mean per coordinate"][column]
        exact[f"coverage_90_{edge}"] = netcal["PICP q=.9"][column]
        exact[f"M-QCE_{edge}"] = netcal["M-QCE q=.05..95 per coordinate"][column]
        exact[f"ENCE/5w_{edge}"] = netcal["ENCE 5 bins"][column]
        exact[f"sharpness_{edge}"] = oracle("uncertainty-toolbox")[edge]["sharp"]
    assert {key: numbers[key] for key in exact} == pytest.approx(exact, abs=1e-9)
    of_scores = {
        "Brier": own["Brier mean over TPs (sum over classes)"],
        "ignorance": own["ignorance mean over TPs"],
        "D-ECE@50/10w": netcal["D-ECE 10 bins"],
        "D-ECE@50/15w": netcal["D-ECE 15 bins"],
        "D-ECE@50/25w": netcal["D-ECE 25 bins"],
        "D-ECE@50/10m": oracle("vernier")["quantile 10 bins min_score 0 (ece, mce, n)"][0],
        "D-ECE@50/15m": oracle("vernier")["quantile 15 bins min_score 0 (ece, mce, n)"][0],
        "LaECE@50/25w": oracle("fiveai")["LaECE tau .5 25 bins"],
        "LaECE@0/25w": oracle("fiveai")["LaECE_0 25 bins"],
        "LaACE@0": oracle("fiveai")["LaACE_0"],
        "QGC@50": oracle("Conde")["QGC avg"],
        "MUE@50": own["MUE of -log score (TP vs rest, pooled)"],
    }
    assert {key: numbers[key] for key in of_scores} == pytest.approx(of_scores, abs=1e-6)
    both = (numbers["OCE@50"] + numbers["OCE@75"]) / 2
    assert both == pytest.approx(oracle("uq-detr")["oce(.5,.75) mean"], abs=1e-6)


# --- groups ---


@EVERY
def test_classes_are_those_of_the_part(measure: Measure, golden: Evaluation) -> None:
    """A class alone is an evaluation of its objects and of the detections that name it."""
    truth, found = world()
    assert measure.per_class is not None
    for label, (name, numbers) in enumerate(measure.per_class(golden).items()):
        rows = np.flatnonzero(found.label_probs.argmax(axis=1) == label)
        if measure.name == "oce":  # every detection that overlaps an object counts
            rows = np.arange(len(found))
        part = truth.take(np.flatnonzero(truth.labels == label))
        alone = probox.evaluate(part, found.take(rows), measures=[measure.name]).summary()
        assert name == CLASSES[label]
        assert numbers == pytest.approx(alone, abs=1e-9, nan_ok=True)


@EVERY
def test_sizes_are_those_of_objects(measure: Measure, golden: Evaluation) -> None:
    assert measure.per_size is not None
    sizes = measure.per_size(golden)
    assert list(sizes) == ["small", "medium", "large"]
    assert all(math.isnan(value) or value == 0 for value in sizes["large"].values())  # no object is that large
    assert sizes["medium"] != sizes["small"]


def test_a_pair_has_the_size_of_its_object_and_a_false_positive_its_own(golden: Evaluation) -> None:
    pairs = golden.matched_pairs
    small = pairs.areas <= 32**2
    assert golden.per_size()["small"]["NLL_pairs"] == small.sum() > 0
    areas = golden.detections.extents.prod(axis=1)
    areas[pairs.detections] = pairs.areas
    hits = np.isin(np.arange(len(areas)), pairs.detections)
    own = areas <= 32**2
    expected = score_calibration.d_ece(golden.detections.scores[own], hits[own], Bins(10))
    assert golden.per_size()["small"]["D-ECE@50/10w"] == pytest.approx(expected)


# --- resamplings ---


def repeated(truth: GroundTruth, found: Detections, times: np.ndarray) -> Evaluation | None:
    """Return the evaluation of a data set that holds each image so many times."""
    ids = np.repeat(truth.image_ids, times)
    if not len(ids):
        return None
    parts = []
    for number, image in enumerate(ids):
        one, seen = truth.select_images([image]), found.take(np.flatnonzero(found.image_ids == image))
        renamed = one.replace(dataset=one.dataset.replace(image_ids=[number + 1]))
        parts.append(probox.evaluate(renamed, seen.replace(image_ids=np.full(len(seen), number + 1)), measures=NAMES))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def check_resamplings(truth: GroundTruth, found: Detections, weights: np.ndarray) -> None:
    result = probox.evaluate(truth, found, measures=NAMES)
    expected = [repeated(truth, found, row) for row in weights]
    for measure in OURS:
        assert measure.resampled is not None
        numbers = measure.resampled(result, weights)
        assert list(numbers) == [column.key for column in measure.columns]
        assert all(values.shape == (len(weights),) for values in numbers.values())
        for row, other in enumerate(expected):
            summary = measure.nothing() if other is None else measure.summary(other)
            got = {key: float(values[row]) for key, values in numbers.items()}
            assert got == pytest.approx(summary, abs=1e-9, nan_ok=True)


def test_a_resampling_is_what_a_data_set_of_these_images_has() -> None:
    truth, found = world()
    rng = np.random.default_rng(0)
    weights = rng.multinomial(12, np.ones(12) / 12, 3)
    check_resamplings(truth, found, np.concatenate([np.ones((1, 12), int), weights, np.zeros((1, 12), int)]))


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1))
def test_so_it_is_in_any_world(seed: int) -> None:
    truth, found = random_world(seed, heatmaps=False)
    weights = np.random.default_rng(seed).integers(0, 3, (2, len(truth.image_ids)))
    check_resamplings(truth, found, weights)


@EVERY
def test_once_each_is_the_summary(measure: Measure, demo: Demo) -> None:
    result = probox.evaluate(demo.truth, demo.detectors["unsure"], measures=[measure.name])
    n = len(result.dataset)
    assert measure.resampled is not None
    numbers = measure.resampled(result, np.ones((2, n), np.int64))
    expected = result.summary()
    for row in range(2):
        assert {key: float(values[row]) for key, values in numbers.items()} == pytest.approx(expected, abs=1e-12)
    assert {values.shape for values in measure.resampled(result, np.ones((0, n), np.int64)).values()} == {(0,)}


# --- what is left out ---


@EVERY
def test_of_nothing_there_is_no_number(measure: Measure) -> None:
    truth, found = world()
    for empty in (
        probox.evaluate(truth, found.take(np.zeros(0, np.int64)), measures=[measure.name]),
        probox.evaluate(truth.take(np.zeros(0, np.int64)), found, measures=[measure.name]),
        probox.evaluate(truth.take(np.zeros(0, np.int64)), found.take(np.zeros(0, np.int64)), measures=[measure.name]),
    ):
        numbers = empty.summary()
        if measure.name not in ("oce", "qgc", "d-ece"):
            assert numbers == pytest.approx(measure.nothing(), nan_ok=True)
        assert any("fewer than 30 say little" in note for note in empty.notes) or len(empty.detections) >= 30
        assert measure.per_class is not None
        assert list(measure.per_class(empty)) == list(CLASSES)


def test_plain_boxes_are_left_out_and_counted() -> None:
    truth, found = world()
    covariances = np.array(found.covariances)
    hits = probox.evaluate(truth, found, measures=["nll"]).matched_pairs.detections
    covariances[hits[:5]] = 0.0
    some = probox.evaluate(truth, found.replace(covariances=covariances), measures=NAMES)
    pairs, numbers = probox.evaluate(truth, found, measures=["nll"]).matched_pairs, some.summary()
    r, c = pairs.residuals[5:], pairs.covariances[5:]
    sigmas = np.sqrt(edge_variances(c))
    assert numbers["NLL_pairs"] == 9
    assert numbers["NLL"] == pytest.approx(box_scores.negative_log_likelihoods(r, c).mean())
    assert numbers["NEES"] == pytest.approx(honesty.nees(r, c))
    assert numbers["coverage_68_joint"] == pytest.approx(honesty.coverage(honesty.box_levels(r, c), 0.68))
    assert numbers["coverage_68"] == pytest.approx(honesty.coverage(honesty.edge_levels(r, sigmas), 0.68))
    assert numbers["M-QCE"] == pytest.approx(honesty.mean_quantile_error(honesty.box_levels(r, c)))
    assert numbers["PIT"] == pytest.approx(honesty.pit_distance(honesty.pit_histogram(honesty.pit_values(r, sigmas))))
    assert numbers["ENCE/10m_y2"] == pytest.approx(sigma_bins.ence(r[:, 3], sigmas[:, 3], Bins(10, "mass")))
    sides = pairs.sides[5:][:, [0, 1, 0, 1]]
    relative = (sigmas / sides).ravel(), (np.abs(r) / sides).ravel()
    assert numbers["AUSE"] == pytest.approx(informative.ause(*relative))
    assert numbers["Spearman"] == pytest.approx(informative.spearman(*relative))
    distances = np.linalg.norm(pairs.residuals[:5], axis=1)
    assert numbers["energy"] == pytest.approx(np.append(distances, box_scores.energy_scores(r, c)).mean())
    text = "5 of 14 pairs are plain boxes, whose covariance is 0: what needs one leaves them out"
    assert text in some.notes
    assert "5 of 14 pairs are plain boxes: their energy score and CRPS are distances" in some.notes
    assert "only 9 pairs (COCO IoU 0.5) are scored: fewer than 30 say little" in some.notes
    alone = probox.evaluate(truth, found.replace(covariances=None), measures=NAMES)
    assert math.isnan(alone.summary()["NLL"])
    assert math.isnan(alone.summary()["Spearman"])
    assert alone.summary()["energy"] == pytest.approx(np.linalg.norm(alone.matched_pairs.residuals, axis=1).mean())
    assert "14 of 14 pairs are plain boxes, whose covariance is 0: what needs one leaves them out" in alone.notes


def test_singular_covariances_have_no_density() -> None:
    truth, found = world()
    covariances = np.array(found.covariances)
    hit = probox.evaluate(truth, found, measures=["nll"]).matched_pairs.detections[0]
    covariances[hit, 0] = [[4.0, 6.0], [6.0, 9.0]]
    result = probox.evaluate(truth, found.replace(covariances=covariances), measures=["nll", "coverage"])
    assert result.summary()["NLL_pairs"] == 13
    assert math.isfinite(result.summary()["NLL"])
    assert "1 of 14 pairs have a singular covariance and no density, and are left out" in result.notes


def test_truncated_edges_are_left_out_of_edges_numbers() -> None:
    result = probox.evaluate(*scene(), measures=["crps", "coverage", "nees", "sharpness"])
    pairs = result.matched_pairs
    assert pairs.truncated.sum() > 0
    numbers = result.summary()
    kept = ~pairs.truncated
    assert numbers["sharpness"] == pytest.approx(math.sqrt(pairs.variances[kept].mean()))
    edges = f"{pairs.truncated.sum()} of 8 edges lie on the image's border and are left out of edges' numbers"
    assert edges in result.notes
    cut = "pairs overlap by at least 0.5, which cuts off large errors: covariances look more honest than they are"
    assert cut in result.notes


def test_a_class_that_is_held_impossible_is_told() -> None:
    truth, found = world()
    probs = np.array(found.label_probs)
    result = probox.evaluate(truth, found, measures=["ignorance"])
    pairs = result.matched_pairs
    row = pairs.detections[0]
    named = int(probs[row].argmax())
    stated = np.array(probs.argmax(axis=1), np.int32)
    probs[row] = 0.0
    probs[row, (named + 1) % 3] = 0.4
    changed = found.replace(label_probs=probs, labels=stated, scores=found.label_probs.max(axis=1).astype(float))
    odd = probox.evaluate(truth, changed, measures=["ignorance"])
    numbers = odd.summary()
    assert numbers["ignorance"] == math.inf
    assert numbers["ignorance_impossible"] == 1
    rest = np.setdiff1d(np.arange(14), [0])
    expected = -np.log(pairs.label_probs[rest, pairs.labels[rest]].astype(float)).mean()
    assert numbers["ignorance_possible"] == pytest.approx(expected)
    assert any(note.startswith("1 of 14 pairs give the true class a probability of 0") for note in odd.notes)


def test_results_without_label_probabilities_say_so(golden: Evaluation) -> None:
    old = dataclasses.replace(golden, detections=golden.detections.replace(label_probs=None))
    numbers = old.summary()
    assert all(math.isnan(numbers[key]) for key in ("Brier", "ignorance", "OCE@50", "OCE@75", "MUE@50_entropy"))
    assert numbers["MUE@50"] == golden.summary()["MUE@50"]
    for what in ("to score labels", "for OCE", "for MUE by entropy"):
        assert f"label probabilities were not kept; evaluate anew {what}" in old.notes


def test_crowds_and_unknown_classes_are_left_out_and_counted() -> None:
    truth, found = scene()
    result = probox.evaluate(truth, found, measures=["d-ece", "qgc", "mue"])
    assert "1 of 5 detections lie in crowds and are left out of scores' calibration" in result.notes
    hits = np.array([True, False, False, True])
    scores = result.detections.scores[[0, 1, 2, 4]]
    assert result.summary()["D-ECE@50/10w"] == pytest.approx(score_calibration.d_ece(scores, hits, Bins(10)))
    assert result.summary()["QGC@50"] == pytest.approx(score_calibration.qgc(scores, hits, 0))
    assert result.summary()["MUE@50"] == separation.minimum_uncertainty_error(1 - scores, hits)
    alien = found.replace(classes=["cup", "alien"], label_probs=[*found.label_probs[:4], [0.0, 0.5]])
    notes = probox.evaluate(truth, alien, measures=["d-ece"]).notes
    text = "1 of 5 detections name none of the truth's classes and are left out of scores' calibration"
    assert text in notes
