"""A sure box over half of a plane's box, where little of the plane is: figure 4 of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from probox.experiments.claims import EXACT, Claim
from probox.experiments.experiment import Experiment
from probox.experiments.figures import BLUE, ORANGE, VERMILION, draw_box, new_figure
from probox.experiments.running import Run
from probox.experiments.scenes import boxes_in_one_image, plane_scene
from probox.experiments.table import ResultTable
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["PLANE", "plane"]

PLANE_PART = 0.53


def plane(*, run: Run | None = None) -> ResultTable:
    """Measure a sure box over the upper half of a plane's box, where little of the plane is (figure 4).

    Returns
    -------
    ResultTable
        One row: `IoU`, `covered` (the share of the object's pixels in the box), `AP50`, and `PDQ`, `PDQ_paper`,
        which are the pPDQ of the one pair.
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
            **run.measure(truth, found, measures=()),
        }

    return run.table("plane", [{}], point)


def plane_box(truth: GroundTruth) -> npt.NDArray[np.float64]:
    """Return the detection of the plane: the upper part of its box, as an inclusive pixel box."""
    x0, y0, x1, y1 = truth.masks.boxes[0].astype(np.float64)
    return np.array([x0, y0, x1, y0 + np.floor(PLANE_PART * (y1 - y0 + 1)) - 1])


def claims_of_plane(table: ResultTable) -> list[Claim]:
    """Judge that AP50 is content with what PDQ rejects."""
    (row,) = table.rows()
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
            "PDQ rejects it: pPDQ is below 1e-4",
            max(row["PDQ"], row["PDQ_paper"]) < 1e-4,
            f"{row['PDQ_paper']:.3g} under `paper`, {row['PDQ']:.3g} under `reference`",
            "below 1e-4 in both",
            {"pPDQ, paper": row["PDQ_paper"], "pPDQ, reference": row["PDQ"]},
            "The paper's own plane has 3.64e-6. Under `reference` a spatial quality of at most 1e-8 is 0, so the box "
            "is a false positive; the equations alone leave a tiny quality.",
        ),
    ]


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


PLANE = Experiment(
    name="plane",
    section="figure 4",
    varied="a sure box over half of a plane's box, with a sixth of its pixels",
    claim="AP50 counts it as correct; pPDQ is below 1e-4",
    function=plane,
    judge=claims_of_plane,
    draw=draw_plane,
)
