"""The verdict of a report: the sentences of the whole diagnosis, but for what takes long."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.worlds import boxes_truth, simulated

from probox import Evaluation, evaluate
from probox.analysis import diagnosis as module
from probox.analysis.diagnosis import summarize_for_page
from probox.analysis.loss_breakdown import compute_budget
from probox.analysis.threshold_sweep import find_rematches
from probox.analysis.thresholds import best_threshold, find_best_pdq
from probox.measures.scoring.score_rows import with_density
from probox.notes import Note

LONG = ("Constant-variance baseline",)


@pytest.fixture(scope="module")
def too_sure() -> Evaluation:
    truth = boxes_truth(20)
    return evaluate(truth, simulated(truth))


def test_sentences_are_those_of_the_diagnosis_to_the_letter(
    too_sure: Evaluation, results: dict[str, Evaluation]
) -> None:
    for evaluation in (too_sure, *results.values()):
        whole = evaluation.diagnose(replicates=100).verdict
        short, left_out = summarize_for_page(evaluation, replicates=100)
        kept = [text for text in whole if not any(words in text for words in LONG)]
        assert list(short.verdict) == kept
        assert len(kept) == len(whole) - 1
        assert left_out == ("PDQ of the constant-variance baseline",)
        assert short.budget == compute_budget(evaluation)
        assert set(short.notes) <= set(evaluation.diagnose(replicates=2).notes)
    # The demo's boxes name their last pixel: what seems too sure is in part that.
    assert summarize_for_page(results["unsure"])[0].notes == (Note("last-pixels"),)
    assert summarize_for_page(too_sure, replicates=20)[0].notes == ()


def test_rematches_at_hand_change_nothing(too_sure: Evaluation) -> None:
    given, _ = summarize_for_page(too_sure, find_rematches(too_sure), replicates=20)
    assert given.verdict == summarize_for_page(too_sure, replicates=20)[0].verdict
    best = best_threshold(too_sure)
    quick = find_best_pdq(too_sure, find_rematches(too_sure))
    assert (quick.threshold, quick.value, quick.now) == (best.threshold, best.value, best.now)


def test_sigmas_that_know_their_errors_are_said_to(too_sure: Evaluation) -> None:
    truth = boxes_truth(20)
    found = simulated(truth, sigma=4.0, reported=4.0)
    objects = evaluate(truth, found).matched_pairs
    errors = np.zeros((len(found), 4))
    errors[objects.detections] = objects.residuals
    knowing = np.stack([np.diag(np.square(error) + 0.5) for error in errors.reshape(-1, 2)]).reshape(-1, 2, 2, 2)
    (said,) = _of_energy(evaluate(truth, found.replace(covariances=knowing)))
    assert said.startswith("Informative: the energy score is ")
    assert said.endswith("% better than under any constant std")
    wild = found.covariances * np.where(np.arange(len(found)) % 2, 400.0, 0.0025)[:, None, None, None]
    (said,) = _of_energy(evaluate(truth, found.replace(covariances=wild)))
    assert said.startswith("Not informative: the energy score is ")
    assert said.endswith("% worse than under a constant std")
    (said,) = _of_energy(evaluate(truth, found))
    assert said.startswith("Undecided whether informative: the energy score does not differ")


def _of_energy(evaluation: Evaluation) -> list[str]:
    return [text for text in summarize_for_page(evaluation, replicates=200)[0].verdict if "energy score" in text]


def test_many_pairs_and_their_energy_score_are_left_to_the_diagnosis(
    too_sure: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense = int(with_density(too_sure.matched_pairs).sum())
    monkeypatch.setattr(module, "MOST_PAIRS", dense)
    short, left_out = summarize_for_page(too_sure, replicates=20)
    assert left_out == ("PDQ of the constant-variance baseline",)
    assert any("energy score" in text for text in short.verdict)
    monkeypatch.setattr(module, "MOST_PAIRS", dense - 1)
    short, left_out = summarize_for_page(too_sure, replicates=20)
    assert left_out == ("PDQ of the constant-variance baseline", "whether the std is informative")
    assert not any("energy score" in text for text in short.verdict)


def test_without_detections_nothing_is_left_out() -> None:
    truth = boxes_truth(3)
    found = simulated(truth)
    nothing = evaluate(truth, found.select(np.zeros(len(found), bool)))
    short, left_out = summarize_for_page(nothing, replicates=20)
    assert (short.best_thresholds, left_out) == ((), ())
    assert short.verdict[0].startswith("No matched boxes")
    bare = dataclasses.replace(evaluate(truth, found), measures=("map",))
    assert summarize_for_page(bare, replicates=20)[0].budget is None
