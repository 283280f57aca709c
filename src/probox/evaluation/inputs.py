"""What is evaluated: tables, files that hold them, or Parquet larger than memory, of all images or some."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.result import unscored_objects
from probox.files.reading import Paths, Source
from probox.formats.format import repair_covariances
from probox.formats.parquet.format import PARQUET_DETECTIONS
from probox.formats.parquet.sets import open_detections, open_truth
from probox.formats.parquet.shards import is_parquet_source
from probox.formats.registry import format_of_detections, read_detections_of_part, read_truth
from probox.notes import Note, notes_of_images, notes_of_part
from probox.support.formatting import some_names
from probox.tables.dataset import Dataset, chosen_ids
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import repeated_classes, unknown_classes
from probox.tables.table import check_tables

Images = str | os.PathLike[str] | npt.ArrayLike
"""Image ids, or a file of them, or ids in one text between commas."""

AT_ONCE = 1 << 18
"""Detections that are evaluated at a time where tables of results are not kept."""

TOGETHER = 1024
"""Images without detections that are evaluated at a time."""

Ids = npt.NDArray[np.int64]


class TruthOnDisk(Protocol):
    """Ground truth in Parquet, of which images are read as they are needed."""

    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def image_ids(self) -> Ids: ...
    @property
    def source(self) -> str: ...
    @property
    def notes(self) -> tuple[Note, ...]: ...
    def select_images(self, image_ids: Ids) -> GroundTruth: ...
    def fingerprint(self) -> str: ...


SharedTruth = GroundTruth | TruthOnDisk
"""Ground truth of several files of detections."""

_REMEDY = "give a JSON list of image ids, a text file with one id per line, or ids separated by commas"


def open_inputs(
    truth: SharedTruth | Paths, detections: Detections | Paths, *, image_ids: Images | None, repair: bool
) -> TablePieces | ParquetPieces:
    """Return what ``evaluate(truth, detections)`` is about: Parquet is left on disk, other files are read."""
    known = _is_path(truth) or hasattr(truth, "select_images")
    if known and _is_path(detections) and _is_parquet(detections):
        return ParquetPieces(truth, detections, image_ids=image_ids, repair=repair)
    return TablePieces(*read_inputs(truth, detections, "evaluate", image_ids=image_ids, repair=repair))  # type: ignore[arg-type]


def share_truth(truth: Paths, detections: Sequence[Paths]) -> SharedTruth:
    """Return ground truth for several calls of `evaluate`: read once, or left on disk if all files are Parquet."""
    return open_truth(truth) if all(map(_is_parquet, (truth, *detections))) else read_truth(truth)


def _is_parquet(path: Paths) -> bool:
    """Return whether a path is Parquet that can be read by images; of a folder the registry knows."""
    if not is_parquet_source(path):
        return False
    source = Source(path)
    return not source.is_folder or format_of_detections(source) is PARQUET_DETECTIONS


class TablePieces:
    """Ground truth and detections in memory, of which some images at a time are evaluated.

    Notes that count something in all of them, and detections in images that the ground truth does not have, belong to
    the first part alone: counts of parts add up.
    """

    in_memory = True

    def __init__(self, truth: GroundTruth, detections: Detections) -> None:
        self.truth, self.detections = truth, detections
        self.image_ids: Ids = truth.image_ids
        self.inputs = tuple(name for name in (truth.source, detections.source) if name)
        self._read = 0

    def pieces(self, image_ids: Ids, *, whole: bool) -> Iterator[tuple[GroundTruth, Detections]]:
        """Yield the tables of these images, in one piece if `whole`, else about `AT_ONCE` detections at a time."""
        rows = np.flatnonzero(np.isin(self.detections.image_ids, image_ids))
        self._read = len(rows)
        place = np.searchsorted(image_ids, self.detections.image_ids[rows])
        order = np.argsort(place, kind="stable")
        counts = np.cumsum(np.bincount(place, minlength=len(image_ids)))
        cuts = [0]
        while cuts[-1] < len(image_ids) or len(cuts) == 1:
            done = int(counts[cuts[-1] - 1]) if cuts[-1] else 0
            end = len(image_ids)
            if not whole and len(image_ids):
                end = max(int(np.searchsorted(counts, done + AT_ONCE, side="right")), cuts[-1] + 1)
            upto = int(counts[end - 1]) if end else 0
            # In the order of the file, as if nothing had been cut.
            mine = np.sort(rows[order[done:upto]])
            yield self.truth.select_images(image_ids[cuts[-1] : end]), self.detections.select(mine)
            cuts.append(end)

    def notes(self, scored: int, empty: int, convention: Convention, *, first: bool = True) -> tuple[Note, ...]:
        """Return the notes about the images whose pieces were read last.

        Parameters
        ----------
        scored : int
            How many of the detections that were read took part.
        empty : int
            How many objects have no pixel.
        convention : Convention
            How they were scored.
        first : bool
            Include what is counted in all of the files: of parts that are merged later, one does.
        """
        notes = [*notes_of_part((*self.truth.notes, *self.detections.notes), first=first)]
        unknown = unknown_images(self.detections.image_ids, self.truth.dataset)
        if unknown.count and first:
            notes.append(unknown)
        notes += label_notes(self._read - scored, self.detections.classes, self.truth.classes, convention)
        return (*notes, *([unscored_objects(empty, convention)] if empty else ()))

    def identity(self, *, repair: bool) -> str:
        """Return a hash of both tables."""
        return hash_inputs(hash_table(self.truth), hash_table(self.detections), repair=repair)


class ParquetPieces:
    """Ground truth, and detections in Parquet, of which a piece at a time is read.

    Parameters
    ----------
    truth : GroundTruth, Parquet or path
        A table, or a file of any format; images of one in Parquet are read as they are needed.
    path : path
        Detections in Parquet: a file, a folder of shards, or the URL of either.
    image_ids : sequence of int, or str, optional
        These images of the ground truth alone.
    repair : bool
        Replace invalid covariances by the nearest valid ones.
    """

    in_memory = False

    def __init__(
        self, truth: SharedTruth | Paths, path: Paths, *, image_ids: Images | None = None, repair: bool = False
    ) -> None:
        self.truth: SharedTruth
        if isinstance(truth, str | os.PathLike):
            self.truth = open_truth(truth) if is_parquet_source(truth) else read_truth(truth)
        else:
            self.truth = truth
        self._file = open_detections(path)
        self._classes: tuple[str, ...] = self.truth.classes
        known: Ids = self.truth.image_ids
        file = self.truth.source or None
        self.image_ids: Ids = known if image_ids is None else chosen_ids(parse_image_ids(image_ids), known, file=file)
        self.inputs = tuple(name for name in (self.truth.source, self._file.name) if name)
        self._repair = repair
        self._found_in, self._counts = self._file.image_counts()
        self._unknown = ~np.isin(self._found_in, known)
        self._read = self._changed = 0

    def pieces(self, image_ids: Ids, *, whole: bool) -> Iterator[tuple[GroundTruth, Detections]]:
        """Yield the tables of these images, some images at a time; there is at least one piece.

        Images without detections go along with those around them, as far as they are no more than a few.
        """
        empty_handed = np.setdiff1d(image_ids, self._found_in)
        left = np.ones(len(empty_handed), bool)
        self._read = self._changed = pieces = 0
        for part in self._file.pieces(np.intersect1d(self._found_in, image_ids)):
            if self._repair and part.covariances is not None:
                covariances, count = repair_covariances(part.covariances)
                part = part.replace(covariances=covariances)
                self._changed += count
            self._read += len(part)
            here = np.unique(part.image_ids)
            begin, end = np.searchsorted(empty_handed, here[[0, -1]])
            along = begin + np.flatnonzero(left[begin:end])[: len(here) + TOGETHER]
            left[along] = False
            pieces += 1
            yield self.truth.select_images(np.union1d(here, empty_handed[along])), part.to_table()
        rest = empty_handed[left]
        for begin in range(0, max(len(rest), int(pieces == 0)), TOGETHER):
            nothing = self._file.read_images(np.zeros(0, np.int64)).to_table()
            yield self.truth.select_images(rest[begin : begin + TOGETHER]), nothing

    def notes(self, scored: int, empty: int, convention: Convention, *, first: bool = True) -> tuple[Note, ...]:
        """Return the notes about the images whose pieces were read last; see `TablePieces.notes`."""
        notes = [*notes_of_part((*self.truth.notes, *self._file.notes), first=first)]
        if self._unknown.any() and first:
            notes.append(Note("unknown-images", self._counts[self._unknown].sum(), images=self._unknown.sum()))
        if self._changed:
            notes.append(Note("repaired-covariances", self._changed))
        notes += label_notes(self._read - scored, self._file.classes, self._classes, convention)
        return (*notes, *([unscored_objects(empty, convention)] if empty else ()))

    def identity(self, *, repair: bool) -> str:
        """Return a hash of all that is evaluated."""
        truth = hash_table(self.truth) if isinstance(self.truth, GroundTruth) else self.truth.fingerprint()
        return hash_inputs(truth, self._file.fingerprint(), repair=repair)


def unknown_images(image_ids: Ids, dataset: Dataset) -> Note:
    """Return the note on detections in images that the ground truth does not have."""
    unknown = image_ids[dataset.rows_of(image_ids) < 0]
    return Note("unknown-images", len(unknown), images=len(np.unique(unknown)))


def label_notes(
    below: int, found_classes: Sequence[str], truth_classes: Sequence[str], convention: Convention
) -> list[Note]:
    """Return notes on detections below the label threshold, and on classes that the ground truth does not know."""
    notes: list[Note] = []
    if convention.fixed_threshold is not None and below:
        notes.append(Note("below-threshold", below, threshold=convention.fixed_threshold))
    return [*notes, *_class_notes(tuple(found_classes), tuple(truth_classes))]


@lru_cache(maxsize=16)  # the same classes come again and again, and there may be thousands
def _class_notes(found_classes: tuple[str, ...], truth_classes: tuple[str, ...]) -> tuple[Note, ...]:
    """Return notes on those of the detector's classes that count for nothing."""
    notes: list[Note] = []
    unknown = [found_classes[column] for column in unknown_classes(found_classes, truth_classes)]
    if unknown:
        notes.append(Note("unknown-classes", len(unknown), names=some_names(unknown)))
    repeated = [found_classes[column] for column in repeated_classes(found_classes, truth_classes)]
    if repeated:
        notes.append(Note("repeated-classes", len(repeated), names=some_names(repeated)))
    return tuple(notes)


