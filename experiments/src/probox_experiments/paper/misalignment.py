"""Shifted and scaled boxes: appendix B.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from probox_experiments.claims import EXACT, Claim, Floats, ResultTable, equals, not_measured, presets_in
from probox_experiments.experiment import Experiment
from probox_experiments.figures import plot_families
from probox_experiments.paper.closed_form import EPSILON, box_scores, pair_equals
from probox_experiments.running import Run
from probox_experiments.synthetic import boxes_in_one_image, evenly, square_scene

VARIANCES = (0.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
AREAS = tuple(round(side**2, 4) for side in evenly(0.5, 1.5, 51))  # sides of whole, even numbers of pixels
SHIFTS = tuple(sorted((*evenly(-0.5, 0.5, 101), -0.0125, -0.0005, 0.0005, 0.0125)))  # whole pixels, and quarters
NEAR_ZERO, LENIENT = 0.1, 0.5
SNAPPED = 1.1e-5
"""Tolerance of qualities between whole pixels: under `reference` values within 1.001e-5 of 1 become 1."""
CLOSELY = 0.1
"""Largest mean distance of curves that follow each other closely: the height of one of mAP's ten steps."""


def translation(
    *,
    shifts: Sequence[float] = SHIFTS,
    variances: Sequence[float] = VARIANCES,
    side: int = 500,
    image: int = 2000,
    run: Run | None = None,
) -> ResultTable:
    """Shift a box left and right over a square object in the middle of an image.

    Parameters
    ----------
    shifts : sequence of float
        In widths of the object; negative ones go left.
    variances : sequence of float
        Reported variances of the corners; 0 means no covariance.
    side, image : int
        Width and height of object and image.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `variance`, `shift`; `PDQ`, `foreground` and `background` under every preset, `mAP`, `moLRP`; `pixels`: distance
        between the first edges of box and object; `inside`: whether the box lies completely in the image.
    """
    low, along = (image - side) // 2, np.array([1.0, 0.0, 1.0, 0.0])
    boxes = {shift: np.array([low, low, low + side - 1, low + side - 1]) + shift * side * along for shift in shifts}
    return _measure_boxes("translation", "shift", boxes, variances, side, image, run or Run())


def scaling(
    *,
    sizes: Sequence[float] = AREAS,
    variances: Sequence[float] = VARIANCES,
    side: int = 500,
    image: int = 2000,
    run: Run | None = None,
) -> ResultTable:
    """Enlarge and shrink a box around the centre of a square object.

    Parameters
    ----------
    sizes : sequence of float
        Area of the box over that of the object.
    variances, side, image, run
        As for `translation`.

    Returns
    -------
    ResultTable
        `variance`, `size`; then as for `translation`.
    """
    boxes = {}
    for size in sizes:
        grown = side * np.sqrt(size)
        low = (image - side) // 2 + (side - grown) / 2
        boxes[size] = np.array([low, low, low + grown - 1, low + grown - 1])
    return _measure_boxes("scaling", "size", boxes, variances, side, image, run or Run())


def _measure_boxes(
    experiment: str,
    name: str,
    boxes: Mapping[float, Floats],
    variances: Sequence[float],
    side: int,
    image: int,
    run: Run,
) -> ResultTable:
    """Evaluate one inclusive box per setting, with each variance."""
    truth = square_scene(side, image)

    def point(variance: float, **setting: float) -> dict[str, float]:
        # Settings are rounded; a pixel with coverage 1 - 1e-13 would cost ten times less than a whole one.
        box = boxes[setting[name]].round(6)
        found = boxes_in_one_image(truth, box, variance=variance)
        return {
            **run.measure(truth, found, also=("foreground", "background")),
            "pixels": float(np.abs(box[0] - truth.boxes[0, 0])),
            "inside": bool(box.min() >= 0 and box.max() <= image - 1),
        }

    points = [{"variance": float(variance), name: float(value)} for variance in variances for value in boxes]
    return run.table(experiment, points, point, at_once=True, side=side, image=image)


def _on_whole_pixels(table: ResultTable) -> npt.NDArray[np.bool_]:
    return np.asarray(table["inside"] & (table["pixels"] == table["pixels"].round()))


def claims_of_translation(table: ResultTable) -> list[Claim]:
    """Return the claims on tolerance to shifted boxes, and on the exact cost of a shift."""
    whole = table.take(_on_whole_pixels(table))
    plain = whole.where(variance=0.0)
    share = np.minimum(np.abs(plain["shift"]), 1.0)  # fraction of the pixels that are missed, and that are outside
    shift = np.minimum(np.abs(whole["shift"]), 1.0)
    return [
        _plain_box(
            table,
            "shift",
            (-0.1, 0.1),
            "A box without covariance, shifted by 10%: PDQ is near 0, mAP and moLRP are tolerant",
        ),
        pair_equals(
            "With e = 1e-14, a box without covariance, shifted by s widths, has foreground quality, background quality "
            "and PDQ e^|s|",
            plain,
            EPSILON**share,
            EPSILON**share,
            tolerance=EXACT,
        ),
        _between_pixels(table),
        equals(
            "mAP and moLRP follow from the IoU, (1 - |s|) / (1 + |s|): mAP is the fraction of the ten thresholds that "
            "it reaches, moLRP is 2 (1 - IoU), or 1",
            whole,
            box_scores((1 - shift) / (1 + shift)),
        ),
        *_uncertain_boxes(table, "shift", 0.0),
        *_following(table, "shift", 1000.0, "PDQ closely follows mAP and moLRP at variance 1000"),
    ]


