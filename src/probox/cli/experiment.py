"""`probox experiment`: the paper's controlled experiments."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probox.cli.console import note, print_json, progress_bar, results

if TYPE_CHECKING:
    from probox.experiments.outcome import Outcome, Setting

STYLES = {True: "green", False: "bold red", None: "dim"}


@click.group("experiment")
def command() -> None:
    """Run the paper's controlled experiments, and ours, and check their claims.

    \b
    probox experiment list
    probox experiment run translation scaling
    probox experiment run all --out experiments
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def list_command(as_json: bool) -> None:
    """List the experiments: what each varies, and what the paper claims.

    \b
    probox experiment list
    """
    from probox.experiments.registry import EXPERIMENTS

    if as_json:
        fields = ("name", "section", "varied", "claim")
        print_json(
            {
                "experiments": [
                    {name: getattr(experiment, name) for name in fields}
                    | {"takes_truth": "truth" in experiment.takes, "in_all": experiment.in_all}
                    | {"extra": experiment.extra or None}
                    for experiment in EXPERIMENTS
                ]
            }
        )
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("name", "paper", "what is varied, and the claim"):
        table.add_column(title, no_wrap=title != "what is varied, and the claim")
    for experiment in EXPERIMENTS:
        words = Text(experiment.varied).append(f"\n{experiment.claim}", style="dim")
        remarks = [f"needs {experiment.extra}"] * bool(experiment.extra) + ["not part of all"] * (not experiment.in_all)
        if remarks:
            words.append(f"\n{', '.join(remarks)}", style="dim")
        table.add_row(experiment.name, experiment.section, words)
    results().print(table)


# No options of scoring: an experiment says itself under which presets its claims are judged.
@command.command("run")
@click.argument("names", nargs=-1, required=True, metavar="NAME... | all")
@click.option(
    "--truth", type=click.Path(), metavar="FILE", help="COCO ground truth for the experiments on many images."
)
@click.option("--repeats", type=click.IntRange(min=1), metavar="N", help="Repeat random draws N times.")
@click.option("--images", type=click.IntRange(min=1), metavar="N", help="Use the first N images of the truth.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Where random draws start.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use [default: all processors].")
@click.option(
    "--out", type=click.Path(), default="experiments", show_default=True, metavar="DIR", help="Where results go."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def run_command(
    names: tuple[str, ...],
    truth: str | None,
    repeats: int | None,
    images: int | None,
    seed: int,
    threads: int | None,
    out: str,
    as_json: bool,
) -> None:
    """Run experiments, draw them and check the paper's claims.

    Each writes NAME.csv, NAME.png and NAME.svg into the folder; `all` also writes index.html and index.md with every
    figure, claim and verdict. They appear together when the last is done, and replace those of an earlier run. A run
    that was stopped goes on where it was when started again with the same --out. Without --truth the experiments on
    many images use made-up ones. Training needs PyTorch and takes minutes: it is not part of `all`.

    \b
    probox experiment run all
    probox experiment run spatial-uncertainty --truth instances_val2017.json --repeats 20
    probox experiment run training training-scenes
    """
    from probox.errors import InputError
    from probox.experiments.figures import style
    from probox.experiments.outcome import KEPT, Setting, check_extras, file_names, find_experiments, perform
    from probox.experiments.page import PAGES, write_page
    from probox.files.folder import output_folder

    try:
        chosen = find_experiments(names)
    except InputError as error:
        raise click.UsageError(str(error)) from None
    style()  # says what is missing before anything is measured
    check_extras(chosen)
    started = time.perf_counter()
    table = None
    if truth is not None:
        from probox.formats import read_truth

        table = read_truth(truth)
        if not any("truth" in experiment.takes for experiment in chosen):
            note(f"note: {truth} is not used by {', '.join(experiment.name for experiment in chosen)}")
    setting = Setting(truth=table, images=images, repeats=repeats, seed=seed)
    outcomes: list[Outcome] = []
    written = None
    files = [name for experiment in chosen for name in file_names(experiment)] + [*PAGES] * ("all" in names)
    with output_folder(out, "experiment", names=files, carry=KEPT) as folder:
        for experiment in chosen:
            began = time.perf_counter()
            with progress_bar(experiment.name, quiet=as_json) as progress:
                outcomes.append(perform(experiment, folder, setting, threads=threads, progress=progress))
            note(f"{experiment.name}: {time.perf_counter() - began:.1f} s")
        if "all" in names:
            about = f"Experiments on many images: {setting.describe()}. PDQ in figures is that of preset `reference`."
            written = write_page(outcomes, folder, about)
    _report(outcomes, setting, out, written, time.perf_counter() - started, as_json)


def _report(
    outcomes: list[Outcome],
    setting: Setting,
    out: str,
    written: tuple[Path, Path] | None,
    seconds: float,
    as_json: bool,
) -> None:
    from probox.experiments.page import summary_line

    if as_json:
        claims = [claim for outcome in outcomes for claim in outcome.claims]
        answer: dict[str, Any] = {
            "experiments": [outcome.to_dict() for outcome in outcomes],
            "claims": len(claims),
            "holds": sum(claim.holds is True for claim in claims),
            "ran_on": setting.describe(),
            "page": None if written is None else {"markdown": str(written[0]), "html": str(written[1])},
            "seconds": seconds,
        }
        print_json(answer)
        return
    results().print(_claim_table(outcomes))
    note(f"{summary_line(outcomes)}; {seconds:.1f} s; written to {written[1] if written else out}")


def _claim_table(outcomes: list[Outcome]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("experiment", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("claim, and what was measured", overflow="fold")
    for outcome in outcomes:
        for row, claim in enumerate(outcome.claims):
            word = Text(claim.verdict, style=STYLES[claim.holds])
            words = Text(claim.claim).append(f"\n{claim.measured}", style="dim")
            if claim.explanation and not claim.holds:
                words.append(f"\n{claim.explanation}")
            table.add_row(outcome.experiment.name if row == 0 else "", word, words)
    return table
