"""What the measures make of duplicates: appendices C.1 and C.3 to C.5."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

from probox.experiments.claims import Claim, equals, falls, stays_perfect
from probox.experiments.experiment import Experiment
from probox.experiments.figures import draw_curves, draw_fewer_images
from probox.experiments.running import Run
from probox.experiments.scenes import fingerprint, first_images, pixel_aligned, square_scene, synthetic_truth
from probox.experiments.simulate import SimulatedDetector
from probox.experiments.table import ResultTable
from probox.tables.groundtruth import GroundTruth

__all__ = [
    "DUPLICATES",
    "DUPLICATES_COCO",
    "DUPLICATES_COCO_100",
    "DUPLICATES_LOWER_COCO",
    "duplicates",
    "duplicates_coco",
    "duplicates_coco_100",
    "duplicates_lower_coco",
]

TIMES = tuple(range(1, 11))
FOLLOWS = 0.03
"""How far measures may be from 1/n that follow it."""


def duplicates(*, times: Sequence[int] = TIMES, run: Run | None = None) -> ResultTable:
    """Detect one object perfectly and surely, several times (C.1).

    Returns
    -------
    ResultTable
        `detections` of the object; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    return _repeated("duplicates", square_scene(), SimulatedDetector(), times, run or Run())


def claims_of_duplicates(table: ResultTable) -> list[Claim]:
    """Judge that mAP does not see duplicates."""
    claim = "PDQ and 1 - moLRP of n detections of one object are 1/n"
    return [
        stays_perfect(table, measures=("mAP",)),
        equals(claim, table, dict.fromkeys(("PDQ", "1 - moLRP"), 1 / table["detections"])),
    ]


DUPLICATES = Experiment(
    name="duplicates",
    section="C.1",
    varied="perfect duplicates of one object",
    claim="mAP stays 1; moLRP and PDQ fall as 1/n",
    function=duplicates,
    judge=claims_of_duplicates,
    draw=partial(
        draw_curves,
        x="detections",
        title="Duplicates of one object",
        xlabel="perfect detections of the object, n",
        reciprocal=True,
        integers=True,
        legend="center right",
    ),
)


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


def claims_of_duplicates_coco(table: ResultTable) -> list[Claim]:
    """Judge that mAP sees too few of the duplicates."""
    n = table["detections"]
    excess = (table["mAP"] - 1 / n)[n > 1]
    return [
        Claim(
            "With n detections per object mAP lies above 1/n",
            bool(excess.min() > 0),
            f"above by {excess.min():.4f} to {excess.max():.4f}",
            "above 0 for every n > 1",
            {"smallest": float(excess.min()), "largest": float(excess.max())},
        ),
        equals("PDQ and 1 - moLRP follow 1/n", table, dict.fromkeys(("PDQ", "1 - moLRP"), 1 / n), FOLLOWS),
    ]


DUPLICATES_COCO = Experiment(
    name="duplicates-coco",
    section="C.3",
    varied="duplicates per object, ordered object by object",
    claim="mAP lies above 1/n; PDQ and moLRP follow 1/n",
    function=duplicates_coco,
    judge=claims_of_duplicates_coco,
    draw=partial(
        draw_curves,
        x="detections",
        title="Duplicates of every object",
        xlabel="perfect detections per object, n",
        reciprocal=True,
        integers=True,
    ),
    takes=("truth",),
)


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
        return run.measure(sets[images], detector.detect(sets[images]))

    points = [{"images": count, "detections": int(n)} for count in sets for n in times]
    return run.table("duplicates-coco-100", points, point, truth=fingerprint(objects))


def claims_of_duplicates_coco_100(table: ResultTable) -> list[Claim]:
    """Judge that mAP sees fewer of the duplicates where there are fewer images."""
    few, all_of_them = table["images"].min(), table["images"].max()
    part, whole = table.where(images=few), table.where(images=all_of_them)
    n = part["detections"]
    more = (part["mAP"] - whole["mAP"])[n > 1]
    mean_excess = [float((rows["mAP"] - 1 / n)[n > 1].mean()) for rows in (part, whole)]
    return [
        Claim(
            "mAP's excess over 1/n is larger on fewer images",
            bool(more.min() > 0),
            f"{mean_excess[0]:.4f} on {few} images, {mean_excess[1]:.4f} on {all_of_them}, on average over n > 1",
            "larger for every n > 1",
            {f"mean excess on {few} images": mean_excess[0], f"mean excess on {all_of_them} images": mean_excess[1]},
            "There are no more images than these to compare with." if few == all_of_them else "",
        ),
        equals("PDQ and 1 - moLRP follow 1/n", part, dict.fromkeys(("PDQ", "1 - moLRP"), 1 / n), FOLLOWS),
    ]


DUPLICATES_COCO_100 = Experiment(
    name="duplicates-coco-100",
    section="C.4",
    varied="the same on 100 images",
    claim="mAP's excess grows",
    function=duplicates_coco_100,
    judge=claims_of_duplicates_coco_100,
    draw=draw_fewer_images,
    takes=("truth",),
)


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


def claims_of_duplicates_lower_coco(table: ResultTable) -> list[Claim]:
    """Judge that mAP and moLRP do not see duplicates of lower confidence."""
    return [
        stays_perfect(table, tolerance=0.005),
        falls("PDQ falls with every duplicate", table, "detections"),
    ]


def _repeated(
    name: str, truth: GroundTruth, detector: SimulatedDetector, times: Sequence[int], run: Run
) -> ResultTable:
    def point(detections: int) -> dict[str, float]:
        found = dataclasses.replace(detector, detections_per_object=detections).detect(truth)
        return run.measure(truth, found)

    return run.table(name, [{"detections": int(n)} for n in times], point, truth=fingerprint(truth))


DUPLICATES_LOWER_COCO = Experiment(
    name="duplicates-lower-coco",
    section="C.5",
    varied="duplicates at 0.9",
    claim="mAP and moLRP stay perfect; PDQ falls",
    function=duplicates_lower_coco,
    judge=claims_of_duplicates_lower_coco,
    draw=partial(
        draw_curves,
        x="detections",
        title="Less sure duplicates of every object",
        xlabel="detections per object: one at 1.0, the others at 0.9",
        reciprocal=True,
        integers=True,
        legend="center right",
    ),
    takes=("truth",),
)
