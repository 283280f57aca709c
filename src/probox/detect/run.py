"""A detector over many images: in order, with what is done kept on disk until all is done."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from probox.detect.images import ImageFile, Pixels, read_image
from probox.detect.output import save_detections
from probox.detect.uncertainty import Options, Runner, check_options, detect
from probox.detections import Detections
from probox.errors import InputError
from probox.formats.by_name import check_output
from probox.formats.output import write_files

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
    an interruption goes on from there. A folder made with other settings (or another model) is refused. An image that
    can't be read is skipped and named in the result.

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
    check_options(detector, options)
    if not images:
        raise InputError("no images to look at")
    kept = Partial(Path(out), {"model": detector.fingerprint, **dataclasses.asdict(options), **(settings or {})})
    resumed = sum(kept.has(image) for image in images)
    skipped: list[str] = []
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
                skipped.append(str(error))
        if readable:
            results = detect(detector, pixels, [image.image_id for image in readable], options)
            for image, seen, found in zip(readable, pixels, results, strict=True):
                kept.put(image, (seen.shape[1], seen.shape[0]), found)
        done += len(chunk)
        progress(done, len(images))
    found, sizes = kept.collect(images, detector.family.classes)
    notes = save_detections(out, found, images, sizes)
    kept.remove()
    return Run(found, len(images), resumed, tuple(skipped), notes)


class Partial:
    """Detections of images done so far, in a folder beside the output."""

    def __init__(self, out: Path, settings: dict[str, Any]) -> None:
        self.folder = out.with_name(out.name + ".partial")
        described = json.loads(json.dumps(settings, default=str))
        note = self.folder / "settings.json"
        if note.exists():
            try:
                before = json.loads(note.read_bytes())
            except ValueError:
                before = None
            if before != described:
                raise InputError(
                    "an interrupted run with other settings left its results here",
                    file=str(self.folder),
                    remedy="delete this folder, or choose another output",
                )
        else:
            self.folder.mkdir(exist_ok=True)
            write_files({note: json.dumps(described, indent=1).encode()})

    def _file(self, image: ImageFile) -> Path:
        return self.folder / f"{image.image_id}.npz"

    def has(self, image: ImageFile) -> bool:
        """Return whether this image is done."""
        return self._file(image).exists()

    def put(self, image: ImageFile, size: tuple[int, int], found: Detections) -> None:
        """Keep this image's detections."""
        columns = {name: getattr(found, name) for name in ("boxes", "label_probs", "labels", "scores")}
        if found.covariances is not None:
            columns["covariances"] = found.covariances
        write_files({self._file(image): lambda stream: np.savez(stream, size=np.array(size), **columns)})

    def collect(
        self, images: Sequence[ImageFile], classes: Sequence[str]
    ) -> tuple[Detections, dict[int, tuple[int, int]]]:
        """Return all detections as one table, and the sizes of the images."""
        parts: list[dict[str, Any]] = []
        ids: list[Any] = []
        sizes: dict[int, tuple[int, int]] = {}
        for image in images:
            if self.has(image):
                with np.load(self._file(image)) as columns:
                    parts.append(dict(columns))
                width, height = parts[-1].pop("size").tolist()
                sizes[image.image_id] = (width, height)
                ids.append(np.full(len(parts[-1]["boxes"]), image.image_id, np.int64))
        if not parts:
            raise InputError("none of the images could be read", file=str(images[0].path.parent))
        joined: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Detections(classes=tuple(classes), image_ids=np.concatenate(ids), **joined), sizes

    def remove(self) -> None:
        """Remove the folder: the output is written."""
        shutil.rmtree(self.folder)


def _chunks(images: Sequence[ImageFile], size: int) -> Iterator[Sequence[ImageFile]]:
    for start in range(0, len(images), size):
        yield images[start : start + size]
