"""Best standard deviation and label probability of scores: known errors, known optima, and claims."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from probox import InputError
from probox.convention import Convention
from probox.measures.pdq.kernel import heatmap
from probox_experiments import ResultTable, Run, proper
from probox_experiments.beyond.proper_claims import (
    ERRORS,
    LAST_PIXEL,
    NAMED,
    PREDICTED,
    SCALE,
    best_probability,
    best_reports,
    best_sigmas,
    claims_of_errors,
    draw_labels,
    drawn_around_boxes,
    report_sigma,
)
from probox_experiments.claims import peak_of
from probox_experiments.training.comparison import read_table

ROOT = Path(__file__).resolve().parents[2]


def test_a_peak_lies_between_the_points_of_a_grid_never_beyond() -> None:
    grid = np.exp(np.linspace(0.0, 1.0, 6))
    assert peak_of(grid, -((np.log(grid) - 0.33) ** 2)) == pytest.approx(math.exp(0.33))
    assert peak_of(grid[::-1], -((np.log(grid[::-1]) - 0.33) ** 2)) == pytest.approx(math.exp(0.33))
    assert peak_of(grid, grid) == grid[-1]
    assert peak_of(grid, -grid) == grid[0]
    assert peak_of(grid, np.ones(6)) == grid[0]
    assert peak_of([1.0, 2.0, 4.0], [0.0, 1.0, 1.0]) == pytest.approx(math.sqrt(8))
    assert math.isnan(peak_of(grid, [np.nan, *np.ones(5)]))


@pytest.mark.parametrize("errors", ERRORS)
def test_edges_err_as_told(errors: str) -> None:
    truth, means = drawn_around_boxes(errors, 60, 2000, (0, 1))
    apart = (truth.boxes + LAST_PIXEL - means).ravel() / SCALE
    middle = {"gaussian": 0.6745, "laplace": math.log(2), "student": 0.787}[errors]
    assert np.median(np.abs(apart)) == pytest.approx(middle, abs=0.03)
    np.testing.assert_allclose(means[:, 2:] - means[:, :2], 60)
    # An object has the pixels that its edges touch.
    pixels = truth.masks.boxes
    assert (np.abs(pixels[:, :2] + 0.5 - truth.boxes[:, :2]) <= 0.5).all()
    assert (np.abs(pixels[:, 2:] + 0.5 - (truth.boxes[:, 2:] + 1)) <= 0.5).all()


def test_objects_of_few_sigmas_have_a_pixel_at_least() -> None:
    truth, _ = drawn_around_boxes("student", 2, 500, (0, 0))
    assert (truth.masks.pixels >= 1).all()
    assert (truth.boxes[:, 2:] >= truth.boxes[:, :2]).all()


def test_the_report_of_the_true_sigma_is_the_true_probability_of_every_pixel() -> None:
    """What a proper score is about: objects drawn around a box cover a pixel as often as its report says."""
    truth, means = drawn_around_boxes("gaussian", 20, 4000, (0, 0))
    found, size = report_sigma(means, SCALE), int(truth.dataset.widths[0])
    assert found.covariances is not None
    columns, middle = np.arange(size)[:, None], size // 2
    x1, x2 = truth.masks.boxes[:, 0], truth.masks.boxes[:, 2]
    share = ((columns >= x1) & (columns <= x2)).mean(axis=1)
    paper = Convention.preset("paper")
    said = np.mean([heatmap(box, found.covariances[0], size, size, paper)[middle] for box in found.boxes[:40]], axis=0)
    assert np.abs(share - said).max() < 0.03
    assert share.sum() == pytest.approx(20 + 1, abs=0.3)  # two edges end within a pixel each


@pytest.fixture(scope="module")
def table() -> ResultTable:
    return proper(boxes=40, sides=(12,), shares=(0.6, 0.8), probabilities=(0.5, 0.6, 0.69, 0.8, 0.9, 0.94), repeats=2)


def test_nll_asks_for_the_root_of_the_mean_squared_error(table: ResultTable) -> None:
    rows = table.where(study="sigma", errors="gaussian", side=100)
    for repeat, best in enumerate(best_sigmas(rows, "NLL")):
        truth, means = drawn_around_boxes("gaussian", 100, 40, (0, repeat))
        apart = truth.boxes + LAST_PIXEL - means
        assert best == pytest.approx(np.sqrt(np.mean(apart**2)), rel=0.005)
        assert rows.where(repeat=repeat)["rms"] == pytest.approx(np.sqrt(np.mean(apart**2)))
    np.testing.assert_allclose(rows["NLL"], rows["PMB_NLL"], atol=1e-5)  # one pair, label probability 1


def test_labels_of_perfect_boxes(table: ResultTable) -> None:
    rows = table.where(study="label", named=NAMED[0])
    assert best_reports(rows, "PDQ") == best_reports(rows, "PDQ_paper") == {0.6: 0.69, 0.8: 0.94}
    assert best_reports(rows, "Brier") == best_reports(rows, "ignorance") == {0.6: 0.6, 0.8: 0.8}
    likelier = table.where(study="label", named=NAMED[1])
    assert best_reports(likelier, "ignorance") == {0.6: 0.94, 0.8: 0.94}
    np.testing.assert_allclose(best_probability([0.5, 0.6, 0.8, 1.0]), [0.5, 36 / 52, 64 / 68, 1.0])
    truth, found = draw_labels(0.8, 0.7, NAMED[1])
    assert np.bincount(truth.labels).tolist() == [16, 4]
    assert (found.labels == 0).all()
    assert draw_labels(0.8, 0.3, NAMED[1])[1].labels.all()


def test_other_settings_can_be_judged_and_drawn() -> None:
    pytest.importorskip("matplotlib")
    from probox_experiments.beyond.proper import PROPER
    from probox_experiments.figures import style

    run = Run(presets=["paper"])
    for settings in ({"repeats": 0}, {"repeats": 1, "sigmas": (2.0, 4.0), "sides": (), "shares": (), "boxes": 5}):
        small = proper(run=run, probabilities=(0.5, 0.7), **settings)  # type: ignore[arg-type]
        assert all(claim.measured for claim in PROPER.judge(small))
        with style():
            assert PROPER.draw(small).axes


def test_points_that_were_kept_do_not_depend_on_the_other_sides(tmp_path: Path) -> None:
    def measured(sides: tuple[int, ...], keep: Path | None) -> ResultTable:
        run = Run(presets=["paper"], keep=keep)
        return proper(boxes=4, side=30, sides=sides, sigmas=(3.0,), shares=(), repeats=1, run=run)

    measured((12, 20), tmp_path)  # of these, only the least is asked about by NLL
    again, fresh = measured((20, 25), tmp_path), measured((20, 25), None)
    for name in ("NLL", "PMB_NLL", "PDQ_paper"):
        np.testing.assert_array_equal(again[name], fresh[name])


def test_predicted_sigmas_are_judged_one_by_one(table: ResultTable) -> None:
    claims = {claim.claim: claim for claim in claims_of_errors(table)}
    for (_, score), expected in PREDICTED.items():
        assert any(f"about {expected:g} pixels" in claim for claim in claims), score
    doubled = claims_of_errors(table.replace(sigma=2 * table["sigma"]))
    assert not any(claim.holds for claim in doubled if "is best with" in claim.claim)


@pytest.mark.parametrize("settings", [{"shares": (0.0,)}, {"probabilities": (1.0,)}, {"side": 0}, {"sides": (-3,)}])
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError):
        proper(repeats=1, **settings)  # type: ignore[arg-type]


def test_the_page_says_what_the_command_said() -> None:
    claims = claims_of_errors(read_table(ROOT / "docs" / "figures" / "experiments" / "proper.csv"))
    page = " ".join((ROOT / "docs" / "training-study.md").read_text(encoding="utf-8").split())
    assert f"Of its {len(claims)} claims on these, {sum(bool(claim.holds) for claim in claims)} hold" in page
