"""Synthetic ground truths and a simulated detector."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.inputs import hash_table
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.geometry import smallest_eigenvalues
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks, box_pixels
from probox_experiments.claims import Floats

# --- Ground truths: one square, a plane, and images with synthetic objects ---

CLASSES = 80
OBJECTS_PER_IMAGE = 7.36
SHAPES = ((640, 480), (640, 427), (480, 640), (500, 375), (427, 640))
SHAPE_SHARES = (0.42, 0.26, 0.14, 0.12, 0.06)


def synthetic_truth(images: int = 250, seed: int = 0) -> GroundTruth:
    """Return synthetic images with COCO's numbers, sizes and class frequencies of objects.

    COCO's validation images contain 7.4 objects of 2.9 classes on average, half of the images at most 4, one in
    a hundred more than 34. The side of an object relative to its image is log-normal around 0.11; small, medium and
    large objects are a third each; one object in five is cut by the image border. Objects here are ellipses, so
    that pixels and boxes differ.

    Parameters
    ----------
    images : int
        Number of images.
    seed : int
        Random seed.

    Examples
    --------
    >>> synthetic_truth(100)
    GroundTruth(100 images, 757 objects, 80 classes)
    """
    if images < 1:
        raise InputError(f"expected at least one image, but got {images}")
    rng = np.random.default_rng([seed, 1])
    shapes = np.array(SHAPES)[rng.choice(len(SHAPES), images, p=SHAPE_SHARES)]
    counts = np.where(rng.random(images) < 0.01, 0, rng.geometric(1.0 / OBJECTS_PER_IMAGE, images))
    owner = np.repeat(np.arange(images), counts)
    labels = _clustered_labels(rng, counts)
    size = shapes[owner].astype(np.float64)
    side = np.exp(rng.normal(-2.2, 1.05, len(owner))).clip(0.006, 0.97) * np.sqrt(size.prod(axis=1))
    stretch = np.exp(0.5 * rng.normal(-0.13, 0.7, len(owner)))
    extent = np.stack([side * stretch, side / stretch], axis=1).clip(3.0, 0.97 * size)
    # Some objects lie anywhere and may be cut by the border; the others lie completely inside.
    free = rng.random(len(owner)) < 0.55
    available = np.where(free[:, None], size, size - extent)
    centre = rng.random((len(owner), 2)) * available + (size - available) / 2
    masks = _ellipses(centre, extent / 2, shapes[owner])
    inclusive = masks.boxes.astype(np.float64)
    return GroundTruth(
        dataset=Dataset(
            classes=tuple(f"class {number:02d}" for number in range(1, CLASSES + 1)),
            image_ids=np.arange(1, images + 1),
            widths=shapes[:, 0],
            heights=shapes[:, 1],
        ),
        image_rows=owner,
        labels=labels,
        boxes=inclusive + np.array([0.0, 0.0, 1.0, 1.0]),
        masks=masks,
    )


def _clustered_labels(rng: np.random.Generator, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return classes for the objects of each image: few per image, some common, many rare."""
    weights = 1.0 / np.arange(1, CLASSES + 1)
    weights[0] *= 2.0  # people
    weights /= weights.sum()
    labels = [
        rng.choice(rng.choice(CLASSES, 1 + rng.poisson(2.1), replace=False, p=weights), count)
        for count in counts.tolist()
    ]
    return np.concatenate([*labels, np.zeros(0)]).astype(np.int32)


def _ellipses(centres: Floats, radii: Floats, shapes: npt.NDArray[np.int64]) -> Masks:
    """Return the pixels of ellipses whose centre lies inside; each has at least the pixel at its centre."""
    boxes = np.zeros((len(centres), 4), np.int32)
    pixels = np.zeros(len(centres), np.int64)
    offsets = np.zeros(len(centres) + 1, np.int64)
    parts: list[npt.NDArray[np.int32]] = [np.zeros((0, 3), np.int32)]
    for row, ((cx, cy), (a, b), (width, height)) in enumerate(zip(centres, radii, shapes, strict=True)):
        y = np.arange(max(int(cy - b), 0), min(int(cy + b) + 1, height))
        half = a * np.sqrt(np.maximum(1.0 - ((y + 0.5 - cy) / b) ** 2, 0.0))
        begin = np.maximum(np.ceil(cx - half - 0.5), 0).astype(np.int64)
        end = np.minimum(np.floor(cx + half - 0.5) + 1, width).astype(np.int64)
        kept = end > begin
        if not kept.any():
            y, begin = np.array([int(cy)]), np.array([int(cx)])
            end, kept = begin + 1, np.array([True])
        y, begin, end = y[kept], begin[kept], end[kept]
        boxes[row] = begin.min(), y[0], end.max() - 1, y[-1]
        pixels[row] = (end - begin).sum()
        if pixels[row] < box_pixels(boxes[row]):
            parts.append(np.stack([y, begin, end], axis=1).astype(np.int32))
            offsets[row + 1] = len(y)
    return Masks(boxes, pixels, np.cumsum(offsets), np.concatenate(parts))


