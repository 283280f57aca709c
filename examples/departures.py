"""Differences between the presets and the paper's equations: the tables of docs/measure.md.

python examples/departures.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import probox
from probox import Convention, Detections, GroundTruth
from probox_experiments import SimulatedDetector, square_scene, synthetic_truth

SQUARE = np.array([50.0, 50.0, 109.0, 109.0])
"""The object: 60 x 60 pixels in the middle of 160 x 160; a box ends with its last pixel."""


def score(
    box: Any,
    sigma: Any = 0.0,
    *,
    preset: str = "paper",
    truth: GroundTruth | None = None,
    label: float = 1.0,
    **changes: Any,
) -> dict[str, float]:
    """Return the summary of one detection of the square; `sigma` is of x and y, or of both."""
    objects = square_scene(60, 160) if truth is None else truth
    found = Detections(
        classes=objects.classes,
        image_ids=objects.image_ids[:1],
        boxes=np.array([box]),
        label_probs=np.full((1, 1), label, np.float32),
        covariances=np.broadcast_to(np.diag(np.broadcast_to(np.square(sigma), 2)), (1, 2, 2, 2)),
    )
    return probox.evaluate(objects, found, convention=Convention.preset(preset, **changes), measures=["pdq"]).summary()


def of_paper() -> Iterator[tuple[str, str, str]]:
    """Yield a quantity, its value under `paper`, and its value by the equations."""
    for sigma in (1, 2, 5):
        # Pixels at their middles and a box from 50 to 110: as if it were half a pixel smaller on each side.
        middles = SQUARE + np.array([0.5, 0.5, -0.5, -0.5])
        own, letter = (score(box, sigma)["PDQ"] for box in (SQUARE, middles))
        yield f"limits of the integrals: PDQ of the perfect box, std {sigma}", f"{own:.4f}", f"{letter:.4f}"
    near = SQUARE + np.array([6.0, 0.0, 0.0, 0.0])
    own, letter = (score(near, 0.5, epsilon=e)["foreground"] for e in (1e-14, 1e-300))
    yield "e for Gaussian corners: FG, left edge 6 pixels too near, std 0.5", f"{own:.4f}", f"{letter:.1e}"
    pixel = score([276.0] * 4, truth=square_scene(1, 554))["spatial"]
    letter = -math.expm1(554**2 * math.log1p(-1e-14))  # P = 1 - e on the pixel and e on all others
    yield (
        "e for boxes without covariance: 1 - Q_S of a perfect box, an object of one pixel in 554 x 554",
        f"{1 - pixel:.1g}",
        f"{letter:.1e}",
    )
    half = SQUARE + np.array([-0.5, -0.5, 0.5, 0.5])
    rounded = SQUARE + np.array([-1.0, -1.0, 1.0, 1.0])
    own, letter = (score(box)["PDQ"] for box in (half, rounded))
    what = "pixels that a box without covariance covers by half: PDQ, 0.5 too far on each side"
    yield what, f"{own:.4f}", f"{letter:.4f} if they are in it, 1 if not"
    beyond = SQUARE + np.array([0.0, 0.0, 1.0, 1.0])
    yield "a box without covariance from 50 to 110: PDQ", f"{score(beyond)['PDQ']:.4f}", "1"
    label = float(np.float32(0.1))
    yield "label probabilities in single precision: 0.1", f"{label:.10f}", "0.1"
    here, there = score(SQUARE, (0.0, 5.0))["PDQ"], score(SQUARE + 100, (0.0, 5.0), truth=square_scene(60, 360))["PDQ"]
    what = "a corner without variance in x: PDQ of the perfect box, and of both 100 pixels further"
    yield what, f"{here:.4f}, {there:.4f}", "the same twice"
    away = score([0.0, 0.0, 9.0, 9.0])
    yield (
        "a box without covariance and without overlap: pPDQ, TP",
        f"{away['pPDQ']:.1e}, {away['TP']:.0f}",
        "0, 0",
    )


def of_cuts() -> Iterator[tuple[str, str, str]]:
    """Yield the effect of each cut of `reference` on one detection: the values with it and without it."""

    def both(key: str, box: Any, sigma: float = 0.0, *, also: Any = None, **without: Any) -> tuple[float, float]:
        rest = {"preset": "reference", **(also or {})}
        return score(box, sigma, **rest)[key], score(box, sigma, **rest, **without)[key]

    near, far = SQUARE + np.array([6.0, 0.0, 0.0, 0.0]), SQUARE - np.array([6.0, 0.0, 0.0, 0.0])
    kept, free = both("background", far, 1.0, region_of_interest=False)
    yield "region of interest: BG, left edge 6 pixels too far, std 1", f"{kept:.4f}", f"{free:.4f}"
    kept, free = both("background", far, 1.0, also={"region_of_interest": False}, single_precision=False)
    yield "single precision, if the region of interest is off already: the same", f"{kept:.4f}", f"{free:.4f}"
    kept, free = both("foreground", near, 1.0, min_probability=0.0)
    yield "0.0027: FG, left edge 6 pixels too near, std 1", f"{kept:.4f}", f"{free:.4f}"
    kept, free = both("TP", SQUARE + np.array([36.0, 0.0, 0.0, 0.0]), snap_zero=0.0)
    yield "1e-8: true positives, a box without covariance, 36 of 60 columns missing", f"{kept:.0f}", f"{free:.0f}"
    large = {"truth": square_scene(500, 2000)}
    kept, free = both("background", [749.996, 750.0, 1249.0, 1249.0], also=large, snap_one=0.0)
    yield (
        "1.001e-5: 1 - BG, a box without covariance 0.004 pixels too far, 500 x 500",
        f"{1 - kept:.1e}",
        f"{1 - free:.1e}",
    )
    kept, free = both("TP", SQUARE + np.array([30.0, 0.0, 0.0, 0.0]), also={"label": 1e-9}, min_quality=0.0)
    yield "2^-25: true positives, half a box with label probability 1e-9", f"{kept:.0f}", f"{free:.0f}"


CUTS: dict[str, dict[str, Any] | None] = {
    "`reference`": {},
    "no region of interest": {"region_of_interest": False},
    "no probability below 0.0027 is cut": {"min_probability": 0.0},
    "no quality up to 1e-8 becomes 0": {"snap_zero": 0.0},
    "no quality near 1 becomes 1": {"snap_one": 0.0},
    "no pPDQ up to 2^-25 becomes 0": {"min_quality": 0.0},
    "double precision": {"single_precision": False},
    "none of these: `paper`": None,
}


def of_reference() -> Iterator[tuple[str, Any]]:
    """Yield each cut of `reference`, and the summary of a simulated detector without it."""
    truth = synthetic_truth(100)
    detector = SimulatedDetector(
        corner_variance=16, reported_variance=4, label_probability=0.8, miss_rate=0.1, false_per_image=1
    )
    found = detector.detect(truth, seed=1)
    for name, changes in CUTS.items():
        convention = Convention.preset("paper") if changes is None else Convention.preset("reference", **changes)
        yield name, probox.evaluate(truth, found, convention=convention, measures=["pdq"]).summary()


def rows() -> Iterator[str]:
    """Yield the lines of all three tables."""
    for what, own, other in (*of_paper(), *of_cuts()):
        yield f"| {what} | {own} | {other} |"
    for name, summary in of_reference():
        cells = [f"{100 * summary[key]:.4f}" for key in ("PDQ", "spatial", "foreground", "background")]
        yield f"| {name} | {' | '.join(cells)} | {summary['TP']:.0f} | {summary['FP']:.0f} | {summary['FN']:.0f} |"


if __name__ == "__main__":
    print("\n".join(rows()))
