"""Detectors that answer a fixed number of queries, as those of transformers: logits and boxes, by their shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.fusion.edges import edges_of
from probox.tables.arguments import check_classes
from probox.tables.arrays import entry_of, to_numpy
from probox.tables.box_formats import CORNERS_OF
from probox.tables.distributions import softmax
from probox.tables.labels import background_classes

__all__ = [
    "Edges",
    "Head",
    "checked_boxes",
    "class_names",
    "edge_variances",
    "head_of",
    "numbers_of",
    "probabilities_of",
]

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


def class_names(settings: Any, classes: Sequence[str] | None) -> tuple[str, ...]:
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


def numbers_of(batch: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
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


def probabilities_of(logits: npt.NDArray[Any], classes: tuple[str, ...], labels: Head, settings: Any) -> Floats:
    """Return the probabilities of all classes (Q, C) of one image."""
    columns = logits.shape[-1]
    head = head_of(columns, classes, settings) if labels == "auto" else labels
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
    return softmax(given)[:, :-1]


def head_of(columns: int, classes: tuple[str, ...], settings: Any) -> Head:
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


def checked_boxes(boxes: npt.NDArray[Any], image: int | None = None) -> Floats:
    """Return boxes in double precision; raise if they are no shares of the image."""
    given = np.asarray(boxes, np.float64)
    largest = np.abs(given[np.isfinite(given)]).max(initial=0.0)
    if largest > FARTHEST_SHARE:
        raise InputError(
            f"expected pred_boxes in shares of the image, but got {largest:g}",
            image=image,
            remedy="give the model's own output, or take boxes in pixels to Detections.from_scores",
        )
    return given


def edge_variances(batch: Any, settings: Any, edges: Edges) -> list[Floats | None]:
    """Return the variances (Q, 4) of x1, y1, x2, y2 of each image of a batch in shares of the image, where known."""
    logits, boxes = numbers_of(batch)
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
