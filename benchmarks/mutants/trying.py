"""Run the experiments with every mutant and evaluate their claims."""

from __future__ import annotations

import dataclasses
import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.mutants.measuring import Measuring
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.small import measure_small
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Claim
from probox_experiments.experiment import Experiment

__all__ = ["Judged", "Trial", "Trials", "try_mutants"]

Progress = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Judged:
    """Claims of an experiment, each a sentence and whether it holds, or the error that stopped it."""

    claims: tuple[tuple[str, bool | None], ...] = ()
    error: str = ""

    @property
    def holding(self) -> list[str]:
        """Return the claims that hold."""
        return [claim for claim, holds in self.claims if holds]


@dataclasses.dataclass(frozen=True)
class Trial:
    """A mutant and the claims that detect it: they hold with the correct metric and fail with the mutant."""

    mutant: Mutant
    failing: dict[str, list[str]]
    errors: dict[str, str]

    @property
    def total(self) -> int:
        """Number of claims that fail."""
        return sum(map(len, self.failing.values()))


@dataclasses.dataclass(frozen=True)
class Trials:
    """The experiments, their claims with the correct metric by name, and a trial per mutant."""

    experiments: Sequence[Experiment]
    true: dict[str, Judged]
    mutants: list[Trial]

    @property
    def survivors(self) -> list[Mutant]:
        """Return the mutants that no claim detects."""
        return [trial.mutant for trial in self.mutants if not trial.total]

    def unbroken(self) -> dict[str, list[str]]:
        """Return the claims that hold and do not fail with any mutant, by experiment."""
        seen = {(name, claim) for trial in self.mutants for name, claims in trial.failing.items() for claim in claims}
        left = {
            name: [claim for claim in judged.holding if (name, claim) not in seen] for name, judged in self.true.items()
        }
        return {name: claims for name, claims in left.items() if claims}


class _Laboratory:
    """The experiments, their data, and results so far."""

    def __init__(self, experiments: Sequence[Experiment], truth: GroundTruth) -> None:
        self.experiments, self.truth = experiments, truth
        self.measuring = Measuring()
        self.true = {experiment.name: self.judged(experiment, None) for experiment in experiments}

    def judged(self, experiment: Experiment, mutant: Mutant | None) -> Judged:
        """Run an experiment and evaluate its claims. A mutant may produce values that raise floating-point warnings."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                with self.measuring.instead(mutant):
                    claims = experiment.judge(measure_small(experiment, self.truth))
            except Exception as error:
                if mutant is None:
                    raise
                return Judged(error=f"{type(error).__name__}: {error}")
        return Judged(tuple((claim.claim, _plain(claim)) for claim in claims))

    def trial(self, mutant: Mutant) -> Trial:
        """Try a mutant on all experiments."""
        failing: dict[str, list[str]] = {}
        errors: dict[str, str] = {}
        for experiment in self.experiments:
            got, true = self.judged(experiment, mutant), self.true[experiment.name]
            failing[experiment.name] = _failing(true, got)
            if got.error:
                errors[experiment.name] = got.error
        return Trial(mutant, failing, errors)


def try_mutants(
    mutants: Sequence[Mutant],
    experiments: Sequence[Experiment],
    truth: GroundTruth,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> Trials:
    """Return which claims of the experiments detect which mutants.

    Parameters
    ----------
    mutants, experiments : sequences
        Mutants and experiments to run.
    truth : GroundTruth
        Ground truth for the experiments that take one.
    processes : int
        Number of mutants at a time, where processes can be forked.
    progress : callable, optional
        Called with a line for each finished mutant.
    """
    laboratory = _Laboratory(experiments, truth)
    trials = []
    for trial in _tried(laboratory, mutants, processes):
        trials.append(trial)
        if progress is not None:
            progress(f"{len(trials)} of {len(mutants)}: {trial.mutant.name}, {trial.total} claims fail")
    return Trials(experiments, laboratory.true, trials)


_shared: list[tuple[_Laboratory, Sequence[Mutant]]] = []
"""Data for forked processes: functions cannot be pickled."""


def _tried(laboratory: _Laboratory, mutants: Sequence[Mutant], processes: int) -> Iterator[Trial]:
    if processes < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(laboratory.trial, mutants)
        return
    _shared.append((laboratory, mutants))
    try:
        with multiprocessing.get_context("fork").Pool(processes) as pool:
            for mutant, found in zip(mutants, pool.imap(_try_number, range(len(mutants))), strict=True):
                yield Trial(mutant, *found)
    finally:
        _shared.pop()


def _try_number(number: int) -> tuple[dict[str, list[str]], dict[str, str]]:
    laboratory, mutants = _shared[-1]
    trial = laboratory.trial(mutants[number])
    return trial.failing, trial.errors


def _failing(true: Judged, got: Judged) -> list[str]:
    """Return the claims that hold with the original metric and fail with another."""
    if len(true.claims) == len(got.claims):  # sentences may contain numbers
        return [
            claim
            for (claim, holds), (_, still) in zip(true.claims, got.claims, strict=True)
            if holds and still is False
        ]
    fallen = {claim for claim, holds in got.claims if holds is False}
    return [claim for claim in true.holding if claim in fallen]


def _plain(claim: Claim) -> bool | None:
    return None if claim.holds is None else bool(claim.holds)
