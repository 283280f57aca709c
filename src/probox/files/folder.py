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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from probox.errors import InputError
from probox.files.output import Content, put_content
from probox.files.reading import read_regular
from probox.files.staging import Staging, move_into_place, named_errors, parents_made, remove_if_empty, taking_turns
from probox.files.whole_folder import put_folder, staging_near

__all__ = ["LISTING", "OutputFolder", "check_output_folder", "files_written", "output_folder"]

LISTING = ".probox.json"
"""The hidden file that lists what was written."""
_LONGEST_LIST = 1 << 28
"""Bytes; a file has about 100."""


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
        """Move everything to its place, in one step where that is possible."""
        place = self._place
        with taking_turns(place.parent), taking_turns(place), named_errors(self.target):
            known = _read_list(place)
            for name, digest in self._digests.items():
                _check_free(place, self.target, name, known.get(name), self._command, digest)
            alike = {name for name, digest in self._digests.items() if _has_digest(place / name, (digest,))}
            for name in alike - known.keys():  # another's file that happens to be the same stays another's
                del self._digests[name]
                (self._staged.files / name).unlink()
            old = [name for name, entry in known.items() if name not in self._digests and self._goes(entry)]
            gone = [name for name in old if _is_own(place, name, known[name])]
            stays = {name: known[name] for name in known if name not in old and os.path.lexists(place / name)}
            new = {name: _Entry(self._command, (digest,)) for name, digest in self._digests.items()}
            listed = _list_text(stays | new)
            put_content(self._staged.files / LISTING, listed, lasting=False)
            own = {self._carry, *(str(above) for name in stays for above in PurePosixPath(name).parents)}
            if put_folder(self._staged.files, place, [*new, LISTING], gone, own):
                return
            # A run killed in between leaves old and new files; the list knows both, so the next run can mend it.
            both = {
                name: _Entry(self._command, (*(known[name].digests if name in known else ()), *entry.digests))
                for name, entry in new.items()
            }
            self._move_each(_list_text(known | both), listed, [name for name in new if name not in alike], gone)

    def _goes(self, entry: _Entry) -> bool:
        return self._fresh and entry.command == self._command

    def _move_each(self, both: bytes, listed: bytes, names: list[str], gone: list[str]) -> None:
        """Replace file by file, in the order in which they were made; others are left alone."""
        place, staged = self._place, self._staged
        put_content(staged.folder / "interim", both, lasting=False)
        put_content(staged.folder / "final", listed, lasting=False)
        moves = [
            (staged.folder / "interim", place / LISTING),
            *((staged.files / name, place / name) for name in names),
            *((place / name, staged.aside / f"gone-{number}") for number, name in enumerate(gone)),
            (staged.folder / "final", place / LISTING),
        ]
        move_into_place(moves, staged.aside)
        for above in (above for name in gone for above in PurePosixPath(name).parents[:-1]):
            remove_if_empty(place / above)


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
    with parents_made(place), staging_near(place, shown) as staged:
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


def _read_list(place: Path) -> dict[str, _Entry]:
    """Return what was written into a folder, by name."""
    path = place / LISTING
    if not os.path.lexists(path):
        return {}
    try:
        if path.is_symlink():
            raise ValueError("a link")
        entries: dict[str, Any] = json.loads(read_regular(path, most=_LONGEST_LIST))["files"]
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
    return json.dumps({"about": about, "files": files}, indent=0).encode()


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


def _is_own(place: Path, name: str, entry: _Entry) -> bool:
    """Return whether a file of the list is unchanged, and in this folder."""
    above = (place / name).parent
    return above.resolve() == above and _has_digest(place / name, entry.digests)


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
