"""Made-up objects and detections for the stories of the paper's appendices A.2 and A.4."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.pictures.corners import add_ellipses
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import ResultTable, column_of, presets_in
from probox_experiments.figures import BLUE, ORANGE, draw_box, new_figure
from probox_experiments.paper.closed_form import box_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- Made-up objects and detections for the stories of the paper's appendices A.2 and A.4 ---

Mask = npt.NDArray[np.bool_]

EDGES = ("left", "top", "right", "bottom")
CLASSES = ("thing", "another thing")


@dataclasses.dataclass(frozen=True)
class Story:
    """A detection of a story, said by how it differs from the box around its object.

    Parameters
    ----------
    story, detection : str
        Which one.
    scene : str
        The object.
    off : (4,)
        How far the left, top, right and bottom edge lie outside the object's box, in pixels; inside if negative.
    sigmas : (4,)
        The standard deviations of these edges; all 0 for a plain box.
    correlations : (2,)
        Of x and y of the top-left and of the bottom-right corner.
    probability : float
        Of the object's class.
    """

    story: str
    detection: str
    scene: str
    off: tuple[float, float, float, float]
    sigmas: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    correlations: tuple[float, float] = (0.0, 0.0)
    probability: float = 1.0

    @property
    def box(self) -> npt.NDArray[np.float64]:
        """Return the box, which ends with its last pixel."""
        return np.asarray(tight_box(SCENES[self.scene]()) + np.array([-1, -1, 1, 1]) * self.off)

    @property
    def covariances(self) -> npt.NDArray[np.float64]:
        """Return the covariances of both corners."""
        corners = zip(self.sigmas[::2], self.sigmas[1::2], self.correlations, strict=True)
        return np.array([[[x * x, rho * x * y], [rho * x * y, y * y]] for x, y, rho in corners])

    @property
    def overlap(self) -> float:
        """Return the intersection over union of both boxes."""
        (x1, y1, x2, y2), (u1, v1, u2, v2) = self.box, tight_box(SCENES[self.scene]())
        both = (min(x2, u2) - max(x1, u1) + 1) * (min(y2, v2) - max(y1, v1) + 1)
        return float(both / ((x2 - x1 + 1) * (y2 - y1 + 1) + (u2 - u1 + 1) * (v2 - v1 + 1) - both))

    def probability_map(self) -> npt.NDArray[np.float64]:
        """Return the probability of every pixel as preset `paper` has it, worked out by hand."""
        height, width = SCENES[self.scene]().shape
        return box_map(self.box, self.covariances, width, height)


def list_stories(sure: float, error: float, correlation: float) -> list[Story]:
    """Return all stories.

    Parameters
    ----------
    sure : float
        The standard deviation of an edge that a detection is sure of.
    error : float
        How far off the one wrong edge or corner is, in the stories of edges and corners; also its standard deviation.
    correlation : float
        Of the wrong corner's x and y; its opposite, too.
    """
    # The arm to the left is missed, the box ends below the feet.
    general = (-14.0, 0.0, 0.0, 12.0)
    told = [
        Story("general", "little uncertainty", "person", general, (1, 1, 1, 1)),
        Story("general", "on the right edges", "person", general, (14, 1, 1, 12)),
        Story("general", "x and y exchanged", "person", general, (1, 14, 12, 1)),
        Story("general", "corners exchanged", "person", general, (1, 12, 14, 1)),
        Story("over-confident", "sure of the wrong edge", "person", (2, 2, 2, -100), (6, 6, 6, sure)),
        Story("over-confident", "unsure of it, too", "person", (2, 2, 2, -100), (6, 6, 6, 100)),
        Story("under-confident", "good box, unsure edge", "laptop", (0, 0, 1, 1), (1, 1, 40, 1)),
        Story("under-confident", "poorer box, honest", "person", (3, -4, -4, 3), (3, 4, 4, 3)),
        Story("chair", "surer label", "chair", (8, 2, 12, 4), probability=0.95),
        Story("chair", "better box", "chair", (0, 0, 1, 0), probability=0.7),
        Story("pizza", "surer label", "pizza", (5, 2, 9, 2), probability=0.95),
        Story("pizza", "better box", "pizza", (2, 0, 2, 1), probability=0.7),
    ]
    for story, sign in (("edge too near", -1.0), ("edge too far", 1.0)):
        for wrong, name in enumerate(EDGES):
            for unsure, other in enumerate(EDGES):
                off, sigmas = [0.0] * 4, [sure] * 4
                off[wrong], sigmas[unsure] = sign * error, error
                told.append(Story(story, f"{name} wrong, {other} unsure", "square", _four(off), _four(sigmas)))
    for story, sign in (("corner too near", -1.0), ("corner too far", 1.0)):
        for corner, name in enumerate(("top left", "bottom right")):
            for rho in (correlation, -correlation):
                off, sigmas, correlations = [0.0] * 4, [sure] * 4, [0.0, 0.0]
                off[2 * corner : 2 * corner + 2] = [sign * error] * 2
                sigmas[2 * corner : 2 * corner + 2] = [error] * 2
                correlations[corner] = rho
                told.append(
                    Story(
                        story,
                        f"{name}, correlation {rho:+g}",
                        "small square",
                        _four(off),
                        _four(sigmas),
                        (correlations[0], correlations[1]),
                    )
                )
    return told


def _four(values: list[float]) -> tuple[float, float, float, float]:
    first, second, third, fourth = values
    return first, second, third, fourth


def detections(told: list[Story]) -> Detections:
    """Return the detections of one image as a table."""
    return Detections(
        classes=CLASSES,
        image_ids=np.ones(len(told), np.int64),
        boxes=np.array([each.box for each in told]),
        extents=np.array([each.box[2:] - each.box[:2] + 1.0 for each in told]),
        label_probs=np.array([[each.probability, 1.0 - each.probability] for each in told], np.float32),
        covariances=np.array([each.covariances for each in told]),
    )


@cache
def scene_truth(scene: str) -> GroundTruth:
    """Return an object alone in its image."""
    truth = GroundTruth.from_masks(CLASSES, [(1, [SCENES[scene]()], [0])])
    return truth.replace(boxes=truth.masks.boxes + np.array([0.0, 0.0, 1.0, 1.0]), extents=None)


def tight_box(mask: Mask) -> npt.NDArray[np.float64]:
    """Return the box around some pixels, which ends with its last pixel."""
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    return np.array([columns[0], rows[0], columns[-1], rows[-1]], dtype=np.float64)


def _places(width: int, height: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return x and y of the middles of all pixels."""
    y, x = np.mgrid[0:height, 0:width] + 0.5
    return x, y


