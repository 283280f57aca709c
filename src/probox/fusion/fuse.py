"""Fuse passes, ensemble members, candidates or edge distributions into probabilistic detections.

The kernel clusters boxes; `probox.fusion.fusion_definition` implements the same functions in plain Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox._core import cluster_sequentially, members_of_survivors, suppress
from probox.errors import InputError
from probox.fusion.gaussian import Border, Spread, apply_border, cluster_gaussians, floor_std
from probox.notes import Note
from probox.support.types import Floats, Ints
from probox.tables.detections import Detections
from probox.tables.labels import align_labels, limit_to_distribution, softmax
from probox.tables.table import frozen, join_tables, to_numpy


def survivors_of(
    boxes: Floats,
    scores: Floats,
    labels: Ints,
    iou: float,
    class_agnostic: bool = False,
    max_detections: int | None = None,
) -> tuple[Ints, Ints]:
    """Return the row that suppresses each candidate (itself if it survives NMS), and the survivors, best first."""
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
    starts a cluster. A cluster's label distribution is the mean of its members'. Its corners are Gaussians with the
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
        Image id of the result.
    image_size : (width, height), optional
        Clip boxes to the image. Default: no clipping.
    border : {"keep", "pin"}
        ``keep`` the estimated std of edges at the image border, or ``pin`` them, which is PDQ-optimal and needs
        `image_size`: see `keep_inside`.
    covariances : sequence of (n, 2, 2, 2), optional
        Corner covariances of the detections, if the passes are probabilistic. The cluster then has the covariance of
        the mixture: the mean of the members' covariances plus the covariance of their means, without a prior.
    iou : float
        Minimum IoU of a detection with the mean box of a cluster.
    label_affinity : {"same", "similar", "none"}
        ``same``: same most probable label. ``similar``: label distributions overlap by at least `label_similarity`
        (``sum_c min(p_c, q_c)``, both normalised). ``none``: labels are ignored.
    label_similarity : float
        Minimum overlap for ``similar``.
    min_members : int
        Minimum number of members; smaller clusters are left out.
    absent_counts : bool
        Average label probabilities over all passes instead of members, with 0 for passes without a member. Detections
        that few passes contain get a low score.
    min_std, prior_std, shrinkage : float
        Covariance of small clusters, see `Spread`.

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
            remedy="pass one array per pass, empty for a pass without detections",
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
    # A pass may contribute several members to a cluster, so there can be more members than passes.
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

    NMS runs as usual. Each survivor forms a cluster with all suppressed candidates whose IoU with it is above
    `cluster_iou`. The cluster's corners are Gaussians with the members' mean and covariance, weighted by their highest
    class probability. The label distribution is the survivor's.

    Parameters
    ----------
    boxes : (N, 4)
        ``x1, y1, x2, y2``.
    label_probs : (N, C)
        Class probabilities; scores of one sigmoid per class are accepted, see `limit_to_distribution`.
    classes : sequence of str
        Class names.
    image_id : int
        Image id of the result.
    image_size : (width, height), optional
        Clip boxes to the image. Default: no clipping.
    border : {"keep", "pin"}
        ``keep`` the estimated std of edges at the image border, or ``pin`` them, which is PDQ-optimal and needs
        `image_size`: see `keep_inside`.
    labels : (N,), optional
        Class of each candidate, if it is not the most probable one (a head with a box per class).
    nms_iou : float
        IoU threshold of NMS.
    cluster_iou : float
        Minimum IoU of a suppressed candidate with a survivor to join its cluster.
    class_agnostic : bool
        Suppress across classes.
    max_detections : int, optional
        Maximum number of survivors, by score.
    min_std, prior_std, shrinkage : float
        Covariance of small clusters, see `Spread`.

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
        raise InputError("expected labels to be indices of classes", image=image_id)
    scores = probs[np.arange(len(probs)), named] if len(probs) else np.zeros(0)
    stands_for, survivors = survivors_of(all_boxes, scores, named, nms_iou, class_agnostic, max_detections)
    groups = np.zeros_like(named) if class_agnostic else named
    cluster, member = members_of_survivors(
        boxes=all_boxes, groups=groups, stands_for=stands_for, survivors=survivors, iou=cluster_iou
    )
    # A confidence of 0 would give a cluster zero total weight.
    weights = np.maximum(scores[member], np.finfo(np.float64).tiny ** 0.5)
    means, estimate, observations = cluster_gaussians(all_boxes[member], weights, cluster, len(survivors))
    covariances = spread.apply(estimate, observations, means)
    return _detections(means, covariances, probs[survivors], named[survivors], classes, image_id, image_size, border)


def _stack(passes: Sequence[npt.ArrayLike], row_shape: tuple[int, ...], name: str) -> tuple[Floats, list[int]]:
    """Return the rows of all passes as one array, and the number of rows per pass; an empty pass may have any shape."""
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
    # The negated comparison is also true for NaN.
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
        One table per detector (or pass) about the same images. Classes are those of the first table; columns of the
        others are matched by name.
    image_sizes : dict of image id to (width, height), optional
        Clip boxes to the images. Default: no clipping.
    **options
        Options of `fuse_samples`: `border`, `iou`, `label_affinity`, `min_members`, `absent_counts`, `min_std` and
        others.

    Returns
    -------
    Detections
        Sorted by image id, highest score first.

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
    masks = sum(int(member.has_mask.sum()) for member in members if member.has_mask is not None)
    notes = (Note("masks-not-fused", masks),) if masks else ()
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
    if not parts:
        nothing = np.zeros((0, len(classes)), np.float32)
        return Detections(classes=classes, image_ids=np.zeros(0, np.int64), boxes=np.zeros((0, 4)), label_probs=nothing)
    fused = join_tables(parts)
    return fused.replace(notes=(*fused.notes, *notes)) if notes else fused


def _covariances(member: Detections, rows: Ints) -> Floats:
    return np.zeros((len(rows), 2, 2, 2)) if member.covariances is None else member.covariances[rows]


# --- distributions of edges ---


def bin_values(bins: int, reach: float, scale: float) -> Floats:
    """Return W(n), the edge distance that each of the bins 0, 1, ..., `bins` - 1 stands for.

    0 in the middle; ``g^i - 1`` in the i-th bin from there with ``g = (a b + 1)^(2 / (bins - 3))``, outwards positive;
    ``2 a b`` in the last one. Published models have 33 bins; a and b are `up` and `reg_scale` in their configuration.

    >>> bin_values(33, 0.5, 4)[[0, 1, 15, 16, 17, 31, 32]].round(3).tolist()
    [-4.0, -2.0, -0.076, 0.0, 0.076, 2.0, 4.0]
    """
    if bins < 5 or bins % 2 == 0:
        raise InputError(f"expected an odd number of bins per side, 5 or more, but got {bins}")
    most = abs(reach) * abs(scale)
    growth = (most + 1) ** (2 / (bins - 3))
    inner = growth ** np.arange(1, (bins - 1) // 2) - 1
    return np.concatenate([[-2 * most], -inner[::-1], [0.0], inner, [2 * most]])


def edges_of(
    logits: npt.NDArray[Any], reference: npt.NDArray[Any], reach: float, scale: float, bins: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return mean and variance of ``x1, y1, x2, y2``, relative to the image size.

    An edge's distance is ``d = sum p W`` beyond half the reference box: ``x1 = cx - (b / 2 + d) w / b``, so
    ``var(x1) = Var_p(W) (w / b)^2``. `logits` (..., 4 * bins) are those of left, top, right and bottom. `reference`
    (..., 4) are the boxes cx, cy, w, h that distances refer to. `bins` is W, if known.

    >>> mean, var = edges_of(np.zeros((1, 4 * 33)), np.array([[0.5, 0.5, 0.2, 0.4]]), 0.5, 4)
    >>> mean.round(6).tolist(), bool((var > 0).all())
    ([[0.4, 0.3, 0.6, 0.7]], True)
    """
    given = np.asarray(logits, np.float64).reshape(*logits.shape[:-1], 4, -1)
    values = bin_values(given.shape[-1], reach, scale) if bins is None else bins
    shares = softmax(given)
    distance = shares @ values
    spread = (shares * (values - distance[..., None]) ** 2).sum(axis=-1)
    boxes = np.asarray(reference, np.float64)
    unit = np.tile(boxes[..., 2:], 2) / abs(scale)
    outwards = np.array([-1.0, -1.0, 1.0, 1.0])
    mean = np.tile(boxes[..., :2], 2) + outwards * (abs(scale) / 2 + distance) * unit
    return mean, spread * unit**2


