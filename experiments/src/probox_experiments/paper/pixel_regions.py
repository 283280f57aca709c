"""Region V, where probability costs background quality: section 5.1 and figure 4 of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.errors import InputError
from probox.measures.pdq.kernel import heatmap
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import (
    EXACT,
    Claim,
    Floats,
    ResultTable,
    close_enough,
    column_of,
    equals,
    not_measured,
    presets_in,
)
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, GREY, ORANGE, VERMILION, Axes, Figure, draw_box, draw_object, new_figure
from probox_experiments.paper.closed_form import EPSILON, agrees, box_map, foreground_background, pair_equals, region_v
from probox_experiments.running import Run
from probox_experiments.synthetic import boxes_in_one_image, plane_scene, tight_box

# --- Region V, where probability costs background quality: section 5.1 and figure 4 of the paper ---

WIDTH, HEIGHT = 150, 110
BOX = (52.0, 34.0, 117.0, 88.0)
COVARIANCES = (((25.0, 12.0), (12.0, 36.0)), ((81.0, -20.0), (-20.0, 30.0)))
"""The detection with Gaussian corners: too far right and too low."""

KEYS = ("foreground", "background", "spatial")


def background_costs(
    *,
    inside: float = 0.75,
    outside: float = 0.5,
    pixels: Sequence[int] = (0, 250, 500, 1000, 2000, 4000),
    run: Run | None = None,
) -> ResultTable:
    """Vary the probability on an object, in the rest of its box, and on pixels outside the box (figure 4).

    Parameters
    ----------
    inside : float
        Probability of every pixel of the object.
    outside : float
        Probability of the chosen pixels outside the object's box.
    pixels : sequence of int
        Number of these pixels.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `detection`; for probability maps `inside`, `corners` (probability in the object's box beside the object),
        `outside` and `pixels`; `object` (its pixels); `PDQ`, `foreground`, `background`, `spatial`, and for the box
        with Gaussian corners `by_hand_foreground` and so on, each also `..._paper`.
    """
    run = run or Run()
    mask = diamond()
    truth = GroundTruth.from_masks(["diamond"], [(1, [mask], [0])])
    empty = region_v(np.ones(mask.shape), mask)
    for count in pixels:
        if not 0 <= count <= empty.sum():
            raise InputError(f"expected between 0 and {empty.sum():,} pixels outside of the box, but got {count:,}")
    scattered = np.random.default_rng(0).permutation(np.flatnonzero(empty))

    def given(inside: float, corners: float, outside: float, pixels: float) -> Floats:
        values = np.where(mask, inside, np.where(empty, 0.0, corners))
        values.flat[scattered[: int(pixels)]] = outside
        return values

    def point(detection: str, **where: Any) -> dict[str, float]:
        gaussian = detection == "Gaussian corners"
        found = gaussian_detection(None if gaussian else given(**where))
        measured = run.measure(truth, found, also=KEYS, measures=())
        return {"object": float(mask.sum()), **measured, **_worked_out(run, mask if gaussian else None)}

    rows: list[tuple[str, float, float, float, float]] = [("object alone", inside, 0.0, 0.0, 0.0)]
    rows += [("whole box", inside, corners, 0.0, 0.0) for corners in (0.25, inside, 1.0)]
    rows += [("pixels outside", inside, 0.0, outside, float(count)) for count in pixels]
    rows += [
        ("certain outside", inside, 0.0, 1.0, float(mask.sum() // 10)),
        ("Gaussian corners", math.nan, math.nan, math.nan, math.nan),
    ]
    names = ("detection", "inside", "corners", "outside", "pixels")
    return run.table("background-region", [dict(zip(names, row, strict=True)) for row in rows], point)


def diamond() -> npt.NDArray[np.bool_]:
    """Return the pixels of the object: a diamond, which fills half of its box."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
    return np.asarray(np.abs(x - 70.0) / 36.0 + np.abs(y - 52.0) / 30.0 < 1.0)


def gaussian_detection(given: Floats | None = None) -> Detections:
    """Return the detection with Gaussian corners, or with a map instead, and label probability 1."""
    return Detections(
        classes=("diamond",),
        image_ids=np.array([1]),
        boxes=np.array([BOX]),
        label_probs=np.ones((1, 1), np.float32),
        covariances=np.array([COVARIANCES]),
        heatmaps=None if given is None else (given,),
    )


def _worked_out(run: Run, mask: npt.NDArray[np.bool_] | None) -> dict[str, float]:
    """Return both qualities of the Gaussian corners by sums over S and V; the map of `paper` is a closed form too."""
    worked_out = {}
    for preset, convention in run.conventions().items():
        probability = box_map(BOX, COVARIANCES, WIDTH, HEIGHT) if preset == "paper" else gaussian_map(convention)
        both = (math.nan, math.nan) if mask is None else foreground_background(probability, mask)
        for number, value in zip(KEYS[:2], both, strict=True):
            worked_out[column_of(f"by_hand_{number}", preset)] = value
    return worked_out


def gaussian_map(convention: Convention) -> Floats:
    """Return the probability of every pixel under the detection with Gaussian corners."""
    return heatmap(BOX, COVARIANCES, WIDTH, HEIGHT, convention)


def claims_of_background_region(table: ResultTable) -> list[Claim]:
    """Return the claims on the cost of probability inside and outside the box, and on its normalization."""
    maps = table.take(table["detection"] != "Gaussian corners")
    within = maps.take(maps["pixels"] == 0)
    beyond = maps.take((maps["detection"] == "pixels outside") & (maps["pixels"] > 0))
    certain = maps.where(detection="certain outside")
    return [
        _costs_nothing(maps),
        equals(
            "A detection inside the object's box has background quality 1, whatever part of the box it covers",
            within,
            {"background": np.ones(len(within))},
        ),
        equals(
            "m pixels of probability p outside the box give (1 - p)^(m/n): the sum is divided by the object's n "
            "pixels, not by the m pixels of V",
            beyond,
            {"background": (1 - beyond["outside"]) ** (beyond["pixels"] / beyond["object"])},
            explanation="Averaged over V it would be 1 - p for any m.",
        ),
        equals(
            "Foreground quality is the geometric mean over the object's pixels only",
            maps,
            {"foreground": maps["inside"]},
        ),
        equals(
            "If a detection has probability 1 outside the box, each pixel costs e = 1e-14 to the power of 1/n",
            certain,
            {"background": EPSILON ** (certain["pixels"] / certain["object"])},
        ),
        agrees(
            "With Gaussian corners both equal the sums over the object's pixels and over V",
            table,
            ("foreground", "background"),
        ),
        _products(table),
    ]


def _costs_nothing(maps: ResultTable) -> Claim:
    """Return the claim that probability in the box beside the object has no effect."""
    claim = "Probability in the box, but not on the object, costs nothing"
    boxes = maps.take(maps["pixels"] == 0)
    columns = [column for key in ("PDQ", *KEYS[:2]) for column in presets_in(boxes, key).values()]
    if not columns or len(set(boxes["corners"].tolist())) < 2:
        return not_measured(claim, "two detections that differ only in the box beside the object")
    apart = float(np.max([np.ptp(boxes[column]) for column in columns]))  # NaN stays NaN
    shares = ", ".join(f"{share:g}" for share in sorted(set(boxes["corners"].tolist())))
    return Claim(
        claim,
        apart <= EXACT,
        f"PDQ, foreground and background differ by at most {apart:.2g} for probabilities {shares}",
        f"at most {EXACT:g}",
        {"largest difference": apart},
    )


def _products(table: ResultTable) -> Claim:
    """Return the claims Q_S = FG BG and, with label probability 1, pPDQ = sqrt(Q_S)."""
    claim = "Spatial quality is their product, and pPDQ with label probability 1 its square root"
    apart: dict[str, float] = {}
    for preset in presets_in(table):
        pdq, foreground, background, spatial = (table[column_of(key, preset)] for key in ("PDQ", *KEYS))
        apart[f"spatial under `{preset}`"] = float(np.abs(spatial - foreground * background).max(initial=0.0))
        apart[f"PDQ under `{preset}`"] = float(np.abs(pdq - np.sqrt(foreground * background)).max(initial=0.0))
    return close_enough(claim, apart) if apart else not_measured(claim, "PDQ")


def draw_background_region(table: ResultTable) -> Figure:
    """Draw region V of the Gaussian corners, and background quality over the number of pixels in V."""
    figure = new_figure(7.6, 3.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
    _draw_region(figure, left)
    _draw_cost(right, table)
    return figure


def _draw_region(figure: Figure, axes: Axes) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    mask = diamond()
    probability = gaussian_map(Convention.preset("reference"))
    v = region_v(probability, mask)
    cost = np.where(v, -np.log(1.0 - np.where(v, probability, 0.0) + EPSILON), np.nan)
    draw_object(axes, mask)
    reds = LinearSegmentedColormap.from_list("cost", ["#FBE3DD", "#C0281C", "#5E0B08"])
    shade = axes.imshow(cost, extent=(0, WIDTH, HEIGHT, 0), interpolation="nearest", cmap=reds, vmin=0.0)
    x, y = np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5
    axes.contour(x, y, mask, levels=[0.5], colors="#1A1A1A", linewidths=0.8)
    axes.contour(x, y, probability > 0, levels=[0.5], colors=ORANGE, linewidths=1.8)
    box = tight_box(mask) + np.array([0, 0, 1, 1])
    draw_box(axes, box, BLUE, 1.8)
    bold: dict[str, Any] = {"fontsize": 8.5, "fontweight": "bold"}
    axes.text(box[0] - 2, box[3], "object's box", color=BLUE, rotation=90, ha="right", va="bottom", **bold)
    axes.text(BOX[2] - 6, 13, "detection, P > 0 (reference)", color="#B07700", ha="center", **bold)
    axes.text(box[2] + 2, box[3] + 7, "V", color="white", fontsize=12, fontweight="bold")
    axes.set(xlim=(20, WIDTH), ylim=(HEIGHT, 5))
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    bar = figure.colorbar(shade, ax=axes, shrink=0.8, pad=0.02)
    bar.set_label("\N{MINUS SIGN}log(1 \N{MINUS SIGN} P) of a pixel")
    bar.ax.set_title(" ", loc="left")
    axes.set_title("Background region V")


def _draw_cost(axes: Axes, table: ResultTable) -> None:
    rows = table.where(detection="pixels outside")
    axes.set_title("Background quality")
    axes.set(xlabel="pixels of probability p in V, m", ylabel="background quality", ylim=(-0.04, 1.07))
    if not len(rows):
        return
    p, n = float(rows["outside"][0]), float(rows["object"][0])
    m = np.linspace(0, max(float(rows["pixels"].max()), 1.0), 200)
    axes.plot(m, (1 - p) ** (m / n), color="#C9C9C9", lw=6, label=r"$(1-p)^{m/n}$", zorder=1)
    axes.axhline(1 - p, color=GREY, lw=1.0, ls=(0, (4, 2)), label="averaged over V instead")
    looks: dict[str, dict[str, Any]] = {
        "reference": {"marker": "o", "ms": 5, "color": BLUE},
        "paper": {"marker": "o", "ms": 9, "mfc": "none", "mec": BLUE, "mew": 1.0},
    }
    for preset, column in presets_in(rows, "background").items():
        look = looks.get(preset, {"marker": "x"})
        axes.plot(rows["pixels"], rows[column], ls="none", label=f"measured, {preset}", **look)
    axes.text(0.03, 0.05, f"p = {p:g}, n = {n:,.0f}", transform=axes.transAxes, fontsize=8.5, color="#333333")
    axes.legend(loc="upper right")


BACKGROUND_REGION = Experiment(
    name="background-region",
    section="figure 4",
    varied="probability on an object, in its box beside it, and on m pixels outside the box",
    claim="only probability outside the box costs background quality, (1 - p)^(m/n)",
    function=background_costs,
    judge=claims_of_background_region,
    draw=draw_background_region,
)


# --- A box over the half of a plane's box with few of its pixels: figure 3 of the paper ---

PLANE_PART = 0.53
PAPERS_COVERAGE, PAPERS_QUALITY = 0.16, 3.64e-6


def plane(*, run: Run | None = None) -> ResultTable:
    """Evaluate a box over the upper half of a plane's box, which has few of the plane's pixels (figure 3).

    Returns
    -------
    ResultTable
        One row: `IoU`, `covered` (fraction of the object's pixels in the box), `AP50`, and, under every preset, `PDQ`,
        which is the pPDQ of the only pair, `foreground` and `background`.
    """
    from probox.measures.boxes import average_precision

    run = run or Run()
    truth = plane_scene()
    box = plane_box(truth)
    found = boxes_in_one_image(truth, box)

    def point() -> dict[str, float]:
        mask = truth.masks.to_array(0, int(truth.dataset.heights[0]), int(truth.dataset.widths[0]))
        x0, y0, x1, y1 = box.astype(int)
        inside = mask[y0 : y1 + 1, x0 : x1 + 1]
        return {
            "IoU": float(found.extents.prod() / truth.extents.prod()),  # the detection lies within the object's box
            "covered": float(inside.sum() / mask.sum()),
            "AP50": average_precision(truth, found, threads=run.threads).ap50,
            **run.measure(truth, found, also=("foreground", "background"), measures=()),
        }

    return run.table("plane", [{}], point)


def plane_box(truth: GroundTruth) -> Floats:
    """Return the detection of the plane: the upper part of its box, as an inclusive pixel box."""
    x0, y0, x1, y1 = truth.masks.boxes[0].astype(np.float64)
    return np.array([x0, y0, x1, y0 + np.floor(PLANE_PART * (y1 - y0 + 1)) - 1])


def claims_of_plane(table: ResultTable) -> list[Claim]:
    """Return the claims that AP50 accepts a box that PDQ rejects, and on its pPDQ."""
    (row,) = table.rows()
    uncovered = 1 - table["covered"]
    pdq = {f"pPDQ, {preset}": row[column] for preset, column in presets_in(table).items()}
    rejected = "PDQ rejects it: pPDQ is below 1e-4"
    return [
        Claim(
            "The box has an IoU above 0.5 with the plane's box and covers about 16% of its pixels",
            row["IoU"] > 0.5 and abs(row["covered"] - 0.16) <= 0.01,
            f"IoU {row['IoU']:.3f}, covered {100 * row['covered']:.1f}%",
            "IoU above 0.5, covered 16 ± 1%",
            {"IoU": row["IoU"], "covered": row["covered"]},
        ),
        Claim(
            "AP50 is 1",
            row["AP50"] >= 1 - EXACT,
            f"AP50 {row['AP50']:.6g}",
            "1",
            {"AP50": row["AP50"]},
        ),
        Claim(
            rejected,
            max(pdq.values()) < 1e-4,
            ", ".join(f"{value:.3g} under `{name.removeprefix('pPDQ, ')}`" for name, value in pdq.items()),
            "below 1e-4",
            pdq,
            "Under `reference` a spatial quality of at most 1e-8 is 0, so the box is a false positive; the equations "
            "give a very small quality.",
        )
        if pdq
        else not_measured(rejected, "PDQ"),
        pair_equals(
            "With a fraction c of the plane's pixels covered and e = 1e-14, the foreground quality is e^(1 - c), the "
            "background quality 1, pPDQ e^((1 - c) / 2)",
            table,
            EPSILON**uncovered,
            np.ones(len(table)),
            tolerance=EXACT,
            explanation=_papers_numbers(),
        ),
    ]


def quality_of_coverage(covered: float) -> float:
    """Return the highest pPDQ of a deterministic box that covers this fraction of an object's pixels.

    >>> f"{quality_of_coverage(0.16):.2e}"
    '1.32e-06'
    """
    return float(EPSILON ** ((1 - covered) / 2))


def coverage_of_quality(quality: float) -> float:
    """Return the smallest covered fraction of an object's pixels for a deterministic box of this pPDQ.

    >>> round(coverage_of_quality(3.64e-6), 3)
    0.223
    """
    return 1 - 2 * math.log(quality) / math.log(EPSILON)


def _papers_numbers() -> str:
    return (
        f"The paper's plane cannot be reproduced: its pPDQ of {PAPERS_QUALITY:.2e} contradicts its "
        f"{100 * PAPERS_COVERAGE:g}% of covered pixels. With e = {EPSILON:g}, {100 * PAPERS_COVERAGE:g}% allow at most "
        f"{quality_of_coverage(PAPERS_COVERAGE):.2e}, and {PAPERS_QUALITY:.2e} requires "
        f"{100 * coverage_of_quality(PAPERS_QUALITY):.0f}%."
    )


def draw_plane(table: ResultTable) -> Figure:
    """Draw the plane with its box, the detection and the scores."""
    (row,) = table.rows()
    truth = plane_scene()
    width, height = int(truth.dataset.widths[0]), int(truth.dataset.heights[0])
    mask = truth.masks.to_array(0, height, width)
    figure = new_figure(4.8, 3.1)
    axes = figure.add_subplot()
    draw_object(axes, mask)
    axes.contour(np.arange(width) + 0.5, np.arange(height) + 0.5, mask, levels=[0.5], colors="#1A1A1A", linewidths=0.8)
    draw_box(axes, truth.boxes[0], BLUE, 1.8)
    draw_box(axes, plane_box(truth) + np.array([0, 0, 1, 1]), ORANGE, 2.4)
    x1, y1, x2, y2 = truth.boxes[0]
    axes.text(x2, y2 + 6, "object", color=BLUE, ha="right", va="top", fontsize=9, fontweight="bold")
    axes.text(
        x2, y1 - 6, "detection, probability 1", color="#B07700", ha="right", va="bottom", fontsize=9, fontweight="bold"
    )
    words = f"IoU {row['IoU']:.2f}, {100 * row['covered']:.0f}% of the plane's pixels"
    axes.text(x1 + 0.30 * (x2 - x1), y1 + 0.27 * (y2 - y1), words, color="#333333", va="center", fontsize=9)
    axes.text(x1, y2 + 42, f"AP50 = {row['AP50']:.0f}", color=VERMILION, fontsize=10.5, fontweight="bold", va="center")
    pdq = [f"{_in_powers(row[column])} ({preset})" for preset, column in reversed(presets_in(table).items())]
    words = f"pPDQ = {',  '.join(pdq) or 'not measured'}"
    axes.text(x1 + 0.27 * (x2 - x1), y2 + 42, words, color=BLUE, fontsize=10.5, va="center")
    axes.set_xlim(x1 - 14, x2 + 14)
    axes.set_ylim(y2 + 58, y1 - 30)
    axes.axis("off")
    axes.set_title("Half the box, a sixth of the plane", loc="left")
    return figure


def _in_powers(value: float) -> str:
    """Return a number as text for a figure, very small ones as a power of ten."""
    if not 0 < value <= 1e-3:
        return f"{value:.3g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return rf"${mantissa}\times10^{{{int(exponent)}}}$"


PLANE = Experiment(
    name="plane",
    section="figure 3",
    varied="a box over half of a plane's box, with a sixth of its pixels",
    claim="AP50 is 1; pPDQ is below 1e-4: e^((1 - c) / 2) at a covered fraction c",
    function=plane,
    judge=claims_of_plane,
    draw=draw_plane,
)
