"""Outputs of transformers: real models where it is installed, and objects of the same shape."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests import frameworks
from tests.adapters.tiny_models import CLASSES, PROCESSORS, SIDE, tiny_model
from tests.amounts import others_slow
from tests.docs.snippets import run_section

from probox import Detections, InputError
from probox.adapters import from_transformers
from probox.fusion.fuse import bin_values, edges_of
from probox.tables.dataset import Dataset

pytestmark = pytest.mark.torch
IDS = [7, 9]
SIZES = {7: (640, 480), 9: (500, 375)}


def made(columns: int = 4, queries: int = 5, images: int = 1, seed: int = 0, **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    boxes = np.concatenate(
        [rng.uniform(0.3, 0.7, (images, queries, 2)), rng.uniform(0.1, 0.4, (images, queries, 2))], 2
    )
    return {"logits": rng.normal(0, 2, (images, queries, columns)), "pred_boxes": boxes} | more


def settings(**changes: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"id2label": dict(enumerate(CLASSES)), "model_type": "detr"} | changes)


@pytest.fixture(scope="module")
def outputs() -> Callable[[str], tuple[Any, Any]]:
    """Return what a model says of two images, and the model; each is run once."""
    known: dict[str, tuple[Any, Any]] = {}

    def run(kind: str) -> tuple[Any, Any]:
        if kind not in known:
            model, torch = tiny_model(kind), frameworks.torch()
            with torch.no_grad(), frameworks.quiet():
                known[kind] = model(pixel_values=torch.randn(2, 3, SIDE, SIDE)), model
        return known[kind]

    return run


@pytest.mark.parametrize("kind", others_slow(PROCESSORS, 2))
def test_the_best_of_each_image_is_the_librarys(outputs: Callable[[str], tuple[Any, Any]], kind: str) -> None:
    output, model = outputs(kind)
    library = frameworks.transformers()
    found = from_transformers(output, config=model, image_ids=IDS, image_sizes=SIZES)
    assert found.classes == CLASSES
    assert len(found) == 2 * 12
    with frameworks.quiet():
        processor = getattr(library, f"{PROCESSORS[kind]}ImageProcessor")()
        sizes = [SIZES[image][::-1] for image in IDS]
        theirs = processor.post_process_object_detection(output, threshold=0.0, target_sizes=sizes)
    for image, result in zip(IDS, theirs, strict=True):
        own = found[found.image_ids == image]
        ours, best = int(own.scores.argmax()), int(result["scores"].argmax())
        np.testing.assert_allclose(own.scores[ours], result["scores"][best].item(), rtol=1e-5)
        assert own.labels[ours] == result["labels"][best].item()
        np.testing.assert_allclose(own.boxes[ours], result["boxes"][best].numpy(), rtol=1e-4, atol=1e-3)
        cut = float(np.median(own.scores))
        kept = from_transformers(output, config=model, image_ids=IDS, image_sizes=SIZES, score_threshold=cut)
        assert len(kept[kept.image_ids == image]) == int((own.scores > cut).sum()) == 6


@pytest.mark.parametrize("kind", ["Detr", "Yolos"])
def test_a_softmax_head_says_exactly_what_the_library_does(
    outputs: Callable[[str], tuple[Any, Any]], kind: str
) -> None:
    output, model = outputs(kind)
    found = from_transformers(output, config=model.config, image_ids=IDS, image_sizes=SIZES, score_threshold=0.2)
    with frameworks.quiet():
        processor = getattr(frameworks.transformers(), f"{kind}ImageProcessor")()
        sizes = frameworks.torch().tensor([SIZES[image][::-1] for image in IDS])
        theirs = processor.post_process_object_detection(output, threshold=0.2, target_sizes=sizes)
    again = from_transformers(theirs, config=model.config, image_ids=IDS)
    assert 0 < len(found) == len(again)
    np.testing.assert_array_equal(again.labels, found.labels)
    np.testing.assert_allclose(again.scores, found.scores, rtol=1e-5)
    np.testing.assert_allclose(again.boxes, found.boxes, rtol=1e-4, atol=1e-3)
    same = from_transformers(output, config=model, image_ids=IDS, target_sizes=sizes, score_threshold=0.2)
    np.testing.assert_array_equal(same.boxes, found.boxes)


def test_the_mean_of_d_fines_edges_is_its_box(outputs: Callable[[str], tuple[Any, Any]]) -> None:
    output, model = outputs("DFine")
    corners, start = output.intermediate_predicted_corners[:, -1], output.initial_reference_points[:, -1]
    mean, var = edges_of(corners.numpy(), start.numpy(), model.config.up, model.config.reg_scale)
    cx, cy, w, h = np.moveaxis(output.pred_boxes.double().numpy(), -1, 0)
    assert np.abs(np.stack([cx, cy, w, h], -1) - start.numpy()).max() > 0.003  # the bins had a say
    np.testing.assert_allclose(mean, np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1), atol=2e-6)
    found = from_transformers(output, config=model, image_ids=IDS, image_sizes=SIZES, edges="required")
    sides = np.stack([found.covariances[:, c, i, i] for c in (0, 1) for i in (0, 1)], axis=1)
    scale = np.array([SIZES[image] for image in found.image_ids], float)
    np.testing.assert_allclose(sides, var.reshape(-1, 4) * np.tile(scale, 2) ** 2, rtol=1e-12)
    assert not found.covariances[:, :, 0, 1].any()
    plain = from_transformers(output, config=model, image_ids=IDS, image_sizes=SIZES, edges="ignore")
    assert plain.covariances is None
    np.testing.assert_array_equal(plain.label_probs, found.label_probs)


def test_edges_of_another_configuration_are_noticed(outputs: Callable[[str], tuple[Any, Any]]) -> None:
    output, model = outputs("DFine")
    other = settings(id2label=model.config.id2label, model_type="d_fine", up=0.5, reg_scale=8.0)
    with pytest.raises(InputError, match=r"of the image size away from the box; give the config= of the model"):
        from_transformers(output, config=other, image_ids=IDS, image_sizes=SIZES)


def test_half_precision_and_graphs(outputs: Callable[[str], tuple[Any, Any]]) -> None:
    output, model = outputs("DFine")
    names = ("logits", "pred_boxes", "intermediate_predicted_corners", "initial_reference_points")
    half = SimpleNamespace(**{name: getattr(output, name).bfloat16().requires_grad_() for name in names})
    found = from_transformers(half, config=model, image_ids=IDS, image_sizes=SIZES)
    full = from_transformers(output, config=model, image_ids=IDS, image_sizes=SIZES)
    np.testing.assert_allclose(found.scores, full.scores, atol=0.02)
    assert found.covariances is not None


def test_bins_by_hand() -> None:
    values = bin_values(33, 0.5, 4.0)
    growth = 3.0 ** (2 / 30)
    by_hand = [-4.0] + [-(growth ** (16 - n) - 1) for n in range(1, 16)] + [0.0]
    np.testing.assert_allclose(values[:17], by_hand, rtol=1e-12)
    np.testing.assert_array_equal(values, -values[::-1])
    logits = np.full((1, 4, 33), -1e9)
    logits[0, :, [16, 32]] = 0.0  # half in the middle, half in the last: 0 or 4
    mean, var = edges_of(logits.reshape(1, -1), np.array([[0.5, 0.4, 0.2, 0.1]]), 0.5, 4.0)
    np.testing.assert_allclose(var[0], 4 * np.array([0.05, 0.025, 0.05, 0.025]) ** 2)
    np.testing.assert_allclose(mean[0], [0.5 - 4 * 0.05, 0.4 - 4 * 0.025, 0.5 + 4 * 0.05, 0.4 + 4 * 0.025])
    with pytest.raises(InputError, match="odd number of bins"):
        bin_values(32, 0.5, 4.0)


@given(
    arrays(np.float64, (4, 9), elements=st.floats(-30, 30)),
    arrays(np.float64, 4, elements=st.floats(0.01, 1)),
    st.floats(0.1, 2),
    st.floats(0.5, 9),
)
def test_edges_are_what_their_definition_says(logits: Any, reference: Any, reach: float, scale: float) -> None:
    mean, var = edges_of(logits.reshape(1, -1), reference[None], reach, scale)
    values = bin_values(9, reach, scale)
    for side in range(4):
        shares = [float(np.exp(value - logits[side].max())) for value in logits[side]]
        shares = [share / sum(shares) for share in shares]
        distance = sum(share * value for share, value in zip(shares, values, strict=True))
        spread = sum(share * (value - distance) ** 2 for share, value in zip(shares, values, strict=True))
        centre, length = reference[side % 2], reference[2 + side % 2]
        away = (scale / 2 + distance) * length / scale
        assert mean[0, side] == pytest.approx(centre + (away if side > 1 else -away), abs=1e-12)
        assert var[0, side] == pytest.approx(spread * (length / scale) ** 2, rel=1e-9, abs=1e-15)


def test_no_object_is_left_out_of_the_classes_and_of_the_sum() -> None:
    output = made()
    found = from_transformers(output, config=settings(), image_ids=7, image_sizes=(100, 50))
    shares = np.exp(output["logits"][0]) / np.exp(output["logits"][0]).sum(1, keepdims=True)
    np.testing.assert_allclose(found.label_probs, shares[:, :3], rtol=1e-6)
    cx, cy, w, h = (output["pred_boxes"][0] * [100, 50, 100, 50]).T
    np.testing.assert_allclose(found.boxes, np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], 1))


def test_sigmoids_above_1_are_limited_by_choice() -> None:
    output = made(3)
    output["logits"][0, 0] = [2.0, 1.0, 0.0]
    arguments: dict[str, Any] = {"config": settings(model_type="rt_detr"), "image_ids": 7, "image_sizes": (100, 50)}
    found = from_transformers(output, **arguments)
    scores = 1 / (1 + np.exp(-output["logits"][0]))
    by_hand = Detections.from_scores(np.tile([0, 0, 9, 9], (5, 1)), scores, classes=CLASSES, image_ids=7)
    np.testing.assert_array_equal(found.label_probs, by_hand.label_probs)
    np.testing.assert_array_equal(found.scores, scores.max(axis=1))
    normal = from_transformers(output, above_one="normalise", **arguments)
    np.testing.assert_allclose(normal.label_probs.sum(axis=1), 1.0, rtol=1e-6)
    with pytest.raises(InputError, match="limit_to_distribution"):
        from_transformers(output, above_one="refuse", **arguments)


def test_several_batches_top_and_empty() -> None:
    both, config = made(images=2), settings()
    whole = from_transformers(both, config=config, image_ids=IDS, image_sizes=SIZES)
    batches = [{name: values[i : i + 1] for name, values in both.items()} for i in range(2)]
    parts = from_transformers(batches, config=config, image_ids=IDS, image_sizes=SIZES)
    np.testing.assert_array_equal(parts.boxes, whole.boxes)
    np.testing.assert_array_equal(parts.image_ids, [7] * 5 + [9] * 5)
    best = from_transformers(both, config=config, image_ids=IDS, image_sizes=SIZES, top=2)
    for image in IDS:
        scores = np.sort(whole.scores[whole.image_ids == image])[-2:]
        np.testing.assert_array_equal(np.sort(best.scores[best.image_ids == image]), scores)
    none = from_transformers(both, config=config, image_ids=IDS, image_sizes=SIZES, score_threshold=1.0)
    assert len(none) == 0
    assert none.classes == CLASSES
    assert len(from_transformers([], config=config, image_sizes=SIZES)) == 0
    one = from_transformers({n: v[0] for n, v in both.items()}, config=config, image_ids=7, image_sizes=SIZES)
    np.testing.assert_array_equal(one.boxes, whole.boxes[:5])


def test_a_threshold_is_no_score_to_keep() -> None:
    output = made(queries=3)
    every = from_transformers(output, config=settings(), image_ids=7, image_sizes=(100, 50))
    middle = float(np.sort(every.scores)[1])
    found = from_transformers(output, config=settings(), image_ids=7, image_sizes=(100, 50), score_threshold=middle)
    assert found.scores.tolist() == [every.scores.max()]  # as in transformers: above it


HALF = {"intermediate_predicted_corners": np.zeros((1, 1, 5, 132)), "initial_reference_points": np.zeros((1, 1, 3, 4))}
D_FINE = settings(model_type="d_fine", up=0.5, reg_scale=4.0)
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no sizes": ({"image_sizes": None}, "give image_sizes=truth, or .width, height."),
    "unknown image": ({"image_sizes": {8: (9, 9)}}, "image 7: the size of this image is unknown"),
    "swapped": ({"target_sizes": [(100, 50)]}, r"target_sizes is 50 x 100 .*target_sizes are \(height, width\)"),
    "sizes differ": ({"target_sizes": [(9, 8)]}, "give one of them"),
    "mapping as target": ({"target_sizes": {7: (9, 8)}, "image_sizes": None}, "use image_sizes= for others"),
    "ids missing": ({"image_ids": None}, "give image_ids="),
    "no config": ({"config": None, "classes": CLASSES}, "the head type is unknown; give config=model.config, or"),
    "no names": ({"config": None}, "class names are unknown"),
    "other classes": (
        {"classes": ["a", "b"]},
        "expected 3 columns of logits for a softmax head with 2 classes, but got 4",
    ),
    "background named": ({"classes": [*CLASSES, "background"]}, "leave it out of classes"),
    "too few for sigmoid": ({"labels": "sigmoid"}, "expected 3 columns of logits for a sigmoid head with 3 classes"),
    "numbers with gaps": ({"config": settings(id2label={1: "a", 2: "b", 3: "c"})}, "number 3 classes from 0"),
    "words": ({"config": settings(model_type="grounding-dino")}, "refer to words of a prompt"),
    "no focal loss": ({"config": settings(model_type="rt_detr", use_focal_loss=False)}, "write labels='softmax'"),
    "unknown model": ({"config": settings(model_type="new", id2label={0: "a"})}, "expected 1 or 2 columns"),
    "no edges": ({"edges": "required"}, "the output has no edge distributions"),
    "unknown head": ({"labels": "softmin"}, "expected labels to be one of 'auto', 'softmax', 'sigmoid'"),
    "unknown edges": ({"edges": True}, "expected edges to be one of"),
    "a tuple": ({"outputs": (np.zeros((1, 5, 4)), np.zeros((1, 5, 4)))}, "return_dict=True"),
    "no boxes": ({"outputs": {"logits": np.zeros((1, 5, 4))}}, "without pred_boxes"),
    "a number": ({"outputs": 3}, "expected the output of an image, or a list of them, but got int"),
    "shapes": (
        {"outputs": {"logits": np.zeros((1, 5, 4)), "pred_boxes": np.zeros((1, 4, 4))}},
        "1 x 5 x 4 and 1 x 4 x 4",
    ),
    "pixels": (
        {"outputs": made() | {"pred_boxes": np.full((1, 5, 4), 90.0)}},
        "relative to the image size, but got 90",
    ),
    "diverged": ({"outputs": made() | {"logits": np.full((1, 5, 4), np.nan)}}, "but got NaN"),
    "half a decoder": ({"outputs": made(3) | HALF, "config": D_FINE}, r"model.eval\(\), or write edges='ignore'"),
    "sizes of 0": ({"image_sizes": (0, 50)}, "image sizes above 0"),
    "processed shares": (
        {"outputs": [{"scores": [0.5], "labels": [1], "boxes": [[0.1, 0.1, 0.5, 0.9]]}]},
        "none of 1 reaches beyond 1: they look normalised",
    ),
}


def test_processed_results_are_chosen_among_like_queries() -> None:
    processed = [{"scores": [0.5, 0.3, 0.9], "labels": [1, 0, 2], "boxes": [[10, 10, 50, 60]] * 3}]
    for choice, kept in (({}, [0.5, 0.3, 0.9]), ({"score_threshold": 0.3}, [0.5, 0.9]), ({"top": 1}, [0.9])):
        found = from_transformers(processed, config=settings(), image_ids=7, **choice)
        assert found.scores.tolist() == kept
    with pytest.raises(InputError, match="give the model's output"):
        from_transformers(processed, config=settings(), image_ids=7, edges="required")


@pytest.mark.parametrize("name", list(BAD))
def test_mistakes_are_named(name: str) -> None:
    changes, match = BAD[name]
    arguments = {"outputs": made(), "config": settings(), "image_ids": 7, "image_sizes": (100, 50)} | changes
    output = arguments.pop("outputs")
    with pytest.raises(InputError, match=match):
        from_transformers(output, **arguments)


def test_sizes_may_come_from_the_truth_and_both_ways() -> None:
    dataset = Dataset.from_sizes(CLASSES, SIZES)
    output, config = made(images=2), settings()
    by_truth = from_transformers(output, config=config, image_ids=IDS, image_sizes=dataset)
    both = from_transformers(
        output, config=config, image_ids=IDS, image_sizes=dataset, target_sizes=[(480, 640), (375, 500)]
    )
    np.testing.assert_array_equal(both.boxes, by_truth.boxes)
    by_name = from_transformers(output, classes=CLASSES, labels="softmax", image_ids=IDS, image_sizes=SIZES)
    np.testing.assert_array_equal(by_name.label_probs, by_truth.label_probs)


@pytest.mark.filterwarnings("ignore")  # frameworks warn of their own affairs
def test_the_snippets_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_section("transformers", tmp_path, monkeypatch)
