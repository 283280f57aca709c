"""Figures of informativeness: MUE, AUSE, Spearman."""

from __future__ import annotations

from typing import Any

import numpy as np

from drawn.common import (
    COLOURS,
    INK,
    beside,
    blocks,
    changed,
    demo,
    evaluate,
    figure,
    in_order_of_score,
    mark_least,
    panels,
)
from probox.measures.scoring.calibration_metrics import ause, spearman
from probox.plots import Plots


@figure("mue")
def draw_mue() -> Any:
    scores, hits, _, _ = in_order_of_score()
    u = 1.0 - scores
    d = np.linspace(0.0, 0.8, 321)
    lost = np.array([(u[hits] > limit).mean() for limit in d])
    kept = np.array([(u[~hits] <= limit).mean() for limit in d])
    fig, axes = panels()
    axes.plot(d, 100 * lost, color=COLOURS[0], label="true positives rejected")
    axes.plot(d, 100 * kept, color=COLOURS[1], label="false positives accepted")
    axes.plot(d, 50 * (lost + kept), color=INK, label="mean of both")
    mark_least(axes, d, 50 * (lost + kept), INK)
    axes.set(
        xlim=(0, 0.8),
        ylim=(0, 100),
        xlabel="uncertainty threshold d, for 1 - s",
        ylabel="detections [%], lower is better",
    )
    axes.set_title(f"MUE {50 * (lost + kept).min():.1f}%: minimum of the mean")
    beside(axes)
    return fig


@figure("ause")
def draw_ause() -> Any:
    found = demo().detectors["probabilistic"]
    sides = np.concatenate([found.extents, found.extents], axis=1)
    results = {
        "predicted std": evaluate(found, "ause"),
        "constant: 5% of the side": evaluate(changed(covariances=blocks(0.05 * sides)), "ause"),
    }
    return Plots(results).sparsification().figure


@figure("spearman")
def draw_spearman() -> Any:
    spreads, random = np.linspace(0.0, 2.0, 21), np.random.default_rng(7)
    noise, errors = random.normal(size=20000), np.abs(random.normal(size=20000))
    rank, area = [], []
    for spread in spreads:
        sigmas = np.exp(spread * noise)
        rank.append(spearman(sigmas, errors * sigmas) if spread else 0.0)
        area.append(ause(sigmas, errors * sigmas))
    fig, axes = panels()
    axes.plot(spreads, rank, color=COLOURS[0], label="Spearman,\nhigher is better")
    axes.plot(spreads, area, color=COLOURS[1], label="AUSE,\nlower is better")
    axes.set(xlabel="standard deviation of ln(std)", ylabel="Spearman, AUSE", ylim=(0, 1.02), xlim=(0, 2))
    axes.set_title("Spearman and AUSE of the true std")
    beside(axes)
    return fig
