"""Pictures of the demo's scenes: shaded things with soft shadows on a ground, in plain NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.demo.scene import Scene, Thing
from probox.support.types import Floats

__all__ = ["render"]

_COLOURS = {
    "star": ((0.78, 0.27, 0.16), (0.86, 0.46, 0.22), (0.60, 0.20, 0.30)),
    "ring": ((0.16, 0.42, 0.50), (0.72, 0.66, 0.55), (0.25, 0.28, 0.52)),
    "banana": ((0.90, 0.70, 0.14), (0.84, 0.74, 0.22), (0.66, 0.72, 0.24)),
    "pebble": ((0.46, 0.46, 0.48), (0.62, 0.57, 0.51), (0.33, 0.37, 0.42)),
    "leaf": ((0.30, 0.46, 0.16), (0.58, 0.42, 0.12), (0.22, 0.40, 0.26)),
    "bracket": ((0.40, 0.44, 0.50), (0.68, 0.36, 0.24), (0.30, 0.32, 0.36)),
    "key": ((0.72, 0.58, 0.26), (0.58, 0.60, 0.62), (0.62, 0.42, 0.26)),
}
_SHINE = {"star": 0.08, "ring": 0.35, "banana": 0.15, "pebble": 0.12, "leaf": 0.05, "bracket": 0.4, "key": 0.6}
_BEVEL = {"star": 0.30, "ring": 0.22, "banana": 0.24, "pebble": 0.5, "leaf": 0.16, "bracket": 0.09, "key": 0.09}


def render(scene: Scene) -> npt.NDArray[np.uint8]:
    """Return the scene as an (H, W, 3) RGB picture."""
    random = np.random.default_rng(scene.seed)
    y, x = np.mgrid[0 : scene.height, 0 : scene.width] + 0.5
    picture = _ground(scene, x, y, random)
    light = np.array([np.cos(scene.light), np.sin(scene.light)])
    for thing in scene.things:
        _cast_shadow(picture, thing, scene, light)
        _paint(picture, thing, scene, light)
    falloff = 1.0 - 0.16 * (((x / scene.width - 0.5) ** 2 + (y / scene.height - 0.5) ** 2) / 0.5)
    sunlight = falloff[..., None] * np.array([1.30, 1.22, 1.12])
    skylight = falloff[..., None] * np.array([0.48, 0.53, 0.63])
    shade = scene.shade(x, y)[..., None]
    picture = picture * ((1.0 - shade) * sunlight + shade * skylight)
    grain = random.normal(0.0, 0.008, picture.shape[:2])[..., None]
    # A display's gamma: all of the above is about amounts of light.
    shown = np.clip(picture, 0.0, 1.0) ** (1 / 1.9) + grain
    return np.asarray(255.0 * np.clip(shown, 0.0, 1.0) + 0.5).astype(np.uint8)


def _noise(shape: tuple[int, ...], cell: tuple[float, float], random: np.random.Generator) -> Floats:
    """Return smooth noise about 0: random values on a lattice of `cell` pixels (rows, columns), blended between."""
    height, width = shape
    rows, columns = int(height / cell[0]) + 3, int(width / cell[1]) + 3
    lattice = random.uniform(-1.0, 1.0, (rows, columns))
    v, u = np.arange(height) / cell[0], np.arange(width) / cell[1]
    i, j = v.astype(int), u.astype(int)
    s, t = (f * f * (3 - 2 * f) for f in (v - i, u - j))
    top = lattice[i][:, j] * (1 - t) + lattice[i][:, j + 1] * t
    bottom = lattice[i + 1][:, j] * (1 - t) + lattice[i + 1][:, j + 1] * t
    return np.asarray(top * (1 - s)[:, None] + bottom * s[:, None])


def _grains(shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    """Return noise of unit variance with round grains of a few pixels: white noise, blurred along both axes."""
    values = random.normal(size=shape)
    weights = np.exp(-(np.arange(-3, 4) ** 2) / 2.9)
    for axis in (0, 1):
        values = sum(weight * np.roll(values, step, axis) for step, weight in zip(range(-3, 4), weights, strict=True))
    return np.asarray(values / (weights**2).sum())


def _ground(scene: Scene, x: Floats, y: Floats, random: np.random.Generator) -> Floats:
    shape = scene.height, scene.width
    large = _noise(shape, (90, 90), random) + 0.5 * _noise(shape, (35, 35), random)
    fine = _noise(shape, (2, 2), random) + random.uniform(-1, 1, shape)
    if scene.ground == "wood":
        plank = np.floor(y / 96.0).astype(int)
        tone = random.uniform(-0.05, 0.05, plank.max() + 1)[plank]
        fibres = _noise(shape, (3, 110), random) + 0.6 * _noise(shape, (1.5, 40), random)
        rings = np.sin(y / 7.0 + 3.2 * _noise(shape, (60, 240), random) + 9.0 * tone * 20)
        gap = np.exp(-(((y % 96.0) - 1.0) ** 2) / 1.6)
        value = 0.30 + tone + 0.025 * fibres + 0.018 * rings + 0.004 * fine - 0.2 * gap
        return np.asarray(value[..., None] * np.array([1.18, 0.80, 0.50]))
    if scene.ground == "felt":
        value = 0.20 + 0.012 * large + 0.022 * fine
        return np.asarray(value[..., None] * np.array([0.62, 0.98, 0.92]))
    if scene.ground == "stone":
        pale, dark = (np.clip(_grains(shape, random) - 1.6, 0.0, 0.5) for _ in range(2))
        value = 0.47 + 0.035 * large + 0.36 * pale - 0.5 * dark + 0.012 * fine
        return np.asarray(value[..., None] * np.array([0.98, 0.97, 0.94]))
    ripples = np.sin((x * 0.35 + y) / 9.0 + 2.2 * _noise(shape, (70, 120), random))
    value = 0.58 + 0.02 * large + 0.028 * ripples + 0.028 * fine
    return np.asarray(value[..., None] * np.array([1.05, 0.92, 0.70]))


def _cast_shadow(picture: Floats, thing: Thing, scene: Scene, light: Floats) -> None:
    """Darken what lies away from the light, and a little all around, where thing and ground meet."""
    length = 5.0 + 0.13 * thing.radius
    soft = 3.0 + 0.08 * thing.radius
    rows, columns = thing.window(scene.width, scene.height, margin=length + soft + 6.0)
    if rows.start >= rows.stop or columns.start >= columns.stop:
        return
    away = thing.distance(rows, columns, shift=(float(-length * light[0]), float(-length * light[1])))
    cover = np.clip(0.5 - away / (2 * soft), 0.0, 1.0)
    near = np.exp(-np.maximum(thing.distance(rows, columns), 0.0) / 4.0)
    amount = 1.0 - 0.55 * cover * cover * (3 - 2 * cover)
    picture[rows, columns] *= (amount * (1.0 - 0.3 * near))[..., None]


def _paint(picture: Floats, thing: Thing, scene: Scene, light: Floats) -> None:
    rows, columns = thing.window(scene.width, scene.height, margin=3.0)
    if rows.stop - rows.start < 2 or columns.stop - columns.start < 2:
        return
    random = np.random.default_rng(thing.seed + 1)
    gap = thing.distance(rows, columns)
    bevel = max(2.0, _BEVEL[thing.kind] * thing.radius)
    depth = np.clip(-gap / bevel, 0.0, 1.0)
    steep = np.sqrt(np.maximum(1.0 - depth, 0.0)) * (0.95 if _BEVEL[thing.kind] > 0.1 else 0.7)
    slope_y, slope_x = np.gradient(gap)
    length = np.maximum(np.hypot(slope_x, slope_y), 1e-6)
    bumps = 0.10 * _noise(gap.shape, (6, 6), random) if thing.kind in ("star", "pebble") else 0.0
    nx, ny = steep * slope_x / length + bumps, steep * slope_y / length + bumps
    nz = np.sqrt(np.maximum(1.0 - np.minimum(nx**2 + ny**2, 0.96), 0.04))
    sun = np.array([0.62 * light[0], 0.62 * light[1], 0.785])
    lit = np.maximum(nx * sun[0] + ny * sun[1] + nz * sun[2], 0.0)
    half = (sun + np.array([0.0, 0.0, 1.0])) / np.linalg.norm(sun + np.array([0.0, 0.0, 1.0]))
    glint = np.maximum(nx * half[0] + ny * half[1] + nz * half[2], 0.0) ** 40
    colour = _surface(thing, rows, columns, gap, random)
    shown = colour * (0.32 + 0.95 * lit)[..., None] + _SHINE[thing.kind] * glint[..., None]
    cover = np.clip(0.5 - gap, 0.0, 1.0)[..., None]
    picture[rows, columns] = picture[rows, columns] * (1.0 - cover) + shown * cover


def _surface(thing: Thing, rows: slice, columns: slice, gap: Floats, random: np.random.Generator) -> Floats:
    """Return the thing's own colour at every pixel of its window."""
    base = np.array(_COLOURS[thing.kind][int(random.integers(3))]) * random.uniform(0.9, 1.08)
    mottle = 1.0 + 0.06 * _noise(gap.shape, (9, 9), random) + 0.04 * _noise(gap.shape, (2, 2), random)
    colour = np.asarray(base * mottle[..., None])
    y = np.arange(rows.start, rows.stop)[:, None] + 0.5 - thing.y
    x = np.arange(columns.start, columns.stop)[None, :] + 0.5 - thing.x
    u = (np.cos(thing.angle) * x + np.sin(thing.angle) * y) / thing.radius
    v = (np.cos(thing.angle) * y - np.sin(thing.angle) * x) / thing.radius
    if thing.kind == "banana":
        tip = np.clip((np.abs(np.arctan2(u, v + 0.74)) - 0.88) / 0.12, 0.0, 1.0)
        spots = np.clip(_noise(gap.shape, (5, 5), random) - 0.62, 0.0, 0.3) / 0.3
        brown = np.maximum(0.85 * tip, 0.6 * spots)[..., None]
        colour = colour * (1 - brown) + np.array([0.22, 0.13, 0.05]) * brown
    elif thing.kind == "leaf":
        v = v - 0.12 * (u * u - 0.4)
        rib = np.exp(-((v / 0.022) ** 2))
        veins = 0.6 * np.exp(-((((u - 0.9 * np.abs(v)) * 5.5) % 1.0 - 0.5) ** 2) / 0.004)
        colour = colour * (1.0 + 0.45 * np.maximum(rib, veins)[..., None])
    elif thing.kind == "star":
        dots = np.clip(np.cos(u * 26) * np.cos(v * 26) - 0.55, 0.0, 1.0)
        colour = colour * (1.0 + 0.9 * dots[..., None])
    elif thing.kind in ("bracket", "key"):
        colour = colour * (1.0 + 0.05 * _noise(gap.shape, (1.5, 14), random))[..., None]
    return colour
