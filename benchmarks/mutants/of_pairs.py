"""Mutants of pair quality: spatial quality, label quality, and pPDQ."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.mutants.mutant import Broken, Mutant
from probox.convention import Convention

__all__ = ["OF_PAIRS"]

Floats = npt.NDArray[Any]
Box = tuple[int, int, int, int]
Sums = tuple[float, float]


def _sums(change: Callable[[float, float], Sums]) -> Broken:
    """Change the two sums of log probabilities, independent of the pixels."""
    return lambda true: lambda *given: change(*true(*given))


def _sums_and_pixels(change: Callable[..., Sums]) -> Broken:
    """Change the two sums: `change` gets both, P as float64, the mask, the background's pixels and epsilon."""

    def broken(true: Any) -> Any:
        def losses(probability: Floats, mask: Floats, box: Box, convention: Convention) -> Sums:
            foreground, background = true(probability, mask, box, convention)
            x0, y0, x1, y1 = box
            behind = (probability > 0) & ~mask
            if convention.background == "box":
                behind[y0 : y1 + 1, x0 : x1 + 1] = False
            values = probability.astype(np.float64)
            return change(foreground, background, values, mask, behind, convention.epsilon)

        return losses

    return broken


def _epsilon(value: float) -> Broken:
    """Change epsilon; a convention does not allow such values."""

    def broken(true: Any) -> Any:
        def losses(probability: Floats, mask: Floats, box: Box, convention: Convention) -> Sums:
            with np.errstate(divide="ignore"):
                changed = SimpleNamespace(epsilon=value, background=convention.background)
                sums: Sums = true(probability, mask, box, changed)
            return sums

        return losses

    return broken


def _over_own_pixels(foreground: float, background: float, p: Floats, mask: Floats, behind: Floats, _: float) -> Sums:
    return foreground, background * mask.sum() / max(behind.sum(), 1)


