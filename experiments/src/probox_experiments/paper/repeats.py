"""What the measures make of duplicates: appendices C.1 and C.3 to C.5."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Claim, equals, not_measured, stays_perfect
from probox_experiments.experiment import Experiment
from probox_experiments.figures import draw_curves, draw_fewer_images
from probox_experiments.paper.closed_form import duplicates_map
from probox_experiments.running import Run
from probox_experiments.scenes import fingerprint, first_images, pixel_aligned, square_scene, synthetic_truth
from probox_experiments.simulate import SimulatedDetector
from probox_experiments.table import ResultTable

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
NEIGHBOURS = 0.02
"""How far mAP may be from its closed form: as if duplicates of one object in fifty hit another one."""


def duplicates(*, times: Sequence[int] = TIMES, run: Run | None = None) -> ResultTable:
    """Detect one object perfectly and surely, several times (C.1).

    Returns
    -------
    ResultTable
        `detections` of the object; `PDQ` under every preset, `mAP`, `moLRP`.
    """
    return _repeated("duplicates", square_scene(), SimulatedDetector(), times, run or Run())


def claims_of_duplicates(table: ResultTable) -> list[Claim]:
    """Judge that mAP does not see duplicates."""
    return [
        stays_perfect(table, measures=("mAP",)),
        equals("PDQ of n detections of one object is 1/n", table, {"PDQ": 1 / table["detections"]}),
        equals("1 - moLRP is 1/n", table, {"1 - moLRP": 1 / table["detections"]}),
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
        `detections` of each object; `PDQ` under every preset, `mAP`, `moLRP`; `closed_form`: what mAP is if every
        detection after an object's first is a false positive.
    """
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)
    return _repeated("duplicates-coco", objects, SimulatedDetector(), times, run or Run(), closed_form=True)


def claims_of_duplicates_coco(table: ResultTable) -> list[Claim]:
    """Judge that mAP sees too few of the duplicates, and why."""
    claim = "With n detections per object mAP lies above 1/n"
    duplicated = table.take(table["detections"] > 1)
    excess = _excess(duplicated)
    return [
        Claim(
            claim,
            bool(excess.min() > 0),
            f"above by {excess.min():.4f} to {excess.max():.4f}",
            "above 0 for every n > 1",
            {"smallest": float(excess.min()), "largest": float(excess.max())},
        )
        if len(excess)
        else not_measured(claim, "mAP, n above 1"),
        *_reciprocal(table),
    ]


def _excess(table: ResultTable) -> npt.NDArray[np.float64]:
    """Return how far mAP is above 1/n; nothing if it was not measured."""
    return np.asarray(table["mAP"] - 1 / table["detections"]) if "mAP" in table else np.zeros(0)


def _reciprocal(table: ResultTable) -> list[Claim]:
    """Return the claims about many objects that are true of any number of images."""
    n = table["detections"]
    return [
        equals(
            "mAP is what a precision of k / (n (k - 1) + 1) at the k-th object of a class makes of it",
            table,
            {"mAP": table["closed_form"]},
            NEIGHBOURS,
            "It is a little higher where a duplicate hits a neighbour of the same class, or a crowd forgives it.",
        ),
        equals("PDQ is 1/n", table, {"PDQ": 1 / n}),
        equals("1 - moLRP follows 1/n", table, {"1 - moLRP": 1 / n}, FOLLOWS),
    ]


