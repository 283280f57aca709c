"""The losses of matched boxes: against their definitions, their gradients, at extremes, and what they teach."""

from __future__ import annotations

import inspect
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples

torch = pytest.importorskip("torch")

from probox import InputError  # noqa: E402
from probox.measures.scoring import score_definition  # noqa: E402
from probox.measures.scoring.scores import energy_scores  # noqa: E402
from probox.torch import ppdq_loss  # noqa: E402
from probox.torch.losses import crps_loss, dmm_loss, energy_score_loss, nll_loss, pmb_nll_loss  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)  # tensors are small, and tests run side by side
LOSSES = [nll_loss, energy_score_loss, crps_loss, dmm_loss]
SPREADS = ["log_std", "cholesky", "covariance"]
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_spread = pytest.mark.parametrize("spread", SPREADS)


def corners_for(seed: int, n: int, *, low: float = 0.05, high: float = 200.0, far: float = 1e4) -> dict[str, Any]:
    """Return random boxes, their truth and their covariances: tiny, huge, round, narrow, some hit to the bit."""
    rng = np.random.default_rng(seed)
    sigmas = np.exp(rng.uniform(math.log(low), math.log(high), (n, 2, 2)))
    sigmas[rng.random(n) < 0.2] = rng.choice([low, 1.0, high])
    rho = np.where(rng.random((n, 2)) < 0.3, 0.0, np.tanh(1.5 * rng.normal(size=(n, 2)))).clip(-0.999, 0.999)
    sizes = np.exp(rng.uniform(math.log(1e-3), math.log(far), (n, 4))) * rng.choice([-1.0, 0.0, 1.0], (n, 4))
    truth = np.tile([100.0, 50.0, 3e4, 2e4], (n, 1))
    boxes = truth - sizes
    across = rho * sigmas[..., 0] * sigmas[..., 1]
    covariances = np.stack(
        [np.stack([sigmas[..., 0] ** 2, across], -1), np.stack([across, sigmas[..., 1] ** 2], -1)], -2
    )
    return {"boxes": boxes, "truth": truth, "covariances": covariances, "residuals": truth - boxes}


def spread_of(name: str, covariances: np.ndarray, **kind: Any) -> dict[str, Any]:
    value = {
        "log_std": lambda: 0.5 * np.log(np.diagonal(covariances, axis1=-2, axis2=-1).reshape(-1, 4)),
        "cholesky": lambda: np.linalg.cholesky(covariances),
        "covariance": lambda: covariances,
    }[name]()
    return {name: torch.tensor(value, **kind)}


def values_of(loss: Any, case: dict[str, Any], spread: str = "covariance", **more: Any) -> np.ndarray:
    boxes, truth = torch.tensor(case["boxes"]), torch.tensor(case["truth"])
    given = spread_of(spread, case["covariances"])
    return loss(boxes, **given, truth_boxes=truth, reduction="none", **more).numpy()


def uncorrelated(case: dict[str, Any]) -> dict[str, Any]:
    return {**case, "covariances": case["covariances"] * np.eye(2)}


@pytest.mark.parametrize(
    ("loss", "score", "count"),
    [(energy_score_loss, score_definition.energy_score, 2), (nll_loss, score_definition.negative_log_likelihood, 4)],
)
@examples(30)
@given(seed=st.integers(0, 2**32 - 1))
def test_they_are_the_definition(loss: Any, score: Any, count: int, seed: int) -> None:
    case = corners_for(seed, count)
    wanted = [score(r, c) for r, c in zip(case["residuals"], case["covariances"], strict=True)]
    np.testing.assert_allclose(values_of(loss, case), wanted, rtol=1e-9, atol=1e-9 if loss is nll_loss else 0)


