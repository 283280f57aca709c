"""Are scores honest? Precision against score, in bins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.evaluation.result import Evaluation
from probox.measures.scoring.calibration_metrics import UNIT, SortedColumns, calibration_errors
from probox.measures.scoring.detection_measures import D_ECE_BINS
from probox.measures.scoring.score_rows import IOU, full_name, outcomes
from probox.plots.base import Plot, Results, colour_of, no_formulas, scale_counts, styled, subplots
from probox.plots.legends import add_legend_beside, short_names
from probox.plots.pairs import add_caption, few_words, put_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BINS", "PLOT", "score_bins"]

TITLE = "Reliability of scores"
BINS = D_ECE_BINS[0]
FloatArray = npt.NDArray[np.float64]


def draw(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot the precision of detections against their mean score, in ten bins of equal width.

    Returns the axes of precision; how many detections are in each bin lies below it. On the diagonal scores are
    right, below it too sure.
    """
    name_of_error = full_name("D-ECE", iou=IOU, bins=BINS)
    with styled(dark) as theme:
        upper: Any
        lower: Any
        if ax is None:
            _, (upper, lower) = subplots(2, 1, (5.4, 6.4), sharex=True, height_ratios=(3, 1))
        else:
            no_formulas(ax)
            upper, lower = ax, None
        handles: list[Any] = []
        labels, captions = [], []
        most = 0
        names = short_names(results)
        for number, (line, evaluation) in enumerate(
            zip(short_names(results, lines=False), results.values(), strict=True)
        ):
            n, hits, sums = score_bins(evaluation)
            total = int(n.sum())
            captions.append((f"{line}: " if line else "") + few_words(total, "detection"))
            if not total:
                continue
            colour, there = colour_of(theme, number), n > 0
            handles += upper.plot(
                sums[there] / n[there], 100 * hits[there] / n[there], "-o",
                color=colour, markersize=5, clip_on=False, zorder=3,
            )  # fmt: skip
            error = f"D-ECE {100 * calibration_errors(n[None], (hits - sums)[None])[0]:.1f} %"
            labels.append(f"{names[number]}\n{error}" if line else error)
            if lower is not None:
                lower.stairs(n, np.linspace(0.0, 1.0, BINS.number + 1), color=colour, linewidth=1.6)
                most = max(most, int(n.max()))
        if handles:
            upper.plot([0, 1], [0, 100], color=theme.ink, linewidth=1.0, alpha=0.6)
        else:
            put_words(upper, "no detections to judge")
        upper.set(ylabel="precision, %", xlim=(0, 1), ylim=(0, 100), title=TITLE)
        bottom = upper if lower is None else lower
        bottom.set_xlabel("score")
        if lower is not None:
            lower.set_ylabel("detections")
            scale_counts(lower, most, logs=most > 1000, linear_below=1)
        add_legend_beside(upper, handles, labels, widen=ax is None)
        add_caption(
            bottom,
            *captions,
            f"D-ECE is {name_of_error}: detections matched by COCO's rule at IoU {IOU:g}, {BINS.words}; "
            "detections in crowds left out. Below the diagonal: too sure.",
        )
    shown: Axes = upper
    return shown


def score_bins(evaluation: Evaluation) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how many detections are in each bin of scores, how many of them are hits, and the sum of their scores."""
    judged = outcomes(evaluation, IOU)
    scores = evaluation.detections.scores[judged.detections]
    n, hits, sums = SortedColumns(scores, [judged.hits.astype(np.float64), scores], UNIT).sums(BINS)
    return n[0], hits[0], sums[0]


PLOT = Plot("reliability", TITLE, draw)
