"""What was tried as a page of Markdown, as JSON and as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.mutants.small import small_settings
from benchmarks.mutants.trying import Trial, Trials
from probox.tables.groundtruth import GroundTruth
from probox.version import __version__

__all__ = ["as_csv", "as_json", "as_markdown"]

NONE = "."


def as_markdown(trials: Trials, truth: GroundTruth, command: str) -> str:
    """Return the page: who survived, the table, which claims see what, which claims see nothing, and the settings."""
    held = sum(len(judged.holding) for judged in trials.true.values())
    width, height = truth.dataset.widths[0], truth.dataset.heights[0]
    lines = [
        "# Broken measures and the claims that see them",
        "",
        "Each row is the measure with one thing wrong, a *mutant*. Every experiment is run with it. A claim that holds",
        "with the true measure and fails with the broken one sees the mutant. A broken measure that no claim sees",
        "would pass for a right one.",
        "",
        f"Made by `{command}` with probox {__version__}.",
        "",
        f"- {len(trials.mutants)} mutants, {len(trials.true)} experiments, {held} claims that hold with the true one.",
        "- The measures are the plain definitions (`probox.measures.pdq.definition`,",
        "  `probox.measures.boxes.definition`), not the compiled kernel; a test compares the two.",
        "- PDQ is measured under the presets `reference` and `paper`.",
        "- Experiments are run small, because the definitions look at every pixel of every map. Those on many images",
        f"  have {len(truth.image_ids)} images of {width} x {height} pixels with {len(truth)} objects; settings are at",
        "  the end.",
        *_not_counted(trials),
        "",
        *_survivors(trials),
        "",
        "## Table",
        "",
        "How many claims of an experiment fail, of those that hold with the true measure; `.` for none.",
        "",
        *(f"{number}. `{name}`" for number, name in enumerate(trials.true, 1)),
        "",
        *_table(trials),
        "",
        "## What sees each mutant",
        "",
        *(line for trial in trials.mutants for line in _seen_by(trial)),
        "",
        "## Claims that nothing here breaks",
        "",
        *_unbroken(trials),
        "",
        "## Settings",
        "",
        *(f"- `{experiment.name}`: {_settings(small_settings(experiment))}" for experiment in trials.experiments),
    ]
    return "\n".join(lines) + "\n"


def _settings(settings: Mapping[str, Any]) -> str:
    def words(value: Any) -> str:
        items = value if isinstance(value, tuple | list) else [value]
        return ", ".join(item if isinstance(item, str) else f"{item:g}" for item in items) or "none"

    return "; ".join(f"`{name}` {words(value)}" for name, value in settings.items()) or "as it is"


def _not_counted(trials: Trials) -> list[str]:
    lines = []
    for word, wanted in (("fail", False), ("are not measured", None)):
        claims = [
            (name, claim) for name, judged in trials.true.items() for claim, holds in judged.claims if holds is wanted
        ]
        if claims:
            lines.append(f"- Claims that {word} with the true measure at this size, which do not count:")
            lines += [f"  - `{name}`: {claim}" for name, claim in claims]
    return lines


def _survivors(trials: Trials) -> list[str]:
    if not trials.survivors:
        return [f"**No mutant survives**: each of the {len(trials.mutants)} makes at least one claim fail."]
    lines = [f"**{len(trials.survivors)} of {len(trials.mutants)} MUTANTS SURVIVE: no claim sees them.**", ""]
    return lines + [f"- **`{mutant.name}`**: {mutant.sentence}" for mutant in trials.survivors]


def _table(trials: Trials) -> list[str]:
    names = list(trials.true)
    lines = [
        f"| mutant | {' | '.join(str(number) for number in range(1, len(names) + 1))} | total |",
        f"| --- |{' :-: |' * len(names)} ---: |",
    ]
    for trial in trials.mutants:
        cells = [_cell(trial, name, len(trials.true[name].holding)) for name in names]
        total = str(trial.total) if trial.total else "**0: SURVIVES**"
        lines.append(f"| `{trial.mutant.name}` | {' | '.join(cells)} | {total} |")
    return lines


def _cell(trial: Trial, name: str, claims: int) -> str:
    if name in trial.errors:
        return "error"
    return f"{len(trial.failing[name])}/{claims}" if trial.failing[name] else NONE


def _seen_by(trial: Trial) -> Iterable[str]:
    yield f"- **`{trial.mutant.name}`**: {trial.mutant.sentence}"
    for name, claims in trial.failing.items():
        for claim in claims:
            yield f"  - `{name}`: {claim}"
    for name, error in trial.errors.items():
        yield f"  - `{name}` stopped, which does not count: {error}"
    if not trial.total:
        yield "  - **nothing**"


def _unbroken(trials: Trials) -> list[str]:
    unbroken = trials.unbroken()
    if not unbroken:
        return ["None: every claim that holds is broken by some mutant."]
    lines = [
        "They hold whatever is wrong with the measures here: they may be about something else, or say too little.",
        "",
    ]
    return lines + [f"- `{name}`: {claim}" for name, claims in unbroken.items() for claim in claims]


def as_json(trials: Trials, command: str) -> dict[str, Any]:
    """Return everything as JSON can hold it."""
    return {
        "command": command,
        "version": __version__,
        "survivors": [mutant.name for mutant in trials.survivors],
        "true": {
            name: [{"claim": claim, "holds": holds} for claim, holds in judged.claims]
            for name, judged in trials.true.items()
        },
        "mutants": [
            {
                "name": trial.mutant.name,
                "sentence": trial.mutant.sentence,
                "where": trial.mutant.where,
                "failing": {name: claims for name, claims in trial.failing.items() if claims},
                "errors": trial.errors,
            }
            for trial in trials.mutants
        ],
        "unbroken": trials.unbroken(),
    }


def as_csv(trials: Trials) -> list[list[Any]]:
    """Return rows of the table: numbers of claims that fail; the first row has those that hold."""
    rows: list[list[Any]] = [["mutant", *trials.true, "total"]]
    held = [len(judged.holding) for judged in trials.true.values()]
    rows.append(["claims that hold", *held, sum(held)])
    for trial in trials.mutants:
        rows.append([trial.mutant.name, *(len(trial.failing[name]) for name in trials.true), trial.total])
    return rows
