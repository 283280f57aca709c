"""One axis of a box: how likely it covers each pixel, and which pixels need looking at.

A box begins at X1 ~ N(m1, s1^2) and ends at X2 ~ N(m2, s2^2). Pixel x, from x to x + 1, is covered on this axis with
probability

    u(x) = Pr(0 <= X1 <= x + 1) Pr(x <= X2 <= size).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch

from probox.errors import InputError
from probox.torch.normal import between, log_interval

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Axis", "Nodes", "every_pixel", "nodes"]

MOST_PIXELS = 100_000
"""No axis is looked at farther: that is no image, but a sigma or a box that has run away."""


@dataclasses.dataclass(frozen=True)
class Nodes:
    """Pixels of an axis that stand for a range of them, padded to the longest range.

    Parameters
    ----------
    places : (N, n) tensor
        The pixels' numbers.
    counts : (N, n) tensor
        How many pixels each stands for; 0 for padding.
    """

    places: Tensor
    counts: Tensor

    def numbers(self) -> Tensor:
        """Return how many nodes each box has, (N,)."""
        return (self.counts > 0).sum(1)


def nodes(first: Tensor, hole: Tensor, hole_end: Tensor, end: Tensor, *, keep_hole: bool) -> Nodes:
    """Return nodes for the pixels from `first` to before `end`, all (N,) whole numbers in float64.

    Pixels from `hole` to before `hole_end` are left out, or with `keep_hole` all stand as one.
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
    """Return all pixels from `first` to before `end`, each by itself.

    Padding repeats the first: beyond the image there is no logarithm, and 0 times its gradient is not 0.
    """
    at = _places(end - first)
    counts = (at < (end - first)[:, None]).to(first.dtype)
    return Nodes(first[:, None] + at * counts, counts)


def _places(lengths: Tensor) -> Tensor:
    """Return 0, 1, 2 ... up to the longest of some lists, as a row."""
    longest = max(int(lengths.amax()), 0) if len(lengths) else 0
    if longest > MOST_PIXELS:
        raise InputError(
            f"expected boxes to reach over at most {MOST_PIXELS:,} pixels, but one takes {longest:,}",
            entry=f"box {int(lengths.argmax())}",
            remedy="give image_size, or bound sigmas as GaussianCorners does",
        )
    return torch.arange(longest, device=lengths.device, dtype=lengths.dtype)[None, :]


@dataclasses.dataclass(frozen=True)
class Axis:
    """The two ends of boxes on one axis, (N,) each, and the image's size there (None: it has no end)."""

    mean1: Tensor
    sigma1: Tensor
    mean2: Tensor
    sigma2: Tensor
    size: Tensor | None

    def begins(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return how far, in sigmas, pixels (N, n) end after the box begins, and the image's border before it."""
        border = None if self.size is None else -self.mean1[:, None] / self.sigma1[:, None]
        return (places + 1.0 - self.mean1[:, None]) / self.sigma1[:, None], border

    def ends(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return how far, in sigmas, pixels (N, n) begin before the box ends, and the image's border after it."""
        border = None if self.size is None else (self.mean2 - self.size)[:, None] / self.sigma2[:, None]
        return (self.mean2[:, None] - places) / self.sigma2[:, None], border

    def log_cover(self, places: Tensor) -> Tensor:
        """Return ln u of pixels (N, n)."""
        (first, low), (second, high) = self.begins(places), self.ends(places)
        return log_interval(low, first) + log_interval(-second, None if high is None else -high)

    def cover(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return u and 1 - u of pixels (N, n), either exact where it is small."""
        (first, low), (second, high) = self.begins(places), self.ends(places)
        (begun, not_begun), (ends, ended) = between(low, first), between(high, second)
        return begun * ends, not_begun + begun * ended

    def window(self, reach: float) -> tuple[Tensor, Tensor]:
        """Return the pixels that may be covered, from a first one to before an end."""
        with torch.no_grad():
            first = torch.floor(self.mean1 - reach * self.sigma1) - 1.0
            end = torch.ceil(self.mean2 + reach * self.sigma2) + 1.0
            if self.size is not None:
                first, end = torch.clamp(first, min=0.0), torch.minimum(end, self.size)
            return first, torch.maximum(first, end)

    def plateau(self, reach: float) -> tuple[Tensor, Tensor]:
        """Return the pixels between both ends that all have the same u, from a first one to before an end."""
        with torch.no_grad():
            first = torch.ceil(self.mean1 + reach * self.sigma1 - 1.0)
            end = torch.floor(self.mean2 - reach * self.sigma2) + 1.0
            return first, torch.maximum(first, end)
