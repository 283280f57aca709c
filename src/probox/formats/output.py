"""Writing output files: all of them or none, and never half of one."""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from probox.errors import InputError

__all__ = ["json_bytes", "write_files"]

Content = bytes | Callable[[BinaryIO], None]


def json_bytes(path: Path, text: bytes) -> bytes:
    """Return the text, compressed if the file's name ends in ``.gz``; the same text gives the same bytes."""
    return gzip.compress(text, compresslevel=6, mtime=0) if path.suffix == ".gz" else text


def write_files(files: Mapping[Path, Content]) -> None:
    """Write files, given as bytes or as a function that writes to an open file.

    Everything is written beside its place first and then moved there, so a failure leaves what was there before.
    """
    ready: dict[Path, Path] = {}
    made: list[Path] = []
    try:
        for path, content in files.items():
            made += _make_folder(path.parent)
            if path.is_dir():
                raise InputError("cannot be written: it is a folder", file=str(path), remedy="name a file")
            ready[path] = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
            with open(ready[path], "xb") as file:
                if isinstance(content, bytes):
                    file.write(content)
                else:
                    content(file)
        while ready:
            path = next(iter(ready))
            os.replace(ready[path], path)
            del ready[path]
    except BaseException as error:
        for part in ready.values():
            part.unlink(missing_ok=True)
        for folder in reversed(made):
            _remove_if_empty(folder)
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise InputError(f"cannot be written: {reason}", file=str(path), remedy="choose another place") from None
        raise


def _make_folder(folder: Path) -> list[Path]:
    """Make one missing folder; a longer missing path is more likely a mistake."""
    if folder.is_dir():
        return []
    folder.mkdir()
    return [folder]


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return
