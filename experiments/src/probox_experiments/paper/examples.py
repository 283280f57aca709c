"""Effect of uncertainty on the right and the wrong edges: examples of the paper's appendices A.2 and A.4.

The paper shows photos with detections of MC-Dropout SSD, YOLOv3 and FRCNN X+FPN, which are not public. Here objects and
detections are synthetic, so the numbers of each example are known.
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
    Judgement,
    ResultTable,
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

# --- Synthetic objects and detections for the examples of the paper's appendices A.2 and A.4 ---

Mask = npt.NDArray[np.bool_]

EDGES = ("left", "top", "right", "bottom")
CLASSES = ("thing", "another thing")


@dataclasses.dataclass(frozen=True)
class ExampleCase:
    """A detection of an example, described by its difference to the box around its object.

    Parameters
    ----------
    example, detection : str
        Names of example and detection.
    scene : str
        Name of the object.
    off : (4,)
        Distance of the left, top, right and bottom edge from the object's box in pixels; positive outside.
    sigmas : (4,)
        Standard deviations of these edges; all 0 without covariance.
    correlations : (2,)
        Correlation of x and y at the top-left and the bottom-right corner.
    probability : float
        Probability of the object's class.
    """

    example: str
    detection: str
    scene: str
    off: Sequence[float]
    sigmas: Sequence[float] = (0.0, 0.0, 0.0, 0.0)
    correlations: Sequence[float] = (0.0, 0.0)
    probability: float = 1.0

    @property
    def box(self) -> Floats:
        """The box, which ends with its last pixel."""
        return np.asarray(tight_box(SCENES[self.scene]()) + np.array([-1, -1, 1, 1]) * self.off)

    @property
    def covariances(self) -> Floats:
        """The covariances of both corners."""
        corners = zip(self.sigmas[::2], self.sigmas[1::2], self.correlations, strict=True)
        return np.array([[[x * x, rho * x * y], [rho * x * y, y * y]] for x, y, rho in corners])

    @property
    def overlap(self) -> float:
        """The intersection over union of both boxes."""
        (x1, y1, x2, y2), (u1, v1, u2, v2) = self.box, tight_box(SCENES[self.scene]())
        both = (min(x2, u2) - max(x1, u1) + 1) * (min(y2, v2) - max(y1, v1) + 1)
        return float(both / ((x2 - x1 + 1) * (y2 - y1 + 1) + (u2 - u1 + 1) * (v2 - v1 + 1) - both))

    def probability_map(self) -> Floats:
        """Return the probability of every pixel under preset `paper`, from the closed form."""
        height, width = SCENES[self.scene]().shape
        return box_map(self.box, self.covariances, width, height)


def list_examples(low_std: float, error: float, correlation: float) -> list[ExampleCase]:
    """Return the detections of all examples; the settings are those of `evaluate_examples`."""
    # The arm to the left is missed, the box ends below the feet.
    general = (-14.0, 0.0, 0.0, 12.0)
    cases = [
        ExampleCase("general", "little uncertainty", "person", general, (1, 1, 1, 1)),
        ExampleCase("general", "on the right edges", "person", general, (14, 1, 1, 12)),
        ExampleCase("general", "x and y exchanged", "person", general, (1, 14, 12, 1)),
        ExampleCase("general", "corners exchanged", "person", general, (1, 12, 14, 1)),
        ExampleCase("overconfident", "confident at the wrong edge", "person", (2, 2, 2, -100), (6, 6, 6, low_std)),
        ExampleCase("overconfident", "uncertain there, too", "person", (2, 2, 2, -100), (6, 6, 6, 100)),
        ExampleCase("underconfident", "good box, uncertain edge", "laptop", (0, 0, 1, 1), (1, 1, 40, 1)),
        ExampleCase("underconfident", "poorer box, calibrated", "person", (3, -4, -4, 3), (3, 4, 4, 3)),
        ExampleCase("chair", "more confident label", "chair", (8, 2, 12, 4), probability=0.95),
        ExampleCase("chair", "better box", "chair", (0, 0, 1, 0), probability=0.7),
        ExampleCase("pizza", "more confident label", "pizza", (5, 2, 9, 2), probability=0.95),
        ExampleCase("pizza", "better box", "pizza", (2, 0, 2, 1), probability=0.7),
    ]
    for example, sign in (("edge too near", -1.0), ("edge too far", 1.0)):
        for wrong, name in enumerate(EDGES):
            for uncertain, other in enumerate(EDGES):
                off, sigmas = [0.0] * 4, [low_std] * 4
                off[wrong], sigmas[uncertain] = sign * error, error
                cases.append(ExampleCase(example, f"{name} wrong, {other} uncertain", "square", off, sigmas))
    for example, sign in (("corner too near", -1.0), ("corner too far", 1.0)):
        for corner, name in enumerate(("top left", "bottom right")):
            for rho in (correlation, -correlation):
                off, sigmas, correlations = [0.0] * 4, [low_std] * 4, [0.0, 0.0]
                off[2 * corner : 2 * corner + 2] = [sign * error] * 2
                sigmas[2 * corner : 2 * corner + 2] = [error] * 2
                correlations[corner] = rho
                detection = f"{name}, correlation {rho:+g}"
                cases.append(ExampleCase(example, detection, "small square", off, sigmas, correlations))
    return cases


def detections(cases: Sequence[ExampleCase]) -> Detections:
    """Return the detections of one image as a table."""
    return Detections(
        classes=CLASSES,
        image_ids=np.ones(len(cases), np.int64),
        boxes=np.array([each.box for each in cases]),
        extents=np.array([each.box[2:] - each.box[:2] + 1.0 for each in cases]),
        label_probs=np.array([[each.probability, 1.0 - each.probability] for each in cases], np.float32),
        covariances=np.array([each.covariances for each in cases]),
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
    """Return a standing person with the arms slightly spread."""
    x, y = _places(200, 320)
    x = np.abs(x - 100.0)
    head = (x / 13) ** 2 + ((y - 66) / 16) ** 2 < 1
    body = (x < 22) & (y > 80) & (y < 142)
    legs = (np.abs(x - 12) < 9) & (y >= 142) & (y < 214)
    arms = (np.abs(x - (22 + 0.3 * (y - 82))) < 5) & (y > 82) & (y < 142)
    return np.asarray(head | body | legs | arms)


@cache
def laptop() -> Mask:
    """Return an open laptop: a screen and a keyboard in front of it."""
    x, y = _places(260, 170)
    x = np.abs(x - 110.0)
    screen = (x < 46) & (y > 45) & (y < 100)
    keys = (x < 46 + 0.5 * (y - 100)) & (y >= 100) & (y < 122)
    return np.asarray(screen | keys)


@cache
def chair() -> Mask:
    """Return a chair from the side, which fills little of its box."""
    x, y = _places(150, 160)
    back = (x > 45) & (x < 54) & (y > 30) & (y < 84)
    seat = (x > 45) & (x < 103) & (y >= 84) & (y < 96)
    legs = (np.abs(np.abs(x - 74) - 25) < 4) & (y >= 96) & (y < 130)
    return np.asarray(back | seat | legs)


@cache
def pizza() -> Mask:
    """Return a pizza, which fills nearly all of its box."""
    x, y = _places(190, 140)
    return np.asarray(((x - 92) / 60) ** 2 + ((y - 70) / 45) ** 2 < 1)


@cache
def square() -> Mask:
    """Return a square in the middle of a square image, symmetric in all directions."""
    mask = np.zeros((140, 140), dtype=bool)
    mask[40:100, 40:100] = True
    return mask


@cache
def small_square() -> Mask:
    """Return a small square, for which corners are relevant."""
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
"""The objects, each in a separate image."""


# --- Figure: objects, boxes and ellipses side by side, each with its spatial quality ---

BANDS: Sequence[Sequence[tuple[str, str, Sequence[str]]]] = (
    # Title, example and detections of each half.
    [
        (
            "General: the arm is missed, the box ends below the feet",
            "general",
            ("little uncertainty", "on the right edges", "x and y exchanged", "corners exchanged"),
        )
    ],
    [
        ("Overconfident", "overconfident", ("confident at the wrong edge", "uncertain there, too")),
        ("Underconfident", "underconfident", ("good box, uncertain edge", "poorer box, calibrated")),
    ],
    [(f"Labels: {example}", example, ("more confident label", "better box")) for example in ("chair", "pizza")],
    [(f"Corner too {how}", f"corner too {how}", ("+", "-")) for how in ("near", "far")],
)


GRIDS = {"edge too near": "One edge too near", "edge too far": "One edge too far"}


def draw_examples(table: ResultTable) -> Figure:
    """Draw every example, and a table of wrong and uncertain edges below."""
    figure = new_figure(7.4, 12.2)
    figure.suptitle("Synthetic detections and their spatial quality", x=0.005, ha="left", fontsize=12.5)
    bands: Any = figure.subfigures(len(BANDS) + 1, 1, height_ratios=(1.45, 1.45, 1.0, 1.05, 1.25), hspace=0.02)
    for band, parts in zip(bands, BANDS, strict=False):
        halves = np.atleast_1d(band.subfigures(1, len(parts)))
        for half, (title, example, panels) in zip(halves, parts, strict=True):
            half.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
            for axes, detection in zip(half.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
                _draw_panel(axes, table, example, detection)
    for half, (example, title) in zip(bands[-1].subfigures(1, 2), GRIDS.items(), strict=True):
        half.suptitle(f"{title}, %", x=0.01, ha="left", fontsize=10.5, fontweight="bold")
        _draw_grid(half.add_subplot(), table, example)
    return figure


def _draw_panel(axes: Axes, table: ResultTable, example: str, detection: str) -> None:
    """Draw one detection with its object."""
    cases, title = table.where(example=example), detection
    if detection in ("+", "-"):  # the first corner with such a correlation
        cases = cases.take(np.flatnonzero(np.sign(cases["correlation"]) == float(f"{detection}1"))[:1])
        title = f"correlation {cases['correlation'][0]:+g}" if len(cases) else " "
    else:
        cases = cases.where(detection=detection)
    axes.set_axis_off()
    axes.set_title(title, y=1.0, fontsize=8.5, fontweight="normal")
    if not len(cases):
        return
    (row,) = cases.rows()
    scenes = {(one.example, one.detection): one.scene for one in list_examples(1, 1, 0.5)}
    scene = scenes.get((example, detection), "small square")
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
    """Return the corners' covariances; only the uncertain corner has a correlation."""
    sigmas = np.array([row[f"sigma_{edge}"] for edge in EDGES]).reshape(2, 2)
    uncertain = int(sigmas[1].sum() > sigmas[0].sum())
    covariances = np.array([np.diag(corner**2) for corner in sigmas])
    covariances[uncertain, [0, 1], [1, 0]] = row["correlation"] * sigmas[uncertain].prod()
    return covariances