def crps_by_integration(residual: float, sigma: float) -> float:
    """Return the integral of (F(x) - 1[x >= y])^2, with the mean at 0."""
    from scipy.integrate import quad
    from scipy.stats import norm

    ends = sorted([-10.0 * sigma, residual, 10.0 * sigma])
    low, high = ends[0], ends[-1]
    parts = sorted({low, *(k * sigma for k in (-4, -1, 0, 1, 4) if low < k * sigma < high), residual, high})
    return sum(
        quad(lambda x: (norm.cdf(x / sigma) - (x >= residual)) ** 2, a, b, epsrel=1e-12, epsabs=0)[0]
        for a, b in itertools.pairwise(parts)
        if b > a
    )


@pytest.mark.parametrize(
    ("residual", "sigma"), [(0.0, 3.0), (1.3, 0.5), (-7.0, 3.0), (40.0, 2.0), (-0.2, 0.05), (150.0, 200.0)]
)
def test_crps_is_its_integral(residual: float, sigma: float) -> None:
    boxes = torch.zeros(1, 4, dtype=torch.float64)
    truth = torch.tensor([[min(residual, 0), 0.0, max(residual, 0), 0.0]], dtype=torch.float64)
    log_std = torch.full((1, 4), math.log(sigma), dtype=torch.float64)
    found = crps_loss(boxes, log_std=log_std, truth_boxes=truth).item()
    wanted = crps_by_integration(residual, sigma) + 3 * crps_by_integration(0.0, sigma)
    assert found == pytest.approx(wanted, rel=1e-9)


@given(st.integers(0, 2**32 - 1))
@examples(30)
def test_crps_is_the_energy_score_of_one_coordinate(seed: int) -> None:
    case = corners_for(seed, 5)
    sigmas = np.sqrt(np.diagonal(case["covariances"], axis1=-2, axis2=-1).reshape(-1, 4))
    z = case["residuals"] / sigmas
    phi = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    erf = np.vectorize(math.erf)(z / math.sqrt(2))
    wanted = (sigmas * (z * erf + 2 * phi - 1 / math.sqrt(math.pi))).sum(1)
    np.testing.assert_allclose(values_of(crps_loss, case), wanted, rtol=1e-9)
    np.testing.assert_array_equal(
        values_of(crps_loss, case, "log_std"), values_of(crps_loss, uncorrelated(case), "log_std")
    )


def smooth(gap: float, delta: float) -> float:
    return gap * gap / (2 * delta) if abs(gap) < delta else abs(gap) - delta / 2


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 1.0, 50.0]), st.sampled_from(SPREADS))
@examples(40)
def test_dmm_is_its_sums(seed: int, delta: float, spread: str) -> None:
    case = corners_for(seed, 3, far=20.0, high=20.0)
    wanted = []
    for residual, corners in zip(case["residuals"], case["covariances"], strict=True):
        loss = sum(smooth(r, delta) if delta else abs(r) for r in residual)
        for r, block in zip(residual.reshape(2, 2), corners, strict=True):
            gaps = block - np.outer(r, r)
            kept = np.diagonal(gaps) if spread == "log_std" else gaps.ravel()
            loss += sum(smooth(g, delta) if delta else abs(g) for g in kept)
        wanted.append(loss)
    np.testing.assert_allclose(values_of(dmm_loss, case, spread, delta=delta), wanted, rtol=1e-9)


@each_loss
def test_the_three_ways_to_give_corners_are_one(loss: Any) -> None:
    case = corners_for(3, 50)
    np.testing.assert_allclose(values_of(loss, case, "cholesky"), values_of(loss, case, "covariance"), rtol=1e-9)
    plain = uncorrelated(case)
    if loss is not dmm_loss:  # which has four entries to match instead of eight
        np.testing.assert_allclose(values_of(loss, plain, "log_std"), values_of(loss, plain, "covariance"), rtol=1e-9)


