"""Training losses for matched boxes (NLL, energy score, CRPS, moment matching) and for whole images (PMB-NLL).

For a box with mean mu and covariance Sigma and its true box y, with residuals r = y - mu and z = r / sigma for each
coordinate:

    NLL    = 1/2 r' Sigma^-1 r + 1/2 ln det(2 pi Sigma)
    energy = E|Z - y| - 1/2 E|Z - Z'|,   Z, Z' ~ N(mu, Sigma)
    CRPS   = sum over coordinates of sigma [z (2 Phi(z) - 1) + 2 phi(z) - pi^-1/2]
    DMM    = sum over coordinates of h(r) + sum over entries of h(Sigma - r r'),   h the smooth L1

Sigma has two 2 x 2 blocks, one per corner. NLL, energy score and CRPS are proper: the expected loss is smallest for the
distribution from which the true boxes are drawn. CRPS scores each coordinate alone; DMM is not proper.

These four functions take the same arguments as each other and as `ppdq_loss`, so they are interchangeable. All compute
in double precision and return the type of `boxes`. Values and gradients are finite for standard deviations from 0.05 to
200 pixels and residuals up to 10,000 pixels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from probox import _core
from probox.errors import InputError
from probox.measures.pmb_definition import ASSIGNMENTS, CLUTTER, MIN_PROBABILITY
from probox.torch.arguments import (
    Corners,
    Reduction,
    check_classes,
    check_count,
    check_tensor,
    check_whole,
    corners_of,
    label_log_probs,
    log_activation,
    reduce_losses,
    truth_boxes_of,
)

if TYPE_CHECKING:
    from torch import Tensor

STEP = 0.2
"""Step size in t = ln s. The relative error of the energy score is about exp(-pi^2 / (2 * STEP)), 2e-11."""
FIRST, LAST = -45, 62
"""First and last step. Beyond, the integrand equals e^t and e^-t to 1e-11, and the steps form a geometric series."""


def nll_loss(
    boxes: Tensor,
    *,
    log_std: Tensor | None = None,
    cholesky: Tensor | None = None,
    covariance: Tensor | None = None,
    label_logits: Tensor | None = None,
    truth_labels: Tensor | None = None,
    truth_boxes: Tensor | None = None,
    truth_masks: Tensor | None = None,
    image_size: Any = None,
    activation: str = "softmax",
    label_weight: float = 1.0,
    inclusive: bool = True,
    beta: float = 0.0,
    weights: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the negative log likelihood of matched boxes, in nats; lower is better.

        loss = 1/2 r' Sigma^-1 r + 1/2 ln det(2 pi Sigma) - label_weight * ln p(class)

    With `beta` above 0 this is the beta-NLL. It multiplies each coordinate's term 1/2 z^2 + ln sigma + 1/2 ln 2 pi by
    sigma^(2 beta), without a gradient through the factor. Uncertain boxes then keep their influence on the means. The
    authors recommend 0.5; with 1 the means have the gradient of the squared error.

    Parameters
    ----------
    boxes : (N, 4) tensor
        Means of x1, y1, x2, y2 in pixels. Each row is matched with the object of the same row.
    log_std, cholesky, covariance : tensors, one of them
        Uncertainty of the corners: log standard deviations (N, 4), lower triangles (N, 2, 2, 2) of the top-left and the
        bottom-right corner, or covariances (N, 2, 2, 2). In pixels.
    label_logits, truth_labels : (N, C) and (N,) tensors, optional
        Class logits and true classes. With them the loss includes `label_weight` times the cross-entropy -ln p(class).
    truth_boxes, truth_masks : (N, 4) or (N, H, W) tensor, one of them
        Ground truth. Masks are reduced to their tight boxes.
    image_size : optional
        Ignored; accepted because `ppdq_loss` takes it.
    activation : "softmax" or "sigmoid"
        Function that turns logits into probabilities.
    label_weight : float
        Weight of the label term, at least 0.
    inclusive : bool
        True if x2, y2 are the last pixel, False if they are where it ends. Affects boxes of masks only.
    beta : float
        From 0, the likelihood, to 1. Requires `log_std`.
    weights : (N,) tensor, optional
        Weight of each box, at least 0.
    reduction : "mean", "sum" or "none"
        How the N losses are combined. The mean is sum(weights * loss) / sum(weights).

    Returns
    -------
    tensor
        A scalar, or (N,) with ``reduction="none"``, in the type of `boxes`.

    Notes
    -----
    A. Kendall, Y. Gal: *What Uncertainties Do We Need in Bayesian Deep Learning for Computer Vision?*, NeurIPS 2017.
    M. Seitzer, A. Tavakoli, D. Antic, G. Martius: *On the Pitfalls of Heteroscedastic Uncertainty Estimation with
    Probabilistic Neural Networks*, ICLR 2022 (beta-NLL).

    Examples
    --------
    >>> import torch
    >>> boxes, truth = torch.tensor([[10.0, 10.0, 50.0, 40.0]]), torch.tensor([[11.0, 9.0, 50.0, 42.0]])
    >>> log_std = torch.zeros(1, 4, requires_grad=True)
    >>> loss = nll_loss(boxes, log_std=log_std, truth_boxes=truth)
    >>> round(loss.item(), 4)
    6.6758
    >>> loss.backward()
    >>> log_std.grad  # x1, y1: error of one std; x2: no error, decrease std; y2: two std, increase it
    tensor([[ 0.,  0.,  1., -3.]])
    """
    if not 0.0 <= beta <= 1.0:
        raise InputError(f"expected beta from 0 to 1, but got {beta!r:.40}")
    if beta and log_std is None:
        raise InputError(
            "beta weighs each coordinate separately and requires corners without correlation",
            remedy="pass log_std, or leave beta at 0",
        )
    corners, residuals = _check_matched(boxes, log_std, cholesky, covariance, truth_boxes, truth_masks, inclusive)
    each = nll_terms(residuals, corners)
    if beta:
        each = each * corners.sigmas.detach() ** (2.0 * beta)
    losses = _with_labels(each.sum(1), label_logits, truth_labels, activation, label_weight)
    return reduce_losses(losses, weights, reduction, boxes)