DUPLICATES_COCO = Experiment(
    name="duplicates-coco",
    section="C.3",
    varied="duplicates per object, ordered object by object",
    claim="mAP lies above 1/n; PDQ = 1/n, moLRP follows it",
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
    subset: int = 100,
    halvings: int = 5,
    run: Run | None = None,
) -> ResultTable:
    """Do the same on the first 100 images, and on all, half, a quarter ... of them (C.4).

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`.
    times : sequence of int
        Detections of each object.
    subset : int
        How many images the paper's own part has.
    halvings : int
        How often the number of images is halved.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `images`, those of the paper's part first, `detections` of each object; then as for `duplicates_coco`.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)
    whole = len(objects.image_ids)
    counts = dict.fromkeys([min(subset, whole), *(whole >> step for step in range(halvings + 1))])
    parts = {count: first_images(objects, count) for count in counts if count > 0}

    def point(images: int, detections: int) -> dict[str, float]:
        found = SimulatedDetector(detections_per_object=detections).detect(parts[images])
        return {
            **run.measure(parts[images], found),
            "closed_form": duplicates_map(parts[images], detections),
        }

    points = [{"images": count, "detections": int(n)} for count, part in parts.items() if len(part) for n in times]
    return run.table("duplicates-coco-100", points, point, truth=fingerprint(objects))


def claims_of_duplicates_coco_100(table: ResultTable) -> list[Claim]:
    """Judge that mAP sees fewer of the duplicates the fewer images there are."""
    grows = "mAP's mean excess over 1/n grows with every halving of the images"
    larger = "On fewer images mAP's excess over 1/n is larger than on all, for every n > 1"
    duplicated = table.take(table["detections"] > 1)
    whole = int(table["images"].max())
    sizes = sorted(set(duplicated["images"].tolist()), reverse=True)
    excess = {size: _excess(duplicated.where(images=size)) for size in sizes}
    means = {size: float(values.mean()) for size, values in excess.items() if len(values)}
    halved = [means[whole >> step] for step in range(whole.bit_length()) if whole >> step in means]
    shown = ", ".join(f"{mean:.4f} on {size:,}" for size, mean in means.items())
    numbers = {f"mean excess on {size} images": mean for size, mean in means.items()}
    few = [size for size in means if size < whole and len(excess[size]) == len(excess.get(whole, ()))]
    return [
        Claim(
            grows,
            bool(np.diff(halved).min() > 0),
            f"{shown} images, on average over n > 1",
            "larger at every halving",
            numbers,
            "The mean is over classes that have objects. A class of few objects exceeds most, so the mean can fall "
            "back where such classes are gone.",
        )
        if len(halved) > 1
        else not_measured(grows, "mAP of n above 1, on some images and on half of them"),
        Claim(
            larger,
            all(bool((excess[size] > excess[whole]).all()) for size in few),
            f"larger by {min(float((excess[size] - excess[whole]).min()) for size in few):.4f} or more",
            "larger on every smaller number of images",
        )
        if few
        else not_measured(larger, "mAP of n above 1, on all images and on fewer"),
        *_reciprocal(table),
    ]


DUPLICATES_COCO_100 = Experiment(
    name="duplicates-coco-100",
    section="C.4",
    varied="the same on 100 images, and on all, half, a quarter ... of them",
    claim="mAP's excess grows; PDQ = 1/n, moLRP follows it",
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
        `detections` of each object; `PDQ` under every preset, `mAP`, `moLRP`.
    """
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)
    detector = SimulatedDetector(duplicate_probability=0.9)
    return _repeated("duplicates-lower-coco", objects, detector, times, run or Run())


def claims_of_duplicates_lower_coco(table: ResultTable) -> list[Claim]:
    """Judge that mAP and moLRP do not see duplicates of lower confidence."""
    return [stays_perfect(table), equals("PDQ is 1/n", table, {"PDQ": 1 / table["detections"]})]


def _repeated(
    name: str,
    truth: GroundTruth,
    detector: SimulatedDetector,
    times: Sequence[int],
    run: Run,
    closed_form: bool = False,
) -> ResultTable:
    def point(detections: int) -> dict[str, float]:
        found = dataclasses.replace(detector, detections_per_object=detections).detect(truth)
        expected = {"closed_form": duplicates_map(truth, detections)} if closed_form else {}
        return {**run.measure(truth, found), **expected}

    return run.table(name, [{"detections": int(n)} for n in times], point, truth=fingerprint(truth))


DUPLICATES_LOWER_COCO = Experiment(
    name="duplicates-lower-coco",
    section="C.5",
    varied="duplicates at 0.9",
    claim="mAP and moLRP stay perfect; PDQ = 1/n",
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
