"""The columns of an evaluation in a NumPy archive: schema, digest, and validating reader and writer."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.dataset import CLASS_LISTS, Dataset
from probox.tables.label_probs import LabelProbs
from probox.tables.results import QUALITIES, DetectionTable, ObjectTable, OverlapTable, PairTable
from probox.tables.table import columns_of

ALWAYS_FINE = 1 << 28
"""Columns of up to this many bytes are read regardless of the archive's size."""
MAX_EXPANSION = 100
"""Maximum expansion of larger archives, against decompression bombs; real evaluations expand 2 to 10 times."""

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class ArchiveColumn:
    """Requirements of a stored array: type (``U``: text of any length), shape of a row, and the name of its row count.

    All arrays with the same `counted` have equally many rows, plus `extra`. An optional array may be missing.
    """

    dtype: str
    row: tuple[int, ...]
    counted: str
    extra: int = 0
    optional: bool = False


TABLES = {"objects": ObjectTable, "detections": DetectionTable, "pairs": PairTable, "overlaps": OverlapTable}
"""The tables of results that are stored, one array per column."""

_NAMES_IN_FILES = {
    "image_rows": "image_id", "ids": "id", "labels": "class_index", "boxes": "box", "extents": "size", "areas": "area",
    "mask_boxes": "mask_box", "verdicts": "verdict", "partners": "partner", "numbers": "number", "scores": "score",
    "confidences": "confidence", "costs": "cost", "ignored": "small", "detections": "detection", "objects": "object",
    "ious": "iou",
}  # fmt: skip
"""Names in files that differ from columns; files refer to images by id, not by row."""


def file_names_of(table: str) -> dict[str, str]:
    """Return the names of a table's columns in files.

    Qualities have one column each, see `QUALITIES`; label probabilities are stored separately, see `LABELS`.
    """
    names = [name for name in columns_of(TABLES[table]) if name not in ("qualities", "label_probs")]
    return {name: f"{table}.{_NAMES_IN_FILES.get(name, name)}" for name in names}


def _columns(table: str) -> dict[str, ArchiveColumn]:
    declared = columns_of(TABLES[table])
    qualities = QUALITIES if "qualities" in declared else ()
    columns = {f"{table}.{name}": ArchiveColumn("<f8", (), table) for name in qualities}
    for name, stored in file_names_of(table).items():
        row = tuple(int(n) for n in declared[name].row)
        dtype = declared[name].dtype.newbyteorder("<").str
        columns[stored] = ArchiveColumn(dtype, row, table, optional=declared[name].optional)
    return columns


SCHEMA: dict[str, ArchiveColumn] = {
    "images.id": ArchiveColumn("<i8", (), "images"),
    "images.width": ArchiveColumn("<i4", (), "images"),
    "images.height": ArchiveColumn("<i4", (), "images"),
    "images.file_name": ArchiveColumn("U", (), "images"),
    **_columns("objects"),
    **_columns("detections"),
    **_columns("pairs"),
    **_columns("overlaps"),
    "masks.boxes": ArchiveColumn("<i4", (4,), "objects"),
    "masks.pixels": ArchiveColumn("<i8", (), "objects"),
    "masks.offsets": ArchiveColumn("<i8", (), "objects", extra=1),
    "masks.runs": ArchiveColumn("<i4", (3,), "runs"),
    "labels.count": ArchiveColumn("<i4", (), "detections"),
    "labels.class_index": ArchiveColumn("<i4", (), "listed classes"),
    "labels.probability": ArchiveColumn("<f4", (), "probabilities"),
    "labels.rest": ArchiveColumn("<f4", (), "detections"),
    "labels.shares_rest": ArchiveColumn("|b1", (), "classes"),
    "negatives.count": ArchiveColumn("<i4", (), "images", optional=True),
    "negatives.class_index": ArchiveColumn("<i4", (), "negatives", optional=True),
    "not_exhaustive.count": ArchiveColumn("<i4", (), "images", optional=True),
    "not_exhaustive.class_index": ArchiveColumn("<i4", (), "not_exhaustive", optional=True),
}
"""Every array of the archive, in the order of the digest."""

LABELS = tuple(name for name in SCHEMA if name.startswith("labels."))
"""Columns of `LabelProbs`: number of listed classes per detection, class and probability of each, rest per detection,
and which classes share the rests. A matrix has all classes of each detection and no `class_index`."""

