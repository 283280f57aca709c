"""A small detector in two stages, with 44,000 parameters, that learns standard deviations of edges.

The first stage predicts, for every cell of a grid, an object near its centre, its class and a rough box. The second
reads strips of pixels across the four edges of the rough box and predicts a mean and a log standard deviation of each
edge. All edges share the same layers; strips are rotated to lead from the inside to the outside.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

import probox.torch as losses
from probox.tables.detections import Detections
from probox_experiments.claims import Floats
from probox_experiments.synthetic import edge_covariances, order_corners, overlaps
from probox_experiments.training.arms import Arm, Settings, best_sigma, find_arm, measure_found
from probox_experiments.training.scenes import CLASSES, SIDE, Scenes, draw_scenes, render

if TYPE_CHECKING:
    from torch import Tensor


# --- Targets of the detector's grid cells ---

NEAR, FAR = 6.0, 10.0
"""A cell is positive if an object's centre is at most `NEAR` pixels away along x and y, negative if every centre is
more than `FAR` away, and ignored otherwise."""

NOTHING, IGNORED = -1, -2


class Targets(NamedTuple):
    """Targets of the cells of some images.

    `owner` (images, cells) is the row of a cell's object, `NOTHING` or `IGNORED`; `begin` (images + 1,) is the first
    object of each image.
    """

    owner: npt.NDArray[np.int64]
    begin: npt.NDArray[np.int64]


def make_targets(scenes: Scenes, stride: int) -> Targets:
    """Return the targets of the cells of these images; the centre of an object is that of its true box."""
    along = (np.arange(SIDE // stride) + 0.5) * stride
    y, x = (axis.ravel() for axis in np.meshgrid(along, along, indexing="ij"))
    centres = (scenes.boxes[:, :2] + scenes.boxes[:, 2:] + 1.0) / 2
    distance = np.maximum(np.abs(x - centres[:, :1]), np.abs(y - centres[:, 1:]))
    owner = np.full((scenes.count, len(x)), NOTHING)
    for limit, value in ((FAR, np.full(len(scenes), IGNORED)), (NEAR, np.arange(len(scenes)))):
        row, cell = np.nonzero(distance <= limit)
        owner[scenes.image_rows[row], cell] = value[row]
    begin = np.searchsorted(scenes.image_rows, np.arange(scenes.count + 1))
    return Targets(owner, begin)


# --- The network: two stages, 44,000 parameters ---

STRIDE = 8
CELLS = SIDE // STRIDE
"""Cells along each side of the grid."""

RARE = -3.5
"""Initial objectness logit: one cell in thirty is positive."""
USUAL_HALF = 14.0
"""Initial half size of boxes: that of a medium object."""
USUAL_SIGMA = 2.0
"""Initial standard deviation of edges in pixels."""
LOG_STDS = (math.log(0.05), math.log(50.0))
"""Limits of the log standard deviation, which stabilize early steps; true values lie far inside."""

REACH = 11
"""Half width of a strip across its edge in pixels."""
LINES = 8
"""Lines of pixels in a strip, distributed over the inner part of its edge."""


def as_seen(pictures: Tensor) -> Tensor:
    """Return pictures of bytes as input of the detector, from -1 to 1."""
    return pictures.float() / 127.5 - 1.0


class Rough(NamedTuple):
    """Output of the first stage for every cell; rows are images x cells.

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
        """Return the first stage's output for pictures, (N, 3, SIDE, SIDE), from -1 to 1."""
        raw = self.head(self.body(pictures)).permute(0, 2, 3, 1)
        raw = raw.reshape(-1, raw.shape[-1])
        objectness, label_logits, ways = raw.split([1, len(CLASSES), 4], 1)
        centres = self.centres.repeat(len(pictures), 1)
        ways = USUAL_HALF + STRIDE * ways
        boxes = torch.cat([centres - ways[:, :2], centres + ways[:, 2:]], 1)
        return Rough(objectness[:, 0], label_logits, boxes)

    def refine(self, pictures: Tensor, image_rows: Tensor, rough: Tensor) -> tuple[Tensor, Tensor]:
        """Return boxes and log standard deviations, (N, 4) each, for rough boxes in these pictures.

        Rough boxes are detached: gradients do not reach the first stage.
        """
        start = rough.detach().round().clamp(0, SIDE - 1)
        strips = _strips(pictures, image_rows, start)
        output = self.read(self.look(strips).mean(2)).reshape(-1, 4, 2)
        outward = torch.tensor([-1.0, -1.0, 1.0, 1.0])
        log_std = (math.log(USUAL_SIGMA) + output[..., 1]).clamp(*LOG_STDS)
        return start + 2.0 * outward * output[..., 0], log_std


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


