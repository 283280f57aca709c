"""torchvision beside a torch that its compiled operators were not built for: suppression in plain torch.

`load_torchvision` returns torchvision. Where its operators do not load, it cannot even be imported, because it
describes two of them by name; so these are declared, suppression is written out, and regions are pooled by
torchvision's own plain version, which it takes when it knows that there are no operators.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from pathlib import Path
from typing import Any

__all__ = ["load_torchvision", "suppress"]

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

_kept: list[Any] = []
"""The library of operators, which are gone when it is."""


def load_torchvision() -> Any:
    """Import torchvision, with suppression in plain torch if its own operators do not load."""
    import torch

    if _operators_load(torch):
        return importlib.import_module("torchvision")
    if not _kept:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(name + _SIGNATURE)
        library.impl("nms", suppress, "CPU")
        _kept.append(library)
    torchvision = importlib.import_module("torchvision")
    boxes: Any = importlib.import_module("torchvision.ops.boxes")
    boxes._assert_has_ops = lambda: None  # nms has one now
    pooling: Any = importlib.import_module("torchvision.ops.roi_align")
    pooling.is_compile_supported = lambda device: True
    pooling._roi_align = inspect.unwrap(pooling._roi_align)  # compiling it takes minutes, running it as it is none
    return torchvision


def suppress(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Return the rows that survive non-maximum suppression, best first: boxes (n, 4) as x1 y1 x2 y2, scores (n,)."""
    import torch

    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    alive = torch.ones(len(boxes), dtype=torch.bool)
    kept = []
    for row in torch.argsort(scores, descending=True, stable=True).tolist():
        if not alive[row]:
            continue
        kept.append(row)
        low = torch.maximum(boxes[row, :2], boxes[:, :2])
        high = torch.minimum(boxes[row, 2:], boxes[:, 2:])
        shared = (high - low).clamp(min=0).prod(dim=1)
        alive &= shared / (areas[row] + areas - shared) <= iou_threshold
    return torch.tensor(kept, dtype=torch.int64)


def _operators_load(torch: Any) -> bool:
    """Return whether torchvision's compiled operators load, without importing torchvision."""
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        return True  # not there: importing it says so
    libraries = sorted(Path(found.origin).parent.glob("_C.*"))
    try:
        for library in libraries:
            torch.ops.load_library(str(library))
    except OSError:
        return False
    return bool(libraries)
