"""Twenty degradations of a calibrated detector, one property at a time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from probox.measures.measure import Column
from probox.measures.pdq.pdq_measure import PDQ
from probox.measures.registry import MEASURES
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Claim, Floats, ResultTable, mean_of, not_measured, presets_in
from probox_experiments.synthetic import edge_covariances, order_corners, overlaps, pixel_aligned

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

EXISTS = (2.0, 1.0)
"""Beta distribution of existence, the probability that a proposal contains an object."""
RUNNER_UP = 0.7
"""Fraction of the remaining probability for the second class."""
HALF_PIXEL = np.array([0.0, 0.0, 0.5, 0.5])
"""PDQ's boxes end with their last pixel, those of IoU a pixel later: corners lie halfway."""
TRIES = 20
"""Number of random places per false positive; the first that is clear of objects is used."""
CLEAR = 0.1
"""A place is clear of objects if its IoU with each of them is below this limit."""


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn:
    """Simulated detections and their objects.

    Parameters
    ----------
    found : Detections
        All detections.
    objects : (N,) int64
        Row of the detected object; -1 for false positives.
    wide : (N,) bool
        Detections for missed objects: one per image, with large variance and low probability.
    """

    found: Detections
    objects: Rows
    wide: Flags

    def replace(self, **columns: npt.ArrayLike | None) -> Drawn:
        """Return a copy with some columns of the detections replaced."""
        if "label_probs" in columns:
            columns = {"labels": None, "scores": None, **columns}
        return dataclasses.replace(self, found=self.found.replace(**columns))

    def take(self, rows: Rows) -> Drawn:
        """Return these detections, in this order; rows may repeat."""
        return Drawn(self.found.take(rows), self.objects[rows], self.wide[rows])


