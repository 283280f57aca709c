"""Consistency of the numbers printed in the paper's Table 1 (section 7).

The 13 rows are printed numbers; detectors are not evaluated here. The numbers must agree with each other within
rounding, and probox must compute the same PDQ from the same counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from probox.errors import InputError
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Claim, Floats, ResultTable, equals, not_measured
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, GREY, VERMILION, Figure, new_figure, set_log_axes
from probox_experiments.running import Run
from probox_experiments.synthetic import boxes_truth

OBJECTS, CROWDS = 36_781, 446
"""Number of annotations in COCO's val2017, and of crowd regions among them."""

HALF = 0.05
"""Largest error of rounding to 0.1%."""

LEAST_SHARE = 1e-4
"""Smallest fraction for which every row has true positives."""


NAMES = ("mAP", "mLRP", "PDQ", "pPDQ", "Sp", "Lbl", "FG", "BG", "TP", "FP", "FN")
"""Printed columns: qualities in per cent, then counts."""

ROWS: tuple[tuple[str, float, tuple[float, ...]], ...] = (
    ("probFRCNN", 0.5, (35.5, 32.2, 28.4, 56.7, 45.0, 90.7, 77.8, 60.7, 23434, 10016, 13347)),
    ("MC-Dropout SSD", 0.5, (15.8, 15.6, 12.8, 47.3, 39.9, 74.0, 73.1, 57.3, 10510, 2165, 26271)),
    ("MC-Dropout SSD", 0.05, (19.5, 16.6, 1.3, 26.1, 27.3, 35.9, 60.1, 46.2, 24843, 461074, 11938)),
    ("SSD-300", 0.5, (15.0, 14.3, 3.9, 18.1, 9.7, 80.2, 57.5, 25.1, 8999, 4746, 27782)),
    ("SSD-300", 0.05, (19.3, 16.0, 0.6, 9.7, 6.4, 40.2, 38.1, 32.3, 21961, 324067, 14820)),
    ("YOLOv3", 0.5, (29.7, 30.8, 5.7, 14.6, 6.2, 95.8, 52.2, 20.4, 17390, 7728, 19391)),
    ("YOLOv3", 0.05, (30.1, 27.7, 3.3, 12.2, 5.1, 92.8, 44.6, 22.9, 23447, 50074, 13334)),
    ("FRCNN R", 0.5, (32.8, 29.1, 6.7, 19.1, 10.3, 88.8, 62.2, 23.6, 19930, 20044, 16851)),
    ("FRCNN R", 0.05, (34.3, 29.1, 3.0, 17.1, 9.5, 78.5, 57.8, 25.1, 23081, 93141, 13700)),
    ("FRCNN R+FPN", 0.5, (34.6, 31.2, 11.8, 27.1, 16.9, 86.5, 60.6, 35.7, 22537, 14706, 14244)),
    ("FRCNN R+FPN", 0.05, (37.0, 30.4, 4.2, 23.1, 15.8, 69.5, 54.4, 38.7, 29326, 123511, 7455)),
    ("FRCNN X+FPN", 0.5, (37.4, 32.7, 11.9, 27.9, 17.6, 88.2, 60.8, 36.8, 24523, 20444, 12258)),
    ("FRCNN X+FPN", 0.05, (39.0, 32.1, 4.4, 24.8, 16.7, 74.4, 55.6, 39.1, 29922, 130009, 6859)),
)
"""Table 1 of Hall et al. (2020): detector, label threshold, printed numbers."""

PROBABILISTIC = {"probFRCNN": "FRCNN X+FPN", "MC-Dropout SSD": "SSD-300"}
"""Detectors with spatial uncertainty, and their deterministic base detectors."""


