"""Run a detector on many images in parallel, with checkpoints for resuming."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from probox.detect.candidates import Runner, pack_heatmaps, unpack_heatmaps
from probox.detect.image_files import ImageFile
from probox.detect.uncertainty import (
    Found,
    MaskCost,
    Options,
    check_options,
    collect_passes,
    make_detections,
    mask_cost,
)
from probox.errors import InputError
from probox.evaluation.archive import ArchiveColumn, read_arrays, to_stored, write_archive
from probox.files.checkpoint import Checkpoint
from probox.files.photos import Photo, read_photo
from probox.files.reading import is_url
from probox.formats.coco import COCO_RESULTS
from probox.formats.parquet.format import PARQUET_DETECTIONS
from probox.formats.registry import asked_format, check_output, fit_heatmaps, format_of_name, write_detections
from probox.formats.rvc1_detections import RVC1_DETECTIONS
from probox.fusion.gaussian import pinned_note
from probox.notes import InputWarning, Note, as_notes
from probox.support.formatting import some_names
from probox.support.optional import require
from probox.support.parallel import in_order
from probox.tables.dataset import Dataset, is_image_size
from probox.tables.detections import Detections
from probox.tables.labels import COCO_CATEGORY_IDS, COCO_CLASSES, unknown_classes
from probox.tables.table import columns_of, join_tables


def check_ids(path: str | Path, images: Sequence[ImageFile], *, shards: int | None = None) -> None:
    """Raise if image ids are ambiguous in the output file.

    Only RVC1 stores image names. In other formats, running numbers would be mistaken for image ids of the ground truth.
    """
    seen: dict[int, ImageFile] = {}
    for image in images:
        if seen.setdefault(image.image_id, image) is not image:
            raise InputError(f"{seen[image.image_id].path} and {image.path} have the same id", image=image.image_id)
    form = format_of_name(path) if shards is None else PARQUET_DETECTIONS
    counted = [image for image in images if image.counted]
    if counted and form is not None and form is not RVC1_DETECTIONS:
        raise InputError(
            f"expected file names that are distinct numbers, the image ids of {form.title}, but got "
            f"{_not_a_number(counted)}",
            file=str(path),
            remedy="give the ground truth ({option:truth}), or write .rvc1.json, which stores file names",
        )


def _not_a_number(images: Sequence[ImageFile]) -> str:
    """Return the first file name that is not a distinct number."""
    seen: set[int] = set()
    for image in images:
        stem = image.path.stem
        if not (stem.isascii() and stem.isdigit()) or int(stem) in seen:
            return image.path.name
        seen.add(int(stem))
    return images[0].path.name


def save_detections(
    path: str | Path,
    found: Detections,
    images: Sequence[ImageFile],
    sizes: Mapping[int, tuple[int, int]] | None = None,
    categories: Mapping[int, str] | None = None,
    *,
    shards: int | None = None,
) -> tuple[Note, ...]:
    """Write detections of `images` in the format of the file name, and return notes.

    ``*.coco.json`` and ``*.bbox.json`` are COCO results with ``all_scores`` and ``covars``, ``*.parquet`` is Parquet.
    COCO results have masks of the pixels above 0.5 in place of heatmaps.
    Any other ``*.json`` is RVC1 with image names and one list per image, in their order. Images without detections, and
    unreadable images, have an empty list. JSON may end in ``.gz``. The file is written atomically.

    Parameters
    ----------
    path : path
        The file.
    found : Detections
        Detections to write; all must be in `images`.
    images : sequence of ImageFile
        Images in order of their ids. Images with running numbers as ids can be written as RVC1 only.
    sizes : dict of image id to (width, height), optional
        Sizes of the images, where known.
    categories : dict of category id to name, optional
        Categories of the ground truth for COCO results, which identify classes by id and list probabilities in this
        order. Default: COCO's for its 80 classes, else 1, 2, ... in the order of the classes.
    shards : int, optional
        Number of Parquet files; writes a folder of them, whatever its name.

    Returns
    -------
    tuple of Note

    Examples
    --------
    >>> notes = save_detections("found.bbox.json", found, images)  # doctest: +SKIP
    """
    check_ids(path, images, shards=shards)
    dataset = _dataset(found.classes, images, sizes or {})
    found, notes = fit_heatmaps(found, asked_format(path, shards))
    if shards is None and format_of_name(path) is COCO_RESULTS:
        dataset, said = _with_categories(dataset, categories)
        notes += said
    return notes + write_detections(path, found, dataset, shards=shards)


def _dataset(classes: Sequence[str], images: Sequence[ImageFile], sizes: Mapping[int, tuple[int, int]]) -> Dataset:
    """Return a dataset of the images; unknown sizes are 1 x 1, which writers ignore."""
    known = [sizes.get(image.image_id, (1, 1)) for image in images]
    coco = tuple(classes) == COCO_CLASSES
    return Dataset(
        classes=tuple(classes),
        image_ids=np.array([image.image_id for image in images], np.int64),
        widths=np.array([width for width, _ in known], np.int32),
        heights=np.array([height for _, height in known], np.int32),
        file_names=_names(images),
        category_ids=np.array(COCO_CATEGORY_IDS if coco else range(1, len(classes) + 1), np.int64),
    )


def _names(images: Sequence[ImageFile]) -> tuple[str, ...]:
    """Return a unique name per image: that of the ground truth, or of the photo with its folders where needed."""
    names = tuple(image.name or image.path.name for image in images)
    if len(set(names)) == len(names):
        return names
    paths = [image.path.resolve() for image in images]
    root = os.path.commonpath([path.parent for path in paths])
    return tuple(path.relative_to(root).as_posix() for path in paths)


def _with_categories(dataset: Dataset, categories: Mapping[int, str] | None) -> tuple[Dataset, tuple[Note, ...]]:
    """Return the dataset with the categories of the ground truth, which COCO results refer to."""
    if categories:
        wanted = dict(sorted(categories.items()))
        theirs = tuple(wanted.values())
        if len(unknown_classes(dataset.classes, theirs)) < len(dataset.classes):
            return dataset.replace(classes=theirs, category_ids=np.array(list(wanted), np.int64)), ()
        named = {"names": some_names(dataset.classes), "theirs": some_names(theirs)}
        return dataset, (InputWarning("no-class-in-truth", **named),)
    if tuple(dataset.classes) == COCO_CLASSES:
        return dataset, ()
    note = (
        f"category ids are class numbers in the detector's order (1 is {dataset.classes[0]}); give the ground truth "
        "to use its category ids ({option:truth})"
    )
    return dataset, as_notes([note])


Progress = Callable[[int, int], None]
_PHOTO_NOTES: dict[str, Note] = {
    "turned": Note("photos-turned"),
    "as stored": Note("photos-as-stored"),
    "other size": InputWarning("photos-of-other-size"),
    "frames": Note("photos-with-frames"),
    "dark": InputWarning("photos-dark"),
}
"""Notes on photos, by the key that reading them returns."""


@dataclasses.dataclass(frozen=True)
class DetectionRun:
    """Result of `detect_images`: detections and statistics of the run."""

    found: Detections
    """All detections, as in the output file."""
    images: int
    """Number of images."""
    resumed: int
    """Number of images taken from an interrupted run."""
    skipped: tuple[str, ...]
    """Reason for each unreadable image, one sentence each."""
    notes: tuple[Note, ...]
    """Notes on photos, dropout masks and the output file."""
    sizes: dict[int, tuple[int, int]] = dataclasses.field(default_factory=dict)
    """Width and height of readable images, by id."""
    cost: MaskCost | None = None
    """Effect of dropout masks on scores."""


def beside(out: str | Path) -> Path:
    """Return the path that checkpoints are named after: the output, or for a URL its last name here."""
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
    process: Process | None = None,
) -> DetectionRun:
    """Run a detector on images and write the detections to `out`.

    Detections are checkpointed per image in the folder ``OUT.partial``. The same call resumes an interrupted run and
    processes changed photos again. A checkpoint with other settings or another model is refused, and so is one in use
    by another run. Unreadable images are skipped and listed in the result. The output is written atomically at the end.

    Photos are read on a separate thread. If the detector has an attribute `workers` above 1, that many threads process
    images or batches in parallel.

    Parameters
    ----------
    detector : Runner
        The detector.
    images : sequence of ImageFile
        Images, in the order of the output.
    out : path
        Output file, see `save_detections`.
    options : Options
        Uncertainty method and suppression.
    settings : dict, optional
        Further settings that determine the result, compared when resuming.
    categories : dict of category id to name, optional
        Categories of the ground truth, see `save_detections`.
    shards : int, optional
        Number of Parquet files; writes a folder of them.
    progress : callable
        Called with the number of finished and of all images.
    process : callable, optional
        Processes the images in place of `detector`, such as the workers of `probox.distributed.detect_images`.

    Returns
    -------
    DetectionRun

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
        raise InputError("expected at least one image")
    check_ids(out, images, shards=shards)
    described = {
        "model": detector.fingerprint,
        "batch": detector.batch,
        **dataclasses.asdict(options),
        **(settings or {}),
    }
    with Partial(beside(out), described, detector.family.classes) as kept:
        done = _detect_all(detector, images, options, kept, progress, process or _process_here)
        notes = save_detections(out, done.found, images, done.sizes, categories, shards=shards)
        notes += as_notes(getattr(process or detector, "notes", ()))
        kept.remove()
    return dataclasses.replace(done, notes=done.notes + notes)


