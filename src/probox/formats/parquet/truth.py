"""Ground truth in Parquet: one row per object, and one for an image without objects; masks as runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.reading import Paths
from probox.formats.parquet.columns import ENDS, SIZES, STARTS, pyarrow
from probox.formats.parquet.file import ParquetFile, fingerprint_of
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks, box_pixels, unusable_masks

__all__ = ["TruthFile"]

IMAGE_COLUMNS = ("image_id", "image_width", "image_height", "file_name")
MASK_BOX = ("mask_x0", "mask_y0", "mask_x1", "mask_y1")
RUNS = ("run_y", "run_begin", "run_end")
OBJECT_COLUMNS = ("object_id", "class", "area", "crowd", *MASK_BOX, *RUNS)

Ids = npt.NDArray[np.int64]


class TruthFile:
    """An open Parquet file of ground truth, read whole or by images, as `GroundTruth.select_images` does."""

    def __init__(self, path: Paths) -> None:
        self._file = self.file = ParquetFile(path, "truth")
        self.source = self._file.name
        self.classes = self._file.classes
        self.notes: tuple[str, ...] = tuple(self._file.words.get("notes", []))

    @cached_property
    def image_ids(self) -> Ids:
        """Return the ids of all images, read from their column alone."""
        return self._file.image_counts()[0]

    def fingerprint(self) -> str:
        """Return a hash that tells the file from others, found by its footer alone."""
        return fingerprint_of([("", self._file.size, self._file.footer_hash)])

    def select_images(self, image_ids: Ids) -> GroundTruth:
        """Return the table of these images alone; all of them must be here."""
        return self.read(self._file.groups_of(np.unique(image_ids))).select_images(image_ids)

    def read(self, groups: Sequence[int] | None = None) -> GroundTruth:
        """Return the images and objects of all or some row groups."""
        arrow, _ = pyarrow()
        file, words = self._file, self._file.words
        table = file.read([*IMAGE_COLUMNS, *file.box_names(), *OBJECT_COLUMNS], groups)
        ids = file.numbers(table, "image_id", np.int64)
        file.check_order(ids)
        file.check_told(ids, groups)
        first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])) if len(ids) else np.zeros(0, np.int64)
        place = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(ids))))
        images: dict[str, npt.NDArray[Any]] = {}
        for name in ("image_width", "image_height"):
            column = file.numbers(table, name, np.int32)
            if not np.array_equal(column, column[first][place]):
                at = int(np.flatnonzero(column != column[first][place])[0])
                raise InputError(f"rows of one image differ in {name}", file=self.source, image=int(ids[at]))
            images[name] = column[first]
        names = table.column("file_name")
        if not (arrow.types.is_string(names.type) or arrow.types.is_large_string(names.type)):
            raise InputError(f"expected text, but the column is {names.type}", file=self.source, entry="file_name")
        there = np.asarray(table.column("class").is_valid().to_numpy())
        stated = np.asarray(table.column("object_id").is_valid().to_numpy())
        if (stated & ~there).any():
            at = int(np.flatnonzero(stated & ~there)[0])
            raise InputError(
                "an object has no class", file=self.source, image=int(ids[at]),
                entry=f"row {int(file.row_numbers(groups)[at])}: class", remedy="give every object a class",
            )  # fmt: skip
        objects = table.filter(arrow.array(there)) if not there.all() else table
        masks = self._masks(objects, ids[there])
        boxes, extents = file.boxes(objects)
        areas = file.numbers(objects, "area", np.float64)
        rows = file.row_numbers(groups)[there]
        file.check_values("area", areas, rows, at_least=0.0)
        for name, column in zip((*STARTS, *ENDS), boxes.T, strict=True):
            file.check_values(name, column, rows)
        if extents is not None:
            for name, column in zip(SIZES, extents.T, strict=True):
                file.check_values(name, column, rows, at_least=0.0)
        numbered = words.get("category_ids", list(range(1, len(self.classes) + 1)))
        try:
            file_names = tuple(name or "" for name in names.take(arrow.array(first)).to_pylist())
        except UnicodeDecodeError:
            raise InputError("expected UTF-8 text", file=self.source, entry="file_name") from None
        try:
            return GroundTruth(
                dataset=Dataset(
                    classes=self.classes,
                    image_ids=ids[first],
                    widths=images["image_width"],
                    heights=images["image_height"],
                    file_names=file_names,
                    category_ids=numbered,
                    rules="challenge" if words.get("filter_small", False) else "coco",
                    source=self.source,
                ),
                image_rows=place[there],
                labels=file.numbers(objects, "class", np.int32),
                boxes=boxes,
                masks=masks,
                extents=extents,  # type: ignore[arg-type]  # None: the table finds them
                areas=areas,
                crowd=file.numbers(objects, "crowd", np.bool_),
                ids=file.numbers(objects, "object_id", np.int64),
                notes=self.notes,
            )
        except InputError as error:
            if error.file is None:
                error.file = self.source
            raise

    def _masks(self, objects: Any, image_ids: Ids) -> Masks:
        boxes = self._file.matrix(objects, MASK_BOX, np.int32)
        counts, columns = self._runs(objects)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        runs = np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int32)
        pixels = box_pixels(boxes)
        owner = np.repeat(np.arange(len(boxes)), counts)
        lengths = (runs[:, 2].astype(np.int64) - runs[:, 1]) if len(runs) else np.zeros(0, np.int64)
        with_runs = counts > 0
        pixels[with_runs] = np.bincount(owner, lengths, len(boxes)).astype(np.int64)[with_runs]
        wrong = unusable_masks(boxes, offsets, runs)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise InputError(
                "expected runs by row and column, not touching, that fill the mask's box to its edges",
                file=self.source, image=int(image_ids[at]), entry=f"object {at}",
            )  # fmt: skip
        return Masks(boxes, pixels, offsets, runs)

    def _runs(self, objects: Any) -> tuple[Ids, list[npt.NDArray[np.int32]]]:
        """Return how many runs each object has, and the three columns of all runs."""
        arrow, _ = pyarrow()
        counts: list[Ids] = []
        columns = []
        for name in RUNS:
            lists = objects.column(name)
            kind = lists.type
            if not (arrow.types.is_list(kind) or arrow.types.is_large_list(kind)) or lists.null_count:
                raise InputError(
                    f"expected a list of whole numbers per object, but the column is {kind}"
                    + (f" with {lists.null_count} missing" if lists.null_count else ""),
                    file=self.source, entry=name,
                )  # fmt: skip
            flat = arrow.table({name: arrow.chunked_array([c.flatten() for c in lists.chunks], kind.value_type)})
            columns.append(self._file.numbers(flat, name, np.int32))
            lengths = [np.diff(chunk.offsets.to_numpy()).astype(np.int64) for chunk in lists.chunks]
            counts.append(np.concatenate([np.zeros(0, np.int64), *lengths]))
            if not np.array_equal(counts[0], counts[-1]):
                raise InputError(f"expected as many numbers as in {RUNS[0]}", file=self.source, entry=name)
        return counts[0], columns
