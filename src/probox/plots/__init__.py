"""Plots of evaluations, in one style."""

from probox.plots.plots import PLOTS, Plots, draw_all

__all__ = ["PLOTS", "Plots", "draw_all"]