@each_loss
def test_whether_gradients_are_wanted_does_not_change_values(loss: Any) -> None:
    case = uncorrelated(corners_for(4, 20))
    boxes, truth = torch.tensor(case["boxes"]), torch.tensor(case["truth"])
    for spread in SPREADS:
        without = loss(boxes, **spread_of(spread, case["covariances"]), truth_boxes=truth)
        given = spread_of(spread, case["covariances"], requires_grad=True)
        torch.testing.assert_close(loss(boxes, **given, truth_boxes=truth).detach(), without, rtol=1e-12, atol=0)


def test_beta_weighs_each_coordinate_by_its_variance() -> None:
    boxes = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    truth = torch.tensor([[1.0, 0.0, 2.0, 3.0]], dtype=torch.float64)
    sigmas = torch.tensor([[0.5, 1.0, 2.0, 4.0]], dtype=torch.float64)
    log_std = sigmas.log().requires_grad_()
    for beta in (0.0, 0.5, 1.0):
        loss = nll_loss(boxes, log_std=log_std, truth_boxes=truth, beta=beta)
        each = 0.5 * (truth / sigmas) ** 2 + sigmas.log() + 0.5 * math.log(2 * math.pi)
        assert loss.item() == pytest.approx(float((each * sigmas ** (2 * beta)).sum()), rel=1e-12)
        means, logs = torch.autograd.grad(loss, [boxes, log_std])
        torch.testing.assert_close(means, -truth * sigmas ** (2 * beta - 2))
        torch.testing.assert_close(logs, (1 - (truth / sigmas) ** 2) * sigmas ** (2 * beta))


@each_loss
@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_labels_add_their_cross_entropy(loss: Any, activation: str) -> None:
    case = corners_for(5, 3)
    logits = torch.tensor([[2.0, -1.0], [0.5, 0.5], [-30.0, 400.0]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 0])
    right, wrong = np.array([2.0, 0.5, -30.0]), np.array([-1.0, 0.5, 400.0])
    entropy = np.logaddexp(0, wrong - right) if activation == "softmax" else np.logaddexp(0, -right)
    plain = values_of(loss, case)
    for weight in (1.0, 0.25, 0.0):
        found = values_of(
            loss, case, label_logits=logits, truth_labels=labels, activation=activation, label_weight=weight
        )
        np.testing.assert_allclose(found, plain + weight * entropy, rtol=1e-12)
    default = values_of(loss, case, label_logits=logits, truth_labels=labels, activation=activation)
    np.testing.assert_allclose(default, plain + entropy, rtol=1e-12)


@pytest.mark.parametrize("loss", [*LOSSES, pmb_nll_loss])
@pytest.mark.parametrize("inclusive", [True, False])
def test_of_a_mask_its_box_is_taken(loss: Any, inclusive: bool) -> None:
    masks = torch.zeros(1, 40, 60, dtype=torch.bool)
    masks[0, 10:31, 20:51] = True
    masks[0, 15:20, 5] = True
    truth = torch.tensor([[5.0, 10.0, 50.0, 30.0]])
    if not inclusive:
        truth[:, 2:] += 1
    boxes = torch.tensor([[6.0, 11.0, 48.0, 30.0]])
    labels = {"label_logits": torch.tensor([[2.0, 0.0]]), "truth_labels": torch.tensor([0]), "image_size": (60, 40)}
    given = {"log_std": torch.zeros(1, 4), "inclusive": inclusive, **labels}
    by_mask = loss(boxes, truth_masks=masks, **given)
    assert by_mask == loss(boxes, truth_boxes=truth, **given)
    if loss is not pmb_nll_loss:
        assert by_mask == loss(boxes, truth_boxes=truth, **{**given, "image_size": (7, 7)})


def test_all_losses_take_the_arguments_of_ppdq() -> None:
    names = {
        loss.__name__: set(inspect.signature(loss).parameters) - {"beta", "delta"} for loss in (*LOSSES, ppdq_loss)
    }
    common = names.pop("ppdq_loss") - {"form", "leak", "reach"}
    assert list(names.values()) == [common] * 4


