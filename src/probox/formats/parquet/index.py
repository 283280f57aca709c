"""The index of a set: which images are in which shard and row group, and what all of its shards have in common."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.output import Content
from probox.files.reading import Paths, open_regular
from probox.files.remote import inside, is_url, open_remote
from probox.formats.parquet.columns import FORMAT, KEY, Ids, pyarrow
from probox.formats.parquet.detections import DetectionFile
from probox.formats.parquet.file import fingerprint_of
from probox.formats.parquet.shards import INDEX, find_shards
from probox.formats.parquet.truth import TruthFile
from probox.version import __version__

__all__ = [
    "UNFINISHED",
    "Index",
    "ShardEntry",
    "common_words",
    "index_content",
    "make_index",
    "open_shard",
    "read_index",
    "stored_index",
]

UNFINISHED = b"probox is writing this set; its index comes last\n"
"""What stands in place of the index while a set is written where nothing can be moved into place."""

REMEDY = f"write the set again, or delete {INDEX}"
SHARED = ("classes", "category_ids", "filter_small", "covariances")
"""What all shards of a set have in common."""
COLUMNS = ("image_id", "shard", "group", "rows")

Shard = TruthFile | DetectionFile


@dataclasses.dataclass(frozen=True)
class ShardEntry:
    """A shard: its name in the set, how many rows and bytes it has, and a hash of its footer."""

    name: str
    rows: int
    size: int
    footer: str


@dataclasses.dataclass(frozen=True, eq=False)
class Index:
    """What a set knows without opening its shards; one row per image, by ascending id, and row group."""

    table: str
    words: dict[str, Any]
    shards: tuple[ShardEntry, ...]
    image_ids: Ids
    shard_numbers: Ids
    groups: Ids
    rows: Ids

    def fingerprint(self) -> str:
        """Return a hash that tells the set from others, found by the footers of its shards alone."""
        return fingerprint_of((shard.name, shard.size, shard.footer) for shard in self.shards)

    @cached_property
    def _by_shard(self) -> tuple[Ids, Ids]:
        """The rows by shard, and where those of each shard begin: found once, for a set may have thousands."""
        order = np.argsort(self.shard_numbers, kind="stable")
        return order, np.searchsorted(self.shard_numbers[order], np.arange(len(self.shards) + 1))

    def rows_of(self, image_ids: Ids) -> Ids:
        """Return the rows of these images, whose ids ascend, as far as they are here."""
        begins, ends = (np.searchsorted(self.image_ids, image_ids, side=side) for side in ("left", "right"))
        counts = ends - begins
        return np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))

    def images_of(self, shard: int, row_groups: int) -> list[tuple[Ids, Ids]]:
        """Return the images of each row group of a shard, ascending, and how many rows each has in it."""
        order, begins = self._by_shard
        mine = order[begins[shard] : begins[shard + 1]]
        by_group = mine[np.argsort(self.groups[mine], kind="stable")]
        ends = np.searchsorted(self.groups[by_group], np.arange(row_groups + 1))
        parts = [by_group[ends[group] : ends[group + 1]] for group in range(row_groups)]
        return [(self.image_ids[part], self.rows[part]) for part in parts]


def open_shard(path: Paths, name: str, table: str) -> Shard:
    """Open a shard of a set."""
    place = inside(path, name)
    return TruthFile(place) if table == "truth" else DetectionFile(place)


def common_words(shard: Shard) -> dict[str, Any]:
    """Return what a shard must have in common with the others; None where nothing speaks against any of them."""
    words = shard.file.words
    if isinstance(shard, DetectionFile):
        return {"classes": words["classes"], "covariances": shard.has_covariances if shard.file.rows else None}
    numbered = words.get("category_ids", list(range(1, len(words["classes"]) + 1)))
    return {"classes": words["classes"], "category_ids": numbered, "filter_small": words.get("filter_small", False)}


def check_alike(shard: Shard, common: Mapping[str, Any], other: str) -> None:
    """Raise unless a shard has in common with the others what all must."""
    said = {
        "classes": "has other classes than",
        "category_ids": "numbers its categories otherwise than",
        "filter_small": "goes by other rules than",
        "covariances": "is alone in having covariances or none, unlike",
    }
    for name, value in common_words(shard).items():
        if value is not None and common.get(name) is not None and value != common[name]:
            raise InputError(
                f"{said[name]} {other}", file=shard.file.name, remedy="write all shards of a set from one table"
            )


def make_index(path: Paths, table: str, sizes: Mapping[str, int] | None = None) -> Index:
    """Return the index of a set, made from the image ids in its shards; raise if these do not go together."""
    names = list(sizes or find_shards(path))
    words: dict[str, Any] = {}
    notes: dict[str, None] = {}
    first: dict[str, str] = {}
    entries: list[ShardEntry] = []
    has_covariances = False
    columns: list[list[npt.NDArray[Any]]] = [[], [], [], []]
    for number, name in enumerate(names):
        shard = open_shard(path, name, table)
        try:
            for word, value in common_words(shard).items():
                if words.get(word) is None:
                    words[word], first[word] = value, shard.file.name
                check_alike(shard, {word: words[word]}, first[word])
            has_covariances |= isinstance(shard, DetectionFile) and shard.has_covariances
            notes.update(dict.fromkeys(shard.notes))
            for group, (ids, rows) in enumerate(shard.file.group_images):
                for column, values in zip(
                    columns, (ids, np.full(len(ids), number), np.full(len(ids), group), rows), strict=True
                ):
                    column.append(values)
            entries.append(ShardEntry(name, shard.file.rows, shard.file.size, shard.file.footer_hash))
        finally:
            shard.file.close()
    ids, numbers, groups, rows = (np.concatenate([np.zeros(0, np.int64), *column]) for column in columns)
    order = np.lexsort((groups, numbers, ids))
    ids, numbers, groups, rows = ids[order], numbers[order], groups[order], rows[order]
    twice = np.flatnonzero((ids[1:] == ids[:-1]) & (numbers[1:] != numbers[:-1]))
    if len(twice):
        at = int(twice[0])
        one, other = (inside(path, names[int(numbers[row])]) for row in (at, at + 1))
        raise InputError(
            f"the image is also in {other}", file=one, image=int(ids[at]), remedy="keep each image in one shard"
        )
    if "covariances" in words and words["covariances"] is None:  # no shard has rows
        words["covariances"] = has_covariances
    return Index(table, {**words, "notes": list(notes)}, tuple(entries), ids, numbers, groups, rows)


def index_content(index: Index) -> Content:
    """Return what writes the index to an open file."""
    arrow, parquet = pyarrow()
    values = (index.image_ids, index.shard_numbers.astype(np.int32), index.groups.astype(np.int32), index.rows)
    arrays = [arrow.array(column) for column in values]
    words = {
        "format": FORMAT,
        "version": __version__,
        "table": "index",
        "of": index.table,
        **{name: value for name, value in index.words.items() if value is not None},
        "shards": [dataclasses.asdict(shard) for shard in index.shards],
    }
    schema = arrow.schema([arrow.field(n, a.type, nullable=False) for n, a in zip(COLUMNS, arrays, strict=True)])
    full = schema.with_metadata({KEY: json.dumps(words, ensure_ascii=False).encode()})

    def write(file: Any) -> None:
        with parquet.ParquetWriter(
            file,
            full,
            compression="zstd",
            use_dictionary=False,
            column_encoding=dict.fromkeys(COLUMNS, "DELTA_BINARY_PACKED"),
            write_page_checksum=True,
        ) as writer:
            writer.write_table(arrow.Table.from_arrays(arrays, schema=full))

    return write


def stored_index(path: Paths, table: str, sizes: Mapping[str, int]) -> Index:
    """Return the index that a set has, which must fit its shards: their names and sizes."""
    name = inside(path, INDEX)
    index = read_index(name)
    if index.table != table:
        known = {"detections": "detections", "truth": "ground truth"}
        raise InputError(
            f"expected {known[table]}, but this set holds {known[index.table]}",
            file=str(path), remedy="name the ground truth first, then the detections",
        )  # fmt: skip
    listed = {shard.name: shard.size for shard in index.shards}
    for shard in sorted(listed.keys() | sizes.keys()):
        if shard not in sizes:
            problem = "is missing, but the index of the set lists it"
        elif shard not in listed:
            problem = "is not in the index of the set"
        elif sizes[shard] != listed[shard]:
            problem = f"has {sizes[shard]:,} bytes, but the index of the set says {listed[shard]:,}"
        else:
            continue
        raise InputError(problem, file=inside(path, shard), remedy=REMEDY)
    return index


def read_index(name: str) -> Index:
    """Return the index in a file, sound in itself."""
    _, parquet = pyarrow()
    problem = InputError("cannot be read as the index of a set", file=name, remedy=REMEDY)
    try:
        with open_remote(name) if is_url(name) else open_regular(name) as file:
            if file.read(len(UNFINISHED)) == UNFINISHED:
                raise InputError(
                    "the set is not complete: whoever wrote it was stopped", file=name, remedy="write the set again"
                )
            file.seek(0)
            table = parquet.ParquetFile(file, page_checksum_verification=True).read()
            words = json.loads((table.schema.metadata or {})[KEY])
            columns = [table.column(column).to_numpy().astype(np.int64, casting="safe") for column in COLUMNS]
            shards = tuple(
                ShardEntry(str(s["name"]), int(s["rows"]), int(s["size"]), str(s["footer"])) for s in words["shards"]
            )
    except InputError:
        raise
    except Exception as error:  # a damaged file may raise anything
        problem.problem += f" ({' '.join(str(error).split())[:200]})"
        raise problem from None
    if words.get("format") != FORMAT:
        problem_of = f"is of format {words.get('format')!r:.20}, this probox reads {FORMAT}"
        raise InputError(problem_of, file=name, remedy=f"use a newer probox, or {REMEDY}")
    if (
        words.get("table") != "index"
        or words.get("of") not in ("detections", "truth")
        or not _is_sound(columns, shards)
    ):
        raise problem
    kept = {word: words.get(word) for word in SHARED} | {"notes": words.get("notes", [])}
    if not _are_names(kept["classes"]) or not _are_names(kept["notes"]):
        raise problem
    return Index(words["of"], kept, shards, *columns)


def _are_names(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _is_sound(columns: list[Ids], shards: tuple[ShardEntry, ...]) -> bool:
    """Return whether rows ascend by image and group, each image in one shard that there is."""
    ids, numbers, groups, rows = columns
    if not shards or len({shard.name for shard in shards}) < len(shards):
        return False
    if not len(ids):
        return True
    same = ids[1:] == ids[:-1]
    ascending = (ids[1:] >= ids[:-1]) & (~same | ((numbers[1:] == numbers[:-1]) & (groups[1:] > groups[:-1])))
    within = numbers.min() >= 0 and numbers.max() < len(shards) and groups.min() >= 0 and rows.min() >= 1
    total = np.bincount(numbers, rows, len(shards)) if within else np.zeros(0)
    return bool(within and ascending.all() and _equal(total, (shard.rows for shard in shards)))


def _equal(total: npt.NDArray[Any], rows: Iterable[int]) -> bool:
    return [int(count) for count in total] == list(rows)
