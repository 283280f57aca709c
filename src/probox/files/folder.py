"""A folder of output files: all new ones appear together, and nothing that was not written here is touched.

A hidden file in the folder lists what was written there, by which command, with digests. A later run of the same
command replaces exactly these files, as long as they are unchanged; anything else in the way is refused by name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from probox.errors import InputError
from probox.files.output import Content, put_content
from probox.files.staging import (
    Staging,
    exchange,
    move_into_place,
    named_errors,
    parents_made,
    remove_if_empty,
    staging,
    sweep,
    taking_turns,
)

__all__ = ["LISTING", "OutputFolder", "check_output_folder", "files_written", "output_folder"]

LISTING = ".probox.json"
"""The hidden file that lists what was written."""


@dataclasses.dataclass(frozen=True)
class _Entry:
    """A file of the list: who wrote it, and the digest it has (two while it is being replaced)."""

    command: str
    digests: tuple[str, ...]


class OutputFolder:
    """Files of one command on their way into a folder; see `output_folder`."""

    def __init__(self, target: Path, place: Path, command: str, staged: Staging, *, fresh: bool, carry: str) -> None:
        self.target = target
        self._place = place
        self._command = command
        self._staged = staged
        self._fresh = fresh
        self._carry = carry
        self._digests: dict[str, str] = {}

    def write(self, name: str, content: Content) -> Path:
        """Make a file, given as bytes or as a function that writes to an open file; return where it will be."""
        path = self._staged.files / name
        with named_errors(self.target / name):
            path.parent.mkdir(parents=True, exist_ok=True)
            put_content(path, content, lasting=False)
            self._digests[name] = _digest(content) if isinstance(content, bytes) else _file_digest(path)
        return self.target / name

    def commit(self) -> None:
        """Move everything to its place, in one step where all that is there was written by probox."""
        with taking_turns(self._place.parent), named_errors(self.target):
            known = _read_list(self._place)
            for name, digest in self._digests.items():
                _check_free(self._place, self.target, name, known.get(name), self._command, digest)
            stays = {
                name: entry
                for name, entry in known.items()
                if name not in self._digests
                and not (self._fresh and entry.command == self._command)
                and os.path.lexists(self._place / name)
            }
            listed = {**stays, **{name: _Entry(self._command, (digest,)) for name, digest in self._digests.items()}}
            if not self._swap(known, stays, listed):
                self._move_each(known, listed)

    def _swap(self, known: dict[str, _Entry], stays: dict[str, _Entry], listed: dict[str, _Entry]) -> bool:
        """Put a complete new folder in place of the old one; return False, nothing changed, if that can't be done."""
        new, place = self._staged.files, self._place
        if self._staged.folder.parent == place or not _may_swap(new, place):
            return False
        old_files = _own_files(place, known, self._carry)
        if old_files is None:
            return False
        carried = [name for name in old_files if name not in known and name != LISTING]
        try:
            for name in [*stays, *carried]:
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                os.link(place / name, new / name)
        except OSError:  # no links here, or a file is just going away
            for name in [*stays, *carried]:
                (new / name).unlink(missing_ok=True)
            return False
        put_content(new / LISTING, _list_text(listed), lasting=False)
        if not place.exists():
            os.rename(new, place)
            return True
        os.chmod(new, stat.S_IMODE(place.stat().st_mode))
        if exchange(new, place):
            _rescue(new, place, old_files)
            return True
        (new / LISTING).unlink()
        for name in [*stays, *carried]:
            (new / name).unlink()
        return False

    def _move_each(self, known: dict[str, _Entry], listed: dict[str, _Entry]) -> None:
        """Replace file by file, in the order in which they were made; others are left alone."""
        place, new = self._place, self._staged.files
        # A run killed in between leaves old and new files; the list knows both, so the next run can mend it.
        both = {name: _Entry(entry.command, entry.digests) for name, entry in known.items()}
        for name, digest in self._digests.items():
            before = known[name].digests if name in known else ()
            both[name] = _Entry(self._command, (*before, digest))
        alike = {name for name, digest in self._digests.items() if _has_digest(place / name, (digest,))}
        for name in alike - known.keys():  # another's file that happens to be the same stays another's
            both.pop(name)
            listed.pop(name)
        made = [folder for name in self._digests for folder in _make_folders(place, name)]
        interim, final = self._staged.folder / "interim", self._staged.folder / "final"
        put_content(interim, _list_text(both), lasting=False)
        put_content(final, _list_text(listed), lasting=False)
        moves = [(new / name, place / name) for name in self._digests if name not in alike]
        try:
            move_into_place([(interim, place / LISTING), *moves], self._staged.aside)
        except BaseException:
            for folder in reversed(made):
                remove_if_empty(folder)
            raise
        for name in known.keys() - listed.keys() - self._digests.keys():
            led_away = (place / name).parent.resolve() != (place / name).parent
            if not led_away and _has_digest(place / name, known[name].digests):
                (place / name).unlink()
                for above in PurePosixPath(name).parents[:-1]:
                    remove_if_empty(place / above)
        os.replace(final, place / LISTING)


