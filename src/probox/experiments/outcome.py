"""An experiment from start to end: measured, judged, drawn and written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from probox.errors import InputError
from probox.experiments import registry
from probox.experiments.claims import Claim, all_hold
from probox.experiments.experiment import Experiment
from probox.experiments.figures import pictures, style
from probox.experiments.running import Run
from probox.experiments.scenes import first_images, synthetic_truth
from probox.experiments.table import ResultTable
from probox.files.folder import OutputFolder
from probox.support.optional import check_installed
from probox.tables.groundtruth import GroundTruth

__all__ = ["Outcome", "Setting", "check_extras", "file_names", "find_experiments", "perform"]

KEPT = ".points"
"""The folder, in the one of the results, that keeps finished points."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What experiments are run on.

    Parameters
    ----------
    truth : GroundTruth, optional
        For the experiments that the paper ran on COCO. Default: `synthetic_truth`.
    images : int, optional
        Use the first so many images of it, or make so many.
    repeats : int, optional
        How often random draws are repeated. Default: each experiment's own.
    seed : int
        Where they start.
    """

    truth: GroundTruth | None = None
    images: int | None = None
    repeats: int | None = None
    seed: int = 0

    def objects(self) -> GroundTruth:
        """Return the truth to use."""
        if self.truth is None:
            return synthetic_truth() if self.images is None else synthetic_truth(self.images)
        chosen = first_images(self.truth, self.images)
        if not len(chosen):
            raise InputError(
                f"expected objects to detect, but the {len(chosen.image_ids)} images have none",
                file=chosen.source or None,
                remedy="use more images, or leave the truth out to run on made-up ones",
            )
        return chosen

    def describe(self) -> str:
        """Return in words what the experiments on many images ran on."""
        objects = self.objects()
        source = "made-up images" if self.truth is None else f"images of {Path(objects.source).name or 'a given truth'}"
        return f"{len(objects.image_ids):,} {source} with {len(objects):,} objects, seed {self.seed}"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What an experiment gave.

    Parameters
    ----------
    experiment : Experiment
        Which one.
    table : ResultTable
        What was measured.
    claims : list of Claim
        What became of the paper's claims.
    csv, png, svg : Path
        The files.
    picture : bytes
        The SVG file's content.
    """

    experiment: Experiment
    table: ResultTable
    claims: list[Claim]
    csv: Path
    png: Path
    svg: Path
    picture: bytes

    @property
    def holds(self) -> bool | None:
        """Whether all claims hold that were measured; None if none was."""
        return all_hold(self.claims)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the table, as JSON can hold it."""
        return {
            "name": self.experiment.name,
            "paper": self.experiment.section,
            "claim": self.experiment.claim,
            "holds": self.holds,
            "verdicts": [dataclasses.asdict(claim) for claim in self.claims],
            "rows": len(self.table),
            "files": {"csv": str(self.csv), "png": str(self.png), "svg": str(self.svg)},
        }


def find_experiments(names: tuple[str, ...]) -> list[Experiment]:
    """Return the experiments of these names, each once, in the order of the paper; `all` is all that say so."""
    known = [experiment.name for experiment in registry.EXPERIMENTS]
    for name in names:
        if name != "all" and name not in known:
            raise InputError(f"unknown experiment {name!r}", remedy=f"choose from: all, {', '.join(known)}")
    return [
        experiment
        for experiment in registry.EXPERIMENTS
        if ("all" in names and experiment.in_all) or experiment.name in names
    ]


def check_extras(experiments: Sequence[Experiment]) -> None:
    """Raise, saying how to get it, if a package is missing that one of these needs."""
    for experiment in experiments:
        if experiment.extra:
            check_installed([experiment.extra], extra=experiment.extra, purpose=f"experiment {experiment.name} needs")


def perform(
    experiment: Experiment,
    folder: OutputFolder,
    setting: Setting,
    *,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Run an experiment and write its table and figure into a folder; points that are kept there are not repeated."""
    options: dict[str, Any] = {"run": Run(threads=threads, progress=progress, keep=folder.target / KEPT)}
    if "truth" in experiment.takes:
        options["truth"] = setting.objects()
    if "repeats" in experiment.takes and setting.repeats is not None:
        options["repeats"] = setting.repeats
    if "seed" in experiment.takes:
        options["seed"] = setting.seed
    table = experiment.function(**options)
    with style():
        figure = experiment.draw(table)
    png, svg = pictures(figure)
    csv_file, png_file, svg_file = (
        folder.write(name, content)
        for name, content in zip(file_names(experiment), (table.to_csv().encode(), png, svg), strict=True)
    )
    return Outcome(experiment, table, experiment.judge(table), csv_file, png_file, svg_file, svg)


def file_names(experiment: Experiment) -> list[str]:
    """Return the names of the files that an experiment writes."""
    return [f"{experiment.name}.{ending}" for ending in ("csv", "png", "svg")]
