"""A tensor of a library that is not there, on a device that is not there."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Tensor"]


class Tensor:
    """Something on another device: it gives its numbers only after leaving its graph and its device."""

    def __init__(self, values: Any, state: str = "gpu with graph", dtype: Any = None) -> None:
        self.values, self.state, self.dtype = values, state, dtype

    def detach(self) -> Tensor:
        return Tensor(self.values, self.state.replace(" with graph", ""), self.dtype)

    def cpu(self) -> Tensor:
        return Tensor(self.values, self.state.replace("gpu", "cpu"), self.dtype)

    def float(self) -> Tensor:
        return Tensor(self.values, self.state)

    def numpy(self) -> Any:
        if self.state != "cpu":
            raise RuntimeError(f"this is on {self.state}")
        if self.dtype == "bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return np.asarray(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("can't convert a tensor of another device to numpy")
