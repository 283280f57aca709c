"""Objects of the shape of frameworks that cannot be installed everywhere: detectron2's and mmdet's."""

from __future__ import annotations

from typing import Any

__all__ = ["Boxes", "DetDataSample", "Instances"]


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