@each_loss
def test_reductions_and_weights(loss: Any) -> None:
    case = corners_for(6, 4)
    boxes, truth = torch.tensor(case["boxes"]), torch.tensor(case["truth"])
    given = {**spread_of("cholesky", case["covariances"]), "truth_boxes": truth}
    each = loss(boxes, **given, reduction="none")
    assert each.shape == (4,)
    weights = torch.tensor([1.0, 0.0, 2.5, 0.5])
    torch.testing.assert_close(loss(boxes, **given), each.mean())
    torch.testing.assert_close(loss(boxes, **given, reduction="sum"), each.sum())
    torch.testing.assert_close(loss(boxes, **given, weights=weights), (each * weights).sum() / 4.0)


@each_loss
def test_an_edge_may_be_certain(loss: Any) -> None:
    """A variance of 0 is one, and counts as the least that there is."""
    boxes, truth = torch.tensor([[10.0, 10, 50, 40]]), torch.tensor([[11.0, 10, 50, 42]])
    covariance = torch.diag(torch.tensor([4.0, 0.0])).expand(1, 2, 2, 2)
    assert bool(torch.isfinite(loss(boxes, covariance=covariance, truth_boxes=truth)))


@each_loss
def test_no_boxes_have_no_loss(loss: Any) -> None:
    boxes = torch.zeros(0, 4, requires_grad=True)
    log_std = torch.zeros(0, 4, requires_grad=True)
    total = loss(boxes, log_std=log_std, truth_boxes=torch.zeros(0, 4))
    total.backward()
    assert total.item() == 0.0
    assert log_std.grad.shape == (0, 4)


@each_loss
@each_spread
def test_gradients_are_those_of_differences(loss: Any, spread: str) -> None:
    case = corners_for(11, 3, low=0.5, high=8.0, far=9.0)
    boxes = torch.tensor(case["boxes"], requires_grad=True)
    (value,) = spread_of(spread, case["covariances"]).values()
    value = value.requires_grad_()
    logits = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    labels, truth = torch.tensor([0, 3, 1]), torch.tensor(case["truth"])

    def losses(boxes: Any, value: Any, logits: Any) -> Any:
        if spread == "cholesky":
            value = value.tril()
        if spread == "covariance":
            value = (value + value.mT) / 2
        return loss(
            boxes, **{spread: value}, truth_boxes=truth, label_logits=logits, truth_labels=labels, reduction="none"
        )

    assert torch.autograd.gradcheck(losses, (boxes, value, logits), rtol=1e-4, atol=1e-6)


@each_loss
@each_spread
def test_gradients_at_the_truth(loss: Any, spread: str) -> None:
    """Round corners whose means are right: where lengths and eigenvalues have no gradient."""
    truth = torch.tensor([[10.0, 20.0, 50.0, 60.0]], dtype=torch.float64)
    boxes = truth.clone().requires_grad_()
    (value,) = spread_of(spread, np.tile(4.0 * np.eye(2), (1, 2, 1, 1))).values()
    value = value.requires_grad_()
    loss(boxes, **{spread: value}, truth_boxes=truth).backward()
    assert boxes.grad.abs().max() < 1e-12
    assert torch.isfinite(value.grad).all()
    assert (value.grad != 0).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@each_loss
