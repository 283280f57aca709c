"""The two figures that show scenes: the plane, and the worked example of mAP's curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.experiments.figures import BLUE, GREY, ORANGE, SKY, VERMILION, new_figure
from probox.experiments.scenes import plane_scene
from probox.experiments.table import ResultTable
from probox.experiments.uncertainty import plane_box
from probox.experiments.worked_example import worked_example

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_plane", "draw_precision_recall"]


def draw_plane(table: ResultTable) -> Figure:
    """Draw the plane with its box and the detection, and what each measure says."""
    (row,) = table.rows()
    truth = plane_scene()
    width, height = int(truth.dataset.widths[0]), int(truth.dataset.heights[0])
    mask = truth.masks.to_array(0, height, width)
    figure = new_figure(4.8, 3.1)
    axes = figure.add_subplot()
    picture = np.ones((height, width, 3))
    picture[mask] = [0.62, 0.78, 0.90]
    axes.imshow(picture, extent=(0, width, height, 0), interpolation="nearest")
    axes.contour(np.arange(width) + 0.5, np.arange(height) + 0.5, mask, levels=[0.5], colors="#1A1A1A", linewidths=0.8)
    _box(axes, truth.boxes[0], BLUE, 1.8)
    _box(axes, plane_box(truth) + np.array([0, 0, 1, 1]), ORANGE, 2.4)
    x1, y1, x2, y2 = truth.boxes[0]
    axes.text(x2, y2 + 6, "object", color=BLUE, ha="right", va="top", fontsize=9, fontweight="bold")
    axes.text(x2, y1 - 6, "sure detection", color="#B07700", ha="right", va="bottom", fontsize=9, fontweight="bold")
    axes.text(
        x1 + 0.30 * (x2 - x1),
        y1 + 0.27 * (y2 - y1),
        f"IoU {row['IoU']:.2f}, {100 * row['covered']:.0f} % of the plane's pixels",
        color="#333333",
        va="center",
        fontsize=9,
    )
    axes.text(x1, y2 + 42, f"AP50 = {row['AP50']:.0f}", color=VERMILION, fontsize=10.5, fontweight="bold", va="center")
    mantissa, exponent = f"{row['PDQ_paper']:.1e}".split("e")
    axes.text(
        x1 + 0.27 * (x2 - x1),
        y2 + 42,
        rf"pPDQ = ${mantissa}\times10^{{{int(exponent)}}}$ (paper),  {row['PDQ']:.0f} (reference)",
        color=BLUE,
        fontsize=10.5,
        va="center",
    )
    axes.set_xlim(x1 - 14, x2 + 14)
    axes.set_ylim(y2 + 58, y1 - 30)
    axes.axis("off")
    axes.set_title("Half the box, a sixth of the plane", loc="left")
    return figure


def _box(axes: Axes, box: npt.NDArray[np.float64], colour: str, width: float, **style: Any) -> None:
    from matplotlib.patches import Rectangle

    x1, y1, x2, y2 = box
    axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, ec=colour, lw=width, **style))


def draw_precision_recall(table: ResultTable) -> Figure:
    """Draw the four panels: the scene, the raw curve, the smoothed one, and its 101 samples."""
    figure = new_figure(6.8, 5.4)
    scene, raw_axes, smooth_axes, sample_axes = figure.subplots(2, 2).flat
    raw, smoothed, sampled = (table.where(curve=name) for name in ("raw", "smoothed", "sampled"))
    _draw_scene(scene, raw)

    raw_axes.plot(raw["recall"], raw["precision"], color=GREY, lw=1.4, zorder=2)
    for value, colour, label in ((1.0, SKY, "true positive"), (0.0, ORANGE, "false positive")):
        part = raw.where(correct=value)
        raw_axes.plot(part["recall"], part["precision"], "o", ms=7, mfc=colour, mec="#333333", mew=0.7, label=label)
    for row in raw.rows():
        right = row["correct"] == 1.0
        raw_axes.annotate(
            f"{row['confidence']:.2f}", (row["recall"], row["precision"]), textcoords="offset points",
            xytext=(7, 5) if right else (-7, -4), ha="left" if right else "right", va="center", fontsize=8,
        )  # fmt: skip
    raw_axes.legend(loc="lower left")

    smooth_axes.plot(raw["recall"], raw["precision"], color=GREY, lw=1.0, ls=(0, (4, 2)), label="raw")
    # A recall that no detection has takes the precision of the next one that is reached: a staircase.
    recall, first = np.unique(smoothed["recall"], return_index=True)
    height = smoothed["precision"][first]
    stairs_x, stairs_y = np.concatenate([[0.0], recall]), np.concatenate([height[:1], height])
    smooth_axes.plot(stairs_x, stairs_y, color=VERMILION, lw=2, drawstyle="steps-pre", label="smoothed")
    smooth_axes.legend(loc="lower left")

    sample_axes.vlines(sampled["recall"], 0, sampled["precision"], color=VERMILION, lw=0.6, alpha=0.55)
    sample_axes.plot(sampled["recall"], sampled["precision"], "o", ms=2.6, color=VERMILION)
    sample_axes.text(
        0.02, 0.06, f"mean of {len(sampled)} samples: {sampled['precision'].mean():.3f}", fontsize=9, color="#333333",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 2.5},
    )  # fmt: skip

    titles = (
        "Objects and detections",
        "As detections come in",
        "Highest precision from there on",
        "Read at 101 recalls",
    )
    for axes, title in zip((scene, raw_axes, smooth_axes, sample_axes), titles, strict=True):
        axes.set_title(title)
    for axes in (raw_axes, smooth_axes, sample_axes):
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.1), xlabel="recall", ylabel="precision")
        axes.set_xticks(np.linspace(0, 1, 6))
        axes.set_yticks(np.linspace(0, 1, 6))
    return figure


def _draw_scene(axes: Axes, raw: ResultTable) -> None:
    truth, found = worked_example()
    for box in truth.boxes:
        _box(axes, box, "#1A1A1A", 1.8)
    for box, row in zip(found.boxes, raw.rows(), strict=True):
        right = row["correct"] == 1.0
        _box(axes, box, SKY if right else ORANGE, 2.0)
        axes.text(
            (box[0] + box[2]) / 2, (box[1] + box[3]) / 2, f"{row['confidence']:.2f}",
            ha="center", va="center", fontsize=9, color="#1F78A8" if right else "#9A6A00",
        )  # fmt: skip
    axes.set_xlim(0, int(truth.dataset.widths[0]))
    axes.set_ylim(int(truth.dataset.heights[0]), 0)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(True)
