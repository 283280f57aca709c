"""Arguments shared by all losses: Gaussian corners, labels and ground truth, checked and in one shape.

Corners are given by exactly one of

- ``log_std`` (N, 4): log standard deviations of x1, y1, x2, y2, without correlation;
- ``cholesky`` (N, 2, 2, 2): lower triangles L of the two corners' covariances L L', top-left first;
- ``covariance`` (N, 2, 2, 2): the covariances themselves, as in `probox.Detections`.

The true boxes are given by exactly one of ``truth_boxes`` (N, 4) and ``truth_masks`` (N, H, W).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import torch

from probox.convention import PRESETS
from probox.errors import InputError
from probox.torch.gaussian_integrals import Axis, Nodes, every_pixel

if TYPE_CHECKING:
    from torch import Tensor


MIN_SIGMA = 1e-3
"""Lower bound of standard deviations, in pixels: the density of a corner without variance has no gradient."""

MAX_CORRELATION = 0.9999
"""Upper bound of correlations: at 1 the density of a corner is unbounded."""

Reduction = Literal["mean", "sum", "none"]


@dataclasses.dataclass(frozen=True)
class Corners:
    """Gaussian corners in double precision.

    Parameters
    ----------
    boxes : (N, 4) tensor
        Means of x1, y1, x2, y2.
    sigmas : (N, 4) tensor
        Standard deviations.
    rho : (N, 2) tensor or None
        Correlation of x and y of each corner; None for corners without a learned correlation.
    """

    boxes: Tensor
    sigmas: Tensor
    rho: Tensor | None

    def __len__(self) -> int:
        return len(self.boxes)

    def covariance(self) -> Tensor:
        """Return the covariances, (N, 2, 2, 2)."""
        sigmas = self.sigmas.reshape(-1, 2, 2)
        rho = torch.zeros_like(sigmas[:, :, 0]) if self.rho is None else self.rho
        across = rho * sigmas[..., 0] * sigmas[..., 1]
        return matrices_of(sigmas[..., 0] ** 2, across, across, sigmas[..., 1] ** 2)


def matrices_of(first: Tensor, second: Tensor, third: Tensor, fourth: Tensor) -> Tensor:
    """Return matrices (..., 2, 2) from their entries, row by row."""
    return torch.stack([torch.stack([first, second], -1), torch.stack([third, fourth], -1)], -2)


def corners_of(boxes: Tensor, *, log_std: Tensor | None, cholesky: Tensor | None, covariance: Tensor | None) -> Corners:
    """Return the corners given by the arguments of a loss."""
    given = {"log_std": log_std, "cholesky": cholesky, "covariance": covariance}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InputError(
            f"expected one of log_std, cholesky and covariance, but got {' and '.join(named) or 'none'}",
            remedy="pass exactly one of them; GaussianCorners computes all three from the output of a layer",
        )
    means = check_tensor(boxes, "boxes", (None, 4)).double()
    n = len(means)
    if log_std is not None:
        sigmas = check_tensor(log_std, "log_std", (n, 4)).double().exp()
        _check_sigmas(sigmas, "log_std")
        return Corners(means, _at_least(sigmas), None)
    if cholesky is not None:
        lower = check_tensor(cholesky, "cholesky", (n, 2, 2, 2)).double()
        if bool((lower[..., 0, 1] != 0).any()):
            raise InputError("expected cholesky to hold lower triangles, but some upper right number is not 0")
        first, across, second = lower[..., 0, 0], lower[..., 1, 0], lower[..., 1, 1]
        if bool((first < 0).any()) or bool((second < 0).any()):
            raise InputError("expected cholesky to have a diagonal of at least 0", remedy="use softplus or exp on it")
        x, y = _at_least(first), _at_least((across**2 + second**2 + 1e-300).sqrt())
        rho = across / y
        learns = cholesky.requires_grad
    else:
        assert covariance is not None
        whole = check_tensor(covariance, "covariance", (n, 2, 2, 2)).double()
        xx, yy = whole[..., 0, 0], whole[..., 1, 1]
        xy = (whole[..., 0, 1] + whole[..., 1, 0]) / 2
        invalid = ((xx < 0) | (yy < 0) | (xy**2 > xx * yy * (1 + 1e-6))).any(1)
        if bool(invalid.any()):
            raise InputError(
                "expected covariances to be positive semi-definite",
                entry=f"box {_first(invalid)}",
                remedy="pass cholesky instead: L L' is always positive semi-definite",
            )
        x, y = _at_least((xx + 1e-300).sqrt()), _at_least((yy + 1e-300).sqrt())
        rho = xy / (x * y)
        learns = covariance.requires_grad
    sigmas = torch.stack([x, y], -1).reshape(n, 4)
    _check_sigmas(sigmas, "the standard deviations")
    if not learns and not bool(rho.any()):
        return Corners(means, sigmas, None)
    return Corners(means, sigmas, rho.clamp(-MAX_CORRELATION, MAX_CORRELATION))


def _at_least(sigmas: Tensor) -> Tensor:
    return sigmas.clamp(min=MIN_SIGMA)


def _first(flags: Tensor) -> int:
    """Return the first row that is flagged."""
    return int(flags.nonzero()[0])


def _check_sigmas(sigmas: Tensor, name: str) -> None:
    large = ~(sigmas < 1e6).all(1)
    if bool(large.any()):
        row = _first(large)
        raise InputError(
            f"expected standard deviations below 1e6 pixels, but {name} gives {float(sigmas[row].detach().max()):.3g}",
            entry=f"box {row}",
            remedy="clamp them, as GaussianCorners does",
        )


def check_tensor(value: Any, name: str, shape: tuple[int | None, ...]) -> Tensor:
    """Return `value` as a tensor of real, finite numbers of this shape; None stands for any length."""
    if not isinstance(value, torch.Tensor):
        raise InputError(f"expected {name} to be a tensor, but got {type(value).__name__}")
    wanted = ", ".join("N" if size is None else str(size) for size in shape)
    fits = value.dim() == len(shape) and all(
        own == size for own, size in zip(value.shape, shape, strict=True) if size is not None
    )
    if not fits:
        raise InputError(f"expected {name} of shape ({wanted}), but got {tuple(value.shape)}")
    if not value.is_floating_point():
        raise InputError(f"expected {name} to hold floats, but got {value.dtype}", remedy="convert it with .float()")
    finite = torch.isfinite(value)
    if not bool(finite.all()):
        raise InputError(
            f"expected {name} to be finite",
            entry=f"row {_first((~finite).reshape(len(value), -1).any(1))}",
            remedy="look for a division by 0 or a learning rate that is too high",
        )
    return value


def truth_boxes_of(truth_boxes: Tensor | None, truth_masks: Tensor | None, n: int, *, inclusive: bool = True) -> Tensor:
    """Return the true boxes in double precision, (N, 4): those given, or the tight boxes of masks.

    With `inclusive`, x2 and y2 of a mask's box are its last pixel; without, the end of that pixel.
    """
    if (truth_boxes is None) == (truth_masks is None):
        both = "both" if truth_boxes is not None else "none"
        raise InputError(f"expected one of truth_boxes and truth_masks, but got {both}")
    if truth_boxes is not None:
        if isinstance(truth_boxes, torch.Tensor) and not truth_boxes.is_floating_point():
            truth_boxes = truth_boxes.double()
        boxes = check_tensor(truth_boxes, "truth_boxes", (n, 4)).detach().double()
        wrong = (boxes[:, 2:] < boxes[:, :2]).any(1)
        if bool(wrong.any()):
            row = _first(wrong)
            raise InputError(
                f"expected x1 <= x2 and y1 <= y2, but got {[round(v, 3) for v in boxes[row].tolist()]}",
                entry=f"truth_boxes, row {row}",
                remedy="write boxes as x1, y1, x2, y2",
            )
        return boxes
    masks = masks_of(truth_masks, n)
    columns, rows = masks.any(1), masks.any(2)
    empty = ~rows.any(1)
    if bool(empty.any()):
        raise InputError("expected a mask with pixels", entry=f"truth_masks, row {_first(empty)}")
    ends = []
    for line in (columns, rows):
        size = line.shape[1]
        place = torch.arange(size, device=masks.device)
        ends.append((torch.where(line, place, size).amin(1), torch.where(line, place, -1).amax(1)))
    (x0, x1), (y0, y1) = ends
    return torch.stack([x0, y0, x1 + (not inclusive), y1 + (not inclusive)], 1).double()


def masks_of(truth_masks: Any, n: int) -> Tensor:
    """Return masks as booleans, (N, H, W)."""
    if not isinstance(truth_masks, torch.Tensor) or truth_masks.dim() != 3 or len(truth_masks) != n:
        got = tuple(truth_masks.shape) if isinstance(truth_masks, torch.Tensor) else type(truth_masks).__name__
        raise InputError(f"expected truth_masks of shape ({n}, H, W), one for each box, but got {got}")
    return truth_masks if truth_masks.dtype == torch.bool else truth_masks > 0.5


def label_log_probs(
    label_logits: Tensor | None, truth_labels: Tensor | None, n: int, *, activation: str = "softmax"
) -> Tensor | None:
    """Return the log probabilities of the true classes, (N,), in double precision; None without labels."""
    if (label_logits is None) != (truth_labels is None):
        missing = "truth_labels" if truth_labels is None else "label_logits"
        raise InputError(f"expected label_logits and truth_labels together, but {missing} is missing")
    if label_logits is None or truth_labels is None:
        return None
    logits = check_tensor(label_logits, "label_logits", (n, None)).double()
    labels = check_whole(truth_labels, "truth_labels", n, ", one class for each box")
    check_classes(labels, logits.shape[1])
    return log_activation(logits, activation).gather(1, labels[:, None])[:, 0]


def log_activation(logits: Tensor, activation: str) -> Tensor:
    """Return log probabilities of logits."""
    if activation not in ("softmax", "sigmoid"):
        raise InputError(f"expected activation to be softmax or sigmoid, but got {activation!r:.40}")
    return torch.log_softmax(logits, 1) if activation == "softmax" else torch.nn.functional.logsigmoid(logits)


def check_whole(value: Any, name: str, size: int | None, meaning: str = "") -> Tensor:
    """Return `value` as a 1-D tensor of whole numbers; a size of None allows any length M."""
    if not isinstance(value, torch.Tensor) or value.dim() != 1 or size not in (None, len(value)):
        raise InputError(f"expected {name} to be a tensor of shape ({'M' if size is None else size},){meaning}")
    if value.is_floating_point() or value.dtype == torch.bool:
        raise InputError(f"expected {name} to hold whole numbers, but got {value.dtype}")
    return value.long()


def check_classes(labels: Tensor, classes: int, remedy: str | None = None) -> None:
    """Raise an error unless all labels are class indices below `classes`."""
    unknown = (labels < 0) | (labels >= classes)
    if bool(unknown.any()):
        row = _first(unknown)
        problem = f"expected a class from 0 to {classes - 1}, but got {int(labels[row])}"
        raise InputError(problem, entry=f"truth_labels, row {row}", remedy=remedy)


def check_number(value: Any, name: str, most: float = 1.0) -> None:
    """Raise an error unless `value` is a number from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= most:
        raise InputError(f"expected {name} to be a number from 0 to {most:g}, but got {value!r:.40}")


