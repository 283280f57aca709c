"""What object detectors of transformers return: logits and boxes of a batch, taken by their shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.adapters.images import ImageRows, entry_of, image_ids_of, listed, sizes_of, stacked
from probox.errors import InputError
from probox.fusion.edge_bins import edges_of
from probox.tables.arguments import check_classes
from probox.tables.arrays import to_numpy
from probox.tables.box_formats import CORNERS_OF
from probox.tables.detections import Detections
from probox.tables.distributions import AboveOne
from probox.tables.labels import background_classes

__all__ = ["from_transformers"]

Floats = npt.NDArray[np.float64]
Head = Literal["auto", "softmax", "sigmoid"]
Edges = Literal["auto", "required", "ignore"]

NO_OBJECT_LAST = frozenset({"detr", "table-transformer", "yolos"})
"""Models with a softmax whose last column is "no object"; all others that are known have a sigmoid per class."""

ONE_SIGMOID_PER_CLASS = frozenset(
    {"conditional_detr", "d_fine", "dab-detr", "deformable_detr", "deimv2", "lw_detr", "rf_detr", "rt_detr"}
    | {"rt_detr_v2", "pp_doclayout_v2", "pp_doclayout_v3", "pp_doclayout_v4"}
)

COLUMNS_ARE_TEXT = frozenset({"grounding-dino", "mm-grounding-dino", "omdet-turbo", "owlv2", "owlvit"})
"""Models whose logits are about words of a prompt, not about classes."""

FARTHEST_SHARE = 8.0
"""Boxes beyond so many times the image are no shares of it, even of a model that knows nothing yet."""

AGREEMENT, HALF_AGREEMENT = 1e-3, 2e-2
"""How far the mean of edges may be from the box: a share of its size; in half precision, a share of the image."""

ROUNDING = 1e-5
"""What single precision may lose of a position, in shares of the image."""


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
    names = _names(settings, classes)
    if _is_processed(outputs):
        if edges == "required":
            raise InputError(
                "scores, labels and boxes have no distributions of edges", remedy="give the model's output"
            )
        return _from_processed(outputs, names, image_ids, score_threshold, top)
    batches = listed(outputs, isinstance(outputs, Mapping) or entry_of(outputs, "logits") is not None)
    if len(batches) == 2 and all(hasattr(entry, "shape") for entry in batches):
        raise InputError("got two arrays, not a model's output", remedy="call the model with return_dict=True")
    numbers = [_numbers(batch) for batch in batches]
    logits = [row for part, _ in numbers for row in part]
    boxes = [row for _, part in numbers for row in part]
    ids = image_ids_of(image_ids, len(logits))
    sizes = _sizes(image_sizes, target_sizes, ids)
    spread = [row for batch in batches for row in _variances(batch, settings, edges)]
    images = []
    for number, image in enumerate(ids):
        scores = _probabilities(logits[number], names, labels, settings)
        rows = _best(scores, score_threshold, top)
        double = np.tile(sizes[number], 2)
        variances = spread[number]
        images.append(
            ImageRows(
                boxes=_checked_boxes(boxes[number], image)[rows] * double,
                label_probs=scores[rows],
                covariances=None if variances is None else variances[rows] * double**2,
            )
        )
    return stacked(images, ids, names, pixels=False, box_format="cxcywh", covariance_format="xyxy", above_one=above_one)


def _check_choice(value: Any, choices: Any, name: str) -> None:
    if value not in get_args(choices):
        known = ", ".join(map(repr, get_args(choices)))
        raise InputError(f"expected {name} to be one of {known}, but got {value!r:.40}")


def _names(settings: Any, classes: Sequence[str] | None) -> tuple[str, ...]:
    """Return names of classes: those given, or those of the model's configuration in order of their number."""
    if classes is not None:
        return check_classes(classes)
    known = entry_of(settings, "id2label")
    if not isinstance(known, Mapping):
        raise InputError("the names of classes are not known", remedy="give config=model.config, or classes=")
    by_number = {int(number): name for number, name in known.items()}
    if sorted(by_number) != list(range(len(by_number))):
        raise InputError(
            f"expected id2label to number {len(by_number)} classes from 0, but it goes to {max(by_number)}",
            remedy="give classes=, a name for each column of the logits",
        )
    return check_classes([by_number[number] for number in range(len(by_number))])


