"""Run an experiment: compute its table, check its claims, draw its figure, and write the files."""

from __future__ import annotations

import base64
import dataclasses
import functools
import html
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from probox.errors import InputError
from probox.files.output import OutputFolder
from probox.support.formatting import plain_json
from probox.support.optional import check_installed
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.version import __version__
from probox_experiments import registry
from probox_experiments.claims import Claim, ResultTable, all_hold, result_text
from probox_experiments.experiment import Changes, Experiment, TooFewImagesError, settable
from probox_experiments.figures import pictures, style
from probox_experiments.running import PAPER, PRESETS, Provenance, Run, code_digest
from probox_experiments.synthetic import fingerprint, first_images, synthetic_truth

# --- Running an experiment ---

KEPT = ".points"
"""Subfolder of the results with finished points."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """Data and options of a run.

    Parameters
    ----------
    truth : GroundTruth, optional
        Ground truth for experiments on many images. Default: `synthetic_truth`.
    detectors : mapping of str to Detections, optional
        Detections on this ground truth, for experiments on detectors. Default: simulated detectors.
    images : int, optional
        Number of images, the first of the ground truth or synthetic ones.
    repeats : int, optional
        Number of random draws. Default: each experiment's own.
    seed : int
        Random seed.
    presets : sequence of str
        Presets of PDQ.
    changes : Changes
        Changed fields of the presets, and changed settings of experiments.
    typed : sequence of str
        The texts of these changes.
    """

    truth: GroundTruth | None = None
    detectors: Mapping[str, Detections] | None = None
    images: int | None = None
    repeats: int | None = None
    seed: int = 0
    presets: Sequence[str] = PRESETS
    changes: Changes = dataclasses.field(default_factory=Changes)
    typed: Sequence[str] = ()

    @functools.cached_property
    def objects(self) -> GroundTruth:
        """The ground truth to use."""
        if self.truth is None:
            return synthetic_truth() if self.images is None else synthetic_truth(self.images)
        chosen = first_images(self.truth, self.images)
        if not len(chosen):
            raise InputError(
                f"expected objects to detect, but the {len(chosen.image_ids)} images have none",
                file=chosen.source or None,
                remedy="use more images, or omit the ground truth to use synthetic images",
            )
        return chosen

    def describe(self) -> str:
        """Return a description of the data of experiments on many images."""
        return f"{self._images()}, seed {self.seed}"

    def _images(self, objects: GroundTruth | None = None) -> str:
        used = self.objects if objects is None else objects
        name = "synthetic images" if self.truth is None else f"images of {Path(used.source).name or 'a ground truth'}"
        return f"{len(used.image_ids):,} {name} with {len(used):,} objects"

    def _select_truth(self, experiment: Experiment) -> GroundTruth:
        """Return the ground truth of the images that an experiment uses; some use the first few only."""
        given = {**settable(experiment), **self._own_settings(experiment)}
        alone = "images" in given and not ("detectors" in experiment.takes and self.detectors)
        return first_images(self.objects, given["images"]) if alone else self.objects

    def _own_settings(self, experiment: Experiment) -> dict[str, Any]:
        """Return the settings chosen by the user; --max-images also sets an experiment's own number of images."""
        asked = {"images": self.images} if self.images is not None and "images" in settable(experiment) else {}
        return asked | self.changes.for_experiment(experiment)

    def arguments(self, experiment: Experiment, run: Run) -> dict[str, Any]:
        """Return the arguments of an experiment's function."""
        arguments: dict[str, Any] = {"run": run, **self._own_settings(experiment)}
        if "truth" in experiment.takes:
            arguments["truth"] = self.objects
        if "detectors" in experiment.takes:
            ids = self.objects.image_ids
            kept = {name: one.select(np.isin(one.image_ids, ids)) for name, one in (self.detectors or {}).items()}
            arguments["detectors"] = kept or None
        if "repeats" in experiment.takes and self.repeats is not None:
            arguments["repeats"] = self.repeats
        if "seed" in experiment.takes:
            arguments["seed"] = self.seed
        return arguments

    def provenance(self, experiment: Experiment) -> Provenance:
        """Return the provenance of an experiment's numbers, with the settings that affect it."""
        takes, words = experiment.takes, [f"probox experiment run {experiment.name}"]
        if "truth" in takes:
            words += [] if self.truth is None else [f"--truth {shlex.quote(Path(self.truth.source).name)}"]
            words += [] if self.images is None else [f"--max-images {self.images}"]
        if "detectors" in takes and self.detectors is not None:
            named = [f"{name}={Path(table.source).name}" for name, table in self.detectors.items()]
            words += [f"--detections {shlex.quote(text)}" for text in named]
        words += [f"--repeats {self.repeats}"] * ("repeats" in takes and self.repeats is not None)
        words += [f"--seed {self.seed}"] * ("seed" in takes and self.seed != 0)
        if tuple(self.presets) != PRESETS and not experiment.own_presets:
            words += [f"--preset {preset}" for preset in self.presets]
        own = self.changes.for_experiment(experiment)
        own |= {} if experiment.own_presets else self.changes.convention
        words += [f"--set {shlex.quote(text)}" for text in self.typed if text.partition("=")[0].strip() in own]
        data = "synthetic scenes"
        if "truth" in takes:
            used = self._select_truth(experiment)
            data = f"{self._images(used)}, sha256 {fingerprint(used)}"
        if "detectors" in takes and self.detectors is not None:
            data += "".join(f"; {name}, sha256 {fingerprint(table)}" for name, table in self.detectors.items())
        return Provenance(
            probox=__version__,
            code=code_digest(),
            command=" ".join(words),
            seed=self.seed if "seed" in takes else 0,
            data=data,
            paper=f"{PAPER}; {where_in_paper(experiment.section)}",
        )


