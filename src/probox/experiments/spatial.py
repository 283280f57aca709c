"""What PDQ makes of spatial uncertainty: section 6 of the paper, top."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.experiments.claims import Claim
from probox.experiments.experiment import Experiment
from probox.experiments.figures import draw_spatial_uncertainty
from probox.experiments.running import Run
from probox.experiments.scenes import classes_within_images, fingerprint, synthetic_truth
from probox.experiments.simulate import SimulatedDetector
from probox.experiments.table import ResultTable, presets_in
from probox.tables.groundtruth import GroundTruth

__all__ = ["SPATIAL_UNCERTAINTY", "spatial_uncertainty"]

VARIANCES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


def spatial_uncertainty(
    truth: GroundTruth | None = None,
    *,
    true_variances: Sequence[float] = VARIANCES,
    reported_variances: Sequence[float] | None = None,
    repeats: int = 20,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Vary the true and the reported variance of a simulated detector's corners (section 6, top figure).

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`.
    true_variances, reported_variances : sequence of float
        In square pixels. `reported_variances` default to the true ones.
    repeats : int
        How often the corners are drawn.
    seed : int
        Repeats differ, settings do not: all of them see the same draws.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `true_variance`, `reported_variance`, `repeat`; `PDQ`, `PDQ_paper`.
    """
    run = run or Run()
    # Labels are sure, so only "the same class or not" matters: far fewer columns do.
    objects = classes_within_images(synthetic_truth() if truth is None else truth)

    def point(true_variance: float, reported_variance: float, repeat: int) -> dict[str, float]:
        detector = SimulatedDetector(corner_variance=true_variance, reported_variance=reported_variance)
        found = detector.detect(objects, seed=[seed, repeat])
        return run.measure(objects, found, measures=())

    points = [
        {"true_variance": float(true), "reported_variance": float(reported), "repeat": repeat}
        for repeat in range(repeats)
        for true in true_variances
        for reported in (true_variances if reported_variances is None else reported_variances)
    ]
    return run.table("spatial-uncertainty", points, point, truth=fingerprint(objects), seed=seed)


def claims_of_spatial_uncertainty(table: ResultTable) -> list[Claim]:
    """Judge whether the matching reported variance scores best."""
    claims = []
    for preset, column in presets_in(table).items():
        claims.append(_matching_is_best(table, column, preset))
    return claims


def _matching_is_best(table: ResultTable, column: str, preset: str) -> Claim:
    reported = sorted(set(table["reported_variance"].tolist()))
    repeats = len(np.unique(table["repeat"]))
    leads: dict[float, float] = {}
    errors: dict[float, float] = {}
    peaks: dict[float, float] = {}
    for true in sorted(set(table["true_variance"].tolist())):
        rows = table.where(true_variance=true)
        scores = {variance: rows.where(reported_variance=variance)[column] for variance in reported}
        rival = max((score for variance, score in scores.items() if variance != true), key=np.mean)
        lead = scores[true] - rival
        leads[true] = float(lead.mean())
        errors[true] = float(lead.std(ddof=1) / np.sqrt(repeats)) if repeats > 1 else np.nan
        peaks[true] = _peak(np.log(reported), np.array([scores[variance].mean() for variance in reported]))
    least = min(leads, key=lambda true: leads[true])
    error = f" ± {errors[least]:.4f}" if repeats > 1 else ""
    best = sum(lead > 0 for lead in leads.values())
    inner = {true: float(np.exp(peak)) for true, peak in peaks.items() if not np.isnan(peak)}
    explanation = ""
    if inner:
        explanation = (
            "Between the variances that were tried, a parabola through the best and its neighbours puts the peak at "
            f"{', '.join(f'{peak:.3g}' for peak in inner.values())} for true variances of "
            f"{', '.join(f'{true:g}' for true in inner)}. Objects hardly larger than the errors of their corners "
            "score best with less than the true variance, all the more where they fill little of their boxes; the "
            "more of them there are, the lower lies the peak."
        )
    return Claim(
        f"For each true variance the detector that reports it scores best (preset `{preset}`)",
        best == len(leads),
        f"best at {best} of {len(leads)} true variances in {repeats} repeat{'s' * (repeats != 1)}; "
        f"smallest lead {leads[least]:+.4f}{error} PDQ, at variance {least:g}",
        f"a lead over every other reported variance at all {len(leads)}",
        {f"lead at variance {true:g}": lead for true, lead in leads.items()}
        | {f"peak at variance {true:g}": peak for true, peak in inner.items()},
        explanation,
    )


def _peak(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    """Return where the parabola through the highest point and its neighbours peaks; NaN if it is the first or last.

    >>> round(_peak(np.array([0.0, 1.0, 2.0, 4.0]), -((np.array([0.0, 1.0, 2.0, 4.0]) - 1.3) ** 2)), 6)
    1.3
    """
    i = int(y.argmax())
    if i in (0, len(y) - 1):
        return np.nan
    a, b, _ = np.polyfit(x[i - 1 : i + 2], y[i - 1 : i + 2], 2)
    return float(-b / (2 * a))


SPATIAL_UNCERTAINTY = Experiment(
    name="spatial-uncertainty",
    section="6, top",
    varied="true x reported variance of the corners, simulated detector, label 1.0",
    claim="for each true variance the matching reported variance scores best",
    function=spatial_uncertainty,
    judge=claims_of_spatial_uncertainty,
    draw=draw_spatial_uncertainty,
    takes=("truth", "repeats", "seed"),
)
