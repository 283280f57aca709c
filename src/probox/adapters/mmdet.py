"""mmdet's samples, taken by their shape: those of mmdet 3, and mmdet 2's lists of arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from probox.adapters.images import ImageRows, check_within, image_ids_of, listed, probs_of, stacked
from probox.errors import InputError
from probox.tables.arguments import check_classes
from probox.tables.arrays import entry_of, to_numpy
from probox.tables.detections import Detections
from probox.tables.distributions import AboveOne

__all__ = ["from_mmdet"]


def from_mmdet(
    outputs: Any,
    *,
    classes: Any,
    image_ids: Any = None,
    probs: Any = None,
    above_one: AboveOne = "limit",
) -> Detections:
    """Return the detections of mmdet's samples.

    Boxes must be those of the original image, as ``rescale=True`` gives them.

    Parameters
    ----------
    outputs : DetDataSample, dict with "pred_instances", list of arrays of mmdet 2, or list of these
        Of each image, with ``pred_instances``: ``bboxes``, ``scores`` and ``labels``; ``label_probs`` and
        ``covariances`` beside these are taken too. mmdet 2 gives an array (n, 5) for each class: boxes and scores.
    classes : sequence of str, model, or its ``dataset_meta``
        What labels count in, from 0.
    image_ids : int or sequence of int
        The id of each image; by default the samples' own ``img_id``.
    probs : (n, C) or (n, C + 1), or list of them, optional
        The probabilities of all classes of each image's instances, background last.
    above_one : {"limit", "normalise", "refuse"}
        What happens to probabilities that add up to more than 1, see `Detections.from_scores`.
    """
    meta = entry_of(classes, "dataset_meta") or classes
    names = check_classes(meta.get("classes", meta.get("CLASSES")) if isinstance(meta, Mapping) else meta)
    one = isinstance(outputs, Mapping) or hasattr(outputs, "pred_instances") or _is_mmdet2(outputs)
    results = listed(outputs, one)
    ids = image_ids_of(image_ids, len(results), [_own_id(result) for result in results])
    given = probs_of(probs, len(results), one)
    images = []
    for result, image, every in zip(results, ids, given, strict=True):
        rows = _from_arrays(result, names, image) if _is_mmdet2(result) else _from_sample(result, image)
        labels = np.zeros(0, np.int64) if rows.labels is None else rows.labels
        if labels.size and (int(labels.min()) < 0 or int(labels.max()) >= len(names)):
            wrong = int(labels.min()) if int(labels.min()) < 0 else int(labels.max())
            raise InputError(
                f"expected labels to count in {len(names)} classes from 0, but got {wrong}",
                image=image,
                remedy='give all of model.dataset_meta["classes"]',
            )
        if every is not None:
            rows = dataclasses.replace(rows, label_probs=to_numpy(every, "probs"))
        images.append(rows.without_background(len(names), "last", image))
    masks = [
        result[1] if isinstance(result, tuple) else entry_of(entry_of(result, "pred_instances"), "masks")
        for result in results
    ]
    return stacked(images, ids, names, covariance_format="xyxy", above_one=above_one, masks=masks)


def _is_mmdet2(result: Any) -> bool:
    """Return whether this is an array (n, 5) for each class."""
    arrays = result[0] if isinstance(result, tuple) and len(result) == 2 else result  # with masks
    return (
        isinstance(arrays, list)
        and len(arrays) > 0
        and all(getattr(entry, "ndim", 0) == 2 and entry.shape[1] == 5 for entry in arrays)
    )


def _own_id(result: Any) -> Any:
    for holder in (result, entry_of(result, "metainfo")):
        value = entry_of(holder, "img_id")
        if value is not None:
            return value
    return None


def _from_sample(sample: Any, image: int) -> ImageRows:
    instances = entry_of(sample, "pred_instances")
    names = ("bboxes", "scores", "labels")
    missing = [name for name in names if instances is None or entry_of(instances, name) is None]
    if missing:
        got = ", ".join(map(str, sample)) if isinstance(sample, Mapping) else type(sample).__name__
        raise InputError(
            f"expected a sample with pred_instances ({', '.join(names)}), but got {got:.80} without {missing[0]}",
            image=image,
            remedy="give what inference_detector or model.test_step returned",
        )
    boxes, scores, labels = (to_numpy(_plain(entry_of(instances, name)), name) for name in names)
    shape = entry_of(sample, "ori_shape") or entry_of(entry_of(sample, "metainfo"), "ori_shape")
    check_within(boxes, shape, image, "give boxes of the original image: rescale=True")
    more = {name: entry_of(instances, name) for name in ("label_probs", "covariances")}
    return ImageRows(
        boxes=boxes,
        scores=scores,
        labels=labels,
        **{name: None if values is None else to_numpy(values, name) for name, values in more.items()},
    )


def _plain(values: Any) -> Any:
    """Return the tensor of mmdet's own type of boxes."""
    return getattr(values, "tensor", values)


def _from_arrays(result: Any, names: Sequence[str], image: int) -> ImageRows:
    arrays = [to_numpy(entry, "boxes") for entry in (result[0] if isinstance(result, tuple) else result)]
    if len(arrays) != len(names):
        raise InputError(
            f"expected an array for each of {len(names)} classes, but got {len(arrays)}",
            image=image,
            remedy="give the names of all classes; of several images give a list of such lists",
        )
    rows = np.concatenate(arrays)
    labels = np.repeat(np.arange(len(arrays)), [len(part) for part in arrays])
    return ImageRows(boxes=rows[:, :4], scores=rows[:, 4], labels=labels)