def check_count(value: Any, name: str) -> None:
    """Raise an error unless `value` is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"expected {name} to be a whole number of at least 1, but got {value!r:.40}")


def reduce_losses(values: Tensor, weights: Tensor | None, reduction: Reduction, like: Tensor) -> Tensor:
    """Return the losses (N,) reduced, in the type of `like`; the mean of no losses is 0.

    With weights the mean is sum(w * loss) / sum(w).
    """
    if reduction not in ("mean", "sum", "none"):
        raise InputError(f"expected reduction to be mean, sum or none, but got {reduction!r:.40}")
    total: Tensor | float = max(len(values), 1)
    if weights is not None:
        given = check_tensor(weights, "weights", (len(values),)).detach().double()
        if bool((given < 0).any()):
            raise InputError("expected weights of at least 0")
        values = values * given
        total = given.sum().clamp(min=1e-300)
    kind = like.dtype if like.is_floating_point() else torch.float32
    if reduction == "none":
        return values.to(kind)
    return (values.sum() / total if reduction == "mean" else values.sum()).to(kind)


EPSILON = PRESETS["paper"].epsilon
"""Added to every probability before its logarithm, as PDQ does under preset ``paper``."""

BLOCK = 1 << 17
"""Pixels per batch on a CPU, so that a batch stays in its cache."""


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Boxes with their objects.

    Parameters
    ----------
    corners : Corners
        The boxes; x2, y2 are where they end.
    x, y : Axis
        Their two axes.
    ends : (N, 4) tensor
        x0, y0, x1, y1 of the objects, from the start of the first pixel to the end of the last one, inside the image.
    crops : (N, h, w) tensor or None
        Object pixels within each box, from its first pixel on, padded to the largest box; None for filled boxes.
    """

    corners: Corners
    x: Axis
    y: Axis
    ends: Tensor
    crops: Tensor | None

    def __len__(self) -> int:
        return len(self.ends)

    def pixels(self) -> Tensor:
        """Return |S|, the pixels of each object, (N,); partly covered pixels count as fractions."""
        if self.crops is not None:
            return self.crops.sum((1, 2)).double()
        return (self.ends[:, 2] - self.ends[:, 0]) * (self.ends[:, 3] - self.ends[:, 1])

    def part(self, rows: Tensor, corners: Corners) -> Pairs:
        """Return a subset of the pairs, with other corners."""
        size = None if self.x.size is None or self.y.size is None else (self.x.size[rows], self.y.size[rows])
        crops = None if self.crops is None else self.crops[rows]
        return Pairs(corners, *_axes(corners, size), self.ends[rows], crops)


