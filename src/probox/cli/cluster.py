"""Measuring over a Dask cluster: --dask, --resume and --parts-dir, and what they mean to `probox evaluate`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probox.cli.console import note
from probox.cli.scoring import Scoring
from probox.errors import ProboxError
from probox.support.words import some_names

if TYPE_CHECKING:
    from probox.evaluation.inputs import SharedTruth
    from probox.evaluation.result import Evaluation

__all__ = ["Cluster", "cluster_options", "measuring"]

Measure = Callable[[str, str, Any], "Evaluation"]
"""Takes a path, the name of its result and a progress; returns the result."""


@dataclasses.dataclass(frozen=True)
class Cluster:
    """What the options of a command say about a Dask cluster.

    Parameters
    ----------
    address : str
        Which one.
    resume : bool
        Whether to go on with kept parts.
    parts_dir : str or None
        Where parts are kept, ``none`` for nowhere; None: beside the results.
    """

    address: str
    resume: bool
    parts_dir: str | None

    def folder(self, name: str, out: str | None) -> str | None:
        """Return where the finished parts of one result are kept: in DIR.parts/NAME for results in DIR/NAME.

        >>> Cluster("local", False, None).folder("ssd", "results/")
        'results.parts/ssd'
        """
        from probox.files.remote import inside

        if self.parts_dir == "none" or (self.parts_dir is None and out is None):
            return None
        return inside(self.parts_dir or f"{str(out).rstrip('/')}.parts", name)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --dask, --resume and --parts-dir to a command, which gets a `Cluster`, or None, as its argument `cluster`."""

    @functools.wraps(command)
    def with_cluster(*, dask: str | None, resume: bool, parts_dir: str | None, **given: Any) -> Any:
        if dask is None and (resume or parts_dir is not None):
            raise click.UsageError(f"{'--resume' if resume else '--parts-dir'} is about a Dask cluster: add --dask.")
        if dask is not None and given.get("part") is not None:
            raise click.UsageError("--dask cuts images into parts by itself: leave out --part.")
        if resume and (parts_dir == "none" or (parts_dir is None and given.get("out") is None)):
            raise click.UsageError("--resume needs a folder with finished parts: add --out or --parts-dir.")
        return command(cluster=None if dask is None else Cluster(dask, resume, parts_dir), **given)

    decorated: Callable[..., Any] = with_cluster
    for option in (
        click.option(
            "--parts-dir", metavar="DIR", help="Keep finished parts there, or `none` [default: beside --out]."
        ),
        click.option("--resume", is_flag=True, help="Go on with the parts that a killed run with --dask has kept."),
        click.option("--dask", metavar="ADDRESS", help="Share the work over a Dask cluster: local, or a scheduler's."),
    ):
        decorated = option(decorated)
    return decorated


@contextmanager
def measuring(
    there: SharedTruth, truth: str, scoring: Scoring, cluster: Cluster | None, out: str | None
) -> Iterator[Measure]:
    """Give what measures a file: here, or over a cluster. There, kept parts go when the block has saved the results."""
    if cluster is None:
        yield lambda path, name, progress: scoring.evaluate(there, path, progress)
        return
    if "--threads" in scoring.typed:
        raise click.UsageError("--threads is about one process: leave it out, workers of --dask have their own.")
    from probox.distributed.cluster import open_client
    from probox.distributed.evaluating import evaluated
    from probox.files.remote import is_url
    from probox.files.staging import remove_if_empty

    folders: dict[str, str] = {}
    with ExitStack() as stack:
        client = stack.enter_context(open_client(cluster.address))

        def measure(path: str, name: str, progress: Any) -> Evaluation:
            folder = cluster.folder(name, out)
            if folder is not None:
                folders[name] = folder
            run = stack.enter_context(
                evaluated(
                    truth, path, client=client, parts=None, keep=scoring.keep, folder=folder, resume=cluster.resume,
                    retries=2, progress=progress, images=scoring.images, repair=scoring.repair,
                    convention=scoring.convention, measures=scoring.asked,
                )
            )  # fmt: skip
            if run.kept:
                note(f"{name}: {run.kept} of {run.parts} parts were done before")
            if run.damaged:
                note(f"{name}: kept parts that were damaged are measured anew: {some_names(run.damaged)}")
            result: Evaluation = run.result
            return result

        try:
            yield measure
        except BaseException:
            _say_what_is_kept(folders)
            raise
    for folder in folders.values():
        if not is_url(folder):
            remove_if_empty(Path(folder).parent)


def _say_what_is_kept(folders: dict[str, str]) -> None:
    """Say where a run that failed left its finished parts."""
    from probox.distributed.kept import parts_kept

    for name, folder in folders.items():
        try:
            count, of = parts_kept(folder)
        except ProboxError:
            continue  # what went wrong before is what is to be said
        if count:
            note(f"{name}: {count} of {of} parts are done and kept in {folder}; --resume goes on from there")
