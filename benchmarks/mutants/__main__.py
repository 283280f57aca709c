"""The command `python -m benchmarks.mutants`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import mutants as package
from benchmarks.mutants import IDENTITY, MUTANTS
from benchmarks.mutants.page import as_csv, as_json, as_markdown
from benchmarks.mutants.small import small_truth
from benchmarks.mutants.trying import try_mutants
from probox.files.output import write_files
from probox.support.formatting import csv_lines
from probox_experiments import EXPERIMENTS

__all__ = ["main"]

COMMAND = "python -m benchmarks.mutants"
OUT = Path("build/mutants.md")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if a mutant survives, else 0."""
    parser = argparse.ArgumentParser(
        prog=COMMAND, description=package.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = {mutant.name: mutant for mutant in (*MUTANTS, IDENTITY)}
    there = {experiment.name: experiment for experiment in EXPERIMENTS}
    usual = [name for name, experiment in there.items() if experiment.in_all]
    parser.add_argument("--mutants", nargs="+", metavar="NAME", choices=known, help="mutants to try [default: all]")
    parser.add_argument(
        "--experiments",
        nargs="+",
        metavar="NAME",
        choices=there,
        help="experiments to run [default: all but training]",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", default=OUT, help=f"Markdown report [default: {OUT}]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all results as JSON")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write the matrix as CSV")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="number of processes [default: 2]")
    parser.add_argument("--list", action="store_true", help="list the mutants and exit")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(f"{mutant.name:24}{mutant.sentence}" for mutant in MUTANTS))
        return 0
    chosen = [known[name] for name in given.mutants] if given.mutants else list(MUTANTS)
    experiments = [there[name] for name in usual if not given.experiments or name in given.experiments]
    experiments += [there[name] for name in given.experiments or () if name not in usual]
    command = " ".join(
        [
            COMMAND,
            *(["--mutants", *given.mutants] if given.mutants else []),
            *(["--experiments", *given.experiments] if given.experiments else []),
        ]
    )
    began = time.perf_counter()
    truth = small_truth()
    trials = try_mutants(
        chosen, experiments, truth, processes=given.processes, progress=lambda line: print(line, file=sys.stderr)
    )
    texts = {
        given.out: as_markdown(trials, truth, command),
        given.json: json.dumps(as_json(trials, command), indent=1),
        given.csv: "".join(csv_lines(as_csv(trials))),
    }
    write_files({path: text.encode() for path, text in texts.items() if path is not None})
    print(f"{given.out}: {len(chosen)} mutants, {time.perf_counter() - began:.0f} s", file=sys.stderr)
    for mutant in trials.survivors:
        print(f"SURVIVES: {mutant.name}: {mutant.sentence}", file=sys.stderr)
    return 1 if trials.survivors else 0


if __name__ == "__main__":
    sys.exit(main())
