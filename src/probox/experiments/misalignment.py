"""What the measures make of boxes in the wrong place or of the wrong size: appendix B.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from probox.experiments.claims import Claim
from probox.experiments.experiment import Experiment
from probox.experiments.figures import draw_families
from probox.experiments.running import Run
from probox.experiments.scenes import boxes_in_one_image, evenly, square_scene
from probox.experiments.table import ResultTable

__all__ = ["SCALING", "TRANSLATION", "scaling", "translation"]

VARIANCES = (0.0, 10.0, 100.0, 1000.0)
AREAS = tuple(round(side**2, 4) for side in evenly(0.5, 1.5, 51))  # sides of whole, even numbers of pixels
NEAR_ZERO, LENIENT = 0.1, 0.5


def translation(
    *,
    shifts: Sequence[float] = evenly(-0.5, 0.5, 101),
    variances: Sequence[float] = VARIANCES,
    side: int = 500,
    image: int = 2000,
    run: Run | None = None,
) -> ResultTable:
    """Shift a box left and right past a square object in the middle of an image.

    Parameters
    ----------
    shifts : sequence of float
        In widths of the object; negative ones go left.
    variances : sequence of float
        Reported variances of the corners; 0 is a plain box.
    side, image : int
        Width and height of object and image.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `variance`, `shift`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """

    def moved(shift: float) -> npt.NDArray[np.float64]:
        low = (image - side) // 2
        left = low + shift * side
        return np.array([left, low, left + side - 1, low + side - 1])

    return _misplaced("translation", "shift", shifts, variances, moved, side, image, run or Run())


def scaling(
    *,
    sizes: Sequence[float] = AREAS,
    variances: Sequence[float] = VARIANCES,
    side: int = 500,
    image: int = 2000,
    run: Run | None = None,
) -> ResultTable:
    """Grow and shrink a box around the middle of a square object.

    Parameters
    ----------
    sizes : sequence of float
        Area of the box over that of the object.
    variances, side, image, run
        As for `translation`.

    Returns
    -------
    ResultTable
        `variance`, `size`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """

    def resized(size: float) -> npt.NDArray[np.float64]:
        grown = side * np.sqrt(size)
        low = (image - side) // 2 + (side - grown) / 2
        return np.array([low, low, low + grown - 1, low + grown - 1])

    return _misplaced("scaling", "size", sizes, variances, resized, side, image, run or Run())


def _misplaced(
    experiment: str,
    name: str,
    values: Sequence[float],
    variances: Sequence[float],
    box_at: Callable[[float], npt.NDArray[np.float64]],
    side: int,
    image: int,
    run: Run,
) -> ResultTable:
    """Measure one box per variance and value; `box_at` gives it in inclusive pixels."""
    truth = square_scene(side, image)

    def point(variance: float, **setting: float) -> dict[str, float]:
        found = boxes_in_one_image(truth, box_at(setting[name]), variance=variance)
        return run.measure(truth, found)

    points = [{"variance": float(variance), name: float(value)} for variance in variances for value in values]
    return run.table(experiment, points, point, side=side, image=image)


def claims_of_translation(table: ResultTable) -> list[Claim]:
    """Judge leniency to shifted boxes."""
    return [
        _plain_box(
            table, "shift", (-0.1, 0.1), "A plain box shifted by 10 %: PDQ is near 0, mAP and moLRP are lenient"
        ),
        *_uncertain_boxes(table, "shift", 0.0),
        _closest(table, 1000.0, "PDQ follows mAP and moLRP most closely at variance 1000"),
    ]


TRANSLATION = Experiment(
    name="translation",
    section="B.2",
    varied="shift of a box left and right, for several variances and a plain box",
    claim="PDQ is near 0 at 10 % for the plain box; more variance, more lenient, lower peak",
    function=translation,
    judge=claims_of_translation,
    draw=partial(
        draw_families,
        x="shift",
        title="A shifted box",
        xlabel="shift, in widths of the object",
        perfect=0.0,
    ),
)


def claims_of_scaling(table: ResultTable) -> list[Claim]:
    """Judge leniency to boxes of the wrong size."""
    return [
        _plain_box(
            table,
            "size",
            (0.81, 1.21),
            "A plain box 10 % smaller or larger in width and height: PDQ is near 0, mAP and moLRP are lenient",
            _at_tenth_of_area(table),
        ),
        *_uncertain_boxes(table, "size", 1.0),
        _closest(table, 100.0, "mAP and moLRP treat plain boxes as PDQ treats boxes of variance 100"),
    ]


SCALING = Experiment(
    name="scaling",
    section="B.2",
    varied="size of a centred box, for several variances and a plain box",
    claim="as for translation",
    function=scaling,
    judge=claims_of_scaling,
    draw=partial(
        draw_families,
        x="size",
        title="A box of the wrong size",
        xlabel="area of the detection over that of the object",
        perfect=1.0,
    ),
)


def _at_tenth_of_area(table: ResultTable) -> str:
    plain = table.where(variance=0.0)
    small, large = (float(np.interp(size, plain["size"], plain["PDQ"])) for size in (0.9, 1.1))
    return (
        f"10 % of the area is less of an error: half the pixels that a shift by 10 % gets wrong. There PDQ is about "
        f"{small:.2f} (smaller) and {large:.2f} (larger)."
    )


def _plain_box(table: ResultTable, name: str, at: tuple[float, float], claim: str, explanation: str = "") -> Claim:
    rows = [table.where(variance=0.0, **{name: value}) for value in at]
    pdq = max(float(row[column][0]) for row in rows for column in ("PDQ", "PDQ_paper"))
    others = {
        "mAP": min(float(row["mAP"][0]) for row in rows),
        "1 - moLRP": 1 - max(float(r["moLRP"][0]) for r in rows),
    }
    return Claim(
        claim,
        pdq <= NEAR_ZERO and min(others.values()) >= LENIENT,
        f"PDQ {pdq:.3f}, mAP {others['mAP']:.3f}, 1 - moLRP {others['1 - moLRP']:.3f} (the worse of both directions)",
        f"PDQ at most {NEAR_ZERO}, the others at least {LENIENT}",
        {"PDQ": pdq, **others},
        explanation,
    )


def _uncertain_boxes(table: ResultTable, name: str, perfect: float) -> list[Claim]:
    variances = sorted(set(table["variance"].tolist()))
    claims = []
    widths: dict[str, list[float]] = {}
    peaks: dict[str, list[float]] = {}
    for column in ("PDQ", "PDQ_paper"):
        curves = [(part[name], part[column]) for part in (table.where(variance=v) for v in variances)]
        peaks[column] = [float(score.max()) for _, score in curves]
        widths[column] = [half_width(setting, score, perfect) for setting, score in curves]
    shown = ", ".join(f"{v:g}" for v in variances)
    claims.append(
        Claim(
            "The more uncertain the box, the more lenient is PDQ",
            all(np.diff(width).min() > 0 for width in widths.values()),
            f"PDQ keeps half its peak up to {', '.join(f'{w:.3f}' for w in widths['PDQ'])} away (variances {shown})",
            "wider with every variance, under `reference` and `paper`",
            {f"half width at variance {v:g}": w for v, w in zip(variances, widths["PDQ"], strict=True)},
        )
    )
    claims.append(
        Claim(
            "The more uncertain the box, the lower is the best PDQ it can reach",
            all(np.diff(peak).max() < 0 for peak in peaks.values()),
            f"peaks {', '.join(f'{p:.3f}' for p in peaks['PDQ'])} (variances {shown})",
            "lower with every variance, under `reference` and `paper`",
            {f"peak at variance {v:g}": p for v, p in zip(variances, peaks["PDQ"], strict=True)},
        )
    )
    return claims


def half_width(setting: npt.NDArray[np.float64], score: npt.NDArray[np.float64], perfect: float) -> float:
    """Return how far above `perfect` the setting can go until the score falls to half of its peak.

    >>> half_width(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.6, 0.0]), 0.0)  # 0.5 lies between the last two
    1.1666666666666665
    """
    beyond = setting >= perfect
    x, y = setting[beyond], score[beyond]
    half = score.max() / 2
    below = np.flatnonzero(y < half)
    if not len(below):
        return float(x[-1] - perfect)
    i = int(below[0])
    return float(x[i - 1] + (y[i - 1] - half) / (y[i - 1] - y[i]) * (x[i] - x[i - 1]) - perfect)


def _closest(table: ResultTable, expected: float, claim: str) -> Claim:
    """Return the claim about which variance's PDQ lies nearest to mAP and 1 - moLRP of the same boxes."""
    variances = [v for v in sorted(set(table["variance"].tolist())) if v > 0]
    distances: dict[str, dict[float, float]] = {}
    for column, preset in (("PDQ", "reference"), ("PDQ_paper", "paper")):
        distances[preset] = {}
        for variance in variances:
            rows = table.where(variance=variance)
            apart = [np.abs(rows[column] - rows["mAP"]), np.abs(rows[column] - (1 - rows["moLRP"]))]
            distances[preset][variance] = float(np.mean(apart))
    return Claim(
        claim,
        all(min(apart, key=lambda v: apart[v]) == expected for apart in distances.values()),
        f"mean distance of PDQ to both at variances {', '.join(f'{v:g}' for v in variances)}: "
        + "; ".join(
            f"{', '.join(f'{d:.3f}' for d in apart.values())} under `{preset}`" for preset, apart in distances.items()
        ),
        f"the smallest one at variance {expected:g}, under `reference` and `paper`",
        {f"distance at variance {v:g}, {p}": d for p, apart in distances.items() for v, d in apart.items()},
    )
