"""What the measures make of missed objects, false detections and duplicates: appendices B.4, B.5 and C."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from probox.experiments.claims import EXACT, Verdict, falls, fractions_of_one, stays_perfect
from probox.experiments.running import Run, measure
from probox.experiments.scenes import (
    border_squares,
    boxes_in_one_image,
    evenly,
    fingerprint,
    first_images,
    pixel_aligned,
    square_scene,
    synthetic_truth,
)
from probox.experiments.simulate import SimulatedDetector
from probox.experiments.table import ResultTable
from probox.tables.groundtruth import GroundTruth

__all__ = [
    "duplicates",
    "duplicates_coco",
    "duplicates_coco_100",
    "duplicates_lower_coco",
    "false_small",
    "lower_confidence",
    "missed_coco",
    "missed_small",
]

COUNTS = tuple(range(11))
TIMES = tuple(range(1, 11))
SIDE, IMAGE = 500, 2000
ALIKE = 0.03
"""How far measures may be apart that respond alike: mAP reads precision at 101 recalls, a hundredth apart."""


def missed_small(*, counts: Sequence[int] = COUNTS, run: Run | None = None) -> ResultTable:
    """Add small objects at the border that are not detected, beside a large one that is (B.4).

    Returns
    -------
    ResultTable
        `missed`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    found = SimulatedDetector().detect(square_scene(SIDE, IMAGE))

    def point(missed: int) -> dict[str, float]:
        return measure(square_scene(SIDE, IMAGE, extra=border_squares(missed, IMAGE)), found, threads=run.threads)

    return run.table("missed-small", [{"missed": int(count)} for count in counts], point)


def missed_coco(
    truth: GroundTruth | None = None,
    *,
    rates: Sequence[float] = evenly(0.0, 1.0, 11),
    repeats: int = 5,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Miss objects at a given rate, and detect the others perfectly (B.4).

    Returns
    -------
    ResultTable
        `rate`, `repeat`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)

    def point(rate: float, repeat: int) -> dict[str, float]:
        found = SimulatedDetector(miss_rate=rate).detect(objects, seed=[seed, repeat])
        return measure(objects, found, threads=run.threads)

    points = [{"rate": float(rate), "repeat": repeat} for repeat in range(repeats) for rate in rates]
    return run.table("missed-coco", points, point, truth=fingerprint(objects), seed=seed)


def false_small(*, counts: Sequence[int] = COUNTS, run: Run | None = None) -> ResultTable:
    """Add small false detections with probability 1.0 beside a correct one with 0.9 (B.5).

    Returns
    -------
    ResultTable
        `false`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    return _beside_a_correct_one("false-small", counts, 0.9, 1.0, run or Run())


def lower_confidence(*, counts: Sequence[int] = COUNTS, run: Run | None = None) -> ResultTable:
    """Add small false detections with probability 0.9 beside a perfect one with 1.0 (C.2).

    Returns
    -------
    ResultTable
        `false`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    return _beside_a_correct_one("lower-confidence", counts, 1.0, 0.9, run or Run())


def _beside_a_correct_one(name: str, counts: Sequence[int], correct: float, wrong: float, run: Run) -> ResultTable:
    truth = square_scene(SIDE, IMAGE)

    def point(false: int) -> dict[str, float]:
        boxes = np.concatenate([truth.masks.boxes, border_squares(false, IMAGE)])
        found = boxes_in_one_image(truth, boxes, [correct] + [wrong] * false)
        return measure(truth, found, threads=run.threads)

    return run.table(name, [{"false": int(count)} for count in counts], point)


def duplicates(*, times: Sequence[int] = TIMES, run: Run | None = None) -> ResultTable:
    """Detect one object perfectly and surely, several times (C.1).

    Returns
    -------
    ResultTable
        `detections` of the object; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    return _repeated("duplicates", square_scene(SIDE, IMAGE), SimulatedDetector(), times, run or Run())


def duplicates_coco(
    truth: GroundTruth | None = None, *, times: Sequence[int] = TIMES, run: Run | None = None
) -> ResultTable:
    """Detect every object perfectly and surely, several times, object by object (C.3).

    Returns
    -------
    ResultTable
        `detections` of each object; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)
    return _repeated("duplicates-coco", objects, SimulatedDetector(), times, run or Run())


def duplicates_coco_100(
    truth: GroundTruth | None = None,
    *,
    times: Sequence[int] = TIMES,
    images: int = 100,
    run: Run | None = None,
) -> ResultTable:
    """Do the same on the first 100 images, and on all for comparison (C.4).

    Returns
    -------
    ResultTable
        `images`, `detections` of each object; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)
    part = first_images(objects, images)
    sets = {len(chosen.image_ids): chosen for chosen in (part, objects)}

    def point(images: int, detections: int) -> dict[str, float]:
        detector = SimulatedDetector(detections_per_object=detections)
        return measure(sets[images], detector.detect(sets[images]), threads=run.threads)

    points = [{"images": count, "detections": int(n)} for count in sets for n in times]
    return run.table("duplicates-coco-100", points, point, truth=fingerprint(objects))


def duplicates_lower_coco(
    truth: GroundTruth | None = None, *, times: Sequence[int] = TIMES, run: Run | None = None
) -> ResultTable:
    """Detect every object perfectly, the first time with probability 1.0, then with 0.9 (C.5).

    Returns
    -------
    ResultTable
        `detections` of each object; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)
    detector = SimulatedDetector(duplicate_probability=0.9)
    return _repeated("duplicates-lower-coco", objects, detector, times, run or Run())


