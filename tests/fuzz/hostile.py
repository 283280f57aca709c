"""Containers that are valid outside and hostile inside: archives, PNG, NumPy and Parquet files, gzip."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib
from functools import cache
from random import Random
from typing import Any

import numpy as np

from probox.evaluation.archive import SCHEMA, digest, write_archive
from probox.evaluation.storage import COLUMNS, WORDS, canonical, schema_of

from . import seeds
from .mutate import NUMBERS, dump, mutate_bytes, mutate_json, parse

__all__ = [
    "FLOATS", "evaluation_folder", "gzipped", "hostile_archive", "hostile_array", "hostile_value", "mutated_npy",
    "mutated_parquet", "mutated_png", "parts_folder",
]  # fmt: skip

DTYPES = ("<i8", "<i4", "|i1", "|u1", "<u8", "<f8", "<f4", "<f2", "|b1", "<U3", "|S4", ">i8", "<c16", "<M8[s]")
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, 1e9, 1.1e9, 1e18, 1e-9)


def hostile_array(rng: Random, array: np.ndarray) -> np.ndarray:
    """Return an array with values, an order, a length, a shape or a type that it should not have."""
    kind = rng.randrange(12)
    array = array.copy()
    if kind <= 5 and array.size:
        for _ in range(rng.choice((1, 1, 2, 5))):
            array.reshape(-1)[rng.randrange(array.size)] = hostile_value(rng, array.dtype)
    elif kind == 6 and len(array):
        array = array[np.array([rng.randrange(len(array)) for _ in range(len(array))])]
    elif kind == 7 and len(array):
        array = array[::-1].copy()
    elif kind == 8:
        array = np.concatenate([array, array[: rng.randrange(3)]])[rng.randrange(2) :]
    elif kind == 9:
        array = np.asfortranarray(array).reshape(-1) if rng.random() < 0.5 else array[None]
    elif kind == 10:
        with np.errstate(all="ignore"):
            array = np.zeros(array.shape, rng.choice(DTYPES))
    elif array.size:
        array[...] = hostile_value(rng, array.dtype)
    return array


def hostile_value(rng: Random, dtype: np.dtype) -> Any:
    """Return a value of this type that checks may have forgotten."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.float64(rng.choice(FLOATS)).astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        number = int(rng.choice((*NUMBERS, rng.randrange(-2, 12), rng.randrange(-2, 12))))
        return min(max(number, int(limits.min)), int(limits.max))
    if dtype.kind == "U":
        return rng.choice(("", "a", "../x", "\x1b", "<b>", "\udcff"))
    return rng.random() < 0.5


# --- folders of results ---


@cache
def _stored(kind: str) -> tuple[Any, dict[str, np.ndarray]]:
    files = seeds.result_folders()[kind]
    with np.load(io.BytesIO(files[COLUMNS])) as archive:
        return parse(files[WORDS]), dict(archive)


def parts_folder(rng: Random) -> dict[str, bytes]:
    """Return the folders of two parts, one of them changed, and now and then of another kind than the other."""
    keep = rng.choice(("all", "matches", "summary"))
    others = rng.choice(("all", "matches", "summary")) if rng.random() < 0.02 else keep
    first = evaluation_folder(rng, f"{keep} 1/2")
    second = seeds.result_folders()[f"{others} {rng.choice((1, 2, 2, 2, 2, 2))}/2"]
    return {f"1/{name}": data for name, data in first.items()} | {f"2/{name}": data for name, data in second.items()}


def evaluation_folder(rng: Random, of: str = "whole") -> dict[str, bytes]:
    """Return a folder of results: damaged bytes, or forged words and columns whose digest is right."""
    files = dict(seeds.result_folders()[of])
    kind = rng.randrange(10)
    if kind < 2:
        name = rng.choice((WORDS, COLUMNS, COLUMNS))
        files[name] = mutate_bytes(rng, files[name], list(files.values()))
        return files
    words, arrays = _stored(of)
    arrays = dict(arrays)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4)) if kind < 8 else 0):
        name = rng.choice(list(arrays))
        arrays[name] = hostile_array(rng, arrays[name])
    if kind in (7, 8, 9):
        words = mutate_json(rng, words)
    if rng.random() < 0.05:
        arrays.pop(rng.choice(list(arrays)))
    return {WORDS: _with_digest(dump(words), arrays), COLUMNS: hostile_archive(rng, arrays)}


