"""What is evaluated in parts: tables in memory, or Parquet of which each part reads what it needs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.evaluation.inputs import Images, read_inputs
from probox.evaluation.notes import empty_mask_note, said_by_part, unknown_image_note
from probox.evaluation.run import label_notes
from probox.evaluation.streaming import ParquetInputs
from probox.files.reading import Paths
from probox.formats.parquet.sets import is_parquet_source
from probox.parts.identity import hash_of_inputs, hash_of_table
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["PartInputs", "open_inputs"]

AT_ONCE = 1 << 18
"""So many detections are evaluated at a time where tables of results are not kept."""

Ids = npt.NDArray[np.int64]


class PartInputs(Protocol):
    """Ground truth and detections that are read, or at hand, piece by piece."""

    inputs: tuple[str, ...]
    """The files, truth first."""
    wanted: Ids
    """The images that are shared out among parts, by ascending id."""
    in_memory: bool
    """Whether all of it is in memory anyway."""

    def pieces(self, image_ids: Ids) -> Iterator[tuple[GroundTruth, Detections]]:
        """Yield the tables of these images, some images at a time; at least one piece."""
        ...

    def notes(self, scored: int, empty: int, convention: Convention, *, first: bool = True) -> tuple[str, ...]:
        """Return what is to be said of the images whose pieces were read last."""
        ...

    def identity(self, *, repair: bool) -> str:
        """Return a hash of all that is evaluated."""
        ...


def open_inputs(
    truth: GroundTruth | Paths, found: Detections | Paths, *, images: Images | None, repair: bool, whole: bool
) -> PartInputs:
    """Return what is evaluated; `whole` if tables in memory are one piece."""
    if _is_path(found) and (_is_path(truth) or isinstance(truth, GroundTruth)) and is_parquet_source(found):
        return _ParquetPart(truth, found, images=images, repair=repair)
    tables = read_inputs(truth, found, "evaluate_part", images=images, repair=repair)
    return _TablePart(*tables, at_once=None if whole else AT_ONCE)


def _is_path(value: object) -> TypeGuard[Paths]:
    return isinstance(value, str | os.PathLike)


class _ParquetPart(ParquetInputs):
    in_memory = False

    def identity(self, *, repair: bool) -> str:
        truth = hash_of_table(self.truth) if isinstance(self.truth, GroundTruth) else self.truth.fingerprint()
        return hash_of_inputs(truth, self.file.fingerprint(), repair=repair)


class _TablePart:
    """Tables in memory.

    What counts something in all of them, and detections in images that the truth does not have, are said of the first
    part alone: counts of parts add up.
    """

    in_memory = True

    def __init__(self, truth: GroundTruth, found: Detections, *, at_once: int | None) -> None:
        self._truth, self._found, self._at_once = truth, found, at_once
        self.wanted: Ids = truth.image_ids
        self.inputs = tuple(name for name in (truth.source, found.source) if name)
        self._read = 0

    def pieces(self, image_ids: Ids) -> Iterator[tuple[GroundTruth, Detections]]:
        """Yield the tables of these images, about `AT_ONCE` detections at a time."""
        rows = np.flatnonzero(np.isin(self._found.image_ids, image_ids))
        self._read = len(rows)
        place = np.searchsorted(image_ids, self._found.image_ids[rows])
        order = np.argsort(place, kind="stable")
        counts = np.cumsum(np.bincount(place, minlength=len(image_ids)))
        cuts = [0]
        while cuts[-1] < len(image_ids) or len(cuts) == 1:
            done = int(counts[cuts[-1] - 1]) if cuts[-1] else 0
            end = len(image_ids)
            if self._at_once is not None and len(image_ids):
                end = max(int(np.searchsorted(counts, done + self._at_once, side="right")), cuts[-1] + 1)
            upto = int(counts[end - 1]) if end else 0
            # In the order of the file, as if nothing had been cut.
            mine = np.sort(rows[order[done:upto]])
            yield self._truth.select_images(image_ids[cuts[-1] : end]), self._found.select(mine)
            cuts.append(end)

    def notes(self, scored: int, empty: int, convention: Convention, *, first: bool = True) -> tuple[str, ...]:
        """Return what is to be said; see `ParquetInputs.notes`."""
        notes = [*said_by_part((*self._truth.notes, *self._found.notes), first=first)]
        unknown = int((self._truth.dataset.rows_of(self._found.image_ids) < 0).sum())
        if unknown and first:
            notes.append(unknown_image_note(unknown))
        notes += label_notes(self._read - scored, self._found.classes, self._truth.classes, convention)
        return (*notes, *([empty_mask_note(empty, box_truth=convention.box_truth)] if empty else ()))

    def identity(self, *, repair: bool) -> str:
        """Return a hash of both tables."""
        return hash_of_inputs(hash_of_table(self._truth), hash_of_table(self._found), repair=repair)
