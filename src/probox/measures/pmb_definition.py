"""PMB-NLL of an image in plain NumPy, slow: every assignment is enumerated.

The detections of an image define a probability density over sets of objects, a Poisson multi-Bernoulli (PMB). The
image's value is the negative log likelihood of its ground-truth objects, in nats; lower is better:

    PMB-NLL = integral of lambda - ln sum over assignments of
        [product over matched pairs of p_i(c_j) N(y_j; mu_i, Sigma_i)]
        [product over unmatched detections of p_i(background)]
        [product over unmatched objects of lambda(y_j, c_j)]

An assignment gives each object one detection or none, and each detection at most one object. There is no IoU threshold
and no single matching: every assignment counts with its likelihood.

Exact definitions:

- **Bernoulli detections** are those whose highest class probability is above `CLUTTER`, 0.1. The comparison uses the
  precision of label probabilities: single, where 0.1 is 0.100000001490116. p_i(c) is the class probability as given,
  the product of existence and class; p_i(background) is 1 minus the sum of class probabilities. Both are clamped
  separately to [1e-6, 1 - 1e-6] (`MIN_PROBABILITY`).
- **Clutter** are the other detections. They form the intensity lambda of a Poisson process,
  lambda(y, c) = sum over them of max p * s(c) * N(y; mu, Sigma), s(c) = p(c) / sum of p, clamped in the same way. Its
  integral is the sum of their max p.
- **N** is the density of the four corner coordinates, two independent 2 x 2 Gaussians, in pixels^-4.
- **Boxes without a density** have no covariance or a singular one, with a determinant of the correlations of 1e-12 or
  less. They match no object and add nothing to lambda(y, c). Their probabilities still count: p(background) as
  unmatched detections, max p in the integral.
- **The sum** covers the 25 most likely assignments (`ASSIGNMENTS`), or all if there are fewer.
- **The parts** are those of the most likely assignment. Their sum is its own negative log likelihood, slightly above
  that of the image.
- **The floor**: ln lambda(y, c) is at least `log_floor`, if given. Without it the value is infinite if no assignment
  explains all objects: more objects than detections, and no clutter.

References: G. Hess, C. Petersson, L. Svensson: *Object Detection as Probabilistic Set Prediction*, ECCV 2022.
K. G. Murty: *An algorithm for ranking all the assignments in order of increasing cost*, Operations Research 16, 1968.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from probox.support.types import Floats

__all__ = [
    "ASSIGNMENTS",
    "CLUTTER",
    "MIN_DETERMINANT",
    "MIN_PROBABILITY",
    "ImageNLL",
    "SetDensity",
    "all_assignments",
    "log_density",
    "pmb_nll_of_image",
]

ASSIGNMENTS = 25
"""Number of most likely assignments in the sum."""

CLUTTER = 0.1
"""Detections with a highest class probability up to this form the intensity of the Poisson process."""

MIN_PROBABILITY = 1e-6
"""Probabilities are clamped to [this, 1 - this]."""

MIN_DETERMINANT = 1e-12
"""A corner has a density if the determinant of its correlation matrix, 1 - rho^2, is above this."""

Assignment = tuple[int, ...]
"""The detection of each object, or -1 for none."""


def clamp(probability: float) -> float:
    """Return a probability clamped to [`MIN_PROBABILITY`, 1 - `MIN_PROBABILITY`]."""
    return min(max(probability, MIN_PROBABILITY), 1.0 - MIN_PROBABILITY)


def has_density(covariances: Floats) -> bool:
    """Return whether both corners' covariances (2, 2, 2) are positive definite."""
    return all(
        a > 0 and d > 0 and a * d - b * b > MIN_DETERMINANT * a * d
        for (a, b), (_, d) in covariances.tolist()
    )  # fmt: skip


