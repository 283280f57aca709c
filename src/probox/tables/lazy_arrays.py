"""Arrays that are made when they are used, and not kept: what they all do alike."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["LazyArray"]


class LazyArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An H x W array that subclasses make in ``__array__``; they also set `shape`, `dtype`, `size` and `nbytes`."""

    ndim = 2
    shape: tuple[int, ...]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [np.asarray(value) if isinstance(value, LazyArray) else value for value in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __len__(self) -> int:
        return self.shape[0]
