"""Inputs of an evaluation: tables, files, or Parquet larger than memory; all images or some."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.result import unscored_objects
from probox.files.reading import Paths, Source, is_folder, is_parquet, is_url
from probox.formats.format import repair_covariances
from probox.formats.registry import format_of_detections, read_detections_of_part, read_truth
from probox.notes import Note, notes_of_images, notes_of_part
from probox.support.formatting import some_names
from probox.support.types import Ints
from probox.tables.dataset import Dataset, chosen_ids
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import repeated_classes, unknown_classes
from probox.tables.table import check_tables

if TYPE_CHECKING:
    from probox.formats.parquet.sets import DetectionSet, TruthSet
# The functions that read Parquet import its modules: other files do not need them.

Images = str | os.PathLike[str] | npt.ArrayLike
"""Image ids, a file of them, or a comma-separated text."""

AT_ONCE = 1 << 18
"""Number of detections per piece if tables of results are not kept."""

TOGETHER = 1024
"""Maximum number of images without detections per piece."""

SharedTruth: TypeAlias = "GroundTruth | TruthSet"
"""Ground truth of several files of detections: a table, or Parquet whose images are read when needed."""

_REMEDY = "give a JSON list of image ids, a text file with one id per line, or ids separated by commas"


def open_inputs(
    truth: SharedTruth | Paths, detections: Detections | Paths, *, image_ids: Images | None, repair: bool
) -> Pieces:
    """Return the inputs of ``evaluate(truth, detections)``: Parquet is left on disk, other files are read."""
    if _is_truth(truth) and _is_path(detections) and _is_parquet(detections):
        return ParquetPieces(truth, detections, image_ids=image_ids, repair=repair)
    return TablePieces(*read_inputs(truth, detections, "evaluate", image_ids=image_ids, repair=repair), repair=repair)  # type: ignore[arg-type]


def share_truth(truth: Paths, detections: Sequence[Paths]) -> SharedTruth:
    """Return ground truth for several calls of `evaluate`: read once, or left on disk if all files are Parquet."""
    if not all(map(_is_parquet, (truth, *detections))):
        return read_truth(truth)
    from probox.formats.parquet.sets import open_truth

    return open_truth(truth)


def _is_truth(truth: object) -> bool:
    if _is_path(truth) or isinstance(truth, GroundTruth):
        return True
    from probox.formats.parquet.sets import TruthSet

    return isinstance(truth, TruthSet)


def _is_parquet(path: Paths) -> bool:
    """Return whether a path is Parquet that can be read by image; for a folder, the registry decides."""
    if not is_folder(path):
        return is_url(path) or is_parquet(path)
    from probox.formats.parquet.shards import is_parquet_source

    return is_parquet_source(path) and format_of_detections(Source(path)).name == "parquet"


class Pieces:
    """Ground truth and detections, evaluated in pieces of some images.

    Notes with counts over all images, such as detections in unknown images, belong to the first part only, because
    merging adds the counts of parts.
    """

    def __init__(
        self, truth: SharedTruth, detections: Detections | DetectionSet, image_ids: Ints, source: str, repair: bool
    ) -> None:
        self.truth, self.detections, self.image_ids, self.repair = truth, detections, image_ids, repair
        self.inputs = tuple(name for name in (truth.source, source) if name)
        self._read = self._repaired = 0

    def pieces(self, image_ids: Ints, *, whole: bool) -> Iterator[tuple[GroundTruth, Detections]]:
        """Yield the tables of these images in pieces, at least one."""
        raise NotImplementedError

    def _unknown_images(self) -> Note:
        """Return the note on detections in images that the ground truth does not have."""
        raise NotImplementedError

    def notes(
        self, scored: int, empty: int, convention: Convention, *, unjudged: Sequence[Note] = (), first: bool = True
    ) -> tuple[Note, ...]:
        """Return notes about the images of the pieces that were read last.

        Parameters
        ----------
        scored : int
            Number of read detections that were scored.
        empty : int
            Number of objects without pixels.
        convention : Convention
            The convention of the evaluation.
        unjudged : sequence of Note
            Notes on detections that cannot be judged.
        first : bool
            Include notes with counts over all images, as the first of several parts does.
        """
        notes = [*notes_of_part((*self.truth.notes, *self.detections.notes), first=first)]
        unknown = self._unknown_images()
        if unknown.count and first:
            notes.append(unknown)
        if self._repaired:
            notes.append(Note("repaired-covariances", self._repaired))
        below = self._read - scored - sum(note.count or 0 for note in unjudged)
        notes += unjudged
        notes += label_notes(below, self.detections.classes, self.truth.classes, convention)
        return (*notes, *([unscored_objects(empty, convention)] if empty else ()))

    @property
    def has_pixels(self) -> bool:
        """Whether detections may have masks or heatmaps."""
        raise NotImplementedError

    def identity(self) -> str:
        """Return a hash of ground truth, detections and whether covariances were repaired."""
        import hashlib

        truth, detections = (
            hash_table(table) if isinstance(table, GroundTruth | Detections) else table.fingerprint()
            for table in (self.truth, self.detections)
        )
        return hashlib.sha256(f"{truth} {detections} {self.repair}".encode()).hexdigest()


class TablePieces(Pieces):
    """Ground truth and detections in memory."""

    truth: GroundTruth
    detections: Detections

    def __init__(self, truth: GroundTruth, detections: Detections, *, repair: bool) -> None:
        super().__init__(truth, detections, truth.image_ids, detections.source, repair)

    @property
    def has_pixels(self) -> bool:
        """Whether detections may have masks or heatmaps."""
        return self.detections.has_pixels

    def pieces(self, image_ids: Ints, *, whole: bool) -> Iterator[tuple[GroundTruth, Detections]]:
        """Yield the tables of these images: in one piece if `whole`, else about `AT_ONCE` detections per piece."""
        rows = np.flatnonzero(np.isin(self.detections.image_ids, image_ids))
        self._read = len(rows)
        place = np.searchsorted(image_ids, self.detections.image_ids[rows])
        order = np.argsort(place, kind="stable")
        before = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(image_ids)))])
        begin, end = 0, -1
        while end < len(image_ids):
            end = len(image_ids)
            if not whole and end:
                end = max(int(np.searchsorted(before[1:], before[begin] + AT_ONCE, side="right")), begin + 1)
            # Sorted by row, because ties between equal scores follow the order of the file.
            mine = np.sort(rows[order[before[begin] : before[end]]])
            yield self.truth.select_images(image_ids[begin:end]), self.detections.select(mine)
            begin = end

    def _unknown_images(self) -> Note:
        return unknown_images(self.detections.image_ids, self.truth.dataset)


class ParquetPieces(Pieces):
    """Ground truth, and detections in Parquet, read in pieces.

    Parameters
    ----------
    truth : GroundTruth, Parquet or path
        A table, or a file of any format; images of a Parquet file are read when needed.
    path : path
        Detections in Parquet: a file, a folder of shards, or the URL of either.
    image_ids : sequence of int, or str, optional
        Images of the ground truth to evaluate.
    repair : bool
        Replace invalid covariances with the nearest valid ones.
    """

    detections: DetectionSet

    def __init__(
        self, truth: SharedTruth | Paths, path: Paths, *, image_ids: Images | None = None, repair: bool = False
    ) -> None:
        from probox.formats.parquet.sets import open_detections, open_truth
        from probox.formats.parquet.shards import is_parquet_source

        if isinstance(truth, str | os.PathLike):
            truth = open_truth(truth) if is_parquet_source(truth) else read_truth(truth)
        detections = open_detections(path)
        known: Ints = truth.image_ids
        ids = known if image_ids is None else chosen_ids(parse_image_ids(image_ids), known, file=truth.source or None)
        super().__init__(truth, detections, ids, detections.name, repair)
        self._found_in, self._counts = detections.image_counts()
        self._unknown = ~np.isin(self._found_in, known)

    @property
    def has_pixels(self) -> bool:
        """Whether detections may have masks or heatmaps."""
        return self.detections.has_pixels

    def pieces(self, image_ids: Ints, *, whole: bool) -> Iterator[tuple[GroundTruth, Detections]]:
        """Yield the tables of these images in pieces, at least one.

        Images without detections join the piece of the images around them, up to a limit.
        """
        empty_handed = np.setdiff1d(image_ids, self._found_in)
        left = np.ones(len(empty_handed), bool)
        self._read = self._repaired = pieces = 0
        for part in self.detections.pieces(np.intersect1d(self._found_in, image_ids)):
            if self.repair and part.covariances is not None:
                covariances, count = repair_covariances(part.covariances)
                part = part.replace(covariances=covariances)
                self._repaired += count
            self._read += len(part)
            here = np.unique(part.image_ids)
            begin, end = np.searchsorted(empty_handed, here[[0, -1]])
            along = begin + np.flatnonzero(left[begin:end])[: len(here) + TOGETHER]
            left[along] = False
            pieces += 1
            yield self.truth.select_images(np.union1d(here, empty_handed[along])), part.to_table()
        rest = empty_handed[left]
        for begin in range(0, max(len(rest), int(pieces == 0)), TOGETHER):
            nothing = self.detections.read_images(np.zeros(0, np.int64)).to_table()
            yield self.truth.select_images(rest[begin : begin + TOGETHER]), nothing

    def _unknown_images(self) -> Note:
        return Note("unknown-images", self._counts[self._unknown].sum(), images=self._unknown.sum())


def unknown_images(image_ids: Ints, dataset: Dataset) -> Note:
    """Return the note on detections in images that the ground truth does not have."""
    unknown = image_ids[dataset.rows_of(image_ids) < 0]
    return Note("unknown-images", len(unknown), images=len(np.unique(unknown)))


def label_notes(
    below: int, found_classes: Sequence[str], truth_classes: Sequence[str], convention: Convention
) -> list[Note]:
    """Return notes on detections below the label threshold, and on classes that the ground truth does not have."""
    notes: list[Note] = []
    if convention.fixed_threshold is not None and below:
        notes.append(Note("below-threshold", below, threshold=convention.fixed_threshold))
    return [*notes, *_class_notes(tuple(found_classes), tuple(truth_classes))]


@lru_cache(maxsize=16)  # pieces repeat the same classes, of which there may be thousands
def _class_notes(found_classes: tuple[str, ...], truth_classes: tuple[str, ...]) -> tuple[Note, ...]:
    """Return notes on the detector's classes that are not scored."""
    columns = {
        "unknown-classes": unknown_classes(found_classes, truth_classes),
        "repeated-classes": repeated_classes(found_classes, truth_classes),
    }
    names = {code: [found_classes[column] for column in chosen] for code, chosen in columns.items()}
    return tuple(Note(code, len(own), names=some_names(own)) for code, own in names.items() if own)


