"""PDQ of the same boxes with and without sigmas, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from probox_experiments.beyond.constant_claims import CONSTANT, OWN, PLAIN, SHARE, SHUFFLED, estimated
from probox_experiments.figures import BLUE, GREEN, GREY, ORANGE, VERMILION, new_figure
from probox_experiments.table import ResultTable, presets_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_constant_sigma"]

LOOKS: Mapping[str, tuple[str, str, str]] = {
    PLAIN: ("plain boxes", GREY, "s"),
    SHUFFLED: ("own sigmas, shuffled", VERMILION, "x"),
    CONSTANT: ("one sigma in pixels", ORANGE, "D"),
    SHARE: ("one share of the side", GREEN, "^"),
    OWN: ("own sigmas", BLUE, "o"),
}
"""What each is called, its colour and its marker."""


def draw_constant_sigma(table: ResultTable) -> Figure:
    """Draw PDQ of each detector with each kind of sigmas and two standard errors; a panel for each preset."""
    names = list(dict.fromkeys(table["detector"].tolist()))
    presets = presets_in(table)
    figure = new_figure(max(4.4 * len(presets), 5.0), 1.5 + 0.62 * len(names))
    panels = figure.subplots(1, max(len(presets), 1), sharey=True, squeeze=False)[0]
    for axes, preset in zip(panels, presets or {"reference": ""}, strict=True):
        _panel(axes, table, names, preset)
    drawn: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        drawn |= dict(zip(labels, handles, strict=True))
    figure.legend(
        drawn.values(), drawn.keys(), loc="outside lower center", ncols=5, columnspacing=1.2, handlelength=1.2
    )
    return figure


def _panel(axes: Axes, table: ResultTable, names: list[str], preset: str) -> None:
    for place, (sigmas, (label, colour, marker)) in enumerate(LOOKS.items()):
        found = [estimated(table, name, preset, itemgetter(sigmas), sigmas) for name in names]
        rows = [row for row, one in enumerate(found) if one is not None]
        if not rows:
            continue
        axes.errorbar(
            [one.value for one in found if one is not None],
            [row + 0.13 * (place - 2) for row in rows],
            xerr=[0.0 if isnan(one.error) else 2.0 * one.error for one in found if one is not None],
            fmt=marker,
            color=colour,
            ms=5.0,
            mew=1.4,
            lw=1.2,
            label=label,
        )
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("PDQ")
    axes.set_title(f"PDQ by sigmas, preset {preset}")