@each_spread
def test_everything_is_finite(loss: Any, spread: str, dtype: str) -> None:
    kind = getattr(torch, dtype)
    sigmas = [0.05, 1.0, 200.0]
    residuals = [0.0, 1e-3, 1.0, 1e4]
    grid = np.array([(sx, sy, r, q) for sx in sigmas for sy in sigmas for r in residuals for q in residuals])
    n = len(grid)
    for rho in (0.0, 0.9, -0.999):
        block = np.zeros((n, 2, 2, 2))
        block[..., 0, 0], block[..., 1, 1] = grid[:, :1] ** 2, grid[:, 1:2] ** 2
        block[..., 0, 1] = block[..., 1, 0] = rho * grid[:, :1] * grid[:, 1:2]
        truth = torch.tensor(np.tile([1e4, 1e4, 2e4, 2e4], (n, 1)), dtype=kind)
        boxes = truth - torch.tensor(np.concatenate([grid[:, 2:], -grid[:, 2:]], 1), dtype=kind)
        boxes.requires_grad_()
        (value,) = spread_of(spread, block, dtype=kind).values()
        value.requires_grad_()
        total = loss(boxes, **{spread: value}, truth_boxes=truth, reduction="none")
        assert total.dtype == kind
        assert torch.isfinite(total).all()
        total.sum().backward()
        assert boxes.grad.dtype == value.grad.dtype == kind
        assert torch.isfinite(boxes.grad).all()
        assert torch.isfinite(value.grad).all()
        if loss in (energy_score_loss, crps_loss):  # the others have places where sigma fits to the bit
            assert (value.grad.flatten(1) != 0).any(1).all()


def test_energy_has_exact_gradients_at_extremes() -> None:
    """A unit that is a thousand times a sigma must not hide its gradient: differences of the exact score know it."""
    case = corners_for(23, 60)
    log_std = torch.tensor(spread_of("log_std", case["covariances"])["log_std"].numpy(), requires_grad=True)
    boxes, truth = torch.tensor(case["boxes"]), torch.tensor(case["truth"])
    energy_score_loss(boxes, log_std=log_std, truth_boxes=truth, reduction="sum").backward()
    sigmas = np.exp(log_std.detach().numpy())
    step = 1e-4
    for column in range(4):
        scores = []
        for sign in (1, -1):
            moved = sigmas.copy()
            moved[:, column] *= math.exp(sign * step)
            blocks = moved.reshape(-1, 2, 2)[..., None] ** 2 * np.eye(2)
            scores.append(energy_scores(case["residuals"], blocks))
        slope = (scores[0] - scores[1]) / (2 * step)
        np.testing.assert_allclose(log_std.grad[:, column].numpy(), slope, rtol=2e-6, atol=1e-7)


def learned_sigma(loss: Any, residuals: np.ndarray, rate: float, **more: Any) -> float:
    truth = torch.tensor(residuals.reshape(-1, 4)) + torch.tensor([0.0, 0.0, 100.0, 100.0])
    boxes = torch.tensor([[0.0, 0.0, 100.0, 100.0]], dtype=torch.float64).expand(len(truth), 4)
    log_std = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([log_std], lr=rate)
    for _ in range(40):
        optimizer.zero_grad()
        loss(boxes, log_std=log_std.expand(len(truth), 4), truth_boxes=truth, **more).backward()
        optimizer.step()
    return math.exp(log_std.item())


RESIDUALS = 3.0 * np.random.default_rng(8).normal(size=4000)


@pytest.mark.parametrize(("loss", "rate"), [(nll_loss, 0.05), (energy_score_loss, 0.3), (crps_loss, 0.2)])
def test_proper_losses_learn_sigma(loss: Any, rate: float) -> None:
    sigma = learned_sigma(loss, RESIDUALS, rate)
    assert sigma == pytest.approx(3.0, rel=0.03)
    assert sigma == pytest.approx(math.sqrt(np.mean(RESIDUALS**2)), rel=1e-4 if loss is nll_loss else 0.01)


def test_moment_matching_learns_the_median_of_squares() -> None:
    """It is 0.4549 sigma^2 of a Gaussian; only with a square for the distance it is sigma^2."""
    assert learned_sigma(dmm_loss, RESIDUALS, 0.02) == pytest.approx(3.0 * math.sqrt(0.4549), rel=0.03)
    assert learned_sigma(dmm_loss, RESIDUALS, 5.0, delta=1e4) == pytest.approx(3.0, rel=0.03)


