"""Detections of images done so far, kept on disk until all are done."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from probox.detect.image_files import ImageFile
from probox.detect.network_input import pack_heatmaps, unpack_heatmaps
from probox.detect.uncertainty import Found
from probox.errors import InputError
from probox.evaluation.archive import Column, read_members, to_stored, write_archive
from probox.files.output import write_files
from probox.files.reading import open_regular, read_regular
from probox.files.staging import claim_alone, is_staging_name, named_errors, remove_if_empty, sweep
from probox.tables.columns import columns_of
from probox.tables.dataset import is_image_size
from probox.tables.detections import Detections

__all__ = ["Partial", "stamp_of"]

State = Literal["missing", "changed", "done"]

MOST_SETTINGS = 1 << 20
"""Limit of the settings in bytes."""
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
    remarks: list[str]
    columns: dict[str, Any]
    """Those of the table of detections."""
    plain: npt.NDArray[np.float32] | None


class Collected(NamedTuple):
    """What was kept of all images."""

    found: Detections
    sizes: dict[int, tuple[int, int]]
    remarks: dict[str, list[ImageFile]]
    """What is to be said of photos, and of which."""
    plain: npt.NDArray[np.float32] | None
    """With masks: the scores of all detections without any, and of the same ones with masks."""


class Partial:
    """Detections of images done so far, in a folder beside the output, which one run at a time may use.

    Parameters
    ----------
    out : path
        The output; the folder is called like it, and ``.partial``.
    settings : dict
        What decides the result besides the photos. A folder made with other settings is refused.
    classes : sequence of str
        Those of the detector.

    Files in the folder may come from anywhere: links, pipes and devices are refused, and the detections of an image
    that are not a table of this detector are made again.
    """

    def __init__(self, out: Path, settings: dict[str, Any], classes: Sequence[str] = ()) -> None:
        self.folder = out.with_name(out.name + ".partial")
        self._note = self.folder / "settings.json"
        self._lock = self.folder / "lock"
        self._described = json.loads(json.dumps(settings, default=str))
        self._classes = tuple(classes)
        self._schema = _make_schema(len(self._classes))
        self._claim: int | None = None
        self._removed = False

    def __enter__(self) -> Partial:
        with named_errors(self.folder):
            self._refuse_others()
            self._take()
        try:
            self._check_settings()
            sweep(self.folder)
        except BaseException:
            if not self._note.exists():  # not even that could be written
                self._clear()
            self._give_up()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        if not self._removed and not any(self.folder.glob("*.npz")):  # once removed, it may be the next run's
            self.remove()  # nothing to go on from
        self._give_up()

    def _refuse_others(self) -> None:
        """Raise if a folder of this name is there that no run made.

        One that was stopped while it wrote its settings or a result, or is just writing them, has a hidden folder.
        """
        if not os.path.lexists(self.folder):
            return
        inside = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else {"not a folder"}
        inside = {name for name in inside if not is_staging_name(name)}
        if self.folder.is_symlink() or not (inside <= {self._lock.name} or self._note.name in inside):
            raise InputError(
                "is in the way: kept results of `probox detect` would go here",
                file=str(self.folder),
                remedy="move it away, or choose another output",
            )
        for path in (self._lock, self._note):
            if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
                raise InputError(
                    "expected a file, but this is a link, a pipe or a folder", file=str(path), remedy=_AGAIN
                )

    def _take(self) -> None:
        """Claim the folder for this process, whose end gives it up again."""
        busy = InputError(
            "another run is working on this output",
            file=str(self.folder),
            remedy="wait for it, or choose another output",
        )
        while True:
            self.folder.mkdir(exist_ok=True)
            try:
                self._claim = claim_alone(self._lock, busy)
                return
            except FileNotFoundError:
                continue  # another run has just ended and removed it
            except OSError:
                remove_if_empty(self.folder)
                raise

    def _give_up(self) -> None:
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def _check_settings(self) -> None:
        if not self._note.exists():
            write_files({self._note: json.dumps(self._described, indent=1).encode()})
            return
        try:
            before = json.loads(read_regular(self._note, most=MOST_SETTINGS, follow=False))
        except (ValueError, RecursionError):
            before = None
        if before != self._described:
            raise InputError(
                "an interrupted run with other settings left its results here",
                file=str(self.folder),
                remedy="delete this folder, or choose another output",
            )

    def _file(self, image: ImageFile) -> Path:
        return self.folder / f"{image.image_id}.npz"

    def state_of(self, image: ImageFile) -> State:
        """Return whether this image is done, and its photo still the same; what a power cut left does not count."""
        kept = self._read(image)
        if kept is None:
            return "missing"
        return "done" if kept.photo == stamp_of(image) else "changed"

    def put(
        self, image: ImageFile, stamp: str, size: tuple[int, int], found: Found, remarks: Sequence[str] = ()
    ) -> None:
        """Keep this image's detections, the stamp that its photo had before it was read, and remarks on the photo."""
        columns = {name: value for name in _TABLE if (value := getattr(found.detections, name)) is not None}
        if found.plain_scores is not None:
            columns["plain_scores"] = found.plain_scores
        columns |= pack_heatmaps(found.detections.heatmaps)
        columns |= {"size": np.array([size]), "photo": np.array([stamp]), "remarks": np.array(remarks, np.str_)}
        buffer = io.BytesIO()
        write_archive(buffer, to_stored(columns, self._schema), compressed=False)
        write_files({self._file(image): buffer.getvalue()}, lasting=False)

    def _read(self, image: ImageFile) -> _Kept | None:
        """Return what is kept of an image, None if there is nothing, or nothing that a detector could have found."""
        path = self._file(image)
        if not os.path.lexists(path):
            return None
        with open_regular(path, remedy=_AGAIN, follow=False) as file:
            try:
                columns = read_members(file, os.fstat(file.fileno()).st_size, str(path), schema=self._schema)
                return self._check_columns(columns, image.image_id)
            except (ValueError, KeyError):  # InputError, too
                return None

    def _check_columns(self, columns: dict[str, Any], image_id: int) -> _Kept:
        """Return the columns of a file; raise ValueError if they are not those of an image."""
        if any(columns[name].view(np.uint32).max(initial=0) > sys.maxunicode for name in ("photo", "remarks")):
            raise ValueError("no text")
        ((width, height),) = columns.pop("size").tolist()
        (photo,) = columns.pop("photo").tolist()
        remarks = columns.pop("remarks").tolist()
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
        return _Kept(photo, (width, height), remarks, columns, plain)

    def collect(self, images: Sequence[ImageFile]) -> Collected:
        """Return all that was kept; every image must be there."""
        parts: list[_Kept] = []
        remarks: dict[str, list[ImageFile]] = {}
        for image in images:
            part = self._read(image)
            if part is None or (parts and _list_columns(part) != _list_columns(parts[0])):
                raise InputError(
                    "the results of this image have disappeared"
                    if part is None
                    else "the results of this image have other columns than those before it",
                    file=str(self._file(image)),
                    image=image.image_id,
                    remedy="run the same command again, which does what is missing" if part is None else _AGAIN,
                )
            for remark in part.remarks:
                remarks.setdefault(remark, []).append(image)
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
        return Collected(found, sizes, remarks, np.concatenate(plain) if plain else None)

    def remove(self) -> None:
        """Remove what was kept: the output is written. Anything else in the folder stays, and the folder with it."""
        self._removed = True
        self._clear()

    def _clear(self) -> None:
        for path in [*self.folder.glob("*.npz"), self._note, self._lock]:
            if path.stem.lstrip("-").isdigit() or path in (self._note, self._lock):
                with suppress(OSError):  # a folder that somebody has put there
                    path.unlink(missing_ok=True)
        remove_if_empty(self.folder)


def _list_columns(part: _Kept) -> tuple[set[str], bool]:
    return set(part.columns), part.plain is None


def _make_schema(classes: int) -> dict[str, Column]:
    """Return what the arrays of an image must be."""
    schema = {
        "size": Column("<i8", (2,), "image"), "photo": Column("U", (), "image"), "remarks": Column("U", (), "remarks"),
        "plain_scores": Column("<f4", (2,), "without masks", optional=True),
        "windows": Column("<i8", (4,), "detections", optional=True), "heat": Column("<f2", (), "heat", optional=True),
    }  # fmt: skip
    declared = columns_of(Detections)
    for name in _TABLE:
        row = tuple(classes if size == "classes" else int(size) for size in declared[name].row)
        dtype = declared[name].dtype.newbyteorder("<").str
        schema[name] = Column(dtype, row, "detections", optional=name == "covariances")
    return schema
