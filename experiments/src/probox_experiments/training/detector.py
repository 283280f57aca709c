"""A detector in two stages, 44,000 parameters in all, as small as it can be and still learn how unsure it must be.

The first stage says for every cell of a grid whether an object is centred near it, of which class, and roughly where.
The second looks at the strips of the picture across the four edges of such a rough box, and says where each edge is
and how unsure that is: a mean and a log standard deviation. All four edges are read by the same layers, each strip
turned so that it leads from the inside to the outside.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from probox_experiments.training.scenes import CLASSES, SIDE

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["CELLS", "STRIDE", "Rough", "SmallDetector", "as_seen", "cell_centres"]

STRIDE = 8
CELLS = SIDE // STRIDE
"""Along either side of the grid."""

RARE = -3.5
"""The logit that a cell begins with: one in thirty speaks for an object, and to learn that first costs the rest."""
USUAL_HALF = 14.0
"""Where boxes begin to learn: as large as a middling object, with edges known to `USUAL_SIGMA` pixels."""
USUAL_SIGMA = 2.0
LOG_STDS = (math.log(0.05), math.log(50.0))
"""No log standard deviation beyond, so that no early step can ruin a training; the right ones lie far from both."""

REACH = 11
"""How many pixels a strip reaches from its edge to either side."""
LINES = 8
"""How many lines of pixels a strip has, spread over the inner part of its edge."""


def as_seen(pictures: Tensor) -> Tensor:
    """Return pictures of bytes as the detector takes them, from -1 to 1."""
    return pictures.float() / 127.5 - 1.0


class Rough(NamedTuple):
    """What the first stage says of every cell; rows are images x cells.

    `objectness` (R,) and `label_logits` (R, C) are logits; `boxes` (R, 4) are rough x1, y1, x2, y2 in pixels.
    """

    objectness: Tensor
    label_logits: Tensor
    boxes: Tensor


def cell_centres() -> Tensor:
    """Return the centres of the cells, (CELLS * CELLS, 2), row by row."""
    along = (torch.arange(CELLS, dtype=torch.float32) + 0.5) * STRIDE
    y, x = torch.meshgrid(along, along, indexing="ij")
    return torch.stack([x, y], -1).reshape(-1, 2)


class SmallDetector(nn.Module):
    """Both stages; `forward` is the first, `refine` the second."""

    centres: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.AvgPool2d(2),
            *_layer(3, 16, stride=2),
            *_layer(16, 24, stride=2),
            *_layer(24, 24),
            *_layer(24, 24),
            *_layer(24, 24, dilation=2),
        )
        self.head = nn.Conv2d(24, 1 + len(CLASSES) + 4, 1)
        nn.init.normal_(self.head.weight, std=0.01)
        start = torch.zeros(1 + len(CLASSES) + 4)
        start[0] = RARE
        self.head.bias = nn.Parameter(start)
        self.look = nn.Sequential(nn.Conv2d(3, 16, (1, 5), padding=(0, 2)), nn.ReLU(inplace=True))
        self.read = nn.Sequential(
            nn.Conv1d(16, 24, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.Flatten(),
            nn.Linear(24 * (2 * REACH + 1), 40),
            nn.ReLU(inplace=True),
            nn.Linear(40, 2),
        )
        nn.init.normal_(self.read[-1].weight, std=0.01)
        nn.init.zeros_(self.read[-1].bias)
        self.register_buffer("centres", cell_centres())

    def forward(self, pictures: Tensor) -> Rough:
        """Return what the first stage says of pictures, (N, 3, SIDE, SIDE), from -1 to 1."""
        raw = self.head(self.body(pictures)).permute(0, 2, 3, 1)
        raw = raw.reshape(-1, raw.shape[-1])
        objectness, label_logits, ways = raw.split([1, len(CLASSES), 4], 1)
        centres = self.centres.repeat(len(pictures), 1)
        ways = USUAL_HALF + STRIDE * ways
        boxes = torch.cat([centres - ways[:, :2], centres + ways[:, 2:]], 1)
        return Rough(objectness[:, 0], label_logits, boxes)

    def refine(self, pictures: Tensor, image_rows: Tensor, rough: Tensor) -> tuple[Tensor, Tensor]:
        """Return boxes and log standard deviations, (N, 4) each, of rough boxes in these pictures.

        The rough boxes are taken as they are: nothing that is learned here reaches the first stage.
        """
        start = rough.detach().round().clamp(0, SIDE - 1)
        strips = _strips(pictures, image_rows, start)
        said = self.read(self.look(strips).mean(2)).reshape(-1, 4, 2)
        outward = torch.tensor([-1.0, -1.0, 1.0, 1.0])
        log_std = (math.log(USUAL_SIGMA) + said[..., 1]).clamp(*LOG_STDS)
        return start + 2.0 * outward * said[..., 0], log_std


def _strips(pictures: Tensor, image_rows: Tensor, boxes: Tensor) -> Tensor:
    """Return the strips across the edges of boxes of whole pixels, (N * 4, 3, LINES, 2 * REACH + 1), inside first."""
    away = torch.arange(-REACH, REACH + 1.0)
    x1, y1, x2, y2 = boxes.unbind(1)
    share = torch.linspace(0.15, 0.85, LINES)
    columns = (x1[:, None] + share * (x2 - x1)[:, None]).round()[:, :, None]
    rows = (y1[:, None] + share * (y2 - y1)[:, None]).round()[:, :, None]
    left, right = x1[:, None, None] - away, x2[:, None, None] + away
    top, bottom = y1[:, None, None] - away, y2[:, None, None] + away
    shape = (len(boxes), LINES, len(away))
    x = torch.stack([axis.expand(shape) for axis in (left, columns, right, columns)], 1).long().clamp(0, SIDE - 1)
    y = torch.stack([axis.expand(shape) for axis in (rows, top, rows, bottom)], 1).long().clamp(0, SIDE - 1)
    strips = pictures[image_rows[:, None, None, None], :, y, x]  # (N, 4, LINES, away, 3)
    return strips.flatten(0, 1).permute(0, 3, 1, 2)


def _layer(inputs: int, outputs: int, *, stride: int = 1, dilation: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=dilation, dilation=dilation, bias=False)
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