# NumPy's header of an array of a plain type in C order. Any other header is rejected, so none is evaluated as Python.
_HEADER = re.compile(
    rb"\{'descr': '([<|][a-zA-Z]\d{1,9})', 'fortran_order': False, 'shape': \((\d{1,15}(?:, ?\d{1,15})*),?\), \} *\n"
)
_MAGIC = b"\x93NUMPY\x01\x00"


def to_stored(arrays: Arrays, schema: Mapping[str, ArchiveColumn]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the schema in the type, byte order and layout in which they are written."""
    stored = {}
    for name, column in schema.items():
        if column.optional and name not in arrays:
            continue
        dtype = arrays[name].dtype if column.dtype == "U" else np.dtype(column.dtype)
        stored[name] = np.ascontiguousarray(arrays[name], dtype=dtype.newbyteorder("<"))
    return stored


def labels_to_stored(label_probs: LabelProbs | None, detections: int) -> dict[str, npt.NDArray[Any]]:
    """Return label probabilities as the arrays of `LABELS`; without probabilities, of no classes."""
    probs = LabelProbs(np.zeros((detections, 0))) if label_probs is None else label_probs
    rest = probs.rest if len(probs.rest) else np.zeros(len(probs), np.float32)
    counts = np.diff(probs.entry_offsets)
    return dict(zip(LABELS, (counts, probs.indices, probs.values.reshape(-1), rest, probs.sharing), strict=True))


def lists_to_stored(dataset: Dataset) -> dict[str, npt.NDArray[Any]]:
    """Return the lists of classes of each image as arrays: number of entries per image, and the class of each."""
    given = {name: getattr(dataset, name) for name in CLASS_LISTS}
    arrays = {}
    for name, lists in given.items():
        if lists is not None:
            arrays[f"{name}.count"] = np.array([len(own) for own in lists], np.int32)
            arrays[f"{name}.class_index"] = np.array([label for own in lists for label in own], np.int32)
    return arrays


def lists_from_stored(arrays: Arrays) -> dict[str, Any]:
    """Return the lists of classes in arrays; their lengths were checked before."""
    given = [name for name in CLASS_LISTS if f"{name}.count" in arrays]
    return {
        name: [own.tolist() for own in split_rows(arrays[f"{name}.class_index"], arrays[f"{name}.count"])]
        for name in given
    }


def split_rows(values: npt.NDArray[Any], counts: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return the given numbers of consecutive values, one array each.

    >>> [own.tolist() for own in split_rows(np.array([7, 8, 9]), np.array([1, 0, 2]))]
    [[7], [], [8, 9]]
    """
    ends = np.cumsum(counts).tolist()
    return [values[begin:end] for begin, end in pairwise([0, *ends])]


def labels_from_stored(arrays: Arrays) -> LabelProbs:
    """Return label probabilities; the arrays were checked before."""
    counts, class_index, values, rest, sharing = (arrays[name] for name in LABELS)
    if len(values) and not len(class_index):
        return LabelProbs.of_matrix(values.reshape(len(counts), len(sharing)))
    offsets = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return LabelProbs.of_columns(offsets, class_index, values, rest, sharing=sharing)


def digest(words: bytes, arrays: Arrays, schema: Mapping[str, ArchiveColumn]) -> str:
    """Return a SHA-256 digest of the words and the arrays."""
    found = hashlib.sha256(words)
    for name in (name for name in schema if name in arrays):
        array = arrays[name]
        found.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(array.tobytes() if array.dtype.kind == "U" or not array.size else array.data)
    return found.hexdigest()


def write_archive(
    file: IO[bytes], arrays: Arrays, *, words: Mapping[str, bytes] | None = None, compressed: bool = True
) -> None:
    """Write what `numpy.savez_compressed` would, in a fifth of its time.

    Columns are compressed at the lowest level, and only if it makes them smaller: most qualities and scores are digits
    without pattern. `words` are other members, written first. Columns that are only sent to another process are not
    `compressed`.
    """
    with ZipFile(file, "w", ZIP_DEFLATED if compressed else ZIP_STORED, compresslevel=1) as archive:
        for name, content in (words or {}).items():
            archive.writestr(ZipInfo(name), content)
        for name, array in arrays.items():
            # A member opened by name has the archive's compression level; one opened by ZipInfo is stored as it is.
            # Neither has a date, so that equal columns give equal bytes.
            member_name = f"{name}.npy"
            place = member_name if compressed and _is_compressible(array) else ZipInfo(member_name)
            with archive.open(place, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


def _is_compressible(array: npt.NDArray[Any]) -> bool:
    """Return whether compression makes about the first 8 KiB of an array smaller by 15%."""
    sample = array.ravel()[: max(1, 8192 // array.itemsize)].tobytes()
    return len(zlib.compress(sample, 1)) < 0.85 * len(sample)


def read_arrays(file: IO[bytes], name: str, schema: Mapping[str, ArchiveColumn]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an open archive, called `name` in messages; other members are ignored."""
    size = file.seek(0, os.SEEK_END)
    with _damage_named(name), ZipFile(file) as archive:
        return _Members(archive, size, schema).read()


def read_words(file: IO[bytes], name: str, member: str, most: int) -> bytes:
    """Return a member of an open archive that is not an array, of at most `most` bytes."""
    with _damage_named(name), ZipFile(file) as archive:
        if member not in archive.namelist():
            raise _DamageError(f"lacks {member}")
        with archive.open(member) as opened:
            content = opened.read(most + 1)
        if len(content) > most:
            raise _DamageError(f"{member} is larger than {most:,} bytes")
        return content


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    """Turn errors from a damaged archive into an `InputError`."""
    try:
        yield
        return
    except _DamageError as damage:
        problem = str(damage)
    except (MemoryError, InputError):
        raise
    except Exception as error:  # zipfile raises many types for damaged archives
        problem = f"is damaged ({type(error).__name__}: {' '.join(str(error).split())[:120]})"
    raise InputError(problem, file=name, remedy="evaluate again")


class _DamageError(Exception):
    """An archive that this module did not write."""


class _Members:
    """The members of an open archive, whose headers are all checked before any data is read."""

    def __init__(self, archive: ZipFile, size: int, schema: Mapping[str, ArchiveColumn]) -> None:
        self._archive = archive
        self._schema = schema
        infos = {info.filename: info for info in archive.infolist()}
        self._infos = {name: infos[f"{name}.npy"] for name in schema if f"{name}.npy" in infos}
        for name, column in schema.items():
            if name not in self._infos and not column.optional:
                raise _DamageError(f"lacks the column {name}")
        total = sum(info.file_size for info in self._infos.values())
        if total > max(ALWAYS_FINE, MAX_EXPANSION * size):
            raise _DamageError(f"expands to {total:,} bytes from {size:,}")

    def read(self) -> dict[str, npt.NDArray[Any]]:
        lengths: dict[str, int] = {}
        for name in self._infos:
            column = self._schema[name]
            _, shape = self._header(name)
            length = lengths.setdefault(column.counted, shape[0] - column.extra)
            if shape[0] != length + column.extra:
                raise _DamageError(f"{name} has {shape[0]} rows, expected {length + column.extra}")
        return {name: self._array(name) for name in self._infos}

    def _header(self, name: str, member: IO[bytes] | None = None) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return the type and shape of a member, checked against the schema and the declared size."""
        if member is None:
            with self._open(name) as opened:
                return self._header(name, opened)
        start = member.read(len(_MAGIC) + 2)
        size = int.from_bytes(start[len(_MAGIC) :], "little")
        found = _HEADER.fullmatch(member.read(size))
        if not start.startswith(_MAGIC) or found is None:
            raise _DamageError(f"{name} is not an array of a plain type")
        dtype = np.dtype(found[1].decode())
        shape = tuple(int(n) for n in found[2].split(b","))
        column = self._schema[name]
        is_text = column.dtype == "U" and dtype.kind == "U" and dtype.itemsize > 0
        if not is_text and dtype.str != column.dtype:
            expected = "text" if column.dtype == "U" else np.dtype(column.dtype)
            raise _DamageError(f"{name} is {dtype}, expected {expected}")
        if shape[1:] != column.row:
            raise _DamageError(f"{name} has rows of shape {shape[1:]}, expected {column.row}")
        bytes_of_array = dtype.itemsize * int(np.prod(shape, dtype=object))
        if len(start) + size + bytes_of_array != self._infos[name].file_size:
            raise _DamageError(f"the size of {name} does not match its header")
        return dtype, shape

    def _array(self, name: str) -> npt.NDArray[Any]:
        with self._open(name) as member:
            dtype, shape = self._header(name, member)
            wanted = dtype.itemsize * int(np.prod(shape, dtype=object))
            data = member.read(wanted)
            if len(data) != wanted or member.read(1):  # the second read also checks the checksum of an empty array
                raise _DamageError(f"{name} is cut short")
        array = np.frombuffer(data, dtype).reshape(shape)
        if dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
            raise _DamageError(f"{name} has values other than true and false")
        return array

    def _open(self, name: str) -> IO[bytes]:
        info = self._infos[name]
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise _DamageError(f"{name} has an unsupported compression method")
        return self._archive.open(info)
