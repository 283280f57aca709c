"""PMB-NLL as a metric: the mean over images of the value defined by `probox.measures.pmb_definition`, and its parts.

The mean covers all images of the dataset, including those without objects or detections. Without a floor, an object far
from all detections costs thousands of nats, and an image with too few detections has an infinite value. The mean is
then undefined, and a note counts such images. `PMB_NLL_floored` is always defined: it gives the clutter intensity a
lower bound of 1e-6 objects per image, spread evenly over all boxes and classes. The floor does for boxes what the clamp
of probabilities does for labels: an object at the floor costs about 42 nats in an image of 640 x 480 pixels with 80
classes. The parts are computed with the floor.

Boxes are the annotated ones. Crowds do not count as objects; detections in them are unmatched.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.measures.measure import (
    Column,
    Evaluated,
    Measure,
    Resampled,
    Summary,
    Weights,
    counted_notes,
    weighted_sums,
)
from probox.measures.pmb_definition import ASSIGNMENTS, CLUTTER, MIN_DETERMINANT, MIN_PROBABILITY, ImageNLL
from probox.notes import Note
from probox.support.parallel import thread_count
from probox.support.types import Bools, Floats, Ints
from probox.tables.dataset import Dataset
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import background_classes, scores_alone, without_background

NUMBERS = tuple(field.name for field in dataclasses.fields(ImageNLL))
"""The kernel's values for an image, in its order."""

