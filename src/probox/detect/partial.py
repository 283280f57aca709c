"""Detections of images done so far, kept on disk until all are done."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from probox.detect.image_files import ImageFile
from probox.detect.network_input import pack_heatmaps, unpack_heatmaps
from probox.detect.uncertainty import Found
from probox.errors import InputError
from probox.evaluation.archive import ArchiveColumn, read_arrays, to_stored, write_archive
from probox.files.checkpoint import Checkpoint
from probox.tables.dataset import is_image_size
from probox.tables.detections import Detections
from probox.tables.table import columns_of

State = Literal["missing", "changed", "done"]

_TABLE = ("boxes", "label_probs", "labels", "scores", "covariances")
_AGAIN = "delete it, and run the same command again"


def stamp_of(image: ImageFile) -> str:
    """Return what tells a photo from one that has taken its place: where it is, its bytes and when it was written.

    The size that the truth says belongs to it, since it decides how the photo is turned.
    """
    try:
        status = image.path.stat()
        written = [status.st_size, status.st_mtime_ns]
    except OSError:
        written = []
    return json.dumps([str(image.path.resolve()), *written, image.size])


class _Kept(NamedTuple):
    """What was kept of one image."""

    photo: str
    size: tuple[int, int]
    traits: list[str]
    columns: dict[str, Any]
    """Those of the table of detections."""
    plain: npt.NDArray[np.float32] | None


class Collected(NamedTuple):
    """What was kept of all images."""

    found: Detections
    sizes: dict[int, tuple[int, int]]
    traits: dict[str, list[ImageFile]]
    """What is to be said of photos, and of which."""
    plain: npt.NDArray[np.float32] | None
    """With masks: the scores of all detections without any, and of the same ones with masks."""


class Partial(Checkpoint):
    """Detections of images done so far, in a folder beside the output.

    Parameters
    ----------
    out : path
        The output; the folder is called like it, and ``.partial``.
    settings : dict
        What decides the result besides the photos.
    classes : sequence of str
        Those of the detector.

    What is kept of an image and is not a table of this detector is made again.
    """

    def __init__(self, out: Path, settings: dict[str, Any], classes: Sequence[str] = ()) -> None:
        super().__init__(out.with_name(out.name + ".partial"), settings, r"-?\d+\.npz")
        self._classes = tuple(classes)
        self._schema = _make_schema(len(self._classes))

    def state_of(self, image: ImageFile) -> State:
        """Return whether this image is done, and its photo still the same; what a power cut left does not count."""
        kept = self._load(image)
        if kept is None:
            return "missing"
        return "done" if kept.photo == stamp_of(image) else "changed"

    def put(
        self, image: ImageFile, stamp: str, size: tuple[int, int], found: Found, traits: Sequence[str] = ()
    ) -> None:
        """Keep this image's detections, the stamp that its photo had before it was read, and traits of the photo."""
        columns = {name: value for name in _TABLE if (value := getattr(found.detections, name)) is not None}
        if found.plain_scores is not None:
            columns["plain_scores"] = found.plain_scores
        columns |= pack_heatmaps(found.detections.heatmaps)
        columns |= {"size": np.array([size]), "photo": np.array([stamp]), "traits": np.array(traits, np.str_)}
        buffer = io.BytesIO()
        write_archive(buffer, to_stored(columns, self._schema), compressed=False)
        self.write(_file_name(image), buffer.getvalue())

    def _load(self, image: ImageFile) -> _Kept | None:
        """Return what is kept of an image, None if there is nothing, or nothing that a detector could have found."""
        data = self.read(_file_name(image))
        if data is None:
            return None
        try:
            columns = read_arrays(io.BytesIO(data), str(self.folder / _file_name(image)), self._schema)
            return self._check_columns(columns, image.image_id)
        except (ValueError, KeyError):  # InputError, too
            return None

    def _check_columns(self, columns: dict[str, Any], image_id: int) -> _Kept:
        """Return the columns of a file; raise ValueError if they are not those of an image."""
        if any(columns[name].view(np.uint32).max(initial=0) > sys.maxunicode for name in ("photo", "traits")):
            raise ValueError("no text")
        ((width, height),) = columns.pop("size").tolist()
        (photo,) = columns.pop("photo").tolist()
        traits = columns.pop("traits").tolist()
        plain = columns.pop("plain_scores", None)
        if not is_image_size(width, height):
            raise ValueError("no size of an image")
        if plain is not None and not ((plain >= 0) & (plain <= 1)).all():
            raise ValueError("scores outside 0 to 1")
        packed: dict[str, Any] = {name: columns.pop(name) for name in ("windows", "heat") if name in columns}
        if packed:
            columns["heatmaps"] = unpack_heatmaps(packed, (width, height))
        ids = np.full(len(columns["boxes"]), image_id, np.int64)
        Detections(classes=self._classes, image_ids=ids, **columns)
        return _Kept(photo, (width, height), traits, columns, plain)

    def collect(self, images: Sequence[ImageFile]) -> Collected:
        """Return all that was kept; every image must be there."""
        parts: list[_Kept] = []
        traits: dict[str, list[ImageFile]] = {}
        for image in images:
            part = self._load(image)
            if part is None or (parts and _list_columns(part) != _list_columns(parts[0])):
                raise InputError(
                    "the results of this image have disappeared"
                    if part is None
                    else "the results of this image have other columns than those before it",
                    file=str(self.folder / _file_name(image)),
                    image=image.image_id,
                    remedy="run the same command again, which does what is missing" if part is None else _AGAIN,
                )
            for trait in part.traits:
                traits.setdefault(trait, []).append(image)
            parts.append(part)
        tables = [part.columns for part in parts]
        joined: dict[str, Any] = {
            name: np.concatenate([table[name] for table in tables]) for name in _TABLE if name in tables[0]
        }
        if any(table.get("heatmaps") for table in tables):
            joined["heatmaps"] = [heatmap for table in tables for heatmap in table["heatmaps"]]
        ids = np.repeat([image.image_id for image in images], [len(table["boxes"]) for table in tables])
        found = Detections(classes=self._classes, image_ids=ids, **joined)
        sizes = {image.image_id: part.size for image, part in zip(images, parts, strict=True)}
        plain = [part.plain for part in parts if part.plain is not None]
        return Collected(found, sizes, traits, np.concatenate(plain) if plain else None)


def _file_name(image: ImageFile) -> str:
    return f"{image.image_id}.npz"


def _list_columns(part: _Kept) -> tuple[set[str], bool]:
    return set(part.columns), part.plain is None


def _make_schema(classes: int) -> dict[str, ArchiveColumn]:
    """Return what the arrays of an image must be."""
    schema = {
        "size": ArchiveColumn("<i8", (2,), "image"),
        "photo": ArchiveColumn("U", (), "image"),
        "traits": ArchiveColumn("U", (), "traits"),
        "plain_scores": ArchiveColumn("<f4", (2,), "without masks", optional=True),
        "windows": ArchiveColumn("<i8", (4,), "detections", optional=True),
        "heat": ArchiveColumn("<f2", (), "heat", optional=True),
    }
    declared = columns_of(Detections)
    for name in _TABLE:
        row = tuple(classes if size == "classes" else int(size) for size in declared[name].row)
        dtype = declared[name].dtype.newbyteorder("<").str
        schema[name] = ArchiveColumn(dtype, row, "detections", optional=name == "covariances")
    return schema
