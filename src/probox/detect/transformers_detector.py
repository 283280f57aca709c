"""Object detectors of transformers: class probabilities of all queries, and D-FINE's edge distributions."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from probox.detect.candidates import Candidates, Pixels, Traits
from probox.detect.dropout import Dropout
from probox.detect.families.base import corners_of_centres, covariances_of_sides
from probox.detect.graph import ScoreColumns, expect_names
from probox.detect.torch_model import TorchDetector, name_failures
from probox.errors import InputError
from probox.fusion.fuse import edges_of
from probox.support.types import Array, Floats
from probox.tables.geometry import CORNERS_OF
from probox.tables.labels import background_classes, softmax
from probox.tables.table import check_classes, entry_of, to_numpy

Head = Literal["auto", "softmax", "sigmoid"]
Edges = Literal["auto", "required", "ignore"]
NO_OBJECT_LAST = frozenset({"detr", "table-transformer", "yolos"})
"""Models with a softmax whose last column is "no object"; all other known models have a sigmoid per class."""
ONE_SIGMOID_PER_CLASS = frozenset(
    {"conditional_detr", "d_fine", "dab-detr", "deformable_detr", "deimv2", "lw_detr", "rf_detr", "rt_detr"}
    | {"rt_detr_v2", "pp_doclayout_v2", "pp_doclayout_v3", "pp_doclayout_v4"}
)
COLUMNS_ARE_TEXT = frozenset({"grounding-dino", "mm-grounding-dino", "omdet-turbo", "owlv2", "owlvit"})
"""Models whose logits refer to words of a prompt, not to classes."""
FARTHEST_SHARE = 8.0
"""Limit of box coordinates relative to the image, beyond which they are not normalised; untrained models included."""
AGREEMENT, HALF_AGREEMENT = 1e-3, 2e-2
"""Tolerance between box and mean of its edge distributions, relative to box size; in half precision, to the image."""
ROUNDING = 1e-5
"""Rounding error of positions in single precision, relative to the image."""


def name_classes(settings: Any, classes: Sequence[str] | None) -> tuple[str, ...]:
    """Return the class names given, or those of the model's configuration in order of their numbers."""
    if classes is not None:
        return check_classes(classes)
    known = entry_of(settings, "id2label")
    if not isinstance(known, Mapping):
        raise InputError("class names are unknown", remedy="give config=model.config, or classes=")
    by_number = {int(number): name for number, name in known.items()}
    if sorted(by_number) != list(range(len(by_number))):
        raise InputError(
            f"expected id2label to number {len(by_number)} classes from 0, but it goes to {max(by_number)}",
            remedy="give classes=, a name for each column of the logits",
        )
    return check_classes([by_number[number] for number in range(len(by_number))])


def numbers_of(batch: Any) -> tuple[Array, Array]:
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
    if logits.ndim == 2 and boxes.ndim == 2:  # a single image
        logits, boxes = logits[None], boxes[None]
    if logits.ndim != 3 or boxes.shape != (*logits.shape[:2], 4):
        shapes = [" x ".join(map(str, array.shape)) for array in (logits, boxes)]
        raise InputError(f"expected logits B x Q x C and pred_boxes B x Q x 4, but got {shapes[0]} and {shapes[1]}")
    return logits, boxes


def probabilities_of(logits: Array, classes: tuple[str, ...], labels: Head, settings: Any) -> Floats:
    """Return the probabilities of all classes (Q, C) of one image."""
    columns = logits.shape[-1]
    head = head_of(columns, classes, settings) if labels == "auto" else labels
    wanted = len(classes) + (head == "softmax")
    if columns != wanted:
        raise InputError(
            f"expected {wanted} columns of logits for a {head} head with {len(classes)} classes, but got {columns}",
            remedy="give a name for each class, without the last column (background)"
            if head == "softmax"
            else "give a name for each column as classes=, or labels='softmax' if the last column is the background",
        )
    given = np.asarray(logits, np.float64)
    if head == "sigmoid":
        return 1.0 / (1.0 + np.exp(-np.clip(given, -700.0, 700.0)))
    return softmax(given)[:, :-1]


