"""What is evaluated in parts: sets of which workers read what they need, files that they read whole, or tables."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.evaluation.inputs import hash_table
from probox.evaluation.notes import said_by_part
from probox.evaluation.parts import images_of_part
from probox.files.reading import Paths
from probox.files.remote import is_url
from probox.files.source import Source
from probox.formats.parquet.format import PARQUET_DETECTIONS, PARQUET_TRUTH
from probox.formats.parquet.sets import is_parquet_source, open_detections, open_truth
from probox.formats.reading import read_truth
from probox.formats.registry import format_of_detections, format_of_truth
from probox.tables.arguments import expect_path
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["Input", "forget_inputs", "given_found", "given_truth", "held", "place_of", "tables_of_part"]

Ids = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Input:
    """Ground truth or detections as they were given, and what a run must know of them beforehand.

    Parameters
    ----------
    given : table, or str
        The table; or the path as workers are to read it, who may have another current folder.
    shown : str
        What messages and results call it.
    stamp : dict
        What tells it from another that has taken its place, for JSON.
    by_need : bool
        Whether it can be read by images, as Parquet can; other files are read whole.
    image_ids : array, optional
        Of a truth: the ids of its images.
    shards : int, optional
        Of a set of shards: how many.
    """

    given: Any
    shown: str
    stamp: dict[str, Any]
    by_need: bool = False
    image_ids: Ids | None = None
    shards: int | None = None

    @property
    def is_table(self) -> bool:
        return isinstance(self.given, GroundTruth | Detections)


def given_truth(truth: GroundTruth | Paths) -> Input:
    """Return a truth of which the image ids are known."""
    if isinstance(truth, GroundTruth):
        return Input(truth, truth.source, _table_stamp(truth), image_ids=truth.image_ids)
    expect_path(truth, "truth", "give a table or the name of a file")
    if is_parquet_source(truth) and format_of_truth(Source(truth)) is PARQUET_TRUTH:
        opened = open_truth(truth)
        stamp = {"fingerprint": opened.fingerprint()}
        return Input(place_of(truth), opened.source, stamp, by_need=True, image_ids=opened.image_ids)
    read = read_truth(truth)
    # By what was read: a data.yaml names other files, which may change while it stays.
    return Input(place_of(truth), read.source, _table_stamp(read), image_ids=read.image_ids)


def given_found(found: Detections | Paths) -> Input:
    """Return detections, unread unless they are a table."""
    if isinstance(found, Detections):
        return Input(found, found.source, _table_stamp(found))
    expect_path(found, "found", "give a table or the name of a file")
    if is_parquet_source(found) and format_of_detections(Source(found)) is PARQUET_DETECTIONS:
        opened = open_detections(found)
        shards = getattr(opened, "shards", None)
        return Input(place_of(found), opened.name, {"fingerprint": opened.fingerprint()}, by_need=True, shards=shards)
    return Input(place_of(found), str(found), _file_stamp(found))


def place_of(path: Paths) -> str:
    """Return a path or URL that means the same in every current folder.

    >>> place_of("s3://bucket/found")
    's3://bucket/found'
    """
    return str(path) if is_url(path) else os.path.abspath(path)


def _table_stamp(table: GroundTruth | Detections) -> dict[str, Any]:
    return {"table": hash_table(table)}


def _file_stamp(path: Paths) -> dict[str, Any]:
    """Return where a file or folder is, how many bytes its files have and when they were written."""
    place = place_of(path)
    if not os.path.isdir(place):
        return {"path": place, "written": _written(place)}
    digest = hashlib.sha256()
    for found in sorted(Path(place).rglob("*")):
        digest.update(repr((found.relative_to(place).as_posix(), *_written(found))).encode(errors="surrogatepass"))
    return {"path": place, "files": digest.hexdigest()}


def _written(path: str | Path) -> list[int]:
    try:
        status = os.stat(path)
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]


def tables_of_part(truth: GroundTruth, found: Detections, number: int, of: int) -> tuple[GroundTruth, Detections]:
    """Return what one part of two tables is about.

    Notes that count something in all of them, and detections in images that the truth does not have, belong to the
    first part alone: counts of parts add up.
    """
    ids = images_of_part(truth.image_ids, number, of)
    own = np.isin(found.image_ids, ids)
    if number == 1:
        own |= truth.dataset.rows_of(found.image_ids) < 0
    there, seen = truth.select_images(ids), found.select(own)
    return (
        dataclasses.replace(there, notes=said_by_part(truth.notes, first=number == 1)),
        dataclasses.replace(seen, notes=said_by_part(found.notes, first=number == 1)),
    )


# --- in the processes of workers ---

_HELD: OrderedDict[str, Any] = OrderedDict()
_HOLDING = threading.Lock()
_MOST = 2
"""So many inputs are held by a process: those of one run, and of another if two take turns."""


def held(key: str, make: Callable[[], Any]) -> Any:
    """Return what `make` returns, made once by a process: parts of one file need not read it again."""
    with _HOLDING:  # threads of a worker wait for the one that reads
        if key not in _HELD:
            while len(_HELD) >= _MOST:
                _HELD.popitem(last=False)
            _HELD[key] = make()
        _HELD.move_to_end(key)
        return _HELD[key]


def forget_inputs() -> None:
    """Let go of what a process holds: the run is over."""
    with _HOLDING:
        _HELD.clear()