def table_1(*, share: float = 0.01, run: Run | None = None) -> ResultTable:
    """Return the paper's Table 1, and evaluate synthetic detections with a fraction of each row's counts.

    Every detected object has exactly the row's pPDQ: a perfect box, and the square of pPDQ as label probability.

    Parameters
    ----------
    share : float
        Fraction of the row's true positives, false positives and false negatives.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `detector`, `threshold`, `printed_PDQ` and so on, in per cent; the synthetic counts `made_TP`, `made_FP`,
        `made_FN`; and computed values: `PDQ`, `pPDQ`, `TP`, `FP`, `FN`, each also `..._paper`.
    """
    if not LEAST_SHARE <= share <= 1.0:
        raise InputError(f"expected share between {LEAST_SHARE:g} and 1, but got {share:g}")
    run = run or Run()

    def point(detector: str, threshold: float, **printed: Any) -> dict[str, float]:
        tp, fp, fn = (round(share * printed[f"printed_{name}"]) for name in ("TP", "FP", "FN"))
        truth, found = made(tp, fp, fn, (printed["printed_pPDQ"] / 100) ** 2)
        measured = run.measure(truth, found, also=("pPDQ", "TP", "FP", "FN"), measures=())
        return {"made_TP": tp, "made_FP": fp, "made_FN": fn, **measured}

    points = [
        {"detector": detector, "threshold": threshold}
        | {f"printed_{name}": value for name, value in zip(NAMES, printed, strict=True)}
        for detector, threshold, printed in ROWS
    ]
    return run.table("table-1", points, point, share=share)


def made(tp: int, fp: int, fn: int, label_probability: float) -> tuple[GroundTruth, Detections]:
    """Return detected and missed objects, each in a separate image, and false positives.

    False positives lie in images whose object is detected, and in one image without objects.
    """
    objects = tp + fn
    square = np.array([6, 6, 9, 9], dtype=np.int32)
    boxes = np.broadcast_to(square, (objects, 4))
    ids = np.arange(1, objects + 2)  # the last image is empty
    truth = boxes_truth(("thing",), boxes, 16, image_ids=ids, image_rows=np.arange(objects))
    taken = np.concatenate([ids[:tp], ids[-1:]])
    found = Detections(
        classes=("thing",),
        image_ids=np.concatenate([ids[:tp], taken[np.arange(fp) % len(taken)]]),
        boxes=np.concatenate([boxes[:tp], np.broadcast_to([0, 0, 1, 1], (fp, 4))]).astype(np.float64),
        label_probs=np.repeat(np.array([label_probability, 1.0], np.float32), [tp, fp])[:, None],
    )
    return truth, found


def claims_of_table_1(table: ResultTable) -> list[Claim]:
    """Return the claims on the printed numbers, on the paper's insights, and on probox's numbers for these counts."""
    if len(table) < len(ROWS):
        return [not_measured("The numbers of Table 1 are consistent", f"all {len(ROWS)} rows")]
    tp, fp, fn = (table[f"made_{name}"] for name in ("TP", "FP", "FN"))
    pairwise = table["printed_pPDQ"] / 100
    return [
        _pdq_from_counts(table),
        _objects(table),
        _means(table),
        _products(table),
        *_insights(table),
        equals("probox reproduces the synthetic counts", table, {"TP": tp, "FP": fp, "FN": fn}, tolerance=0.0),
        equals(
            "probox computes PDQ = pPDQ TP / (TP + FP + FN) for a fraction of each row's counts",
            table,
            {"pPDQ": pairwise, "PDQ": pairwise * tp / (tp + fp + fn)},
        ),
    ]


def compute_pdq(table: ResultTable) -> tuple[Floats, Floats]:
    """Return PDQ in per cent from the other printed numbers, and its tolerance from rounding."""
    tp, fp, fn = (table[f"printed_{name}"] for name in ("TP", "FP", "FN"))
    found = tp / (tp + fp + fn)
    return table["printed_pPDQ"] * found, HALF + HALF * found


def _names(table: ResultTable) -> list[str]:
    return [f"{row['detector']} ({row['threshold']:g})" for row in table.rows()]


def _pdq_from_counts(table: ResultTable) -> Claim:
    """PDQ is the sum of pPDQ over the sum of TP, FP and FN (equation 6)."""
    values, allowed = compute_pdq(table)
    apart = np.abs(table["printed_PDQ"] - values)
    kept, worst = int((apart <= allowed).sum()), int(np.argmax(apart / allowed))
    return Claim(
        "The printed PDQ is pPDQ TP / (TP + FP + FN)",
        kept == len(table),
        f"{kept} of {len(table)} rows; furthest: {_names(table)[worst]}, printed {table['printed_PDQ'][worst]:.1f}, "
        f"computed {values[worst]:.3f}: {apart[worst]:.3f} of {allowed[worst]:.3f} points",
        f"within rounding: {HALF:g} points for PDQ, and {HALF:g} TP / (TP + FP + FN) for pPDQ",
        {name: float(distance) for name, distance in zip(_names(table), apart, strict=True)},
    )


