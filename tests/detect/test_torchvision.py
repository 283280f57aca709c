"""torchvision's detectors with random weights: candidates before suppression, and dropout."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from tests import frameworks
from tests.amounts import others_slow

from probox.detect import Dropout, Options, detect
from probox.detect.torchvision_detector import TorchvisionDetector
from probox.errors import InputError

torch: Any = None  # loaded when the first test asks, so that collecting tests stays quick
detection: Any = None

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

CLASSES = ("cup", "dog", "car")
IMAGE = np.random.default_rng(0).integers(0, 255, (90, 120, 3), dtype=np.uint8)


@pytest.fixture(autouse=True, scope="module")
def _frameworks() -> None:
    global torch, detection
    torch = frameworks.torch()
    frameworks.torchvision()
    detection = importlib.import_module("torchvision.models.detection")


@pytest.fixture(autouse=True)
def _one_thread(_frameworks: None) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


def _rcnn(backbone: str) -> Any:
    """A Faster R-CNN of torchvision's parts, with few layers and channels."""
    import torchvision
    from torchvision.models import resnet
    from torchvision.models.detection.backbone_utils import BackboneWithFPN

    small = {"min_size": 64, "max_size": 96, "rpn_post_nms_top_n_test": 60, "box_score_thresh": 0.2}
    heads = detection.faster_rcnn
    anchors, ratios = None, ((0.5, 1.0, 2.0),)
    if backbone == "resnet":
        features: Any = torch.nn.Sequential(*list(resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1]).children())[:-4])
        features.out_channels = 128
        anchors = detection.anchor_utils.AnchorGenerator(((16, 32, 64),), ratios)
        small["box_roi_pool"] = torchvision.ops.MultiScaleRoIAlign(["0"], output_size=7, sampling_ratio=2)
    elif backbone == "mobilenet + fpn":
        body = torchvision.models.mobilenet_v3_large(weights=None).features
        features = BackboneWithFPN(body, {"13": "0", "16": "1"}, [160, 960], 32)
        anchors = detection.anchor_utils.AnchorGenerator(((32, 64, 128, 256, 512),) * 3, ratios * 3)
    else:
        groups = {"groups": 32, "width_per_group": 4} if backbone == "resnext + fpn" else {}
        layers = {f"layer{level}": str(level - 1) for level in range(1, 5)}
        body = resnet.ResNet(resnet.Bottleneck, [1, 1, 1, 1], **groups)
        features = BackboneWithFPN(body, layers, [256, 512, 1024, 2048], 32)
    narrow = {"box_head": heads.TwoMLPHead(features.out_channels * 7**2, 64)}
    narrow["box_predictor"] = heads.FastRCNNPredictor(64, 4)
    return detection.FasterRCNN(features, rpn_anchor_generator=anchors, **narrow, **small)


def _ssd(make: Any) -> Any:
    """An SSD whose random scores differ from cell to cell, and whose boxes stay near their anchors."""
    model = make().eval()
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight)
    for head, wanted in ((model.head.regression_head, 0.2), (model.head.classification_head, 1.0)):
        for predictor in head.module_list:
            predictor.register_forward_hook(lambda _, __, output, wanted=wanted: output * (wanted / output.std()))
    return model


