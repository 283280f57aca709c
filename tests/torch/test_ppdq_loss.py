"""pPDQ with a gradient: the measure's numbers, true gradients, and something to learn from any start."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples, others_slow

import probox
from probox.errors import InputError
from probox.measures.pdq import definition
from probox.measures.pdq.definition import bivariate_cdf

torch = pytest.importorskip("torch")

from probox.torch import background, foreground, ppdq_loss, spatial_quality  # noqa: E402
from probox.torch.arguments import EPSILON  # noqa: E402
from probox.torch.gaussian_integrals import correlation_gain, log_interval  # noqa: E402
from probox.torch.ppdq import LEAK  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)  # tensors are small, and tests run side by side
PAPER = probox.Convention.preset("paper")
D = torch.float64


class Pair:
    def __init__(self, seed: int, *, full: bool, mask: bool, sigmas: tuple[float, float] = (0.05, 200.0)) -> None:
        rng = np.random.default_rng(seed)
        self.width, self.height = int(rng.integers(3, 60)), int(rng.integers(3, 50))
        x, y = np.sort(rng.integers(0, self.width, 2)), np.sort(rng.integers(0, self.height, 2))
        self.truth = np.array([x[0], y[0], x[1], y[1]], float)
        self.sigmas = np.exp(rng.uniform(*np.log(sigmas), 4))
        self.box = self.truth + rng.normal(0, 1, 4) * np.minimum(self.sigmas, 30) * rng.choice([0.3, 1, 3])
        rho = rng.uniform(-0.97, 0.97, 2) if full else np.zeros(2)
        self.covariance = np.zeros((2, 2, 2))
        for corner in (0, 1):
            sx, sy = self.sigmas[2 * corner : 2 * corner + 2]
            self.covariance[corner] = [[sx * sx, rho[corner] * sx * sy], [rho[corner] * sx * sy, sy * sy]]
        self.mask = np.zeros((self.height, self.width), bool)
        self.mask[y[0] : y[1] + 1, x[0] : x[1] + 1] = True
        if mask:
            self.mask &= rng.random(self.mask.shape) < 0.6
            self.mask[y[0], x[0]] = self.mask[y[1], x[1]] = True
        self.given: dict[str, Any] = {"image_size": (self.width, self.height)}
        if full:
            self.given["covariance"] = torch.tensor(self.covariance)[None]
        else:
            self.given["log_std"] = torch.tensor(np.log(self.sigmas))[None]
        if mask:
            self.given["truth_masks"] = torch.tensor(self.mask)[None]
        else:
            self.given["truth_boxes"] = torch.tensor(self.truth)[None]

    def of_definition(self) -> tuple[np.ndarray, np.ndarray]:
        cover = definition.heatmap(self.box, self.covariance, self.width, self.height, PAPER)
        sums = definition.losses(cover, self.mask, tuple(self.truth.astype(int)), PAPER)
        return np.array(definition.qualities(*sums, int(self.mask.sum()), PAPER)), cover

    def of_torch(self, **changes: Any) -> np.ndarray:
        box = torch.tensor(self.box)[None]
        return np.array([float(f(box, **self.given, **changes)) for f in (spatial_quality, foreground, background)])


@pytest.mark.parametrize("mask", [False, True])
@examples(30)
@given(seed=st.integers(0, 10**6))
def test_uncorrelated_corners_have_the_numbers_of_the_definition(mask: bool, seed: int) -> None:
    pair = Pair(seed, full=False, mask=mask)
    expected, _ = pair.of_definition()
    np.testing.assert_allclose(pair.of_torch(), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("mask", [False, True])
@examples(20)
@given(seed=st.integers(0, 10**6))
def test_correlated_corners_have_the_numbers_of_the_definition(mask: bool, seed: int) -> None:
    pair = Pair(seed, full=True, mask=mask)
    expected, cover = pair.of_definition()
    outside = np.ones_like(pair.mask)
    x0, y0, x1, y1 = pair.truth.astype(int)
    outside[y0 : y1 + 1, x0 : x1 + 1] = False
    # The definition's P is rounded to 1e-16: below 1e-6, or so near to 1, that is seen in its logarithm.
    rounded = cover[pair.mask].min() < 1e-6 or (outside.any() and cover[outside].max() > 1 - 1e-6)
    np.testing.assert_allclose(pair.of_torch(), expected, rtol=0, atol=1e-4 if rounded else 1e-9)


def test_the_numbers_of_the_kernel() -> None:
    """Boxes of all kinds, one to an image, through `probox.evaluate`: qualities of pairs to 1e-6."""
    pairs = [Pair(seed, full=seed % 2 == 0, mask=seed % 3 == 0, sigmas=(0.3, 20.0)) for seed in range(150)]
    pairs = [pair for pair in pairs if (pair.box[:2] <= pair.box[2:]).all()]  # a table takes no others
    classes = ["cup", "dog", "cat"]
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 1.5, (len(pairs), 3))
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = rng.integers(0, 3, len(pairs))
    masks = [(i, [pair.mask], [int(labels[i])]) for i, pair in enumerate(pairs)]
    truth = probox.GroundTruth.from_masks(classes, masks)
    found = probox.Detections(
        classes=classes,
        image_ids=list(range(len(pairs))),
        boxes=[pair.box for pair in pairs],
        label_probs=probs,
        covariances=[pair.covariance for pair in pairs],
    )
    result = probox.evaluate(truth, found, preset="paper", measures=["pdq"], object_filter=False)
    rows = result.detections
    compared = 0
    for i, pair in enumerate(pairs):
        spatial, fg, bg = pair.of_torch()
        overall = math.exp(
            -ppdq_loss(
                torch.tensor(pair.box)[None],
                label_logits=torch.tensor(logits[i])[None],
                truth_labels=torch.tensor([int(labels[i])]),
                leak=0.0,
                **pair.given,
            ).item()
        )
        if rows.partners[i] < 0:
            assert overall < 1e-6
            continue
        compared += 1
        for value, name in ((spatial, "spatial"), (fg, "foreground"), (bg, "background"), (overall, "pPDQ")):
            assert value == pytest.approx(rows.quality(name)[i], abs=1e-6), (i, name)
    assert compared > 70


def test_true_boxes_with_fractions_count_pixels_in_part() -> None:
    box, sigma, truth, size = [4.2, 5.1, 20.4, 15.2], [1.0, 2.0, 0.7, 3.0], [3.3, 4.75, 21.2, 16.5], (30, 24)
    cover = definition.heatmap(box, [np.diag([1.0, 4.0]), np.diag([0.49, 9.0])], *size, PAPER)

    def share(low: float, high: float, n: int) -> np.ndarray:
        at = np.arange(n)
        return np.clip(np.minimum(at + 1, high + 1) - np.maximum(at, low), 0, 1)

    inside = np.outer(share(truth[1], truth[3], size[1]), share(truth[0], truth[2], size[0]))
    assert inside.sum() == pytest.approx((21.2 + 1 - 3.3) * (16.5 + 1 - 4.75))
    fg = (inside * np.log(cover + EPSILON)).sum() / inside.sum()
    bg = ((1 - inside) * np.log(1 - cover + EPSILON)).sum() / inside.sum()
    given_ = {"log_std": torch.tensor([sigma], dtype=D).log(), "truth_boxes": torch.tensor([truth], dtype=D)}
    boxes = torch.tensor([box], dtype=D)
    assert foreground(boxes, log=True, image_size=size, **given_).item() == pytest.approx(fg, abs=1e-10)
    assert background(boxes, log=True, image_size=size, **given_).item() == pytest.approx(bg, abs=1e-10)
    # The same as ends: x2, y2 one pixel later, of the box and of the truth.
    later = torch.tensor([0.0, 0, 1, 1], dtype=D)
    given_["truth_boxes"] = given_["truth_boxes"] + later
    ends = spatial_quality(boxes + later, inclusive=False, image_size=size, **given_)
    assert ends.item() == pytest.approx(math.exp(fg + bg), abs=1e-10)


def test_a_leak_is_what_it_is_said_to_be() -> None:
    """The plain sums of (1 - leak) ln(P + e) + leak ln(P), and of 1 - P, for a box that mostly misses."""
    special = pytest.importorskip("scipy.special")
    box, sigma, truth, size, leak = [11.3, 8.2, 34.0, 25.4], 0.8, [4, 5, 16, 20], (60, 45), 0.05

    def profile(low: float, high: float, n: int) -> tuple[np.ndarray, np.ndarray]:
        at = np.arange(n)
        begins = special.ndtr((at + 1 - low) / sigma)
        log = special.log_ndtr((at + 1 - low) / sigma) + special.log_ndtr((high + 1 - at) / sigma)
        rest = special.ndtr(-(at + 1 - low) / sigma) + begins * special.ndtr(-(high + 1 - at) / sigma)
        return log, rest

    (log_u, not_u), (log_v, not_v) = profile(box[0], box[2], size[0]), profile(box[1], box[3], size[1])
    log_p = log_v[:, None] + log_u[None, :]
    q = not_u[None, :] + (1 - not_u)[None, :] * not_v[:, None]
    inside = np.zeros(log_p.shape, bool)
    inside[truth[1] : truth[3] + 1, truth[0] : truth[2] + 1] = True
    fg = (1 - leak) * np.logaddexp(log_p, math.log(EPSILON)) + leak * log_p
    bg = (1 - leak) * np.log(q + EPSILON) + leak * np.log(np.maximum(q, special.ndtr(-10.0)))
    expected = (fg[inside].sum() + bg[~inside].sum()) / inside.sum()
    got = spatial_quality(
        torch.tensor([box], dtype=D),
        log_std=torch.full((1, 4), math.log(sigma), dtype=D),
        truth_boxes=torch.tensor([truth]),
        leak=leak,
        log=True,
    )
    assert expected < -10
    assert (q[~inside] < EPSILON).mean() > 0.02
    assert got.item() == pytest.approx(expected, rel=1e-11)


def some_pairs() -> dict[str, Any]:
    torch.manual_seed(3)
    truth = torch.tensor([[10, 12, 30, 28], [3, 0, 20, 31], [15, 5, 39, 9]], dtype=D)
    masks = torch.zeros(3, 32, 40, dtype=torch.bool)
    for row, (x0, y0, x1, y1) in enumerate(truth.long().tolist()):
        masks[row, y0 : y1 + 1, x0 : x1 + 1] = torch.rand(y1 - y0 + 1, x1 - x0 + 1) < 0.7
        masks[row, y0, x0] = masks[row, y1, x1] = True
    return {
        "truth": truth,
        "masks": masks,
        "boxes": (truth + 2 * torch.randn(3, 4, dtype=D)).requires_grad_(),
        "log_std": (0.5 + 0.7 * torch.randn(3, 4, dtype=D)).requires_grad_(),
        "diagonal": (torch.rand(3, 2, 2, dtype=D) + 0.7).requires_grad_(),
        "across": torch.randn(3, 2, dtype=D).requires_grad_(),
        "logits": torch.randn(3, 4, dtype=D).requires_grad_(),
        "labels": torch.tensor([0, 2, 3]),
    }


@pytest.mark.parametrize("truth", others_slow(["masks", "boxes"]))
@pytest.mark.parametrize("form", ["log", "plain"])
@pytest.mark.parametrize("leak", others_slow([LEAK, 0.0]))
def test_gradients_are_those_of_the_loss(truth: str, form: str, leak: float) -> None:
    case = some_pairs()
    given_ = {"truth_labels": case["labels"], "form": form, "leak": leak, "image_size": (40, 32)}
    given_ |= {"truth_masks": case["masks"]} if truth == "masks" else {"truth_boxes": case["truth"] + 0.3}
    check = {"atol": 1e-6, "rtol": 1e-4}

    def diagonal(boxes: Any, log_std: Any, logits: Any) -> Any:
        return ppdq_loss(boxes, log_std=log_std, label_logits=logits, reduction="none", **given_)

    assert torch.autograd.gradcheck(diagonal, (case["boxes"], case["log_std"], case["logits"]), **check)

    def lower(diagonal: Any, across: Any) -> Any:
        upper = torch.stack([diagonal[..., 0], torch.zeros_like(across)], -1)
        return torch.stack([upper, torch.stack([across, diagonal[..., 1]], -1)], -2)

    def by_cholesky(boxes: Any, diagonal: Any, across: Any, logits: Any) -> Any:
        return ppdq_loss(boxes, cholesky=lower(diagonal, across), label_logits=logits, reduction="none", **given_)

    def by_covariance(boxes: Any, diagonal: Any, across: Any) -> Any:
        factor = lower(diagonal, across)
        return ppdq_loss(boxes, covariance=factor @ factor.transpose(-1, -2), reduction="none", **unlabelled)

    unlabelled = {name: value for name, value in given_.items() if name != "truth_labels"}
    corners = (case["boxes"], case["diagonal"], case["across"])
    # In fast mode Jacobians are compared along random directions: correlated corners take their time.
    assert torch.autograd.gradcheck(by_cholesky, (*corners, case["logits"]), fast_mode=True, **check)
    assert torch.autograd.gradcheck(by_covariance, corners, fast_mode=True, **check)


def test_gradients_where_a_sure_box_is_wrong() -> None:
    """Pixels whose P is 1 to the last digit lie outside the object, and others of P = 0 in it."""
    truth = torch.tensor([[4.0, 5.0, 16.0, 20.0]], dtype=D)
    boxes = torch.tensor([[11.3, 8.2, 34.1, 25.4]], dtype=D).requires_grad_()
    log_std = torch.tensor([[-0.6, -0.4, -0.5, -0.3]], dtype=D).requires_grad_()

    def value(boxes: Any, log_std: Any) -> Any:
        return spatial_quality(boxes, log_std=log_std, truth_boxes=truth, log=True, leak=0.3)

    assert value(boxes, log_std).item() < -20
    assert torch.autograd.gradcheck(value, (boxes, log_std), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", others_slow([torch.float32, torch.float64]))
@pytest.mark.parametrize("form", ["log", "plain"])
@pytest.mark.parametrize("full", [False, True])
def test_every_start_has_something_to_learn(dtype: Any, form: str, full: bool) -> None:
    """From sigma 0.05 to 200, and for boxes far away and outside the image: finite, and never without a gradient."""
    truth = torch.tensor([[100.0, 100.0, 140.0, 120.0]], dtype=dtype)
    for sigma in (0.05, 1.0, 20.0, 200.0):
        for off in (0.0, 3.0, 50.0, 1000.0, -1000.0):
            boxes = (truth + off).requires_grad_()
            if full:
                factor = torch.zeros(1, 2, 2, 2, dtype=dtype)
                factor[..., 0, 0] = factor[..., 1, 1] = sigma
                factor[..., 1, 0] = 0.5 * sigma
                spread = {"cholesky": factor.requires_grad_()}
            else:
                spread = {"log_std": torch.full((1, 4), math.log(sigma), dtype=dtype).requires_grad_()}
            loss = ppdq_loss(boxes, truth_boxes=truth, image_size=(320, 240), form=form, **spread)
            loss.backward()
            assert loss.dtype == dtype
            assert math.isfinite(loss.item())
            (learned,) = spread.values()
            for grad in (boxes.grad, learned.grad):
                assert bool(torch.isfinite(grad).all())
                assert grad.abs().max() > 1e-9 or off == 0.0
            if abs(off) >= 50:
                # Along the way home the loss falls: toward the truth, or toward saying that one is unsure.
                home = float((boxes.grad * torch.sign(torch.tensor(off))).sum())
                wider = -float(learned.grad.sum())
                assert home > 0
                assert wider > 0 or sigma == 200.0 or (sigma == 20.0 and off == 50.0)


@pytest.mark.parametrize("form", others_slow(["log", "plain"]))
def test_a_bad_box_becomes_a_good_one(form: str) -> None:
    truth = torch.tensor([[30.0, 40.0, 70.0, 60.0]], dtype=D)
    boxes = (truth + torch.tensor([[14.0, -11.0, 15.0, -12.0]], dtype=D)).requires_grad_()  # IoU 0.1
    log_std = torch.zeros(1, 4, dtype=D).requires_grad_()
    steps = torch.optim.Adam([{"params": [boxes], "lr": 1.0}, {"params": [log_std], "lr": 0.05}])
    for _ in range(120):
        steps.zero_grad()
        loss = ppdq_loss(boxes, log_std=log_std, truth_boxes=truth, image_size=(160, 120), form=form)
        loss.backward()
        steps.step()
    # Half a pixel inside at either end no pixel is in doubt.
    assert (boxes - truth - torch.tensor([0.5, 0.5, -0.5, -0.5])).abs().max() < 1.5


def test_boxes_of_a_batch_do_not_know_each_other() -> None:
    pairs = [Pair(seed, full=False, mask=False, sigmas=(0.1, 40.0)) for seed in range(40)]
    boxes = torch.tensor(np.array([pair.box for pair in pairs]))
    given_ = {
        "log_std": torch.tensor(np.log([pair.sigmas for pair in pairs])),
        "truth_boxes": torch.tensor(np.array([pair.truth for pair in pairs])),
        "image_size": torch.tensor([[pair.width, pair.height] for pair in pairs]),
    }
    together = spatial_quality(boxes, log=True, leak=0.01, **given_)
    alone = [
        spatial_quality(boxes[i : i + 1], log=True, leak=0.01, **{k: v[i : i + 1] for k, v in given_.items()}).item()
        for i in range(len(pairs))
    ]
    np.testing.assert_allclose(together.numpy(), alone, rtol=1e-12, atol=1e-13)
    covariance = torch.diag_embed(given_.pop("log_std").exp().square().reshape(-1, 2, 2))
    same = spatial_quality(boxes, covariance=covariance.requires_grad_(), log=True, leak=0.01, **given_)
    np.testing.assert_allclose(same.detach().numpy(), alone, rtol=1e-9, atol=1e-11)


def test_moved_mirrored_and_without_borders() -> None:
    box, truth = torch.tensor([[31.2, 42.7, 59.1, 66.6]], dtype=D), torch.tensor([[30.0, 41.0, 61.0, 68.0]], dtype=D)
    factor = torch.tensor([[[[2.0, 0.0], [0.7, 1.0]], [[1.5, 0.0], [-1.0, 2.0]]]], dtype=D)
    free = spatial_quality(box, cholesky=factor, truth_boxes=truth)
    inland = spatial_quality(box, cholesky=factor, truth_boxes=truth, image_size=(200, 200))
    moved = spatial_quality(box + 40, cholesky=factor, truth_boxes=truth + 40, image_size=(200, 200))
    assert free.item() == pytest.approx(inland.item(), abs=1e-13) == pytest.approx(moved.item(), abs=1e-13)
    # Turned by half a turn in an image of 100 x 100 the corners change places.
    turned = torch.tensor([99.0, 99.0, 99.0, 99.0], dtype=D) - box[:, [2, 3, 0, 1]]
    turned_truth = torch.tensor([99.0, 99.0, 99.0, 99.0], dtype=D) - truth[:, [2, 3, 0, 1]]
    half = spatial_quality(turned, cholesky=factor.flip(1), truth_boxes=turned_truth, image_size=(100, 100))
    assert half.item() == pytest.approx(free.item(), abs=1e-13)


def test_a_smaller_region_is_nearly_the_same() -> None:
    given_ = {"log_std": torch.full((1, 4), 1.0), "truth_boxes": torch.tensor([[30.0, 41.0, 90.0, 98.0]])}
    box = torch.tensor([[32.0, 40.0, 91.0, 95.0]])
    whole, part = (spatial_quality(box.double(), reach=reach, **given_).item() for reach in (10.0, 6.0))
    assert 0 < abs(whole - part) < 1e-6
    assert spatial_quality(box.double(), reach=1.0, **given_).item() > whole + 1e-3  # background was left out


def test_forms_weights_and_reductions() -> None:
    case = some_pairs()
    given_ = {"log_std": case["log_std"], "truth_boxes": case["truth"], "leak": 0.0}
    labels = {"label_logits": case["logits"], "truth_labels": case["labels"]}
    quality = spatial_quality(case["boxes"], log_std=case["log_std"], truth_boxes=case["truth"])
    right = torch.softmax(case["logits"], 1)[torch.arange(3), case["labels"]]
    each = ppdq_loss(case["boxes"], reduction="none", **given_, **labels)
    torch.testing.assert_close(each, -torch.log(torch.sqrt(quality * right)))
    plain = ppdq_loss(case["boxes"], form="plain", reduction="none", **given_, **labels)
    torch.testing.assert_close(plain, 1 - torch.sqrt(quality * right))
    weighed = ppdq_loss(case["boxes"], label_weight=0.2, reduction="none", **given_, **labels)
    torch.testing.assert_close(weighed, -torch.log(quality**0.8 * right**0.2))
    alone = ppdq_loss(case["boxes"], reduction="none", **given_)
    torch.testing.assert_close(alone, -torch.log(quality))
    sure = ppdq_loss(case["boxes"], activation="sigmoid", reduction="none", **given_, **labels)
    right = torch.sigmoid(case["logits"])[torch.arange(3), case["labels"]]
    torch.testing.assert_close(sure, -torch.log(torch.sqrt(quality * right)))
    torch.testing.assert_close(ppdq_loss(case["boxes"], **given_, **labels), each.mean())
    torch.testing.assert_close(ppdq_loss(case["boxes"], reduction="sum", **given_, **labels), each.sum())
    weights = torch.tensor([1.0, 0.0, 3.0])
    torch.testing.assert_close(
        ppdq_loss(case["boxes"], weights=weights, **given_, **labels), (each[0] + 3 * each[2]) / 4
    )
    nothing = ppdq_loss(torch.zeros(0, 4, requires_grad=True), log_std=torch.zeros(0, 4), truth_boxes=torch.zeros(0, 4))
    assert nothing.item() == 0.0
    nothing.backward()


def test_the_plain_form_goes_on_along_its_tangent() -> None:
    truth = torch.tensor([[10.0, 10.0, 30.0, 30.0]], dtype=D)
    values = []
    for off in (0.0, 6.0, 12.0, 40.0):
        given_ = {"log_std": torch.zeros(1, 4, dtype=D), "truth_boxes": truth, "leak": 0.01}
        plain, log = (ppdq_loss(truth + off, form=form, **given_).item() for form in ("plain", "log"))
        values.append(plain)
        if log <= -math.log(0.01):
            assert plain == pytest.approx(1 - math.exp(-log), rel=1e-12)
        else:
            assert plain == pytest.approx(1 - 0.01 + 0.01 * (log + math.log(0.01)), rel=1e-12)
    assert values == sorted(values)
    assert values[0] < 0.99 < 1.0 < values[-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"log_std": torch.full((1, 4), 10.0)}, "box 0: expected boxes to extend over at most 100,000 pixels"),
        ({"truth_boxes": torch.tensor([[50.0, 0, 55, 5]]), "image_size": (20, 20)}, "with pixels in the image"),
        ({"truth_boxes": None, "truth_masks": torch.ones(2, 20, 20)}, "expected truth_masks of shape (1, H, W)"),
        ({"truth_boxes": None, "truth_masks": torch.ones(1, 20, 20), "image_size": (20, 21)}, "of the image's size"),
        ({"image_size": (20,)}, "expected image_size to be (width, height)"),
        ({"image_size": (20.5, 20)}, "whole pixels"),
        ({"label_logits": torch.zeros(1, 3), "truth_labels": torch.tensor([1.0])}, "whole numbers"),
        ({"label_logits": torch.zeros(1, 3), "truth_labels": torch.tensor([1]), "activation": "relu"}, "softmax or"),
        ({"form": "other"}, "expected form to be log or plain"),
        ({"label_weight": 1.5}, "expected label_weight to be a number from 0 to 1"),
        ({"leak": -0.1}, "expected leak to be a number from 0 to 1"),
        ({"reach": math.nan}, "expected reach to be a number from 0 to 100"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(change: dict[str, Any], words: str) -> None:
    usual = {
        "boxes": torch.tensor([[1.0, 1, 5, 5]]),
        "log_std": torch.zeros(1, 4),
        "truth_boxes": torch.tensor([[1.0, 1, 5, 5]]),
    }
    with pytest.raises(InputError) as caught:
        ppdq_loss(**(usual | change))
    assert words in str(caught.value)


def test_parts_name_what_they_do_not_know() -> None:
    with pytest.raises(InputError, match="unknown argument 'label_logits'"):
        foreground(torch.zeros(1, 4), label_logits=torch.zeros(1, 2))


def test_many_boxes_have_the_numbers_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pixels are taken together by series and by pixels that stand as one: numbers and gradients stay."""
    from probox.torch import pixel_sums

    pairs = [Pair(seed, full=False, mask=False, sigmas=(0.05, 60.0)) for seed in range(150)]
    given_ = {
        "truth_boxes": torch.tensor(np.array([pair.truth for pair in pairs]) * 5 + 0.25),
        "image_size": torch.tensor([[pair.width * 5 + 5, pair.height * 5 + 5] for pair in pairs]),
    }
    answers = []
    for few in (0, 1 << 40):
        monkeypatch.setattr(pixel_sums, "FEW_PIXELS", few)
        boxes = torch.tensor(np.array([pair.box for pair in pairs]) * 5).requires_grad_()
        log_std = torch.tensor(np.log([pair.sigmas for pair in pairs])).requires_grad_()
        value = background(boxes, log_std=log_std, log=True, leak=0.05, **given_)
        value.sum().backward()
        answers.append((value.detach().numpy(), boxes.grad.numpy(), log_std.grad.numpy()))
    for together, one_by_one in zip(*answers, strict=True):
        np.testing.assert_allclose(together, one_by_one, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("late", [4.8, 5.4, 6.2, 9.0])  # P from 1e-6 to 1e-19: either side of where e begins to count
@pytest.mark.parametrize("mask", [False, True])
def test_a_leak_where_e_begins_to_count(late: float, mask: bool) -> None:
    special = pytest.importorskip("scipy.special")
    leak, x1 = 0.5, 1.0 + late  # the object is pixel 0, and the box begins this many sigmas after it
    log_p = special.log_ndtr(1 - x1)
    expected = (1 - leak) * np.logaddexp(log_p, math.log(EPSILON)) + leak * log_p
    there: dict[str, Any] = {"truth_boxes": torch.tensor([[20, 20, 20, 20]])}
    if mask:
        there = {"truth_masks": torch.zeros(1, 60, 60)}
        there["truth_masks"][0, 20, 20] = 1.0
    got = foreground(
        torch.tensor([[20.0 + x1, 9.5, 50.0, 40.0]], dtype=D),
        log_std=torch.tensor([[0.0, 0.0, -2.0, 0.0]], dtype=D),
        image_size=(60, 60),
        leak=leak,
        log=True,
        **there,
    )
    assert got.item() == pytest.approx(expected, abs=1e-10)


def test_a_corner_without_variance_counts_as_a_thousandth_of_a_pixel() -> None:
    truth = torch.tensor([[10.0, 10.0, 30.0, 30.0]], dtype=D)
    boxes = (truth + 0.4).requires_grad_()
    nothing = torch.zeros(1, 2, 2, 2, dtype=D).requires_grad_()
    value = spatial_quality(boxes, covariance=nothing, truth_boxes=truth, log=True)
    small = torch.full((1, 4), 1e-3, dtype=D).log()
    assert value.item() == pytest.approx(spatial_quality(boxes, log_std=small, truth_boxes=truth, log=True).item())
    value.backward()
    assert bool(torch.isfinite(nothing.grad).all())
    assert bool(torch.isfinite(boxes.grad).all())


def test_tails_far_out() -> None:
    low, high = torch.tensor([[-2020.0, 2000.0, 7.0, -0.001], [-2000.0, 2020.0, 7.005, 0.001]], dtype=D)
    # ln(phi(2000) / 2000) but for 1 / 2000^2, the density times the width, and the same in the middle
    norm = 0.5 * math.log(2 * math.pi)
    tail = -0.5 * 2000**2 - norm - math.log(2000)
    expected = [tail, tail, -0.5 * 7.0025**2 - norm + math.log(0.005), math.log(0.002) - norm]
    np.testing.assert_allclose(log_interval(low, high).numpy(), expected, rtol=1e-5)
    low, high = low.clone(), high.clone()
    low.requires_grad_(), high.requires_grad_()
    log_interval(low, high).sum().backward()
    np.testing.assert_allclose(low.grad.numpy()[:2], [0.0, -2000.0], rtol=1e-6)
    np.testing.assert_allclose(high.grad.numpy()[:2], [2000.0, 0.0], rtol=1e-6)


@pytest.mark.parametrize("rho", [0.1, -0.5, 0.51, 0.9, -0.95, 0.99, 0.9999])
def test_what_a_correlation_adds(rho: float) -> None:
    special = pytest.importorskip("scipy.special")
    h, k = np.random.default_rng(0).normal(0, 3, (2, 2000))
    k[:500] = h[:500] + 0.01
    k[500:900] = -h[500:900]
    given_ = [torch.tensor(v, dtype=D) for v in (h, k, np.full_like(h, rho))]
    expected = bivariate_cdf(h, k, rho) - special.ndtr(h) * special.ndtr(k)
    np.testing.assert_allclose(correlation_gain(*given_).numpy(), expected, rtol=0, atol=1e-14)
    some = [v[:: 2000 // 12].clone().requires_grad_() for v in given_]
    if abs(rho) < 0.99:
        assert torch.autograd.gradcheck(correlation_gain, some, atol=1e-6)
