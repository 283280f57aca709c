"""Plots of evaluations; `PLOTS` contains all of them."""

from probox.pictures.style import quietly
from probox.plots.base import Plot
from probox.plots.breakdown import draw_what_if
from probox.plots.registry import PLOTS, Plots, draw_all

__all__ = ["PLOTS", "Plot", "Plots", "draw_all", "draw_what_if", "quietly"]
