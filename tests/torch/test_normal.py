"""Normal distributions far out in the tails, and with a correlation: values and gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probox.measures.pdq.heatmap_definition import bivariate_cdf

torch = pytest.importorskip("torch")

from probox.torch.gaussian_integrals import correlation_gain, log_interval  # noqa: E402

pytestmark = pytest.mark.torch

torch.set_num_threads(1)  # tensors are small, and tests run side by side

D = torch.float64


def test_tails_far_out() -> None:
    low, high = (
        torch.tensor([-2020.0, 2000.0, 7.0, -0.001], dtype=D),
        torch.tensor([-2000.0, 2020.0, 7.005, 0.001], dtype=D),
    )
    value = log_interval(low, high)
    # ln(phi(2000) / 2000) but for 1 / 2000^2, the density times the width, and the same in the middle
    tail = -0.5 * 2000**2 - 0.5 * math.log(2 * math.pi) - math.log(2000)
    np.testing.assert_allclose(
        value.numpy(),
        [
            tail,
            tail,
            -0.5 * 7.0025**2 - 0.5 * math.log(2 * math.pi) + math.log(0.005),
            math.log(0.002 / math.sqrt(2 * math.pi)),
        ],
        rtol=1e-5,
    )
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