def head_of(columns: int, classes: tuple[str, ...], settings: Any) -> Head:
    """Return the head type that converts logits to probabilities; raise if it is unknown."""
    ask = "write labels='softmax' (last column is the background) or labels='sigmoid' (one column per class)"
    kind = entry_of(settings, "model_type")
    if settings is None:
        raise InputError("the head type is unknown", remedy=f"give config=model.config, or {ask}")
    if kind in COLUMNS_ARE_TEXT:
        raise InputError(
            f"the logits of {kind} refer to words of a prompt, not to classes",
            remedy="pass the boxes, scores and labels of its processor to Detections.from_scores",
        )
    if kind in ONE_SIGMOID_PER_CLASS and entry_of(settings, "use_focal_loss") is False:
        raise InputError("the head type is ambiguous with use_focal_loss=False", remedy=ask)
    if kind in NO_OBJECT_LAST and len(classes) == columns and background_classes(classes[-1:]).any():
        raise InputError(
            f"expected classes without background, but the last is {classes[-1]!r}", remedy="leave it out of classes"
        )
    by_size: dict[int, Head] = {len(classes) + 1: "softmax", len(classes): "sigmoid"}
    known: Head | None = "softmax" if kind in NO_OBJECT_LAST else "sigmoid" if kind in ONE_SIGMOID_PER_CLASS else None
    head = known or by_size.get(columns)
    if head is None:
        raise InputError(
            f"expected {len(classes)} or {len(classes) + 1} columns of logits for {len(classes)} classes, "
            f"but got {columns}",
            remedy="give the config= of the model that returned this output",
        )
    return head


def check_boxes(boxes: Array, image: int | None = None) -> Floats:
    """Return boxes in double precision; raise unless they are normalised to the image."""
    given = np.asarray(boxes, np.float64)
    largest = np.abs(given[np.isfinite(given)]).max(initial=0.0)
    if largest > FARTHEST_SHARE:
        raise InputError(
            f"expected pred_boxes relative to the image size, but got {largest:g}",
            image=image,
            remedy="give the model's own output, or pass boxes in pixels to Detections.from_scores",
        )
    return given


def edge_variances(batch: Any, settings: Any, edges: Edges) -> list[Floats | None]:
    """Return the variances (Q, 4) of x1, y1, x2, y2 relative to the image, for each image where predicted."""
    logits, boxes = numbers_of(batch)
    bins, reference = (entry_of(batch, name) for name in ("intermediate_predicted_corners", "initial_reference_points"))
    if edges == "ignore" or bins is None or reference is None:
        if edges == "required":
            raise InputError(
                "the output has no edge distributions",
                remedy="D-FINE and DEIMv2 return them (intermediate_predicted_corners, initial_reference_points)",
            )
        return [None] * len(logits)
    half = "16" in str(getattr(bins, "dtype", ""))
    last, start = (to_numpy(values, "edges") for values in (bins, reference))
    last, start = (values[:, -1] if values.ndim == 4 else values for values in (last, start))  # the last decoder layer
    if last.shape[:2] != logits.shape[:2] or last.shape[-1] % 4 or start.shape != boxes.shape:
        shapes = [" x ".join(map(str, array.shape)) for array in (last, start, logits)]
        raise InputError(
            f"edge distributions ({shapes[0]}, {shapes[1]}) do not match the logits ({shapes[2]})",
            remedy="put the model into model.eval(), or write edges='ignore'",
        )
    reach, scale = (entry_of(settings, name) for name in ("up", "reg_scale"))
    mean, variances = edges_of(last, start, 0.5 if reach is None else reach, 4.0 if scale is None else scale)
    corners = np.asarray(boxes, np.float64) @ CORNERS_OF["cxcywh"].T
    away = np.abs(mean - corners)
    allowed = HALF_AGREEMENT if half else ROUNDING + AGREEMENT * np.tile(np.abs(start[..., 2:]), 2)
    if not (away <= allowed).all():
        raise InputError(
            f"the mean of the edge distributions is {away.max():.3g} of the image size away from the box",
            remedy="give the config= of the model that returned this output, or write edges='ignore'",
        )
    return list(variances)


UNUSED_ID = "N/A"
"""Name of unused COCO category ids in DETR's files."""
WITH_EDGES = frozenset({"d_fine", "deimv2"})
"""Models that predict a distribution for each edge of a box."""
HEADS = ("class_labels_classifier", "bbox_predictor", "class_embed", "bbox_embed", "score_head", "bbox_head")
"""Names of the layers that turn a query into classes and boxes."""


