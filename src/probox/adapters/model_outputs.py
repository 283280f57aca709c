"""Outputs of transformers and Ultralytics as tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from probox.adapters.image_masks import HALF, ImageMasks, check_size, mask_arrays, read_masks
from probox.adapters.image_rows import (
    ImageRows,
    check_labels,
    image_ids_of,
    list_outputs,
    of_image,
    sizes_of,
    stack_rows,
)
from probox.detect.candidates import resize_plane
from probox.detect.image_files import rows_of_photos
from probox.detect.transformers_detector import (
    Edges,
    Head,
    check_boxes,
    edge_variances,
    name_classes,
    numbers_of,
    probabilities_of,
)
from probox.detect.ultralytics_detector import names_of
from probox.errors import InputError
from probox.support.types import Floats, Ints
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.heatmaps import crop_heatmap
from probox.tables.labels import AboveOne
from probox.tables.masks import Masks
from probox.tables.table import check_classes, dataset_of, entry_of, to_numpy


def from_transformers(
    outputs: Any,
    *,
    config: Any = None,
    image_ids: Any = None,
    image_sizes: Any = None,
    target_sizes: Any = None,
    classes: Sequence[str] | None = None,
    labels: Head = "auto",
    score_threshold: float = 0.0,
    top: int | None = None,
    above_one: AboveOne = "limit",
    edges: Edges = "auto",
) -> Detections:
    """Return the detections of object detectors of transformers, one per query, with the probabilities of all classes.

    Parameters
    ----------
    outputs : model output, or list of them
        With ``logits (B, Q, C)`` and ``pred_boxes (B, Q, 4)``, of one batch or several. Outputs of
        ``post_process_object_detection`` (a dictionary per image with ``scores``, ``labels`` and ``boxes``) and of
        ``post_process_instance_segmentation`` (``segmentation`` and ``segments_info``) also work, but have a single
        score per detection. ``pred_masks (B, Q, h, w)`` become heatmaps, and the pixels of segments become masks;
        segments have the boxes around them.
    config : model or its config
        Source of the classes (``id2label``) and the kind of head.
    image_ids : int or sequence of int
        The id of each image, over all batches.
    image_sizes : GroundTruth, Dataset, mapping of image id to (width, height), or (width, height) of each image
        Original sizes of the images, before they were resized for the model.
    target_sizes : sequence of (height, width), optional
        The same in the order of transformers, height first. One of `image_sizes` and `target_sizes` is required.
    classes : sequence of str, optional
        Class names, instead of those of `config`.
    labels : {"auto", "softmax", "sigmoid"}
        ``softmax``: over all columns, the last of which is "no object" and is dropped. ``sigmoid``: one per class.
        ``auto``: determined by `config`.
    score_threshold : float
        Drop queries whose highest class score is at most this. Default: keep all.
    top : int, optional
        Keep at most this many queries of each image, those with the highest scores.
    above_one : {"limit", "normalise", "refuse"}
        Treatment of sigmoids that sum to more than 1, see `Detections.from_scores`.
    edges : {"auto", "required", "ignore"}
        Use the edge distributions of D-FINE and DEIMv2 as variances: if they exist, raise if they do not, or never.

    Returns
    -------
    Detections
        The detections of all images.

    Examples
    --------
    >>> import numpy as np
    >>> outputs = {"logits": np.array([[[2.0, 0.0, 4.0]]]), "pred_boxes": np.array([[[0.5, 0.5, 0.2, 0.4]]])}
    >>> config = {"id2label": {0: "cup", 1: "dog"}, "model_type": "detr"}
    >>> found = from_transformers(outputs, config=config, image_ids=7, image_sizes=(100, 50))
    >>> found.boxes.round(6).tolist(), found.scores.round(3).tolist()
    ([[40.0, 15.0, 60.0, 35.0]], [0.117])
    """
    _check_choice(labels, Head, "labels")
    _check_choice(edges, Edges, "edges")
    settings = config if isinstance(config, Mapping) else getattr(config, "config", config)
    names = name_classes(settings, classes)
    if _is_processed(outputs):
        if edges == "required":
            raise InputError("scores, labels and boxes have no edge distributions", remedy="give the model's output")
        return _from_processed(outputs, names, image_ids, score_threshold, top, image_sizes, target_sizes)
    batches = list_outputs(outputs, isinstance(outputs, Mapping) or entry_of(outputs, "logits") is not None)
    if len(batches) == 2 and all(hasattr(entry, "shape") for entry in batches):
        raise InputError("got two arrays, not a model's output", remedy="call the model with return_dict=True")
    numbers = [numbers_of(batch) for batch in batches]
    logits = [row for part, _ in numbers for row in part]
    boxes = [row for _, part in numbers for row in part]
    ids = image_ids_of(image_ids, len(logits))
    sizes = _sizes(image_sizes, target_sizes, ids)
    spread = [row for batch in batches for row in edge_variances(batch, settings, edges)]
    mask_logits = [row for batch in batches for row in _mask_logits(batch)]
    images = []
    for number, image in enumerate(ids):
        scores = probabilities_of(logits[number], names, labels, settings)
        rows = _best(scores, score_threshold, top)
        double = np.tile(sizes[number], 2)
        variances = spread[number]
        images.append(
            ImageRows(
                boxes=check_boxes(boxes[number], image)[rows] * double,
                label_probs=scores[rows],
                covariances=None if variances is None else variances[rows] * double**2,
                masks=_heatmaps(mask_logits[number], rows, sizes[number], image),
            )
        )
    return stack_rows(
        images, ids, names, pixels=False, box_format="cxcywh", covariance_format="xyxy", above_one=above_one
    )


def _check_choice(value: Any, choices: Any, name: str) -> None:
    if value not in get_args(choices):
        known = ", ".join(map(repr, get_args(choices)))
        raise InputError(f"expected {name} to be one of {known}, but got {value!r:.40}")


def _sizes(image_sizes: Any, target_sizes: Any, ids: Sequence[int]) -> Floats:
    """Return width and height of each image from one of the two arguments; raise if they differ."""
    if image_sizes is None and target_sizes is None:
        raise InputError(
            "boxes are fractions of the image size, which is unknown",
            remedy="give image_sizes=truth, or (width, height) of each image; target_sizes= takes (height, width)",
        )
    if target_sizes is None:
        return sizes_of(image_sizes, ids)
    if isinstance(target_sizes, Mapping) or not hasattr(target_sizes, "__len__"):
        raise InputError("expected target_sizes as (height, width) of each image", remedy="use image_sizes= for others")
    sizes = sizes_of(target_sizes, ids)[:, ::-1]
    if image_sizes is not None:
        known = sizes_of(image_sizes, ids)
        wrong = np.flatnonzero((known != sizes).any(axis=1))
        if len(wrong):
            at = int(wrong[0])
            swapped = (known[at] == sizes[at, ::-1]).all()
            raise InputError(
                f"target_sizes is {sizes[at, 0]:g} x {sizes[at, 1]:g} (width x height), "
                f"but image_sizes {known[at, 0]:g} x {known[at, 1]:g}",
                image=ids[at],
                remedy="target_sizes are (height, width), image_sizes (width, height)"
                if swapped
                else "give one of them",
            )
    return sizes


def _best(scores: Floats, threshold: float, top: int | None) -> Ints:
    """Return the rows of queries to keep, in ascending order."""
    best = scores.max(axis=1, initial=0.0)
    rows = (
        np.flatnonzero(~(best <= threshold)) if threshold > 0 else np.arange(len(best))
    )  # NaN is kept, to be rejected
    if top is not None and len(rows) > top:
        rows = np.sort(rows[np.argsort(-best[rows], kind="stable")[:top]])
    return rows.astype(np.int64)


def _mask_logits(batch: Any) -> Sequence[Any]:
    """Return the mask logits of each image of a batch; None for each if the model has none."""
    logits = entry_of(batch, "pred_masks")
    return [None] * len(numbers_of(batch)[0]) if logits is None else list(to_numpy(logits, "pred_masks"))


def _heatmaps(logits: Any, rows: Ints, size: Floats, image: int) -> ImageMasks | None:
    """Return the heatmaps of these rows of mask logits (Q, h, w), interpolated to an image of (width, height)."""
    if logits is None:
        return None
    if logits.ndim != 3 or len(logits) <= rows.max(initial=-1):
        got = " x ".join(map(str, logits.shape))
        raise InputError(f"expected pred_masks with a mask of each query, but got {got} of an image", image=image)
    width, height = (int(side) for side in size)
    resized = (resize_plane(logits[row].astype(np.float32), (width, height)) for row in rows)
    with np.errstate(over="ignore"):
        heatmaps = tuple(crop_heatmap(1.0 / (1.0 + np.exp(-plane))) for plane in resized)
    return ImageMasks(size=(width, height), heatmaps=heatmaps)


PROCESSED = ({"scores", "labels", "boxes"}, {"segmentation", "segments_info"})
"""Entries of ``post_process_object_detection`` and of ``post_process_instance_segmentation``."""


def _is_processed(outputs: Any) -> bool:
    """Return whether this is output of post-processing: scores, labels and boxes, or segments."""
    one = outputs[0] if isinstance(outputs, list | tuple) and len(outputs) else outputs
    return isinstance(one, Mapping) and any(entries <= set(one) for entries in PROCESSED)


def _from_processed(
    outputs: Any,
    classes: tuple[str, ...],
    image_ids: Any,
    score_threshold: float,
    top: int | None,
    image_sizes: Any,
    target_sizes: Any,
) -> Detections:
    results = list_outputs(outputs, isinstance(outputs, Mapping))
    ids = image_ids_of(image_ids, len(results))
    shapes: list[Any] = [None] * len(ids)
    if image_sizes is not None or target_sizes is not None:
        shapes = _sizes(image_sizes, target_sizes, ids)[:, ::-1].tolist()
    images = []
    for result, image, shape in zip(results, ids, shapes, strict=True):
        with of_image(image):
            rows = _read_segments(result, shape) if "segmentation" in result else _read_boxes(result, shape)
        assert rows.scores is not None
        images.append(rows.take(_best(rows.scores.reshape(-1, 1), score_threshold, top)))
    return stack_rows(images, ids, classes, pixels=not any("segmentation" in result for result in results))


def _read_boxes(result: Mapping[str, Any], shape: Sequence[int] | None) -> ImageRows:
    boxes, scores, labels = (to_numpy(result[name], name) for name in ("boxes", "scores", "labels"))
    return ImageRows(
        boxes=boxes, scores=scores, labels=labels, masks=read_masks(result.get("masks"), len(boxes), size=shape)
    )


def _read_segments(result: Mapping[str, Any], shape: Sequence[int] | None) -> ImageRows:
    """Return the rows of segments: of a map of segment ids (H, W), or of one binary map each (n, H, W)."""
    given, segments = result["segmentation"], result["segments_info"]
    if not segments:
        return ImageRows(boxes=np.zeros((0, 4)), scores=np.zeros(0), labels=np.zeros(0, np.int64))
    if isinstance(given, list):
        raise InputError(
            "expected a segmentation map, but got run lengths", remedy="omit return_coco_annotation, or write False"
        )
    maps = to_numpy(given, "segmentation")
    if maps.ndim == 2:
        flags = np.stack([maps == segment["id"] for segment in segments])
    else:
        flags = mask_arrays(maps, len(segments)) > HALF
    size = flags.shape[2], flags.shape[1]
    check_size(size, shape)
    masks = Masks.from_arrays(list(flags))
    return ImageRows(
        boxes=masks.boxes + np.array([0.0, 0.0, 1.0, 1.0]),  # an empty mask has an empty box
        scores=np.array([segment["score"] for segment in segments], np.float64),
        labels=np.array([segment["label_id"] for segment in segments], np.int64),
        masks=ImageMasks(size=size, binary=masks),
    )


def from_ultralytics(
    results: Any,
    *,
    image_ids: int | Sequence[int] | None = None,
    classes: Sequence[str] | None = None,
    truth: GroundTruth | Dataset | None = None,
) -> Detections:
    """Return the detections of Ultralytics' results: each box's class gets its score, the others divide the rest.

    `Results` hold one label and no uncertainty; `probox.adapters.UltralyticsDetector` gets both from the
    model.

    Parameters
    ----------
    results : Results, or an iterable of them
        Output of ``model(...)``, ``model.predict(...)`` or ``model.track(...)``, streamed or not.
    image_ids : int or sequence of int, optional
        The id of each result's image. Default: by file name in `truth`, or else the number in the file name
        (``000000000139.jpg`` is 139).
    classes : sequence of str, optional
        Class names, in the order of the model's. Default: the results' own.
    truth : GroundTruth or Dataset, optional
        Source of image ids by file name.

    Returns
    -------
    Detections
        The detections of all images.

    Examples
    --------
    >>> from types import SimpleNamespace as Of  # stands in for a Results
    >>> boxes = Of(data=[[10.0, 20.0, 50.0, 60.0, 0.8, 1.0]])
    >>> result = Of(boxes=boxes, names={0: "cup", 1: "dog"}, orig_shape=(480, 640), path="photos/000000000139.jpg")
    >>> found = from_ultralytics(result)
    >>> found.image_ids.tolist(), found.classes, found.label_probs.round(2).tolist()
    ([139], ('cup', 'dog'), [[0.20000000298023224, 0.800000011920929]])
    """
    if hasattr(results, "orig_shape"):
        results = [results]
    elif not isinstance(results, Iterable):
        raise InputError(
            f"expected Ultralytics' results, but got {type(results).__name__}", remedy="give what model(...) returns"
        )
    # Results hold their photos: keeping only the numbers bounds the memory for a stream.
    images: list[ImageRows] = []
    paths, names = [], None if classes is None else check_classes(classes)
    for number, result in enumerate(results):
        own = names_of(_names(result, number))
        if classes is not None and len(own) != len(names or ()):
            raise InputError(f"expected names of the model's {len(own)} classes, but got {len(names or ())}")
        if classes is None and names is not None and own != names:
            raise InputError(
                f"result {number} has other class names than those before it", remedy="convert each model's results"
            )
        names = own if names is None else names
        images.append(_rows(result, number, len(names)))
        paths.append(str(getattr(result, "path", "") or ""))
    if names is None:
        raise InputError("expected at least one result, to take class names from", remedy="give classes=[...]")
    known = _known_ids(paths, truth) if image_ids is None else None
    return stack_rows(images, image_ids_of(image_ids, len(paths), known), names, pixels=False)


def _names(result: Any, number: int) -> Any:
    """Return a result's class names; raise if it has no axis-aligned boxes."""
    if getattr(result, "obb", None) is not None:
        raise InputError(
            f"result {number} contains oriented boxes, which PDQ does not support",
            remedy="use a detection model, or the boxes around them (result.obb.xyxy) with Detections.from_scores",
        )
    if getattr(result, "boxes", None) is None:
        if getattr(result, "probs", None) is not None:
            raise InputError(
                f"result {number} is of a classification model and has no boxes", remedy="use a detection model"
            )
        raise InputError(
            f"expected result {number} to have boxes, but got {type(result).__name__}",
            remedy="give what model(...) returns",
        )
    return result.names


