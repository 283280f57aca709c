"""Detections of detectron2, mmdet, supervision and probdet as tables; types are recognized by attributes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from probox.adapters.image_masks import read_masks
from probox.adapters.image_rows import (
    ImageRows,
    check_labels,
    check_within,
    describe_output,
    image_ids_of,
    list_outputs,
    of_image,
    probs_of,
    read_rows,
    stack_rows,
)
from probox.errors import InputError
from probox.formats.coco import coco_results_from_bytes
from probox.formats.problems import Problems
from probox.support.optional import require
from probox.support.types import Array, Bools
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import AboveOne
from probox.tables.table import check_classes, dataset_of, entry_of, expect, to_numpy

DETECTRON2_FIELDS = {
    "boxes": ("pred_boxes",),
    "scores": ("scores",),
    "labels": ("pred_classes",),
    "label_probs": ("pred_cls_probs", "pred_probs", "label_probs"),
    "covariances": ("pred_boxes_covariance", "covariances"),
    "masks": ("pred_masks",),
}
"""Attributes of instances by column; of several names, the first is detectron2's or probdet's."""


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
        For each image, with ``pred_boxes``, ``scores`` and ``pred_classes``. Optional fields: ``pred_cls_probs`` (all
        classes, optionally with background last), ``pred_boxes_covariance (n, 4, 4)``, of corners, and ``pred_masks
        (n, H, W)``.
    classes : sequence of str
        ``MetadataCatalog.get(name).thing_classes``, indexed by `pred_classes` from 0. `pred_classes` are not category
        ids.
    image_ids : int or sequence of int
        The id of each image. Default: the entry ``image_id`` beside the instances.
    probs : (n, C) or (n, C + 1), or list of them, optional
        The probabilities of all classes of each image's instances, background last, instead of a field:
        ``box_predictor.predict_probs(...)`` at the rows that ``fast_rcnn_inference`` kept.
    above_one : {"limit", "normalise", "refuse"}
        Treatment of probabilities that sum to more than 1 (RetinaNet's sigmoids), see `Detections.from_scores`.

    Returns
    -------
    Detections
        The detections of all images.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> instances = SimpleNamespace(pred_boxes=[[10, 20, 50, 60]], scores=[0.8], pred_classes=[1], image_size=(64, 64))
    >>> from_detectron2({"instances": instances}, classes=["cup", "dog"], image_ids=7)
    Detections(1 detection in 1 image, 2 classes)
    """
    one = isinstance(outputs, Mapping) or hasattr(outputs, "image_size") or hasattr(outputs, "pred_boxes")
    results = list_outputs(outputs, one)
    names = check_classes(classes)
    ids = image_ids_of(image_ids, len(results), [entry_of(result, "image_id") for result in results])
    given = probs_of(probs, len(results), one)
    images = [_read_instances(*each, names) for each in zip(results, ids, given, strict=True)]
    return stack_rows(images, ids, names, covariance_format="xyxy", above_one=above_one)


def _read_instances(result: Any, image: int, probs: Any, names: tuple[str, ...]) -> ImageRows:
    instances = _instances(result)
    rows = read_rows(
        lambda name: _field(instances, name),
        DETECTRON2_FIELDS,
        f"instances, but got {describe_output(result)}",
        image,
        "give the model's output in evaluation, not its ground truth or losses",
        _field(instances, "image_size"),
    )
    check_labels(
        rows.labels, len(names), "pred_classes", image,
        "give all thing_classes; category ids of a dataset are not pred_classes "
        "(thing_dataset_id_to_contiguous_id maps them)",
    )  # fmt: skip
    remedy = "scale boxes and image_size alike, as detector_postprocess does"
    check_within(rows.boxes, _field(instances, "image_size"), image, remedy)
    return rows.with_probs(probs, len(names), image)


def _instances(result: Any) -> Any:
    return result.get("instances") if isinstance(result, Mapping) else result


def _field(instances: Any, name: str) -> Any:
    """Return a field. ``Instances`` raise for a missing one: AttributeError or KeyError, depending on the version."""
    try:
        return getattr(instances, name, None)
    except KeyError:
        return None


