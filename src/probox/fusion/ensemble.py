"""Several detectors of the same images into one: `fuse_samples`, image by image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from probox.errors import InputError
from probox.fusion.fuse import fuse_samples
from probox.support.types import Floats, Ints
from probox.tables.detections import Detections
from probox.tables.labels import align_labels

__all__ = ["fuse_detections"]


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
    return joined(parts, classes)


def joined(parts: Sequence[Detections], classes: Sequence[str]) -> Detections:
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
