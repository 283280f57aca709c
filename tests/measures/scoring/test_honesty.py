"""Simulated detectors whose covariance is known: what is right is found right, what is wrong by how much."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.measures.scoring.test_box_scores import random_boxes

from probox.measures.measure import weighted_quantile
from probox.measures.scoring import calibration_metrics, score_definition, scores
from probox.measures.scoring.scores import edge_variances

N = 4000


def simulated(scale: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return residuals drawn from covariances, what a detector says of them (sigmas `scale` times), and its sigmas."""
    _, covariances = random_boxes(seed, N, low=0.3, high=30.0)
    rng = np.random.default_rng(seed + 1)
    roots = np.linalg.cholesky(covariances)
    residuals = np.einsum("kcij,kcj->kci", roots, rng.normal(size=(N, 2, 2))).reshape(N, 4)
    said = covariances * scale**2
    return residuals, said, np.sqrt(edge_variances(said))


def test_right_covariances_are_found_right() -> None:
    residuals, covariances, sigmas = simulated(1.0)
    assert abs(calibration_metrics.nees(residuals, covariances) - 4) < 4 * math.sqrt(8 / N)
    assert calibration_metrics.error_factor(residuals / sigmas) == pytest.approx(1.0, abs=0.02)
    for levels in (
        calibration_metrics.box_levels(residuals, covariances),
        *calibration_metrics.edge_levels(residuals, sigmas).T,
    ):
        for share in calibration_metrics.SHARES:
            assert abs(calibration_metrics.coverage(levels, share) - share) < 4 * math.sqrt(share * (1 - share) / N)
        assert calibration_metrics.mean_quantile_error(levels) < 0.02
    for pit in calibration_metrics.pit_values(residuals, sigmas).T:
        assert stats.kstest(pit, "uniform").pvalue > 1e-4
        shares = calibration_metrics.pit_histogram(pit)
        assert shares.sum() == pytest.approx(1.0)
        assert calibration_metrics.pit_distance(shares) < 0.04


@pytest.mark.parametrize("scale", [0.5, 2.0, 1 / 1.8])
def test_a_wrong_scale_is_found(scale: float) -> None:
    residuals, _, sigmas = simulated(scale)
    assert calibration_metrics.error_factor(residuals / sigmas) == pytest.approx(1 / scale, rel=0.02)
    for column in range(4):
        theta = calibration_metrics.rms_z(residuals[:, column] / sigmas[:, column])
        assert theta == pytest.approx(1 / scale, rel=0.04)
        expected = 2 * stats.norm.cdf(stats.norm.ppf(0.95) * scale) - 1
        levels = calibration_metrics.edge_levels(residuals[:, column], sigmas[:, column])
        assert calibration_metrics.coverage(levels, 0.9) == pytest.approx(expected, abs=0.025)
    assert (
        calibration_metrics.pit_distance(
            calibration_metrics.pit_histogram(calibration_metrics.pit_values(residuals, sigmas))
        )
        > 0.1
    )


def test_the_error_factor_is_the_quantile_of_one_std() -> None:
    n = 10_000
    z = stats.norm.ppf((np.arange(n) + 0.5) / n)
    assert calibration_metrics.error_factor(z) == pytest.approx(1.0, abs=2e-4)  # one rank is 2e-4
    assert np.sort(np.abs(z))[math.ceil(0.6826894921 * n) - 1] == calibration_metrics.error_factor(z)
    outliers = np.append(z, np.full(3, 1000.0))
    assert calibration_metrics.error_factor(outliers) == pytest.approx(1.0, abs=1e-3)
    assert calibration_metrics.rms_z(outliers) == pytest.approx(math.sqrt((n + 3e6) / (n + 3)), rel=1e-3)


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([calibration_metrics.ONE_STD, 0.1234567, 0.9876543])
)  # no count is a tie
def test_a_weighted_quantile_is_that_of_values_repeated(seed: int, q: float) -> None:
    rng = np.random.default_rng(seed)
    rows, values = rng.integers(0, 4, 9), rng.normal(size=9).round(1) + 0.0  # no -0
    weights = rng.integers(0, 3, (5, 4))
    for own, found in zip(weights, weighted_quantile(weights, rows, values, q), strict=True):
        repeated = np.repeat(values, own[rows])
        expected = np.quantile(repeated, q, method="inverted_cdf") if len(repeated) else math.nan
        np.testing.assert_equal(found, expected)
    assert np.isnan(weighted_quantile(weights, rows[:0], values[:0], q)).all()


@given(st.integers(0, 2**32 - 1), st.sampled_from(calibration_metrics.SHARES))
def test_coverage_is_that_of_the_definition(seed: int, share: float) -> None:
    residuals, covariances = random_boxes(seed, 12, low=0.1, high=10.0)
    sigmas = np.sqrt(edge_variances(covariances))
    assert calibration_metrics.coverage(
        calibration_metrics.box_levels(residuals, covariances), share
    ) == score_definition.box_coverage(residuals, covariances, share)
    assert calibration_metrics.coverage(
        calibration_metrics.edge_levels(residuals, sigmas)[:, 1], share
    ) == score_definition.edge_coverage(residuals[:, 1].tolist(), sigmas[:, 1].tolist(), share)


def test_distributions_are_scipys() -> None:
    z = np.array([-40.0, -8.0, -1.5, 0.0, 0.3, 2.0, 9.0])
    np.testing.assert_allclose(scores.normal_cdf(z), stats.norm.cdf(z), rtol=1e-12)
    np.testing.assert_allclose(scores.normal_pdf(z), stats.norm.pdf(z), rtol=1e-12)
    np.testing.assert_allclose(scores.central_level(z), stats.chi2.cdf(z * z, 1), rtol=1e-12)
    x = np.array([0.0, 1e-9, 0.1, 3.3567, 9.4877, 80.0, np.inf])
    np.testing.assert_allclose(scores.chi2_4_cdf(x), stats.chi2.cdf(x, 4), rtol=1e-9, atol=1e-17)
    assert scores.chi2_4_cdf(np.array(-1e300)) == 0
    assert scores.normal_quantile(0.975) == pytest.approx(1.959963984540054)


def test_a_histogram_holds_both_ends() -> None:
    pit = np.array([0.0, 0.05, 0.1, 0.95, 1.0])
    assert calibration_metrics.pit_histogram(pit).tolist() == [0.4, 0.2, 0, 0, 0, 0, 0, 0, 0, 0.4]
    assert calibration_metrics.pit_distance(np.full(10, 0.1)) == pytest.approx(0.0)
    assert calibration_metrics.pit_distance(np.eye(10)[0]) == pytest.approx(0.9)


def test_nothing_has_no_numbers() -> None:
    none = np.zeros(0)
    assert math.isnan(calibration_metrics.nees(np.zeros((0, 4)), np.zeros((0, 2, 2, 2))))
    assert math.isnan(calibration_metrics.error_factor(none))
    assert math.isnan(calibration_metrics.rms_z(none))
    assert math.isnan(calibration_metrics.coverage(none, 0.9))
    assert math.isnan(calibration_metrics.mean_quantile_error(none))
    assert np.isnan(calibration_metrics.pit_histogram(none)).all()
