"""A diagnosis in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from probox.analysis.budget import PARTS
from probox.analysis.calibration_table import OUTLIER, TOLERANCE, ErrorFactor, shifted_edges
from probox.analysis.conclusions import listed
from probox.analysis.intervals import Interval
from probox.measures.matched import FEW_PAIRS

if TYPE_CHECKING:
    from probox.analysis.diagnosis import Diagnosis

__all__ = ["verdict_of"]


WIDE = 1.25
"""An interval that holds 1 and ends beyond this factor, or below its inverse, decides nothing."""


def verdict_of(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the summary: are std calibrated, outliers, shifts, constant-variance baseline, lost points, threshold."""
    said = [
        _calibration(diagnosis),
        _outliers(diagnosis.error_factor),
        _shifted(diagnosis),
        _baseline(diagnosis),
        _energy(diagnosis),
        _lost(diagnosis),
        _threshold(diagnosis),
    ]
    return tuple(text for text in said if text)


def _calibration(diagnosis: Diagnosis) -> str:
    errors = diagnosis.error_factor
    if not diagnosis.pairs:
        return "No matched boxes: no detection overlaps an object of its class by half"
    if diagnosis.pairs == diagnosis.plain_pairs:
        return f"No covariances: none of {diagnosis.pairs:,} matched boxes has a predicted std"
    if not errors.edges:
        return "No edges to judge: every edge with a predicted std lies on the image border"
    if errors.rms_z == 0.0:
        return "No errors to judge: boxes equal the ground truth"
    times = f"errors are {_times(errors.factor)} times the predicted std (68% quantile of |z|)"
    text = f"{_confidence(errors.factor)}: {times}"
    if errors.worst is not None:
        text += f"; worst: {errors.worst[0]}, {_times(errors.worst[1])} times"
    if errors.pairs < FEW_PAIRS:
        text += f"; {errors.pairs} matched boxes are too few for a reliable factor"
    return text


def _confidence(factor: Interval) -> str:
    """Return what a factor means: its interval must exclude 1, and itself the tolerance around 1, for a claim."""
    if not 1.0 / TOLERANCE < factor.value < TOLERANCE:
        if factor.low > 1.0:
            return "Overconfident"
        if factor.high < 1.0:
            return "Underconfident"
    return "Calibrated" if factor.low >= 1.0 / WIDE and factor.high <= WIDE else "Undecided"


def _times(factor: Interval) -> str:
    """Return a factor with its interval, with as many digits as tell the ends from 1.

    >>> _times(Interval(1.84, 1.62, 2.13)), _times(Interval(1.2, 1.04, 1.6)), _times(Interval(2.0))
    ('1.8 [1.6, 2.1]', '1.20 [1.04, 1.60]', '2.00')
    """
    if math.isnan(factor.low):
        return f"{factor.value:.2f}"
    digits = 1 if factor.high - factor.low >= 0.5 else 2
    while digits < 4 and 1.0 in (round(factor.low, digits), round(factor.high, digits)):
        digits += 1
    return f"{factor.value:.{digits}f} [{factor.low:.{digits}f}, {factor.high:.{digits}f}]"


def _outliers(errors: ErrorFactor) -> str:
    found = errors.outliers
    if found is None:
        return ""
    edges = f"{found.edges:,} of {errors.edges:,} edges {'has' if found.edges == 1 else 'have'}"
    bound = f"{found.bound:.3g}" + (f", {OUTLIER:g} times the factor" if found.bound > OUTLIER else "")
    largest = f"{found.largest:,.0f}" if found.largest >= 100 else f"{found.largest:.3g}"
    where = listed([f"{name} ({count:,})" for name, count in found.places.items()]) if found.places else ""
    text = f"Outliers: {edges} |z| above {bound} (largest {largest}), in {found.images:,} of {errors.images:,} images"
    text += f", most in {where}" if where else ""
    return f"{text}; RMS z is {errors.rms_z:.2f} with outliers, {found.rms_z:.2f} without"


def _shifted(diagnosis: Diagnosis) -> str:
    aside = shifted_edges(diagnosis.calibration)
    if not aside:
        return ""
    edges = ", ".join(f"{edge} by {bias:+.1f} px" for edge, bias in aside.items())
    return (
        f"the truth lies to one side of the boxes, {edges} on average, which is most of their error and "
        "nothing a sigma can say: mend the boxes first"
    )


def _baseline(diagnosis: Diagnosis) -> str:
    """Return PDQ of the constant-variance baseline, beside deterministic boxes and the detector's own std."""
    skill = diagnosis.skill.get("pdq")
    if skill is None or not diagnosis.pairs:
        return ""
    text = f"Constant-variance baseline (std {100 * skill.share:.2g}% of the side): PDQ {100 * skill.constant:.2f}"
    if diagnosis.plain_pairs == diagnosis.pairs:
        return f"{text} instead of {100 * skill.own:.2f} without covariances"
    own, low, high = (100 * value for value in (skill.skill.value, skill.skill.low, skill.skill.high))
    difference = f"{own:+.2f}" + ("" if math.isnan(low) else f" [{low:+.2f}, {high:+.2f}]")
    text += f", own std {100 * skill.own:.2f}, "
    text += f"deterministic boxes {100 * skill.deterministic:.2f}. "
    if not math.isnan(skill.gain_fraction):
        text += f"The baseline reaches {100 * skill.gain_fraction:.0f}% of the gain over deterministic boxes. "
    elif skill.own <= skill.deterministic:
        text += "The own std gains nothing over deterministic boxes. "
    elif skill.constant <= skill.deterministic:
        text += "The baseline gains nothing over deterministic boxes. "
    else:
        text += "The baseline reaches the whole gain over deterministic boxes. "
    text += f"Own minus baseline is {difference}"
    if not math.isnan(skill.remaining_fraction):
        left = 100 * (1 - skill.constant)
        text += f", {100 * skill.remaining_fraction:.2g}% of the {left:.2f} points between the baseline and 100"
    return text + (": no difference can be claimed" if low <= 0.0 <= high else "")


def _energy(diagnosis: Diagnosis) -> str:
    """Return whether the energy score tells the own std from a constant one."""
    if "energy" not in diagnosis.skill:
        return ""
    energy, in_pixels = diagnosis.skill["energy"].skill, diagnosis.skill["energy_pixels"].skill
    if energy.low > 0.0 and in_pixels.low > 0.0:
        better = 100 * min(energy.value, in_pixels.value)
        return f"Informative: the energy score is {better:.0f}% better than under any constant std"
    if in_pixels.high < 0.0 or energy.high < 0.0:
        worse = 100 * max(-energy.value, -in_pixels.value)
        return f"Not informative: the energy score is {worse:.0f}% worse than under a constant std"
    undecided = "Undecided whether informative: the energy score does not differ from that under a constant std"
    return undecided if math.isfinite(energy.value) else ""


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
