"""torchvision's SSD and Faster R-CNN with any backbone, and the detectors of the paper."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from probox.detect.candidates import Candidates, Pixels, Traits
from probox.detect.dropout import Dropout
from probox.detect.graph import ScoreColumns, name_columns
from probox.detect.torch_model import State, TorchDetector, load_weights, name_failures, read_weights
from probox.errors import InputError
from probox.support.optional import import_framework
from probox.support.types import Array, Floats
from probox.tables.heatmaps import LEAST, WindowHeatmap, crop

FLOOR = 1e-3
"""Minimum class probability of Faster R-CNN's boxes: it limits a thousand proposals times all classes."""


class TorchvisionDetector(TorchDetector):
    """A torchvision detector that returns candidates before suppression.

    Parameters
    ----------
    model : torch.nn.Module
        ``ssd300_vgg16``, ``ssdlite320_mobilenet_v3_large``, any ``fasterrcnn_*`` or ``maskrcnn_*``, on any device;
        ``keypointrcnn_*`` give boxes only. The model is set to evaluation mode and otherwise unchanged.
    classes : sequence of str, optional
        Class names without the background. Default: COCO's, for 91 outputs.
    dropout : Dropout, optional
        Dropout masks for `sample`. ``layers`` is ``heads``, ``backbone``, a regular expression on module names, or
        ``existing``: the model's own dropout modules, at their own rate.
    batch : int
        Number of images per batch; only images of equal size are batched.

    Examples
    --------
    >>> detector = TorchvisionDetector(torchvision.models.detection.ssd300_vgg16())  # doctest: +SKIP
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
        super().__init__(model, dropout, batch)
        self._stage = stage
        self._columns: ScoreColumns = name_columns(outputs, classes)
        has_masks = kind == "faster-rcnn" and bool(stage.has_mask())
        self.family = Traits(kind, self._columns.names, nms_iou=float(stage.nms_thresh), has_masks=has_masks)

    def _is_head(self, name: str) -> bool:
        return name.startswith(("head.", "roi_heads."))

    def _is_backbone(self, name: str) -> bool:
        return name.startswith("backbone.")

    def _run(self, inputs: Sequence[Any], images: Sequence[Pixels]) -> list[Candidates]:
        import torch

        device = next(self.model.parameters()).device
        tensors = [torch.from_numpy(np.array(image.transpose(2, 0, 1))).to(device).float() / 255.0 for image in images]
        replacement = self._ssd_candidates if self.family.name == "ssd" else self._rcnn_candidates
        seen: list[Any] = []  # the inputs of the stage: feature maps, proposals, and sizes on the network's input
        with torch.no_grad(), ExitStack() as changes:
            changes.enter_context(_replace(self._stage, "postprocess_detections", replacement))
            if self.family.name == "faster-rcnn":  # masks of thousands of candidates would take minutes
                for has in ("has_mask", "has_keypoint"):
                    changes.enter_context(_replace(self._stage, has, lambda: False))
            if self.family.has_masks:
                changes.callback(self._stage.register_forward_pre_hook(lambda _, given: seen.append(given)).remove)
            changes.enter_context(name_failures(self.family.name, images))
            outputs = self.model(tensors)
        found = [self._to_candidates(output) for output in outputs]
        if not seen:
            return found
        ((features, _, input_sizes, *_),) = seen
        return [
            dataclasses.replace(
                own,
                heatmaps=RoiMasks(
                    self._stage,
                    {name: maps[row : row + 1] for name, maps in features.items()},
                    input_sizes[row],
                    (image.shape[1], image.shape[0]),
                    outputs[row]["labels"],
                ),
            )
            for row, (own, image) in enumerate(zip(found, images, strict=True))
        ]

    def _to_candidates(self, output: dict[str, Any]) -> Candidates:
        boxes = output["boxes"].cpu().numpy().astype(np.float64)
        scores = self._columns.select(output["scores"].cpu().numpy())
        labels = None
        if self.family.name == "faster-rcnn":
            names = np.full(int(self._columns.take.max()) + 1, -1, np.int64)
            names[self._columns.take] = np.arange(len(self._columns.take))
            labels = names[output["labels"].cpu().numpy()]
        return Candidates(boxes, scores, labels=labels)

    # The model's own post-processing scales "boxes" back to the image. The two methods below replace its suppression
    # and return all candidates.

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


class RoiMasks:
    """Heatmaps of Mask R-CNN's mask head for one image, computed for requested rows only.

    `features` are the image's feature maps, `input_size` is its height and width on the network's input, `image_size`
    its width and height, and `labels` are the model's columns of the candidates (N,).
    """

    def __init__(
        self,
        stage: Any,
        features: dict[str, Any],
        input_size: tuple[int, int],
        image_size: tuple[int, int],
        labels: Any,
    ) -> None:
        self._stage, self._features, self._input_size = stage, features, input_size
        self._image_size, self._labels = image_size, labels

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, rows: Any) -> RoiMasks:
        import torch

        chosen = self._labels[torch.from_numpy(np.asarray(rows)).to(self._labels.device)]
        return RoiMasks(self._stage, self._features, self._input_size, self._image_size, chosen)

    def __call__(self, rows: Array, boxes: Floats) -> list[WindowHeatmap]:
        """Return the heatmaps of rows; `boxes` are their boxes in the image."""
        if not len(rows):
            return []
        torch = import_framework("torch")
        paste = import_framework("torchvision.models.detection.roi_heads").paste_masks_in_image
        (width, height), (input_height, input_width) = self._image_size, self._input_size
        on_input = boxes * np.array([input_width / width, input_height / height] * 2)
        labels = self[rows]._labels
        with torch.no_grad():
            given = torch.from_numpy(on_input.astype(np.float32)).to(labels.device)
            pooled = self._stage.mask_roi_pool(self._features, [given], [self._input_size])
            logits = self._stage.mask_predictor(self._stage.mask_head(pooled))
            inside = logits.sigmoid()[torch.arange(len(labels), device=labels.device), labels].cpu()
        corners = torch.from_numpy(boxes.astype(np.float32))
        return [
            _window(paste(inside[row : row + 1, None], corners[row : row + 1], (height, width))[0, 0].numpy())
            for row in range(len(rows))
        ]


def _window(values: Array) -> WindowHeatmap:
    """Return the part of a pasted mask above 0 as a heatmap that is nowhere exactly 0 or 1."""
    (top, left), window = crop(values)
    return WindowHeatmap(values.shape, (top, left), np.clip(window, LEAST, 1.0 - LEAST).astype(np.float16))


@contextmanager
def _replace(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute of one object within a block."""
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name)  # restores the class's own method


