"""Detections into files, whole or not at all: RVC1 JSON and COCO results."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from probox.detect.classes import COCO_CATEGORY_IDS, COCO_CLASSES
from probox.detect.images import ImageFile
from probox.detections import Detections
from probox.errors import InputError

__all__ = ["atomic_file", "check_output", "save_detections"]

DECIMALS = 7
"""Decimals of label probabilities: as much as float32 holds, and files of half the size."""


def check_output(path: str | Path) -> None:
    """Raise if `save_detections` could not write this file, before any work is done."""
    _writer_of(Path(path))
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise InputError("the folder of this file does not exist", file=str(path), remedy="make it first")


def save_detections(path: str | Path, found: Detections, images: Sequence[ImageFile]) -> None:
    """Write detections of `images`, in the format that the file name asks for.

    ``*.coco.json`` and ``*.bbox.json`` are COCO results with ``all_scores`` and ``covars``; any other ``*.json`` is
    RVC1. The file appears only when it is complete.
    """
    writer = _writer_of(Path(path))
    with atomic_file(Path(path)) as stream:
        writer(stream, found, images)


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Give a binary stream whose content becomes the file at `path` at the end, unless something raises."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.resolve().parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)  # as any other new file, not private as temporary files are
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _writer_of(path: Path) -> Callable[[IO[bytes], Detections, Sequence[ImageFile]], None]:
    name = path.name.lower()
    if name.endswith((".coco.json", ".bbox.json")):
        return _write_coco
    if name.endswith(".json"):
        return _write_rvc1
    raise InputError("can't tell a format from this file name", file=str(path), remedy="use .json or .coco.json")


def _rows_by_image(found: Detections, images: Sequence[ImageFile]) -> Iterator[tuple[ImageFile, Detections]]:
    order = np.argsort(found.image_ids, kind="stable")
    ids = found.image_ids[order]
    for image in images:
        first, last = np.searchsorted(ids, [image.image_id, image.image_id + 1])
        yield image, found.select(order[first:last])


def _write_rvc1(stream: IO[bytes], found: Detections, images: Sequence[ImageFile]) -> None:
    """One list for each image, in their order: an image without detections, or unreadable, has an empty one."""
    encode = msgspec.json.Encoder().encode
    head = {"classes": list(found.classes), "img_names": [image.path.name for image in images]}
    stream.write(encode(head)[:-1] + b',"detections":[')
    for number, (_, own) in enumerate(_rows_by_image(found, images)):
        entries: list[dict[str, Any]] = [
            {"bbox": box, "label_probs": probs}
            for box, probs in zip(own.boxes.tolist(), _rounded(own.label_probs), strict=True)
        ]
        if own.covariances is not None:
            for entry, covariance in zip(entries, own.covariances.tolist(), strict=True):
                entry["covars"] = covariance
        stream.write((b"," if number else b"") + encode(entries))
    stream.write(b"]}")


def _write_coco(stream: IO[bytes], found: Detections, images: Sequence[ImageFile]) -> None:
    encode = msgspec.json.Encoder().encode
    categories = category_ids(found.classes)
    in_order = np.argsort(categories)  # all_scores come in order of category id
    stream.write(b"[")
    separator = b""
    for image, own in _rows_by_image(found, images):
        scores = _rounded(own.label_probs[:, in_order])
        for row in range(len(own)):
            x1, y1, x2, y2 = own.boxes[row].tolist()
            entry: dict[str, Any] = {
                "image_id": image.image_id,
                "category_id": int(categories[own.labels[row]]),
                "bbox": [x1, y1, x2 - x1, y2 - y1],
                "score": round(float(own.scores[row]), DECIMALS),
                "all_scores": scores[row],
            }
            if own.covariances is not None:
                entry["covars"] = own.covariances[row].tolist()
            stream.write(separator + encode(entry))
            separator = b",\n"
    stream.write(b"]\n")


def category_ids(classes: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return COCO's category ids of its classes, or 1, 2... for any others."""
    if tuple(classes) == COCO_CLASSES:
        return np.array(COCO_CATEGORY_IDS, np.int64)
    return np.arange(1, len(classes) + 1, dtype=np.int64)


def _rounded(probs: np.ndarray[Any, np.dtype[np.float32]]) -> list[list[float]]:
    rows: list[list[float]] = np.round(probs.astype(np.float64), DECIMALS).tolist()
    return rows


def write_json(path: Path, value: Any) -> None:
    """Write a small JSON file, whole or not at all."""
    with atomic_file(path) as stream:
        stream.write(json.dumps(value, indent=1).encode())