class TransformersDetector(TorchDetector):
    """A transformers object detector with its image processor.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        DETR, Conditional, Deformable or DAB-DETR, RT-DETR, D-FINE, DEIMv2, YOLOS and related models, on any device. The
        model is set to evaluation mode and otherwise unchanged. Its queries are final: no suppression is applied.
    processor : transformers' image processor
        Image processor of the model's training.
    classes : sequence of str, optional
        Class names in the order of the outputs. Default: the model's own (``config.id2label``), without columns
        called "N/A".
    dropout : Dropout, optional
        Dropout masks for `sample`. ``layers`` is ``heads``, ``backbone`` (all others), a regular expression on module
        names, or ``existing``: the model's own dropout modules, at their own rate.
    batch : int
        Number of images per batch; only inputs of equal size are batched.

    Examples
    --------
    >>> detector = TransformersDetector(model, processor)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: Any,
        processor: Any,
        *,
        classes: Sequence[str] | None = None,
        dropout: Dropout | None = None,
        batch: int = 1,
    ) -> None:
        kind = getattr(getattr(model, "config", None), "model_type", None)
        if kind is None or not callable(getattr(model, "eval", None)):
            raise InputError(
                f"expected a transformers object detector, but got {type(model).__name__}",
                remedy="give what AutoModelForObjectDetection.from_pretrained returns",
            )
        if kind in COLUMNS_ARE_TEXT:
            raise InputError(
                f"{kind} detects words of a prompt, not classes", remedy="use a model with classes of its own"
            )
        if not callable(processor):
            raise InputError(
                f"expected a transformers image processor, but got {type(processor).__name__}",
                remedy="give what AutoImageProcessor.from_pretrained returns",
            )
        super().__init__(model, dropout, batch)
        self.processor = processor
        self._all_names = name_classes(model.config, classes)
        known = getattr(model.config, "id2label", None)
        if known is not None:
            expect_names(self._all_names, len(known))
        self._columns = _named_columns(self._all_names)
        self.family = Traits(
            str(kind),
            self._columns.names,
            "best" if kind in NO_OBJECT_LAST else "all",
            has_edges=kind in WITH_EDGES,
            suppresses=True,
            clips_first=False,
        )

    @property
    def fingerprint(self) -> str:
        """Return an identifier of the model: weights, masks and image processor."""
        settings: Any = getattr(self.processor, "to_dict", dict)()
        described = json.dumps([super().fingerprint, settings], sort_keys=True, default=str)
        return hashlib.sha256(described.encode()).hexdigest()

    def _is_head(self, name: str) -> bool:
        return any(part in name for part in HEADS)

    def _prepare(self, image: Pixels) -> dict[str, Any]:
        # One image at a time, so that padding does not depend on other images.
        with name_failures(f"the image processor of {self.family.name}", [image]):
            made = self.processor(images=[np.array(image)], input_data_format="channels_last", return_tensors="pt")
        return {name: made[name] for name in ("pixel_values", "pixel_mask") if name in made}

    def _shape_of(self, prepared: dict[str, Any]) -> tuple[int, ...]:
        return tuple(prepared["pixel_values"].shape)

    def _run(self, inputs: Sequence[Mapping[str, Any]], images: Sequence[Pixels]) -> list[Candidates]:
        import torch

        weights = next(self.model.parameters())
        joined = {name: torch.cat([own[name] for own in inputs]).to(weights.device) for name in inputs[0]}
        joined["pixel_values"] = joined["pixel_values"].to(weights.dtype)
        with torch.no_grad(), name_failures(self.family.name, images):
            outputs = self.model(**joined)
        logits, boxes = numbers_of(outputs)
        variances = edge_variances(outputs, self.model.config, "required" if self.family.has_edges else "ignore")
        found = []
        for row, image in enumerate(images):
            size = image.shape[1], image.shape[0]
            probs = probabilities_of(logits[row], self._all_names, "auto", self.model.config)
            found.append(
                Candidates(
                    corners_of_centres(check_boxes(boxes[row])) * np.array(size * 2, np.float64),
                    self._columns.select(probs.astype(np.float32)),
                    None if (own := variances[row]) is None else covariances_of_sides(own, size),
                )
            )
        return found


def _named_columns(names: Sequence[str]) -> ScoreColumns:
    """Return the columns of named classes."""
    take = [number for number, name in enumerate(names) if name != UNUSED_ID]
    twice = [name for name, count in Counter(names[number] for number in take).items() if count > 1]
    if twice:
        raise InputError(
            f"several classes of the model have the name {twice[0]!r:.60}", remedy="give unique class names"
        )
    return ScoreColumns(tuple(names[number] for number in take), np.array(take, np.int64))
