"""Which boxes belong together: the kernel's clustering, or its plain twin where there is no kernel.

`probox.fusion.definition` says what each function returns; both give the same rows.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.fusion import definition

__all__ = ["cluster_sequentially", "members_of_survivors", "suppress"]

Boxes = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@cache
def _kernel() -> Any:
    # Fusing is useful beside a training framework, in an interpreter the kernel was not built for.
    try:
        core = import_module("probox._core")
    except ImportError:
        return definition
    return core if hasattr(core, "cluster_sequentially") else definition


def cluster_sequentially(
    boxes: Boxes,
    iou: float,
    labels: Rows | None = None,
    label_probs: npt.NDArray[np.float64] | None = None,
    label_similarity: float = 0.0,
) -> Rows:
    """Return the cluster of each box by the basic sequential algorithmic scheme (BSAS)."""
    rows: Rows = _kernel().cluster_sequentially(boxes, iou, labels, label_probs, label_similarity)
    return rows


def suppress(boxes: Boxes, groups: Rows, order: Rows, iou: float) -> Rows:
    """Return, for each box, the row of the box that stands for it after non-maximum suppression."""
    rows: Rows = _kernel().suppress(boxes, groups, order, iou)
    return rows


def members_of_survivors(
    boxes: Boxes, groups: Rows, stands_for: Rows, survivors: Rows, iou: float
) -> tuple[Rows, Rows]:
    """Return, for each survivor, itself and all suppressed boxes of its group that overlap it by more than `iou`."""
    pair: tuple[Rows, Rows] = _kernel().members_of_survivors(boxes, groups, stands_for, survivors, iou)
    return pair
