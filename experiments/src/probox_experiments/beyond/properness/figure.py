"""What each score asks for, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from probox_experiments.beyond.properness.claims import PAPER, REFERENCE, best_ratios, best_sigmas, foreseen_share
from probox_experiments.beyond.properness.label_claims import best_probability, best_reports
from probox_experiments.beyond.properness.scenes import ERRORS, FREEDOM, NAMED, SCALE
from probox_experiments.figures import BLUE, GREEN, GREY, ORANGE, SKY, VERMILION, new_figure
from probox_experiments.peaks import mean_of
from probox_experiments.table import ResultTable, presets_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_proper"]

SCORES = {
    "CRPS": ("CRPS", GREEN, "^"),
    "energy": ("energy score", ORANGE, "D"),
    "NLL": ("NLL", VERMILION, "s"),
    "PMB_NLL": ("PMB-NLL", VERMILION, "x"),
    PAPER: ("PDQ, `paper`", BLUE, "o"),
    REFERENCE: ("PDQ, `reference`", BLUE, "o"),
    "log_pPDQ": ("mean log pPDQ", SKY, "v"),
}
HOLLOW = (PAPER,)


def draw_proper(table: ResultTable) -> Figure:
    """Draw the best sigma of every score, PDQ's against the size of objects, and the best label probability."""
    figure = new_figure(8.0, 6.2)
    halves: Any = figure.subfigures(2, 1, height_ratios=[1.0, 1.05])
    above, below = halves
    spread = table.where(study="sigma")
    every = spread.take(~np.isnan(spread["energy"]))
    kinds = [errors for errors in ERRORS if errors in every["errors"]]
    if kinds:
        for number, (axes, errors) in enumerate(
            zip(np.atleast_1d(above.subplots(1, len(kinds), sharey=True)), kinds, strict=True)
        ):
            _choices(axes, every.where(errors=errors), errors)
            if number:
                axes.tick_params(labelleft=False)
    left, right = below.subplots(1, 2)
    _sides(left, spread.where(errors="gaussian"))
    _labels(right, table.where(study="label", named=NAMED[0]))
    return figure


def _choices(axes: Axes, rows: ResultTable, errors: str) -> None:
    shown = [score for score in SCORES if score in rows]
    for place, score in enumerate(shown):
        _, colour, marker = SCORES[score]
        best = mean_of(best_sigmas(rows, score))
        fill = "white" if score in HOLLOW else colour
        axes.errorbar(
            best.value,
            -place,
            xerr=np.nan_to_num(2 * best.error),
            fmt=marker,
            color=colour,
            ms=5.5,
            capsize=2.5,
            mfc=fill,
        )
        axes.annotate(
            f"{best.value:.2f}", (best.value, -place), (0, 5), textcoords="offset points", ha="center", fontsize=7.5
        )
    axes.axvline(SCALE, color="#C9C9C9", lw=0.9, zorder=0.5)
    axes.set_yticks(-np.arange(len(shown)), [SCORES[score][0].replace("`", "") for score in shown])
    axes.set_ylim(-len(shown) + 0.5, 0.8)
    axes.margins(x=0.16)
    axes.set_xlabel("best sigma (pixels, ± 2 s.e.)")
    axes.set_title(
        {
            "gaussian": f"Gaussian, sigma {SCALE:g}",
            "laplace": f"Laplace, scale {SCALE:g}",
            "student": f"Student, {FREEDOM:g} degrees",
        }[errors]
    )


def _sides(axes: Axes, rows: ResultTable) -> None:
    axes.axhline(1, color="#C9C9C9", lw=0.9, zorder=0.5)
    sides = np.unique(rows["side"])
    fine = np.exp(np.linspace(np.log(sides.min()), np.log(sides.max()), 60)) if len(sides) else sides
    for preset, column in presets_in(rows).items():
        best = [mean_of(best_ratios(rows.where(side=side), column)) for side in sides.tolist()]
        line, hollow = ("-", BLUE) if preset == "reference" else ("--", "white")
        if preset in ("reference", "paper"):
            axes.plot(fine / SCALE, foreseen_share(preset, fine), color=GREY, ls=line, lw=1.0)
        axes.errorbar(
            sides / SCALE,
            [mean.value for mean in best],
            np.nan_to_num([2 * mean.error for mean in best]),
            fmt="o",
            color=BLUE,
            mfc=hollow,
            ms=5,
            capsize=2.5,
            label=f"PDQ, {preset}",
        )
    axes.plot([], [], color=GREY, lw=1.0, label="foreseen (dashed: paper)")
    axes.set_xscale("log")
    axes.set_xticks(sides / SCALE, [f"{side / SCALE:.3g}" for side in sides.tolist()])
    axes.minorticks_off()
    axes.set_xlabel("side of the object / true sigma")
    axes.set_ylabel("best sigma / true sigma (± 2 s.e.)")
    axes.set_title("Small objects: less than the truth")
    axes.legend(loc="lower right")


def _labels(axes: Axes, rows: ResultTable) -> None:
    q = np.linspace(0.5, 1, 101)
    axes.plot(q, best_probability(q), color=GREY, lw=1.0, label="q² / (q² + (1 \N{MINUS SIGN} q)²)")
    axes.plot(q, q, color="#C9C9C9", lw=1.0, label="q: the truth")
    looks = {"Brier": (GREEN, "^", 8.5), "ignorance": (ORANGE, "D", 4.5)}
    for score, (colour, marker, size) in looks.items():
        best = best_reports(rows, score)
        axes.plot(list(best), list(best.values()), marker, color=colour, ms=size, mfc="white", label=score)
    for preset, column in reversed(presets_in(rows).items()):  # the smaller marker on top
        best = best_reports(rows, column)
        size, fill = (7.5, "white") if preset == "paper" else (4.5, BLUE)
        axes.plot(list(best), list(best.values()), "o", color=BLUE, ms=size, mfc=fill, label=f"PDQ, {preset}")
    axes.set_xlabel("probability of the class, q")
    axes.set_ylabel("best reported p")
    axes.set_title("Labels: PDQ rewards overconfidence")
    axes.legend(loc="lower right")
