"""Objects with outlines, detectors that err about them in a way that we know, and the four things they can report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.measures.scoring.scores import normal_cdf
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

REPORTS = ("sure box", "Gaussian box", "sure mask", "probabilistic mask")
BOXES, MASKS = REPORTS[:2], REPORTS[2:]

SIDES = (24, 120)
"""Objects of a truth are taken that are at least, and at most, so many pixels wide and high."""
REACH = 6.0
"""How many sigmas lie between an object and the border of its image; no detection lies farther off."""
MIDDLE = np.array([0.5, 0.5, -0.5, -0.5])
"""From first and last pixels to where a Gaussian corner makes both as probable as not to be the last."""
WAVES = 8
"""Of how many waves around an object the errors of a jittered outline are made."""
TABLE = (9.0, 20_000)
"""Where Phi is looked up: to both sides of 0, and in how many steps, so small that nothing between is off by more than
a hundred thousandth of it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """Objects in images of their own, and what a detector takes them for.

    Parameters
    ----------
    truth : GroundTruth
        The objects.
    found : list of (H, W) bool arrays
        The outlines that the detector sees.
    probabilities : callable
        Returns, for every pixel of every image, the probability that an object is there whose outline errs with this
        sigma.
    """

    truth: GroundTruth
    found: list[Mask]
    probabilities: Callable[[float], list[Floats]]


def _blur(mask: Mask, sigma: float) -> Floats:
    """Return the mean of a mask that is moved by whole pixels: a Gaussian of this sigma on both axes, rounded."""
    height, width = mask.shape
    steps = np.arange(max(height, width))
    share = normal_cdf((steps + 0.5) / sigma) - normal_cdf((steps - 0.5) / sigma)
    rows, columns = (share[np.abs(steps[:size, None] - steps[:size])] for size in (height, width))
    blurred: Floats = np.clip(rows @ mask.astype(np.float64) @ columns, 0.0, 1.0)
    return blurred


@cache
def _heights() -> Floats:
    end, steps = TABLE
    return normal_cdf(np.linspace(-end, end, steps + 1))


def _phi(z: Floats) -> Floats:
    """Return Phi of many numbers, from a table."""
    end, steps = TABLE
    place = ((z + end) * (steps / (2 * end))).clip(0.0, steps - 1e-9)
    below = place.astype(np.int64)
    heights = _heights()
    part = place - below
    values: Floats = heights[below] * (1 - part) + heights[below + 1] * part
    return values


def shapes_of(truth: GroundTruth, count: int) -> list[Mask]:
    """Return the masks of a truth's first `count` objects of a fitting size that do not fill their boxes."""
    boxes = truth.masks.boxes.astype(np.int64)
    sides = boxes[:, 2:] - boxes[:, :2] + 1
    fitting = (sides.min(axis=1) >= SIDES[0]) & (sides.max(axis=1) <= SIDES[1]) & ~truth.crowd
    rows = np.flatnonzero(fitting & (truth.masks.pixels < sides.prod(axis=1)))[:count]
    sizes = truth.dataset.shapes[truth.image_rows[rows]]
    shapes = []
    for row, (width, height) in zip(rows.tolist(), sizes.tolist(), strict=True):
        x0, y0, x1, y1 = boxes[row].tolist()
        shapes.append(truth.masks.to_array(row, height, width)[y0 : y1 + 1, x0 : x1 + 1])
    return shapes


def combs(count: int, seed: int) -> list[Mask]:
    """Return made-up shapes whose outlines are about twice as long as those of their boxes."""
    rng = np.random.default_rng([seed, count])
    shapes = []
    for _ in range(count):
        tooth, gap, height = rng.integers((14, 12, 70), (19, 17, 111)).tolist()
        teeth = np.arange(4 * tooth + 3 * gap) % (tooth + gap) < tooth
        shapes.append(np.tile(teeth, (height, 1)) | (np.arange(height) < tooth)[:, None])
    return shapes


def _own_images(masks: Sequence[Mask]) -> GroundTruth:
    return GroundTruth.from_masks(["object"], [(number, [mask], [0]) for number, mask in enumerate(masks)])


