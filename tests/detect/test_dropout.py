"""Random masks in ONNX graphs: drawn anew on every run, repeated by a seed, on the right layers, at the right rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from detect_graphs import save
from onnx import TensorProto, helper, numpy_helper

from probox.detect import Detector, Dropout, insert_dropout
from probox.detect.dropout import choose_layers, find_layers, split_random
from probox.errors import InputError

CLASSES = ("cup", "dog", "car")
IMAGE = np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _one_layer(kind: str) -> tuple[onnx.ModelProto, np.ndarray]:
    """A graph of one layer whose output shows each input channel by itself, and an input of ones."""
    channels = 500
    shape: tuple[int, ...] = (1, channels)
    attributes: dict = {}
    weight = np.eye(channels, dtype=np.float32)
    inputs = ["x", "w"]
    if kind == "conv":
        shape, weight = (1, channels, 2, 3), weight.reshape(channels, channels, 1, 1)
    elif kind == "depthwise":
        shape, weight = (1, channels, 2, 3), np.ones((channels, 1, 1, 1), np.float32)
        attributes["group"] = channels
    elif kind == "transposed":
        shape, weight = (1, channels, 2, 3), weight.reshape(channels, channels, 1, 1)
    elif kind == "gemm_transposed":
        attributes = {"transB": 1}
    elif kind == "matmul_left":
        inputs, shape = ["w", "x"], (channels, 3)
    elif kind == "matmul_batch":
        shape = (2, 4, channels)
    op = {"conv": "Conv", "depthwise": "Conv", "transposed": "ConvTranspose"}.get(
        kind, "Gemm" if kind.startswith("gemm") else "MatMul"
    )
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x0"], ["x"]), helper.make_node(op, inputs, ["y"], "layer", **attributes)],
        "one",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, list(shape))],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    return model, np.ones(shape, np.float32)


KINDS = ("conv", "depthwise", "transposed", "gemm", "gemm_transposed", "matmul", "matmul_left", "matmul_batch")


@pytest.mark.parametrize("kind", KINDS)
def test_channels_are_dropped_at_the_rate_and_the_rest_scaled(kind: str) -> None:
    model, ones = _one_layer(kind)
    changed, names = insert_dropout(model, rate=0.3, layers="layer")
    assert names == ("layer",)
    onnx.checker.check_model(changed)
    session = _session(changed)
    runs = [session.run(None, {"x0": ones})[0] for _ in range(40)]
    channel_axis = {"matmul_left": 0, "matmul_batch": 2}.get(kind, 1)
    values = np.stack([np.moveaxis(run, channel_axis, 0).reshape(500, -1) for run in runs])
    assert set(np.unique(values.round(4)).tolist()) <= {0.0, np.float32(1 / 0.7).round(4).item()}
    # All cells of a channel share its fate, and each run draws anew.
    assert (values == values[:, :, :1]).all()
    assert len({values[run].tobytes() for run in range(40)}) == 40
    dropped = (values[:, :, 0] == 0).mean()
    assert dropped == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 20000))
    # Channels are independent of one another and from run to run: counts spread as a binomial does.
    per_run = (values[:, :, 0] == 0).sum(axis=1)
    assert 0.5 < per_run.var() / (500 * 0.21) < 1.8


def test_elements_are_dropped_one_by_one() -> None:
    model, ones = _one_layer("conv")
    changed, _ = insert_dropout(model, rate=0.3, layers="layer", masks="elements")
    values = _session(changed).run(None, {"x0": ones})[0].reshape(500, -1)
    assert not (values == values[:, :1]).all()
    assert (values == 0).mean() == pytest.approx(0.3, abs=0.04)


def test_masks_are_never_folded_into_constants() -> None:
    # Even a layer whose input is a constant for all the optimiser knows must differ from run to run.
    model, ones = _one_layer("gemm")
    changed, _ = insert_dropout(model, rate=0.5, layers="layer")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(changed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    first, second = (session.run(None, {"x0": ones})[0] for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_seed_repeats_the_sequence_and_another_does_not(ssd: Path) -> None:
    def passes(seed: int) -> list[np.ndarray]:
        detector = Detector(ssd, classes=CLASSES, dropout=Dropout(rate=0.3, seed=seed))
        return [found.boxes for found in detector.sample([IMAGE], 4, [0])[0]]

    first, again, other = passes(1), passes(1), passes(2)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert len({boxes.tobytes() for boxes in first}) == 4


def test_running_in_two_parts_changes_nothing(ssd: Path) -> None:
    detector = Detector(ssd, classes=CLASSES, dropout=Dropout(rate=0.3, seed=5))
    assert detector._after is not None
    drawn = detector.sample([IMAGE], 3, [0])[0]
    whole = _session(detector.graph)
    feeds, placement = detector.family.prepare(IMAGE)
    for found in drawn:
        expected = detector.family.decode(whole.run(["boxes", "scores"], feeds), placement)
        np.testing.assert_allclose(found.boxes, expected.boxes, rtol=1e-5)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)


def test_the_part_before_masks_holds_no_randomness(ssd: Path) -> None:
    changed, _ = insert_dropout(onnx.load(str(ssd)), rate=0.3)
    before, after, between = split_random(changed)
    assert between == ("feature",)
    assert not any(node.op_type.startswith("Random") for node in before.graph.node)
    assert {node.name for node in after.graph.node if node.op_type == "Conv"} == {
        "box.depthwise", "box.point", "class.depthwise", "class.point",
    }  # fmt: skip


def test_layers_are_chosen(ssd: Path) -> None:
    layers = find_layers(onnx.load(str(ssd)))
    assert [layer.name for layer in layers] == [
        "stem", "body", "box.depthwise", "box.point", "class.depthwise", "class.point",
    ]  # fmt: skip
    assert [layer.name for layer in choose_layers(layers, "heads")] == [
        "box.depthwise", "box.point", "class.depthwise", "class.point",
    ]  # fmt: skip
    assert [layer.name for layer in choose_layers(layers, "backbone")] == ["body"]  # the stem reads the image
    assert [layer.name for layer in choose_layers(layers, r"box\.p")] == ["box.point"]
    assert [layer.name for layer in choose_layers(layers, r"^stem\.weight$")] == ["stem"]
    with pytest.raises(InputError, match=r"no layer matches 'x\{3\}'; names are like .*class\.point"):
        choose_layers(layers, "x{3}")
    with pytest.raises(InputError, match="regular expression"):
        choose_layers(layers, "(")


def test_weights_that_are_computed_are_left_alone(tmp_path: Path) -> None:
    # A product of two activations (attention) is no layer; one with a weight behind an operator is none we can size.
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "x"], ["a"], "attention"),
            helper.make_node("Transpose", ["w"], ["wt"]),
            helper.make_node("MatMul", ["a", "wt"], ["b"], "behind"),
            helper.make_node("MatMul", ["b", "w"], ["y"], "plain"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 3])],
        [numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")],
    )
    model = onnx.load(str(save(tmp_path / "g.onnx", graph)))
    assert [layer.name for layer in find_layers(model)] == ["plain"]
    graph.node.pop()
    graph.output[0].name = "b"
    with pytest.raises(InputError, match="no layer with float weights"):
        insert_dropout(helper.make_model(graph), rate=0.5)


def test_the_given_graph_is_not_changed(ssd: Path) -> None:
    model = onnx.load(str(ssd))
    before = model.SerializeToString()
    insert_dropout(model, rate=0.5)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 2.0])
def test_wrong_rates_are_refused(ssd: Path, rate: float) -> None:
    with pytest.raises(InputError, match="dropout rate"):
        insert_dropout(onnx.load(str(ssd)), rate=rate)


def test_sampling_needs_dropout(ssd: Path) -> None:
    with pytest.raises(InputError, match="dropout"):
        Detector(ssd, classes=CLASSES).sample([IMAGE], 2, [0])
    with pytest.raises(InputError, match="masks"):
        Detector(ssd, classes=CLASSES, dropout=Dropout(masks="rows"))
