"""The bytes of input files: regular files, pipes that the user named, and gzip.

isal unpacks gzip two to three times as fast as zlib. Errors are zlib's: whatever isal refuses is read again. Files are
packed by zlib alone, so that their bytes do not depend on what is installed.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import zlib
from codecs import BOM_UTF8
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from probox.errors import InputError

Paths = str | os.PathLike[str]

DETECTIONS_EXPAND, TRUTH_EXPANDS = 100, 30
"""How much larger than a gzip file its content may be. Label probabilities that are all alike shrink to a thirtieth;
truth shrinks to a fifth, and its polygons take more memory than their text does."""
_ALWAYS_FINE = 1 << 26
"""Content up to this size is read whatever the expansion."""
_HEAD = 1 << 16
"""So many bytes tell what a file is."""

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that stands for another one, which `git lfs pull` puts in its place."""

_NOT_JSON = (
    (b"\xff\xfe", "is UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16 text", "save it as UTF-8"),
    (b"PK\x03\x04", "is a zip archive", "unpack it first"),
    (b"BZh", "is a bzip2 file", "decompress it first, or use gzip"),
    (b"\xfd7zXZ", "is an xz file", "decompress it first, or use gzip"),
    (b"\x28\xb5\x2f\xfd", "is a zstd file", "decompress it first, or use gzip"),
    (b"\x89PNG", "is a PNG image", "give the JSON file"),
    (b"\xff\xd8\xff", "is a JPEG image", "give the JSON file"),
    (b"\x93NUMPY", "is a NumPy array", "give the JSON file that names it"),
    (b"PAR1", "is a Parquet file", "give a JSON file"),
    (b"\x80", "looks like a pickle", "write JSON instead"),
)

_GZIP = b"\x1f\x8b"
_FIRST_PIECE, _LARGEST_PIECE = 1 << 9, 1 << 20
"""How many bytes of a gzip member are looked at first, and at most at once."""
_NO_FLAGS = 0xE0
"""Bits of a member's flags that must be 0, which isal does not look at."""
_LEVEL = 6
"""How hard zlib tries to write small files."""


def open_regular(path: Paths, *, pipe: bool = False, remedy: str | None = None, follow: bool = True) -> BinaryIO:
    """Open a file for reading, never waiting for it: pipes, devices and pointers of Git LFS are refused.

    Parameters
    ----------
    path : path
        The file.
    pipe : bool
        Accept a pipe too, for a path that the user named: ``<(zcat x.json.gz)``.
    remedy : str, optional
        What to do if there is no file, or none that can be used, where the user did not choose the path.
    follow : bool
        Follow a link, if the path is one.
    """
    name = str(path)
    try:
        if not follow and os.path.islink(path):
            raise InputError("is a link, which is not followed", file=name, remedy=remedy)
        if pipe and stat.S_ISFIFO(os.stat(path).st_mode):
            return open(path, "rb")
        # Without O_NONBLOCK, opening a pipe would wait for somebody to write to it.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) and os.read(descriptor, len(_LFS_POINTER)) != _LFS_POINTER:
            os.lseek(descriptor, 0, os.SEEK_SET)
            return open(descriptor, "rb")
        os.close(descriptor)
    except FileNotFoundError:
        raise InputError("no such file", file=name, remedy=remedy or "check the path") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise _unreadable(error, name) from None
    if stat.S_ISDIR(mode):
        raise InputError("expected a file, but this is a folder", file=name, remedy=remedy or "name a file in it")
    if stat.S_ISREG(mode):
        raise InputError("is a Git LFS pointer, not the file itself", file=name, remedy="fetch it with git lfs pull")
    kind = "pipe" if stat.S_ISFIFO(mode) else "device"
    problem = f"expected a file, but this is a {kind}"
    raise InputError(problem, file=name, remedy=remedy or "put a regular file in its place")


def read_regular(
    path: Paths,
    *,
    most: int | None = None,
    pipe: bool = False,
    remedy: str | None = None,
    follow: bool = True,
) -> bytes:
    """Return the bytes of a regular file.

    Parameters
    ----------
    path : path
        The file.
    most : int, optional
        A larger file is refused, unread.
    pipe : bool
        Accept a pipe too, for a path that the user named.
    remedy : str, optional
        What to do if there is no file, or none that can be used, where the user did not choose the path.
    follow : bool
        Follow a link, if the path is one.
    """
    name = str(path)
    with open_regular(path, pipe=pipe, remedy=remedy, follow=follow) as file:
        try:
            if most is None:
                return file.read()
            data = file.read(most + 1)
        except OSError as error:
            raise _unreadable(error, name) from None
        if len(data) > most:
            raise InputError(f"expected at most {most:,} bytes, but this file is larger", file=name, remedy=remedy)
        return data