@dataclasses.dataclass(frozen=True, eq=False)
class Shapes:
    """Masks to be moved, with margins as wide as they may be moved."""

    masks: list[Mask]
    error: float

    @property
    def margin(self) -> int:
        """Return how many pixels lie between an object and the border of its image."""
        return math.ceil(REACH * self.error)

    @cached_property
    def truth(self) -> GroundTruth:
        """Return the masks in images of their own."""
        return _own_images([np.pad(mask, self.margin) for mask in self.masks])

    def blur(self, sigma: float) -> list[Floats]:
        """Return the masks with a second margin, moved by errors of this sigma, on average."""
        if self._kept.get("sigma") != sigma:  # the last one, which all repeats ask for in turn
            self._kept.update(sigma=sigma, maps=[_blur(np.pad(mask, 2 * self.margin), sigma) for mask in self.masks])
        maps: list[Floats] = self._kept["maps"]
        return maps

    @cached_property
    def _kept(self) -> dict[str, Any]:
        return {}

    def move(self, seed: Sequence[int]) -> Scene:
        """Return a scene whose detector sees every mask moved as a whole, by whole pixels, a Gaussian rounded."""
        margin = self.margin
        drawn = np.random.default_rng(seed).normal(0.0, self.error, (len(self.masks), 2))
        steps = np.round(drawn).clip(-margin, margin).astype(np.int64).tolist()

        def seen(maps: Iterable[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
            """Cut images out of what has two margins."""
            return [
                one[margin - y : one.shape[0] - margin - y, margin - x : one.shape[1] - margin - x]
                for one, (y, x) in zip(maps, steps, strict=True)
            ]

        found = seen(np.pad(mask, 2 * margin) for mask in self.masks)
        return Scene(self.truth, found, lambda sigma: seen(self.blur(sigma)))


def blobs(count: int, error: float, seed: Sequence[int]) -> Scene:
    """Return a scene of irregular blobs whose detector errs about the radius in every direction, near ones alike.

    A pixel at distance d in a direction where the detector sees the radius R is in the object with probability
    Phi((R - d) / error).
    """
    shape_rng = np.random.default_rng([seed[0], count])  # the same blobs in every repeat
    rng = np.random.default_rng(seed)
    masks, places = [], []
    for _ in range(count):
        size = shape_rng.uniform(20.0, 36.0)
        form = shape_rng.normal(0.0, 0.1 * size, (2, 4))
        errors = rng.normal(0.0, error / math.sqrt(WAVES), (2, WAVES))
        half = math.ceil(1.6 * size + REACH * error)
        y, x = np.mgrid[-half : half + 1, -half : half + 1].astype(np.float64)
        distance = np.hypot(x, y)
        direction = (x + 1j * y) / np.maximum(distance, 1.0)
        # Bounded, so that an object stays one and fits its image.
        radius = size + _waves(direction, form, 2).clip(-0.6 * size, 0.6 * size)
        masks.append(distance < radius)
        places.append(radius + _waves(direction, errors, 0) - distance)
    found = [place > 0 for place in places]
    return Scene(_own_images(masks), found, lambda sigma: [_phi(place / sigma) for place in places])


def _waves(direction: npt.NDArray[np.complex128], amplitudes: Floats, first: int) -> Floats:
    """Return a sum of waves around the circle, with `first` periods and more."""
    power = direction**first
    total = np.zeros(direction.shape)
    for cosine, sine in amplitudes.T.tolist():
        total += cosine * power.real + sine * power.imag
        power = power * direction
    return total


def detections(scene: Scene, report: str, sigma: float) -> Detections:
    """Return what a detector reports of what it sees."""
    boxes = np.array([_box(mask) for mask in scene.found], dtype=np.float64).reshape(-1, 4)
    heatmaps: list[npt.NDArray[np.generic]] | None = None
    covariances = None
    if report == "Gaussian box":
        boxes = boxes + MIDDLE
        covariances = np.broadcast_to(sigma**2 * np.eye(2), (len(boxes), 2, 2, 2))
    elif report in MASKS:
        certain = [mask.astype(np.float64) for mask in scene.found]
        heatmaps = [*(scene.probabilities(sigma) if report == "probabilistic mask" else certain)]
    return Detections(
        classes=("object",),
        image_ids=scene.truth.image_ids,
        boxes=boxes,
        label_probs=np.ones((len(boxes), 1), np.float32),
        covariances=covariances,
        heatmaps=None if heatmaps is None else tuple(heatmaps),
    )


def _box(mask: Mask) -> tuple[int, int, int, int]:
    """Return the first and last columns and rows of a mask: x1, y1, x2, y2."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])


def empty_part(mask: Mask) -> float:
    """Return how many pixels of a mask's box are not its own, over those that are."""
    x1, y1, x2, y2 = _box(mask)
    pixels = int(mask.sum())
    return ((x2 - x1 + 1) * (y2 - y1 + 1) - pixels) / pixels


def outline(truth: GroundTruth, error: float) -> float:
    """Return how long the outlines of objects are against those of their boxes, as far as errors of this size see.

    An outline's length is the integral over the gradient of the blurred mask. Both are counted per pixel of the object,
    as PDQ counts what is lost along them.
    """
    lengths = np.zeros((len(truth), 2))
    for row, (width, height) in enumerate(truth.dataset.shapes.tolist()):
        mask = truth.masks.to_array(row, height, width)
        x1, y1, x2, y2 = _box(mask)
        gradient = np.hypot(*np.gradient(_blur(mask, error)))
        lengths[row] = np.array([gradient.sum(), 2.0 * (x2 - x1 + y2 - y1 + 2)]) / mask.sum()
    own, of_boxes = lengths.sum(axis=0)
    return float(own / of_boxes)
