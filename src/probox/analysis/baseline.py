"""Constant-variance baseline: predicted covariances against the best constant ones, by PDQ and proper scores.

PDQ hardly distinguishes informative covariances from a constant std: a std of one fraction of the side for all boxes
uses nothing from the detector and reaches most of the gain over deterministic boxes. Every scoring rule S is therefore
compared with its value under that baseline,

    skill = 1 - S(own) / S(constant)       for the energy score and CRPS,
    skill = S(constant) - S(own)           for the NLL, which has no natural zero,
    skill = PDQ(own) - PDQ(constant),

which is above 0 if the predicted std is more informative than the box size. The constant is the best for the rule on
the other half of the images. Boxes without covariance are excluded.

The difference in PDQ has two denominators, the gain over deterministic boxes (the same boxes without covariances) and
the remainder between the baseline and a perfect score:

    gain_fraction      = (PDQ(constant) - PDQ(deterministic)) / (PDQ(own) - PDQ(deterministic)),
    remaining_fraction = (PDQ(own) - PDQ(constant)) / (1 - PDQ(constant)).

Both are defined only if deterministic < constant <= own, because a fraction of no gain is meaningless.

One std in pixels for all corners may beat a fraction of the side and is just as uninformative. The energy score has
that baseline, too, and covariances count as informative only if they beat both.

The baseline, and the best scale of the detector's own std, are fitted on one half of the images and applied to the
other. Both are pinned at the image border (`probox.fusion.keep_inside`) if and only if all detections with a covariance
are. PDQ removes the probability beyond the border, so pinning only one side would bias the comparison.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.analysis.resampling import Interval, compute_interval, draw_images
from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.evaluate import evaluate
from probox.evaluation.result import Evaluation
from probox.fusion.gaussian import keep_inside
from probox.measures.matched import MatchedPairs
from probox.measures.measure import weighted_sums
from probox.measures.pdq.pdq_measure import PDQ
from probox.measures.scoring.scores import (
    EXACT,
    QUICK,
    crps,
    edge_variances,
    energy_scores,
    invertible,
    negative_log_likelihoods,
)
from probox.support.formatting import with_count
from probox.support.types import Bools, Floats, Ints
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.geometry import constant_covariances
from probox.tables.groundtruth import GroundTruth
from probox.tables.results import Verdict
from probox.tables.table import join_tables


@dataclasses.dataclass(frozen=True, eq=False)
class Rescorer:
    """Ground truth, detections and convention of an evaluation, to score changed detections."""

    truth: GroundTruth
    found: Detections
    costs: npt.NDArray[np.float32]
    convention: Convention
    threads: int | None = None

    def score(self, **changes: Any) -> Evaluation:
        """Return an evaluation of PDQ with some columns of the detections replaced."""
        return self._score(self.truth, self.found.replace(**changes) if changes else self.found)

    def _score(self, truth: GroundTruth, found: Detections) -> Evaluation:
        scored = evaluate(truth, found, convention=self.convention, measures=("pdq",), threads=self.threads)
        # Costs are kept: the class of a false positive may be missing from the ground truth, and so from these tables.
        return dataclasses.replace(scored, detections=scored.detections.replace(costs=self.costs))

    def with_right_labels(self) -> Evaluation:
        """Return the evaluation in which each detection has the class of its object with probability 1."""
        dataset = self.truth.dataset.replace(classes=("object",), category_ids=None)
        truth = self.truth.replace(dataset=dataset, labels=np.zeros(len(self.truth), np.int32))
        found = Detections(
            classes=("object",),
            image_ids=self.found.image_ids,
            boxes=self.found.boxes,
            covariances=self.found.covariances,
            label_probs=np.ones((len(self.found), 1), np.float32),
        )
        return self._score(truth, found)

    def with_rows(self, evaluation: Evaluation, rows: Bools, **changes: Any) -> Evaluation:
        """Return the evaluation with some columns of some detections replaced.

        Only these detections are scored again; matching is repeated for all.
        """
        scored = self.of(evaluation.dataset.image_ids, rows).score(**changes)
        kept = evaluation.pairs.take(np.flatnonzero(~rows[evaluation.pairs.detections]))
        pairs = join_tables([scored.pairs.replace(detections=np.flatnonzero(rows)[scored.pairs.detections]), kept])
        pairs = pairs.take(np.lexsort((pairs.detections, pairs.objects)))
        table = evaluation.detections
        columns = {name: getattr(table, name).copy() for name in ("boxes", "extents", "covariances")}
        for name, values in columns.items():
            values[rows] = getattr(scored.detections, name)
        changed = dataclasses.replace(evaluation, pairs=pairs, detections=table.replace(**columns), measures=("pdq",))
        return changed.rematch()

    def of(self, images: Ints, detections: Bools) -> Rescorer:
        """Return the rescorer of some images, given by ids, and of some detections in them."""
        rows = detections & np.isin(self.found.image_ids, images)
        truth, found = self.truth.select_images(images), self.found.select(rows)
        return dataclasses.replace(self, truth=truth, found=found, costs=self.costs[rows])


def _without_lists(dataset: Dataset) -> Dataset:
    """Return the dataset without lists of classes, which decided before which detections are judged."""
    if not dataset.partly_annotated:
        return dataset
    return dataset.replace(rules="coco", negatives=None, not_exhaustive=None, frequencies=())


def make_rescorer(evaluation: Evaluation, *, threads: int | None = None) -> Rescorer:
    """Return the rescorer of an evaluation; raise `InputError` if the result does not hold what scoring needs."""
    found, there = evaluation.detections, evaluation.objects
    if not evaluation.has_pairs:
        raise InputError("PDQ was not measured", remedy="evaluate again with {option:measures=all}")
    if found.label_probs is None:
        raise InputError("label probabilities were not stored", remedy="evaluate again with {option:measures=all}")
    count = int((found.heatmaps | found.masks).sum())
    if count:
        kind = "mask" if found.masks.any() else "heatmap"
        pixels = f"is a {kind}" if count == 1 else f"are {kind}s"
        raise InputError(f"{with_count(count, 'detection')} {pixels}, which results do not store")
    truth = GroundTruth(
        dataset=_without_lists(evaluation.dataset),
        image_rows=there.image_rows,
        labels=there.labels,
        boxes=there.boxes,
        masks=evaluation.masks,
        extents=there.extents,
        areas=there.areas,
        crowd=there.crowd,
        ids=there.ids,
    )
    detections = Detections(
        classes=evaluation.classes,
        image_ids=evaluation.dataset.image_ids[found.image_rows],
        boxes=found.boxes,
        label_probs=found.label_probs,
        covariances=found.covariances,
    )
    # The tables hold masks and covariances as they were scored, after the label threshold: neither applies again.
    convention = evaluation.convention.replace(box_truth=False, fixed_variance=None, label_threshold=None)
    return Rescorer(truth, detections, found.costs, convention, threads)


def make_pixel_covariances(boxes: Floats, sigma: float | Floats) -> Floats:
    """Return covariances of one standard deviation in pixels for every corner."""
    variances = np.broadcast_to(np.square(np.reshape(sigma, (-1, 1, 1, 1))), (len(boxes), 1, 1, 1))
    return np.asarray(np.eye(2) * variances * np.ones((1, 2, 1, 1)))


def minimize_by_golden_section(loss: Callable[[float], float], low: float, high: float, *, steps: int) -> float:
    """Return the minimum of a unimodal function between `low` and `high`; each step costs one call.

    >>> round(minimize_by_golden_section(lambda x: (x - 2.0) ** 2, 0.0, 10.0, steps=40), 6)
    2.0
    """
    ratio = (np.sqrt(5.0) - 1.0) / 2.0  # keeps one of the two inner points at the right place in the next interval
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(steps - 2):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(right)
    return float(left if at_left <= at_right else right)


SHARES = (0.005, 0.4)
"""Search range of the constant std, as a fraction of the box side."""

SCALES = (0.125, 8.0)
"""Search range of the scale of stds."""

STEPS = 9
"""Steps of the search, which ends within 5% of the optimum; PDQ hardly changes in that range."""

LEAST = 0.01
"""Matches with a lower pPDQ are ignored in the search."""


@dataclasses.dataclass(frozen=True, eq=False)
class FittedBaseline:
    """A value fitted on each half of the images, and the evaluation with each half scored by the other's value."""

    values: tuple[float, float]  # of images with even or odd row numbers, each fitted on the other half
    evaluation: Evaluation  # all detections, scored and matched again

    @property
    def value(self) -> float:
        """Return the geometric mean of both values."""
        return float(np.sqrt(self.values[0] * self.values[1]))


