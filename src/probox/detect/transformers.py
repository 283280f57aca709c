"""Object detectors of transformers: distributions of all queries, and D-FINE's edges.

>>> from transformers import AutoImageProcessor, AutoModelForObjectDetection                      # doctest: +SKIP
>>> from probox.detect import Options, detect, read_image                                         # doctest: +SKIP
>>> from probox.detect.transformers import TransformersDetector                                   # doctest: +SKIP
>>> model = AutoModelForObjectDetection.from_pretrained("rtdetr")                                 # doctest: +SKIP
>>> detector = TransformersDetector(model, AutoImageProcessor.from_pretrained("rtdetr"))          # doctest: +SKIP
>>> detect(detector, [read_image("photo.jpg")], [1], Options(score=0.3))[0]                       # doctest: +SKIP
Detections(12 detections in 1 image, 80 classes)

torch and transformers are the caller's: nothing of them is imported before a model is given.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.batches import equal_shapes
from probox.detect.classes import Columns
from probox.detect.families import Candidates
from probox.detect.families.base import corners_of_centres
from probox.detect.images import Pixels
from probox.detect.masks import Dropout, Passes
from probox.detect.queries import (
    COLUMNS_ARE_TEXT,
    NO_OBJECT_LAST,
    checked_boxes,
    class_names,
    edge_variances,
    numbers_of,
    probabilities_of,
)
from probox.detect.runner import Traits
from probox.detect.torch_modules import choose_layers, failures_said, fingerprint_of, sample_masked
from probox.errors import InputError

__all__ = ["TransformersDetector"]

NOBODY = "N/A"
"""What DETR's files call the numbers that no category of COCO has."""

WITH_EDGES = frozenset({"d_fine", "deimv2"})
"""Models that predict a distribution for each side of a box."""

HEADS = ("class_labels_classifier", "bbox_predictor", "class_embed", "bbox_embed", "score_head", "bbox_head")
"""What the layers are called that turn a query into classes and boxes."""


