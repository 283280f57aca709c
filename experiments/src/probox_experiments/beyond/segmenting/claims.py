"""What was foreseen of masks and boxes, and what became of it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from probox_experiments.claims import EXACT, Claim, equals, not_measured
from probox_experiments.peaks import Mean, mean_of, peak_of
from probox_experiments.table import ResultTable, column_of, presets_in

__all__ = ["claims_of_segmentation", "of_report", "scores"]

Floats = npt.NDArray[np.float64]

SCENES = {"moved": "masks that were moved", "jittered": "blobs with jittered outlines"}
LESS = 0.05
"""What PDQ itself may ask for less than the true sigma, as a share: about 0.45 sigma / side, which is 0.056 for the
smallest objects and half of that for most."""
SHORTER, LONGER = 0.9, 1.1
"""An outline is shorter, or longer, than its box's if it is at most, or at least, so many times as long."""
LOST = 1e-8
"""Spatial qualities up to this are 0 under `reference`."""


def claims_of_segmentation(table: ResultTable) -> list[Claim]:
    """Judge reports of outlines in the wrong place, scene by scene, and perfect ones exactly."""
    claims = []
    for scene in SCENES:
        rows = table.where(scene=scene)
        claims += [_beats(rows, scene), _honest(rows, scene), _gains_less(rows, scene)]
    return [*claims, _shorter_wins(table), *_perfect(table.where(scene="perfect"))]


def of_report(rows: ResultTable, report: str, outside: str, ratio: float | None = None) -> ResultTable:
    """Return the rows of a report, of one sigma or of all, ordered by repeat."""
    chosen = rows.where(report=report, outside=outside)
    chosen = chosen if ratio is None else chosen.where(ratio=ratio)
    return chosen.take(np.argsort(chosen["repeat"], kind="stable"))


def scores(rows: ResultTable, report: str, outside: str, column: str) -> dict[float, Floats]:
    """Return what a report scores in every repeat, by reported over true sigma."""
    ratios = np.unique(of_report(rows, report, outside)["ratio"]).tolist()
    return {ratio: of_report(rows, report, outside, ratio)[column] for ratio in ratios}


def _best(of_ratio: dict[float, Floats]) -> tuple[float, Floats]:
    ratio = max(of_ratio, key=lambda one: float(of_ratio[one].mean()))
    return ratio, of_ratio[ratio]


def _measured(rows: ResultTable) -> bool:
    """Return whether there is the honest mask, every rival, and more than one repeat."""
    honest = {
        outside: len(of_report(rows, "probabilistic mask", outside, 1.0)) if len(rows) else 0
        for outside in ("box", "mask")
    }
    rivals = [len(of_report(rows, report, "mask")) for report in ("sure mask", "Gaussian box")] if len(rows) else [0]
    return min(*honest.values(), *rivals) > 1 and bool(presets_in(rows))


def _leads(rows: ResultTable, outside: str, column: str) -> dict[str, Mean]:
    """Return by how much the honest mask leads the sure one and the best Gaussian box, repeat by repeat."""
    own = of_report(rows, "probabilistic mask", outside, 1.0)[column]
    ratio, box = _best(scores(rows, "Gaussian box", outside, column))
    return {
        "sure mask": mean_of(own - of_report(rows, "sure mask", outside)[column]),
        f"Gaussian box of {ratio:g} sigma": mean_of(own - box),
    }


NEEDED = "the true sigma among those reported, and two repeats or more"


def _beats(rows: ResultTable, scene: str) -> Claim:
    words = (
        f"Of {SCENES[scene]}, where background is outside the mask, a probabilistic mask of the true sigma beats the "
        "sure mask and the best Gaussian box"
    )
    if not _measured(rows):
        return not_measured(words, NEEDED)
    steps = {
        f"over the {rival}, `{preset}`": lead
        for preset, column in presets_in(rows).items()
        for rival, lead in _leads(rows, "mask", column).items()
    }
    return Claim(
        words,
        all(lead.value > 2 * lead.error for lead in steps.values()),
        "PDQ " + "; ".join(f"{name}: {lead.value:+.4f} ± {lead.error:.4f}" for name, lead in steps.items()),
        "above 0 by more than 2 standard errors",
        {name: lead.value for name, lead in steps.items()},
    )


def _honest(rows: ResultTable, scene: str) -> Claim:
    words = (
        f"Of {SCENES[scene]}, where background is outside the mask, a probabilistic mask is best with the true sigma"
    )
    of_ratio = {
        preset: scores(rows, "probabilistic mask", "mask", column) for preset, column in presets_in(rows).items()
    }
    if not _measured(rows) or min(len(one) for one in of_ratio.values()) < 3:
        return not_measured(words, f"three sigmas or more, {NEEDED}")
    peaks = {
        preset: mean_of([peak_of(list(one), list(values)) for values in zip(*one.values(), strict=True)])
        for preset, one in of_ratio.items()
    }
    return Claim(
        words,
        all(abs(peak.value - 1) <= LESS + 2 * peak.error for peak in peaks.values()),
        "best sigma over the true one: " + "; ".join(f"`{preset}` {peak}" for preset, peak in peaks.items()),
        f"1, at most {LESS:g} and 2 standard errors off",
        {preset: peak.value for preset, peak in peaks.items()},
    )


