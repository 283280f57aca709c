"""The verdict of a diagnosis where a report has no time for all of it: what needs no detection to be scored anew.

Its sentences are those of `Evaluation.diagnose`, to the letter. What sigmas are worth in PDQ takes half a minute for
five thousand images and is left out.
"""

from __future__ import annotations

import dataclasses

from probox.analysis.budget import budget_of
from probox.analysis.calibration_table import edge_rows, find_error_factor, last_pixels
from probox.analysis.diagnosis import Diagnosis
from probox.analysis.skill import Skill, skill_of
from probox.analysis.sweep import Rematches
from probox.analysis.thresholds import best_pdq
from probox.analysis.verdict import verdict_of
from probox.evaluation.result import Evaluation
from probox.measures.scoring.score_rows import with_density

__all__ = ["MOST_PAIRS", "short_verdict"]

MOST_PAIRS = 2000
"""The most pairs with covariances for which the energy score under the best constant is sought: half a second."""


def short_verdict(
    evaluation: Evaluation, rematches: Rematches | None = None, *, replicates: int = 1000, seed: int = 0
) -> tuple[Diagnosis, tuple[str, ...]]:
    """Return a diagnosis with its verdict and the parts that the verdict speaks of, and what was left out in words.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured.
    rematches : Rematches, optional
        From `probox.analysis.sweep.find_rematches`, if at hand.
    replicates, seed : int
        As in `probox.diagnose`.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> evaluation = probox.evaluate(demo.truth, demo.detectors["unsure"])
    >>> diagnosis, _ = short_verdict(evaluation)
    >>> diagnosis.verdict[0] == evaluation.diagnose().verdict[0]
    True
    """
    pairs = evaluation.matched_pairs
    dense = int(with_density(pairs).sum())
    skill: dict[str, Skill] = {}
    if 0 < dense <= MOST_PAIRS:
        rules = ("energy", "energy_pixels")
        skill = {rule: skill_of(evaluation, rule, replicates=replicates, seed=seed) for rule in rules}
    scored = evaluation.has_pairs and len(evaluation.detections) > 0
    diagnosis = Diagnosis(
        verdict=(),
        pairs=len(pairs),
        plain_pairs=int(pairs.plain.sum()),
        pairing=pairs.pairing,
        numbers={},
        error_factor=find_error_factor(evaluation, replicates=replicates, seed=seed),
        calibration=(),
        budget=budget_of(evaluation) if evaluation.has_pairs else None,
        what_if=(),
        skill=skill,
        best_thresholds=(best_pdq(evaluation, rematches),) if scored else (),
        remarks=last_pixels(edge_rows(evaluation)),
    )
    said = verdict_of(diagnosis)
    left_out = []
    if scored:
        left_out.append("PDQ of the constant-variance baseline")
    if dense > MOST_PAIRS:
        left_out.append("whether the std is informative")
    return dataclasses.replace(diagnosis, verdict=said), tuple(left_out)