def _between_pixels(table: ResultTable) -> Claim:
    """Return the claim on shifts by k whole pixels and a fraction f, which covers two columns by 1 - f and f."""
    rows = table.where(variance=0.0, inside=True)
    rows = rows.take(~_on_whole_pixels(rows) & (np.abs(rows["shift"]) < 1))
    whole = np.floor(rows["pixels"])
    side = rows["pixels"] / np.abs(rows["shift"])
    quality = (EPSILON**whole * (1 - (rows["pixels"] - whole))) ** (1 / side)
    return pair_equals(
        "A box without covariance, shifted by k pixels and a fraction f: foreground quality, background quality and "
        "PDQ of an object of width L are (e^k (1 - f))^(1/L)",
        rows,
        quality,
        quality,
        tolerance=SNAPPED,
    )


TRANSLATION = Experiment(
    name="translation",
    section="B.2",
    varied="shift of a box left and right, for several variances and without covariance",
    claim="PDQ is near 0 at 10% without covariance; with variance the curve is wider and its peak lower",
    function=translation,
    judge=claims_of_translation,
    draw=plot_families("shift", "A shifted box", "shift, in widths of the object", perfect=0.0),
)


def claims_of_scaling(table: ResultTable) -> list[Claim]:
    """Return the claims on tolerance to boxes of the wrong size, and on the exact cost."""
    whole = table.take(_on_whole_pixels(table))
    plain = whole.where(variance=0.0)
    return [
        _plain_box(
            table,
            "size",
            (0.81, 1.21),
            "A box without covariance, 10% smaller or larger in width and height: PDQ is near 0, mAP and moLRP are "
            "tolerant",
            "10% of the area is a smaller error: half the wrong pixels of a shift by 10%. PDQ is then "
            f"{EPSILON**0.05:.2f}.",
        ),
        pair_equals(
            "With e = 1e-14, a box without covariance of a times the object's area has foreground quality e^(1 - a) if "
            "smaller, background quality e^(a - 1) if larger; the other one is 1, and PDQ is the root",
            plain,
            EPSILON ** np.maximum(1 - plain["size"], 0.0),
            EPSILON ** np.maximum(plain["size"] - 1, 0.0),
            tolerance=EXACT,
        ),
        equals(
            "mAP and moLRP follow from the IoU, a or 1/a: mAP is the fraction of the ten thresholds that it reaches, "
            "moLRP is 2 (1 - IoU), or 1",
            whole,
            box_scores(np.minimum(whole["size"], 1 / whole["size"])),
        ),
        *_uncertain_boxes(table, "size", 1.0),
        *_following(table, "size", 100.0, "PDQ at variance 100 follows mAP and moLRP without covariance"),
    ]


SCALING = Experiment(
    name="scaling",
    section="B.2",
    varied="size of a centred box, for several variances and without covariance",
    claim="as for translation",
    function=scaling,
    judge=claims_of_scaling,
    draw=plot_families("size", "A box of the wrong size", "area of the detection over that of the object", perfect=1.0),
)


def _plain_box(table: ResultTable, name: str, at: tuple[float, float], claim: str, explanation: str = "") -> Claim:
    required = f"PDQ at most {NEAR_ZERO}, the others at least {LENIENT}"
    plain = table.where(variance=0.0)
    rows = plain.take(np.isin(plain[name], at))
    columns = presets_in(rows)
    if len(rows) < len(at) or not columns or "mAP" not in rows or "moLRP" not in rows:
        return not_measured(claim, required)
    pdq = max(float(rows[column].max()) for column in columns.values())
    others = {"mAP": float(rows["mAP"].min()), "1 - moLRP": 1 - float(rows["moLRP"].max())}
    return Claim(
        claim,
        pdq <= NEAR_ZERO and min(others.values()) >= LENIENT,
        f"PDQ {pdq:.3f}, mAP {others['mAP']:.3f}, 1 - moLRP {others['1 - moLRP']:.3f} (the worse of both directions)",
        required,
        {"PDQ": pdq, **others},
        explanation,
    )