@each_loss
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"boxes": torch.zeros(2, 5)}, r"boxes of shape \(N, 4\)"),
        ({"boxes": torch.zeros(2, 4, dtype=torch.int64)}, r"boxes to hold floats.*convert it with .float\(\)"),
        ({"boxes": [[0.0] * 4]}, "boxes to be a tensor"),
        ({"boxes": torch.full((2, 4), math.nan)}, "row 0: expected boxes to be finite"),
        ({"log_std": torch.zeros(3, 4)}, r"log_std of shape \(2, 4\)"),
        ({"log_std": torch.full((2, 4), math.inf)}, "log_std to be finite"),
        ({"log_std": torch.full((2, 4), 20.0, requires_grad=True)}, "below 1e6 pixels, but log_std gives 4.85e"),
        ({"log_std": None}, "expected one of log_std, cholesky and covariance, but got none"),
        ({"cholesky": torch.zeros(2, 2, 2, 2)}, "log_std and cholesky"),
        ({"log_std": None, "cholesky": torch.ones(2, 2, 2, 2)}, "lower triangles"),
        ({"log_std": None, "cholesky": -torch.eye(2).expand(2, 2, 2, 2)}, "diagonal"),
        ({"log_std": None, "covariance": -torch.ones(2, 2, 2, 2)}, "positive semi-definite"),
        ({"truth_boxes": None}, "expected one of truth_boxes and truth_masks, but got none"),
        ({"truth_masks": torch.ones(2, 5, 5, dtype=torch.bool)}, "but got both"),
        ({"truth_boxes": torch.zeros(3, 4)}, r"truth_boxes of shape \(2, 4\)"),
        ({"truth_boxes": torch.tensor([[0.0, 0, 1, 1], [5, 0, 1, 1]])}, "row 1: expected x1 <= x2"),
        (
            {"truth_boxes": None, "truth_masks": torch.zeros(2, 5, 5, dtype=torch.bool)},
            "truth_masks, row 0: expected a mask with pixels",
        ),
        ({"label_logits": torch.zeros(2, 3)}, "truth_labels is missing"),
        ({"truth_labels": torch.zeros(2, dtype=torch.int64)}, "label_logits is missing"),
        ({"label_logits": torch.zeros(2, 3), "truth_labels": torch.tensor([0, 3])}, "class from 0 to 2, but got 3"),
        ({"label_logits": torch.full((2, 3), math.nan), "truth_labels": torch.tensor([0, 1])}, "label_logits"),
        ({"label_weight": -1.0}, "label_weight"),
        ({"label_weight": math.nan}, "label_weight"),
        ({"weights": torch.tensor([1.0, -1.0])}, "weights of at least 0"),
        ({"weights": torch.ones(3)}, r"weights of shape \(2\)"),
        ({"reduction": "median"}, "expected reduction to be mean, sum or none"),
    ],
)
def test_what_is_wrong_is_named(loss: Any, change: dict[str, Any], named: str) -> None:
    given: dict[str, Any] = {
        "boxes": torch.tensor([[0.0, 0, 9, 9], [1, 1, 5, 5]]),
        "log_std": torch.zeros(2, 4),
        "truth_boxes": torch.tensor([[0.0, 0, 8, 8], [1, 2, 5, 6]]),
    }
    assert math.isfinite(loss(**given))
    with pytest.raises(InputError, match=named):
        loss(**{**given, **change})


def test_keywords_of_one_loss_are_checked() -> None:
    boxes = torch.tensor([[0.0, 0, 9, 9]])
    for beta in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError, match="beta from 0 to 1"):
            nll_loss(boxes, log_std=torch.zeros(1, 4), truth_boxes=boxes, beta=beta)
    with pytest.raises(InputError, match="without correlation"):
        nll_loss(boxes, cholesky=torch.eye(2).expand(1, 2, 2, 2), truth_boxes=boxes, beta=0.5)
    for delta in (-1.0, math.inf):
        with pytest.raises(InputError, match="delta"):
            dmm_loss(boxes, log_std=torch.zeros(1, 4), truth_boxes=boxes, delta=delta)
