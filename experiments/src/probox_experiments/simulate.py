"""A detector that errs exactly as told: what a measure says about it can be compared with what was told."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.covariances import smallest_eigenvalues
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["SimulatedDetector"]

Order = Literal["objects", "rounds", "shuffled"]
Place = Literal["border", "anywhere"]
Variance = float | npt.ArrayLike
Seed = int | Sequence[int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulatedDetector:
    """Detects every object of a ground truth, with errors of known kind and size.

    A perfect detection is the box around an object's pixels, with probability 1 for its class. From there,
    the corners ``c1`` and ``c2`` of the box are drawn from Gaussians, and the detector reports another (or
    the same) covariance for them:

        c_k ~ N(corner k of the object, corner_variance),     reported: N(c_k, reported_variance)

    Where a draw turns a small box inside out, its corners change places, so that it stays a box.

    Parameters
    ----------
    corner_variance : float, (2, 2) or (2, 2, 2) array
        The true covariance of the corner errors, in square pixels: a variance on both axes, a covariance for
        both corners, or one for each. Default 0: no error.
    reported_variance : float, (2, 2) or (2, 2, 2) array
        The covariance that the detector reports. Default 0: plain boxes.
    label_probability : float
        The probability of an object's class; the others share the rest evenly.
    duplicate_probability : float, optional
        The same for the second and all further detections of an object. Default: as the first.
    detections_per_object : int
        How often each object is detected; the corner errors of its detections are independent.
    miss_rate : float
        The probability that an object is not detected at all.
    false_per_image : int
        How many detections of nothing each image gets, of random classes.
    false_probability : float
        Their label probability.
    false_size : int
        Their width and height in pixels; images that are smaller get smaller ones.
    false_place : {"border", "anywhere"}
        Whether they lie along the border of the image.
    order : {"objects", "rounds", "shuffled"}
        All detections of the first object, then all of the second ...; or the first detection of every object,
        then the second ...; or any order. False detections come last unless shuffled. Order decides between
        equal scores in mAP, and nothing in PDQ.

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
        """Return detections of all images; the same seed gives the same ones.

        Detectors that differ in `corner_variance` alone err in the same directions under the same seed, which
        makes small differences between them visible with few repeats.
        """
        rng = np.random.default_rng(seed)
        seen = np.flatnonzero(rng.random(len(truth)) >= self.miss_rate)
        rows, turn = self._rows(seen)
        boxes = truth.masks.boxes[rows] + self._corner_errors(rng, len(rows))
        boxes = np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], axis=1)
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
            # A box ends with its last pixel, so it is one wider than its corners are apart.
            extents=boxes[:, 2:] - boxes[:, :2] + 1.0,
            label_probs=_label_probs(labels, probabilities, len(truth.classes)),
            covariances=np.broadcast_to(reported, (len(boxes), 2, 2, 2)) if reported.any() else None,
        )

    def _rows(self, seen: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the object of each detection, and how many detections of that object go before it."""
        times = self.detections_per_object
        if self.order == "rounds":
            return np.tile(seen, times), np.repeat(np.arange(times), len(seen))
        return np.repeat(seen, times), np.tile(np.arange(times), len(seen))

    def _corner_errors(self, rng: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
        covariances = _covariances(self.corner_variance, "corner_variance")
        if not covariances.any():
            return np.zeros((count, 4))
        values, vectors = np.linalg.eigh(covariances)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]  # roots @ roots.T is the covariance
        draws = rng.standard_normal((count, 2, 2))
        return np.asarray(np.einsum("kij,nkj->nki", roots, draws).reshape(count, 4))

    def _false_boxes(
        self, rng: np.random.Generator, truth: GroundTruth, images: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        size = np.stack([truth.dataset.widths, truth.dataset.heights], axis=1)[images]
        side = np.minimum(self.false_size, size)
        low = rng.integers(0, size - side + 1)
        if self.false_place == "border":
            axis = rng.integers(0, 2, len(images))
            end = rng.integers(0, 2, len(images))
            each = np.arange(len(images))
            low[each, axis] = end * (size - side)[each, axis]
        return np.concatenate([low, low + side - 1], axis=1).astype(np.float64)


def _covariances(value: Variance, name: str) -> npt.NDArray[np.float64]:
    """Return the (2, 2, 2) covariances of both corners that a variance, one matrix or two stand for."""
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


def _label_probs(
    labels: npt.NDArray[np.int32], probabilities: npt.NDArray[np.float64], classes: int
) -> npt.NDArray[np.float32]:
    """Return label distributions: each row's class gets its probability, the others share the rest evenly."""
    probs = np.zeros((len(labels), classes), np.float32)
    if classes > 1 and np.any(probabilities < 1.0):
        probs[:] = ((1.0 - probabilities) / (classes - 1))[:, None]
    probs[np.arange(len(labels)), labels] = probabilities
    return probs
