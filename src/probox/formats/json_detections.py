"""What the two JSON formats of detections share: which files their writers replace, and covariances to write."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from probox.files.kinds import Kind, check_replaceable
from probox.files.output import json_bytes, write_files
from probox.files.reading import Paths, file_head
from probox.files.source import Source
from probox.formats.format import Copied
from probox.tables.detections import Detections

__all__ = ["JSON_DETECTIONS", "copier", "covariances_to_write"]


def _is_detections(path: Path) -> bool:
    head = file_head(path)
    if re.match(rb"\s*\[", head):
        return b'"image_id"' in head or not head.strip(b"[] \t\r\n")
    named = b'"classes"' in head and b'"img_names"' in head  # names of many images may fill the beginning
    return bool(re.match(rb"\s*\{", head)) and (b'"detections"' in head or named)


JSON_DETECTIONS = Kind("detections", _is_detections)
"""COCO results and RVC1 may replace each other."""


def copier(check: Callable[[bytes, str], None]) -> Callable[[Source, Paths, bool], Copied | None]:
    """Return what copies a file of detections, with or without compression, once `check` has looked at its content."""

    def copy(source: Source, target: Paths, repair: bool) -> Copied | None:
        if repair:
            return None
        data = source.content()
        check(data, source.name)
        check_replaceable(target, JSON_DETECTIONS)
        write_files({Path(target): json_bytes(Path(target), data)})
        return None, ()

    return copy


def covariances_to_write(found: Detections) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
    """Return covariances as (N, 8) and which rows to write; if all are zero all are written, to say so."""
    if found.covariances is None:
        return np.zeros((0, 8)), np.zeros(len(found), np.uint8)
    flat = found.covariances.reshape(-1, 8)
    some = flat.any(axis=1)
    return flat, np.asarray(some if some.any() else ~some, dtype=np.uint8)
