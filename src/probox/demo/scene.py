"""The demo's scenes: which things lie where, in whose shade, and what of them can be seen."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from probox.demo.shapes import SHAPES, distance
from probox.support.types import Bools, Floats, Ints
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks

__all__ = ["Scene", "Thing", "ground_truth", "make_scenes"]

_GROUNDS = ("wood", "felt", "stone", "sand")
_KINDS = tuple(SHAPES)


@dataclasses.dataclass(frozen=True)
class Thing:
    """One thing on the table; later things lie on earlier ones."""

    kind: str
    x: float
    y: float
    radius: float
    angle: float
    seed: int

    def window(self, width: int, height: int, margin: float = 2.0) -> tuple[slice, slice]:
        """Return the rows and columns of the image that the thing can reach, and `margin` pixels more."""
        reach = 1.2 * self.radius + margin
        return (
            slice(max(0, int(self.y - reach)), min(height, int(self.y + reach) + 1)),
            slice(max(0, int(self.x - reach)), min(width, int(self.x + reach) + 1)),
        )

    def distance(self, rows: slice, columns: slice, shift: tuple[float, float] = (0.0, 0.0)) -> Floats:
        """Return the signed distance of pixel centres to the outline, as if the thing were moved by `shift`."""
        y = np.arange(rows.start, rows.stop)[:, None] + 0.5 - self.y - shift[1]
        x = np.arange(columns.start, columns.stop)[None, :] + 0.5 - self.x - shift[0]
        x, y = np.broadcast_arrays(x, y)
        return distance(self.kind, x, y, self.radius, self.angle, self.seed)


@dataclasses.dataclass(frozen=True)
class Scene:
    """One image: things on a ground, lit from `light` (radians), partly in the shade of something out of view."""

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
        """Return how deep points lie in the shade, 0 to 1: a half plane with a soft edge."""
        across = np.cos(self.shade_angle) * (np.asarray(x) - self.width / 2)
        along = np.sin(self.shade_angle) * (np.asarray(y) - self.height / 2)
        depth = np.clip((across + along - self.shade_edge) / 60.0 + 0.5, 0.0, 1.0)
        return np.asarray(depth * depth * (3.0 - 2.0 * depth), dtype=np.float64)

    def visible(self) -> tuple[Ints, Floats]:
        """Return whose each pixel is (the thing's number, or -1), and which share of each thing can be seen."""
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


def make_scenes(images: int, seed: int) -> list[Scene]:
    """Return scenes that take turns: scattered things, a pile, things at the border, many small ones."""
    random = np.random.default_rng(seed)
    return [_make_scene(number, random) for number in range(images)]


def _make_scene(number: int, random: np.random.Generator) -> Scene:
    width, height = (480, 640) if number % 6 == 4 else (640, 480)
    style = ("scattered", "pile", "border", "small")[number % 4]
    count = {"scattered": 8, "pile": 15, "border": 9, "small": 18}[style] + int(random.integers(0, 3))
    overlap = {"scattered": 1.02, "pile": 0.55, "border": 0.85, "small": 0.9}[style]
    smallest, largest = {"scattered": (48, 88), "pile": (46, 78), "border": (58, 104), "small": (16, 46)}[style]
    things: list[Thing] = []
    for _ in range(40 * count):
        if len(things) == count:
            break
        radius = random.uniform(smallest, largest)
        x, y = _place(style, width, height, radius, random)
        apart = [np.hypot(x - other.x, y - other.y) / (radius + other.radius) for other in things]
        if min(apart, default=np.inf) >= overlap:
            kind = _KINDS[int(random.integers(len(_KINDS)))]
            things.append(Thing(kind, x, y, radius, random.uniform(0, 2 * np.pi), int(random.integers(2**31))))
    return Scene(
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


def ground_truth(scenes: list[Scene]) -> tuple[GroundTruth, Floats]:
    """Return the visible things of all scenes, and how much of each can be seen; slivers are left out."""
    rows: list[tuple[int, int, float]] = []  # image, class, share that can be seen
    cuts: list[Bools] = []
    corners: list[tuple[int, int]] = []
    for image, scene in enumerate(scenes):
        owner, shares = scene.visible()
        for number, thing in enumerate(scene.things):
            window = thing.window(scene.width, scene.height)
            mask = owner[window] == number
            if mask.sum() >= 60 and shares[number] >= 0.08:
                rows.append((image, _KINDS.index(thing.kind), float(shares[number])))
                cuts.append(mask)
                corners.append((window[1].start, window[0].start))
    masks = _moved(Masks.from_arrays(cuts), np.array(corners, np.int32).reshape(-1, 2))
    truth = GroundTruth(
        dataset=Dataset(
            classes=_KINDS,
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


def _moved(masks: Masks, by: npt.NDArray[np.int32]) -> Masks:
    """Return masks cut out of larger images at their places: each moved by its ``x, y``."""
    of_run = np.repeat(by, np.diff(masks.offsets), axis=0)
    runs = masks.runs + np.stack([of_run[:, 1], of_run[:, 0], of_run[:, 0]], axis=1)
    return Masks(masks.boxes + np.concatenate([by, by], axis=1), masks.pixels, masks.offsets, runs)
