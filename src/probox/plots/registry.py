"""All plots, as methods of `result.plot` and files of `probox plot`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.evaluation.text import label_results
from probox.plots.base import Plot
from probox.plots.breakdown import BUDGET, CONFUSION, DIFFERENCE
from probox.plots.calibration_plots import COVERAGE, PIT, RELIABILITY, SIGMA_ERROR, SPARSIFICATION
from probox.plots.quality import (
    CLASSES,
    FOREGROUND_BACKGROUND,
    PRECISION_RECALL,
    QUALITY_HISTOGRAMS,
    SIZES_PLOT,
    SPATIAL_LABEL,
    THRESHOLDS,
)


class Plots:
    """Plots of one evaluation or of several.

    ``result.plot`` has the plots of one result. Each plot is a method that returns matplotlib axes. All plots accept
    ``dark=True``, and those with one panel ``ax=``. ``docs/pictures.md`` shows them.

    Parameters
    ----------
    results : Evaluation or mapping of str to Evaluation
        Each result is one line or colour.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["probabilistic"])
    >>> axes = result.plot.thresholds()
    >>> axes = Plots({"probabilistic": result}).classes(dark=True)
    """

    qualities = QUALITY_HISTOGRAMS
    spatial_label = SPATIAL_LABEL
    foreground_background = FOREGROUND_BACKGROUND
    thresholds = THRESHOLDS
    precision_recall = PRECISION_RECALL
    classes = CLASSES
    sizes = SIZES_PLOT
    budget = BUDGET
    confusion = CONFUSION
    coverage = COVERAGE
    pit = PIT
    reliability = RELIABILITY
    sparsification = SPARSIFICATION
    sigma_error = SIGMA_ERROR
    difference = DIFFERENCE

    def __init__(self, results: Evaluation | Mapping[str, Evaluation]) -> None:
        named = {"": results} if isinstance(results, Evaluation) else label_results(results)
        # Matplotlib hides labels that start with an underscore from legends.
        self.results = {f" {name}" if name.startswith("_") else name: one for name, one in named.items()}
        if not self.results:
            raise InputError("expected at least one result to plot")


PLOTS: dict[str, Plot[..., Any]] = {plot.name: plot for plot in vars(Plots).values() if isinstance(plot, Plot)}
"""All plots by the name of their file."""


def draw_all(results: Mapping[str, Evaluation], *, dark: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the name and figure of each plot that fits these results."""
    import matplotlib.pyplot as plt

    shown = Plots(results).results
    for name, plot in PLOTS.items():
        if not plot.fits(shown):
            continue
        first: Any = np.ravel(plot.draw(shown, dark=dark))[0]
        yield name, first.figure
        plt.close(first.figure)
