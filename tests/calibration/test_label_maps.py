"""Temperatures and curves of scores, on labels whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox import Detections
from probox.calibration.corner_fit import FittingPairs, MatchOutcome
from probox.calibration.corner_maps import MonotoneCurve
from probox.calibration.label_maps import (
    ScoreCurves,
    Temperature,
    fit_labels,
    ignorances,
    label_targets,
    target_probs,
)
from probox.notes import Note
from probox.tables.label_probs import LabelProbs

CLASSES = ("cup", "dog", "hat")


def table(probs: np.ndarray, **columns: object) -> Detections:
    n = len(probs)
    boxes = np.tile([0, 0, 9, 9], (n, 1))
    return Detections(
        classes=CLASSES, image_ids=np.ones(n, np.int64), boxes=boxes, label_probs=probs, **columns
    )  # fmt: skip


def drawn(n: int, temperature: float, seed: int = 0) -> tuple[Detections, np.ndarray]:
    """Return label vectors that are right once their temperature is taken away, and the true columns."""
    rng = np.random.default_rng(seed)
    right = rng.dirichlet(np.full(4, 0.6), n)
    truth = (rng.random((n, 1)) < np.cumsum(right, axis=1)).argmax(axis=1)
    said = right ** (1 / temperature)
    said /= said.sum(axis=1, keepdims=True)
    return table(said[:, :3]), truth


@pytest.mark.parametrize(("temperature", "found"), [(1.0, 1.0), (0.5, 2.0), (2.0, 0.5)])
def test_the_temperature_is_found(temperature: float, found: float) -> None:
    detections, truth = drawn(6000, temperature)
    mapping, notes = fit_labels(pairs_of(truth), detections, truth, np.arange(6000), "temperature")
    assert mapping.temperature == pytest.approx(found, rel=0.05)
    assert notes == ()


def pairs_of(targets: np.ndarray) -> FittingPairs:
    """Return pairs of which only outcomes matter."""
    none = np.zeros(0, np.int64)
    outcomes = np.where(targets < len(CLASSES), MatchOutcome.MATCHED, MatchOutcome.UNMATCHED).astype(np.uint8)
    return FittingPairs(
        detections=none, objects=none, image_rows=none, labels=none.astype(np.int32), residuals=np.zeros((0, 4)),
        sides=np.zeros((0, 4)), boxes=np.zeros((0, 4)), image_sizes=np.zeros((0, 2)),
        covariances=np.zeros((0, 2, 2, 2)), free=np.zeros((0, 4), bool),
        names=np.zeros(0, str), scores=np.zeros(0), usable=np.zeros(0, bool), outcomes=outcomes,
    )  # fmt: skip


def test_a_temperature_is_a_power_of_all_and_background() -> None:
    after = Temperature(0.5).apply(table(np.array([[0.5, 0.1, 0.0]])))
    powers = np.array([0.25, 0.01, 0.0, 0.16])
    assert after.label_probs[0] == pytest.approx((powers / powers.sum())[:3], rel=1e-6)
    assert after.scores[0] == pytest.approx(0.25 / 0.42, rel=1e-6)


def test_labels_without_background_are_said_to_have_none() -> None:
    probs = np.array([[0.9, 0.05, 0.05]] * 40)
    truth = np.array([0] * 30 + [3] * 10)
    _, notes = fit_labels(pairs_of(truth), table(probs), truth, np.arange(40), "temperature")
    assert [note.code for note in notes] == ["temperature-at-bound", "no-background"]
    assert dict(notes[0].fields) == {"temperature": pytest.approx(0.103, abs=5e-4), "way": "lower"}


def test_a_search_that_would_go_on_is_said() -> None:
    """All say 0.9 of the first class, which is never there: the flatter the better."""
    probs, truth = np.array([[0.9, 0.05, 0.03]] * 40), np.ones(40, np.int64)
    mapping, notes = fit_labels(pairs_of(truth), table(probs), truth, np.arange(40), "temperature")
    (note,) = notes
    assert dict(note.fields) == {"temperature": pytest.approx(9.73, abs=5e-3), "way": "higher"}
    assert mapping.temperature == pytest.approx(math.exp(0.005 * 455))


def test_scores_become_precisions() -> None:
    """Scores of 0.9 that are right half of the time, of 0.3 a fifth."""
    scores = np.repeat([0.3, 0.9], 60)
    right = np.tile([True, False, False, False, False], 12).tolist() + [True, False] * 30
    probs = np.zeros((120, 3))
    probs[:, 0], probs[:, 1] = scores, 0.1
    found = table(probs)
    targets = np.where(right, 0, 3)
    mapping, _notes = fit_labels(pairs_of(targets), found, targets, np.arange(120), "isotonic")
    after = mapping.apply(found)
    assert after.scores[[0, 60]] == pytest.approx([0.2, 0.5])
    assert after.label_probs[[0, 60], 1] == pytest.approx([0.1 * 0.2 / 0.3, 0.1 * 0.5 / 0.9])
    assert [name for name, _ in mapping.classes] == ["cup"]
    other = mapping.apply(table(np.array([[0.0, 0.3, 0.1]])))
    assert other.scores[0] == pytest.approx(0.2), "a class of its own curve's lack uses that of all"
    assert not mapping.has_class("dog")


def test_classes_of_few_detections_are_named() -> None:
    probs = np.concatenate([np.tile([0.5, 0.1, 0], (30, 1)), np.tile([0.1, 0.5, 0], (29, 1))])
    targets = np.concatenate([np.zeros(30), np.ones(29)]).astype(np.int64)
    _, notes = fit_labels(pairs_of(targets), table(probs), targets, np.arange(59), "isotonic")
    assert notes == (Note("few-detections-of-classes", 1, least=30, names="dog"),)


ROWS = st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(lambda row: sum(row) > 0.01)


@given(st.lists(ROWS, min_size=1, max_size=6), st.floats(0.2, 5), st.floats(0, 1), st.floats(0, 1))
def test_rows_stay_distributions_and_name_the_same_class(
    rows: list[list[float]], temperature: float, low: float, high: float
) -> None:
    weights = np.array(rows)
    found = table((weights / weights.sum(axis=1, keepdims=True))[:, :3])
    curve = MonotoneCurve((0.2, 0.8), (min(low, high), max(low, high)))
    for mapping in (Temperature(temperature), ScoreCurves(curve, ())):
        after = mapping.apply(found)  # the table checks that rows are distributions
        assert (after.labels == found.labels).all()
        best = after.label_probs.max(axis=1)
        named = after.label_probs[np.arange(len(found)), found.labels]
        assert named == pytest.approx(best, abs=1e-6)
        assert after.scores == pytest.approx(named)


def test_stated_scores_change_in_proportion() -> None:
    found = table(np.array([[0.5, 0.2, 0.1]]), labels=[0], scores=[0.4])
    after = ScoreCurves(MonotoneCurve((0.5,), (0.25,)), ()).apply(found)
    assert after.scores.tolist() == [0.2]


def test_ignorance_counts_background_columns_and_has_a_floor() -> None:
    probs = LabelProbs([[0.5, 0.3, 0.0], [0.5, 0.3, 0.0]])

    def hits(targets: list[int], background: list[bool]) -> np.ndarray:
        return np.exp(-ignorances(target_probs(probs, np.array(targets), np.array(background))))

    assert hits([0, 3], [False] * 3) == pytest.approx([0.5, 0.2], rel=1e-6)
    assert hits([2, 3], [False, True, False]) == pytest.approx([1e-6, 0.5], rel=1e-6)


def test_targets_are_columns_of_the_detector() -> None:
    pairs = pairs_of(np.array([0, 0, 3, 3]))
    pairs = FittingPairs(**(vars(pairs) | {
        "detections": np.array([1, 0]), "labels": np.array([0, 1], np.int32),
        "outcomes": np.array([1, 1, 2, 0], np.uint8),
    }))  # fmt: skip
    found = table(np.tile([0.5, 0.2, 0.1], (4, 1)))
    assert label_targets(pairs, found, ("hat", "unicorn")).tolist() == [-1, 2, 3, -1]
