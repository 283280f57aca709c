"""What uncertainty in the right and in the wrong place is worth: appendices A.2 and A.4 of the paper, told again.

The paper shows photos with the detections of MC-Dropout SSD, YOLOv3 and FRCNN X+FPN, which are not public. Here objects
and detections are made up so that each story can be told with numbers that are known.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.pictures.drawing import add_ellipses
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import (
    EXACT,
    Claim,
    Floats,
    ResultTable,
    Verdict,
    close_enough,
    column_of,
    judge_presets,
    not_measured,
    presets_in,
)
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, ORANGE, Axes, Figure, draw_box, draw_object, new_figure
from probox_experiments.paper.closed_form import agrees, box_map, foreground_background
from probox_experiments.running import Run
from probox_experiments.synthetic import tight_box

# --- Made-up objects and detections for the stories of the paper's appendices A.2 and A.4 ---

Mask = npt.NDArray[np.bool_]

EDGES = ("left", "top", "right", "bottom")
CLASSES = ("thing", "another thing")


@dataclasses.dataclass(frozen=True)
class ExampleCase:
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
    off: Sequence[float]
    sigmas: Sequence[float] = (0.0, 0.0, 0.0, 0.0)
    correlations: Sequence[float] = (0.0, 0.0)
    probability: float = 1.0

    @property
    def box(self) -> Floats:
        """Return the box, which ends with its last pixel."""
        return np.asarray(tight_box(SCENES[self.scene]()) + np.array([-1, -1, 1, 1]) * self.off)

    @property
    def covariances(self) -> Floats:
        """Return the covariances of both corners."""
        corners = zip(self.sigmas[::2], self.sigmas[1::2], self.correlations, strict=True)
        return np.array([[[x * x, rho * x * y], [rho * x * y, y * y]] for x, y, rho in corners])

    @property
    def overlap(self) -> float:
        """Return the intersection over union of both boxes."""
        (x1, y1, x2, y2), (u1, v1, u2, v2) = self.box, tight_box(SCENES[self.scene]())
        both = (min(x2, u2) - max(x1, u1) + 1) * (min(y2, v2) - max(y1, v1) + 1)
        return float(both / ((x2 - x1 + 1) * (y2 - y1 + 1) + (u2 - u1 + 1) * (v2 - v1 + 1) - both))

    def probability_map(self) -> Floats:
        """Return the probability of every pixel as preset `paper` has it, worked out by hand."""
        height, width = SCENES[self.scene]().shape
        return box_map(self.box, self.covariances, width, height)


def list_examples(sure: float, error: float, correlation: float) -> list[ExampleCase]:
    """Return all stories; the settings are those of `evaluate_examples`."""
    # The arm to the left is missed, the box ends below the feet.
    general = (-14.0, 0.0, 0.0, 12.0)
    told = [
        ExampleCase("general", "little uncertainty", "person", general, (1, 1, 1, 1)),
        ExampleCase("general", "on the right edges", "person", general, (14, 1, 1, 12)),
        ExampleCase("general", "x and y exchanged", "person", general, (1, 14, 12, 1)),
        ExampleCase("general", "corners exchanged", "person", general, (1, 12, 14, 1)),
        ExampleCase("over-confident", "sure of the wrong edge", "person", (2, 2, 2, -100), (6, 6, 6, sure)),
        ExampleCase("over-confident", "unsure of it, too", "person", (2, 2, 2, -100), (6, 6, 6, 100)),
        ExampleCase("under-confident", "good box, unsure edge", "laptop", (0, 0, 1, 1), (1, 1, 40, 1)),
        ExampleCase("under-confident", "poorer box, honest", "person", (3, -4, -4, 3), (3, 4, 4, 3)),
        ExampleCase("chair", "surer label", "chair", (8, 2, 12, 4), probability=0.95),
        ExampleCase("chair", "better box", "chair", (0, 0, 1, 0), probability=0.7),
        ExampleCase("pizza", "surer label", "pizza", (5, 2, 9, 2), probability=0.95),
        ExampleCase("pizza", "better box", "pizza", (2, 0, 2, 1), probability=0.7),
    ]
    for story, sign in (("edge too near", -1.0), ("edge too far", 1.0)):
        for wrong, name in enumerate(EDGES):
            for unsure, other in enumerate(EDGES):
                off, sigmas = [0.0] * 4, [sure] * 4
                off[wrong], sigmas[unsure] = sign * error, error
                told.append(ExampleCase(story, f"{name} wrong, {other} unsure", "square", off, sigmas))
    for story, sign in (("corner too near", -1.0), ("corner too far", 1.0)):
        for corner, name in enumerate(("top left", "bottom right")):
            for rho in (correlation, -correlation):
                off, sigmas, correlations = [0.0] * 4, [sure] * 4, [0.0, 0.0]
                off[2 * corner : 2 * corner + 2] = [sign * error] * 2
                sigmas[2 * corner : 2 * corner + 2] = [error] * 2
                correlations[corner] = rho
                detection = f"{name}, correlation {rho:+g}"
                told.append(ExampleCase(story, detection, "small square", off, sigmas, correlations))
    return told


def detections(told: Sequence[ExampleCase]) -> Detections:
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


def _places(width: int, height: int) -> tuple[Floats, Floats]:
    """Return x and y of the middles of all pixels."""
    y, x = np.mgrid[0:height, 0:width] + 0.5
    return x, y


@cache
def person() -> Mask:
    """Return somebody who stands with the arms a little away."""
    x, y = _places(200, 320)
    x = np.abs(x - 100.0)
    head = (x / 13) ** 2 + ((y - 66) / 16) ** 2 < 1
    body = (x < 22) & (y > 80) & (y < 142)
    legs = (np.abs(x - 12) < 9) & (y >= 142) & (y < 214)
    arms = (np.abs(x - (22 + 0.3 * (y - 82))) < 5) & (y > 82) & (y < 142)
    return np.asarray(head | body | legs | arms)


@cache
def laptop() -> Mask:
    """Return an open laptop: a screen, and a keyboard that comes forward."""
    x, y = _places(260, 170)
    x = np.abs(x - 110.0)
    screen = (x < 46) & (y > 45) & (y < 100)
    keys = (x < 46 + 0.5 * (y - 100)) & (y >= 100) & (y < 122)
    return np.asarray(screen | keys)


@cache
def chair() -> Mask:
    """Return a chair from the side: mostly not chair."""
    x, y = _places(150, 160)
    back = (x > 45) & (x < 54) & (y > 30) & (y < 84)
    seat = (x > 45) & (x < 103) & (y >= 84) & (y < 96)
    legs = (np.abs(np.abs(x - 74) - 25) < 4) & (y >= 96) & (y < 130)
    return np.asarray(back | seat | legs)


@cache
def pizza() -> Mask:
    """Return a pizza: nearly all of its box."""
    x, y = _places(190, 140)
    return np.asarray(((x - 92) / 60) ** 2 + ((y - 70) / 45) ** 2 < 1)


@cache
def square() -> Mask:
    """Return a square in the middle of a square image: no direction differs from another."""
    mask = np.zeros((140, 140), dtype=bool)
    mask[40:100, 40:100] = True
    return mask


@cache
def small_square() -> Mask:
    """Return a square so small that its corners matter."""
    mask = np.zeros((120, 120), dtype=bool)
    mask[48:72, 48:72] = True
    return mask


SCENES: Mapping[str, Callable[[], Mask]] = {
    "person": person,
    "laptop": laptop,
    "chair": chair,
    "pizza": pizza,
    "square": square,
    "small square": small_square,
}
"""The objects, each in an image of its own."""


# --- The figure of the stories: objects, boxes and ellipses side by side, each with its spatial quality ---

BANDS: Sequence[Sequence[tuple[str, str, Sequence[str]]]] = (
    # Title, story and detections of each half.
    [
        (
            "General: the arm is missed, the box ends below the feet",
            "general",
            ("little uncertainty", "on the right edges", "x and y exchanged", "corners exchanged"),
        )
    ],
    [
        ("Over-confident", "over-confident", ("sure of the wrong edge", "unsure of it, too")),
        ("Under-confident", "under-confident", ("good box, unsure edge", "poorer box, honest")),
    ],
    [(f"Labels: {story}", story, ("surer label", "better box")) for story in ("chair", "pizza")],
    [(f"Corner too {how}", f"corner too {how}", ("+", "-")) for how in ("near", "far")],
)


GRIDS = {"edge too near": "One edge too near", "edge too far": "One edge too far"}


def draw_examples(table: ResultTable) -> Figure:
    """Draw every story, and below them a table of wrong and unsure edges."""
    figure = new_figure(7.4, 12.2)
    figure.suptitle("Made-up detections and their spatial quality", x=0.005, ha="left", fontsize=12.5)
    bands: Any = figure.subfigures(len(BANDS) + 1, 1, height_ratios=(1.45, 1.45, 1.0, 1.05, 1.25), hspace=0.02)
    for band, parts in zip(bands, BANDS, strict=False):
        halves = np.atleast_1d(band.subfigures(1, len(parts)))
        for half, (title, story, panels) in zip(halves, parts, strict=True):
            half.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
            for axes, detection in zip(half.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
                _draw_panel(axes, table, story, detection)
    for half, (story, title) in zip(bands[-1].subfigures(1, 2), GRIDS.items(), strict=True):
        half.suptitle(f"{title}, %", x=0.01, ha="left", fontsize=10.5, fontweight="bold")
        _draw_grid(half.add_subplot(), table, story)
    return figure


def _draw_panel(axes: Axes, table: ResultTable, story: str, detection: str) -> None:
    """Draw one detection with its object."""
    told, title = table.where(story=story), detection
    if detection in ("+", "-"):  # the first corner with such a correlation
        told = told.take(np.flatnonzero(np.sign(told["correlation"]) == float(f"{detection}1"))[:1])
        title = f"correlation {told['correlation'][0]:+g}" if len(told) else " "
    else:
        told = told.where(detection=detection)
    axes.set_axis_off()
    axes.set_title(title, y=1.0, fontsize=8.5, fontweight="normal")
    if not len(told):
        return
    (row,) = told.rows()
    scenes = {(one.story, one.detection): one.scene for one in list_examples(1, 1, 0.5)}
    scene = scenes.get((story, detection), "small square")
    mask = SCENES[scene]()
    height, width = mask.shape
    edges = np.array([0.0, 0.0, 1.0, 1.0])  # boxes end with their last pixel
    truth, box = tight_box(mask) + edges, np.array([row[name] for name in ("x1", "y1", "x2", "y2")]) + edges
    x1, y1, x2, y2 = truth.astype(int)
    draw_object(axes, mask[y1:y2, x1:x2], (x1, y1))
    draw_box(axes, truth, BLUE, 1.1)
    draw_box(axes, box, ORANGE, 1.6)
    colour = np.array([[int(ORANGE[at : at + 2], 16) / 255 for at in (1, 3, 5)]] * 2)
    add_ellipses(axes, box.reshape(2, 2), _covariances(row), colour, np.ones(2), ["top-left", "bottom-right"])
    whole = np.concatenate([np.minimum(truth, box)[:2], np.maximum(truth, box)[2:]])
    margin = (0.4 if scene == "small square" else 0.16) * float((whole[2:] - whole[:2]).max())
    axes.set_xlim(max(whole[0] - margin, 0), min(whole[2] + margin, width))
    axes.set_ylim(min(whole[3] + margin, height), max(whole[1] - margin, 0))
    axes.text(0.5, -0.02, _quality(table, row), transform=axes.transAxes, ha="center", va="top", fontsize=8)


def _covariances(row: Mapping[str, Any]) -> Floats:
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


BOTH = "both"
TOLD_OF_LABELS = ("chair", "pizza")
NUMBERS = ("foreground", "background", "spatial", "label", "TP", "FP")

SNAPPED = 1e-8
"""The spatial quality from which on preset `reference` sees none."""


def evaluate_examples(
    *, sure: float = 0.5, error: float = 6.0, correlation: float = 0.8, run: Run | None = None
) -> ResultTable:
    """Measure detections that are unsure where they err, elsewhere, or nowhere (A.2), and such with labels (A.4).

    Parameters
    ----------
    sure : float
        The standard deviation of an edge that a detection is sure of, in pixels.
    error : float
        How far off the one wrong edge or corner is in the stories about edges and corners, and how unsure an edge is.
    correlation : float
        Between x and y of the wrong corner; its opposite, too.
    run : Run, optional
        How points are measured.

    Returns
    -------
    ResultTable
        `story`, `detection`; the box, `sigma_left` and so on, `correlation` (of the corner that has one),
        `probability` of the object's class, `IoU`, `AP50` (A.4 only); `PDQ`, `foreground`, `background`, `spatial`,
        `label`, `TP`, `FP`, each also `..._paper`; `by_hand_foreground_paper`, `by_hand_background_paper`. The
        detection called both is two at once.
    """
    for name, value, low, high in (("sure", sure, 0.0, 100.0), ("error", error, 0.0, 40.0)):
        if not low < value <= high:
            raise InputError(f"expected {name} above {low:g} and at most {high:g} pixels, but got {value:g}")
    if not 0.0 < correlation < 1.0:
        raise InputError(f"expected correlation between 0 and 1, but got {correlation:g}")
    run = run or Run()
    each_told = list_examples(sure, error, correlation)
    told = {(one.story, one.detection): [one] for one in each_told}
    told |= {(story, BOTH): [one for one in each_told if one.story == story] for story in TOLD_OF_LABELS}

    def point(story: str, detection: str) -> dict[str, Any]:
        shown = told[story, detection]
        truth, found = scene_truth(shown[0].scene), detections(shown)
        measured = run.measure(truth, found, also=NUMBERS, measures=())
        described, by_hand = _describe(shown, run)
        return {**described, **measured, **by_hand}

    points = [{"story": story, "detection": detection} for story, detection in told]
    return run.table("stories", points, point, sure=sure, error=error, correlation=correlation)


def _describe(told: Sequence[ExampleCase], run: Run) -> tuple[dict[str, float], dict[str, float]]:
    """Return what the detection is, nothing if it is two at once, and its qualities under `paper`, by hand."""
    from probox.measures.boxes import average_precision

    ap50 = math.nan
    if told[0].story in TOLD_OF_LABELS:
        ap50 = average_precision(scene_truth(told[0].scene), detections(told), threads=run.threads).ap50
    names = ["x1", "y1", "x2", "y2", *(f"sigma_{edge}" for edge in EDGES), "correlation", "probability", "IoU"]
    values, by_hand = [math.nan] * len(names), (math.nan, math.nan)
    if len(told) == 1:
        (one,) = told
        values = [*one.box.tolist(), *map(float, one.sigmas), sum(one.correlations), one.probability, one.overlap]
        by_hand = foreground_background(one.probability_map(), SCENES[one.scene]())
    described = dict(zip(names, values, strict=True)) | {"AP50": ap50}
    if "paper" not in run.presets:
        return described, {}
    return described, {f"by_hand_{name}_paper": value for name, value in zip(NUMBERS[:2], by_hand, strict=True)}


def claims_of_examples(table: ResultTable) -> list[Claim]:
    """Judge every story, and all numbers under `paper` by those that were worked out by hand."""
    if len(table) < TOLD:
        return [not_measured("Every story comes out as it is told", f"all {TOLD} detections of the stories")]
    right = ("general", "on the right edges")
    return [
        agrees(
            "Foreground and background quality of every detection are those worked out by hand",
            table,
            ("foreground", "background"),
        ),
        _geometric_means(table),
        _leads(
            "General: a box that misses an arm and goes too far below the feet does worse with little uncertainty than "
            "with uncertainty on these two edges",
            table,
            right,
            ("general", "little uncertainty"),
        ),
        _leads(
            "General: the same uncertainty in y instead of x, or at the other corner, is worth less",
            table,
            right,
            ("general", "x and y exchanged"),
            ("general", "corners exchanged"),
        ),
        _wrong_edges(table),
        _directions(table),
        _over_confident(table),
        _better_box_loses(table),
        *_labels(table),
        _corners(table, "corner too near", 1),
        _corners(table, "corner too far", -1),
    ]


TOLD = 54
"""How many rows there are: each story needs all of its detections."""
Place = tuple[str, str]


def _value(table: ResultTable, place: Place, column: str) -> float:
    """Return a number of a detection; NaN if it is not there."""
    found = table.where(story=place[0], detection=place[1])
    return float(found[column][0]) if len(found) and column in found else math.nan


def _geometric_means(table: ResultTable) -> Claim:
    """Judge pPDQ = sqrt(FG BG Q_L) where a detection alone is a true positive."""
    claim = "pPDQ is the square root of foreground, background and label quality multiplied"
    alone = table.take(table["detection"] != BOTH)
    apart: dict[str, float] = {}
    for preset, column in presets_in(alone).items():
        matched = alone.take(alone[column_of("TP", preset)] == 1)
        if not len(matched):
            continue
        foreground, background, label = (
            matched[column_of(name, preset)] for name in ("foreground", "background", "label")
        )
        distance = np.abs(matched[column] - np.sqrt(foreground * background * matched["probability"]))
        labels = np.abs(label - matched["probability"])
        apart[f"`{preset}`"] = float(np.maximum(distance, labels).max(initial=0.0))
    if not apart:
        return not_measured(claim, "PDQ of a true positive")
    return close_enough(claim, apart)


def _leads(claim: str, table: ResultTable, best: Place, *others: Place) -> Claim:
    """Return the claim that a detection has the higher PDQ under every preset."""

    def judge(preset: str, column: str) -> Verdict:
        lead, rest = _value(table, best, column), [_value(table, other, column) for other in others]
        words = f"{lead:.3f} against {', '.join(f'{value:.3f}' for value in rest)} under `{preset}`"
        numbers = {f"{best[1]}, {preset}": lead, f"next, {preset}": max(rest)}
        return all(lead > value + EXACT for value in rest), words, numbers

    return judge_presets(claim, table, "higher, under every preset", judge, shown="PDQ {}")


def _grid(table: ResultTable, story: str, column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a number for each wrong edge, in rows, and each unsure one."""
    places = [[(story, f"{wrong} wrong, {unsure} unsure") for unsure in EDGES] for wrong in EDGES]
    return np.array([[_value(table, place, column) for place in row] for row in places])