@contextmanager
def output_folder(
    target: str | Path, command: str, *, names: Iterable[str] = (), fresh: bool = False, carry: str = ""
) -> Iterator[OutputFolder]:
    """Give a folder to write files into, which appear in `target` together when the block ends without an error.

    Parameters
    ----------
    target : path
        The folder, made with those above it if it is missing. A link to a folder is followed; links in it are not.
    command : str
        Who writes. A later run may replace what a run of the same command wrote, if it is unchanged.
    names : iterable of str
        Files that will be written, to be refused before any work is done.
    fresh : bool
        Everything that an earlier run wrote goes, also what is not written anew; and a folder that has something in it,
        but nothing of such a run, is refused.
    carry : str
        A folder in `target` whose files belong to the command and stay as they are.
    """
    shown = Path(target)
    place = _real_folder(shown)
    known = _read_list(place)
    if fresh and place.is_dir() and any(place.iterdir()) and command not in {e.command for e in known.values()}:
        raise InputError(
            "is not empty", file=str(target), remedy=f"choose a new folder, or that of an earlier {command}"
        )
    _check_names(place, shown, names, known, command)
    with parents_made(place), _staging_near(place, shown) as staged:
        folder = OutputFolder(shown, place, command, staged, fresh=fresh, carry=carry)
        yield folder
        folder.commit()


def check_output_folder(target: str | Path, command: str, names: Iterable[str]) -> None:
    """Raise if a command could not write files of these names into a folder: before any work is done."""
    place = _real_folder(Path(target))
    _check_names(place, Path(target), names, _read_list(place), command)


def _check_names(place: Path, shown: Path, names: Iterable[str], known: dict[str, _Entry], command: str) -> None:
    for name in names:
        _check_free(place, shown, name, known.get(name), command)


def files_written(folder: Path, command: str) -> list[Path]:
    """Return the files in a folder that a command wrote there, and the list of them."""
    names = [name for name, entry in _read_list(folder).items() if entry.command == command]
    return [folder / name for name in (*names, LISTING)]


def _real_folder(target: Path) -> Path:
    with named_errors(target):
        if target.is_symlink() and not target.exists():
            raise InputError("is a link that leads nowhere", file=str(target), remedy="choose another name")
        if os.path.lexists(target) and not target.is_dir():
            raise InputError("is a file, expected a folder to write to", file=str(target), remedy="choose another name")
        return Path(os.path.realpath(target))


@contextmanager
def _staging_near(place: Path, shown: Path) -> Iterator[Staging]:
    """Give a place for new files beside the folder; in it, if it can't be replaced as a whole anyway."""
    with named_errors(shown):
        beside = not os.path.ismount(place) and os.access(place.parent, os.W_OK)
        near = place.parent if beside or not place.is_dir() else place
        sweep(near, place.name)
        given = staging(near, place.name)
        made = given.__enter__()
    try:
        yield made
    finally:
        given.__exit__(*sys.exc_info())