PREFIXES = ("fasterrcnn_", "keypointrcnn_", "maskrcnn_", "ssd300_", "ssdlite320_")
"""Prefixes of the functions of ``torchvision.models.detection`` that `TorchvisionDetector` supports."""
TRAINED_WITHOUT_EPSILON = {
    "fasterrcnn_resnet50_fpn": "FasterRCNN_ResNet50_FPN_Weights",
    "keypointrcnn_resnet50_fpn": "KeypointRCNN_ResNet50_FPN_Weights",
    "maskrcnn_resnet50_fpn": "MaskRCNN_ResNet50_FPN_Weights",
}
"""Models with published files trained without an epsilon in normalisation; torchvision removes it for them."""
DEPTHS = {6: 50, 23: 101}
"""Depth of a ResNet or ResNeXt by the number of blocks in its third stage."""


def known_models() -> list[str]:
    """Return the names that `build_torchvision` accepts, those of the paper first."""
    detection = import_framework("torchvision.models.detection")
    return [*PAPER, *sorted(name for name in dir(detection) if name.startswith(PREFIXES))]


def check_name(name: str) -> None:
    """Raise unless `build_torchvision` accepts this name."""
    known = known_models()
    if name not in known:
        raise InputError(
            f"expected a supported torchvision detector, but got {name!r:.60}",
            remedy=f"name one of {', '.join(known)}",
        )


def build_torchvision(name: str, weights: str | Path) -> Any:
    """Return a detector in evaluation mode with the weights of a file; the weights determine the number of classes.

    Parameters
    ----------
    name : str
        A function of ``torchvision.models.detection``, or one of the paper's detectors: ``ssd300``, ``frcnn_r``,
        ``frcnn_r_fpn``, ``frcnn_x_fpn``.
    weights : path
        A state dict, or a checkpoint with one, of torch or safetensors.

    Examples
    --------
    >>> build_torchvision("fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_coco-258fb6c6.pth")   # doctest: +SKIP
    """
    check_name(name)
    state = read_weights(weights)
    columns = _count_columns(state, str(weights))
    model = PAPER[name](columns, state, str(weights)) if name in PAPER else _build_published(name, columns)
    load_weights(model, state, file=str(weights), name=f"{name} with {columns - 1} classes and a background")
    if _trained_without_epsilon(PUBLISHED.get(name, name), Path(weights)):
        for module in model.modules():
            if hasattr(module, "running_var"):
                module.eps = 0.0
    return model.eval()


def _build_published(name: str, columns: int) -> Any:
    detection = import_framework("torchvision.models.detection")
    # The published COCO weights of ssdlite have the reduced tail, which torchvision builds without a pretrained
    # backbone.
    return getattr(detection, name)(weights=None, weights_backbone=None, num_classes=columns)