def _gains_less(rows: ResultTable, scene: str) -> Claim:
    words = f"Of {SCENES[scene]}, a mask gains less over the best Gaussian box where background is outside the box"
    if not _measured(rows):
        return not_measured(words, NEEDED)
    told: list[str] = []
    numbers: dict[str, float] = {}
    holds = True
    for preset, column in presets_in(rows).items():
        gains = []
        for outside in ("box", "mask"):
            own = of_report(rows, "probabilistic mask", outside, 1.0)[column]
            gains.append(own - _best(scores(rows, "Gaussian box", outside, column))[1])
        less = mean_of(gains[1] - gains[0])
        holds &= less.value > 2 * less.error
        of_box, of_mask = (mean_of(gain) for gain in gains)
        told.append(
            f"`{preset}`: {of_box.value:+.4f} ± {of_box.error:.4f} outside the box, {of_mask.value:+.4f} ± "
            f"{of_mask.error:.4f} outside the mask"
        )
        numbers |= {
            f"gain, {preset}, outside the box": of_box.value,
            f"gain, {preset}, outside the mask": of_mask.value,
        }
    return Claim(words, holds, "; ".join(told), "the difference above 0 by more than 2 standard errors", numbers)


def _shorter_wins(table: ResultTable) -> Claim:
    words = (
        "Where background is outside the box, masks that were moved beat the best Gaussian box under `paper` if their "
        "outlines are shorter than those of their boxes, and lose if they are longer"
    )
    required = f"up to {SHORTER:g} a lead, from {LONGER:g} on the box's, by more than 2 standard errors"
    column = column_of("PDQ", "paper")
    told: list[str] = []
    numbers: dict[str, float] = {}
    verdicts: list[bool] = []
    for scene, what in (("moved", "masks of the truth"), ("combs", "combs")):
        rows = table.where(scene=scene)
        own = of_report(rows, "probabilistic mask", "box", 1.0)
        boxes = scores(rows, "Gaussian box", "box", column) if column in rows else {}
        if len(own) < 2 or not boxes:
            continue
        length, lead = float(own["outline"][0]), mean_of(own[column] - _best(boxes)[1])
        told.append(f"{what}: outlines {length:.2f} times as long, lead {lead.value:+.4f} ± {lead.error:.4f}")
        numbers |= {f"outline, {what}": length, f"lead, {what}": lead.value}
        if not SHORTER < length < LONGER:
            verdicts.append((1 if length <= SHORTER else -1) * lead.value > 2 * lead.error)
    if not verdicts:
        return not_measured(words, f"preset `paper`, {NEEDED}, and outlines of another length than those of boxes")
    return Claim(words, all(verdicts), "; ".join(told), required, numbers)


def _perfect(rows: ResultTable) -> list[Claim]:
    masks, boxes = (rows.where(report=report) for report in ("sure mask", "sure box"))
    one = {name: np.ones(len(masks)) for name in ("PDQ", "foreground", "background")}
    free = boxes.where(outside="box")
    return [
        equals("A perfect sure mask has PDQ 1, whatever is background", masks, one),
        equals(
            "Where background is outside the box, so has a perfect sure box: its empty part is free",
            free,
            {name: values[: len(free)] for name, values in one.items()},
        ),
        _empty_part_costs(boxes.where(outside="mask")),
    ]


def _empty_part_costs(rows: ResultTable) -> Claim:
    words = (
        "Where background is outside the mask, a perfect sure box has foreground quality 1, and background quality "
        "1e-14 to the power of its empty pixels over the object's"
    )
    columns = presets_in(rows) if len(rows) else {}
    if not columns:
        return not_measured(words, "perfect boxes")
    off, wrong = 0.0, 0
    for preset, column in columns.items():
        lost = (rows["foreseen"] <= LOST) & (preset != "paper")
        wrong += int((rows[column][lost] != 0).sum())
        kept = rows.take(~lost)
        # In logarithms, so that small qualities are compared as closely as large ones.
        with np.errstate(divide="ignore"):
            for name, power in (("PDQ", 0.5), ("foreground", 0.0), ("background", 1.0)):
                wanted = power * np.log(kept["foreseen"])
                distance = np.abs(np.log(kept[column_of(name, preset)]) - wanted) / np.maximum(np.abs(wanted), 1.0)
                off = max(off, float(np.max(distance, initial=0.0))) if not np.isnan(distance).any() else math.inf
    return Claim(
        words,
        off <= EXACT and not wrong,
        f"{len(rows)} objects, empty parts from {rows['empty'].min():.2f} to {rows['empty'].max():.2f}: logarithms of "
        f"qualities and PDQ at most {off:.2g} off; {wrong} that should be lost are not",
        f"at most {EXACT:g}, relative; no quality at all under `reference` where it is at most {LOST:g}",
        {"farthest off": off, "not lost": float(wrong)},
    )
