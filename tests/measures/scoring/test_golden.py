"""The same numbers as other packages on the same pairs and detections, as far as they mean the same."""

from __future__ import annotations

import numpy as np
import pytest
from tests.measures.scoring.packages import EDGES, extents, matched, oracle, packages, pairs, shared

from probox.measures.scoring import calibration_metrics, score_definition, scores
from probox.measures.scoring.calibration_metrics import Bins, SortedColumns, object_brier_scores
from probox.measures.scoring.scores import edge_variances

RESIDUALS, COVARIANCES, PROBS, LABELS = pairs()
SIGMAS = np.sqrt(edge_variances(COVARIANCES))
OWN, NETCAL = oracle("own"), oracle("netcal")
UCT, FIVEAI, UQ_DETR = oracle("uncertainty-toolbox"), oracle("fiveai"), oracle("uq-detr")


def same(number: object) -> object:
    return pytest.approx(number, abs=1e-9, rel=0)


# --- boxes ---


def test_boxes_have_the_formulas_scores() -> None:
    assert scores.energy_scores(RESIDUALS, COVARIANCES).mean() == same(OWN["energy score exact (mean)"])
    for floor, key in ((0.0, "nll mean"), (0.01, "nll mean with probdet's +0.01 I")):
        assert scores.negative_log_likelihoods(RESIDUALS, COVARIANCES, floor=floor).mean() == same(OWN[key])
    assert OWN["nll mean"] == same(NETCAL["NLL joint"])
    assert scores.squared_distances(RESIDUALS, COVARIANCES).mean() == same(OWN["NEES mean (chi2_4 -> 4)"])


def test_edges_have_the_scores_of_other_packages() -> None:
    for package, key in (("scoringrules", "crps_normal"), ("properscoring", "crps_gaussian")):
        expected = oracle(package)[f"{key} mean per coordinate"]
        assert scores.crps(RESIDUALS, SIGMAS).mean(axis=0) == same(expected)
    assert scores.interval_widths(SIGMAS, 0.9).mean(axis=0) == same(NETCAL["MPIW q=.9"])


@pytest.mark.parametrize(("column", "edge"), list(enumerate(EDGES)))
def test_an_edge_has_the_numbers_of_the_uncertainty_toolbox(column: int, edge: str) -> None:
    expected, r, s = UCT[edge], RESIDUALS[:, column], SIGMAS[:, column]
    assert np.sqrt(np.square(s).mean()) == same(expected["sharp"])
    assert scores.crps(r, s).mean() == same(expected["crps"])


@pytest.mark.parametrize(("column", "edge"), list(enumerate(EDGES)))
def test_an_edge_has_the_calibration_of_netcal(column: int, edge: str) -> None:
    r, s = RESIDUALS[:, column], SIGMAS[:, column]
    levels = calibration_metrics.edge_levels(r, s)
    assert calibration_metrics.coverage(levels, 0.9) == same(NETCAL["PICP q=.9"][column])
    assert score_definition.ence(r.tolist(), s.tolist(), 5) == same(NETCAL["ENCE 5 bins"][column])
    assert calibration_metrics.rms_z(r / s) == same(NETCAL["VarianceScaling theta"][column])
    assert calibration_metrics.rms_z(r / s) == same(OWN["variance scale theta per coordinate"][column])


# --- labels and scores ---


def test_labels_have_the_formulas_scores() -> None:
    assert scores.brier_scores(PROBS, LABELS).mean() == same(OWN["Brier mean over TPs (sum over classes)"])
    assert scores.ignorances(PROBS, LABELS).mean() == same(OWN["ignorance mean over TPs"])


