"""A diagnosis in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from probox.analysis.budget import PARTS
from probox.analysis.calibration_table import WorstEdge, shifted_edges
from probox.analysis.intervals import Interval
from probox.measures.matched import FEW_PAIRS

if TYPE_CHECKING:
    from probox.analysis.diagnosis import Diagnosis

__all__ = ["verdict_of"]


def verdict_of(diagnosis: Diagnosis, too_sure: Interval, worst: WorstEdge | None) -> tuple[str, ...]:
    """Return the short of it: are sigmas honest, are they worth anything, where the points went, what to do."""
    said = [_honest(diagnosis, too_sure, worst), _shifted(diagnosis), _worth(diagnosis), _lost(diagnosis)]
    return tuple(text for text in [*said, _threshold(diagnosis)] if text)


def _honest(diagnosis: Diagnosis, too_sure: Interval, worst: WorstEdge | None) -> str:
    judged = int(diagnosis.numbers.get("NLL_pairs", 0))
    if not diagnosis.pairs:
        return "no detection overlaps an object of its class by half: there are no sigmas or labels to judge"
    if diagnosis.pairs == diagnosis.plain_pairs:
        return f"boxes claim to be certain: none of {diagnosis.pairs:,} matched ones has a sigma to judge"
    factor = too_sure.value
    within = _range(too_sure, ".2f")
    if not judged:
        return "no covariance of a matched box can be inverted: whole boxes cannot be judged, only their edges"
    if factor == 0.0:
        return "corners hit the truth exactly: no error to judge sigmas by"
    unclear = too_sure.low <= 1.0 <= too_sure.high
    if unclear and (too_sure.low < 0.8 or too_sure.high > 1.25):
        text = f"errors are {factor:.2g} times what sigmas say{within}: these images cannot tell that from 1"
    elif unclear or 0.95 < factor < 1.05:
        text = f"corners are as sure as they should be: errors are {factor:.2f} times their sigmas{within}"
    elif factor > 1.0 and diagnosis.numbers.get("coverage_68", math.nan) >= 0.68:
        inside = f"{100 * diagnosis.numbers['coverage_68']:.0f} % of edges lie inside their 68 % interval"
        text = f"a few corners are far too sure: errors are {factor:.1f} times their sigmas{within}, yet {inside}"
    elif factor > 1.0:
        text = f"corners are {factor:.1f} times too sure{within}"
    else:
        text = f"corners are {1.0 / factor:.1f} times too unsure{_range(_inverse(too_sure), '.2f')}"
    if worst is not None and abs(math.log(worst.too_sure)) > 0.05:
        times = worst.too_sure if worst.too_sure > 1 else 1 / worst.too_sure
        text += (
            f", worst {worst.edge} of {worst.name}: {times:.1f} times too {'sure' if worst.too_sure > 1 else 'unsure'}"
        )
    if judged < FEW_PAIRS:
        text += f"; but {judged} pairs are too few to say much"
    return text


def _shifted(diagnosis: Diagnosis) -> str:
    aside = shifted_edges(diagnosis.calibration)
    if not aside:
        return ""
    edges = ", ".join(f"{edge} by {bias:+.1f} px" for edge, bias in aside.items())
    return (
        f"the truth lies to one side of the boxes, {edges} on average, which is most of their error and "
        "nothing a sigma can say: mend the boxes first"
    )


def _worth(diagnosis: Diagnosis) -> str:
    if "pdq" not in diagnosis.skill:
        return _worth_alone(diagnosis)
    skill = diagnosis.skill["pdq"]
    constant = f"a constant of {100 * skill.share:.2g} % of the side"
    if diagnosis.plain_pairs == diagnosis.pairs:
        if not diagnosis.pairs:
            return ""
        return f"{constant} alone would give PDQ {100 * skill.constant:.2f} instead of {100 * skill.own:.2f}"
    points = Interval(100 * skill.skill.value, 100 * skill.skill.low, 100 * skill.skill.high)
    text = f"their sigmas are worth {points.value:+.2f} PDQ over {constant}{_range(points, '+.2f')}"
    unclear = points.low <= 0.0 <= points.high
    if unclear:
        text += ": in PDQ, no more than a constant can be claimed"
    energy, in_pixels = diagnosis.skill["energy"].skill, diagnosis.skill["energy_pixels"].skill
    if energy.low > 0.0 and in_pixels.low > 0.0:
        joint = "yet" if unclear or points.value < 0 else "and"
        text += f"; {joint} they tell sure corners from unsure ones ({_better(energy, in_pixels)})"
    elif in_pixels.high < 0.0 or energy.high < 0.0:
        text += f"; the energy score is {_worse(energy, in_pixels)}"
    elif math.isfinite(energy.value):
        text += "; the energy score does not tell them from a constant either"
    return text


def _worth_alone(diagnosis: Diagnosis) -> str:
    """Return what the energy score says where PDQ was not asked."""
    if "energy" not in diagnosis.skill:
        return ""
    energy, in_pixels = diagnosis.skill["energy"].skill, diagnosis.skill["energy_pixels"].skill
    if energy.low > 0.0 and in_pixels.low > 0.0:
        return f"sigmas tell sure corners from unsure ones: {_better(energy, in_pixels)}"
    if in_pixels.high < 0.0 or energy.high < 0.0:
        return f"sigmas say less than a constant: the energy score is {_worse(energy, in_pixels)}"
    return "the energy score does not tell sigmas from a constant" if math.isfinite(energy.value) else ""


def _better(energy: Interval, in_pixels: Interval) -> str:
    return f"energy score {100 * min(energy.value, in_pixels.value):.0f} % better than under any constant"


def _worse(energy: Interval, in_pixels: Interval) -> str:
    return f"{max(-100 * energy.value, -100 * in_pixels.value):.0f} % worse than under a constant"


def _lost(diagnosis: Diagnosis) -> str:
    budget = diagnosis.budget
    if budget is None or not budget.lost > 0:
        return ""
    shares = sorted(((getattr(budget, part) / budget.lost, words) for part, words in PARTS.items()), reverse=True)
    (first, most), (second, next_) = shares[:2]
    text = f"{100 * first:.0f} % of the lost points are {_loss_words(most)}"
    return text + (f", {100 * second:.0f} % {_loss_words(next_)}" if second >= 0.1 else "")


def _loss_words(part: str) -> str:
    return {
        "labels": "unsure or wrong labels",
        "foreground": "object pixels that boxes do not claim",
        "background": "pixels claimed beside objects",
    }.get(part, part)


def _threshold(diagnosis: Diagnosis) -> str:
    best = diagnosis.best_threshold
    if best is None:
        return ""
    if best.threshold is None:
        return f"no label threshold gives more than PDQ {100 * best.now:.2f}"
    instead = f"instead of {100 * best.now:.2f}"
    chosen = f"the best threshold, chosen on these images, is {best.threshold:.3g}"
    return f"{chosen} and gives PDQ {100 * best.value:.2f} {instead}"


def _range(interval: Interval, style: str) -> str:
    if math.isnan(interval.low):
        return ""
    return f" (95 % interval {interval.low:{style}} to {interval.high:{style}})"


def _inverse(interval: Interval) -> Interval:
    if math.isnan(interval.low) or interval.low <= 0.0:
        return Interval(1.0 / interval.value)
    return Interval(1.0 / interval.value, 1.0 / interval.high, 1.0 / interval.low)
