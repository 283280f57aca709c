"""Sets of many Parquet files, read as one table, by images, or piece by piece; a single file goes by the same names."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.reading import Paths
from probox.formats.draft import Draft
from probox.formats.parquet.detections import DetectionFile
from probox.formats.parquet.index import REMEDY, Shard, check_alike, make_index, open_shard, stored_index
from probox.formats.parquet.joining import join_drafts, join_truths
from probox.formats.parquet.shards import INDEX, all_files, find_shards, is_parquet_source, is_set, is_shard_name
from probox.formats.parquet.truth import TruthFile
from probox.tables.dataset import chosen_ids
from probox.tables.groundtruth import GroundTruth

__all__ = ["DetectionSet", "TruthSet", "is_parquet_source", "open_detections", "open_truth"]

OPEN_AT_A_TIME = 8
"""So many shards are kept open: parts of a truth are read again and again, and a set may have thousands."""

Ids = npt.NDArray[np.int64]


def open_truth(path: Paths) -> TruthFile | TruthSet:
    """Open ground truth in Parquet: a file, a folder of shards, or the URL of either."""
    return TruthSet(path) if is_set(path) else TruthFile(path)


def open_detections(path: Paths) -> DetectionFile | DetectionSet:
    """Open detections in Parquet: a file, a folder of shards, or the URL of either."""
    return DetectionSet(path) if is_set(path) else DetectionFile(path)


class _Set:
    """Shards and the index that tells what is in them: the one that is there, or one made by reading image ids."""

    table: str

    def __init__(self, path: Paths) -> None:
        self._path = path
        files = all_files(path)
        shown = str(path).rstrip("/") or str(path)
        sizes = dict(sorted((name, size) for name, size in files.items() if is_shard_name(name)))
        if INDEX in files:
            self._index = stored_index(path, self.table, sizes)
        else:
            self._index = make_index(path, self.table, sizes or find_shards(path))
        self._open: OrderedDict[int, Shard] = OrderedDict()
        self._shown = shown
        self.classes: tuple[str, ...] = tuple(self._index.words["classes"])

    @property
    def shards(self) -> int:
        """Return how many shards there are."""
        return len(self._index.shards)

    @property
    def shard_names(self) -> tuple[str, ...]:
        """Return the names of the shards in the set."""
        return tuple(shard.name for shard in self._index.shards)

    def fingerprint(self) -> str:
        """Return a hash that tells the set from others, found by the footers of its shards alone."""
        return self._index.fingerprint()

    def _shard(self, number: int) -> Shard:
        """Return an open shard: one that was used lately, or opened now."""
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        self._open[number] = self._opened(number)
        if len(self._open) > OPEN_AT_A_TIME:
            self._open.popitem(last=False)[1].file.close()
        return self._open[number]

    def _opened(self, number: int) -> Shard:
        """Open a shard, which must be the one that the index knows."""
        entry = self._index.shards[number]
        shard = open_shard(self._path, entry.name, self.table)
        file = shard.file
        if (file.size, file.rows, file.footer_hash) != (entry.size, entry.rows, entry.footer):
            file.close()
            raise InputError("was changed since the index of the set was written", file=file.name, remedy=REMEDY)
        check_alike(shard, self._index.words, "the index of the set says")
        file.learn_images(self._index.images_of(number, file.row_groups))
        return shard

    def _holding(self, image_ids: Ids | None) -> list[int]:
        """Return the numbers of the shards that hold any of these images, whose ids ascend; None: any at all."""
        numbers = self._index.shard_numbers
        if image_ids is not None:
            numbers = numbers[self._index.rows_of(image_ids)]
        return [int(number) for number in np.unique(numbers)]


class TruthSet(_Set):
    """Shards of ground truth."""

    table = "truth"

    def __init__(self, path: Paths) -> None:
        super().__init__(path)
        self.source = self._shown
        self.notes: tuple[str, ...] = tuple(self._index.words["notes"])

    @cached_property
    def image_ids(self) -> Ids:
        """Return the ids of all images, ascending."""
        return np.unique(self._index.image_ids)

    def read(self) -> GroundTruth:
        """Return the table of all images."""
        return self._joined([self._truth(number).read() for number in range(self.shards)])

    def select_images(self, image_ids: Ids) -> GroundTruth:
        """Return the table of these images alone; all of them must be here. Shards without any are not opened."""
        wanted = chosen_ids(image_ids, self.image_ids, file=self.source)
        parts = []
        rows = self._index.rows_of(wanted)
        for number in self._holding(wanted):
            here = rows[self._index.shard_numbers[rows] == number]
            parts.append(self._truth(number).select_images(np.unique(self._index.image_ids[here])))
        return self._joined(parts or [self._truth(0).select_images(wanted)])

    def _truth(self, number: int) -> TruthFile:
        shard = self._shard(number)
        assert isinstance(shard, TruthFile)
        return shard

    def _joined(self, parts: list[GroundTruth]) -> GroundTruth:
        return join_truths(parts, self.source, self.notes)


class DetectionSet(_Set):
    """Shards of detections."""

    table = "detections"

    def __init__(self, path: Paths) -> None:
        super().__init__(path)
        self.name = self._shown
        self.notes: list[str] = list(self._index.words["notes"])

    def read(self) -> Draft:
        """Return the rows of all shards, by ascending image."""
        return self._joined([self._detections(number).read() for number in self._holding(None)])

    def read_images(self, image_ids: Ids) -> Draft:
        """Return the rows of these images, by ascending image. Shards without any are not opened."""
        ids = np.unique(image_ids)
        return self._joined([self._detections(number).read_images(ids) for number in self._holding(ids)])

    def pieces(self, image_ids: Ids | None = None) -> Iterator[Draft]:
        """Yield the rows of one row group after the other, of these images alone if ids are given, which ascend.

        Each image lies in one piece, and pieces come shard by shard. Shards and row groups without rows that are wanted
        are not opened.
        """
        for number in self._holding(image_ids):
            shard = self._opened(number)  # its own: whoever takes the pieces may read the set meanwhile
            assert isinstance(shard, DetectionFile)
            try:
                for piece in shard.pieces(image_ids):
                    yield dataclasses.replace(piece, notes=tuple(self.notes))
            finally:
                shard.file.close()

    def image_counts(self) -> tuple[Ids, Ids]:
        """Return the images that have detections, ascending, and how many each has."""
        known, place = np.unique(self._index.image_ids, return_inverse=True)
        return known, np.bincount(place.reshape(-1), self._index.rows, len(known)).astype(np.int64)

    def _detections(self, number: int) -> DetectionFile:
        shard = self._shard(number)
        assert isinstance(shard, DetectionFile)
        return shard

    def _joined(self, drafts: list[Draft]) -> Draft:
        return join_drafts(drafts or [self._nothing()], self.name, tuple(self.notes))

    def _nothing(self) -> Draft:
        """Return no rows; no shard need be opened for that."""
        return Draft(
            classes=self.classes,
            image_ids=np.zeros(0, np.int64),
            boxes=np.zeros((0, 4)),
            label_probs=np.zeros((0, len(self.classes)), np.float32),
            covariances=np.zeros((0, 2, 2, 2)) if self._index.words.get("covariances") else None,
            labels=np.zeros(0, np.int32),
            source=self.name,
            place=lambda row: (self.name, ""),
        )
