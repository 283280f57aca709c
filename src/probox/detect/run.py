"""A detector over many images: in order, with what is done kept on disk until all is done."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from probox.detect.finding import ImageFile
from probox.detect.images import Pixels, read_image
from probox.detect.output import save_detections
from probox.detect.uncertainty import Options, Runner, check_options, detect
from probox.errors import InputError
from probox.files.output import write_files
from probox.files.staging import claim, is_staging_name, named_errors, remove_if_empty, sweep
from probox.formats.writing import check_output
from probox.tables.detections import Detections

__all__ = ["Run", "detect_images"]

Progress = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True)
class Run:
    """What a run over images found."""

    found: Detections
    images: int
    resumed: int
    """Images that an interrupted run had already done."""
    skipped: tuple[str, ...]
    """Why images could not be read, one sentence each."""
    notes: tuple[str, ...]
    """What the file could not hold, one sentence each."""


def detect_images(
    detector: Runner,
    images: Sequence[ImageFile],
    out: str | Path,
    options: Options,
    *,
    settings: dict[str, Any] | None = None,
    progress: Progress = lambda done, total: None,
) -> Run:
    """Run a detector over images and write what it finds to `out`.

    The detections of each image are kept in the folder ``OUT.partial`` until all images are done; the same call after
    an interruption goes on from there. A folder made with other settings (or another model) is refused, and so is one
    that another run is using. An image that can't be read is skipped and named in the result; every other one is in the
    output, or there is none.

    Parameters
    ----------
    detector : Detector
        The detector.
    images : sequence of ImageFile
        Images, in the order of the output.
    out : path
        The file to write, see `save_detections`.
    options : Options
        How detections are made.
    settings : dict, optional
        What else decides the result, in words or numbers, to be compared when resuming.
    progress : callable
        Called with the number of images done and of all.
    """
    check_output(out)
    check_options(detector.family, options)
    if not images:
        raise InputError("no images to look at")
    described = {"model": detector.fingerprint, **dataclasses.asdict(options), **(settings or {})}
    with Partial(Path(out), described) as kept:
        return _detect_all(detector, images, Path(out), options, kept, progress)


def _detect_all(
    detector: Runner, images: Sequence[ImageFile], out: Path, options: Options, kept: Partial, progress: Progress
) -> Run:
    resumed = sum(kept.has(image) for image in images)
    skipped: dict[int, str] = {}
    done = 0
    for chunk in _chunks(images, detector.batch):
        todo = [image for image in chunk if not kept.has(image)]
        readable: list[ImageFile] = []
        pixels: list[Pixels] = []
        for image in todo:
            try:
                pixels.append(read_image(image.path))
                readable.append(image)
            except InputError as error:
                skipped[image.image_id] = str(error)
        if readable:
            results = detect(detector, pixels, [image.image_id for image in readable], options)
            for image, seen, found in zip(readable, pixels, results, strict=True):
                kept.put(image, (seen.shape[1], seen.shape[0]), found)
        done += len(chunk)
        progress(done, len(images))
    readable = [image for image in images if image.image_id not in skipped]
    if not readable:
        raise InputError("none of the images could be read", file=str(images[0].path.parent))
    found, sizes = kept.collect(readable, detector.family.classes)
    notes = save_detections(out, found, images, sizes)
    kept.remove()
    return Run(found, len(images), resumed, tuple(skipped.values()), notes)


class Partial:
    """Detections of images done so far, in a folder beside the output, which one run at a time may use."""

    def __init__(self, out: Path, settings: dict[str, Any]) -> None:
        self.folder = out.with_name(out.name + ".partial")
        self._note = self.folder / "settings.json"
        self._lock = self.folder / "lock"
        self._described = json.loads(json.dumps(settings, default=str))
        self._claim: int | None = None
        self._removed = False

    def __enter__(self) -> Partial:
        with named_errors(self.folder):
            self._refuse_others()
            self._take()
        try:
            self._check_settings()
            sweep(self.folder)
        except BaseException:
            self._give_up()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        if not self._removed and not any(self.folder.glob("*.npz")):  # once removed, it may be the next run's
            self.remove()  # nothing to go on from
        self._give_up()

    def _refuse_others(self) -> None:
        """Raise if a folder of this name is there that no run made.

        One that was killed while it wrote its settings, or is just writing them, has a hidden folder for that.
        """
        if not os.path.lexists(self.folder):
            return
        inside = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else {"not a folder"}
        inside = {name for name in inside if not is_staging_name(name, self._note.name)}
        if self.folder.is_symlink() or not (inside <= {self._lock.name} or self._note.name in inside):
            raise InputError(
                "is in the way: kept results of `probox detect` would go here",
                file=str(self.folder),
                remedy="move it away, or choose another output",
            )

    def _take(self) -> None:
        """Claim the folder for this process, whose end gives it up again."""
        while True:
            self.folder.mkdir(exist_ok=True)
            try:
                self._claim = claim(self._lock)
            except FileNotFoundError:
                continue  # another run has just ended and removed it
            except OSError as error:
                if error.errno not in (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
                    raise
                return  # no locks here: nothing can be done about two runs at a time
            if self._claim is None:
                raise InputError(
                    "another run is working on this output",
                    file=str(self.folder),
                    remedy="wait for it, or choose another output",
                )
            return

    def _give_up(self) -> None:
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def _check_settings(self) -> None:
        if not self._note.exists():
            write_files({self._note: json.dumps(self._described, indent=1).encode()})
            return
        try:
            before = json.loads(self._note.read_bytes())
        except (OSError, ValueError):
            before = None
        if before != self._described:
            raise InputError(
                "an interrupted run with other settings left its results here",
                file=str(self.folder),
                remedy="delete this folder, or choose another output",
            )

    def _file(self, image: ImageFile) -> Path:
        return self.folder / f"{image.image_id}.npz"

    def has(self, image: ImageFile) -> bool:
        """Return whether this image is done; what a power cut left of a file does not count."""
        return self._file(image).exists() and self._read(image) is not None

    def put(self, image: ImageFile, size: tuple[int, int], found: Detections) -> None:
        """Keep this image's detections."""
        columns = {name: getattr(found, name) for name in ("boxes", "label_probs", "labels", "scores")}
        if found.covariances is not None:
            columns["covariances"] = found.covariances
        buffer = io.BytesIO()
        np.savez(buffer, size=np.array(size), **columns)
        write_files({self._file(image): buffer.getvalue()}, lasting=False)

    def _read(self, image: ImageFile) -> dict[str, Any] | None:
        """Return what is kept of an image, None if it can't be read."""
        try:
            with np.load(io.BytesIO(self._file(image).read_bytes()), allow_pickle=False) as columns:
                read = dict(columns)
            return read if len(read.get("size", ())) == 2 and "boxes" in read else None
        except (OSError, ValueError, EOFError, KeyError, TypeError, BadZipFile, zlib.error):
            return None

    def collect(
        self, images: Sequence[ImageFile], classes: Sequence[str]
    ) -> tuple[Detections, dict[int, tuple[int, int]]]:
        """Return all detections as one table, and the sizes of the images; every image must be there."""
        parts: list[dict[str, Any]] = []
        ids: list[Any] = []
        sizes: dict[int, tuple[int, int]] = {}
        for image in images:
            part = self._read(image)
            if part is None:
                raise InputError(
                    "the results of this image have disappeared",
                    file=str(self._file(image)),
                    image=image.image_id,
                    remedy="run the same command again, which does what is missing",
                )
            width, height = part.pop("size").tolist()
            sizes[image.image_id] = (width, height)
            ids.append(np.full(len(part["boxes"]), image.image_id, np.int64))
            parts.append(part)
        joined: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Detections(classes=tuple(classes), image_ids=np.concatenate(ids), **joined), sizes

    def remove(self) -> None:
        """Remove what was kept: the output is written. Anything else in the folder stays, and the folder with it."""
        self._removed = True
        for path in [*self.folder.glob("*.npz"), self._note, self._lock]:
            if path.stem.lstrip("-").isdigit() or path in (self._note, self._lock):
                path.unlink(missing_ok=True)
        remove_if_empty(self.folder)


def _chunks(images: Sequence[ImageFile], size: int) -> Iterator[Sequence[ImageFile]]:
    for start in range(0, len(images), size):
        yield images[start : start + size]
