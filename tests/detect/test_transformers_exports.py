"""Exports of transformers' own models, small and untrained: the graph says what the model says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import frameworks
from tests.adapters.tiny_models import CLASSES, SIDE, tiny_model
from tests.amounts import others_slow

from probox.adapters import from_transformers
from probox.detect import Detector
from probox.tables.labels import limit_to_distribution

pytestmark = pytest.mark.torch
IMAGE = np.random.default_rng(2).integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
FAMILIES = {
    "Detr": "detr", "Yolos": "detr", "ConditionalDetr": "deformable-detr", "RTDetr": "rt-detr", "RTDetrV2": "rt-detr",
    "DFine": "d-fine",
}  # fmt: skip


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


@pytest.mark.parametrize("name", others_slow(FAMILIES))
def test_an_export_says_what_the_model_says(tmp_path: Path, name: str) -> None:
    torch, family = frameworks.torch(), FAMILIES[name]
    model = tiny_model(name)
    with frameworks.quiet():
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
    if family != "d-fine":
        assert found.covariances is None
        return
    assert np.ptp(expected.covariances[:, 0, 0, 0]) > 1e-4
    np.testing.assert_allclose(found.covariances, expected.covariances, rtol=5e-3, atol=1e-5)
