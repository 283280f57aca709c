"""What a correlation of x and y within a corner changes: pixel by pixel, near that corner only.

With P = (p1 + g1)(p2 + g2), p1 and p2 being the maps of the corners as if uncorrelated and g1, g2 what the correlation
adds to them (`probox.torch.normal.correlation_gain`), the sums differ from those of uncorrelated corners only where g1
or g2 is not 0: within `FAR` sigmas of a corner on both axes, and in whole rows and columns where the corner comes so
near to the image's border.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from probox.torch.arguments import Corners
from probox.torch.axes import Nodes, every_pixel
from probox.torch.normal import FAR, between, correlation_gain
from probox.torch.pairs import EPSILON, Pairs, batches, share_of

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["correlation_sums"]


def correlation_sums(pairs: Pairs, reach: float, *, foreground: bool, background: bool) -> Tensor:
    """Return what correlations add to the sums over S of ln(P + e) and outside B of ln(1 - P + e), or to one, (N,)."""
    corners = pairs.corners
    assert corners.rho is not None
    result: Tensor = _Gain.apply(
        corners.boxes, corners.sigmas, corners.rho, pairs, min(reach, FAR), foreground, background
    )
    return result


class _Gain(torch.autograd.Function):
    """A few boxes at a time: the graph of their pixels is made, used for the gradient, and forgotten."""

    @staticmethod
    def forward(ctx: Any, boxes: Tensor, sigmas: Tensor, rho: Tensor, pairs: Pairs, far: float, *which: bool) -> Tensor:
        total, grads = boxes.new_zeros(len(boxes)), boxes.new_zeros(len(boxes), 10)
        needs = any(ctx.needs_input_grad[:3])
        near = [[_near(pairs, axis, end, far) for axis in (0, 1)] for end in (0, 1)]
        for corner in (0, 1):
            (x0, x1), (y0, y1) = near[corner]
            for some in batches((x1 - x0) * (y1 - y0)):
                at_x, at_y = (every_pixel(first[some], end[some]) for first, end in near[corner])
                # Pixels near both corners are counted with the first one.
                skip = [(first[some], end[some]) for first, end in near[0]] if corner else None
                with torch.enable_grad():
                    given = torch.cat([boxes[some], sigmas[some], rho[some]], 1).detach().requires_grad_(needs)
                    part = pairs.part(some, Corners(given[:, :4], given[:, 4:8], given[:, 8:]))
                    value = _pixel_sums(part, at_x, at_y, skip, *which)
                    total[some] += value.detach()
                    if needs:
                        grads[some] += torch.autograd.grad(value.sum(), given)[0]
        ctx.save_for_backward(grads)
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (grads,) = ctx.saved_tensors
        whole = grad[:, None] * grads
        return whole[:, :4], whole[:, 4:8], whole[:, 8:], None, None, None, None


def _near(pairs: Pairs, axis: int, end: int, far: float) -> tuple[Tensor, Tensor]:
    """Return the pixels of an axis where a corner's map has a gain, from a first one to before an end."""
    with torch.no_grad():
        line = (pairs.x, pairs.y)[axis]
        mean, sigma = (line.mean2, line.sigma2) if end else (line.mean1, line.sigma1)
        low, high = torch.floor(mean - far * sigma) - 1.0, torch.ceil(mean + far * sigma) + 1.0
        if line.size is None:
            return low, high
        # What is taken away beyond the border is so in all rows, or columns, after it.
        beyond = (line.size - mean) if end else mean
        at_border = beyond < far * sigma
        first, last = line.window(far)  # where the other corner leaves nothing, no gain is seen
        low = torch.where(at_border, first, torch.maximum(low, first))
        high = torch.where(at_border, last, torch.minimum(high, last))
        return low, torch.maximum(low, high)


class _Corner(NamedTuple):
    """A corner's map (N, m, n): as if uncorrelated, what that leaves of 1, and what the correlation adds."""

    plain: Tensor
    rest: Tensor
    gain: Tensor


def _pixel_sums(
    pairs: Pairs,
    at_x: Nodes,
    at_y: Nodes,
    skip: list[tuple[Tensor, Tensor]] | None,
    foreground: bool,
    background: bool,
) -> Tensor:
    """Return the gain of pairs at the crossings of two lists of pixels."""
    rho = pairs.corners.rho
    assert rho is not None
    first = _corner(*pairs.x.begins(at_x.places), *pairs.y.begins(at_y.places), rho[:, 0])
    # The bottom-right corner, turned by half a turn, is a top-left one with the same correlation.
    second = _corner(*pairs.x.ends(at_x.places), *pairs.y.ends(at_y.places), rho[:, 1])
    plain, rest = first.plain * second.plain, first.rest + first.plain * second.rest
    gain = first.plain * second.gain + first.gain * second.plain + first.gain * second.gain
    weight = ((at_y.counts > 0)[:, :, None] & (at_x.counts > 0)[:, None, :]).to(plain.dtype)
    if skip is not None:
        inside = [
            (at.places >= a[:, None]) & (at.places < b[:, None]) for at, (a, b) in zip((at_x, at_y), skip, strict=True)
        ]
        weight = weight * ~(inside[1][:, :, None] & inside[0][:, None, :])
    share_x = share_of(at_x, pairs.ends[:, 0], pairs.ends[:, 2])
    share_y = share_of(at_y, pairs.ends[:, 1], pairs.ends[:, 3])
    in_box = share_y[:, :, None] * share_x[:, None, :]
    total = plain.new_zeros(len(plain))
    if foreground:
        in_object = in_box
        if pairs.crops is not None:
            every = torch.arange(len(pairs), device=in_box.device)[:, None, None]
            column, row = (
                (at.places - pairs.ends[:, axis, None]).clamp(0, pairs.crops.shape[2 - axis] - 1).long()
                for axis, at in enumerate((at_x, at_y))
            )
            in_object = in_box * pairs.crops[every, row[:, :, None], column[:, None, :]]
        change = torch.log((plain + gain).clamp(min=0.0) + EPSILON) - torch.log(plain + EPSILON)
        total = total + (weight * in_object * change).sum((1, 2))
    if background:
        change = torch.log((rest - gain).clamp(min=0.0) + EPSILON) - torch.log(rest + EPSILON)
        total = total + (weight * (1.0 - in_box) * change).sum((1, 2))
    return total


def _corner(h: Tensor, low_h: Tensor | None, k: Tensor, low_k: Tensor | None, rho: Tensor) -> _Corner:
    """Return the map Pr(low_h <= X <= h, low_k <= Y <= k) for all h (N, n) and k (N, m)."""
    (of_h, not_h), (of_k, not_k) = between(low_h, h), between(low_k, k)
    wide, tall, rho = h[:, None, :], k[:, :, None], rho[:, None, None]
    gain = correlation_gain(wide, tall, rho)
    if low_h is not None and low_k is not None:
        left, above = low_h[:, None, :], low_k[:, :, None]
        gain = gain - correlation_gain(left, tall, rho) - correlation_gain(wide, above, rho)
        gain = gain + correlation_gain(left, above, rho)
    plain = of_k[:, :, None] * of_h[:, None, :]
    rest = not_h[:, None, :] + of_h[:, None, :] * not_k[:, :, None]
    return _Corner(plain, rest, gain)