def log_density(box: Floats, mean: Floats, covariances: Floats) -> float:
    """Return ln N(box; mean, Sigma) of four coordinates, Sigma having two 2 x 2 blocks; -inf without a density."""
    if not has_density(covariances):
        return -math.inf
    total = 0.0
    for residual, covariance in zip((box - mean).reshape(2, 2), covariances, strict=True):
        total -= 0.5 * float(residual @ np.linalg.solve(covariance, residual))
        total -= 0.5 * math.log(np.linalg.det(covariance)) + math.log(2.0 * math.pi)
    return total


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SetDensity:
    """Detections of an image as a density over sets of objects: Bernoulli detections, and clutter."""

    boxes: Floats
    covariances: Floats
    label_probs: Floats
    backgrounds: Floats
    clutter_boxes: Floats
    clutter_covariances: Floats
    clutter_weights: Floats
    clutter_label_probs: Floats

    @classmethod
    def of_detections(cls, boxes: Floats, covariances: Floats, label_probs: Floats) -> SetDensity:
        """Return the density of N detections: boxes (N, 4), covariances (N, 2, 2, 2), label_probs (N, C)."""
        highest, sums = label_probs.max(axis=1, initial=0.0), label_probs.sum(axis=1, dtype=np.float64)
        clutter = highest <= label_probs.dtype.type(CLUTTER)
        shares = label_probs / np.where(sums > 0, sums, 1.0)[:, None]
        return cls(
            boxes=boxes[~clutter],
            covariances=covariances[~clutter],
            label_probs=label_probs[~clutter],
            backgrounds=1.0 - sums[~clutter],
            clutter_boxes=boxes[clutter],
            clutter_covariances=covariances[clutter],
            clutter_weights=highest[clutter].astype(np.float64),
            clutter_label_probs=shares[clutter],
        )

    def matched_box(self, detection: int, box: Floats) -> float:
        """Return ln N(y; mu_i, Sigma_i)."""
        return log_density(box, self.boxes[detection], self.covariances[detection])

    def matched_label(self, detection: int, label: int) -> float:
        """Return ln p_i(c)."""
        return math.log(clamp(float(self.label_probs[detection, label])))

    def log_unmatched(self, detection: int) -> float:
        """Return ln p_i(background)."""
        return math.log(clamp(float(self.backgrounds[detection])))

    def log_missed(self, box: Floats, label: int, log_floor: float) -> float:
        """Return ln lambda(y, c), at least the floor."""
        terms = [
            math.log(weight) + math.log(clamp(float(probs[label]))) + log_density(box, mean, covariances)
            for weight, probs, mean, covariances in zip(
                self.clutter_weights,
                self.clutter_label_probs,
                self.clutter_boxes,
                self.clutter_covariances,
                strict=True,
            )
            if weight > 0
        ]
        return max(float(np.logaddexp.reduce(terms)) if terms else -math.inf, log_floor)

    @property
    def expected(self) -> float:
        """Return the integral of lambda."""
        return math.fsum(self.clutter_weights)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageNLL:
    """PMB-NLL of an image, and its parts in the most likely assignment; NaN if no assignment is possible."""

    nll: float
    matched_box: float
    matched_label: float
    unmatched: float
    missed: float
    expected: float
    assignments: int
    missed_objects: int
    floored_objects: int

    @property
    def best(self) -> float:
        """Return the negative log likelihood of the most likely assignment alone: the sum of the parts."""
        return self.matched_box + self.matched_label + self.unmatched + self.missed + self.expected


def all_assignments(objects: int, detections: int) -> Iterator[Assignment]:
    """Return every way to give each object a detection of its own, or none.

    >>> list(all_assignments(2, 1))
    [(-1, -1), (-1, 0), (0, -1)]
    """
    for chosen in itertools.product(range(-1, detections), repeat=objects):
        given = [detection for detection in chosen if detection >= 0]
        if len(set(given)) == len(given):
            yield chosen


def pmb_nll_of_image(
    density: SetDensity,
    boxes: Floats,
    labels: npt.NDArray[np.integer],
    *,
    log_floor: float = -math.inf,
    assignments: int = ASSIGNMENTS,
) -> ImageNLL:
    """Return PMB-NLL of M objects with boxes (M, 4) and labels (M,), in nats.

    Parameters
    ----------
    density : SetDensity
        The detections.
    boxes, labels : arrays
        The ground-truth objects.
    log_floor : float
        Lower bound of ln lambda(y, c). Default: none.
    assignments : int
        Number of most likely assignments in the sum.
    """
    truth = [(box, int(label)) for box, label in zip(boxes, labels, strict=True)]
    clutter = [density.log_missed(box, label, log_floor) for box, label in truth]

    def parts(assignment: Assignment) -> tuple[float, float, float, float]:
        pairs = [(i, *object_) for i, object_ in zip(assignment, truth, strict=True) if i >= 0]
        return (
            -math.fsum(density.matched_box(i, box) for i, box, _ in pairs),
            -math.fsum(density.matched_label(i, label) for i, _, label in pairs),
            -math.fsum(density.log_unmatched(i) for i in range(len(density.boxes)) if i not in assignment),
            -math.fsum(value for i, value in zip(assignment, clutter, strict=True) if i < 0),
        )

    ranked = sorted((sum(parts(a)), a) for a in all_assignments(len(truth), len(density.boxes)))
    ranked = [(cost, assignment) for cost, assignment in ranked if cost < math.inf][:assignments]
    nothing = dict.fromkeys(("matched_box", "matched_label", "unmatched", "missed"), math.nan)
    if not ranked:
        return ImageNLL(
            nll=math.inf, **nothing, expected=density.expected, assignments=0, missed_objects=0, floored_objects=0
        )
    best = ranked[0][1]
    matched_box, matched_label, unmatched, missed = parts(best)
    floored = [
        box
        for (box, label), i in zip(truth, best, strict=True)
        if i < 0 and density.log_missed(box, label, -math.inf) < log_floor
    ]
    return ImageNLL(
        nll=density.expected - float(np.logaddexp.reduce([-cost for cost, _ in ranked])),
        matched_box=matched_box,
        matched_label=matched_label,
        unmatched=unmatched,
        missed=missed,
        expected=density.expected,
        assignments=len(ranked),
        missed_objects=best.count(-1),
        floored_objects=len(floored),
    )
