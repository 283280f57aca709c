"""Class names and label probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.tables.label_probs import LabelProbs
from probox.tables.row_problems import ROUNDING

COCO_CLASSES = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow", "elephant",
    "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard",
    "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket", "bottle",
    "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich", "orange", "broccoli",
    "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch", "potted plant", "bed", "dining table", "toilet",
    "tv", "laptop", "mouse", "remote", "keyboard", "cell phone", "microwave", "oven", "toaster", "sink",
    "refrigerator", "book", "clock", "vase", "scissors", "teddy bear", "hair drier", "toothbrush",
)  # fmt: skip

"""COCO's 80 classes, in order of category id."""

_UNUSED_IDS = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83})

COCO_CATEGORY_IDS = tuple(number for number in range(1, 91) if number not in _UNUSED_IDS)

"""COCO's category ids of these classes, 1 to 90 with gaps."""

_SYNONYMS = (
    ("background", "__background__", "__bg__", "bg", "none"),
    ("motorcycle", "motorbike"),
    ("aeroplane", "airplane"),
    ("traffic light", "trafficlight"),
    ("sofa", "couch"),
    ("pottedplant", "potted plant"),
    ("diningtable", "dining table"),
    ("stop sign", "stopsign"),
    ("tvmonitor", "tv", "television", "computer monitor"),
)

_CANONICAL = {name: group[0] for group in _SYNONYMS for name in group}

BACKGROUND_NAMES = frozenset(_SYNONYMS[0])

"""Names that mean "no object"."""

SUMS_TO_ONE = 1e-4

"""Tolerance for rows of label probabilities that add up to 1: files contain rounded numbers."""


@lru_cache(maxsize=4096)
def canonical_name(name: str) -> str:
    """Return the common name of all spellings of a class.

    >>> canonical_name("TV") == canonical_name("television")
    True
    """
    key = name.strip().lower()
    return _CANONICAL.get(key, key)


