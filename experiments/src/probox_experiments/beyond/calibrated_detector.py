"""A detector that errs like a real one and is honest about it: where corners are, what and whether anything is there.

`SimulatedDetector` errs in one way at a time. This one errs in all of them at once, and says how much, so that whatever
is changed about it afterwards makes it worse in expectation for a measure that sees it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.synthetic import edge_covariances, order_corners, pixel_aligned

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

EXISTS = (2.0, 1.0)
"""Existence, the probability that a proposal is of an object, has this beta distribution over all proposals."""
RUNNER_UP = 0.7
"""The share of what the most probable class leaves that the second one gets."""
HALF_PIXEL = np.array([0.0, 0.0, 0.5, 0.5])
"""To PDQ a box ends with its last pixel, to measures of boxes a pixel later: corners lie halfway."""
TRIES = 20
"""So many places are drawn for a detection of nothing; the first that is clear of objects is taken."""
CLEAR = 0.1
"""A place is clear of objects if its IoU with each is below this."""


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn:
    """What the detector says, and what it is about.

    Parameters
    ----------
    found : Detections
        All detections.
    objects : (N,) int64
        The row of the object that each is a detection of; -1: of nothing.
    wide : (N,) bool
        Those that stand for whatever else there may be: one in each image, hardly sure of anything.
    """

    found: Detections
    objects: Rows
    wide: Flags

    def replace(self, **columns: npt.ArrayLike | None) -> Drawn:
        """Return the same with some columns of the detections changed."""
        if "label_probs" in columns:
            columns = {"labels": None, "scores": None, **columns}
        return dataclasses.replace(self, found=self.found.replace(**columns))

    def take(self, rows: Rows) -> Drawn:
        """Return these detections, in this order; one may be there twice."""
        return Drawn(self.found.take(rows), self.objects[rows], self.wide[rows])


@dataclasses.dataclass(frozen=True, kw_only=True)
class CalibratedDetector:
    """Detects most objects of a ground truth, with errors of its corners and labels that it is honest about.

    - **Corners** have Gaussian errors. Their sigma is a share of the box's side, which differs from object to object,
      and is reported as it is.
    - **Labels**: of a proposal it says that there is an object with probability o (`existence`), and if so, of its most
      probable class with probability q (`certainty`). That class gets o q. There is an object in a share o of such
      proposals, and the class is right in a share q of these. What o leaves of 1 is for background.
    - **Misses**: objects below a size, and a share of the others.
    - **Detections of nothing**: as many as existence asks for.
    - Proposals whose most probable class is below a threshold are not reported. In their place stands a point in
      the middle of each image, with sigmas of a third of the image, hardly sure of any class: something may have been
      missed. Without it, PMB-NLL of a miss is infinite.

    Parameters
    ----------
    shares : (float, float)
        Least and greatest sigma, as a share of the side; log-uniform between them.
    least_sigma : float
        No sigma is below this, in pixels.
    least_side : float
        Objects whose shorter side has fewer pixels are missed.
    miss_rate : float
        The probability that another object is missed.
    threshold : float
        The least probability of the most probable class.

    Examples
    --------
    >>> from probox_experiments import synthetic_truth
    >>> drawn = CalibratedDetector().detect(synthetic_truth(20), seed=1)
    >>> drawn.found
    Detections(156 detections in 20 images, 80 classes, 156 probabilistic)
    """

    shares: tuple[float, float] = (0.02, 0.1)
    least_sigma: float = 1.5
    least_side: float = 12.0
    miss_rate: float = 0.1
    threshold: float = 0.1

    def detect(self, truth: GroundTruth, seed: int | Sequence[int] = 0) -> Drawn:
        """Return detections of all images; the same seed gives the same ones."""
        rng = np.random.default_rng(seed)
        a, b = EXISTS
        boxes = truth.masks.boxes.astype(np.float64)
        sides = boxes[:, 2:] - boxes[:, :2] + 1.0
        seen = (rng.random(len(truth)) >= self.miss_rate) & (sides.min(axis=1) >= self.least_side) & ~truth.crowd
        rows = np.flatnonzero(seen)
        # Of all proposals whose existence is o, a share o are of objects: that makes these distributions of the two.
        nothing = round(len(rows) * b / a) if len(rows) else 0
        existence = np.concatenate([rng.beta(a + 1, b, len(rows)), rng.beta(a, b + 1, nothing)])
        images = np.concatenate([truth.image_rows[rows], rng.integers(0, len(truth.image_ids), nothing)])
        places = np.concatenate([boxes[rows], boxes_of_nothing(rng, truth, images[len(rows) :])])
        labels = np.concatenate([truth.labels[rows], truth.labels[rng.integers(0, max(len(truth), 1), nothing)]])
        probs = _label_probs(rng, labels, existence, len(truth.classes))
        sigmas = self._sigmas(rng, places)
        corners = (
            places
            + HALF_PIXEL
            + np.where((np.arange(len(places)) < len(rows))[:, None], sigmas * rng.standard_normal(places.shape), 0.0)
        )
        corners = order_corners(corners)
        kept = np.flatnonzero(probs.max(axis=1, initial=0.0) >= self.threshold)
        objects = np.concatenate([rows, np.full(nothing, -1)])
        sure = made_of(truth, images[kept], corners[kept], sigmas[kept], probs[kept])
        wide = self._wide(truth)
        return Drawn(
            Detections.concatenate([sure, wide]),
            np.concatenate([objects[kept], np.full(len(wide), -1)]),
            np.repeat([False, True], [len(sure), len(wide)]),
        )

    def _sigmas(self, rng: np.random.Generator, boxes: Floats) -> Floats:
        """Return sigmas of x1, y1, x2, y2: one share for all sides of a box."""
        sides = boxes[:, 2:] - boxes[:, :2] + 1.0
        low, high = np.log(self.shares).tolist()
        share = np.exp(rng.uniform(low, high, len(boxes)))
        return np.asarray(np.tile(np.maximum(share[:, None] * sides, self.least_sigma), 2))

    def _wide(self, truth: GroundTruth) -> Detections:
        """Return a point in the middle of each image whose corners may be nearly anywhere, all classes alike.

        As a box it meets no object, so that measures of boxes have it last, as a false positive.
        """
        shapes = truth.dataset.shapes.astype(np.float64)
        boxes = np.tile(shapes / 2.0, 2)
        classes = len(truth.classes)
        probs = np.full((len(shapes), classes), min(0.8 / classes, 0.5 * self.threshold))
        return made_of(truth, np.arange(len(shapes)), boxes, np.tile(shapes / 3.0, 2), probs)


def made_of(truth: GroundTruth, images: Rows, corners: Floats, sigmas: Floats, label_probs: Floats) -> Detections:
    """Return detections from corners that end half a pixel after their last one, and sigmas of the four edges."""
    return Detections(
        classes=truth.classes,
        image_ids=truth.image_ids[images],
        boxes=corners,
        extents=corners[:, 2:] - corners[:, :2] + 0.5,
        label_probs=label_probs.astype(np.float32),
        covariances=edge_covariances(sigmas),
    )


def label_rows(top: Rows, second: Rows, existence: Floats, certainty: Floats, classes: int) -> Floats:
    """Return label probabilities: o q of the first class, most of o (1 - q) of the second, the rest of the others."""
    each = np.arange(len(top))
    if classes == 1:
        return existence[:, None]
    rest = existence * (1.0 - certainty)
    runner_up = RUNNER_UP if classes > 2 else 1.0
    probs = np.tile(((1.0 - runner_up) * rest / max(classes - 2, 1))[:, None], (1, classes))
    probs[each, second] = runner_up * rest
    probs[each, top] = existence * certainty
    return probs


def _label_probs(rng: np.random.Generator, labels: Rows, existence: Floats, classes: int) -> Floats:
    """Return label probabilities of things of these classes, honest about how often the most probable one is right."""
    count, each = len(labels), np.arange(len(labels))
    certainty = 0.5 + 0.5 * rng.beta(3.0, 1.0, count)
    right, runner_up = rng.random(count) < certainty, rng.random(count) < (RUNNER_UP if classes > 2 else 1.0)
    if classes == 1:
        return label_rows(labels, labels, existence, certainty, classes)
    # If the first class is wrong, the true one is the second with the probability that it is given, or a further one.
    lots = rng.random((count, classes))
    lots[each, labels] = -1.0
    top = np.where(right, labels, lots.argmax(axis=1))
    lots[each, top] = -1.0
    second = np.where(~right & runner_up, labels, lots.argmax(axis=1))
    return label_rows(top, second, existence, certainty, classes)


def boxes_of_nothing(rng: np.random.Generator, truth: GroundTruth, images: Rows) -> Floats:
    """Return inclusive pixel boxes in these images, as large as objects are, where no object is."""
    whole = pixel_aligned(truth)
    sizes = whole.boxes[:, 2:] - whole.boxes[:, :2] if len(whole) else np.array([[20.0, 20.0]])
    shapes = truth.dataset.shapes.astype(np.float64)[images]
    extent = np.minimum(sizes[rng.integers(0, len(sizes), (TRIES, len(images)))], shapes)
    low = np.floor(rng.random(extent.shape) * (shapes - extent + 1.0))
    tried = np.concatenate([low, low + extent - 1.0], axis=2)
    overlap = np.zeros((TRIES, len(images)))
    for number, image in enumerate(images.tolist()):
        there = whole.boxes[whole.image_rows == image]
        overlap[:, number] = _ious(tried[:, number] + np.array([0, 0, 1, 1]), there).max(axis=1, initial=0.0)
    clear = overlap < CLEAR
    chosen = np.where(clear.any(axis=0), clear.argmax(axis=0), overlap.argmin(axis=0))
    return np.asarray(tried[chosen, np.arange(len(images))].reshape(-1, 4))


def _ious(one: Floats, other: Floats) -> Floats:
    """Return the IoU of every box with every other, (N, M)."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    common = np.maximum(high - low, 0.0).prod(axis=2)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (one, other)]
    return np.asarray(common / (areas[0][:, None] + areas[1][None, :] - common))
