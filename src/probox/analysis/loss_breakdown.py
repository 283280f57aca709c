"""Where PDQ was lost: shares of causes, repairs and their gain, and classes that are mixed up.

With N = TP + FP + FN and the pairwise quality q of each true positive,

    1 = PDQ + FN / N + FP / N + sum over true positives of (1 - q) / N.

A true positive's loss is 1 - q = 1 - L^w (F B)^(1 - w): label, foreground and background quality, w the label's weight
(0.5). Which of the three is to blame depends on the order in which one looks at them, so each gets the mean of what it
takes over all orders, its Shapley value; the three add up to the loss.
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
from probox.measures.boxes.matching import IOU_THRESHOLDS
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
"""Where points can go, and what to call it."""


@dataclasses.dataclass(frozen=True)
class Budget:
    """Shares of 1 that add up to 1.

    Parameters
    ----------
    pdq : float
        What was reached.
    missed, false_positives : float
        FN / N and FP / N.
    label, foreground, background : float
        What true positives lack, by its cause: unsure or wrong labels, pixels of the object that are not claimed, and
        pixels around it that are.
    rounding : float
        What conventions that round qualities near 0 and 1 give or take; below 1e-5.
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
        """Return everything that is lost: 1 - PDQ."""
        return math.fsum(getattr(self, name) for name in PARTS)

    def to_dict(self) -> dict[str, float]:
        """Return the shares by name."""
        return dataclasses.asdict(self)


def compute_budget(evaluation: Judged) -> Budget:
    """Return where the points of an evaluation went; NaN where there is nothing to score.

    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> budget = compute_budget(probox.evaluate(demo.truth, demo.detectors["deterministic"]))
    >>> abs(budget.pdq + budget.lost - 1) < 1e-12
    True
    """
    if isinstance(evaluation, Evaluation) and not evaluation.has_pairs:
        raise InputError("PDQ was not measured, so no points are lost", remedy="evaluate with PDQ among the measures")
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
    """Return how much each of three factors takes from 1, (K, 3); a row adds up to 1 minus the row's product.

    For factors a, b, c the mean over all orders in which they are multiplied is, for a,

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
    "labels_right": "labels right",
    "best_scale": "best scale of sigma",
    "calibrating_scale": "std times the error factor",
    "best_constant": "best constant sigma",
    "kept_inside": "edges pinned at the border",
    "truth_boxes": "truth's boxes",
}
"""What each repair is called where results stand side by side."""


@dataclasses.dataclass(frozen=True)
class WhatIf:
    """PDQ after one repair.

    Parameters
    ----------
    key : str
        Its name in JSON.
    words : str
        What was repaired.
    pdq : float
        PDQ then.
    gain : float
        What that is more than now.
    """

    key: str
    words: str
    pdq: float
    gain: float


def what_if(evaluation: Evaluation, key: str, words: str, pdq: float) -> WhatIf:
    """Return the answer of a repair that gives this PDQ."""
    return WhatIf(key, words, pdq, pdq - evaluation.pdq)


def what_if_matched(evaluation: Evaluation, best: BestThreshold | None) -> list[WhatIf]:
    """Return what can be told without looking at pixels: other detections left out, matched anew."""
    twice = find_duplicates(evaluation)
    without_false = evaluation.keeping(evaluation.detections.verdicts != Verdict.FP).pdq
    repeats = f"without duplicates of found objects ({int(twice.sum()):,})"
    answers = [
        what_if(evaluation, "no_false_positives", "no false positives", without_false),
        what_if(evaluation, "no_duplicates", repeats, evaluation.keeping(~twice).pdq),
    ]
    if best is not None:
        said = "no threshold is better"
        if best.threshold is not None:
            said = f"labels above {best.threshold:.3g} only (chosen on these images)"
        answers.append(what_if(evaluation, "best_threshold", said, best.value))
    return answers


def sort_answers(answers: Sequence[WhatIf]) -> list[WhatIf]:
    """Return answers from the largest gain down, equal ones in the order of `TITLES`."""
    order = {key: place for place, key in enumerate(TITLES)}
    placed = sorted(answers, key=lambda answer: order.get(answer.key, len(order)))
    return sorted(placed, key=lambda answer: -answer.gain)


def find_duplicates(evaluation: Evaluation) -> Bools:
    """Return the false positives that repeat another detection.

    They name the class of an object that another detection was matched with, and overlap it by half or more.
    """
    found, there = evaluation.detections, evaluation.objects
    rows, objects = find_would_be_duplicates(evaluation)
    again = (found.verdicts[rows] == Verdict.FP) & (there.verdicts[objects] == Verdict.TP)
    twice = np.zeros(len(found), bool)
    twice[rows[again]] = True
    return twice


def find_would_be_duplicates(evaluation: Evaluation) -> tuple[Ints, Ints]:
    """Return the rows of detections and objects whose pairs are duplicates if the one is false and the other found."""
    pairs, found, there = evaluation.pairs, evaluation.detections, evaluation.objects
    named = found.labels[pairs.detections] == there.labels[pairs.objects]
    rows, objects = pairs.detections[named], pairs.objects[named]
    near = overlaps(found, there, rows, objects) >= IOU_THRESHOLDS[0]
    return rows[near], objects[near]


def score_true_boxes(evaluation: Evaluation, scene: Rescorer) -> float:
    """Return PDQ if each true positive were the box of its object's pixels, and sure of it."""
    found = evaluation.detections
    hit = np.asarray(found.verdicts == Verdict.TP)
    boxes = evaluation.objects.mask_boxes[found.partners[hit]]
    return scene.with_rows(evaluation, hit, boxes=boxes, covariances=None, extents=None).pdq


