"""An open Parquet file: its words checked, its columns as arrays, what Arrow raises in words."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.reading import Paths, open_regular
from probox.files.remote import check_not_flattened, is_url, open_remote
from probox.formats.parquet.columns import (
    ENDS,
    FORMAT,
    KEY,
    MAGIC,
    REMEDY,
    SIZES,
    STARTS,
    Doubles,
    Ids,
    are_among,
    are_small_decimals,
    footer_of,
    from_integers,
    integers_of,
    pyarrow,
)
from probox.support.parallel import thread_count

__all__ = ["ParquetFile", "fingerprint_of"]

ALWAYS_FINE = 1 << 28
"""So many bytes of numbers are read whatever the file's size."""
MAX_EXPANSION = 200
"""How much larger than its file a table may be beyond that."""
NUMBER_BYTES = 8


class ParquetFile:
    """An open Parquet file of probox, its words already checked.

    Parameters
    ----------
    path : path
        The file, or its URL.
    table : {"detections", "truth"}
        What it must hold.
    """

    def __init__(self, path: Paths, table: str) -> None:
        self.name = str(path)
        self._remote = is_url(path)
        self._told = False
        _, parquet = pyarrow()
        check_not_flattened(path)
        handle = open_remote(self.name) if self._remote else open_regular(path)
        with handle, self._readable():
            if handle.read(len(MAGIC)) != MAGIC:
                remedy = "only Parquet is read from URLs" if self._remote else "read_detections tells formats apart"
                raise InputError("expected a Parquet file", file=self.name, remedy=remedy)
            footer = footer_of(handle)
            self._bytes = handle.seek(0, os.SEEK_END)
        self.footer_hash = hashlib.sha256(footer).hexdigest()
        with self._readable():
            self._handle = open_remote(self.name) if self._remote else None
            # Single ranges of a distant file take long: they are asked for together.
            self._file = parquet.ParquetFile(
                self._handle or self.name, page_checksum_verification=True, pre_buffer=self._remote
            )
            self.columns: list[str] = self._file.schema_arrow.names
            self.row_groups: int = self._file.metadata.num_row_groups
            self.rows: int = self._file.metadata.num_rows
        self.words = self._checked_words(table)
        self.classes: tuple[str, ...] = tuple(self.words["classes"])

    @property
    def size(self) -> int:
        """Return how many bytes the file has."""
        return self._bytes

    def close(self) -> None:
        """Let go of the file; it can't be read after that."""
        self._file.close(force=True)
        if self._handle is not None:
            self._handle.close()

    def read(self, columns: Sequence[str], groups: Sequence[int] | None = None, *, optional: Sequence[str] = ()) -> Any:
        """Return an Arrow table of these columns, and of optional ones that are there, of some or all row groups."""
        missing = [name for name in columns if name not in self.columns]
        twice = [name for name in self.columns if self.columns.count(name) > 1] if self._has_twins() else []
        if missing or twice:
            problem = f"expected a column {missing[0]!r}" if missing else f"has the column {twice[0]!r} twice"
            raise InputError(problem, file=self.name, remedy=REMEDY)
        wanted = [*columns, *(name for name in optional if name in self.columns)]
        groups = range(self.row_groups) if groups is None else groups
        rows = self._declared_rows(wanted, groups)
        with self._readable():
            if len(groups):
                table = self._file.read_row_groups(list(groups), columns=wanted)
            else:  # which pyarrow 18 cannot read
                table = self._file.schema_arrow.empty_table().select(wanted)
        if len(table) != rows:
            raise InputError(
                f"declares {rows} rows, but has {len(table)}", file=self.name, remedy="write or download it again"
            )
        return table

    def _declared_rows(self, columns: Sequence[str], groups: Sequence[int]) -> int:
        """Return how many rows there should be; raise if a small file declares more than memory can hold.

        Equal values take no space in a file, so it may declare any number of them.
        """
        with self._readable():
            rows = sum(int(self._file.metadata.row_group(group).num_rows) for group in groups)
        size = NUMBER_BYTES * rows * len(columns)
        if size > max(ALWAYS_FINE, MAX_EXPANSION * self._bytes):
            raise InputError(
                f"declares about {size:,} bytes of numbers, but has {self._bytes:,} bytes",
                file=self.name, remedy="split it, or write or download it again",
            )  # fmt: skip
        return rows

    def groups_of(self, image_ids: Ids) -> list[int]:
        """Return the row groups that hold any of these images, whose ids ascend."""
        return [group for group, (ids, _) in enumerate(self.group_images) if are_among(ids, image_ids).any()]

    @cached_property
    def group_images(self) -> list[tuple[Ids, Ids]]:
        """The images of each row group, ascending, and how many rows each has in it.

        They are read from the column: statistics may lie, and asking pyarrow for those of a damaged file can end the
        process (a C++ exception that Python never sees).
        """
        images = []
        last: int | None = None
        for group in range(self.row_groups):
            ids = self.numbers(self.read(["image_id"], [group]), "image_id", np.int64)
            self.check_order(ids, after=last)
            if len(ids):
                last = int(ids[-1]) - 1  # an image may go on in the next one
            known, counts = np.unique(ids, return_counts=True)
            images.append((known, counts))
        return images

    def image_counts(self, groups: Sequence[int] | None = None) -> tuple[Ids, Ids]:
        """Return the images of all or some row groups, ascending, and how many rows each has there."""
        images = self.group_images if groups is None else [self.group_images[group] for group in groups]
        ids = np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in images)])
        counts = np.concatenate([np.zeros(0, np.int64), *(counts for _, counts in images)])
        known, place = np.unique(ids, return_inverse=True)
        return known, np.bincount(place.reshape(-1), counts, len(known)).astype(np.int64)

    def learn_images(self, images: list[tuple[Ids, Ids]]) -> None:
        """Take over what the index of a set says of each row group; it is compared with what is read."""
        self.group_images = images
        self._told = True

    def check_told(self, image_ids: Ids, groups: Sequence[int] | None) -> None:
        """Raise if row groups have other images than the index of the set says."""
        if not self._told:
            return
        found = np.unique(image_ids, return_counts=True)
        if not all(map(np.array_equal, found, self.image_counts(groups))):
            raise InputError(
                "holds other images than the index of the set says",
                file=self.name,
                remedy="write the set again, or delete its index",
            )

    def check_whole_images(self) -> None:
        """Raise if an image lies in two row groups."""
        last: int | None = None
        for ids, _ in self.group_images:
            self.check_order(ids, after=last)
            last = int(ids[-1]) if len(ids) else last

    def numbers(self, table: Any, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a column of an Arrow table as an array, which must have no gaps and be of a fitting type."""
        arrow, _ = pyarrow()
        column = table.column(name)
        if column.null_count:
            raise InputError(
                f"expected a number in every row, but {column.null_count} are missing", file=self.name, entry=name
            )
        given, wanted = column.type, arrow.from_numpy_dtype(np.dtype(dtype))
        whole = arrow.types.is_integer(wanted)
        fits = arrow.types.is_integer(given) or (
            not whole and (arrow.types.is_floating(given) or arrow.types.is_decimal(given))
        )
        if not fits and given != wanted:
            raise InputError(f"expected {wanted}, but the column is {given}", file=self.name, entry=name)
        with self._readable():
            if are_small_decimals(given):
                parts = [from_integers(integers_of(chunk), given.scale, dtype) for chunk in column.chunks]
            elif given == wanted:
                parts = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
            else:
                parts = [self._cast(chunk, wanted, name).to_numpy(zero_copy_only=False) for chunk in column.chunks]
        if len(parts) == 1:
            return np.asarray(parts[0], dtype=dtype)
        return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype, copy=False)

    def _cast(self, chunk: Any, wanted: Any, name: str) -> Any:
        """Return a chunk of another type; floats may be rounded, whole numbers must fit."""
        arrow, _ = pyarrow()
        try:
            return chunk.cast(wanted, safe=arrow.types.is_integer(wanted))
        except arrow.ArrowInvalid as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"expected {wanted}, but got something else ({reason})", file=self.name, entry=name
            ) from None

    def matrix(self, table: Any, names: Sequence[str], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return columns side by side, one row of numbers per row of the table."""
        return np.ascontiguousarray(np.stack([self.numbers(table, name, dtype) for name in names]).T)

    def fill_rows(self, rows: npt.NDArray[np.float32], first: int, table: Any, names: Sequence[str]) -> None:
        """Write float32 columns side by side into `rows`, from row `first` on."""
        columns = [table.column(name) for name in names]
        kind = columns[0].type
        alike = all(c.type == kind and c.num_chunks == 1 and c.null_count == 0 for c in columns)
        threads = thread_count(None)
        if alike and are_small_decimals(kind):
            with self._readable():
                integers = [integers_of(column.chunk(0)) for column in columns]
            _core.fill_rows_of_integers(rows, first=first, columns=integers, divisor=10.0**kind.scale, threads=threads)
        else:
            floats = [self.numbers(table, name, np.float32) for name in names]
            _core.fill_rows_of_floats(rows, first=first, columns=floats, divisor=1.0, threads=threads)

    def box_names(self) -> list[str]:
        """Return the columns of boxes that the file must have: those it has, made complete."""
        ends, sizes = (any(name in self.columns for name in pair) for pair in (ENDS, SIZES))
        return [*STARTS, *(ENDS if ends or not sizes else ()), *(SIZES if sizes else ())]

    def boxes(self, table: Any) -> tuple[Doubles, Doubles | None]:
        """Return boxes, and their stated sizes where these do not follow from them."""
        given = self.box_names()
        starts = self.matrix(table, STARTS, np.float64)
        sizes = self.matrix(table, SIZES, np.float64) if SIZES[0] in given else None
        if ENDS[0] in given:
            ends = self.matrix(table, ENDS, np.float64)
        else:
            assert sizes is not None
            with np.errstate(over="ignore", invalid="ignore"):  # such boxes are rejected later, in words
                ends = starts + sizes
        return np.concatenate([starts, ends], axis=1), sizes

    def check_values(self, name: str, values: Doubles, rows: Ids, *, at_least: float = -np.inf) -> None:
        """Raise for the first value that is not finite or too small; `rows` are the values' rows in the file."""
        fine = np.isfinite(values) & (values >= at_least)
        if fine.all():
            return
        at = int(np.flatnonzero(~fine)[0])
        wanted = "a finite number" if at_least == -np.inf else f"a finite number, at least {at_least:g}"
        raise InputError(
            f"expected {wanted}, but got {values[at]}",
            file=self.name, entry=f"row {rows[at]}: {name}", remedy="leave out rows that diverged",
        )  # fmt: skip

    def group_starts(self) -> Ids:
        """Return the first row of each row group, and the number of rows."""
        rows = [self._file.metadata.row_group(group).num_rows for group in range(self.row_groups)]
        return np.cumsum([0, *rows])

    def row_numbers(self, groups: Sequence[int] | None) -> Ids:
        """Return the number in the file of each row that reading these row groups gives."""
        starts = self.group_starts()
        if groups is None:
            return np.arange(starts[-1])
        return np.concatenate([np.zeros(0, np.int64), *(np.arange(starts[at], starts[at + 1]) for at in groups)])

    def check_order(self, image_ids: Ids, after: int | None = None) -> None:
        """Raise unless images ascend and, if given, all come after one."""
        wrong = np.flatnonzero(image_ids[1:] < image_ids[:-1])
        if len(wrong) or (after is not None and len(image_ids) and image_ids[0] <= after):
            image = int(image_ids[wrong[0] + 1]) if len(wrong) else int(image_ids[0])
            raise InputError(
                "expected rows by ascending image_id and row groups of whole images",
                file=self.name, image=image, remedy="sort the rows, or " + REMEDY,
            )  # fmt: skip

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn what Arrow raises on damaged files into words."""
        arrow, _ = pyarrow()
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            ours = (arrow.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError)
            if not self._remote and not isinstance(error, ours):  # drivers raise whatever they like
                raise
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"cannot be read as Parquet ({reason})", file=self.name, remedy="write or download it again"
            ) from None

    def _checked_words(self, table: str) -> dict[str, Any]:
        text = (self._file.schema_arrow.metadata or {}).get(KEY)
        if text is None:
            raise InputError("is a Parquet file, but not one of probox", file=self.name, remedy=REMEDY)
        try:
            words = json.loads(text)
        except (ValueError, RecursionError):  # the latter where lists are nested a thousand levels deep
            words = None
        if not isinstance(words, dict):
            raise InputError("expected JSON under the key 'probox' of the metadata", file=self.name, remedy=REMEDY)
        if type(words.get("format")) is not int or words["format"] != FORMAT:
            found = repr(words.get("format"))[:20]
            problem = f"is of format {found}, this probox reads {FORMAT}"
            raise InputError(problem, file=self.name, remedy=f"use a newer probox, or {REMEDY}")
        if words.get("table") != table:
            names = {"detections": "detections", "truth": "ground truth"}
            raise InputError(
                f"expected {names[table]}, but this file holds {names.get(str(words.get('table')), 'something else')}",
                file=self.name, remedy="name the ground truth first, then the detections",
            )  # fmt: skip
        for name, of in (("classes", str), ("notes", str), ("category_ids", int)):
            self._check_list(words, name, of, needed=name == "classes")
        if not isinstance(words.get("filter_small", False), bool):
            raise InputError(
                "expected 'filter_small' in the metadata to be true or false", file=self.name, remedy=REMEDY
            )
        return words

    def _check_list(self, words: dict[str, Any], name: str, of: type, *, needed: bool) -> None:
        values = words.get(name, None if needed else [])
        if not isinstance(values, list) or not all(type(value) is of for value in values):
            kind = "names" if of is str else "whole numbers"
            raise InputError(f"expected {name!r} in the metadata to be a list of {kind}", file=self.name, remedy=REMEDY)
        if of is int and not all(-(2**63) <= value < 2**63 for value in values):
            raise InputError(f"expected {name!r} in the metadata to fit 64 bits", file=self.name, remedy=REMEDY)

    def _has_twins(self) -> bool:
        return len(set(self.columns)) < len(self.columns)


def fingerprint_of(files: Iterable[tuple[str, int, str]]) -> str:
    """Return a hash of files, each given by its name in the set, its size and the hash of its footer; in any order."""
    lines = sorted(f"{name}\0{size}\0{footer}\n" for name, size, footer in files)
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()
