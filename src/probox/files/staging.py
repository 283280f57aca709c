"""Places where output is made before it is moved: beside their target, claimed while in use, swept when left behind."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from probox.errors import InputError

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "Staging", "claim", "claim_alone", "exchange", "folder_made", "hold_signals", "is_staging_name", "missing_folders",
    "move_into_place", "named_errors", "parents_made", "remove_if_empty", "staging", "sweep", "sync_folder",
    "taking_turns",
]  # fmt: skip

_MARKER = "made-by-probox"
_PATIENCE = 60.0
"""Seconds to wait for another run to move its files, which takes a moment."""


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Turn what the system says about writing into one sentence about `path`."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise InputError(
            f"cannot be written: {error.strerror or error}",
            file=str(path),
            remedy="make room there, or choose another place" if full else "choose another place",
        ) from None


def claim(path: Path, *, make: bool = True) -> int | None:
    """Lock a file (made if it is missing) or a folder for this process, and return what to close to give it up.

    The lock ends with the process, however that ends. A link to a file is not followed. None if another process has
    the lock; `FileNotFoundError` if that one has just removed it, another OSError where a file system has no locks.
    """
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "no locks on this system")
    file = make and not path.is_dir()
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW if file else os.O_RDONLY, 0o666)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(opened), os.stat(path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    except BlockingIOError:
        os.close(opened)
        return None
    except BaseException:
        os.close(opened)
        raise
    return opened


def claim_alone(path: Path, busy: InputError) -> int | None:
    """Lock a file as `claim` does, or raise `busy` if another process has it.

    None where a file system has no locks: nothing can be done there about two runs at a time.
    """
    try:
        claimed = claim(path)
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        return None
    if claimed is None:
        raise busy
    return claimed


class Staging:
    """A hidden folder for one run: ``files`` for what is new, ``aside`` for what it replaces."""

    def __init__(self, parent: Path, name: str) -> None:
        self.folder, self._claim = _new_place(parent, name)
        self.files = self.folder / "files"
        self.aside = self.folder / "aside"
        try:
            (self.folder / _MARKER).write_bytes(os.fsencode(self.folder.name))
            self.files.mkdir()
            self.aside.mkdir()
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the folder and what is left in it."""
        _remove_tree(self.folder)
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None


def _new_place(parent: Path, name: str) -> tuple[Path, int | None]:
    """Make a hidden folder and claim it; if a sweeper was faster, make another."""
    while True:
        folder = parent / f".{name[:40]}.{os.urandom(4).hex()}.part"
        folder.mkdir()
        try:
            claimed = claim(folder / _MARKER)
        except FileNotFoundError:
            continue
        except OSError:
            return folder, None  # no locks here, then nobody sweeps either
        if claimed is not None:
            return folder, claimed


@contextmanager
def staging(parent: Path, name: str) -> Iterator[Staging]:
    """Give a new hidden folder in `parent` for making `name`, and remove it in the end."""
    made = Staging(parent, name)
    try:
        yield made
    finally:
        made.remove()


def sweep(parent: Path, name: str | None = None) -> None:
    """Remove folders of runs that were killed while they made `name`, or anything: only those surely of that kind.

    The name must fit, the marker inside must repeat it, and no living process may claim it. One that was killed at the
    very beginning or end has an empty marker, or is empty itself.
    """
    with suppress(OSError):
        for entry in os.scandir(parent):
            if is_staging_name(entry.name, name) and entry.is_dir(follow_symlinks=False):
                _remove_abandoned(Path(entry.path))


def is_staging_name(found: str, name: str | None = None) -> bool:
    """Return whether a hidden folder for making `name`, or anything, may be called this."""
    middle = r".+" if name is None else re.escape(name[:40])
    return re.fullmatch(rf"\.{middle}\.[0-9a-f]{{8}}\.part", found, re.DOTALL) is not None


