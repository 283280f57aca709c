"""Loss breakdown of PDQ, PDQ after hypothetical repairs (what-if), and the confusion matrix.

With N = TP + FP + FN and the pairwise quality q of each true positive,

    1 = PDQ + FN / N + FP / N + sum over true positives of (1 - q) / N.

A true positive's loss is 1 - q = 1 - L^w (F B)^(1 - w), with label, foreground and background quality L, F and B, and
the label's weight w (0.5). The attribution depends on the order of the factors, so each factor gets its mean over all
orders, the Shapley value. The three values add up to the loss.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np

from probox.analysis.baseline import Rescorer
from probox.analysis.thresholds import BestThreshold
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import PAIR_IOU
from probox.measures.matched import overlaps
from probox.measures.measure import Judged
from probox.support.types import Bools, Floats, Ints
from probox.tables.flat import FlatTable, Readable, text_column
from probox.tables.results import Verdict

PARTS = {
    "missed": "missed objects",
    "false_positives": "false positives",
    "label": "labels",
    "foreground": "foreground",
    "background": "background",
    "rounding": "rounding",
}
"""Causes of loss, and their names in text."""


@dataclasses.dataclass(frozen=True)
class Budget:
    """Loss breakdown of PDQ: fractions of 1 that add up to 1.

    Parameters
    ----------
    pdq : float
        PDQ.
    missed, false_positives : float
        FN / N and FP / N.
    label, foreground, background : float
        Loss of true positives by cause: wrong or uncertain labels, missing probability on object pixels, and
        probability on background pixels.
    rounding : float
        Effect of conventions that round qualities near 0 and 1; below 1e-5.
    """

    pdq: float
    missed: float
    false_positives: float
    label: float
    foreground: float
    background: float
    rounding: float

    @property
    def lost(self) -> float:
        """Return the total loss, 1 - PDQ."""
        return math.fsum(getattr(self, name) for name in PARTS)

    def to_dict(self) -> dict[str, float]:
        """Return the fractions by name."""
        return dataclasses.asdict(self)


def compute_budget(evaluation: Judged) -> Budget:
    """Return the loss breakdown of an evaluation; NaN if there is nothing to score.

    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> budget = compute_budget(probox.evaluate(demo.truth, demo.detectors["deterministic"]))
    >>> abs(budget.pdq + budget.lost - 1) < 1e-12
    True
    """
    if isinstance(evaluation, Evaluation) and not evaluation.has_pairs:
        raise InputError("PDQ was not measured", remedy="evaluate again with {option:measures=all}")
    found, convention = evaluation.detections, evaluation.convention
    hit, wrong = found.verdicts == Verdict.TP, found.verdicts == Verdict.FP
    missed = int((evaluation.objects.verdicts == Verdict.FN).sum())
    false = math.fsum(found.costs[wrong].tolist()) if convention.confidence_denominator else int(wrong.sum())
    counted = int(hit.sum()) + false + missed
    if not counted:
        return Budget(*[math.nan] * 7)
    quality = found.quality("pPDQ")[hit]
    weight = convention.label_weight
    losses = shapley_losses(
        np.stack(
            [
                found.quality("label")[hit].astype(np.float64) ** weight,
                found.quality("foreground")[hit] ** (1.0 - weight),
                found.quality("background")[hit] ** (1.0 - weight),
            ],
            axis=1,
        )
    )
    sums = [math.fsum(column) for column in losses.T]
    rest = math.fsum([*(1.0 - quality), *(-losses.ravel())])
    shares = [math.fsum(quality), missed, false, *sums, rest]
    return Budget(*(share / counted for share in shares))


def shapley_losses(factors: Floats) -> Floats:
    """Return the Shapley value of each of three factors in 1 minus their product, (K, 3).

    For factors a, b, c, averaged over all orders of multiplication, the value of a is

        (1 - a) (1/3 + (b + c) / 6 + b c / 3).

    >>> shapley_losses(np.array([[0.25, 1.0, 1.0]])).tolist()
    [[0.75, 0.0, 0.0]]
    """
    b, c = np.roll(factors, -1, axis=1), np.roll(factors, -2, axis=1)
    return np.asarray((1.0 - factors) * (1.0 / 3.0 + (b + c) / 6.0 + b * c / 3.0))


TITLES = {
    "no_false_positives": "no false positives",
    "no_duplicates": "no duplicates",
    "best_threshold": "best threshold",
    "labels_right": "correct labels",
    "best_scale": "best std scale",
    "calibrating_scale": "std times the error factor",
    "best_constant": "best constant std",
    "kept_inside": "edges pinned at the border",
    "truth_boxes": "ground-truth boxes",
}
"""Names of repairs in tables of several results."""


@dataclasses.dataclass(frozen=True)
class WhatIf:
    """PDQ after one hypothetical repair.

    Parameters
    ----------
    key : str
        Its name in JSON.
    words : str
        What is repaired.
    pdq : float
        PDQ after the repair.
    gain : float
        Gain in PDQ.
    """

    key: str
    words: str
    pdq: float
    gain: float


def what_if(evaluation: Evaluation, key: str, words: str, pdq: float) -> WhatIf:
    """Return a repair with its PDQ and its gain."""
    return WhatIf(key, words, pdq, pdq - evaluation.pdq)


def what_if_matched(evaluation: Evaluation, best: BestThreshold | None) -> list[WhatIf]:
    """Return repairs that remove detections and repeat only the matching, without pixels."""
    duplicates = find_duplicates(evaluation)
    without_false = evaluation.keeping(evaluation.detections.verdicts != Verdict.FP).pdq
    repeats = f"no duplicates of detected objects ({int(duplicates.sum()):,})"
    answers = [
        what_if(evaluation, "no_false_positives", "no false positives", without_false),
        what_if(evaluation, "no_duplicates", repeats, evaluation.keeping(~duplicates).pdq),
    ]
    if best is not None:
        words = "no label threshold is better"
        if best.threshold is not None:
            words = f"label threshold {best.threshold:.3g} (chosen on these images)"
        answers.append(what_if(evaluation, "best_threshold", words, best.value))
    return answers


def sort_answers(answers: Sequence[WhatIf]) -> list[WhatIf]:
    """Return repairs by descending gain; ties follow the order of `TITLES`."""
    order = {key: place for place, key in enumerate(TITLES)}
    placed = sorted(answers, key=lambda answer: order.get(answer.key, len(order)))
    return sorted(placed, key=lambda answer: -answer.gain)


def find_duplicates(evaluation: Evaluation) -> Bools:
    """Return the false positives that duplicate a match: IoU of at least 0.5 with a matched object of their class."""
    found, there = evaluation.detections, evaluation.objects
    rows, objects = find_would_be_duplicates(evaluation)
    again = (found.verdicts[rows] == Verdict.FP) & (there.verdicts[objects] == Verdict.TP)
    twice = np.zeros(len(found), bool)
    twice[rows[again]] = True
    return twice


def find_would_be_duplicates(evaluation: Evaluation) -> tuple[Ints, Ints]:
    """Return the pairs that are duplicates if the detection is a false positive and the object is matched."""
    pairs, found, there = evaluation.pairs, evaluation.detections, evaluation.objects
    named = found.labels[pairs.detections] == there.labels[pairs.objects]
    rows, objects = pairs.detections[named], pairs.objects[named]
    near = overlaps(found, there, rows, objects) >= PAIR_IOU
    return rows[near], objects[near]


def score_true_boxes(evaluation: Evaluation, scene: Rescorer) -> float:
    """Return PDQ if each true positive had the box of its object's mask, without variance."""
    found = evaluation.detections
    hit = np.asarray(found.verdicts == Verdict.TP)
    boxes = evaluation.objects.mask_boxes[found.partners[hit]]
    return scene.with_rows(evaluation, hit, boxes=boxes, covariances=None, extents=None).pdq


