"""pPDQ as a differentiable loss, with its spatial quality, under preset ``paper``.

With the object's pixels S, its box B and e = 1e-14,

    foreground = sum over S of ln(P + e),    background = sum outside B of ln(1 - P + e),
    FG = exp(foreground / |S|),   BG = exp(background / |S|),   Q_S = FG BG,

P is the probability that a pixel belongs to the detected box (`probox.measures.pdq.definition`).

**Cost.** For uncorrelated corners, P(x, y) = u(x) v(y). The foreground is then separable: ln(P + e) = ln u + ln v
except for pixels with P below 1e-8, and only boxes with such pixels are summed pixel by pixel. The background is summed
within `reach` standard deviations of the box; beyond, P counts as 0. Where u or v is below 0.1, ln(1 - P) is a short
series of separable terms. Pixels well inside both edges all have the same P and are represented by one. A box
therefore costs O(W + H), plus the pixels where it is likely to extend beyond its object: a seam of about one standard
deviation around a box that fits. A correlation within a corner is summed pixel by pixel near that corner.

**Gradient leak.** e makes ln(P + e) flat where P is far below it: a box that misses its object would have no gradient.
With `leak` > 0 each pixel's ln(P + e) becomes

    (1 - leak) ln(P + e) + leak ln(P),

which differs by leak e / P where P is well above e. Below, it continues to fall as leak ln(P), so that the gradient
points back from any distance. ln(1 - P + e) is treated likewise; in its leak 1 - P is at least Phi(-reach), 8e-24.
ln(P) is computed from logarithms of tails, because P itself underflows. For correlated corners the leak is that of the
same corners without correlation.
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
"""Limit of the summed region: pixels more than this many standard deviations outside the box have P < 1e-23, which
counts as 0; those as far inside have 1 - P < 1e-23, negligible beside e."""


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
    """Return the spatial quality Q_S = FG BG of each box with its object, (N,), under preset ``paper``.

    Q_S is a probability: 1 is best.

    Parameters
    ----------
    boxes : (N, 4) tensor
        Means of x1, y1, x2, y2 in pixels.
    log_std, cholesky, covariance : tensor, one of them
        Uncertainty of the corners: log standard deviations (N, 4), lower triangles (N, 2, 2, 2), or covariances
        (N, 2, 2, 2), in pixels.
    truth_boxes : (N, 4) tensor
        True boxes of objects that fill them. Partly covered pixels count as fractions.
    truth_masks : (N, H, W) tensor
        The objects' pixels. The background is everything outside their tight boxes.
    image_size : (int, int) or (N, 2) tensor, optional
        Width and height. Probability mass of corners outside the image is removed, as in PDQ. Default: the size of
        masks; for boxes no border.
    inclusive : bool
        True if x2, y2 are the last pixel, as everywhere in probox; False if they are where it ends, as in torchvision.
        Applies to true boxes, too.
    log : bool
        Return the logarithm, which does not underflow.
    leak : float
        From 0 to 1, as in `ppdq_loss`. With 0 the result is PDQ's spatial quality, up to rounding.
    reach : float
        Limit of the summed region in standard deviations; 6 takes a third less time, with an error of about 1e-7.

    Returns
    -------
    tensor
        (N,), in the type of `boxes`.

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
    """Return FG, the foreground quality of each box with its object, (N,).

    Parameters
    ----------
    boxes, log, leak, reach, **given
        As in `probox.torch.spatial_quality`.

    Returns
    -------
    tensor
        (N,), in the type of `boxes`; 1 is best.

    Examples
    --------
    >>> import torch
    >>> boxes, truth = torch.tensor([[11.0, 19.0, 41.0, 40.0]]), torch.tensor([[10.0, 20.0, 40.0, 40.0]])
    >>> round(foreground(boxes, log_std=torch.zeros(1, 4), truth_boxes=truth, image_size=(64, 48)).item(), 4)
    0.9607
    """
    value = log_quality(_given(boxes, given), leak=leak, reach=reach, background=False)
    return (value if log else value.exp()).to(boxes.dtype)


def background(boxes: Tensor, *, log: bool = False, leak: float = 0.0, reach: float = REACH, **given: Any) -> Tensor:
    """Return BG, the background quality of each box with its object, (N,).

    Parameters
    ----------
    boxes, log, leak, reach, **given
        As in `probox.torch.spatial_quality`.

    Returns
    -------
    tensor
        (N,), in the type of `boxes`; 1 is best.

    Examples
    --------
    >>> import torch
    >>> boxes, truth = torch.tensor([[11.0, 19.0, 41.0, 40.0]]), torch.tensor([[10.0, 20.0, 40.0, 40.0]])
    >>> round(background(boxes, log_std=torch.zeros(1, 4), truth_boxes=truth, image_size=(64, 48)).item(), 4)
    0.7657
    """
    value = log_quality(_given(boxes, given), leak=leak, reach=reach, foreground=False)
    return (value if log else value.exp()).to(boxes.dtype)


_ARGUMENTS = tuple(inspect.signature(pairs_of).parameters)[1:]
"""Names of arguments that describe pairs; read once, because losses run at every training step."""


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
"""Fraction of the gradient that is kept where PDQ itself is flat."""


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
    """Return -ln pPDQ, or 1 - pPDQ, of boxes matched with objects; lower is better.

        pPDQ = Q_S^(1 - w) Q_L^w,    w = label_weight; the default 0.5 is the geometric mean of the paper

    Q_S is the spatial quality (`probox.torch.spatial_quality`), Q_L the probability of the true class. Without labels
    the loss is that of Q_S alone.

    ``form="log"`` is -ln pPDQ = -(1 - w) ln Q_S - w ln Q_L, whose last term is the usual cross-entropy. It trains from
    any initial state and has the largest gradients for bad boxes. ``form="plain"`` is 1 - pPDQ, the quantity that PDQ
    sums. Where pPDQ is below `leak`, it continues along its tangent in -ln pPDQ,

        1 - leak + leak (-ln pPDQ + ln leak),

    so that its slope is never below `leak`.

    Parameters
    ----------
    boxes, log_std, cholesky, covariance, truth_boxes, truth_masks, image_size, inclusive, reach
        As in `probox.torch.spatial_quality`.
    label_logits : (N, C) tensor, optional
        Class logits.
    truth_labels : (N,) tensor, optional
        The true classes.
    activation : {"softmax", "sigmoid"}
        Function that turns logits into probabilities.
    label_weight : float
        w, from 0 to 1.
    form : {"log", "plain"}
        Which of both losses to compute.
    leak : float
        Fraction of the gradient that is kept where pPDQ is flat, from 0 to 1 (``docs/training.md``). With 0 the loss is
        exactly that of pPDQ.
    weights : (N,) tensor, optional
        Weight of each box, at least 0; for example scores or overlaps.
    reduction : {"mean", "sum", "none"}
        How the N losses are combined.

    Returns
    -------
    tensor
        A scalar, or (N,) with ``reduction="none"``, in the type of `boxes`.

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
    >>> [round(value, 3) for value in boxes.grad[0].tolist()]  # descent increases y1 and decreases x2
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
    """Return 1 - exp(-loss), continued along its tangent where exp(-loss) is below leak."""
    if leak <= 0:
        return -torch.expm1(-loss)
    bend = -math.log(leak)
    return -torch.expm1(-loss.clamp(max=bend)) + leak * (loss - bend).clamp(min=0.0)
