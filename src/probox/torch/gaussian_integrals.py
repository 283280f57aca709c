"""Normal distributions with exact tails, and the probability that a box covers the pixels of one axis.

A box begins at X1 ~ N(m1, s1^2) and ends at X2 ~ N(m2, s2^2). It covers pixel x, from x to x + 1, on this axis with
probability

    u(x) = Pr(0 <= X1 <= x + 1) Pr(x <= X2 <= size).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from probox.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


LOG_ROOT = 0.5 * math.log(2 * math.pi)

FAR = 8.7
"""Beyond this many standard deviations on either axis, the coordinates of a corner count as independent: the error is
below 2e-18, the probability beyond."""


def normal_cdf(x: Tensor) -> Tensor:
    """Return Phi(x), with full relative precision in the lower tail."""
    return 0.5 * torch.special.erfc(x * -math.sqrt(0.5))


def normal_density(x: Tensor) -> Tensor:
    """Return phi(x)."""
    return torch.exp(-0.5 * x * x - LOG_ROOT)


def between(low: Tensor | None, high: Tensor) -> tuple[Tensor, Tensor]:
    """Return Phi(high) - Phi(low) and its complement, both exact where small; None is an open end."""
    inside, outside = normal_cdf(high), normal_cdf(-high)
    if low is None:
        return inside, outside
    below = normal_cdf(low)
    return (inside - below).clamp(min=0.0), outside + below


def log_interval(low: Tensor | None, high: Tensor | None) -> Tensor:
    """Return ln(Phi(high) - Phi(low)) for low < high; None is an open end.

    Intervals thousands of standard deviations away still have a finite logarithm and a gradient that points back.
    """
    if low is None:
        assert high is not None
        return torch.special.log_ndtr(high)
    if high is None:
        return torch.special.log_ndtr(-low)
    result: Tensor = _LogInterval.apply(*torch.broadcast_tensors(low, high))
    return result


class _LogInterval(torch.autograd.Function):
    """ln(Phi(b) - Phi(a)); its derivative, phi(b) over the difference, is the exponential of a difference of logs."""

    @staticmethod
    def forward(ctx: Any, low: Tensor, high: Tensor) -> Tensor:
        # The common tail is subtracted on the side where it is small, to avoid cancellation.
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

    by Gauss-Legendre quadrature. The gradient is exact and needs no integral: with s = sqrt(1 - rho^2),

        d/dh = phi(h) (Phi((k - rho h)/s) - Phi(k)),    d/drho = phi(h, k; rho).
    """
    result: Tensor = _CorrelationGain.apply(h, k, rho)
    return result


class _CorrelationGain(torch.autograd.Function):
    """Broadcasts its arguments late, so that rows and columns of pixels stay short as long as possible."""

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
    """Return nodes in 0..1 and weights; a higher correlation has a sharper integrand and needs more of them."""
    return _rule(16 if rho <= 0.5 else 28 if rho <= 0.9 else 72 if rho <= 0.99 else 400)


MOST_PIXELS = 100_000
"""Limit of pixels per axis: beyond, a std or a box has diverged."""


@dataclasses.dataclass(frozen=True)
class Nodes:
    """Pixels of an axis, each representing a range of pixels, padded to the longest range.

    Parameters
    ----------
    places : (N, n) tensor
        The pixels' numbers.
    counts : (N, n) tensor
        Pixels that each represents; 0 for padding.
    """

    places: Tensor
    counts: Tensor

    def numbers(self) -> Tensor:
        """Return the number of nodes of each box, (N,)."""
        return (self.counts > 0).sum(1)