EDGE_STORIES = ("edge too near", "edge too far")


def _wrong_edges(table: ResultTable) -> Claim:
    """Judge that uncertainty is worth most on the edge that is wrong, whichever it is."""
    claim = (
        "If one edge is wrong, uncertainty on that edge is worth more than the same on any other, for all four edges"
    )
    least: dict[str, float] = {}
    for preset, column in presets_in(table).items():
        for story in EDGE_STORIES:
            grid = _grid(table, story, column)
            others = np.where(np.eye(4, dtype=bool), -np.inf, grid).max(axis=1)
            least[f"{story}, {preset}"] = float((np.diag(grid) - others).min())
    if not least:
        return not_measured(claim, "PDQ")
    return Claim(
        claim,
        all(lead > EXACT for lead in least.values()),
        "least lead: " + ", ".join(f"{words} {lead:.3f}" for words, lead in least.items()),
        "above 0 in all 8 rows of 4, under every preset",
        least,
    )


def _directions(table: ResultTable) -> Claim:
    """Judge that a scene turned or mirrored has the same PDQ: by the same, the opposite or a neighbouring edge."""
    claim = "Which of the four edges it is makes no difference: turned and mirrored scenes have the same PDQ"
    turns = np.array([[(unsure - wrong) % 4 for unsure in range(4)] for wrong in range(4)])
    apart: dict[str, float] = {}
    for preset, column in presets_in(table).items():
        grids = [_grid(table, story, column) for story in EDGE_STORIES]
        kinds = ([0], [2], [1, 3])
        apart[preset] = max(float(np.ptp(grid[np.isin(turns, kind)])) for grid in grids for kind in kinds)
    if "paper" not in apart:
        return not_measured(claim, "PDQ under `paper`")
    return Claim(
        claim,
        apart["paper"] <= EXACT,
        "largest difference: " + ", ".join(f"{value:.2g} under `{preset}`" for preset, value in apart.items()),
        f"at most {EXACT:g} under `paper`",
        apart,
        "Under `reference` the two neighbours differ: a corner's map stays below 1 right of its region of interest and "
        "below it, is 1 where both, and so goes with the shape of the region.",
    )


