"""Plots of evaluations, in one style: a module for each kind, `PLOTS` lists them."""

from probox.plots.base import Plot, quietly
from probox.plots.registry import PLOTS, Plots, draw_all
from probox.plots.what_if import draw_what_if

__all__ = ["PLOTS", "Plot", "Plots", "draw_all", "draw_what_if", "quietly"]
