"""Twenty ways to make the detections of an honest detector worse, each in one thing alone."""

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


def false_positive_boxes(rng: np.random.Generator, truth: GroundTruth, images: Rows) -> Floats:
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
        overlap[:, number] = overlaps(tried[:, number] + np.array([0, 0, 1, 1]), there).max(axis=1, initial=0.0)
    clear = overlap < CLEAR
    chosen = np.where(clear.any(axis=0), clear.argmax(axis=0), overlap.argmin(axis=0))
    return np.asarray(tried[chosen, np.arange(len(images))].reshape(-1, 4))


# --- Twenty ways to make the detections of an honest detector worse, each in one thing alone ---

Change = Callable[[Drawn, GroundTruth, np.random.Generator], Drawn]

TENTH = 0.1
CORRELATION = 0.9
CONFIDENCE = 0.8
TEMPERATURE = 0.5
DUPLICATED = 0.2
FALSE = 0.2
"""How many detections of nothing are added, as a share of the detections."""
SURE, UNSURE = 0.9, 0.05
"""Their confidence; the unsure ones are below all others, whose threshold is 0.1."""
FALSE_SHARE = 0.05
"""Their sigma, as a share of their side."""
FALSE_CERTAINTY = 0.95


@dataclasses.dataclass(frozen=True)
class Perturbation:
    """One change for the worse.

    Parameters
    ----------
    name : str
        What tables and figures call it.
    change : callable
        Takes what was drawn, the truth and random numbers; returns what becomes of it.
    """

    name: str
    change: Change


