"""Detections of images done so far, kept on disk until all are done."""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from probox.detect.finding import ImageFile
from probox.detect.heatmaps import COLUMNS, pack_heatmaps, unpack_heatmaps
from probox.detect.uncertainty import Found
from probox.errors import InputError
from probox.files.output import write_files
from probox.files.staging import claim_alone, is_staging_name, named_errors, remove_if_empty, sweep
from probox.tables.detections import Detections

__all__ = ["Partial", "stamp_of"]

State = Literal["missing", "changed", "done"]


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


class Collected(NamedTuple):
    """What was kept of all images."""

    found: Detections
    sizes: dict[int, tuple[int, int]]
    remarks: dict[str, list[ImageFile]]
    """What is to be said of photos, and of which."""
    plain: npt.NDArray[np.float32] | None
    """With masks: the scores of all detections without any."""


class Partial:
    """Detections of images done so far, in a folder beside the output, which one run at a time may use.

    Parameters
    ----------
    out : path
        The output; the folder is called like it, and ``.partial``.
    settings : dict
        What decides the result besides the photos. A folder made with other settings is refused.
    """

    def __init__(self, out: Path, settings: dict[str, Any]) -> None:
        self.folder = out.with_name(out.name + ".partial")
        self._note = self.folder / "settings.json"
        self._lock = self.folder / "lock"
        self._described = json.loads(json.dumps(settings, default=str))
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
            before = json.loads(self._note.read_bytes())
        except (OSError, ValueError):
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
        kept = self._read(image) if self._file(image).exists() else None
        if kept is None:
            return "missing"
        return "done" if kept["photo"] == stamp_of(image) else "changed"

    def put(
        self, image: ImageFile, stamp: str, size: tuple[int, int], found: Found, remarks: Sequence[str] = ()
    ) -> None:
        """Keep this image's detections, the stamp that its photo had before it was read, and remarks on the photo."""
        table = found.detections
        columns = {name: getattr(table, name) for name in ("boxes", "label_probs", "labels", "scores")}
        if table.covariances is not None:
            columns["covariances"] = table.covariances
        if found.plain_scores is not None:
            columns["plain_scores"] = found.plain_scores
        columns |= pack_heatmaps(table.heatmaps)
        buffer = io.BytesIO()
        np.savez(buffer, size=np.array(size), photo=np.array(stamp), remarks=np.array(remarks, np.str_), **columns)
        write_files({self._file(image): buffer.getvalue()}, lasting=False)

    def _read(self, image: ImageFile) -> dict[str, Any] | None:
        """Return what is kept of an image, None if it can't be read."""
        try:
            with np.load(io.BytesIO(self._file(image).read_bytes()), allow_pickle=False) as columns:
                read = dict(columns)
            read["photo"] = str(read["photo"])
            return read if len(read.get("size", ())) == 2 and "boxes" in read else None
        except (OSError, ValueError, EOFError, KeyError, TypeError, BadZipFile, zlib.error):
            return None

    def collect(self, images: Sequence[ImageFile], classes: Sequence[str]) -> Collected:
        """Return all that was kept; every image must be there."""
        parts: list[dict[str, Any]] = []
        ids: list[Any] = []
        sizes: dict[int, tuple[int, int]] = {}
        remarks: dict[str, list[ImageFile]] = {}
        plain: list[Any] = []
        heatmaps: list[Any] = []
        for image in images:
            part = self._read(image)
            if part is None:
                raise InputError(
                    "the results of this image have disappeared",
                    file=str(self._file(image)),
                    image=image.image_id,
                    remedy="run the same command again, which does what is missing",
                )
            width, height = part.pop("size").tolist()
            del part["photo"]
            for remark in part.pop("remarks", np.zeros(0)).tolist():
                remarks.setdefault(remark, []).append(image)
            sizes[image.image_id] = (width, height)
            if "plain_scores" in part:
                plain.append(part.pop("plain_scores"))
            ids.append(np.full(len(part["boxes"]), image.image_id, np.int64))
            if COLUMNS[0] in part:
                heatmaps += unpack_heatmaps({name: part.pop(name) for name in COLUMNS}, (width, height))
            parts.append(part)
        joined: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        if heatmaps:
            joined["heatmaps"] = heatmaps
        found = Detections(classes=tuple(classes), image_ids=np.concatenate(ids), **joined)
        return Collected(found, sizes, remarks, np.concatenate(plain) if plain else None)

    def remove(self) -> None:
        """Remove what was kept: the output is written. Anything else in the folder stays, and the folder with it."""
        self._removed = True
        self._clear()

    def _clear(self) -> None:
        for path in [*self.folder.glob("*.npz"), self._note, self._lock]:
            if path.stem.lstrip("-").isdigit() or path in (self._note, self._lock):
                path.unlink(missing_ok=True)
        remove_if_empty(self.folder)
