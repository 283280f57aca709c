"""Sums over foreground and background pixels, without and with correlation of x and y within a corner.

Without correlation P(x, y) = u(x) v(y). The effect of a correlation is summed pixel by pixel near its corner: with
P = (p1 + g1)(p2 + g2), where p1 and p2 are the maps of uncorrelated corners and g1 and g2 the gains due to correlation
(`correlation_gain`), the sums change only where g1 or g2 is not 0: within `FAR` standard deviations of a corner on
both axes, and in whole rows and columns for corners that are this close to the image's border.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from probox.torch.arguments import EPSILON, Corners, ObjectPixels, Pairs, batches, share_of
from probox.torch.gaussian_integrals import FAR, Axis, Nodes, between, correlation_gain, every_pixel, nodes

if TYPE_CHECKING:
    from torch import Tensor


SEPARABLE = 1e-8
"""If every P of an object is at least this, e is a first-order correction with an error below 1e-12."""

NO_FLOOR = 1e-3
"""If every P of a mask is at least this, e is neglected: its effect is below 1e-11."""

SMALL = 0.1
"""Where u v is below this, ln(1 - u v) is a series of `TERMS` terms, exact to 1e-16."""

SMALL_REACH = 1.2816
"""Beyond the ends of a box by this many standard deviations, u is below `SMALL`."""

TERMS = 15

FEW_PIXELS = 1 << 17
"""Batches with fewer pixels than this around their boxes are summed pixel by pixel."""

LEAKY = 1e-4
"""Where 1 - P is at least this, its leak is below 1e-10 and neglected."""


def foreground_sums(pairs: Pairs, leak: float) -> Tensor:
    """Return the sum over S of (1 - leak) ln(P + e) + leak ln(P) = ln(P) + (1 - leak) ln(1 + e / P)."""
    pixels = ObjectPixels.of(pairs)
    log_u, log_v = pairs.x.log_cover(pixels.x.places), pairs.y.log_cover(pixels.y.places)
    in_column, in_row = pixels.in_lines()
    total = (in_column * log_u).sum(1) + (in_row * log_v).sum(1)
    with torch.no_grad():
        least = sum(
            log.masked_fill(share == 0, math.inf).amin(1)
            for log, share in ((log_u, pixels.share_x), (log_v, pixels.share_y))
        )
        low = least < math.log(SEPARABLE if pairs.crops is None else NO_FLOOR)
    high, rows = (~low).nonzero()[:, 0], low.nonzero()[:, 0]
    if pairs.crops is None and len(high):
        # To first order ln(1 + e / P) is e / (u v), whose sum is a product of two sums.
        of_u, of_v = (
            (share[high] * torch.exp(-log[high].clamp(min=math.log(SEPARABLE)))).sum(1)
            for log, share in ((log_u, pixels.share_x), (log_v, pixels.share_y))
        )
        total = total.index_add(0, high, (1.0 - leak) * EPSILON * of_u * of_v)
    if len(rows) and leak < 1:
        total = total + (1.0 - leak) * _Floor.apply(log_u, log_v, pixels, rows)
    return total


class _Sum(torch.autograd.Function):
    """Base of sums, one per box, whose gradients are computed in the forward pass and saved."""

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rest = len(ctx.needs_input_grad) - len(ctx.saved_tensors)
        return (*(grad[:, None] * to for to in ctx.saved_tensors), *[None] * rest)


class _Floor(_Sum):
    """The sum of ln(1 + e / (u v)) over the pixels of selected objects, from ln u and ln v; 0 for others."""

    @staticmethod
    def forward(ctx: Any, log_u: Tensor, log_v: Tensor, pixels: ObjectPixels, rows: Tensor) -> Tensor:
        total, to_u, to_v = torch.zeros_like(log_u[:, 0]), torch.zeros_like(log_u), torch.zeros_like(log_v)
        numbers_x, numbers_y = pixels.x.numbers()[rows], pixels.y.numbers()[rows]
        for batch in batches(numbers_x * numbers_y):
            nx, ny, some = int(numbers_x[batch].amax()), int(numbers_y[batch].amax()), rows[batch]
            over = (math.log(EPSILON) - log_v[some, :ny, None]) - log_u[some, None, :nx]
            weight = pixels.weights(some, nx, ny)
            total[some] = (weight * torch.nn.functional.softplus(over, threshold=40.0)).sum((1, 2))
            slope = weight * torch.sigmoid(over)
            to_u[some, :nx], to_v[some, :ny] = -slope.sum(1), -slope.sum(2)
        ctx.save_for_backward(to_u, to_v)
        return total


def background_sums(pairs: Pairs, leak: float, reach: float) -> Tensor:
    """Return the sum outside B of (1 - leak) ln(1 - P + e) + leak ln(1 - P), in the leak 1 - P not below Phi(-reach).

    Where u or v is below `SMALL`, ln(1 - u v) is a short series whose terms are products of a sum over columns and one
    over rows. The remaining pixels form two blocks that are summed pixel by pixel: all pixels of columns outside B, and
    in columns of B the pixels of rows outside B. Small batches are summed pixel by pixel throughout, which is faster.
    """
    least = 0.5 * math.erfc(reach / math.sqrt(2.0))
    if _few_pixels(pairs, reach):
        columns, rows = (
            _List.of(line, every_pixel(*line.window(reach)), pairs.ends[:, axis::2])
            for axis, line in enumerate((pairs.x, pairs.y))
        )
        everywhere: Tensor = _Outside.apply(columns.cover, rows.cover, columns, rows, leak, least)
        return everywhere
    x, y = (_Lists.of(line, pairs.ends[:, axis::2], reach) for axis, line in enumerate((pairs.x, pairs.y)))
    total = torch.zeros_like(pairs.ends[:, 0])
    for columns, rows in ((x.tail, y.every), (x.core, y.tail)):
        if columns.longest and rows.longest:
            total = total + _Series.apply(columns.cover, rows.cover, columns, rows)
    for columns, rows in ((x.outside, y.core), (x.filled, y.outside)):
        if columns.longest and rows.longest:
            total = total + _Outside.apply(columns.cover, rows.cover, columns, rows, leak, least)
    return total


def _few_pixels(pairs: Pairs, reach: float) -> bool:
    (left, right), (top, bottom) = pairs.x.window(reach), pairs.y.window(reach)
    return len(pairs) * float((right - left).amax() * (bottom - top).amax()) <= FEW_PIXELS


@dataclasses.dataclass(frozen=True)
class _List:
    """Pixels of one axis: probability that the box covers them, its complement, and the fraction of each in B."""

    at: Nodes
    cover: Tensor
    rest: Tensor
    share: Tensor

    @classmethod
    def of(cls, axis: Axis, at: Nodes, ends: Tensor) -> _List:
        cover, rest = axis.cover(at.places)
        return cls(at, cover, rest.detach(), share_of(at, ends[:, 0], ends[:, 1]))

    @property
    def longest(self) -> int:
        return int(self.at.places.shape[1])

    def weights(self, sign: float) -> Tensor:
        """Return two lists (N, n, 2) whose products sum to counts (1 - fraction in B)."""
        return torch.stack([self.at.counts, sign * self.at.counts * self.share], 2)


@dataclasses.dataclass(frozen=True)
class _Lists:
    """Lists of pixels of an axis.

    `core` holds the pixels where u may exceed `SMALL`, split into `filled`, inside B, and `outside`. `tail` holds the
    rest of `every`, all pixels within reach. Pixels well inside both the box and B are represented by one.
    """

    core: _List
    filled: _List
    outside: _List
    tail: _List
    every: _List

    @classmethod
    def of(cls, axis: Axis, ends: Tensor, reach: float) -> _Lists:
        low, high = ends[:, 0], ends[:, 1]
        (first, end), (wide, wide_end) = axis.window(min(SMALL_REACH, reach)), axis.window(reach)
        full = torch.ceil(low)
        full_end = torch.maximum(full, torch.floor(high))
        plain, plain_end = axis.plateau(reach)
        alike = torch.maximum(plain, full), torch.minimum(plain_end, full_end)
        made = (
            nodes(first, *alike, end, keep_hole=True),
            nodes(torch.maximum(first, full), *alike, torch.minimum(end, full_end), keep_hole=True),
            nodes(first, full, full_end, end, keep_hole=False),
            nodes(wide, first, end, wide_end, keep_hole=False),
            nodes(wide, *alike, wide_end, keep_hole=True),
        )
        return cls(*(_List.of(axis, at, ends) for at in made))


class _Series(_Sum):
    """The sum over pixels of w ln(1 - u v) as a power series in u v, where u v is below `SMALL`."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, columns: _List, rows: _List) -> Tensor:
        left, right = columns.weights(-1.0), rows.weights(1.0)
        sums_u, sums_v = (_power_sums(cover, weights) for cover, weights in ((u, left), (v, right)))  # (K, N, 2)
        order = torch.arange(1, TERMS + 1, dtype=u.dtype, device=u.device)[:, None]
        total = -((sums_u * sums_v).sum(2) / order).sum(0)
        ctx.save_for_backward(_slope(u, left, sums_v), _slope(v, right, sums_u))
        return total