def _with_digest(text: bytes, arrays: dict[str, np.ndarray]) -> bytes:
    """Return words that state their own digest, if they are words at all."""
    try:
        words = json.loads(text)
        schema = SCHEMA if words.get("keep") is None else schema_of(words, "")
        made = digest(canonical(words), {name: np.ascontiguousarray(arrays[name]) for name in schema}, schema)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return text
    return json.dumps(words | {"digest": made}).encode() if "digest" in words else text


def hostile_archive(rng: Random, arrays: dict[str, np.ndarray]) -> bytes:
    """Return an archive of these arrays in one of the forms that zip has, now and then with a damaged one."""
    packed = io.BytesIO()
    kind = rng.random()
    if kind < 0.1:
        write_archive(packed, arrays)
        return packed.getvalue()
    method, damaged = zipfile.ZIP_STORED, ""
    if kind < 0.25:
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
        damaged = rng.choice(list(arrays))
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, array in arrays.items():
            content = seeds.npy(array)
            archive.writestr(f"{name}.npy", mutate_bytes(rng, content) if name == damaged else content)
    return packed.getvalue()


# --- heatmaps ---


def mutated_npy(rng: Random, array: np.ndarray) -> bytes:
    """Return a ``.npy`` file with hostile values, a hostile header or damaged bytes."""
    kind = rng.randrange(4)
    if kind == 0:
        return mutate_bytes(rng, seeds.npy(array))
    if kind == 1:
        return seeds.npy(hostile_array(rng, array))
    shape: Any = tuple(
        rng.choice((*array.shape, 0, 1, -1, 2**31, 2**40, 2**62, 10**30)) for _ in range(rng.randrange(5))
    )
    header = {"descr": rng.choice((array.dtype.str, *DTYPES, "|O", "<f16", "x")), "fortran_order": rng.random() < 0.3}
    text = repr(header | {"shape": shape if rng.random() < 0.8 else array.shape})
    if rng.random() < 0.2:
        text = rng.choice(("(" * 3000, "{" * 200, "", "[]", text[:-3], text.replace("shape", "form")))
    packed = text.encode() + b" " * (63 - len(text) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(packed) % 65536) + packed + array.tobytes()


# --- PNG ---


