"""The registered measures: golden numbers end to end, groups, resamplings, and what they say of themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.measures.scoring.packages import CLASSES, NAMES, OURS, oracle, world
from tests.strategies import random_world

import probox
from probox import Detections, Evaluation, GroundTruth
from probox.measures.measure import Measure
from probox.measures.scoring import calibration_metrics, score_definition, score_rows
from probox.measures.scoring.detection_measures import LA_IOUS
from probox.measures.scoring.scores import entropies, log_determinants

EVERY = pytest.mark.parametrize("measure", OURS, ids=lambda measure: measure.name)


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
        "RMS_z": math.sqrt(np.mean(np.square(own["variance scale theta per coordinate"]))),
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


def test_single_edges_have_numbers_of_their_own(golden: Evaluation) -> None:
    pairs, numbers = golden.matched_pairs, golden.summary()
    sigmas = np.sqrt(pairs.variances)
    pit = calibration_metrics.pit_values(pairs.residuals, sigmas)
    for number, share in enumerate(calibration_metrics.pit_histogram(pit)):
        assert numbers[f"PIT_bin{number + 1}"] == pytest.approx(share)
    for column, edge in enumerate(("x1", "y1", "x2", "y2")):
        r, s = pairs.residuals[:, column], sigmas[:, column]
        side = pairs.sides[:, column % 2]
        levels = calibration_metrics.edge_levels(r, s)
        assert numbers[f"PIT_mean_{edge}"] == pytest.approx(pit[:, column].mean())
        assert numbers[f"PIT_{edge}"] == pytest.approx(
            calibration_metrics.pit_distance(calibration_metrics.pit_histogram(pit[:, column]))
        )
        for share in (50, 68, 90, 95):
            assert numbers[f"coverage_{share}_{edge}"] == pytest.approx(
                calibration_metrics.coverage(levels, share / 100)
            )
        assert numbers[f"AUSE_{edge}"] == pytest.approx(calibration_metrics.ause(s / side, np.abs(r) / side))
        assert numbers[f"Spearman_{edge}"] == pytest.approx(calibration_metrics.spearman(s / side, np.abs(r) / side))
        assert numbers[f"ENCE/10m_{edge}"] == pytest.approx(score_definition.ence(r.tolist(), s.tolist(), 10, "mass"))
    for share in (50, 68, 90, 95):
        levels = calibration_metrics.box_levels(pairs.residuals, pairs.covariances)
        assert numbers[f"coverage_{share}_joint"] == pytest.approx(calibration_metrics.coverage(levels, share / 100))
    assert numbers["ENCE/10m"] == pytest.approx(np.mean([numbers[f"ENCE/10m_{e}"] for e in ("x1", "y1", "x2", "y2")]))


def test_other_uncertainties_tell_hits_apart(golden: Evaluation) -> None:
    table, numbers = golden.detections, golden.summary()
    hits = np.isin(np.arange(len(table)), golden.matched_pairs.detections)
    assert table.label_probs is not None
    by = {"_entropy": entropies(table.label_probs), "_logdet": log_determinants(table.covariances)}
    for part, uncertainties in by.items():
        assert numbers[f"MUE@50{part}"] == pytest.approx(score_definition.mue(uncertainties.tolist(), hits.tolist()))


@examples(40)
@given(st.integers(0, 2**32 - 1))
def test_numbers_of_scores_are_those_of_their_definitions(seed: int) -> None:
    truth, found = random_world(seed, heatmaps=False, max_images=9)
    result = probox.evaluate(truth, found, measures=["d-ece", "laece", "laace", "qgc"])
    expected = dict.fromkeys(result.summary(), math.nan)
    for iou, name in zip(LA_IOUS, ("50", "0"), strict=True):
        judged = score_rows.outcomes(result, iou)
        rows, objects = judged.detections, result.objects.labels[judged.objects]
        scores, labels = result.detections.scores[rows], result.detections.labels[rows]
        missed = int((~judged.found).sum())
        if name == "50" and len(rows):
            lists = scores.tolist(), judged.hits.tolist()
            expected |= {f"D-ECE@50/{n}w": score_definition.d_ece(*lists, n) for n in (10, 15, 25)}
            expected |= {f"D-ECE@50/{n}m": score_definition.d_ece(*lists, n, "mass") for n in (10, 15)}
        if name == "50" and len(rows) + missed:
            expected["QGC@50"] = score_definition.qgc(scores.tolist(), judged.hits.tolist(), missed)
        kept = np.isin(labels, objects)
        if kept.any():
            of_classes = scores[kept].tolist(), judged.ious[kept].tolist(), labels[kept].tolist()
            expected[f"LaECE@{name}/25w"] = score_definition.laece(*of_classes, 25)
            expected[f"LaACE@{name}"] = score_definition.laace(*of_classes)
    assert result.summary() == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("scale", [1.0, 0.5, 2.0])
def test_a_simulated_detector_is_found_out(scale: float) -> None:
    rng = np.random.default_rng(4)
    images = np.repeat(np.arange(1, 41), 9)
    grid = np.array([[x, y, x + 120, y + 120] for y in (50, 250, 450) for x in (50, 250, 450)], float)
    boxes = np.tile(grid, (40, 1))
    truth = GroundTruth.from_boxes(["cup"], {int(i): (640, 640) for i in range(1, 41)}, images, boxes, [0] * 360)
    sigmas = np.exp(rng.normal(0.5, 0.5, (360, 4)))
    found = Detections(
        classes=["cup"],
        image_ids=images,
        boxes=boxes - rng.normal(size=(360, 4)) * sigmas,
        label_probs=np.full((360, 1), 0.9),
        covariances=(np.square(scale * sigmas)).reshape(-1, 2, 2)[..., None] * np.eye(2),
    )
    result = probox.evaluate(truth, found, measures=NAMES)
    numbers = result.summary()
    assert numbers["NLL_pairs"] == 360
    assert numbers["RMS_z"] == pytest.approx(1 / scale, rel=0.06)
    pairs = result.matched_pairs
    z = pairs.residuals / np.sqrt(pairs.variances)
    assert numbers["z68"] == np.sort(np.abs(z), axis=None)[math.ceil(0.6826894921 * z.size) - 1]
    if scale == 1.0:
        assert numbers["coverage_90"] == pytest.approx(0.9, abs=0.04)
        assert numbers["coverage_90_joint"] == pytest.approx(0.9, abs=0.06)
        assert numbers["PIT"] < 0.06
        assert numbers["M-QCE"] < 0.05
    else:
        assert (numbers["coverage_90"] < 0.8) == (scale < 1)
        assert numbers["PIT"] > 0.1
    assert numbers["Spearman"] > 0.25
    assert numbers["AUSE"] < 0.8
    assert not any("say little" in note for note in tuple(map(str, result.notes)))


# --- groups ---


@EVERY
def test_classes_are_those_of_the_part(measure: Measure, golden: Evaluation) -> None:
    """A class alone is an evaluation of its objects and of the detections that name it."""
    truth, found = world()
    assert measure.per_class is not None
    for label, (name, numbers) in enumerate(measure.per_class(golden).items()):
        score_rows = np.flatnonzero(found.label_probs.argmax(axis=1) == label)
        if measure.name == "oce":  # every detection that overlaps an object counts
            score_rows = np.arange(len(found))
        part = truth.take(np.flatnonzero(truth.labels == label))
        alone = probox.evaluate(part, found.take(score_rows), measures=[measure.name]).summary()
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
    expected = score_definition.d_ece(golden.detections.scores[own].tolist(), hits[own].tolist(), 10)
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
    without_objects = (np.bincount(truth.image_rows, minlength=12) == 0).astype(int)  # though with detections
    others = np.stack([np.ones(12, int), without_objects, np.zeros(12, int)])
    check_resamplings(truth, found, np.concatenate([weights, others]))


@examples(8)
@given(st.integers(0, 2**32 - 1))
def test_so_it_is_in_any_world(seed: int) -> None:
    truth, found = random_world(seed, heatmaps=False)
    weights = np.random.default_rng(seed).integers(0, 3, (2, len(truth.image_ids)))
    check_resamplings(truth, found, weights)


def test_resamplings_are_made_some_at_a_time(golden: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.random.default_rng(1).multinomial(12, np.ones(12) / 12, 7)
    for measure in OURS:
        assert measure.resampled is not None
        whole = measure.resampled(golden, weights)
        monkeypatch.setattr(score_rows, "AT_ONCE", 50)
        parts = measure.resampled(golden, weights)
        monkeypatch.undo()
        for key, values in whole.items():
            np.testing.assert_allclose(values, parts[key], atol=1e-12)
