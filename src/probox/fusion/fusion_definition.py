"""Clustering of boxes in plain Python: slow, readable, and the reference for tests of the kernel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.support.types import Floats, Ints

__all__ = ["box_iou", "cluster_sequentially", "label_overlap", "members_of_survivors", "suppress"]


def box_iou(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the intersection over union of two boxes ``x1, y1, x2, y2``; 0 if both are empty.

    >>> box_iou([0, 0, 2, 2], [1, 0, 3, 2])
    0.3333333333333333
    """
    ax1, ay1, ax2, ay2 = (float(value) for value in np.asarray(first))
    bx1, by1, bx2, by2 = (float(value) for value in np.asarray(second))
    width = min(ax2, bx2) - max(ax1, bx1)
    height = min(ay2, by2) - max(ay1, by1)
    if width <= 0.0 or height <= 0.0:
        return 0.0
    intersection = width * height
    return intersection / ((ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - intersection)


def label_overlap(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return ``sum_c min(p_c, q_c)`` of two label distributions, each normalised to sum 1.

    It is 1 for equal distributions, 0 for those without a common class, and 1 minus their total variation distance.
    """
    p, q = np.asarray(first, np.float64), np.asarray(second, np.float64)
    total_p, total_q = float(p.sum()), float(q.sum())
    if total_p <= 0.0 or total_q <= 0.0:
        return 0.0
    return float(np.minimum(p / total_p, q / total_q).sum())


def cluster_sequentially(
    boxes: Floats,
    iou: float,
    labels: Ints | None = None,
    label_probs: Floats | None = None,
    label_similarity: float = 0.0,
) -> Ints:
    """Return the cluster of each box by the basic sequential algorithmic scheme (BSAS).

    Boxes are processed in the given order. Each joins the cluster whose mean box it overlaps most, if that IoU is at
    least `iou`, or else starts a cluster; ties go to the earliest cluster. With `labels`, only clusters with the same
    label are considered; with `label_probs`, only those whose mean label distribution overlaps by at least
    `label_similarity`.
    """
    cluster_of = np.zeros(len(boxes), np.int64)
    sums: list[Floats] = []
    counts: list[int] = []
    label_of: list[int] = []
    label_sums: list[Floats] = []
    for row, box in enumerate(boxes):
        best, best_iou = -1, -1.0
        for cluster, count in enumerate(counts):
            if labels is not None and label_of[cluster] != labels[row]:
                continue
            if label_probs is not None and label_overlap(label_probs[row], label_sums[cluster]) < label_similarity:
                continue
            overlap = box_iou(box, sums[cluster] / count)
            if overlap >= iou and overlap > best_iou:
                best, best_iou = cluster, overlap
        if best < 0:
            best = len(counts)
            sums.append(np.zeros(4))
            counts.append(0)
            label_of.append(-1 if labels is None else int(labels[row]))
            label_sums.append(np.zeros(0 if label_probs is None else label_probs.shape[1]))
        sums[best] = sums[best] + box
        counts[best] += 1
        if label_probs is not None:
            label_sums[best] = label_sums[best] + label_probs[row]
        cluster_of[row] = best
    return cluster_of


def suppress(boxes: Floats, groups: Ints, order: Ints, iou: float) -> Ints:
    """Return, for each box, the row that suppresses it, or its own row if it survives NMS.

    Boxes are processed in `order`, best first. A box whose IoU with an earlier survivor of its group is above `iou` is
    suppressed by the first such survivor; every other box survives.
    """
    stands_for = np.zeros(len(boxes), np.int64)
    survivors: list[int] = []
    for row in (int(value) for value in order):
        stands_for[row] = row
        for survivor in survivors:
            if groups[survivor] == groups[row] and box_iou(boxes[survivor], boxes[row]) > iou:
                stands_for[row] = survivor
                break
        else:
            survivors.append(row)
    return stands_for


def members_of_survivors(
    boxes: Floats, groups: Ints, stands_for: Ints, survivors: Ints, iou: float
) -> tuple[Ints, Ints]:
    """Return, for each survivor, itself and all suppressed boxes of its group that overlap it by more than `iou`.

    Returns
    -------
    cluster, member : (M,) int64
        The position in `survivors` and the row in `boxes` of each membership, by cluster, then row, the survivor
        itself first. A suppressed box may belong to several survivors.
    """
    cluster: list[int] = []
    member: list[int] = []
    for position, survivor in enumerate(int(value) for value in survivors):
        cluster.append(position)
        member.append(survivor)
        for row in range(len(boxes)):
            suppressed = stands_for[row] != row
            if suppressed and groups[row] == groups[survivor] and box_iou(boxes[survivor], boxes[row]) > iou:
                cluster.append(position)
                member.append(row)
    return np.array(cluster, np.int64), np.array(member, np.int64)
