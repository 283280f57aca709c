"""What is taken for what: objects and detections by their classes, with background for those without a partner."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

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
    truth: Counts
    predicted: Counts
    counts: Counts

    @property
    def matrix(self) -> Counts:
        """Return the counts as an array (C + 1, C + 1).

        Rows are classes of objects, columns classes that detections name, both in the order of `classes`, then
        background. The diagonal has matches of the right class, the last column missed objects, the last row false
        positives.
        """
        return self.among(range(len(self.classes) + 1))

    @property
    def unnamed(self) -> Counts:
        """Return how many detections name none of the truth's classes, (C + 1,).

        They are counted by the class of their object, the last ones being false positives.
        """
        return self._sums(self.truth, self.predicted > len(self.classes))

    def among(self, classes: Iterable[int]) -> Counts:
        """Return the rows and columns of the matrix that have these numbers, ascending."""
        chosen = np.asarray(list(classes), np.int64)
        place = np.full(len(self.classes) + 2, -1)
        place[chosen] = np.arange(len(chosen))
        row, column = place[self.truth], place[self.predicted]
        inside = (row >= 0) & (column >= 0)
        matrix = np.zeros((len(chosen), len(chosen)), np.int64)
        np.add.at(matrix, (row[inside], column[inside]), self.counts[inside])
        return matrix

    def _sums(self, labels: Counts, chosen: npt.NDArray[np.bool_]) -> Counts:
        """Return the sums of chosen counts by class, background last."""
        sums = np.zeros(len(self.classes) + 1, np.int64)
        np.add.at(sums, labels[chosen], self.counts[chosen])
        return sums

    @property
    def _background(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
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

    def row_sums(self) -> Counts:
        """Return how many objects each class has, and how many detections are false positives."""
        return self._sums(self.truth, np.ones(len(self.truth), bool))

    def shares(self) -> npt.NDArray[np.float64]:
        """Return the matrix divided by the sums of its rows, `unnamed` included; NaN where a row is empty."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.matrix / self.row_sums()[:, None], dtype=np.float64)

    def mixed(self) -> Counts:
        """Return for each class how many matches mix it up with another: its objects, and those it is named for."""
        no_object, no_detection = self._background
        other = ~no_object & ~no_detection & (self.truth != self.predicted)
        named = other & (self.predicted < len(self.classes))
        return (self._sums(self.truth, other) + self._sums(self.predicted, named))[:-1]

    def most_confused(self, most: int) -> list[int]:
        """Return the numbers of the classes that are mixed up most, in the order of `classes`.

        Among equals those with more objects and detections come first; classes with neither are left out.
        """
        mixed = self.mixed()
        named = self.predicted < len(self.classes)
        size = (self.row_sums() + self._sums(self.predicted, named))[:-1]
        order = sorted(np.flatnonzero(size).tolist(), key=lambda row: (-mixed[row], -size[row], row))
        return sorted(order[:most])

    def flat(self) -> FlatTable:
        """Return ``truth``, ``predicted`` and ``count`` of everything that there is, the most frequent first."""
        whole = _counted(self.classes, self.truth, self.predicted, self.counts)
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
    return _counted(evaluation.classes, truth, predicted, np.ones(len(truth), np.int64))


def _counted(classes: tuple[str, ...], truth: Counts, predicted: Counts, counts: Counts) -> Confusion:
    """Return the counts of pairs, each pair once."""
    columns = len(classes) + 2
    cells, place = np.unique(truth.astype(np.int64) * columns + predicted, return_inverse=True)
    sums = np.zeros(len(cells), np.int64)
    np.add.at(sums, place.reshape(-1), counts)
    return Confusion(classes, cells // columns, cells % columns, sums)