def _quality(table: ResultTable, row: Mapping[str, Any]) -> str:
    """Return spatial quality under every preset as text, and the label's probability if it is below 1."""
    words = [
        f"{preset}: " + ("false positive" if math.isnan(row[column]) else f"{_per_cent(row[column])}")
        for preset, column in presets_in(table, "spatial").items()
    ]
    if row["probability"] < 1:
        words.insert(0, f"label {row['probability']:g}")
    return "\n".join(words)


def _per_cent(value: float) -> str:
    return f"{100 * value:.1f}%" if value > 5e-4 else f"{value:.0e}"


def _draw_grid(axes: Axes, table: ResultTable, example: str) -> None:
    """Draw spatial quality for each wrong edge (rows) and each uncertain edge (columns)."""
    from matplotlib.colors import LinearSegmentedColormap

    presets = list(presets_in(table, "spatial"))
    rows = {row["detection"]: row for row in table.where(example=example).rows()}
    values = np.full((len(presets), 4, 4), math.nan)
    for number, preset in enumerate(presets):
        for wrong, uncertain in np.ndindex(4, 4):
            row = rows.get(f"{EDGES[wrong]} wrong, {EDGES[uncertain]} uncertain")
            values[number, wrong, uncertain] = math.nan if row is None else row[column_of("spatial", preset)]
    axes.set_title(", below: ".join(presets) or " ", y=1.0, fontsize=8.5, fontweight="normal")
    axes.grid(False)
    axes.tick_params(length=0)
    axes.set_xticks(range(4), [f"{edge}\nuncertain" for edge in EDGES])
    axes.set_yticks(range(4), [f"{edge} wrong" for edge in EDGES])
    for spine in axes.spines.values():
        spine.set_visible(False)
    if not presets:
        return
    blues = LinearSegmentedColormap.from_list("quality", ["#F3F7FA", BLUE])
    axes.imshow(np.nan_to_num(values[0]), cmap=blues, vmin=0, vmax=1, aspect="auto")
    for wrong, uncertain in np.ndindex(4, 4):
        shown = [
            "\N{EN DASH}" if math.isnan(value) else f"{100 * value:.1f}"
            for value in values[:, wrong, uncertain].tolist()
        ]
        dark = np.nan_to_num(values[0, wrong, uncertain]) > 0.6
        axes.text(
            uncertain,
            wrong,
            "\n".join(shown),
            ha="center",
            va="center",
            fontsize=8,
            color="white" if dark else "#222222",
        )


