"""What a calibration costs is said, with the reason."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.worlds import boxes_truth, simulated

from probox import Detections, GroundTruth
from probox.calibration import fit
from probox.calibration.corner_fit import FittingPairs
from probox.calibration.fitting import notes_on_nll, notes_on_threshold
from probox.notes import Note


@pytest.fixture(scope="module")
def pairs() -> FittingPairs:
    """Return 72 pairs with residuals of 1 and variances of 1."""
    truth = boxes_truth(12)
    pairs = FittingPairs.of(truth, simulated(truth))
    unit = np.tile(np.eye(2), (72, 2, 1, 1))
    return dataclasses.replace(pairs, residuals=np.ones((72, 4)), covariances=unit)


def scaled(pairs: FittingPairs, factors: np.ndarray) -> FittingPairs:
    return dataclasses.replace(pairs, covariances=pairs.covariances * np.square(factors)[:, None, None, None])


def growth(factor: float) -> float:
    """Return how NLL changes: 4 ln f + 2 (1 / f^2 - 1)."""
    return 4 * np.log(factor) + 2 * (factor**-2 - 1)


def test_other_reasons(pairs: FittingPairs) -> None:
    after = scaled(pairs, np.full(72, 0.5))
    said = f"NLL gets worse by {growth(0.5):.3g}"
    (pdq,), (coverage,), (nll,) = (notes_on_nll(target, pairs, after) for target in ("pdq", "coverage", "nll"))
    assert str(pdq) == f"{said}: sigmas are fitted for PDQ, not for NLL"
    (pinned,) = notes_on_nll("pdq", pairs, after, "pin")
    assert str(pinned) == f'{said}: sigmas are fitted for PDQ, and limited by border="pin"'
    assert str(coverage) == f"{said}: sigmas are fitted for coverage, not for NLL"
    assert str(nll).startswith(f"{said} on images held out, though sigmas are fitted for it")


@pytest.mark.parametrize(("factor", "notes"), [(0.65, 1), (0.68, 0), (1.0, 0), (2.0, 1)])
def test_a_nat_is_much(pairs: FittingPairs, factor: float, notes: int) -> None:
    assert (growth(factor) > 1) == bool(notes)
    assert len(notes_on_nll("coverage", pairs, scaled(pairs, np.full(72, factor)))) == notes


def test_plain_boxes_have_no_nll_to_get_worse(pairs: FittingPairs) -> None:
    plain = dataclasses.replace(pairs, usable=np.zeros(72, bool))
    assert notes_on_nll("pdq", plain, scaled(pairs, np.full(72, 0.1))) == ()


def table(best: list[float]) -> Detections:
    return Detections(
        classes=["cup", "dog"], image_ids=[1] * len(best), boxes=[[0, 0, 9, 9]] * len(best),
        label_probs=[[0.1, p] for p in best],
    )  # fmt: skip


def test_detections_below_the_threshold_are_counted() -> None:
    before, after = table([0.9, 0.8, 0.6, 0.5, 0.3]), table([0.7, 0.5, 0.4, 0.45, 0.6])
    assert notes_on_threshold(before, after, 0.5) == (Note("fall-below-threshold", 2, total=3, threshold=0.5),)
    assert notes_on_threshold(before, after, None) == ()
    assert notes_on_threshold(before, before, 0.5) == ()


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return boxes_truth(12)


def test_a_fit_that_lowers_scores_says_so(truth: GroundTruth) -> None:
    """Labels that are mostly wrong."""
    found = simulated(truth, false_per_image=40)
    fitted = fit(truth, found, target="coverage", label_method="isotonic", label_threshold=0.8, resamples=10)
    assert fitted.held_out is not None
    lost = (found.label_probs.max(axis=1) > 0.8) & ~(fitted.held_out.label_probs.max(axis=1) > 0.8)
    assert lost.sum() > 0
    assert any(
        f"{lost.sum()} of " in text and "below the label threshold 0.8" in text
        for text in tuple(map(str, fitted.notes))
    )
    same = fit(truth, found, target="coverage", label_threshold=0.8, resamples=10)
    assert not any("threshold" in text for text in tuple(map(str, same.notes)))


def test_a_fit_that_forgets_what_sigmas_knew_says_so(truth: GroundTruth) -> None:
    """Sigmas that know every error, replaced by a constant."""
    found = simulated(truth)
    pairs = FittingPairs.of(truth, found)
    variances = np.ones((len(found), 4))
    variances[pairs.detections] = np.maximum(np.square(pairs.residuals), 0.01)
    covariances = np.zeros((len(found), 2, 2, 2))
    covariances[:, :, [0, 1], [0, 1]] = variances.reshape(-1, 2, 2)
    fitted = fit(truth, found.replace(covariances=covariances), method="constant", target="coverage", resamples=10)
    assert fitted.gain is not None
    worse = -fitted.gain.changes["NLL"].gain
    assert worse > 1
    assert str(fitted.notes[-1]) == f"NLL gets worse by {worse:,.3g}: sigmas are fitted for coverage, not for NLL"