class TransformersDetector:
    """An object detector of transformers with its image processor.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        DETR, Conditional, Deformable or DAB-DETR, RT-DETR, D-FINE, DEIMv2, YOLOS and their kin, on any device. It is
        put into evaluation mode and otherwise left as it is. Its queries are final: nothing is suppressed.
    processor : transformers' image processor
        Places photos on the model's input, as in its training.
    classes : sequence of str, optional
        Class names in the order of the outputs. Default: the model's own (``config.id2label``); columns called "N/A"
        are nobody's, and are left out.
    dropout : Dropout, optional
        Random masks for `sample`. ``layers`` is ``heads``, ``backbone`` (all others), a regular expression on module
        names, or ``existing``: switch on the model's own dropout modules, at their own rate.
    batch : int
        How many images to run at once; only images of equal size on the input can be.
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
                f"expected an object detector of transformers, but got {type(model).__name__}",
                remedy="give what AutoModelForObjectDetection.from_pretrained returns",
            )
        if kind in COLUMNS_ARE_TEXT:
            raise InputError(
                f"{kind} looks for the words of a prompt, not for classes", remedy="use a model with classes of its own"
            )
        if not callable(processor):
            raise InputError(
                f"expected an image processor of transformers, but got {type(processor).__name__}",
                remedy="give what AutoImageProcessor.from_pretrained returns",
            )
        self.model = model.eval()
        self.processor = processor
        self.batch = batch
        self._dropout = dropout
        self._all_names = class_names(model.config, classes)
        known = getattr(model.config, "id2label", None)
        if known is not None and len(known) != len(self._all_names):
            raise InputError(
                f"expected {len(known)} class names for the model's {len(known)} scores, but got {len(self._all_names)}"
            )
        self._columns = _named_columns(self._all_names)
        self.family = Traits(
            str(kind),
            self._columns.names,
            "best" if kind in NO_OBJECT_LAST else "all",
            has_edges=kind in WITH_EDGES,
            suppresses=True,
            clips_first=False,
        )
        self.dropout_layers = () if dropout is None else tuple(name for name, _ in self._chosen(dropout.layers))

    @property
    def fingerprint(self) -> str:
        """Return what tells this model from others: its weights, its masks, and how its processor places photos."""
        settings: Any = getattr(self.processor, "to_dict", dict)()
        described = json.dumps([fingerprint_of(self.model, self._dropout), settings], sort_keys=True, default=str)
        return hashlib.sha256(described.encode()).hexdigest()

    def candidates(self, images: Sequence[Pixels]) -> list[Candidates]:
        """Return each image's queries as candidates."""
        placed = [self._place(image) for image in images]
        found: dict[int, Candidates] = {}
        for rows in equal_shapes([own["pixel_values"].shape for own in placed], self.batch):
            seen = [images[row] for row in rows]
            found.update(zip(rows, self._run([placed[row] for row in rows], seen), strict=True))
        return [found[row] for row in range(len(images))]

    def sample(self, images: Sequence[Pixels], passes: int, image_ids: Sequence[int]) -> list[Passes]:
        """Return each image's candidates of several passes with random masks, and of one without."""
        if self._dropout is None:
            raise InputError("expected a detector with dropout", remedy="make it with dropout=Dropout()")
        chosen = self._chosen(self._dropout.layers)
        return sample_masked(chosen, self._dropout, self.candidates, images, passes, image_ids)

    def _chosen(self, layers: str) -> list[tuple[str, Any]]:
        def in_heads(name: str) -> bool:
            return any(part in name for part in HEADS)

        return choose_layers(self.model, layers, heads=in_heads, backbone=lambda name: not in_heads(name))

    def _place(self, image: Pixels) -> dict[str, Any]:
        """Return the model's inputs for one image, so that no other one decides how it is padded."""
        with failures_said(f"the image processor of {self.family.name}", [image]):
            made = self.processor(images=[np.array(image)], input_data_format="channels_last", return_tensors="pt")
        return {name: made[name] for name in ("pixel_values", "pixel_mask") if name in made}

    def _run(self, placed: Sequence[Mapping[str, Any]], images: Sequence[Pixels]) -> list[Candidates]:
        import torch

        weights = next(self.model.parameters())
        inputs = {name: torch.cat([own[name] for own in placed]).to(weights.device) for name in placed[0]}
        inputs["pixel_values"] = inputs["pixel_values"].to(weights.dtype)
        with torch.no_grad(), failures_said(self.family.name, images):
            outputs = self.model(**inputs)
        logits, boxes = numbers_of(outputs)
        variances = edge_variances(outputs, self.model.config, "required" if self.family.has_edges else "ignore")
        found = []
        for row, image in enumerate(images):
            size = image.shape[1], image.shape[0]
            probs = probabilities_of(logits[row], self._all_names, "auto", self.model.config)
            found.append(
                Candidates(
                    corners_of_centres(checked_boxes(boxes[row])) * np.array(size * 2, np.float64),
                    self._columns.select(probs.astype(np.float32)),
                    _corner_covariances(variances[row], size),
                )
            )
        return found


def _corner_covariances(variances: npt.NDArray[np.float64] | None, size: tuple[int, int]) -> Any:
    """Return corner covariances (Q, 2, 2, 2) in square pixels from variances (Q, 4) of sides in shares of the image."""
    if variances is None:
        return None
    return (variances * np.array(size * 2, np.float64) ** 2).reshape(-1, 2, 2)[..., None] * np.eye(2)


def _named_columns(names: Sequence[str]) -> Columns:
    """Return the columns that have a name of their own."""
    take = [number for number, name in enumerate(names) if name != NOBODY]
    twice = [name for name, count in Counter(names[number] for number in take).items() if count > 1]
    if twice:
        raise InputError(
            f"several classes of the model are called {twice[0]!r:.60}", remedy="give names of its classes"
        )
    return Columns(tuple(names[number] for number in take), np.array(take, np.int64))
