"""Parts that are done, kept in a folder that all workers see until the whole is done: a killed run loses none."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from probox.errors import InputError
from probox.files.output import write_files
from probox.files.reading import read_regular
from probox.files.remote import inside, is_url, open_remote, remote_files, remove_remote, write_remote
from probox.files.staging import claim_alone, folder_made, is_staging_name, named_errors, remove_if_empty, sweep

__all__ = ["NOTE", "KeptParts", "PartsFolder", "part_name", "parts_before", "parts_kept"]

NOTE = "settings.json"
"""The file that says what the parts in a folder are parts of."""
MOST_NOTE = 1 << 20
"""Limit of this file in bytes."""
_LOCK = "lock"
_PART = re.compile(r"part-\d{5,}-of-\d{5,}\.probox")
_WORDS = {
    "probox": "by another version of probox",
    "truth": "of other ground truth",
    "found": "of other detections",
    "images": "of other images",
    "parts": "of another number of parts",
    "convention": "by another convention",
    "measures": "for other measures",
    "keep": "of which more or less was kept",
    "repair": "with covariances repaired otherwise",
}
"""What a run may differ in from that which left its parts, in words."""
_REMEDY = "give the same again, delete this folder, or choose another"


def part_name(number: int, of: int) -> str:
    """Return the name of the file that holds a part.

    >>> part_name(3, 16)
    'part-00003-of-00016.probox'
    """
    return f"part-{number:05d}-of-{of:05d}.probox"


class PartsFolder:
    """A folder or URL as its files by name: what workers need of it, small enough to be sent with every task."""

    def __init__(self, place: str, mark: str = "") -> None:
        self.place = place
        self.mark = mark
        """The digest of the note, by which a worker knows that it sees the same folder."""

    def path(self, name: str) -> str:
        return inside(self.place, name)

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes, None if there is no such file."""
        if is_url(self.place):
            if remote_files(self.path(name)) is None:
                return None
            with open_remote(self.path(name)) as file:
                return file.read()
        if not os.path.lexists(self.path(name)):
            return None
        most = None if _PART.fullmatch(name) else MOST_NOTE
        return read_regular(self.path(name), most=most, remedy="delete it", follow=False)

    def write(self, name: str, data: bytes) -> None:
        """Write a file: made aside and moved into place, where the place has files that can be moved."""
        if is_url(self.place):
            write_remote(self.path(name), data)
        else:
            write_files({Path(self.path(name)): data}, lasting=False)

    def names(self) -> set[str]:
        """Return the names of all files in it."""
        if is_url(self.place):
            return set(remote_files(self.place) or ())
        with named_errors(Path(self.place)):
            return {entry.name for entry in os.scandir(self.place)} if os.path.isdir(self.place) else set()

    def remove(self, name: str) -> None:
        if is_url(self.place):
            remove_remote(self.path(name))
        else:
            with suppress(FileNotFoundError):
                os.unlink(self.path(name))

    def check_seen(self) -> None:
        """Raise unless this process sees the note of the run: on another machine the same path may be another place."""
        if _mark(self.read(NOTE) or b"") != self.mark:
            raise InputError(
                f"the Dask worker on {socket.gethostname()} does not see this folder, in which finished parts are kept",
                file=self.place,
                remedy="keep parts in a folder that all machines share, or at a URL, or nowhere",
            )


