"""Normal distributions whose logarithms and gradients hold far out in the tails."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["between", "correlation_gain", "log_interval", "normal_cdf", "normal_density"]

LOG_ROOT = 0.5 * math.log(2 * math.pi)

FAR = 8.7
"""Beyond so many standard deviations on either axis, the two coordinates of a corner count as independent: what is
neglected is below the 2e-18 that lie out there."""


def normal_cdf(x: Tensor) -> Tensor:
    """Return Phi(x), exact to the last digits of its smaller values too."""
    return 0.5 * torch.special.erfc(x * -math.sqrt(0.5))


def normal_density(x: Tensor) -> Tensor:
    """Return phi(x)."""
    return torch.exp(-0.5 * x * x - LOG_ROOT)


def between(low: Tensor | None, high: Tensor) -> tuple[Tensor, Tensor]:
    """Return Phi(high) - Phi(low) and what that leaves of 1, either exact where it is small; None is no bound."""
    inside, outside = normal_cdf(high), normal_cdf(-high)
    if low is None:
        return inside, outside
    below = normal_cdf(low)
    return (inside - below).clamp(min=0.0), outside + below


def log_interval(low: Tensor | None, high: Tensor | None) -> Tensor:
    """Return ln(Phi(high) - Phi(low)) for low < high; None is an end without a bound.

    Intervals thousands of standard deviations away have a finite logarithm, and a gradient that leads back.
    """
    if low is None:
        assert high is not None
        return torch.special.log_ndtr(high)
    if high is None:
        return torch.special.log_ndtr(-low)
    result: Tensor = _LogInterval.apply(*torch.broadcast_tensors(low, high))
    return result


class _LogInterval(torch.autograd.Function):
    """The derivative of ln(Phi(b) - Phi(a)) is phi(b) over the difference, taken as an exponential of logarithms."""

    @staticmethod
    def forward(ctx: Any, low: Tensor, high: Tensor) -> Tensor:
        # The tail that both ends share is taken away on the side where it is small.
        turned = low > 0
        near, far = torch.where(turned, -low, high), torch.where(turned, -high, low)
        above, below = torch.special.log_ndtr(near), torch.special.log_ndtr(far)
        gap = (below - above).clamp(max=-1e-300)
        value = above + torch.log(-torch.expm1(gap))
        ctx.save_for_backward(low, high, value)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        low, high, value = ctx.saved_tensors
        at_low, at_high = (torch.exp(-0.5 * end * end - LOG_ROOT - value) for end in (low, high))
        return -grad * at_low, grad * at_high


def correlation_gain(h: Tensor, k: Tensor, rho: Tensor) -> Tensor:
    """Return Pr(X <= h, Y <= k) - Phi(h) Phi(k) of standard normal variables with correlation rho.

    By the formula of Plackett (1954), with r = sin(t) (Drezner and Wesolowsky, 1990),

        1/(2 pi) * integral from 0 to asin(rho) of exp(-(h^2 - 2 h k sin(t) + k^2) / (2 cos(t)^2)) dt,

    by Gauss and Legendre. The gradient is exact and needs no integral: with s = sqrt(1 - rho^2),

        d/dh = phi(h) (Phi((k - rho h)/s) - Phi(k)),    d/drho = phi(h, k; rho).
    """
    result: Tensor = _CorrelationGain.apply(h, k, rho)
    return result


class _CorrelationGain(torch.autograd.Function):
    """Arguments are broadcast here and not before: rows and columns of pixels stay short for as long as they can."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, k: Tensor, rho: Tensor) -> Tensor:
        ctx.save_for_backward(h, k, rho)
        ctx.far = not h.numel() or not k.numel() or float(h.abs().amin()) > FAR or float(k.abs().amin()) > FAR
        total = h.new_zeros(torch.broadcast_shapes(h.shape, k.shape, rho.shape))
        if ctx.far:
            return total
        end = torch.asin(rho)
        squares, product = -0.5 * (h * h + k * k), h * k
        for place, weight in _nodes(float(rho.abs().amax())):
            # -(h^2 - 2 h k sin + k^2) / (2 cos^2)
            sine = torch.sin(end * place)
            over = 1.0 / (1.0 - sine * sine)
            total.add_(torch.addcmul(squares * over, product, sine * over).exp_(), alpha=weight)
        return total * (end / (2.0 * math.pi))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h, k, rho = ctx.saved_tensors
        if ctx.far:
            return torch.zeros_like(h), torch.zeros_like(k), torch.zeros_like(rho)
        root = torch.sqrt((1.0 - rho) * (1.0 + rho))
        to_h = normal_density(h) * (normal_cdf((k - rho * h) / root) - normal_cdf(k))
        to_k = normal_density(k) * (normal_cdf((h - rho * k) / root) - normal_cdf(h))
        to_rho = torch.exp((rho * h * k - 0.5 * (h * h + k * k)) / (root * root)) / (2.0 * math.pi * root)
        return tuple((grad * to).sum_to_size(own.shape) for to, own in ((to_h, h), (to_k, k), (to_rho, rho)))


@functools.lru_cache(maxsize=4)
def _rule(number: int) -> tuple[tuple[float, float], ...]:
    places, weights = np.polynomial.legendre.leggauss(number)
    return tuple(zip(((places + 1) / 2).tolist(), (weights / 2).tolist(), strict=True))


def _nodes(rho: float) -> tuple[tuple[float, float], ...]:
    """Return places in 0..1 and weights; a higher correlation has a sharper integrand."""
    return _rule(16 if rho <= 0.5 else 28 if rho <= 0.9 else 72 if rho <= 0.99 else 400)
