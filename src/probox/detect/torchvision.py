"""torchvision's SSD and Faster R-CNN, with any backbone: distributions and candidates from before suppression.

>>> from torchvision.models.detection import fasterrcnn_resnet50_fpn                             # doctest: +SKIP
>>> from probox.detect import Options, detect, read_image                                        # doctest: +SKIP
>>> from probox.detect.torchvision import TorchvisionDetector                                    # doctest: +SKIP
>>> detector = TorchvisionDetector(fasterrcnn_resnet50_fpn(weights="DEFAULT"))                   # doctest: +SKIP
>>> detect(detector, [read_image("photo.jpg")], [1], Options(uncertainty="nms-clusters"))[0]     # doctest: +SKIP
Detections(21 detections in 1 image, 80 classes, 21 probabilistic)

torch and torchvision are the caller's: nothing of them is imported before a model is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from probox.detect.batches import equal_shapes
from probox.detect.classes import Columns, name_columns
from probox.detect.families import Candidates
from probox.detect.images import Pixels
from probox.detect.masks import Dropout, Passes
from probox.detect.runner import Traits
from probox.detect.torch_modules import choose_layers, failures_said, fingerprint_of, sample_masked
from probox.errors import InputError

__all__ = ["TorchvisionDetector"]

FLOOR = 1e-3
"""Boxes of a class below this probability are left out of Faster R-CNN's thousand proposals times all classes."""


class TorchvisionDetector:
    """A torchvision detector that gives its candidates before suppression.

    Parameters
    ----------
    model : torch.nn.Module
        ``ssd300_vgg16``, ``ssdlite320_mobilenet_v3_large`` or any ``fasterrcnn_*``, on any device; of ``maskrcnn_*``
        and ``keypointrcnn_*`` the boxes. It is put into evaluation mode and otherwise left as it is.
    classes : sequence of str, optional
        Class names without the background. Default: COCO's, for 91 outputs.
    dropout : Dropout, optional
        Random masks for `sample`. ``layers`` is ``heads``, ``backbone``, a regular expression on module names, or
        ``existing``: switch on the model's own dropout modules, at their own rate.
    batch : int
        How many images to run at once; only images of equal size can be.
    """

    def __init__(
        self, model: Any, *, classes: Sequence[str] | None = None, dropout: Dropout | None = None, batch: int = 1
    ) -> None:
        if hasattr(model, "roi_heads"):
            kind, stage = "faster-rcnn", model.roi_heads
            outputs = model.roi_heads.box_predictor.cls_score.out_features
        elif hasattr(getattr(getattr(model, "head", None), "classification_head", None), "num_columns"):
            kind, stage = "ssd", model
            outputs = model.head.classification_head.num_columns
        else:
            raise InputError(
                f"expected torchvision's SSD or Faster R-CNN, but got {type(model).__name__}",
                remedy="export other detectors to ONNX and use probox detect",
            )
        self.model = model.eval()
        self.batch = batch
        self._stage = stage
        self._columns: Columns = name_columns(outputs, classes)
        self._dropout = dropout
        self.family = Traits(kind, self._columns.names, nms_iou=float(stage.nms_thresh))
        self.dropout_layers = () if dropout is None else tuple(name for name, _ in _chosen(model, dropout.layers))

    @property
    def fingerprint(self) -> str:
        """Return what tells this model from others: its weights."""
        return fingerprint_of(self.model, self._dropout)

    def candidates(self, images: Sequence[Pixels]) -> list[Candidates]:
        """Return each image's candidates before suppression."""
        found: dict[int, Candidates] = {}
        for rows in equal_shapes([image.shape for image in images], self.batch):
            found.update(zip(rows, self._run([images[row] for row in rows]), strict=True))
        return [found[row] for row in range(len(images))]

    def sample(self, images: Sequence[Pixels], passes: int, image_ids: Sequence[int]) -> list[Passes]:
        """Return each image's candidates of several passes with random masks, and of one without."""
        if self._dropout is None:
            raise InputError("expected a detector with dropout", remedy="make it with dropout=Dropout()")
        chosen = _chosen(self.model, self._dropout.layers)
        return sample_masked(chosen, self._dropout, self._run, images, passes, image_ids)

    def _run(self, images: Sequence[Pixels]) -> list[Candidates]:
        import torch

        device = next(self.model.parameters()).device
        tensors = [torch.from_numpy(np.array(image.transpose(2, 0, 1))).to(device).float() / 255.0 for image in images]
        replacement = self._ssd_candidates if self.family.name == "ssd" else self._rcnn_candidates
        with torch.no_grad(), ExitStack() as changes:
            changes.enter_context(_replaced(self._stage, "postprocess_detections", replacement))
            if self.family.name == "faster-rcnn":  # masks and keypoints of thousands of candidates would take minutes
                for has in ("has_mask", "has_keypoint"):
                    changes.enter_context(_replaced(self._stage, has, lambda: False))
            changes.enter_context(failures_said(self.family.name, images))
            outputs = self.model(tensors)
        return [self._to_candidates(output) for output in outputs]

    def _to_candidates(self, output: dict[str, Any]) -> Candidates:
        boxes = output["boxes"].cpu().numpy().astype(np.float64)
        scores = self._columns.select(output["scores"].cpu().numpy())
        labels = None
        if self.family.name == "faster-rcnn":
            names = np.full(int(self._columns.take.max()) + 1, -1, np.int64)
            names[self._columns.take] = np.arange(len(self._columns.take))
            labels = names[output["labels"].cpu().numpy()]
        return Candidates(boxes, scores, labels=labels)

    # The model's own code scales whatever stands in "boxes" back to the image; the two methods below take the place of
    # its suppression, and hand on everything.

    def _ssd_candidates(self, head_outputs: Any, anchors: Any, image_shapes: Any) -> list[dict[str, Any]]:
        probs = head_outputs["cls_logits"].softmax(dim=-1)
        found = []
        for deltas, scores, own_anchors in zip(head_outputs["bbox_regression"], probs, anchors, strict=True):
            boxes = self.model.box_coder.decode_single(deltas, own_anchors)
            found.append({"boxes": boxes, "scores": scores, "labels": scores.argmax(dim=1)})
        return found

    def _rcnn_candidates(
        self, class_logits: Any, box_regression: Any, proposals: Any, image_shapes: Any
    ) -> tuple[list[Any], list[Any], list[Any]]:
        import torch

        counts = [len(own) for own in proposals]
        boxes = self._stage.box_coder.decode(box_regression, proposals).split(counts)
        probs = class_logits.softmax(dim=-1).split(counts)
        found: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        wanted = torch.zeros(class_logits.shape[-1], dtype=torch.bool, device=class_logits.device)
        wanted[torch.from_numpy(self._columns.take).to(wanted.device)] = True
        for own_boxes, own_probs in zip(boxes, probs, strict=True):
            rows, labels = torch.where((own_probs > FLOOR) & wanted)
            found[0].append(own_boxes[rows, labels])
            found[1].append(own_probs[rows])
            found[2].append(labels)
        return found


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Let an attribute of one object be another for a while."""
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name)  # the class's own method shows again


def _chosen(model: Any, layers: str) -> list[tuple[str, Any]]:
    """Return the modules that get masks, with their names."""
    return choose_layers(
        model,
        layers,
        heads=lambda name: name.startswith(("head.", "roi_heads.")),
        backbone=lambda name: name.startswith("backbone."),
    )