def energy_score_loss(
    boxes: Tensor,
    *,
    log_std: Tensor | None = None,
    cholesky: Tensor | None = None,
    covariance: Tensor | None = None,
    label_logits: Tensor | None = None,
    truth_labels: Tensor | None = None,
    truth_boxes: Tensor | None = None,
    truth_masks: Tensor | None = None,
    image_size: Any = None,
    activation: str = "softmax",
    label_weight: float = 1.0,
    inclusive: bool = True,
    weights: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the energy score of matched boxes, in pixels; lower is better.

        loss = E|Z - y| - 1/2 E|Z - Z'| - label_weight * ln p(class),   Z, Z' ~ N(mu, Sigma)

    |.| is the Euclidean length of the four coordinates. The score is computed without sampling, with a relative error
    of 1e-9: for X ~ N(m, Sigma)

        E|X| = pi^-1/2 * integral over s > 0 of [1 - det(A)^-1/2 exp(-s^2 m' A^-1 m)] s^-2 ds,   A = I + 2 s^2 Sigma,

    by the trapezoidal rule in ln s. For large residuals the score grows linearly, NLL quadratically: outliers dominate
    it less.

    Parameters
    ----------
    boxes, log_std, cholesky, covariance, label_logits, truth_labels, truth_boxes, truth_masks, image_size, activation
        As in `nll_loss`.
    label_weight, inclusive, weights, reduction
        As in `nll_loss`.

    Returns
    -------
    tensor
        A scalar, or (N,) with ``reduction="none"``, in the type of `boxes`.

    Notes
    -----
    T. Gneiting, A. E. Raftery: *Strictly Proper Scoring Rules, Prediction, and Estimation*, JASA 102, 2007.
    A. Harakeh, S. L. Waslander: *Estimating and Evaluating Regression Predictive Uncertainty in Deep Object Detectors*,
    ICLR 2021, who train detectors with a sampled estimate of it.

    Examples
    --------
    >>> import torch
    >>> boxes, truth = torch.tensor([[10.0, 10.0, 50.0, 40.0]]), torch.tensor([[11.0, 9.0, 50.0, 42.0]])
    >>> round(energy_score_loss(boxes, log_std=torch.zeros(1, 4), truth_boxes=truth).item(), 4)
    1.7038
    """
    corners, residuals = _check_matched(boxes, log_std, cholesky, covariance, truth_boxes, truth_masks, inclusive)
    from_truth = _mean_lengths(residuals, corners)
    apart = math.sqrt(2.0) * _mean_lengths(None, corners)
    losses = _with_labels(from_truth - 0.5 * apart, label_logits, truth_labels, activation, label_weight)
    return reduce_losses(losses, weights, reduction, boxes)


def crps_loss(
    boxes: Tensor,
    *,
    log_std: Tensor | None = None,
    cholesky: Tensor | None = None,
    covariance: Tensor | None = None,
    label_logits: Tensor | None = None,
    truth_labels: Tensor | None = None,
    truth_boxes: Tensor | None = None,
    truth_masks: Tensor | None = None,
    image_size: Any = None,
    activation: str = "softmax",
    label_weight: float = 1.0,
    inclusive: bool = True,
    weights: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the continuous ranked probability score of matched boxes, in pixels, summed over coordinates.

        loss = sum over coordinates of sigma [z (2 Phi(z) - 1) + 2 phi(z) - pi^-1/2] - label_weight * ln p(class)

    Lower is better. The score treats coordinates independently: correlation of x and y has no effect and no gradient.

    Parameters
    ----------
    boxes, log_std, cholesky, covariance, label_logits, truth_labels, truth_boxes, truth_masks, image_size, activation
        As in `nll_loss`.
    label_weight, inclusive, weights, reduction
        As in `nll_loss`.

    Returns
    -------
    tensor
        A scalar, or (N,) with ``reduction="none"``, in the type of `boxes`.

    Notes
    -----
    T. Gneiting, A. E. Raftery, A. H. Westveld, T. Goldman: *Calibrated Probabilistic Forecasting Using Ensemble Model
    Output Statistics and Minimum CRPS Estimation*, Monthly Weather Review 133, 2005.

    Examples
    --------
    >>> import torch
    >>> boxes, truth = torch.tensor([[10.0, 10.0, 50.0, 40.0]]), torch.tensor([[11.0, 9.0, 50.0, 42.0]])
    >>> round(crps_loss(boxes, log_std=torch.zeros(1, 4), truth_boxes=truth).item(), 4)
    2.8914
    """
    corners, residuals = _check_matched(boxes, log_std, cholesky, covariance, truth_boxes, truth_masks, inclusive)
    z = residuals / corners.sigmas
    density = torch.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    each = residuals * torch.erf(z / math.sqrt(2.0)) + corners.sigmas * (2.0 * density - 1.0 / math.sqrt(math.pi))
    losses = _with_labels(each.sum(1), label_logits, truth_labels, activation, label_weight)
    return reduce_losses(losses, weights, reduction, boxes)


def dmm_loss(
    boxes: Tensor,
    *,
    log_std: Tensor | None = None,
    cholesky: Tensor | None = None,
    covariance: Tensor | None = None,
    label_logits: Tensor | None = None,
    truth_labels: Tensor | None = None,
    truth_boxes: Tensor | None = None,
    truth_masks: Tensor | None = None,
    image_size: Any = None,
    activation: str = "softmax",
    label_weight: float = 1.0,
    inclusive: bool = True,
    delta: float = 1.0,
    weights: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the direct moment matching loss: means fit the ground truth, covariances fit squared residuals.

        loss = sum over coordinates of h(r_i) + sum over entries of h(Sigma_ij - r_i r_j) - label_weight * ln p(class)
        h(d) = d^2 / (2 delta) if |d| < delta, else |d| - delta / 2

    With `log_std` the entries are the four variances. With `cholesky` or `covariance` they are the eight numbers of the
    two 2 x 2 blocks, so the covariance of x and y counts twice. As in the published code of the second paper below, r
    is not detached in the second sum, so both sums contribute to the gradient of the means. That code measures r in
    scaled anchor offsets, this function in pixels.

    The loss is not a proper score. Where squared residuals exceed `delta` by far, h is the absolute difference, whose
    minimum is the median of r^2 instead of its mean: for Gaussian residuals the learned std is 0.67 times
    the true one. A `delta` far above r^2 removes this bias, but then outliers dominate.

    Parameters
    ----------
    boxes, log_std, cholesky, covariance, label_logits, truth_labels, truth_boxes, truth_masks, image_size, activation
        As in `nll_loss`.
    label_weight, inclusive, weights, reduction
        As in `nll_loss`.
    delta : float
        Where h changes from quadratic to linear, in pixels in the first sum and square pixels in the second. With 0
        it is linear everywhere.

    Returns
    -------
    tensor
        A scalar, or (N,) with ``reduction="none"``, in the type of `boxes`.

    Notes
    -----
    D. Feng, L. Rosenbaum, C. Glaeser, F. Timm, K. Dietmayer: *Can We Trust You? On Calibration of a Probabilistic
    Object Detector for Autonomous Driving*, 2019.
    A. Harakeh, S. L. Waslander: *Estimating and Evaluating Regression Predictive Uncertainty in Deep Object Detectors*,
    ICLR 2021.

    Examples
    --------
    >>> import torch
    >>> boxes, truth = torch.tensor([[10.0, 10.0, 50.0, 40.0]]), torch.tensor([[11.0, 9.0, 50.0, 42.0]])
    >>> dmm_loss(boxes, log_std=torch.zeros(1, 4), truth_boxes=truth).item()  # 0.5 + 0.5 + 0 + 1.5, 0 + 0 + 0.5 + 2.5
    5.5
    """
    if not (math.isfinite(delta) and delta >= 0):
        raise InputError(f"expected delta to be a number of at least 0, but got {delta!r:.40}")
    corners, residuals = _check_matched(boxes, log_std, cholesky, covariance, truth_boxes, truth_masks, inclusive)
    if log_std is not None:
        gaps = corners.sigmas**2 - residuals**2
    else:
        ends = residuals.reshape(-1, 2, 2)
        gaps = (corners.covariance() - ends[..., :, None] * ends[..., None, :]).reshape(-1, 8)
    values = _smooth_l1(residuals, delta).sum(1) + _smooth_l1(gaps, delta).sum(1)
    losses = _with_labels(values, label_logits, truth_labels, activation, label_weight)
    return reduce_losses(losses, weights, reduction, boxes)


def _check_matched(
    boxes: Tensor,
    log_std: Tensor | None,
    cholesky: Tensor | None,
    covariance: Tensor | None,
    truth_boxes: Tensor | None,
    truth_masks: Tensor | None,
    inclusive: bool,
) -> tuple[Corners, Tensor]:
    """Return the corners and the residuals y - mu, (N, 4), from checked arguments."""
    corners = corners_of(boxes, log_std=log_std, cholesky=cholesky, covariance=covariance)
    truth = truth_boxes_of(truth_boxes, truth_masks, len(corners), inclusive=inclusive).to(corners.boxes.device)
    return corners, truth - corners.boxes


def _with_labels(
    values: Tensor, label_logits: Tensor | None, truth_labels: Tensor | None, activation: str, weight: float
) -> Tensor:
    """Return losses (N,) plus the weighted cross-entropy of the labels, if labels are given."""
    log_probs = label_log_probs(label_logits, truth_labels, len(values), activation=activation)
    if not (math.isfinite(weight) and weight >= 0):
        raise InputError(f"expected label_weight to be a number of at least 0, but got {weight!r:.40}")
    return values if log_probs is None else values - weight * log_probs


def nll_terms(residuals: Tensor, corners: Corners) -> Tensor:
    """Return terms (N, 4) that sum to -ln N(r; 0, Sigma): for each corner of x, then of y conditional on x."""
    z, logs = residuals / corners.sigmas, torch.log(corners.sigmas)
    if corners.rho is not None:
        x, y = z[:, 0::2], z[:, 1::2]
        left = 1.0 - corners.rho**2
        z = torch.stack([x, (y - corners.rho * x) / torch.sqrt(left)], -1).reshape(-1, 4)
        logs = logs + torch.stack([torch.zeros_like(left), 0.5 * torch.log(left)], -1).reshape(-1, 4)
    return 0.5 * z**2 + logs + 0.5 * math.log(2.0 * math.pi)


def _smooth_l1(gaps: Tensor, delta: float) -> Tensor:
    far = gaps.abs()
    if delta == 0:
        return far
    near = far.clamp(max=delta)
    return near**2 / (2.0 * delta) + (far - near)


def _mean_lengths(means: Tensor | None, corners: Corners) -> Tensor:
    """Return E|X| of X ~ N(m, Sigma), (N,), for means m of (N, 4), or 0.

    For each 2 x 2 block, det(I + 2 s^2 Sigma) = 1 + 2 s^2 tr Sigma + 4 s^4 det Sigma =: d, and
    m' (I + 2 s^2 Sigma)^-1 m = (|m|^2 + 2 s^2 det(Sigma) m' Sigma^-1 m) / d. This avoids eigenvalues, whose gradient is
    undefined where two are equal.

    Lengths are scaled by a unit close to E|X|. The integral does not depend on the unit, which needs no gradient.
    """
    with torch.no_grad():
        squares = corners.sigmas**2 if means is None else corners.sigmas**2 + means**2
        unit = torch.sqrt(squares.sum(1, keepdim=True))
    sx, sy = ((corners.sigmas / unit)[:, axis::2] for axis in (0, 1))
    trace, product = sx**2 + sy**2, (sx * sy) ** 2
    if corners.rho is not None:
        product = product * (1.0 - corners.rho**2)
    t = STEP * torch.arange(FIRST, LAST + 1, dtype=unit.dtype, device=unit.device)
    s2 = torch.exp(2.0 * t)[:, None, None]
    wide = 2.0 * s2 * (trace + 2.0 * s2 * product)
    logs, second = 0.5 * torch.log1p(wide), trace
    if means is not None:
        mx, my = ((means / unit)[:, axis::2] for axis in (0, 1))
        square, across = mx**2 + my**2, (sy * mx) ** 2 + (sx * my) ** 2
        if corners.rho is not None:
            across = across - 2.0 * corners.rho * (sx * my) * (sy * mx)
        logs, second = logs + s2 * (square + 2.0 * s2 * across) / (1.0 + wide), trace + square
    inside = -(torch.exp(-t)[:, None] * torch.expm1(-logs.sum(-1))).sum(0)
    # Beyond the ends the integrand is e^t E|X|^2 on the left and e^-t on the right.
    beyond = (math.exp(STEP * FIRST) * second.sum(1) + math.exp(-STEP * LAST)) / math.expm1(STEP)
    return unit[:, 0] * (inside + beyond) * (STEP / math.sqrt(math.pi))


# --- PMB-NLL: negative log likelihood of an image's objects, summed over assignments of detections to objects ---

# Equals `probox.measures.pmb_definition`, including the ranking of assignments. The kernel enumerates the most likely
# assignments without gradients; their likelihoods are then summed with gradients.

DEFAULT_SIZE = (1000, 1000)
"""Width and height assumed for images without a size; affects the default floor only."""

MOST_IMAGES = 10_000
"""Larger indices are taken for image ids passed in place of positions within the batch."""


def pmb_nll_loss(
    boxes: Tensor,
    *,
    log_std: Tensor | None = None,
    cholesky: Tensor | None = None,
    covariance: Tensor | None = None,
    label_logits: Tensor,
    truth_labels: Tensor,
    truth_boxes: Tensor | None = None,
    truth_masks: Tensor | None = None,
    image_index: Tensor | None = None,
    truth_image_index: Tensor | None = None,
    images: int | None = None,
    image_size: tuple[int, int] | Tensor | None = None,
    activation: str = "softmax",
    inclusive: bool = True,
    log_floor: float | None = None,
    assignments: int = ASSIGNMENTS,
    weights: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the negative log likelihood of the objects of images, in nats; detections need not be matched.

        loss = integral of lambda - sum over i of ln p_i(background) - ln sum over assignments of
            [product over pairs of p_i(c_j) N(y_j; mu_i, Sigma_i) / p_i(background)]
            [product over unmatched objects of lambda(y_j, c_j)]

    Lower is better. Detections i are those with a highest class probability above 0.1. The others are clutter with the
    intensity lambda(y, c) = sum over them of max p * s(c) * N(y; mu, Sigma), s(c) = p(c) / sum of p, whose integral is
    the sum of their max p. Probabilities p(c), p(background) and s(c) are clamped to [1e-6, 1 - 1e-6] and have no
    gradient beyond. The sum covers the `assignments` most likely assignments.

    Parameters
    ----------
    boxes : (N, 4) tensor
        Means of x1, y1, x2, y2 in pixels, for all detections of all images.
    log_std, cholesky, covariance : tensors, one of them
        Uncertainty of the corners, as in `probox.torch.nll_loss`.
    label_logits : (N, C + 1) or (N, C) tensor
        With softmax the **last column is the background**. With sigmoid there is no such column: p(background) is 1
        minus the sum of the class probabilities.
    truth_labels : (M,) tensor
        The objects' classes, below C.
    truth_boxes, truth_masks : (M, 4) or (M, H, W) tensor, one of them
        Ground truth. Masks are reduced to their tight boxes.
    image_index, truth_image_index : (N,) and (M,) tensors, optional
        Image of each detection and of each object within the batch, from 0. Default: a single image.
    images : int, optional
        Number of images. Default: the highest index plus 1. Pass it if the last images have neither objects nor
        detections: their loss of 0 counts in the mean.
    image_size : (int, int) or (images, 2) tensor, optional
        Width and height, for `log_floor`. Default: those of masks; 1000 x 1000 for boxes.
    activation : "softmax" or "sigmoid"
        Function that turns logits into probabilities.
    inclusive : bool
        True if x2, y2 are the last pixel, False if they are where it ends. Affects boxes of masks only.
    log_floor : float, optional
        Lower bound of ln lambda(y, c), which keeps the loss finite for objects that no detection explains. Default: as
        in evaluations, ln[1e-6 / (C * W^2 / 2 * H^2 / 2)], a millionth of an object spread evenly over all boxes and
        classes. An object at the floor has a gradient only through assignments that match it.
    assignments : int
        Number of most likely assignments in the sum, at least 1.
    weights : (images,) tensor, optional
        Weight of each image, at least 0.
    reduction : "mean", "sum" or "none"
        How the losses of images are combined.

    Returns
    -------
    tensor
        A scalar, or (images,) with ``reduction="none"``, in the type of `boxes`.

    Notes
    -----
    G. Hess, C. Petersson, L. Svensson: *Object Detection as Probabilistic Set Prediction*, ECCV 2022.

    Examples
    --------
    Two images: a cup (class 0) that is detected, and an image without objects and detections.

    >>> import torch
    >>> loss = pmb_nll_loss(
    ...     torch.tensor([[10.0, 10.0, 50.0, 40.0]]), log_std=torch.zeros(1, 4), image_index=torch.tensor([0]),
    ...     label_logits=torch.tensor([[3.0, 0.0]]), truth_labels=torch.tensor([0]), images=2, reduction="none",
    ...     truth_boxes=torch.tensor([[11.0, 9.0, 50.0, 42.0]]), truth_image_index=torch.tensor([0]))
    >>> loss
    tensor([6.7243, 0.0000])
    """
    corners = corners_of(boxes, log_std=log_std, cholesky=cholesky, covariance=covariance)
    labels = check_whole(truth_labels, "truth_labels", None, ", one class for each object").to(corners.boxes.device)
    truth = truth_boxes_of(truth_boxes, truth_masks, len(labels), inclusive=inclusive).to(corners.boxes.device)
    label_logs = _LabelLogs(label_logits, len(corners), activation)
    background = "the last column of logits is the background" if activation == "softmax" else None
    check_classes(labels, label_logs.classes, remedy=background)
    check_count(assignments, "assignments")
    found_in, there_in, number = _images(image_index, truth_image_index, images, len(corners), len(labels))
    if image_size is None and truth_masks is not None:
        image_size = (truth_masks.shape[2], truth_masks.shape[1])
    floors = _floors(log_floor, image_size, label_logs.classes, number)

    rows = [[torch.from_numpy(np.flatnonzero(of == k)) for of in (found_in, there_in)] for k in range(number)]
    log_densities = _log_densities(corners, truth, rows)
    values = [
        _nll_of_image(label_logs, found.to(truth.device), labels[there.to(truth.device)], log_n, floor, assignments)
        for (found, there), log_n, floor in zip(rows, log_densities, floors, strict=True)
    ]
    stacked = torch.stack(values) if values else corners.boxes.sum() * corners.boxes.new_zeros(0)
    return reduce_losses(stacked, weights, reduction, boxes)


class _LabelLogs:
    """Class log probabilities of detections.

    Parameters
    ----------
    log_probs : (N, C) tensor
        ln p(c).
    log_background : (N,) tensor
        ln p(background), clamped.
    """

    def __init__(self, label_logits: Tensor, n: int, activation: str) -> None:
        logits = check_tensor(label_logits, "label_logits", (n, None)).double()
        background = activation == "softmax"
        if logits.shape[1] < 1 + background:
            raise InputError(
                f"expected label_logits of at least {1 + background} columns, but got {logits.shape[1]}",
                remedy="with softmax the last column is the background" if background else None,
            )
        self.log_probs = log_activation(logits, activation)
        if background:
            self.log_probs, left = self.log_probs[:, :-1], self.log_probs[:, -1]
        else:
            left = torch.log((1.0 - self.log_probs.exp().sum(1)).clamp(min=MIN_PROBABILITY))
        self.classes = int(self.log_probs.shape[1])
        self.log_background = _clamp(left)
        self.log_highest = self.log_probs.amax(1)
        self.clutter = self.log_highest.detach().exp() <= CLUTTER
        self.log_shares = self.log_probs - torch.logsumexp(self.log_probs, 1, keepdim=True)


def _clamp(logs: Tensor) -> Tensor:
    return logs.clamp(math.log(MIN_PROBABILITY), math.log1p(-MIN_PROBABILITY))


def _nll_of_image(
    label_logs: _LabelLogs, rows: Tensor, labels: Tensor, log_densities: Tensor, floor: float, assignments: int
) -> Tensor:
    """Return the loss of one image from its detections' rows, its objects' classes and ln N of all pairs."""
    clutter = label_logs.clutter[rows]
    kept, others = rows[~clutter], rows[clutter]
    unmatched = label_logs.log_background[kept]
    matched = _clamp(label_logs.log_probs[kept][:, labels]) + log_densities[~clutter] - unmatched[:, None]
    missed = log_densities.new_full((len(labels),), floor)
    expected = label_logs.log_highest[others].exp().sum()
    if len(others):
        weighted = label_logs.log_highest[others][:, None] + _clamp(label_logs.log_shares[others][:, labels])
        missed = torch.maximum(torch.logsumexp(weighted + log_densities[clutter], 0), missed)
    costs, alone = (-part.detach().cpu().numpy() for part in (matched.T, missed))
    chosen, _ = _core.k_best_assignments(np.ascontiguousarray(costs), np.ascontiguousarray(alone), assignments)
    # Index -1, an unmatched object, selects this last row.
    table = torch.cat([matched, missed[None]])
    columns = torch.arange(len(labels), device=table.device)
    likelihoods = table[torch.tensor(chosen, dtype=torch.int64, device=table.device), columns].sum(1)
    return expected - unmatched.sum() - torch.logsumexp(likelihoods, 0)


def _log_densities(corners: Corners, truth: Tensor, rows: list[list[Tensor]]) -> list[Tensor]:
    """Return ln N(y_j; mu_i, Sigma_i) of all detections and objects of each image, (N_k, M_k)."""
    device = truth.device
    pairs = [torch.cartesian_prod(found, there).reshape(-1, 2).to(device) for found, there in rows]
    found, there = torch.cat([*pairs, torch.zeros(0, 2, dtype=torch.int64, device=device)]).T
    rho = None if corners.rho is None else corners.rho[found]
    picked = Corners(corners.boxes[found], corners.sigmas[found], rho)
    logs = -nll_terms(truth[there] - picked.boxes, picked).sum(1)
    parts = torch.split(logs, [len(pair) for pair in pairs])
    return [part.reshape(len(i), len(j)) for part, (i, j) in zip(parts, rows, strict=True)]


def _images(
    image_index: Tensor | None, truth_image_index: Tensor | None, images: int | None, n: int, m: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the image of each detection and of each object, and the number of images."""
    if (image_index is None) != (truth_image_index is None):
        missing = "image_index" if image_index is None else "truth_image_index"
        raise InputError(f"expected image_index and truth_image_index together, but {missing} is missing")
    rows = []
    for name, given, size in (("image_index", image_index, n), ("truth_image_index", truth_image_index, m)):
        if given is None:
            rows.append(np.zeros(size, np.int64))
            continue
        rows.append(check_whole(given, name, size).cpu().numpy())
    everywhere = np.concatenate(rows)
    if images is None and everywhere.max(initial=0) >= MOST_IMAGES:
        raise InputError(
            f"expected images to be counted from 0 within the batch, but one is {int(everywhere.max())}",
            remedy="pass positions in the batch instead of image ids, or pass images, the number of images",
        )
    number = (int(everywhere.max(initial=-1)) + 1 if image_index is not None else 1) if images is None else images
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise InputError(f"expected images to be a whole number, but got {number!r:.40}")
    if ((everywhere < 0) | (everywhere >= number)).any():
        name = "image_index" if ((rows[0] < 0) | (rows[0] >= number)).any() else "truth_image_index"
        raise InputError(f"expected {name} from 0 on and below {number}, the number of images")
    return rows[0], rows[1], number


def _floors(
    log_floor: float | None, image_size: tuple[int, int] | Tensor | None, classes: int, images: int
) -> list[float]:
    """Return the lower bound of ln lambda for each image."""
    if log_floor is not None:
        if not math.isfinite(log_floor):
            raise InputError(f"expected log_floor to be finite, but got {log_floor!r:.40}")
        return [float(log_floor)] * images
    try:
        sizes = torch.as_tensor(DEFAULT_SIZE if image_size is None else image_size).detach().cpu().double()
    except (TypeError, ValueError, RuntimeError):
        sizes = torch.zeros(0)
    if sizes.shape not in ((2,), (images, 2)) or not bool((sizes >= 1).all()) or not bool(torch.isfinite(sizes).all()):
        raise InputError(
            f"expected image_size to be (width, height), or one for each image, but got {image_size!r:.60}"
        )
    areas = sizes.expand(images, 2).log().sum(1).tolist()
    return [math.log(4.0 * MIN_PROBABILITY / classes) - 2.0 * area for area in areas]