def _axes(corners: Corners, size: tuple[Tensor, Tensor] | None) -> tuple[Axis, Axis]:
    boxes, sigmas = corners.boxes, corners.sigmas
    x, y = (
        Axis(boxes[:, a], sigmas[:, a], boxes[:, a + 2], sigmas[:, a + 2], None if size is None else size[a])
        for a in (0, 1)
    )
    return x, y


def pairs_of(
    boxes: Tensor,
    *,
    log_std: Tensor | None = None,
    cholesky: Tensor | None = None,
    covariance: Tensor | None = None,
    truth_boxes: Tensor | None = None,
    truth_masks: Tensor | None = None,
    image_size: tuple[int, int] | Tensor | None = None,
    inclusive: bool = True,
) -> Pairs:
    """Return the pairs given by the arguments of `spatial_quality`."""
    corners = corners_of(boxes, log_std=log_std, cholesky=cholesky, covariance=covariance)
    n, device = len(corners), corners.boxes.device
    truth = truth_boxes_of(truth_boxes, truth_masks, n, inclusive=inclusive).to(device)
    masks = None if truth_masks is None else masks_of(truth_masks, n).to(device)
    if masks is not None and image_size is None:
        image_size = (masks.shape[2], masks.shape[1])
    if inclusive:
        # Inclusive boxes name their last pixel, which ends one pixel later.
        past = torch.tensor([0.0, 0.0, 1.0, 1.0], dtype=torch.float64, device=device)
        corners, truth = dataclasses.replace(corners, boxes=corners.boxes + past), truth + past
    size = _sizes(image_size, n, device)
    if size is not None:
        limits = torch.stack([*size, *size], 1)
        truth = torch.minimum(truth.clamp(min=0.0), limits)
    if masks is not None and size is not None and len(masks):
        largest, own = [int(sizes.max()) for sizes in size], [masks.shape[2], masks.shape[1]]
        if largest != own:
            raise InputError(
                f"expected masks of the image's size {largest}, but got {own}",
                remedy="omit image_size, or pass masks of the whole image",
            )
    area = (truth[:, 2] - truth[:, 0]) * (truth[:, 3] - truth[:, 1])
    if bool((area <= 0).any()):
        raise InputError(
            "expected a ground-truth box with pixels in the image",
            entry=f"truth, row {_first(area <= 0)}",
            remedy="omit objects outside the image and objects without area",
        )
    return Pairs(corners, *_axes(corners, size), truth, None if masks is None else _crop_masks(masks, truth))