def _frcnn_r(columns: int, state: State, file: str) -> Any:
    """Return Faster R-CNN on the fourth stage of a ResNet, with the fifth as box head and no feature pyramid."""
    torch = import_framework("torch")
    torchvision = import_framework("torchvision")
    detection = import_framework("torchvision.models.detection")
    utils = import_framework("torchvision.models._utils")
    resnet = getattr(torchvision.models, f"resnet{_depth(state, file)}")(
        weights=None, norm_layer=torchvision.ops.FrozenBatchNorm2d
    )
    head = OrderedDict(layer4=resnet.layer4, pool=torch.nn.AdaptiveAvgPool2d(1), flat=torch.nn.Flatten())
    backbone = torch.nn.Sequential(OrderedDict(body=utils.IntermediateLayerGetter(resnet, {"layer3": "0"})))
    backbone.out_channels = 1024
    return detection.FasterRCNN(
        backbone,
        rpn_anchor_generator=detection.anchor_utils.AnchorGenerator(((64, 128, 256, 512),), ((0.5, 1.0, 2.0),)),
        box_roi_pool=torchvision.ops.MultiScaleRoIAlign(["0"], output_size=7, sampling_ratio=2),
        box_head=torch.nn.Sequential(head),
        box_predictor=detection.faster_rcnn.FastRCNNPredictor(2048, columns),
    )


def _with_pyramid(family: str, widths: dict[int, str]) -> Callable[[int, State, str], Any]:
    def build(columns: int, state: State, file: str) -> Any:
        detection = import_framework("torchvision.models.detection")
        depth = _depth(state, file)
        name = f"{family}{depth}{widths[depth]}"
        backbone = detection.backbone_utils.resnet_fpn_backbone(backbone_name=name, weights=None)
        return detection.FasterRCNN(backbone, columns)

    return build


PAPER: dict[str, Callable[[int, State, str], Any]] = {
    "ssd300": lambda columns, state, file: _build_published("ssd300_vgg16", columns),
    "frcnn_r": _frcnn_r,
    "frcnn_r_fpn": _with_pyramid("resnet", {50: "", 101: ""}),
    "frcnn_x_fpn": _with_pyramid("resnext", {50: "_32x4d", 101: "_32x8d"}),
}
"""SSD-300, FRCNN R, FRCNN R + FPN and FRCNN X + FPN; the weights determine the depth of the ResNet."""
PUBLISHED = {"ssd300": "ssd300_vgg16", "frcnn_r_fpn": "fasterrcnn_resnet50_fpn"}
"""Published torchvision weights that fit the detectors of the paper."""


def _depth(state: State, file: str) -> int:
    """Return the depth of a ResNet from the number of blocks in its third stage."""
    blocks = {key.split("layer3.")[1].split(".")[0] for key in state if "layer3." in key}
    if len(blocks) not in DEPTHS:
        raise InputError(
            f"expected a ResNet with {' or '.join(map(str, DEPTHS))} blocks in layer3, but got {len(blocks)}",
            file=file,
            remedy="name the model that was trained",
        )
    return DEPTHS[len(blocks)]


def _count_columns(state: State, file: str) -> int:
    """Return the number of score columns of the last layers, including the background."""

    def rows(*parts: str) -> int | None:
        """Return the length of the last bias whose name contains all these parts."""
        found = [value for key, value in state.items() if key.endswith("bias") and all(part in key for part in parts)]
        return len(found[-1]) if found and found[-1].ndim == 1 else None

    of_regions = rows("roi_heads.box_predictor.cls_score.")
    scores, sides = (rows(f"head.{kind}_head.module_list.0.") for kind in ("classification", "regression"))
    if of_regions is not None:
        return of_regions
    if scores is not None and sides is not None and sides >= 4 and scores % (sides // 4) == 0:
        return scores // (sides // 4)  # the regression has four numbers per anchor box
    raise InputError(
        f"expected weights of torchvision's SSD or Faster R-CNN, but got {len(state)} tensors, "
        f"first {next(iter(state))}",
        file=file,
        remedy="give the state dict of a torchvision detector",
    )


def _trained_without_epsilon(name: str, file: Path) -> bool:
    """Return whether a published file needs normalisation without an epsilon; its name includes its hash."""
    if name not in TRAINED_WITHOUT_EPSILON:
        return False
    detection = import_framework("torchvision.models.detection")
    published = getattr(getattr(detection, TRAINED_WITHOUT_EPSILON[name], None), "COCO_V1", None)
    if published is None:
        return False
    start = published.url.rsplit("-", 1)[-1].split(".")[0]
    return hashlib.sha256(file.read_bytes()).hexdigest().startswith(start)