def _unreadable(error: OSError | ValueError, name: str) -> InputError:
    remedy = "check its permissions" if isinstance(error, PermissionError) else None
    return InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=name, remedy=remedy)


def read_bytes(path: Paths, *, pipe: bool = True, expansion: int = DETECTIONS_EXPAND) -> bytes:
    """Return the content of a JSON file, decompressed if it is gzip, whatever its name says.

    Parameters
    ----------
    path : path
        The file.
    pipe : bool
        Accept a pipe too. Files that were found in a folder, rather than named by the user, are never pipes.
    expansion : int
        How many times the size of a gzip file its content may have.
    """
    return decompress(read_regular(path, pipe=pipe), str(path), expansion)


def decompress(data: bytes, name: str, expansion: int) -> bytes:
    """Return the content of a JSON file whose bytes these are; see `read_bytes`."""
    if data.startswith(_GZIP):
        data = unpack(data, name, max(_ALWAYS_FINE, expansion * len(data)))
    data = data.removeprefix(BOM_UTF8)
    for magic, what, remedy in _NOT_JSON:
        if data.startswith(magic):
            raise InputError(f"expected JSON, but this {what}", file=name, remedy=remedy)
    if b"\0" in data[:4]:
        raise InputError(
            "expected JSON, but this is a binary file or UTF-16 text", file=name, remedy="save it as UTF-8"
        )
    if not first_character(data):
        raise InputError("expected JSON, but the file is empty", file=name, remedy="write or download it again")
    return data


def file_head(path: Paths) -> bytes:
    """Return how a regular file begins, decompressed if it is gzip; nothing if it cannot be read."""
    try:
        with open_regular(path) as file:
            return head_of(file.read(_HEAD))
    except (InputError, OSError):
        return b""


def head_of(data: bytes) -> bytes:
    """Return how the content of a file begins whose first bytes these are; nothing if they are damaged gzip."""
    try:
        packed = data.startswith(_GZIP)
        head = zlib.decompressobj(wbits=31).decompress(data, _HEAD) if packed else data[:_HEAD]
    except zlib.error:
        return b""
    return head.removeprefix(BOM_UTF8)


def first_character(data: bytes) -> str:
    """Return the first character that is no white space: ``[`` for a list, ``{`` for an object."""
    found = re.search(rb"[^ \t\r\n]", data)
    return chr(data[found.start()]) if found else ""


def is_folder(path: Paths) -> bool:
    """Return whether `path` is a folder; a path that cannot be looked at is none."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


# --- gzip ---


def unpack(data: bytes, name: str, limit: int) -> bytes:
    """Return the content of all members of a gzip file, which may have up to `limit` bytes."""
    fast = _import_isal("isal_zlib")
    if fast is not None:
        try:
            return _unpack_members(fast, data, name, limit)
        except (fast.error, zlib.error, InputError):
            pass  # the two look at headers in another order: what zlib says counts
    try:
        return _unpack_members(zlib, data, name, limit)
    except zlib.error as error:
        raise InputError(f"the gzip data is damaged ({error})", file=name, remedy="download it again") from None


def pack(content: bytes) -> bytes:
    """Return content in the format of gzip; the same content gives the same bytes."""
    return gzip.compress(content, _LEVEL, mtime=0)


@cache
def _import_isal(module: str) -> Any:
    """Return a module of isal, or None if it is not installed."""
    try:
        return import_module(f"isal.{module}")
    except ImportError:
        return None


def _unpack_members(library: Any, data: bytes, name: str, limit: int) -> bytes:
    view = memoryview(data)
    content = io.BytesIO()
    at = 0
    while view[at : at + 2] == _GZIP:  # a gzip file may have several members
        flags = data[at + 3] if at + 3 < len(data) else 0
        try:
            at = _unpack_member(zlib if flags & _NO_FLAGS else library, view, at, content, limit)
        except EOFError:
            raise InputError("the gzip data is cut short", file=name, remedy="download it again") from None
        if content.tell() > limit:
            raise InputError(
                f"expands to more than {limit:,} bytes from {len(data):,}",
                file=name,
                remedy="decompress it first if you trust it",
            )
    if data[at:].strip(b"\0"):
        raise InputError("something follows the gzip data", file=name, remedy="download it again")
    return content.getvalue()


def _unpack_member(library: Any, data: memoryview, at: int, content: io.BytesIO, limit: int) -> int:
    """Add the content of the gzip member that starts at `at`, to just beyond `limit`; return where the member ends."""
    member = library.decompressobj(wbits=31)
    size = _FIRST_PIECE  # what follows a member is copied: pieces start small, for there may be many short members
    while not member.eof:
        piece = data[at : at + size]
        if not piece:
            raise EOFError
        content.write(member.decompress(piece, limit + 1 - content.tell()))
        if content.tell() > limit:
            break
        at += len(piece) - len(member.unused_data)
        size = min(2 * size, _LARGEST_PIECE)
    return at