BOTH = "both"
LABEL_EXAMPLES = ("chair", "pizza")
NUMBERS = ("foreground", "background", "spatial", "label", "TP", "FP")

SNAPPED = 1e-8
"""Spatial qualities up to this value are 0 under preset `reference`."""


def evaluate_examples(
    *, low_std: float = 0.5, error: float = 6.0, correlation: float = 0.8, run: Run | None = None
) -> ResultTable:
    """Evaluate detections with uncertainty on wrong edges, on other edges, or without (A.2), and with labels (A.4).

    Parameters
    ----------
    low_std : float
        Standard deviation of edges without error, in pixels.
    error : float
        Error of the wrong edge or corner in the examples of edges and corners, and standard deviation of an uncertain
        edge.
    correlation : float
        Correlation between x and y of the wrong corner; its negative is used as well.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `example`, `detection`; the box, `sigma_left` and so on, `correlation` (of the wrong corner), `probability` of
        the object's class, `IoU`, `AP50` (A.4 only); `PDQ`, `foreground`, `background`, `spatial`, `label`, `TP`, `FP`,
        each also `..._paper`; `by_hand_foreground_paper`, `by_hand_background_paper`. Detection "both" contains both
        detections of an example.
    """
    for name, value, low, high in (("low_std", low_std, 0.0, 100.0), ("error", error, 0.0, 40.0)):
        if not low < value <= high:
            raise InputError(f"expected {name} above {low:g} and at most {high:g} pixels, but got {value:g}")
    if not 0.0 < correlation < 1.0:
        raise InputError(f"expected correlation between 0 and 1, but got {correlation:g}")
    run = run or Run()
    all_cases = list_examples(low_std, error, correlation)
    cases = {(one.example, one.detection): [one] for one in all_cases}
    cases |= {(example, BOTH): [one for one in all_cases if one.example == example] for example in LABEL_EXAMPLES}

    def point(example: str, detection: str) -> dict[str, Any]:
        shown = cases[example, detection]
        truth, found = scene_truth(shown[0].scene), detections(shown)
        measured = run.measure(truth, found, also=NUMBERS, measures=())
        described, by_hand = _describe(shown, run)
        return {**described, **measured, **by_hand}

    points = [{"example": example, "detection": detection} for example, detection in cases]
    return run.table("examples", points, point, low_std=low_std, error=error, correlation=correlation)