def _plain_ssd() -> Any:
    """torchvision's SSD with its own head on two maps of features."""

    class Maps(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.fine, self.coarse = torch.nn.Conv2d(3, 16, 8, stride=8), torch.nn.Conv2d(16, 16, 3, stride=2)
            self.out_channels = [16, 16]

        def forward(self, images: Any) -> Any:
            fine = self.fine(images)
            return {"fine": fine, "coarse": self.coarse(fine)}

    boxes = detection.anchor_utils.DefaultBoxGenerator([[2], [2, 3]])
    return detection.ssd.SSD(Maps(), boxes, (96, 96), num_classes=4, score_thresh=0.3)


def _ssdlite() -> Any:
    make = detection.ssdlite320_mobilenet_v3_large
    return make(weights=None, weights_backbone=None, num_classes=4, score_thresh=0.3)


MODELS = {
    "ssd": lambda: _ssd(_plain_ssd),
    "ssdlite": lambda: _ssd(_ssdlite),
    "resnet": lambda: _rcnn("resnet"),
    "resnet + fpn": lambda: _rcnn("resnet + fpn"),
    "resnext + fpn": lambda: _rcnn("resnext + fpn"),
    "mobilenet + fpn": lambda: _rcnn("mobilenet + fpn"),
}


@pytest.mark.parametrize("name", others_slow(MODELS, 2))
def test_suppressing_our_candidates_gives_torchvisions_own_output(name: str) -> None:
    model = MODELS[name]()
    stage = getattr(model, "roi_heads", model)
    stage.detections_per_img = 10
    detector = TorchvisionDetector(model, classes=CLASSES)
    options = Options(score_threshold=0.2 if name.endswith(("fpn", "resnet")) else 0.3, max_detections=10)
    found = detect(detector, [IMAGE], [5], options)[0]
    with torch.no_grad():
        expected = model([torch.from_numpy(IMAGE.transpose(2, 0, 1).copy()).float() / 255])[0]
    assert len(found) == len(expected["boxes"]) > 0
    np.testing.assert_allclose(found.scores, expected["scores"].numpy(), rtol=1e-4)
    np.testing.assert_allclose(found.boxes, expected["boxes"].numpy(), atol=0.01)
    np.testing.assert_array_equal(found.labels + 1, expected["labels"].numpy())
    # A softmax with a background: what is left to 1 is "nothing".
    assert (found.label_probs.sum(axis=1) < 1.0).all()


@pytest.mark.parametrize("name", ["ssdlite", "mobilenet + fpn"])
def test_candidates_carry_the_whole_distribution(name: str) -> None:
    detector = TorchvisionDetector(MODELS[name](), classes=CLASSES)
    found = detector.candidates([IMAGE])[0]
    assert len(found) > 100
    assert found.scores.shape == (len(found), 3)
    assert ((found.scores > 0).sum(axis=1) == 3).all()
    fused = detect(detector, [IMAGE], [5], Options(score_threshold=0.2, uncertainty="nms-clusters"))[0]
    assert (fused.covariances[:, :, 0, 0] > 0).all()


@pytest.mark.parametrize(
    ("name", "layers"),
    others_slow([("ssdlite", "heads"), ("ssdlite", "backbone"), ("mobilenet + fpn", "heads")], several=True),
)
def test_passes_differ_and_a_seed_repeats_them(name: str, layers: str) -> None:
    model = MODELS[name]()

    def passes(seed: int) -> list[np.ndarray]:
        detector = TorchvisionDetector(model, classes=CLASSES, dropout=Dropout(rate=0.3, layers=layers, seed=seed))
        return [found.scores for found in detector.sample([IMAGE], 2, [0])[0]]

    first, again, other = passes(1), passes(1), passes(2)
    assert not np.array_equal(first[0], first[1])
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])
    # Nothing is left behind: without sampling the model is its old self.
    detector = TorchvisionDetector(model, classes=CLASSES)
    np.testing.assert_array_equal(detector.candidates([IMAGE])[0].scores, detector.candidates([IMAGE])[0].scores)


def test_fused_passes_are_probabilistic() -> None:
    detector = TorchvisionDetector(MODELS["ssdlite"](), classes=CLASSES, dropout=Dropout(rate=0.1))
    fused = detect(detector, [IMAGE], [5], Options(uncertainty="mc-dropout", passes=3, score_threshold=0.2))[0]
    assert len(fused) > 0
    assert (fused.covariances[:, :, 0, 0] > 0).all()


def test_existing_dropout_is_switched_on() -> None:
    model = MODELS["mobilenet + fpn"]()
    with pytest.raises(InputError, match="existing"):
        TorchvisionDetector(model, classes=CLASSES, dropout=Dropout(layers="existing"))
    model.roi_heads.box_head.add_module("fc6", torch.nn.Sequential(model.roi_heads.box_head.fc6, torch.nn.Dropout(0.5)))
    detector = TorchvisionDetector(model, classes=CLASSES, dropout=Dropout(layers="existing"))
    first, second = (found.scores for found in detector.sample([IMAGE], 2, [0])[0])
    assert not np.array_equal(first, second)
    assert not any(module.training for module in model.modules())


def test_other_models_are_refused() -> None:
    with pytest.raises(InputError, match="Linear"):
        TorchvisionDetector(torch.nn.Linear(2, 2))
    with pytest.raises(InputError, match="no layer"):
        TorchvisionDetector(MODELS["ssdlite"](), classes=CLASSES, dropout=Dropout(layers="nowhere"))
