"""Finished pieces of a run, kept in a folder beside its output, so that an interrupted run can continue."""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from probox.errors import InputError
from probox.files.output import named_errors, put_content, remove_if_empty
from probox.files.reading import read_regular

if TYPE_CHECKING:
    from typing_extensions import Self

_SETTINGS, _LOCK, _UNFINISHED = "settings.json", "lock", ".new"
_MOST_SETTINGS = 1 << 20
"""Limit of the settings in bytes."""


class Checkpoint:
    """A folder of finished pieces, used by one run at a time; a context manager.

    Parameters
    ----------
    folder : path
        The folder. It is removed on exit if it holds no pieces.
    settings : dict
        Everything that determines the pieces. A folder with other settings is refused.
    pattern : str
        Regular expression for the names of pieces.

    Files in the folder are untrusted: links, pipes and devices are refused, and so are folders that no run created.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], pattern: str) -> None:
        self.folder = folder
        self._settings = json.loads(json.dumps(settings, default=str))
        self._pattern = re.compile(pattern)
        self._lock = FileLock(folder / _LOCK, timeout=0)
        self._removed = False

    def __enter__(self) -> Self:
        with named_errors(self.folder):
            self._refuse_others()
            self._take()
            try:
                self._check_settings()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *failure: object) -> None:
        if not self._removed and not self.names():
            self.remove()
        self._lock.release(force=True)

    def names(self) -> list[str]:
        """Return the names of the stored pieces."""
        with suppress(OSError):
            return sorted(name for name in os.listdir(self.folder) if self._pattern.fullmatch(name))
        return []

    def read(self, name: str) -> bytes | None:
        """Return a piece, or None if it is missing."""
        path = self.folder / name
        if not os.path.lexists(path):
            return None
        return read_regular(path, remedy="delete it, and run the same command again", follow=False)

    def write(self, name: str, data: bytes) -> None:
        """Store a piece atomically; it is not synced to disk."""
        unfinished = self.folder / (name + _UNFINISHED)
        with named_errors(self.folder / name):
            unfinished.unlink(missing_ok=True)  # left by a killed run; opening a link would follow it
            put_content(unfinished, data, lasting=False)
            os.replace(unfinished, self.folder / name)

    def remove(self) -> None:
        """Remove the stored pieces after the output is written. Other files stay, and the folder with them."""
        self._removed = True
        with suppress(OSError):
            for path in list(self.folder.iterdir()):
                name = path.name.removesuffix(_UNFINISHED)
                if name in (_SETTINGS, _LOCK) or self._pattern.fullmatch(name):
                    with suppress(OSError):  # a folder of this name
                        path.unlink()
        remove_if_empty(self.folder)

    def _refuse_others(self) -> None:
        """Raise if the folder was not created by a run."""
        if not os.path.lexists(self.folder):
            return
        known = {_LOCK, _SETTINGS + _UNFINISHED}
        inside = set(os.listdir(self.folder)) if self.folder.is_dir() else {"not a folder"}
        if self.folder.is_symlink() or not (inside <= known or _SETTINGS in inside):
            raise InputError(
                "is in the way: finished pieces of this run would be kept here",
                file=str(self.folder),
                remedy="move it, or choose another output",
            )
        for path in (self.folder / _LOCK, self.folder / _SETTINGS):
            if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
                raise InputError(
                    "expected a file, but this is a link, a pipe or a folder",
                    file=str(path),
                    remedy="delete it, and run the same command again",
                )

    def _take(self) -> None:
        """Lock the folder for this process; the lock ends with the process."""
        while True:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire()
                return
            except FileNotFoundError:
                continue  # another run has just finished and removed the folder
            except Timeout:
                raise InputError(
                    "another run is working on this output",
                    file=str(self.folder),
                    remedy="wait for it, or choose another output",
                ) from None
            except OSError:
                remove_if_empty(self.folder)
                raise

    def _check_settings(self) -> None:
        if not (self.folder / _SETTINGS).exists():
            self.write(_SETTINGS, json.dumps(self._settings, indent=1).encode())
            return
        before = read_settings(self.folder)
        if before != self._settings:
            keys = before.keys() | self._settings.keys()
            other = sorted(key for key in keys if before.get(key) != self._settings.get(key))
            raise InputError(
                f"an interrupted run with other settings ({', '.join(other)[:200]}) left its results here",
                file=str(self.folder),
                remedy="delete this folder, or choose another output",
            )


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of the run that created a checkpoint; empty if there are none."""
    with suppress(InputError, ValueError, TypeError, RecursionError):
        return dict(json.loads(read_regular(folder / _SETTINGS, most=_MOST_SETTINGS, follow=False)))
    return {}
