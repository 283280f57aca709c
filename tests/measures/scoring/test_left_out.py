"""What measures leave out is counted and told, and nothing has no numbers."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from tests.measures.scoring.packages import CLASSES, NAMES, OURS, world
from tests.measures.test_matched import scene

import probox
from probox import Evaluation
from probox.cli import main
from probox.measures.matched import EDGES
from probox.measures.measure import Measure
from probox.measures.scoring import calibration_metrics, detection_measures, score_definition, scores
from probox.measures.scoring.scores import edge_variances
from probox.notes import Note

EVERY = pytest.mark.parametrize("measure", OURS, ids=lambda measure: measure.name)


@EVERY
def test_of_nothing_there_is_no_number(measure: Measure) -> None:
    truth, found = world()
    for empty in (
        probox.evaluate(truth, found.take(np.zeros(0, np.int64)), measures=[measure.name]),
        probox.evaluate(truth.take(np.zeros(0, np.int64)), found, measures=[measure.name]),
        probox.evaluate(truth.take(np.zeros(0, np.int64)), found.take(np.zeros(0, np.int64)), measures=[measure.name]),
    ):
        numbers = empty.summary()
        if measure.name not in ("oce", "qgc", "d-ece"):
            assert numbers == pytest.approx(measure.nothing(), nan_ok=True)
        told = "metrics are unreliable below 30", "no detection matches an object"
        assert (
            any(words in note for words in told for note in tuple(map(str, empty.notes))) or len(empty.detections) >= 30
        )
        assert measure.per_class is not None
        assert list(measure.per_class(empty)) == list(CLASSES)


def test_plain_boxes_are_left_out_and_counted() -> None:
    truth, found = world()
    covariances = np.array(found.covariances)
    hits = probox.evaluate(truth, found, measures=["nll"]).matched_pairs.detections
    covariances[hits[:5]] = 0.0
    some = probox.evaluate(truth, found.replace(covariances=covariances), measures=NAMES)
    pairs, numbers = probox.evaluate(truth, found, measures=["nll"]).matched_pairs, some.summary()
    r, c = pairs.residuals[5:], pairs.covariances[5:]
    sigmas = np.sqrt(edge_variances(c))
    box_levels, edge_levels = calibration_metrics.box_levels(r, c), calibration_metrics.edge_levels(r, sigmas)
    sides = pairs.sides[5:][:, [0, 1, 0, 1]]
    relative = (sigmas / sides).ravel(), (np.abs(r) / sides).ravel()
    distances = np.linalg.norm(pairs.residuals[:5], axis=1)
    shares = calibration_metrics.pit_histogram(calibration_metrics.pit_values(r, sigmas))
    expected = {
        "NLL_pairs": 9,
        "NLL": scores.negative_log_likelihoods(r, c).mean(),
        "NEES": scores.squared_distances(r, c).mean(),
        "coverage_68_joint": calibration_metrics.coverage(box_levels, 0.68),
        "coverage_68": calibration_metrics.coverage(edge_levels, 0.68),
        "M-QCE": np.mean([abs((box_levels <= q).mean() - q) for q in calibration_metrics.MQCE_LEVELS]),
        "PIT": calibration_metrics.pit_distance(shares),
        "ENCE/10m_y2": score_definition.ence(r[:, 3].tolist(), sigmas[:, 3].tolist(), 10, "mass"),
        "AUSE": calibration_metrics.ause(*relative),
        "Spearman": calibration_metrics.spearman(*relative),
        "energy": np.append(distances, scores.energy_scores(r, c)).mean(),
    }
    assert {key: numbers[key] for key in expected} == pytest.approx(expected)
    text = Note("plain-pairs", 5, total=14)
    assert text in some.notes
    assert Note("plain-distances", 5, total=14) in some.notes
    assert Note("few-pairs", 9, pairing="COCO IoU 0.5", least=30) in some.notes
    alone = probox.evaluate(truth, found.replace(covariances=None), measures=NAMES)
    assert math.isnan(alone.summary()["NLL"])
    assert math.isnan(alone.summary()["Spearman"])
    assert alone.summary()["energy"] == pytest.approx(np.linalg.norm(alone.matched_pairs.residuals, axis=1).mean())
    assert Note("plain-pairs", 14, total=14) in alone.notes


def test_singular_covariances_have_no_density() -> None:
    truth, found = world()
    covariances = np.array(found.covariances)
    hit = probox.evaluate(truth, found, measures=["nll"]).matched_pairs.detections[0]
    covariances[hit, 0] = [[4.0, 6.0], [6.0, 9.0]]
    result = probox.evaluate(truth, found.replace(covariances=covariances), measures=["nll", "coverage"])
    assert result.summary()["NLL_pairs"] == 13
    assert math.isfinite(result.summary()["NLL"])
    assert Note("singular-pairs", 1, total=14) in result.notes


def test_truncated_edges_are_left_out_of_edges_numbers() -> None:
    result = probox.evaluate(*scene(), measures=["crps", "coverage", "nees", "sharpness"])
    pairs = result.matched_pairs
    assert pairs.truncated.sum() > 0
    numbers = result.summary()
    kept = ~pairs.truncated
    assert numbers["sharpness"] == pytest.approx(math.sqrt(pairs.variances[kept].mean()))
    edges = Note("edges-on-border", pairs.truncated.sum(), total=8)
    assert edges in result.notes
    assert Note("overlap-cut", least=0.5) in result.notes


def test_truncated_edges_with_a_sigma_are_left_out_too() -> None:
    spread = np.broadcast_to(np.array([[4.0, 1.0], [1.0, 9.0]]), (5, 2, 2, 2))
    result = probox.evaluate(*scene(covariances=spread), measures=["coverage", "ause", "ence", "pit"])
    pairs, numbers = result.matched_pairs, result.summary()
    kept = ~pairs.truncated
    assert 0 < kept.sum() < kept.size
    assert not pairs.plain.any()
    r, sigmas = pairs.residuals[kept], np.sqrt(pairs.variances[kept])
    sides = pairs.sides[:, [0, 1, 0, 1]][kept]
    assert numbers["coverage_50"] == pytest.approx(
        calibration_metrics.coverage(calibration_metrics.edge_levels(r, sigmas), 0.5)
    )
    assert numbers["AUSE"] == pytest.approx(calibration_metrics.ause(sigmas / sides, np.abs(r) / sides))
    column = np.flatnonzero(pairs.truncated.any(axis=0))[0]
    own = kept[:, column]
    expected = score_definition.ence(
        pairs.residuals[own, column].tolist(), np.sqrt(pairs.variances[own, column]).tolist(), 5
    )
    assert numbers[f"ENCE/5w_{EDGES[column]}"] == pytest.approx(expected)
    errors, stds = pairs.residuals[~kept], np.sqrt(pairs.variances[~kept])
    inside = calibration_metrics.coverage(calibration_metrics.edge_levels(errors, stds), 0.68)
    factor = calibration_metrics.error_factor(errors / stds)
    note = f"{100 * inside:.1f}% of them are in their 68% interval, errors are {factor:.2g} times their std"
    assert any(str(own).endswith(note) for own in result.notes)


def test_a_class_that_is_held_impossible_is_told() -> None:
    truth, found = world()
    probs = np.array(found.label_probs)
    result = probox.evaluate(truth, found, measures=["ignorance"])
    pairs = result.matched_pairs
    row = pairs.detections[0]
    named = int(probs[row].argmax())
    stated = np.array(probs.argmax(axis=1), np.int32)
    probs[row] = 0.0
    probs[row, (named + 1) % 3] = 0.4
    changed = found.replace(label_probs=probs, labels=stated, scores=found.label_probs.max(axis=1).astype(float))
    odd = probox.evaluate(truth, changed, measures=["ignorance"])
    numbers = odd.summary()
    assert numbers["ignorance"] == math.inf
    assert numbers["ignorance_impossible"] == 1
    rest = np.setdiff1d(np.arange(14), [0])
    expected = -np.log(pairs.label_probs[rest, pairs.labels[rest]].astype(float)).mean()
    assert numbers["ignorance_possible"] == pytest.approx(expected)
    assert any(
        note.startswith("1 of 14 matched pairs gives the true class a probability of 0")
        for note in tuple(map(str, odd.notes))
    )


def test_results_without_label_probabilities_say_so(golden: Evaluation) -> None:
    old = dataclasses.replace(golden, detections=golden.detections.replace(label_probs=None))
    numbers = old.summary()
    assert all(math.isnan(numbers[key]) for key in ("Brier", "ignorance", "OCE@50", "OCE@75", "MUE@50_entropy"))
    assert numbers["MUE@50"] == golden.summary()["MUE@50"]
    for what in ("to score labels", "for OCE", "for MUE by entropy"):
        assert Note("label-probs-not-kept", purpose=what) in old.notes


def test_crowds_and_unknown_classes_are_left_out_and_counted() -> None:
    truth, found = scene()
    result = probox.evaluate(truth, found, measures=["d-ece", "qgc", "mue"])
    assert Note("crowds-not-calibrated", 1, total=5) in result.notes
    hits = np.array([True, False, False, True])
    scores = result.detections.scores[[0, 1, 2, 4]]
    assert result.summary()["D-ECE@50/10w"] == pytest.approx(score_definition.d_ece(scores.tolist(), hits.tolist(), 10))
    assert result.summary()["QGC@50"] == pytest.approx(score_definition.qgc(scores.tolist(), hits.tolist(), 0))
    assert result.summary()["MUE@50"] == pytest.approx(score_definition.mue((1 - scores).tolist(), hits.tolist()))
    alien = found.replace(classes=["cup", "alien"], label_probs=[*found.label_probs[:4], [0.0, 0.5]])
    notes = probox.evaluate(truth, alien, measures=["d-ece"]).notes
    text = Note("unnamed-not-calibrated", 1, total=5)
    assert text in notes


def test_those_beyond_the_best_hundred_are_left_out_and_counted() -> None:
    truth, found = scene()
    many = found.take(np.zeros(103, np.int64))
    result = probox.evaluate(truth, many, measures=["d-ece"])
    assert Note("surplus-not-calibrated", 3, total=103, most=100) in result.notes


def test_the_command_line_says_what_plain_boxes_lack(demo_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(
            [
                "evaluate",
                str(demo_files / "truth.json"),
                str(demo_files / "deterministic.json"),
                "--measures",
                "nll,d-ece",
            ]
        )
    out, words = capsys.readouterr()
    assert done.value.code == 0
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows[1:3]] == ["NLL", "D-ECE"]
    assert rows[1][-1] == "-"
    assert str(Note("plain-pairs", 134, total=134)) in words
    assert "only 0 pairs" not in words


def test_a_class_without_objects_is_not_in_the_mean_of_classes() -> None:
    truth, found = world()
    fewer = truth.take(np.flatnonzero(truth.labels != 1))
    result = probox.evaluate(fewer, found, measures=["laece", "laace"])
    scores, labels = result.detections.scores, result.detections.labels
    ious = np.zeros(len(scores))
    ious[result.matched_pairs.detections] = result.matched_pairs.ious
    kept = labels != 1
    assert 0 < kept.sum() < len(kept)
    lists = scores[kept].tolist(), ious[kept].tolist(), labels[kept].tolist()
    assert result.summary()["LaACE@50"] == pytest.approx(score_definition.laace(*lists))
    assert result.summary()["LaECE@50/25w"] == pytest.approx(score_definition.laece(*lists, 25))


def test_crowds_are_no_objects_of_oce() -> None:
    truth, found = scene()
    numbers = probox.evaluate(truth, found, measures=["oce"]).summary()
    alone = probox.evaluate(truth.take(np.flatnonzero(~truth.crowd)), found, measures=["oce"]).summary()
    every = probox.evaluate(truth.replace(crowd=np.zeros(3, bool)), found, measures=["oce"]).summary()
    assert numbers == alone
    assert numbers["OCE@50"] != pytest.approx(every["OCE@50"])


BOXES = [[10.0, 12.0, 30.0, 40.0], [2.0, 2.0, 9.0, 9.0]]


def labelled(classes: tuple[str, ...], probs: list[list[float]]) -> Evaluation:
    """Evaluate labels of two boxes, of which the first is a cup."""
    truth = probox.GroundTruth.from_boxes(classes, {1: (64, 48)}, [1], BOXES[:1], [0])
    found = probox.Detections(classes=classes, image_ids=[1, 1], boxes=BOXES, label_probs=probs)
    return probox.evaluate(truth, found, measures=["brier", "ignorance", "oce", "mue"])


def test_what_scores_alone_leave_is_said_once() -> None:
    text = Note("scores-alone", 1, total=2)
    result = labelled(("cup", "dog", "hat"), [[0.8, 0.1, 0.1], [0.4, 0.4, 0.2]])
    assert [note for note in result.notes if note.code == "scores-alone"] == [text]
    assert result.summary()["Brier"] == pytest.approx(0.2**2 + 2 * 0.1**2)
    for measure in OURS:
        if measure.name in ("brier", "ignorance", "oce", "mue"):
            assert measure.notes is not None
            # The true class of a pair is the named one: ignorance never looks at what was spread.
            assert (text in measure.notes(result)) == (measure.name != "ignorance"), measure.name
    assert result.summary()["ignorance"] == pytest.approx(-np.log(0.8))
    honest = labelled(("cup", "dog", "hat"), [[0.8, 0.15, 0.05], [0.4, 0.4, 0.2]])
    assert not any(note.code == "scores-alone" for note in honest.notes)


@pytest.mark.parametrize("name", ["background", "__bg__", "None"])
def test_a_class_that_means_background_is_no_wrong_class(name: str) -> None:
    listed = labelled(("cup", name, "dog"), [[0.6, 0.3, 0.05], [0.2, 0.7, 0.1]]).summary()
    left = labelled(("cup", "hat", "dog"), [[0.6, 0.0, 0.05], [0.2, 0.0, 0.1]]).summary()
    assert listed["Brier"] == pytest.approx(0.4**2 + 0.05**2)
    assert listed["OCE@50"] == pytest.approx(0.4**2 + 0.05**2)
    for key in ("Brier", "OCE@50", "OCE@75", "ignorance", "MUE@50_entropy"):
        assert listed[key] == pytest.approx(left[key]), key


def test_a_background_that_is_listed_is_one_with_what_is_left() -> None:
    """Half background in its column or left over, or a quarter of each: as unsure as another."""
    result = labelled(("cup", "background", "dog"), [[0.5, 0.25, 0.0], [0.5, 0.5, 0.0]])
    rows = detection_measures._with_uncertainties(result)
    assert rows["entropy"].tolist() == pytest.approx([math.log(2)] * 2)