def split_in_halves(images: Ints) -> Ints:
    """Return the half of each image row, 0 or 1, alternating so that sequences of frames are in both halves."""
    return images % 2


def pin_edges(evaluation: Evaluation, scene: Rescorer) -> Evaluation:
    """Return the evaluation of detections pinned at the image border; itself if they are pinned or have no std."""
    table = evaluation.detections
    if is_pinned(evaluation, scene) or not table.covariances.any():
        return evaluation
    boxes, covariances = _clip_boxes(scene, table.covariances)
    moved = (boxes != table.boxes).any(axis=1) | (covariances != table.covariances).any(axis=(1, 2, 3))
    return scene.with_rows(evaluation, moved, boxes=boxes[moved], covariances=covariances[moved], extents=None)


def is_pinned(evaluation: Evaluation, scene: Rescorer) -> bool:
    """Return whether there are covariances and pinning changes none of them beyond rounding."""
    table = evaluation.detections
    if not table.covariances.any():
        return False
    boxes, covariances = _clip_boxes(scene, table.covariances)
    return np.allclose(boxes, table.boxes, atol=1e-3) and np.allclose(covariances, table.covariances, rtol=1e-3)


def fit_baseline(evaluation: Evaluation, scene: Rescorer, control: str) -> FittedBaseline | None:
    """Return the evaluation under the value of a baseline with the best PDQ; None if a half has no matches.

    ``constant`` is a std of one fraction of the side for all corners, ``scale`` one factor for all stds.
    """
    first, second = (_search_on_others(evaluation, scene, control, half) for half in (0, 1))
    return None if first is None or second is None else apply_baseline(evaluation, scene, control, (first, second))


