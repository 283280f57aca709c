"""What figures of measures share: the demo, made-up errors, axes, and the list of figures."""

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
    """Register what draws the figure of a measure; it returns the matplotlib figure."""

    def register(draw: Callable[[], Any]) -> Callable[[], Any]:
        FIGURES[name] = draw
        return draw

    return register


def panels(columns: int = 1, size: tuple[float, float] = (6.6, 3.5), **options: Any) -> tuple[Any, Any]:
    """Return a figure and its axes, side by side."""
    return subplots(1, columns, size, **options)


def mark_least(axes: Axes, x: Any, y: Any, colour: str, *, most: bool = False) -> None:
    """Mark the best point of a curve."""
    best = int(np.argmax(y) if most else np.argmin(y))
    axes.plot(x[best], y[best], "o", color=colour, markersize=7, markeredgecolor="white", zorder=5)


def beside(axes: Axes) -> None:
    """Put the legend to the right of the axes."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


# --- what is measured ---


@cache
def demo() -> Any:
    """Return the built-in scene."""
    return make_demo()


def evaluate(found: Any = None, *measures: str) -> Any:
    """Return the evaluation of detections in the demo's scene; default: of the detector that knows its errors."""
    found = demo().detectors["probabilistic"] if found is None else found
    return probox.evaluate(demo().truth, found, measures=measures or ("nll",))


def changed(**columns: Any) -> Any:
    """Return the demo's second detector with other columns."""
    return dataclasses.replace(demo().detectors["probabilistic"], **columns)


def blocks(sigmas: Any) -> Any:
    """Return corner covariances (K, 2, 2, 2) of edges' sigmas (K, 4), without correlations."""
    return np.square(sigmas).reshape(-1, 2, 2)[..., None] * np.eye(2)


@cache
def simulated(n: int = 4000) -> tuple[Any, Any]:
    """Return errors and the sigmas that they were drawn from, (n, 4) each: 2 to 5 pixels, mostly."""
    random = np.random.default_rng(7)
    sigmas = np.exp(random.normal(1.1, 0.5, (n, 4)))
    return random.normal(size=(n, 4)) * sigmas, sigmas


def in_order_of_score(found: Any = None) -> tuple[Any, Any, Any, Any]:
    """Return score, hit, IoU and class of the demo's detections, and how many objects there are."""
    result = evaluate(found)
    judged = outcomes(result)
    table = result.detections
    return table.scores[judged.detections], judged.hits, judged.ious, table.labels[judged.detections]


def constant_sigma(errors: Any) -> Any:
    """Return one sigma for all edges, the best one."""
    return np.full_like(errors, np.sqrt(np.square(errors).mean()))