BACKGROUND = "background"
"""The predicted class of a missed object, and the true class of a false positive."""

UNNAMED = "unknown class"
"""The predicted class of detections whose class the ground truth does not have."""


@dataclasses.dataclass(frozen=True, eq=False)
class Confusion(Readable):
    """Confusion matrix of PDQ's matches; as a table, one row per pair of true and predicted class.

    Only pairs that occur are kept, since the full matrix of many classes would not fit into memory.

    Parameters
    ----------
    classes : tuple of str
        Classes of the ground truth.
    truth, predicted : (K,) int64
        True and predicted class as indices of `classes`. The index C = ``len(classes)`` is background, and C + 1 in
        `predicted` is a class that the ground truth does not have.
    counts : (K,) int64
        Counts; those of repeated pairs add up.
    """

    classes: tuple[str, ...]
    truth: Ints
    predicted: Ints
    counts: Ints

    @property
    def matrix(self) -> Ints:
        """Return the counts as an array (C + 1, C + 1).

        Rows are true classes, columns predicted classes, both in the order of `classes`, then background. The
        diagonal holds matches of the right class, the last column missed objects, the last row false positives.
        """
        return self.among(range(len(self.classes) + 1))

    @property
    def unnamed(self) -> Ints:
        """Return the number of detections of unknown classes by true class, (C + 1,); the last are false positives."""
        return self._sums(self.truth, self.predicted > len(self.classes))

    def among(self, classes: Iterable[int]) -> Ints:
        """Return the matrix of a subset of classes, in ascending order."""
        chosen = np.asarray(list(classes), np.int64)
        place = np.full(len(self.classes) + 2, -1)
        place[chosen] = np.arange(len(chosen))
        row, column = place[self.truth], place[self.predicted]
        inside = (row >= 0) & (column >= 0)
        matrix = np.zeros((len(chosen), len(chosen)), np.int64)
        np.add.at(matrix, (row[inside], column[inside]), self.counts[inside])
        return matrix

    def _sums(self, labels: Ints, chosen: Bools) -> Ints:
        """Return the sums of chosen counts by class, background last."""
        sums = np.zeros(len(self.classes) + 1, np.int64)
        np.add.at(sums, labels[chosen], self.counts[chosen])
        return sums

    @property
    def _background(self) -> tuple[Bools, Bools]:
        """Return masks of entries without object and without detection."""
        return self.truth == len(self.classes), self.predicted == len(self.classes)

    @property
    def tp(self) -> int:
        """Return the number of matched detections, regardless of their predicted class."""
        no_object, no_detection = self._background
        return int(self.counts[~no_object & ~no_detection].sum())

    @property
    def fp(self) -> int:
        """Return the number of unmatched detections."""
        return int(self.counts[self._background[0]].sum())

    @property
    def fn(self) -> int:
        """Return the number of missed objects."""
        return int(self.counts[self._background[1]].sum())

    def row_sums(self) -> Ints:
        """Return the number of objects of each class and, last, of false positives."""
        return self._sums(self.truth, np.ones(len(self.truth), bool))

    def shares(self) -> Floats:
        """Return the matrix divided by its row sums, which include `unnamed`; NaN for empty rows."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.matrix / self.row_sums()[:, None], dtype=np.float64)

    def count_mixed(self) -> Ints:
        """Return the number of matches of different classes that involve each class, as true or predicted class."""
        no_object, no_detection = self._background
        other = ~no_object & ~no_detection & (self.truth != self.predicted)
        named = other & (self.predicted < len(self.classes))
        return (self._sums(self.truth, other) + self._sums(self.predicted, named))[:-1]

    def most_confused(self, most: int) -> list[int]:
        """Return the indices of the most confused classes, in the order of `classes`.

        Ties go to classes with more objects and detections; classes with neither are excluded.
        """
        mixed = self.count_mixed()
        named = self.predicted < len(self.classes)
        size = (self.row_sums() + self._sums(self.predicted, named))[:-1]
        order = sorted(np.flatnonzero(size).tolist(), key=lambda row: (-mixed[row], -size[row], row))
        return sorted(order[:most])

    def flat(self) -> FlatTable:
        """Return ``truth``, ``predicted`` and ``count`` of all entries by descending count."""
        whole = _count_confusion(self.classes, self.truth, self.predicted, self.counts)
        order = np.lexsort((whole.predicted, whole.truth, -whole.counts))
        names = (*self.classes, BACKGROUND, UNNAMED)
        return FlatTable(
            {
                "truth": text_column(names[row] for row in whole.truth[order].tolist()),
                "predicted": text_column(names[row] for row in whole.predicted[order].tolist()),
                "count": whole.counts[order],
            }
        )

    def __repr__(self) -> str:
        return f"Confusion({len(self.classes)} classes; TP {self.tp:,}, FP {self.fp:,}, FN {self.fn:,})"

    def __str__(self) -> str:
        return str(self.flat())


def confusion(evaluation: Evaluation) -> Confusion:
    """Return the confusion matrix of PDQ's matches; its counts agree with TP, FP and FN.

    A matched detection counts under its object's class and its predicted class. PDQ never matches a detection to an
    object whose class has probability 0. Detectors with a single class per detection therefore confuse no classes here:
    a wrong class is a false positive and a missed object. Objects that PDQ ignores, and their matches, are excluded.

    Parameters
    ----------
    evaluation : Evaluation
        A result with PDQ among its metrics. Also as `Evaluation.confusion`.

    Returns
    -------
    Confusion
        The matrix, also as a table.

    Examples
    --------
    >>> from probox import Detections, GroundTruth, evaluate
    >>> boxes = [[10, 10, 29, 29], [50, 10, 69, 29], [10, 50, 29, 69]]
    >>> truth = GroundTruth.from_boxes(["cup", "dog"], {7: (99, 99)}, [7, 7, 7], boxes, [0, 1, 1])
    >>> probs = [[0.4, 0.6], [0.1, 0.9]]
    >>> found = Detections(classes=["cup", "dog"], image_ids=[7, 7], boxes=boxes[:2], label_probs=probs)
    >>> mixed = evaluate(truth, found).confusion()
    >>> mixed.matrix.tolist()
    [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    >>> print(mixed)
    truth  predicted   count
    cup    dog             1
    dog    dog             1
    dog    background      1
    """
    if not evaluation.has_pairs:
        raise InputError("PDQ was not measured", remedy="evaluate again with {option:measures=all}")
    found, there = evaluation.detections, evaluation.objects
    classes = len(evaluation.classes)
    named = np.where(found.labels >= 0, found.labels, classes + 1)
    hit, wrong = found.verdicts == Verdict.TP, found.verdicts == Verdict.FP
    missed = there.labels[there.verdicts == Verdict.FN]
    truth = np.concatenate([there.labels[found.partners[hit]], np.full(int(wrong.sum()), classes), missed])
    predicted = np.concatenate([named[hit], named[wrong], np.full(len(missed), classes)])
    return _count_confusion(evaluation.classes, truth, predicted, np.ones(len(truth), np.int64))


def _count_confusion(classes: tuple[str, ...], truth: Ints, predicted: Ints, counts: Ints) -> Confusion:
    """Return the matrix with each pair of classes once."""
    columns = len(classes) + 2
    cells, place = np.unique(truth.astype(np.int64) * columns + predicted, return_inverse=True)
    sums = np.zeros(len(cells), np.int64)
    np.add.at(sums, place.reshape(-1), counts)
    return Confusion(classes, cells // columns, cells % columns, sums)
