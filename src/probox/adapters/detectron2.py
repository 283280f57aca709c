"""detectron2's instances, also with the fields that probdet adds, taken by their shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from probox.adapters.images import ImageRows, check_within, image_ids_of, listed, probs_of, stacked
from probox.errors import InputError
from probox.tables.arguments import check_classes
from probox.tables.arrays import entry_of, to_numpy
from probox.tables.detections import Detections
from probox.tables.distributions import AboveOne

__all__ = ["from_detectron2"]

PROBABILITIES = ("pred_cls_probs", "pred_probs", "label_probs")
"""Fields that hold the probabilities of all classes; the first is probdet's."""

COVARIANCES = ("pred_boxes_covariance", "covariances")
"""Fields that hold covariances of x1, y1, x2, y2; the first is probdet's."""


def from_detectron2(
    outputs: Any,
    *,
    classes: Sequence[str],
    image_ids: Any = None,
    probs: Any = None,
    above_one: AboveOne = "limit",
) -> Detections:
    """Return the detections of detectron2's ``Instances``.

    Parameters
    ----------
    outputs : Instances, dict with "instances", or list of them
        Of each image, with ``pred_boxes``, ``scores`` and ``pred_classes``; the fields ``pred_cls_probs`` (all classes,
        perhaps with background last) and ``pred_boxes_covariance (n, 4, 4)``, of corners, are taken where they are.
    classes : sequence of str
        ``MetadataCatalog.get(name).thing_classes``: what `pred_classes` count in, from 0. These are no category ids.
    image_ids : int or sequence of int
        The id of each image; by default that of an entry ``image_id`` beside the instances.
    probs : (n, C) or (n, C + 1), or list of them, optional
        The probabilities of all classes of each image's instances, background last, in place of a field:
        ``box_predictor.predict_probs(...)`` at the rows that ``fast_rcnn_inference`` kept.
    above_one : {"limit", "normalise", "refuse"}
        What happens to probabilities that add up to more than 1 (RetinaNet's sigmoids), see `Detections.from_scores`.
    """
    one = isinstance(outputs, Mapping) or hasattr(outputs, "image_size") or hasattr(outputs, "pred_boxes")
    results = listed(outputs, one)
    names = check_classes(classes)
    ids = image_ids_of(image_ids, len(results), [entry_of(result, "image_id") for result in results])
    given = probs_of(probs, len(results), one)
    images = [_rows(*each, names) for each in zip(results, ids, given, strict=True)]
    masks = [_field(_instances(result), "pred_masks") for result in results]
    return stacked(images, ids, names, covariance_format="xyxy", above_one=above_one, masks=masks)


def _rows(result: Any, image: int, probs: Any, names: tuple[str, ...]) -> ImageRows:
    instances = _instances(result)
    found = {name: _field(instances, name) for name in ("pred_boxes", "scores", "pred_classes")}
    missing = [name for name, values in found.items() if values is None]
    if missing:
        remedy = "give the model's output in evaluation, not its ground truth or losses"
        got = ", ".join(map(str, result)) if isinstance(result, Mapping) else type(result).__name__
        raise InputError(f"expected instances with {missing[0]}, but got {got:.80}", image=image, remedy=remedy)
    boxes = to_numpy(getattr(found["pred_boxes"], "tensor", found["pred_boxes"]), "pred_boxes")
    scores, labels = to_numpy(found["scores"], "scores"), to_numpy(found["pred_classes"], "pred_classes")
    _check_classes(labels, names, image)
    remedy = "scale boxes and image_size alike, as detector_postprocess does"
    check_within(boxes, _field(instances, "image_size"), image, remedy)
    fields = [_field(instances, name) for name in PROBABILITIES]
    given = next((values for values in [probs, *fields] if values is not None), None)
    covariances = next((values for name in COVARIANCES if (values := _field(instances, name)) is not None), None)
    return ImageRows(
        boxes=boxes,
        scores=scores,
        labels=labels,
        label_probs=None if given is None else to_numpy(given, "probs"),
        covariances=None if covariances is None else to_numpy(covariances, "covariances"),
    ).without_background(len(names), "last", image)


def _instances(result: Any) -> Any:
    return result.get("instances") if isinstance(result, Mapping) else result


def _field(instances: Any, name: str) -> Any:
    """Return a field; ``Instances`` raise for one that they do not have, an AttributeError or KeyError by version."""
    try:
        return getattr(instances, name, None)
    except KeyError:
        return None


def _check_classes(labels: npt.NDArray[Any], names: tuple[str, ...], image: int) -> None:
    """Raise for labels that do not count in the classes: category ids instead of detectron2's own numbers."""
    if labels.size and (int(labels.min()) < 0 or int(labels.max()) >= len(names)):
        wrong = int(labels.min()) if int(labels.min()) < 0 else int(labels.max())
        raise InputError(
            f"expected pred_classes to count in {len(names)} classes from 0, but got {wrong}",
            image=image,
            remedy="give all thing_classes; category ids of a data set are not pred_classes "
            "(thing_dataset_id_to_contiguous_id tells them)",
        )