@dataclasses.dataclass(frozen=True)
class PhotoResult:
    """Result for one photo: its detections, or the reason why it could not be read."""

    image: ImageFile
    stamp: str
    """`stamp_of` the photo when it was read."""
    size: tuple[int, int] = (0, 0)
    found: Found | None = None
    problem: str = ""
    traits: tuple[str, ...] = ()
    """Keys of notes on the photo."""


Process = Callable[[Runner, Sequence[Sequence[ImageFile]], Options], Iterator[list[PhotoResult]]]
"""Function that yields the results of a detector on batches of photos, in any order."""
_Read = tuple[ImageFile, str, Photo | InputError]


def process_photos(detector: Runner, batch: Sequence[ImageFile], options: Options) -> list[PhotoResult]:
    """Return the results of a batch of photos."""
    return _detect_batch(detector, _read_batch(batch), options)


def _read_batch(batch: Sequence[ImageFile]) -> list[_Read]:
    """Read photos; stamps are taken before, so that a photo replaced while reading is detected as changed."""
    read: list[_Read] = []
    for image in batch:
        stamp = stamp_of(image)
        try:
            read.append((image, stamp, read_photo(image.path, image.size)))
        except InputError as error:
            read.append((image, stamp, error))
    return read


def _detect_batch(detector: Runner, read: Sequence[_Read], options: Options) -> list[PhotoResult]:
    pixels = [photo.pixels for _, _, photo in read if isinstance(photo, Photo)]
    ids = [image.image_id for image, _, photo in read if isinstance(photo, Photo)]
    try:
        passes = iter(collect_passes(detector, pixels, ids, options) if pixels else [])
    except InputError as error:
        place = ids[0] if len(ids) == 1 else error.image
        raise InputError(error.problem, file=error.file, image=place, entry=error.entry, remedy=error.remedy) from None
    results: list[PhotoResult] = []
    for image, stamp, photo in read:
        if isinstance(photo, InputError):
            results.append(PhotoResult(image, stamp, problem=str(photo)))
            continue
        size = photo.pixels.shape[1], photo.pixels.shape[0]
        found = make_detections(next(passes), detector.family, size, image.image_id, options)
        results.append(PhotoResult(image, stamp, size, found, traits=photo.traits))
    return results


