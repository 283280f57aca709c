"""PMB-NLL as a loss: against the definition and the kernel, its gradients, odd images, bad input."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.measures.pmb.worlds import Image, by_kernel, golden_image, golden_numbers, random_image

from probox import Dataset, InputError
from probox.measures.pmb_definition import MIN_PROBABILITY
from probox.measures.pmb_nll import log_floors

torch = pytest.importorskip("torch")

from probox.torch.losses import pmb_nll_loss  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)
NO_FLOOR = -1e7


def dense_image(seed: int, **more: Any) -> Image:
    """Return a random image whose detections all have a density, and a floor that is finite."""
    image = random_image(seed, **more)
    rng = np.random.default_rng(seed)
    n = len(image.boxes)
    sigmas = np.exp(rng.uniform(math.log(0.05), math.log(50), (n, 2, 2)))
    covariances = sigmas[..., :, None] * sigmas[..., None, :]
    covariances *= np.where(np.eye(2) > 0, 1.0, rng.uniform(-0.99, 0.99, (n, 2, 1, 1)))
    probs = np.maximum(image.label_probs.astype(np.float64), 1e-12)
    floor = NO_FLOOR if np.isinf(image.log_floor) else image.log_floor
    return dataclasses.replace(image, covariances=covariances, label_probs=probs, log_floor=floor)


def logits_of(probs: np.ndarray, activation: str) -> np.ndarray:
    if activation == "sigmoid":
        return np.log(probs) - np.log1p(-probs)
    return np.log(np.concatenate([probs, np.maximum(1.0 - probs.sum(1, keepdims=True), 1e-300)], 1))


def arguments_of(images: list[Image], activation: str = "softmax") -> dict[str, Any]:

    def index(counts: list[int]) -> Any:
        return torch.tensor(np.repeat(np.arange(len(counts)), counts))

    return {
        "boxes": torch.tensor(np.concatenate([image.boxes for image in images])),
        "covariance": torch.tensor(np.concatenate([image.covariances for image in images])),
        "label_logits": torch.tensor(logits_of(np.concatenate([image.label_probs for image in images]), activation)),
        "truth_boxes": torch.tensor(np.concatenate([image.object_boxes for image in images])),
        "truth_labels": torch.tensor(np.concatenate([image.object_labels for image in images])),
        "image_index": index([len(image.boxes) for image in images]),
        "truth_image_index": index([len(image.object_boxes) for image in images]),
        "images": len(images),
        "activation": activation,
        "reduction": "none",
    }


@given(st.integers(0, 2**32 - 1), st.sampled_from(["softmax", "sigmoid"]), st.sampled_from([1, 3, 25]))
@examples(60)
def test_it_is_the_definition(seed: int, activation: str, assignments: int) -> None:
    image = dense_image(seed)
    found = pmb_nll_loss(
        **arguments_of([image], activation), log_floor=image.log_floor, assignments=assignments
    ).numpy()
    np.testing.assert_allclose(found, [image.defined(assignments).nll], rtol=1e-9, atol=1e-9)


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5))
@examples(25)
def test_images_together_are_the_kernels(seeds: list[int]) -> None:
    images = [dataclasses.replace(dense_image(seed, size=9), log_floor=-30.0) for seed in seeds]
    few = min(image.label_probs.shape[1] for image in images)
    images = [
        dataclasses.replace(image, label_probs=image.label_probs[:, :few], object_labels=image.object_labels % few)
        for image in images
    ]
    found = pmb_nll_loss(**arguments_of(images), log_floor=-30.0)
    wanted = [numbers["nll"] for numbers in by_kernel(images)]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6, atol=1e-6)
    order = torch.randperm(len(images[0].boxes) + sum(len(i.boxes) for i in images[1:]))
    mixed = arguments_of(images)
    for name in ("boxes", "covariance", "label_logits", "image_index"):
        mixed[name] = mixed[name][order]
    np.testing.assert_allclose(pmb_nll_loss(**mixed, log_floor=-30.0).numpy(), found.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("clutter", [True, False])
def test_golden_image(golden_dir: Path, clutter: bool) -> None:
    golden = golden_numbers(golden_dir)
    image = golden_image(golden, clutter=clutter)
    found = pmb_nll_loss(**arguments_of([image]), log_floor=NO_FLOOR)
    assert found.item() == pytest.approx(image.defined().nll, rel=1e-12)
    if clutter:
        assert found.item() == pytest.approx(19.72997188512462, rel=1e-9)


def test_the_floor_is_that_of_evaluations() -> None:
    """An object that nothing was found of costs the floor, by the size of its image and the number of classes."""
    sizes = [(64, 48), (1000, 1000), (300, 7)]
    widths, heights = zip(*sizes, strict=True)
    dataset = Dataset(classes=["cup", "dog", "jar"], image_ids=[1, 2, 3], widths=widths, heights=heights)
    empty = {
        "boxes": torch.zeros(0, 4, dtype=torch.float64),
        "log_std": torch.zeros(0, 4),
        "label_logits": torch.zeros(0, 4),
        "truth_labels": torch.tensor([0, 1, 2]),
        "truth_boxes": torch.tensor([[1.0, 1, 5, 5]]).expand(3, 4),
        "image_index": torch.zeros(0, dtype=torch.int64),
        "truth_image_index": torch.tensor([0, 1, 2]),
        "reduction": "none",
    }
    found = pmb_nll_loss(**empty, image_size=torch.tensor(sizes))
    np.testing.assert_allclose(found.numpy(), -log_floors(dataset, 3), rtol=1e-12)
    np.testing.assert_allclose(pmb_nll_loss(**empty).numpy(), found[1].item(), rtol=1e-12)
    np.testing.assert_allclose(pmb_nll_loss(**empty, image_size=(48, 64)).numpy(), found[0].item(), rtol=1e-12)
    masks = {**empty, "truth_boxes": None, "truth_masks": torch.ones(3, 48, 64, dtype=torch.bool)}
    np.testing.assert_allclose(pmb_nll_loss(**masks).numpy(), found[0].item(), rtol=1e-12)
    np.testing.assert_allclose(pmb_nll_loss(**empty, log_floor=-12.5).numpy(), 12.5, rtol=1e-12)


def test_images_without_anything() -> None:
    boxes = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
    given = {
        "boxes": boxes,
        "log_std": torch.zeros(2, 4),
        "label_logits": torch.tensor([[math.log(3.0), 0.0], [math.log(0.05), math.log(0.95)]]),
        "image_index": torch.tensor([1, 3]),
        "truth_labels": torch.tensor([], dtype=torch.int64),
        "truth_boxes": torch.zeros(0, 4),
        "truth_image_index": torch.tensor([], dtype=torch.int64),
    }
    # Nothing; a sure detection of nothing; nothing; clutter; nothing more.
    found = pmb_nll_loss(**given, images=5, reduction="none")
    np.testing.assert_allclose(found.detach().numpy(), [0.0, math.log(4.0), 0.0, 0.05, 0.0], rtol=1e-6, atol=1e-12)
    total = pmb_nll_loss(**given)
    assert total.item() == pytest.approx((math.log(4.0) + 0.05) / 4, rel=1e-6)
    total.backward()
    assert not boxes.grad.any()
    assert pmb_nll_loss(**given, reduction="sum").item() == pytest.approx(math.log(4.0) + 0.05, rel=1e-6)
    weights = torch.tensor([0.0, 3.0, 0.0, 1.0])
    weighted = pmb_nll_loss(**given, weights=weights).item()
    assert weighted == pytest.approx((3 * math.log(4.0) + 0.05) / 4, rel=1e-6)


def test_no_image_at_all() -> None:
    given = {
        "boxes": torch.zeros(0, 4, requires_grad=True),
        "log_std": torch.zeros(0, 4),
        "label_logits": torch.zeros(0, 3),
        "truth_labels": torch.tensor([], dtype=torch.int64),
        "truth_boxes": torch.zeros(0, 4),
    }
    nowhere = torch.tensor([], dtype=torch.int64)
    total = pmb_nll_loss(**given, image_index=nowhere, truth_image_index=nowhere)
    total.backward()
    assert total.item() == 0.0
    one = pmb_nll_loss(**given, reduction="none")
    assert one.tolist() == [0.0]
    assert one.dtype == torch.float32


@pytest.mark.parametrize("spread", ["log_std", "cholesky", "covariance"])
@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_gradients_are_those_of_differences(spread: str, activation: str) -> None:
    rng = np.random.default_rng(3)
    truth = np.array([[10.0, 10, 40, 40], [14, 12, 44, 43], [60, 5, 80, 30], [5.0, 5, 30, 30]])
    centres = np.concatenate([truth[[0, 1, 1, 2, 3]], truth[:1]])
    boxes = torch.tensor(centres + rng.normal(0, 2, (6, 4)), requires_grad=True)
    sigmas = np.exp(rng.uniform(0, 1, (6, 2, 2)))
    lower = sigmas[..., None] * np.eye(2)
    lower[..., 1, 0] = rng.normal(size=(6, 2))
    value = {"log_std": np.log(sigmas.reshape(6, 4)), "cholesky": lower, "covariance": lower @ lower.swapaxes(-1, -2)}
    probs = np.array([[0.6, 0.1], [0.2, 0.3], [0.5, 0.2], [0.08, 0.05], [0.15, 0.2], [0.06, 0.07]])
    logits = torch.tensor(logits_of(probs, activation), requires_grad=True)

    def losses(boxes: Any, value: Any, logits: Any) -> Any:
        if spread == "cholesky":
            value = value.tril()
        return pmb_nll_loss(
            boxes,
            **{spread: value},
            label_logits=logits,
            truth_labels=torch.tensor([0, 1, 0, 1]),
            truth_boxes=torch.tensor(truth),
            image_index=torch.tensor([0, 0, 0, 0, 1, 0]),
            truth_image_index=torch.tensor([0, 0, 0, 1]),
            activation=activation,
            log_floor=-1e4,
            reduction="none",
        )

    given = torch.tensor(value[spread], requires_grad=True)
    gradients = torch.autograd.grad(losses(boxes, given, logits).sum(), [boxes, given, logits])
    assert all((part.flatten(1) != 0).any(1).all() for part in gradients)
    assert torch.autograd.gradcheck(losses, (boxes, given, logits), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_everything_is_finite(dtype: str) -> None:
    kind = getattr(torch, dtype)
    sigmas, residuals = [0.05, 1.0, 200.0], [0.0, 1.0, 1e4]
    for logits in ([0.0, 0.0], [200.0, -200.0], [-200.0, 200.0], [-1e4, 1e4]):
        for activation in ("softmax", "sigmoid"):
            grid = [(sigma, r) for sigma in sigmas for r in residuals]
            boxes = torch.tensor([[1e4 + r, 1e4, 2e4, 2e4 - r] for _, r in grid], dtype=kind, requires_grad=True)
            log_std = torch.tensor([[math.log(sigma)] * 4 for sigma, _ in grid], dtype=kind, requires_grad=True)
            label_logits = torch.tensor([logits] * len(grid), dtype=kind, requires_grad=True)
            loss = pmb_nll_loss(
                boxes,
                log_std=log_std,
                label_logits=label_logits,
                activation=activation,
                truth_labels=torch.tensor([0, 0]),
                truth_boxes=torch.tensor([[1e4, 1e4, 2e4, 2e4], [0.0, 0.0, 5.0, 5.0]]),
            )
            assert loss.dtype == kind
            assert torch.isfinite(loss)
            loss.backward()
            for part in (boxes, log_std, label_logits):
                assert torch.isfinite(part.grad).all()
                assert part.grad.dtype == kind


def test_training_finds_the_objects() -> None:
    """Boxes that no object is near learn to be background, the others where objects are and how sure they are."""
    truth = torch.tensor([[10.0, 10, 40, 40], [60, 20, 90, 50]], dtype=torch.float64)
    boxes = torch.tensor([[14.0, 8, 43, 38], [57, 21, 95, 52], [20, 60, 50, 90]], dtype=torch.float64)
    boxes.requires_grad_()
    log_std = torch.full((3, 4), math.log(5.0), dtype=torch.float64, requires_grad=True)
    logits = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([boxes, log_std, logits], lr=0.1)
    for _ in range(80):
        optimizer.zero_grad()
        pmb_nll_loss(
            boxes, log_std=log_std, label_logits=logits, truth_labels=torch.tensor([0, 1]), truth_boxes=truth
        ).backward()
        optimizer.step()
    probs = logits.detach().softmax(1)
    assert probs.argmax(1).tolist() == [0, 1, 2]
    assert probs.amax(1).min() > 0.95
    assert (boxes.detach()[:2] - truth).abs().max() < 1.0
    assert log_std.detach()[:2].max() < math.log(2.0)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"label_logits": torch.zeros(3, 3)}, r"label_logits of shape \(2, N\)"),
        ({"label_logits": torch.full((2, 3), math.nan)}, "label_logits to be finite"),
        ({"label_logits": None}, "label_logits to be a tensor"),
        (
            {"label_logits": torch.zeros(2, 1)},
            "at least 2 columns, but got 1; with softmax the last column is the background",
        ),
        ({"label_logits": torch.zeros(2, 0), "activation": "sigmoid"}, "at least 1 columns"),
        ({"truth_labels": None}, "truth_labels to be a tensor"),
        ({"truth_labels": torch.tensor([0.5])}, "whole numbers"),
        ({"truth_labels": torch.tensor([2])}, "row 0: expected a class from 0 to 1, but got 2; the last column"),
        ({"truth_labels": torch.tensor([3]), "activation": "sigmoid"}, "expected a class from 0 to 2, but got 3$"),
        ({"truth_labels": torch.tensor([-1])}, "but got -1"),
        ({"activation": "relu"}, "activation"),
        ({"image_index": torch.tensor([0, 1])}, "truth_image_index is missing"),
        ({"truth_image_index": torch.tensor([0])}, "but image_index is missing"),
        ({"image_index": torch.tensor([0]), "truth_image_index": torch.tensor([0])}, r"image_index .* shape \(2,\)"),
        ({"image_index": torch.zeros(2), "truth_image_index": torch.tensor([0])}, "image_index to hold whole numbers"),
        (
            {"image_index": torch.tensor([0, -1]), "truth_image_index": torch.tensor([0])},
            "expected image_index from 0 on and below 1",
        ),
        (
            {"image_index": torch.tensor([0, 0]), "truth_image_index": torch.tensor([2]), "images": 2},
            "expected truth_image_index from 0 on and below 2",
        ),
        ({"image_index": torch.tensor([0, 397133]), "truth_image_index": torch.tensor([0])}, "counted from 0"),
        ({"images": 0}, "expected image_index from 0 on and below 0"),
        ({"images": 1.5}, "images to be a whole number"),
        ({"log_floor": -math.inf}, "log_floor to be finite"),
        ({"image_size": (0, 10)}, "image_size"),
        ({"image_size": (10,)}, "image_size"),
        ({"image_size": "large"}, "image_size"),
        ({"assignments": 0}, "assignments"),
        ({"assignments": True}, "assignments"),
        ({"weights": torch.ones(2)}, r"weights of shape \(1\)"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], named: str) -> None:
    given: dict[str, Any] = {
        "boxes": torch.tensor([[0.0, 0, 9, 9], [1, 1, 5, 5]]),
        "log_std": torch.zeros(2, 4),
        "label_logits": torch.zeros(2, 3),
        "truth_labels": torch.tensor([1]),
        "truth_boxes": torch.tensor([[0.0, 0, 8, 8]]),
    }
    assert math.isfinite(pmb_nll_loss(**given))
    with pytest.raises(InputError, match=named):
        pmb_nll_loss(**{**given, **change})


def test_probabilities_are_clamped() -> None:
    given = {
        "boxes": torch.zeros(1, 4, dtype=torch.float64),
        "log_std": torch.zeros(1, 4),
        "truth_boxes": torch.zeros(0, 4),
        "truth_labels": torch.tensor([], dtype=torch.int64),
    }
    sure = torch.tensor([[50.0, 0.0]], dtype=torch.float64)
    assert pmb_nll_loss(**given, label_logits=sure).item() == pytest.approx(-math.log(MIN_PROBABILITY), rel=1e-9)
    both = pmb_nll_loss(**given, label_logits=torch.tensor([[1.0, 1.0]]), activation="sigmoid")
    assert both.item() == pytest.approx(-math.log(MIN_PROBABILITY), rel=1e-9)


def test_a_class_that_is_thought_impossible_costs_a_millionth() -> None:
    box = torch.tensor([[5.0, 5.0, 9.0, 9.0]], dtype=torch.float64)
    logits = torch.tensor([[30.0, -30.0, 0.0]], dtype=torch.float64, requires_grad=True)
    loss = pmb_nll_loss(
        box, log_std=torch.zeros(1, 4), label_logits=logits, truth_labels=torch.tensor([1]), truth_boxes=box
    )
    wanted = 2.0 * math.log(2.0 * math.pi) - math.log(MIN_PROBABILITY)
    assert loss.item() == pytest.approx(wanted, rel=1e-6)
