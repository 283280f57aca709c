"""Random masks in ONNX graphs: as inputs, before the right layers, at the right rate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from detect_graphs import model_of
from onnx import TensorProto, helper, numpy_helper

from probox.detect import Detector, Dropout, draw_mask, insert_dropout
from probox.detect.dropout import choose_layers, find_layers, split_masked
from probox.detect.onnx_runtime import MaskedGraph
from probox.errors import InputError

CLASSES = ("cup", "dog", "car")
IMAGE = np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)


def _session(model: onnx.ModelProto | bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    given = model if isinstance(model, bytes) else model.SerializeToString()
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


def _masked(model: onnx.ModelProto, dropout: Dropout) -> MaskedGraph:
    return MaskedGraph(model, dropout, open_graph=_session, run=lambda session, names, feeds: session.run(names, feeds))


def _one_layer(kind: str, dtype: type = np.float32) -> tuple[onnx.ModelProto, np.ndarray]:
    """A graph of one layer whose output shows each input channel by itself, and an input of ones."""
    channels = 500
    shape: tuple[int, ...] = (1, channels)
    attributes: dict = {}
    weight = 0.7 * np.eye(channels, dtype=np.float32)  # whole numbers would not look learnt
    inputs = ["x", "w"]
    if kind == "conv":
        shape, weight = (1, channels, 2, 3), weight.reshape(channels, channels, 1, 1)
    elif kind == "depthwise":
        shape, weight = (1, channels, 2, 3), np.linspace(0.6, 0.7, channels, dtype=np.float32).reshape(-1, 1, 1, 1)
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
    nodes = [helper.make_node("Relu", ["x0"], ["x"]), helper.make_node(op, inputs, ["y"], "layer", **attributes)]
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = model_of(nodes, {"x0": shape}, {"y": shape}, {"w": weight.astype(dtype)}, kind=number, opset=11)
    return model, np.ones(shape, dtype)


KINDS = ("conv", "depthwise", "transposed", "gemm", "gemm_transposed", "matmul", "matmul_left", "matmul_batch")


@pytest.mark.parametrize("kind", KINDS)
def test_channels_are_dropped_at_the_rate_and_the_rest_scaled(kind: str) -> None:
    model, ones = _one_layer(kind)
    masked = _masked(model, Dropout(rate=0.3, layers="layer", masks="channels"))
    assert masked.layers == ("layer",)
    onnx.checker.check_model(masked.model)
    plain, *runs = [found[0] for found in masked.sample({"x0": ones}, ["y"], 40, 7)]
    np.testing.assert_array_equal(plain, _session(model).run(None, {"x0": ones})[0])
    channel_axis = {"matmul_left": 0, "matmul_batch": 2}.get(kind, 1)
    values = np.stack([np.moveaxis(run / plain.clip(1e-9), channel_axis, 0).reshape(500, -1) for run in runs])
    assert set(np.unique(values.round(4)).tolist()) == {0.0, np.float32(1 / 0.7).round(4).item()}
    # All cells of a channel share its fate, and each pass draws anew.
    assert (values.round(4) == values[:, :, :1].round(4)).all()
    assert len({values[run].tobytes() for run in range(40)}) == 40
    dropped = (values[:, :, 0] == 0).mean()
    assert dropped == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 20000))
    # Channels are independent of one another and from pass to pass: counts spread as a binomial does.
    per_run = (values[:, :, 0] == 0).sum(axis=1)
    assert 0.5 < per_run.var() / (500 * 0.21) < 1.8


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_elements_are_dropped_one_by_one_in_any_type(dtype: type) -> None:
    model, ones = _one_layer("gemm", dtype)
    ones = np.repeat(ones, 6, axis=0)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    masked = _masked(model, Dropout(rate=0.3, layers="layer", masks="elements"))
    plain, values, other = (found[0] for found in masked.sample({"x0": ones}, ["y"], 2, 7))
    assert values.dtype == dtype
    assert not (values == values[:1]).all()
    assert not np.array_equal(values, other)
    assert (values == 0).mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 3000))
    np.testing.assert_allclose(values[values > 0], plain[values > 0] / 0.7, rtol=2e-3)
    # Another shape of the input has another shape of masks.
    assert next(iter(masked.sample({"x0": ones[:2]}, ["y"], 1, 7)))[0].shape == (2, 500)


@pytest.mark.parametrize("counted", ["kept", "dropped"])
def test_a_shape_that_depends_on_masks_is_refused(counted: str) -> None:
    """As many rows enter the second layer as the first mask keeps, or drops; one row always."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "early"),
        helper.make_node("Cast", ["a"], ["is_kept"], to=TensorProto.BOOL),
        helper.make_node("Not" if counted == "dropped" else "Identity", ["is_kept"], ["is_counted"]),
        helper.make_node("NonZero", ["is_counted"], ["where"]),
        helper.make_node("Cast", ["where"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["numbers"], ["some"]),
        helper.make_node("Concat", ["one", "some"], ["rows"], axis=0),
        helper.make_node("MatMul", ["rows", "v"], ["y"], "late"),
    ]
    weights = {"w": 0.7 * np.eye(300), "v": np.full((2, 2), 0.3), "one": np.ones((1, 2))}
    weights = {name: value.astype(np.float32) for name, value in weights.items()}
    model = model_of(nodes, {"x": [1, 300]}, {"y": ["n", 2]}, weights)
    feeds = {"x": np.ones((1, 300), np.float32)}

    def run(session: Any, names: Any, given: Any) -> Any:
        try:
            return session.run(names, given)
        except Exception:
            raise InputError("the model fails on an image", file="g.onnx") from None

    dropout = Dropout(rate=0.3, layers="early|late", masks="elements")
    masked = MaskedGraph(model, dropout, open_graph=_session, run=run)
    # A mask of one row would go with any number of rows, and nobody would know.
    message = "late has a different shape in each pass" if counted == "dropped" else "image 1: the model fails"
    with pytest.raises(InputError, match=f"{message}.*; mask channels"):
        list(masked.sample(feeds, ["y"], 2, 1))
    channels = _masked(model, Dropout(rate=0.3, layers="early|late", masks="channels"))
    plain, drawn = (found[0] for found in channels.sample(feeds, ["y"], 1, 1))
    assert len(plain) == (301 if counted == "kept" else 1)
    assert 1 < len(drawn) < 301