@dataclasses.dataclass(frozen=True, kw_only=True)
class CalibratedDetector:
    """Detects most objects of a ground truth, with calibrated corners and labels.

    - **Corners** have Gaussian errors. Their standard deviation is a fraction of the box side, which differs between
      objects, and is reported without change.
    - **Labels**: a proposal contains an object with probability o (`existence`). Its most probable class is then right
      with probability q (`certainty`), so the class gets o q. Background gets 1 - o. These probabilities are correct.
    - **Misses**: small objects, and a fraction of the others.
    - **False positives**: as many as existence requires.
    - Proposals whose most probable class is below a threshold are not reported. Instead, each image has a point in
      its middle, with a standard deviation of a third of the image and a low probability of all classes. Without it,
      PMB-NLL of a missed object is infinite.

    Parameters
    ----------
    shares : (float, float)
        Smallest and largest standard deviation, as a fraction of the side; log-uniform between them.
    least_sigma : float
        Minimum of the standard deviations, in pixels.
    least_side : float
        Objects whose shorter side has fewer pixels are missed.
    miss_rate : float
        Probability that another object is missed.
    threshold : float
        Minimum of the probability of the most probable class.

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
        """Return detections of all images. Equal seeds give equal detections."""
        rng = np.random.default_rng(seed)
        a, b = EXISTS
        boxes = truth.masks.boxes.astype(np.float64)
        sides = boxes[:, 2:] - boxes[:, :2] + 1.0
        seen = (rng.random(len(truth)) >= self.miss_rate) & (sides.min(axis=1) >= self.least_side) & ~truth.crowd
        rows = np.flatnonzero(seen)
        # A fraction o of the proposals with existence o contain objects, which gives these two distributions.
        nothing = round(len(rows) * b / a) if len(rows) else 0
        existence = np.concatenate([rng.beta(a + 1, b, len(rows)), rng.beta(a, b + 1, nothing)])
        images = np.concatenate([truth.image_rows[rows], rng.integers(0, len(truth.image_ids), nothing)])
        places = np.concatenate([boxes[rows], false_positive_boxes(rng, truth, images[len(rows) :])])
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
        reported = made_of(truth, images[kept], corners[kept], sigmas[kept], probs[kept])
        wide = self._wide(truth)
        return Drawn(
            Detections.concatenate([reported, wide]),
            np.concatenate([objects[kept], np.full(len(wide), -1)]),
            np.repeat([False, True], [len(reported), len(wide)]),
        )

    def _sigmas(self, rng: np.random.Generator, boxes: Floats) -> Floats:
        """Return standard deviations of x1, y1, x2, y2: one fraction for all sides of a box."""
        sides = boxes[:, 2:] - boxes[:, :2] + 1.0
        low, high = np.log(self.shares).tolist()
        share = np.exp(rng.uniform(low, high, len(boxes)))
        return np.asarray(np.tile(np.maximum(share[:, None] * sides, self.least_sigma), 2))

    def _wide(self, truth: GroundTruth) -> Detections:
        """Return a point in the middle of each image with very large variance and equal class probabilities.

        Its box overlaps no object, so it is the last false positive of metrics with IoU.
        """
        shapes = truth.dataset.shapes.astype(np.float64)
        boxes = np.tile(shapes / 2.0, 2)
        classes = len(truth.classes)
        probs = np.full((len(shapes), classes), min(0.8 / classes, 0.5 * self.threshold))
        return made_of(truth, np.arange(len(shapes)), boxes, np.tile(shapes / 3.0, 2), probs)


def made_of(truth: GroundTruth, images: Rows, corners: Floats, sigmas: Floats, label_probs: Floats) -> Detections:
    """Return detections from corners, half a pixel after their last one, and standard deviations of the four edges."""
    return Detections(
        classes=truth.classes,
        image_ids=truth.image_ids[images],
        boxes=corners,
        extents=corners[:, 2:] - corners[:, :2] + 0.5,
        label_probs=label_probs.astype(np.float32),
        covariances=edge_covariances(sigmas),
    )


def label_rows(top: Rows, second: Rows, existence: Floats, certainty: Floats, classes: int) -> Floats:
    """Return label probabilities: o q for the first class, most of o (1 - q) for the second, the rest for others."""
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
    """Return calibrated label probabilities of objects of these classes."""
    count, each = len(labels), np.arange(len(labels))
    certainty = 0.5 + 0.5 * rng.beta(3.0, 1.0, count)
    right, runner_up = rng.random(count) < certainty, rng.random(count) < (RUNNER_UP if classes > 2 else 1.0)
    if classes == 1:
        return label_rows(labels, labels, existence, certainty, classes)
    # If the first class is wrong, the true class is the second one with its reported probability, else another one.
    lots = rng.random((count, classes))
    lots[each, labels] = -1.0
    top = np.where(right, labels, lots.argmax(axis=1))
    lots[each, top] = -1.0
    second = np.where(~right & runner_up, labels, lots.argmax(axis=1))
    return label_rows(top, second, existence, certainty, classes)


def false_positive_boxes(rng: np.random.Generator, truth: GroundTruth, images: Rows) -> Floats:
    """Return inclusive pixel boxes in these images, with the sizes of objects, clear of objects."""
    whole = pixel_aligned(truth)
    sizes = whole.boxes[:, 2:] - whole.boxes[:, :2] if len(whole) else np.array([[20.0, 20.0]])
    shapes = truth.dataset.shapes.astype(np.float64)[images]
    extent = np.minimum(sizes[rng.integers(0, len(sizes), (TRIES, len(images)))], shapes)
    low = np.floor(rng.random(extent.shape) * (shapes - extent + 1.0))
    tried = np.concatenate([low, low + extent - 1.0], axis=2)
    overlap = np.zeros((TRIES, len(images)))
    for number, image in enumerate(images.tolist()):
        there = whole.boxes[whole.image_rows == image]
        overlap[:, number] = overlaps(tried[:, number] + np.array([0, 0, 1, 1]), there).max(axis=1, initial=0.0)
    clear = overlap < CLEAR
    chosen = np.where(clear.any(axis=0), clear.argmax(axis=0), overlap.argmin(axis=0))
    return np.asarray(tried[chosen, np.arange(len(images))].reshape(-1, 4))


# --- Twenty degradations of a calibrated detector, one property at a time ---

Change = Callable[[Drawn, GroundTruth, np.random.Generator], Drawn]

TENTH = 0.1
CORRELATION = 0.9
CONFIDENCE = 0.8
TEMPERATURE = 0.5
DUPLICATED = 0.2
FALSE = 0.2
"""Number of added false positives, as a fraction of the detections."""
CONFIDENT, UNCERTAIN = 0.9, 0.05
"""Their confidence; the uncertain ones are below all other detections, whose threshold is 0.1."""
FALSE_SHARE = 0.05
"""Their standard deviation, as a fraction of their side."""
FALSE_CERTAINTY = 0.95


@dataclasses.dataclass(frozen=True)
class Perturbation:
    """One degradation.

    Parameters
    ----------
    name : str
        Name in tables and figures.
    change : callable
        Takes detections, ground truth and a random generator; returns degraded detections.
    """

    name: str
    change: Change


def _shift(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Shift all boxes by a tenth of their width to the right."""
    sides = _sides(drawn.found)
    return _move(drawn, drawn.found.boxes + TENTH * sides[:, [0, 0, 0, 0]] * np.array([1.0, 0.0, 1.0, 0.0]))