def read_inputs(
    truth: GroundTruth | Paths,
    detections: Detections | Paths,
    call: str,
    *,
    image_ids: Images | None = None,
    repair: bool = False,
) -> tuple[GroundTruth, Detections]:
    """Return the tables of ``call(truth, detections)``; paths are read."""
    if not (
        isinstance(truth, GroundTruth | str | os.PathLike) and isinstance(detections, Detections | str | os.PathLike)
    ):
        check_tables(truth, detections, call)
    whole = read_truth(truth) if isinstance(truth, str | os.PathLike) else truth
    part = whole if image_ids is None else _select_truth(whole, image_ids)
    if isinstance(detections, str | os.PathLike):
        return part, read_detections_of_part(detections, whole, part, repair=repair)
    if part is not whole:
        ids = detections.image_ids
        detections = detections.select((whole.dataset.rows_of(ids) < 0) | (part.dataset.rows_of(ids) >= 0))
    return part, detections


def _select_truth(whole: GroundTruth, image_ids: Images) -> GroundTruth:
    """Return the ground truth of some images, with a note on the restriction."""
    ids = chosen_ids(parse_image_ids(image_ids), whole.image_ids, file=whole.source or None)
    notes = notes_of_images(whole.notes, len(ids), len(whole.image_ids))
    return dataclasses.replace(whole.select_images(ids), notes=notes)