MMDET_FIELDS = {
    "boxes": ("bboxes",),
    "scores": ("scores",),
    "labels": ("labels",),
    "label_probs": ("label_probs",),
    "covariances": ("covariances",),
    "masks": ("masks",),
}
"""Attributes of instances by column."""


def from_mmdet(
    outputs: Any,
    *,
    classes: Any,
    image_ids: Any = None,
    probs: Any = None,
    above_one: AboveOne = "limit",
) -> Detections:
    """Return the detections of mmdet's samples.

    Boxes must refer to the original image, as with ``rescale=True``.

    Parameters
    ----------
    outputs : DetDataSample, dict with "pred_instances", list of arrays of mmdet 2, or list of these
        For each image, with ``pred_instances``: ``bboxes``, ``scores`` and ``labels``, optionally ``label_probs``,
        ``covariances`` and ``masks (n, H, W)``. mmdet 2 returns an array (n, 5) per class, boxes and scores, optionally
        with a list of masks per class.
    classes : sequence of str, model, or its ``dataset_meta``
        Class names, indexed by labels from 0.
    image_ids : int or sequence of int
        The id of each image. Default: the samples' own ``img_id``.
    probs : (n, C) or (n, C + 1), or list of them, optional
        The probabilities of all classes of each image's instances, background last.
    above_one : {"limit", "normalise", "refuse"}
        Treatment of probabilities that sum to more than 1, see `Detections.from_scores`.

    Returns
    -------
    Detections
        The detections of all images.

    Examples
    --------
    >>> sample = {"img_id": 7, "pred_instances": {"bboxes": [[10, 20, 50, 60]], "scores": [0.8], "labels": [1]}}
    >>> from_mmdet(sample, classes=["cup", "dog"])
    Detections(1 detection in 1 image, 2 classes)
    """
    meta = entry_of(classes, "dataset_meta") or classes
    names = check_classes(meta.get("classes", meta.get("CLASSES")) if isinstance(meta, Mapping) else meta)
    one = isinstance(outputs, Mapping) or hasattr(outputs, "pred_instances") or _is_mmdet2(outputs)
    results = list_outputs(outputs, one)
    ids = image_ids_of(image_ids, len(results), [_entry(result, "img_id") for result in results])
    given = probs_of(probs, len(results), one)
    images = []
    for result, image, every in zip(results, ids, given, strict=True):
        rows = _from_arrays(result, names, image) if _is_mmdet2(result) else _from_sample(result, image)
        check_labels(rows.labels, len(names), "labels", image, 'give all of model.dataset_meta["classes"]')
        images.append(rows.with_probs(every, len(names), image))
    return stack_rows(images, ids, names, covariance_format="xyxy", above_one=above_one)


def _is_mmdet2(result: Any) -> bool:
    """Return whether this is mmdet 2's output: an array (n, 5) per class."""
    arrays = result[0] if isinstance(result, tuple) and len(result) == 2 else result  # with masks
    return (
        isinstance(arrays, list)
        and len(arrays) > 0
        and all(getattr(entry, "ndim", 0) == 2 and entry.shape[1] == 5 for entry in arrays)
    )


def _entry(sample: Any, name: str) -> Any:
    """Return an entry of a sample, or else of its ``metainfo``."""
    value = entry_of(sample, name)
    return entry_of(entry_of(sample, "metainfo"), name) if value is None else value


def _from_sample(sample: Any, image: int) -> ImageRows:
    instances = entry_of(sample, "pred_instances")
    rows = read_rows(
        lambda name: entry_of(instances, name),
        MMDET_FIELDS,
        f"a sample with pred_instances (bboxes, scores, labels), but got {describe_output(sample)}",
        image,
        "give what inference_detector or model.test_step returned",
        _entry(sample, "ori_shape"),
    )
    check_within(rows.boxes, _entry(sample, "ori_shape"), image, "give boxes of the original image: rescale=True")
    return rows