def nodes(first: Tensor, hole: Tensor, hole_end: Tensor, end: Tensor, *, keep_hole: bool) -> Nodes:
    """Return nodes for the pixels from `first` up to, not including, `end`, all (N,) whole numbers in float64.

    Pixels from `hole` up to `hole_end` are skipped, or with `keep_hole` represented by one.
    """
    end = torch.maximum(first, end)
    hole = torch.minimum(torch.maximum(hole, first), end)
    hole_end = torch.minimum(torch.maximum(hole_end, hole), end)
    before, inside, after = hole - first, hole_end - hole, end - hole_end
    one = (inside > 0).to(inside.dtype) if keep_hole else torch.zeros_like(inside)
    at = _places(before + one + after)
    past = at - (before + one)[:, None]
    is_one = (at >= before[:, None]) & (past < 0)
    places = torch.where(past < 0, first[:, None] + at, hole_end[:, None] + past)
    counts = torch.where(past < after[:, None], torch.where(is_one, inside[:, None], 1.0), 0.0)
    return Nodes(places, counts)


def every_pixel(first: Tensor, end: Tensor) -> Nodes:
    """Return all pixels from `first` up to, not including, `end`, one node each.

    Padding repeats the first pixel: outside the image the logarithm is undefined, and 0 times its gradient is NaN.
    """
    at = _places(end - first)
    counts = (at < (end - first)[:, None]).to(first.dtype)
    return Nodes(first[:, None] + at * counts, counts)


def _places(lengths: Tensor) -> Tensor:
    """Return 0, 1, 2 ... up to the longest of the lengths, as a row."""
    longest = max(int(lengths.amax()), 0) if len(lengths) else 0
    if longest > MOST_PIXELS:
        raise InputError(
            f"expected boxes to extend over at most {MOST_PIXELS:,} pixels, but one covers {longest:,}",
            entry=f"box {int(lengths.argmax())}",
            remedy="pass image_size, or bound the standard deviations as GaussianCorners does",
        )
    return torch.arange(longest, device=lengths.device, dtype=lengths.dtype)[None, :]


@dataclasses.dataclass(frozen=True)
class Axis:
    """The two ends of boxes on one axis, (N,) each, and the image's size there; None for an unbounded image."""

    mean1: Tensor
    sigma1: Tensor
    mean2: Tensor
    sigma2: Tensor
    size: Tensor | None

    def begins(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return how far pixels (N, n) end after the box begins, and the same of the border, in std."""
        border = None if self.size is None else -self.mean1[:, None] / self.sigma1[:, None]
        return (places + 1.0 - self.mean1[:, None]) / self.sigma1[:, None], border

    def ends(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return how far pixels (N, n) begin before the box ends, and the same of the border, in std."""
        border = None if self.size is None else (self.mean2 - self.size)[:, None] / self.sigma2[:, None]
        return (self.mean2[:, None] - places) / self.sigma2[:, None], border

    def log_cover(self, places: Tensor) -> Tensor:
        """Return ln u of pixels (N, n)."""
        (first, low), (second, high) = self.begins(places), self.ends(places)
        return log_interval(low, first) + log_interval(-second, None if high is None else -high)

    def cover(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return u and 1 - u of pixels (N, n), both exact where small."""
        (first, low), (second, high) = self.begins(places), self.ends(places)
        (begun, not_begun), (ends, ended) = between(low, first), between(high, second)
        return begun * ends, not_begun + begun * ended

    def window(self, reach: float) -> tuple[Tensor, Tensor]:
        """Return the range of pixels, first and end, that the box may cover."""
        with torch.no_grad():
            first = torch.floor(self.mean1 - reach * self.sigma1) - 1.0
            end = torch.ceil(self.mean2 + reach * self.sigma2) + 1.0
            if self.size is not None:
                first, end = torch.clamp(first, min=0.0), torch.minimum(end, self.size)
            return first, torch.maximum(first, end)

    def plateau(self, reach: float) -> tuple[Tensor, Tensor]:
        """Return the range of pixels, first and end, between both edges, where u is constant."""
        with torch.no_grad():
            first = torch.ceil(self.mean1 + reach * self.sigma1 - 1.0)
            end = torch.floor(self.mean2 - reach * self.sigma2) + 1.0
            return first, torch.maximum(first, end)
