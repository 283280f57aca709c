"""Label probabilities of detections, in memory that grows with what is known, not with detections times classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.support.types import Bools, Floats, Ints
from probox.tables.table import LazyArray, frozen

Matrix = npt.NDArray[np.float32]

SPARSE_SHARE = 0.1
"""A matrix is stored by listed classes if these are at most this fraction of it."""

VALUES_AT_ONCE = 1 << 16
"""Probabilities that are expanded at a time; blocks that fit the cache are several times faster."""

_LISTED_BYTES, _ROW_BYTES, _VALUE_BYTES = 8, 12, 4
"""Bytes of a listed class (class and value), of a row of them (offset and rest), and of a value of a matrix."""


class LabelProbs(LazyArray):
    """Probabilities of classes, (N, C) float32, of detections with one score or with a probability of each class.

    Stored as a matrix, or by rows of listed classes, whichever is smaller. A row of listed classes has the values of
    these classes and a rest: the probability of each other class that shares it. The remaining classes have 0.
    A detection with a score and a label lists the label.

    ``np.asarray(label_probs)`` is the matrix; rows are selected without making it: ``label_probs[:10]``.

    Parameters
    ----------
    values : (N, C)
        Probability of each class.

    Examples
    --------
    >>> probs = LabelProbs.from_scores(np.array([0.5, 0.9]), np.array([1, 0]), 3)
    >>> probs.tolist()[0], probs[:, [0, 1]].shape, probs[np.array([0, 1]), np.array([1, 0])].tolist()
    ([0.25, 0.5, 0.25], (2, 2), [0.5, 0.8999999761581421])
    """

    dtype = np.dtype(np.float32)
    values: npt.NDArray[np.float32]
    """The matrix, or the values of listed classes."""
    offsets: Ints | None
    """Start of each row in `indices` and `values`, and the end; None for a matrix."""
    indices: npt.NDArray[np.int32]
    """Listed classes, ascending within a row."""
    rest: npt.NDArray[np.float32]
    """Probability of each other class that shares the rest of a row, for each row."""
    sharing: Bools
    """Which classes share the rests."""

    def __init__(self, values: npt.ArrayLike | LabelProbs) -> None:
        if isinstance(values, LabelProbs):
            self.__dict__.update(values.__dict__)
            return
        matrix = frozen(values, np.float32, (-1, -1), "label_probs")
        sharing = np.ones(matrix.shape[1], bool)
        listed = _core.list_labels(matrix, sharing, int(SPARSE_SHARE * matrix.size))
        if listed is None or _matrix_is_smaller(matrix.shape, len(listed[1])):
            self._set(matrix.shape, matrix)
        else:
            self._set(matrix.shape, listed[2], listed[0], listed[1], listed[3], sharing)

    def _set(
        self,
        shape: tuple[int, ...],
        values: Matrix,
        offsets: Ints | None = None,
        indices: npt.NDArray[np.int32] | None = None,
        rest: Matrix | None = None,
        sharing: Bools | None = None,
    ) -> None:
        self.shape = (int(shape[0]), int(shape[1]))
        self.values, self.offsets = values, offsets
        self.indices = np.zeros(0, np.int32) if indices is None else indices
        self.rest = np.zeros(0, np.float32) if rest is None else rest
        self.sharing = np.ones(shape[1], bool) if sharing is None else sharing
        for array in (self.values, self.indices, self.rest, self.sharing, *(() if offsets is None else (offsets,))):
            array.flags.writeable = False

    @classmethod
    def of_matrix(cls, matrix: Matrix) -> LabelProbs:
        """Return a matrix as label probabilities, without looking for a smaller form."""
        made = cls.__new__(cls)
        made._set(matrix.shape, np.ascontiguousarray(matrix, np.float32)[:])
        return made

    @classmethod
    def of_columns(
        cls,
        offsets: Ints,
        indices: npt.NDArray[np.int32],
        values: Matrix,
        rest: Matrix | None = None,
        *,
        classes: int = 0,
        sharing: Bools | None = None,
    ) -> LabelProbs:
        """Return rows of listed classes; by default the other classes have 0."""
        rows = len(offsets) - 1
        rest = np.zeros(rows, np.float32) if rest is None else rest
        made = cls.__new__(cls)
        made._set((rows, classes if sharing is None else len(sharing)), values, offsets, indices, rest, sharing)
        return made

    @classmethod
    def from_scores(
        cls,
        scores: npt.NDArray[np.float64],
        labels: npt.NDArray[Any],
        classes: int,
        given_rows: Ints | None = None,
        given: Matrix | None = None,
    ) -> LabelProbs:
        """Return the probabilities of detections with a score and a label: the other classes share 1 - score evenly.

        Rows `given_rows`, ascending, have the probabilities `given` instead.

        >>> LabelProbs.from_scores(np.array([0.5]), np.array([1]), 3).tolist()
        [[0.25, 0.5, 0.25]]
        """
        if given_rows is not None and given is not None and len(given_rows):
            if len(given_rows) == len(scores):
                return cls(given)
            others = np.ones(len(scores), bool)
            others[given_rows] = False
            parts = [cls.from_scores(scores[others], labels[others], classes), cls(given)]
            order = np.argsort(np.concatenate([np.flatnonzero(others), given_rows]))
            return cls.concatenate(parts).take(order)
        rest = _core.even_rests(np.ascontiguousarray(scores), classes)
        listed = np.arange(len(scores) + 1) if classes else np.zeros(len(scores) + 1, np.int64)
        indices = labels.astype(np.int32)[: listed[-1]]
        with np.errstate(over="ignore"):  # such scores are rejected later with a message
            values = scores.astype(np.float32)[: listed[-1]]
        return cls.of_columns(listed, indices, values, rest, classes=classes)._smaller()

    @classmethod
    def concatenate(cls, parts: Sequence[LabelProbs]) -> LabelProbs:
        """Return the rows of several tables of the same classes."""
        if len(parts) == 1:
            return parts[0]
        rows, columns = sum(map(len, parts)), parts[0].shape[1]
        listed = [part.values.size for part in parts]
        if _matrix_is_smaller((rows, columns), sum(listed)):
            return cls.of_matrix(np.concatenate([part.matrix for part in parts]))
        rests = [part.sharing for part in parts if part.rest.any()]
        sharing = np.logical_and.reduce(rests) if rests else np.ones(columns, bool)
        aligned = [part._listed(part.sharing & ~sharing) for part in parts]
        ends = np.cumsum([0, *(len(part.values) for part in aligned)])
        offsets = [part.entry_offsets[:-1] + end for part, end in zip(aligned, ends, strict=False)]
        return cls.of_columns(
            np.concatenate([*offsets, ends[-1:]]),
            *(np.concatenate([getattr(part, name) for part in aligned]) for name in ("indices", "values", "rest")),
            sharing=sharing,
        )

    # --- as an array ---

    @property
    def size(self) -> int:
        """Return the number of probabilities."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Return the memory of the stored columns in bytes."""
        columns = (self.values, self.indices, self.rest, self.sharing, self.offsets)
        return sum(column.nbytes for column in columns if column is not None)

    @property
    def entry_offsets(self) -> Ints:
        """Return the start of each row in the values, and the end; for a matrix, too."""
        return np.arange(len(self) + 1) * self.shape[1] if self.offsets is None else self.offsets

    @property
    def matrix(self) -> Matrix:
        """Return all probabilities; use `blocks` for tables of any size."""
        return self.values.reshape(self.shape) if self.offsets is None else _core.expand_labels(self.table)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if self.offsets is not None:
            check_matrix_size(self.shape[0], self.shape[1])
        matrix = self.matrix
        return matrix.astype(matrix.dtype if dtype is None else dtype, copy=bool(copy))

    def __getitem__(self, key: Any) -> Any:
        """Return some rows, ``[rows]``, some columns, ``[:, columns]``, or the values ``[rows, columns]``."""
        if not isinstance(key, tuple):
            return self.take([key]).matrix[0] if isinstance(key, int | np.integer) else self.take(key)
        rows, columns = key
        if isinstance(rows, int | np.integer):
            return self[rows][columns]
        if isinstance(rows, slice) or isinstance(columns, slice):
            chosen = _places(columns, self.shape[1])
            picked = self.take(rows).pick(chosen)
            return picked if chosen.ndim else picked.matrix[:, 0]
        at = np.broadcast_arrays(_places(rows, len(self)), _places(columns, self.shape[1]))
        values = _core.label_values(self.table, *(np.ascontiguousarray(part.reshape(-1), np.int64) for part in at))
        return values.reshape(at[0].shape)[()]

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ValueError("label probabilities are read-only; change a copy: np.array(label_probs)")

    def __iter__(self) -> Iterator[Matrix]:
        for _, rows in self.blocks():
            yield from rows

    def tolist(self) -> list[list[float]]:
        """Return the matrix as lists."""
        lists: list[list[float]] = np.asarray(self).tolist()
        return lists

    def round(self, decimals: int = 0) -> Matrix:
        """Return the matrix with rounded values."""
        rounded: Matrix = np.asarray(self).round(decimals)
        return rounded

    def astype(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return the matrix in another type."""
        return np.asarray(self, dtype)

    def max(self, axis: int | None = None, **options: Any) -> Any:
        """Return the largest probability, as of an array; of each row without the matrix for axis 1 and initial 0."""
        by_row = axis == 1 and options == {"initial": 0.0}
        return _core.row_ranges(self.table)[1] if by_row else np.asarray(self).max(axis=axis, **options)

    def sum(self, axis: int | None = None, **options: Any) -> Any:
        """Return the sum, as of an array; of each row without the matrix for axis 1 and float64."""
        by_row = axis == 1 and options == {"dtype": np.float64}
        return _core.row_ranges(self.table)[2] if by_row else np.asarray(self).sum(axis=axis, **options)

    def argmax(self, axis: int | None = None) -> Any:
        """Return the place of the largest probability, as of an array; 0 in rows without classes."""
        return _core.best_labels(self.table) if axis == 1 else np.asarray(self).argmax(axis=axis)

    @property
    def table(self) -> _core.LabelTable:
        """Return the columns for the kernel."""
        return _core.LabelTable(
            rows=len(self),
            offsets=np.zeros(0, np.int64) if self.offsets is None else self.offsets,
            indices=self.indices,
            values=self.values.reshape(-1),
            rest=self.rest,
            sharing=self.sharing,
        )

    # --- rows and columns ---

    def take(self, rows: Any) -> LabelProbs:
        """Return these rows, given by a slice, a mask or numbers, in this order."""
        numbers = _places(rows, len(self)).reshape(-1)
        first = int(numbers[0]) if len(numbers) else 0
        consecutive = np.array_equal(numbers, np.arange(first, first + len(numbers)))
        chosen: slice | Ints = slice(first, first + len(numbers)) if consecutive else numbers  # a slice is not copied
        if self.offsets is None:
            return self.of_matrix(self.matrix[chosen])
        starts, ends = self.offsets[:-1][chosen], self.offsets[1:][chosen]
        entries: slice | Ints
        if consecutive:
            entries = slice(int(starts[0]), int(ends[-1])) if len(numbers) else slice(0, 0)
            offsets = np.concatenate([[0], ends - entries.start])
        else:
            offsets, entries = _spans(starts, ends)
        indices, values, rest = self.indices[entries], self.values[entries], self.rest[chosen]
        return self.of_columns(offsets, indices, values, rest, sharing=self.sharing)

    def pick(self, columns: npt.ArrayLike) -> LabelProbs:
        """Return these columns, in this order; -1 stands for a class of probability 0."""
        chosen = np.asarray(columns, np.int64).reshape(-1)
        there = np.flatnonzero(chosen >= 0)
        if self.offsets is None:
            if len(there) > SPARSE_SHARE * len(chosen) or self.size == 0:
                matrix = np.zeros((len(self), len(chosen)), np.float32)
                matrix[:, there] = self.matrix[:, chosen[there]]
                return self.of_matrix(matrix)
            offsets = len(there) * np.arange(len(self) + 1)
            indices = np.tile(there.astype(np.int32), len(self))
            return self.of_columns(
                offsets, indices, self.matrix[:, chosen[there]].reshape(-1), sharing=np.zeros(len(chosen), bool)
            )
        sharing = np.zeros(len(chosen), bool)
        sharing[there] = self.sharing[chosen[there]]
        # The places of each class, from which those of each listed class follow.
        by_class = np.argsort(chosen[there], kind="stable")
        starts = np.searchsorted(chosen[there][by_class], np.arange(self.shape[1] + 1))
        before, places = _spans(starts[self.indices], starts[self.indices + 1])
        indices = there[by_class][places].astype(np.int32)
        values = np.repeat(self.values, np.diff(before))
        offsets = before[self.offsets]
        if np.any(np.diff(there[by_class]) < 0):  # in another order
            row = np.repeat(np.arange(len(self)), np.diff(offsets))
            order = np.lexsort((indices, row))
            indices, values = indices[order], values[order]
        return self.of_columns(offsets, indices, values, self.rest, sharing=sharing)._smaller()

    def alone(self, labels: npt.NDArray[np.int32], rows: Bools) -> LabelProbs:
        """Return the probabilities with only that of the label in some rows, and 0 for the other classes there."""
        some, others = np.flatnonzero(rows), np.flatnonzero(~rows)
        if not len(some):
            return self
        values = self[some, labels[some]]
        single = self.of_columns(np.arange(len(some) + 1), labels[some], values, classes=self.shape[1])
        if not len(others):
            return single
        return self.concatenate([single, self.take(others)]).take(np.argsort(np.concatenate([some, others])))

    # --- blocks of rows ---

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield ranges of rows and their matrices, a limited number of probabilities at a time."""
        step = max(1, VALUES_AT_ONCE // max(1, self.shape[1]))
        for start in range(0, len(self), step):
            rows = slice(start, start + step)
            yield rows, self.take(rows).matrix

    def of_rows(self, function: Callable[[Matrix, slice], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return one value per row from a function of some rows' matrix and their range."""
        parts = [function(matrix, rows) for rows, matrix in self.blocks()]
        return np.concatenate(parts) if parts else function(np.zeros(self.shape, np.float32), slice(0, 0))

    def map_rows(self, function: Callable[[Matrix, slice], Floats]) -> LabelProbs:
        """Return other probabilities from a function of some rows' matrix and their range.

        Classes of equal probability should get equal ones: these are not stored one by one.
        """
        parts = [self.of_matrix(np.zeros((0, self.shape[1]), np.float32))]
        for rows, matrix in self.blocks():
            changed = function(matrix, rows).astype(np.float32)
            if self.offsets is None:
                parts.append(self.of_matrix(changed))
            else:
                listed = _core.list_labels(changed, self.sharing, changed.size)
                assert listed is not None
                parts.append(self.of_columns(*listed, sharing=self.sharing))
        return self.concatenate(parts)

    def is_even(self, labels: npt.NDArray[np.int32]) -> Bools:
        """Return which rows have equal probabilities, above 0, for all classes except the label's."""
        columns, rows = self.shape[1], np.arange(len(self))
        score, other = self[rows, labels], self[rows, (labels + 1) % columns]

        def of_matrix(matrix: Matrix, some: Any) -> Bools:
            alike = np.count_nonzero(matrix == other[some, None], axis=1) - (score[some] == other[some])
            return np.asarray(alike == columns - 1)

        if self.offsets is None:
            return np.asarray(self.of_rows(of_matrix).astype(bool) & (other > 0))
        counts, absent = np.diff(self.offsets), int((~self.sharing).sum())
        first = np.append(self.indices, -1)[self.offsets[:-1]]
        even: Bools = (absent == 0) & ((counts == 0) | ((counts == 1) & (first == labels)))
        unclear = np.flatnonzero(~even & (absent - counts < 2))  # two other classes of probability 0 are not even
        even[unclear] = self[unclear].of_rows(lambda matrix, some: of_matrix(matrix, unclear[some]))
        return np.asarray(even & (other > 0))

    def distinct(self) -> tuple[Matrix, Ints, Ints]:
        """Return probabilities, how many classes of a row have each, and the row; those that occur once may repeat."""
        row = np.repeat(np.arange(len(self)), np.diff(self.entry_offsets))
        values, counts = self.values.reshape(-1), np.ones(self.values.size, np.int64)
        if self.offsets is None:
            return values, counts, row
        listed = np.bincount(row[self.sharing[self.indices]], minlength=len(self))
        others = int(self.sharing.sum()) - listed
        return (
            np.concatenate([values, self.rest]),
            np.concatenate([counts, others]),
            np.concatenate([row, np.arange(len(self))]),
        )

    def equals(self, other: LabelProbs) -> bool:
        """Return whether all probabilities are bit-identical."""
        names = ("values", "offsets", "indices", "rest", "sharing")
        if self.shape == other.shape and all(_same(getattr(self, name), getattr(other, name)) for name in names):
            return True
        pairs = zip(self.blocks(), other.blocks(), strict=False)
        return self.shape == other.shape and all(_same(mine, theirs) for (_, mine), (_, theirs) in pairs)

    # --- forms ---

    def _smaller(self) -> LabelProbs:
        """Return the smaller form."""
        smaller = self.offsets is not None and _matrix_is_smaller(self.shape, len(self.values))
        return self.of_matrix(self.matrix) if smaller else self

    def _listed(self, columns: Bools) -> LabelProbs:
        """Return rows that list these classes, too; all classes for a matrix."""
        if self.offsets is None:
            indices = np.tile(np.arange(self.shape[1], dtype=np.int32), len(self))
            return self.of_columns(self.entry_offsets, indices, self.values.reshape(-1), sharing=self.sharing)
        if not (columns.any() and self.rest.any()):
            return self
        row = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        kept, added = ~columns[self.indices], np.flatnonzero(columns)
        rows = np.concatenate([row[kept], np.repeat(np.arange(len(self)), len(added))])
        indices = np.concatenate([self.indices[kept], np.tile(added.astype(np.int32), len(self))])
        order = np.lexsort((indices, rows))
        rows, indices = rows[order], indices[order]
        offsets = np.searchsorted(rows, np.arange(len(self) + 1))
        return self.of_columns(offsets, indices, self[rows, indices], self.rest, sharing=self.sharing)


def _matrix_is_smaller(shape: Sequence[int], listed: int) -> bool:
    """Return whether a matrix takes at most the memory of rows of listed classes."""
    rows, columns = shape
    return _VALUE_BYTES * rows * columns <= _LISTED_BYTES * listed + _ROW_BYTES * rows


def _spans(starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the offsets of several ranges, and the numbers in them, concatenated."""
    counts = ends - starts
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return offsets, np.repeat(starts - offsets[:-1], counts) + np.arange(offsets[-1])


def _places(key: Any, length: int) -> Ints:
    """Return the numbers of rows or columns given by a slice, a mask or numbers, as for an axis of an array."""
    if isinstance(key, slice):
        return np.arange(*key.indices(length))
    given = np.asarray(key)
    if given.dtype == bool and given.shape != (length,):
        raise IndexError(f"expected a mask of {length}, but got shape {given.shape}")
    numbers = np.flatnonzero(given) if given.dtype == bool else given.astype(np.int64)
    if numbers.size and not (-length <= numbers.min() and numbers.max() < length):
        raise IndexError(f"expected numbers below {length}, but got {numbers.min()} to {numbers.max()}")
    return np.where(numbers < 0, numbers + length, numbers)


def _same(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None) -> bool:
    """Return whether two arrays are bit-identical."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one.ravel().view(np.uint8), other.ravel().view(np.uint8))


def check_matrix_size(rows: int, columns: int, file: str | None = None) -> None:
    """Raise if the matrix of label probabilities would need unreasonable memory."""
    # The limit is 6 kB per detection, which is 1,536 classes; at least 256 MB and at most 16 GB. A small file can
    # describe a matrix of gigabytes.
    most = min(max(1 << 28, 6144 * rows), 1 << 34)
    if _VALUE_BYTES * rows * columns > most:
        raise InputError(
            f"{rows:,} detections with {columns:,} classes each need {_VALUE_BYTES * rows * columns / 1e9:.1f} GB "
            "for all their label probabilities",
            file=file,
            remedy="select rows first, such as label_probs[:1000]" if file is None else "write smaller row groups",
        )