def parse_image_ids(image_ids: Images, name: str = "image_ids") -> npt.NDArray[np.int64] | list[int]:
    """Return image ids unchanged, or those in a text or file; messages call them `name`.

    >>> parse_image_ids("139, 285")
    [139, 285]
    """
    if not _is_path(image_ids):
        return image_ids  # type: ignore[return-value]
    text = given = os.fspath(image_ids)
    file = None
    if os.path.isfile(text):  # unlike Path.is_file, which raises for overlong names, such as a list of ids
        file = text
        try:
            given = Path(text).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read as text ({error})", file=file, remedy=_REMEDY) from None
        if given.lstrip().startswith(("[", "{")):
            return _from_json(given, file)
    words = given.replace(",", " ").split()
    wrong = [word for word in words if not (re.fullmatch(r"-?[0-9]{1,19}", word) and _fits(int(word)))]
    if wrong or not words:
        got = f"got {wrong[0][:80]!r}" if wrong else "got none"
        problem = f"expected image ids, but {got}"
        if file is None and os.path.isdir(text):
            problem = f"is a folder, but {name} expects image ids"
        elif file is None and wrong and ("/" in text or "." in text):
            problem = "no such file"
        elif file is None:
            text = name
        raise InputError(problem, file=text, remedy=_REMEDY)
    return [int(word) for word in words]


def _is_path(value: object) -> TypeGuard[Paths]:
    return isinstance(value, str | os.PathLike)


def _from_json(text: str, file: str) -> list[int]:
    import json

    try:
        ids = json.loads(text)
    except (ValueError, RecursionError):
        ids = None
    if not isinstance(ids, list) or not ids or not all(type(entry) is int and _fits(entry) for entry in ids):
        raise InputError("expected a JSON list of image ids (whole numbers)", file=file, remedy=_REMEDY)
    return ids


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


_WORDS = ("source", "notes")
"""Fields that a hash ignores: equal tables may come from files with different names."""


def hash_table(table: GroundTruth | Detections) -> str:
    """Return a hash of all numbers, names and classes of a table."""
    import hashlib

    digest = hashlib.sha256(type(table).__name__.encode())
    _add(digest, table)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Add a value to a digest: an array, a table, or an object whose repr identifies it."""
    if isinstance(value, LabelProbs):  # as the matrix, so that equal ones are equal in any form
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        for _, matrix in value.blocks():
            digest.update(matrix.tobytes())
        return
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes() if value.size else b"")
        return
    if isinstance(value, tuple) and any(hasattr(entry, "__array__") for entry in value):
        digest.update(f"tuple{len(value)}".encode())
        for entry in value:  # heatmaps, possibly in files: the repr of a large array is abbreviated
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
