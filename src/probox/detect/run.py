"""A detector over many images: several at a time, with what is done kept on disk until all is done."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from probox.detect.cost import Cost, mask_cost
from probox.detect.finding import ImageFile
from probox.detect.output import check_ids, save_detections
from probox.detect.partial import Partial, stamp_of
from probox.detect.runner import Runner
from probox.detect.uncertainty import Found, Options, check_options, finish, look
from probox.errors import InputError
from probox.files.photos import Photo, read_photo
from probox.files.remote import is_url
from probox.formats.writing import check_output
from probox.fusion.gaussian import pinned_note
from probox.support.optional import require
from probox.support.overlap import in_order
from probox.tables.detections import Detections

__all__ = ["Done", "Looking", "Run", "Seen", "detect_images", "look_at"]

Progress = Callable[[int, int], None]

_REMARKS = {
    "turned": "{photos} turned upright, as the camera noted beside the pixels (EXIF)",
    "as stored": "{photos} not turned as the camera noted (EXIF), since the truth's sizes fit the stored pixels",
    "other size": "warning: {photos} of another size than the truth says, so boxes will not fit its objects",
    "frames": "{photos} with several frames, of which the first was looked at",
    "dark": "warning: {photos} nearly black, since of 16 bits only the lowest are used; scale such photos first",
}
"""What is said of photos that were not simply read."""


@dataclasses.dataclass(frozen=True)
class Run:
    """What `detect_images` returns: what was found, and how the run went."""

    found: Detections
    """All detections, which are in the file, too."""
    images: int
    """How many images there were to look at."""
    resumed: int
    """Images that an interrupted run had already done."""
    skipped: tuple[str, ...]
    """Why images could not be read, one sentence each."""
    notes: tuple[str, ...]
    """What is to be said of photos, random masks and the file, one sentence each."""
    sizes: dict[int, tuple[int, int]] = dataclasses.field(default_factory=dict)
    """Width and height of the images that could be read, by id."""
    cost: Cost | None = None
    """What random masks cost in score."""


def beside(out: str | Path) -> Path:
    """Return where results are kept meanwhile: beside the output, or for a URL here under its last name."""
    return Path(str(out).rstrip("/").rsplit("/", 1)[-1]) if is_url(out) else Path(out)


def detect_images(
    detector: Runner,
    images: Sequence[ImageFile],
    out: str | Path,
    options: Options,
    *,
    settings: dict[str, Any] | None = None,
    categories: Mapping[int, str] | None = None,
    shards: int | None = None,
    progress: Progress = lambda done, total: None,
    looking: Looking | None = None,
) -> Run:
    """Run a detector over images and write what it finds to `out`.

    The detections of each image are kept in the folder ``OUT.partial`` until all images are done; the same call after
    an interruption goes on from there, and looks again at photos that have changed. A folder made with other settings
    (or another model) is refused, and so is one that another run is using. An image that can't be read is skipped and
    named in the result; every other one is in the output, or there is none.

    Photos are read on a thread while the detector works. If it has an attribute `workers` above 1, that many threads
    take whole images, or batches, from the photo to its detections.

    Parameters
    ----------
    detector : Runner
        The detector.
    images : sequence of ImageFile
        Images, in the order of the output.
    out : path
        The file to write, see `save_detections`.
    options : Options
        How detections are made.
    settings : dict, optional
        What else decides the result, in words or numbers, to be compared when resuming.
    categories : dict of category id to name, optional
        The truth's, see `save_detections`.
    shards : int, optional
        Write a folder of so many Parquet files.
    progress : callable
        Called with the number of images done and of all.
    looking : callable, optional
        Looks at the images in place of `detector`, as `probox.distributed.detect_images` has workers do.

    Examples
    --------
    >>> import probox
    >>> from probox.detect import Detector, Options, detect_images, find_images
    >>> options = Options(uncertainty="nms-clusters")
    >>> run = detect_images(Detector("yolox_nano.onnx"), find_images("photos"), "found.json", options)  # doctest: +SKIP
    >>> print(probox.evaluate("truth.json", run.found))                                                 # doctest: +SKIP
    """
    require("PIL.Image", extra="detect", purpose="reading photos needs")
    check_output(out, heatmaps=options.uncertainty == "masks", shards=shards)
    check_options(detector.family, options)
    if not images:
        raise InputError("no images to look at")
    check_ids(out, images, shards=shards)
    described = {
        "model": detector.fingerprint,
        "batch": detector.batch,
        **dataclasses.asdict(options),
        **(settings or {}),
    }
    with Partial(beside(out), described, detector.family.classes) as kept:
        done = _detect_all(detector, images, options, kept, progress, looking or _look_here)
        notes = save_detections(out, done.found, images, done.sizes, categories, shards=shards)
        notes += tuple(getattr(looking or detector, "notes", ()))
        kept.remove()
    return dataclasses.replace(done, notes=done.notes + notes)


@dataclasses.dataclass(frozen=True)
class Seen:
    """A photo that was read, or why it could not be."""

    image: ImageFile
    stamp: str
    photo: Photo | None
    problem: str = ""
    remarks: tuple[str, ...] = ()


def _see(chunk: Sequence[ImageFile]) -> list[Seen]:
    """Read photos; stamps are taken before, so that one replaced meanwhile will not pass for the one that was read."""
    seen: list[Seen] = []
    for image in chunk:
        stamp = stamp_of(image)
        try:
            photo = read_photo(image.path, image.size)
            seen.append(Seen(image, stamp, photo, remarks=photo.remarks))
        except InputError as error:
            seen.append(Seen(image, stamp, None, str(error)))
    return seen


@dataclasses.dataclass(frozen=True)
class Done:
    """What was found in a photo that could be read."""

    seen: Seen
    size: tuple[int, int]
    found: Found | None


Looking = Callable[[Runner, Sequence[Sequence[ImageFile]], Options], Iterator[list[Done]]]
"""Yields what a detector finds in each of some batches of photos, in any order."""


def look_at(detector: Runner, chunk: Sequence[ImageFile], options: Options) -> list[Done]:
    """Return what is found in a batch of photos."""
    return _look(detector, _see(chunk), options)


def _look(detector: Runner, seen: Sequence[Seen], options: Options) -> list[Done]:
    pixels = [one.photo.pixels for one in seen if one.photo is not None]
    ids = [one.image.image_id for one in seen if one.photo is not None]
    try:
        looks = iter(look(detector, pixels, ids, options) if pixels else [])
    except InputError as error:
        image = ids[0] if len(ids) == 1 else error.image
        raise InputError(error.problem, file=error.file, image=image, entry=error.entry, remedy=error.remedy) from None
    done: list[Done] = []
    for one in seen:
        if one.photo is None:
            done.append(Done(one, (0, 0), None))
            continue
        height, width = one.photo.pixels.shape[:2]
        found = finish(next(looks), detector.family, (width, height), one.image.image_id, options)
        done.append(Done(dataclasses.replace(one, photo=None), (width, height), found))
    return done


def _look_here(detector: Runner, chunks: Sequence[Sequence[ImageFile]], options: Options) -> Iterator[list[Done]]:
    """Yield what is found in each chunk, in order, on threads of this process."""
    workers = int(getattr(detector, "workers", 1))
    if workers > 1:
        yield from in_order(lambda chunk: look_at(detector, chunk, options), chunks, workers=workers)
        return
    for seen in in_order(_see, chunks, workers=1):
        yield _look(detector, seen, options)


def _detect_all(
    detector: Runner,
    images: Sequence[ImageFile],
    options: Options,
    kept: Partial,
    progress: Progress,
    looking: Looking,
) -> Run:
    states = {image.image_id: kept.state_of(image) for image in images}
    chunks = [images[start : start + detector.batch] for start in range(0, len(images), detector.batch)]
    # A batch is done as a whole or again: its numbers may depend, in their last bits, on how many run together.
    todo = [chunk for chunk in chunks if any(states[image.image_id] != "done" for image in chunk)]
    done = resumed = len(images) - sum(map(len, todo))
    skipped: dict[int, str] = {}
    if todo:
        progress(done, len(images))
    for results in looking(detector, todo, options):
        for one in results:
            image = one.seen.image
            if one.found is None:
                skipped[image.image_id] = one.seen.problem
                continue
            kept.put(image, one.seen.stamp, one.size, one.found, one.seen.remarks)
        done += len(results)
        progress(done, len(images))
    readable = [image for image in images if image.image_id not in skipped]
    if not readable:
        first = skipped[images[0].image_id]
        raise InputError(f"none of the images could be read (the first: {first})", file=str(images[0].path.parent))
    found, sizes, remarks, plain = kept.collect(readable)
    changed = [image for image in images if states[image.image_id] == "changed"]
    notes = [_said("{photos} changed since the interrupted run, and looked at again", changed)] if changed else []
    notes += [_said(text, remarks[remark]) for remark, text in _REMARKS.items() if remark in remarks]
    cost = None if plain is None else mask_cost(found.scores, plain)
    if options.border == "pin" and found.covariances is not None:
        size = np.array([sizes[image_id] for image_id in found.image_ids.tolist()], np.float64).reshape(-1, 2)
        notes.append(pinned_note(found.boxes, found.covariances, size))
    notes += () if cost is None else cost.notes
    named = tuple(skipped[image.image_id] for image in images if image.image_id in skipped)
    return Run(found, len(images), resumed, named, tuple(notes), sizes, cost)


def _said(text: str, images: Sequence[ImageFile]) -> str:
    """Return a sentence about photos with how many there are, and the first of them."""
    photos = f"{len(images)} photo" + ("" if len(images) == 1 else "s")
    return f"{text.format(photos=photos)} (the first: {images[0].path.name})"