def _numbers(batch: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return logits (B, Q, C) and boxes (B, Q, 4) of a batch."""
    found = {name: entry_of(batch, name) for name in ("logits", "pred_boxes")}
    for name, values in found.items():
        if values is None:
            got = ", ".join(map(str, batch)) if isinstance(batch, Mapping) else type(batch).__name__
            raise InputError(
                f"expected a model's output with logits and pred_boxes, but got {got:.80} without {name}",
                remedy="give what a ...ForObjectDetection model returned",
            )
    logits, boxes = (to_numpy(values, name) for name, values in found.items())
    if logits.ndim == 2 and boxes.ndim == 2:  # of one image
        logits, boxes = logits[None], boxes[None]
    if logits.ndim != 3 or boxes.shape != (*logits.shape[:2], 4):
        shapes = [" x ".join(map(str, array.shape)) for array in (logits, boxes)]
        raise InputError(f"expected logits B x Q x C and pred_boxes B x Q x 4, but got {shapes[0]} and {shapes[1]}")
    return logits, boxes


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


def _probabilities(logits: npt.NDArray[Any], classes: tuple[str, ...], labels: Head, settings: Any) -> Floats:
    """Return the probabilities of all classes (Q, C) of one image."""
    columns = logits.shape[-1]
    head = _head(columns, classes, settings) if labels == "auto" else labels
    wanted = len(classes) + (head == "softmax")
    if columns != wanted:
        raise InputError(
            f"a {head} head of {len(classes)} classes has {wanted} columns of logits, but got {columns}",
            remedy="give a name for each class, and none for the last column, no object"
            if head == "softmax"
            else "give a name for each column as classes=, or labels='softmax' if the last one is no object",
        )
    given = np.asarray(logits, np.float64)
    if head == "sigmoid":
        return 1.0 / (1.0 + np.exp(-np.clip(given, -700.0, 700.0)))
    shares = np.exp(given - given.max(axis=-1, keepdims=True))
    return np.asarray((shares / shares.sum(axis=-1, keepdims=True))[:, :-1])


def _head(columns: int, classes: tuple[str, ...], settings: Any) -> Head:
    """Return what turns logits into probabilities; raise where that cannot be told."""
    ask = "say labels='softmax' (the last column is no object) or labels='sigmoid' (one per class)"
    kind = entry_of(settings, "model_type")
    if settings is None:
        raise InputError("the kind of head is not known", remedy=f"give config=model.config, or {ask}")
    if kind in COLUMNS_ARE_TEXT:
        raise InputError(
            f"the logits of {kind} are about words of a prompt, not about classes",
            remedy="take the boxes, scores and labels of its processor to Detections.from_scores",
        )
    if kind in ONE_SIGMOID_PER_CLASS and entry_of(settings, "use_focal_loss") is False:
        raise InputError("this model was configured with use_focal_loss=False, so its head is not known", remedy=ask)
    if kind in NO_OBJECT_LAST and len(classes) == columns and background_classes(classes[-1:]).any():
        raise InputError(f"the last of {columns} classes is {classes[-1]!r}", remedy="leave it out of classes")
    by_size: dict[int, Head] = {len(classes) + 1: "softmax", len(classes): "sigmoid"}
    known: Head | None = "softmax" if kind in NO_OBJECT_LAST else "sigmoid" if kind in ONE_SIGMOID_PER_CLASS else None
    head = known or by_size.get(columns)
    if head is None:
        raise InputError(
            f"expected {len(classes)} or {len(classes) + 1} columns of logits for {len(classes)} classes, "
            f"but got {columns}",
            remedy="give config= of the model that made this output",
        )
    return head


def _best(scores: Floats, threshold: float, top: int | None) -> npt.NDArray[np.int64]:
    """Return the queries to keep, in their order."""
    best = scores.max(axis=1, initial=0.0)
    rows = np.flatnonzero(~(best <= threshold)) if threshold > 0 else np.arange(len(best))  # NaN stays, to be rejected
    if top is not None and len(rows) > top:
        rows = np.sort(rows[np.argsort(-best[rows], kind="stable")[:top]])
    return rows.astype(np.int64)


def _checked_boxes(boxes: npt.NDArray[Any], image: int) -> Floats:
    given = np.asarray(boxes, np.float64)
    largest = np.abs(given[np.isfinite(given)]).max(initial=0.0)
    if largest > FARTHEST_SHARE:
        raise InputError(
            f"expected pred_boxes in shares of the image, but got {largest:g}",
            image=image,
            remedy="give the model's own output, or take boxes in pixels to Detections.from_scores",
        )
    return given


def _variances(batch: Any, settings: Any, edges: Edges) -> list[Floats | None]:
    """Return the variances (Q, 4) of x1, y1, x2, y2 of each image of a batch in shares of the image, where known."""
    logits, boxes = _numbers(batch)
    bins, reference = (entry_of(batch, name) for name in ("intermediate_predicted_corners", "initial_reference_points"))
    if edges == "ignore" or bins is None or reference is None:
        if edges == "required":
            raise InputError(
                "this output has no distributions of edges",
                remedy="D-FINE and DEIMv2 return them (intermediate_predicted_corners, initial_reference_points)",
            )
        return [None] * len(logits)
    half = "16" in str(getattr(bins, "dtype", ""))
    last, start = (to_numpy(values, "edges") for values in (bins, reference))
    last, start = (values[:, -1] if values.ndim == 4 else values for values in (last, start))  # the last layer's
    if last.shape[:2] != logits.shape[:2] or last.shape[-1] % 4 or start.shape != boxes.shape:
        shapes = [" x ".join(map(str, array.shape)) for array in (last, start, logits)]
        raise InputError(
            f"distributions of edges ({shapes[0]}, {shapes[1]}) are not those of the logits ({shapes[2]})",
            remedy="put the model into model.eval(), or write edges='ignore'",
        )
    reach, scale = (entry_of(settings, name) for name in ("up", "reg_scale"))
    mean, variances = edges_of(last, start, 0.5 if reach is None else reach, 4.0 if scale is None else scale)
    corners = np.asarray(boxes, np.float64) @ CORNERS_OF["cxcywh"].T
    away = np.abs(mean - corners)
    allowed = HALF_AGREEMENT if half else ROUNDING + AGREEMENT * np.tile(np.abs(start[..., 2:]), 2)
    if not (away <= allowed).all():
        raise InputError(
            f"the mean of the edges' distributions is {away.max():.3g} of the image away from the box",
            remedy="give config= of the model that made this output, or write edges='ignore'",
        )
    return list(variances)


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