def _from_arrays(result: Any, names: Sequence[str], image: int) -> ImageRows:
    given, masks = result if isinstance(result, tuple) else (result, None)
    arrays = [to_numpy(entry, "boxes") for entry in given]
    if len(arrays) != len(names):
        raise InputError(
            f"expected an array for each of {len(names)} classes, but got {len(arrays)}",
            image=image,
            remedy="give the names of all classes; for several images, give a list of such lists",
        )
    rows = np.concatenate(arrays)
    labels = np.repeat(np.arange(len(arrays)), [len(part) for part in arrays])
    each = None if masks is None else [mask for of_class in masks for mask in of_class]
    with of_image(image):
        return ImageRows(boxes=rows[:, :4], scores=rows[:, 4], labels=labels, masks=read_masks(each, len(rows)))


SUPERVISION_FIELDS = {
    "boxes": ("xyxy",),
    "scores": ("confidence",),
    "labels": ("class_id",),
    "label_probs": ("label_probs",),
    "covariances": ("covariance",),
    "masks": ("mask",),
}
"""Attributes of detections by column."""


def from_supervision(
    detections: Any, *, image_ids: Any = None, classes: Sequence[str] | None = None, above_one: Any = "limit"
) -> Detections:
    """Return supervision's detections as a table.

    Parameters
    ----------
    detections : supervision.Detections, or list of them
        For each image, with `confidence` and `class_id`. Optional: `mask`, ``data["label_probs"] (n, C)``, the
        probabilities of all classes, and ``data["covariance"] (n, 2, 2, 2)``, of the corners.
    image_ids : int or sequence of int
        The id of each image. Default: ``data["image_id"]`` of each detection, which `to_supervision` writes.
    classes : sequence of str
        All class names, indexed by `class_id` from 0. Default: those that `to_supervision` wrote.
    above_one : {"limit", "normalise", "refuse"}
        Treatment of `label_probs` that sum to more than 1, see `Detections.from_scores`.

    Returns
    -------
    Detections
        The detections of all images.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> boxes = SimpleNamespace(
    ...     xyxy=np.array([[10, 20, 50, 60]]), confidence=np.array([0.8]), class_id=np.array([1]), mask=None)
    >>> from_supervision(boxes, classes=["cup", "dog"], image_ids=7)
    Detections(1 detection in 1 image, 2 classes)
    """
    results = list_outputs(detections, hasattr(detections, "xyxy"))
    if not all(hasattr(result, "xyxy") for result in results):
        raise InputError(
            "expected supervision's Detections, or a list of them",
            remedy="give what sv.Detections.from_...() returned",
        )
    names = _classes(results, classes)
    own = [_data(result, "image_id") for result in results]
    by_row = (
        image_ids is None
        and len(results) > 0
        and all(ids is not None or not len(result.xyxy) for ids, result in zip(own, results, strict=True))
    )
    ids = list(range(len(results))) if by_row else image_ids_of(image_ids, len(results))
    images = [_read_supervision(result, names, image) for result, image in zip(results, ids, strict=True)]
    found = stack_rows(images, ids, names, covariance_format="xyxy", above_one=above_one)
    if not by_row:
        return found
    rows = [to_numpy(part, "image_id").astype(np.int64) for part in own if part is not None]
    return found.replace(image_ids=np.concatenate([np.zeros(0, np.int64), *rows]))