def where_in_paper(section: str) -> str:
    """Return a section of the paper as text.

    >>> where_in_paper("B.1"), where_in_paper("figure 3"), where_in_paper("none")
    ('section B.1', 'figure 3', 'not part of the paper')
    """
    if section == "none":
        return "not part of the paper"
    return section if section.startswith("figure") else f"section {section}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """Results of an experiment.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    table : ResultTable
        Its results.
    claims : list of Claim
        Its claims.
    provenance : Provenance
        Origin of the numbers.
    files : dict of str to Path
        Files by their suffix: ``csv``, ``json``, ``png``, ``svg``.
    picture : bytes
        Content of the SVG file.
    """

    experiment: Experiment
    table: ResultTable
    claims: list[Claim]
    provenance: Provenance
    files: dict[str, Path]
    picture: bytes

    @property
    def holds(self) -> bool | None:
        """Whether all measured claims hold; None if no claim was measured."""
        return all_hold(self.claims)

    @property
    def result(self) -> str:
        """The common result of all claims, or the number that holds."""
        measured = [claim.holds for claim in self.claims if claim.holds is not None]
        alike = len(set(measured)) <= 1
        return result_text(self.holds) if alike else f"{sum(measured)} of {len(measured)} hold"

    def to_dict(self) -> dict[str, Any]:
        """Return all results as JSON types."""
        files = {"files": {ending: str(path) for ending, path in self.files.items()}}
        return _describe(self.experiment, self.table, self.claims, self.provenance) | files


def _describe(
    experiment: Experiment, table: ResultTable, claims: list[Claim], provenance: Provenance
) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "paper": experiment.section,
        "claim": experiment.claim,
        "holds": all_hold(claims),
        "claims": [dataclasses.asdict(claim) for claim in claims],
        "provenance": provenance.to_dict(),
        "settings": list(table.settings),
        "rows": list(table.rows()),
    }


def find_experiments(names: tuple[str, ...]) -> list[Experiment]:
    """Return the experiments of these names without duplicates, in the order of the paper; `all` means `in_all`."""
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
    """Raise with installation instructions if a package required by an experiment is missing."""
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
    """Run an experiment and write its table and figure into a folder; finished points there are reused."""
    run = Run(
        threads=threads,
        progress=progress,
        keep=folder.target / KEPT,
        presets=setting.presets,
        changes=setting.changes.convention,
    )
    with _settings_named(experiment, setting):
        table = experiment.function(**setting.arguments(experiment, run))
        claims = experiment.judge(table)
        with style():
            figure = experiment.draw(table)
        png, svg = pictures(figure)
    provenance = setting.provenance(experiment)
    described = plain_json(_describe(experiment, table, claims, provenance))
    # Every row has the provenance, so that files can be split or concatenated.
    whole = table.replace(**{name: [value] * len(table) for name, value in provenance.to_dict().items()})
    text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    contents = zip(ENDINGS, (whole.to_csv().encode(), text.encode(), png, svg), strict=True)
    files = {ending: folder.write(f"{experiment.name}.{ending}", content) for ending, content in contents}
    return Outcome(experiment=experiment, table=table, claims=claims, provenance=provenance, files=files, picture=svg)


@contextmanager
def _settings_named(experiment: Experiment, setting: Setting) -> Iterator[None]:
    """Name the user's settings in errors of an experiment, because not every value is possible."""
    try:
        yield
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        of_a_file = isinstance(error, InputError) and error.file is not None
        if not setting.changes.for_experiment(experiment) or of_a_file or isinstance(error, TooFewImagesError):
            raise
        reason = "out of memory" if isinstance(error, MemoryError) else error
        raise InputError(
            f"experiment {experiment.name} cannot be run with {', '.join(setting.typed)}: {reason}",
            remedy="`probox experiment list --json` shows the usual values",
        ) from error


ENDINGS = ("csv", "json", "png", "svg")
"""Suffixes of the files of an experiment."""


