"""A sure box over half of a plane's box, where little of the plane is: figure 3 of the paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import EXACT, Claim, not_measured
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, ORANGE, VERMILION, draw_box, new_figure
from probox_experiments.paper.by_hand import EPSILON
from probox_experiments.paper.closed_form import pair_equals
from probox_experiments.running import Run
from probox_experiments.scenes import boxes_in_one_image, plane_scene
from probox_experiments.table import ResultTable, presets_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PLANE", "plane"]

PLANE_PART = 0.53
PAPERS_COVERAGE, PAPERS_QUALITY = 0.16, 3.64e-6


def plane(*, run: Run | None = None) -> ResultTable:
    """Measure a sure box over the upper half of a plane's box, where little of the plane is (figure 3).

    Returns
    -------
    ResultTable
        One row: `IoU`, `covered` (the share of the object's pixels in the box), `AP50`, and, each under every preset,
        `PDQ`, which is the pPDQ of the one pair, `foreground` and `background`.
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


def plane_box(truth: GroundTruth) -> npt.NDArray[np.float64]:
    """Return the detection of the plane: the upper part of its box, as an inclusive pixel box."""
    x0, y0, x1, y1 = truth.masks.boxes[0].astype(np.float64)
    return np.array([x0, y0, x1, y0 + np.floor(PLANE_PART * (y1 - y0 + 1)) - 1])


def claims_of_plane(table: ResultTable) -> list[Claim]:
    """Judge that AP50 is content with what PDQ rejects, and how much PDQ leaves of it."""
    (row,) = table.rows()
    uncovered = 1 - table["covered"]
    pdq = {f"pPDQ, {preset}": row[column] for preset, column in presets_in(table).items()}
    rejected = "PDQ rejects it: pPDQ is below 1e-4"
    return [
        Claim(
            "The box overlaps the plane's by more than half and covers about 16 % of its pixels",
            row["IoU"] > 0.5 and abs(row["covered"] - 0.16) <= 0.01,
            f"IoU {row['IoU']:.3f}, covered {100 * row['covered']:.1f} %",
            "IoU above 0.5, covered 16 ± 1 %",
            {"IoU": row["IoU"], "covered": row["covered"]},
        ),
        Claim(
            "AP50 counts it as entirely correct",
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
            "alone leave a tiny quality.",
        )
        if pdq
        else not_measured(rejected, "PDQ"),
        pair_equals(
            "With a share c of the plane's pixels covered and e = 1e-14, the foreground quality is e^(1 - c), the "
            "background quality 1, pPDQ e^((1 - c) / 2)",
            table,
            EPSILON**uncovered,
            np.ones(len(table)),
            tolerance=EXACT,
            explanation=_papers_numbers(),
        ),
    ]


def quality_of_coverage(covered: float) -> float:
    """Return the highest pPDQ of a sure box that covers this share of an object's pixels.

    >>> f"{quality_of_coverage(0.16):.2e}"
    '1.32e-06'
    """
    return float(EPSILON ** ((1 - covered) / 2))


def coverage_of_quality(quality: float) -> float:
    """Return the least share of an object's pixels that a sure box of this pPDQ covers.

    >>> round(coverage_of_quality(3.64e-6), 3)
    0.223
    """
    return 1 - 2 * math.log(quality) / math.log(EPSILON)


def _papers_numbers() -> str:
    return (
        f"The paper's own plane cannot be met: it has {PAPERS_QUALITY:.2e} and {100 * PAPERS_COVERAGE:g} % of its "
        f"pixels covered, and these contradict each other. With e = {EPSILON:g}, {100 * PAPERS_COVERAGE:g} % leave "
        f"{quality_of_coverage(PAPERS_COVERAGE):.2e} at most, and {PAPERS_QUALITY:.2e} needs "
        f"{100 * coverage_of_quality(PAPERS_QUALITY):.0f} %."
    )


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
    draw_box(axes, truth.boxes[0], BLUE, 1.8)
    draw_box(axes, plane_box(truth) + np.array([0, 0, 1, 1]), ORANGE, 2.4)
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
    pdq = [f"{_in_powers(row[column])} ({preset})" for preset, column in reversed(presets_in(table).items())]
    axes.text(
        x1 + 0.27 * (x2 - x1),
        y2 + 42,
        f"pPDQ = {',  '.join(pdq) or 'not measured'}",
        color=BLUE,
        fontsize=10.5,
        va="center",
    )
    axes.set_xlim(x1 - 14, x2 + 14)
    axes.set_ylim(y2 + 58, y1 - 30)
    axes.axis("off")
    axes.set_title("Half the box, a sixth of the plane", loc="left")
    return figure


def _in_powers(value: float) -> str:
    """Return a number in words that a figure understands, tiny ones as a power of ten."""
    if not 0 < value <= 1e-3:
        return f"{value:.3g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return rf"${mantissa}\times10^{{{int(exponent)}}}$"


PLANE = Experiment(
    name="plane",
    section="figure 3",
    varied="a sure box over half of a plane's box, with a sixth of its pixels",
    claim="AP50 counts it as correct; pPDQ is below 1e-4: e^((1 - c) / 2) at a covered share of c",
    function=plane,
    judge=claims_of_plane,
    draw=draw_plane,
)