def _rows(result: Any, number: int, classes: int) -> ImageRows:
    """Return a result's boxes, whose data are ``x1, y1, x2, y2, score, class``."""
    data = to_numpy(result.boxes.data, "boxes.data").astype(np.float64)
    if data.size == 0:
        return ImageRows(boxes=np.zeros((0, 4)))
    if data.ndim != 2 or data.shape[1] not in (6, 7):
        got = " x ".join(map(str, data.shape))
        raise InputError(f"expected boxes.data of 6 columns, or 7 with a track's id, but got {got}")
    labels = data[:, -1]  # with tracking, the track's id is between box and score
    check_labels(labels, classes, f"classes of result {number}", None, "give the names of all classes of the model")
    if (labels != np.floor(labels)).any():
        raise InputError(f"expected whole numbers as classes of result {number}")
    masks = getattr(result, "masks", None)
    return ImageRows(
        boxes=data[:, :4],
        scores=data[:, -2],
        labels=labels.astype(np.int64),
        masks=None if masks is None else _scale_masks(masks.data, len(data), result.orig_shape),
    )


def _scale_masks(given: Any, rows: int, shape: Sequence[int]) -> ImageMasks:
    """Return masks of the network's input, (n, h, w), at the image of `shape` (height, width), without letterbox.

    Equals Ultralytics' ``scale_masks`` above 0.5.
    """
    arrays = mask_arrays(given, rows)
    height, width = (int(side) for side in shape[:2])
    inside, size = (slice(None), slice(None)), (width, height)
    if arrays.shape[1:] != (height, width):
        gain = min(arrays.shape[1] / height, arrays.shape[2] / width)
        kept = [max(round(side * gain), 1) for side in (height, width)]
        starts = [round((full - part) / 2 - 0.1) for full, part in zip(arrays.shape[1:], kept, strict=True)]
        inside = slice(starts[0], starts[0] + kept[0]), slice(starts[1], starts[1] + kept[1])
    flags = [resize_plane(np.ascontiguousarray(mask[inside]), size) > HALF for mask in arrays]
    return ImageMasks(size=size, binary=Masks.from_arrays(flags))


def _known_ids(paths: Sequence[str], truth: Any) -> list[int]:
    """Return the image id of each file: by name in the ground truth, or else the number in its name."""
    photos = [Path(path.replace("\\", "/")) for path in paths]
    dataset = None if truth is None else dataset_of(truth, "give truth=truth")
    if dataset is not None and any(dataset.file_names):
        rows = rows_of_photos(photos, dataset.file_names)
        if -1 in rows:
            name = photos[rows.index(-1)].name
            raise InputError(
                f"the ground truth has no image called {name!r:.60}, or several",
                remedy="give image_ids, one for each result",
            )
        return [int(dataset.image_ids[row]) for row in rows]
    for photo in photos:
        if not re.fullmatch(r"[0-9]{1,18}", photo.stem):
            remedy = "give image_ids, one for each result" + ("" if truth is not None else ", or truth=")
            raise InputError(f"expected a number as the file name, but got {photo.name!r:.60}", remedy=remedy)
    return [int(photo.stem) for photo in photos]
