"""Shared parts of the figures: the demo, synthetic errors, axes, and the registry of figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import probox
from probox.demo import make_demo
from probox.measures.scoring.score_rows import outcomes
from probox.pictures.style import LIGHT
from probox.plots.base import subplots

COLOURS, INK = LIGHT.lines, LIGHT.ink

FIGURES: dict[str, Callable[[], Any]] = {}
Axes = Any


def figure(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a function that returns the matplotlib figure of a metric."""

    def register(draw: Callable[[], Any]) -> Callable[[], Any]:
        FIGURES[name] = draw
        return draw

    return register


def panels(columns: int = 1, size: tuple[float, float] = (6.6, 3.5), **options: Any) -> tuple[Any, Any]:
    """Return a figure and its axes in one row."""
    return subplots(1, columns, size, **options)


def mark_least(axes: Axes, x: Any, y: Any, colour: str, *, most: bool = False) -> None:
    """Mark the minimum of a curve, or its maximum with `most`."""
    best = int(np.argmax(y) if most else np.argmin(y))
    axes.plot(x[best], y[best], "o", color=colour, markersize=7, markeredgecolor="white", zorder=5)


def beside(axes: Axes) -> None:
    """Put the legend to the right of the axes."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


# --- data ---


@cache
def demo() -> Any:
    """Return the demo data set."""
    return make_demo()


def evaluate(found: Any = None, *measures: str) -> Any:
    """Evaluate detections on the demo; default: those of `probabilistic`."""
    found = demo().detectors["probabilistic"] if found is None else found
    return probox.evaluate(demo().truth, found, measures=measures or ("nll",))


def changed(**columns: Any) -> Any:
    """Return the detections of `probabilistic` with other columns."""
    return dataclasses.replace(demo().detectors["probabilistic"], **columns)


def blocks(sigmas: Any) -> Any:
    """Return diagonal corner covariances (K, 2, 2, 2) of standard deviations of edges (K, 4)."""
    return np.square(sigmas).reshape(-1, 2, 2)[..., None] * np.eye(2)


@cache
def simulated(n: int = 4000) -> tuple[Any, Any]:
    """Return Gaussian errors and their standard deviations, (n, 4) each, mostly 2 to 5 pixels."""
    random = np.random.default_rng(7)
    sigmas = np.exp(random.normal(1.1, 0.5, (n, 4)))
    return random.normal(size=(n, 4)) * sigmas, sigmas


def in_order_of_score(found: Any = None) -> tuple[Any, Any, Any, Any]:
    """Return score, hit, IoU and class of detections of the demo."""
    result = evaluate(found)
    matched = outcomes(result)
    table = result.detections
    return table.scores[matched.detections], matched.hits, matched.ious, table.labels[matched.detections]


def constant_std(errors: Any) -> Any:
    """Return the constant standard deviation with the highest likelihood."""
    return np.full_like(errors, np.sqrt(np.square(errors).mean()))
