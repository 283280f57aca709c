"""A detector over many images on a Dask cluster: each batch of photos is a task, and each process opens the model once.

What is found comes back to the process that asked, which keeps it and writes the output as it would without a cluster.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probox.detect.factory import files_of, open_detector, split_model
from probox.detect.image_files import ImageFile
from probox.detect.random_masks import Dropout
from probox.detect.run import DetectionRun, PhotoResult, Progress, process_photos
from probox.detect.run import detect_images as detect_images_here
from probox.detect.runner import Runner
from probox.detect.uncertainty import Options
from probox.distributed.cluster import current_client
from probox.distributed.engine import map_tasks
from probox.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["ClusterLooking", "Model", "detect_images"]

REMEDY = "run the same again: what is done is kept"


@dataclasses.dataclass(frozen=True)
class Model:
    """What a detector is opened by, in any process that sees the same files; parameters are those of `open_detector`.

    Files are known by their whole paths: workers may have been started in another folder.
    """

    model: str
    family: str = "auto"
    classes: tuple[str, ...] | None = None
    dropout: Dropout | None = None
    batch: int = 1
    threads: int | None = None
    size: tuple[int, int] | None = None
    weights: str | None = None
    device: str | None = None

    @classmethod
    def called(
        cls,
        model: str,
        *,
        classes: Sequence[str] | None = None,
        weights: str | Path | None = None,
        **choices: Any,
    ) -> Model:
        """Return the model that `open_detector` would open here; one's own are told of threads only if it is asked."""
        if split_model(model)[0] != "python":
            choices = {"threads": 1} | {name: value for name, value in choices.items() if value is not None}
        return cls(
            _with_whole_path(model),
            classes=None if classes is None else tuple(classes),
            weights=None if weights is None else str(Path(weights).resolve()),
            **choices,
        )

    def open(self, calls: int = 1) -> Runner:
        """Return the detector, for so many calls at a time if it allows them, each with as many threads."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if split_model(self.model)[0] == "onnx" and self.threads is not None:
            given |= {"workers": calls, "threads": self.threads + calls - 1}  # those of all calls together
        return open_detector(given.pop("model"), **given)

    def stamps(self) -> tuple[tuple[int, int] | None, ...]:
        """Return what tells the files from others that have taken their places."""
        stamps: list[tuple[int, int] | None] = []
        for path in files_of(self.model, self.weights):
            try:
                status = path.stat()
                stamps.append((status.st_size, status.st_mtime_ns))
            except OSError:
                stamps.append(None)
        return tuple(stamps)


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
    """Run a detector over images on a cluster and write what it finds to `out`, as `probox.detect.detect_images` does.

    The file is to the bit that of one process with the same batch. What workers have found is kept here in the folder
    ``OUT.partial``: the same call after an interruption goes on from there, and so does a run without a cluster.

    Parameters
    ----------
    model : str
        As for `probox.detect.factory.open_detector`; its files must be there for all workers, and so must the photos.
    images, out, options, settings, categories, shards, progress
        As for `probox.detect.detect_images`.
    client : Client, optional
        The cluster, see `probox.distributed.open_client`. Default: the client that the program has opened.
    **opening
        ``family``, ``classes``, ``batch`` and so on, as for `probox.detect.factory.open_detector`; ``threads`` are
        those of one batch, by default one.
    """
    named = Model.called(model, **opening)
    looking = ClusterLooking(current_client() if client is None else client, named)
    return detect_images_here(
        named.open(), images, out, options, settings=settings, categories=categories, shards=shards, progress=progress,
        process=looking,
    )  # fmt: skip


class ClusterLooking:
    """Looks at batches of photos on the workers of a cluster: a `probox.detect.run.Process`."""

    def __init__(self, client: Client, model: Model) -> None:
        self.client = client
        self.model = model
        self._odd: dict[str, tuple[str, ...]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what looked odd to a process, if something did to all: each has seen a part of the images."""
        return next(iter(self._odd.values()), ()) if all(self._odd.values()) else ()

    def __call__(
        self, detector: Runner, chunks: Sequence[Sequence[ImageFile]], options: Options
    ) -> Iterator[list[PhotoResult]]:
        """Yield what is found in each batch, in the order in which batches are done."""
        sent = [[dataclasses.replace(image, path=image.path.absolute()) for image in chunk] for chunk in chunks]
        looked = map_tasks(
            self.client, partial(_look_on_worker, self.model, detector.fingerprint, options), map(tuple, sent),
            key_prefix="probox-detect", what="batch", remedy=REMEDY,
        )  # fmt: skip
        for index, (process, odd, found) in looked:
            self._odd[process] = odd
            yield [_as_named_here(one, image) for one, image in zip(found, chunks[index], strict=True)]


def _as_named_here(done: PhotoResult, image: ImageFile) -> PhotoResult:
    """Return what was found with the photo called as it is called here."""
    problem = done.problem.replace(str(done.image.path), str(image.path))
    return dataclasses.replace(done, image=image, problem=problem)


def _with_whole_path(model: str) -> str:
    """Return what a model is called wherever one stands.

    >>> _with_whole_path("torchvision:ssd300"), _with_whole_path("/models/yolox.onnx")
    ('torchvision:ssd300', '/models/yolox.onnx')
    """
    kind, rest = split_model(model)
    if kind == "torchvision":
        return model
    if kind == "python":
        file, _, function = rest.rpartition(":")
        return f"python:{Path(file).resolve()}:{function}"
    whole = str(Path(rest).resolve())
    return whole if kind == "onnx" else f"{kind}:{whole}"


# --- on workers ---

_opening = threading.Lock()
_opened: dict[str, Any] = {}
"""The model that this process has opened last, its files then, the detector, and who may call it."""


def _look_on_worker(
    model: Model, fingerprint: str, options: Options, chunk: Sequence[ImageFile]
) -> tuple[str, tuple[str, ...], list[PhotoResult]]:
    """Look at a batch with a detector that is opened once in each process; say what has looked odd to it so far."""
    from distributed import get_worker

    worker = get_worker()
    detector, calling = _detector(model, fingerprint, worker.state.nthreads)
    with calling:  # from one thread at a time, unless the detector says otherwise
        done = process_photos(detector, chunk, options)
    return str(worker.address), tuple(getattr(detector, "notes", ())), done


def _detector(model: Model, fingerprint: str, calls: int) -> tuple[Runner, threading.Semaphore]:
    with _opening:
        stamps = model.stamps()
        if _opened.get("model") != (model, stamps):
            _opened.clear()  # before the next: two models may not fit
            detector = model.open(calls)
            calling = threading.Semaphore(int(getattr(detector, "workers", 1)))
            _opened.update(model=(model, stamps), detector=detector, calling=calling)
        if _opened["detector"].fingerprint != fingerprint:
            _opened.clear()
            raise InputError(
                "a Dask worker finds another model in its place",
                file=str(next(iter(files_of(model.model, model.weights)), model.model)),
                remedy="let all workers see the same files, and the same versions of packages",
            )
        return _opened["detector"], _opened["calling"]
