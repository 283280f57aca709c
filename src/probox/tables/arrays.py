"""Numbers as people hold them: lists, arrays of NumPy, tensors of other libraries on any device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError

__all__ = ["entry_of", "to_numpy"]


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
