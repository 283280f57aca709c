"""An input that the user named: looked at to tell its format, then read. A pipe can be read only once."""

from __future__ import annotations

import os
import stat
from functools import cached_property

from probox.files.reading import (
    DETECTIONS_EXPAND,
    Paths,
    decompressed,
    file_head,
    first_character,
    head_of,
    is_folder,
    read_bytes,
    read_regular,
)
from probox.files.remote import check_not_flattened, is_url

__all__ = ["Source"]


class Source:
    """A file, folder or pipe to read, or the URL of a file or folder."""

    def __init__(self, path: Paths) -> None:
        self.path = path
        self.name = str(path)
        check_not_flattened(path)
        self.is_url = is_url(path)
        self.is_folder = is_folder(path)

    def content(self, expansion: int = DETECTIONS_EXPAND) -> bytes:
        """Return the bytes of a text file, decompressed to at most so many times its size."""
        if self._piped is not None:
            return decompressed(self._piped, self.name, expansion)
        return read_bytes(self.path, expansion=expansion)

    @cached_property
    def head(self) -> bytes:
        """How the file begins, decompressed; nothing of a folder or of what cannot be read."""
        return file_head(self.path) if self._piped is None else head_of(self._piped)

    @cached_property
    def first_character(self) -> str:
        """The first character that is no white space: ``[`` for a list, ``{`` for an object; none for a folder."""
        return "" if self.is_folder else first_character(self.head) or first_character(self.content())

    @cached_property
    def _piped(self) -> bytes | None:
        try:
            is_pipe = stat.S_ISFIFO(os.stat(self.path).st_mode)
        except (OSError, ValueError):  # whoever reads it says why
            return None
        return read_regular(self.path, pipe=True) if is_pipe else None
