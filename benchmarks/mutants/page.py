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
    """Return the page: who survived, the table, the mutants, the claims and the settings."""
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
        "  `probox.measures.boxes.box_definition`), not the compiled kernel; a test compares the two.",
        "- PDQ is measured under the presets `reference` and `paper`.",
        "- Experiments are run small, because the definitions look at every pixel of every map. Those on many images",
        f"  have {len(truth.image_ids)} images of {width} x {height} pixels with {len(truth)} objects; settings are at",
        "  the end.",
        "",
        *_survivors(trials),
        "",
        "## Mutants by claims",
        "",
        "The numbers in a cell are those of the claims that fail, as they are listed [below](#claims); `.` for none.",
        "",
        *_table(trials),
        "",
        "## Mutants",
        "",
        *(line for trial in trials.mutants for line in _told(trial)),
        "",
        "## Claims",
        "",
        "With each claim stands how many mutants it sees. One that sees none may be about something else, or say too",
        "little. Those that fail, or are not measured, with the true measure at this size do not count.",
        "",
        *_claims(trials),
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


def _claims(trials: Trials) -> list[str]:
    """Return the claims of every experiment, numbered, with how many mutants each sees."""
    lines = []
    for name, judged in trials.true.items():
        lines += [f"**`{name}`**", ""]
        for number, (claim, holds) in enumerate(judged.claims, 1):
            seen = sum(claim in trial.failing[name] for trial in trials.mutants)
            words = {True: f"sees {seen}" if seen else "**sees none**", False: "fails at this size"}
            lines.append(f"{number}. {claim} ({words.get(holds, 'not measured at this size')})")
        lines.append("")
    return lines[:-1]


def _survivors(trials: Trials) -> list[str]:
    if not trials.survivors:
        return [f"**No mutant survives**: each of the {len(trials.mutants)} makes at least one claim fail."]
    lines = [f"**{len(trials.survivors)} of {len(trials.mutants)} MUTANTS SURVIVE: no claim sees them.**", ""]
    return lines + [f"- **`{mutant.name}`**: {mutant.sentence}" for mutant in trials.survivors]


def _table(trials: Trials) -> list[str]:
    names = list(trials.true)
    lines = [f"| mutant | {' | '.join(names)} | total |", f"| --- |{' :-: |' * len(names)} ---: |"]
    for trial in trials.mutants:
        cells = [_cell(trial, name, [claim for claim, _ in trials.true[name].claims]) for name in names]
        total = str(trial.total) if trial.total else "**0: SURVIVES**"
        lines.append(f"| `{trial.mutant.name}` | {' | '.join(cells)} | {total} |")
    return lines


def _cell(trial: Trial, name: str, claims: list[str]) -> str:
    if name in trial.errors:
        return "error"
    failing = trial.failing[name]
    return " ".join(str(number) for number, claim in enumerate(claims, 1) if claim in failing) or NONE


def _told(trial: Trial) -> Iterable[str]:
    yield f"- **`{trial.mutant.name}`**: {trial.mutant.sentence}"
    for name, error in trial.errors.items():
        yield f"  - `{name}` stopped, which does not count: {error}"


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