def _over_confident(table: ResultTable) -> Claim:
    """Judge that uncertainty elsewhere does not save a detection that is sure of its wrong edge."""
    sure, unsure = ("over-confident", "sure of the wrong edge"), ("over-confident", "unsure of it, too")

    def judge(preset: str, column: str) -> Verdict:
        numbers = {f"PDQ, {preset}": _value(table, sure, column)}
        if preset == "paper":  # the equations leave a little of everything
            spatial, other = (_value(table, place, "spatial_paper") for place in (sure, unsure))
            words = f"spatial quality {spatial:.1g} under `paper`, {other:.3f} if unsure of it"
            return spatial <= SNAPPED < other, words, numbers
        false, other = _value(table, sure, column_of("FP", preset)), _value(table, unsure, column_of("TP", preset))
        words = f"{false:.0f} false positive under `{preset}`, {other:.0f} true positive if unsure of it"
        return false == 1 and other == 1, words, numbers

    return judge_presets(
        "Over-confident: uncertainty on three edges does not help if the fourth is sure and wrong: a false positive",
        table,
        f"a false and a true positive; spatial quality at most {SNAPPED:g}, and above, under `paper`",
        judge,
    )


def _better_box_loses(table: ResultTable) -> Claim:
    """Judge that too much uncertainty costs more than a poorer box."""
    good, poor = ("under-confident", "good box, unsure edge"), ("under-confident", "poorer box, honest")
    lead = _leads(
        "Under-confident: a nearly perfect box with one very unsure edge does worse than a poorer box with honest "
        "uncertainty",
        table,
        poor,
        good,
    )
    if lead.holds is None:
        return lead
    overlaps = (_value(table, good, "IoU"), _value(table, poor, "IoU"))
    return Claim(
        lead.claim,
        lead.holds and overlaps[0] > overlaps[1],
        f"IoU {overlaps[0]:.3f} and {overlaps[1]:.3f}, {lead.measured}",
        "a higher IoU, and a lower PDQ under every preset",
        {**lead.numbers, "IoU, unsure": overlaps[0], "IoU, honest": overlaps[1]},
    )