def _objects(table: ResultTable) -> Claim:
    """Every object is detected or missed."""
    objects = table["printed_TP"] + table["printed_FN"]
    seen = ", ".join(f"{count:,}" for count in sorted(set(objects.tolist())))
    return Claim(
        f"TP + FN is {OBJECTS:,}, all annotations of val2017",
        bool((objects == OBJECTS).all()),
        f"TP + FN = {seen} in {len(table)} rows",
        f"{OBJECTS:,} in every row",
        {"fewest": float(objects.min()), "most": float(objects.max())},
        f"Without the {CROWDS} crowd regions there are {OBJECTS - CROWDS:,}: the paper and all presets count crowds, "
        "which detectors can hardly detect, as objects.",
    )


def _means(table: ResultTable) -> Claim:
    """A mean of square roots is at most the root of the means' product (Cauchy and Schwarz)."""
    spatial, label, pairwise = (table[f"printed_{name}"] for name in ("Sp", "Lbl", "pPDQ"))
    room = np.sqrt((spatial + HALF) * (label + HALF)) - (pairwise - HALF)
    least = int(np.argmin(room))
    return Claim(
        "Mean pPDQ is at most sqrt(mean Sp x mean Lbl)",
        bool((room >= 0).all()),
        f"{int((room >= 0).sum())} of {len(table)} rows; below by {room.min():.1f} to {room.max():.1f} points, least "
        f"in {_names(table)[least]}",
        "never above, except by rounding",
        {"least": float(room.min()), "most": float(room.max())},
        "They would be equal if spatial and label quality were proportional over all true positives.",
    )


def _products(table: ResultTable) -> Claim:
    """A mean of products lies below the product of the means if both are negatively correlated."""
    spatial, foreground, background = (table[f"printed_{name}"] / 100 for name in ("Sp", "FG", "BG"))
    half = HALF / 100
    bounded = (spatial - half <= np.minimum(foreground, background) + half) & (
        spatial + half >= foreground + background - 1 - 2 * half
    )
    kept = bounded & ((foreground - half) * (background - half) > spatial + half)
    below = 100 * (foreground * background - spatial)
    return Claim(
        "Mean Sp lies below mean FG x mean BG: matched pairs with better foreground have worse background",
        bool(kept.all()),
        f"{int(kept.sum())} of {len(table)} rows; below by {below.min():.1f} to {below.max():.1f} points",
        "below by more than rounding, and between FG + BG - 1 and the smaller of both",
        {"least": float(below.min()), "most": float(below.max())},
        "Sp is the mean of FG x BG of each pair, so the difference is their covariance: large boxes have low "
        "background quality, small boxes low foreground quality.",
    )


