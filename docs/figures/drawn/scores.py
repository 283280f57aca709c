"""Figures of the calibration of scores and labels: D-ECE, LaECE, LaACE, OCE, QGC."""

from __future__ import annotations

from typing import Any

import numpy as np

from drawn.common import COLOURS, INK, beside, demo, evaluate, figure, in_order_of_score, mark_least, panels
from probox.measures.scoring import score_definition
from probox.measures.scoring.calibration_metrics import (
    UNIT,
    Bins,
    SortedColumns,
    object_brier_scores,
)
from probox.plots import Plots


@figure("d-ece")
def draw_d_ece() -> Any:
    return Plots({"demo": evaluate(None, "d-ece")}).reliability().figure


@figure("laece")
def draw_laece() -> Any:
    scores, _, ious, labels = in_order_of_score()
    name = "leaf"
    own = labels == demo().truth.classes.index(name)
    n, mean_score, mean_iou = (c[0] for c in SortedColumns(scores[own], [scores[own], ious[own]], UNIT).sums(Bins(25)))
    some = n > 0
    fig, axes = panels(1, (6.6, 3.9))
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1.0, alpha=0.6)
    axes.plot(scores[own], ious[own], "o", color=COLOURS[0], markersize=4, alpha=0.5, label="detections")
    x, y = mean_score[some] / n[some], mean_iou[some] / n[some]
    axes.vlines(x, x, y, color=COLOURS[1], linewidth=2, alpha=0.7)
    axes.plot(x, y, "D", color=COLOURS[1], markersize=5, label="means of 25 bins\nand their gaps")
    error = np.abs(mean_iou - mean_score).sum() / n.sum()
    axes.set(xlim=(0, 1), ylim=(-0.03, 1), xlabel="score", ylabel="IoU (0 without match)", aspect="equal")
    axes.set_title(f'"{name}": LaECE {100 * error:.1f}%')
    beside(axes)
    return fig


@figure("laace")
def draw_laace() -> Any:
    random = np.random.default_rng(7)
    ious = np.where(random.random(600) < 0.25, 0.0, random.beta(12, 3, 600))
    labels = np.zeros(600, np.int64)
    cases = {
        "constant score": np.full(600, ious.mean()),
        "informative scores": np.clip(ious + random.normal(0, 0.06, 600), 0, 1),
    }
    fig, row = panels(2, (7.2, 3.7), sharey=True)
    for number, (axes, (label, scores)) in enumerate(zip(row, cases.items(), strict=True)):
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1.0, alpha=0.6)
        axes.plot(scores, ious, "o", color=COLOURS[number], markersize=3, alpha=0.35)
        lists = scores.tolist(), ious.tolist(), labels.tolist()
        few, alone = score_definition.laece(*lists, 25), score_definition.laace(*lists)
        axes.set_title(f"{label}\nLaECE {100 * few:.1f}%, LaACE {100 * alone:.1f}%", fontsize=10)
        axes.set(xlim=(-0.03, 1), ylim=(-0.03, 1), xlabel="score")
    row[0].set_ylabel("IoU (0 without match)")
    return fig


@figure("oce")
def draw_oce() -> Any:
    box, classes = np.array([[10.0, 10.0, 50.0, 50.0]]), np.array([0])
    first, counts = np.array([0.9, 0.05, 0.0]), np.arange(0, 9)
    more = {
        "another class": [0.05, 0.9, 0.0],
        "low probability": [0.2, 0.0, 0.0],
        "same label": [0.9, 0.05, 0.0],
    }
    fig, axes = panels()
    for number, (label, p) in enumerate(more.items()):
        losses = []
        for n in counts.tolist():
            probs = np.stack([first, *[np.array(p)] * n])
            losses.append(float(object_brier_scores(np.repeat(box, n + 1, axis=0), probs, box, classes)[0, 0]))
        axes.plot(counts, losses, "o-", color=COLOURS[number], markersize=5, label=label)
    axes.axhline(1.0, color=INK, linestyle=(0, (4, 2)), linewidth=1.2, label="no detection")
    axes.set(
        xlabel="further detections on the same object",
        ylabel="OCE of the object, lower is better",
        title="OCE uses all detections on an object",
    )
    axes.set_ylim(bottom=0)
    beside(axes)
    return fig


@figure("qgc")
def draw_qgc() -> Any:
    scores, hits, _, _ = in_order_of_score()
    objects = len(demo().truth)
    levels = np.linspace(0.0, 1.0, 201)
    losses = np.square(np.where(hits, 1.0 - scores, scores))
    rows = []
    for s in levels:
        kept = scores >= s
        n = kept.sum() + objects - (hits & kept).sum()
        rows.append(
            [losses[kept & hits].sum() / n, losses[kept & ~hits].sum() / n, (objects - (hits & kept).sum()) / n]
        )
    fig, axes = panels()
    parts = np.array(rows).T
    words = "(1 - s)² of true positives", "s² of false positives", "missed objects"
    axes.stackplot(levels, parts, colors=(COLOURS[2], COLOURS[1], COLOURS[0]), labels=words, alpha=0.55)
    axes.plot(levels, parts.sum(axis=0), color=INK, label="QGC")
    mark_least(axes, levels, parts.sum(axis=0), INK)
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1),
        xlabel="score threshold",
        ylabel="QGC, lower is better",
        title="QGC against the score threshold",
    )
    beside(axes)
    return fig
