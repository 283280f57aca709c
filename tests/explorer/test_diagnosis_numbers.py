"""The diagnosis as the page makes it at a threshold, against Python's of the evaluation at that threshold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.amounts import others_slow
from tests.explorer.node import needs_node, run
from tests.explorer.test_box_numbers import box_world, thresholds_of
from tests.strategies import random_covariance

from probox import Convention, Detections, Evaluation, GroundTruth, evaluate
from probox.analysis import threshold_sweep
from probox.analysis.loss_breakdown import compute_budget, find_duplicates, what_if_matched
from probox.analysis.threshold_sweep import find_box_rematches
from probox.explorer.payload import index_payload, outcome_spans
from probox.measures.matched import EDGES
from probox.measures.scoring.calibration_metrics import (
    ause,
    calibration_errors,
    coverage,
    edge_levels,
    pit_histogram,
    pit_values,
    sparsification,
    spearman,
)
from probox.measures.scoring.pair_measures import relative_edges
from probox.plots.base import caption_of_edges, sigmas_of_edges, why_no_sigma
from probox.plots.calibration_plots import SHARES, bin_edges, bin_scores, compute_coverage

pytestmark = needs_node

DIAGNOSIS = """
const list = (values) => Array.from(values);
const answer = input.map(({ index, thresholds }) => {
  const store = new probox.Store(index), result = store.results[0], one = probox.diagnosis;
  return thresholds.map((threshold) => {
    const view = store.view(0, threshold), at = one.pairsAt(result, threshold);
    const scores = one.reliability(result, threshold);
    const told = { budget: one.budget(view), whatIf: one.whatIf(view), why: at.why, pairs: at.rows.length,
      judged: at.judged, plain: at.plain, cut: at.cut,
      scores: { n: list(scores.n), hits: list(scores.hits), sums: list(scores.sums), error: scores.error } };
    if (at.why) return told;
    const sigma = one.sigmaError(at), sparse = one.sparsification(at);
    return { ...told, coverage: one.coverage(at), edges: [0, 1, 2, 3].map((edge) => one.coverage(at, edge).edges),
      pit: [0, 1, 2, 3].map((edge) => one.pit(at, edge)), sigma: { ...sigma, rows: sigma.rows.length },
      sparse: { own: list(sparse.own), best: list(sparse.best), random: sparse.random, ause: sparse.ause } };
  });
});
"""


def world(seed: int, kind: str, sigmas: str) -> tuple[GroundTruth, Detections]:
    """Return boxes near objects with covariances of all kinds, those of one share of the side, or none."""
    truth, found = box_world(seed, kind)
    rng = np.random.default_rng(seed)
    sides = found.boxes[:, 2:] - found.boxes[:, :2]
    covariances = {
        "none": np.zeros((len(found), 2, 2, 2)),
        "any": np.array([[random_covariance(rng), random_covariance(rng)] for _ in range(len(found))]),
        # Of one value each, whatever its last bits: half of all have it, the others twice as much.
        "share": np.stack(
            [np.stack([np.diag((0.05 * (1 + row % 2) * side) ** 2)] * 2) for row, side in enumerate(sides)]
        ),
    }[sigmas]
    return truth, found.replace(covariances=covariances.reshape(-1, 2, 2, 2))


def close(told: Any, value: Any, tolerance: float = 1e-6) -> None:
    """Compare numbers; nothing (null) is NaN."""
    numbers = np.array([math.nan if one is None else one for one in np.ravel(told)], np.float64)
    np.testing.assert_allclose(numbers, np.ravel(value), rtol=tolerance, atol=tolerance)


def check(told: dict[str, Any], at: Evaluation) -> None:
    check_points(told, at)
    n, hits, sums = bin_scores(at)
    assert told["scores"]["n"] == n.tolist()
    assert told["scores"]["hits"] == hits.tolist()
    close(told["scores"]["sums"], sums)
    close([told["scores"]["error"]], calibration_errors(n[None], (hits - sums)[None]))
    pairs = at.matched_pairs
    assert told["pairs"] == len(pairs)
    assert told["why"] == why_no_sigma(pairs)
    if told["why"]:
        return
    sigmas, present = sigmas_of_edges(pairs)
    caption = caption_of_edges({"": at})
    assert f"{told['judged']:,} pair" in caption
    assert (f"{told['plain']:,} plain box" in caption) == (told["plain"] > 0)
    assert (f"{told['cut']:,} edge" in caption) == (told["cut"] > 0)
    edges, boxes = compute_coverage(pairs)
    close(told["coverage"]["edges"], edges, 1e-12)
    close(told["coverage"]["boxes"], boxes, 1e-12)
    for column in range(len(EDGES)):
        kept = present[:, column]
        errors, spreads = pairs.residuals[kept, column], sigmas[kept, column]
        levels = edge_levels(errors, spreads)
        close(told["edges"][column], [coverage(levels, share) for share in SHARES.tolist()], 1e-12)
        close(told["pit"][column]["shares"], pit_histogram(pit_values(errors, spreads)), 1e-12)
        assert told["pit"][column]["total"] == int(kept.sum())
    check_sense(told, at)


def check_sense(told: dict[str, Any], at: Evaluation) -> None:
    sigmas, errors, present = relative_edges(at.matched_pairs)
    sigma, error = sigmas[present], errors[present]
    across, up = bin_edges(sigma, error)
    close(told["sigma"]["across"], across)
    close(told["sigma"]["up"], up)
    close([told["sigma"]["spearman"]], [spearman(sigma, error)])
    assert told["sigma"]["rows"] == len(sigma)
    close(told["sparse"]["own"], sparsification(sigma, error))
    close(told["sparse"]["best"], sparsification(error, error))
    close([told["sparse"]["ause"]], [ause(sigma, error)])


def check_points(told: dict[str, Any], at: Evaluation) -> None:
    """Compare the budget, and PDQ after repairs."""
    budget = compute_budget(at)
    if math.isnan(budget.pdq):
        assert told["budget"] is None
        return
    for name, value in budget.to_dict().items():
        close([told["budget"][name]], [value])
    close([sum(told["budget"].values())], [1.0], 1e-12)
    answers = {answer.key: answer.pdq for answer in what_if_matched(at, None)}
    close([told["whatIf"][key] for key in answers], list(answers.values()))
    assert told["whatIf"]["duplicates"] == int(find_duplicates(at).sum())
    close([told["whatIf"]["now"]], [at.pdq])


@pytest.mark.parametrize(
    ("kind", "sigmas"),
    others_slow(
        [("scores", "any"), ("scores", "none"), ("stated", "any"), ("background", "share"), ("many", "any")],
        several=True,
    ),
)
def test_the_diagnosis_is_that_of_the_evaluation_at_every_threshold(kind: str, sigmas: str) -> None:
    worlds: list[tuple[Evaluation, list[float | None]]] = []
    several = 0
    for seed in range(5 if kind != "many" else 1):
        convention = Convention(confidence_denominator=seed == 1, label_weight=0.3 if seed == 2 else 0.5)
        if seed == 3:
            convention = convention.replace(label_threshold=0.2)
        evaluation = evaluate(*world(seed + 20, kind, sigmas), convention=convention)
        own = convention.label_threshold or 0.0
        worlds.append((evaluation, [t for t in thresholds_of(evaluation, seed) if t is None or t >= own]))
        several += len(outcome_spans(evaluation, find_box_rematches(evaluation)).detection) - len(
            evaluation.box_matches
        )
    assert (several > 0) == (kind != "scores")
    told = [{"index": index_of(evaluation), "thresholds": thresholds} for evaluation, thresholds in worlds]
    for (evaluation, thresholds), answer in zip(worlds, run(DIAGNOSIS, told), strict=True):
        for threshold, one in zip(thresholds, answer, strict=True):
            check(one, evaluation if threshold is None else evaluation.at_threshold(threshold))


def index_of(evaluation: Evaluation) -> dict[str, Any]:
    return index_payload({"one": evaluation}, [""] * len(evaluation.dataset), 50, evaluation.dataset.file_names)


def test_scores_on_the_edge_of_a_bin_are_in_the_upper_one() -> None:
    scores = np.arange(11) / 10
    truth = GroundTruth.from_boxes(["cup"], {1: (640, 480)}, [1], [[10, 10, 60, 60]], [0])
    boxes = np.tile([[10.0, 10.0, 60.0, 60.0]], (11, 1))
    found = Detections(classes=["cup"], image_ids=[1] * 11, boxes=boxes, label_probs=scores[:, None])
    evaluation = evaluate(truth, found.replace(scores=scores, labels=[0] * 11))
    (told,) = told_of(evaluation, None)
    assert told["scores"]["n"] == [1.0] * 9 + [2.0]
    assert told["scores"]["hits"] == [0.0] * 9 + [1.0]


def told_of(evaluation: Evaluation, *thresholds: float | None) -> list[dict[str, Any]]:
    """Return the page's diagnosis at thresholds, compared with Python's."""
    (answer,) = run(DIAGNOSIS, [{"index": index_of(evaluation), "thresholds": thresholds}])
    for threshold, one in zip(thresholds, answer, strict=True):
        check(one, evaluation if threshold is None else evaluation.at_threshold(threshold))
    return list(answer)


def test_a_duplicate_of_two_objects_counts_once() -> None:
    boxes = [[10.0, 10.0, 60.0, 60.0], [14.0, 10.0, 64.0, 60.0]]
    truth = GroundTruth.from_boxes(["cup"], {1: (100, 80)}, [1, 1], boxes, [0, 0])
    found = Detections(
        classes=["cup"], image_ids=[1] * 3, boxes=[*boxes, [12.0, 10.0, 62.0, 60.0]], label_probs=[[0.9], [0.8], [0.2]]
    )
    (told,) = told_of(evaluate(truth, found), None)
    assert told["whatIf"]["duplicates"] == 1


@pytest.mark.parametrize("first", [0, 1])
def test_another_partner_that_overlaps_as_much_is_another_pair(first: int) -> None:
    boxes = np.array([[10.0, 10.0, 50.0, 50.0], [14.0, 10.0, 54.0, 50.0]])
    truth = GroundTruth.from_boxes(["cup", "dog"], {1: (100, 80)}, [1, 1], boxes, [0, 0])
    # The first takes its object, then drops out before the one between both, for which the order of objects decides.
    found = Detections(
        classes=["cup", "dog"], image_ids=[1, 1], boxes=[boxes[first], boxes.mean(axis=0)], labels=[0, 0],
        scores=[0.9, 0.8], label_probs=[[0.3, 0.0], [0.6, 0.0]], covariances=np.tile(np.diag([9.0, 4.0]), (2, 2, 1, 1)),
    )  # fmt: skip
    whole, later = told_of(evaluate(truth, found), None, 0.5)
    assert (whole["pairs"], later["pairs"]) == (2, 1)


def test_where_pairs_cannot_follow_a_threshold_they_are_of_all_detections(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = evaluate(*world(20, "stated", "any"))
    monkeypatch.setattr(threshold_sweep, "_MOST_ROWS", 3)
    index = index_of(evaluation)
    assert index["results"][0]["why"]["follows"] is False
    monkeypatch.undo()
    told = {"index": index, "thresholds": [None, 0.4]}
    ((of_all, there),) = run(DIAGNOSIS, [told])
    check(of_all, evaluation)
    assert {key: there[key] for key in ("pairs", "scores")} == {key: of_all[key] for key in ("pairs", "scores")}
    check_points(there, evaluation.at_threshold(0.4))


def test_without_detections_everything_is_missed() -> None:
    nothing = evaluate(*_no_detections())
    index = index_of(nothing)
    assert (index["results"][0]["why"]["best"], index["results"][0]["why"]["whole"]) == (None, [])
    ((told,),) = run(DIAGNOSIS, [{"index": index, "thresholds": [None]}])
    check(told, nothing)
    assert told["budget"]["missed"] == 1.0


def _no_detections() -> tuple[GroundTruth, Detections]:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48)}, [1], [[10, 10, 40, 40]], [0])
    empty: npt.NDArray[np.float64] = np.zeros((0, 4))
    return truth, Detections(classes=["cup"], image_ids=[], boxes=empty, label_probs=np.zeros((0, 1)))
