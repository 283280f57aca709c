"""Folders that are put in place of others as a whole, in one step."""

from __future__ import annotations

import errno
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from probox.errors import InputError
from probox.files.replacing import EVALUATION, EVALUATION_WORDS
from probox.files.staging import (
    Staging,
    exchange,
    hold_signals,
    move_into_place,
    named_errors,
    parents_made,
    remove_if_empty,
    sweep,
    sync_folder,
    taking_turns,
)

__all__ = ["put_folder", "staging_near", "whole_folder"]

_TRIES = 100
"""How often probox tries to empty a replaced folder, while a program writes into it."""
_MOST_KEPT = 1000
"""So many other files are kept in a folder that is replaced; beside more, files are replaced one by one."""


@contextmanager
def whole_folder(target: str | os.PathLike[str], check: Callable[[], None], *, keep: bool = False) -> Iterator[Path]:
    """Give a new folder to write into, which takes the place of `target` when the block ends without an error.

    Parameters
    ----------
    target : path
        The folder, made with those above it if it is missing. A link to a folder is followed.
    check : callable
        Raises if what is at the place may not be replaced: called before any work is done, and again at its end.
    keep : bool
        Files of other names stay. Where the folder cannot be replaced as a whole, its files are, one by one.
    """
    shown = Path(target)
    with named_errors(shown):
        place = Path(os.path.realpath(shown))
        if os.path.lexists(place) and not place.is_dir():
            raise InputError("is a file, expected a folder to write to", file=str(target), remedy="choose another name")
        if not keep and _is_current(place):
            raise InputError(
                "is the folder in which this runs, which cannot be replaced",
                file=str(target),
                remedy="name a new folder in it",
            )
    check()
    with parents_made(place), named_errors(shown), staging_near(place, shown, inside=keep) as made:
        yield made.files
        names = _names_in(made.files)
        with taking_turns(place.parent), taking_turns(place):
            gone = [] if keep or not place.exists() else _names_in(place)
            check()
            if put_folder(made.files, place, names, gone):
                pass
            elif keep:
                move_into_place([(made.files / name, place / name) for name in names], made.aside)
            else:
                _put(made.files, place, made.aside / "old")
        for folder in {place.parent, *((place / name).parent for name in names)}:
            sync_folder(folder)


@contextmanager
def staging_near(place: Path, shown: Path, *, inside: bool = True) -> Iterator[Staging]:
    """Give a hidden folder beside a folder; or `inside`, where the folder cannot be replaced as a whole anyway."""
    with named_errors(shown):
        for near in (place.parent, place):
            sweep(near, place.name)
        within = inside and os.access(place, os.W_OK) and place.is_dir()
        fixed = _holds_mount(place) or _is_current(place) or not os.access(place.parent, os.W_OK)
        made = Staging(place if within and fixed else place.parent, place.name)
        if within and _owner(made.folder) != _owner(place):  # new files would have another group than the folder gives
            made.remove()
            made = Staging(place, place.name)
    try:
        yield made
    finally:
        made.remove()


def put_folder(new: Path, place: Path, names: Iterable[str], gone: Iterable[str] = (), own: Iterable[str] = ()) -> bool:
    """Put a folder in place of another one in one step; return False, nothing changed, where that is not possible.

    All other files of the old folder stay: they get a second name in the new one, and folders that probox wrote are
    made again. A user's folder in it prevents the exchange: a program may run there, and would lose what it writes.

    Parameters
    ----------
    new, place : Path
        The new folder, in which the old one is found afterwards, and its place, where there may be none.
    names, gone : iterable of str
        Files of the new folder, and files of the old one that go.
    own : iterable of str
        Folders of the old one that probox made, beside those of these files and of stored results.
    """
    if not place.exists():
        os.rename(new, place)
        return True
    replaced = {*names, *gone}
    try:
        if not _may_swap(new, place):
            return False
        kept = _keep_others(place, new, replaced, set(own))
    except OSError:  # no links here, a folder of the user, or a file is just going away
        return False
    with hold_signals():
        if not exchange(new, place):
            return False
        try:
            _rescue(new, place, replaced, kept)
        except BaseException:
            exchange(new, place)
            raise
        _discard(new, place, replaced, kept)
    return True


def _may_swap(new: Path, place: Path) -> bool:
    """Return whether a new folder in the place of the old one makes no difference to others."""
    return not (place in new.parents or _holds_mount(place) or _is_current(place)) and os.access(place, os.W_OK)