def to_supervision(found: Detections, image_id: int | None = None, *, image_size: tuple[int, int] | None = None) -> Any:
    """Return detections as supervision's ``Detections``: all of them, or those of one image.

    ``data`` holds class names (``class_name``), the probabilities of all classes (``label_probs``), covariances of the
    corners (``covariance``), and image ids (``image_id``). supervision keeps them when it filters, merges or
    suppresses, and `from_supervision` reads them.

    Parameters
    ----------
    found : Detections
        The detections. supervision does not support heatmaps; `Detections.with_binary_masks` makes masks of them.
    image_id : int, optional
        The image. Default: all.
    image_size : (width, height), optional
        Size of the image, required for detections with masks.

    Returns
    -------
    supervision.Detections
        The detections.

    Examples
    --------
    >>> import supervision                                                                  # doctest: +SKIP
    >>> boxes = to_supervision(found, image_id=7)                                           # doctest: +SKIP
    >>> supervision.BoxAnnotator().annotate(photo, boxes)                                   # doctest: +SKIP
    """
    chosen = _of_image(found, image_id, "to_supervision(found, image_id)")
    library = require("supervision", extra="supervision", purpose="supervision's detections need")
    data: dict[str, Any] = _names_and_images(chosen) | {"label_probs": np.asarray(chosen.label_probs)}
    if chosen.covariances is not None:
        data["covariance"] = np.array(chosen.covariances)
    return library.Detections(
        xyxy=np.array(chosen.boxes),
        confidence=np.array(chosen.scores),
        class_id=chosen.labels.astype(np.int64),
        mask=_dense_masks(chosen, image_size),
        data=data,
        metadata={"classes": list(chosen.classes)},
    )


def _dense_masks(found: Detections, image_size: tuple[int, int] | None) -> Bools | None:
    """Return all masks as an array (n, H, W); None without masks."""
    if found.masks is None or found.has_mask is None or not found.has_mask.any():
        return None
    if not found.has_mask.all():
        raise InputError(
            "some detections have a mask and others do not, which supervision does not support",
            remedy="choose some: found[found.has_mask]",
        )
    remedy = "give image_size=(width, height)"
    if image_size is None:
        raise InputError("the size of the image is not given, but its masks need it", remedy=remedy)
    (width, height), reach = image_size, found.masks.boxes[:, 2:].max(axis=0) + 1
    if reach[0] > width or reach[1] > height:
        raise InputError(f"image_size is {width} x {height}, but a mask reaches {reach[0]}, {reach[1]}", remedy=remedy)
    return np.stack([found.masks.to_array(row, height, width) for row in range(len(found))])


def to_supervision_key_points(found: Detections, image_id: int | None = None) -> Any:
    """Return the two corners of each box as supervision's key points, with their covariances and without masks.

    ``sv.VertexEllipseOutlineAnnotator``, ``...AreaAnnotator`` and ``...HaloAnnotator`` draw these. Boxes without
    covariance have no ellipse, and supervision skips a corner at exactly (0, 0).

    Parameters
    ----------
    found : Detections
        Detections with covariances.
    image_id : int, optional
        The image. Default: all.

    Returns
    -------
    supervision.KeyPoints
        Two key points per detection.

    Examples
    --------
    >>> import supervision                                                                  # doctest: +SKIP
    >>> corners = to_supervision_key_points(found, image_id=7)                              # doctest: +SKIP
    >>> supervision.VertexEllipseAreaAnnotator().annotate(photo, corners)                   # doctest: +SKIP
    """
    chosen = _of_image(found, image_id, "to_supervision_key_points(found, image_id)")
    if chosen.covariances is None:
        raise InputError(
            "expected boxes with covariances, but these have none",
            remedy="give std=, var= or covariances= to Detections.from_scores, or draw to_supervision(found)",
        )
    library = require("supervision", extra="supervision", purpose="supervision's key points need")
    return library.KeyPoints(
        xy=chosen.boxes.reshape(-1, 2, 2).astype(np.float32),
        class_id=chosen.labels.astype(np.int64),
        detection_confidence=chosen.scores.astype(np.float32),
        data=_names_and_images(chosen) | {"covariance": np.array(chosen.covariances)},
    )


def _of_image(found: Any, image_id: Any, order: str) -> Detections:
    expect(found, Detections, "found", f"write {order}")
    chosen: Detections = found
    if image_id is not None:
        chosen = chosen[chosen.image_ids == image_ids_of(image_id, 1)[0]]
    if chosen.has_heatmap.any():
        raise InputError("supervision does not support heatmaps", remedy="write found.with_binary_masks()")
    return chosen


def _names_and_images(found: Detections) -> dict[str, Array]:
    names = np.array(found.classes or [""], dtype=str)[found.labels]
    return {"class_name": names, "image_id": np.array(found.image_ids)}


