"""PMB-NLL as a loss: how likely the objects of an image are, given all of its detections, however these are paired.

    PMB-NLL = integral of lambda - ln sum over assignments of
        [product over matched pairs of p_i(c_j) N(y_j; mu_i, Sigma_i)]
        [product over unmatched detections of p_i(background)]
        [product over unmatched objects of lambda(y_j, c_j)]

It is the number of `probox.measures.pmb_definition`, to the last choice. Which assignments are the most likely ones is
asked of the kernel, without gradients; their likelihoods are then summed with them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from probox import _core
from probox.errors import InputError
from probox.measures.pmb_definition import ASSIGNMENTS, CLUTTER, MIN_PROBABILITY
from probox.torch.arguments import Corners, Reduction, check_tensor, corners_of, reduce_losses, truth_boxes_of
from probox.torch.box_losses import nll_terms

if TYPE_CHECKING:
    from torch import Tensor

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
    labels = _labels(truth_labels, corners.boxes.device)
    truth = truth_boxes_of(truth_boxes, truth_masks, len(labels), inclusive=inclusive).to(corners.boxes.device)
    claims = _Claims(label_logits, len(corners), activation)
    if len(labels) and not (int(labels.min()) >= 0 and int(labels.max()) < claims.classes):
        row = int(((labels < 0) | (labels >= claims.classes)).nonzero()[0])
        raise InputError(
            f"expected a class from 0 to {claims.classes - 1}, but got {int(labels[row])}",
            entry=f"truth_labels, row {row}",
            remedy="the last column of logits is the background" if activation == "softmax" else None,
        )
    if isinstance(assignments, bool) or not isinstance(assignments, int) or assignments < 1:
        raise InputError(f"expected assignments to be a whole number of at least 1, but got {assignments!r:.40}")
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
        if activation not in ("softmax", "sigmoid"):
            raise InputError(f"expected activation to be softmax or sigmoid, but got {activation!r:.40}")
        background = activation == "softmax"
        if logits.shape[1] < 1 + background:
            raise InputError(
                f"expected label_logits of at least {1 + background} columns, but got {logits.shape[1]}",
                remedy="the last column is the background" if background else None,
            )
        if background:
            logs = torch.log_softmax(logits, 1)
            self.log_probs, left = logs[:, :-1], logs[:, -1]
        else:
            self.log_probs = torch.nn.functional.logsigmoid(logits)
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


def _labels(truth_labels: Tensor, device: torch.device) -> Tensor:
    if not isinstance(truth_labels, torch.Tensor) or truth_labels.dim() != 1:
        raise InputError("expected truth_labels to be a tensor of shape (M,), one class for each object")
    if truth_labels.is_floating_point() or truth_labels.dtype == torch.bool:
        raise InputError(f"expected truth_labels to hold whole numbers, but got {truth_labels.dtype}")
    return truth_labels.long().to(device)


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
        if not isinstance(given, torch.Tensor) or tuple(given.shape) != (size,):
            raise InputError(f"expected {name} to be a tensor of shape ({size},)")
        if given.is_floating_point() or given.dtype == torch.bool:
            raise InputError(f"expected {name} to hold whole numbers, but got {given.dtype}")
        rows.append(given.detach().cpu().numpy().astype(np.int64))
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