# --- Detections from the detector's output: peaks and NMS, equal for every arm ---

TOGETHER = 100
"""Images per batch."""
LEAST_SCORE = 0.05
OVERLAP = 0.5
"""IoU threshold of NMS."""


def find(detector: SmallDetector, pictures: npt.NDArray[np.uint8]) -> Detections:
    """Return the detections in pictures; the ids of images are 1, 2, ..."""
    detector.eval()
    parts: list[tuple[npt.NDArray[np.int64], Floats, Floats, Floats]] = []
    with torch.no_grad():
        for begin in range(0, len(pictures), TOGETHER):
            shown = as_seen(torch.from_numpy(pictures[begin : begin + TOGETHER]))
            output = detector(shown)
            scores = output.objectness.sigmoid()
            grid = scores.reshape(-1, 1, CELLS, CELLS)
            peak = (grid == torch.nn.functional.max_pool2d(grid, 3, 1, 1)).flatten() & (scores > LEAST_SCORE)
            rows = peak.nonzero()[:, 0]
            probs = scores[rows, None] * output.label_logits[rows].softmax(1)
            means, log_std = detector.refine(shown, rows // CELLS**2, output.boxes[rows])
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
        covariances=edge_covariances(sigmas[kept]),
    )


def with_sigma(found: Detections, sigma: float | None) -> Detections:
    """Return the same boxes with one standard deviation for all edges; None removes covariances."""
    covariances = None if sigma is None else edge_covariances(np.full((len(found), 4), sigma))
    return found.replace(covariances=covariances)


def _best(image: npt.NDArray[np.int64], boxes: Floats, scores: Floats) -> npt.NDArray[np.int64]:
    """Return the rows kept by NMS within images, in their order."""
    kept: list[int] = []
    of_image: dict[int, list[int]] = {}
    for row in np.argsort(-scores, kind="stable").tolist():
        others = of_image.setdefault(int(image[row]), [])
        if (overlaps(boxes[[row]], boxes[others]) <= OVERLAP).all():
            others.append(row)
            kept.append(row)
    return np.sort(np.array(kept, dtype=np.int64))


# --- Training: the same network, data, steps and optimizer for every arm; only the loss of boxes differs ---

OBJECT_WEIGHT = 0.2
ROUGH_WEIGHT = 0.1
"""Weights of the losses of objectness and of the first stage's boxes; that of classes is 1."""
RISE = 0.15
"""Fraction of steps with increasing learning rate; then it decreases to 0."""


