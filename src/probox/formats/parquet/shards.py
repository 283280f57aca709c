"""Single Parquet files of a set, read through Arrow: header checks, row groups by image, columns as arrays."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.reading import (
    PARQUET_MAGIC,
    Paths,
    check_not_flattened,
    inside,
    is_folder,
    is_parquet,
    is_url,
    open_regular,
    open_remote,
    remote_files,
)
from probox.formats.label_files import has_sequences
from probox.notes import read_notes
from probox.support.optional import pip_command, require
from probox.support.parallel import thread_count
from probox.tables.dataset import PARTLY_ANNOTATED

OLDEST_PYARROW = 18
"""First release that reads 32-bit decimals written by others."""
OLDEST_WITH_DECIMAL32 = 22
"""First release that writes 32-bit decimals."""

FORMAT = 1
KEY = b"probox"
"""Metadata key of a JSON text with the meaning of the columns."""

MAX_DIGITS = 9
"""Decimals of up to nine digits fit 32-bit integers."""

REMEDY = "write it with probox.write_parquet or `probox convert`"

STARTS, ENDS, SIZES = ("x1", "y1"), ("x2", "y2"), ("width", "height")

Doubles = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


def footer_of(file: BinaryIO) -> bytes:
    """Return the footer of a file, which locates its content; empty if it does not end like a Parquet file."""
    size = file.seek(0, os.SEEK_END)
    if size < 3 * len(PARQUET_MAGIC):
        return b""
    file.seek(size - 8)
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if not end.endswith(PARQUET_MAGIC) or length > size - 8:
        return b""
    file.seek(size - 8 - length)
    return file.read(length)


def arrow_module(name: str) -> Any:
    """Import a module of pyarrow, or raise with an installation command."""
    return require(name, extra="parquet", purpose="Parquet files need")


def pyarrow() -> tuple[Any, Any]:
    """Return the modules `pyarrow` and `pyarrow.parquet`."""
    arrow, parquet = arrow_module("pyarrow"), arrow_module("pyarrow.parquet")
    if _major(arrow) < OLDEST_PYARROW:
        raise InputError(
            f"Parquet files need pyarrow {OLDEST_PYARROW} or newer, but got {arrow.__version__}",
            remedy=f"{pip_command()} install -U pyarrow",
        )
    return arrow, parquet


def _major(arrow: Any) -> int:
    return int(arrow.__version__.split(".")[0])


def decimal_array(integers: npt.NDArray[np.int32], scale: int) -> Any:
    """Return an Arrow array of decimals: integers in units of ``10**-scale``.

    In the file they are 32-bit integers in any case. A pyarrow that cannot write 32-bit decimals keeps them in 128 bits
    in memory.
    """
    arrow, _ = pyarrow()
    if _major(arrow) >= OLDEST_WITH_DECIMAL32:
        kind, words = arrow.decimal32(MAX_DIGITS, scale), np.ascontiguousarray(integers)
    else:
        kind, words = arrow.decimal128(MAX_DIGITS, scale), np.empty((len(integers), 2), np.int64)
        words[:, 0] = integers
        words[:, 1] = np.where(integers < 0, -1, 0)  # upper half of the two's complement
    return arrow.Array.from_buffers(kind, len(integers), [None, arrow.py_buffer(words)])


def are_small_decimals(kind: Any) -> bool:
    """Return whether `integers_of` supports the decimals of an Arrow type."""
    arrow, _ = pyarrow()
    return bool(
        arrow.types.is_decimal(kind)
        and kind.bit_width in (32, 128)
        and kind.precision <= MAX_DIGITS
        and 0 <= kind.scale <= MAX_DIGITS
    )


def integers_of(chunk: Any) -> npt.NDArray[np.int32]:
    """Return the integers of an Arrow array of small decimals, without a copy if they have 32 bits."""
    if not len(chunk):
        return np.zeros(0, np.int32)
    content = chunk.buffers()[1]
    if chunk.type.bit_width == 32:
        return np.frombuffer(content, np.int32, len(chunk), 4 * chunk.offset)
    low, high = np.frombuffer(content, np.int64, 2 * len(chunk), 16 * chunk.offset).reshape(-1, 2).T
    if ((high != low >> 63) | (low <= -(10**MAX_DIGITS)) | (low >= 10**MAX_DIGITS)).any():
        arrow, _ = pyarrow()
        raise arrow.ArrowInvalid("a decimal has more digits than its column declares")
    return np.ascontiguousarray(low, np.int32)


def from_integers(integers: npt.NDArray[np.int32], scale: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Convert decimals to floats; a single division is correctly rounded, so it gives the nearest float."""
    return np.asarray(integers.astype(dtype) / np.array(10.0**scale, dtype))


