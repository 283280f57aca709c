"""pPDQ as a loss: the quality of a box and its label for an object, to be made as high as it can be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import torch

from probox.errors import InputError
from probox.torch.arguments import Reduction, label_log_probs, reduced
from probox.torch.pairs import pairs_of
from probox.torch.spatial import REACH, log_quality

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LEAK", "ppdq_loss"]

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
    if isinstance(label_weight, bool) or not isinstance(label_weight, int | float) or not 0 <= label_weight <= 1:
        raise InputError(f"expected label_weight to be a number from 0 to 1, but got {label_weight!r:.40}")
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
    return reduced(loss, weights, reduction, boxes)


def plain_form(loss: Tensor, leak: float) -> Tensor:
    """Return 1 - exp(-loss), and beyond exp(-loss) = leak its tangent."""
    if leak <= 0:
        return -torch.expm1(-loss)
    bend = -math.log(leak)
    return -torch.expm1(-loss.clamp(max=bend)) + leak * (loss - bend).clamp(min=0.0)
