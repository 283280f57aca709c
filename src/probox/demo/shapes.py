"""Odd shapes as signed distances: negative inside, positive outside, in pixels.

One distance serves three ends: its sign is the mask, its value near 0 a smooth outline, its slope the shading.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from probox.support.types import Floats

__all__ = ["SHAPES", "Floats", "distance"]

Shape = Callable[[Floats, Floats, np.random.Generator], Floats]


def distance(kind: str, x: Floats, y: Floats, radius: float, angle: float, seed: int) -> Floats:
    """Return the signed distance of points to a shape.

    Parameters
    ----------
    kind : str
        A key of `SHAPES`.
    x, y : arrays
        Points relative to the shape's centre, in pixels.
    radius : float
        The shape fits a circle of about this radius.
    angle : float
        Turned by this, in radians.
    seed : int
        Which one of its kind: no two bananas are alike.
    """
    cos, sin = np.cos(angle) / radius, np.sin(angle) / radius
    return radius * SHAPES[kind](cos * x + sin * y, cos * y - sin * x, np.random.default_rng(seed))


def _rounded_box(x: Floats, y: Floats, box: tuple[float, float, float, float], rounding: float) -> Floats:
    x0, y0, x1, y1 = box
    dx = np.abs(x - (x0 + x1) / 2) - (x1 - x0) / 2 + rounding
    dy = np.abs(y - (y0 + y1) / 2) - (y1 - y0) / 2 + rounding
    outside: Floats = np.hypot(np.maximum(dx, 0), np.maximum(dy, 0))
    return outside + np.minimum(np.maximum(dx, dy), 0) - rounding


def _star(x: Floats, y: Floats, random: np.random.Generator) -> Floats:
    points = int(random.integers(5, 8))
    tip, waist = random.uniform(0.84, 0.9), random.uniform(0.36, 0.46)
    # By symmetry one edge is enough: fold the plane into the wedge between a tip and its neighbouring waist.
    turn = np.abs((np.arctan2(y, x) * points / (2 * np.pi) + 0.5) % 1.0 - 0.5) * 2 * np.pi / points
    reach = np.hypot(x, y)
    u, v = reach * np.cos(turn) - tip, reach * np.sin(turn)
    ex, ey = waist * np.cos(np.pi / points) - tip, waist * np.sin(np.pi / points)
    along = np.clip((u * ex + v * ey) / (ex * ex + ey * ey), 0.0, 1.0)
    gap: Floats = np.hypot(u - along * ex, v - along * ey)
    side: Floats = np.sign(u * ey - v * ex)
    return gap * side - 0.07


def _ring(x: Floats, y: Floats, random: np.random.Generator) -> Floats:
    thickness = random.uniform(0.17, 0.26)
    return np.abs(np.hypot(x, y) - (1.0 - thickness)) - thickness


def _banana(x: Floats, y: Floats, random: np.random.Generator) -> Floats:
    half_length = random.uniform(0.95, 1.2)
    thickness = random.uniform(0.19, 0.25)
    bend = random.uniform(0.85, 1.05)
    y = y + bend * 0.78  # the arc's centre lies above, so that the belly is near the middle
    turn = np.arctan2(x, y)
    along = np.clip(turn, -half_length, half_length)
    taper = thickness * (1.0 - 0.62 * (np.abs(along) / half_length) ** 3)
    gap: Floats = np.hypot(x - bend * np.sin(along), y - bend * np.cos(along)) - taper
    return gap


def _pebble(x: Floats, y: Floats, random: np.random.Generator) -> Floats:
    turn = np.arctan2(y, x)
    reach, slope = np.full(x.shape, 0.76), np.zeros(x.shape)
    for wave, strength in ((2, 0.16), (3, 0.06), (4, 0.025)):
        size, start = strength * random.uniform(0.5, 1.0), random.uniform(0, 2 * np.pi)
        reach = reach + size * np.cos(wave * turn + start)
        slope = slope - wave * size * np.sin(wave * turn + start)
    gap: Floats = (np.hypot(x, y) - reach) / np.sqrt(1.0 + (slope / reach) ** 2)
    return gap


def _leaf(x: Floats, y: Floats, random: np.random.Generator) -> Floats:
    width = random.uniform(0.34, 0.46)
    bow = (1.0 - width**2) / (2.0 * width)  # circles of radius bow + width through both tips
    y = y - 0.12 * (x * x - 0.4)
    blade = np.maximum(np.hypot(x, y - bow), np.hypot(x, y + bow)) - (bow + width)
    stalk = _rounded_box(x, y, (0.85, -0.035, 1.12, 0.035), 0.03)
    return np.minimum(blade, stalk)


def _bracket(x: Floats, y: Floats, random: np.random.Generator) -> Floats:
    arm = random.uniform(0.36, 0.46)
    reach = random.uniform(0.55, 0.8)
    long = _rounded_box(x, y, (-0.62, -0.85, -0.62 + arm, 0.85), 0.1)
    short = _rounded_box(x, y, (-0.62, 0.85 - arm, reach, 0.85), 0.1)
    hole = np.hypot(x + 0.62 - arm / 2, y + 0.62) - 0.28 * arm
    return np.maximum(np.minimum(long, short), -hole)


def _key(x: Floats, y: Floats, random: np.random.Generator) -> Floats:
    bow = np.abs(np.hypot(x + 0.6, y) - 0.28) - 0.11
    shaft = _rounded_box(x, y, (-0.3, -0.085, 1.0, 0.085), 0.05)
    parts = np.minimum(bow, shaft)
    place = 0.95
    for _ in range(int(random.integers(2, 4))):
        depth = random.uniform(0.2, 0.36)
        parts = np.minimum(parts, _rounded_box(x, y, (place - 0.13, 0.0, place, depth), 0.03))
        place -= 0.22
    return parts


SHAPES: dict[str, Shape] = {
    "star": _star,
    "ring": _ring,
    "banana": _banana,
    "pebble": _pebble,
    "leaf": _leaf,
    "bracket": _bracket,
    "key": _key,
}
"""The demo's classes, each a shape in units of its radius."""
