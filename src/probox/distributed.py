"""Evaluation and detection over a Dask cluster, bit-identical to one process.

Dask distributes the work and repeats tasks whose process died. This module adds: input errors are results of tasks,
so that the other tasks still finish; cluster errors are one line that names the task; finished parts of an evaluation
are checkpointed on disk. Needs the extra ``distributed``.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError as FuturesCancelled
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from probox.convention import Convention
from probox.errors import InputError, ProboxError
from probox.evaluation.evaluate import evaluate as evaluate_here
from probox.evaluation.evaluate import known_measures
from probox.evaluation.inputs import Images, TablePieces, open_inputs
from probox.evaluation.merge import merge
from probox.evaluation.parts import Keep, check_keep, hash_ids, images_of_part, measures_to_keep
from probox.evaluation.storage import from_bytes
from probox.files.checkpoint import Checkpoint, read_settings
from probox.files.reading import Paths, is_url
from probox.options import Settings, resolve_settings, takes_settings
from probox.support.dask_cluster import count_threads, current_client, open_client
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.version import __version__

if TYPE_CHECKING:
    from distributed import Client, Future
    from typing_extensions import Unpack

    from probox.detect.candidates import Runner
    from probox.detect.image_files import ImageFile
    from probox.detect.run import DetectionRun, PhotoResult
    from probox.detect.uncertainty import Options
    from probox.evaluation.result import Evaluation


__all__ = [
    "ClusterEvaluation", "ClusterLooking", "Model", "detect_images", "evaluate", "map_tasks", "open_client",
    "run_evaluation",
]  # fmt: skip

PARTS_PER_THREAD = 4
"""Parts per thread of the cluster: small parts reduce the wait for the last one."""

Progress = Callable[[int, int], None]
_AGAIN = "run the same again"
_KEPT = "run the same command again: finished parts are kept"
_GRAPH_SIZE = "distributed.admin.large-graph-warning-threshold"


# --- evaluation ---


class ClusterEvaluation(NamedTuple):
    """A result, its number of parts, and how many of them an earlier run had finished."""

    result: Evaluation
    parts: int
    kept: int


@takes_settings
def evaluate(
    truth: GroundTruth | Paths,
    detections: Detections | Paths,
    *,
    client: Client | None = None,
    parts: int | None = None,
    keep: Keep = "all",
    checkpoint: Paths | None = None,
    progress: Progress | None = None,
    image_ids: Images | None = None,
    repair: bool = False,
    convention: str | Convention | None = None,
    measures: str | Sequence[str] | None = None,
    **settings: Unpack[Settings],
) -> Evaluation:
    """Evaluate detections on a Dask cluster; the result is bit-identical to a single process.

    Parameters
    ----------
    truth, detections : tables or paths
        As for `probox.evaluate`. Workers read their parts of Parquet files, which must have the same path on all
        workers. Tables and other files are read here and sent to the cluster once.
    client : Client, optional
        Client of the cluster, see `open_client`. Default: the client that the program has opened.
    parts : int, optional
        Number of parts. Default: 4 per thread of the cluster.
    keep : {"all", "matches", "summary"}
        Data that the evaluation keeps.
    checkpoint : path, optional
        Folder for finished parts until the result is complete. The same call resumes an interrupted run; a folder of
        other inputs or settings is refused.
    progress : callable, optional
        Called with the number of finished and of all images.
    image_ids, repair, convention, measures, **settings
        As for `probox.evaluate`.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import probox.distributed
    >>> with probox.distributed.open_client("tcp://head:8786"):  # doctest: +SKIP
    ...     result = probox.distributed.evaluate("truth/", "found/", checkpoint="results.partial")
    """
    chosen = resolve_settings(evaluate, convention, settings)
    with run_evaluation(
        truth, detections, client=client, parts=parts, keep=keep, checkpoint=checkpoint, progress=progress,
        image_ids=image_ids, repair=repair, convention=chosen, measures=measures,
    ) as run:  # fmt: skip
        return run.result


@contextmanager
def run_evaluation(
    truth: GroundTruth | Paths,
    detections: Detections | Paths,
    *,
    client: Client | None = None,
    parts: int | None = None,
    keep: Keep = "all",
    checkpoint: Paths | None = None,
    progress: Progress | None = None,
    image_ids: Images | None = None,
    repair: bool = False,
    convention: Convention,
    measures: str | Sequence[str] | None = None,
) -> Iterator[ClusterEvaluation]:
    """Yield the result of `evaluate`; finished parts are removed at the end of the block, which saves the result.

    Parameters
    ----------
    truth, detections, client, parts, keep, checkpoint, progress, image_ids, repair, convention, measures, **settings
        As for `evaluate`.

    Returns
    -------
    context manager
        Yields a `ClusterEvaluation`.

    Examples
    --------
    >>> with run_evaluation("truth/", "found/", checkpoint="results.partial") as run:  # doctest: +SKIP
    ...     run.result.save("result")
    """
    cluster = current_client() if client is None else client
    wanted = measures_to_keep(known_measures(measures), check_keep(keep), asked=measures is not None)
    given = open_inputs(truth, detections, image_ids=image_ids, repair=repair)
    ids = given.image_ids
    before = None if checkpoint is None else read_settings(Path(checkpoint)).get("parts")
    of = _count_parts(parts, before, cluster, len(ids))
    how: dict[str, Any] = {"convention": convention, "measures": measures, "keep": keep}
    if isinstance(given, TablePieces):
        shared: list[Any] = [given.truth, given.detections]
    else:
        shared = [given.truth if isinstance(given.truth, GroundTruth) else _absolute(truth), _absolute(detections)]
        how |= {"image_ids": None if image_ids is None else ids, "repair": repair}
    settings = {
        "probox": __version__, "inputs": given.identity(), "images": hash_ids(ids), "parts": of,
        "convention": convention.to_dict(), "measures": sorted(wanted), "keep": keep, "repair": repair,
    }  # fmt: skip
    with ExitStack() as stack:
        folder = None
        if checkpoint is not None:
            folder = stack.enter_context(Checkpoint(Path(os.path.abspath(checkpoint)), settings, r"part-\d+\.probox"))
        results = {} if folder is None else _load_parts(folder, of)
        kept = len(results)
        todo = [number for number in range(1, of + 1) if number not in results]
        sizes = [len(images_of_part(ids, number, of)) for number in todo]
        done = len(ids) - sum(sizes)
        shown = None if progress is None else lambda more, _: progress(done + more, len(ids))
        for index, data in map_tasks(
            cluster, partial(_evaluate_part, of=of, how=how), todo, shared=shared, progress=shown, weights=sizes,
            names=[f"part {number} of {of}" for number in todo], remedy=_AGAIN if folder is None else _KEPT,
        ):  # fmt: skip
            if folder is not None:
                folder.write(_name_part(todo[index]), data)
            results[todo[index]] = from_bytes(data)
        whole = merge([results.pop(number) for number in range(1, of + 1)])
        # Workers get absolute paths; messages show the user's paths.
        dataset = whole.dataset.replace(source=given.truth.source)
        yield ClusterEvaluation(dataclasses.replace(whole, inputs=given.inputs, dataset=dataset), of, kept)
        if folder is not None:
            folder.remove()


def _evaluate_part(number: int, truth: Any, detections: Any, *, of: int, how: dict[str, Any]) -> bytes:
    """Return a part as bytes; each task uses one thread, because tasks share the processors."""
    return evaluate_here(truth, detections, part=(number, of), threads=1, **how).to_bytes()


def _load_parts(folder: Checkpoint, of: int) -> dict[int, Evaluation]:
    """Return the checkpointed parts; damaged ones are evaluated again."""
    loaded: dict[int, Evaluation] = {}
    for number in range(1, of + 1):
        data = folder.read(_name_part(number))
        with suppress(InputError):
            result = None if data is None else from_bytes(data)
            if result and result.part and (result.part.numbers, result.part.of) == ((number,), of):
                loaded[number] = result
    return loaded


def _name_part(number: int) -> str:
    return f"part-{number:05d}.probox"


def _count_parts(parts: int | None, before: object, client: Client, images: int) -> int:
    """Return the number of parts: as requested, as in an interrupted run, or enough to use the whole cluster."""
    if parts is None:
        parts = before if isinstance(before, int) else PARTS_PER_THREAD * count_threads(client)
    elif isinstance(parts, bool) or not hasattr(parts, "__index__") or parts < 1:
        raise InputError(f"expected parts to be a whole number of at least 1, but got {parts!r:.40}")
    return max(1, min(int(parts), images))


def _absolute(path: Any) -> str:
    """Return a path or URL that is independent of the current folder."""
    return str(path) if is_url(path) else os.path.abspath(path)


# --- detection ---


OPTIONS = frozenset({"family", "dropout", "batch", "threads", "size", "device"})
"""Options of `open_detector` for every process, besides classes and weights."""


@dataclasses.dataclass(frozen=True)
class Model:
    """Arguments of `open_detector`, from which any process with the same files can open a detector.

    Paths are absolute, because workers may run in another folder.
    """

    model: str
    opening: dict[str, Any]

    @classmethod
    def from_name(
        cls, model: str, *, classes: Sequence[str] | None = None, weights: str | Path | None = None, **choices: Any
    ) -> Model:
        """Return the model of these arguments; functions of users get `threads` only if it was given."""
        from probox.detect.factory import split_model

        unknown = sorted(choices.keys() - OPTIONS)
        if unknown:  # reported here instead of on a worker; `workers` is set for each worker
            raise TypeError(f"unexpected keyword argument {unknown[0]!r}")
        kind, rest = split_model(model)
        file, _, function = rest.rpartition(":") if kind == "python" else (rest, "", "")
        if kind != "python":
            choices = {"threads": 1} | {name: value for name, value in choices.items() if value is not None}
        if kind != "torchvision":
            whole = str(Path(file).resolve())
            model = f"python:{whole}:{function}" if kind == "python" else whole if kind == "onnx" else f"{kind}:{whole}"
        choices["classes"] = None if classes is None else tuple(classes)
        choices["weights"] = None if weights is None else str(Path(weights).resolve())
        return cls(model, choices)

    def open(self, calls: int = 1) -> Runner:
        """Return the detector for a number of concurrent calls, if it supports them, each with as many threads."""
        from probox.detect.factory import open_detector, split_model

        given = dict(self.opening)
        if split_model(self.model)[0] == "onnx" and given.get("threads") is not None:
            given |= {"workers": calls, "threads": given["threads"] + calls - 1}  # threads of all calls together
        return open_detector(self.model, **given)

    def stamps(self) -> list[tuple[int, int] | None]:
        """Return size and modification time of the files, to detect changes."""
        from probox.detect.factory import files_of

        stamps: list[tuple[int, int] | None] = []
        for path in files_of(self.model, self.opening["weights"]):
            with suppress(OSError):
                status = path.stat()
                stamps.append((status.st_size, status.st_mtime_ns))
        return stamps


def detect_images(
    model: str,
    images: Sequence[ImageFile],
    out: str | Path,
    options: Options,
    *,
    client: Client | None = None,
    settings: dict[str, Any] | None = None,
    categories: Mapping[int, str] | None = None,
    shards: int | None = None,
    progress: Progress = lambda done, total: None,
    **opening: Any,
) -> DetectionRun:
    """Run a detector on images on a cluster, and write the detections to `out`.

    The file is bit-identical to that of `probox.detect.detect_images` with the same batch. Detections of finished
    batches are checkpointed in the folder ``OUT.partial``: the same call resumes an interrupted run, with or without a
    cluster.

    Parameters
    ----------
    model : str
        As for `probox.detect.open_detector`; its files and the photos must be accessible to all workers.
    images, out, options, settings, categories, shards, progress
        As for `probox.detect.detect_images`.
    client : Client, optional
        Client of the cluster, see `open_client`. Default: the client that the program has opened.
    **opening
        ``family``, ``classes``, ``batch`` and others of `probox.detect.open_detector`; ``threads`` is per batch and
        defaults to one.

    Returns
    -------
    DetectionRun

    Examples
    --------
    >>> from probox import detect, distributed
    >>> with distributed.open_client("tcp://head:8786"):  # doctest: +SKIP
    ...     run = distributed.detect_images("yolox_nano.onnx", detect.find_images("photos"), "found.json",
    ...                                     detect.Options())
    """
    from probox.detect.run import detect_images as detect_images_here

    named = Model.from_name(model, **opening)
    looking = ClusterLooking(current_client() if client is None else client, named)
    return detect_images_here(
        named.open(), images, out, options, settings=settings, categories=categories, shards=shards, progress=progress,
        process=looking,
    )  # fmt: skip


class ClusterLooking:
    """Processes batches of photos on the workers of a cluster: a `probox.detect.run.Process`."""

    def __init__(self, client: Client, model: Model) -> None:
        self.client = client
        self.model = model
        self._notes: dict[str, tuple[str, ...]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes that are equal on all processes, which have processed different images."""
        return next(iter(self._notes.values()), ()) if all(self._notes.values()) else ()

    def __call__(
        self, detector: Runner, chunks: Sequence[Sequence[ImageFile]], options: Options
    ) -> Iterator[list[PhotoResult]]:
        """Yield the results of each batch, in the order of completion."""
        sent = [[dataclasses.replace(image, path=image.path.absolute()) for image in chunk] for chunk in chunks]
        look = partial(_look_on_worker, model=self.model, fingerprint=detector.fingerprint, options=options)
        names = [f"batch {number} of {len(sent)}" for number in range(1, len(sent) + 1)]
        for index, (process, notes, found) in map_tasks(self.client, look, sent, names=names, remedy=_KEPT):
            self._notes[process] = notes
            done: list[PhotoResult] = []
            for one, image in zip(found, chunks[index], strict=True):  # restore the caller's paths
                problem = one.problem.replace(str(one.image.path), str(image.path))
                done.append(dataclasses.replace(one, image=image, problem=problem))
            yield done