def mutated_png(rng: Random, data: bytes) -> bytes:
    """Return a PNG with damaged bytes, or with hostile chunks whose checksums are right."""
    if rng.random() < 0.25:
        return mutate_bytes(rng, data)
    if rng.random() < 0.3:
        return _any_png(rng)
    chunks = []
    at = 8
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        chunks.append((kind, data[at + 8 : at + 8 + size]))
        at += 12 + size
    chosen = rng.randrange(len(chunks))
    kind, body = chunks[chosen]
    if kind == b"IDAT" and rng.random() < 0.7:
        body = zlib.compress(mutate_bytes(rng, zlib.decompress(body)), 1)
    else:
        body = mutate_bytes(rng, body)
    chunks[chosen] = (kind, body)
    if rng.random() < 0.2:
        rng.shuffle(chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def _any_png(rng: Random) -> bytes:
    """Return a PNG of any colour type and depth, its size right or not."""
    width, height = rng.choice((0, 1, 16, 30, 2**14, 2**31)), rng.choice((0, 1, 12, 20, 2**14, 2**31))
    depth, color = rng.choice((1, 2, 4, 8, 16, 3)), rng.choice((0, 2, 3, 4, 6, 1))
    across = min(width, 64) * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(color, 1) * depth
    rows = b"".join(
        bytes([rng.choice((0, 1, 2, 3, 4, 4, 5))]) + rng.randbytes((across + 7) // 8) for _ in range(min(height, 64))
    )
    return seeds.png(width, height, depth, color, rows, rng.randbytes(rng.choice((0, 3, 30, 768))))


# --- gzip ---


def gzipped(rng: Random, text: bytes) -> bytes:
    """Return gzip data: damaged, of several members, of something that follows, or a bomb."""
    kind = rng.randrange(6)
    if kind == 0:
        half = rng.randrange(len(text) + 1)
        return gzip.compress(text[:half], 1, mtime=0) + gzip.compress(text[half:], 1, mtime=0)
    if kind == 1:
        return gzip.compress(text, 1, mtime=0) + rng.choice((b"\0" * 9, b"x", b"\x1f\x8b", gzip.compress(b"", mtime=0)))
    if kind == 2:
        return gzip.compress(gzip.compress(text, 1, mtime=0), 1, mtime=0)
    if kind == 3 and rng.random() < 0.005:
        return gzip.compress(b" " * (1 << 25) + text, 1, mtime=0)
    return mutate_bytes(rng, gzip.compress(text, rng.choice((0, 1)), mtime=0))


# --- Parquet ---


@cache
def _tables() -> dict[str, Any]:
    import pyarrow.parquet as pq

    return {name: pq.read_table(io.BytesIO(data)) for name, data in seeds.parquet_files().items()}


def mutated_parquet(rng: Random, name: str) -> bytes:
    """Return a Parquet file with damaged bytes, or a whole one with hostile columns, types and metadata."""
    if rng.random() < 0.35:
        return mutate_bytes(rng, seeds.parquet_files()[name])
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = _tables()[name]
    words = parse(table.schema.metadata[b"probox"])
    if rng.random() < 0.3:
        words = mutate_json(rng, words)
    for _ in range(rng.choice((0, 1, 1, 2))):
        table = _hostile_column(rng, pa, table)
    if rng.random() < 0.1 and len(table):
        table = table.take(pa.array([rng.randrange(len(table)) for _ in range(rng.randrange(6))], pa.int64()))
    text = dump(words)
    if rng.random() < 0.05:
        text = rng.choice((b"[" * 100_000, b'{"a":' * 60_000, b"\xff", b"", b"1"))
    file = io.BytesIO()
    try:
        pq.write_table(
            table.replace_schema_metadata({b"probox": text}), file, row_group_size=rng.choice((1, 2, 100)),
            use_dictionary=rng.random() < 0.5, compression=rng.choice(("zstd", "none")),
            write_page_checksum=rng.random() < 0.5, write_statistics=rng.random() < 0.8,
        )  # fmt: skip
    except pa.ArrowException:  # there are tables that Arrow itself does not write
        return mutate_bytes(rng, seeds.parquet_files()[name])
    data = file.getvalue()
    return mutate_bytes(rng, data) if rng.random() < 0.15 else data


def _hostile_column(rng: Random, pa: Any, table: Any) -> Any:
    """Return the table with a column dropped, doubled, renamed, or of other values or another type."""
    at = rng.randrange(table.num_columns) if table.num_columns else 0
    if not table.num_columns:
        return table
    name, column = table.column_names[at], table.column(at)
    kind = rng.randrange(10)
    if kind == 0:
        return table.remove_column(at)
    if kind == 1:
        return table.append_column(rng.choice(table.column_names), column)
    if kind == 2:
        return table.rename_columns(
            [rng.choice(("x", name, "prob_0")) if i == at else n for i, n in enumerate(table.column_names)]
        )
    if pa.types.is_decimal(column.type):  # which cannot hold what is hostile about floats
        column = column.cast(pa.float64())
    values = column.to_pylist()
    try:
        if kind <= 6 and values:
            row = rng.randrange(len(values))
            values[row] = rng.choice((None, _like(rng, values[row]), _like(rng, values[row])))
            made = pa.array(values, column.type)
        else:
            made = _other_type(rng, pa, column)
        return table.set_column(at, name, made)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return table.set_column(at, name, pa.array([None] * len(table), column.type))


def _like(rng: Random, value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return rng.random() < 0.5
    if isinstance(value, int):
        return int(rng.choice((-1, 0, 1, 2, 2**31 - 1, -(2**31), rng.randrange(50))))
    if isinstance(value, list):
        changed = list(value) or [0]
        changed[rng.randrange(len(changed))] = rng.choice((-1, 0, 3, 2**31 - 1, None))
        return rng.choice((changed, changed[:-1], [], None))
    return rng.choice(FLOATS) if isinstance(value, float) else rng.choice(("", "x", "\x1b[31m", None))


def _other_type(rng: Random, pa: Any, column: Any) -> Any:
    """Return the same column as something else: dictionaries, nulls, text, time, nested and other numbers."""
    n = len(column)
    kind = rng.randrange(9)
    if kind == 0:
        return column.combine_chunks().dictionary_encode()
    if kind == 1:
        return pa.nulls(n)
    if kind == 2:
        return pa.nulls(n, column.type)
    if kind == 3:
        return pa.array([["x"]] * n)
    if kind == 4:
        return pa.array([{"a": 1}] * n)
    wanted = rng.choice((
        pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.uint8(), pa.int16(), pa.uint64(), pa.int64(),
        pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.date32(), pa.timestamp("us"),
        pa.decimal128(20, 3), pa.decimal128(9, 2), pa.decimal256(50, 10),
        *(getattr(pa, name)(9, 2) for name in ("decimal64", "decimal32") if hasattr(pa, name)),  # not in pyarrow 18
        pa.large_list(pa.int64()), pa.list_(pa.float64()),
    ))  # fmt: skip
    if kind == 5:
        return pa.array([_like(rng, 1) for _ in range(n)]).cast(wanted, safe=False)
    return column.cast(wanted, safe=False)
