"""torchvision's detectors with random weights: candidates before suppression, and dropout."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from tests import frameworks
from tests.amounts import others_slow

from probox.detect import Candidates, Dropout, Options, detect, draw_mask
from probox.detect.torch_model import TorchDetector, mask_layers
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


def _mask_rcnn() -> Any:
    import torchvision

    features = torch.nn.Conv2d(3, 16, 8, stride=8)
    features.out_channels = 16
    pools = [torchvision.ops.MultiScaleRoIAlign(["0"], output_size=size, sampling_ratio=2) for size in (7, 14)]
    anchors = detection.anchor_utils.AnchorGenerator(((16, 32, 64),), ((0.5, 1.0, 2.0),))
    size = {"min_size": 64, "max_size": 96, "box_score_thresh": 0.2, "box_detections_per_img": 10}
    size |= {"rpn_post_nms_top_n_test": 40}
    model = detection.MaskRCNN(
        features, 4, rpn_anchor_generator=anchors, box_roi_pool=pools[0], mask_roi_pool=pools[1], **size
    )
    model.roi_heads.mask_predictor.mask_fcn_logits.weight.data *= 30  # far from 0.5
    return model.eval()


def test_masks_are_torchvisions_own() -> None:
    model = _mask_rcnn()
    detector = TorchvisionDetector(model, classes=CLASSES, batch=2)
    images = [IMAGE, IMAGE[::-1].copy()]
    options = Options(score_threshold=0.2, max_detections=10, uncertainty="masks")
    with torch.no_grad():
        expected = model([torch.from_numpy(image.transpose(2, 0, 1).copy()).float() / 255 for image in images])
    for found, own in zip(detect(detector, images, [5, 6], options), expected, strict=True):
        np.testing.assert_allclose(found.boxes, own["boxes"].numpy(), atol=0.01)
        assert len(found) == len(own["masks"]) == 10
        different = 0
        for heatmap, values in zip(found.heatmaps or (), own["masks"][:, 0].numpy(), strict=True):
            assert heatmap.shape == (90, 120)
            assert 0 < np.asarray(heatmap).max() < 1
            different += int((np.abs(np.asarray(heatmap, float) - values) > 2e-3).any())
        assert different <= 1  # a box that rounding moves to another pixel
        assert own["masks"].min() < 0.1
        assert own["masks"].max() > 0.9
    few = detector.candidates([IMAGE])[0].select(np.array([3, 0]))
    pair = few.heatmaps(np.array([0, 1]), few.boxes)
    assert [np.asarray(each).tolist() for each in few.heatmaps(np.array([1]), few.boxes[1:])] == [
        pair[1].__array__().tolist()
    ]
    assert few.heatmaps(np.zeros(0, np.int64), np.zeros((0, 4))) == []
    assert not model.roi_heads._forward_pre_hooks
    drawn = TorchvisionDetector(model, classes=CLASSES, dropout=Dropout()).sample([IMAGE], 2, [5])[0]
    assert [candidates.heatmaps for candidates in drawn] == [None, None]  # they would keep feature maps
    with pytest.raises(InputError, match="faster-rcnn predicts no masks"):
        detect(TorchvisionDetector(MODELS["resnet"](), classes=CLASSES), [IMAGE], [5], options)


@pytest.mark.parametrize("name", ["ssdlite", "mobilenet + fpn"])
def test_candidates_carry_the_whole_distribution(name: str) -> None:
    detector = TorchvisionDetector(MODELS[name](), classes=CLASSES)
    found = detector.candidates([IMAGE])[0]
    assert len(found) > 100
    assert found.scores.shape == (len(found), 3)
    assert ((found.scores > 0).sum(axis=1) == 3).all()
    fused = detect(detector, [IMAGE], [5], Options(score_threshold=0.2, uncertainty="nms-clusters"))[0]
    assert (fused.covariances[:, :, 0, 0] > 0).all()


@pytest.mark.parametrize("name", ["ssdlite", "mobilenet + fpn"])
def test_heads_and_backbone_are_told_by_their_names(name: str) -> None:
    model = MODELS[name]()
    for layers, starts in (("heads", ("head.", "roi_heads.")), ("backbone", ("backbone.",))):
        chosen = TorchvisionDetector(model, classes=CLASSES, dropout=Dropout(layers=layers)).dropout_layers
        assert chosen
        assert all(layer.startswith(starts) for layer in chosen)


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


IMAGES = [np.full((4, 4, 3), value, np.uint8) for value in (10, 20, 30)]


def _shared_head(**own: Any) -> Any:

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.stem = torch.nn.Conv2d(3, 60, 1, bias=False)
            self.drop = torch.nn.Dropout(**own) if own else torch.nn.Identity()
            self.head = torch.nn.Conv2d(60, 60, 1, bias=False)
            torch.nn.init.constant_(self.stem.weight, 0.3)
            torch.nn.init.dirac_(self.head.weight)

        def forward(self, pixels: Any) -> Any:
            fine = self.drop(self.stem(pixels))
            return self.head(fine), self.head(fine[:, :, ::2, ::2])

    return Model().eval()


class SharedHead(TorchDetector):
    def _is_head(self, name: str) -> bool:
        return name == "head"

    def _run(self, inputs: Any, images: Any) -> list[Candidates]:
        assert len(images) == 1
        with torch.no_grad():
            fine, coarse = self.model(torch.from_numpy(images[0].transpose(2, 0, 1).copy())[None].float())
        rows = np.concatenate([fine.numpy().reshape(60, -1).T, coarse.numpy().reshape(60, -1).T])
        return [Candidates(np.zeros((len(rows), 4)), rows)]


def _chosen(model: Any, layers: str) -> tuple[str, ...]:
    return SharedHead(model, Dropout(layers=layers), 1).dropout_layers


def _sample(model: Any, dropout: Dropout, rows: list[int], passes: int = 3) -> list[list[np.ndarray]]:
    detector = SharedHead(model, dropout, 1)
    drawn = detector.sample([IMAGES[row] for row in rows], passes, [100 + row for row in rows])
    for row, own in zip(rows, drawn, strict=True):
        np.testing.assert_array_equal(own.plain.scores, detector.candidates([IMAGES[row]])[0].scores)
    return [[found.scores for found in own] for own in drawn]


def test_masks_keep_the_expected_input() -> None:
    layer = torch.nn.Conv2d(400, 400, 1, bias=False)
    torch.nn.init.dirac_(layer.weight)
    ones = torch.ones(1, 400, 2, 2)
    drawn = []
    for number in range(20):
        with torch.no_grad(), mask_layers([("head", layer)], Dropout(rate=0.25, masks="channels"), 7, number):
            drawn.append(layer(ones))
            assert torch.equal(layer(ones), drawn[-1])  # a second call is the same network
    stacked = torch.stack(drawn)
    assert stacked.mean().item() == pytest.approx(1.0, abs=0.03)
    assert (stacked == stacked[..., :1, :1]).all()
    assert len({one.numpy().tobytes() for one in drawn}) == 20
    wanted = draw_mask((1, 400, 1, 1), 0.25, "float32", seed=0, image_id=7, number=3, layer="head")
    np.testing.assert_array_equal(drawn[3][:, :, :1, :1].numpy(), wanted)
    torch.testing.assert_close(layer(ones), ones)


def test_elements_differ_from_cell_to_cell_and_from_call_to_call_in_any_type() -> None:
    layer = torch.nn.Linear(500, 500, bias=False).to(torch.bfloat16)
    torch.nn.init.eye_(layer.weight)
    ones = torch.ones(4, 500, dtype=torch.bfloat16)
    with torch.no_grad(), mask_layers([("head", layer)], Dropout(rate=0.25, masks="elements"), 7, 0):
        first, second = layer(ones), layer(ones)
    assert first.dtype == torch.bfloat16
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first, second)
    assert (first == 0).float().mean().item() == pytest.approx(0.25, abs=4 * np.sqrt(0.19 / 2000))


@pytest.mark.parametrize(
    "dropout",
    [Dropout(rate=0.3, masks="channels"), Dropout(rate=0.3, masks="elements"), Dropout(layers="existing")],
    ids=["channels", "elements", "existing"],
)
def test_masks_belong_to_seed_image_and_pass_and_to_nothing_else(dropout: Dropout) -> None:
    model = _shared_head(p=0.4)
    state = torch.get_rng_state()
    both = _sample(model, dropout, [0, 2])
    assert len({scores.tobytes() for own in both for scores in own}) == 6
    # Another order, one alone, fewer passes: the same.
    again = _sample(model, dropout, [2, 1, 0])
    np.testing.assert_array_equal(again[2], both[0])
    np.testing.assert_array_equal(again[0], both[1])
    np.testing.assert_array_equal(_sample(model, dropout, [2], 2)[0], both[1][:2])
    other = _sample(model, Dropout(rate=dropout.rate, masks=dropout.masks, layers=dropout.layers, seed=1), [0])
    assert not any(np.array_equal(a, b) for a, b in zip(other[0], both[0], strict=True))
    # Nothing is left behind.
    assert torch.equal(torch.get_rng_state(), state)
    assert model.drop.p == 0.4
    assert not any(module.training or module._forward_pre_hooks for module in model.modules())


def test_the_models_own_dropout_comes_first_at_its_own_rate() -> None:
    model = _shared_head(p=0.4)
    assert _chosen(model, "auto") == ("drop",)
    for rate, wanted in ((None, 0.4), (0.1, 0.1)):
        drawn = np.array(_sample(model, Dropout(rate=rate), [0], 20)[0])[:, :16]
        assert (drawn == 0).mean() == pytest.approx(wanted, abs=0.03)
    # Each image, pass and seed has masks of its own, and the same ones whenever it comes.
    first, second = _sample(model, Dropout(), [0, 1], 2)
    others = [*np.array(first), *np.array(second), *np.array(_sample(model, Dropout(seed=1), [0], 1)[0])]
    assert len({(one == 0).tobytes() for one in others}) == 5
    np.testing.assert_array_equal(np.array(_sample(model, Dropout(), [1], 2)[0]) == 0, np.array(second) == 0)
    # One that drops nothing is not there.
    assert _chosen(_shared_head(p=0.0), "auto") == _chosen(_shared_head(), "auto") == ("head",)
    with pytest.raises(InputError, match="no layer matches 'existing'"):
        _chosen(_shared_head(), "existing")
    with pytest.raises(InputError, match="regular expression"):
        _chosen(model, "(")
