"""`probox experiment`: the paper's controlled experiments."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probox.cli.console import note, print_json, progress_bar, results
from probox.cli.scoring import threads_option
from probox.cli.shared_options import GroupedCommand, input_option, json_option, option_group, output_option
from probox.convention import PRESETS as CONVENTIONS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from probox_experiments.experiment import Experiment
    from probox_experiments.outcome import Outcome, Setting


setting_option = option_group("Settings")

FAILED = 3
"""Exit status of `--strict` if a claim does not hold."""
STYLES = {True: "green", False: "bold red", None: "dim"}


def complete_experiments(context: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete the name of an experiment."""
    from click.shell_completion import CompletionItem

    from probox_experiments import EXPERIMENTS

    found = [CompletionItem(experiment.name, help=experiment.varied) for experiment in EXPERIMENTS]
    return [item for item in (*found, CompletionItem("all")) if item.value.startswith(text)]


@click.group("experiment")
def command() -> None:
    """Reproduce the controlled experiments of the PDQ paper, and others, and check their claims (docs/experiments.md).

    \b
    Examples:
      probox experiment list
      probox experiment run translation scaling
      probox experiment run all --out experiments
    """


@command.command("list", short_help="List the experiments.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object only.")
def list_command(as_json: bool) -> None:
    """List the experiments with their variables, claims and settings.

    \b
    Examples:
      probox experiment list
      probox experiment list --json
    """
    from probox_experiments.experiment import settable
    from probox_experiments.registry import EXPERIMENTS

    if as_json:
        fields = ("name", "section", "varied", "claim")
        print_json(
            {
                "experiments": [
                    {name: getattr(experiment, name) for name in fields}
                    | {"takes_truth": "truth" in experiment.takes, "in_all": experiment.in_all}
                    | {"settings": settable(experiment)}
                    | {"extra": experiment.extra or None}
                    for experiment in EXPERIMENTS
                ]
            }
        )
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("name", "paper", "variable and claim"):
        table.add_column(title, no_wrap=title != "variable and claim")
    for experiment in EXPERIMENTS:
        words = Text(experiment.varied).append(f"\n{experiment.claim}", style="dim")
        remarks = [f"needs {experiment.extra}"] * bool(experiment.extra) + ["not in `all`"] * (not experiment.in_all)
        settings = settable(experiment)
        for line in (", ".join(remarks), f"--set {', '.join(settings)}" if settings else ""):
            if line:
                words.append(f"\n{line}", style="dim")
        table.add_row(experiment.name, experiment.section, words)
    results().print(table)


# Of the scoring options, experiments have --preset only; --set changes others.
@command.command("run", cls=GroupedCommand, short_help="Run experiments and check their claims.")
@click.argument("names", nargs=-1, required=True, metavar="NAME... | all", shell_complete=complete_experiments)
@input_option("--truth", type=click.Path(), metavar="FILE", help="Ground truth of experiments on many images.")
@input_option(
    "--detections",
    type=click.Path(),
    multiple=True,
    metavar="[NAME=]FILE",
    help="Detections on --truth, for experiments on detectors; repeatable.",
)
@input_option("--max-images", "images", type=click.IntRange(min=1), help="Use the first N images of the ground truth.")
@setting_option("--repeats", type=click.IntRange(min=1), help="Repeat random draws N times.")
@setting_option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@setting_option(
    "--preset",
    "presets",
    type=click.Choice(list(CONVENTIONS)),
    multiple=True,
    help="Compute PDQ with this preset; repeatable.  [default: reference and paper]",
)
@setting_option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change a setting of experiments, or a constant of PDQ; repeatable.",
)
@output_option("--strict", is_flag=True, help="Exit with status 3 if a claim does not hold.")
@output_option(
    "--out", type=click.Path(), default="experiments", show_default=True, metavar="DIR", help="Write results to DIR."
)
@json_option
@threads_option
def run_command(
    names: tuple[str, ...],
    truth: str | None,
    detections: tuple[str, ...],
    repeats: int | None,
    images: int | None,
    seed: int,
    presets: tuple[str, ...],
    changes: tuple[str, ...],
    strict: bool,
    threads: int | None,
    out: str,
    as_json: bool,
) -> int:
    """Run experiments, draw their figures and check their claims.

    Each experiment writes NAME.csv, NAME.json, NAME.png and NAME.svg; `all` also writes index.html and index.md. Repeat
    the command to continue an interrupted run (docs/experiments.md).

    Without --truth, images are synthetic. `all` excludes experiments that need PyTorch or take minutes.

    \b
    Examples:
      probox experiment run all --strict
      probox experiment run spatial-uncertainty --truth instances_val2017.json --repeats 20
      probox experiment run constant-sigma --truth truth.json --detections ssd=detections.json
      probox experiment run assignment scaling --preset paper --set epsilon=1e-10
    """
    from probox.errors import InputError
    from probox.files.output import output_folder
    from probox_experiments.experiment import TooFewImagesError, parse_settings
    from probox_experiments.figures import style
    from probox_experiments.outcome import (
        ENDINGS,
        PAGES,
        Setting,
        check_extras,
        find_experiments,
        perform,
        write_page,
    )
    from probox_experiments.running import PRESETS

    try:
        chosen = find_experiments(names)
        parsed = parse_settings(changes, chosen)
    except InputError as error:
        raise click.UsageError(str(error)) from None
    if detections and truth is None:
        raise click.UsageError("--detections needs the ground truth: add --truth FILE")
    style()  # raises if Matplotlib is missing
    check_extras(chosen)
    started = time.perf_counter()
    setting = Setting(
        **_tables(truth, detections, chosen),
        images=images,
        repeats=repeats,
        seed=seed,
        presets=tuple(dict.fromkeys(presets)) or PRESETS,
        changes=parsed,
        typed=changes,
    )
    fixed = [experiment.name for experiment in chosen if experiment.own_presets]
    if fixed and (presets or parsed.convention):
        note(f"note: {', '.join(fixed)}: presets are always `reference` and `paper`; --preset and --set are ignored")
    outcomes: list[Outcome] = []
    written = None
    files = [f"{experiment.name}.{ending}" for experiment in chosen for ending in ENDINGS] + [*PAGES] * ("all" in names)
    with output_folder(out, "experiment", names=files) as folder:
        for experiment in chosen:
            began = time.perf_counter()
            try:
                with progress_bar(experiment.name, quiet=as_json) as progress:
                    outcomes.append(perform(experiment, folder, setting, threads=threads, progress=progress))
            except TooFewImagesError as error:
                if len(chosen) == 1:
                    raise
                note(f"{experiment.name}: skipped: {error}")
                continue
            note(f"{experiment.name}: {time.perf_counter() - began:.1f} s")
        if "all" in names:
            about = f"Experiments on many images: {setting.describe()}. Presets of PDQ: {_presets(setting)}."
            written = write_page(outcomes, folder, about)
    _report(outcomes, setting, out, written, time.perf_counter() - started, as_json)
    return FAILED if strict and any(outcome.holds is False for outcome in outcomes) else 0