def _uncertain_boxes(table: ResultTable, name: str, perfect: float) -> list[Claim]:
    """Return the claims that PDQ's curves become wider and lower with the variance, under every preset."""
    lenient = "PDQ becomes more tolerant with larger variance"
    lower = "The highest PDQ decreases with larger variance"
    variances = sorted(set(table["variance"].tolist()))
    columns = presets_in(table)
    curves = [table.where(variance=variance) for variance in variances]
    if not columns or len(curves) < 2 or not all(perfect in curve[name] for curve in curves):
        return [not_measured(claim, "several variances, also for the perfect box") for claim in (lenient, lower)]
    peaks = {preset: [float(curve[column].max()) for curve in curves] for preset, column in columns.items()}
    widths = {
        preset: [half_width(curve[name], curve[column], perfect) for curve in curves]
        for preset, column in columns.items()
    }
    at = f"(variances {', '.join(f'{variance:g}' for variance in variances)})"
    lowest = Claim(
        lower,
        all(np.diff(peak).max() < 0 for peak in peaks.values()),
        f"peaks {_by_preset(peaks)} {at}",
        "lower with every variance, under every preset",
        _name_numbers(peaks, variances, "peak"),
    )
    if any(np.isnan(width).any() for width in widths.values()):
        return [not_measured(lenient, f"{name} so far from {perfect:g} that PDQ falls to half its peak"), lowest]
    widest = Claim(
        lenient,
        all(np.diff(width).min() > 0 for width in widths.values()),
        f"PDQ falls to half its peak at distances {_by_preset(widths)} {at}",
        "wider with every variance, under every preset",
        _name_numbers(widths, variances, "half width"),
    )
    return [widest, lowest]


def _by_preset(numbers: dict[str, list[float]]) -> str:
    return "; ".join(f"{', '.join(f'{n:.3f}' for n in row)} under `{preset}`" for preset, row in numbers.items())


def _name_numbers(numbers: dict[str, list[float]], variances: Sequence[float], what: str) -> dict[str, float]:
    return {
        f"{what} at variance {variance:g}, {preset}": number
        for preset, row in numbers.items()
        for variance, number in zip(variances, row, strict=True)
    }


def half_width(setting: Floats, score: Floats, perfect: float) -> float:
    """Return the distance above `perfect` at which the score falls to half its peak; NaN if it does not.

    >>> half_width(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.6, 0.0]), 0.0)  # 0.5 lies between the last two
    1.1666666666666665
    """
    order = np.argsort(setting)
    beyond = order[setting[order] >= perfect]
    x, y = setting[beyond], score[beyond]
    half = score.max() / 2
    below = np.flatnonzero(y < half)
    if not len(below) or below[0] == 0:
        return float("nan")
    i = int(below[0])
    return float(x[i - 1] + (y[i - 1] - half) / (y[i - 1] - y[i]) * (x[i] - x[i - 1]) - perfect)


def _following(table: ResultTable, name: str, expected: float, claim: str) -> list[Claim]:
    """Return the claims that PDQ at one variance follows mAP and 1 - moLRP, more closely than at others."""
    columns = presets_in(table)
    variances = sorted(set(table["variance"].tolist()))
    best = f"No other variance follows mAP and moLRP more closely than {expected:g}"
    required = f"mean distance to each of at most {CLOSELY:g}"
    if expected not in variances or not columns:
        return [not_measured(claim, required), not_measured(best, f"variance {expected:g} and others")]
    claims = []
    for preset, column in columns.items():
        apart = {variance: _mean_distances(table.where(variance=variance), name, column) for variance in variances}
        from_map, from_lrp = apart[expected]
        means = {variance: float(np.mean(both)) for variance, both in apart.items()}
        closest = min(means, key=lambda variance: means[variance])
        claims += [
            Claim(
                f"{claim} (preset `{preset}`)",
                max(from_map, from_lrp) <= CLOSELY,
                f"{from_map:.3f} from mAP, {from_lrp:.3f} from 1 - moLRP",
                required,
                {"from mAP": from_map, "from 1 - moLRP": from_lrp},
                f"{CLOSELY:g} is the height of one of mAP's ten steps.",
            ),
            Claim(
                f"{best} (preset `{preset}`)",
                closest == expected,
                f"closest at variance {closest:g}; mean distance to both at each variance: "
                + ", ".join(f"{variance:g}: {distance:.3f}" for variance, distance in means.items()),
                f"the smallest one at variance {expected:g}",
                {f"distance at variance {variance:g}": distance for variance, distance in means.items()},
            )
            if len(means) > 1
            else not_measured(f"{best} (preset `{preset}`)", "several variances"),
        ]
    return claims


def _mean_distances(rows: ResultTable, name: str, column: str) -> tuple[float, float]:
    """Return the mean distances of PDQ to mAP and to 1 - moLRP along the setting, weighted by the steps."""
    rows = rows.take(np.argsort(rows[name], kind="stable"))
    steps = np.diff(rows[name])
    weights = np.append(steps, 0.0) + np.append(0.0, steps)  # half of each step to both its ends
    pdq = rows[column]
    from_map, from_lrp = (
        float(np.average(np.abs(pdq - other), weights=weights if steps.any() else None))
        for other in (rows["mAP"], 1 - rows["moLRP"])
    )
    return from_map, from_lrp