# --- A page with all figures and claims, as Markdown and HTML ---

PAGES = ("index.md", "index.html")
TITLE = "Experiments"

_CSS = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def write_page(outcomes: Sequence[Outcome], folder: OutputFolder, about: str) -> tuple[Path, Path]:
    """Write ``index.md`` and ``index.html`` beside the figures."""
    texts = (markdown_page(outcomes, about), html_page(outcomes, about))
    markdown, page = (folder.write(name, text.encode()) for name, text in zip(PAGES, texts, strict=True))
    return markdown, page


def summary_line(outcomes: Sequence[Outcome]) -> str:
    """Return a sentence with the number of claims that hold."""
    holds = [claim.holds for outcome in outcomes for claim in outcome.claims]
    words, skipped = f"{holds.count(True)} of {len(holds)} claims hold", holds.count(None)
    return words + (f", {skipped} {'was' if skipped == 1 else 'were'} not measured" if skipped else "")


def markdown_page(outcomes: Sequence[Outcome], about: str) -> str:
    """Return the page as Markdown, with links to the figures beside it."""
    lines = [f"# {TITLE}", "", f"{summary_line(outcomes)}. {about}", ""]
    lines += ["| experiment | paper | claim | result |", "| --- | --- | --- | --- |"]
    for outcome in outcomes:
        what = outcome.experiment
        link = f"[{what.name}](#{what.name})"
        lines.append(f"| {link} | {_short(what.section)} | {what.claim} | {outcome.result} |")
    for outcome in outcomes:
        what = outcome.experiment
        lines += ["", f"## {what.name}", "", f"Paper: {where_in_paper(what.section)}. Varied: {what.varied}.", ""]
        lines += [f"![{what.name}]({outcome.files['png'].name})", ""]
        for claim in outcome.claims:
            lines.append(f"- **{claim.result.capitalize()}**: {claim.claim}.")
            lines.append(f"  Measured: {claim.measured}. Required: {claim.required}.")
            if claim.explanation:
                lines.append(f"  {claim.explanation}")
        lines += ["", f"Command: `{outcome.provenance.command}`. Data: {outcome.provenance.data}."]
        lines += ["", "Files: " + ", ".join(f"[{path.name}]({path.name})" for path in outcome.files.values())]
    return "\n".join(lines) + "\n"


def html_page(outcomes: Sequence[Outcome], about: str) -> str:
    """Return the page as HTML in one file, figures included."""
    rows = "".join(
        f'<tr role="row"><td role="cell"><a href="#{o.experiment.name}">{o.experiment.name}</a></td>'
        f'<td role="cell">{_text(_short(o.experiment.section))}</td><td role="cell">{_text(o.experiment.claim)}</td>'
        f'<td role="cell">{_word(o.holds, o.result)}</td></tr>\n'
        for o in outcomes
    )
    sections = "".join(_section(outcome) for outcome in outcomes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{TITLE}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n"
        f'<p class="about">{_text(summary_line(outcomes))}. {_text(about)}</p>\n'
        '<table role="table"><thead><tr><th>experiment</th><th>paper</th><th>claim</th><th>result</th></tr></thead>\n'
        f'<tbody role="rowgroup">\n{rows}</tbody></table>\n{sections}</body>\n</html>\n'
    )


def _section(outcome: Outcome) -> str:
    what = outcome.experiment
    picture = base64.b64encode(outcome.picture).decode()
    claims = "".join(_claim(claim) for claim in outcome.claims)
    files = ", ".join(f'<a href="{path.name}">{path.name}</a>' for path in outcome.files.values())
    return (
        f'<section id="{what.name}">\n<header><h2>{what.name}</h2>\n'
        f'<p class="where">Paper: {_text(where_in_paper(what.section))}. Varied: {_text(what.varied)}.</p></header>\n'
        f'<figure><img alt="{_text(what.claim)}" src="data:image/svg+xml;base64,{picture}">'
        f"<figcaption>{files}<br>{_text(f'`{outcome.provenance.command}`')}</figcaption></figure>\n"
        f"<ul>\n{claims}</ul>\n</section>\n"
    )


def _claim(claim: Claim) -> str:
    why = f'<p class="why">{_text(claim.explanation)}</p>' if claim.explanation else ""
    return (
        f"<li>{_word(claim.holds, claim.result)} <span>{_text(claim.claim)}</span>"
        f'<p class="numbers">{_text(claim.measured)}<br>required: {_text(claim.required)}</p>{why}</li>\n'
    )


def _word(holds: bool | None, words: str) -> str:
    looks = "unknown" if holds is None else "yes" if holds else "no"
    return f'<span class="result {looks}">{words}</span>'


def _short(section: str) -> str:
    """Return a section of the paper as short text."""
    return section.removeprefix("none: ")


def _text(words: str) -> str:
    """Return text escaped for HTML, with `quoted` words as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(words))
