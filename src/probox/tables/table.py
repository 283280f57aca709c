"""Base class of tables, whose columns have a declared dtype and shape, and checks of arguments and arrays."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from probox.errors import InputError

if TYPE_CHECKING:
    from probox.tables.dataset import Dataset
    from probox.tables.flat import FlatTable


def entry_of(holder: Any, name: str) -> Any:
    """Return an entry of a dictionary or an attribute of an object; None if it is missing.

    >>> entry_of({"boxes": 3}, "boxes"), entry_of(3, "boxes")
    (3, None)
    """
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def to_numpy(values: Any, name: str = "values") -> npt.NDArray[Any]:
    """Convert numbers of any array library to a NumPy array, without importing that library.

    Tensors are detached and moved to the CPU. Types unknown to NumPy, such as bfloat16, become float32. The numbers of
    objects that only have ``__dlpack__`` are copied.

    >>> to_numpy([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    if isinstance(values, np.ndarray):
        return values
    if _is_tensor(values) or _has_dlpack_alone(values):
        return _tensor_to_numpy(values, name)
    if isinstance(values, list | tuple) and any(_holds_tensor(entry) for entry in values):
        return to_numpy([to_numpy(entry, name) for entry in values], name)
    if hasattr(values, "__cuda_array_interface__") and hasattr(values, "get"):
        return np.asarray(values.get())  # CuPy refuses implicit conversion
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InputError(
            f"expected {name} to be numbers in rows of equal length, but got {values!r:.60}",
            remedy="give one list of numbers per row, all of them equally long",
        ) from None


def _is_tensor(value: Any) -> bool:
    """Return whether an object is a torch-like tensor, with `detach` and `cpu`."""
    return not isinstance(value, type) and callable(getattr(value, "detach", None)) and hasattr(value, "cpu")


def _has_dlpack_alone(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(value, "__dlpack__") and not hasattr(value, "__array__")


def _holds_tensor(value: Any) -> bool:
    return (
        _is_tensor(value)
        or _has_dlpack_alone(value)
        or (isinstance(value, list | tuple) and any(_holds_tensor(entry) for entry in value))
    )


def _tensor_to_numpy(values: Any, name: str) -> npt.NDArray[Any]:
    try:
        if not _is_tensor(values):
            return np.array(np.from_dlpack(values))
        here = values.detach().cpu()
        try:
            return np.asarray(here.numpy())
        except TypeError:  # a type unknown to NumPy
            return np.asarray(here.float().numpy())
    except (
        TypeError,
        ValueError,
        RuntimeError,
        BufferError,
    ) as error:  # also for tensors without data, on torch's device "meta"
        problem = f"expected {name} to be a tensor that NumPy can take, but got {type(values).__name__} ({error})"
        raise InputError(problem, remedy="give a dense tensor of numbers, or an array of NumPy") from None


MAX_CLASSES = 1 << 15

"""Limit on the classes of a dataset or detector; each takes a few kB, even without objects."""

SURROGATE = re.compile("[\ud800-\udfff]")

"""Unpaired surrogates, which cannot be encoded as UTF-8."""

LONGEST_NAME = 1024

"""Limit on the characters of a class name or file name."""


def expect(value: Any, kind: type, name: str, remedy: str | None = None) -> None:
    """Raise unless an argument has the given type.

    >>> expect(3, str, "name", "give it in quotes")
    Traceback (most recent call last):
        ...
    probox.errors.InputError: expected argument `name` to be str, but got int; give it in quotes
    """
    if not isinstance(value, kind):
        raise InputError(
            f"expected argument `{name}` to be {kind.__name__}, but got {type(value).__name__}", remedy=remedy
        )


def expect_path(value: Any, name: str = "path", remedy: str = "give a file name") -> None:
    """Raise unless an argument is a path; integers are refused because `open` would take them as file descriptors."""
    if not isinstance(value, str | os.PathLike):
        problem = f"expected argument `{name}` to be a path, but got {type(value).__name__}"
        raise InputError(problem, remedy=remedy)


def check_tables(truth: Any, detections: Any, call: str) -> None:
    """Raise unless `truth` and `detections` are the tables that ``call(truth, detections)`` expects."""
    from probox.tables.detections import Detections
    from probox.tables.groundtruth import GroundTruth

    order = f"the order is {call}(truth, detections)"
    swapped = isinstance(truth, Detections) or isinstance(detections, GroundTruth)
    if isinstance(detections, list | tuple):
        given = f"a {type(detections).__name__} of {len(detections)}"
        remedy = f"call {call} for each, or join them with Detections.concatenate"
        raise InputError(f"expected argument `detections` to be Detections, but got {given}", remedy=remedy)
    is_path = isinstance(truth, str | os.PathLike)
    expect(truth, GroundTruth, "truth", "read it first with probox.read_truth(path)" if is_path else order)
    is_path = isinstance(detections, str | os.PathLike) and not swapped
    remedy = "read it first with probox.read_detections(path, truth)" if is_path else order
    expect(detections, Detections, "detections", remedy)


def dataset_of(truth: Any, order: str) -> Dataset:
    """Return the dataset of ground truth, or the dataset itself; `order` names the arguments in messages."""
    from probox.tables.dataset import Dataset
    from probox.tables.groundtruth import GroundTruth

    if isinstance(truth, Dataset):
        return truth
    is_path = isinstance(truth, str | os.PathLike)
    expect(truth, GroundTruth, "truth", "read it first with probox.read_truth(path)" if is_path else order)
    dataset: Dataset = truth.dataset
    return dataset


def check_classes(classes: Any, name: str = "classes", *, file: str | None = None) -> tuple[str, ...]:
    """Return class names as a tuple; refuse a single string. `file` is their origin, for messages."""
    names = tuple(classes) if isinstance(classes, Iterable) and not isinstance(classes, str | bytes) else None
    if names is None:
        problem = f"expected argument `{name}` to be a sequence of names, but got {type(classes).__name__}"
        raise InputError(problem, remedy='write ["cup", "dog"]')
    wrong = [entry for entry in names if not isinstance(entry, str)]
    if wrong:
        problem = f"expected argument `{name}` to hold names, but got {type(wrong[0]).__name__} ({wrong[0]!r:.40})"
        numbered = isinstance(classes, Mapping) and all(isinstance(entry, str) for entry in classes.values())
        remedy = "of numbered names give list(names.values()), by their numbers" if numbered else None
        raise InputError(problem, remedy=remedy or "give each class a name in text")
    if len(names) > MAX_CLASSES:
        problem = f"expected at most {MAX_CLASSES:,} classes, but got {len(names):,}"
        raise InputError(problem, file=file, remedy="leave out unused classes")
    for number, entry in enumerate(names):
        if len(entry) > LONGEST_NAME:
            problem = f"expected a class name of at most {LONGEST_NAME:,} characters, but got one of {len(entry):,}"
            raise InputError(problem, file=file, entry=f"class {number}", remedy="shorten it")
        if not entry.isascii() and SURROGATE.search(entry):
            problem = f"expected a class name in Unicode text, but got {entry!a:.60}"
            raise InputError(problem, file=file, entry=f"class {number}", remedy="write the name in UTF-8")
    return names


class LazyArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An H x W array computed on demand in ``__array__``; subclasses also set `shape`, `dtype`, `size` and `nbytes`."""

    ndim = 2
    shape: tuple[int, ...]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [np.asarray(value) if isinstance(value, LazyArray) else value for value in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __len__(self) -> int:
        return self.shape[0]


SomeTable = TypeVar("SomeTable", bound="Table")

OTHER_KINDS = "bcmM"

"""dtype kinds that NumPy would silently convert to numbers: booleans, complex numbers and times."""


@dataclasses.dataclass(frozen=True, eq=False)
class ColumnSpec:
    """dtype of a column (object: anything) and shape of a row.

    A name in the shape stands for the length of that field: ``("classes",)`` is one number per class. Optional columns
    have a default or may be missing.
    """

    dtype: np.dtype[Any]
    row: tuple[int | str, ...]
    optional: bool


def column(dtype: npt.DTypeLike, *row: int | str, optional: bool = False) -> Any:
    """Declare a column of a `Table`; an optional one is None if it is not given and the table has no default."""
    metadata = {"column": ColumnSpec(np.dtype(dtype), row, optional)}
    return dataclasses.field(metadata=metadata, default=None) if optional else dataclasses.field(metadata=metadata)


_DECLARED: dict[Any, dict[str, ColumnSpec]] = {}


def columns_of(table: type[Table]) -> dict[str, ColumnSpec]:
    """Return the declared columns of a table class, in order."""
    if table not in _DECLARED:
        fields = dataclasses.fields(table)
        _DECLARED[table] = {field.name: field.metadata["column"] for field in fields if "column" in field.metadata}
    return _DECLARED[table]


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Table:
    """Columns of equal length, declared with `column`: checked, completed with defaults, and read-only.

    The first column determines the number of rows. Other fields of a subclass, such as class names, belong to the
    whole table and do not change when rows are selected.
    """

    adopts: ClassVar[bool] = False
    """True if arrays are valid and not shared, so that they are made read-only without a check or copy."""

    def __post_init__(self) -> None:
        rows = -1
        for name, declared in columns_of(type(self)).items():
            values = getattr(self, name)
            if values is None and declared.optional:
                values = self._default(name)
                if values is None:
                    continue
            values = self._lock(values) if self.adopts else self._check_column(name, declared, values, rows)
            assert rows in (-1, len(values)), (name, rows, len(values))
            rows = len(values)
            object.__setattr__(self, name, values)  # assignment in a frozen dataclass

    def _default(self, name: str) -> Any:
        """Return the default of an optional column, computed from earlier columns, or None."""
        return None

    @staticmethod
    def _lock(values: Any) -> Any:
        if isinstance(values, np.ndarray):
            values.flags.writeable = False
        return values

    def _check_column(self, name: str, declared: ColumnSpec, values: Any, rows: int) -> Any:
        if declared.dtype == object and isinstance(values, Iterable):
            return tuple(values)
        row = (len(getattr(self, n)) if isinstance(n, str) else n for n in declared.row)
        return frozen(values, declared.dtype, (rows, *row), name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rows: {', '.join(self.columns())})"

    def __len__(self) -> int:
        first = next(iter(columns_of(type(self))))
        return len(getattr(self, first))

    def columns(self) -> dict[str, Any]:
        """Return the columns that are not None.

        Returns
        -------
        dict of str to array
            Columns by name.

        Examples
        --------
        >>> from probox import Dataset
        >>> list(Dataset.from_sizes(["cup"], {7: (64, 48)}).columns())
        ['image_ids', 'widths', 'heights', 'file_names']
        """
        there = {name: getattr(self, name) for name in columns_of(type(self))}
        return {name: values for name, values in there.items() if values is not None}

    def take(self: SomeTable, rows: npt.NDArray[Any]) -> SomeTable:
        """Return the table of these rows, in this order.

        Parameters
        ----------
        rows : (K,) int64 or bool
            Row numbers or a mask.

        Returns
        -------
        Table
            The chosen rows.

        Examples
        --------
        >>> from probox import Dataset
        >>> Dataset.from_sizes(["cup"], {7: (64, 48), 9: (32, 24)}).take(np.array([1])).image_ids.tolist()
        [9]
        """
        return self.replace(**self.columns_at(rows))

    def columns_at(self, rows: npt.NDArray[Any]) -> dict[str, Any]:
        """Return some rows of all columns.

        Parameters
        ----------
        rows : (K,) int64 or bool
            Row numbers or a mask.

        Returns
        -------
        dict of str to array
            Columns by name.

        Examples
        --------
        >>> from probox import Dataset
        >>> Dataset.from_sizes(["cup"], {7: (64, 48), 9: (32, 24)}).columns_at(np.array([1]))["widths"].tolist()
        [32]
        """
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        return {name: take_rows(values, rows) for name, values in self.columns().items()}

    def flat(self, *, label_probs: bool = False) -> FlatTable:
        """Return a table with one number or text per cell, for display and export.

        Parameters
        ----------
        label_probs : bool
            Add a column with the probability of each class, for tables that have them.

        Returns
        -------
        FlatTable
            Named columns.

        Examples
        --------
        >>> from probox import Dataset
        >>> print(Dataset.from_sizes(["cup"], {7: (64, 48)}).flat())
        image_id  width  height
               7     64      48
        """
        from probox.tables.flat import FlatTable

        return FlatTable(self._flat_columns(label_probs), title=self._title())

    def _flat_columns(self, label_probs: bool) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of `flat`."""
        from probox.tables.flat import plain_columns

        self._has_no_label_probs(label_probs)
        return plain_columns(self.columns())

    def _has_no_label_probs(self, wanted: bool) -> None:
        if wanted:
            raise InputError(f"{type(self).__name__} has no probabilities of classes", remedy="leave label_probs out")

    def to_frame(self, library: str | None = None, *, label_probs: bool = False) -> Any:
        """Return a pandas or polars data frame.

        The columns are those of `flat`. Missing numbers are NaN or null.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            Library of the data frame. Default: pandas if it is installed, otherwise polars.
        label_probs : bool
            As for `flat`.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            The table.

        Examples
        --------
        >>> from probox import Dataset
        >>> frame = Dataset.from_sizes(["cup"], {7: (64, 48)}).to_frame()  # doctest: +SKIP
        """
        return self.flat(label_probs=label_probs).to_frame(library)

    def to_arrow(self, *, label_probs: bool = False) -> Any:
        """Return a ``pyarrow.Table`` with the columns of `flat`; missing values are null.

        Parameters
        ----------
        label_probs : bool
            As for `flat`.

        Returns
        -------
        pyarrow.Table
            The table.

        Examples
        --------
        >>> from probox import Dataset
        >>> table = Dataset.from_sizes(["cup"], {7: (64, 48)}).to_arrow()  # doctest: +SKIP
        """
        return self.flat(label_probs=label_probs).to_arrow()

    def _repr_html_(self) -> str:
        from probox.tables.flat import SHOWN_ROWS, FlatTable

        first = self.take(np.arange(min(len(self), SHOWN_ROWS)))  # flattening millions of rows would be slow
        return FlatTable(first._flat_columns(False), title=self._title(), rows=len(self))._repr_html_()

    def _title(self) -> str:
        """Return the title in notebooks: the table's own `repr`, or its name and number of rows."""
        own = type(self).__repr__ is not Table.__repr__
        return repr(self) if own else f"{type(self).__name__}, {len(self):,} rows"

    def replace(self: SomeTable, **changes: Any) -> SomeTable:
        """Return the table with some fields changed; the result is checked.

        Parameters
        ----------
        **changes
            Fields by name.

        Returns
        -------
        Table
            The changed table.

        Examples
        --------
        >>> from probox import Dataset
        >>> Dataset.from_sizes(["cup"], {7: (64, 48)}).replace(classes=["mug"]).classes
        ('mug',)
        """
        return dataclasses.replace(self, **changes)

    def _with_sound(self: SomeTable, columns: Mapping[str, Any]) -> SomeTable:
        """Return the table with other valid columns; they are made read-only, but not checked."""
        other: SomeTable = object.__new__(type(self))
        other.__dict__.update(vars(self))
        other.__dict__.update(columns)
        for values in columns.values():
            self._lock(values)
        return other

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a table from a copy or another process, with read-only columns."""
        self.__dict__.update(state)
        for values in state.values():
            self._lock(values)


def join_tables(parts: Sequence[SomeTable], order: npt.NDArray[np.int64] | None = None) -> SomeTable:
    """Concatenate tables, optionally in the given order of rows.

    Optional columns that a table lacks are left out. Other fields are those of the first table; callers ensure that
    they are equal.
    """
    columns = dict.fromkeys(parts[0].columns())
    for name in columns:
        values = [getattr(part, name) for part in parts]
        if all(value is not None for value in values):
            joined = join_values(values)
            columns[name] = joined if order is None else take_rows(joined, order)
    return parts[0].replace(**columns)


def join_values(values: Sequence[Any]) -> Any:
    """Concatenate the columns of several tables."""
    if isinstance(values[0], np.ndarray | tuple):
        return np.concatenate(values) if isinstance(values[0], np.ndarray) else tuple(chain.from_iterable(values))
    return type(values[0]).concatenate(values)


def take_rows(values: Any, rows: npt.NDArray[Any]) -> Any:
    """Return some rows of a column."""
    if isinstance(values, np.ndarray):
        return values[rows]
    if isinstance(values, tuple):
        return tuple(values[int(row)] for row in rows)
    return values.take(rows)


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike, shape: tuple[int, ...], name: str) -> npt.NDArray[Any]:
    """Return `values` as a read-only contiguous array of the given type; -1 in `shape` accepts any length."""
    array = to_numpy(values, name)
    if array.dtype.kind in "US" and array.size:
        raise InputError(f"expected {name} to be numbers, but got the text {str(array.flat[0])!r:.60}")
    if array.dtype.kind in OTHER_KINDS and array.dtype != dtype and array.size:
        raise InputError(f"expected {name} to be numbers, but got {array.dtype} ({array.flat[0]!s:.40})")
    try:
        if array.size == 0 and array.ndim < len(shape):
            array = array.reshape(tuple(0 if n < 0 else n for n in shape))
        with np.errstate(invalid="ignore"):  # values that do not fit are rejected below
            converted = np.ascontiguousarray(array, dtype=dtype)
    except OverflowError:
        raise InputError(f"expected {name} to be whole numbers that fit {np.dtype(dtype)}") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"expected {name} to be numbers in rows of equal length, but got {error}") from None
    if (
        np.issubdtype(converted.dtype, np.integer)
        and converted.dtype != array.dtype
        and not np.array_equal(converted, array)
    ):
        raise InputError(f"expected {name} to be whole numbers that fit {converted.dtype}")
    if array.ndim == 0:  # NumPy would make it a column
        raise InputError(f"expected {name} to be a list, but got one {array.dtype}", remedy=_about_shape((), shape))
    check_shape(converted.shape, shape, name)
    if converted is array or converted.base is not None:
        # A view shares memory that its owner may write to later; the table must not change then.
        converted = converted.copy() if _may_change(array) else converted
    converted.flags.writeable = False
    return converted


def check_shape(have: tuple[int, ...], shape: tuple[int, ...], name: str) -> None:
    """Raise for a wrong shape; -1 accepts any length."""
    if len(have) == len(shape) and all(want in (-1, n) for want, n in zip(shape, have, strict=True)):
        return
    wanted = " x ".join("N" if n < 0 else str(n) for n in shape)
    raise InputError(
        f"expected {name} of shape {wanted}, but got {' x '.join(map(str, have)) or 'a scalar'}",
        remedy=_about_shape(have, shape),
    )


def _may_change(array: npt.NDArray[Any]) -> bool:
    """Return whether an array's memory is writeable, through the array itself or one that it is a view of."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        owner = owner.base
    return False


def _about_shape(have: tuple[int, ...], want: tuple[int, ...]) -> str | None:
    """Return the fix for a wrong shape, if it is obvious."""
    if len(want) == 2 and len(have) == 2 and all(w in (-1, h) for w, h in zip(want, have[::-1], strict=True)):
        return "transpose it: one row each"
    if len(have) < len(want):
        return "give a list of rows, also for a single one"
    return None


def rows_where_all(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return for each row whether all its flags are set."""
    columns = flags.reshape(len(flags), math.prod(flags.shape[1:])).T
    found = np.ones(len(flags), np.bool_)
    for column in columns:  # ten times as fast as `all` along rows of a few flags
        found &= column
    return found
