"""The head of Gaussian corners: its bounds and start, its gradients, maps, every loss with it, and that it learns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from probox import InputError

torch = pytest.importorskip("torch")

from probox.torch import ppdq_loss  # noqa: E402
from probox.torch.head import MAX_CORRELATION, CornerSpread, GaussianCorners  # noqa: E402
from probox.torch.losses import crps_loss, dmm_loss, energy_score_loss, nll_loss, pmb_nll_loss  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)
BOX = torch.tensor([[10.0, 10.0, 50.0, 30.0]])


def raw_of(*values: float, dtype: Any = torch.float32) -> Any:
    return torch.tensor([values], dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmas_stay_between_the_bounds_and_have_gradients(relative: bool, dtype: str) -> None:
    head = GaussianCorners(3, full=True, min_sigma=0.5, max_sigma=40.0, relative_to_size=relative)
    last = 0.0
    for u in (-60.0, -20.0, -3.0, 0.0, 3.0, 20.0, 500.0, 1e5):
        raw = raw_of(*[u] * 4, u / 100, -u / 100, dtype=getattr(torch, dtype))
        spread = head.spread(raw, BOX)
        assert spread.log_std.dtype == raw.dtype
        sigmas = spread.sigmas.detach()
        assert sigmas.min() >= 0.5 * (1 - 1e-6)
        assert sigmas.max() <= 40.0 * (1 + 1e-6)
        assert sigmas[0, 0] >= last
        last = float(sigmas[0, 0])
        assert spread.rho.abs().max() <= MAX_CORRELATION
        spread.log_std.sum().backward()
        assert torch.isfinite(raw.grad).all()
        assert (raw.grad[:, :4] > 0).all()


def test_sigmas_are_what_the_equation_says() -> None:
    head = GaussianCorners(3, full=True, min_sigma=0.25, max_sigma=100.25)
    spread = head.spread(raw_of(-2.0, 0.0, 1.0, 4.0, 0.5, -1.0, dtype=torch.float64), BOX)
    for found, u, side in zip(spread.sigmas[0].tolist(), (-2.0, 0.0, 1.0, 4.0), (40.0, 20.0, 40.0, 20.0), strict=True):
        s = math.log1p(math.exp(u)) * side
        assert found == pytest.approx(0.25 + s * 100.0 / (s + 100.0), rel=1e-12)
    assert spread.rho[0].tolist() == pytest.approx([0.99 * math.tanh(0.5), 0.99 * math.tanh(-1.0)], rel=1e-12)
    plain = GaussianCorners(3, relative_to_size=False).spread(raw_of(0.0, 1.0, 2.0, 3.0, dtype=torch.float64), BOX)
    s = np.log1p(np.exp([0.0, 1.0, 2.0, 3.0]))
    np.testing.assert_allclose(plain.sigmas[0].detach().numpy(), 0.05 + s * 199.95 / (s + 199.95), rtol=1e-12)
    assert plain.rho is None


def test_the_size_of_boxes_has_no_gradient_and_is_a_pixel_at_least() -> None:
    head = GaussianCorners(3)
    boxes = torch.tensor([[5.0, 5.0, 5.5, 2.0], [5.0, 5.0, 6.0, 6.0]], requires_grad=True)
    spread = head.spread(torch.zeros(2, 4), boxes)
    torch.testing.assert_close(spread.sigmas[0], spread.sigmas[1])
    assert not spread.log_std.requires_grad


def test_covariances_are_products_of_triangles() -> None:
    head = GaussianCorners(3, full=True)
    spread = head.spread(torch.randn(20, 6, dtype=torch.float64), BOX.double().expand(20, 4))
    lower = spread.cholesky
    assert lower.shape == (20, 2, 2, 2)
    assert not lower[..., 0, 1].any()
    torch.testing.assert_close(lower @ lower.mT, spread.covariance)
    sigmas = spread.sigmas.reshape(20, 2, 2)
    torch.testing.assert_close(spread.covariance.diagonal(dim1=-2, dim2=-1), sigmas**2)
    torch.testing.assert_close(spread.covariance[..., 0, 1], spread.rho * sigmas[..., 0] * sigmas[..., 1])
    plain = CornerSpread(spread.log_std)
    torch.testing.assert_close(plain.covariance, torch.diag_embed(sigmas**2))
    torch.testing.assert_close(plain.cholesky, torch.diag_embed(sigmas))
    assert list(spread.arguments()) == ["cholesky"]
    assert list(plain.arguments()) == ["log_std"]


def test_rows_are_chosen_as_of_a_tensor() -> None:
    spread = CornerSpread(torch.arange(24.0).reshape(2, 3, 4), torch.arange(12.0).reshape(2, 3, 2))
    chosen = spread[torch.tensor([[True, False, False], [False, False, True]])]
    assert chosen.log_std.tolist() == [[0, 1, 2, 3], [20, 21, 22, 23]]
    assert chosen.rho.tolist() == [[0, 1], [10, 11]]
    assert CornerSpread(spread.log_std)[0].rho is None


@pytest.mark.parametrize("full", [True, False])
def test_sigmas_start_where_they_are_told_to(full: bool) -> None:
    torch.manual_seed(0)
    features = torch.randn(400, 64)
    boxes = BOX.expand(400, 4)

    def start(**more: Any) -> Any:
        spread = GaussianCorners(64, full=full, **more)(features, boxes)
        assert (spread.rho is not None) == full
        if full:
            assert spread.rho.abs().max() < 0.5
        return spread.sigmas.median(0).values.tolist()

    wide = {"max_sigma": 1e6}
    assert start(**wide) == pytest.approx([4.0, 2.0, 4.0, 2.0], rel=0.05)
    assert start(start_sigma=0.3, **wide) == pytest.approx([12.0, 6.0, 12.0, 6.0], rel=0.05)
    assert start(relative_to_size=False) == pytest.approx([5.0] * 4, rel=0.05)
    assert start(relative_to_size=False, start_sigma=60.0) == pytest.approx([60.0] * 4, rel=0.05)


def test_defaults() -> None:
    head = GaussianCorners(7)
    assert (head.min_sigma, head.max_sigma, head.full, head.relative_to_size) == (0.05, 200.0, False, True)
    assert "sigma from 0.05 to 200" in repr(head)


def test_a_map_is_read_by_rows_columns_and_anchors() -> None:
    torch.manual_seed(1)
    conv = GaussianCorners(5, full=True, kernel_size=1, anchors=3)
    features, boxes = torch.randn(2, 5, 4, 6), 50 * torch.rand(2, 4 * 6 * 3, 4)
    assert conv.layer(features).shape == (2, 18, 4, 6)
    spread = conv(features, boxes)
    assert spread.log_std.shape == (2, 72, 4)
    assert spread.rho.shape == (2, 72, 2)
    image, row, column, anchor = 1, 2, 5, 1
    single = GaussianCorners(5, full=True)
    with torch.no_grad():
        single.layer.weight.copy_(conv.layer.weight[6 * anchor : 6 * anchor + 6, :, 0, 0])
        single.layer.bias.copy_(conv.layer.bias[6 * anchor : 6 * anchor + 6])
    place = (row * 6 + column) * 3 + anchor
    alone = single(features[image, :, row, column], boxes[image, place])
    torch.testing.assert_close(alone.log_std, spread[image, place].log_std)
    torch.testing.assert_close(alone.rho, spread[image, place].rho)


def test_a_kernel_keeps_the_size_of_the_map() -> None:
    head = GaussianCorners(5, kernel_size=3, anchors=2)
    start = head.layer.bias.detach()
    assert start.unique().numel() == 1
    assert head(torch.randn(1, 5, 7, 9), torch.rand(1, 126, 4)).log_std.shape == (1, 126, 4)
    assert head(torch.randn(0, 5, 7, 9), torch.rand(0, 126, 4)).log_std.shape == (0, 126, 4)


@pytest.mark.parametrize("loss", [ppdq_loss, nll_loss, energy_score_loss, crps_loss, dmm_loss, pmb_nll_loss])
@pytest.mark.parametrize("full", [True, False])
def test_every_loss_takes_it(loss: Any, full: bool) -> None:
    torch.manual_seed(2)
    head = GaussianCorners(8, full=full).double()
    features, boxes = torch.randn(4, 8, dtype=torch.float64), BOX.double().expand(4, 4)
    more = {"label_logits": torch.zeros(4, 3), "truth_labels": torch.tensor([0, 1, 1, 0])}

    def value(features: Any) -> Any:
        return loss(
            boxes, **head(features, boxes).arguments(), truth_boxes=boxes + torch.tensor([1.0, -1, 2, 3]), **more
        )

    total = value(features)
    total.backward()
    assert torch.isfinite(total)
    for part in (head.layer.weight, head.layer.bias):
        assert torch.isfinite(part.grad).all()
        assert (part.grad != 0).any()
    if loss is nll_loss:
        assert torch.autograd.gradcheck(value, features.requires_grad_())


def test_half_precision_features() -> None:
    head = GaussianCorners(8, full=True)
    spread = head.spread(torch.zeros(2, 6, dtype=torch.float16), torch.tensor([[0.0, 0, 9e4, 9e4], [0, 0, 5, 5]]))
    assert spread.log_std.dtype == spread.rho.dtype == torch.float32
    assert torch.isfinite(spread.covariance).all()


def test_it_learns_which_boxes_are_uncertain() -> None:
    """Edges are off by 2 or by 12 pixels, which a feature tells, and both edges of a corner together."""
    rng = np.random.default_rng(5)
    n = 3000
    loose = rng.integers(0, 2, n)
    shared = rng.normal(size=(n, 2, 1))
    errors = np.where(loose, 12.0, 2.0)[:, None, None] * (0.8 * shared + 0.6 * rng.normal(size=(n, 2, 2)))
    boxes = torch.tensor([[100.0, 100.0, 200.0, 200.0]]).expand(n, 4)
    truth = boxes + torch.tensor(errors.reshape(n, 4), dtype=torch.float32)
    features = torch.nn.functional.one_hot(torch.tensor(loose), 2).float()
    torch.manual_seed(0)
    head = GaussianCorners(2, full=True)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        nll_loss(boxes, **head(features, boxes).arguments(), truth_boxes=truth).backward()
        optimizer.step()
    spread = head(torch.eye(2), boxes[:2])
    assert spread.sigmas[0].tolist() == pytest.approx([2.0] * 4, rel=0.08)
    assert spread.sigmas[1].tolist() == pytest.approx([12.0] * 4, rel=0.08)
    assert spread.rho.flatten().tolist() == pytest.approx([0.64] * 4, abs=0.08)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"min_sigma": 0.0}, "0 < min_sigma < max_sigma"),
        ({"min_sigma": 5.0, "max_sigma": 5.0}, "0 < min_sigma < max_sigma"),
        ({"max_sigma": math.inf}, "0 < min_sigma < max_sigma"),
        ({"in_features": 0}, "in_features to be a whole number"),
        ({"anchors": 0, "kernel_size": 3}, "anchors to be a whole number"),
        ({"anchors": 2}, "anchors are for feature maps"),
        ({"kernel_size": 2}, "odd kernel_size"),
        ({"kernel_size": 1.5}, "kernel_size to be a whole number"),
        ({"start_sigma": 0.0}, "start_sigma to be a fraction above 0"),
        ({"start_sigma": math.nan}, "start_sigma to be a fraction above 0"),
        ({"start_sigma": 0.05, "relative_to_size": False}, "start_sigma between 0.05 and 200"),
        ({"start_sigma": 200.0, "relative_to_size": False}, "start_sigma between 0.05 and 200"),
    ],
)
def test_what_is_wrong_with_a_head_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        GaussianCorners(**{"in_features": 4, **given})


def test_shapes_are_checked() -> None:
    head, conv = GaussianCorners(4), GaussianCorners(4, kernel_size=3)
    with pytest.raises(InputError, match=r"features of shape \(..., 4\), but got \(2, 5\)"):
        head(torch.zeros(2, 5), torch.zeros(2, 4))
    with pytest.raises(InputError, match=r"features of shape \(B, 4, H, W\)"):
        conv(torch.zeros(2, 4), torch.zeros(2, 4))
    with pytest.raises(InputError, match=r"features of shape \(B, 4, H, W\)"):
        conv(torch.zeros(2, 3, 5, 5), torch.zeros(2, 25, 4))
    with pytest.raises(InputError, match=r"boxes of shape \(2, 4\)"):
        head(torch.zeros(2, 4), torch.zeros(3, 4))
    with pytest.raises(InputError, match=r"boxes of shape \(2, 25, 4\)"):
        conv(torch.zeros(2, 4, 5, 5), torch.zeros(2, 24, 4))
    with pytest.raises(InputError, match=r"outputs of \(2, 4\), but got \(2, 4\) and \(2, 6\)"):
        head.spread(torch.zeros(2, 6), torch.zeros(2, 4))