def _read_list(place: Path) -> dict[str, _Entry]:
    """Return what was written into a folder, by name."""
    path = place / LISTING
    if not os.path.lexists(path):
        return {}
    try:
        if path.is_symlink():
            raise ValueError("a link")
        entries: dict[str, Any] = json.loads(path.read_bytes())["files"]
        return {_plain_name(name): _Entry(str(e["by"]), tuple(map(str, e["digests"]))) for name, e in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            "is not the list of files that probox keeps under this name",
            file=str(path),
            remedy="choose another folder, or move this file away",
        ) from None


def _plain_name(name: str) -> str:
    """Return a name from a list, which must lie in the folder: lists may come from elsewhere."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or name == LISTING:
        raise ValueError(name)
    return name


def _list_text(entries: dict[str, _Entry]) -> bytes:
    files = {name: {"by": entry.command, "digests": entry.digests} for name, entry in sorted(entries.items())}
    about = "Files that probox wrote here. It replaces them, if they are unchanged, and nothing else."
    return json.dumps({"about": about, "files": files}, indent=0, ensure_ascii=False).encode()


def _check_free(
    place: Path, shown: Path, name: str, entry: _Entry | None, command: str, digest: str | None = None
) -> None:
    """Raise if a file may not be written: something else is in its way."""
    path = place / name
    for parent in list(path.parents)[: len(PurePosixPath(name).parts) - 1]:
        if parent.is_symlink() or (parent.exists() and not parent.is_dir()):
            raise InputError("is in the way: not a folder", file=str(parent), remedy="choose another folder")
    if not os.path.lexists(path) or (digest is not None and _has_digest(path, (digest,))):
        return
    if entry is None or entry.command != command:
        raise InputError(
            f"is there already, and `probox {command}` did not write it",
            file=str(shown / name),
            remedy="choose another folder",
        )
    if not _has_digest(path, entry.digests):
        raise InputError(
            f"was changed since `probox {command}` wrote it",
            file=str(shown / name),
            remedy="move it away, or choose another folder",
        )


def _own_files(place: Path, known: dict[str, _Entry], carry: str) -> list[str] | None:
    """Return the names of all files in a folder if every one was written here and is unchanged, else None."""
    found: list[str] = []
    folders = {str(folder) for name in known for folder in PurePosixPath(name).parents}
    for base, inside, files in os.walk(place):
        here = PurePosixPath(Path(base).relative_to(place).as_posix())
        for name in inside:
            if (here / name).as_posix() not in folders | {carry} or (place / here / name).is_symlink():
                return None
        found += [(here / name).as_posix() for name in files]
    for name in found:
        own = name in known and _has_digest(place / name, known[name].digests)
        kept = bool(carry) and name.startswith(f"{carry}/") and _is_regular(place / name)
        if not (own or kept or name == LISTING):
            return None
    return found


def _may_swap(new: Path, place: Path) -> bool:
    """Return whether nobody would notice that the folder is another one now."""
    if not place.exists():
        return True
    old, made, here = place.stat(), new.stat(), Path(os.path.realpath(os.curdir))
    same_owner = os.access(place, os.W_OK) and (old.st_uid, old.st_gid, old.st_dev) == (
        made.st_uid,
        made.st_gid,
        made.st_dev,
    )
    return same_owner and here != place and place not in here.parents


def _rescue(old: Path, place: Path, known: list[str]) -> None:
    """Bring over what somebody put into the old folder at the very moment it was replaced."""
    for base, _, files in os.walk(old):
        for name in files:
            inside = (Path(base) / name).relative_to(old)
            if inside.as_posix() not in known and not os.path.lexists(place / inside):
                (place / inside).parent.mkdir(parents=True, exist_ok=True)
                os.rename(old / inside, place / inside)


def _make_folders(place: Path, name: str) -> list[Path]:
    """Make the folders in which a file of `place` will lie; return those that were missing."""
    wanted = [place / folder for folder in reversed(PurePosixPath(name).parents)]
    missing = [folder for folder in wanted if not folder.exists()]
    for folder in missing:
        folder.mkdir()
    return missing


def _is_regular(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def _has_digest(path: Path, digests: Iterable[str]) -> bool:
    with suppress(OSError):
        return _is_regular(path) and _file_digest(path) in digests
    return False


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _file_digest(path: Path) -> str:
    state = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()
