"""Peaks of PDQ, their standard errors, and claims, on tables with known numbers."""

from __future__ import annotations

import numpy as np
import pytest

from probox import GroundTruth
from probox_experiments import ResultTable, Run, spatial_uncertainty, square_scene
from probox_experiments.paper.spatial import SPATIAL_UNCERTAINTY, near_truth, peaks_of

TRUE = (1.0, 3.0, 10.0)
FINE = tuple(1.3**step for step in range(-4, 5))
LEADS, NEAR, EQUAL = range(3)
"""The claims under a preset, in their order."""


def parabolas(ratios: list[float], *, noise: float = 0.0, columns: tuple[str, ...] = ("PDQ",)) -> ResultTable:
    """Return parabolas that peak at these multiples of the truth, a repeat each; noise is on the matching variance."""
    rows = []
    for repeat, ratio in enumerate(ratios):
        for true in TRUE:
            for reported in sorted({*TRUE, *(round(true * factor, 9) for factor in FINE)}):
                score = 0.8 - 0.02 * np.log(reported / (true * ratio)) ** 2
                score += noise * (-1) ** repeat if reported == true else 0.0
                settings = {"true_variance": true, "reported_variance": reported, "repeat": repeat}
                rows.append({**settings, **dict.fromkeys(columns, score)})
    return ResultTable.from_rows(rows, ["true_variance", "reported_variance", "repeat"])


def results(table: ResultTable) -> list[bool | None]:
    return [claim.holds for claim in SPATIAL_UNCERTAINTY.judge(table)]


@pytest.mark.parametrize(
    ("ratios", "wanted"),
    [
        ([0.99, 1.01, 1.0, 1.005], [True, True, True]),
        ([1.2, 1.25, 1.22, 1.21], [True, True, False]),  # significantly beside the true value, but nearest to it
        ([1.72, 1.722, 1.721, 1.72], [True, True, False]),
        ([1.74, 1.742, 1.741, 1.74], [False, False, False]),  # past the middle between the truth and its triple
        ([0.55, 0.55, 0.55, 0.551], [False, False, False]),
        ([1.3, 2.2, 1.2, 2.1], [False, False, False]),  # 1.64 on average, but not significant
        ([5.0, 5.0, 5.1, 5.0], [False, False, False]),  # beyond the grid
    ],
)
def test_results_follow_the_peak(ratios: list[float], wanted: list[bool]) -> None:
    assert results(parabolas(ratios)) == wanted


def test_a_lead_counts_from_two_standard_errors_on() -> None:
    lead = 0.02 * np.log(3) ** 2
    # Of four repeats, two up and two down: the standard deviation is noise * sqrt(4 / 3), its error half of that.
    at_two = lead / np.sqrt(4 / 3)
    assert results(parabolas([1.0] * 4, noise=0.99 * at_two))[LEADS] is True
    assert results(parabolas([1.0] * 4, noise=1.01 * at_two))[LEADS] is False


def test_what_was_not_measured_is_no_failure() -> None:
    assert results(parabolas([1.0])) == [None] * 3  # one repeat has no standard error
    both = parabolas([0.99, 1.01], columns=("PDQ", "PDQ_paper"))
    assert results(both) == [True] * 6
    only = both.take(np.isin(both["reported_variance"], TRUE))
    assert results(only)[LEADS] is True
    assert results(only)[NEAR] is None
    alone = both.where(true_variance=3.0)
    assert results(alone)[LEADS] is None
    assert results(alone)[EQUAL] is True
    assert results(both.take(np.arange(0))) == [None]


def test_both_presets_are_judged() -> None:
    table = parabolas([1.0, 1.01], columns=("PDQ", "PDQ_paper"))
    moved = table.replace(PDQ_paper=parabolas([1.9, 1.91])["PDQ"])
    claims = SPATIAL_UNCERTAINTY.judge(moved)
    assert [claim.holds for claim in claims] == [True] * 3 + [False] * 3
    assert all("`paper`" in claim.claim for claim in claims[3:])


def test_the_peak_of_a_parabola() -> None:
    peaks = peaks_of(parabolas([1.1, 1.3]), "PDQ")
    for peak in peaks.values():
        assert peak.value == pytest.approx((np.log(1.1) + np.log(1.3)) / 2)
        assert peak.error == pytest.approx((np.log(1.3) - np.log(1.1)) / 2)


def test_the_finer_grid_ends_before_the_coarse_one_goes_on() -> None:
    assert near_truth(np.array([10 / 3, 3.6, 10.0, 28.0, 30.0]), 10.0).tolist() == [False, True, True, True, False]
    assert list(peaks_of(parabolas([1.0, 1.0]), "PDQ")) == list(TRUE)


def test_the_grid_is_as_asked_for() -> None:
    scene: GroundTruth = square_scene(side=20, image=60)
    table = spatial_uncertainty(scene, true_variances=(4, 9), fine_steps=1, repeats=2)
    reported = sorted(set(table.where(true_variance=4.0)["reported_variance"].tolist()))
    assert reported == pytest.approx([4 / 1.3, 4, 5.2, 9])
    assert len(table) == 2 * 2 * 4
    given = spatial_uncertainty(
        scene, true_variances=(4,), reported_variances=(1, 2), repeats=1, run=Run(presets=["paper"])
    )
    assert given["reported_variance"].tolist() == [1.0, 2.0]
    assert "PDQ" not in given
    assert not np.isnan(given["PDQ_paper"]).any()