def read_inputs(
    truth: GroundTruth | Paths,
    detections: Detections | Paths,
    call: str,
    *,
    image_ids: Images | None = None,
    repair: bool = False,
) -> tuple[GroundTruth, Detections]:
    """Return the tables that ``call(truth, detections)`` is about, read from files where paths are given."""
    if _is_path(truth) and isinstance(detections, Detections | str | os.PathLike):
        whole = read_truth(truth)
    elif isinstance(truth, GroundTruth) and _is_path(detections):
        whole = truth
    else:
        check_tables(truth, detections, call)
        whole = truth  # type: ignore[assignment]
    part = whole if image_ids is None else select_truth(whole, image_ids)
    if not isinstance(detections, Detections):
        return part, read_detections_of_part(detections, whole, part, repair=repair)
    if part is not whole:
        ids = detections.image_ids
        detections = detections.select((whole.dataset.rows_of(ids) < 0) | (part.dataset.rows_of(ids) >= 0))
    return part, detections


def select_truth(whole: GroundTruth, image_ids: Images) -> GroundTruth:
    """Return the ground truth of some images, with a note on the restriction."""
    ids = chosen_ids(parse_image_ids(image_ids), whole.image_ids, file=whole.source or None)
    notes = notes_of_images(whole.notes, len(ids), len(whole.image_ids))
    return dataclasses.replace(whole.select_images(ids), notes=notes)