def test_masks_belong_to_seed_image_and_pass_and_to_nothing_else(ssd: Path) -> None:
    def passes(image_ids: list[int], count: int = 3, **options: Any) -> list[list[bytes]]:
        detector = Detector(ssd, classes=CLASSES, dropout=Dropout(rate=0.3, **options), threads=1)
        drawn = detector.sample([IMAGE] * len(image_ids), count, image_ids)
        return [[found.boxes.tobytes() for found in own] for own in drawn]

    for masks in ("channels", "elements"):
        both = passes([4, -9], masks=masks)
        assert len({boxes for own in both for boxes in own}) == 6
        # Another order, one alone, fewer passes, a new detector: the same.
        assert passes([-9, 4], masks=masks) == both[::-1]
        assert passes([-9], 2, masks=masks)[0] == both[1][:2]
        assert set(passes([4], masks=masks, seed=1)[0]).isdisjoint(both[0])


@pytest.mark.parametrize("masks", ["channels", "elements"])
def test_a_network_in_half_precision_gets_masks(ssd: Path, tmp_path: Path, masks: str) -> None:
    model = onnx.load(str(ssd))
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.save(model, str(tmp_path / "half.onnx"))
    dropout = Dropout(rate=0.3, masks=masks)
    half, full = (
        Detector(path, classes=CLASSES, dropout=dropout, threads=1).sample([IMAGE], 2, [5])[0]
        for path in (tmp_path / "half.onnx", ssd)
    )
    for one, other in zip([half.plain, *half], [full.plain, *full], strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=0.01)
    assert np.abs(full[0].scores - full[1].scores).max() > 0.05


def test_without_masks_it_is_the_plain_detector(ssd: Path) -> None:
    masked = Detector(ssd, classes=CLASSES, dropout=Dropout(rate=0.3), threads=1)
    (expected,) = Detector(ssd, classes=CLASSES, threads=1).candidates([IMAGE])
    for found in (masked.candidates([IMAGE])[0], masked.sample([IMAGE], 1, [3])[0].plain):
        np.testing.assert_allclose(found.boxes, expected.boxes, rtol=1e-6)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6)