def _insights(table: ResultTable) -> list[Claim]:
    """Return the paper's conclusions from the table, checked with its numbers."""
    rows = {(row["detector"], row["threshold"]): row for row in table.rows()}
    both = [name for name, threshold in rows if threshold == 0.05 and (name, 0.5) in rows]
    pairs = [(rows[name, 0.5], rows[name, 0.05]) for name in both]
    gained = {
        name: [low[f"printed_{name}"] - high[f"printed_{name}"] for high, low in pairs] for name in ("mAP", "PDQ")
    }
    more = [low["printed_FP"] / high["printed_FP"] for high, low in pairs]
    beside = [
        (row, rows[PROBABILISTIC[name], threshold]) for (name, threshold), row in rows.items() if name in PROBABILISTIC
    ]
    leads = {
        key: [row[f"printed_{key}"] - plain[f"printed_{key}"] for row, plain in beside]
        for key in ("PDQ", "Sp", "FG", "BG")
    }
    plain = [row for row in rows.values() if row["detector"] not in PROBABILISTIC]
    places = [row["printed_Sp"] for row in plain]
    best, worst = set(), set()
    for threshold in (0.5, 0.05):
        here = [row for row in rows.values() if row["threshold"] == threshold]
        best.add(max(here, key=lambda row: float(row["printed_Lbl"]))["detector"])
        worst.add(min(here, key=lambda row: float(row["printed_Sp"]))["detector"])
    return [
        Claim(
            "Insight 1: a probabilistic detector has higher PDQ, Sp, FG and BG than its deterministic base",
            all(min(values) > 2 * HALF for values in leads.values()),
            ", ".join(f"{key} by {min(values):.1f} to {max(values):.1f}" for key, values in leads.items()) + " points",
            f"higher by more than rounding in {len(beside)} pairs",
            {key: min(values) for key, values in leads.items()},
        ),
        Claim(
            "Insight 2: YOLOv3 has the highest label quality and the lowest spatial quality at both thresholds",
            best == worst == {"YOLOv3"},
            f"highest Lbl: {', '.join(sorted(best))}; lowest Sp: {', '.join(sorted(worst))}",
            "YOLOv3",
        ),
        Claim(
            "Insight 3: the spatial quality of deterministic detectors is 5.1 to 17.6%, below their label quality",
            (min(places), max(places)) == (5.1, 17.6) and all(row["printed_Sp"] < row["printed_Lbl"] for row in plain),
            f"{min(places):.1f} to {max(places):.1f}%",
            "5.1 to 17.6%, as in the text",
            {"lowest": min(places), "highest": max(places)},
        ),
        Claim(
            "Insight 4: from 0.5 to 0.05 false positives multiply, mAP rises and PDQ falls in every pair",
            min(more) > 1 and min(gained["mAP"]) > 2 * HALF and max(gained["PDQ"]) < -2 * HALF,
            f"{len(pairs)} pairs: FP times {min(more):.1f} to {max(more):.1f}, mAP {min(gained['mAP']):+.1f} to "
            f"{max(gained['mAP']):+.1f}, PDQ {min(gained['PDQ']):+.1f} to {max(gained['PDQ']):+.1f} points",
            "by more than rounding in every pair",
            {"least rise of mAP": min(gained["mAP"]), "least fall of PDQ": max(gained["PDQ"])},
        ),
    ]


def draw_table_1(table: ResultTable) -> Figure:
    """Draw the difference of printed and computed PDQ of each row, with the tolerance from rounding."""
    values, allowed = compute_pdq(table)
    printed = table["printed_PDQ"]
    rows = np.arange(len(table))
    figure = new_figure(7.4, 3.7)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    ends = (0.8 * float(min(printed.min(), values.min())), 1.25 * float(max(printed.max(), values.max())))
    left.plot(ends, ends, color="#C9C9C9", lw=1.2, zorder=1)
    spread = HALF * values / table["printed_pPDQ"]
    left.errorbar(values, printed, xerr=spread, yerr=HALF, fmt="o", ms=3, color=BLUE, elinewidth=1.0, zorder=2)
    set_log_axes(left, [tick for tick in (0.5, 1, 2, 5, 10, 20) if ends[0] <= tick <= ends[1]])
    left.set(xlim=ends, ylim=ends, xlabel="pPDQ TP / (TP + FP + FN), %", ylabel="printed PDQ, %")
    left.set_title("Printed and computed PDQ")

    right.hlines(rows, -allowed, allowed, color="#D0D8E0", lw=9, label="tolerance from rounding")
    right.axvline(0, color=GREY, lw=0.8)
    right.plot(printed - values, rows, "o", ms=4.5, color=VERMILION, label="printed \N{MINUS SIGN} computed")
    right.set_yticks(
        rows, [f"{name}  {pdq:.1f}" for name, pdq in zip(_names(table), printed, strict=True)], fontsize=7.8
    )
    right.set(ylim=(len(table) - 0.4, -0.6), xlabel="points of PDQ")
    right.set_xticks([-0.05, 0.0, 0.05])
    right.grid(axis="y", visible=False)
    right.set_title("Row by row")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=2)
    return figure


TABLE_1 = Experiment(
    name="table-1",
    section="7, table 1",
    varied="the 13 printed rows, and synthetic detections with a hundredth of their counts",
    claim="PDQ = pPDQ TP / (TP + FP + FN); TP + FN counts all annotations; the numbers support the insights",
    function=table_1,
    judge=claims_of_table_1,
    draw=draw_table_1,
)
