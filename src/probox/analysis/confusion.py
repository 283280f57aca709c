"""What is taken for what: objects and detections by their classes, with background for those without a partner."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.tables.flat import FlatTable, Readable, text_column
from probox.tables.results import Verdict

__all__ = ["BACKGROUND", "UNNAMED", "Confusion", "confusion"]

Counts = npt.NDArray[np.int64]

BACKGROUND = "background"
"""Where a missed object was not found, and what a false positive stands on."""
UNNAMED = "no class of the truth"
"""What a detection names if it states a class that the truth does not have."""


@dataclasses.dataclass(frozen=True, eq=False)
class Confusion(Readable):
    """How many objects of each class were taken for which class; as a table, one row per truth and prediction.

    Parameters
    ----------
    classes : tuple of str
        The truth's classes.
    matrix : array (C + 1, C + 1)
        Counts: rows are classes of objects, columns classes that detections name, both in the order of `classes`, then
        background. The diagonal has matches of the right class, the last column missed objects, the last row false
        positives.
    unnamed : array (C + 1,)
        Counts of detections that name none of the truth's classes: by the class of their object, the last ones being
        false positives.
    """

    classes: tuple[str, ...]
    matrix: Counts
    unnamed: Counts

    @property
    def tp(self) -> int:
        """Return how many detections are matched, whatever class they name."""
        return int(self.matrix[:-1, :-1].sum() + self.unnamed[:-1].sum())

    @property
    def fp(self) -> int:
        """Return how many detections are matched with nothing."""
        return int(self.matrix[-1].sum() + self.unnamed[-1])

    @property
    def fn(self) -> int:
        """Return how many objects are missed."""
        return int(self.matrix[:-1, -1].sum())

    def shares(self) -> npt.NDArray[np.float64]:
        """Return the matrix divided by the sums of its rows, `unnamed` included; NaN where a row is empty."""
        sums = self.matrix.sum(axis=1) + self.unnamed
        with np.errstate(invalid="ignore"):
            return np.asarray(self.matrix / sums[:, None], dtype=np.float64)

    def mixed(self) -> Counts:
        """Return for each class how many matches mix it up with another: its objects, and those it is named for."""
        named = self.matrix[:-1, :-1]
        return np.asarray(named.sum(axis=0) + named.sum(axis=1) - 2 * np.diag(named) + self.unnamed[:-1])

    def most_confused(self, most: int) -> list[int]:
        """Return the numbers of the classes that are mixed up most, in the order of `classes`.

        Among equals those with more objects and detections come first; classes with neither are left out.
        """
        mixed = self.mixed()
        size = self.matrix[:-1].sum(axis=1) + self.matrix[:, :-1].sum(axis=0) + self.unnamed[:-1]
        order = sorted(np.flatnonzero(size).tolist(), key=lambda row: (-mixed[row], -size[row], row))
        return sorted(order[:most])

    def flat(self) -> FlatTable:
        """Return ``truth``, ``predicted`` and ``count`` of everything that there is, the most frequent first."""
        whole = np.concatenate([self.matrix, self.unnamed[:, None]], axis=1)
        truth, predicted = np.nonzero(whole)
        order = np.lexsort((predicted, truth, -whole[truth, predicted]))
        truth, predicted = truth[order], predicted[order]
        names = (*self.classes, BACKGROUND, UNNAMED)
        return FlatTable(
            {
                "truth": text_column(names[row] for row in truth.tolist()),
                "predicted": text_column(names[row] for row in predicted.tolist()),
                "count": whole[truth, predicted],
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
    # One more row and two more columns than classes: background, and detections that name no class.
    whole = np.zeros((classes + 1, classes + 2), np.int64)
    named = np.where(found.labels >= 0, found.labels, classes + 1)
    hit, wrong = found.verdicts == Verdict.TP, found.verdicts == Verdict.FP
    np.add.at(whole, (there.labels[found.partners[hit]], named[hit]), 1)
    np.add.at(whole, (classes, named[wrong]), 1)
    np.add.at(whole, (there.labels[there.verdicts == Verdict.FN], classes), 1)
    return Confusion(evaluation.classes, whole[:, : classes + 1], whole[:, classes + 1])