def _crop_masks(masks: Tensor, ends: Tensor) -> Tensor:
    """Return the parts of masks inside their boxes, each shifted to row 0 and column 0."""
    first, last = ends[:, :2].long(), ends[:, 2:].long()
    width, height = (last - first).amax(0).tolist() if len(ends) else (0, 0)
    columns, rows = (
        first[:, axis, None] + torch.arange(n, device=masks.device)[None, :] for axis, n in ((0, width), (1, height))
    )
    there = (rows < last[:, 1, None])[:, :, None] & (columns < last[:, 0, None])[:, None, :]
    every = torch.arange(len(masks), device=masks.device)[:, None, None]
    rows, columns = rows.clamp(max=masks.shape[1] - 1), columns.clamp(max=masks.shape[2] - 1)
    return masks[every, rows[:, :, None], columns[:, None, :]] & there


def _sizes(given: Any, n: int, device: Any) -> tuple[Tensor, Tensor] | None:
    """Return widths and heights, (N,) each."""
    if given is None:
        return None
    sizes = torch.as_tensor(given, dtype=torch.float64, device=device)
    if sizes.shape not in ((2,), (n, 2)):
        raise InputError(f"expected image_size to be (width, height), or one for each box, but got {given!r:.60}")
    sizes = check_tensor(sizes.expand(n, 2), "image_size", (n, 2)).detach()
    if bool((sizes < 1).any()) or bool((sizes != sizes.floor()).any()):
        raise InputError(f"expected image_size in whole pixels of at least 1, but got {given!r:.60}")
    return sizes[:, 0], sizes[:, 1]


