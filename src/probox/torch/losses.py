"""Losses of matched boxes (NLL, energy score, CRPS, moment matching), and of whole images (PMB-NLL).

For a box with mean mu and covariance Sigma, its truth y, r = y - mu and z = r / sigma of each coordinate:

    NLL    = 1/2 r' Sigma^-1 r + 1/2 ln det(2 pi Sigma)
    energy = E|Z - y| - 1/2 E|Z - Z'|,   Z, Z' ~ N(mu, Sigma)
    CRPS   = sum over coordinates of sigma [z (2 Phi(z) - 1) + 2 phi(z) - pi^-1/2]
    DMM    = sum over coordinates of h(r) + sum over entries of h(Sigma - r r'),   h the smooth L1

Sigma has two blocks of 2 x 2, one for each corner. NLL, energy and CRPS are proper: nothing has a lower expected loss
than the distribution that the truth is drawn from. CRPS sees one coordinate at a time; DMM is not proper.

These four take the same arguments, and those of `ppdq_loss`, so that one may stand in another's place. All are computed
in double precision and returned in that of `boxes`, and are finite, with finite gradients, from 0.05 to 200 pixels of
standard deviation and up to 10,000 pixels of residual.
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
    """Return the corners and the residuals y - mu, (N, 4)."""
    corners = corners_of(boxes, log_std=log_std, cholesky=cholesky, covariance=covariance)
    truth = truth_boxes_of(truth_boxes, truth_masks, len(corners), inclusive=inclusive).to(corners.boxes.device)
    return corners, truth - corners.boxes


def _with_labels(
    values: Tensor, label_logits: Tensor | None, truth_labels: Tensor | None, activation: str, weight: float
) -> Tensor:
    """Return losses (N,) with the weighted cross-entropy of labels, if there are any."""
    log_probs = label_log_probs(label_logits, truth_labels, len(values), activation=activation)
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


# --- PMB-NLL: how likely the objects of an image are, given all of its detections, however these are paired ---

# The number is that of `probox.measures.pmb_definition`, to the last choice. Which assignments are the most likely ones
# is asked of the kernel, without gradients; their likelihoods are then summed with them.

DEFAULT_SIZE = (1000, 1000)
"""Width and height of images whose size is not told: they decide about the floor only."""

MOST_IMAGES = 10_000
"""An index beyond is an image's id, and not its place in a batch."""


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
    """Return the negative log likelihood of images' objects, in nats: nothing has to be matched before.

        loss = integral of lambda - sum over i of ln p_i(background) - ln sum over assignments of
            [product over pairs of p_i(c_j) N(y_j; mu_i, Sigma_i) / p_i(background)]
            [product over unmatched objects of lambda(y_j, c_j)]

    Detections i are those whose highest class probability is above 0.1. The others are clutter: together they make the
    intensity lambda(y, c) = sum over them of max p * s(c) * N(y; mu, Sigma), s(c) = p(c) / sum of p, whose integral is
    the sum of their max p. Probabilities p(c), p(background) and s(c) are clamped to [1e-6, 1 - 1e-6], beyond which
    they have no gradient. The sum is over the 25 most likely assignments.

    Parameters
    ----------
    boxes : (N, 4) tensor
        Means of x1, y1, x2, y2 in pixels: all detections of all images.
    log_std, cholesky, covariance : tensors, one of them
        How uncertain the corners are, as in `probox.torch.nll_loss`.
    label_logits : (N, C + 1) or (N, C) tensor
        With softmax the **last column is the background**. With sigmoid there is none: background has what the classes
        leave of 1.
    truth_labels : (M,) tensor
        The objects' classes, below C.
    truth_boxes, truth_masks : (M, 4) or (M, H, W) tensor, one of them
        The objects. Of masks the tight boxes are taken.
    image_index, truth_image_index : (N,) and (M,) tensors, optional
        Which image each detection and each object belongs to, counted from 0. Default: all are in one.
    images : int, optional
        How many images there are. Default: as many as the highest index says; images after it, which have neither
        objects nor detections and a loss of 0, would count in the mean.
    image_size : (int, int) or (images, 2) tensor, optional
        Width and height, for `log_floor`. Default: those of masks; 1000 x 1000 for boxes.
    activation : "softmax" or "sigmoid"
        What makes probabilities of logits.
    inclusive : bool
        Whether boxes end with their last pixel, or where it ends. Decides about the boxes of masks only.
    log_floor : float, optional
        The least ln lambda(y, c), which keeps the loss finite where nothing explains an object. Default: that of
        evaluations, ln[1e-6 / (C * W^2 / 2 * H^2 / 2)], a millionth of an object spread evenly over the boxes of the
        image and the classes. An object at the floor has no gradient but that of pairing it.
    assignments : int
        How many of the most likely assignments are summed.
    weights : (images,) tensor, optional
        How much each image counts.
    reduction : "mean", "sum" or "none"
        What becomes of the losses of images.

    Notes
    -----
    G. Hess, C. Petersson, L. Svensson: *Object Detection as Probabilistic Set Prediction*, ECCV 2022.

    Examples
    --------
    Two images: in the first a cup (class 0) was found, in the second nothing is there and nothing was found.

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
    claims = _Claims(label_logits, len(corners), activation)
    background = "the last column of logits is the background" if activation == "softmax" else None
    check_classes(labels, claims.classes, remedy=background)
    check_count(assignments, "assignments")
    found_in, there_in, number = _images(image_index, truth_image_index, images, len(corners), len(labels))
    if image_size is None and truth_masks is not None:
        image_size = (truth_masks.shape[2], truth_masks.shape[1])
    floors = _floors(log_floor, image_size, claims.classes, number)

    rows = [[torch.from_numpy(np.flatnonzero(of == k)) for of in (found_in, there_in)] for k in range(number)]
    log_densities = _log_densities(corners, truth, rows)
    values = [
        _nll_of_image(claims, found.to(truth.device), labels[there.to(truth.device)], log_n, floor, assignments)
        for (found, there), log_n, floor in zip(rows, log_densities, floors, strict=True)
    ]
    stacked = torch.stack(values) if values else corners.boxes.sum() * corners.boxes.new_zeros(0)
    return reduce_losses(stacked, weights, reduction, boxes)


class _Claims:
    """What detections say of classes, in logarithms.

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
                remedy="the last column is the background" if background else None,
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
    claims: _Claims, rows: Tensor, labels: Tensor, log_densities: Tensor, floor: float, assignments: int
) -> Tensor:
    """Return the loss of one image, with its detections' rows, its objects' classes and ln N of all pairs."""
    clutter = claims.clutter[rows]
    sure, others = rows[~clutter], rows[clutter]
    unmatched = claims.log_background[sure]
    matched = _clamp(claims.log_probs[sure][:, labels]) + log_densities[~clutter] - unmatched[:, None]
    missed = log_densities.new_full((len(labels),), floor)
    expected = claims.log_highest[others].exp().sum()
    if len(others):
        weighted = claims.log_highest[others][:, None] + _clamp(claims.log_shares[others][:, labels])
        missed = torch.maximum(torch.logsumexp(weighted + log_densities[clutter], 0), missed)
    costs, alone = (-part.detach().cpu().numpy() for part in (matched.T, missed))
    chosen, _ = _core.k_best_assignments(np.ascontiguousarray(costs), np.ascontiguousarray(alone), assignments)
    # The last row is what is chosen by -1.
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
    """Return the image of each detection and each object, and how many images there are."""
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
            f"expected images to be counted from 0, but one is {int(everywhere.max())}",
            remedy="count them within the batch, or say with images how many there are",
        )
    number = (int(everywhere.max(initial=-1)) + 1 if image_index is not None else 1) if images is None else images
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise InputError(f"expected images to be a whole number, but got {number!r:.40}")
    if ((everywhere < 0) | (everywhere >= number)).any():
        name = "image_index" if ((rows[0] < 0) | (rows[0] >= number)).any() else "truth_image_index"
        raise InputError(f"expected {name} from 0 on and below {number}, which is how many images there are")
    return rows[0], rows[1], number


def _floors(
    log_floor: float | None, image_size: tuple[int, int] | Tensor | None, classes: int, images: int
) -> list[float]:
    """Return the least ln lambda in each image."""
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