def _repeated(
    name: str, truth: GroundTruth, detector: SimulatedDetector, times: Sequence[int], run: Run
) -> ResultTable:
    def point(detections: int) -> dict[str, float]:
        found = dataclasses.replace(detector, detections_per_object=detections).detect(truth)
        return measure(truth, found, threads=run.threads)

    return run.table(name, [{"detections": int(n)} for n in times], point, truth=fingerprint(truth))


def _alike(claim: str, table: ResultTable, label: float = 1.0) -> Verdict:
    """Return the verdict on PDQ (over the square root of a label probability), mAP and 1 - moLRP being close."""
    values = np.stack(
        [table["PDQ"] / np.sqrt(label), table["PDQ_paper"] / np.sqrt(label), table["mAP"], 1 - table["moLRP"]]
    )
    apart = values.max(axis=0) - values.min(axis=0)
    worst = int(apart.argmax())
    pdq, _, ap, lrp = values[:, worst]
    name = "PDQ" if label == 1.0 else f"PDQ / sqrt({label:g})"
    return Verdict(
        claim,
        bool(apart.max() <= ALIKE),
        f"furthest apart by {apart.max():.3f}: {name} {pdq:.3f}, mAP {ap:.3f}, 1 - moLRP {lrp:.3f}",
        f"at most {ALIKE} apart",
        {"apart": float(apart.max()), "PDQ": float(pdq), "mAP": float(ap), "1 - moLRP": float(lrp)},
    )


def claims_of_missed_small(table: ResultTable) -> list[Verdict]:
    """Judge that a missed object costs the same in all measures."""
    return [_alike("All three respond alike to missed objects", table)]


def claims_of_missed_coco(table: ResultTable) -> list[Verdict]:
    """Judge that a missed object costs the same in all measures."""
    return [_alike("All three respond alike to missed objects", table.mean_over("repeat"))]


def claims_of_false_small(table: ResultTable) -> list[Verdict]:
    """Judge that a false detection costs the same in all measures."""
    return [
        _alike(
            "All three respond alike to false detections, but for the label probability 0.9 that PDQ sees", table, 0.9
        )
    ]


def claims_of_lower_confidence(table: ResultTable) -> list[Verdict]:
    """Judge that mAP and moLRP do not see false detections of lower confidence."""
    return [stays_perfect(table), falls("PDQ falls with every false detection", table, "false")]


def claims_of_duplicates(table: ResultTable) -> list[Verdict]:
    """Judge that mAP does not see duplicates."""
    claim = "PDQ and 1 - moLRP of n detections of one object are 1/n"
    return [
        stays_perfect(table, measures=("mAP",)),
        fractions_of_one(table, table["detections"], ("PDQ", "PDQ_paper", "moLRP"), claim, EXACT),
    ]


FOLLOWS = 0.03


def claims_of_duplicates_coco(table: ResultTable) -> list[Verdict]:
    """Judge that mAP sees too few of the duplicates."""
    n = table["detections"]
    excess = (table["mAP"] - 1 / n)[n > 1]
    return [
        Verdict(
            "With n detections per object mAP lies above 1/n",
            bool(excess.min() > 0),
            f"above by {excess.min():.4f} to {excess.max():.4f}",
            "above 0 for every n > 1",
            {"smallest": float(excess.min()), "largest": float(excess.max())},
        ),
        fractions_of_one(table, n, ("PDQ", "PDQ_paper", "moLRP"), "PDQ and 1 - moLRP follow 1/n", FOLLOWS),
    ]


def claims_of_duplicates_coco_100(table: ResultTable) -> list[Verdict]:
    """Judge that mAP sees fewer of the duplicates where there are fewer images."""
    few, all_of_them = table["images"].min(), table["images"].max()
    part, whole = table.where(images=few), table.where(images=all_of_them)
    n = part["detections"]
    more = (part["mAP"] - whole["mAP"])[n > 1]
    mean_excess = [float((rows["mAP"] - 1 / n)[n > 1].mean()) for rows in (part, whole)]
    return [
        Verdict(
            "mAP's excess over 1/n is larger on fewer images",
            bool(more.min() > 0),
            f"{mean_excess[0]:.4f} on {few} images, {mean_excess[1]:.4f} on {all_of_them}, on average over n > 1",
            "larger for every n > 1",
            {f"mean excess on {few} images": mean_excess[0], f"mean excess on {all_of_them} images": mean_excess[1]},
            "There are no more images than these to compare with." if few == all_of_them else "",
        ),
        fractions_of_one(part, n, ("PDQ", "PDQ_paper", "moLRP"), "PDQ and 1 - moLRP follow 1/n", FOLLOWS),
    ]


def claims_of_duplicates_lower_coco(table: ResultTable) -> list[Verdict]:
    """Judge that mAP and moLRP do not see duplicates of lower confidence."""
    return [
        stays_perfect(table, tolerance=0.005),
        falls("PDQ falls with every duplicate", table, "detections"),
    ]