def apply_baseline(
    evaluation: Evaluation, scene: Rescorer, control: str, values: tuple[float, float]
) -> FittedBaseline:
    """Return the evaluation under a baseline's values for images with even or odd row numbers."""
    per_row = np.asarray(values)[split_in_halves(evaluation.detections.image_rows)]
    covariances = _controlled_covariances(evaluation, control, per_row)
    return FittedBaseline(values, _score(scene, covariances, is_pinned(evaluation, scene)))


def _search_on_others(evaluation: Evaluation, scene: Rescorer, control: str, half: int) -> float | None:
    """Return the best value for one half of the images, fitted on the other; None without matches there."""
    chosen = _matched_rows(evaluation) & (split_in_halves(evaluation.detections.image_rows) != half)
    if not chosen.any():
        return None
    others = split_in_halves(np.arange(len(evaluation.dataset))) != half
    part, pinned = scene.of(evaluation.dataset.image_ids[others], chosen), is_pinned(evaluation, scene)

    def lost(value: float) -> float:
        scored = _score(part, _controlled_covariances(evaluation, control, value, chosen), pinned)
        return -float(scored.detections.quality("pPDQ").sum())

    return _search_factor(lost, SCALES if control == "scale" else SHARES, STEPS)


def _search_factor(loss: Callable[[float], float], between: tuple[float, float], steps: int) -> float:
    low, high = np.log(between)  # factors are searched on a logarithmic scale
    found = minimize_by_golden_section(lambda logarithm: loss(float(np.exp(logarithm))), low, high, steps=steps)
    return float(np.exp(found))


def _controlled_covariances(
    evaluation: Evaluation, control: str, value: float | Floats, rows: Bools | slice = slice(None)
) -> Floats:
    """Return the covariances of some detections under a baseline."""
    table = evaluation.detections
    if control == "constant":
        return constant_covariances(table.boxes[rows], value)
    return np.asarray(table.covariances[rows] * np.reshape(np.square(value), (-1, 1, 1, 1)))