_opening = threading.Lock()
_opened: dict[str, Any] = {}
"""Last opened model of this worker, with its files' stamps, its detector, and a semaphore for calls."""


def _look_on_worker(
    chunk: Sequence[ImageFile], *, model: Model, fingerprint: str, options: Options
) -> tuple[str, tuple[str, ...], list[PhotoResult]]:
    """Return the worker's name, its detector's notes, and results; each process opens the detector once."""
    from distributed import get_worker

    from probox.detect.factory import files_of
    from probox.detect.run import process_photos

    worker = get_worker()
    with _opening:
        stamps = model.stamps()
        if _opened.get("model") != (model, stamps):
            _opened.clear()  # free the old model first: two may exceed the memory
            detector = model.open(worker.state.nthreads)
            calling = threading.Semaphore(int(getattr(detector, "workers", 1)))
            _opened.update(model=(model, stamps), detector=detector, calling=calling)
        detector, calling = _opened["detector"], _opened["calling"]
        if detector.fingerprint != fingerprint:
            _opened.clear()
            raise InputError(
                "a Dask worker has another model file at this path",
                file=str(next(iter(files_of(model.model, model.opening["weights"])), model.model)),
                remedy="give all workers the same files and package versions",
            )
    with calling:  # one call at a time, unless the detector allows more
        done = process_photos(detector, chunk, options)
    return str(worker.address), tuple(getattr(detector, "notes", ())), done


