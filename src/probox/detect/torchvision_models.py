"""torchvision's detectors by name, with the weights of a file; and the paper's, built from torchvision's parts.

Nothing is ever downloaded: models are built without weights, and get those of the file.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from probox.detect.weights import State, load_weights, read_weights
from probox.errors import InputError
from probox.support.optional import import_framework

__all__ = ["PAPER", "build_torchvision", "check_name", "known_models"]

PREFIXES = ("fasterrcnn_", "keypointrcnn_", "maskrcnn_", "ssd300_", "ssdlite320_")
"""How the names of functions of ``torchvision.models.detection`` begin whose models `TorchvisionDetector` takes."""

TRAINED_WITHOUT_EPSILON = {
    "fasterrcnn_resnet50_fpn": "FasterRCNN_ResNet50_FPN_Weights",
    "keypointrcnn_resnet50_fpn": "KeypointRCNN_ResNet50_FPN_Weights",
    "maskrcnn_resnet50_fpn": "MaskRCNN_ResNet50_FPN_Weights",
}
"""Models of which some published files were trained before normalisation had an epsilon; torchvision takes it out."""

DEPTHS = {6: 50, 23: 101}
"""Blocks in the third stage of a ResNet or ResNeXt, and its depth."""


def known_models() -> list[str]:
    """Return the names that `build_torchvision` knows, the paper's first."""
    detection = import_framework("torchvision.models.detection")
    return [*PAPER, *sorted(name for name in dir(detection) if name.startswith(PREFIXES))]


def check_name(name: str) -> None:
    """Raise unless `build_torchvision` knows this name."""
    known = known_models()
    if name not in known:
        raise InputError(
            f"expected a detector of torchvision that gives its candidates, but got {name!r:.60}",
            remedy=f"name one of {', '.join(known)}",
        )


def build_torchvision(name: str, weights: str | Path) -> Any:
    """Return a detector in evaluation mode, with the weights of a file and as many classes as these have.

    Parameters
    ----------
    name : str
        A function of ``torchvision.models.detection``, or one of the paper's detectors: ``ssd300``, ``frcnn_r``,
        ``frcnn_r_fpn``, ``frcnn_x_fpn``.
    weights : path
        A state dict, or a checkpoint that holds one, of torch or safetensors.

    Examples
    --------
    >>> build_torchvision("fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_coco-258fb6c6.pth")   # doctest: +SKIP
    """
    check_name(name)
    state = read_weights(weights)
    columns = _count_columns(state, str(weights))
    model = PAPER[name](columns, state, str(weights)) if name in PAPER else _published(name, columns)
    load_weights(model, state, file=str(weights), name=f"{name} with {columns - 1} classes and a background")
    if _trained_without_epsilon(PUBLISHED.get(name, name), Path(weights)):
        for module in model.modules():
            if hasattr(module, "running_var"):
                module.eps = 0.0
    return model.eval()


def _published(name: str, columns: int) -> Any:
    detection = import_framework("torchvision.models.detection")
    # The COCO files of ssdlite have the short tail that a model without a pretrained backbone gets, too.
    return getattr(detection, name)(weights=None, weights_backbone=None, num_classes=columns)


def _ssd300(columns: int, state: State, file: str) -> Any:
    return _published("ssd300_vgg16", columns)


def _frcnn_r(columns: int, state: State, file: str) -> Any:
    """Faster R-CNN on the fourth stage of a ResNet, whose fifth is the head of each region; no pyramid."""
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
    "ssd300": _ssd300,
    "frcnn_r": _frcnn_r,
    "frcnn_r_fpn": _with_pyramid("resnet", {50: "", 101: ""}),
    "frcnn_x_fpn": _with_pyramid("resnext", {50: "_32x4d", 101: "_32x8d"}),
}
"""SSD-300, FRCNN R, FRCNN R + FPN and FRCNN X + FPN; how deep a ResNet is, its weights tell."""

PUBLISHED = {"ssd300": "ssd300_vgg16", "frcnn_r_fpn": "fasterrcnn_resnet50_fpn"}
"""Which published files fit the paper's detectors."""


def _depth(state: State, file: str) -> int:
    """Return how deep the ResNet is whose weights these are, from the blocks of its third stage."""
    blocks = {key.split("layer3.")[1].split(".")[0] for key in state if "layer3." in key}
    if len(blocks) not in DEPTHS:
        raise InputError(
            f"expected a ResNet with {' or '.join(map(str, DEPTHS))} blocks in layer3, but got {len(blocks)}",
            file=file,
            remedy="name the model that was trained",
        )
    return DEPTHS[len(blocks)]


def _count_columns(state: State, file: str) -> int:
    """Return how many classes the last layers score, the background among them."""

    def rows(*parts: str) -> int | None:
        """Return the length of the last bias whose name has all these parts."""
        found = [value for key, value in state.items() if key.endswith("bias") and all(part in key for part in parts)]
        return len(found[-1]) if found and found[-1].ndim == 1 else None

    of_regions = rows("roi_heads.box_predictor.cls_score.")
    scores, sides = (rows(f"head.{kind}_head.module_list.0.") for kind in ("classification", "regression"))
    if of_regions is not None:
        return of_regions
    if scores is not None and sides is not None and sides >= 4 and scores % (sides // 4) == 0:
        return scores // (sides // 4)  # the regression has four numbers for each of a cell's boxes
    raise InputError(
        f"these are not the weights of an SSD or Faster R-CNN of torchvision: {len(state)} of them, "
        f"first {next(iter(state))}",
        file=file,
        remedy="give the state dict of a torchvision detector",
    )


def _trained_without_epsilon(name: str, file: Path) -> bool:
    """Return whether this is a published file that torchvision runs without an epsilon: its name has its hash."""
    if name not in TRAINED_WITHOUT_EPSILON:
        return False
    detection = import_framework("torchvision.models.detection")
    published = getattr(getattr(detection, TRAINED_WITHOUT_EPSILON[name], None), "COCO_V1", None)
    if published is None:
        return False
    start = published.url.rsplit("-", 1)[-1].split(".")[0]
    return hashlib.sha256(file.read_bytes()).hexdigest().startswith(start)
