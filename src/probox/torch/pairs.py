"""Boxes and the objects they are meant for, as the spatial quality needs them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from probox.convention import PRESETS
from probox.errors import InputError
from probox.torch.arguments import Corners, checked, corners_of, masks_of, truth_boxes_of
from probox.torch.axes import Axis, Nodes, every_pixel

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["EPSILON", "ObjectPixels", "Pairs", "batches", "pairs_of", "share_of"]

EPSILON = PRESETS["paper"].epsilon
"""What the measure adds to every probability before its logarithm."""

BLOCK = 1 << 17
"""So many pixels are looked at together on a processor: they stay in its cache."""


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Boxes and their objects.

    Parameters
    ----------
    corners : Corners
        The boxes; x2, y2 is where they end.
    x, y : Axis
        Their axes.
    ends : (N, 4) tensor
        x0, y0, x1, y1 of the objects, from the first pixel's beginning to the last one's end, inside the image.
    crops : (N, h, w) tensor or None
        Which pixels of their boxes objects have, from the first one on, padded to the largest box; None: all.
    """

    corners: Corners
    x: Axis
    y: Axis
    ends: Tensor
    crops: Tensor | None

    def __len__(self) -> int:
        return len(self.ends)

    def pixels(self) -> Tensor:
        """Return |S| (N,); pixels that a box covers in part count in part."""
        if self.crops is not None:
            return self.crops.sum((1, 2)).double()
        return (self.ends[:, 2] - self.ends[:, 0]) * (self.ends[:, 3] - self.ends[:, 1])

    def part(self, rows: Tensor, corners: Corners) -> Pairs:
        """Return some of the pairs, with other corners."""
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
    log_std: Tensor | None,
    cholesky: Tensor | None,
    covariance: Tensor | None,
    truth_boxes: Tensor | None,
    truth_masks: Tensor | None,
    image_size: tuple[int, int] | Tensor | None,
    inclusive: bool,
) -> Pairs:
    """Return the pairs that the arguments of `spatial_quality` describe."""
    corners = corners_of(boxes, log_std=log_std, cholesky=cholesky, covariance=covariance)
    n, device = len(corners), corners.boxes.device
    truth = truth_boxes_of(truth_boxes, truth_masks, n, inclusive=inclusive).to(device)
    masks = None if truth_masks is None else masks_of(truth_masks, n).to(device)
    if masks is not None and image_size is None:
        image_size = (masks.shape[2], masks.shape[1])
    if inclusive:
        # A box that names its last pixel ends one pixel later.
        past = torch.tensor([0.0, 0.0, 1.0, 1.0], dtype=torch.float64, device=device)
        corners, truth = dataclasses.replace(corners, boxes=corners.boxes + past), truth + past
    size = _sizes(image_size, n, device)
    if size is not None:
        limits = torch.stack([*size, *size], 1)
        truth = torch.minimum(truth.clamp(min=0.0), limits)
    if masks is not None and size is not None and bool((torch.stack(size, 1).amax(0) != _shape(masks)).any()):
        height, width = masks.shape[1:]
        raise InputError(
            f"expected masks of the image's size {[int(s.max()) for s in size]}, but got {[width, height]}",
            remedy="leave image_size out, or give masks of the whole image",
        )
    area = (truth[:, 2] - truth[:, 0]) * (truth[:, 3] - truth[:, 1])
    if bool((area <= 0).any()):
        row = int((area <= 0).nonzero()[0])
        raise InputError(
            "expected a true box with pixels in the image",
            entry=f"truth, row {row}",
            remedy="leave out objects that lie outside, or of which nothing is left",
        )
    return Pairs(corners, *_axes(corners, size), truth, None if masks is None else _cropped(masks, truth))


def _cropped(masks: Tensor, ends: Tensor) -> Tensor:
    """Return the parts of masks in their boxes, each moved to the first row and column."""
    first, last = ends[:, :2].long(), ends[:, 2:].long()
    width, height = (last - first).amax(0).tolist() if len(ends) else (0, 0)
    columns, rows = (
        first[:, axis, None] + torch.arange(n, device=masks.device)[None, :] for axis, n in ((0, width), (1, height))
    )
    there = (rows < last[:, 1, None])[:, :, None] & (columns < last[:, 0, None])[:, None, :]
    every = torch.arange(len(masks), device=masks.device)[:, None, None]
    rows, columns = rows.clamp(max=masks.shape[1] - 1), columns.clamp(max=masks.shape[2] - 1)
    return masks[every, rows[:, :, None], columns[:, None, :]] & there


def _shape(masks: Tensor) -> Tensor:
    return torch.tensor([masks.shape[2], masks.shape[1]], dtype=torch.float64, device=masks.device)


def _sizes(given: Any, n: int, device: Any) -> tuple[Tensor, Tensor] | None:
    """Return widths and heights, (N,) each."""
    if given is None:
        return None
    sizes = torch.as_tensor(given, dtype=torch.float64, device=device)
    if sizes.shape not in ((2,), (n, 2)):
        raise InputError(f"expected image_size to be (width, height), or one for each box, but got {given!r:.60}")
    sizes = checked(sizes.expand(n, 2), "image_size", (n, 2)).detach()
    if bool((sizes < 1).any()) or bool((sizes != sizes.floor()).any()):
        raise InputError(f"expected image_size in whole pixels of at least 1, but got {given!r:.60}")
    return sizes[:, 0], sizes[:, 1]


@dataclasses.dataclass(frozen=True)
class ObjectPixels:
    """The pixels of objects: columns and rows of their boxes, how much of each is covered, and masks."""

    x: Nodes
    y: Nodes
    share_x: Tensor
    share_y: Tensor
    crops: Tensor | None

    @classmethod
    def of(cls, pairs: Pairs) -> ObjectPixels:
        """Return those of pairs."""

        def pixels(low: Tensor, high: Tensor) -> tuple[Nodes, Tensor]:
            every = every_pixel(torch.floor(low), torch.ceil(high))
            return every, share_of(every, low, high)

        (x, share_x), (y, share_y) = (pixels(pairs.ends[:, axis], pairs.ends[:, axis + 2]) for axis in (0, 1))
        return cls(x, y, share_x, share_y, pairs.crops)

    def in_lines(self) -> tuple[Tensor, Tensor]:
        """Return how many pixels each column has, and each row."""
        if self.crops is None:
            return self.share_x * self.share_y.sum(1, keepdim=True), self.share_y * self.share_x.sum(1, keepdim=True)
        return self.crops.sum(1).double(), self.crops.sum(2).double()

    def weights(self, some: Tensor, nx: int, ny: int) -> Tensor:
        """Return how much of each pixel of some objects is part of them, (n, ny, nx)."""
        if self.crops is not None:
            return self.crops[some, :ny, :nx].double()
        return self.share_y[some, :ny, None] * self.share_x[some, None, :nx]


def share_of(at: Nodes, low: Tensor, high: Tensor) -> Tensor:
    """Return how much of each pixel lies between two ends; 0 for padding."""
    covered = torch.minimum(at.places + 1.0, high[:, None]) - torch.maximum(at.places, low[:, None])
    return covered.clamp(0.0, 1.0) * (at.counts > 0)


def batches(areas: Tensor, times: int = 1) -> Iterator[Tensor]:
    """Yield rows of boxes of about the same number of pixels that are looked at together; those without are left out.

    On a GPU a batch is as large as is kind to its memory.
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
