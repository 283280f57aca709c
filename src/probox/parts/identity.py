"""Whether two parts are of one whole: hashes of what was evaluated."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["hash_of_inputs", "hash_of_table"]

_WORDS = ("source", "notes")
"""What a table says of itself; the same objects and detections may come from files of other names."""


def hash_of_table(table: GroundTruth | Detections) -> str:
    """Return a text that differs between tables that differ in any number, name or class."""
    digest = hashlib.sha256(type(table).__name__.encode())
    _add(digest, table)
    return digest.hexdigest()


def hash_of_inputs(truth: str, found: str, *, repair: bool) -> str:
    """Return one hash of those of ground truth and detections, and of whether covariances were repaired."""
    return hashlib.sha256(f"{truth} {found} {repair}".encode()).hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Add a value to a digest: an array, a table, or something that prints alike if it is alike."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes() if value.size else b"")
        return
    if isinstance(value, tuple) and any(hasattr(entry, "__array__") for entry in value):
        digest.update(f"tuple{len(value)}".encode())
        for entry in value:  # heatmaps, also those in files: printing an array leaves out most of it
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
