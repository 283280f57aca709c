"""Duplicates: appendices C.1 and C.3 to C.5."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from probox.errors import InputError
from probox.measures.boxes.matching import IOU_THRESHOLDS, MAX_DETECTIONS
from probox.measures.boxes.mean_ap import average_precision
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import (
    Claim,
    Floats,
    ResultTable,
    equals,
    mean_of,
    not_measured,
    presets_in,
    stays_perfect,
)
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, GREY, LINES, Figure, draw_fewer_images, new_figure, plot_curves
from probox_experiments.paper.closed_form import duplicates_map
from probox_experiments.paper.matching_rule import (
    after_the_last,
    coco_rule,
    find_hits,
    mean_precision,
    overlaps,
    without_crowds,
)
from probox_experiments.running import Run
from probox_experiments.synthetic import (
    Order,
    SimulatedDetector,
    fingerprint,
    first_images,
    pixel_aligned,
    square_scene,
    synthetic_truth,
)

# --- Duplicates: appendices C.1 and C.3 to C.5 ---

TIMES = tuple(range(1, 11))
FOLLOWS = 0.03
"""Tolerance of metrics that follow 1/n."""
NEIGHBOURS = 0.02
"""Tolerance of mAP's closed form: duplicates of one object in fifty may match another object."""


def duplicates(*, times: Sequence[int] = TIMES, run: Run | None = None) -> ResultTable:
    """Detect one object perfectly with probability 1, several times (C.1).

    Returns
    -------
    ResultTable
        `detections` of the object; `PDQ` under every preset, `mAP`, `moLRP`.
    """
    return _measure_repeats("duplicates", square_scene(), SimulatedDetector(), times, run or Run())


def claims_of_duplicates(table: ResultTable) -> list[Claim]:
    """Return the claims that mAP ignores duplicates and PDQ and moLRP do not."""
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
    draw=plot_curves(
        "detections",
        "Duplicates of one object",
        "perfect detections of the object, n",
        reciprocal=True,
        integers=True,
        legend="center right",
    ),
)


def duplicates_coco(
    truth: GroundTruth | None = None, *, times: Sequence[int] = TIMES, run: Run | None = None
) -> ResultTable:
    """Detect every object perfectly with probability 1, several times, object by object (C.3).

    Returns
    -------
    ResultTable
        `detections` of each object; `PDQ` under every preset, `mAP`, `moLRP`; `closed_form`: mAP if every detection
        after an object's first is a false positive.
    """
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)
    return _measure_repeats("duplicates-coco", objects, SimulatedDetector(), times, run or Run(), closed_form=True)


def claims_of_duplicates_coco(table: ResultTable) -> list[Claim]:
    """Return the claims that mAP penalizes duplicates too little, with its closed form."""
    claim = "With n detections per object mAP lies above 1/n"
    excess = _excess(table.take(table["detections"] > 1))
    if not len(excess):
        return [not_measured(claim, "mAP, n above 1"), *_reciprocal(table)]
    measured = f"above by {excess.min():.4f} to {excess.max():.4f}"
    numbers = {"smallest": float(excess.min()), "largest": float(excess.max())}
    return [Claim(claim, bool(excess.min() > 0), measured, "above 0 for every n > 1", numbers), *_reciprocal(table)]


def _excess(table: ResultTable) -> Floats:
    """Return mAP minus 1/n."""
    return np.asarray(table["mAP"] - 1 / table["detections"])