START = threading.Lock()
"""Held while weights are initialized, because parallel trainings share torch's generator."""
DRAWING = threading.Lock()
"""Held while scenes are drawn, so that parallel trainings share them."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: sums depend on the number of threads, and small tensors are not faster with more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclasses.dataclass(frozen=True)
class Lesson:
    """Training scenes with pictures and targets."""

    scenes: Scenes
    pictures: Tensor
    targets: Targets
    truth: Tensor
    pixels: Tensor
    labels: Tensor


@lru_cache(maxsize=2)
def lesson(count: int, seed: int) -> Lesson:
    """Return training scenes, cached because all arms of a seed share them."""
    scenes = draw_scenes(count, seed)
    return Lesson(
        scenes,
        torch.from_numpy(render(scenes)),
        make_targets(scenes, STRIDE),
        torch.from_numpy(scenes.boxes),
        torch.from_numpy(scenes.pixel_boxes),
        torch.from_numpy(scenes.labels),
    )


class Chosen(NamedTuple):
    """Boxes assigned to objects."""

    boxes: Tensor
    log_std: Tensor
    label_logits: Tensor
    truth: Tensor
    pixels: Tensor
    labels: Tensor


def box_loss(arm: Arm, chosen: Chosen, *, warm: bool = False) -> Tensor:
    """Return the loss of boxes and standard deviations, the only difference between arms; `warm` means L1."""
    if warm or not arm.loss:
        return (chosen.boxes - chosen.truth).abs().sum(1).mean().float()
    if arm.reads_pixels:
        # Labels enter pPDQ but are detached: their loss is the same in all arms.
        return losses.ppdq_loss(
            chosen.boxes,
            log_std=chosen.log_std,
            label_logits=chosen.label_logits.detach(),
            truth_labels=chosen.labels,
            truth_boxes=chosen.pixels,
            image_size=(SIDE, SIDE),
            **arm.options,
        )
    loss = getattr(losses, arm.loss)
    value: Tensor = loss(chosen.boxes, log_std=chosen.log_std, truth_boxes=chosen.truth, **arm.options)
    return value


def fit(arm: Arm, seed: int, settings: Settings) -> SmallDetector:
    """Return a detector trained from scratch; a seed determines scenes, initial weights and order in all arms."""
    with DRAWING:
        learned = lesson(settings.images, settings.train_seed(seed))
    generator = np.random.default_rng([seed, 22])
    # Keep the state of torch's global generator.
    with START, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        detector = SmallDetector()
    optimizer = torch.optim.Adam(detector.parameters(), lr=settings.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.rate, total_steps=settings.steps, pct_start=RISE)
    rounds = -(-settings.steps * settings.batch // settings.images)
    order = np.concatenate([generator.permutation(settings.images) for _ in range(rounds)])
    for step in range(settings.steps):
        rows = order[step * settings.batch : (step + 1) * settings.batch]
        loss = _loss(detector, arm, learned, rows, generator, warm=step < settings.warm)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return detector


def _loss(
    detector: SmallDetector,
    arm: Arm,
    learned: Lesson,
    rows: npt.NDArray[np.int64],
    generator: np.random.Generator,
    *,
    warm: bool,
) -> Tensor:
    shown = as_seen(learned.pictures[rows])
    output = detector(shown)
    owner = learned.targets.owner[rows].ravel()
    used = torch.from_numpy(owner != IGNORED)
    positive = torch.from_numpy((owner >= 0).astype(np.float32))
    found = functional.binary_cross_entropy_with_logits(output.objectness[used], positive[used], reduction="sum")

    # One random cell per object and step saves time; neighbouring cells have similar outputs.
    cells = generator.permutation(np.flatnonzero(owner >= 0))
    objects, first = np.unique(owner[cells], return_index=True)
    at, which = torch.from_numpy(cells[first]), torch.from_numpy(objects)
    label_logits, truth, labels = output.label_logits[at], learned.truth[which], learned.labels[which]
    boxes, log_std = detector.refine(shown, at // CELLS**2, output.boxes[at])
    chosen = Chosen(boxes, log_std, label_logits, truth, learned.pixels[which], labels)
    rough = (output.boxes[at] - truth).abs().sum(1).mean()
    weight = ROUGH_WEIGHT if warm else arm.weight
    return (
        OBJECT_WEIGHT * found / len(objects)
        + functional.cross_entropy(label_logits, labels)
        + ROUGH_WEIGHT * rough.float()
        + weight * box_loss(arm, chosen, warm=warm)
    )


# --- Training and evaluation of one arm and one seed ---


def measure_arm(arm: Arm, seed: int, settings: Settings) -> dict[str, float]:
    """Train an arm and return its metrics on test scenes."""
    scenes, found, sigma = found_by(arm, seed, settings)
    return {**measure_found(scenes, found, threads=1), "one_sigma": sigma}


def found_by(arm: Arm, seed: int, settings: Settings) -> tuple[Scenes, Detections, float]:
    """Return test scenes, the detections of a trained arm, and its constant standard deviation (NaN without)."""
    with one_thread():
        detector = train(arm.loss, arm.name if arm.loss else "l1", seed, settings)
        scenes, pictures = draw_pictures(settings.test, settings.test_seed(seed))
        found = find(detector, pictures)
        if arm.spread == "learned":
            return scenes, found, float("nan")
        if arm.spread == "none":
            return scenes, with_sigma(found, None), float("nan")
        validation, others = draw_pictures(settings.validation, settings.validation_seed(seed))
        sigma = best_sigma(validation, find(detector, others))
        return scenes, with_sigma(found, sigma), sigma


@lru_cache(maxsize=64)
def train(loss: str, name: str, seed: int, settings: Settings) -> SmallDetector:
    """Return a trained detector, cached for arms that share it."""
    return fit(find_arm(name), seed, settings)


@lru_cache(maxsize=4)
def draw_pictures(count: int, seed: int) -> tuple[Scenes, npt.NDArray[np.uint8]]:
    """Return scenes and their pictures, shared by all arms of a seed."""
    scenes = draw_scenes(count, seed)
    return scenes, render(scenes)