ALWAYS_FINE = 1 << 28
"""Numbers of up to this many bytes are read from files of any size."""
MAX_EXPANSION = 200
"""Limit beyond that: bytes of numbers per byte of the file."""
NUMBER_BYTES = 8
OWN_NAME = re.compile(r"part-(\d{5,})-of-(\d{5,})\.parquet")
"""Names of shards written by probox, which contain the number of shards."""
ENDING = ".parquet"


def is_parquet_source(path: Paths) -> bool:
    """Return whether this is a Parquet file, a folder with Parquet shards, or a URL, which may be either."""
    if is_url(path) or is_parquet(path):
        return True
    if not is_folder(path) or has_sequences(Path(path)):  # RVC1 ground truth, with detections beside it
        return False
    try:
        return any(is_shard_name(name) for name, _ in _walk(Path(path)))
    except OSError:
        return False


def is_shard_name(name: str) -> bool:
    """Return whether a file of a set is a shard: its path has no name that begins with ``_`` or ``.``.

    >>> [is_shard_name(name) for name in ("camera=front/part-0.parquet", "_old.parquet", ".tmp/part-0.parquet")]
    [True, False, False]
    """
    parts = PurePosixPath(name).parts
    return name.lower().endswith(ENDING) and not any(part.startswith(("_", ".")) for part in parts)


def shard_names(path: Paths) -> list[str]:
    """Return the sorted names of the shards of a set; a single file has an empty name."""
    check_not_flattened(path)
    if not is_url(path) and not is_folder(path):
        return [""]
    files = all_files(path)
    if is_url(path) and not files:
        raise InputError("no such file or folder", file=str(path), remedy="check the URL")
    if list(files) == [""]:
        return [""]
    names = sorted(filter(is_shard_name, files))
    if not names:
        raise InputError("expected Parquet files in this folder, but found none", file=str(path), remedy=REMEDY)
    written: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name in names:
        if own := OWN_NAME.fullmatch(PurePosixPath(name).name):
            written[str(PurePosixPath(name).parent), own[2]].add(name)
    for (folder, count), there in written.items():
        for number in range(int(count) if len(there) < int(count) else 0):
            name = (PurePosixPath(folder) / f"part-{number:05d}-of-{count}.parquet").as_posix()
            if name not in there:
                raise InputError(
                    "is missing: the set is incomplete", file=inside(path, name), remedy="write the set again"
                )
    return names


def all_files(path: Paths) -> dict[str, int]:
    """Return the sizes in bytes of all files below a folder, by their relative names."""
    if is_url(path):
        return remote_files(str(path)) or {}
    try:
        return {name: os.stat(found).st_size for name, found in _walk(Path(path))}
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}",
            file=str(error.filename or path),
            remedy="check its permissions",
        ) from None


