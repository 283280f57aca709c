"""Exports of transformers' own models, small and untrained: the graph says what the model says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import frameworks
from tests.amounts import others_slow

from probox.adapters import from_transformers
from probox.detect import Detector
from probox.tables.distributions import limit_to_distribution

pytestmark = pytest.mark.torch

CLASSES = ("cup", "dog", "car")
SIDE = 64
IMAGE = np.random.default_rng(2).integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])

STAGES = {"embedding_size": 8, "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "layer_type": "basic"}
MAPS = ["stage2", "stage3", "stage4"]
HEADS = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "num_queries": 9, "num_labels": 3,
}  # fmt: skip
FAST = {
    **HEADS, "encoder_hidden_dim": 16, "decoder_layers": 2, "decoder_n_points": 2, "num_denoising": 0,
    "encoder_in_channels": [8, 16, 16], "decoder_in_channels": [16, 16, 16], "anchor_image_size": None,
}  # fmt: skip


def _detr(hub: Any) -> Any:
    backbone = hub.ResNetConfig(**STAGES, out_features=["stage4"])
    config = hub.DetrConfig(backbone_config=backbone, use_timm_backbone=False, use_pretrained_backbone=False, **HEADS)
    return hub.DetrForObjectDetection(config)


def _conditional(hub: Any) -> Any:
    backbone = hub.ResNetConfig(**STAGES, out_features=["stage4"])
    config = hub.ConditionalDetrConfig(
        backbone_config=backbone, use_timm_backbone=False, use_pretrained_backbone=False, **HEADS
    )
    return hub.ConditionalDetrForObjectDetection(config)


def _yolos(hub: Any) -> Any:
    return hub.YolosForObjectDetection(
        hub.YolosConfig(
            hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            image_size=[SIDE, SIDE], patch_size=16, num_detection_tokens=9, num_labels=3,
        )
    )  # fmt: skip


def _rt_detr(hub: Any) -> Any:
    backbone = hub.RTDetrResNetConfig(**STAGES, out_features=MAPS)
    return hub.RTDetrForObjectDetection(hub.RTDetrConfig(backbone_config=backbone, **FAST))


def _rt_detr_v2(hub: Any) -> Any:
    backbone = hub.RTDetrResNetConfig(**STAGES, out_features=MAPS)
    return hub.RTDetrV2ForObjectDetection(hub.RTDetrV2Config(backbone_config=backbone, **FAST))


def _d_fine(hub: Any) -> Any:
    backbone = hub.HGNetV2Config(
        hidden_sizes=[8, 8, 16, 16], stem_channels=[3, 8, 8], stage_in_channels=[8, 8, 8, 16],
        stage_mid_channels=[8, 8, 8, 8], stage_out_channels=[8, 8, 16, 16], stage_num_blocks=[1, 1, 1, 1],
        stage_numb_of_layers=[1, 1, 1, 1], out_features=MAPS,
    )  # fmt: skip
    return hub.DFineForObjectDetection(hub.DFineConfig(backbone_config=backbone, depth_mult=0.34, **FAST))


MODELS = {
    "detr": (_detr, "detr"),
    "yolos": (_yolos, "detr"),
    "conditional": (_conditional, "deformable-detr"),
    "rt-detr": (_rt_detr, "rt-detr"),
    "rt-detr-v2": (_rt_detr_v2, "rt-detr"),
    "d-fine": (_d_fine, "d-fine"),
}


def _export(torch: Any, model: Any, path: Path) -> None:
    class Exported(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, pixel_values: Any) -> Any:
            out = self.model(pixel_values=pixel_values)
            return out.logits, out.pred_boxes

    torch.onnx.export(
        Exported().eval(), (torch.zeros(1, 3, SIDE, SIDE),), str(path), input_names=["pixel_values"],
        output_names=["logits", "pred_boxes"], opset_version=17, dynamo=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", others_slow(MODELS))
def test_an_export_says_what_the_model_says(tmp_path: Path, name: str) -> None:
    torch, hub = frameworks.torch(), frameworks.transformers()
    build, family = MODELS[name]
    with frameworks.quiet():
        torch.manual_seed(1)
        model = build(hub).eval()
        with torch.no_grad():  # networks begin with next to nothing: let queries differ
            for weights in model.parameters():
                if weights.ndim > 1 and weights.numel():
                    weights.copy_(torch.randn_like(weights) * (2 / weights[0].numel()) ** 0.5)
        _export(torch, model, tmp_path / "m.onnx")
        pixels = IMAGE / 255.0
        if family != "rt-detr" and family != "d-fine":
            pixels = (pixels - MEAN) / STD
        with torch.no_grad():
            outputs = model(torch.tensor(pixels.transpose(2, 0, 1)[None], dtype=torch.float32))
    expected = from_transformers(outputs, config=model.config, classes=CLASSES, image_ids=1, image_sizes=(SIDE, SIDE))

    detector = Detector(tmp_path / "m.onnx", classes=CLASSES, threads=1)
    assert detector.family.name == family
    found = detector.candidates([IMAGE])[0]
    assert np.ptp(expected.boxes, axis=0).max() > 0.5  # queries differ
    np.testing.assert_allclose(found.boxes, expected.boxes, atol=2e-3)
    np.testing.assert_allclose(limit_to_distribution(found.scores), expected.label_probs, atol=2e-4)
    if name != "d-fine":
        assert found.covariances is None
        return
    assert expected.covariances is not None
    assert np.ptp(expected.covariances[:, 0, 0, 0]) > 1e-4
    np.testing.assert_allclose(found.covariances, expected.covariances, rtol=5e-3, atol=1e-5)
