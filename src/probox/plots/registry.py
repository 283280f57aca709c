"""Every plot there is, and what `result.plot` and `probox plot` draw them with.

A new one is a module that makes a `Plot`, and a line in `PLOTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from probox.errors import InputError
from probox.evaluation.naming import label_results
from probox.evaluation.result import Evaluation
from probox.plots import (
    bars,
    budget,
    confusion,
    coverage,
    difference,
    pit,
    precision_recall,
    qualities,
    reliability,
    scatter,
    sigma_error,
    sparsification,
    thresholds,
)
from probox.plots.base import Plot

__all__ = ["PLOTS", "Plots", "draw_all"]

PLOTS: dict[str, Plot] = {
    plot.name: plot
    for plot in (
        qualities.PLOT,
        scatter.SPATIAL_LABEL,
        scatter.FOREGROUND_BACKGROUND,
        thresholds.PLOT,
        precision_recall.PLOT,
        bars.CLASSES,
        bars.SIZES_PLOT,
        budget.PLOT,
        confusion.PLOT,
        coverage.PLOT,
        pit.PLOT,
        reliability.PLOT,
        sparsification.PLOT,
        sigma_error.PLOT,
        difference.PLOT,
    )
}
"""Every plot by the name of its file."""


class Plots:
    """Plots of one evaluation, or of several under their names.

    ``result.plot`` is one of the result alone. Each plot is a method, which returns the matplotlib axes: ``qualities``,
    ``spatial_label``, ``foreground_background``, ``thresholds``, ``precision_recall``, ``classes``, ``sizes``,
    ``budget``, ``confusion``, ``coverage``, ``pit``, ``reliability``, ``sparsification``, ``sigma_error`` and
    ``difference``; ``docs/pictures.md`` says what each shows. All take ``dark=True``, and those of one panel ``ax=``;
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
    >>> result = probox.evaluate(demo.truth, demo.detectors["unsure"])
    >>> axes = result.plot.thresholds()
    >>> axes = Plots({"unsure": result}).classes(dark=True)
    """

    def __init__(self, results: Evaluation | Mapping[str, Evaluation]) -> None:
        named = {"": results} if isinstance(results, Evaluation) else label_results(results)
        # A label that begins with an underscore is hidden from matplotlib's legends.
        self.results = {f" {name}" if name.startswith("_") else name: one for name, one in named.items()}
        if not self.results:
            raise InputError("there is nothing to plot")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        methods = _by_method()
        if name not in methods:
            raise AttributeError(f"there is no plot {name!r}; there are {', '.join(methods)}")
        draw = methods[name].draw
        return update_wrapper(partial(draw, self.results), draw)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_by_method()]


def _by_method() -> dict[str, Plot]:
    return {plot.method: plot for plot in PLOTS.values()}


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
