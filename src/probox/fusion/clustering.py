"""Which boxes belong together: the kernel's clustering.

`probox.fusion.fusion_definition` says in plain Python what each function returns; both give the same rows.
"""

from __future__ import annotations

import numpy as np

from probox._core import cluster_sequentially, members_of_survivors, suppress
from probox.support.types import Floats, Ints

__all__ = ["cluster_sequentially", "members_of_survivors", "suppress", "survivors_of"]


def survivors_of(
    boxes: Floats,
    scores: Floats,
    labels: Ints,
    iou: float,
    class_agnostic: bool = False,
    max_detections: int | None = None,
) -> tuple[Ints, Ints]:
    """Return the row that stands for each candidate after non-maximum suppression, and the survivors, best first."""
    order = np.argsort(-scores, kind="stable")
    groups = np.zeros_like(labels) if class_agnostic else labels
    stands_for = suppress(boxes, groups, order, iou)
    survivors = order[stands_for[order] == order][:max_detections]
    return stands_for, survivors