def _score(scene: Rescorer, covariances: Floats, pinned: bool) -> Evaluation:
    if not pinned:
        return scene.score(covariances=covariances)
    boxes, covariances = _clip_boxes(scene, covariances)
    return scene.score(boxes=boxes, covariances=covariances, extents=None)


def _clip_boxes(scene: Rescorer, covariances: Floats) -> tuple[Floats, Floats]:
    """Return boxes and covariances pinned at the image border; boxes without covariance stay as they are."""
    dataset = scene.truth.dataset
    sizes = dataset.shapes[dataset.rows_of(scene.found.image_ids)].astype(np.float64)
    spread = covariances.any(axis=(1, 2, 3))
    boxes, covariances = scene.found.boxes.copy(), covariances.copy()
    boxes[spread], covariances[spread] = keep_inside(boxes[spread], covariances[spread], sizes[spread])
    return boxes, covariances


def _matched_rows(evaluation: Evaluation) -> Bools:
    """Return the detections that are matched by pixels or by boxes.

    The search uses only these, which is ten times faster if most detections are false positives. The value found is
    then scored with all detections.
    """
    found = evaluation.detections
    matched = np.asarray((found.verdicts == Verdict.TP) & (found.quality("pPDQ") > LEAST))
    matched[evaluation.matched_pairs.detections] = True
    return matched


PIXELS = (0.05, 200.0)
"""Search range of the constant std in pixels."""

RULE_STEPS = 12
"""Steps of the search for the best constant, which ends within 2% of the optimum."""

RULES = ("nll", "energy", "energy_pixels", "crps")
"""Scoring rules, lower is better; the baseline of ``energy_pixels`` is a constant in pixels."""


def _score_pairs(rule: str, pairs: MatchedPairs, covariances: Floats, *, quick: bool = False) -> tuple[Floats, Floats]:
    """Return the sum and the number of scores of each pair; `quick` is accurate enough for a search."""
    if rule == "crps":  # only of edges that the image border does not cut off
        judged = ~pairs.truncated
        scores = crps(pairs.residuals, np.sqrt(edge_variances(covariances)))
        return np.asarray(np.where(judged, scores, 0.0).sum(axis=1)), judged.sum(axis=1).astype(np.float64)
    if rule == "nll":
        return negative_log_likelihoods(pairs.residuals, covariances), np.ones(len(pairs))
    return energy_scores(pairs.residuals, covariances, steps=QUICK if quick else EXACT), np.ones(len(pairs))


def _baseline_of_rule(rule: str) -> tuple[Callable[[Floats, float | Floats], Floats], tuple[float, float]]:
    """Return the function that makes a rule's baseline covariances, and the search range of its constant."""
    return (make_pixel_covariances, PIXELS) if rule == "energy_pixels" else (constant_covariances, SHARES)


@dataclasses.dataclass(frozen=True)
class Skill:
    """Skill of the predicted std over the constant-variance baseline, by one scoring rule.

    Parameters
    ----------
    rule : str
        ``nll``, ``energy``, ``energy_pixels``, ``crps`` or ``pdq``.
    own, constant : float
        The rule's mean over pairs, or PDQ, with the predicted std and with the constant one.
    skill : Interval
        Skill, above 0 if the predicted std is informative.
    share : float
        The constant std as a fraction of the side; in pixels for ``energy_pixels``.
    pairs : int
        Number of scored pairs; of detections for PDQ.
    deterministic : float
        PDQ of the same boxes without covariances; NaN for other rules.
    """

    rule: str
    own: float
    constant: float
    skill: Interval
    share: float
    pairs: int
    deterministic: float = math.nan

    @property
    def gain_fraction(self) -> float:
        """Return the baseline's fraction of the gain over deterministic boxes, or NaN."""
        return (self.constant - self.deterministic) / (self.own - self.deterministic) if self._order else math.nan

    @property
    def remaining_fraction(self) -> float:
        """Return the gain over the baseline as a fraction of the remainder up to a PDQ of 1, or NaN."""
        return (self.own - self.constant) / (1.0 - self.constant) if self._order and self.constant < 1 else math.nan

    @property
    def _order(self) -> bool:
        return self.deterministic < self.constant <= self.own

    def to_dict(self) -> dict[str, float | list[float]]:
        """Return a dictionary for JSON."""
        values: dict[str, float | list[float]] = {
            "skill": self.skill.value,
            "interval": [self.skill.low, self.skill.high],
            "own": self.own,
            "constant": self.constant,
            "share_of_side": self.share,
            "pairs": self.pairs,
        }
        of_pdq = ("deterministic", "gain_fraction", "remaining_fraction") if self.rule == "pdq" else ()
        return values | {name: getattr(self, name) for name in of_pdq}


