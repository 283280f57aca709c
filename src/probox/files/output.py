"""Writing output files: all of them or none, and never half of one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from probox.errors import InputError
from probox.files.gzipped import packed
from probox.files.staging import Staging, move_into_place, named_errors, staging, sweep, sync_folder

__all__ = ["Content", "json_bytes", "put_content", "write_files"]

Content = bytes | Callable[[BinaryIO], None]


def json_bytes(path: Path, text: bytes) -> bytes:
    """Return the text, compressed if the file's name ends in ``.gz``."""
    return packed(text) if path.suffix.lower() == ".gz" else text


def write_files(files: Mapping[Path, Content], *, lasting: bool = True) -> None:
    """Write files, given as bytes or as a function that writes to an open file.

    Everything is made in a hidden folder beside its place first and then moved there, in the given order, so a failure
    leaves what was there before. What a killed run left of its hidden folder is removed by the next one to the same
    place. Links and devices are not written through.

    Parameters
    ----------
    files : mapping of path to bytes or callable
        What to write where; at most one folder of each path may be missing, and is made.
    lasting : bool
        Wait until everything has reached the disk, so that not even a power cut leaves half a file. Not for files that
        can be made again in a moment.
    """
    with ExitStack() as stack:
        places: dict[Path, Staging] = {}
        moves: list[tuple[Path, Path]] = []
        for number, (path, content) in enumerate(files.items()):
            with named_errors(path):
                check_file_place(path)
                known = path.parent in places
                missing = not path.parent.is_dir()
                if not known:
                    # A missing folder is made as a whole: it appears with all of its files.
                    near, name = (path.parent.parent, path.parent.name) if missing else (path.parent, path.name)
                    if lasting:
                        sweep(near, name)
                    places[path.parent] = stack.enter_context(staging(near, name))
                new = places[path.parent].files / (path.name if missing else str(number))
                put_content(new, content, lasting=lasting)
            if not missing:
                moves.append((new, path))
            elif not known:
                moves.append((new.parent, path.parent))
        if moves:
            move_into_place(moves, next(iter(places.values())).aside)
    for folder in places if lasting else ():
        sync_folder(folder)


def put_content(path: Path, content: Content, *, lasting: bool) -> None:
    """Write a new file."""
    with open(path, "xb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            content(file)
        file.flush()
        if lasting:
            os.fsync(file.fileno())


def check_file_place(path: Path) -> None:
    """Raise if something other than a regular file is where a file is to be written."""
    if os.path.lexists(path.parent) and not path.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if path.is_symlink():
        raise InputError("is a link, which is not followed", file=str(path), remedy="name the file itself")
    if path.is_dir():
        raise InputError("cannot be written: it is a folder", file=str(path), remedy="name a file")
    if path.exists() and not path.is_file():
        raise InputError("cannot be written: it is no ordinary file", file=str(path), remedy="name a file")