D_ECE = [
    # pairing, bins, ends of bins of equal width, what a package says
    ("greedy", Bins(10), (0.0, 1.0), NETCAL["D-ECE 10 bins"]),
    ("greedy", Bins(15), (0.0, 1.0), NETCAL["D-ECE 15 bins"]),
    ("greedy", Bins(25), (0.0, 1.0), NETCAL["D-ECE 25 bins"]),
    ("greedy", Bins(10), (0.0, 1.0), oracle("hotcoco")["calibration_error 10 bins (ece,mce)"][0]),
    ("greedy", Bins(15), (0.0, 1.0), oracle("hotcoco")["15 bins"][0]),
    ("greedy", Bins(10), (0.0, 1.0), FIVEAI["D-ECE tau .5 10 bins"]),
    ("greedy", Bins(25), (0.0, 1.0), FIVEAI["D-ECE tau .5 25 bins"]),
    ("greedy", Bins(25), None, UQ_DETR["dece greedy .5 25bins"]),
    ("alone", Bins(25), None, UQ_DETR["dece independent"]),
    ("greedy", Bins(10), (0.06, 1.0), oracle("vernier")["equal_width 10 bins min_score 0 (ece, mce, n)"][0]),
    ("greedy", Bins(15), (0.06, 1.0), oracle("vernier")["equal_width 15 bins min_score 0 (ece, mce, n)"][0]),
    ("greedy", Bins(10, "mass"), None, oracle("vernier")["quantile 10 bins min_score 0 (ece, mce, n)"][0]),
    ("greedy", Bins(15, "mass"), None, oracle("vernier")["quantile 15 bins min_score 0 (ece, mce, n)"][0]),
]  # fmt: skip


@pytest.mark.parametrize(("pairing", "bins", "ends", "expected"), D_ECE)
def test_d_ece_is_what_each_package_means_by_it(
    pairing: str, bins: Bins, ends: tuple[float, float] | None, expected: float
) -> None:
    scores, _, hits, _ = matched(0.5, alone=pairing == "alone")
    sums = SortedColumns(scores, [hits - scores], ends).sums(bins)
    assert calibration_metrics.calibration_errors(*sums)[0] == same(expected)
    assert score_definition.d_ece(scores.tolist(), hits.tolist(), bins.number, bins.kind, ends) == same(expected)


@pytest.mark.parametrize(
    ("threshold", "alone", "ends", "expected"),
    [
        (0.0, False, (0.0, 1.0), FIVEAI["LaECE_0 25 bins"]),
        (0.1, False, (0.0, 1.0), FIVEAI["LaECE tau .1 25 bins"]),
        (0.5, False, (0.0, 1.0), FIVEAI["LaECE tau .5 25 bins"]),
        (0.5, False, None, UQ_DETR["laece greedy .5"]),
        (0.5, True, None, UQ_DETR["laece independent .5"]),
    ],
)
def test_laece_is_that_of_other_packages(
    threshold: float, alone: bool, ends: tuple[float, float] | None, expected: float
) -> None:
    scores, named, _, ious = matched(threshold, alone=alone)
    found = score_definition.laece(scores.tolist(), ious.tolist(), named.tolist(), 25, ends=ends)
    assert found == same(expected)


def test_laace_is_that_of_its_authors() -> None:
    scores, named, _, ious = matched(0.0)
    assert score_definition.laace(scores.tolist(), ious.tolist(), named.tolist()) == same(FIVEAI["LaACE_0"])


def test_qgc_is_that_of_the_formula() -> None:
    scores, _, hits, _ = matched(0.5)
    conde = oracle("Conde")
    objects = sum(len(image["truth_labels"]) for image in packages()["images"])
    assert objects - hits.sum() == conde["FN"]
    assert score_definition.qgc(scores.tolist(), hits.tolist(), conde["FN"]) == same(conde["QGC avg"])


def test_oce_is_that_of_uq_detr() -> None:
    losses, plain = [], []
    for image in packages()["images"]:
        probs, there = np.asarray(image["label_probs"]).reshape(-1, 3), np.array(image["truth_labels"], int)
        found = extents(image["boxes"])
        losses.append(object_brier_scores(found, probs, extents(image["truth_boxes"]), there, ious=(0.5, 0.75)))
        plain += [score_definition.oce(shared(image).T, probs, there.tolist(), iou) for iou in (0.5, 0.75)]
    assert np.concatenate(losses).mean() == same(UQ_DETR["oce(.5,.75) mean"])
    assert np.mean(np.concatenate(plain)) == same(UQ_DETR["oce(.5,.75) mean"])


def test_mue_is_that_of_the_formula() -> None:
    scores, _, hits, _ = matched(0.5)
    for uncertainty in (-np.log(scores), 1.0 - scores):
        expected = same(OWN["MUE of -log score (TP vs rest, pooled)"])
        assert score_definition.mue(uncertainty.tolist(), hits.tolist()) == expected
