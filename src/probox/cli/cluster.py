"""The option --dask: evaluation and detection over a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probox.cli.console import note
from probox.cli.option_groups import option
from probox.cli.scoring import Scoring

if TYPE_CHECKING:
    from probox.evaluation.inputs import SharedTruth
    from probox.evaluation.result import Evaluation

__all__ = ["dask_option", "measuring"]

Measure = Callable[[str, str, Any], "Evaluation"]
"""Takes a path, the name of its result and a progress; returns the result."""


def dask_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --dask to a command, which gets the address, or None, as its argument `dask`."""
    return option(
        "--dask",
        group="Execution",
        metavar="ADDRESS",
        help="Share the work over a Dask cluster: local, local:N, or a scheduler's.",
    )(command)


@contextmanager
def measuring(there: SharedTruth, truth: str, scoring: Scoring, dask: str | None, out: str | None) -> Iterator[Measure]:
    """Give a function that evaluates a file, here or over a cluster; kept parts go when the block has saved results."""
    if dask is None:
        yield lambda path, name, progress: scoring.evaluate(there, path, progress)
        return
    if scoring.part is not None:
        raise click.UsageError("--dask cuts images into parts by itself: leave out --part.")
    if "--threads" in scoring.typed:
        raise click.UsageError("--threads is about one process: leave it out, workers of --dask have their own.")
    from probox.distributed import open_client, run_evaluation
    from probox.files.output import remove_if_empty

    folder = None if out is None else Path(f"{out.rstrip('/')}.partial")
    with ExitStack() as stack:
        if folder is not None:
            stack.callback(remove_if_empty, folder)
        client = stack.enter_context(open_client(dask))

        def measure(path: str, name: str, progress: Any) -> Evaluation:
            run = stack.enter_context(
                run_evaluation(
                    truth, path, client=client, keep=scoring.keep, progress=progress, images=scoring.images,
                    repair=scoring.repair, convention=scoring.convention, measures=scoring.asked,
                    checkpoint=None if folder is None else folder / name,
                )
            )  # fmt: skip
            if run.kept:
                note(f"{name}: {run.kept} of {run.parts} parts were done before")
            result: Evaluation = run.result
            return result

        try:
            yield measure
        except BaseException:
            kept = 0 if folder is None else len(list(folder.glob("*/part-*.probox")))
            if kept:
                note(f"{kept} finished parts are kept in {folder}; the same command goes on from there")
            raise
