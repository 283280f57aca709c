"""What PDQ makes of uncertainty: section 6 of the paper, figure 4, and appendices B.1 and B.3."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.experiments.claims import EXACT, Verdict, at_most, falls, stays_perfect
from probox.experiments.running import Run, measure, pdq
from probox.experiments.scenes import (
    boxes_in_one_image,
    classes_within_images,
    evenly,
    fingerprint,
    pixel_aligned,
    plane_scene,
    square_scene,
    synthetic_truth,
)
from probox.experiments.simulate import SimulatedDetector
from probox.experiments.table import ResultTable
from probox.tables.groundtruth import GroundTruth

__all__ = [
    "box_probability",
    "corner_variance",
    "label_coco",
    "label_uncertainty",
    "plane",
    "spatial_uncertainty",
]

VARIANCES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
PROBABILITIES = evenly(0.05, 1.0, 20)


def spatial_uncertainty(
    truth: GroundTruth | None = None,
    *,
    true_variances: Sequence[float] = VARIANCES,
    reported_variances: Sequence[float] | None = None,
    repeats: int = 20,
    paper_repeats: int = 1,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Vary the true and the reported variance of a simulated detector's corners (section 6, top figure).

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`.
    true_variances, reported_variances : sequence of float
        In square pixels. `reported_variances` default to the true ones.
    repeats : int
        How often the corners are drawn.
    paper_repeats : int
        In how many of the repeats PDQ is computed under `paper` too, which takes about six times as long; the
        others have NaN there.
    seed : int
        Repeats differ, settings do not: all of them see the same draws.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `true_variance`, `reported_variance`, `repeat`; `PDQ`, `PDQ_paper`.
    """
    run = run or Run()
    # Labels are sure, so only "the same class or not" matters: far fewer columns do.
    objects = classes_within_images(synthetic_truth() if truth is None else truth)

    def point(true_variance: float, reported_variance: float, repeat: int) -> dict[str, float]:
        detector = SimulatedDetector(corner_variance=true_variance, reported_variance=reported_variance)
        found = detector.detect(objects, seed=[seed, repeat])
        also = repeat < paper_repeats
        return {
            "PDQ": pdq(objects, found, threads=run.threads),
            "PDQ_paper": pdq(objects, found, convention="paper", threads=run.threads) if also else np.nan,
        }

    points = [
        {"true_variance": float(true), "reported_variance": float(reported), "repeat": repeat}
        for repeat in range(repeats)
        for true in true_variances
        for reported in (true_variances if reported_variances is None else reported_variances)
    ]
    return run.table(
        "spatial-uncertainty", points, point, truth=fingerprint(objects), seed=seed, paper_repeats=paper_repeats
    )


def claims_of_spatial_uncertainty(table: ResultTable) -> list[Verdict]:
    """Judge whether the matching reported variance scores best."""
    verdicts = []
    for column, preset in (("PDQ", "reference"), ("PDQ_paper", "paper")):
        measured = ~np.isnan(table[column])
        if measured.any():
            part = ResultTable({name: values[measured] for name, values in table.columns.items()})
            verdicts.append(_matching_is_best(part, column, preset))
    return verdicts


def _matching_is_best(table: ResultTable, column: str, preset: str) -> Verdict:
    reported = sorted(set(table["reported_variance"].tolist()))
    repeats = len(np.unique(table["repeat"]))
    leads: dict[float, float] = {}
    errors: dict[float, float] = {}
    peaks: dict[float, float] = {}
    for true in sorted(set(table["true_variance"].tolist())):
        rows = table.where(true_variance=true)
        scores = {variance: rows.where(reported_variance=variance)[column] for variance in reported}
        rival = max((score for variance, score in scores.items() if variance != true), key=np.mean)
        lead = scores[true] - rival
        leads[true] = float(lead.mean())
        errors[true] = float(lead.std(ddof=1) / np.sqrt(repeats)) if repeats > 1 else np.nan
        peaks[true] = _peak(np.log(reported), np.array([scores[variance].mean() for variance in reported]))
    least = min(leads, key=lambda true: leads[true])
    error = f" ± {errors[least]:.4f}" if repeats > 1 else ""
    best = sum(lead > 0 for lead in leads.values())
    inner = {true: float(np.exp(peak)) for true, peak in peaks.items() if not np.isnan(peak)}
    explanation = ""
    if inner:
        explanation = (
            "Between the variances that were tried, a parabola through the best and its neighbours puts the peak at "
            f"{', '.join(f'{peak:.3g}' for peak in inner.values())} for true variances of "
            f"{', '.join(f'{true:g}' for true in inner)}. Objects hardly larger than the errors of their corners "
            "score best with less than the true variance, all the more where they fill little of their boxes; the "
            "more of them there are, the lower lies the peak."
        )
    return Verdict(
        f"For each true variance the detector that reports it scores best (preset `{preset}`)",
        best == len(leads),
        f"best at {best} of {len(leads)} true variances in {repeats} repeat{'s' * (repeats != 1)}; "
        f"smallest lead {leads[least]:+.4f}{error} PDQ, at variance {least:g}",
        f"a lead over every other reported variance at all {len(leads)}",
        {f"lead at variance {true:g}": lead for true, lead in leads.items()}
        | {f"peak at variance {true:g}": peak for true, peak in inner.items()},
        explanation,
    )