def _process_here(
    detector: Runner, batches: Sequence[Sequence[ImageFile]], options: Options
) -> Iterator[list[PhotoResult]]:
    """Yield the results of each batch, in order, from threads of this process."""
    workers = int(getattr(detector, "workers", 1))
    if workers > 1:
        yield from in_order(lambda batch: process_photos(detector, batch, options), batches, workers=workers)
        return
    for read in in_order(_read_batch, batches, workers=1):
        yield _detect_batch(detector, read, options)


def _detect_all(
    detector: Runner,
    images: Sequence[ImageFile],
    options: Options,
    kept: Partial,
    progress: Progress,
    process: Process,
) -> DetectionRun:
    states = {image.image_id: kept.state_of(image) for image in images}
    chunks = [images[start : start + detector.batch] for start in range(0, len(images), detector.batch)]
    # Batches are resumed as a whole: their last digits may depend on the batch size.
    todo = [chunk for chunk in chunks if any(states[image.image_id] != "done" for image in chunk)]
    done = resumed = len(images) - sum(map(len, todo))
    skipped: dict[int, str] = {}
    if todo:
        progress(done, len(images))
    for results in process(detector, todo, options):
        for one in results:
            if one.found is None:
                skipped[one.image.image_id] = one.problem
            else:
                kept.put(one)
        done += len(results)
        progress(done, len(images))
    readable = [image for image in images if image.image_id not in skipped]
    if not readable:
        first = skipped[images[0].image_id]
        raise InputError(f"none of the images could be read (the first: {first})", file=str(images[0].path.parent))
    found, plain, parts = kept.collect(readable)
    sizes = {part.image.image_id: part.size for part in parts}
    concerned = [(Note("photos-changed"), [image for image in images if states[image.image_id] == "changed"])]
    concerned += [
        (note, [part.image for part in parts if trait in part.traits]) for trait, note in _PHOTO_NOTES.items()
    ]
    notes: list[Note | str] = [
        note.replace(len(photos), first=photos[0].path.name) for note, photos in concerned if photos
    ]
    if options.border == "pin" and found.covariances is not None:
        size = np.array([sizes[image_id] for image_id in found.image_ids.tolist()], np.float64).reshape(-1, 2)
        notes.append(pinned_note(found.boxes, found.covariances, size))
    cost = None if plain is None else mask_cost(found.scores, plain)
    notes += () if cost is None else cost.notes
    named = tuple(skipped[image.image_id] for image in images if image.image_id in skipped)
    return DetectionRun(found, len(images), resumed, named, as_notes(notes), sizes, cost)


