"""Other packages on random input, where they are installed: they say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from probox.measures.boxes.box_definition import match_greedily, overlaps
from probox.measures.scoring import calibration_metrics, scores
from probox.measures.scoring.calibration_metrics import Bins, object_brier_scores

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs

SEEDS = pytest.mark.parametrize("seed", range(3))


def package(name: str) -> Any:
    return pytest.importorskip(name, exc_type=ImportError)


def one(value: Any) -> float:
    return float(np.squeeze(value))


def edges(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sigmas = np.exp(rng.normal(size=200))
    return rng.standard_t(4, size=200) * sigmas, sigmas


def scored(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.random(300)
    return scores, rng.random(300) < scores**2


@SEEDS
def test_scoringrules(seed: int) -> None:
    sr = package("scoringrules")
    r, s = edges(seed)
    np.testing.assert_allclose(scores.crps(r, s), sr.crps_normal(r, np.zeros(200), s), atol=1e-9)


@SEEDS
def test_netcal(seed: int) -> None:
    regression = package("netcal.metrics.regression")
    r, s = edges(seed)
    given = (np.zeros(200), s), r
    assert calibration_metrics.ence(r, s, Bins(8)) == pytest.approx(one(regression.ENCE(8).measure(*given)), abs=1e-9)
    expected = regression.QCE(8, marginal=True).measure(*given, q=calibration_metrics.MQCE_LEVELS)
    assert calibration_metrics.mean_quantile_error(calibration_metrics.edge_levels(r, s)) == pytest.approx(
        one(expected), abs=1e-9
    )


@SEEDS
def test_hotcoco(seed: int) -> None:
    metrics = package("hotcoco.metrics")
    scores, hits = scored(seed)
    for number in (10, 15, 25):
        expected = metrics.calibration_error(scores.tolist(), hits.tolist(), number)[0]
        assert calibration_metrics.d_ece(scores, hits, Bins(number)) == pytest.approx(expected, abs=1e-9)


@SEEDS
def test_uq_detr(seed: int) -> None:
    uq = package("uq_detr")
    rng = np.random.default_rng(seed)
    found, there, losses, columns = [], [], [], []
    for _ in range(6):
        truth = np.concatenate([corner := rng.uniform(0, 80, (5, 2)), corner + rng.uniform(8, 30, (5, 2))], axis=1)
        boxes = np.concatenate([truth[rng.integers(0, 5, 9)] + rng.normal(0, 2, (9, 4)), truth[:2] + 60])
        probs, labels = rng.dirichlet(np.full(4, 0.4), 11)[:, :3], rng.integers(0, 3, 5)
        named = probs.argmax(axis=1)
        found.append(uq.Detections(boxes=boxes, scores=probs, labels=named))
        there.append(uq.GroundTruth(boxes=truth, labels=labels))
        sides = [np.concatenate([b[:, :2], b[:, 2:] - b[:, :2]], axis=1) for b in (boxes, truth)]
        losses.append(object_brier_scores(sides[0], probs, sides[1], labels, ious=(0.5, 0.75)))
        ious, none = overlaps(*sides, np.zeros(5, bool)), np.zeros(5, bool)
        order = np.argsort(-probs.max(axis=1))
        match = match_greedily(np.where(named[:, None] == labels, ious, 0.0)[order], 0.5, none, none)
        best = np.array([ious[row, at] if at >= 0 else 0.0 for row, at in zip(order, match, strict=True)])
        columns.append((probs.max(axis=1)[order], best, named[order]))
    scores, best, named = (np.concatenate(column) for column in zip(*columns, strict=True))
    expected = uq.oce(found, there).score
    assert np.concatenate(losses).mean() == pytest.approx(expected, abs=1e-9)
    expected = uq.dece(found, there, tp_criterion="greedy").score
    assert calibration_metrics.d_ece(scores, best > 0, Bins(25), ends=None) == pytest.approx(expected, abs=1e-9)
    expected = uq.laece(found, there, tp_criterion="greedy").score
    assert calibration_metrics.laece(scores, best, named, Bins(25), ends=None) == pytest.approx(expected, abs=1e-9)