@dataclasses.dataclass(frozen=True)
class ObjectPixels:
    """Pixels of objects: columns and rows of their boxes, the covered fraction of each, and masks."""

    x: Nodes
    y: Nodes
    share_x: Tensor
    share_y: Tensor
    crops: Tensor | None

    @classmethod
    def of(cls, pairs: Pairs) -> ObjectPixels:
        """Return the object pixels of pairs."""

        def pixels(low: Tensor, high: Tensor) -> tuple[Nodes, Tensor]:
            every = every_pixel(torch.floor(low), torch.ceil(high))
            return every, share_of(every, low, high)

        (x, share_x), (y, share_y) = (pixels(pairs.ends[:, axis], pairs.ends[:, axis + 2]) for axis in (0, 1))
        return cls(x, y, share_x, share_y, pairs.crops)

    def in_lines(self) -> tuple[Tensor, Tensor]:
        """Return the number of object pixels in each column, and in each row."""
        if self.crops is None:
            return self.share_x * self.share_y.sum(1, keepdim=True), self.share_y * self.share_x.sum(1, keepdim=True)
        return self.crops.sum(1).double(), self.crops.sum(2).double()

    def weights(self, some: Tensor, nx: int, ny: int) -> Tensor:
        """Return the fraction of each pixel that belongs to the object, (n, ny, nx), for some objects."""
        if self.crops is not None:
            return self.crops[some, :ny, :nx].double()
        return self.share_y[some, :ny, None] * self.share_x[some, None, :nx]


def share_of(at: Nodes, low: Tensor, high: Tensor) -> Tensor:
    """Return the fraction of each pixel between two ends; 0 for padding."""
    covered = torch.minimum(at.places + 1.0, high[:, None]) - torch.maximum(at.places, low[:, None])
    return covered.clamp(0.0, 1.0) * (at.counts > 0)


def batches(areas: Tensor, times: int = 1) -> Iterator[Tensor]:
    """Yield batches of row numbers with about the same number of pixels; boxes without pixels are skipped.

    On a GPU the batch size is limited by memory.
    """
    block = (BLOCK if areas.device.type == "cpu" else BLOCK << 7) * times
    order = torch.argsort(areas)
    listed = areas[order].tolist()
    start = sum(area <= 0 for area in listed)
    while start < len(listed):
        stop = start + 1
        while stop < len(listed) and (stop + 1 - start) * listed[stop] <= block:
            stop += 1
        yield order[start:stop]
        start = stop
