"""Made-up images in which it is known how unsure one must be of every edge.

What is seen is drawn first: where an edge seems to be (its nominal place), what kind of edge it is, and how
ambiguous that makes it, its sigma. Then the true edge is drawn around the nominal one with that sigma. So nobody
who sees the picture can do better than to say "nominal, give or take sigma", and whoever says something else is
wrong by a known amount.

Coordinates are PDQ's: a box covers every pixel that it touches, and its second corner names the last pixel
(docs/measure.md). The pixels of a true box are those that `GroundTruth.from_boxes` gives it.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.groundtruth import GroundTruth

__all__ = [
    "BLURRED",
    "CLASSES",
    "FADED",
    "KINDS",
    "OCCLUDED",
    "SHARP",
    "SHARP_SIGMA",
    "SIDE",
    "SIGMAS",
    "Scenes",
    "draw_scenes",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CLASSES = ("light", "dark", "checked")
KINDS = ("sharp", "blurred", "occluded", "faded")
SHARP, BLURRED, OCCLUDED, FADED = range(4)
KIND_SHARES = (0.4, 0.2, 0.2, 0.2)

SIDE = 96
"""Width and height of an image in pixels."""
SLOT = SIDE // 2
"""Objects have a quarter of the image each, so that none hides another."""
COUNT_SHARES = (0.3, 0.4, 0.3)
"""How many images have one, two and three objects."""
OBJECT_SIDES = (20.0, 36.0)
SHARP_SIGMA = 0.5
SIGMAS = (1.0, 3.5)
"""Of the edges that are not sharp, evenly in their logarithm."""
REACH = 3.0
"""How many sigmas a nominal edge keeps from the border of the image, so that the true one is nearly always inside."""


@dataclasses.dataclass(frozen=True)
class Scenes:
    """Images and their objects; edges are those of x1, y1, x2, y2.

    Parameters
    ----------
    count : int
        How many images.
    image_rows : (N,) ints
        The image of each object, ascending.
    labels : (N,) ints
        Its class.
    kinds : (N, 4) ints
        What is to be seen of each edge: a row of `KINDS`.
    nominal, sigmas : (N, 4) floats
        Where each edge seems to be, and how unsure that is.
    boxes : (N, 4) floats
        Where it is.
    seed : int
        Of the images' noise.
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
        """Return the objects as a table; images are called 1, 2, ..."""
        return GroundTruth.from_boxes(
            CLASSES,
            dict.fromkeys(range(1, self.count + 1), (SIDE, SIDE)),
            (self.image_rows + 1).tolist(),
            self.boxes,
            self.labels.tolist(),
        )

    @cached_property
    def pixel_boxes(self) -> Floats:
        """Return first and last pixels of the true boxes."""
        return self.truth.masks.boxes.astype(np.float64)


def draw_scenes(count: int, seed: int) -> Scenes:
    """Draw the objects of so many images.

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
    # One edge in a thousand would leave the image, and hardly any box would be turned inside out.
    boxes = boxes.clip(0.0, SIDE - 1.0)
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1.0)
    return Scenes(count, image_rows, rng.integers(0, len(CLASSES), n), kinds, nominal, sigmas, boxes, seed)


def _places(rng: np.random.Generator, sigmas: Floats, slot: Ints) -> Floats:
    """Return nominal boxes in their quarters of the image, away from its border."""
    extent = rng.uniform(*OBJECT_SIDES, (len(sigmas), 2))
    outer = np.where(slot == 0, sigmas[:, :2], sigmas[:, 2:])  # of the edge that looks at the border
    margin = REACH * outer
    free = rng.random(extent.shape) * (SLOT - 1.0 - extent - margin)
    first = np.where(slot == 0, margin + free, SIDE - 1.0 - margin - free - extent)
    return np.concatenate([first, first + extent], axis=1)
