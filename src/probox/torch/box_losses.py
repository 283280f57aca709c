"""Losses of matched boxes, each a rule of scoring that training can follow: NLL, energy score, CRPS, moment matching.

For a box with mean mu and covariance Sigma, its truth y, r = y - mu and z = r / sigma of each coordinate:

    NLL    = 1/2 r' Sigma^-1 r + 1/2 ln det(2 pi Sigma)
    energy = E|Z - y| - 1/2 E|Z - Z'|,   Z, Z' ~ N(mu, Sigma)
    CRPS   = sum over coordinates of sigma [z (2 Phi(z) - 1) + 2 phi(z) - pi^-1/2]
    DMM    = sum over coordinates of h(r) + sum over entries of h(Sigma - r r'),   h the smooth L1

Sigma has two blocks of 2 x 2, one for each corner. NLL, energy and CRPS are proper: nothing has a lower expected loss
than the distribution that the truth is drawn from. CRPS sees one coordinate at a time; DMM is not proper.

All four take the same arguments, and those of `ppdq_loss`, so that one may stand in another's place. They are computed
in double precision and returned in that of `boxes`, and are finite, with finite gradients, from 0.05 to 200 pixels of
standard deviation and up to 10,000 pixels of residual.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from probox.errors import InputError
from probox.torch.arguments import Corners, Reduction, corners_of, label_log_probs, reduce_losses, truth_boxes_of

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["crps_loss", "dmm_loss", "energy_score_loss", "nll_loss", "nll_terms"]

STEP = 0.2
"""The length of a step in t = ln s. The energy score is off by about exp(-pi^2 / (2 * STEP)), 2e-11 of itself."""
FIRST, LAST = -45, 62
"""The first and the last step. Beyond, the integrand is e^t and e^-t to 1e-11, and the steps are a geometric series."""


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
    """Return the negative log likelihood of matched boxes, in nats.

        loss = 1/2 r' Sigma^-1 r + 1/2 ln det(2 pi Sigma) - label_weight * ln p(class)

    With `beta` above 0 it is the beta-NLL, in which boxes that are thought to be uncertain don't lose their say about
    the mean: each coordinate's 1/2 z^2 + ln sigma + 1/2 ln 2 pi is multiplied by sigma^(2 beta), whose gradient is not
    taken. 0.5 is what its authors advise; with 1 the means are learned as by the squared error.

    Parameters
    ----------
    boxes : (N, 4) tensor
        Means of x1, y1, x2, y2 in pixels, each matched with an object.
    log_std, cholesky, covariance : tensors, one of them
        How uncertain the corners are: logarithms of the standard deviations (N, 4); lower triangles (N, 2, 2, 2) of the
        top-left and the bottom-right corner; or the covariances themselves (N, 2, 2, 2).
    label_logits, truth_labels : (N, C) and (N,) tensors, optional
        What the classifier says and the right classes. With them, `label_weight` times the cross-entropy of the right
        class, -ln p(class), is added.
    truth_boxes, truth_masks : (N, 4) or (N, H, W) tensor, one of them
        What is there. Of masks the tight boxes are taken.
    image_size : optional
        Not looked at: it is here because `ppdq_loss` has it.
    activation : "softmax" or "sigmoid"
        What makes probabilities of logits.
    label_weight : float
        How much the label counts.
    inclusive : bool
        Whether boxes end with their last pixel, or where it ends. Decides about the boxes of masks only.
    beta : float
        From 0, the likelihood itself, to 1. For corners given by `log_std`.
    weights : (N,) tensor, optional
        How much each box counts.
    reduction : "mean", "sum" or "none"
        What becomes of the N losses. The mean is sum(weights * loss) / sum(weights).

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
    >>> log_std.grad  # x1 and y1 are as uncertain as they should be, x2 is surer and y2 not as sure
    tensor([[ 0.,  0.,  1., -3.]])
    """
    if not 0.0 <= beta <= 1.0:
        raise InputError(f"expected beta from 0 to 1, but got {beta!r:.40}")
    if beta and log_std is None:
        raise InputError(
            "beta weighs coordinates one by one, so it is for corners without correlation",
            remedy="give log_std, or leave beta at 0",
        )
    corners, residuals = _check_matched(boxes, log_std, cholesky, covariance, truth_boxes, truth_masks, inclusive)
    each = nll_terms(residuals, corners)
    if beta:
        each = each * corners.sigmas.detach() ** (2.0 * beta)
    labels = label_log_probs(label_logits, truth_labels, len(corners), activation=activation)
    return reduce_losses(_with_labels(each.sum(1), labels, label_weight), weights, reduction, boxes)


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
    """Return the energy score of matched boxes, in pixels.

        loss = E|Z - y| - 1/2 E|Z - Z'| - label_weight * ln p(class),   Z, Z' ~ N(mu, Sigma)

    |.| is the length of a vector of four coordinates. The score is exact to 1e-9 of itself, without the noise of drawn
    samples: for X ~ N(m, Sigma)

        E|X| = pi^-1/2 * integral over s > 0 of [1 - det(A)^-1/2 exp(-s^2 m' A^-1 m)] s^-2 ds,   A = I + 2 s^2 Sigma,

    by equal steps in ln s. Far from the truth it grows as the distance does, and not as its square: single bad boxes
    don't decide about the rest as they do in NLL.

    Parameters are those of `nll_loss`, without `beta`.

    Notes
    -----
    T. Gneiting, A. E. Raftery: *Strictly Proper Scoring Rules, Prediction, and Estimation*, JASA 102, 2007.
    A. Harakeh, S. L. Waslander: *Estimating and Evaluating Regression Predictive Uncertainty in Deep Object Detectors*,
    ICLR 2021, who train detectors with it, by samples.

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
    labels = label_log_probs(label_logits, truth_labels, len(corners), activation=activation)
    return reduce_losses(_with_labels(from_truth - 0.5 * apart, labels, label_weight), weights, reduction, boxes)


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
    """Return the continuous ranked probability score of matched boxes, in pixels, summed over the four coordinates.

        loss = sum over coordinates of sigma [z (2 Phi(z) - 1) + 2 phi(z) - pi^-1/2] - label_weight * ln p(class)

    Each coordinate is judged by itself: the correlation of x and y does not matter, and is not learned.

    Parameters are those of `nll_loss`, without `beta`.

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
    labels = label_log_probs(label_logits, truth_labels, len(corners), activation=activation)
    return reduce_losses(_with_labels(each.sum(1), labels, label_weight), weights, reduction, boxes)


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
    """Return the loss of direct moment matching: means are drawn to the truth, covariances to squared residuals.

        loss = sum over coordinates of h(r_i) + sum over entries of h(Sigma_ij - r_i r_j) - label_weight * ln p(class)
        h(d) = d^2 / (2 delta) if |d| < delta, else |d| - delta / 2

    The entries are the four variances if corners are given by `log_std`, and the eight numbers of the two 2 x 2 blocks
    (the covariance of x and y stands there twice) if they are given by `cholesky` or `covariance`. As in the published
    code of the second paper below, r is not detached in the second sum: means are drawn by both. There, r is measured
    in scaled offsets from anchors, here in pixels.

    It is no proper score. Where residuals exceed `delta` by far, h is the distance, which the median of r^2 makes least
    and not its mean: of Gaussian residuals, sigma is learned as 0.67 times what it is. With a `delta` far above r^2,
    sigma is learned right, but outliers decide about it.

    Parameters
    ----------
    boxes, log_std, cholesky, covariance, label_logits, truth_labels, truth_boxes, truth_masks, image_size, activation
        As in `nll_loss`.
    label_weight, inclusive, weights, reduction
        As in `nll_loss`.
    delta : float
        Where h turns from a square into a distance, in pixels in the first sum and square pixels in the second. With 0
        it is the distance.

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
    labels = label_log_probs(label_logits, truth_labels, len(corners), activation=activation)
    return reduce_losses(_with_labels(values, labels, label_weight), weights, reduction, boxes)


def _check_matched(
    boxes: Tensor,
    log_std: Tensor | None,
    cholesky: Tensor | None,
    covariance: Tensor | None,
    truth_boxes: Tensor | None,
    truth_masks: Tensor | None,
    inclusive: bool,
) -> tuple[Corners, Tensor]:
    """Return the corners and the residuals y - mu, (N, 4)."""
    corners = corners_of(boxes, log_std=log_std, cholesky=cholesky, covariance=covariance)
    truth = truth_boxes_of(truth_boxes, truth_masks, len(corners), inclusive=inclusive).to(corners.boxes.device)
    return corners, truth - corners.boxes


def _with_labels(values: Tensor, log_probs: Tensor | None, weight: float) -> Tensor:
    if not (math.isfinite(weight) and weight >= 0):
        raise InputError(f"expected label_weight to be a number of at least 0, but got {weight!r:.40}")
    return values if log_probs is None else values - weight * log_probs


def nll_terms(residuals: Tensor, corners: Corners) -> Tensor:
    """Return terms (N, 4) whose sum is -ln N(r; 0, Sigma): those of x as it is, and of y as it is given x."""
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

    Of a corner's block, det(I + 2 s^2 Sigma) = 1 + 2 s^2 tr Sigma + 4 s^4 det Sigma =: d, and
    m' (I + 2 s^2 Sigma)^-1 m = (|m|^2 + 2 s^2 det(Sigma) m' Sigma^-1 m) / d. So it does without eigenvalues, which have
    no gradient where two are equal.

    Lengths are measured in a unit near E|X|. The integral does not depend on it, so it has no gradient.
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