def _labels(table: ResultTable) -> list[Claim]:
    """Judge that a better box outweighs a surer label, for PDQ but not for AP50 (A.4)."""
    surer, better = ([(story, which) for story in TOLD_OF_LABELS] for which in ("surer label", "better box"))
    leads = [
        _leads(
            f"Labels: the {story} with the better box has the higher pPDQ, though its label is less sure", table, b, a
        )
        for story, a, b in zip(TOLD_OF_LABELS, surer, better, strict=True)
    ]
    ap50 = [_value(table, place, "AP50") for place in (*surer, *better)]
    false = _value(table, surer[0], "FP")
    claim = (
        "Labels: the chair with the surer label is a false positive under `reference`, that with the better box is not"
    )
    counted = Claim(
        claim,
        false == 1 and _value(table, better[0], "TP") == 1,
        f"{false:.0f} false positive, and {_value(table, better[0], 'TP'):.0f} true positive",
        "one each",
        {"FP": false},
    )
    return [
        *leads,
        counted if "reference" in presets_in(table) else not_measured(claim, "PDQ under `reference`"),
        Claim(
            "Labels: AP50 counts all four as entirely correct",
            all(value >= 1 - EXACT for value in ap50),
            f"AP50 {', '.join(f'{value:.6g}' for value in ap50)}",
            "1",
            {"lowest AP50": min(ap50)},
        ),
        _claim_matched(table),
    ]


