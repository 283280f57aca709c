"""Pictures of scenes: what is to be seen of every edge says where it seems to be, and how unsure that is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox_experiments.training.scenes import BLURRED, FADED, OCCLUDED, SIDE, Scenes

__all__ = ["OUTLINE", "render"]

Single = npt.NDArray[np.float32]

NOISE = 0.04
BAND = 4.0
"""How many sigmas wide a blur, an occluder and a fading are: so their sigma can be seen."""
CHECK = 4
"""The side of the squares of class `checked`, in pixels."""
TOGETHER = 256
"""So many images are drawn at once."""
BEYOND = 2.0
"""How far an occluder sticks out beyond the ends of its edge, in pixels."""

_PIXELS = np.arange(SIDE, dtype=np.float32) + np.float32(0.5)
OUTLINE = np.array([-0.5, -0.5, 1.5, 1.5])
"""From a box in PDQ's coordinates to what is seen: its pixels are floor(x1) to ceil(x2), which on average begin half a
pixel before x1 and end one and a half after x2."""


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
    # Objects of an image lie apart: those that come first in their images are drawn at once, then the second ones.
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
    """Return how much of each pixel each object covers, (N, 1, SIDE, SIDE)."""
    cover = np.ones((len(edges), 1, SIDE, SIDE), np.float32)
    for edge in range(4):
        inside = _PIXELS - edges[:, edge, None] if edge < 2 else edges[:, edge, None] - _PIXELS
        kind = kinds[:, edge, None]
        soft = (kind == BLURRED) | (kind == FADED)
        ramp = np.clip(inside / np.where(soft, widths[:, edge, None], np.float32(1.0)) + np.float32(0.5), 0.0, 1.0)
        lines = ramp[:, None, None, :] if edge % 2 == 0 else ramp[:, None, :, None]
        faded = (kinds[:, edge] == FADED)[:, None, None, None]
        # A fading edge falls to pieces: pixels are there or not, ever fewer towards the outside.
        pieces = np.where(faded, rng.random(cover.shape, np.float32) < lines, lines)
        cover *= pieces
    return cover


def _colours(labels: npt.NDArray[np.int64], rng: np.random.Generator) -> Single:
    """Return what each object looks like, (N, 3, SIDE, SIDE)."""
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