def person() -> Mask:
    """Return somebody who stands with the arms a little away."""
    x, y = _places(200, 320)
    x = np.abs(x - 100.0)
    head = (x / 13) ** 2 + ((y - 66) / 16) ** 2 < 1
    body = (x < 22) & (y > 80) & (y < 142)
    legs = (np.abs(x - 12) < 9) & (y >= 142) & (y < 214)
    arms = (np.abs(x - (22 + 0.3 * (y - 82))) < 5) & (y > 82) & (y < 142)
    return np.asarray(head | body | legs | arms)


def laptop() -> Mask:
    """Return an open laptop: a screen, and a keyboard that comes forward."""
    x, y = _places(260, 170)
    x = np.abs(x - 110.0)
    screen = (x < 46) & (y > 45) & (y < 100)
    keys = (x < 46 + 0.5 * (y - 100)) & (y >= 100) & (y < 122)
    return np.asarray(screen | keys)


def chair() -> Mask:
    """Return a chair from the side: mostly not chair."""
    x, y = _places(150, 160)
    back = (x > 45) & (x < 54) & (y > 30) & (y < 84)
    seat = (x > 45) & (x < 103) & (y >= 84) & (y < 96)
    legs = (np.abs(np.abs(x - 74) - 25) < 4) & (y >= 96) & (y < 130)
    return np.asarray(back | seat | legs)


def pizza() -> Mask:
    """Return a pizza: nearly all of its box."""
    x, y = _places(190, 140)
    return np.asarray(((x - 92) / 60) ** 2 + ((y - 70) / 45) ** 2 < 1)


def square() -> Mask:
    """Return a square in the middle of a square image: no direction differs from another."""
    mask = np.zeros((140, 140), dtype=bool)
    mask[40:100, 40:100] = True
    return mask


def small_square() -> Mask:
    """Return a square so small that its corners matter."""
    mask = np.zeros((120, 120), dtype=bool)
    mask[48:72, 48:72] = True
    return mask


SCENES: Mapping[str, Callable[[], Mask]] = {
    "person": cache(person),
    "laptop": cache(laptop),
    "chair": cache(chair),
    "pizza": cache(pizza),
    "square": cache(square),
    "small square": cache(small_square),
}
"""The objects, each in an image of its own."""


# --- The figure of the stories: objects, boxes and ellipses side by side, each with its spatial quality ---

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