def _remove_abandoned(folder: Path) -> None:
    remove_if_empty(folder)
    marker = folder / _MARKER
    try:
        if not stat.S_ISREG(marker.lstat().st_mode) or marker.read_bytes() not in (
            os.fsencode(folder.name),
            b"",
        ):
            return
        claimed = claim(marker)
    except (OSError, ValueError):
        return
    if claimed is not None:
        _remove_tree(folder)
        os.close(claimed)


def _remove_tree(folder: Path) -> None:
    """Remove a place with the marker last, so that a run killed meanwhile leaves one that can still be told."""
    for inside in ("files", "aside"):
        shutil.rmtree(folder / inside, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def hold_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the block ends: it moves files, which takes a moment."""
    pending: list[int] = []
    before: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():  # no other thread runs handlers
            for held in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(held) is not None:
                    before[held] = signal.signal(held, lambda number, _: pending.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(pending):
            signal.raise_signal(number)


def move_into_place(moves: list[tuple[Path, Path]], aside: Path) -> None:
    """Move files or whole folders to their places; if one can't go there, all places get back what they had.

    Folders that are missing on the way to a place are made. A move whose target is in `aside` removes a file.
    """
    begun: list[tuple[Path, Path, Path | None]] = []
    made: list[Path] = []
    with hold_signals():
        try:
            for number, (source, place) in enumerate(moves):
                with named_errors(source if aside in place.parents else place):
                    for folder in missing_folders(place.parent):
                        folder.mkdir()
                        made.append(folder)
                    old = None
                    if os.path.lexists(place):
                        old = aside / str(number)
                        _second_name(place, old)
                    begun.append((source, place, old))  # before the move: it may be done although it raises
                    os.replace(source, place)
        except BaseException:
            for source, place, old in reversed(begun):
                with suppress(OSError):  # the first failure is the one to tell of
                    if not os.path.lexists(source):
                        os.replace(*((place, source) if old is None else (old, place)))
            for folder in reversed(made):
                remove_if_empty(folder)
            raise


def _second_name(path: Path, other: Path) -> None:
    """Keep a file's content under another name, too."""
    try:
        os.link(path, other, follow_symlinks=False)
    except OSError:  # not every file system has links
        shutil.copy2(path, other, follow_symlinks=False)


@contextmanager
def parents_made(path: Path) -> Iterator[None]:
    """Make the folders above a path that are missing; when the block fails, those that are still empty go again."""
    with folder_made(path.parent):
        yield


@contextmanager
def folder_made(folder: Path) -> Iterator[None]:
    """Make a folder and those above it that are missing; when the block fails, those that are still empty go again."""
    missing: list[Path] = []
    try:
        with named_errors(folder):
            missing += missing_folders(folder)
            for path in missing:
                path.mkdir(exist_ok=True)
        yield
    except BaseException:
        for path in reversed(missing):
            remove_if_empty(path)
        raise


def missing_folders(folder: Path) -> list[Path]:
    """Return the folders that are missing on the way to one, the topmost first."""
    if "\0" in str(folder):
        raise InputError(
            "cannot be written: a null character in its name", file=str(folder), remedy="choose another name"
        )
    missing: list[Path] = []
    for path in (folder, *folder.parents):
        if path.is_dir():
            break
        if path.exists():
            raise InputError("is a file, expected a folder to write to", file=str(path), remedy="choose another name")
        missing.append(path)
    return missing[::-1]


def remove_if_empty(folder: Path) -> None:
    """Remove a folder unless something is in it."""
    with suppress(OSError):
        folder.rmdir()


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder have reached the disk."""
    with suppress(OSError):  # not every system can
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextmanager
def taking_turns(folder: Path) -> Iterator[None]:
    """Wait until no other run is moving its files to a place in `folder`; not forever, for others may lock it, too."""
    claimed = None
    with suppress(OSError):  # without locks: a moment's risk
        patience = time.monotonic() + _PATIENCE
        while (claimed := claim(folder, make=False)) is None and time.monotonic() < patience:
            time.sleep(0.02)
    try:
        yield
    finally:
        if claimed is not None:
            os.close(claimed)


def exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; return False where that is not possible."""
    if not sys.platform.startswith("linux"):
        return False
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2
    return swap is not None and swap(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0