def edge_moments(probabilities: npt.ArrayLike, bins: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Return mean and variance of distributions over bins, along the last axis.

    ``mean = sum_k p_k b_k`` and ``var = sum_k p_k (b_k - mean)^2`` with the bins' values ``b``, by default 0, 1, 2...

    >>> [moment.tolist() for moment in edge_moments([0.0, 0.5, 0.5])]
    [1.5, 0.25]
    """
    probs = np.asarray(probabilities)
    probs = probs.astype(np.float64) if probs.dtype != np.float32 else probs
    values = np.arange(probs.shape[-1]) if bins is None else np.asarray(bins)
    values = values.astype(probs.dtype)
    if values.shape != probs.shape[-1:]:
        raise InputError(f"expected {probs.shape[-1]} bin values, but got {values.shape}")
    mean = probs @ values
    var = np.maximum(np.einsum("...k,...k->...", probs, (values - mean[..., None]) ** 2), 0.0)
    return mean.astype(np.float64), var.astype(np.float64)


def edge_corners(points: Floats, strides: Floats, mean: Floats, var: Floats) -> tuple[Floats, Floats]:
    """Return boxes (N, 4) and corner covariances (N, 2, 2, 2) from edge distances in strides around points.

    ``x1 = px - stride * left`` and so on; edges are independent, so covariances are diagonal.
    """
    distance = mean * strides[:, None]
    boxes = np.concatenate([points - distance[:, :2], points + distance[:, 2:]], axis=1)
    covariances = np.zeros((len(boxes), 2, 2, 2))
    covariances[:, [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]] = var * (strides**2)[:, None]
    return boxes, covariances


def from_edge_distributions(
    edges: npt.ArrayLike,
    points: npt.ArrayLike,
    strides: npt.ArrayLike,
    label_probs: npt.ArrayLike,
    *,
    classes: Sequence[str],
    image_id: int = 0,
    image_size: tuple[float, float] | None = None,
    border: Border = "keep",
    bins: npt.ArrayLike | None = None,
    logits: bool = False,
    min_std: float = 0.0,
) -> Detections:
    """Return detections whose corner variances are those of the predicted edge distributions.

    Parameters
    ----------
    edges : (N, 4, B)
        Probabilities of the left, top, right and bottom edge over `bins`; with ``logits=True`` softmax is applied.
    points : (N, 2)
        Reference points of distances: the centre of each cell, in pixels.
    strides : (N,) or float
        Pixels per unit of `bins`.
    label_probs : (N, C)
        Class probabilities; scores of one sigmoid per class are accepted, see `limit_to_distribution`.
    classes : sequence of str
        Class names.
    image_id : int
        Image id of the result.
    image_size : (width, height), optional
        Clip boxes to the image. Default: no clipping.
    border : {"keep", "pin"}
        ``keep`` the estimated std of edges at the image border, or ``pin`` them, which is PDQ-optimal and needs
        `image_size`: see `keep_inside`.
    bins : (B,), optional
        Distance that each bin stands for. Default: 0, 1, 2...
    logits : bool
        Whether `edges` are logits.
    min_std : float
        Minimum standard deviation in pixels. An edge with all probability in one bin has variance 0.

    Returns
    -------
    Detections
        One row per row of `edges`, in the same order, without suppression: run NMS before.

    Examples
    --------
    >>> edges = [[[0, 1, 0], [0, 0.5, 0.5], [0, 0, 1], [0.5, 0, 0.5]]]
    >>> found = from_edge_distributions(edges, [[100, 80]], 8, [[0.9]], classes=["cup"])
    >>> found.boxes.tolist(), found.covariances[0, 1].tolist()
    ([[92.0, 68.0, 116.0, 88.0]], [[0.0, 0.0], [0.0, 64.0]])
    """
    given = np.asarray(edges, np.float64)
    if given.ndim != 3 or given.shape[1] != 4:
        raise InputError(
            f"expected edges of shape N x 4 x B, but got {' x '.join(map(str, given.shape)) or 'a scalar'}"
        )
    if logits:
        given = softmax(given)
    elif given.size and (given.min() < 0 or np.abs(given.sum(axis=2) - 1.0).max() > 1e-3):
        raise InputError("expected each edge's probabilities to add up to 1", remedy="pass logits=True for logits")
    mean, var = edge_moments(given, bins)
    scale = np.broadcast_to(np.asarray(strides, np.float64), len(given))
    boxes, covariances = edge_corners(np.asarray(points, np.float64).reshape(-1, 2), scale, mean, var)
    boxes, covariances = apply_border(boxes, floor_std(covariances, min_std), image_size, border)
    scores = np.asarray(label_probs, np.float64).reshape(len(given), len(classes))
    return Detections(
        classes=tuple(classes),
        image_ids=np.full(len(given), image_id, np.int64),
        boxes=boxes,
        covariances=covariances,
        label_probs=limit_to_distribution(scores),
    )