def _tables(truth: str | None, detections: tuple[str, ...], chosen: list[Experiment]) -> dict[str, Any]:
    """Return the tables of files, with a note on files that no experiment uses."""
    from probox.cli.shared_options import make_titles, parse_named
    from probox.formats import read_detections, read_truth

    if truth is None:
        return {}
    for path, use in [(truth, "truth"), *((path, "detectors") for path in detections)]:
        if not any(use in experiment.takes for experiment in chosen):
            note(f"note: {path} is not used by {', '.join(experiment.name for experiment in chosen)}")
    table = read_truth(truth)
    if not detections:
        return {"truth": table}
    named = parse_named(detections)
    tables = [read_detections(entry.path, table) for entry in named]
    return {"truth": table, "detectors": dict(zip(make_titles(named), tables, strict=True))}


def _presets(setting: Setting) -> str:
    changed = f" with {', '.join(setting.typed)}" if setting.typed else ""
    return " and ".join(f"`{preset}`" for preset in setting.presets) + changed


def _report(
    outcomes: list[Outcome],
    setting: Setting,
    out: str,
    written: tuple[Path, Path] | None,
    seconds: float,
    as_json: bool,
) -> None:
    from probox_experiments.outcome import summary_line

    if as_json:
        claims = [claim for outcome in outcomes for claim in outcome.claims]
        answer: dict[str, Any] = {
            "experiments": [outcome.to_dict() for outcome in outcomes],
            "claims": len(claims),
            "holds": sum(claim.holds is True for claim in claims),
            "not_measured": sum(claim.holds is None for claim in claims),
            "ran_on": setting.describe(),
            "page": None if written is None else {"markdown": str(written[0]), "html": str(written[1])},
            "seconds": seconds,
        }
        print_json(answer)
        return
    results().print(_claim_table(outcomes))
    note(f"{summary_line(outcomes)}; {seconds:.1f} s; wrote {written[1] if written else out}")


def _claim_table(outcomes: list[Outcome]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("experiment", no_wrap=True)
    table.add_column("result", no_wrap=True)
    table.add_column("claim and measurement", overflow="fold")
    for outcome in outcomes:
        for row, claim in enumerate(outcome.claims):
            word = Text(claim.result, style=STYLES[claim.holds])
            shown = claim.measured if claim.holds is not None else f"required: {claim.required}"
            words = Text(claim.claim).append(f"\n{shown}", style="dim")
            if claim.explanation and not claim.holds:
                words.append(f"\n{claim.explanation}")
            table.add_row(outcome.experiment.name if row == 0 else "", word, words)
    return table
