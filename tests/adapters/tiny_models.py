"""Object detectors of transformers with random weights, as small as they get, made without any download."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tests import frameworks

__all__ = ["CLASSES", "PROCESSORS", "SIDE", "save_legacy_yolo", "tiny_model"]
CLASSES = ("cup", "dog", "cat")
SIDE = 64

PROCESSORS = {
    "Detr": "Detr",
    "Yolos": "Yolos",
    "RTDetr": "RTDetr",
    "DFine": "RTDetr",
    "DeformableDetr": "DeformableDetr",
    "ConditionalDetr": "ConditionalDetr",
}
"""Models, and whose image processor knows what to make of their output."""


def tiny_model(kind: str) -> Any:
    """Return one of these models in evaluation, always the same one."""
    library, torch = frameworks.transformers(), frameworks.torch()
    torch.manual_seed(3)
    with frameworks.quiet():
        config = _config(kind, library)
        config.id2label = dict(enumerate(CLASSES))
        config.label2id = {name: number for number, name in enumerate(CLASSES)}
        model = getattr(library, f"{kind}ForObjectDetection")(config).eval()
        with torch.no_grad():  # what begins at 0 would hide mistakes
            for name, parameter in model.named_parameters():
                if parameter.requires_grad:
                    parameter += (0.5 if kind == "DFine" and "bbox_embed" in name else 0.1) * torch.randn_like(
                        parameter
                    )
    return model


def _config(kind: str, library: Any) -> Any:
    if kind in ("Detr", "ConditionalDetr"):
        return _detr(library, kind, backbone_config=_resnet(library, 1))
    if kind == "DeformableDetr":
        return _detr(library, kind, backbone_config=_resnet(library, 3), num_feature_levels=3, d_model=32)
    if kind in ("RTDetr", "RTDetrV2", "DFine"):
        return _rt_detr(library, kind)
    return library.YolosConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=[SIDE, SIDE],
        patch_size=16,
        num_detection_tokens=12,
    )


def _resnet(library: Any, levels: int) -> Any:
    return library.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_indices=list(range(5 - levels, 5)),
    )


def _detr(library: Any, kind: str, **changes: Any) -> Any:
    small = {"d_model": 16, "num_queries": 12, "use_pretrained_backbone": False, "use_timm_backbone": False}
    small |= {f"{part}_layers": 2 for part in ("encoder", "decoder")}
    small |= {f"{part}_attention_heads": 2 for part in ("encoder", "decoder")}
    small |= {f"{part}_ffn_dim": 16 for part in ("encoder", "decoder")}
    return getattr(library, f"{kind}Config")(**small | changes)


def _rt_detr(library: Any, kind: str) -> Any:
    stages = {"embedding_size": 8, "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]}
    stages |= {"out_features": ["stage2", "stage3", "stage4"]}
    if kind != "DFine":
        backbone = library.RTDetrResNetConfig(layer_type="basic", **stages)
    else:
        backbone = library.HGNetV2Config(
            stem_channels=[3, 8, 8],
            stage_in_channels=[8, 8, 8, 16],
            stage_mid_channels=[8, 8, 8, 8],
            stage_out_channels=[8, 8, 16, 16],
            stage_num_blocks=[1, 1, 1, 1],
            stage_numb_of_layers=[1, 1, 1, 1],
            **stages,
        )
    return getattr(library, f"{kind}Config")(
        backbone_config=backbone,
        d_model=16,
        encoder_hidden_dim=16,
        encoder_in_channels=[8, 16, 16],
        decoder_in_channels=[16, 16, 16],
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        decoder_layers=2,
        num_queries=12,
        num_denoising=0,
        hidden_expansion=0.5,
    )


def save_legacy_yolo(path: Path) -> None:
    """Save a network as the repository of YOLOv5 does: a pickle of its class ``models.yolo.DetectionModel``."""
    torch = frameworks.torch()
    module = ModuleType("models.yolo")
    module.DetectionModel = type("DetectionModel", (torch.nn.Linear,), {"__module__": "models.yolo"})
    sys.modules |= {"models": ModuleType("models"), "models.yolo": module}
    try:
        torch.save({"model": module.DetectionModel(2, 2), "epoch": -1}, path)
    finally:
        del sys.modules["models"], sys.modules["models.yolo"]
