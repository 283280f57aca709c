"""COCO's precision against recall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from probox.evaluation.result import Evaluation
from probox.plots.base import Plot, Results, colour_of, new_axes, styled
from probox.plots.legends import add_legend_beside, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLOT", "mean_curve"]

TITLE = "Precision and recall"


def draw(results: Results, *, iou: float = 0.5, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot COCO's precision against recall, the mean over classes that have objects, at an IoU of `iou`."""
    with styled(dark) as theme:
        axes = new_axes(ax, (5.2, 4.6))
        handles, labels = [], []
        for number, (name, evaluation) in enumerate(zip(short_names(results), results.values(), strict=True)):
            curve = mean_curve(evaluation, iou)
            if curve is None:
                continue
            area = f"AP {100 * curve[1].mean():.1f}"
            labels.append(f"{name}\n{area}" if name else area)
            handles += axes.plot(*curve, color=colour_of(theme, number))
        axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
        axes.set_title(f"{TITLE} at IoU {iou:g}")
        add_legend_beside(axes, handles, labels, widen=ax is None)
    return axes


def mean_curve(evaluation: Evaluation, iou: float) -> tuple[Any, Any] | None:
    """Return recall and the mean precision over the classes that have objects, or None if there are none."""
    measured = evaluation.average_precision
    curves = [measured.curve(name, iou) for name, n in zip(measured.classes, measured.objects[:, 0], strict=True) if n]
    if not curves:
        return None
    return curves[0].recall, np.mean([curve.precision for curve in curves], axis=0)


PLOT = Plot("precision-recall", TITLE, draw)