def test_running_in_two_parts_changes_nothing_and_the_kept_graph_runs_alone(ssd: Path) -> None:
    """The graph of --save-graph, fed by hand with what `draw_mask` says, gives what `sample` gave."""
    detector = Detector(ssd, classes=CLASSES, dropout=Dropout(rate=0.3, seed=5, masks="channels"), threads=1)
    drawn = detector.sample([IMAGE], 2, [12])[0]
    whole = _session(detector.graph)
    feeds, placement = detector.family.prepare(IMAGE)
    weights = {"box.depthwise": 16, "box.point": 16, "class.depthwise": 16, "class.point": 16}
    inputs = {tensor.name: tensor for tensor in detector.graph.graph.input if tensor.name != "image"}
    assert list(inputs) == [f"probox_dropout_{number}_mask" for number in range(4)]
    for (name, tensor), layer in zip(inputs.items(), weights, strict=True):
        assert f"Multiplied onto the input of {layer}" in tensor.doc_string
        assert [size.dim_value for size in tensor.type.tensor_type.shape.dim] == [1, 16, 1, 1], name
    for number, found in enumerate(drawn):
        for name, layer in zip(inputs, weights, strict=True):
            feeds[name] = draw_mask(
                (1, 16, 1, 1), 0.3, np.float32, seed=5, image_id=12, number=number, layer=f"{layer}.weight"
            )
        expected = detector.family.decode(whole.run(["boxes", "scores"], feeds), placement)
        np.testing.assert_allclose(found.boxes, expected.boxes, rtol=1e-5)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)


def test_the_part_before_masks_knows_nothing_of_them(ssd: Path) -> None:
    changed, inputs = insert_dropout(onnx.load(str(ssd)), Dropout(masks="channels"))
    before, after, between = split_masked(changed, [mask.name for mask in inputs])
    assert between == ("feature",)
    assert [tensor.name for tensor in before.graph.input] == ["image"]
    assert {node.name for node in after.graph.node if node.op_type == "Conv"} == {
        "box.depthwise", "box.point", "class.depthwise", "class.point",
    }  # fmt: skip


def test_a_mask_at_once_leaves_nothing_to_run_before(ssd: Path) -> None:
    detector = Detector(ssd, classes=CLASSES, dropout=Dropout(rate=0.3, layers="stem"), threads=1)
    first, second = detector.sample([IMAGE], 2, [0])[0]
    assert not np.array_equal(first.scores, second.scores)


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


def _dfl(*, move: str = "Transpose", weights: np.ndarray | None = None, softmax: bool = True) -> onnx.ModelProto:
    rng = np.random.default_rng(4)
    integral = np.arange(4, dtype=np.float32) if weights is None else weights
    arrays = {name: rng.normal(size=(8, 8, 1, 1)).astype(np.float32) for name in ("deep.w", "hidden.w", "last.w")}
    arrays["dfl.w"] = integral.reshape(1, 4, 1, 1)
    arrays["bins"] = np.array([1, 2, 4, 9], np.int64)
    perm = {"perm": [0, 2, 1, 3]} if move == "Transpose" else {"to": 1} if move == "Cast" else {}
    extra = {"Reshape": ["like"], "Slice": ["zero", "many", "axis"]}.get(move, [])
    arrays |= {"like": np.array([1, 4, 2, 9], np.int64), "zero": np.array([0], np.int64)}
    arrays |= {"many": np.array([9], np.int64), "axis": np.array([3], np.int64)}
    nodes = [
        helper.make_node("Conv", ["x", "deep.w"], ["d"], "deep"),
        helper.make_node("Conv", ["d", "hidden.w"], ["h"], "hidden"),
        helper.make_node("Conv", ["h", "last.w"], ["l"], "last"),
        helper.make_node("Reshape", ["l", "bins"], ["r"]),
        helper.make_node("Softmax" if softmax else "Sigmoid", ["r"], ["p"], **({"axis": 2} if softmax else {})),
        helper.make_node("Transpose", ["p"], ["q"], perm=[0, 2, 1, 3]),
        *([helper.make_node(move, ["q", *extra], ["m"], **perm)] if move != "Transpose" else []),
        helper.make_node("Conv", ["q" if move == "Transpose" else "m", "dfl.w"], ["y"], "dfl"),
    ]
    return model_of(nodes, {"x": [1, 8, 3, 3]}, {"y": None}, arrays)


