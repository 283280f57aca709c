"""What object detectors of transformers return: logits and boxes of a batch, taken by their shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from probox.adapters.images import ImageRows, image_ids_of, listed, sizes_of, stacked
from probox.detect.queries import Edges, Head, checked_boxes, class_names, edge_variances, numbers_of, probabilities_of
from probox.errors import InputError
from probox.tables.arrays import entry_of, to_numpy
from probox.tables.detections import Detections
from probox.tables.distributions import AboveOne

__all__ = ["from_transformers"]

Floats = npt.NDArray[np.float64]


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
    """Return the detections of object detectors of transformers, one per query, with all classes' probabilities.

    Parameters
    ----------
    outputs : model output, or list of them
        With ``logits (B, Q, C)`` and ``pred_boxes (B, Q, 4)``, of one batch or several. What
        ``post_process_object_detection`` makes of it is taken too (a dictionary per image with ``scores``, ``labels``
        and ``boxes``), but has one score each.
    config : model or its config
        Tells the classes (``id2label``) and the kind of head.
    image_ids : int or sequence of int
        The id of each image, over all batches.
    image_sizes : GroundTruth, Dataset, mapping of image id to (width, height), or (width, height) of each image
        How large the images were before they were resized for the model.
    target_sizes : sequence of (height, width), optional
        The same as transformers wants it, height first. One of both must be given.
    classes : sequence of str, optional
        Names of the classes, in place of those of `config`.
    labels : {"auto", "softmax", "sigmoid"}
        ``softmax``: over all columns, the last of which is "no object" and is left out. ``sigmoid``: one per class.
        By default `config` tells.
    score_threshold : float
        Leave out queries whose best class has no more than this. Default: keep all.
    top : int, optional
        Keep at most this many queries of each image, the best.
    above_one : {"limit", "normalise", "refuse"}
        What happens to sigmoids that add up to more than 1, see `Detections.from_scores`.
    edges : {"auto", "required", "ignore"}
        Take the variances of sides from the distributions that D-FINE and DEIMv2 return: where they are there, or raise
        if they are not, or never.

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
    names = class_names(settings, classes)
    if _is_processed(outputs):
        if edges == "required":
            raise InputError(
                "scores, labels and boxes have no distributions of edges", remedy="give the model's output"
            )
        return _from_processed(outputs, names, image_ids, score_threshold, top)
    batches = listed(outputs, isinstance(outputs, Mapping) or entry_of(outputs, "logits") is not None)
    if len(batches) == 2 and all(hasattr(entry, "shape") for entry in batches):
        raise InputError("got two arrays, not a model's output", remedy="call the model with return_dict=True")
    numbers = [numbers_of(batch) for batch in batches]
    logits = [row for part, _ in numbers for row in part]
    boxes = [row for _, part in numbers for row in part]
    ids = image_ids_of(image_ids, len(logits))
    sizes = _sizes(image_sizes, target_sizes, ids)
    spread = [row for batch in batches for row in edge_variances(batch, settings, edges)]
    images = []
    for number, image in enumerate(ids):
        scores = probabilities_of(logits[number], names, labels, settings)
        rows = _best(scores, score_threshold, top)
        double = np.tile(sizes[number], 2)
        variances = spread[number]
        images.append(
            ImageRows(
                boxes=checked_boxes(boxes[number], image)[rows] * double,
                label_probs=scores[rows],
                covariances=None if variances is None else variances[rows] * double**2,
            )
        )
    return stacked(images, ids, names, pixels=False, box_format="cxcywh", covariance_format="xyxy", above_one=above_one)


def _check_choice(value: Any, choices: Any, name: str) -> None:
    if value not in get_args(choices):
        known = ", ".join(map(repr, get_args(choices)))
        raise InputError(f"expected {name} to be one of {known}, but got {value!r:.40}")


def _sizes(image_sizes: Any, target_sizes: Any, ids: Sequence[int]) -> Floats:
    """Return width and height of each image from one of both arguments; raise where they contradict each other."""
    if image_sizes is None and target_sizes is None:
        raise InputError(
            "boxes are shares of the image, whose size is not known",
            remedy="give image_sizes=truth, or (width, height) of each image; target_sizes= takes (height, width)",
        )
    if target_sizes is None:
        return sizes_of(image_sizes, ids)
    if isinstance(target_sizes, Mapping) or not hasattr(target_sizes, "__len__"):
        raise InputError("expected target_sizes as (height, width) of each image", remedy="others go to image_sizes=")
    sizes = sizes_of(target_sizes, ids)[:, ::-1]
    if image_sizes is not None:
        known = sizes_of(image_sizes, ids)
        wrong = np.flatnonzero((known != sizes).any(axis=1))
        if len(wrong):
            at = int(wrong[0])
            swapped = (known[at] == sizes[at, ::-1]).all()
            raise InputError(
                f"target_sizes says {sizes[at, 0]:g} x {sizes[at, 1]:g} (width x height), "
                f"but image_sizes {known[at, 0]:g} x {known[at, 1]:g}",
                image=ids[at],
                remedy="target_sizes are (height, width), image_sizes (width, height)"
                if swapped
                else "give one of them",
            )
    return sizes


def _best(scores: Floats, threshold: float, top: int | None) -> npt.NDArray[np.int64]:
    """Return the queries to keep, in their order."""
    best = scores.max(axis=1, initial=0.0)
    rows = np.flatnonzero(~(best <= threshold)) if threshold > 0 else np.arange(len(best))  # NaN stays, to be rejected
    if top is not None and len(rows) > top:
        rows = np.sort(rows[np.argsort(-best[rows], kind="stable")[:top]])
    return rows.astype(np.int64)


def _is_processed(outputs: Any) -> bool:
    """Return whether this is what ``post_process_object_detection`` makes: scores, labels and boxes."""
    one = outputs[0] if isinstance(outputs, list | tuple) and len(outputs) else outputs
    return isinstance(one, Mapping) and {"scores", "labels", "boxes"} <= set(one)


def _from_processed(
    outputs: Any, classes: tuple[str, ...], image_ids: Any, score_threshold: float, top: int | None
) -> Detections:
    results = listed(outputs, isinstance(outputs, Mapping))
    ids = image_ids_of(image_ids, len(results))
    images = []
    for result in results:
        arrays = {name: to_numpy(result[name], name) for name in ("boxes", "scores", "labels")}
        rows = _best(arrays["scores"].reshape(-1, 1), score_threshold, top)
        images.append(ImageRows(**{name: values[rows] for name, values in arrays.items()}))
    return stacked(images, ids, classes)
