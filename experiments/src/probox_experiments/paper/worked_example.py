"""How mAP reads a precision-recall curve, on a worked example: appendix D."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Claim, ResultTable, not_measured
from probox_experiments.experiment import Experiment
from probox_experiments.figures import GREY, ORANGE, SKY, VERMILION, draw_box, new_figure
from probox_experiments.paper.closed_form import sampled_precision
from probox_experiments.paper.matching_rule import coco_rule, overlaps
from probox_experiments.running import Run
from probox_experiments.synthetic import SimulatedDetector, pixel_aligned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


OBJECTS = ((30, 40, 130, 140), (170, 30, 250, 150), (290, 50, 390, 130), (60, 190, 150, 280), (260, 180, 370, 290))
FOUND = (
    # x1, y1, x2, y2, confidence; the third, fifth and seventh hit nothing, the last object stays unseen
    (34, 44, 134, 140, 0.95),
    (174, 36, 252, 156, 0.90),
    (165, 214, 225, 289, 0.80),
    (286, 54, 384, 134, 0.70),
    (8, 158, 56, 202, 0.60),
    (64, 184, 152, 276, 0.45),
    (196, 164, 250, 204, 0.30),
)


def worked_example() -> tuple[GroundTruth, Detections]:
    """Return five objects of one class in one image, and seven detections, four of them right."""
    truth = GroundTruth.from_boxes(
        ["thing"], {1: (420, 320)}, [1] * len(OBJECTS), np.array(OBJECTS), [0] * len(OBJECTS)
    )
    boxes = np.array(FOUND)[:, :4]
    found = Detections(
        classes=truth.classes,
        image_ids=np.ones(len(FOUND), np.int64),
        boxes=boxes,
        label_probs=np.array(FOUND, np.float32)[:, 4:],
        scores=np.array(FOUND)[:, 4],
    )
    return truth, found


def three_objects_twice() -> tuple[GroundTruth, Detections]:
    """Return three objects of one class, and two sure, perfect detections of each, one object after the other."""
    truth = GroundTruth.from_boxes(["thing"], {1: (420, 320)}, [1] * 3, np.array(OBJECTS[:3]), [0] * 3)
    return truth, SimulatedDetector(detections_per_object=2).detect(pixel_aligned(truth))


def precision_recall(*, run: Run | None = None) -> ResultTable:
    """Build the precision-recall curve of the worked example in the three steps of the paper's figure.

    Returns
    -------
    ResultTable
        `curve`: `raw` (a row per detection, in order of confidence), `smoothed` (the highest precision from
        there on) and `sampled` (at 101 recalls), and `duplicates`: the samples that mAP itself takes of three objects
        with two detections each (C.3); `rank` counts within a curve; `confidence` (NaN where sampled), `correct` (1,
        0, or NaN where sampled), `recall`, `precision`.
    """
    from probox.measures.boxes import average_precision

    run = run or Run()
    truth, found = worked_example()
    order = np.argsort(-found.scores, kind="stable")
    boxes, there = (np.concatenate([table.boxes[:, :2], table.extents], axis=1) for table in (found, truth))
    correct = coco_rule(overlaps(boxes[order], there), np.array([0.5]))[0]
    hits = np.cumsum(correct)
    precision, recall = hits / np.arange(1, len(hits) + 1), hits / len(truth)
    smoothed = np.maximum.accumulate(precision[::-1])[::-1]
    levels = np.arange(101) / 100
    reached = np.searchsorted(recall, levels - 1e-12)
    sampled = np.append(smoothed, 0.0)[reached]
    twice = average_precision(*three_objects_twice(), threads=run.threads).curve("thing", 0.5).precision

    def point(curve: str, rank: int) -> dict[str, float]:
        if curve in ("sampled", "duplicates"):
            values = (np.nan, np.nan, levels[rank], (sampled if curve == "sampled" else twice)[rank])
        else:
            height = precision if curve == "raw" else smoothed
            values = (found.scores[order][rank], float(correct[rank]), recall[rank], height[rank])
        names = ("confidence", "correct", "recall", "precision")
        return dict(zip(names, map(float, values), strict=True))

    lengths = {"raw": len(order), "smoothed": len(order), "sampled": len(levels), "duplicates": len(levels)}
    points = [{"curve": curve, "rank": rank} for curve, length in lengths.items() for rank in range(length)]
    return run.table("precision-recall", points, point)


def claims_of_precision_recall(table: ResultTable) -> list[Claim]:
    """Judge the three steps by the text of the paper, and the result by the measure itself."""
    return [*_claims_of_steps(table), _claim_of_duplicates(table.where(curve="duplicates"))]


def _claims_of_steps(table: ResultTable) -> list[Claim]:
    from probox.measures.boxes import average_precision

    highest_claim = "Smoothing takes the highest precision at a recall or beyond"
    sampled_claim = "Precision is read at 101 recalls, and is 0 beyond the highest one reached"
    mean_claim = "The mean of the samples is the average precision that mAP is made of"
    raw, smoothed, sampled = (table.where(curve=name) for name in ("raw", "smoothed", "sampled"))
    if not len(raw) == len(smoothed) == len(FOUND) or not len(sampled):
        return [not_measured(claim, "all three curves") for claim in (highest_claim, sampled_claim, mean_claim)]
    truth, found = worked_example()
    library = average_precision(truth, found)
    highest = np.array([raw["precision"][row:].max() for row in range(len(raw))])
    read = library.curve("thing", 0.5).precision
    distance = float(np.abs(sampled["precision"] - read).max()) if len(read) == len(sampled) else np.inf
    average = float(sampled["precision"].mean())
    beyond = sampled["precision"][sampled["recall"] > raw["recall"].max()]
    return [
        Claim(
            highest_claim,
            bool(np.array_equal(smoothed["precision"], highest) and np.diff(smoothed["precision"]).max() <= 0),
            f"raised at {int((smoothed['precision'] > raw['precision']).sum())} of {len(raw)} detections, "
            f"by up to {(smoothed['precision'] - raw['precision']).max():.3f}",
            "equal to the highest raw precision from there on, and never rising",
        ),
        Claim(
            sampled_claim,
            len(sampled) == 101 and len(beyond) > 0 and bool((beyond == 0).all()),
            f"{len(sampled)} samples, {len(beyond)} of them beyond recall {raw['recall'].max():g}, all 0",
            "101 samples, 0 beyond",
        ),
        Claim(
            mean_claim,
            max(distance, abs(average - library.ap50)) <= 1e-12,
            f"mean {average:.6f}, AP50 {library.ap50:.6f}; samples differ by at most {distance:.1g}",
            "equal to 1e-12",
            {"mean": average, "AP50": library.ap50, "largest difference": distance},
        ),
    ]


def _claim_of_duplicates(table: ResultTable) -> Claim:
    """Return the claim about the worked number of C.3."""
    from probox.measures.boxes import average_precision

    claim = "With two detections per object the precision after three objects is 0.6, not 0.5"
    required = "1, 2/3 and 3/5 after the first, second and third object, to 1e-12"
    if len(table) != 101:
        return not_measured(claim, required)
    after = [float(table["precision"][table["recall"] <= share][-1]) for share in (1 / 3, 2 / 3, 1.0)]
    expected = sampled_precision([1, 2 / 3, 3 / 5], 3)
    average = average_precision(*three_objects_twice()).ap50
    distance = max(float(np.abs(table["precision"] - expected).max()), abs(average - float(expected.mean())))
    return Claim(
        claim,
        distance <= 1e-12,
        f"{', '.join(f'{value:.4f}' for value in after)}; the 101 samples and AP50, their mean, differ by at most "
        f"{distance:.1g}",
        required,
        {"after three objects": after[-1], "largest difference": distance},
        "The duplicate of the third object comes after it, and adds no recall: it is never read.",
    )


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
        draw_box(axes, box, "#1A1A1A", 1.8)
    for box, row in zip(found.boxes, raw.rows(), strict=True):
        right = row["correct"] == 1.0
        draw_box(axes, box, SKY if right else ORANGE, 2.0)
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


PRECISION_RECALL = Experiment(
    name="precision-recall",
    section="D",
    varied="the steps from detections to average precision, on a worked example",
    claim="raw curve, smoothed curve and 101 samples are as described; 0.6 after three objects found twice",
    function=precision_recall,
    judge=claims_of_precision_recall,
    draw=draw_precision_recall,
)
