"""Normal distributions whose logarithms and gradients hold far out in the tails."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["correlation_gain", "log_interval", "normal_cdf", "normal_density"]

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
        value = above + torch.where(gap > -0.7, torch.log(-torch.expm1(gap)), torch.log1p(-torch.exp(gap)))
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
    result: Tensor = _CorrelationGain.apply(*torch.broadcast_tensors(h, k, rho))
    return result


class _CorrelationGain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, k: Tensor, rho: Tensor) -> Tensor:
        ctx.save_for_backward(h, k, rho)
        value = torch.zeros_like(h)
        near = (h.abs() < FAR) & (k.abs() < FAR)
        if not bool(near.any()):
            return value
        a, b, end = h[near], k[near], torch.asin(rho[near])
        squares, twice = -0.5 * (a * a + b * b), a * b
        total = torch.zeros_like(a)
        for place, weight in _nodes(float(rho.abs().max())):
            sine = torch.sin(end * place)
            # -(a^2 - 2 a b sin + b^2) / (2 cos^2)
            total += weight * torch.exp((squares + twice * sine) / (1.0 - sine * sine))
        value[near] = total * end / (2.0 * math.pi)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h, k, rho = ctx.saved_tensors
        to_h, to_k, to_rho = (torch.zeros_like(h) for _ in range(3))
        near = (h.abs() < FAR) & (k.abs() < FAR)
        a, b, r = h[near], k[near], rho[near]
        root = torch.sqrt((1.0 - r) * (1.0 + r))
        to_h[near] = normal_density(a) * (normal_cdf((b - r * a) / root) - normal_cdf(b))
        to_k[near] = normal_density(b) * (normal_cdf((a - r * b) / root) - normal_cdf(a))
        to_rho[near] = torch.exp(-(a * a - 2 * r * a * b + b * b) / (2 * root * root)) / (2 * math.pi * root)
        return grad * to_h, grad * to_k, grad * to_rho


@functools.lru_cache(maxsize=4)
def _rule(number: int) -> tuple[tuple[float, float], ...]:
    places, weights = np.polynomial.legendre.leggauss(number)
    return tuple(zip(((places + 1) / 2).tolist(), (weights / 2).tolist(), strict=True))


def _nodes(rho: float) -> tuple[tuple[float, float], ...]:
    """Return places in 0..1 and weights; a higher correlation has a sharper integrand."""
    return _rule(16 if rho <= 0.5 else 28 if rho <= 0.9 else 72 if rho <= 0.99 else 400)
