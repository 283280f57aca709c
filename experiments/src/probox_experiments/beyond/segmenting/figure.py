"""The four reports and what they score, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from probox.convention import Convention
from probox.measures.pdq.kernel import heatmap
from probox_experiments.beyond.segmenting.claims import scores
from probox_experiments.beyond.segmenting.scenes import REPORTS, Shapes, detections
from probox_experiments.figures import BLUE, GREEN, GREY, ORANGE, VERMILION, new_figure
from probox_experiments.peaks import mean_of
from probox_experiments.scenes import plane_scene
from probox_experiments.table import ResultTable, presets_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_segmentation"]

COLOURS = dict(zip(REPORTS, (VERMILION, ORANGE, GREEN, BLUE), strict=True))
SHOWN_ERROR = 7.0
"""Of the pictures, in pixels."""


def draw_segmentation(table: ResultTable) -> Figure:
    """Draw a plane that was seen in the wrong place as each report has it, and PDQ against the reported sigma."""
    figure = new_figure(8.0, 6.8)
    halves: Any = figure.subfigures(2, 1, height_ratios=[0.62, 2.5])
    pictures, curves = halves
    _reports(pictures.subplots(1, 4))
    panels = curves.subplots(2, 2, sharex=True, sharey=True)
    for row, scene in zip(panels, ("moved", "jittered"), strict=True):
        for axes, outside in zip(row, ("mask", "box"), strict=True):
            _curves(axes, table.where(scene=scene), outside)
            what = "moved masks" if scene == "moved" else "jittered blobs"
            axes.set_title(f"{what.capitalize()}, background outside the {outside}")
            if scene == "jittered":
                axes.set_xlabel("reported sigma / true sigma")
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, lw=1.7, label=report) for report, colour in COLOURS.items()]
    if others := [preset for preset in presets_in(table) if preset != "reference"]:
        handles.append(Line2D([], [], color=GREY, lw=0.9, ls="--", label=f"under {' and '.join(others)}"))
    curves.legend(handles=handles, loc="outside lower center", ncols=5)
    return figure


def _reports(panels: np.ndarray[tuple[int], np.dtype[np.object_]]) -> None:
    plane = plane_scene()
    width, height = plane.dataset.shapes[0].tolist()
    mask = plane.masks.to_array(0, height, width)
    x1, y1, x2, y2 = plane.masks.boxes[0].tolist()
    scene = Shapes([mask[y1 : y2 + 1, x1 : x2 + 1]], SHOWN_ERROR).moved([3])
    truth = scene.truth.masks.to_array(0, *scene.found[0].shape)
    for axes, report in zip(panels, REPORTS, strict=True):
        found = detections(scene, report, SHOWN_ERROR)
        if found.heatmaps is not None and found.heatmaps[0] is not None:
            shown = np.asarray(found.heatmaps[0], dtype=np.float64)
        else:
            covariances = None if found.covariances is None else found.covariances[0]
            rows, columns = truth.shape
            shown = heatmap(found.boxes[0], covariances, columns, rows, Convention.preset("paper"))
        axes.imshow(shown, cmap="Blues", vmin=0, vmax=1.25, interpolation="nearest")
        axes.contour(truth, levels=[0.5], colors="#1A1A1A", linewidths=0.6)
        axes.set_title(report.capitalize(), fontsize=9, color=COLOURS[report])
        axes.axis("off")


def _curves(axes: Axes, rows: ResultTable, outside: str) -> None:
    axes.axvline(1, color="#C9C9C9", lw=0.9, zorder=0.5)
    for preset, column in presets_in(rows).items() if len(rows) else ():
        line: dict[str, Any] = {"ls": "-", "lw": 1.7} if preset == "reference" else {"ls": "--", "lw": 0.9}
        for report in REPORTS:
            means = {ratio: mean_of(own).value for ratio, own in scores(rows, report, outside, column).items()}
            if list(means) == [0.0]:
                axes.axhline(means[0.0], color=COLOURS[report], **line)
            elif means:
                axes.plot(list(means), list(means.values()), color=COLOURS[report], **line)
    axes.set_xscale("log")
    axes.set_xticks([0.7, 1, 1.5, 2, 3, 5, 8], ["0.7", "1", "1.5", "2", "3", "5", "8"])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_ylabel("PDQ")