BACKGROUND = "background"
"""Where a missed object was not found, and what a false positive stands on."""

UNNAMED = "no class of the truth"
"""What a detection names if it states a class that the truth does not have."""


@dataclasses.dataclass(frozen=True, eq=False)
class Confusion(Readable):
    """How many objects of each class were taken for which class; as a table, one row per truth and prediction.

    Only pairs that occur are kept: the whole matrix of many classes would take all memory.

    Parameters
    ----------
    classes : tuple of str
        The truth's classes.
    truth, predicted : (K,) int64
        Classes of objects and classes that detections name, in the order of `classes`; their number C stands for
        background, and C + 1 in `predicted` for a class that the truth does not have.
    counts : (K,) int64
        How often; a pair that occurs several times counts as often as all of them together.
    """

    classes: tuple[str, ...]
    truth: Ints
    predicted: Ints
    counts: Ints

    @property
    def matrix(self) -> Ints:
        """Return the counts as an array (C + 1, C + 1).

        Rows are classes of objects, columns classes that detections name, both in the order of `classes`, then
        background. The diagonal has matches of the right class, the last column missed objects, the last row false
        positives.
        """
        return self.among(range(len(self.classes) + 1))

    @property
    def unnamed(self) -> Ints:
        """Return how many detections name none of the truth's classes, (C + 1,).

        They are counted by the class of their object, the last ones being false positives.
        """
        return self._sums(self.truth, self.predicted > len(self.classes))

    def among(self, classes: Iterable[int]) -> Ints:
        """Return the rows and columns of the matrix that have these numbers, ascending."""
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
        """Where there is no object, and where no detection."""
        return self.truth == len(self.classes), self.predicted == len(self.classes)

    @property
    def tp(self) -> int:
        """Return how many detections are matched, whatever class they name."""
        no_object, no_detection = self._background
        return int(self.counts[~no_object & ~no_detection].sum())

    @property
    def fp(self) -> int:
        """Return how many detections are matched with nothing."""
        return int(self.counts[self._background[0]].sum())

    @property
    def fn(self) -> int:
        """Return how many objects are missed."""
        return int(self.counts[self._background[1]].sum())

    def row_sums(self) -> Ints:
        """Return how many objects each class has, and how many detections are false positives."""
        return self._sums(self.truth, np.ones(len(self.truth), bool))

    def shares(self) -> Floats:
        """Return the matrix divided by the sums of its rows, `unnamed` included; NaN where a row is empty."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.matrix / self.row_sums()[:, None], dtype=np.float64)

    def count_mixed(self) -> Ints:
        """Return for each class how many matches mix it up with another: its objects, and those it is named for."""
        no_object, no_detection = self._background
        other = ~no_object & ~no_detection & (self.truth != self.predicted)
        named = other & (self.predicted < len(self.classes))
        return (self._sums(self.truth, other) + self._sums(self.predicted, named))[:-1]

    def most_confused(self, most: int) -> list[int]:
        """Return the numbers of the classes that are mixed up most, in the order of `classes`.

        Among equals those with more objects and detections come first; classes with neither are left out.
        """
        mixed = self.count_mixed()
        named = self.predicted < len(self.classes)
        size = (self.row_sums() + self._sums(self.predicted, named))[:-1]
        order = sorted(np.flatnonzero(size).tolist(), key=lambda row: (-mixed[row], -size[row], row))
        return sorted(order[:most])

    def flat(self) -> FlatTable:
        """Return ``truth``, ``predicted`` and ``count`` of everything that there is, the most frequent first."""
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
    """Count what is taken for what, by PDQ's own matches, so that the counts agree with TP, FP and FN.

    A detection that is matched with an object counts under the object's class and the class that it names. PDQ matches
    nothing to a detection that gives the object's class no probability: such a detection is a false positive and its
    object is missed, so detectors that give one class each, and nothing to others, mix up nothing here. Objects that
    PDQ ignores, and what is matched with them, are left out.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured, PDQ among its measures.

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
        raise InputError("PDQ was not measured, so nobody is matched", remedy="evaluate with PDQ among the measures")
    found, there = evaluation.detections, evaluation.objects
    classes = len(evaluation.classes)
    named = np.where(found.labels >= 0, found.labels, classes + 1)
    hit, wrong = found.verdicts == Verdict.TP, found.verdicts == Verdict.FP
    missed = there.labels[there.verdicts == Verdict.FN]
    truth = np.concatenate([there.labels[found.partners[hit]], np.full(int(wrong.sum()), classes), missed])
    predicted = np.concatenate([named[hit], named[wrong], np.full(len(missed), classes)])
    return _count_confusion(evaluation.classes, truth, predicted, np.ones(len(truth), np.int64))


def _count_confusion(classes: tuple[str, ...], truth: Ints, predicted: Ints, counts: Ints) -> Confusion:
    """Return the counts of pairs, each pair once."""
    columns = len(classes) + 2
    cells, place = np.unique(truth.astype(np.int64) * columns + predicted, return_inverse=True)
    sums = np.zeros(len(cells), np.int64)
    np.add.at(sums, place.reshape(-1), counts)
    return Confusion(classes, cells // columns, cells % columns, sums)