_TABLE = ("boxes", "label_probs", "labels", "scores", "covariances")
"""Columns of detections in a checkpoint."""


def stamp_of(image: ImageFile) -> str:
    """Return an identifier of a photo file: path, size in bytes and modification time.

    The size in the ground truth is included, because it decides whether EXIF orientation is applied.
    """
    try:
        status = image.path.stat()
        written = [status.st_size, status.st_mtime_ns]
    except OSError:
        written = []
    return json.dumps([str(image.path.resolve()), *written, image.size])


class Partial(Checkpoint):
    """Checkpoint of a run: detections of finished images in a folder beside the output.

    Parameters
    ----------
    out : path
        Output file; the folder has the same name with ``.partial``.
    settings : dict
        Settings that determine the result besides the photos.
    classes : sequence of str
        Class names of the detector. Invalid checkpoint files are computed again.
    """

    def __init__(self, out: Path, settings: dict[str, Any], classes: Sequence[str] = ()) -> None:
        super().__init__(out.with_name(out.name + ".partial"), settings, r"-?\d+\.npz")
        self._classes = tuple(classes)
        self._schema = {
            "size": ArchiveColumn("<i8", (2,), "image"),
            "photo": ArchiveColumn("U", (), "image"),
            "traits": ArchiveColumn("U", (), "traits"),
            "plain_scores": ArchiveColumn("<f4", (2,), "without masks", optional=True),
            "windows": ArchiveColumn("<i8", (4,), "detections", optional=True),
            "heat": ArchiveColumn("<f2", (), "heat", optional=True),
        }
        declared = columns_of(Detections)
        for name in _TABLE:
            row = tuple(len(self._classes) if size == "classes" else int(size) for size in declared[name].row)
            dtype = declared[name].dtype.newbyteorder("<").str
            self._schema[name] = ArchiveColumn(dtype, row, "detections", optional=name == "covariances")

    def state_of(self, image: ImageFile) -> Literal["missing", "changed", "done"]:
        """Return the state of an image and its photo; files truncated by a power failure count as missing."""
        kept = self._load(image)
        if kept is None:
            return "missing"
        return "done" if kept.stamp == stamp_of(image) else "changed"

    def put(self, done: PhotoResult) -> None:
        """Save the detections of an image."""
        assert done.found is not None
        columns = {name: value for name in _TABLE if (value := getattr(done.found.detections, name)) is not None}
        if done.found.plain_scores is not None:
            columns["plain_scores"] = done.found.plain_scores
        columns |= pack_heatmaps(done.found.detections.heatmaps)
        columns |= {
            "size": np.array([done.size]), "photo": np.array([done.stamp]), "traits": np.array(done.traits, np.str_)
        }  # fmt: skip
        buffer = io.BytesIO()
        write_archive(buffer, to_stored(columns, self._schema), compressed=False)
        self.write(_file_name(done.image), buffer.getvalue())

    def collect(
        self, images: Sequence[ImageFile]
    ) -> tuple[Detections, npt.NDArray[np.float32] | None, list[PhotoResult]]:
        """Return all detections, with dropout also `Found.plain_scores`, and each image's result."""
        parts: list[PhotoResult] = []
        found: list[Found] = []
        for image in images:
            part = self._load(image)
            if part is None or part.found is None or (found and _list_columns(part.found) != _list_columns(found[0])):
                raise InputError(
                    "the results of this image have disappeared"
                    if part is None
                    else "the results of this image have other columns than those before it",
                    file=str(self.folder / _file_name(image)),
                    image=image.image_id,
                    remedy="run the same command again, which does what is missing"
                    if part is None
                    else "delete it, and run the same command again",
                )
            parts.append(part)
            found.append(part.found)
        table = join_tables([one.detections for one in found])
        if table.heatmaps == ():
            table = table.replace(heatmaps=None)
        plain = [one.plain_scores for one in found if one.plain_scores is not None]
        return table, np.concatenate(plain) if plain else None, parts

    def _load(self, image: ImageFile) -> PhotoResult | None:
        """Return the saved result of an image; None if it is missing or invalid."""
        name = _file_name(image)
        data = self.read(name)
        if data is None:
            return None
        try:
            columns = read_arrays(io.BytesIO(data), str(self.folder / name), self._schema)
            return self._check_columns(columns, image)
        except (ValueError, KeyError):  # InputError is a ValueError
            return None

    def _check_columns(self, columns: dict[str, Any], image: ImageFile) -> PhotoResult:
        """Return the columns of a file; raise ValueError if they are invalid."""
        if any(columns[name].view(np.uint32).max(initial=0) > sys.maxunicode for name in ("photo", "traits")):
            raise ValueError("no text")
        ((width, height),) = columns.pop("size").tolist()
        (stamp,) = columns.pop("photo").tolist()
        traits = tuple(columns.pop("traits").tolist())
        plain = columns.pop("plain_scores", None)
        if not is_image_size(width, height):
            raise ValueError("no size of an image")
        if plain is not None and not ((plain >= 0) & (plain <= 1)).all():
            raise ValueError("scores outside 0 to 1")
        packed: dict[str, Any] = {name: columns.pop(name) for name in ("windows", "heat") if name in columns}
        if packed:
            columns["heatmaps"] = unpack_heatmaps(packed, (width, height))
        ids = np.full(len(columns["boxes"]), image.image_id, np.int64)
        found = Found(Detections(classes=self._classes, image_ids=ids, **columns), plain)
        return PhotoResult(image, stamp, (width, height), found, traits=traits)


def _file_name(image: ImageFile) -> str:
    return f"{image.image_id}.npz"


def _list_columns(found: Found) -> tuple[set[str], bool]:
    return set(found.detections.columns()), found.plain_scores is None
