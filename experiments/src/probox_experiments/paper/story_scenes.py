"""Made-up objects and detections for the stories of the paper's appendices A.2 and A.4."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.paper.by_hand import box_map

__all__ = ["EDGES", "SCENES", "Told", "all_told", "detections", "scene_truth", "tight_box"]

Mask = npt.NDArray[np.bool_]

EDGES = ("left", "top", "right", "bottom")
CLASSES = ("thing", "another thing")


@dataclasses.dataclass(frozen=True)
class Told:
    """A detection of a story, said by how it differs from the box around its object.

    Parameters
    ----------
    story, detection : str
        Which one.
    scene : str
        The object.
    off : (4,)
        How far the left, top, right and bottom edge lie outside the object's box, in pixels; inside if negative.
    sigmas : (4,)
        The standard deviations of these edges; all 0 for a plain box.
    correlations : (2,)
        Of x and y of the top-left and of the bottom-right corner.
    probability : float
        Of the object's class.
    """

    story: str
    detection: str
    scene: str
    off: tuple[float, float, float, float]
    sigmas: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    correlations: tuple[float, float] = (0.0, 0.0)
    probability: float = 1.0

    @property
    def box(self) -> npt.NDArray[np.float64]:
        """Return the box, which ends with its last pixel."""
        return np.asarray(tight_box(SCENES[self.scene]()) + np.array([-1, -1, 1, 1]) * self.off)

    @property
    def covariances(self) -> npt.NDArray[np.float64]:
        """Return the covariances of both corners."""
        corners = zip(self.sigmas[::2], self.sigmas[1::2], self.correlations, strict=True)
        return np.array([[[x * x, rho * x * y], [rho * x * y, y * y]] for x, y, rho in corners])

    @property
    def overlap(self) -> float:
        """Return the intersection over union of both boxes."""
        (x1, y1, x2, y2), (u1, v1, u2, v2) = self.box, tight_box(SCENES[self.scene]())
        both = (min(x2, u2) - max(x1, u1) + 1) * (min(y2, v2) - max(y1, v1) + 1)
        return float(both / ((x2 - x1 + 1) * (y2 - y1 + 1) + (u2 - u1 + 1) * (v2 - v1 + 1) - both))

    def probability_map(self) -> npt.NDArray[np.float64]:
        """Return the probability of every pixel as preset `paper` has it, worked out by hand."""
        height, width = SCENES[self.scene]().shape
        if any(self.sigmas):
            return box_map(self.box.tolist(), self.sigmas, self.correlations, width, height)
        x1, y1, x2, y2 = self.box
        columns, rows = np.arange(width), np.arange(height)[:, None]
        covered = (columns >= x1) & (columns <= x2) & (rows >= y1) & (rows <= y2)
        return np.asarray(covered, dtype=np.float64)


def all_told(sure: float, error: float, correlation: float) -> list[Told]:
    """Return all stories.

    Parameters
    ----------
    sure : float
        The standard deviation of an edge that a detection is sure of.
    error : float
        How far off the one wrong edge or corner is, in the stories of edges and corners; also its standard deviation.
    correlation : float
        Of the wrong corner's x and y; its opposite, too.
    """
    # The arm to the left is missed, the box ends below the feet.
    general = (-14.0, 0.0, 0.0, 12.0)
    told = [
        Told("general", "little uncertainty", "person", general, (1, 1, 1, 1)),
        Told("general", "on the right edges", "person", general, (14, 1, 1, 12)),
        Told("general", "x and y exchanged", "person", general, (1, 14, 12, 1)),
        Told("general", "corners exchanged", "person", general, (1, 12, 14, 1)),
        Told("over-confident", "sure of the wrong edge", "person", (2, 2, 2, -100), (6, 6, 6, sure)),
        Told("over-confident", "unsure of it, too", "person", (2, 2, 2, -100), (6, 6, 6, 100)),
        Told("under-confident", "good box, unsure edge", "laptop", (0, 0, 1, 1), (1, 1, 40, 1)),
        Told("under-confident", "poorer box, honest", "person", (3, -4, -4, 3), (3, 4, 4, 3)),
        Told("chair", "surer label", "chair", (8, 2, 12, 4), probability=0.95),
        Told("chair", "better box", "chair", (0, 0, 1, 0), probability=0.7),
        Told("pizza", "surer label", "pizza", (5, 2, 9, 2), probability=0.95),
        Told("pizza", "better box", "pizza", (2, 0, 2, 1), probability=0.7),
    ]
    for story, sign in (("edge too near", -1.0), ("edge too far", 1.0)):
        for wrong, name in enumerate(EDGES):
            for unsure, other in enumerate(EDGES):
                off, sigmas = [0.0] * 4, [sure] * 4
                off[wrong], sigmas[unsure] = sign * error, error
                told.append(Told(story, f"{name} wrong, {other} unsure", "square", _four(off), _four(sigmas)))
    for story, sign in (("corner too near", -1.0), ("corner too far", 1.0)):
        for corner, name in enumerate(("top left", "bottom right")):
            for rho in (correlation, -correlation):
                off, sigmas, correlations = [0.0] * 4, [sure] * 4, [0.0, 0.0]
                off[2 * corner : 2 * corner + 2] = [sign * error] * 2
                sigmas[2 * corner : 2 * corner + 2] = [error] * 2
                correlations[corner] = rho
                told.append(
                    Told(
                        story,
                        f"{name}, correlation {rho:+g}",
                        "small square",
                        _four(off),
                        _four(sigmas),
                        (correlations[0], correlations[1]),
                    )
                )
    return told


def _four(values: list[float]) -> tuple[float, float, float, float]:
    first, second, third, fourth = values
    return first, second, third, fourth


def detections(told: list[Told]) -> Detections:
    """Return the detections of one image as a table."""
    return Detections(
        classes=CLASSES,
        image_ids=np.ones(len(told), np.int64),
        boxes=np.array([each.box for each in told]),
        extents=np.array([each.box[2:] - each.box[:2] + 1.0 for each in told]),
        label_probs=np.array([[each.probability, 1.0 - each.probability] for each in told], np.float32),
        covariances=np.array([each.covariances for each in told]),
    )


@cache
def scene_truth(scene: str) -> GroundTruth:
    """Return an object alone in its image."""
    truth = GroundTruth.from_masks(CLASSES, [(1, [SCENES[scene]()], [0])])
    return truth.replace(boxes=truth.masks.boxes + np.array([0.0, 0.0, 1.0, 1.0]), extents=None)


def tight_box(mask: Mask) -> npt.NDArray[np.float64]:
    """Return the box around some pixels, which ends with its last pixel."""
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    return np.array([columns[0], rows[0], columns[-1], rows[-1]], dtype=np.float64)


def _places(width: int, height: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return x and y of the middles of all pixels."""
    y, x = np.mgrid[0:height, 0:width] + 0.5
    return x, y


