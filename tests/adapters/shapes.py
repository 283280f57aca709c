"""Objects of the shape of frameworks that cannot be installed everywhere: detectron2's and mmdet's."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Boxes", "DetDataSample", "Instances", "Tensor"]


class Tensor:
    """An array on a device: NumPy cannot take it before it is detached and brought to the CPU."""

    def __init__(self, values: Any, place: str = "cuda:0") -> None:
        self.values, self.place = np.asarray(values), place

    def detach(self) -> Tensor:
        return Tensor(self.values, self.place)

    def cpu(self) -> Tensor:
        return Tensor(self.values, "cpu")

    def numpy(self) -> Any:
        if self.place != "cpu":
            raise TypeError(f"can't convert {self.place} device type tensor to numpy")
        return self.values

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.numpy()

    def __len__(self) -> int:
        return len(self.values)


class Boxes:
    """detectron2's boxes."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


class Instances:
    """detectron2's instances: a size, and fields that raise where they are not."""

    def __init__(self, image_size: tuple[int, int], **fields: Any) -> None:
        self._image_size, self._fields = image_size, fields

    @property
    def image_size(self) -> tuple[int, int]:
        return self._image_size

    def __getattr__(self, name: str) -> Any:
        if name == "_fields" or name not in self._fields:
            raise AttributeError(f"Cannot find field '{name}' in the given Instances!")
        return self._fields[name]


class DetDataSample:
    """mmdet's sample: what was found, and what is known of the image, which it has as attributes too."""

    def __init__(self, pred_instances: Any, **metainfo: Any) -> None:
        self.pred_instances, self.metainfo = pred_instances, metainfo

    def __getattr__(self, name: str) -> Any:
        if name == "metainfo" or name not in self.metainfo:
            raise AttributeError(name)
        return self.metainfo[name]