class KeptParts:
    """The folder of one run, which has it for itself; a context manager.

    Parameters
    ----------
    place : path or URL
        The folder; it is made if it is missing.
    settings : dict
        What decides the parts: what is read, and how it is measured. Parts of another run are refused.
    resume : bool
        Go on with the parts that an earlier run left. Otherwise such a folder is refused.
    """

    def __init__(self, place: str, settings: dict[str, Any], *, resume: bool) -> None:
        self.folder = PartsFolder(place)
        self._settings = json.loads(json.dumps(settings, default=str))
        self._resume = resume
        self._claim: int | None = None

    def __enter__(self) -> KeptParts:
        local = not is_url(self.folder.place)
        self._check_free()  # first, so that nothing is put into a folder of somebody else
        if local:
            self._take()
        try:
            self._check()
            if local:
                sweep(Path(self.folder.place))
            data = json.dumps(self._settings, indent=1).encode()
            self.folder.write(NOTE, data)
            self.folder.mark = _mark(data)
        except BaseException:
            self._give_up()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        with suppress(InputError):  # whatever ended the run is what is to be said
            names = self.folder.names()
            if NOTE in names and not self._own(names):
                self.remove()  # nothing to go on from
        self._give_up()

    def remove(self) -> None:
        """Remove the parts, since the whole is done. Anything else in the folder stays, and the folder with it."""
        names = self.folder.names()
        for name in [*self._own(names), *({NOTE, _LOCK} & names)]:
            self.folder.remove(name)
        if not is_url(self.folder.place):
            sweep(Path(self.folder.place))  # what a worker was writing when it was killed
            remove_if_empty(Path(self.folder.place))

    @staticmethod
    def _own(names: set[str]) -> list[str]:
        return sorted(name for name in names if _PART.fullmatch(name))

    def _check_free(self) -> None:
        """Raise if the folder is somebody else's: it has no note, or one that no run wrote, but other things."""
        names = self.folder.names()
        note = self.folder.read(NOTE)
        strange = {name for name in names if name not in (NOTE, _LOCK) and not is_staging_name(name)}
        foreign = strange if note is None else not self._own(names) and not _described(note).keys() >= _WORDS.keys()
        if foreign or (_LOCK in names and self.folder.read(_LOCK)):
            raise InputError(
                "holds other things than parts of a run", file=self.folder.place, remedy="choose an empty folder"
            )

    def _check(self) -> None:
        """Raise if the folder is somebody else's, or of another run."""
        self._check_free()
        names = self.folder.names()
        note = self.folder.read(NOTE)
        if not self._own(names):
            return
        if not self._resume:
            raise InputError(
                f"holds {len(self._own(names))} finished parts of an earlier run",
                file=self.folder.place,
                remedy="go on with them with resume=True, or delete this folder",
            )
        before = _described(note or b"")
        for key, words in _WORDS.items():
            if before.get(key) != self._settings.get(key):
                raise InputError(f"holds parts {words}", file=self.folder.place, remedy=_REMEDY)

    def _take(self) -> None:
        """Claim the folder for this process, whose end gives it up again."""
        place = Path(self.folder.place)
        if place.is_symlink() and not place.is_dir():
            raise InputError("is a link that leads nowhere", file=str(place), remedy="choose another folder")
        busy = InputError(
            "another run keeps its parts here", file=str(place), remedy="wait for it, or choose another folder"
        )
        while True:
            with folder_made(place), named_errors(place):
                try:
                    self._claim = claim_alone(place / _LOCK, busy)
                    return
                except FileNotFoundError:
                    continue  # another run has just ended and removed it

    def _give_up(self) -> None:
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None


def parts_before(place: str) -> int | None:
    """Return how many parts the run was cut into that left a folder; None if none did."""
    parts = _described(PartsFolder(place).read(NOTE) or b"").get("parts")
    return parts if type(parts) is int and parts > 0 else None


def parts_kept(place: str) -> tuple[int, int]:
    """Return how many finished parts a folder holds, and of how many."""
    own = [name for name in PartsFolder(place).names() if _PART.fullmatch(name)]
    return len(own), parts_before(place) or 0


def _described(note: bytes) -> dict[str, Any]:
    try:
        before = json.loads(note)
    except (ValueError, RecursionError):
        return {}
    return before if isinstance(before, dict) else {}


def _mark(note: bytes) -> str:
    return hashlib.sha256(note).hexdigest()
