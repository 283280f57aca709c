"""Content in the format of gzip: unpacked by isal where it is installed and by zlib where it is not.

isal unpacks two to three times as fast as zlib. What is wrong with a file is always said in zlib's words: whatever isal
refuses is read again. Files are packed by zlib alone, so that their bytes do not depend on what is installed.
"""

from __future__ import annotations

import gzip
import io
import zlib
from functools import cache
from importlib import import_module
from typing import Any

from probox.errors import InputError

__all__ = ["GZIP_MAGIC", "packed", "unpacked"]

GZIP_MAGIC = b"\x1f\x8b"
_FIRST_PIECE, _LARGEST_PIECE = 1 << 9, 1 << 20
"""How many bytes of a gzip member are looked at first, and at most at once."""
_NO_FLAGS = 0xE0
"""Bits of a member's flags that must be 0, which isal does not look at."""
_LEVEL = 6
"""How hard zlib tries to write small files."""


def unpacked(data: bytes, name: str, limit: int) -> bytes:
    """Return the content of all members of a gzip file, which may have up to `limit` bytes."""
    fast = _isal("isal_zlib")
    if fast is not None:
        try:
            return _all_members(fast, data, name, limit)
        except (fast.error, zlib.error, InputError):
            pass  # the two look at headers in another order: what zlib says counts
    try:
        return _all_members(zlib, data, name, limit)
    except zlib.error as error:
        raise InputError(f"the gzip data is damaged ({error})", file=name, remedy="download it again") from None


def packed(content: bytes) -> bytes:
    """Return content in the format of gzip; the same content gives the same bytes."""
    return gzip.compress(content, _LEVEL, mtime=0)


@cache
def _isal(module: str) -> Any:
    """Return a module of isal, or None if it is not installed."""
    try:
        return import_module(f"isal.{module}")
    except ImportError:
        return None


def _all_members(library: Any, data: bytes, name: str, limit: int) -> bytes:
    view = memoryview(data)
    content = io.BytesIO()
    at = 0
    while view[at : at + 2] == GZIP_MAGIC:  # a gzip file may have several members
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
