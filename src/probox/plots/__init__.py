"""Plots of evaluations, in one style: a module for each kind, `PLOTS` lists them."""

from probox.pictures.style import quietly
from probox.plots.base import Plot
from probox.plots.breakdown import draw_what_if
from probox.plots.registry import PLOTS, Plots, draw_all

__all__ = ["PLOTS", "Plot", "Plots", "draw_all", "draw_what_if", "quietly"]
