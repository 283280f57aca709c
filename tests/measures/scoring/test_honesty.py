"""Simulated detectors whose covariance is known: what is right is found right, what is wrong by how much."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.measures.scoring.test_scores import random_boxes

from probox.measures.measure import weighted_quantile
from probox.measures.scoring import calibration_metrics, score_definition, scores
from probox.measures.scoring.scores import edge_variances


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
