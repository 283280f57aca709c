"""Synthetic scenes: shapes, their positions and visibility, and their pictures.

Shapes are signed distances in pixels, negative inside and positive outside. The sign gives the mask, values near 0 a
smooth outline, and the slope the shading.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from probox.support.types import Bools, Floats, Ints
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks

Shape = Callable[[Floats, Floats, np.random.Generator], Floats]


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
    y = y + bend * 0.78  # moves the arc so that its middle is near the origin
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
"""Classes of the demo and their shapes, in units of the radius."""

_GROUNDS = ("wood", "felt", "stone", "sand")


@dataclasses.dataclass(frozen=True)
class Thing:
    """One shape in a scene; later ones cover earlier ones."""

    kind: str
    x: float
    y: float
    radius: float
    angle: float
    seed: int

    def window(self, width: int, height: int, margin: float = 2.0) -> tuple[slice, slice]:
        """Return the rows and columns of the image that the shape can reach, with a margin in pixels."""
        reach = 1.2 * self.radius + margin
        return (
            slice(max(0, int(self.y - reach)), min(height, int(self.y + reach) + 1)),
            slice(max(0, int(self.x - reach)), min(width, int(self.x + reach) + 1)),
        )

    def distance(self, rows: slice, columns: slice, shift: tuple[float, float] = (0.0, 0.0)) -> Floats:
        """Return the signed distance of pixel centres to the outline of the shape, moved by `shift`."""
        y = np.arange(rows.start, rows.stop)[:, None] + 0.5 - self.y - shift[1]
        x = np.arange(columns.start, columns.stop)[None, :] + 0.5 - self.x - shift[0]
        cos, sin = np.cos(self.angle) / self.radius, np.sin(self.angle) / self.radius
        shape, random = SHAPES[self.kind], np.random.default_rng(self.seed)  # the seed varies shapes of one class
        return self.radius * shape(cos * x + sin * y, cos * y - sin * x, random)


@dataclasses.dataclass(frozen=True)
class DemoScene:
    """One image: shapes on a ground, lit from the angle `light`, partly in shade; angles in radians."""

    image_id: int
    width: int
    height: int
    ground: str
    light: float
    shade_angle: float
    shade_edge: float
    seed: int
    things: tuple[Thing, ...]

    def shade(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
        """Return the depth of shade at points, 0 to 1: a half plane with a soft edge."""
        across = np.cos(self.shade_angle) * (np.asarray(x) - self.width / 2)
        along = np.sin(self.shade_angle) * (np.asarray(y) - self.height / 2)
        depth = np.clip((across + along - self.shade_edge) / 60.0 + 0.5, 0.0, 1.0)
        return np.asarray(depth * depth * (3.0 - 2.0 * depth), dtype=np.float64)

    def visible(self) -> tuple[Ints, Floats]:
        """Return the number of the visible shape at each pixel (-1: ground), and the visible fraction of each shape."""
        owner = np.full((self.height, self.width), -1)
        whole = np.zeros(len(self.things))
        for number, thing in enumerate(self.things):
            reach = int(1.2 * thing.radius) + 2
            rows = slice(int(thing.y) - reach, int(thing.y) + reach)
            columns = slice(int(thing.x) - reach, int(thing.x) + reach)
            inside = thing.distance(rows, columns) < 0
            whole[number] = inside.sum()
            top, left = max(0, -rows.start), max(0, -columns.start)
            part = owner[rows.start + top : max(rows.stop, 0), columns.start + left : max(columns.stop, 0)]
            part[inside[top : top + part.shape[0], left : left + part.shape[1]]] = number
        seen = np.bincount(owner[owner >= 0], minlength=len(self.things))
        return owner, seen / np.maximum(whole, 1.0)


def make_scenes(images: int, seed: int) -> list[DemoScene]:
    """Return scenes of alternating styles: scattered shapes, a pile, shapes at the border, many small ones."""
    random = np.random.default_rng(seed)
    return [_make_scene(number, random) for number in range(images)]


def _make_scene(number: int, random: np.random.Generator) -> DemoScene:
    width, height = (480, 640) if number % 6 == 4 else (640, 480)
    style = ("scattered", "pile", "border", "small")[number % 4]
    count = {"scattered": 8, "pile": 15, "border": 9, "small": 18}[style] + int(random.integers(0, 3))
    overlap = {"scattered": 1.02, "pile": 0.55, "border": 0.85, "small": 0.9}[style]
    smallest, largest = {"scattered": (48, 88), "pile": (46, 78), "border": (58, 104), "small": (16, 46)}[style]
    things: list[Thing] = []
    kinds = tuple(SHAPES)
    for _ in range(40 * count):
        if len(things) == count:
            break
        radius = random.uniform(smallest, largest)
        x, y = _place(style, width, height, radius, random)
        apart = [np.hypot(x - other.x, y - other.y) / (radius + other.radius) for other in things]
        if min(apart, default=np.inf) >= overlap:
            kind = kinds[int(random.integers(len(kinds)))]
            things.append(Thing(kind, x, y, radius, random.uniform(0, 2 * np.pi), int(random.integers(2**31))))
    return DemoScene(
        image_id=number + 1,
        width=width,
        height=height,
        ground=_GROUNDS[(number + number // 4) % len(_GROUNDS)],
        light=random.uniform(0, 2 * np.pi),
        shade_angle=random.uniform(0, 2 * np.pi),
        shade_edge=random.uniform(-60.0, 120.0),
        seed=int(random.integers(2**31)),
        things=tuple(things),
    )


def _place(style: str, width: int, height: int, radius: float, random: np.random.Generator) -> tuple[float, float]:
    if style == "pile":
        return random.normal(width / 2, 0.17 * width), random.normal(height / 2, 0.17 * height)
    if style == "border" and random.uniform() < 0.6:
        along, side = random.uniform(), int(random.integers(4))
        depth = radius * random.uniform(-0.2, 0.5)
        across = depth if side % 2 == 0 else (width if side == 1 else height) - depth
        return (across, along * height) if side in (0, 1) else (along * width, across)
    inset = 0.8 * radius
    return random.uniform(inset, width - inset), random.uniform(inset, height - inset)


def ground_truth(scenes: list[DemoScene]) -> tuple[GroundTruth, Floats]:
    """Return the visible shapes of all scenes and their visible fractions; nearly hidden ones are excluded."""
    rows: list[tuple[int, int, float]] = []  # image, class, visible fraction
    cuts: list[Bools] = []
    corners: list[tuple[int, int]] = []
    kinds = tuple(SHAPES)
    for image, scene in enumerate(scenes):
        owner, shares = scene.visible()
        for number, thing in enumerate(scene.things):
            window = thing.window(scene.width, scene.height)
            mask = owner[window] == number
            if mask.sum() >= 60 and shares[number] >= 0.08:
                rows.append((image, kinds.index(thing.kind), float(shares[number])))
                cuts.append(mask)
                corners.append((window[1].start, window[0].start))
    masks = Masks.from_arrays(cuts, corners)
    truth = GroundTruth(
        dataset=Dataset(
            classes=kinds,
            image_ids=np.array([scene.image_id for scene in scenes]),
            widths=np.array([scene.width for scene in scenes]),
            heights=np.array([scene.height for scene in scenes]),
            file_names=tuple(f"scene-{scene.image_id:02d}.jpg" for scene in scenes),
        ),
        image_rows=np.array([image for image, _, _ in rows]),
        labels=np.array([kind for _, kind, _ in rows]),
        ids=np.arange(1, len(rows) + 1),
        boxes=masks.boxes + np.array([0.0, 0.0, 1.0, 1.0]),
        masks=masks,
    )
    return truth, np.array([share for _, _, share in rows])


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


def render(scene: DemoScene) -> npt.NDArray[np.uint8]:
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
    # Gamma of the display: all values above are linear intensities.
    shown = np.clip(picture, 0.0, 1.0) ** (1 / 1.9) + grain
    return np.asarray(255.0 * np.clip(shown, 0.0, 1.0) + 0.5).astype(np.uint8)


def _noise(shape: tuple[int, ...], cell: tuple[float, float], random: np.random.Generator) -> Floats:
    """Return smooth noise around 0: random values on a lattice of `cell` pixels (rows, columns), interpolated."""
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


def _ground(scene: DemoScene, x: Floats, y: Floats, random: np.random.Generator) -> Floats:
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


def _cast_shadow(picture: Floats, thing: Thing, scene: DemoScene, light: Floats) -> None:
    """Darken the side away from the light, and a narrow band all around (ambient occlusion)."""
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


def _paint(picture: Floats, thing: Thing, scene: DemoScene, light: Floats) -> None:
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
    """Return the unlit colour of the shape at every pixel of its window."""
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