def parse_image_ids(image_ids: Images, name: str = "image_ids") -> npt.NDArray[np.int64] | list[int]:
    """Return image ids as they are, or those that a text or a file names; `name` is what messages call it.

    >>> parse_image_ids("139, 285")
    [139, 285]
    """
    if not _is_path(image_ids):
        return image_ids  # type: ignore[return-value]
    text = given = os.fspath(image_ids)
    file = None
    if os.path.isfile(text):  # unlike Path.is_file, this takes any length: a long list is no file
        file = text
        try:
            given = Path(text).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read as text ({error})", file=file, remedy=_REMEDY) from None
        if given.lstrip().startswith(("[", "{")):
            return _from_json(given, file)
    words = given.replace(",", " ").split()
    wrong = [word for word in words if not _is_id(word)]
    if wrong or not words:
        problem = (
            f"expected image ids, but got {wrong[0][:80]!r}" if wrong else "expected image ids, but there are none"
        )
        if file is None and os.path.isdir(text):
            problem = f"is a folder, but {name} expects image ids"
        elif file is None and wrong and ("/" in text or "." in text):
            problem = "no such file"
        elif file is None:
            text = name
        raise InputError(problem, file=file or text, remedy=_REMEDY)
    return [int(word) for word in words]


def _is_path(value: object) -> TypeGuard[Paths]:
    return isinstance(value, str | os.PathLike)


def _from_json(text: str, file: str) -> list[int]:
    try:
        ids = json.loads(text)
    except (ValueError, RecursionError):
        ids = None
    if not isinstance(ids, list) or not ids or not all(type(entry) is int and _fits(entry) for entry in ids):
        raise InputError("expected a JSON list of image ids, all of them whole numbers", file=file, remedy=_REMEDY)
    return ids


def _is_id(word: str) -> bool:
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20 and _fits(int(word))


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


_WORDS = ("source", "notes")
"""Fields that do not count: the same objects and detections may come from files of other names."""


def hash_table(table: GroundTruth | Detections) -> str:
    """Return a text that differs between tables that differ in any number, name or class."""
    digest = hashlib.sha256(type(table).__name__.encode())
    _add(digest, table)
    return digest.hexdigest()


def hash_inputs(truth: str, detections: str, *, repair: bool) -> str:
    """Return one hash of those of ground truth and detections, and of whether covariances were repaired."""
    return hashlib.sha256(f"{truth} {detections} {repair}".encode()).hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Add a value to a digest: an array, a table, or something that prints alike if it is alike."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes() if value.size else b"")
        return
    if isinstance(value, tuple) and any(hasattr(entry, "__array__") for entry in value):
        digest.update(f"tuple{len(value)}".encode())
        for entry in value:  # heatmaps, also those in files: printing an array leaves out most of it
            _add(digest, entry if entry is None else np.asarray(entry))
        return
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is None:
        digest.update(repr(value).encode(errors="surrogatepass"))
        return
    for name in fields:
        if name not in _WORDS:
            digest.update(name.encode())
            _add(digest, getattr(value, name))
