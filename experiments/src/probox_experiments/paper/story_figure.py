"""The figure of the stories: objects, boxes and ellipses side by side, each with its spatial quality."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.pictures.corners import add_ellipses
from probox_experiments.figures import BLUE, ORANGE, draw_box, new_figure
from probox_experiments.paper.story_scenes import EDGES, SCENES, tight_box
from probox_experiments.table import ResultTable, column_of, presets_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_stories"]

Panel = tuple[str, str, str]
"""A story, a detection and the scene."""

BANDS: Sequence[Sequence[tuple[str, Sequence[Panel]]]] = (
    [
        (
            "General: the arm is missed, the box ends below the feet",
            [
                ("general", detection, "person")
                for detection in ("little uncertainty", "on the right edges", "x and y exchanged", "corners exchanged")
            ],
        )
    ],
    [
        (
            "Over-confident",
            [("over-confident", detection, "person") for detection in ("sure of the wrong edge", "unsure of it, too")],
        ),
        (
            "Under-confident",
            [
                ("under-confident", "good box, unsure edge", "laptop"),
                ("under-confident", "poorer box, honest", "person"),
            ],
        ),
    ],
    [
        ("Labels: chair", [("chair", detection, "chair") for detection in ("surer label", "better box")]),
        ("Labels: pizza", [("pizza", detection, "pizza") for detection in ("surer label", "better box")]),
    ],
    [
        ("Corner too near", [("corner too near", "+", "small square"), ("corner too near", "-", "small square")]),
        ("Corner too far", [("corner too far", "+", "small square"), ("corner too far", "-", "small square")]),
    ],
)
GRIDS = {"edge too near": "One edge too near", "edge too far": "One edge too far"}


def draw_stories(table: ResultTable) -> Figure:
    """Draw every story, and below them a table of wrong and unsure edges."""
    figure = new_figure(7.4, 12.2)
    figure.suptitle("Made-up detections and their spatial quality", x=0.005, ha="left", fontsize=12.5)
    bands: Any = figure.subfigures(len(BANDS) + 1, 1, height_ratios=(1.45, 1.45, 1.0, 1.05, 1.25), hspace=0.02)
    for band, parts in zip(bands, BANDS, strict=False):
        halves = np.atleast_1d(band.subfigures(1, len(parts)))
        for half, (title, panels) in zip(halves, parts, strict=True):
            half.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
            for axes, panel in zip(half.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
                _draw_panel(axes, table, panel)
    for half, (story, title) in zip(bands[-1].subfigures(1, 2), GRIDS.items(), strict=True):
        half.suptitle(f"{title}, %", x=0.01, ha="left", fontsize=10.5, fontweight="bold")
        _draw_grid(half.add_subplot(), table, story)
    return figure


def _draw_panel(axes: Axes, table: ResultTable, panel: Panel) -> None:
    """Draw one detection with its object."""
    story, detection, scene = panel
    told = table.where(story=story)
    if detection in ("+", "-"):  # the first corner with such a correlation
        told = told.take(np.flatnonzero(np.sign(told["correlation"]) == (1 if detection == "+" else -1))[:1])
    else:
        told = told.where(detection=detection)
    axes.set_axis_off()
    axes.set_title(detection if len(detection) > 1 else " ", y=1.0, fontsize=8.5, fontweight="normal")
    if not len(told):
        return
    (row,) = told.rows()
    if len(detection) == 1:
        axes.set_title(f"correlation {row['correlation']:+g}", y=1.0, fontsize=8.5, fontweight="normal")
    mask = SCENES[scene]()
    height, width = mask.shape
    edges = np.array([0.0, 0.0, 1.0, 1.0])  # boxes end with their last pixel
    truth, box = tight_box(mask) + edges, np.array([row[name] for name in ("x1", "y1", "x2", "y2")]) + edges
    x1, y1, x2, y2 = truth.astype(int)
    picture = np.where(mask[y1:y2, x1:x2, None], [0.62, 0.78, 0.90], 1.0)
    axes.imshow(picture, extent=(x1, x2, y2, y1), interpolation="nearest")
    draw_box(axes, truth, BLUE, 1.1)
    draw_box(axes, box, ORANGE, 1.6)
    colour = np.array([[int(ORANGE[at : at + 2], 16) / 255 for at in (1, 3, 5)]] * 2)
    add_ellipses(axes, box.reshape(2, 2), _covariances(row), colour, np.ones(2), ["top-left", "bottom-right"])
    whole = np.concatenate([np.minimum(truth, box)[:2], np.maximum(truth, box)[2:]])
    margin = (0.4 if scene == "small square" else 0.16) * float((whole[2:] - whole[:2]).max())
    axes.set_xlim(max(whole[0] - margin, 0), min(whole[2] + margin, width))
    axes.set_ylim(min(whole[3] + margin, height), max(whole[1] - margin, 0))
    axes.text(0.5, -0.02, _quality(table, row), transform=axes.transAxes, ha="center", va="top", fontsize=8)


def _covariances(row: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """Return the corners' covariances; only the one that is unsure has a correlation."""
    sigmas = np.array([row[f"sigma_{edge}"] for edge in EDGES]).reshape(2, 2)
    unsure = int(sigmas[1].sum() > sigmas[0].sum())
    covariances = np.array([np.diag(corner**2) for corner in sigmas])
    covariances[unsure, [0, 1], [1, 0]] = row["correlation"] * sigmas[unsure].prod()
    return covariances