def test_the_mean_of_a_softmax_is_no_layer() -> None:
    odd = np.array([0.13, 1.7, 2.9, 4.41], np.float32)  # D-FINE's bins are no whole numbers
    for move in ("Transpose", "Cast", "Reshape", "Slice", "Identity"):
        model = _dfl(move=move, weights=odd)
        layers = find_layers(model)
        assert [layer.name for layer in layers if layer.computes] == ["dfl"], move
        # It does not count as a layer either: the head is the two before it.
        assert [layer.name for layer in choose_layers(layers, "heads")] == ["hidden", "last"], move
        assert [layer.name for layer in choose_layers(layers, "hidden|dfl")] == ["hidden"]
        with pytest.raises(
            InputError,
            match=r"'df' names only dfl, which has no learnt weights: it computes .* softmax makes; name other layers",
        ):
            insert_dropout(model, Dropout(layers="df"))
    # What a sigmoid feeds, with weights like learnt ones, is a layer.
    learnt = _dfl(weights=odd, softmax=False)
    assert [layer.name for layer in choose_layers(find_layers(learnt), "heads")] == ["last", "dfl"]


def test_weights_that_nobody_learnt_are_no_layers() -> None:
    assert [layer.name for layer in find_layers(_dfl(softmax=False)) if layer.computes] == ["dfl"]  # 0, 1, 2, 3
    halves = np.array([1, -0.5, 0.5, 0], np.float32)  # from centres and sizes to corners
    assert [layer.name for layer in find_layers(_dfl(softmax=False, weights=halves)) if layer.computes] == ["dfl"]
    one_off = np.array([1, -0.5, 0.5, 0.001], np.float32)
    assert not any(layer.computes for layer in find_layers(_dfl(softmax=False, weights=one_off)))


@pytest.mark.parametrize("same", [True, False])
def test_one_filter_for_all_channels_is_no_layer(same: bool) -> None:
    blur = np.full((500, 1, 1, 1), 0.3, np.float32)
    blur[-1] += 0.0 if same else 0.1
    model, _ = _one_layer("depthwise")
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(blur, "w"))
    assert [bool(layer.computes) for layer in find_layers(model)] == [same]