def background_classes(classes: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which classes mean "no object".

    >>> background_classes(["cup", "__background__"]).tolist()
    [False, True]
    """
    return _background_classes(tuple(classes))


@lru_cache(maxsize=16)  # called again and again with the same, possibly thousands of, classes
def _background_classes(classes: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    flags = np.array([canonical_name(name) in BACKGROUND_NAMES for name in classes], bool)
    flags.flags.writeable = False  # the cached array is shared
    return flags


def column_of_each(wanted: Sequence[str], given: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return, for each wanted class, its column in `given`, or -1.

    If several columns of `given` mean the same class, the last one counts, as in the reference implementation of PDQ
    (`repeated_classes` returns the others). If several classes of `wanted` mean the same, names must be equal.

    >>> column_of_each(["cup", "couch", "dog"], ["Sofa", "cup"]).tolist()
    [1, 0, -1]
    """
    by_meaning = {canonical_name(name): column for column, name in enumerate(given)}
    by_name = {name: column for column, name in enumerate(given)}
    meanings = Counter(canonical_name(name) for name in wanted)
    columns = []
    for name in wanted:
        meaning = canonical_name(name)
        columns.append(by_meaning.get(meaning, -1) if meanings[meaning] == 1 else by_name.get(name, -1))
    return np.array(columns, dtype=np.int64)


def unknown_classes(given: Sequence[str], known: Sequence[str]) -> list[int]:
    """Return the columns of `given` whose class is unknown in any spelling, except background.

    >>> unknown_classes(["cup", "unicorn", "background"], ["cup"])
    [1]
    """
    meanings = {canonical_name(name) for name in known} | BACKGROUND_NAMES
    return [column for column, name in enumerate(given) if canonical_name(name) not in meanings]


def repeated_classes(given: Sequence[str], known: Sequence[str]) -> list[int]:
    """Return the columns of `given` whose class is known but taken from another column.

    >>> repeated_classes(["couch", "cup", "Sofa"], ["couch"])
    [0]
    """
    meanings = {canonical_name(name) for name in known}
    used = set(column_of_each(known, given).tolist())
    return [column for column, name in enumerate(given) if canonical_name(name) in meanings and column not in used]


def probabilities_of(label_probs: LabelProbs, labels: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return the probability of each row's label."""
    if label_probs.shape[1] == 0:
        return np.zeros(len(label_probs), np.float64)
    columns = np.clip(labels, 0, label_probs.shape[1] - 1)
    return np.asarray(label_probs[np.arange(len(label_probs)), columns], np.float64)


def named_classes(
    label_probs: LabelProbs,
    given: Sequence[str],
    wanted: Sequence[str],
    labels: npt.NDArray[np.int32] | None = None,
    scores: npt.NDArray[np.float64] | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return each detection's class among the wanted ones, and its score.

    The class stated by the detector (`labels`, with `scores`) is kept if it is wanted. Otherwise the most probable
    wanted class is used: background and other classes do not count. Ties go to the first of `wanted`; -1 if no wanted
    class has a probability above 0.
    """
    if tuple(wanted) == tuple(given) and labels is not None and scores is not None:
        return labels, scores  # the usual case, without reading the probabilities
    usual = label_probs.argmax(axis=1)
    stated = usual if labels is None else labels
    score = probabilities_of(label_probs, stated) if scores is None else scores
    if tuple(wanted) == tuple(given):
        return stated, score
    unstated = (stated == usual) & (score == probabilities_of(label_probs, stated))
    column_of_class = column_of_each(wanted, given)
    class_of_column = np.full(max(len(given), 1), -1, np.int32)
    class_of_column[column_of_class[column_of_class >= 0]] = np.flatnonzero(column_of_class >= 0)
    probs = align_labels(label_probs, given, wanted)
    best = probs.argmax(axis=1)
    values = probabilities_of(probs, best)
    by_probability = unstated | (class_of_column[stated] < 0)
    named = np.where(by_probability, np.where(values > 0, best, -1), class_of_column[stated]).astype(np.int32)
    return named, np.where(by_probability, values, score)


def scores_alone(
    label_probs: LabelProbs, labels: npt.NDArray[np.int32], classes: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Return which detections have a score only, without individual probabilities of the other classes.

    For files without label probabilities, readers share 1 - score evenly among the other classes, as the reference
    implementation of PDQ does. With fewer than three classes this cannot be detected.

    Parameters
    ----------
    label_probs : LabelProbs (N, C)
        Label probabilities.
    labels : (N,) int32
        Class of each detection; -1 for none.
    classes : sequence of str
        Class names; detections of background are excluded.

    >>> probs = LabelProbs([[0.1, 0.8, 0.1], [0.49, 0.49, 0.02], [0.6, 0.1, 0.1]])
    >>> scores_alone(probs, np.array([1, 0, 0], np.int32), ["cup", "dog", "cat"]).tolist()
    [True, False, False]
    """
    n, columns = label_probs.shape
    if columns < 3:
        return np.zeros(n, bool)
    rows, named = np.arange(n), np.maximum(labels, 0)
    score, other = label_probs[rows, named], label_probs[rows, (named + 1) % columns]
    total = label_probs.sum(axis=1, dtype=np.float64)
    even = label_probs.is_even(named) & (other > 0) & (np.abs(total - 1.0) <= SUMS_TO_ONE)
    even &= (labels >= 0) & ~background_classes(classes)[named]
    # A row of equal probabilities may be a score of 1 / classes; other rows of the file decide.
    return np.asarray(even & bool((even & (score != other)).any()))


def align_labels(label_probs: LabelProbs, given: Sequence[str], wanted: Sequence[str]) -> LabelProbs:
    """Return label probabilities with one column per wanted class.

    A class missing in `given` has probability 0. A class missing in `wanted` is dropped with its probability.
    """
    same = tuple(given) == tuple(wanted)
    return label_probs if same else label_probs.pick(column_of_each(wanted, given))


def without_background(label_probs: LabelProbs, classes: Sequence[str]) -> LabelProbs:
    """Return probabilities with 0 for a class that means background, which is the remainder to 1."""
    background = background_classes(classes)
    if not background.any():
        return label_probs
    return label_probs.pick(np.where(background, -1, np.arange(len(background))))


AboveOne = Literal["limit", "normalise", "refuse"]

"""Treatment of rows of scores that add up to more than 1, as with one sigmoid per class."""

ROWS_AT_ONCE = 1 << 16

"""Rows converted to float64 at a time: a million rows of 80 classes would take gigabytes."""


def softmax(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return distributions ``e^x_k / sum_j e^x_j`` along the last axis, in the type of the logits.

    >>> softmax(np.array([[1000.0, 1000.0]])).tolist()
    [[0.5, 0.5]]
    """
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return np.asarray(shares)


def check_above_one(value: Any) -> None:
    """Raise unless a value is one of the options of `above_one`."""
    if value not in get_args(AboveOne):
        choices = ", ".join(map(repr, get_args(AboveOne)))
        raise InputError(f"expected above_one to be one of {choices}, but got {value!r:.40}")


def to_distribution(scores: npt.ArrayLike, above_one: AboveOne = "limit") -> npt.NDArray[np.float32]:
    """Return label probabilities (N, C) from scores of all classes.

    Parameters
    ----------
    scores : (N, C)
        Between 0 and 1.
    above_one : {"limit", "normalise", "refuse"}
        ``limit``: only rows above 1 are scaled down, see `limit_to_distribution`. ``normalise``: every nonzero row is
        divided by its sum, which turns a score of 0.1 into 0.99 if the other scores are near 0, and lowers PDQ.
        ``refuse``: rows are returned as they are, for the table to reject rows above 1.

    >>> to_distribution([[0.9, 0.9], [0.1, 0.0]], "normalise").tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    check_above_one(above_one)
    if above_one == "limit":
        return limit_to_distribution(scores)
    given = np.asarray(scores, np.float32)
    if above_one == "refuse":
        return given
    total = given.sum(axis=1, dtype=np.float64, keepdims=True)
    return np.asarray(np.divide(given, total, out=np.zeros_like(given), where=total > 0, casting="same_kind"))


def rows_above_one(label_probs: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Return the rows of probabilities that add up to more than 1, allowing `ROUNDING`.

    >>> rows_above_one(np.array([[0.9, 0.3], [0.6, 0.4004], [3.0, 0.0]], np.float32)).tolist()
    [0]
    """
    low, high, total = _core.row_ranges(LabelProbs.of_matrix(label_probs).table)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((low >= -ROUNDING) & (high <= 1 + ROUNDING) & (total > 1 + ROUNDING))  # False for NaN


def limit_to_distribution(scores: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return label probabilities (N, C) that add up to at most 1 from scores in [0, 1], one sigmoid per class.

    Sigmoids per class may give 0.9 to two classes at once, which is not a distribution. The best class keeps its score
    ``s``; the others are scaled by a common factor so that they add up to ``1 - s``. So the best class, the order of
    detections and mAP do not change. Rows that add up to at most 1.001, which rounding explains, and rows with values
    outside [0, 1] are returned unchanged.

    >>> limit_to_distribution([[0.9, 0.8, 0.2], [0.5, 0.3, 0.1]]).round(3).tolist()
    [[0.8999999761581421, 0.07999999821186066, 0.019999999552965164], [0.5, 0.30000001192092896, 0.10000000149011612]]
    """
    given = np.asarray(scores, np.float32)
    if given.size == 0:
        return np.array(given)
    rows = rows_above_one(given)
    limited: npt.NDArray[np.float32] = np.array(given)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        wide = given[part].astype(np.float64)
        total = wide.sum(axis=1)
        winner = wide.argmax(axis=1)
        best = wide[np.arange(len(part)), winner]
        # If the best class has the whole sum, there is nothing to scale; avoid 0 / 0.
        others = np.maximum(total - best, np.finfo(np.float64).tiny)
        limited[part] = (wide * np.minimum(1.0, (1.0 - best) / others)[:, None]).astype(np.float32)
        limited[part, winner] = given[part, winner]
    return limited