# --- tasks ---


def map_tasks(
    client: Client,
    function: Callable[..., Any],
    items: Iterable[Any],
    *,
    shared: Sequence[Any] = (),
    names: Sequence[str] = (),
    weights: Sequence[int] = (),
    progress: Progress | None = None,
    remedy: str = _AGAIN,
    retries: int = 2,
) -> Iterator[tuple[int, Any]]:
    """Yield ``(index, function(item, *shared))`` for each item, in the order in which a cluster completes them.

    A task whose process dies is repeated on another. A task that raises a `ProboxError` is not: the others still run
    and are yielded, and the error is raised at the end. Leaving the loop early cancels the rest.

    Parameters
    ----------
    client : Client
        Client of the cluster.
    function : callable
        Function of a module, or a `functools.partial` of one.
    items : iterable
        Argument of each task.
    shared : sequence
        Common arguments of any size: sent to each worker once.
    names, weights : sequence of str and of int, optional
        Name of each task in messages, and its amount of work. Default: ``task 1 of 9`` and 1.
    progress : callable, optional
        Called with the finished and the total work.
    remedy : str
        Remedy in errors of the cluster.
    retries : int
        How often a task with another error, such as one of a file system, is repeated.

    Returns
    -------
    iterator of (int, object)
        Index of an item, and the result of its task.

    Examples
    --------
    >>> for index, root in map_tasks(client, math.sqrt, [1, 4, 9]):  # doctest: +SKIP
    ...     print(index, root)
    """
    import dask
    from distributed import as_completed

    items = list(items)
    names = names or [f"task {number} of {len(items)}" for number in range(1, len(items) + 1)]
    weights, done = weights or [1] * len(items), 0
    failed: dict[int, ProboxError] = {}
    futures: dict[Any, int] = {}
    if progress is not None:
        progress(0, sum(weights))
    try:
        if items:
            with _one_line_errors(client, remedy), dask.config.set({_GRAPH_SIZE: "1TB"}):
                # Sent to all workers in advance, since one of them may die.
                sent = client.scatter(list(shared), broadcast=True, hash=False) if shared else []
                keys = [f"probox-{uuid4().hex[:12]}-{index}" for index in range(len(items))]
                mapped = client.map(
                    _attempt, items, key=keys, retries=retries, pure=False, function=function, shared=sent
                )
            futures = {future: index for index, future in enumerate(mapped)}
            del mapped  # results are released one by one
            watched = as_completed(list(futures))
        while futures:
            with _one_line_errors(client, remedy):
                future = next(watched)
            index = futures.pop(future)
            with _one_line_errors(client, remedy, names[index]):
                value, error = _wait_for(future, names[index], remedy)
            del future  # releases the result on its worker
            done += weights[index]
            if error is not None:
                failed[index] = error
                continue
            if progress is not None:
                progress(done, sum(weights))
            yield index, value
    finally:
        if futures:  # an error of the cluster, Ctrl-C, or an early exit
            with suppress(Exception):
                client.cancel(list(futures), force=True)
    if failed:
        raise _choose_error(failed, names)


