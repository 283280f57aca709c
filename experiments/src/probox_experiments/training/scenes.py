"""Synthetic images with known standard deviations of all edges.

The visible edge is drawn first: its nominal place, its kind, and its standard deviation. The true edge is then sampled
from a Gaussian around the nominal place. The nominal place with this standard deviation is therefore the optimal
prediction, and the error of other predictions is known.

Coordinates are those of PDQ: a box covers every pixel that it touches, and its second corner is the last pixel
(docs/measure.md). The pixels of a true box are those of `GroundTruth.from_boxes`.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Floats

# --- Objects with known standard deviations of all edges ---

Ints = npt.NDArray[np.int64]

CLASSES = ("light", "dark", "checked")
KINDS = ("sharp", "blurred", "occluded", "faded")
SHARP, BLURRED, OCCLUDED, FADED = range(4)
KIND_SHARES = (0.4, 0.2, 0.2, 0.2)

SIDE = 96
"""Width and height of an image in pixels."""
SLOT = SIDE // 2
"""Each object lies in its own quarter of the image, so objects do not occlude each other."""
COUNT_SHARES = (0.3, 0.4, 0.3)
"""Fractions of images with one, two and three objects."""
OBJECT_SIDES = (20.0, 36.0)
SHARP_SIGMA = 0.5
SIGMAS = (1.0, 3.5)
"""Range of the standard deviations of edges that are not sharp, log-uniform."""
REACH = 3.0
"""Distance of nominal edges to the image border in standard deviations, so that true edges rarely leave the image."""


@dataclasses.dataclass(frozen=True)
class Scenes:
    """Images and their objects; edges are those of x1, y1, x2, y2.

    Parameters
    ----------
    count : int
        Number of images.
    image_rows : (N,) ints
        Image of each object, ascending.
    labels : (N,) ints
        Class of each object.
    kinds : (N, 4) ints
        Kind of each edge: an index of `KINDS`.
    nominal, sigmas : (N, 4) floats
        Nominal place and standard deviation of each edge.
    boxes : (N, 4) floats
        True place of each edge.
    seed : int
        Random seed of the images' noise.
    """

    count: int
    image_rows: Ints
    labels: Ints
    kinds: Ints
    nominal: Floats
    sigmas: Floats
    boxes: Floats
    seed: int

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def truth(self) -> GroundTruth:
        """The objects as a ground truth, with image ids 1, 2, ..."""
        return GroundTruth.from_boxes(
            CLASSES,
            dict.fromkeys(range(1, self.count + 1), (SIDE, SIDE)),
            (self.image_rows + 1).tolist(),
            self.boxes,
            self.labels.tolist(),
        )

    @cached_property
    def pixel_boxes(self) -> Floats:
        """First and last pixels of the true boxes."""
        return self.truth.masks.boxes.astype(np.float64)


def draw_scenes(count: int, seed: int) -> Scenes:
    """Draw the objects of `count` images.

    Examples
    --------
    >>> scenes = draw_scenes(100, seed=0)
    >>> scenes.truth
    GroundTruth(100 images, 196 objects, 3 classes)
    >>> errors = (scenes.boxes - scenes.nominal) / scenes.sigmas
    >>> print(f"{errors.mean():.2f} {errors.std():.2f}")
    0.03 1.02
    """
    if count < 1:
        raise InputError(f"expected at least one image, but got {count}")
    rng = np.random.default_rng([seed, 20])
    objects = 1 + rng.choice(3, count, p=COUNT_SHARES)
    slots = np.argsort(rng.random((count, 4)), axis=1)
    image_rows = np.repeat(np.arange(count), objects)
    turn = np.arange(len(image_rows)) - np.repeat(np.cumsum(objects) - objects, objects)
    slot = slots[image_rows, turn]
    n = len(image_rows)
    kinds = rng.choice(4, (n, 4), p=KIND_SHARES)
    spread = np.exp(rng.uniform(math.log(SIGMAS[0]), math.log(SIGMAS[1]), (n, 4)))
    sigmas = np.where(kinds == SHARP, SHARP_SIGMA, spread)
    nominal = _places(rng, sigmas, np.stack([slot % 2, slot // 2], axis=1))
    boxes = nominal + sigmas * rng.standard_normal((n, 4))
    # One edge in a thousand would leave the image, and very few boxes would be inverted.
    boxes = boxes.clip(0.0, SIDE - 1.0)
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1.0)
    return Scenes(count, image_rows, rng.integers(0, len(CLASSES), n), kinds, nominal, sigmas, boxes, seed)


def _places(rng: np.random.Generator, sigmas: Floats, slot: Ints) -> Floats:
    """Return nominal boxes in their quarters of the image, away from its border."""
    extent = rng.uniform(*OBJECT_SIDES, (len(sigmas), 2))
    outer = np.where(slot == 0, sigmas[:, :2], sigmas[:, 2:])  # of the edge next to the border
    margin = REACH * outer
    free = rng.random(extent.shape) * (SLOT - 1.0 - extent - margin)
    first = np.where(slot == 0, margin + free, SIDE - 1.0 - margin - free - extent)
    return np.concatenate([first, first + extent], axis=1)


# --- Pictures of scenes ---

Single = npt.NDArray[np.float32]

NOISE = 0.04
BAND = 4.0
"""Width of blurs, occluders and fadings in standard deviations, which makes the standard deviation visible."""
CHECK = 4
"""The side of the squares of class `checked`, in pixels."""
TOGETHER = 256
"""Images per batch."""
BEYOND = 2.0
"""Length of an occluder beyond the ends of its edge in pixels."""

_PIXELS = np.arange(SIDE, dtype=np.float32) + np.float32(0.5)
OUTLINE = np.array([-0.5, -0.5, 1.5, 1.5])
"""Offset from a box in PDQ's coordinates to its visible outline: its pixels are floor(x1) to ceil(x2), which on average
begin half a pixel before x1 and end one and a half after x2."""


def render(scenes: Scenes) -> npt.NDArray[np.uint8]:
    """Return the images, (count, 3, SIDE, SIDE): red, green, blue."""
    pictures = np.empty((scenes.count, 3, SIDE, SIDE), np.uint8)
    for begin in range(0, scenes.count, TOGETHER):
        end = min(begin + TOGETHER, scenes.count)
        rng = np.random.default_rng([scenes.seed, 21, begin])
        first, last = np.searchsorted(scenes.image_rows, [begin, end])
        pictures[begin:end] = _render(scenes, slice(int(first), int(last)), begin, end, rng)
    return pictures


def _render(scenes: Scenes, rows: slice, begin: int, end: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    count = end - begin
    grey = 0.45 + 0.08 * rng.standard_normal((count, 1, 1, 1), np.float32)
    slope = 0.1 * rng.standard_normal((count, 2, 1, 1), np.float32)
    across = _PIXELS / SIDE - np.float32(0.5)
    scene = np.repeat(grey + slope[:, :1] * across + slope[:, 1:] * across[:, None], 3, axis=1)

    owner = scenes.image_rows[rows] - begin
    kinds, edges = scenes.kinds[rows], (scenes.nominal[rows] + OUTLINE).astype(np.float32)
    widths = (BAND * scenes.sigmas[rows]).astype(np.float32)
    cover = _cover(kinds, edges, widths, rng)
    colour = _colours(scenes.labels[rows], rng)
    # Objects of an image do not overlap: the first objects of all images are drawn at once, then the second ones.
    turn = np.arange(len(owner)) - np.searchsorted(owner, owner)
    for number in range(int(turn.max(initial=-1)) + 1):
        now = turn == number
        scene[owner[now]] += cover[now] * (colour[now] - scene[owner[now]])
    for edge in range(4):
        for number in range(int(turn.max(initial=-1)) + 1):
            now = (turn == number) & (kinds[:, edge] == OCCLUDED)
            band = _band(edges[now], widths[now], edge)
            scene[owner[now]] += band * (_STRIPES - scene[owner[now]])
    scene += NOISE * rng.standard_normal(scene.shape, np.float32)
    return (scene.clip(0.0, 1.0) * 255.0).astype(np.uint8)


def _cover(kinds: npt.NDArray[np.int64], edges: Single, widths: Single, rng: np.random.Generator) -> Single:
    """Return the coverage of each pixel by each object, (N, 1, SIDE, SIDE)."""
    cover = np.ones((len(edges), 1, SIDE, SIDE), np.float32)
    for edge in range(4):
        inside = _PIXELS - edges[:, edge, None] if edge < 2 else edges[:, edge, None] - _PIXELS
        kind = kinds[:, edge, None]
        soft = (kind == BLURRED) | (kind == FADED)
        ramp = np.clip(inside / np.where(soft, widths[:, edge, None], np.float32(1.0)) + np.float32(0.5), 0.0, 1.0)
        lines = ramp[:, None, None, :] if edge % 2 == 0 else ramp[:, None, :, None]
        faded = (kinds[:, edge] == FADED)[:, None, None, None]
        # A fading edge consists of single pixels, fewer towards the outside.
        pieces = np.where(faded, rng.random(cover.shape, np.float32) < lines, lines)
        cover *= pieces
    return cover


def _colours(labels: npt.NDArray[np.int64], rng: np.random.Generator) -> Single:
    """Return the colours of each object, (N, 3, SIDE, SIDE)."""
    rows = np.arange(SIDE) // CHECK
    board = ((rows[:, None] + rows) % 2).astype(np.float32)
    light, dark = np.float32(0.88), np.float32(0.08)
    looks = np.stack([np.full_like(board, light), np.full_like(board, dark), dark + (light - dark) * board])
    tint = 0.06 * rng.standard_normal((len(labels), 3, 1, 1), np.float32)
    colours: Single = looks[labels][:, None] + tint
    return colours


def _band(edges: Single, widths: Single, edge: int) -> npt.NDArray[np.bool_]:
    """Return which pixels the occluder of one edge hides, (N, 1, SIDE, SIDE)."""
    axis = edge % 2
    hidden = np.abs(_PIXELS - edges[:, edge, None]) <= widths[:, edge, None] / 2
    first, last = edges[:, 1 - axis, None] - BEYOND, edges[:, 3 - axis, None] + BEYOND
    along = (first <= _PIXELS) & (last >= _PIXELS)
    columns, rows = (hidden, along) if axis == 0 else (along, hidden)
    pixels: npt.NDArray[np.bool_] = (rows[:, :, None] & columns[:, None, :])[:, None]
    return pixels


_DIAGONAL = (np.arange(SIDE)[:, None] + np.arange(SIDE)) % 4 < 2
_STRIPES = np.where(_DIAGONAL, *(np.array(c, np.float32)[:, None, None] for c in ((0.1, 0.45, 0.8), (0.35, 0.65, 0.9))))