def _data(result: Any, name: str) -> Any:
    data = getattr(result, "data", None)
    return data.get(name) if isinstance(data, Mapping) else None


def _classes(results: Sequence[Any], classes: Sequence[str] | None) -> tuple[str, ...]:
    """Return class names by class id: those given, or those that `to_supervision` wrote."""
    if classes is not None:
        return check_classes(classes)
    written = [getattr(result, "metadata", None) or {} for result in results if len(result.xyxy)]
    names = {tuple(entry["classes"]) if "classes" in entry else None for entry in written}
    if len(names) == 1 and (known := names.pop()) is not None:
        return check_classes(known)
    if not written:
        notes = [getattr(result, "metadata", None) or {} for result in results]
        return check_classes(next((note["classes"] for note in notes if "classes" in note), ()))
    raise InputError(
        "the detector's classes are unknown",
        remedy="give classes=, all names that class_id counts in: the rest of a score is divided among them",
    )


def _read_supervision(result: Any, names: tuple[str, ...], image: int) -> ImageRows:
    count = len(result.xyxy)
    if not count:
        return ImageRows(boxes=np.zeros((0, 4)))
    if result.confidence is None:
        raise InputError(
            "expected detections with a confidence", image=image, remedy="annotations have none and cannot be evaluated"
        )
    given = {name: getattr(result, name, None) for name in ("xyxy", "confidence", "mask")}
    given["class_id"] = _labels(result, names, image)
    return read_rows(
        lambda name: given.get(name, _data(result, name)),
        SUPERVISION_FIELDS,
        "detections",
        image,
        "give supervision's Detections",
    )


def _labels(result: Any, names: tuple[str, ...], image: int) -> Array:
    """Return the classes of detections; raise if class ids and names differ."""
    stated = _data(result, "class_name")
    if result.class_id is None:
        if stated is None:
            raise InputError("expected detections with a class_id", image=image)
        return np.asarray(stated)
    labels = to_numpy(result.class_id, "class_id")
    check_labels(
        labels,
        len(names),
        "class_id",
        image,
        "give all names of the detector as classes=, background too where it has a number",
    )
    for label, name in zip(labels.tolist(), [] if stated is None else np.asarray(stated).tolist(), strict=False):
        if str(name) != names[label]:
            raise InputError(
                f"class_id {label} is {names[label]!r} in classes, but {str(name)!r} in the detections",
                image=image,
                remedy="give the detector's classes in its own order",
            )
    return labels


def from_probdet(entries: Any, truth: GroundTruth | Dataset, *, repair: bool = False) -> Detections:
    """Return the detections of a list of results, as `probox.read_detections` would from a file of them.

    Parameters
    ----------
    entries : list of dict
        COCO results with ``cls_prob`` (all classes, optionally with background last) and ``bbox_covar`` (4 x 4, of x,
        y, width and height).
    truth : GroundTruth or Dataset
        Images and categories.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite with the nearest valid ones.

    Returns
    -------
    Detections
        The detections of all images.

    Examples
    --------
    >>> truth = Dataset.from_sizes(["cup", "dog"], {7: (64, 48)})
    >>> entry = {"image_id": 7, "category_id": 2, "bbox": [1, 2, 30, 40], "score": 0.8,
    ...          "cls_prob": [0.1, 0.8, 0.1], "bbox_covar": [[4, 0, 0, 0], [0, 4, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]}
    >>> from_probdet([entry], truth).covariances[0, 1].tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    dataset = dataset_of(truth, "the order is from_probdet(entries, truth)")
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, Mapping) for entry in entries):
        raise InputError(
            f"expected a list of dictionaries, but got {type(entries).__name__}",
            remedy="read files with probox.read_detections(path, truth)",
        )
    text = json.dumps([dict(entry) for entry in entries], default=_plain)
    return coco_results_from_bytes(text.encode(), "", dataset, Problems()).to_table(repair=repair)


def _plain(value: Any) -> Any:
    """Return arrays, tensors and numbers of other libraries as lists and numbers."""
    return to_numpy(value, "an entry").tolist()