def test_layers_that_share_weights_share_masks_of_channels(ssd: Path) -> None:
    """A head that looks at several maps is one layer: a pass is one network."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["y"], "first"),
        helper.make_node("MatMul", ["a", "w"], ["z"], "second"),
    ]
    model = model_of(nodes, {"x": [1, 64]}, {"y": [1, 64], "z": [1, 64]}, {"w": 0.7 * np.eye(64, dtype=np.float32)})
    ones = {"x": np.ones((1, 64), np.float32)}
    for masks, shared in (("channels", True), ("elements", False)):
        masked = _masked(model, Dropout(rate=0.5, layers="first|second", masks=masks))
        _, (first, second) = masked.sample(ones, ["y", "z"], 1, 0)
        assert np.array_equal(first, second) == shared


def test_weights_that_are_computed_are_left_alone() -> None:
    # A product of two activations (attention) is no layer; one with a weight behind an operator is none we can size.
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["a"], "attention"),
        helper.make_node("Transpose", ["w"], ["wt"]),
        helper.make_node("MatMul", ["a", "wt"], ["b"], "behind"),
        helper.make_node("Gemm", ["w", "b"], ["c"], "backwards"),
        helper.make_node("MatMul", ["w", "w"], ["ww"], "constant"),
        helper.make_node("Gemm", ["ww", "w"], ["www"], "constant too"),
        helper.make_node("Add", ["c", "www"], ["d"]),
        helper.make_node("MatMul", ["d", "w"], ["y"], "plain"),
    ]
    weights = {"w": 0.7 * np.eye(3, dtype=np.float32)}
    assert [layer.name for layer in find_layers(model_of(nodes, {"x": [3, 3]}, {"y": [3, 3]}, weights))] == ["plain"]
    with pytest.raises(InputError, match="no layer with float weights"):
        insert_dropout(model_of(nodes[:-1], {"x": [3, 3]}, {"d": [3, 3]}, weights), Dropout())


def _with_dropout(opset: int, ratio: float | None, training: bool = False) -> onnx.ModelProto:
    inputs, attributes = ["a"], {}
    weights = {"w": 0.7 * np.eye(400, dtype=np.float32)}
    if ratio is not None and opset < 12:
        attributes["ratio"] = ratio
    elif ratio is not None:
        inputs += ["ratio", "training"]
        weights |= {"ratio": np.float32(ratio), "training": np.array(training)}
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["a"], "one"),
            helper.make_node("Dropout", inputs, ["b", "kept"], "drop", **attributes),
            helper.make_node("MatMul", ["b", "w"], ["y"], "two"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 400])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 400]),
            helper.make_tensor_value_info("kept", TensorProto.BOOL, [1, 400]),
        ],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)


@pytest.mark.parametrize(
    ("opset", "ratio", "training"), [(11, 0.2, False), (11, None, False), (13, 0.2, False), (13, 0.2, True)]
)
def test_a_graph_s_own_dropout_nodes_come_first(opset: int, ratio: float | None, training: bool) -> None:
    model = _with_dropout(opset, ratio, training)
    onnx.checker.check_model(model)
    ones = {"x": np.ones((1, 400), np.float32)}
    wanted = 0.5 if ratio is None else ratio
    for dropout, rate in ((Dropout(), wanted), (Dropout(layers="existing", rate=0.4), 0.4)):
        masked = _masked(model, dropout)
        onnx.checker.check_model(masked.model)
        assert masked.layers == ("drop",)
        (plain, kept), *drawn = masked.sample(ones, ["y", "kept"], 10, 0)
        assert kept.all()
        np.testing.assert_allclose(plain, 0.49, rtol=1e-5)  # no chance of the runtime's own
        values = np.stack([found[0] for found in drawn])
        assert (values == 0).mean() == pytest.approx(rate, abs=4 * np.sqrt(0.25 / 4000))
        np.testing.assert_allclose(values[values > 0], 0.49 / (1 - rate), rtol=1e-4)
    heads = _masked(model, Dropout(layers="heads"))
    assert heads.layers == ("two",)  # the first reads the image


def test_channels_of_a_graph_s_own_dropout() -> None:
    """Channels come first in maps of features, last among features."""
    for shape, axis in (((1, 40, 3, 5), 1), ((2, 6, 40), 2)):
        model = model_of([helper.make_node("Dropout", ["x"], ["y"], "drop")], {"x": shape}, {"y": shape})
        masked = _masked(model, Dropout(masks="channels"))
        assert [mask.axes for mask in masked.masks] == [len(shape)]
        _, (drawn,) = masked.sample({"x": np.ones(shape, np.float32)}, ["y"], 1, 0)
        by_channel = np.moveaxis(drawn, axis, 0).reshape(40, -1)
        assert (by_channel == by_channel[:, :1]).all()
        assert 5 < (by_channel[:, 0] == 0).sum() < 35


def test_dropout_that_drops_nothing_is_not_there(ssd: Path) -> None:
    assert _masked(_with_dropout(13, 0.0), Dropout()).layers == ("two",)
    with pytest.raises(InputError, match="no Dropout nodes: exporting removes them; choose heads"):
        insert_dropout(onnx.load(str(ssd)), Dropout(layers="existing"))


def test_layers_inside_control_flow_run_with_masked_inputs() -> None:
    """A branch takes a masked tensor from outside; the layers in it have no masks of their own."""
    inner = helper.make_node("MatMul", ["a", "w"], ["inside"], "inside")
    branch = helper.make_graph([inner], "b", [], [helper.make_tensor_value_info("inside", TensorProto.FLOAT, [1, 50])])
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["a"], "outside"),
        helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch),
    ]
    weights = {"w": 0.7 * np.eye(50, dtype=np.float32), "yes": np.array(True)}
    model = model_of(nodes, {"x": [1, 50]}, {"y": [1, 50]}, weights)
    masked = _masked(model, Dropout(rate=0.5, layers="side"))
    assert masked.layers == ("outside",)
    (plain,), (drawn,) = masked.sample({"x": np.ones((1, 50), np.float32)}, ["y"], 1, 0)
    np.testing.assert_allclose(plain, 0.49, rtol=1e-6)
    assert 0 < (drawn == 0).sum() < 50
    with pytest.raises(InputError, match="no layer matches 'inside'"):
        insert_dropout(model, Dropout(layers="inside"))
    del model.graph.node[1]
    model.graph.node[0].output[0] = "a"
    with pytest.raises(InputError, match="inside If, Loop or Scan"):
        insert_dropout(model, Dropout())


def test_the_given_graph_is_not_changed(ssd: Path) -> None:
    model = onnx.load(str(ssd))
    before = model.SerializeToString()
    insert_dropout(model, Dropout())
    assert model.SerializeToString() == before


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 2.0])
def test_wrong_rates_are_refused(rate: float) -> None:
    with pytest.raises(InputError, match="dropout rate"):
        Dropout(rate=rate)


def test_sampling_needs_dropout(ssd: Path) -> None:
    with pytest.raises(InputError, match="dropout"):
        Detector(ssd, classes=CLASSES).sample([IMAGE], 2, [0])
    with pytest.raises(InputError, match="masks"):
        Dropout(masks="rows")
