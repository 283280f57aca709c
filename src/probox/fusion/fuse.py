"""Passes, members of an ensemble, or candidates, fused into probabilistic detections.

The kernel clusters boxes; `probox.fusion.fusion_definition` says in plain Python what each of its functions returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox._core import cluster_sequentially, members_of_survivors, suppress
from probox.errors import InputError
from probox.fusion.gaussian import Border, Spread, apply_border, cluster_gaussians, floor_std
from probox.support.types import Floats, Ints
from probox.tables.detections import Detections
from probox.tables.labels import align_labels, limit_to_distribution
from probox.tables.table import frozen, to_numpy


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


LabelAffinity = Literal["same", "similar", "none"]

LABEL_AFFINITIES: tuple[str, ...] = get_args(LabelAffinity)


def fuse_samples(
    boxes: Sequence[npt.ArrayLike],
    label_probs: Sequence[npt.ArrayLike],
    *,
    classes: Sequence[str],
    image_id: int = 0,
    image_size: tuple[float, float] | None = None,
    border: Border = "keep",
    covariances: Sequence[npt.ArrayLike] | None = None,
    iou: float = 0.7,
    label_affinity: LabelAffinity = "same",
    label_similarity: float = 0.5,
    min_members: int = 1,
    absent_counts: bool = False,
    min_std: float = Spread.min_std,
    prior_std: float = Spread.prior_std,
    shrinkage: float = Spread.shrinkage,
) -> Detections:
    """Fuse the detections of one image from several stochastic passes or ensemble members.

    Detections are clustered by the basic sequential algorithmic scheme (BSAS), pass by pass in the given order: each
    joins the cluster whose mean box it overlaps most, if that IoU is at least `iou` and their labels agree, or else
    starts a cluster. A cluster's label distribution is the mean of its members', its corners are Gaussians with the
    members' mean and covariance (see `Spread` for small clusters).

    Parameters
    ----------
    boxes : sequence of (n, 4)
        ``x1, y1, x2, y2`` of each pass, best detections first.
    label_probs : sequence of (n, C)
        Class probabilities of each pass; scores of one sigmoid per class are accepted, see `limit_to_distribution`.
    classes : sequence of str
        Class names.
    image_id : int
        The image's id, for the result.
    image_size : (width, height), optional
        Clip boxes to the image. Default: leave them as they are.
    border : {"keep", "pin"}
        ``keep`` the estimated std of edges at the image border, or ``pin`` them, which is PDQ-optimal and needs
        `image_size`: see `keep_inside`.
    covariances : sequence of (n, 2, 2, 2), optional
        Corner covariances of the detections, where the passes are probabilistic themselves: the cluster's covariance
        is then the mixture's, the mean of theirs plus the covariance of their means, and needs no prior.
    iou : float
        Spatial affinity a detection must have with a cluster.
    label_affinity : {"same", "similar", "none"}
        ``same``: same winning label. ``similar``: label distributions overlap by at least `label_similarity`
        (``sum_c min(p_c, q_c)``, both scaled to 1). ``none``: labels don't matter.
    label_similarity : float
        For ``similar``.
    min_members : int
        Leave out clusters with fewer members.
    absent_counts : bool
        Average label probabilities over all passes, those without a member counting as 0, instead of over members:
        a detection that few passes see gets a low score.
    min_std, prior_std, shrinkage : float
        The covariance of small clusters, see `Spread`.

    Returns
    -------
    Detections
        One row per cluster, highest score first.

    Examples
    --------
    >>> passes = [[[10, 10, 50, 50]], [[12, 10, 52, 50]], [[11, 10, 51, 53], [200, 0, 260, 80]]]
    >>> probs = [[[0.9, 0.0]], [[0.8, 0.1]], [[0.7, 0.2], [0.1, 0.6]]]
    >>> fused = fuse_samples(passes, probs, classes=["cup", "dog"])
    >>> fused.boxes.tolist(), fused.scores.round(3).tolist()
    ([[11.0, 10.0, 51.0, 51.0], [200.0, 0.0, 260.0, 80.0]], [0.8, 0.6])
    """
    spread = Spread(min_std=min_std, prior_std=prior_std, shrinkage=shrinkage)
    if not 0.0 < iou <= 1.0:
        raise InputError(f"expected iou between 0 and 1, but got {iou!r}")
    if label_affinity not in LABEL_AFFINITIES:
        raise InputError(f"expected label_affinity to be 'same', 'similar' or 'none', but got {label_affinity!r}")
    all_boxes, counts = _stack(boxes, (4,), "boxes")
    all_probs, probs_counts = _stack(label_probs, (len(classes),), "label_probs")
    own, own_counts = (None, counts) if covariances is None else _stack(covariances, (2, 2, 2), "covariances")
    if not counts == probs_counts == own_counts:
        raise InputError(
            "expected as many label_probs (and covariances) as boxes in every pass",
            image=image_id,
            remedy="pass one array per pass, empty where a pass found nothing",
        )
    _check_values(all_boxes, all_probs, image_id)

    cluster = cluster_sequentially(
        all_boxes,
        iou,
        labels=_winners(all_probs) if label_affinity == "same" else None,
        label_probs=all_probs if label_affinity == "similar" else None,
        label_similarity=label_similarity,
    )
    clusters = int(cluster.max(initial=-1)) + 1
    members = np.bincount(cluster, minlength=clusters)
    # A pass may contribute twice to a cluster: then there can be more members than passes.
    shares = np.maximum(members, len(counts)) if absent_counts else members
    probs = _sum_by_cluster(all_probs, cluster, clusters) / shares[:, None]
    means, estimate, observations = cluster_gaussians(all_boxes, np.ones(len(all_boxes)), cluster, clusters, own)
    final = spread.apply(estimate, observations, means) if own is None else floor_std(estimate, min_std)
    keep = np.flatnonzero(members >= min_members)
    return _detections(means[keep], final[keep], probs[keep], None, classes, image_id, image_size, border)


def fuse_candidates(
    boxes: npt.ArrayLike,
    label_probs: npt.ArrayLike,
    *,
    classes: Sequence[str],
    image_id: int = 0,
    image_size: tuple[float, float] | None = None,
    border: Border = "keep",
    labels: npt.ArrayLike | None = None,
    nms_iou: float = 0.5,
    cluster_iou: float = 0.75,
    class_agnostic: bool = False,
    max_detections: int | None = None,
    min_std: float = Spread.min_std,
    prior_std: float = Spread.prior_std,
    shrinkage: float = Spread.shrinkage,
) -> Detections:
    """Fuse one image's candidates before suppression: each survivor with the candidates it suppresses.

    Non-maximum suppression is run as usual. Each survivor forms a cluster with all suppressed candidates whose IoU
    with it is above `cluster_iou`; the cluster's corners are Gaussians with the members' mean and covariance, weighted
    by winning confidence. The label distribution is the survivor's.

    Parameters
    ----------
    boxes : (N, 4)
        ``x1, y1, x2, y2``.
    label_probs : (N, C)
        Class probabilities; scores of one sigmoid per class are accepted, see `limit_to_distribution`.
    classes : sequence of str
        Class names.
    image_id : int
        The image's id, for the result.
    image_size : (width, height), optional
        Clip boxes to the image. Default: leave them as they are.
    border : {"keep", "pin"}
        ``keep`` the estimated std of edges at the image border, or ``pin`` them, which is PDQ-optimal and needs
        `image_size`: see `keep_inside`.
    labels : (N,), optional
        The class each candidate stands for, where it is not the winning one (a head with a box per class).
    nms_iou : float
        A candidate whose IoU with a better one is above this is suppressed.
    cluster_iou : float
        A suppressed candidate whose IoU with a survivor is above this belongs to its cluster.
    class_agnostic : bool
        Let candidates suppress those of other classes too.
    max_detections : int, optional
        Keep this many survivors, the best.
    min_std, prior_std, shrinkage : float
        The covariance of small clusters, see `Spread`.

    Returns
    -------
    Detections
        One row per survivor, highest score first.

    Examples
    --------
    >>> fused = fuse_candidates([[10, 10, 50, 50], [12, 10, 52, 50]], [[0.6, 0.1], [0.3, 0.0]], classes=["cup", "dog"])
    >>> fused.boxes.round(2).tolist(), fused.scores.round(2).tolist()
    ([[10.67, 10.0, 50.67, 50.0]], [0.6])
    """
    spread = Spread(min_std=min_std, prior_std=prior_std, shrinkage=shrinkage)
    all_boxes = frozen(boxes, np.float64, (-1, 4), "boxes")
    probs = frozen(label_probs, np.float64, (len(all_boxes), len(classes)), "label_probs")
    _check_values(all_boxes, probs, image_id)
    named = _winners(probs) if labels is None else frozen(labels, np.int64, (len(probs),), "labels")
    if len(named) and (named.min() < 0 or named.max() >= len(classes)):
        raise InputError("labels must count in classes", image=image_id)
    scores = probs[np.arange(len(probs)), named] if len(probs) else np.zeros(0)
    stands_for, survivors = survivors_of(all_boxes, scores, named, nms_iou, class_agnostic, max_detections)
    groups = np.zeros_like(named) if class_agnostic else named
    cluster, member = members_of_survivors(
        boxes=all_boxes, groups=groups, stands_for=stands_for, survivors=survivors, iou=cluster_iou
    )
    # A confidence of 0 would leave a cluster without weight.
    weights = np.maximum(scores[member], np.finfo(np.float64).tiny ** 0.5)
    means, estimate, observations = cluster_gaussians(all_boxes[member], weights, cluster, len(survivors))
    covariances = spread.apply(estimate, observations, means)
    return _detections(means, covariances, probs[survivors], named[survivors], classes, image_id, image_size, border)


def _stack(passes: Sequence[npt.ArrayLike], row_shape: tuple[int, ...], name: str) -> tuple[Floats, list[int]]:
    """Return the rows of all passes as one array, and how many each pass has; an empty pass may have any shape."""
    arrays = [to_numpy(rows, name) for rows in passes]
    full = [
        frozen(rows, np.float64, (-1, *row_shape), f"{name} of pass {number}")
        for number, rows in enumerate(arrays)
        if rows.size
    ]
    counts = [len(rows) if rows.size else 0 for rows in arrays]
    return np.concatenate(full) if full else np.zeros((0, *row_shape)), counts


def _check_values(boxes: Floats, probs: Floats, image_id: int) -> None:
    bad = ~(np.isfinite(boxes).all(axis=1) & (boxes[:, 2:] >= boxes[:, :2]).all(axis=1))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"expected finite corners with x1 <= x2 and y1 <= y2, but got {boxes[row].tolist()}",
            image=image_id,
            entry=f"box {row}",
            remedy="write corners as [x1, y1, x2, y2]",
        )
    # Written so that NaN is outside too.
    if probs.size and not (probs.min() >= 0.0 and probs.max() <= 1.0):
        row = int(np.flatnonzero(~((probs >= 0.0) & (probs <= 1.0)).all(axis=1))[0])
        raise InputError(
            "expected class probabilities between 0 and 1",
            image=image_id,
            entry=f"label_probs {row}",
            remedy="apply softmax or sigmoid first",
        )


def _winners(probs: Floats) -> Ints:
    return probs.argmax(axis=1).astype(np.int64) if probs.shape[1] else np.zeros(len(probs), np.int64)


def _sum_by_cluster(values: Floats, cluster: Ints, clusters: int) -> Floats:
    if clusters == 0:
        return np.zeros((0, values.shape[1]))
    order = np.argsort(cluster, kind="stable")
    starts = np.searchsorted(cluster[order], np.arange(clusters))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0))


def _detections(
    boxes: Floats,
    covariances: Floats,
    probs: Floats,
    labels: Ints | None,
    classes: Sequence[str],
    image_id: int,
    image_size: tuple[float, float] | None,
    border: str,
) -> Detections:
    boxes, covariances = apply_border(boxes, covariances, image_size, border)
    named = _winners(probs) if labels is None else labels
    scores = probs[np.arange(len(probs)), named] if probs.size else np.zeros(len(probs))
    order = np.argsort(-scores, kind="stable")
    return Detections(
        classes=tuple(classes),
        image_ids=np.full(len(order), image_id, np.int64),
        boxes=boxes[order],
        covariances=covariances[order],
        label_probs=limit_to_distribution(probs[order]),
        labels=named[order].astype(np.int32),
        scores=scores[order],
    )


def fuse_detections(
    members: Sequence[Detections], *, image_sizes: Mapping[int, tuple[float, float]] | None = None, **options: Any
) -> Detections:
    """Fuse the detections of ensemble members, which may be probabilistic themselves.

    Parameters
    ----------
    members : sequence of Detections
        One table for each detector (or pass), about the same images. Classes are those of the first; columns of the
        others are found by name.
    image_sizes : dict of image id to (width, height), optional
        Clip boxes to the images.
    **options
        Of `fuse_samples`: `border`, `iou`, `label_affinity`, `min_members`, `absent_counts`, `min_std` and so on.

    Returns
    -------
    Detections
        By image id, highest score first.

    Examples
    --------
    >>> one = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 60]], label_probs=[[0.9]])
    >>> two = Detections(classes=["Cup"], image_ids=[7], boxes=[[12, 20, 52, 60]], label_probs=[[0.7]])
    >>> fused = fuse_detections([one, two])
    >>> fused.boxes.tolist(), fused.scores.round(2).tolist()
    ([[11.0, 20.0, 51.0, 60.0]], [0.8])
    """
    if not members:
        raise InputError("expected at least one member to fuse")
    if any(member.heatmaps is not None for member in members):
        raise InputError("heatmaps can't be fused", remedy="use detections with boxes")
    classes = members[0].classes
    probs = [align_labels(member.label_probs, member.classes, classes) for member in members]
    probabilistic = any(member.covariances is not None for member in members)
    orders = [np.argsort(member.image_ids, kind="stable") for member in members]
    sorted_ids = [member.image_ids[order] for member, order in zip(members, orders, strict=True)]
    parts: list[Detections] = []
    for image_id in np.unique(np.concatenate(sorted_ids)).tolist():
        rows = [
            order[slice(*np.searchsorted(ids, [image_id, image_id + 1]))]
            for ids, order in zip(sorted_ids, orders, strict=True)
        ]
        parts.append(
            fuse_samples(
                [member.boxes[own] for member, own in zip(members, rows, strict=True)],
                [columns[own] for columns, own in zip(probs, rows, strict=True)],
                classes=classes,
                image_id=image_id,
                image_size=None if image_sizes is None else image_sizes.get(image_id),
                covariances=[_covariances(member, own) for member, own in zip(members, rows, strict=True)]
                if probabilistic
                else None,
                **options,
            )
        )
    return join_tables(parts, classes)


def join_tables(parts: Sequence[Detections], classes: Sequence[str]) -> Detections:
    """Return tables of the same classes as one."""
    names = ["image_ids", "boxes", "label_probs", "labels", "scores"]
    if not parts:
        empty = np.zeros(0, np.int64)
        return Detections(
            classes=tuple(classes),
            image_ids=empty,
            boxes=np.zeros((0, 4)),
            label_probs=np.zeros((0, len(classes)), np.float32),
        )
    if parts[0].covariances is not None:
        names.append("covariances")
    columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Detections(classes=tuple(classes), **columns)


def _covariances(member: Detections, rows: Ints) -> Floats:
    return np.zeros((len(rows), 2, 2, 2)) if member.covariances is None else member.covariances[rows]