def boxes_truth(
    classes: Sequence[str],
    boxes: npt.NDArray[np.int32],
    image: int,
    *,
    image_ids: npt.NDArray[np.int64],
    image_rows: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32] | None = None,
) -> GroundTruth:
    """Return objects that fill inclusive pixel boxes in square images, all of the first class by default."""
    sides = np.full(len(image_ids), image)
    return GroundTruth(
        dataset=Dataset(classes=tuple(classes), image_ids=image_ids, widths=sides, heights=sides),
        image_rows=image_rows,
        labels=np.zeros(len(boxes), np.int32) if labels is None else labels,
        boxes=boxes + np.array([0.0, 0.0, 1.0, 1.0]),
        masks=Masks.from_boxes(boxes),
    )


def order_corners(boxes: Floats) -> Floats:
    """Return boxes with ordered corners, exchanged where errors inverted the box."""
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], axis=1)


def tight_box(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the inclusive box around the pixels of a mask: x1, y1, x2, y2."""
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    return np.array([columns[0], rows[0], columns[-1], rows[-1]])


def edge_covariances(sigmas: Floats) -> Floats:
    """Return the covariances of corners, (N, 2, 2, 2), from standard deviations of x1, y1, x2, y2, (N, 4)."""
    return np.asarray(np.square(sigmas).reshape(-1, 2, 2)[..., None] * np.eye(2))


def overlaps(one: Floats, other: Floats) -> Floats:
    """Return the IoU of every box with every other, (N, M); 0 for boxes without area."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    both = np.maximum(high - low, 0.0).prod(axis=2)
    areas, others = ((boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (one, other))
    ious: Floats = np.divide(both, areas[:, None] + others - both, out=np.zeros_like(both), where=both > 0)
    return ious


def square_scene(side: int = 500, image: int = 2000, classes: int = 1, extra: npt.ArrayLike = ()) -> GroundTruth:
    """Return one square object of the first of `classes` classes in the middle of a square image.

    `extra`, (N, 4) inclusive pixel boxes, are further objects of this class.
    """
    low = (image - side) // 2
    square = [[low, low, low + side - 1, low + side - 1]]
    boxes = np.concatenate([np.array(square), np.asarray(extra, dtype=np.int64).reshape(-1, 4)]).astype(np.int32)
    names = [f"class {number}" for number in range(1, classes + 1)]
    return boxes_truth(names, boxes, image, image_ids=np.array([1]), image_rows=np.zeros(len(boxes), np.int64))


def border_squares(count: int, image: int, side: int = 2) -> npt.NDArray[np.int64]:
    """Return small squares evenly spread along the border of a square image, as inclusive pixel boxes."""
    last = image - side
    along = np.round(np.arange(count) * (4 * last / max(count, 1))).astype(np.int64)
    edge, step = along // last, along % last
    # Clockwise from the top-left corner.
    x = np.choose(edge, [step, np.full(count, last), last - step, np.zeros(count, np.int64)])
    y = np.choose(edge, [np.zeros(count, np.int64), step, np.full(count, last), last - step])
    return np.stack([x, y, x + side - 1, y + side - 1], axis=1)


def boxes_in_one_image(
    truth: GroundTruth, boxes: npt.ArrayLike, probabilities: Sequence[float] = (1.0,), variance: float = 0.0
) -> Detections:
    """Return detections for a ground truth with one image and one class, from inclusive pixel boxes."""
    corners = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    return Detections(
        classes=truth.classes,
        image_ids=np.repeat(truth.image_ids, len(corners)),
        boxes=corners,
        extents=corners[:, 2:] - corners[:, :2] + 1.0,
        label_probs=np.array(probabilities, np.float32)[:, None],
        covariances=np.broadcast_to(variance * np.eye(2), (len(corners), 2, 2, 2)) if variance else None,
    )


def evenly(first: float, last: float, count: int) -> tuple[float, ...]:
    """Return evenly spaced settings, rounded to nine digits.

    >>> evenly(0, 1, 6)
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    """
    return tuple(round(value, 9) for value in np.linspace(first, last, count).tolist())


PROBABILITIES = evenly(0.05, 1.0, 20)
"""Default probabilities of experiments."""


def plane_scene() -> GroundTruth:
    """Return a plane from the side, which fills little of its box."""
    width, height = 640, 320
    ys, xs = np.mgrid[0:height, 0:width] + 0.5
    # x runs from the tail to the nose, y upwards from the middle of the body.
    x, y = xs - 50.0, 220.0 - ys
    top = 16.0 * np.sqrt(np.clip((540.0 - x) / 75.0, 0.0, 1.0))
    bottom = np.minimum(
        16.0 * np.clip((540.0 - x) / 60.0, 0.0, 1.0) ** 0.4, -10.0 + 26.0 * np.clip(x / 170.0, 0.0, 1.0)
    )
    body = (x > 0) & (x < 540) & (y < top) & (y > -bottom)
    fin = (y > 10) & (y < 120) & (x > 30 - 0.22 * (y - 16)) & (x < 108 - 0.80 * (y - 16))
    tailplane = (y < 11) & (y > -7) & (x > -6 + 2.1 * (y - 4)) & (x < 84 + 3.6 * (y - 4))
    wing = (y < -4) & (y > -46) & (x > 216 + 2.2 * y) & (x < 330 + 3.6 * y)
    engine = ((x - 252) / 32) ** 2 + ((y + 27) / 10) ** 2 < 1
    return GroundTruth.from_masks(["plane"], [(1, [body | fin | tailplane | wing | engine], [0])])


def pixel_aligned(truth: GroundTruth) -> GroundTruth:
    """Return the ground truth with boxes around the objects' pixels instead of annotated boxes.

    PDQ uses pixels, mAP and moLRP use annotated boxes, which may differ. A detection can be perfect for all three
    only if they are equal.
    """
    boxes = truth.masks.boxes + np.array([0.0, 0.0, 1.0, 1.0])
    return truth.replace(boxes=boxes, extents=None)


def first_images(truth: GroundTruth, count: int | None) -> GroundTruth:
    """Return the ground truth of the first `count` images; None means all."""
    if count is None or count >= len(truth.image_ids):
        return truth
    if count < 1:
        raise InputError(f"expected at least one image, but got {count}")
    return truth.select_images(truth.image_ids[:count])


def classes_within_images(truth: GroundTruth) -> GroundTruth:
    """Return the ground truth with classes renumbered per image, with the smallest number of classes.

    Equality of classes within an image is preserved. PDQ needs nothing else if every label has probability 1, and 80
    columns of label probabilities become a dozen.
    """
    pairs = truth.image_rows * len(truth.classes) + truth.labels
    distinct, place = np.unique(pairs, return_inverse=True)
    first = np.searchsorted(distinct, np.arange(len(truth.image_ids)) * len(truth.classes))
    number = place.reshape(-1) - first[truth.image_rows]
    count = int(number.max(initial=0)) + 1
    classes = tuple(f"class {column + 1} of the image" for column in range(count))
    return truth.replace(
        dataset=truth.dataset.replace(classes=classes, category_ids=None), labels=number.astype(np.int32)
    )


def fingerprint(table: GroundTruth | Detections) -> str:
    """Return a digest of a ground truth or of detections."""
    return hash_table(table)[:16]


# --- A simulated detector with known errors ---

Order = Literal["objects", "rounds", "shuffled"]
Place = Literal["border", "anywhere"]
Variance = float | npt.ArrayLike
Seed = int | Sequence[int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulatedDetector:
    """Detects every object of a ground truth, with errors of known kind and size.

    A perfect detection is the box around an object's pixels, with probability 1 for its class. From there,
    the corners ``c1`` and ``c2`` of the box are drawn from Gaussians. The detector reports the same or another
    covariance for them:

        c_k ~ N(corner k of the object, corner_variance),     reported: N(c_k, reported_variance)

    If a draw inverts a small box, its corners are exchanged.

    Parameters
    ----------
    corner_variance : float, (2, 2) or (2, 2, 2) array
        The true covariance of the corner errors, in square pixels: a variance on both axes, a covariance for
        both corners, or one for each. Default 0: no error.
    reported_variance : float, (2, 2) or (2, 2, 2) array
        The reported covariance. Default 0: no covariance.
    label_probability : float
        The probability of an object's class; the others share the rest equally.
    duplicate_probability : float, optional
        The same for the second and further detections of an object. Default: as for the first.
    detections_per_object : int
        Detections per object, with independent corner errors.
    miss_rate : float
        The probability that an object is missed.
    false_per_image : int
        Number of false positives per image, of random classes.
    false_probability : float
        Their label probability.
    false_size : int
        Their width and height in pixels, at most those of the image.
    false_place : {"border", "anywhere"}
        Their place: along the image border or anywhere.
    order : {"objects", "rounds", "shuffled"}
        Order of the detections: object by object, round by round (the first detection of every object, then the
        second ...), or shuffled. False positives come last unless shuffled. Order decides between equal scores in
        mAP, and has no effect on PDQ.

    Examples
    --------
    >>> import probox
    >>> truth = probox.GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    >>> detector = SimulatedDetector(corner_variance=4, reported_variance=4, label_probability=0.9)
    >>> found = detector.detect(truth, seed=1)
    >>> found
    Detections(1 detection in 1 image, 1 class, 1 probabilistic)
    >>> found.boxes.round(2).tolist()
    [[11.64, 20.66, 37.39, 41.81]]
    """

    corner_variance: Variance = 0.0
    reported_variance: Variance = 0.0
    label_probability: float = 1.0
    duplicate_probability: float | None = None
    detections_per_object: int = 1
    miss_rate: float = 0.0
    false_per_image: int = 0
    false_probability: float = 1.0
    false_size: int = 2
    false_place: Place = "border"
    order: Order = "objects"

    def __post_init__(self) -> None:
        for name in ("label_probability", "duplicate_probability", "miss_rate", "false_probability"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise InputError(f"expected {name} between 0 and 1, but got {value!r}")
        for name, least in (("detections_per_object", 1), ("false_per_image", 0), ("false_size", 1)):
            if getattr(self, name) < least:
                raise InputError(f"expected {name} to be at least {least}, but got {getattr(self, name)!r}")
        if self.order not in ("objects", "rounds", "shuffled"):
            raise InputError(f"expected order to be 'objects', 'rounds' or 'shuffled', but got {self.order!r}")
        if self.false_place not in ("border", "anywhere"):
            raise InputError(f"expected false_place to be 'border' or 'anywhere', but got {self.false_place!r}")
        for name in ("corner_variance", "reported_variance"):
            _covariances(getattr(self, name), name)

    def detect(self, truth: GroundTruth, seed: Seed = 0) -> Detections:
        """Return detections of all images. Equal seeds give equal detections.

        Detectors that differ only in `corner_variance` have errors in the same directions for the same seed, which
        reduces the variance of their differences.
        """
        rng = np.random.default_rng(seed)
        seen = np.flatnonzero(rng.random(len(truth)) >= self.miss_rate)
        rows, turn = self._rows(seen)
        boxes = truth.masks.boxes[rows] + self._corner_errors(rng, len(rows))
        boxes = order_corners(boxes)
        later = self.label_probability if self.duplicate_probability is None else self.duplicate_probability
        images, labels = truth.image_rows[rows], truth.labels[rows]
        probabilities = np.where(turn == 0, self.label_probability, later)
        if self.false_per_image:
            false_images = np.repeat(np.arange(len(truth.image_ids)), self.false_per_image)
            boxes = np.concatenate([boxes, self._false_boxes(rng, truth, false_images)])
            images = np.concatenate([images, false_images])
            labels = np.concatenate([labels, rng.integers(0, len(truth.classes), len(false_images), dtype=np.int32)])
            probabilities = np.concatenate([probabilities, np.full(len(false_images), self.false_probability)])
        if self.order == "shuffled":
            shuffled = rng.permutation(len(boxes))
            boxes, images, labels = boxes[shuffled], images[shuffled], labels[shuffled]
            probabilities = probabilities[shuffled]
        reported = _covariances(self.reported_variance, "reported_variance")
        return Detections(
            classes=truth.classes,
            image_ids=truth.image_ids[images],
            boxes=boxes,
            # A box ends with its last pixel, so its extent is the distance of its corners plus one.
            extents=boxes[:, 2:] - boxes[:, :2] + 1.0,
            label_probs=_label_probs(labels, probabilities, len(truth.classes)),
            covariances=np.broadcast_to(reported, (len(boxes), 2, 2, 2)) if reported.any() else None,
        )

    def _rows(self, seen: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the object of each detection, and the number of earlier detections of that object."""
        times = self.detections_per_object
        if self.order == "rounds":
            return np.tile(seen, times), np.repeat(np.arange(times), len(seen))
        return np.repeat(seen, times), np.tile(np.arange(times), len(seen))

    def _corner_errors(self, rng: np.random.Generator, count: int) -> Floats:
        covariances = _covariances(self.corner_variance, "corner_variance")
        if not covariances.any():
            return np.zeros((count, 4))
        values, vectors = np.linalg.eigh(covariances)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]  # roots @ roots.T is the covariance
        draws = rng.standard_normal((count, 2, 2))
        return np.asarray(np.einsum("kij,nkj->nki", roots, draws).reshape(count, 4))

    def _false_boxes(self, rng: np.random.Generator, truth: GroundTruth, images: npt.NDArray[np.int64]) -> Floats:
        size = np.stack([truth.dataset.widths, truth.dataset.heights], axis=1)[images]
        side = np.minimum(self.false_size, size)
        low = rng.integers(0, size - side + 1)
        if self.false_place == "border":
            axis = rng.integers(0, 2, len(images))
            end = rng.integers(0, 2, len(images))
            each = np.arange(len(images))
            low[each, axis] = end * (size - side)[each, axis]
        return np.concatenate([low, low + side - 1], axis=1).astype(np.float64)


def _covariances(value: Variance, name: str) -> Floats:
    """Return the (2, 2, 2) covariances of both corners from a variance, one matrix or two."""
    given = np.asarray(value, dtype=np.float64)
    if given.ndim == 0:
        given = given * np.eye(2)
    if given.shape not in ((2, 2), (2, 2, 2)):
        shape = " x ".join(map(str, given.shape))
        raise InputError(f"expected {name} to be a number, or of shape 2 x 2 or 2 x 2 x 2, but got {shape}")
    both = np.array(np.broadcast_to(given, (2, 2, 2)))
    symmetric = np.allclose(both, np.swapaxes(both, 1, 2))
    if not np.isfinite(both).all() or not symmetric or smallest_eigenvalues(both).min() < -1e-9 * np.abs(both).max():
        raise InputError(f"expected {name} to be a variance or covariances, but got {given.tolist()}")
    return both


def _label_probs(labels: npt.NDArray[np.int32], probabilities: Floats, classes: int) -> npt.NDArray[np.float32]:
    """Return label distributions: each row's class gets its probability, the others share the rest equally."""
    probs = np.zeros((len(labels), classes), np.float32)
    if classes > 1 and np.any(probabilities < 1.0):
        probs[:] = ((1.0 - probabilities) / (classes - 1))[:, None]
    probs[np.arange(len(labels)), labels] = probabilities
    return probs


# --- Images with different numbers of objects, for which assignment is relevant ---

CROWDS = (1, 4, 16, 48)
"""Objects per image in experiments; with two detections each, mAP's limit of 100 per class is not exceeded."""


def crowded_truth(objects: int, *, in_all: int = 192, side: int = 24, image: int = 200, seed: Seed = 0) -> GroundTruth:
    """Return square objects at random places in square images; they may overlap.

    They belong to the first of two classes, so that labels can be wrong.

    Parameters
    ----------
    objects : int
        Objects per image.
    in_all : int
        Minimum of the total number of objects, which determines the number of images.
    side, image : int
        Width and height of objects and images.
    seed : int or sequence of int
        Random seed.

    Examples
    --------
    >>> crowded_truth(48)
    GroundTruth(4 images, 192 objects, 2 classes)
    """
    if objects < 1 or in_all < 1:
        raise InputError(f"expected at least one object, but got {objects} per image and {in_all} in all")
    images = -(-in_all // objects)
    low = np.random.default_rng(seed).integers(0, image - side + 1, (images * objects, 2))
    boxes = np.concatenate([low, low + side - 1], axis=1).astype(np.int32)
    ids, rows = np.arange(1, images + 1), np.repeat(np.arange(images), objects)
    return boxes_truth(("thing", "other thing"), boxes, image, image_ids=ids, image_rows=rows)


def crowd_points(
    small: Mapping[str, int], crowds: Sequence[int], truth: GroundTruth, repeats: int
) -> list[dict[str, Any]]:
    """Return the points of an experiment on small scenes, on crowds, and on a ground truth."""
    points: list[dict[str, Any]] = [
        {"scene": scene, "objects": float(count), "repeat": 0} for scene, count in small.items()
    ]
    each = len(truth) / max(len(truth.image_ids), 1)
    for repeat in range(repeats):
        points += [{"scene": "crowd", "objects": float(count), "repeat": repeat} for count in crowds]
        points.append({"scene": "truth", "objects": each, "repeat": repeat})
    return points


def crowd_or_truth(
    scene: str, objects: float, truth: GroundTruth, seed: Sequence[int]
) -> tuple[GroundTruth, list[int]]:
    """Return a crowd with this number of objects per image, or the ground truth, and the seed for detections."""
    if scene != "crowd":
        return truth, [*seed]
    return crowded_truth(int(objects), seed=[*seed, int(objects), 1]), [*seed, int(objects)]