def _peak(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    """Return where the parabola through the highest point and its neighbours peaks; NaN if it is the first or last.

    >>> round(_peak(np.array([0.0, 1.0, 2.0, 4.0]), -((np.array([0.0, 1.0, 2.0, 4.0]) - 1.3) ** 2)), 6)
    1.3
    """
    i = int(y.argmax())
    if i in (0, len(y) - 1):
        return np.nan
    a, b, _ = np.polyfit(x[i - 1 : i + 2], y[i - 1 : i + 2], 2)
    return float(-b / (2 * a))


def label_uncertainty(
    *,
    probabilities: Sequence[float] = PROBABILITIES[2:],
    classes: int = 10,
    run: Run | None = None,
) -> ResultTable:
    """Vary the probability of the true class, always the largest, of one perfectly placed box (section 6, bottom).

    Returns
    -------
    ResultTable
        `probability`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    truth = square_scene(side=100, image=400, classes=classes)

    def point(probability: float) -> dict[str, float]:
        return measure(truth, SimulatedDetector(label_probability=probability).detect(truth), threads=run.threads)

    return run.table("label-uncertainty", [{"probability": p} for p in probabilities], point, classes=classes)


def claims_of_label_uncertainty(table: ResultTable) -> list[Verdict]:
    """Judge PDQ = sqrt(p) and mAP = 1."""
    distance = max(float(np.abs(table[name] - np.sqrt(table["probability"])).max()) for name in ("PDQ", "PDQ_paper"))
    return [
        at_most("PDQ is the square root of the true class's probability", "largest |PDQ - sqrt(p)|", distance, EXACT),
        stays_perfect(table, measures=("mAP",)),
    ]


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
            "PDQ": pdq(truth, found, threads=run.threads),
            "PDQ_paper": pdq(truth, found, convention="paper", threads=run.threads),
        }

    return run.table("plane", [{}], point)


def plane_box(truth: GroundTruth) -> npt.NDArray[np.float64]:
    """Return the detection of the plane: the upper part of its box, as an inclusive pixel box."""
    x0, y0, x1, y1 = truth.masks.boxes[0].astype(np.float64)
    return np.array([x0, y0, x1, y0 + np.floor(PLANE_PART * (y1 - y0 + 1)) - 1])


def claims_of_plane(table: ResultTable) -> list[Verdict]:
    """Judge that AP50 is content with what PDQ rejects."""
    (row,) = table.rows()
    return [
        Verdict(
            "The box overlaps the plane's by more than half and covers about 16 % of its pixels",
            row["IoU"] > 0.5 and abs(row["covered"] - 0.16) <= 0.01,
            f"IoU {row['IoU']:.3f}, covered {100 * row['covered']:.1f} %",
            "IoU above 0.5, covered 16 ± 1 %",
            {"IoU": row["IoU"], "covered": row["covered"]},
        ),
        Verdict(
            "AP50 counts it as entirely correct",
            row["AP50"] >= 1 - EXACT,
            f"AP50 {row['AP50']:.6g}",
            "1",
            {"AP50": row["AP50"]},
        ),
        Verdict(
            "PDQ rejects it: pPDQ is below 1e-4",
            max(row["PDQ"], row["PDQ_paper"]) < 1e-4,
            f"{row['PDQ_paper']:.3g} under `paper`, {row['PDQ']:.3g} under `reference`",
            "below 1e-4 in both",
            {"pPDQ, paper": row["PDQ_paper"], "pPDQ, reference": row["PDQ"]},
            "The paper's own plane has 3.64e-6. Under `reference` a spatial quality of at most 1e-8 is 0, so the box "
            "is a false positive; the equations alone leave a tiny quality.",
        ),
    ]


def box_probability(*, probabilities: Sequence[float] = PROBABILITIES, run: Run | None = None) -> ResultTable:
    """Vary the one probability that all pixels of a perfectly placed box have (B.1, first figure).

    Returns
    -------
    ResultTable
        `probability`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    truth = square_scene(side=100, image=400)
    perfect = SimulatedDetector().detect(truth)
    inside = truth.masks.to_array(0, 400, 400)

    def point(probability: float) -> dict[str, float]:
        found = dataclasses.replace(perfect, heatmaps=(np.where(inside, probability, 0.0),))
        return measure(truth, found, threads=run.threads)

    return run.table("box-probability", [{"probability": p} for p in probabilities], point)


def claims_of_box_probability(table: ResultTable) -> list[Verdict]:
    """Judge that PDQ alone sees the probability."""
    return [
        falls("PDQ falls with the spatial probability of the box", table, "probability", rising=True),
        stays_perfect(table),
    ]


def corner_variance(
    *,
    variances: Sequence[float] = (0, 1, 5, 10, 25, 50, 100, 200, 350, 500, 750, 1000, 1500, 2000, 3000, 4000, 5000),
    side: int = 500,
    image: int = 2000,
    run: Run | None = None,
) -> ResultTable:
    """Vary the reported variance of perfectly placed corners (B.1, second figure); 0 is a plain box.

    Returns
    -------
    ResultTable
        `variance`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    truth = square_scene(side, image)

    def point(variance: float) -> dict[str, float]:
        return measure(truth, SimulatedDetector(reported_variance=variance).detect(truth), threads=run.threads)

    return run.table("corner-variance", [{"variance": float(v)} for v in variances], point, side=side, image=image)


def claims_of_corner_variance(table: ResultTable) -> list[Verdict]:
    """Judge that uncertainty about a perfect box costs."""
    return [
        falls("PDQ falls monotonically with the variance of perfectly placed corners", table, "variance"),
        stays_perfect(table),
    ]


def label_coco(
    truth: GroundTruth | None = None,
    *,
    probabilities: Sequence[float] = (0.0, 0.005, 0.01, 0.02, *PROBABILITIES),
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Vary the probability of the true class, the others sharing the rest evenly, of perfect boxes (B.3).

    Returns
    -------
    ResultTable
        `probability`, `largest` (whether the true class is the most probable); `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
        A probability at which all classes are equal is left out: the order of the classes would decide.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)
    even_share = 1 / len(objects.classes) if len(objects.classes) > 1 else -1.0

    def point(probability: float, largest: bool) -> dict[str, float]:
        detector = SimulatedDetector(label_probability=probability)
        return measure(objects, detector.detect(objects, seed), threads=run.threads)

    points = [
        {"probability": float(p), "largest": float(p) > even_share}
        for p in probabilities
        if abs(p - even_share) > EXACT
    ]
    return run.table("label-coco", points, point, truth=fingerprint(objects))


def claims_of_label_coco(table: ResultTable) -> list[Verdict]:
    """Judge that PDQ falls with the label probability and that the others only see which class is the largest."""
    first, rest = table.where(largest=True), table.where(largest=False)
    alike = stays_perfect(first, tolerance=0.005)
    low, high = float(rest["mAP"].max(initial=0.0)), float(rest["moLRP"].min(initial=1.0))
    return [
        falls("PDQ falls with the probability of the true class", table, "probability", rising=True),
        Verdict(
            "mAP and moLRP change only where the true class stops being the largest",
            alike.holds and low < 0.5 and high > 0.5,
            f"while largest: {alike.measured}; after: highest mAP {low:.3g}, lowest moLRP {high:.3g}",
            f"while largest: {alike.required}; after: mAP below and moLRP above 0.5",
            {**alike.numbers, "mAP after": low, "moLRP after": high},
        ),
    ]
