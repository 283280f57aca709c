"""The results of mutation testing as Markdown, JSON and CSV."""

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
    """Return the report: surviving mutants, the matrix, the mutants, the claims and the settings."""
    held = sum(len(judged.holding) for judged in trials.true.values())
    width, height = truth.dataset.widths[0], truth.dataset.heights[0]
    lines = [
        "# Mutation testing of the claims",
        "",
        "A *mutant* is a metric with one defect. Every experiment runs with every mutant. A claim detects a mutant if",
        "it holds with the correct metric and fails with the mutant.",
        "",
        f"Made by `{command}` with probox {__version__}.",
        "",
        f"- {len(trials.mutants)} mutants, {len(trials.true)} experiments, {held} claims that hold without a mutant.",
        "- Metrics are computed by the NumPy definitions (`probox.measures.pdq.definition`,",
        "  `probox.measures.boxes.box_definition`), not by the compiled kernel. A test compares the two.",
        "- PDQ is computed with the presets `reference` and `paper`.",
        "- Experiments are small, because the definitions evaluate each pixel. Those on many images have",
        f"  {len(truth.image_ids)} images of {width} x {height} pixels with {len(truth)} objects.",
        "- [Settings](#settings) are listed at the end.",
        "",
        *_survivors(trials),
        "",
        "## Mutants by claims",
        "",
        "Cells list the claims that fail, by their number [below](#claims); `.` means none.",
        "",
        *_table(trials),
        "",
        "## Mutants",
        "",
        *(line for trial in trials.mutants for line in _told(trial)),
        "",
        "## Claims",
        "",
        "In brackets: the number of mutants that the claim detects. A claim that detects none may concern something",
        "else, or be too weak. Claims that fail, or are not measured, with the correct metric do not count.",
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

    return "; ".join(f"`{name}` {words(value)}" for name, value in settings.items()) or "unchanged"


def _claims(trials: Trials) -> list[str]:
    """Return the numbered claims of each experiment, with the number of mutants that each detects."""
    lines = []
    for name, judged in trials.true.items():
        lines += [f"**`{name}`**", ""]
        for number, (claim, holds) in enumerate(judged.claims, 1):
            seen = sum(claim in trial.failing[name] for trial in trials.mutants)
            words = {True: f"detects {seen}" if seen else "**detects none**", False: "fails at this size"}
            lines.append(f"{number}. {claim} ({words.get(holds, 'not measured at this size')})")
        lines.append("")
    return lines[:-1]


def _survivors(trials: Trials) -> list[str]:
    if not trials.survivors:
        return [f"**No mutant survives**: each of the {len(trials.mutants)} makes at least one claim fail."]
    lines = [f"**{len(trials.survivors)} of {len(trials.mutants)} MUTANTS SURVIVE: no claim detects them.**", ""]
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
        yield f"  - `{name}` stopped with an error, which does not count: {error}"


def as_json(trials: Trials, command: str) -> dict[str, Any]:
    """Return all results for JSON."""
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
    """Return the matrix with numbers of failing claims; the first row counts the claims that hold."""
    rows: list[list[Any]] = [["mutant", *trials.true, "total"]]
    held = [len(judged.holding) for judged in trials.true.values()]
    rows.append(["claims that hold", *held, sum(held)])
    for trial in trials.mutants:
        rows.append([trial.mutant.name, *(len(trial.failing[name]) for name in trials.true), trial.total])
    return rows