def _quality(table: ResultTable, row: Mapping[str, Any]) -> str:
    """Return spatial quality under every preset in words, and the label's probability where it matters."""
    words = [
        f"{preset}: " + ("false positive" if math.isnan(row[column]) else f"{_per_cent(row[column])}")
        for preset, column in presets_in(table, "spatial").items()
    ]
    if row["probability"] < 1:
        words.insert(0, f"label {row['probability']:g}")
    return "\n".join(words)


def _per_cent(value: float) -> str:
    return f"{100 * value:.1f} %" if value > 5e-4 else f"{value:.0e}"


def _draw_grid(axes: Axes, table: ResultTable, story: str) -> None:
    """Draw spatial quality for each wrong edge, in rows, and each unsure one."""
    from matplotlib.colors import LinearSegmentedColormap

    presets = list(presets_in(table, "spatial"))
    rows = {row["detection"]: row for row in table.where(story=story).rows()}
    values = np.full((len(presets), 4, 4), math.nan)
    for number, preset in enumerate(presets):
        for wrong, unsure in np.ndindex(4, 4):
            row = rows.get(f"{EDGES[wrong]} wrong, {EDGES[unsure]} unsure")
            values[number, wrong, unsure] = math.nan if row is None else row[column_of("spatial", preset)]
    axes.set_title(", below: ".join(presets) or " ", y=1.0, fontsize=8.5, fontweight="normal")
    axes.grid(False)
    axes.tick_params(length=0)
    axes.set_xticks(range(4), [f"{edge}\nunsure" for edge in EDGES])
    axes.set_yticks(range(4), [f"{edge} wrong" for edge in EDGES])
    for spine in axes.spines.values():
        spine.set_visible(False)
    if not presets:
        return
    blues = LinearSegmentedColormap.from_list("quality", ["#F3F7FA", BLUE])
    axes.imshow(np.nan_to_num(values[0]), cmap=blues, vmin=0, vmax=1, aspect="auto")
    for wrong, unsure in np.ndindex(4, 4):
        shown = [
            "\N{EN DASH}" if math.isnan(value) else f"{100 * value:.1f}" for value in values[:, wrong, unsure].tolist()
        ]
        dark = np.nan_to_num(values[0, wrong, unsure]) > 0.6
        axes.text(
            unsure, wrong, "\n".join(shown), ha="center", va="center", fontsize=8, color="white" if dark else "#222222"
        )
