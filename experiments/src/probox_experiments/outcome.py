"""An experiment from start to end: measured, judged, drawn and written."""

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
from probox_experiments.claims import Claim, ResultTable, all_hold, verdict_words
from probox_experiments.experiment import Changes, Experiment, TooFewImagesError, settable
from probox_experiments.figures import pictures, style
from probox_experiments.running import PAPER, PRESETS, Provenance, Run, code_digest
from probox_experiments.synthetic import fingerprint, first_images, synthetic_truth

# --- An experiment from start to end: measured, judged, drawn and written ---

KEPT = ".points"
"""The folder, in the one of the results, that keeps finished points."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What experiments are run on, and how.

    Parameters
    ----------
    truth : GroundTruth, optional
        For the experiments that the paper ran on COCO. Default: `synthetic_truth`.
    detectors : mapping of str to Detections, optional
        Detections of that truth, for the experiments about detectors. Default: made-up ones.
    images : int, optional
        Use the first so many images of it, or make so many.
    repeats : int, optional
        How often random draws are repeated. Default: each experiment's own.
    seed : int
        Where they start.
    presets : sequence of str
        The presets that PDQ is measured under.
    changes : Changes
        What is changed in them, and in the experiments' own settings.
    typed : sequence of str
        The texts that asked for these changes.
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
        """The truth to use."""
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
        return f"{self._images()}, seed {self.seed}"

    def _images(self, objects: GroundTruth | None = None) -> str:
        used = self.objects if objects is None else objects
        source = "made-up images" if self.truth is None else f"images of {Path(used.source).name or 'a given truth'}"
        return f"{len(used.image_ids):,} {source} with {len(used):,} objects"

    def _select_truth(self, experiment: Experiment) -> GroundTruth:
        """Return the truth of the images that an experiment looks at: some take the first few by themselves."""
        given = {**settable(experiment), **self._own_settings(experiment)}
        alone = "images" in given and not ("detectors" in experiment.takes and self.detectors)
        return first_images(self.objects, given["images"]) if alone else self.objects

    def _own_settings(self, experiment: Experiment) -> dict[str, Any]:
        """Return the settings that somebody chose; --max-images goes for an experiment's own number of images, too."""
        asked = {"images": self.images} if self.images is not None and "images" in settable(experiment) else {}
        return asked | self.changes.for_experiment(experiment)

    def arguments(self, experiment: Experiment, run: Run) -> dict[str, Any]:
        """Return what an experiment's function is called with."""
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
        """Return where an experiment's numbers come from: of all settings those that it depends on."""
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
        data = "scenes of its own"
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
    """Return a place in the paper in words.

    >>> where_in_paper("B.1"), where_in_paper("figure 3"), where_in_paper("none: ours")
    ('section B.1', 'figure 3', 'not in it: ours')
    """
    if section.startswith("none"):
        return section.replace("none", "not in it", 1)
    return section if section.startswith("figure") else f"section {section}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What an experiment gave.

    Parameters
    ----------
    experiment : Experiment
        Which one.
    table : ResultTable
        What was measured.
    claims : list of Claim
        What became of the claims.
    provenance : Provenance
        Where the numbers come from.
    files : dict of str to Path
        The files by their endings: ``csv``, ``json``, ``png``, ``svg``.
    picture : bytes
        The SVG file's content.
    """

    experiment: Experiment
    table: ResultTable
    claims: list[Claim]
    provenance: Provenance
    files: dict[str, Path]
    picture: bytes

    @property
    def holds(self) -> bool | None:
        """Whether all claims hold that were measured; None if none was."""
        return all_hold(self.claims)

    @property
    def verdict(self) -> str:
        """In words what became of the claims: all of them alike, or how many hold."""
        measured = [claim.holds for claim in self.claims if claim.holds is not None]
        alike = len(set(measured)) <= 1
        return verdict_words(self.holds) if alike else f"{sum(measured)} of {len(measured)} hold"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
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
        "verdicts": [dataclasses.asdict(claim) for claim in claims],
        "provenance": provenance.to_dict(),
        "settings": list(table.settings),
        "rows": list(table.rows()),
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
    # The same in every row: a file may be split, or put beside others, and still says where each row comes from.
    whole = table.replace(**{name: [value] * len(table) for name, value in provenance.to_dict().items()})
    text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    contents = zip(ENDINGS, (whole.to_csv().encode(), text.encode(), png, svg), strict=True)
    files = {ending: folder.write(f"{experiment.name}.{ending}", content) for ending, content in contents}
    return Outcome(experiment=experiment, table=table, claims=claims, provenance=provenance, files=files, picture=svg)


@contextmanager
def _settings_named(experiment: Experiment, setting: Setting) -> Iterator[None]:
    """Say which settings somebody chose if an experiment cannot be run with them: not every value makes sense."""
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
"""Of the files that an experiment writes."""


# --- One page with every figure, its claims and what became of them, as Markdown and as HTML ---

PAGES = ("index.md", "index.html")
TITLE = "The experiments"

_CSS = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def write_page(outcomes: Sequence[Outcome], folder: OutputFolder, about: str) -> tuple[Path, Path]:
    """Write ``index.md`` and ``index.html`` beside the figures."""
    texts = (markdown_page(outcomes, about), html_page(outcomes, about))
    markdown, page = (folder.write(name, text.encode()) for name, text in zip(PAGES, texts, strict=True))
    return markdown, page


def summary_line(outcomes: Sequence[Outcome]) -> str:
    """Return how many claims hold, in words."""
    holds = [claim.holds for outcome in outcomes for claim in outcome.claims]
    words, skipped = f"{holds.count(True)} of {len(holds)} claims hold", holds.count(None)
    return words + (f", {skipped} {'was' if skipped == 1 else 'were'} not measured" if skipped else "")


def markdown_page(outcomes: Sequence[Outcome], about: str) -> str:
    """Return the page as Markdown; figures are named as they lie beside it."""
    lines = [f"# {TITLE}", "", f"{summary_line(outcomes)}. {about}", ""]
    lines += ["| experiment | paper | claim | verdict |", "| --- | --- | --- | --- |"]
    for outcome in outcomes:
        what = outcome.experiment
        link = f"[{what.name}](#{what.name})"
        lines.append(f"| {link} | {_short(what.section)} | {what.claim} | {outcome.verdict} |")
    for outcome in outcomes:
        what = outcome.experiment
        lines += ["", f"## {what.name}", "", f"Paper: {where_in_paper(what.section)}. Varied: {what.varied}.", ""]
        lines += [f"![{what.name}]({outcome.files['png'].name})", ""]
        for claim in outcome.claims:
            lines.append(f"- **{claim.verdict.capitalize()}**: {claim.claim}.")
            lines.append(f"  Measured: {claim.measured}. Required: {claim.required}.")
            if claim.explanation:
                lines.append(f"  {claim.explanation}")
        lines += ["", f"Made by `{outcome.provenance.command}` on {outcome.provenance.data}."]
        lines += ["", "Files: " + ", ".join(f"[{path.name}]({path.name})" for path in outcome.files.values())]
    return "\n".join(lines) + "\n"


def html_page(outcomes: Sequence[Outcome], about: str) -> str:
    """Return the page as HTML in one file, figures included."""
    rows = "".join(
        f'<tr role="row"><td role="cell"><a href="#{o.experiment.name}">{o.experiment.name}</a></td>'
        f'<td role="cell">{_text(_short(o.experiment.section))}</td><td role="cell">{_text(o.experiment.claim)}</td>'
        f'<td role="cell">{_word(o.holds, o.verdict)}</td></tr>\n'
        for o in outcomes
    )
    sections = "".join(_section(outcome) for outcome in outcomes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{TITLE}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n"
        f'<p class="about">{_text(summary_line(outcomes))}. {_text(about)}</p>\n'
        '<table role="table"><thead><tr><th>experiment</th><th>paper</th><th>claim</th><th>verdict</th></tr></thead>\n'
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
        f"<li>{_word(claim.holds, claim.verdict)} <span>{_text(claim.claim)}</span>"
        f'<p class="numbers">{_text(claim.measured)}<br>required: {_text(claim.required)}</p>{why}</li>\n'
    )


def _word(holds: bool | None, words: str) -> str:
    looks = "unknown" if holds is None else "yes" if holds else "no"
    return f'<span class="verdict {looks}">{words}</span>'


def _short(section: str) -> str:
    """Return a place in the paper as it fits a narrow column."""
    return section.removeprefix("none: ")


def _text(words: str) -> str:
    """Return words safe for HTML, `quoted` ones as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(words))
