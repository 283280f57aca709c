"""Checks of arguments, and arrays from lists, NumPy and tensors of other libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError

if TYPE_CHECKING:
    from probox.tables.dataset import Dataset


def entry_of(holder: Any, name: str) -> Any:
    """Return an entry of a dictionary, or an attribute of an object; None where there is neither.

    >>> entry_of({"boxes": 3}, "boxes"), entry_of(3, "boxes")
    (3, None)
    """
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def to_numpy(values: Any, name: str = "values") -> npt.NDArray[Any]:
    """Return numbers as an array of NumPy, whatever holds them; no other library is imported for it.

    A tensor is taken out of its graph and off its device. Types that NumPy does not have (bfloat16) become float32.
    Of an object that has ``__dlpack__`` alone, the numbers are copied.

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
        return np.asarray(values.get())  # CuPy, which refuses to be converted silently
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InputError(
            f"expected {name} to be numbers in rows of equal length, but got {values!r:.60}",
            remedy="give one list of numbers per row, all of them equally long",
        ) from None


def _is_tensor(value: Any) -> bool:
    """Return whether this is a tensor in torch's manner: it has a graph to leave and a device to come from."""
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
        except TypeError:  # a type that NumPy does not have
            return np.asarray(here.float().numpy())
    except (
        TypeError,
        ValueError,
        RuntimeError,
        BufferError,
    ) as error:  # also of a tensor without data, on torch's device "meta"
        problem = f"expected {name} to be a tensor that NumPy can take, but got {type(values).__name__} ({error})"
        raise InputError(problem, remedy="give a dense tensor of numbers, or an array of NumPy") from None


MAX_CLASSES = 1 << 15

"""The most classes of a data set or a detector: what is kept of each takes a few kB, whether anything has it or not."""

SURROGATE = re.compile("[\ud800-\udfff]")

"""Half of a character: no encoding has it."""

LONGEST_NAME = 1024

"""The most characters of a class name or of an image's file name."""


def expect(value: Any, kind: type, name: str, remedy: str | None = None) -> None:
    """Raise unless an argument is of a kind.

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
    """Raise unless an argument is a path: a number would be taken for an open file."""
    if not isinstance(value, str | os.PathLike):
        problem = f"expected argument `{name}` to be a path, but got {type(value).__name__}"
        raise InputError(problem, remedy=remedy)


def check_tables(truth: Any, detections: Any, call: str) -> None:
    """Raise unless `truth` and `detections` are the tables that ``call(truth, detections)`` takes."""
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
    """Return the data set of ground truth, or itself; `order` tells what the arguments are."""
    from probox.tables.dataset import Dataset
    from probox.tables.groundtruth import GroundTruth

    if isinstance(truth, Dataset):
        return truth
    is_path = isinstance(truth, str | os.PathLike)
    expect(truth, GroundTruth, "truth", "read it first with probox.read_truth(path)" if is_path else order)
    dataset: Dataset = truth.dataset
    return dataset


def check_classes(classes: Any, name: str = "classes", *, file: str | None = None) -> tuple[str, ...]:
    """Return class names as a tuple; one text is not several names. `file` is where they come from, for messages."""
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
        raise InputError(problem, file=file, remedy="leave out classes that nothing has")
    for number, entry in enumerate(names):
        if len(entry) > LONGEST_NAME:
            problem = f"expected a class name of at most {LONGEST_NAME:,} characters, but got one of {len(entry):,}"
            raise InputError(problem, file=file, entry=f"class {number}", remedy="shorten it")
        if not entry.isascii() and SURROGATE.search(entry):
            problem = f"expected a class name in Unicode text, but got {entry!a:.60}"
            raise InputError(problem, file=file, entry=f"class {number}", remedy="write the name in UTF-8")
    return names