def _resize(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator, *, by: float) -> Drawn:
    """Enlarge all boxes by a fraction of their sides; negative fractions shrink them."""
    out = 0.5 * by * _sides(drawn.found)
    return _move(drawn, drawn.found.boxes + np.concatenate([-out, out], axis=1))


def _jitter(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Add a second random error of the same standard deviation to the corners."""
    boxes = drawn.found.boxes + _sigmas(drawn.found) * rng.standard_normal((len(drawn.found), 4))
    return _move(drawn, order_corners(boxes))


def _scale_sigmas(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator, *, by: float) -> Drawn:
    return _with_sigmas(drawn, by * _sigmas(drawn.found))


def _constant(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Set all standard deviations to their mean in pixels."""
    sigmas = _sigmas(drawn.found)
    mean = sigmas[~drawn.wide].mean() if not drawn.wide.all() else 1.0
    return _with_sigmas(drawn, np.full_like(sigmas, mean))


def _sigmas_shuffled(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Shuffle standard deviations, as fractions of the sides, between boxes."""
    sides = np.tile(_sides(drawn.found), 2)
    shares = _sigmas(drawn.found) / sides
    return _with_sigmas(drawn, shares[_order(drawn, rng)] * sides)


def _exchange_axes(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Exchange the standard deviations of x and y."""
    return _with_sigmas(drawn, _sigmas(drawn.found)[:, [1, 0, 3, 2]])


def _correlate(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Report a correlation of 0.9 between x and y of every corner."""
    sigmas = _sigmas(drawn.found).reshape(-1, 2, 2)
    both = np.where(np.eye(2, dtype=bool), 1.0, CORRELATION)
    return _with_covariances(drawn, sigmas[..., :, None] * sigmas[..., None, :] * both)


def _sharpen(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Square label distributions (temperature 1/2) without changing existence."""
    probs = _probs(drawn)
    powers = probs ** (1.0 / TEMPERATURE)
    return _with_probs(drawn, powers / powers.sum(axis=1, keepdims=True) * probs.sum(axis=1, keepdims=True))


def _less_confident(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    return drawn.replace(label_probs=(CONFIDENCE * _probs(drawn)).astype(np.float32))  # the wide ones too


def _confidences_shuffled(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Shuffle label probabilities between detections; the ranking of classes stays."""
    probs = _probs(drawn)
    ranking = np.argsort(-probs, axis=1, kind="stable")
    values = np.take_along_axis(probs, ranking, axis=1)[_order(drawn, rng)]
    shuffled = np.empty_like(probs)
    np.put_along_axis(shuffled, ranking, values, axis=1)
    return _with_probs(drawn, shuffled)


def _wrong_labels(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Exchange the most probable class with another in a tenth of the detections."""
    probs, classes = _probs(drawn), len(drawn.found.classes)
    chosen = np.flatnonzero(rng.random(len(probs)) < TENTH)
    first = probs[chosen].argmax(axis=1)
    other = (first + rng.integers(1, max(classes, 2), len(chosen))) % classes
    changed = probs.copy()
    changed[chosen, first], changed[chosen, other] = probs[chosen, other], probs[chosen, first]
    return _with_probs(drawn, changed)


def _duplicate(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Repeat a fifth of the detections."""
    again = np.flatnonzero((rng.random(len(drawn.found)) < DUPLICATED) & ~drawn.wide)
    return drawn.take(np.concatenate([np.arange(len(drawn.found)), again]))


def _miss(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Remove a tenth of the detections of objects."""
    return drawn.take(np.flatnonzero((rng.random(len(drawn.found)) >= TENTH) | (drawn.objects < 0)))


def _with_false(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator, *, confidence: float) -> Drawn:
    """Add a fifth more detections, all false positives of one confidence."""
    count, classes = round(FALSE * int((~drawn.wide).sum())), len(truth.classes)
    images = rng.integers(0, len(truth.image_ids), count)
    boxes = false_positive_boxes(rng, truth, images)
    first = rng.integers(0, classes, count)
    second = (first + rng.integers(1, max(classes, 2), count)) % classes
    existence = np.full(count, confidence if classes == 1 else confidence / FALSE_CERTAINTY)
    probs = label_rows(first, second, existence, np.full(count, FALSE_CERTAINTY), classes)
    sigmas = FALSE_SHARE * np.tile(boxes[:, 2:] - boxes[:, :2] + 1.0, 2)
    false = made_of(truth, images, boxes + HALF_PIXEL, sigmas, probs)
    return Drawn(
        Detections.concatenate([drawn.found, false]),
        np.concatenate([drawn.objects, np.full(count, -1)]),
        np.concatenate([drawn.wide, np.zeros(count, bool)]),
    )


BOXES = (
    Perturbation("boxes shifted", _shift),
    Perturbation("boxes grown", partial(_resize, by=TENTH)),
    Perturbation("boxes shrunk", partial(_resize, by=-TENTH)),
    Perturbation("boxes jittered", _jitter),
)
SIGMAS = (
    Perturbation("std x 1/4", partial(_scale_sigmas, by=0.25)),
    Perturbation("std x 1/2", partial(_scale_sigmas, by=0.5)),
    Perturbation("std x 2", partial(_scale_sigmas, by=2.0)),
    Perturbation("std x 4", partial(_scale_sigmas, by=4.0)),
    Perturbation("std constant", _constant),
    Perturbation("std shuffled", _sigmas_shuffled),
    Perturbation("x, y exchanged", _exchange_axes),
    Perturbation("correlated", _correlate),
)
LABELS = (
    Perturbation("labels sharpened", _sharpen),
    Perturbation("confidences x 0.8", _less_confident),
    Perturbation("confid. shuffled", _confidences_shuffled),
    Perturbation("labels wrong", _wrong_labels),
)
COUNTS = (
    Perturbation("duplicates", _duplicate),
    Perturbation("misses", _miss),
    Perturbation("false, uncertain", partial(_with_false, confidence=UNCERTAIN)),
    Perturbation("false, confident", partial(_with_false, confidence=CONFIDENT)),
)
PERTURBATIONS = (*BOXES, *SIGMAS, *LABELS, *COUNTS)
"""All degradations. Of the wide boxes only the confidence is changed."""


def _sides(found: Detections) -> Floats:
    """Return width and height of boxes, at least a pixel."""
    return np.maximum(found.extents, 1.0)


def _sigmas(found: Detections) -> Floats:
    """Return the standard deviations of x1, y1, x2, y2."""
    assert found.covariances is not None
    return np.sqrt(np.diagonal(found.covariances, axis1=2, axis2=3).reshape(-1, 4))


def _probs(drawn: Drawn) -> Floats:
    return np.asarray(drawn.found.label_probs, np.float64)


def _order(drawn: Drawn, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the rows in random order; wide boxes keep their place."""
    order, others = np.arange(len(drawn.found)), np.flatnonzero(~drawn.wide)
    order[others] = rng.permutation(others)
    return order


def _move(drawn: Drawn, boxes: Floats) -> Drawn:
    """Return detections with other corners and the same margin between corners and extent."""
    kept = np.where(drawn.wide[:, None], drawn.found.boxes, boxes)
    more = drawn.found.extents - (drawn.found.boxes[:, 2:] - drawn.found.boxes[:, :2])
    return drawn.replace(boxes=kept, extents=kept[:, 2:] - kept[:, :2] + more)


def _with_sigmas(drawn: Drawn, sigmas: Floats) -> Drawn:
    return _with_covariances(drawn, edge_covariances(sigmas))


def _with_covariances(drawn: Drawn, covariances: Floats) -> Drawn:
    assert drawn.found.covariances is not None
    return drawn.replace(covariances=np.where(drawn.wide[:, None, None, None], drawn.found.covariances, covariances))


def _with_probs(drawn: Drawn, probs: Floats) -> Drawn:
    return drawn.replace(label_probs=np.where(drawn.wide[:, None], _probs(drawn), probs).astype(np.float32))


# --- Response of each metric to each degradation: paired differences in standard errors ---

BASE = "none"
"""Name of the unchanged detections in the table."""
LIMIT = 5.0
"""A change counts as detected from this number of standard errors.

With eight repeats a metric without response reaches it once in 640 cells (Student's t, 7 degrees of freedom), about
once in a matrix of 20 x 24. With a limit of 3 it would be ten cells.
"""
UNCHANGED = 1e-9
"""Relative tolerance for equal numbers; sums have rounding errors."""
MOST = 999.0
"""Upper limit of z, also used if the standard error is 0."""
LEAST_REPEATS = 3
IDEALS = {"NEES": 4.0, "coverage_90": 0.9}
"""Target values of metrics for which neither high nor low is better."""
SHOWN = 8
"""Number of cells listed in a claim."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """Response of a metric to a degradation.

    Parameters
    ----------
    measure, perturbation : str
        Column of the metric, and name of the degradation.
    z : float
        Mean paired difference over its standard error; 0 if all repeats are equal, NaN if not measured.
    harm : int
        1 if the metric got worse on average, -1 if it improved, 0 if neither or unknown.
    """

    measure: str
    perturbation: str
    z: float
    harm: int

    @property
    def seen(self) -> bool:
        """Whether the change counts as detected."""
        return abs(self.z) >= LIMIT

    @property
    def worse(self) -> bool:
        """Whether the change is detected and the metric got worse."""
        return self.seen and self.harm > 0

    @property
    def better(self) -> bool:
        """Whether the change is detected and the metric improved."""
        return self.seen and self.harm < 0

    def __str__(self) -> str:
        how = "changed" if math.isnan(self.z) else f"{self.z:+.3g}"
        return f"{self.measure} by `{self.perturbation}` {how}"


class Matrix:
    """All cells of a table that has a row for each perturbation and repeat.

    Parameters
    ----------
    table : ResultTable
        `perturbation` ("none" for unchanged detections), `repeat`; one column per headline key of the metrics.

    Attributes
    ----------
    repeats : int
        Number of repeats with unchanged detections.
    perturbations, measures : tuple of str
        Rows and columns. A value that depends on the preset has a column per preset.
    """

    def __init__(self, table: ResultTable) -> None:
        self.table = table
        self._columns = dict(_headlines(table)) if len(table) else {}
        self.measures = tuple(self._columns)
        names = table["perturbation"].tolist() if len(table) else []
        self.perturbations = tuple(name for name in dict.fromkeys(names) if name != BASE)
        self._rows: dict[str, dict[int, dict[str, float]]] = {name: {} for name in (BASE, *self.perturbations)}
        for row in table.rows():
            self._rows[row["perturbation"]][row["repeat"]] = row
        self.repeats = len(self._rows[BASE])
        self._cells = {
            (measure, name): self._cell(measure, name) for name in self.perturbations for measure in self.measures
        }

    def __getitem__(self, key: tuple[str, str]) -> Cell:
        """Return the cell of a metric and a perturbation."""
        return self._cells[key]

    def columns_of(self, measure: str) -> list[str]:
        """Return the columns of a metric, one per preset for PDQ; empty if it was not measured."""
        if measure == PDQ.headline.key:
            return [column for column in presets_in(self.table).values() if column in self._columns]
        return [measure] if measure in self._columns else []

    def cells(self, measures: Sequence[str], perturbations: Sequence[str]) -> list[Cell]:
        """Return the measured cells of these metrics (PDQ under every preset) and perturbations."""
        return [cell for cell in self._chosen(measures, perturbations) if not math.isnan(cell.z)]

    def find_changed(self, measures: Sequence[str], perturbations: Sequence[str]) -> list[Cell]:
        """Return the cells whose numbers changed, with too few repeats for standard errors."""
        unclear = [cell for cell in self._chosen(measures, perturbations) if math.isnan(cell.z)]
        numbers = [np.concatenate(self.values(cell.measure, cell.perturbation)) for cell in unclear]
        return [cell for cell, of in zip(unclear, numbers, strict=True) if len(of) and not np.isnan(of).any()]

    def _chosen(self, measures: Sequence[str], perturbations: Sequence[str]) -> list[Cell]:
        columns = [column for measure in measures for column in self.columns_of(measure)]
        return [self._cells[c, name] for name in perturbations if name in self.perturbations for c in columns]

    def every(self) -> list[Cell]:
        """Return all measured cells."""
        return [cell for cell in self._cells.values() if not math.isnan(cell.z)]

    def values(self, column: str, perturbation: str) -> tuple[Floats, Floats]:
        """Return the numbers of all repeats, before and after a change."""
        base, changed = self._rows[BASE], self._rows.get(perturbation, {})
        pairs = [(row[column], changed[repeat][column]) for repeat, row in base.items() if repeat in changed]
        before, after = np.array(pairs, np.float64).reshape(-1, 2).T
        return before, after

    def _cell(self, column: str, perturbation: str) -> Cell:
        before, after = self.values(column, perturbation)
        headline = self._columns[column]
        return Cell(column, perturbation, _standard_errors(before, after), _harm(headline, before, after))


def _headlines(table: ResultTable) -> Iterator[tuple[str, Column]]:
    """Yield the columns of a table that are headlines of metrics."""
    for measure in MEASURES:
        key = measure.headline.key
        named = presets_in(table, key).values() if measure is PDQ else [key] if key in table else []
        yield from ((name, measure.headline) for name in named)


def _standard_errors(before: Floats, after: Floats) -> float:
    """Return the mean difference over its standard error (ddof 1), clipped to -MOST and MOST; 0 if nothing changed."""
    differences = after - before
    if not len(differences) or np.isnan(differences).any():
        return math.nan
    if np.all(np.abs(differences) <= UNCHANGED * np.maximum(1.0, np.abs(before))):
        return 0.0
    if len(differences) < LEAST_REPEATS:
        return math.nan
    mean, error = mean_of(differences)
    if abs(mean) >= MOST * error:
        return math.copysign(MOST, mean)
    return mean / error


def _harm(headline: Column, before: Floats, after: Floats) -> int:
    if headline.key in IDEALS:
        ideal = IDEALS[headline.key]
        gone = float((np.abs(after - ideal) - np.abs(before - ideal)).sum())
    elif headline.better is None:
        return 0
    else:
        gone = float((after - before).sum()) * (1 if headline.better == "low" else -1)
    return 0 if math.isnan(gone) else int(np.sign(gone))


# --- Claims on cells ---

Asked = Mapping[tuple[str, ...], Sequence[str]]
"""Metrics, by their headline keys, and their perturbations."""


def _select_cells(matrix: Matrix, asked: Asked) -> list[Cell]:
    return [cell for measures, names in asked.items() for cell in matrix.cells(measures, names)]


def has_repeats(matrix: Matrix) -> bool:
    """Return whether there are enough repeats for standard errors."""
    return matrix.repeats >= LEAST_REPEATS


def claim_detected(claim: str, matrix: Matrix, asked: Asked, harm: int = 0, explanation: str = "") -> Claim:
    """Return the claim that metrics detect changes; `harm` 1 requires that they get worse, -1 that they improve."""
    how = {0: "", 1: ", worse", -1: ", better"}[harm]
    required = f"|z| of at least {LIMIT:g} in every cell{how}"
    cells = _select_cells(matrix, asked) if has_repeats(matrix) else []
    failing = [cell for cell in cells if not cell.seen or (harm and cell.harm != harm)]
    least = min(cells, key=lambda cell: abs(cell.z), default=None)
    return _claim_on_cells(claim, cells, failing, f"least: {least}", required, explanation)


def claim_undetected(claim: str, matrix: Matrix, asked: Asked) -> Claim:
    """Return the claim that metrics do not detect changes."""
    cells = _select_cells(matrix, asked) if has_repeats(matrix) else []
    most = max(cells, key=lambda cell: abs(cell.z), default=None)
    failing = [cell for cell in cells if cell.seen]
    return _claim_on_cells(claim, cells, failing, f"greatest: {most}", f"|z| below {LIMIT:g} in every cell")


def claim_unchanged(claim: str, matrix: Matrix, asked: Asked) -> Claim:
    """Return the claim that metrics are identical after changes."""
    changed = [cell for measures, names in asked.items() for cell in matrix.find_changed(measures, names)]
    cells = [*changed, *_select_cells(matrix, asked)]  # one repeat is enough to show a difference
    failing = [cell for cell in cells if cell.z != 0.0]
    most = changed[0] if changed else max(cells, key=lambda cell: abs(cell.z), default=None)
    required = f"the same number in every repeat, within {UNCHANGED:g}"
    return _claim_on_cells(claim, cells, failing, f"greatest: {most}", required)


def list_cells(cells: Sequence[Cell]) -> str:
    """Return cells as text, at most `SHOWN` of them."""
    more = f" and {len(cells) - SHOWN} more" if len(cells) > SHOWN else ""
    return ", ".join(map(str, cells[:SHOWN])) + more


def _claim_on_cells(
    claim: str, cells: Sequence[Cell], failing: Sequence[Cell], extreme: str, required: str, explanation: str = ""
) -> Claim:
    if not cells:
        return not_measured(claim, required)
    wrong = f"; failing: {list_cells(failing)}" if failing else ""
    measured = f"{len(cells) - len(failing)} of {len(cells)} cells; {extreme}{wrong}"
    numbers = {f"{cell.measure} by {cell.perturbation}": cell.z for cell in (failing or cells)}
    return Claim(claim, not failing, measured, required, numbers, explanation)