def _holds_mount(place: Path) -> bool:
    """Return whether a file system is mounted at a folder or below it; Linux lists those of the same device, too."""
    mounts = [place] if os.path.ismount(place) else []
    with suppress(OSError), open("/proc/self/mountinfo", "rb") as file:
        escaped = (line.split()[4] for line in file)
        unescaped = (re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), path) for path in escaped)
        mounts += [Path(os.fsdecode(path)) for path in unescaped]
    return any(place == mount or place in mount.parents for mount in mounts)


def _owner(folder: Path) -> tuple[int, int, int]:
    status = folder.stat()
    return status.st_uid, status.st_gid, status.st_dev


def _is_current(place: Path) -> bool:
    with suppress(OSError):  # the current folder was removed
        here = Path(os.path.realpath(os.curdir))
        return place == here or place in here.parents
    return False


def _keep_others(place: Path, new: Path, replaced: set[str], own: set[str]) -> set[tuple[str, int]]:
    """Give all files of a folder but those that are replaced a second name in another; return names and numbers."""
    kept: set[tuple[str, int]] = set()
    changed = {Path(name).parent for name in replaced}
    known = own | {above.as_posix() for name in replaced for above in Path(name).parents}
    for base, name in _files_in(place):
        inside = (base / name).relative_to(place).as_posix()
        if not name:
            (new / inside).mkdir(exist_ok=True)
            written = inside in known or EVALUATION.recognises(base / EVALUATION_WORDS)
            if not (_owner(base) == _owner(new) and written and os.access(base, os.W_OK)):
                raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        elif len(kept) > _MOST_KEPT:
            raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))
        elif inside not in replaced:
            os.link(base / name, new / inside, follow_symlinks=False)
            kept.add((inside, (new / inside).lstat().st_ino))
    for above, folders, files in os.walk(place, topdown=False):
        inside_new = Path(above).relative_to(place)
        if folders or files:
            remove_if_empty(new / inside_new)  # all that was in it goes
        if (new / inside_new).exists():
            shutil.copystat(above, new / inside_new)
            if inside_new in changed:
                os.utime(new / inside_new)
    return kept


def _names_in(folder: Path) -> list[str]:
    return sorted((base / name).relative_to(folder).as_posix() for base, name in _files_in(folder) if name)


def _files_in(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file below a folder, links too, with the folder that it is in; and each folder with no name."""

    def fail(error: OSError) -> None:
        raise error

    for above, folders, files in os.walk(folder, onerror=fail):
        base = Path(above)
        yield base, ""
        yield from ((base, name) for name in files)
        yield from ((base, name) for name in folders if (base / name).is_symlink())


def _rescue(old: Path, place: Path, replaced: set[str], kept: set[tuple[str, int]]) -> None:
    """Bring over what somebody put into the old folder at the very moment it was replaced."""
    for inside in _names_in(old):
        _bring_over(inside, old, place, replaced, kept)


def _bring_over(inside: str, old: Path, place: Path, replaced: set[str], kept: set[tuple[str, int]]) -> None:
    """Give a file of the old folder its name in the new one, unless it is there already or is replaced."""
    number = (old / inside).lstat().st_ino
    if inside in replaced or (inside, number) in kept:
        return
    if not os.path.lexists(place / inside) or (place / inside).lstat().st_ino != number:
        (place / inside).parent.mkdir(parents=True, exist_ok=True)
        (place / inside).unlink(missing_ok=True)
        os.link(old / inside, place / inside, follow_symlinks=False)


def _discard(old: Path, place: Path, replaced: set[str], kept: set[tuple[str, int]]) -> None:
    """Remove what is left of a replaced folder, and bring over what a program that runs in it wrote meanwhile.

    Folders are removed only when they are empty. Files that cannot be brought over stay in a folder beside the new one.
    """
    for _ in range(_TRIES):
        with suppress(OSError):  # a folder is just going away
            for inside in _names_in(old):
                with suppress(OSError):  # this file stays
                    _bring_over(inside, old, place, replaced, kept)
                    (old / inside).unlink()
            for above, _folders, _files in os.walk(old, topdown=False):
                remove_if_empty(Path(above))
            if not old.exists():
                return
    left = place.with_name(f"{place.name}-{os.urandom(4).hex()}")
    os.rename(old, left)
    warnings.warn(f"{place}: files that a program wrote to it while it was replaced are now in {left}", stacklevel=2)


def _put(new: Path, place: Path, aside: Path) -> None:
    """Move a folder to its place; what was there is removed with the place where the new one was made."""
    with hold_signals():
        os.rename(place, aside)
        try:
            os.rename(new, place)
        except OSError:
            with suppress(OSError):
                os.rename(aside, place)
            raise