def _claim_matched(table: ResultTable) -> Claim:
    """Judge that of two detections the better placed is matched, where mAP takes the surer."""
    claim = "Labels: of both at once the better box is matched, not the surer label, and PDQ is half of its pPDQ"
    apart: dict[str, float] = {}
    for preset, column in presets_in(table).items():
        for story in TOLD_OF_LABELS:
            both, better = (story, BOTH), (story, "better box")
            label = _value(table, both, column_of("label", preset)) - _value(table, better, "probability")
            half = _value(table, both, column) - _value(table, better, column) / 2
            apart[f"{story}, {preset}"] = max(abs(label), abs(half))
    if not apart:
        return not_measured(claim, "PDQ")
    return Claim(
        claim,
        all(value <= EXACT for value in apart.values()),
        f"label quality and PDQ differ from that by at most {max(apart.values()):.2g}",
        f"at most {EXACT:g}, under every preset",
        apart,
    )


def _corners(table: ResultTable, story: str, sign: int) -> Claim:
    """Judge what a correlation is worth at a corner that errs along the diagonal.

    A pixel is covered if the corner lies up *and* left of it, which is the more probable the more both go together, at
    every pixel. So foreground quality rises with the correlation and background quality falls.
    """
    rows = table.where(story=story)
    wanted = {"PDQ": sign, "foreground": 1, "background": -1}
    positive, negative = (rows.take(np.sign(rows["correlation"]) == each) for each in (1, -1))

    def judge(preset: str, column: str) -> Verdict:
        columns = {name: column_of(name, preset) for name in wanted}
        gains = {name: positive[each] - negative[each] for name, each in columns.items()}
        holds = all(bool((wanted[name] * gain > EXACT).all()) and len(gain) == 2 for name, gain in gains.items())
        worst = {name: float(gain[np.argmin(wanted[name] * gain)]) for name, gain in gains.items()}
        words = ", ".join(f"{name} {value:+.3f}" for name, value in worst.items()) + f" under `{preset}`"
        return holds, words, {f"{name}, {preset}": value for name, value in worst.items()}

    return judge_presets(
        f"Correlation: a corner too {'near' if sign > 0 else 'far'} by as much in x as in y does better with "
        f"{'positive' if sign > 0 else 'negative'} correlation; at both corners the foreground gains by a positive one "
        "and the background loses",
        rows,
        f"PDQ {'+' if sign > 0 else '-'}, foreground +, background -, at both corners, under every preset",
        judge,
        shown="a positive correlation changes {}",
    )


EXAMPLES = Experiment(
    name="stories",
    section="A.2, A.4",
    varied="where made-up detections are unsure, beside where they are wrong, and how sure they are of labels",
    claim="uncertainty pays on the edge that is wrong, and nowhere else; a better box outweighs a surer label",
    function=evaluate_examples,
    judge=claims_of_examples,
    draw=draw_examples,
)
