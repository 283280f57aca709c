"""Figures of proper scores: NLL, energy score, CRPS, Brier score, ignorance, PMB-NLL."""

from __future__ import annotations

from typing import Any

import numpy as np

from drawn.common import COLOURS, INK, beside, blocks, changed, demo, evaluate, figure, mark_least, panels, simulated
from probox.measures.scoring.scores import crps, energy_scores, negative_log_likelihoods, normal_cdf


@figure("nll")
def draw_nll() -> Any:
    errors, sigmas = simulated()
    wild = np.where(np.random.default_rng(8).random((len(errors), 1)) < 0.02, 10.0 * errors, errors)
    factors = np.geomspace(0.3, 5.0, 60)
    fig, axes = panels()
    for number, (label, residuals) in enumerate(
        {"Gaussian errors": errors, "2% of boxes with\nten times the error": wild}.items()
    ):
        score = [negative_log_likelihoods(residuals, blocks(f * sigmas)).mean() for f in factors]
        axes.plot(factors, score, color=COLOURS[number], label=label)
        mark_least(axes, factors, score, COLOURS[number])
    axes.set(xscale="log", ylim=(9, 24), xlabel="predicted std / true std", ylabel="NLL [nats], lower is better")
    axes.set_xticks([0.3, 0.5, 1, 2, 5], ["0.3", "0.5", "1", "2", "5"])
    axes.minorticks_off()
    axes.set_title("NLL penalises overconfidence more")
    beside(axes)
    return fig


@figure("energy")
def draw_energy() -> Any:
    errors = np.linspace(0.0, 12.0, 121)
    residuals = np.repeat(errors[:, None], 4, axis=1)
    fig, (left, right) = panels(2, (7.2, 3.5))
    for number, sigma in enumerate((1.0, 2.0, 4.0)):
        spread = blocks(np.full((len(errors), 4), sigma))
        left.plot(errors, negative_log_likelihoods(residuals, spread), color=COLOURS[number])
        right.plot(errors, energy_scores(residuals, spread), color=COLOURS[number], label=f"std {sigma:g} px")
    right.plot(errors, 2 * errors, color=INK, linestyle=(0, (4, 2)), linewidth=1.2, label="no covariance: |r|")
    left.set(
        xlabel="error of each edge [px]", ylabel="NLL [nats], lower is better", ylim=(0, 100), title="NLL grows with r²"
    )
    right.set(xlabel="error of each edge [px]", ylabel="energy score [px], lower is better", ylim=(0, 25))
    right.set_title("Energy score grows with |r|")
    right.legend(loc="upper left")
    return fig


@figure("crps")
def draw_crps() -> Any:
    fig, (left, right) = panels(2, (7.2, 3.5))
    y, observed = np.linspace(-8, 10, 400), 3.0
    predicted, step = normal_cdf(y / 2.0), (y >= observed).astype(float)
    left.plot(y, predicted, color=COLOURS[0], label="predicted: N(0, 2²)")
    left.plot(y, step, color=COLOURS[1], label="ground truth: 3")
    left.fill_between(y, np.square(predicted - step), color=INK, alpha=0.2, linewidth=0, label="(F - step)²")
    left.set(xlabel="edge [px]", ylabel="cumulative probability", title="CRPS is the grey area", ylim=(0, 1.45))
    left.legend(loc="upper left")
    sigmas, true = np.linspace(0.0, 8.0, 81), 2.0
    errors = np.random.default_rng(7).normal(0.0, true, 20000)
    score = [crps(errors, np.full_like(errors, sigma)).mean() for sigma in sigmas]
    right.plot(sigmas, score, color=COLOURS[0])
    mark_least(right, sigmas, score, COLOURS[0])
    right.set(xlabel="predicted std [px]", ylabel="mean CRPS [px], lower is better", ylim=(0, None))
    right.set_title("Minimum at the true std, 2 px")
    return fig


@figure("brier")
def draw_brier() -> Any:
    p = np.linspace(0.0, 1.0, 101)
    fig, axes = panels()
    others = {"on one wrong class": 1.0, "evenly on 6 wrong classes": 1.0 / 6.0, "on background": 0.0}
    for number, (label, more) in enumerate(others.items()):
        axes.plot(p, np.square(1.0 - p) * (1.0 + more), color=COLOURS[number], label=label)
    axes.set(
        xlabel="probability of the true class", ylabel="Brier score, lower is better", title="Brier score of one label"
    )
    axes.legend(title="remaining probability", title_fontsize=9, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return fig


@figure("ignorance")
def draw_ignorance() -> Any:
    predicted, true = np.linspace(0.005, 0.995, 199), 0.7
    fig, axes = panels()
    curves = {
        "ignorance [nats]": -true * np.log(predicted) - (1 - true) * np.log(1 - predicted),
        "Brier score": true * 2 * np.square(1 - predicted) + (1 - true) * 2 * np.square(predicted),
    }
    for number, (label, score) in enumerate(curves.items()):
        axes.plot(predicted, score, color=COLOURS[number], label=label)
        mark_least(axes, predicted, score, COLOURS[number])
    axes.axvline(true, color=INK, linewidth=1.0, alpha=0.6)
    axes.set(xlim=(0, 1), ylim=(0, 2.5), xlabel="predicted probability of the true class")
    axes.set_ylabel("expected score, lower is better")
    axes.set_title("Minima at the true probability, 0.7")
    beside(axes)
    return fig


@figure("pmb-nll")
def draw_pmb() -> Any:
    found = demo().detectors["probabilistic"]
    ways = {
        "original": found,
        "std halved": changed(covariances=found.covariances / 4.0),
        "scores above 0.5": found.select(found.label_probs.max(axis=1) > 0.5),
        "10% left for\nbackground": changed(label_probs=np.float32(0.9) * found.label_probs, scores=None),
    }
    parts = {
        "PMB_box": "boxes", "PMB_label": "labels", "PMB_unmatched": "unmatched detections",
        "PMB_missed": "missed objects", "PMB_clutter": "clutter",
    }  # fmt: skip
    numbers = [evaluate(one, "pmb-nll").summary() for one in ways.values()]
    fig, axes = panels(1, (7.2, 3.6))
    left = np.zeros(len(ways))
    for number, (key, label) in enumerate(parts.items()):
        values = np.array([summary[key] for summary in numbers])
        axes.barh(range(len(ways)), values, left=left, color=COLOURS[number], label=label, height=0.6)
        left += values
    for row, total in enumerate(left):
        axes.text(total + 3, row, f"{total:.0f}", va="center", fontsize=9)
    axes.set_yticks(range(len(ways)), list(ways))
    axes.invert_yaxis()
    axes.set(
        xlabel="PMB-NLL [nats per image], lower is better",
        title="Parts of PMB-NLL: best assignment, with floor",
        xlim=(0, 330),
    )
    axes.grid(axis="y", visible=False)
    beside(axes)
    return fig