def person() -> Mask:
    """Return somebody who stands with the arms a little away."""
    x, y = _places(200, 320)
    x = np.abs(x - 100.0)
    head = (x / 13) ** 2 + ((y - 66) / 16) ** 2 < 1
    body = (x < 22) & (y > 80) & (y < 142)
    legs = (np.abs(x - 12) < 9) & (y >= 142) & (y < 214)
    arms = (np.abs(x - (22 + 0.3 * (y - 82))) < 5) & (y > 82) & (y < 142)
    return np.asarray(head | body | legs | arms)


def laptop() -> Mask:
    """Return an open laptop: a screen, and a keyboard that comes forward."""
    x, y = _places(260, 170)
    x = np.abs(x - 110.0)
    screen = (x < 46) & (y > 45) & (y < 100)
    keys = (x < 46 + 0.5 * (y - 100)) & (y >= 100) & (y < 122)
    return np.asarray(screen | keys)


def chair() -> Mask:
    """Return a chair from the side: mostly not chair."""
    x, y = _places(150, 160)
    back = (x > 45) & (x < 54) & (y > 30) & (y < 84)
    seat = (x > 45) & (x < 103) & (y >= 84) & (y < 96)
    legs = (np.abs(np.abs(x - 74) - 25) < 4) & (y >= 96) & (y < 130)
    return np.asarray(back | seat | legs)


def pizza() -> Mask:
    """Return a pizza: nearly all of its box."""
    x, y = _places(190, 140)
    return np.asarray(((x - 92) / 60) ** 2 + ((y - 70) / 45) ** 2 < 1)


def square() -> Mask:
    """Return a square in the middle of a square image: no direction differs from another."""
    mask = np.zeros((140, 140), dtype=bool)
    mask[40:100, 40:100] = True
    return mask


def small_square() -> Mask:
    """Return a square so small that its corners matter."""
    mask = np.zeros((120, 120), dtype=bool)
    mask[48:72, 48:72] = True
    return mask


SCENES: Mapping[str, Callable[[], Mask]] = {
    "person": cache(person),
    "laptop": cache(laptop),
    "chair": cache(chair),
    "pizza": cache(pizza),
    "square": cache(square),
    "small square": cache(small_square),
}
"""The objects, each in an image of its own."""