LITTLE_BACKGROUND = 1e-3
"""An unmatched detection with a background probability below this costs at least 7 nats."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class PmbImages:
    """PMB-NLL of the images of an evaluation.

    Parameters
    ----------
    floored : (N, 9) float64
        `NUMBERS` of each image, with the floor.
    plain : (N,) float64
        PMB-NLL without the floor; infinite where no assignment explains all objects.
    detections, dense : (N,) int64
        Number of detections in each image, and of those with a density.
    notes : sequence of Note
        Notes on replaced and excluded data.
    """

    floored: Floats
    plain: Floats
    detections: Ints
    dense: Ints
    notes: Sequence[Note]

    def number(self, name: str) -> Floats:
        """Return one of `NUMBERS` for each image."""
        column: Floats = self.floored[:, NUMBERS.index(name)]
        return column

    def defined(self, weights: Floats) -> Bools:
        """Return for each row of weights (R, N) whether a mean exists: an image, and a density if any detection."""
        found, dense = (weights @ np.stack([self.detections, self.dense], axis=1).astype(np.float64)).T
        return np.asarray((weights.sum(axis=1) > 0) & ((dense > 0) | (found == 0)), dtype=bool)


_kept: WeakKeyDictionary[Evaluated, PmbImages] = WeakKeyDictionary()


def pmb_of_images(evaluated: Evaluated) -> PmbImages | None:
    """Return PMB-NLL of each image; None if the evaluation has no label probabilities.

    Cached on the evaluation, because summary, notes and resampling read it.
    """
    if evaluated.detections.label_probs is None:
        return None
    if evaluated not in _kept:
        _kept[evaluated] = _measure(evaluated, evaluated.detections.label_probs)
    return _kept[evaluated]


def log_floors(dataset: Dataset, classes: int) -> Floats:
    """Return the floor of ln lambda for each image: 1e-6 objects, spread evenly over its boxes and classes.

    In an image of W x H pixels the boxes with x1 <= x2 and y1 <= y2 fill W^2 / 2 * H^2 / 2 pixels^4.
    """
    width, height = dataset.shapes.astype(np.float64).T
    with np.errstate(divide="ignore"):
        floors: Floats = np.log(MIN_PROBABILITY) - np.log(classes) - 2.0 * (np.log(width) + np.log(height))
    return floors + math.log(4.0)


def _measure(evaluated: Evaluated, given: LabelProbs) -> PmbImages:
    found, there, dataset = evaluated.detections, evaluated.objects, evaluated.dataset
    label_probs, alone = _class_probs(given, found.labels, evaluated.classes)
    kept = np.flatnonzero(~there.crowd)
    offsets = dataset.offsets(found.image_rows)
    object_offsets = dataset.offsets(there.image_rows[kept])
    real = int((~background_classes(evaluated.classes)).sum())
    floors = log_floors(dataset, max(real, 1))

    def run(log_floors: Floats) -> Floats:
        return _core.pmb_nll(
            offsets=offsets,
            boxes=np.ascontiguousarray(found.boxes),
            covariances=np.ascontiguousarray(found.covariances),
            label_probs=label_probs.table,
            object_offsets=object_offsets,
            object_boxes=np.ascontiguousarray(there.boxes[kept]),
            object_labels=np.ascontiguousarray(there.labels[kept]),
            log_floors=log_floors,
            clutter=CLUTTER,
            min_probability=MIN_PROBABILITY,
            min_determinant=MIN_DETERMINANT,
            assignments=ASSIGNMENTS,
            threads=thread_count(None),
        )

    floored, plain = run(floors), run(np.full(len(dataset), -np.inf))[:, 0]
    dense, total = _dense(found.covariances), len(found)
    bernoulli = label_probs.max(axis=1, initial=0.0) > np.float32(CLUTTER)
    without_background = bernoulli & (1.0 - label_probs.sum(axis=1, dtype=np.float64) < LITTLE_BACKGROUND)
    little = without_background.sum() if 2 * without_background.sum() > bernoulli.sum() else 0
    notes = [Note("pmb-no-density", total)]
    if dense.any() or not total:
        notes = counted_notes(
            _note_on_floor(floored, plain, len(kept)),
            Note("pmb-left-out", (~dense).sum(), total=total),
            Note("pmb-scores-alone", alone.sum(), total=total),
            Note("pmb-little-background", little, total=bernoulli.sum(), least=LITTLE_BACKGROUND),
            Note("pmb-crowds", there.crowd.sum()),
        )
    detections, with_density = (
        np.bincount(rows, minlength=len(dataset)) for rows in (found.image_rows, found.image_rows[dense])
    )
    return PmbImages(floored=floored, plain=plain, detections=detections, dense=with_density, notes=notes)


def _note_on_floor(floored: Floats, plain: Floats, objects: int) -> Note:
    """Return the note on objects at the floor, and on images with an infinite value without it."""
    n, infinite = len(plain), int(np.isinf(plain).sum())
    count = floored[:, NUMBERS.index("floored_objects")].sum()
    mean = math.fsum(floored[:, NUMBERS.index("nll")]) / max(n, 1)
    if infinite:
        return Note("pmb-infinite", count, total=objects, infinite=infinite, images=n, floored=mean)
    return Note("pmb-floor", count, total=objects, without=math.fsum(plain) / max(n, 1), floored=mean)


def _class_probs(
    label_probs: LabelProbs, labels: npt.NDArray[np.int32], classes: Sequence[str]
) -> tuple[LabelProbs, Bools]:
    """Return class probabilities of detections, and which detections have only a score.

    Background is not a class, even if the ground truth lists it. For detections with only a score, the remainder that
    a reader spread over the other classes is removed, see `scores_alone`.
    """
    alone = scores_alone(label_probs, labels, classes)
    return without_background(label_probs.alone(labels, alone), classes), alone


def _dense(covariances: Floats) -> Bools:
    """Return which detections have a density, by the rule of the definition."""
    a, b, d = covariances[..., 0, 0], covariances[..., 0, 1], covariances[..., 1, 1]
    corners = (a > 0) & (d > 0) & (a * d - b * b > MIN_DETERMINANT * a * d)
    return np.asarray(corners.all(axis=1), dtype=bool)


MEANS = {
    "PMB_NLL_floored": "nll",
    "PMB_box": "matched_box",
    "PMB_label": "matched_label",
    "PMB_unmatched": "unmatched",
    "PMB_missed": "missed",
    "PMB_clutter": "expected",
}
"""The columns that are means over images, and their source."""


def pmb_summary(evaluated: Evaluated) -> Summary:
    """Return the means over images, and the number of objects at the floor and of images that are infinite without."""
    images = pmb_of_images(evaluated)
    if images is None or not images.defined(np.ones((1, len(images.plain))))[0]:
        return PMB_NLL.nothing()
    n = len(images.plain)
    # fsum is exact, so the result does not depend on the order of images.
    infinite = int(np.isinf(images.plain).sum())
    summary: Summary = {"PMB_NLL": math.nan if infinite else math.fsum(images.plain) / n}
    summary |= {key: math.fsum(images.number(name)) / n for key, name in MEANS.items()}
    summary["PMB_at_floor"] = int(images.number("floored_objects").sum())
    summary["PMB_infinite"] = infinite
    return summary


def pmb_resampled(evaluated: Evaluated, weights: Weights) -> Resampled:
    """Return the summary with images counted `weights` (R, images) times, (R,) for each value."""
    images = pmb_of_images(evaluated)
    if images is None:
        return {key: np.full(len(weights), value) for key, value in PMB_NLL.nothing().items()}
    counted = weights.astype(np.float64)
    defined = images.defined(counted)
    total = np.where(defined, counted.sum(axis=1), np.nan)
    infinite = np.isinf(images.plain)
    columns = [images.number(name) for name in MEANS.values()]
    columns += [np.where(infinite, 0.0, images.plain), images.number("floored_objects"), infinite]
    *means, unfloored, floored, lost = weighted_sums(weights, columns)
    replicates = {"PMB_NLL": np.where(lost > 0, np.nan, unfloored / total)}
    replicates |= {key: values / total for key, values in zip(MEANS, means, strict=True)}
    replicates["PMB_at_floor"] = np.where(defined, floored, 0.0)
    replicates["PMB_infinite"] = np.where(defined, lost, 0.0)
    return replicates


def pmb_notes(evaluated: Evaluated) -> Sequence[Note]:
    """Return notes on detections that PMB-NLL cannot use, and on replaced values."""
    images = pmb_of_images(evaluated)
    if images is None:
        return (Note("pmb-labels-not-kept"),)
    return images.notes


PMB_NLL = Measure(
    name="pmb-nll",
    needs=frozenset({"labels"}),
    columns=(
        Column(
            key="PMB_NLL",
            heading="PMB-NLL",
            unit="plain",
            symbol="nats",
            better="low",
            hint="negative log likelihood of an image's objects, mean over images",
        ),
        Column(
            key="PMB_NLL_floored",
            heading="PMB-NLL_floored",
            unit="plain",
            symbol="nats",
            better="low",
            hint="PMB-NLL with a lower bound for objects that no detection explains",
        ),
        Column(key="PMB_box", unit="plain", better="low"),
        Column(key="PMB_label", unit="plain", better="low"),
        Column(key="PMB_unmatched", unit="plain", better="low"),
        Column(key="PMB_missed", unit="plain", better="low"),
        Column(key="PMB_clutter", unit="plain", better="low"),
        Column(key="PMB_at_floor", unit="count", better="low"),
        Column(key="PMB_infinite", unit="count", better="low"),
    ),
    summary=pmb_summary,
    resampled=pmb_resampled,
    notes=pmb_notes,
    standard=False,
)