def _foreground_in_box(_: float, background: float, p: Floats, mask: Floats, behind: Floats, epsilon: float) -> Sums:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    inside = p[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return float(np.log(inside + epsilon).mean() * mask.sum()), background


def _mean_probability(_: float, background: float, p: Floats, mask: Floats, behind: Floats, epsilon: float) -> Sums:
    return float(np.log(p[mask].mean() + epsilon) * mask.sum()), background


def _wrong_way_round(foreground: float, _: float, p: Floats, mask: Floats, behind: Floats, epsilon: float) -> Sums:
    return foreground, float(np.log(p[behind] + epsilon).sum())


def _likely_background(foreground: float, _: float, p: Floats, mask: Floats, behind: Floats, epsilon: float) -> Sums:
    return foreground, float(np.log(1.0 - p[behind & (p >= 0.5)] + epsilon).sum())


def _over_detected_pixels(foreground: float, background: float, p: Floats, mask: Floats, *_: Any) -> Sums:
    share = mask.sum() / max((p > 0).sum(), 1)
    return foreground * share, background * share


def _qualities(change: Callable[[float, float, float], tuple[float, float, float]]) -> Broken:
    """Change Q_S, FG and BG."""
    return lambda true: lambda *given: change(*true(*given))


def _labels(change: Callable[[Floats], Floats]) -> Broken:
    """Change the label probabilities of detections, (detections, classes)."""

    def broken(true: Any) -> Any:
        def pair_tables(masks: Any, heatmaps: Any, label_probs: Any, *rest: Any) -> dict[str, Floats]:
            tables: dict[str, Floats] = true(masks, heatmaps, change(np.asarray(label_probs, dtype=np.float64)), *rest)
            return tables

        return pair_tables

    return broken


def _only_largest(probs: Floats) -> Floats:
    return np.asarray(np.arange(probs.shape[1]) == probs.argmax(axis=1)[:, None], dtype=np.float64)


def _mean(of: Callable[[float, float], float]) -> Broken:
    """Change pPDQ as a function of Q_S and Q_L; a pair without spatial quality still has 0."""
    return lambda true: lambda spatial, label, weight: of(spatial, label) if spatial > 0.0 else 0.0


OF_PAIRS: tuple[Mutant, ...] = (
    Mutant("no-background", "The background costs nothing.", "pdq.losses", _sums(lambda fg, bg: (fg, 0.0))),
    Mutant("no-foreground", "The foreground costs nothing.", "pdq.losses", _sums(lambda fg, bg: (0.0, bg))),
    Mutant(
        "background-own-mean",
        "The background's loss is averaged over its own pixels instead of the object's.",
        "pdq.losses",
        _sums_and_pixels(_over_own_pixels),
    ),
    Mutant(
        "detection-mean",
        "Both losses are averaged over the detection's pixels instead of the object's.",
        "pdq.losses",
        _sums_and_pixels(_over_detected_pixels),
    ),
    Mutant(
        "background-in-box",
        "The background is everything outside the object's pixels, also within its box.",
        "pdq.losses",
        lambda true: lambda p, mask, box, convention: true(p, mask, box, convention.replace(background="mask")),
    ),
    Mutant(
        "foreground-in-box",
        "The foreground is the object's box instead of its pixels.",
        "pdq.losses",
        _sums_and_pixels(_foreground_in_box),
    ),
    Mutant(
        "background-reversed",
        "The background's loss uses P instead of 1 - P.",
        "pdq.losses",
        _sums_and_pixels(_wrong_way_round),
    ),
    Mutant(
        "background-likely",
        "Background pixels cost only where P is at least 0.5.",
        "pdq.losses",
        _sums_and_pixels(_likely_background),
    ),
    Mutant(
        "foreground-sum",
        "The foreground's loss is a sum over pixels, not a mean.",
        "pdq.qualities",
        lambda true: lambda fg, bg, pixels, convention: true(fg * pixels, bg, pixels, convention),
    ),
    Mutant(
        "background-sum",
        "The background's loss is a sum over pixels, not divided by the object's number.",
        "pdq.qualities",
        lambda true: lambda fg, bg, pixels, convention: true(fg, bg * pixels, pixels, convention),
    ),
    Mutant(
        "probability-mean",
        "Foreground quality is the mean of P instead of the geometric mean.",
        "pdq.losses",
        _sums_and_pixels(_mean_probability),
    ),
    Mutant("epsilon-1e-6", "Epsilon is 1e-6 instead of 1e-14.", "pdq.losses", _epsilon(1e-6)),
    Mutant("epsilon-1e-10", "Epsilon is 1e-10 instead of 1e-14.", "pdq.losses", _epsilon(1e-10)),
    Mutant("epsilon-1e-16", "Epsilon is 1e-16 instead of 1e-14.", "pdq.losses", _epsilon(1e-16)),
    Mutant("epsilon-0", "Epsilon is 0: logarithms of 0 occur.", "pdq.losses", _epsilon(0.0)),
    Mutant(
        "base-2",
        "Logarithms have base 2, but the exponential has base e.",
        "pdq.losses",
        _sums(lambda fg, bg: (fg / np.log(2), bg / np.log(2))),
    ),
    Mutant(
        "components-exchanged",
        "Foreground and background quality are exchanged; spatial quality stays.",
        "pdq.qualities",
        _qualities(lambda spatial, fg, bg: (spatial, bg, fg)),
    ),
    Mutant(
        "spatial-minimum",
        "Spatial quality is the smaller of foreground and background quality.",
        "pdq.qualities",
        _qualities(lambda spatial, fg, bg: (min(fg, bg), fg, bg)),
    ),
    Mutant(
        "spatial-average",
        "Spatial quality is the mean of foreground and background quality.",
        "pdq.qualities",
        _qualities(lambda spatial, fg, bg: ((fg + bg) / 2, fg, bg)),
    ),
    Mutant(
        "spatial-root",
        "Spatial quality is its square root: the geometric mean of foreground and background.",
        "pdq.qualities",
        _qualities(lambda spatial, fg, bg: (spatial**0.5, fg, bg)),
    ),
    Mutant(
        "snap-0.01",
        "Qualities within 0.01 of 0 or 1 become 0 or 1.",
        "pdq.qualities",
        lambda true: (
            lambda fg, bg, pixels, convention: true(fg, bg, pixels, convention.replace(snap_zero=0.01, snap_one=0.01))
        ),
    ),
    Mutant(
        "label-highest",
        "Label quality is the highest probability, whatever the class.",
        "pdq.pair_tables",
        _labels(lambda probs: np.broadcast_to(probs.max(axis=1, keepdims=True), probs.shape)),
    ),
    Mutant("label-ignored", "Label quality is always 1.", "pdq.pair_tables", _labels(np.ones_like)),
    Mutant("label-squared", "Label quality is squared.", "pdq.pair_tables", _labels(np.square)),
    Mutant(
        "label-largest-only",
        "Label quality is 1 if the true class is the most probable, else 0.",
        "pdq.pair_tables",
        _labels(_only_largest),
    ),
    Mutant(
        "label-next-class",
        "Label quality is the probability of the class before the true one.",
        "pdq.pair_tables",
        _labels(lambda probs: np.roll(probs, 1, axis=1)),
    ),
    Mutant(
        "label-normalised",
        "Label probabilities are divided by their sum.",
        "pdq.pair_tables",
        _labels(lambda probs: probs / np.maximum(probs.sum(axis=1, keepdims=True), 1e-300)),
    ),
    Mutant(
        "arithmetic-mean",
        "pPDQ is the arithmetic mean of spatial and label quality.",
        "pdq.geometric_mean",
        _mean(lambda spatial, label: (spatial + label) / 2),
    ),
    Mutant(
        "product",
        "pPDQ is the product of spatial and label quality, without the root.",
        "pdq.geometric_mean",
        _mean(lambda spatial, label: spatial * label),
    ),
    Mutant(
        "harmonic-mean",
        "pPDQ is the harmonic mean of spatial and label quality.",
        "pdq.geometric_mean",
        _mean(lambda spatial, label: 2 * spatial * label / (spatial + label)),
    ),
    Mutant("minimum", "pPDQ is the smaller of both qualities.", "pdq.geometric_mean", _mean(min)),
    Mutant(
        "label-weight-0.6",
        "The label has the weight 0.6 in the geometric mean.",
        "pdq.geometric_mean",
        _mean(lambda spatial, label: spatial**0.4 * label**0.6),
    ),
    Mutant(
        "spatial-ignored",
        "pPDQ is the label quality, if there is any spatial quality.",
        "pdq.geometric_mean",
        _mean(lambda spatial, label: label),
    ),
)
