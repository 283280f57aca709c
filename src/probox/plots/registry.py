"""Every plot there is, and what `result.plot` and `probox plot` draw them with.

A new one is a module that makes a `Plot`, and a line in `Plots`.
"""

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
    """Plots of one evaluation, or of several under their names.

    ``result.plot`` is one of the result alone. Each plot is a method, which returns the matplotlib axes;
    ``docs/pictures.md`` shows them. All take ``dark=True``, and those of one panel ``ax=``;
    ``help(Plots(result).thresholds)`` tells more.

    Parameters
    ----------
    results : Evaluation or mapping of str to Evaluation
        One line, or colour, each.

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
        # A label that begins with an underscore is hidden from matplotlib's legends.
        self.results = {f" {name}" if name.startswith("_") else name: one for name, one in named.items()}
        if not self.results:
            raise InputError("there is nothing to plot")


PLOTS: dict[str, Plot[..., Any]] = {plot.name: plot for plot in vars(Plots).values() if isinstance(plot, Plot)}
"""Every plot by the name of its file."""


def draw_all(results: Mapping[str, Evaluation], *, dark: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the name and figure of every plot that can be drawn of these results, one at a time."""
    import matplotlib.pyplot as plt

    shown = Plots(results).results
    for name, plot in PLOTS.items():
        if not plot.fits(shown):
            continue
        first: Any = np.ravel(plot.draw(shown, dark=dark))[0]
        yield name, first.figure
        plt.close(first.figure)