def measure_skill(evaluation: Evaluation, rule: str, *, replicates: int = 1000, seed: int = 0) -> Skill:
    """Return the skill of the predicted std of matched pairs by one of `RULES`; NaN without covariances."""
    pairs = evaluation.matched_pairs
    pairs = pairs.take(np.flatnonzero(invertible(pairs.covariances)))
    if not len(pairs):
        return Skill(rule, np.nan, np.nan, Interval(np.nan), np.nan, 0)
    boxes = evaluation.detections.boxes[pairs.detections]
    own, counts = _score_pairs(rule, pairs, pairs.covariances)
    half = split_in_halves(pairs.image_rows)
    shares = [_fit_share(pairs, boxes, half == other, rule) for other in (1, 0)]
    covariances_of, _ = _baseline_of_rule(rule)
    constant, _ = _score_pairs(rule, pairs, covariances_of(boxes, np.asarray(shares)[half]))
    images = len(evaluation.dataset)
    sums = np.stack([np.bincount(pairs.image_rows, values, images) for values in (own, constant, counts)])
    draws = [weighted_sums(weights, sums) for weights in draw_images(images, replicates, seed)]
    value = _compute_skill(rule, sums.sum(axis=1)[None])[0]
    interval = compute_interval(float(value), _compute_skill(rule, np.concatenate(draws, axis=1).T), images, 0.95)
    share = float(np.sqrt(shares[0] * shares[1]))
    with np.errstate(invalid="ignore"):
        means = np.divide([own.sum(), constant.sum()], counts.sum())
    return Skill(rule, float(means[0]), float(means[1]), interval, share, len(pairs))


def measure_pdq_skill(
    own: Evaluation, constant: FittedBaseline, deterministic: float = math.nan, *, replicates: int = 1000, seed: int = 0
) -> Skill:
    """Return the difference in PDQ to the constant-variance baseline, with a paired bootstrap over images.

    `deterministic` is PDQ of the same boxes without covariances.
    """
    assert PDQ.resampled is not None
    other = constant.evaluation
    images = len(own.dataset)
    draws = [
        PDQ.resampled(own, weights)["PDQ"] - PDQ.resampled(other, weights)["PDQ"]
        for weights in draw_images(images, replicates, seed)
    ]
    interval = compute_interval(own.pdq - other.pdq, np.concatenate(draws), images, 0.95)
    return Skill("pdq", own.pdq, other.pdq, interval, constant.value, len(own.detections), deterministic)


def _compute_skill(rule: str, sums: Floats) -> Floats:
    """Return the skill from the sums of own scores, of baseline scores and of counts, (R, 3)."""
    own, constant, pairs = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((constant - own) / pairs if rule == "nll" else 1.0 - own / constant)


def _fit_share(pairs: MatchedPairs, boxes: Floats, chosen: Bools, rule: str) -> float:
    covariances_of, between = _baseline_of_rule(rule)
    pairs, boxes = pairs.take(np.flatnonzero(chosen)), boxes[chosen]
    if not len(boxes):
        return float(np.sqrt(between[0] * between[1]))

    def loss(value: float) -> float:
        return float(_score_pairs(rule, pairs, covariances_of(boxes, value), quick=True)[0].sum())

    return _search_factor(loss, between, RULE_STEPS)