def _walk(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield all files below a folder. Linked folders are followed, each once: a missed shard would go unnoticed."""
    seen: set[tuple[int, int]] = set()

    def stop(error: OSError) -> None:
        raise error

    for base, folders, files in os.walk(root, followlinks=True, onerror=stop):
        about = os.stat(base)
        if (about.st_dev, about.st_ino) in seen:
            folders.clear()
            continue
        seen.add((about.st_dev, about.st_ino))
        for name in files:
            found = Path(base) / name
            yield found.relative_to(root).as_posix(), found


class Shard:
    """A Parquet file written by probox. It is open only while it is read, because a set may have thousands.

    Parameters
    ----------
    path : path
        File or URL.
    table : {"detections", "truth"}
        Table that the file must hold.
    """

    def __init__(self, path: Paths, table: str) -> None:
        self.path = str(path)
        self._remote = is_url(path)
        check_not_flattened(path)
        self.footer_hash = ""
        with self._open(path) as file:
            metadata = file.metadata
            self.columns: list[str] = file.schema_arrow.names
            self.starts = np.cumsum([0, *(metadata.row_group(at).num_rows for at in range(metadata.num_row_groups))])
            text = (file.schema_arrow.metadata or {}).get(KEY)
        self.header = self._parse_header(text, table)
        self.classes: tuple[str, ...] = tuple(self.header["classes"])

    def error(self, problem: str, **where: Any) -> InputError:
        """Return an error about this file."""
        return InputError(problem, file=self.path, **where)

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return int(self.starts[-1])

    def all_groups(self) -> list[int]:
        """Return the row groups that are not empty."""
        return [int(group) for group in np.flatnonzero(np.diff(self.starts))]

    def read(self, columns: Sequence[str], groups: Sequence[int], *, optional: Sequence[str] = ()) -> Any:
        """Return an Arrow table of some row groups: required columns, and optional ones that exist."""
        missing = [name for name in columns if name not in self.columns]
        twice = [] if len(set(self.columns)) == len(self.columns) else [n for n in columns if self.columns.count(n) > 1]
        if missing or twice:
            problem = f"expected a column {missing[0]!r}" if missing else f"has the column {twice[0]!r} twice"
            raise self.error(problem, remedy=REMEDY)
        wanted = [*columns, *(name for name in optional if name in self.columns)]
        rows = int(np.diff(self.starts)[list(groups)].sum())
        size = NUMBER_BYTES * rows * len(wanted)
        if size > max(ALWAYS_FINE, MAX_EXPANSION * self.size):  # equal values take no space in a file
            raise self.error(
                f"declares about {size:,} bytes of numbers, but has {self.size:,} bytes",
                remedy="split it, or write or download it again",
            )
        with self._open(self.path) as file:
            if len(groups):
                table = file.read_row_groups(list(groups), columns=wanted)
            else:  # pyarrow 18 cannot read zero row groups
                table = file.schema_arrow.empty_table().select(wanted)
        if len(table) != rows:
            raise self.error(f"declares {rows} rows, but has {len(table)}", remedy="write or download it again")
        return table

    def read_images(self) -> tuple[Ids, Ids, Ids]:
        """Return the image ids of each row group, the group of each, and its number of rows there."""
        image_ids = self.numbers(self.read(["image_id"], range(len(self.starts) - 1)), "image_id", np.int64)
        self.check_order(image_ids)
        found = [np.unique(part, return_counts=True) for part in np.split(image_ids, self.starts[1:-1])]
        groups = np.repeat(np.arange(len(found)), [len(ids) for ids, _ in found])
        return np.concatenate([ids for ids, _ in found]), groups, np.concatenate([counts for _, counts in found])

    def numbers(self, table: Any, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a column of an Arrow table as an array; raise for missing values and unsuitable types."""
        arrow, _ = pyarrow()
        column = table.column(name)
        if column.null_count:
            raise self.error(f"expected a number in every row, but {column.null_count} are missing", entry=name)
        given, wanted = column.type, arrow.from_numpy_dtype(np.dtype(dtype))
        whole = arrow.types.is_integer(wanted)
        number = arrow.types.is_floating(given) or arrow.types.is_decimal(given)
        if given != wanted and not arrow.types.is_integer(given) and (whole or not number):
            raise self.error(f"expected {wanted}, but the column is {given}", entry=name)
        with self._readable():
            if are_small_decimals(given):
                parts = [from_integers(integers_of(chunk), given.scale, dtype) for chunk in column.chunks]
            else:
                try:
                    column = column.cast(wanted, safe=whole)
                except arrow.ArrowInvalid as error:
                    raise self.error(
                        f"expected {wanted}, but got something else ({_one_line(error)})", entry=name
                    ) from None
                parts = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
        if len(parts) == 1:
            return np.asarray(parts[0], dtype=dtype)
        return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype, copy=False)

    def matrix(self, table: Any, names: Sequence[str], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return columns as an (N, columns) array."""
        return np.ascontiguousarray(np.stack([self.numbers(table, name, dtype) for name in names]).T)

    def single_matrix(self, table: Any, names: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return float32 columns as an (N, columns) array."""
        rows = np.empty((len(table), len(names)), np.float32)
        columns = [table.column(name) for name in names]
        kind = columns[0].type
        alike = all(c.type == kind and c.num_chunks == 1 and c.null_count == 0 for c in columns)
        threads = thread_count(None)
        if alike and are_small_decimals(kind):
            with self._readable():
                integers = [integers_of(column.chunk(0)) for column in columns]
            _core.fill_rows_of_integers(rows, first=0, columns=integers, divisor=10.0**kind.scale, threads=threads)
        else:
            floats = [self.numbers(table, name, np.float32) for name in names]
            _core.fill_rows_of_floats(rows, first=0, columns=floats, divisor=1.0, threads=threads)
        return rows

    def box_names(self) -> list[str]:
        """Return the required box columns: the pairs that occur in the file, made complete."""
        ends, sizes = (any(name in self.columns for name in pair) for pair in (ENDS, SIZES))
        return [*STARTS, *(ENDS if ends or not sizes else ()), *(SIZES if sizes else ())]

    def boxes(self, table: Any, rows: Ids) -> tuple[Doubles, Doubles | None]:
        """Return boxes, and their stated sizes if the file contains them."""
        given = self.box_names()
        starts = self.matrix(table, STARTS, np.float64)
        sizes = self.matrix(table, SIZES, np.float64) if SIZES[0] in given else None
        if ENDS[0] in given:
            ends = self.matrix(table, ENDS, np.float64)
        else:
            assert sizes is not None
            with np.errstate(over="ignore", invalid="ignore"):  # such boxes are rejected later with a message
                ends = starts + sizes
        if sizes is not None:
            for name, column in zip(SIZES, sizes.T, strict=True):
                self.check_values(name, column, rows, at_least=0.0)
        return np.concatenate([starts, ends], axis=1), sizes

    def check_values(self, name: str, values: Doubles, rows: Ids, *, at_least: float = -np.inf) -> None:
        """Raise for the first value that is not finite or below `at_least`; `rows` are row numbers in the file."""
        fine = np.isfinite(values) & (values >= at_least)
        if fine.all():
            return
        at = int(np.flatnonzero(~fine)[0])
        wanted = "a finite number" if at_least == -np.inf else f"a finite number, at least {at_least:g}"
        raise self.error(
            f"expected {wanted}, but got {values[at]}",
            entry=f"row {rows[at]}: {name}",
            remedy="leave out rows that diverged",
        )

    def row_numbers(self, groups: Sequence[int]) -> Ids:
        """Return the row numbers in the file of the rows in these row groups."""
        spans = [np.arange(self.starts[at], self.starts[at + 1]) for at in groups]
        return np.concatenate([np.zeros(0, np.int64), *spans])

    def check_order(self, image_ids: Ids, after: int | None = None) -> None:
        """Raise unless image ids ascend and, if given, all are larger than `after`."""
        wrong = np.flatnonzero(image_ids[1:] < image_ids[:-1])
        if len(wrong) or (after is not None and len(image_ids) and image_ids[0] <= after):
            image = int(image_ids[wrong[0] + 1]) if len(wrong) else int(image_ids[0])
            raise self.error(
                "expected rows by ascending image_id and row groups of whole images",
                image=image,
                remedy="sort the rows, or " + REMEDY,
            )

    @contextmanager
    def _open(self, path: Paths) -> Iterator[Any]:
        """Open the file and check that it has not changed since it was first opened."""
        _, parquet = pyarrow()
        with open_remote(self.path) if self._remote else open_regular(path) as handle, self._readable():
            if handle.read(len(PARQUET_MAGIC)) != PARQUET_MAGIC:
                remedy = "only Parquet is read from URLs" if self._remote else "read_detections detects the format"
                raise self.error("expected a Parquet file", remedy=remedy)
            footer = hashlib.sha256(footer_of(handle)).hexdigest()
            if footer != (self.footer_hash or footer):
                raise self.error("was changed while it was read", remedy="run the command again")
            self.footer_hash, self.size = footer, handle.seek(0, os.SEEK_END)
            handle.seek(0)
            # Latency of remote files is high: column ranges are requested together.
            yield parquet.ParquetFile(
                handle if self._remote else self.path,
                metadata=None if self._remote else _local_metadata(self.path, footer),
                page_checksum_verification=True,
                pre_buffer=self._remote,
            )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors of Arrow on damaged files into an `InputError`."""
        arrow, _ = pyarrow()
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            ours = (arrow.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError)
            if not self._remote and not isinstance(error, ours):  # drivers raise exceptions of any type
                raise
            raise self.error(
                f"cannot be read as Parquet ({_one_line(error)})", remedy="write or download it again"
            ) from None

    def _parse_header(self, text: bytes | None, table: str) -> dict[str, Any]:
        if text is None:
            raise self.error("is a Parquet file, but was not written by probox", remedy=REMEDY)
        try:
            header = json.loads(text)
        except (ValueError, RecursionError):  # RecursionError for deeply nested lists
            header = None
        if not isinstance(header, dict):
            raise self.error("expected JSON under the key 'probox' of the metadata", remedy=REMEDY)
        if type(header.get("format")) is not int or header["format"] != FORMAT:
            problem = f"is of format {repr(header.get('format'))[:20]}, this probox reads {FORMAT}"
            raise self.error(problem, remedy=f"use a newer probox, or {REMEDY}")
        if header.get("table") != table:
            names = {"detections": "detections", "truth": "ground truth"}
            given = names.get(str(header.get("table")), "something else")
            raise self.error(
                f"expected {names[table]}, but this file holds {given}",
                remedy="name the ground truth first, then the detections",
            )
        header["notes"] = read_notes(header.get("notes", []), self.path, "'notes' in the metadata")
        header.setdefault("filter_small", False)
        header.setdefault("rules", "coco")
        header.setdefault("frequencies", [])
        for name, of in (("classes", str), ("category_ids", int), ("frequencies", str)):
            self._check_list(header, name, of)
        if header["rules"] not in ("coco", *PARTLY_ANNOTATED):
            raise self.error(
                f"expected 'rules' in the metadata to be coco, {', '.join(PARTLY_ANNOTATED)}", remedy=REMEDY
            )
        if not isinstance(header["filter_small"], bool):
            raise self.error("expected 'filter_small' in the metadata to be true or false", remedy=REMEDY)
        return header

    def _check_list(self, header: dict[str, Any], name: str, of: type) -> None:
        if name == "category_ids" and isinstance(header["classes"], list):
            header.setdefault(name, list(range(1, len(header["classes"]) + 1)))
        values = header.get(name)
        if not isinstance(values, list) or not all(type(value) is of for value in values):
            kind = "names" if of is str else "whole numbers"
            raise self.error(f"expected {name!r} in the metadata to be a list of {kind}", remedy=REMEDY)
        if of is int and not all(-(2**63) <= value < 2**63 for value in values):
            raise self.error(f"expected {name!r} in the metadata to fit 64 bits", remedy=REMEDY)


@lru_cache(maxsize=8)
def _local_metadata(path: str, footer: str) -> Any:
    """Return the parsed footer of a file, cached because its row groups are read one by one."""
    return pyarrow()[1].read_metadata(path)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