def _attempt(item: Any, function: Callable[..., Any], shared: Sequence[Any]) -> tuple[Any, ProboxError | None]:
    """Return the result of a task on a worker, or its input error."""
    try:
        return function(item, *shared), None
    except ProboxError as error:
        return None, error


def _wait_for(future: Future, name: str, remedy: str) -> tuple[Any, ProboxError | None]:
    """Return the result of a completed task, or its own error."""
    from distributed import KilledWorker

    try:
        result: tuple[Any, ProboxError | None] = future.result()
        return result
    except KilledWorker as error:
        problem = f"the worker process that ran it died, {error.allowed_failures + 1} times"
        problem += "; it may need more memory than workers have"
    except MemoryError:
        problem = "a Dask worker is out of memory"
    except OSError as error:
        if _is_lost(error):
            raise
        problem = f"{error.filename}: " if error.filename else ""
        problem += error.strerror or f"{error!s:.200}"
    return None, InputError(problem, entry=name, remedy=remedy)


def _choose_error(failed: dict[int, ProboxError], names: Sequence[str]) -> ProboxError:
    """Return one error for all: that of the first task, with the number of other failures."""
    first, error = min(failed.items())
    if len({str(one) for one in failed.values()}) == 1 or not isinstance(error, InputError):
        return error
    where = f"{len(failed) - 1} other{'s' if len(failed) > 2 else ''} failed, too"
    where = where if error.entry == names[first] else f"{names[first]}; {where}"
    problem, entry = f"{error.problem} ({where})", error.entry
    return type(error)(problem, file=error.file, image=error.image, entry=entry, remedy=error.remedy)


@contextmanager
def _one_line_errors(client: Client, remedy: str, name: str | None = None) -> Iterator[None]:
    """Convert errors of the cluster to an `InputError` with the name of the task and a remedy."""
    try:
        yield
    except BaseException as error:
        address = "?" if client.scheduler is None else str(client.scheduler.address)
        if _is_lost(error):
            problem = f"the Dask scheduler at {address} does not respond, or has dropped the task"
        elif isinstance(error, ImportError):
            problem = f"a Dask worker cannot import what it needs ({error!s:.200})"
        else:
            raise
        raise InputError(problem, entry=name, remedy=remedy) from None


def _is_lost(error: BaseException) -> bool:
    import distributed
    from distributed.comm import CommClosedError

    closed = getattr(distributed.client, "ClosedClientError", CommClosedError)  # missing in older versions
    return isinstance(error, CancelledError | FuturesCancelled | CommClosedError | closed | TimeoutError)
