"""Evaluation over a Dask cluster: one task for each part of the images, joined where the parts are."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.distributed.cluster import current_client, thread_total
from probox.distributed.engine import AGAIN, Progress, submit_tasks, tree_reduce, watch_tasks
from probox.distributed.inputs import Input, forget_inputs, given_found, given_truth, place_of, tables_of_part
from probox.distributed.kept import KeptParts, PartsFolder, part_name, parts_before
from probox.distributed.part_task import RESUME, Plan, error_in_seeing, join_parts, run_part, state_of
from probox.errors import InputError
from probox.evaluation.inputs import Images, parse_image_ids, read_inputs
from probox.evaluation.merge import merge
from probox.evaluation.parts import Keep, check_keep, hash_ids, images_of_part, measures_to_keep
from probox.files.reading import Paths
from probox.measures.registry import named_measures
from probox.options import Settings, resolve_settings, takes_settings
from probox.tables.dataset import chosen_ids
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.version import __version__

if TYPE_CHECKING:
    from distributed import Client
    from typing_extensions import Unpack

    from probox.evaluation.result import Evaluation

__all__ = ["Run", "evaluate", "evaluated"]

PARTS_PER_THREAD = 4
"""Into so many parts for each thread of the cluster the images are cut, so that none waits long for the last."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A result, and how it came about.

    Parameters
    ----------
    result : Evaluation
        The whole.
    parts : int
        How many parts the images were cut into.
    kept : int
        How many of them were there from an earlier run.
    damaged : tuple of str
        Files of kept parts that were damaged, and evaluated anew.
    """

    result: Any
    parts: int
    kept: int
    damaged: tuple[str, ...]


@takes_settings
def evaluate(
    truth: GroundTruth | Paths,
    found: Detections | Paths,
    *,
    client: Client | None = None,
    parts: int | None = None,
    keep: Keep = "all",
    folder: Paths | None = None,
    resume: bool = False,
    retries: int = 2,
    progress: Progress | None = None,
    images: Images | None = None,
    repair: bool = False,
    convention: str | Convention | None = None,
    measures: str | Sequence[str] | None = None,
    **settings: Unpack[Settings],
) -> Evaluation:
    """Measure detections against ground truth over a Dask cluster, to the bit as in one process.

    Parameters
    ----------
    truth, found : tables or paths
        As for `evaluate`, also sets of Parquet shards and URLs, of which a worker reads what it needs. Workers must see
        the same paths. Other files are read whole, once by each process; tables are cut here and sent.
    client : Client, optional
        The cluster, see `open_client`; default: the one that the program has opened.
    parts : int, optional
        How many parts; default: one for each shard of `found` or, if that would leave threads of the cluster without
        work, 4 for each of them.
    keep : {"all", "matches", "summary"}
        How much is kept of the evaluation, as for `probox.evaluate`.
    folder : path or URL, optional
        Where workers keep finished parts until all are done; all of them must see it. If the run is killed, another one
        with `resume` goes on from there. Once the result is complete they are removed.
    resume : bool
        Use the parts that an earlier run left in `folder`. They must be of the same files, measured alike.
    retries : int
        How often a part is tried again that failed for a reason other than its input.
    progress : callable, optional
        Called with the numbers of images done and in all.
    images, repair, convention, measures, **settings
        As for `evaluate`.

    Examples
    --------
    >>> import probox.distributed
    >>> with probox.distributed.open_client("tcp://head:8786"):  # doctest: +SKIP
    ...     result = probox.distributed.evaluate("truth/", "found/", folder="/shared/parts")
    """
    chosen = resolve_settings(evaluate, convention, settings)
    with evaluated(
        truth, found, client=client, parts=parts, keep=keep, folder=folder, resume=resume, retries=retries,
        progress=progress, images=images, repair=repair, convention=chosen, measures=measures,
    ) as run:  # fmt: skip
        result: Evaluation = run.result
        return result


@contextmanager
def evaluated(
    truth: GroundTruth | Paths,
    found: Detections | Paths,
    *,
    client: Client | None,
    parts: int | None,
    keep: Keep,
    folder: Paths | None,
    resume: bool,
    retries: int,
    progress: Progress | None,
    images: Images | None,
    repair: bool,
    convention: Convention,
    measures: str | Sequence[str] | None,
) -> Iterator[Run]:
    """Give the `Run` of an evaluation; kept parts are removed when the block ends, for instance by having saved it."""
    cluster = current_client() if client is None else client
    wanted = measures_to_keep(named_measures(measures), check_keep(keep), asked=measures is not None)
    if resume and folder is None:
        raise InputError("there is no folder to go on from", remedy="name the folder in which parts were kept")
    place = None if folder is None else place_of(folder)
    there, seen = given_truth(truth), given_found(found)
    ids: npt.NDArray[np.int64] = there.image_ids  # type: ignore[assignment]
    chosen = None if images is None else chosen_ids(parse_image_ids(images), ids, file=there.shown or None)
    ids = ids if chosen is None else chosen
    of = _part_count(parts, place if resume else None, seen, cluster, len(ids))
    settings = {
        "probox": __version__, "truth": there.stamp, "found": seen.stamp, "images": hash_ids(ids), "parts": of,
        "convention": convention.to_dict(), "measures": sorted(wanted), "keep": keep, "repair": repair,
    }  # fmt: skip
    with ExitStack() as stack:
        kept = None
        if place is not None:
            kept = stack.enter_context(KeptParts(place, settings, resume=resume))
            _check_seen(cluster, kept.folder)
        in_memory = there.is_table or seen.is_table
        plan = Plan(
            of=of,
            whole=hash_ids(ids),
            truth=None if in_memory else there.given,
            found=None if in_memory else seen.given,
            truth_by_need=there.by_need,
            found_by_need=seen.by_need,
            images=None if in_memory else chosen,
            given={"convention": convention, "measures": measures, "keep": keep},
            repair=repair,
            folder=None if kept is None else kept.folder,
            inputs=hashlib.sha256(json.dumps([there.stamp, seen.stamp, repair]).encode()).hexdigest(),
        )
        jobs: Iterable[tuple[int, Any]] = ((number, None) for number in range(1, of + 1))
        if in_memory:
            tables = read_inputs(truth, found, "evaluate", images=chosen, repair=repair)
            jobs = ((number, tables_of_part(*tables, number, of)) for number in range(1, of + 1))
        weights = [len(images_of_part(ids, number, of)) for number in range(1, of + 1)]
        remedy = AGAIN if kept is None else RESUME
        states: dict[int, str] = {}
        try:
            futures = submit_tasks(cluster, partial(run_part, plan), jobs, retries=retries, key_prefix="probox-part")
            for index, state in watch_tasks(
                cluster, futures, look=state_of, progress=progress, weights=weights, remedy=remedy
            ):
                states[index + 1] = state
            joined = tree_reduce(cluster, futures, join_parts, remedy=remedy)
        finally:
            if cluster.status == "running":  # otherwise the scheduler is gone, and would be waited for
                with suppress(Exception):
                    cluster.run(forget_inputs)
        whole = joined.value if joined.value.part is None else merge([joined.value])  # a single part is a part still
        result = _named_as_given(whole, there, seen)
        damaged = [part_name(number, of) for number, state in sorted(states.items()) if state == "damaged"]
        yield Run(result, of, sum(state == "kept" for state in states.values()), tuple(damaged))
        if kept is not None:
            kept.remove()


def _named_as_given(result: Any, truth: Input, found: Input) -> Any:
    """Return a result that calls its files what the caller called them, not what workers did."""
    names = {str(one.given): one.shown for one in (truth, found) if not one.is_table}
    dataset = result.dataset
    return dataclasses.replace(
        result,
        inputs=tuple(names.get(name, name) for name in result.inputs),
        dataset=dataset.replace(source=names.get(dataset.source, dataset.source)),
    )


def _part_count(parts: int | None, resumed: str | None, found: Input, client: Client, images: int) -> int:
    """Return how many parts to make: as asked for, as before, or what keeps the cluster busy."""
    if parts is not None:
        if isinstance(parts, bool) or not isinstance(parts, int | np.integer) or parts < 1:
            raise InputError(f"expected parts to be a whole number from 1 on, but got {parts!r:.40}")
        return min(int(parts), max(1, images))
    before = None if resumed is None else parts_before(resumed)
    threads = thread_total(client)
    shards = found.shards if (found.shards or 0) >= max(2, threads) else None
    return max(1, min(before or shards or PARTS_PER_THREAD * threads, images))


def _check_seen(client: Client, folder: PartsFolder) -> None:
    """Raise if a worker does not see the folder of parts: before anything is evaluated."""
    for error in client.run(error_in_seeing, folder).values():
        if error is not None:
            raise error
