"""pPDQ as a loss, and the spatial quality it is made of, with a gradient: the measure under preset ``paper``.

With the object's pixels S, its box B and e = 1e-14,

    foreground = sum over S of ln(P + e),    background = sum outside B of ln(1 - P + e),
    FG = exp(foreground / |S|),   BG = exp(background / |S|),   Q_S = FG BG,

P being the probability that a pixel is part of the detected box (`probox.measures.pdq.definition`).

**Cost.** If corners are uncorrelated, P(x, y) = u(x) v(y). The foreground is then separable: ln(P + e) = ln u + ln v
but for pixels with P below 1e-8, and only boxes that have such pixels are looked at pixel by pixel. The background is
looked at within `reach` sigmas of the box; farther out P counts as 0. Where u or v is below 0.1 it is a short
series of separable terms, and pixels that surely lie between both edges are all alike and stand as one. So a box costs
O(W + H), and pixel by pixel only where it is likely to lie outside its object, which is a seam of about a sigma around
a box that fits. A correlation within a corner is looked at pixel by pixel near that corner.

**Where there is something to learn.** e makes ln(P + e) level where P is far below it: a box that misses its object
would get no gradient at all. With `leak` > 0 each pixel's ln(P + e) becomes

    (1 - leak) ln(P + e) + leak ln(P),

which is the same but for leak e / P wherever P is well above e, and goes on falling by leak ln(P) below, so that the
gradient leads back from any distance; ln(1 - P + e) likewise, in whose leak 1 - P is at least Phi(-reach), 8e-24.
ln(P) is never taken of a number: it is made of logarithms of tails. Of correlated corners, the leak is that of the same
corners without the correlation.
"""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any, Literal

import torch

from probox.errors import InputError
from probox.torch.arguments import Pairs, Reduction, check_number, label_log_probs, pairs_of, reduce_losses
from probox.torch.pixel_sums import background_sums, correlation_sums, foreground_sums

if TYPE_CHECKING:
    from torch import Tensor


REACH = 10.0
"""The region: pixels farther than this many sigmas outside the box have P < 1e-23, and count as 0; those as far inside
have 1 - P < 1e-23, which is nothing beside e."""


def spatial_quality(
    boxes: Tensor,
    *,
    log_std: Tensor | None = None,
    cholesky: Tensor | None = None,
    covariance: Tensor | None = None,
    truth_boxes: Tensor | None = None,
    truth_masks: Tensor | None = None,
    image_size: tuple[int, int] | Tensor | None = None,
    inclusive: bool = True,
    log: bool = False,
    leak: float = 0.0,
    reach: float = REACH,
) -> Tensor:
    """Return Q_S of each box with its object, (N,): FG times BG, under preset ``paper``.

    Parameters
    ----------
    boxes : (N, 4) tensor
        Means of x1, y1, x2, y2 in pixels.
    log_std, cholesky, covariance : tensor
        How uncertain the corners are, one of them: logarithms of standard deviations (N, 4), lower triangles
        (N, 2, 2, 2), or covariances (N, 2, 2, 2), in pixels.
    truth_boxes : (N, 4) tensor
        The objects' boxes, if they fill them. Pixels that such a box covers in part count in part.
    truth_masks : (N, H, W) tensor
        The objects' pixels. Background is what lies outside their boxes.
    image_size : (int, int) or (N, 2) tensor, optional
        Width and height: what a corner has beyond is taken away, as the measure does. Default: those of masks; none
        for boxes.
    inclusive : bool
        x2, y2 name the last pixel of boxes, as everywhere in probox; False: where it ends, as in torchvision. It holds
        for the truth's boxes, too.
    log : bool
        Return the logarithm, which does not underflow.
    leak : float
        From 0 to 1: as for `ppdq_loss`. With 0 it is the measure, to the last digits.
    reach : float
        The region in sigmas; 6 takes a third less time, and is off by about 1e-7.

    Examples
    --------
    >>> import torch
    >>> from probox.torch import spatial_quality
    >>> boxes = torch.tensor([[11.0, 19.0, 41.0, 40.0]])
    >>> quality = spatial_quality(boxes, log_std=torch.zeros(1, 4), image_size=(64, 48),
    ...                           truth_boxes=torch.tensor([[10.0, 20.0, 40.0, 40.0]]))
    >>> round(quality.item(), 4)
    0.7356
    """
    pairs = pairs_of(
        boxes,
        log_std=log_std,
        cholesky=cholesky,
        covariance=covariance,
        truth_boxes=truth_boxes,
        truth_masks=truth_masks,
        image_size=image_size,
        inclusive=inclusive,
    )
    value = log_quality(pairs, leak=leak, reach=reach)
    return (value if log else value.exp()).to(boxes.dtype)


def foreground(boxes: Tensor, *, log: bool = False, leak: float = 0.0, reach: float = REACH, **given: Any) -> Tensor:
    """Return FG of each box with its object, (N,); arguments are those of `spatial_quality`."""
    value = log_quality(_given(boxes, given), leak=leak, reach=reach, background=False)
    return (value if log else value.exp()).to(boxes.dtype)


def background(boxes: Tensor, *, log: bool = False, leak: float = 0.0, reach: float = REACH, **given: Any) -> Tensor:
    """Return BG of each box with its object, (N,); arguments are those of `spatial_quality`."""
    value = log_quality(_given(boxes, given), leak=leak, reach=reach, foreground=False)
    return (value if log else value.exp()).to(boxes.dtype)