def _power_sums(cover: Tensor, weights: Tensor) -> Tensor:
    """Return the sums of w u^k for k = 1 .. TERMS, (TERMS, N, 2)."""
    sums, power = [], weights.transpose(1, 2)
    for _ in range(TERMS):
        power = power * cover[:, None, :]
        sums.append(power.sum(2))
    return torch.stack(sums)


def _slope(cover: Tensor, weights: Tensor, others: Tensor) -> Tensor:
    """Return the derivative of the series by each u: minus the sum of w u^(k - 1) S_k, by Horner's rule."""
    value = others[-1][:, None, :].expand_as(weights)
    for at in range(TERMS - 2, -1, -1):
        value = value * cover[:, :, None] + others[at][:, None, :]
    return -(weights * value).sum(2)


class _Outside(_Sum):
    """The sum over pixels of w f(1 - u v), f(q) = ln(q + e) - leak ln(1 + e / q).

    In the leak q is at least `least`, because a pixel that represents several has no exact q.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, columns: _List, rows: _List, leak: float, least: float) -> Tensor:
        total, to_u, to_v = u.new_zeros(len(u)), torch.zeros_like(u), torch.zeros_like(v)
        numbers_x, numbers_y = columns.at.numbers(), rows.at.numbers()
        all_left, all_right = columns.weights(-1.0), rows.weights(1.0)
        for some in batches(numbers_x * numbers_y):
            nx, ny = int(numbers_x[some].amax()), int(numbers_y[some].amax())
            left, right = all_left[some, :nx], all_right[some, :ny]
            mine, other = u[some, :nx], v[some, :ny]
            # 1 - u v = (1 - u) + u (1 - v): no cancellation near 0
            q = torch.addcmul(columns.rest[some, :nx, None], mine[:, :, None], rows.rest[some, None, :ny])
            value, slope = torch.log(q + EPSILON), torch.reciprocal(q + EPSILON)
            if leak > 0:
                small = q < LEAKY
                if bool(small.any()):
                    own = q[small]
                    low = own.clamp(min=least)
                    value[small] -= leak * torch.log1p(EPSILON / low)
                    slope[small] += leak * (own >= least) * EPSILON / (low * (low + EPSILON))
            total[some] = (left * torch.bmm(value, right)).sum((1, 2))
            to_u[some, :nx] = -(left * torch.bmm(slope, right * other[:, :, None])).sum(2)
            to_v[some, :ny] = -(right * torch.bmm(slope.transpose(1, 2), left * mine[:, :, None])).sum(2)
        ctx.save_for_backward(to_u, to_v)
        return total


def correlation_sums(pairs: Pairs, reach: float, *, foreground: bool, background: bool) -> Tensor:
    """Return the change of the sums over S of ln(P + e) and outside B of ln(1 - P + e), or of one, (N,)."""
    corners = pairs.corners
    assert corners.rho is not None
    result: Tensor = _Gain.apply(
        corners.boxes, corners.sigmas, corners.rho, pairs, min(reach, FAR), foreground, background
    )
    return result


class _Gain(_Sum):
    """Correlation gains of a few boxes at a time, whose graph is freed after its gradient, to limit memory."""

    @staticmethod
    def forward(ctx: Any, boxes: Tensor, sigmas: Tensor, rho: Tensor, pairs: Pairs, far: float, *which: bool) -> Tensor:
        total, grads = boxes.new_zeros(len(boxes)), boxes.new_zeros(len(boxes), 10)
        needs = any(ctx.needs_input_grad[:3])
        near = [[_near(pairs, axis, end, far) for axis in (0, 1)] for end in (0, 1)]
        for corner in (0, 1):
            (x0, x1), (y0, y1) = near[corner]
            for some in batches((x1 - x0) * (y1 - y0)):
                at_x, at_y = (every_pixel(first[some], end[some]) for first, end in near[corner])
                # Pixels near both corners are counted with the first one only.
                skip = [(first[some], end[some]) for first, end in near[0]] if corner else None
                with torch.enable_grad():
                    given = torch.cat([boxes[some], sigmas[some], rho[some]], 1).detach().requires_grad_(needs)
                    part = pairs.part(some, Corners(given[:, :4], given[:, 4:8], given[:, 8:]))
                    value = _pixel_sums(part, at_x, at_y, skip, *which)
                    total[some] += value.detach()
                    if needs:
                        grads[some] += torch.autograd.grad(value.sum(), given)[0]
        ctx.save_for_backward(*grads.split([4, 4, 2], 1))
        return total


def _near(pairs: Pairs, axis: int, end: int, far: float) -> tuple[Tensor, Tensor]:
    """Return the range of pixels of an axis, first and end, where a corner's map has a gain."""
    with torch.no_grad():
        line = (pairs.x, pairs.y)[axis]
        mean, sigma = (line.mean2, line.sigma2) if end else (line.mean1, line.sigma1)
        low, high = torch.floor(mean - far * sigma) - 1.0, torch.ceil(mean + far * sigma) + 1.0
        if line.size is None:
            return low, high
        # The mass removed beyond the border is removed in all later rows or columns, too.
        beyond = (line.size - mean) if end else mean
        at_border = beyond < far * sigma
        first, last = line.window(far)  # outside, the other corner's map is 0 and hides the gain
        low = torch.where(at_border, first, torch.maximum(low, first))
        high = torch.where(at_border, last, torch.minimum(high, last))
        return low, torch.maximum(low, high)


class _Corner(NamedTuple):
    """A corner's map (N, m, n): without correlation, its complement, and the gain due to correlation."""

    plain: Tensor
    rest: Tensor
    gain: Tensor


def _pixel_sums(
    pairs: Pairs, at_x: Nodes, at_y: Nodes, skip: list[tuple[Tensor, Tensor]] | None, foreground: bool, background: bool
) -> Tensor:
    """Return the gain of pairs over the pixels of two axes."""
    rho = pairs.corners.rho
    assert rho is not None
    first = _corner(*pairs.x.begins(at_x.places), *pairs.y.begins(at_y.places), rho[:, 0])
    # Rotated by 180 degrees, the bottom-right corner is a top-left one with the same correlation.
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