def _shift(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Shift all boxes by a tenth of their width to the right."""
    sides = _sides(drawn.found)
    return _move(drawn, drawn.found.boxes + TENTH * sides[:, [0, 0, 0, 0]] * np.array([1.0, 0.0, 1.0, 0.0]))


def _resize(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator, *, by: float) -> Drawn:
    """Make all boxes wider and higher by a share of their sides, or narrower and lower."""
    out = 0.5 * by * _sides(drawn.found)
    return _move(drawn, drawn.found.boxes + np.concatenate([-out, out], axis=1))


def _jitter(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Move corners by as much again as they err."""
    boxes = drawn.found.boxes + _sigmas(drawn.found) * rng.standard_normal((len(drawn.found), 4))
    return _move(drawn, order_corners(boxes))


def _scale_sigmas(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator, *, by: float) -> Drawn:
    return _with_sigmas(drawn, by * _sigmas(drawn.found))


def _constant(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Give all corners one sigma, the mean of all, in pixels."""
    sigmas = _sigmas(drawn.found)
    mean = sigmas[~drawn.wide].mean() if not drawn.wide.all() else 1.0
    return _with_sigmas(drawn, np.full_like(sigmas, mean))


def _sigmas_shuffled(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Give every box the sigmas of another, as shares of its sides."""
    sides = np.tile(_sides(drawn.found), 2)
    shares = _sigmas(drawn.found) / sides
    return _with_sigmas(drawn, shares[_order(drawn, rng)] * sides)


def _exchange_axes(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Exchange the sigmas of x and of y."""
    return _with_sigmas(drawn, _sigmas(drawn.found)[:, [1, 0, 3, 2]])


def _correlate(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Claim that x and y of every corner are correlated by 0.9."""
    sigmas = _sigmas(drawn.found).reshape(-1, 2, 2)
    both = np.where(np.eye(2, dtype=bool), 1.0, CORRELATION)
    return _with_covariances(drawn, sigmas[..., :, None] * sigmas[..., None, :] * both)


def _sharpen(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Square label distributions (temperature 1/2), existence kept."""
    probs = _probs(drawn)
    powers = probs ** (1.0 / TEMPERATURE)
    return _with_probs(drawn, powers / powers.sum(axis=1, keepdims=True) * probs.sum(axis=1, keepdims=True))


def _less_confident(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    return drawn.replace(label_probs=(CONFIDENCE * _probs(drawn)).astype(np.float32))  # the wide ones too


def _confidences_shuffled(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Give every detection the probabilities of another, the highest to the class that was the highest, and so on."""
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
    """Leave out a tenth of the detections of objects."""
    return drawn.take(np.flatnonzero((rng.random(len(drawn.found)) >= TENTH) | (drawn.objects < 0)))


def _with_false(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator, *, confidence: float) -> Drawn:
    """Add a fifth more detections, of nothing, at one confidence."""
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
    Perturbation("sigmas x 1/4", partial(_scale_sigmas, by=0.25)),
    Perturbation("sigmas x 1/2", partial(_scale_sigmas, by=0.5)),
    Perturbation("sigmas x 2", partial(_scale_sigmas, by=2.0)),
    Perturbation("sigmas x 4", partial(_scale_sigmas, by=4.0)),
    Perturbation("sigmas constant", _constant),
    Perturbation("sigmas shuffled", _sigmas_shuffled),
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
    Perturbation("false, unsure", partial(_with_false, confidence=UNSURE)),
    Perturbation("false, sure", partial(_with_false, confidence=SURE)),
)
PERTURBATIONS = (*BOXES, *SIGMAS, *LABELS, *COUNTS)
"""All of them. The wide boxes, which stand for what may have been missed, are less confident and else left alone."""


def _sides(found: Detections) -> Floats:
    """Return width and height of boxes, at least a pixel."""
    return np.maximum(found.extents, 1.0)


def _sigmas(found: Detections) -> Floats:
    """Return the sigmas of x1, y1, x2, y2."""
    assert found.covariances is not None
    return np.sqrt(np.diagonal(found.covariances, axis1=2, axis2=3).reshape(-1, 4))


def _probs(drawn: Drawn) -> Floats:
    return drawn.found.label_probs.astype(np.float64)


def _order(drawn: Drawn, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the rows in random order; the wide ones stay where they are."""
    order, others = np.arange(len(drawn.found)), np.flatnonzero(~drawn.wide)
    order[others] = rng.permutation(others)
    return order


def _move(drawn: Drawn, boxes: Floats) -> Drawn:
    """Return other boxes, as much wider than their corners are apart as before."""
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


# --- How clearly each measure notices each change of a detector: paired differences in standard errors ---

BASE = "none"
"""What the table calls detections that nothing was done to."""
LIMIT = 5.0
"""From so many standard errors on a change counts as noticed.

With eight repeats a measure that notices nothing gets there once in 640 cells (Student's t, 7 degrees of freedom),
about once in a matrix of 20 x 24. With a limit of 3 it would be ten cells.
"""
UNCHANGED = 1e-9
"""Numbers that differ by no more than this, relative to their size, are the same: sums have rounding errors."""
MOST = 999.0
"""What a difference that is the same in all repeats, whose standard error is 0, counts as; and all above it."""
LEAST_REPEATS = 3
IDEALS = {"NEES": 4.0, "coverage_90": 0.9}
"""What numbers should be of which neither high nor low is better."""
SHOWN = 8
"""How many cells a verdict lists."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """What a measure makes of a change.

    Parameters
    ----------
    measure, perturbation : str
        The column of the measure's number, and the change.
    z : float
        Mean paired difference over its standard error; 0: the same number in all repeats; NaN: not measured.
    harm : int
        1 if the number got worse on average, -1 if it got better, 0 if neither, or nobody can say.
    """

    measure: str
    perturbation: str
    z: float
    harm: int

    @property
    def seen(self) -> bool:
        """Return whether the change counts as noticed."""
        return abs(self.z) >= LIMIT

    @property
    def worse(self) -> bool:
        """Return whether it is noticed, and for the worse."""
        return self.seen and self.harm > 0

    @property
    def better(self) -> bool:
        """Return whether it is noticed, and for the better."""
        return self.seen and self.harm < 0

    def __str__(self) -> str:
        how = "changed" if math.isnan(self.z) else f"{self.z:+.3g}"
        return f"{self.measure} by `{self.perturbation}` {how}"


class Matrix:
    """All cells of a table that has a row for each perturbation and repeat.

    Parameters
    ----------
    table : ResultTable
        `perturbation` ("none" for the detections as they were), `repeat`; numbers by the keys of measures' headlines.

    Attributes
    ----------
    repeats : int
        How many repeats have detections as they were.
    perturbations, measures : tuple of str
        Rows and columns. A number that depends on the preset has a column for each.
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
        """Return the cell of a measure and a perturbation."""
        return self._cells[key]

    def columns_of(self, measure: str) -> list[str]:
        """Return the columns of a measure's number: of PDQ one for each preset; none if it was not measured."""
        if measure == PDQ.headline.key:
            return [column for column in presets_in(self.table).values() if column in self._columns]
        return [measure] if measure in self._columns else []

    def cells(self, measures: Sequence[str], perturbations: Sequence[str]) -> list[Cell]:
        """Return the cells that were measured of these measures, PDQ under every preset, and perturbations."""
        return [cell for cell in self._chosen(measures, perturbations) if not math.isnan(cell.z)]

    def find_changed(self, measures: Sequence[str], perturbations: Sequence[str]) -> list[Cell]:
        """Return the cells whose numbers changed, but in too few repeats to tell by how many standard errors."""
        unclear = [cell for cell in self._chosen(measures, perturbations) if math.isnan(cell.z)]
        numbers = [np.concatenate(self.values(cell.measure, cell.perturbation)) for cell in unclear]
        return [cell for cell, of in zip(unclear, numbers, strict=True) if len(of) and not np.isnan(of).any()]

    def _chosen(self, measures: Sequence[str], perturbations: Sequence[str]) -> list[Cell]:
        columns = [column for measure in measures for column in self.columns_of(measure)]
        return [self._cells[c, name] for name in perturbations if name in self.perturbations for c in columns]

    def every(self) -> list[Cell]:
        """Return all cells that were measured."""
        return [cell for cell in self._cells.values() if not math.isnan(cell.z)]

    def values(self, column: str, perturbation: str) -> tuple[Floats, Floats]:
        """Return the numbers of all repeats, as they were and after a change."""
        base, changed = self._rows[BASE], self._rows.get(perturbation, {})
        pairs = [(row[column], changed[repeat][column]) for repeat, row in base.items() if repeat in changed]
        before, after = np.array(pairs, np.float64).reshape(-1, 2).T
        return before, after

    def _cell(self, column: str, perturbation: str) -> Cell:
        before, after = self.values(column, perturbation)
        headline = self._columns[column]
        return Cell(column, perturbation, _standard_errors(before, after), _harm(headline, before, after))


def _headlines(table: ResultTable) -> Iterator[tuple[str, Column]]:
    """Yield the columns of a table that are the headlines of measures."""
    for measure in MEASURES:
        key = measure.headline.key
        named = presets_in(table, key).values() if measure is PDQ else [key] if key in table else []
        yield from ((name, measure.headline) for name in named)


def _standard_errors(before: Floats, after: Floats) -> float:
    """Return the mean difference over its standard error (ddof 1), between -MOST and MOST; 0 if nothing changed."""
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


# --- claims about cells ---

Asked = Mapping[tuple[str, ...], Sequence[str]]
"""Which measures, by their headlines, and which perturbations."""


def _select_cells(matrix: Matrix, asked: Asked) -> list[Cell]:
    return [cell for measures, names in asked.items() for cell in matrix.cells(measures, names)]


def has_repeats(matrix: Matrix) -> bool:
    """Return whether there are repeats enough for standard errors."""
    return matrix.repeats >= LEAST_REPEATS


def claim_noticed(claim: str, matrix: Matrix, asked: Asked, harm: int = 0, explanation: str = "") -> Claim:
    """Return the claim that measures notice changes; with a `harm` of 1 for the worse, of -1 for the better."""
    how = {0: "", 1: ", for the worse", -1: ", for the better"}[harm]
    required = f"|z| of at least {LIMIT:g} in every cell{how}"
    cells = _select_cells(matrix, asked) if has_repeats(matrix) else []
    failing = [cell for cell in cells if not cell.seen or (harm and cell.harm != harm)]
    least = min(cells, key=lambda cell: abs(cell.z), default=None)
    return _verdict(claim, cells, failing, f"least: {least}", required, explanation)


def claim_blind(claim: str, matrix: Matrix, asked: Asked) -> Claim:
    """Return the claim that measures do not notice changes."""
    cells = _select_cells(matrix, asked) if has_repeats(matrix) else []
    most = max(cells, key=lambda cell: abs(cell.z), default=None)
    failing = [cell for cell in cells if cell.seen]
    return _verdict(claim, cells, failing, f"greatest: {most}", f"|z| below {LIMIT:g} in every cell")


def claim_unchanged(claim: str, matrix: Matrix, asked: Asked) -> Claim:
    """Return the claim that measures give the same numbers, whatever is changed."""
    changed = [cell for measures, names in asked.items() for cell in matrix.find_changed(measures, names)]
    cells = [*changed, *_select_cells(matrix, asked)]  # one repeat is enough to tell that a number is another one
    failing = [cell for cell in cells if cell.z != 0.0]
    most = changed[0] if changed else max(cells, key=lambda cell: abs(cell.z), default=None)
    required = f"the same number in every repeat, within {UNCHANGED:g}"
    return _verdict(claim, cells, failing, f"greatest: {most}", required)


def list_cells(cells: Sequence[Cell]) -> str:
    """Return cells in words, not too many."""
    more = f" and {len(cells) - SHOWN} more" if len(cells) > SHOWN else ""
    return ", ".join(map(str, cells[:SHOWN])) + more


def _verdict(
    claim: str, cells: Sequence[Cell], failing: Sequence[Cell], extreme: str, required: str, explanation: str = ""
) -> Claim:
    if not cells:
        return not_measured(claim, required)
    wrong = f"; not so: {list_cells(failing)}" if failing else ""
    measured = f"{len(cells) - len(failing)} of {len(cells)} cells; {extreme}{wrong}"
    numbers = {f"{cell.measure} by {cell.perturbation}": cell.z for cell in (failing or cells)}
    return Claim(claim, not failing, measured, required, numbers, explanation)
