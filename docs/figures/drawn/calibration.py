"""Figures of calibration metrics: NEES, coverage, PIT, M-QCE, ENCE, sharpness."""

from __future__ import annotations

from typing import Any

import numpy as np

from drawn.common import COLOURS, INK, beside, blocks, constant_std, evaluate, figure, panels, simulated
from probox.measures.scoring.calibration_metrics import (
    Bins,
    SortedColumns,
    box_levels,
    coverage,
    edge_levels,
    ence_of_sums,
    pit_histogram,
    pit_values,
)
from probox.measures.scoring.scores import chi2_4_cdf, crps, squared_distances

FORECASTERS = {"calibrated": 1.0, "overconfident: std halved": 0.5, "underconfident: std doubled": 2.0}


@figure("nees")
def draw_nees() -> Any:
    errors, sigmas = simulated()
    edges = np.geomspace(0.05, 200.0, 50)
    fig, axes = panels()
    for number, (label, factor) in enumerate(FORECASTERS.items()):
        distances = squared_distances(errors, blocks(factor * sigmas))
        shares, words = np.histogram(distances, edges)[0] / len(errors), f"{label}\nNEES {distances.mean():.1f}"
        axes.stairs(100 * shares, edges, color=COLOURS[number], linewidth=1.6, label=words)
    middles = np.sqrt(edges[1:] * edges[:-1])
    axes.plot(
        middles, 100 * np.diff(chi2_4_cdf(edges)), color=INK, linestyle=(0, (1, 1.5)), label="chi-squared, 4 d.o.f."
    )
    axes.set(
        xscale="log",
        xlabel="squared Mahalanobis distance of a box",
        ylabel="boxes [%]",
        title="NEES is the mean: 4 if calibrated",
    )
    axes.set_xticks([0.1, 1, 4, 10, 100], ["0.1", "1", "4", "10", "100"])
    axes.minorticks_off()
    beside(axes)
    return fig


@figure("coverage")
def draw_coverage() -> Any:
    errors, sigmas = simulated()
    shares = np.linspace(0.0, 1.0, 101)
    fig, axes = panels(1, (6.6, 3.9))
    predictions = {label: factor * sigmas for label, factor in FORECASTERS.items()} | {
        "constant std": constant_std(errors)
    }
    for number, (label, predicted) in enumerate(predictions.items()):
        levels = edge_levels(errors, predicted)
        curve = [100 * coverage(levels, share) for share in shares.tolist()]
        axes.plot(
            100 * shares, curve, color=COLOURS[number], label=f"{label}\nat 90%: {100 * coverage(levels, 0.9):.0f}%"
        )
    axes.axvline(90, color=INK, linewidth=1.0, alpha=0.5)
    axes.set(xlim=(0, 100), ylim=(0, 100), xlabel="nominal coverage [%]", ylabel="observed coverage [%]")
    axes.set(title="Coverage of intervals", aspect="equal")
    beside(axes)
    return fig


@figure("pit")
def draw_pit() -> Any:
    errors, sigmas = simulated()
    cases = {
        "calibrated": (errors, sigmas), "overconfident": (errors, 0.5 * sigmas),
        "underconfident": (errors, 2.0 * sigmas), "biased by 2 px": (errors + 2.0, sigmas),
    }  # fmt: skip
    fig, row = panels(4, (9.6, 2.9), sharey=True)
    for number, (axes, (label, (residuals, predicted))) in enumerate(zip(row, cases.items(), strict=True)):
        shares = pit_histogram(pit_values(residuals, predicted))
        axes.stairs(100 * shares, np.linspace(0, 1, 11), fill=True, color=COLOURS[number], alpha=0.6)
        axes.axhline(10, color=INK, linewidth=1.0, alpha=0.6)
        axes.set(xlabel=f"Φ(z)\nPIT {50 * np.abs(shares - 0.1).sum():.1f}%", xlim=(0, 1))
        axes.set_title(label, fontsize=10)
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    row[0].set_ylabel("edges [%]")
    return fig


@figure("mqce")
def draw_mqce() -> Any:
    result = evaluate(None, "mqce")
    pairs, levels = result.matched_pairs, np.linspace(0.05, 0.95, 19)
    reached = np.array([coverage(box_levels(pairs.residuals, pairs.covariances), q) for q in levels.tolist()])
    fig, axes = panels(1, (5.6, 3.9))
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1.0, alpha=0.6)
    axes.vlines(levels, levels, reached, color=COLOURS[1], linewidth=4, alpha=0.6, label="|coverage - q|")
    axes.plot(levels, reached, "o-", color=COLOURS[0], markersize=4, label="coverage of boxes")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="nominal coverage q", ylabel="observed coverage of boxes")
    axes.set_title(f"M-QCE {100 * result.summary()['M-QCE']:.1f}%: mean gap")
    beside(axes)
    return fig


@figure("ence")
def draw_ence() -> Any:
    errors, sigmas = (column[:, 0] for column in simulated())
    compressed = np.sqrt(sigmas)
    compressed *= np.sqrt(np.square(errors / compressed).mean())  # calibrated on average
    fig, axes = panels(1, (6.6, 3.9))
    for number, (label, predicted) in enumerate(
        {"calibrated": sigmas, "small std too large,\nlarge std too small": compressed}.items()
    ):
        sums = SortedColumns(predicted, [predicted**2, errors**2]).sums(Bins(10, "mass"))
        n, variances, squares = (column[0] for column in sums)
        z = np.square(errors / predicted).mean()
        words = f"{label}\nENCE {ence_of_sums(*sums)[0]:.2f}, mean z² {z:.2f}"
        axes.plot(np.sqrt(variances / n), np.sqrt(squares / n), "o-", color=COLOURS[number], markersize=5, label=words)
    axes.plot([0, 10], [0, 10], color=INK, linewidth=1.0, alpha=0.6)
    axes.set(
        xlim=(0, 9),
        ylim=(0, 9),
        aspect="equal",
        xlabel="predicted std of a bin (RMV) [px]",
        ylabel="RMSE of a bin [px]",
    )
    axes.set_title("Error against predicted std, 10 bins")
    beside(axes)
    return fig


@figure("sharpness")
def draw_sharpness() -> Any:
    errors, sigmas = simulated()
    widest = constant_std(errors)
    predictions = {
        "calibrated, one std per edge": sigmas, "calibrated constant std": widest,
        "overconfident": 0.5 * sigmas, "underconfident": 1.7 * sigmas,
    }  # fmt: skip
    fig, axes = panels()
    for number, (label, predicted) in enumerate(predictions.items()):
        x, y = np.sqrt(np.square(predicted).mean()), 100 * coverage(edge_levels(errors, predicted), 0.9)
        score = crps(errors, predicted).mean()
        style = {"markersize": 15, "fillstyle": "none", "markeredgewidth": 2} if number == 1 else {"markersize": 9}
        words = f"{label}\nCRPS {score:.2f} px"
        axes.plot(x, y, "os^D"[number], color=COLOURS[number], linestyle="none", label=words, **style)
    axes.axhline(90, color=INK, linewidth=1.0, alpha=0.6)
    axes.set(
        xlabel="sharpness [px], lower is sharper", ylabel="coverage of 90% intervals [%]", ylim=(50, 102), xlim=(0, 8)
    )
    axes.set_title("Compare sharpness at equal coverage")
    beside(axes)
    return fig
