"""Mutants of the assignment, and of PDQ as an average over a dataset."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.mutants.mutant import Broken, Mutant, swapped
from probox.measures.pdq import definition as pdq
from probox.measures.pdq.definition import ImageScore, Score
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["OF_SCORES"]

Floats = npt.NDArray[Any]
Pairs = list[tuple[int, int]]


def _in_turn(overall: Floats, order: npt.NDArray[np.int64]) -> Pairs:
    """Return the pairs if each detection, in this order, takes the best remaining object."""
    left, chosen = overall.copy(), []
    for column in order.tolist():
        row = int(left[:, column].argmax()) if len(left) else 0
        if len(left) and left[row, column] > 0:
            chosen.append((row, column))
            left[row, :] = 0.0
    return sorted(chosen)


def _many_to_one(overall: Floats, how: str) -> Pairs:
    if not len(overall):
        return []
    return sorted((int(row), column) for column, row in enumerate(overall.argmax(axis=0)) if overall[row, column] > 0)


def _assigned(choose: Callable[[dict[str, Floats], Floats, Callable[[Floats], Pairs]], Pairs]) -> Broken:
    """Change the assignment: `choose` gets all tables of an image, label probabilities and the original function."""

    def broken(true: Any) -> Any:
        def score_image(
            masks: Any, heatmaps: Any, label_probs: Any, classes: Any, convention: Any, **options: Any
        ) -> ImageScore:
            tables = pdq.pair_tables(masks, heatmaps, label_probs, classes, convention)
            pairs = choose(tables, np.asarray(label_probs), pdq.assign)
            kept = [pair for pair in pairs if tables["overall"][pair] > 0]
            with swapped(pdq, "assign", lambda overall, how: kept):
                score: ImageScore = true(masks, heatmaps, label_probs, classes, convention, **options)
            return score

        return score_image

    return broken


def _by_confidence(tables: dict[str, Floats], probs: Floats, true: Callable[[Floats], Pairs]) -> Pairs:
    return _in_turn(tables["overall"], np.argsort(-probs.max(axis=1, initial=0.0), kind="stable"))


def _score(change: Callable[[Score], float]) -> Broken:
    """Change PDQ, given all counts; division by zero gives NaN."""

    def broken(true: Any) -> Any:
        def evaluate(*given: Any) -> Score:
            score: Score = true(*given)
            return score._replace(pdq=change(score))

        return evaluate

    return broken


def _over(counted: Callable[[Score], float]) -> Broken:
    """Change the denominator of PDQ."""
    return _score(lambda score: _total(score) / counted(score) if counted(score) else math.nan)


def _total(score: Score) -> float:
    return math.fsum(match.overall for image in score.images for match in image.matches)


def _per_image(score: Score) -> float:
    numbers = []
    for image in score.images:
        counted = len(image.matches) + len(image.false_positives) + len(image.false_negatives)
        if counted:
            numbers.append(math.fsum(match.overall for match in image.matches) / counted)
    return float(np.mean(numbers)) if numbers else math.nan


def _duplicates(score: Score) -> int:
    """Return the number of false positives with a quality above 0 with an object matched by another detection."""
    count = 0
    for image in score.images:
        for column in image.false_positives:
            count += bool((image.tables["overall"][:, column] > 0).any())
    return count


def _without_empty_images(score: Score) -> float:
    with_objects = [image for image in score.images if image.matches or image.false_negatives]
    return score.tp + score.fn + sum(len(image.false_positives) for image in with_objects)


def _of_all(true: Any) -> Any:
    """Average the qualities over all objects, including missed ones."""

    def evaluate(*given: Any) -> Score:
        score: Score = true(*given)
        share = score.tp / (score.tp + score.fn) if score.tp else math.nan
        names = ("overall", "spatial", "label", "fg", "bg")
        return score._replace(**{name: getattr(score, name) * share for name in names})

    return evaluate


def _changed(change: Callable[[Score], dict[str, Any]]) -> Broken:
    """Change other values of the score."""

    def broken(true: Any) -> Any:
        def evaluate(*given: Any) -> Score:
            score: Score = true(*given)
            return score._replace(**change(score))

        return evaluate

    return broken


def _convention(**changes: Any) -> Broken:
    """Change the convention for all steps."""

    def broken(true: Any) -> Any:
        def evaluate(truth: GroundTruth, found: Detections, convention: Any) -> Score:
            score: Score = true(truth, found, convention.replace(**changes))
            return score

        return evaluate

    return broken


OF_SCORES: tuple[Mutant, ...] = (
    Mutant(
        "greedy",
        "The best remaining pair is taken repeatedly.",
        "pdq.assign",
        lambda true: lambda overall, how: true(overall, "greedy"),
    ),
    Mutant(
        "in-order",
        "Each detection, in the order of the table, takes the best remaining object.",
        "pdq.assign",
        lambda true: lambda overall, how: _in_turn(overall, np.arange(overall.shape[1])),
    ),
    Mutant(
        "by-confidence",
        "Each detection, the most confident first, takes the best remaining object.",
        "pdq.score_image",
        _assigned(_by_confidence),
    ),
    Mutant(
        "by-place",
        "The assignment uses spatial quality only.",
        "pdq.score_image",
        _assigned(lambda tables, probs, true: true(tables["spatial"])),
    ),
    Mutant(
        "by-label",
        "The assignment uses label quality only.",
        "pdq.score_image",
        _assigned(lambda tables, probs, true: true(tables["label"] * (tables["spatial"] > 0))),
    ),
    Mutant("many-to-one", "An object may have any number of detections.", "pdq.assign", lambda true: _many_to_one),
    Mutant(
        "pairs-above-0.1",
        "A pair of pPDQ below 0.1 is no match.",
        "pdq.assign",
        lambda true: lambda overall, how: [pair for pair in true(overall, how) if overall[pair] >= 0.1],
    ),
    Mutant("no-false-positives", "False positives do not count.", "pdq.evaluate", _over(lambda s: s.tp + s.fn)),
    Mutant("no-false-negatives", "Missed objects do not count.", "pdq.evaluate", _over(lambda s: s.tp + s.fp)),
    Mutant("true-positives-only", "PDQ is the mean pPDQ of true positives.", "pdq.evaluate", _over(lambda s: s.tp)),
    Mutant(
        "larger-of-both",
        "The larger of FP and FN counts, not their sum.",
        "pdq.evaluate",
        _over(lambda s: s.tp + max(s.fp, s.fn)),
    ),
    Mutant(
        "half-false-positives", "A false positive counts half.", "pdq.evaluate", _over(lambda s: s.tp + s.fp / 2 + s.fn)
    ),
    Mutant(
        "half-false-negatives", "A missed object counts half.", "pdq.evaluate", _over(lambda s: s.tp + s.fp + s.fn / 2)
    ),
    Mutant(
        "halves-of-both",
        "False positives and missed objects count half, as in an F1 score.",
        "pdq.evaluate",
        _over(lambda s: s.tp + (s.fp + s.fn) / 2),
    ),
    Mutant(
        "confidence-counts",
        "A false positive counts with its highest label probability as weight.",
        "pdq.evaluate",
        _convention(confidence_denominator=True),
    ),
    Mutant(
        "duplicates-forgiven",
        "A false positive that overlaps an object does not count.",
        "pdq.evaluate",
        _over(lambda s: s.tp + s.fp + s.fn - _duplicates(s)),
    ),
    Mutant(
        "empty-images-left-out",
        "Detections in images without objects do not count.",
        "pdq.evaluate",
        _over(_without_empty_images),
    ),
    Mutant("mean-over-images", "PDQ is the mean of the PDQ of images.", "pdq.evaluate", _score(_per_image)),
    Mutant("rounded", "PDQ is rounded to a hundredth.", "pdq.evaluate", _score(lambda s: round(s.pdq, 2))),
    Mutant("pdq-root", "PDQ is its square root.", "pdq.evaluate", _score(lambda s: math.sqrt(s.pdq))),
    Mutant(
        "score-above-0.5",
        "Detections whose highest label probability is at most 0.5 are left out.",
        "pdq.evaluate",
        _convention(label_threshold=0.5),
    ),
    Mutant("small-left-out", "Small objects are ignored.", "pdq.evaluate", _convention(object_filter=True)),
    Mutant("boxes-for-masks", "An object is all of its box.", "pdq.evaluate", _convention(box_truth=True)),
    Mutant("qualities-of-all", "Qualities are averaged over missed objects too.", "pdq.evaluate", _of_all),
    Mutant(
        "averages-exchanged",
        "The averages of spatial and label quality are exchanged; PDQ stays.",
        "pdq.evaluate",
        _changed(lambda s: {"spatial": s.label, "label": s.spatial}),
    ),
    Mutant(
        "counts-exchanged",
        "The numbers of false positives and missed objects are exchanged; PDQ stays.",
        "pdq.evaluate",
        _changed(lambda s: {"fp": s.fn, "fn": s.fp}),
    ),
)