def _describe(cases: Sequence[ExampleCase], run: Run) -> tuple[dict[str, float], dict[str, float]]:
    """Return the properties of a detection (NaN for two detections), and its closed-form qualities under `paper`."""
    from probox.measures.boxes import average_precision

    ap50 = math.nan
    if cases[0].example in LABEL_EXAMPLES:
        ap50 = average_precision(scene_truth(cases[0].scene), detections(cases), threads=run.threads).ap50
    names = ["x1", "y1", "x2", "y2", *(f"sigma_{edge}" for edge in EDGES), "correlation", "probability", "IoU"]
    values, by_hand = [math.nan] * len(names), (math.nan, math.nan)
    if len(cases) == 1:
        (one,) = cases
        values = [*one.box.tolist(), *map(float, one.sigmas), sum(one.correlations), one.probability, one.overlap]
        by_hand = foreground_background(one.probability_map(), SCENES[one.scene]())
    described = dict(zip(names, values, strict=True)) | {"AP50": ap50}
    if "paper" not in run.presets:
        return described, {}
    return described, {f"by_hand_{name}_paper": value for name, value in zip(NUMBERS[:2], by_hand, strict=True)}


def claims_of_examples(table: ResultTable) -> list[Claim]:
    """Return the claims on every example, and on closed-form values under `paper`."""
    if len(table) < ROW_COUNT:
        return [not_measured("Every example is as described", f"all {ROW_COUNT} detections of the examples")]
    right = ("general", "on the right edges")
    return [
        agrees(
            "Foreground and background quality of every detection equal the closed form",
            table,
            ("foreground", "background"),
        ),
        _geometric_means(table),
        _leads(
            "General: a box that misses an arm and extends below the feet scores lower with little uncertainty than "
            "with uncertainty on these two edges",
            table,
            right,
            ("general", "little uncertainty"),
        ),
        _leads(
            "General: the same uncertainty in y instead of x, or at the other corner, scores lower",
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


ROW_COUNT = 54
"""Number of rows: each example needs all of its detections."""
Place = tuple[str, str]


def _value(table: ResultTable, place: Place, column: str) -> float:
    """Return a number of a detection; NaN if it is missing."""
    found = table.where(example=place[0], detection=place[1])
    return float(found[column][0]) if len(found) and column in found else math.nan


def _geometric_means(table: ResultTable) -> Claim:
    """Return the claim pPDQ = sqrt(FG BG Q_L) for single detections that are true positives."""
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

    def judge(preset: str, column: str) -> Judgement:
        lead, rest = _value(table, best, column), [_value(table, other, column) for other in others]
        words = f"{lead:.3f} against {', '.join(f'{value:.3f}' for value in rest)} under `{preset}`"
        numbers = {f"{best[1]}, {preset}": lead, f"next, {preset}": max(rest)}
        return all(lead > value + EXACT for value in rest), words, numbers

    return judge_presets(claim, table, "higher, under every preset", judge, shown="PDQ {}")


def _grid(table: ResultTable, example: str, column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a number for each wrong edge (rows) and each uncertain edge (columns)."""
    places = [[(example, f"{wrong} wrong, {uncertain} uncertain") for uncertain in EDGES] for wrong in EDGES]
    return np.array([[_value(table, place, column) for place in row] for row in places])


EDGE_EXAMPLES = ("edge too near", "edge too far")


def _wrong_edges(table: ResultTable) -> Claim:
    """Return the claim that uncertainty on the wrong edge scores best, for each edge."""
    claim = "If one edge is wrong, uncertainty on that edge scores higher than on any other, for all four edges"
    least: dict[str, float] = {}
    for preset, column in presets_in(table).items():
        for example in EDGE_EXAMPLES:
            grid = _grid(table, example, column)
            others = np.where(np.eye(4, dtype=bool), -np.inf, grid).max(axis=1)
            least[f"{example}, {preset}"] = float((np.diag(grid) - others).min())
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
    """Return the claim that rotated or mirrored scenes have the same PDQ: same, opposite or neighbouring edge."""
    claim = "All four edges are equivalent: rotated and mirrored scenes have the same PDQ"
    turns = np.array([[(uncertain - wrong) % 4 for uncertain in range(4)] for wrong in range(4)])
    apart: dict[str, float] = {}
    for preset, column in presets_in(table).items():
        grids = [_grid(table, example, column) for example in EDGE_EXAMPLES]
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
        "Under `reference` the two neighbours differ. A corner's map stays below 1 to the right of its region of "
        "interest and below it, and is 1 in the quadrant below and to the right, so it depends on the region's shape.",
    )


def _over_confident(table: ResultTable) -> Claim:
    """Return the claim that uncertainty on other edges does not help a detection with a confident, wrong edge."""
    confident, uncertain = ("overconfident", "confident at the wrong edge"), ("overconfident", "uncertain there, too")

    def judge(preset: str, column: str) -> Judgement:
        numbers = {f"PDQ, {preset}": _value(table, confident, column)}
        if preset == "paper":  # the equations leave a little of everything
            spatial, other = (_value(table, place, "spatial_paper") for place in (confident, uncertain))
            words = f"spatial quality {spatial:.1g} under `paper`, {other:.3f} with uncertainty there"
            return spatial <= SNAPPED < other, words, numbers
        false, other = (
            _value(table, confident, column_of("FP", preset)),
            _value(table, uncertain, column_of("TP", preset)),
        )
        words = f"{false:.0f} false positive under `{preset}`, {other:.0f} true positive with uncertainty there"
        return false == 1 and other == 1, words, numbers

    return judge_presets(
        "Overconfident: uncertainty on three edges does not help if the fourth is confident and wrong",
        table,
        f"a false and a true positive; under `paper`, spatial quality at most and above {SNAPPED:g}",
        judge,
    )


def _better_box_loses(table: ResultTable) -> Claim:
    """Return the claim that too much uncertainty costs more than a less accurate box."""
    good, poor = ("underconfident", "good box, uncertain edge"), ("underconfident", "poorer box, calibrated")
    lead = _leads(
        "Underconfident: a nearly perfect box with one very uncertain edge scores lower than a poorer box with "
        "calibrated uncertainty",
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
        {**lead.numbers, "IoU, uncertain": overlaps[0], "IoU, calibrated": overlaps[1]},
    )


def _labels(table: ResultTable) -> list[Claim]:
    """Return the claims that a better box outweighs a more confident label in PDQ, but not in AP50 (A.4)."""
    confident, better = (
        [(example, name) for example in LABEL_EXAMPLES] for name in ("more confident label", "better box")
    )
    leads = [
        _leads(
            f"Labels: the {example} with the better box has the higher pPDQ despite a less confident label", table, b, a
        )
        for example, a, b in zip(LABEL_EXAMPLES, confident, better, strict=True)
    ]
    ap50 = [_value(table, place, "AP50") for place in (*confident, *better)]
    false = _value(table, confident[0], "FP")
    claim = (
        "Labels: the chair with the more confident label is a false positive under `reference`, that with the better "
        "box is not"
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
            "Labels: AP50 is 1 for all four",
            all(value >= 1 - EXACT for value in ap50),
            f"AP50 {', '.join(f'{value:.6g}' for value in ap50)}",
            "1",
            {"lowest AP50": min(ap50)},
        ),
        _claim_matched(table),
    ]


def _claim_matched(table: ResultTable) -> Claim:
    """Return the claim that PDQ matches the more accurate of two detections, while mAP matches the more confident."""
    claim = "Labels: with both detections the better box is matched, not the more confident label; PDQ is half its pPDQ"
    apart: dict[str, float] = {}
    for preset, column in presets_in(table).items():
        for example in LABEL_EXAMPLES:
            both, better = (example, BOTH), (example, "better box")
            label = _value(table, both, column_of("label", preset)) - _value(table, better, "probability")
            half = _value(table, both, column) - _value(table, better, column) / 2
            apart[f"{example}, {preset}"] = max(abs(label), abs(half))
    if not apart:
        return not_measured(claim, "PDQ")
    return Claim(
        claim,
        all(value <= EXACT for value in apart.values()),
        f"largest difference of label quality and PDQ: {max(apart.values()):.2g}",
        f"at most {EXACT:g}, under every preset",
        apart,
    )


def _corners(table: ResultTable, example: str, sign: int) -> Claim:
    """Return the claim on a correlation at a corner with an error along the diagonal.

    A pixel is covered if the corner lies above *and* to the left of it. The probability of both increases with the
    correlation at every pixel. Foreground quality therefore rises with the correlation, and background quality falls.
    """
    rows = table.where(example=example)
    wanted = {"PDQ": sign, "foreground": 1, "background": -1}
    positive, negative = (rows.take(np.sign(rows["correlation"]) == each) for each in (1, -1))

    def judge(preset: str, column: str) -> Judgement:
        columns = {name: column_of(name, preset) for name in wanted}
        gains = {name: positive[each] - negative[each] for name, each in columns.items()}
        holds = all(bool((wanted[name] * gain > EXACT).all()) and len(gain) == 2 for name, gain in gains.items())
        worst = {name: float(gain[np.argmin(wanted[name] * gain)]) for name, gain in gains.items()}
        words = ", ".join(f"{name} {value:+.3f}" for name, value in worst.items()) + f" under `{preset}`"
        return holds, words, {f"{name}, {preset}": value for name, value in worst.items()}

    return judge_presets(
        f"Correlation: a corner too {'near' if sign > 0 else 'far'} by the same distance in x and y scores higher with "
        f"{'positive' if sign > 0 else 'negative'} correlation; at both corners a positive one raises foreground "
        "quality and lowers background quality",
        rows,
        f"PDQ {'+' if sign > 0 else '-'}, foreground +, background -, at both corners, under every preset",
        judge,
        shown="a positive correlation changes {}",
    )


EXAMPLES = Experiment(
    name="examples",
    section="A.2, A.4",
    varied="uncertain and wrong edges of synthetic detections, and their label probabilities",
    claim="uncertainty helps on the wrong edge only; a better box outweighs a more confident label",
    function=evaluate_examples,
    judge=claims_of_examples,
    draw=draw_examples,
)
