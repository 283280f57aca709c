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


# --- pairs ---


def test_pairs_have_the_scores_of_other_packages() -> None:
    energies, nlls = (
        scores.energy_scores(RESIDUALS, COVARIANCES),
        scores.negative_log_likelihoods(RESIDUALS, COVARIANCES),
    )
    raised = scores.negative_log_likelihoods(RESIDUALS, COVARIANCES, floor=0.01)
    crps, widths = scores.crps(RESIDUALS, SIGMAS), scores.interval_widths(SIGMAS, 0.9)
    assert OWN["energy score exact (mean)"] == same(energies.mean())
    assert OWN["nll mean"] == NETCAL["NLL joint"] == same(nlls.mean())
    assert OWN["nll mean with probdet's +0.01 I"] == same(raised.mean())
    assert OWN["NEES mean (chi2_4 -> 4)"] == same(scores.squared_distances(RESIDUALS, COVARIANCES).mean())
    assert oracle("scoringrules")["crps_normal mean per coordinate"] == same(crps.mean(axis=0).tolist())
    assert oracle("properscoring")["crps_gaussian mean per coordinate"] == same(crps.mean(axis=0).tolist())
    assert NETCAL["MPIW q=.9"] == same(widths.mean(axis=0).tolist())
    assert OWN["Brier mean over TPs (sum over classes)"] == same(scores.brier_scores(PROBS, LABELS).mean())
    assert OWN["ignorance mean over TPs"] == same(scores.ignorances(PROBS, LABELS).mean())
    for column, edge in enumerate(EDGES):
        r, s = RESIDUALS[:, column], SIGMAS[:, column]
        assert UCT[edge]["sharp"] == same(np.sqrt(np.square(s).mean()))
        assert UCT[edge]["crps"] == same(crps[:, column].mean())
        levels = calibration_metrics.edge_levels(r, s)
        assert NETCAL["PICP q=.9"][column] == same(calibration_metrics.coverage(levels, 0.9))
        assert NETCAL["ENCE 5 bins"][column] == same(score_definition.ence(r.tolist(), s.tolist(), 5))
        for factors in (NETCAL["VarianceScaling theta"], OWN["variance scale theta per coordinate"]):
            assert factors[column] == same(calibration_metrics.rms_z(r / s))


# --- scores ---


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
