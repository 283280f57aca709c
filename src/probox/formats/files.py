"""Getting the bytes of input files, and putting those of output files, without surprises."""

from __future__ import annotations

import os
import re
import stat
import zlib
from pathlib import Path

from probox.errors import InputError

__all__ = ["Paths", "first_character", "is_folder", "read_bytes"]

Paths = str | os.PathLike[str]

_GZIP_MAGIC = b"\x1f\x8b"
_MAX_EXPANSION = 200
"""How much larger than a gzip file its content may be; detections of zeros alone stay below this."""
_ALWAYS_FINE = 1 << 30
"""Content up to this size is read whatever the expansion."""

_NOT_JSON = (
    (b"\xef\xbb\xbf", "starts with a byte order mark", "save it as UTF-8 without one"),
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


def read_bytes(path: Paths) -> bytes:
    """Return the content of a JSON file, decompressed if it is gzip, whatever its name says."""
    name = str(path)
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
                raise InputError("expected a file, but this is a device", file=name)
            data = file.read()
    except IsADirectoryError:
        raise InputError("expected a file, but this is a folder", file=name, remedy="name a file in it") from None
    except FileNotFoundError:
        raise InputError("no such file", file=name, remedy="check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", file=name) from None
    if data.startswith(_GZIP_MAGIC):
        data = _gunzip(data, name)
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


def _gunzip(data: bytes, name: str) -> bytes:
    limit = max(_ALWAYS_FINE, _MAX_EXPANSION * len(data))
    parts: list[bytes] = []
    size = 0
    rest = data
    while rest.startswith(_GZIP_MAGIC):  # a gzip file may have several members
        member = zlib.decompressobj(wbits=31)
        try:
            part = member.decompress(rest, limit - size + 1)
        except zlib.error as error:
            raise InputError(f"the gzip data is damaged ({error})", file=name, remedy="download it again") from None
        size += len(part)
        if size > limit:
            raise InputError(
                f"expands to more than {limit:,} bytes from {len(data):,}",
                file=name,
                remedy="decompress it first if you trust it",
            )
        if not member.eof:
            raise InputError("the gzip data is cut short", file=name, remedy="download it again")
        parts.append(part)
        rest = member.unused_data
    if rest.strip(b"\0"):
        raise InputError("something follows the gzip data", file=name, remedy="download it again")
    return parts[0] if len(parts) == 1 else b"".join(parts)


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