def _reciprocal(table: ResultTable) -> list[Claim]:
    """Return the claims on many objects that hold for any number of images."""
    n = table["detections"]
    return [
        equals(
            "mAP follows from a precision of k / (n (k - 1) + 1) at the k-th object of a class",
            table,
            {"mAP": table["closed_form"]},
            NEIGHBOURS,
            "It is slightly higher if a duplicate matches a neighbour of the same class or a crowd region.",
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
    draw=plot_curves(
        "detections", "Duplicates of every object", "perfect detections per object, n", reciprocal=True, integers=True
    ),
)


def duplicates_coco_100(
    truth: GroundTruth | None = None,
    *,
    times: Sequence[int] = TIMES,
    subset: int = 100,
    halvings: int = 5,
    run: Run | None = None,
) -> ResultTable:
    """Repeat `duplicates_coco` on the first 100 images, and on all, half, a quarter ... of them (C.4).

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`.
    times : sequence of int
        Detections of each object.
    subset : int
        Number of images in the paper's subset.
    halvings : int
        Number of halvings of the images.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `images`, the paper's subset first, `detections` of each object; then as for `duplicates_coco`.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)
    whole = len(objects.image_ids)
    counts = dict.fromkeys([min(subset, whole), *(whole >> step for step in range(halvings + 1))])
    parts = {count: first_images(objects, count) for count in counts if count > 0}

    def point(images: int, detections: int) -> dict[str, float]:
        found = SimulatedDetector(detections_per_object=detections).detect(parts[images])
        return {**run.measure(parts[images], found), "closed_form": duplicates_map(parts[images], detections)}

    points = [{"images": count, "detections": int(n)} for count, part in parts.items() if len(part) for n in times]
    return run.table("duplicates-coco-100", points, point, truth=fingerprint(objects))


def claims_of_duplicates_coco_100(table: ResultTable) -> list[Claim]:
    """Return the claims that mAP penalizes duplicates less on fewer images."""
    duplicated = table.take(table["detections"] > 1)
    whole = int(table["images"].max())
    sizes = sorted(set(duplicated["images"].tolist()), reverse=True)
    excess = {size: _excess(duplicated.where(images=size)) for size in sizes}
    return [_grows(excess, whole), _larger_on_fewer(excess, whole), *_reciprocal(table)]


def _grows(excess: Mapping[int, Floats], whole: int) -> Claim:
    claim = "mAP's mean excess over 1/n grows with every halving of the images"
    means = {size: float(values.mean()) for size, values in excess.items()}
    halved = [means[whole >> step] for step in range(whole.bit_length()) if whole >> step in means]
    if len(halved) < 2:
        return not_measured(claim, "mAP of n above 1, on some images and on half of them")
    return Claim(
        claim,
        bool(np.diff(halved).min() > 0),
        f"{', '.join(f'{mean:.4f} on {size:,}' for size, mean in means.items())} images, on average over n > 1",
        "larger at every halving",
        {f"mean excess on {size} images": mean for size, mean in means.items()},
        "The mean is over classes that have objects. Classes with few objects have the largest excess, so the mean can "
        "fall if such classes disappear.",
    )


def _larger_on_fewer(excess: Mapping[int, Floats], whole: int) -> Claim:
    claim = "On fewer images mAP's excess over 1/n is larger than on all, for every n > 1"
    of_all = excess.get(whole, np.zeros(0))
    more = [of - of_all for size, of in excess.items() if size < whole and len(of) == len(of_all)]
    if not more:
        return not_measured(claim, "mAP of n above 1, on all images and on fewer")
    least = min(float(lead.min()) for lead in more)
    return Claim(claim, least > 0, f"larger by {least:.4f} or more", "larger on every smaller number of images")


DUPLICATES_COCO_100 = Experiment(
    name="duplicates-coco-100",
    section="C.4",
    varied="number of images: 100, and all, half, a quarter ... of them",
    claim="mAP's excess grows; PDQ = 1/n, moLRP follows it",
    function=duplicates_coco_100,
    judge=claims_of_duplicates_coco_100,
    draw=draw_fewer_images,
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
    return _measure_repeats("duplicates-lower-coco", objects, detector, times, run or Run())


def claims_of_duplicates_lower_coco(table: ResultTable) -> list[Claim]:
    """Return the claims that mAP and moLRP ignore duplicates of lower confidence."""
    return [stays_perfect(table), equals("PDQ is 1/n", table, {"PDQ": 1 / table["detections"]})]


def _measure_repeats(
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
    draw=plot_curves(
        "detections",
        "Less confident duplicates of every object",
        "detections per object: one at 1.0, the others at 0.9",
        reciprocal=True,
        integers=True,
        legend="center right",
    ),
)


# --- Causes of mAP's excess over 1/n: order of detections, hidden false positives (appendices C.3, D) ---

ORDERS: tuple[Order, ...] = ("objects", "rounds", "shuffled")
WORDS = {"objects": "object by object", "rounds": "round by round", "shuffled": "shuffled"}
ROUNDING = 1e-9
"""Tolerance between two computations of the same mean precision, which sum in different order."""


def duplicates_order(
    truth: GroundTruth | None = None,
    *,
    times: Sequence[int] = (1, 2, 4),
    repeats: int = 3,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Detect every object perfectly with probability 1, n times, in different orders.

    To isolate the effect of order, some objects are removed first: crowds, objects with IoU 0.5 or more to another one
    of their class, and objects whose detections would exceed the 100 per image and class that mAP uses.

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`.
    times : sequence of int
        Detections of each object, n; at most 100.
    repeats, seed : int
        Number of shuffles of the detections, and their seed.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `scene` (``three``: the paper's three objects with two detections each; ``many``: the ground truth), `order`,
        `detections` of each object, `repeat`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`; mean precision in NumPy: `smoothed`
        (interpolated as in mAP), `unhidden` (after the last detection at each recall), `submission` (interpolated,
        equal scores in the order of submission across images); `expected` (closed form of mAP, NaN if shuffled);
        `recorded` (precision of mAP at full recall, with one class).
    """
    run = run or Run()
    if not all(1 <= n <= MAX_DETECTIONS for n in times):
        raise InputError(
            f"expected 1 to {MAX_DETECTIONS} detections per object, but got {', '.join(map(str, times))}",
            remedy=f"mAP uses {MAX_DETECTIONS} detections of an image and class, so more have no effect",
        )
    objects = keep_distinct(synthetic_truth() if truth is None else truth, MAX_DETECTIONS // max(times, default=1))
    scenes = {"three": square_scene(20, 100, extra=[[2, 2, 21, 21], [70, 70, 89, 89]]), "many": objects}

    def point(scene: str, order: Order, detections: int, repeat: int) -> dict[str, float]:
        there = scenes[scene]
        found = SimulatedDetector(detections_per_object=detections, order=order).detect(there, seed=[seed, repeat])
        hits = find_hits(there, found, coco_rule)
        recorded = np.nan
        if scene == "three":
            recorded = float(average_precision(there, found).curve(there.classes[0], 0.5).precision[-1])
        return run.measure(there, found) | {
            "smoothed": mean_precision(hits),
            "unhidden": mean_precision(hits, after_the_last),
            "submission": mean_precision(hits, ties="submission"),
            "expected": np.nan if order == "shuffled" else duplicates_map(there, detections, order),
            "recorded": recorded,
        }

    points: list[dict[str, Any]] = [
        {"scene": "three", "order": order, "detections": 2, "repeat": 0} for order in ("objects", "rounds")
    ]
    points += [
        {"scene": "many", "order": order, "detections": int(n), "repeat": repeat}
        for n in times
        for order in ORDERS
        for repeat in range(repeats if order == "shuffled" and n > 1 else 1)
    ]
    return run.table("duplicates-order", points, point, truth=fingerprint(objects), seed=seed)


def keep_distinct(truth: GroundTruth, most: int) -> GroundTruth:
    """Return the ground truth with boxes around pixels and without objects that one detection could match equally.

    Objects of one class in an image are kept if their IoU with all earlier ones is below 0.5, the lowest threshold of
    mAP, up to `most` objects.
    """
    plain = pixel_aligned(without_crowds(truth))
    boxes = np.concatenate([plain.boxes[:, :2], plain.extents], axis=1)
    group = plain.image_rows * len(plain.classes) + plain.labels
    order = np.argsort(group, kind="stable")
    kept: list[int] = []
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        over = np.triu(overlaps(boxes[rows], boxes[rows]) >= IOU_THRESHOLDS[0], k=1).any(axis=0)
        kept += rows[~over][:most].tolist()
    return plain.take(np.sort(np.array(kept, np.int64)))


def claims_of_duplicates_order(table: ResultTable) -> list[Claim]:
    """Return the claims on the paper's example, both causes of mAP's excess, and PDQ's independence of order."""
    share = 1 / table["detections"]
    three = table.where(scene="three", order="objects")
    by_object, by_round = table.where(order="objects"), table.where(order="rounds")
    known = table.take(table["order"] != "shuffled")
    return [
        equals(
            "With two detections of each of three objects the precision recorded at the third is 0.6, not 0.5",
            three,
            {"recorded": 0.6, "mAP": (34 * 1 + 33 * 2 / 3 + 34 * 3 / 5) / 101, "unhidden": 0.5},
            ROUNDING,
        ),
        equals("mAP uses the highest precision at a recall or beyond", table, {"mAP": table["smoothed"]}, ROUNDING),
        equals(
            "mAP is the mean of k/(n(k - 1) + 1) object by object, and the mean of k/(nm + k - m), with m objects in "
            "earlier images, round by round",
            known,
            {"mAP": known["expected"]},
            ROUNDING,
        ),
        equals(
            "Object by object only hidden false positives raise mAP: after the last detection at each recall, "
            "precision is 1/n",
            by_object,
            {"unhidden": 1 / by_object["detections"]},
            ROUNDING,
        ),
        equals(
            "With equal scores ranked in order of submission, as in the paper, round by round gives 1",
            by_round,
            {"submission": np.ones(len(by_round))},
            ROUNDING,
            "All objects are then matched before any is detected again. COCO's evaluator and probox rank equal scores "
            "image by image, so on many images round by round gives less than 1.",
        ),
        _between(table.where(scene="many")),
        equals(
            "PDQ and moLRP do not depend on order: PDQ and 1 - moLRP are 1/n in every order",
            table,
            dict.fromkeys(("PDQ", "1 - moLRP"), share),
        ),
    ]


def _between(many: ResultTable) -> Claim:
    claim = "With shuffled detections, mAP lies above that of object by object and below that of round by round"
    rows = many.take(many["detections"] > 1)
    counts = np.unique(rows["detections"])
    parts = {n: {order: rows.where(detections=n, order=order)["mAP"] for order in ORDERS} for n in counts.tolist()}
    if not parts or not all(len(part) for orders in parts.values() for part in orders.values()):
        return not_measured(claim, "two detections per object or more, in all orders")
    above = min(float((part["shuffled"] - part["objects"]).min()) for part in parts.values())
    below = min(float((part["rounds"] - part["shuffled"]).min()) for part in parts.values())
    numbers: dict[str, float] = {"least above": above, "least below": below}
    shown = []
    for n, part in parts.items():
        mean, low, high = (float(part[order].mean()) for order in ("shuffled", "objects", "rounds"))
        error = float(np.nan_to_num(mean_of(part["shuffled"]).error))
        shown.append(f"n = {n}: {low:.4f} < {mean:.4f}{f' ± {error:.4f}' if error else ''} < {high:.4f}")
        numbers |= {f"objects, n = {n}": low, f"shuffled, n = {n}": mean, f"rounds, n = {n}": high}
    return Claim(
        claim,
        above > 0 and below > 0,
        f"{'; '.join(shown)}, 1/n being {', '.join(f'{1 / n:.4f}' for n in parts)}",
        "above and below in every repeat, for every n > 1",
        numbers,
        "The k-th object of a class is matched latest object by object, and earliest round by round, because images "
        "are ranked one after the other. If no image has two objects of a class, all orders are equal.",
    )


def draw_duplicates_order(table: ResultTable) -> Figure:
    """Draw mAP in each order and PDQ against n, and the components of mAP at the largest n."""
    figure = new_figure(7.4, 3.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    many = table.where(scene="many").mean_over("repeat")
    styles = {"objects": (0, (5, 2)), "rounds": "-", "shuffled": (0, (1, 1.2))}
    counts = np.unique(many["detections"])
    left.plot(counts, 1 / counts, color="#D0D0D0", lw=7, label="1/n", zorder=1.5, solid_capstyle="round")
    for order, dashes in styles.items():
        part = many.where(order=order)
        line = {**LINES["mAP"], "ls": dashes, "ms": 5}
        left.plot(part["detections"], part["mAP"], **line, mew=1.2, label=f"mAP, {WORDS[order]}")
    for preset, column in presets_in(many).items():
        part = many.where(order="objects")
        line = dict(LINES["PDQ"]) if preset == "reference" else {"color": BLUE, "ls": "--", "lw": 1.0}
        name = "PDQ, any order" if preset == "reference" else f"PDQ, {preset}"
        left.plot(part["detections"], part[column], **line, label=name)
    left.set(xlabel="perfect detections per object, n", ylabel="score", ylim=(-0.04, 1.07), xticks=counts)
    left.set_title("Duplicates of every object")
    left.legend(loc="best", fontsize=7.5, handlelength=4.5)

    largest = many.where(detections=counts.max()) if len(counts) else many
    heights = {order: largest.where(order=order) for order in ORDERS}
    for place, order in enumerate(ORDERS):
        part = heights[order]
        if not len(part):
            continue
        bottom = 0.0
        base = 1 / float(part["detections"][0])
        pieces = (base, float(part["unhidden"][0]) - base, float(part["mAP"][0] - part["unhidden"][0]))
        for piece, colour in zip(pieces, ("#D0D0D0", GREY, LINES["mAP"]["color"]), strict=True):
            right.bar(place, piece, bottom=bottom, color=colour, width=0.62)
            bottom += piece
        right.text(place, bottom + 0.01, f"{bottom:.3f}", ha="center", va="bottom", fontsize=8.5)
    right.set_xticks(range(len(ORDERS)), [WORDS[order].replace(" by ", " by\n") for order in ORDERS])
    right.grid(False, axis="x")
    right.set_ylabel("mAP")
    right.set_ylim(0, 1.07)
    right.set_title(f"Components of mAP, n = {counts.max() if len(counts) else '?'}")
    colours = {"hidden false positives": LINES["mAP"]["color"], "order": GREY, "1/n": "#D0D0D0"}
    for name, colour in colours.items():
        right.bar(0, 0, color=colour, label=name)
    right.legend(loc="upper left", fontsize=7.5)
    return figure


DUPLICATES_ORDER = Experiment(
    name="duplicates-order",
    section="C.3, D",
    varied="the order of n perfect detections per object",
    claim="order and hidden false positives raise mAP above 1/n; PDQ is 1/n in any order",
    function=duplicates_order,
    judge=claims_of_duplicates_order,
    draw=draw_duplicates_order,
)
