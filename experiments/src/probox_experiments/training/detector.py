"""A detector in two stages, 44,000 parameters in all, as small as it can be and still learn how unsure it must be.

The first stage says for every cell of a grid whether an object is centred near it, of which class, and roughly where.
The second looks at the strips of the picture across the four edges of such a rough box, and says where each edge is
and how unsure that is: a mean and a log standard deviation. All four edges are read by the same layers, each strip
turned so that it leads from the inside to the outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from probox.tables.detections import Detections
from probox_experiments.synthetic import order_corners
from probox_experiments.training.scenes import CLASSES, SIDE, Scenes

if TYPE_CHECKING:
    from torch import Tensor


# --- Which cells of the detector's grid learn what ---

NEAR, FAR = 6.0, 10.0
"""A cell speaks for an object whose centre is at most `NEAR` pixels away along x and y, and for nothing if every centre
is more than `FAR` away; between, nothing is asked of it."""

NOTHING, UNASKED = -1, -2


class Targets(NamedTuple):
    """What the cells of some images have to say.

    `owner` (images, cells) is the row of the object that a cell speaks for, `NOTHING` or `UNASKED`; `begin`
    (images + 1,) is where each image's objects begin.
    """

    owner: npt.NDArray[np.int64]
    begin: npt.NDArray[np.int64]


def make_targets(scenes: Scenes, stride: int) -> Targets:
    """Return what the cells of these images have to say; the centre of an object is that of its true box."""
    along = (np.arange(SIDE // stride) + 0.5) * stride
    y, x = (axis.ravel() for axis in np.meshgrid(along, along, indexing="ij"))
    centres = (scenes.boxes[:, :2] + scenes.boxes[:, 2:] + 1.0) / 2
    distance = np.maximum(np.abs(x - centres[:, :1]), np.abs(y - centres[:, 1:]))
    owner = np.full((scenes.count, len(x)), NOTHING)
    for limit, value in ((FAR, np.full(len(scenes), UNASKED)), (NEAR, np.arange(len(scenes)))):
        row, cell = np.nonzero(distance <= limit)
        owner[scenes.image_rows[row], cell] = value[row]
    begin = np.searchsorted(scenes.image_rows, np.arange(scenes.count + 1))
    return Targets(owner, begin)


# --- A detector in two stages, 44,000 parameters in all ---

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


# --- From what the detector says of its cells to detections: peaks, and none twice. The same for every arm ---

TOGETHER = 100
"""So many images are looked at at once."""
LEAST_SCORE = 0.05
OVERLAP = 0.5
"""Of two detections of an image with more IoU than this, the one with the lower score goes."""

Floats = npt.NDArray[np.float64]


def find(detector: SmallDetector, pictures: npt.NDArray[np.uint8]) -> Detections:
    """Return the detections in pictures; the ids of images are 1, 2, ..."""
    detector.eval()
    parts: list[tuple[npt.NDArray[np.int64], Floats, Floats, Floats]] = []
    with torch.no_grad():
        for begin in range(0, len(pictures), TOGETHER):
            shown = as_seen(torch.from_numpy(pictures[begin : begin + TOGETHER]))
            said = detector(shown)
            scores = said.objectness.sigmoid()
            grid = scores.reshape(-1, 1, CELLS, CELLS)
            peak = (grid == torch.nn.functional.max_pool2d(grid, 3, 1, 1)).flatten() & (scores > LEAST_SCORE)
            rows = peak.nonzero()[:, 0]
            probs = scores[rows, None] * said.label_logits[rows].softmax(1)
            means, log_std = detector.refine(shown, rows // CELLS**2, said.boxes[rows])
            boxes, sigmas, label_probs = (values.double().numpy() for values in (means, log_std.exp(), probs))
            parts.append((begin + rows.numpy() // CELLS**2, boxes, sigmas, label_probs))
    detector.train()
    image, boxes, sigmas, probs = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    boxes = order_corners(boxes).clip(0.0, SIDE - 1.0)
    kept = _best(image, boxes, probs.max(axis=1))
    return Detections(
        classes=CLASSES,
        image_ids=image[kept] + 1,
        boxes=boxes[kept],
        label_probs=probs[kept],
        covariances=_covariances(sigmas[kept]),
    )


def with_sigma(found: Detections, sigma: float | None) -> Detections:
    """Return the same boxes with one sigma for all edges; None makes them plain."""
    covariances = None if sigma is None else _covariances(np.full((len(found), 4), sigma))
    return found.replace(covariances=covariances)


def _covariances(sigmas: Floats) -> Floats:
    return (sigmas.reshape(-1, 2, 2) ** 2)[..., None] * np.eye(2)


def _best(image: npt.NDArray[np.int64], boxes: Floats, scores: Floats) -> npt.NDArray[np.int64]:
    """Return the rows that no better one of the same image overlaps much, in their order."""
    kept: list[int] = []
    of_image: dict[int, list[int]] = {}
    overlap: Callable[[int, int], float] = lambda a, b: _iou(boxes[a], boxes[b])  # noqa: E731
    for row in np.argsort(-scores, kind="stable").tolist():
        others = of_image.setdefault(int(image[row]), [])
        if all(overlap(row, other) <= OVERLAP for other in others):
            others.append(row)
            kept.append(row)
    return np.sort(np.array(kept, dtype=np.int64))


def _iou(first: Floats, second: Floats) -> float:
    low, high = np.maximum(first[:2], second[:2]), np.minimum(first[2:], second[2:])
    shared = float(np.prod(np.maximum(high - low, 0.0)))
    areas = float(np.prod(first[2:] - first[:2]) + np.prod(second[2:] - second[:2]))
    return shared / max(areas - shared, 1e-9)