_ARGUMENTS = tuple(inspect.signature(pairs_of).parameters)[1:]
"""Names of what describes pairs; read once, since losses are computed at every step of a training."""


def _given(boxes: Tensor, given: dict[str, Any]) -> Pairs:
    for name in given:
        if name not in _ARGUMENTS:
            raise InputError(f"unknown argument {name!r:.40}", remedy=f"choose from {', '.join(_ARGUMENTS)}")
    return pairs_of(boxes, **given)


def log_quality(pairs: Pairs, *, leak: float, reach: float, foreground: bool = True, background: bool = True) -> Tensor:
    """Return ln Q_S, (N,), or one of its parts ln FG and ln BG."""
    check_number(leak, "leak")
    check_number(reach, "reach", 100.0)
    total = 0.0 * pairs.corners.boxes.sum(1)
    if not len(pairs):
        return total
    if foreground:
        total = total + foreground_sums(pairs, leak)
    if background:
        total = total + background_sums(pairs, leak, reach)
    if pairs.corners.rho is not None:
        total = total + correlation_sums(pairs, reach, foreground=foreground, background=background)
    return total / pairs.pixels()


LEAK = 1e-2
"""How much of a gradient is kept where the measure itself is level."""


def ppdq_loss(
    boxes: Tensor,
    *,
    log_std: Tensor | None = None,
    cholesky: Tensor | None = None,
    covariance: Tensor | None = None,
    label_logits: Tensor | None = None,
    truth_labels: Tensor | None = None,
    truth_boxes: Tensor | None = None,
    truth_masks: Tensor | None = None,
    image_size: tuple[int, int] | Tensor | None = None,
    activation: str = "softmax",
    label_weight: float = 0.5,
    inclusive: bool = True,
    form: Literal["log", "plain"] = "log",
    leak: float = LEAK,
    reach: float = REACH,
    weights: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return -ln pPDQ, or 1 - pPDQ, of boxes that were assigned to objects.

        pPDQ = Q_S^(1 - w) Q_L^w,    w = label_weight, one half by default: the geometric mean of the paper,

    Q_S being the spatial quality (`probox.torch.spatial_quality`) and Q_L the probability of the right class. Without
    labels Q_L is left out, and the loss is that of Q_S.

    ``form="log"`` is -ln pPDQ: -(1 - w) ln Q_S - w ln Q_L, of which the last part is the usual cross-entropy. It is
    robust to any start, and weighs bad boxes most. ``form="plain"`` is 1 - pPDQ: what PDQ adds up, so that boxes that
    can still be won weigh most. Where pPDQ is below `leak` it goes on along its tangent in -ln pPDQ,

        1 - leak + leak (-ln pPDQ + ln leak),

    so that its slope is never below `leak`.

    Parameters
    ----------
    boxes, log_std, cholesky, covariance, truth_boxes, truth_masks, image_size, inclusive, reach
        As for `probox.torch.spatial_quality`.
    label_logits : (N, C) tensor, optional
        Logits of the labels.
    truth_labels : (N,) tensor, optional
        The right classes.
    activation : {"softmax", "sigmoid"}
        What turns logits into probabilities.
    label_weight : float
        w, from 0 to 1.
    form : {"log", "plain"}
        See above.
    leak : float
        From 0 to 1: how much of a gradient is kept where the measure is level (``docs/training.md``). With 0 the
        loss is the measure's own.
    weights : (N,) tensor, optional
        Of the boxes, say their scores or overlaps.
    reduction : {"mean", "sum", "none"}
        "none" gives the losses of boxes.

    Examples
    --------
    >>> import torch
    >>> from probox.torch import ppdq_loss
    >>> boxes = torch.tensor([[11.0, 19.0, 41.0, 40.0]], requires_grad=True)
    >>> log_std = torch.zeros(1, 4, requires_grad=True)
    >>> loss = ppdq_loss(boxes, log_std=log_std, truth_boxes=torch.tensor([[10.0, 20.0, 40.0, 40.0]]),
    ...                  label_logits=torch.tensor([[2.0, 0.0]]), truth_labels=torch.tensor([0]))
    >>> round(loss.item(), 3)
    0.217
    >>> loss.backward()
    >>> [round(value, 3) for value in boxes.grad[0].tolist()]  # y1 should be lower down, x2 farther left
    [0.01, -0.062, 0.044, 0.02]
    """
    if form not in ("log", "plain"):
        raise InputError(f"expected form to be log or plain, but got {form!r:.40}")
    check_number(label_weight, "label_weight")
    pairs = pairs_of(
        boxes,
        log_std=log_std,
        cholesky=cholesky,
        covariance=covariance,
        truth_boxes=truth_boxes,
        truth_masks=truth_masks,
        image_size=image_size,
        inclusive=inclusive,
    )
    labels = label_log_probs(label_logits, truth_labels, len(pairs), activation=activation)
    loss = -log_quality(pairs, leak=leak, reach=reach)
    if labels is not None:
        loss = (1.0 - label_weight) * loss - label_weight * labels
    if form == "plain":
        loss = plain_form(loss, leak)
    return reduce_losses(loss, weights, reduction, boxes)


def plain_form(loss: Tensor, leak: float) -> Tensor:
    """Return 1 - exp(-loss), and beyond exp(-loss) = leak its tangent."""
    if leak <= 0:
        return -torch.expm1(-loss)
    bend = -math.log(leak)
    return -torch.expm1(-loss.clamp(max=bend)) + leak * (loss - bend).clamp(min=0.0)
