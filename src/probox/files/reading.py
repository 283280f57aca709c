"""Bytes of inputs: files, folders, pipes, gzip, and URLs such as ``s3://bucket/found`` (through fsspec).

isal decompresses gzip two to three times as fast as zlib. Error messages are always zlib's: data that isal refuses is
read again. Writing uses zlib only, so that the bytes do not depend on installed packages.
"""

from __future__ import annotations

import io
import os
import re
import stat
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from probox import _core
from probox.errors import InputError
from probox.support.optional import pip_command, require
from probox.support.parallel import thread_count

if TYPE_CHECKING:
    from probox.files.output import Content

Paths = str | os.PathLike[str]

DETECTIONS_EXPAND, TRUTH_EXPANDS = 100, 30
"""Largest allowed ratio of content to gzip file. Identical label probabilities compress to a thirtieth. Ground truth
compresses to a fifth, but its polygons take more memory than their text."""
_ALWAYS_FINE = 1 << 26
"""Content up to this size in bytes is read at any ratio."""
_HEAD = 1 << 16
"""Bytes that are enough for format detection."""

_LARGE = 1 << 22
"""Size in bytes from which several threads read a file."""

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""First bytes of a Git LFS pointer, which `git lfs pull` replaces by the file itself."""

PARQUET_MAGIC = b"PAR1"
"""First and last bytes of a Parquet file."""

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
    (PARQUET_MAGIC, "is a Parquet file", "give a JSON file"),
    (b"\x80", "looks like a pickle", "write JSON instead"),
)

_GZIP = b"\x1f\x8b"
_FIRST_PIECE, _LARGEST_PIECE = 1 << 9, 1 << 20
"""Bytes of a gzip member in the first piece and in the largest piece."""
_NO_FLAGS = 0xE0
"""Flag bits of a member that must be 0; isal does not check them."""
_LEVEL = 6
"""Compression level of zlib."""


def open_regular(path: Paths, *, pipe: bool = False, remedy: str | None = None, follow: bool = True) -> BinaryIO:
    """Open a file for reading without blocking; refuse pipes, devices and Git LFS pointers.

    Parameters
    ----------
    path : path
        The file.
    pipe : bool
        Also accept a pipe, for a path that the user named: ``<(zcat x.json.gz)``.
    remedy : str, optional
        Fix shown in the error if the file is missing or unusable, for paths that the user did not choose.
    follow : bool
        Follow links.
    """
    name = str(path)
    try:
        if not follow and os.path.islink(path):
            raise InputError("is a link, which is not followed", file=name, remedy=remedy)
        if pipe and stat.S_ISFIFO(os.stat(path).st_mode):
            return open(path, "rb")
        # Without O_NONBLOCK, opening a pipe would block until another process writes to it.
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
    path: Paths, *, most: int | None = None, pipe: bool = False, remedy: str | None = None, follow: bool = True
) -> bytes:
    """Return the bytes of a regular file, at most `most`; the other parameters are those of `open_regular`."""
    name = str(path)
    with open_regular(path, pipe=pipe, remedy=remedy, follow=follow) as file:
        try:
            data = (_read_large(file) if most is None else None) or file.read(-1 if most is None else most + 1)
        except OSError as error:
            raise _unreadable(error, name) from None
    if most is not None and len(data) > most:
        raise InputError(f"expected at most {most:,} bytes, but this file is larger", file=name, remedy=remedy)
    return data


def _read_large(file: BinaryIO) -> bytes | None:
    """Return the content of a large file, read by several threads into huge pages; None for other files."""
    size = os.fstat(file.fileno()).st_size
    return _core.read_file(file.fileno(), size, thread_count(None)) if size >= _LARGE else None


def _unreadable(error: OSError | ValueError, name: str) -> InputError:
    remedy = "check its permissions" if isinstance(error, PermissionError) else None
    return InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=name, remedy=remedy)


def read_bytes(path: Paths, *, pipe: bool = True, expansion: int = DETECTIONS_EXPAND) -> bytes:
    """Return the content of a JSON file; gzip is decompressed to at most `expansion` times its size.

    Pass ``pipe=False`` for files found in a folder, which the user did not name.
    """
    return decompress(read_regular(path, pipe=pipe), str(path), expansion)


def decompress(data: bytes, name: str, expansion: int) -> bytes:
    """Return the content of a JSON file from its raw bytes; see `read_bytes`."""
    if data.startswith(_GZIP):
        data = unpack(data, name, max(_ALWAYS_FINE, expansion * len(data)))
    data = data.removeprefix(BOM_UTF8)
    for magic, what, remedy in _NOT_JSON:
        if data.startswith(magic):
            raise InputError(f"expected JSON, but this {what}", file=name, remedy=remedy)
    if b"\0" in data[:4]:
        problem = "expected JSON, but this is a binary file or UTF-16 text"
        raise InputError(problem, file=name, remedy="save it as UTF-8")
    if not first_character(data):
        raise InputError("expected JSON, but the file is empty", file=name, remedy="write or download it again")
    return data


def file_head(path: Paths) -> bytes:
    """Return the first bytes of a regular file, decompressed if it is gzip; empty if it cannot be read."""
    try:
        with open_regular(path) as file:
            return head_of(file.read(_HEAD))
    except (InputError, OSError):
        return b""


def head_of(data: bytes) -> bytes:
    """Return the first bytes of a file's content from its raw bytes; empty for damaged gzip data."""
    try:
        packed = data.startswith(_GZIP)
        head = zlib.decompressobj(wbits=31).decompress(data, _HEAD) if packed else data[:_HEAD]
    except zlib.error:
        return b""
    return head.removeprefix(BOM_UTF8)


def first_character(data: bytes) -> str:
    """Return the first character that is not white space: ``[`` for a list, ``{`` for an object."""
    found = re.search(rb"[^ \t\r\n]", data)
    return chr(data[found.start()]) if found else ""


def is_folder(path: Paths) -> bool:
    """Return whether `path` is a folder; False if the path is inaccessible or invalid."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def is_parquet(path: Paths) -> bool:
    """Return whether a file starts like a Parquet file; False for pipes, which can be read only once."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except (OSError, ValueError):
        return False


# --- gzip ---


def unpack(data: bytes, name: str, limit: int) -> bytes:
    """Return the content of all members of a gzip file, at most `limit` bytes."""
    fast = _import_isal()
    if fast is not None:
        try:
            return _unpack_members(fast, data, name, limit)
        except (fast.error, zlib.error, InputError):
            pass  # isal checks headers in another order than zlib; zlib's message is reported
    try:
        return _unpack_members(zlib, data, name, limit)
    except zlib.error as error:
        raise InputError(f"the gzip data is damaged ({error})", file=name, remedy="download it again") from None


def pack(content: bytes) -> bytes:
    """Compress content as gzip; equal content gives equal bytes."""
    import gzip

    return gzip.compress(content, _LEVEL, mtime=0)


@cache
def _import_isal() -> Any:
    """Return isal's zlib, or None if it is not installed."""
    with suppress(ImportError):
        return import_module("isal.isal_zlib")
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
    """Append the content of the gzip member at `at`, up to just beyond `limit`; return where the member ends."""
    member = library.decompressobj(wbits=31)
    size = _FIRST_PIECE  # small first: the rest of a piece is copied after each member, and there may be many
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


# --- URLs ---

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]+"
_URL = re.compile(rf"(?:{_SCHEME}::)*{_SCHEME}://")
_FLATTENED = re.compile(rf"(?:{_SCHEME}::)*{_SCHEME}:/(?!/)")


class Source:
    """A file, folder, pipe or URL to read. The content of a pipe is kept, as it can be read only once."""

    def __init__(self, path: Paths) -> None:
        self.path = path
        self.name = str(path)
        check_not_flattened(path)
        self.is_url = is_url(path)
        self.is_folder = is_folder(path)

    def content(self, expansion: int = DETECTIONS_EXPAND) -> bytes:
        """Return the bytes of a text file, decompressed to at most `expansion` times its size."""
        if self._piped is not None:
            return decompress(self._piped, self.name, expansion)
        return read_bytes(self.path, expansion=expansion)

    @cached_property
    def head(self) -> bytes:
        """First bytes of the file, decompressed; empty for folders and unreadable files."""
        return file_head(self.path) if self._piped is None else head_of(self._piped)

    @cached_property
    def first_character(self) -> str:
        """First character that is not white space: ``[`` for a list, ``{`` for an object; empty for a folder."""
        return "" if self.is_folder else first_character(self.head) or first_character(self.content())

    @cached_property
    def _piped(self) -> bytes | None:
        try:
            is_pipe = stat.S_ISFIFO(os.stat(self.path).st_mode)
        except (OSError, ValueError):  # the reader reports the error
            return None
        return read_regular(self.path, pipe=True) if is_pipe else None


def is_url(path: object) -> bool:
    """Return whether a text is a URL.

    >>> is_url("s3://bucket/found"), is_url("found/part-0.parquet"), is_url("data.yaml:test")
    (True, False, False)
    """
    return isinstance(path, str) and _URL.match(path) is not None


def is_flattened(path: Paths) -> bool:
    """Return whether a path is a URL that was turned into a `pathlib.Path`, which drops one of its slashes."""
    return isinstance(path, PurePath) and _FLATTENED.match(path.as_posix()) is not None and not os.path.lexists(path)


def check_not_flattened(path: Paths) -> None:
    """Raise for a URL that was turned into a `pathlib.Path`."""
    if is_flattened(path):
        raise InputError("looks like a URL that became a path", file=str(path), remedy="give URLs as text, not as Path")


def inside(path: Paths, name: str) -> str:
    """Return the path or URL of the entry `name` in a folder."""
    return f"{str(path).rstrip('/')}/{name}" if is_url(path) else os.path.join(path, name)


def remote_files(url: str) -> dict[str, int] | None:
    """Return the sizes in bytes of all files below a folder, by their relative names.

    A single file has an empty name. None if nothing exists there.
    """
    with _catch_driver_errors(url, "read"):
        system, path = _system(url)
        system.invalidate_cache()  # the cache may miss files written a moment ago
        try:
            about = system.info(path)
        except FileNotFoundError:
            return None
        if about.get("type") != "directory":
            return {"": int(about.get("size") or 0)}
        found = system.find(path, detail=True)
        root = path.rstrip("/") + "/"
        return {
            name.removeprefix(root): int(entry.get("size") or 0)
            for name, entry in sorted(found.items())
            if entry.get("type") != "directory"
        }


def open_remote(url: str) -> BinaryIO:
    """Open a remote file for random access."""
    with _catch_driver_errors(url, "read"):
        system, path = _system(url)
        file: BinaryIO = system.open(path, "rb")
        return file


def write_remote(url: str, content: Content) -> None:
    """Write a remote file, given as bytes or as a function that writes to an open file; discard it on failure."""
    with _catch_driver_errors(url, "written"):
        system, path = _system(url)
        parent = path.rsplit("/", 1)[0]
        if parent and parent != path:
            system.makedirs(parent, exist_ok=True)
        file = system.open(path, "wb")
        try:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
        except BaseException:
            discard = getattr(file, "discard", None)
            if discard is not None:  # discarding aborts a multipart upload
                discard()
            raise
        file.close()


def remove_remote(url: str) -> None:
    """Remove a remote file."""
    with _catch_driver_errors(url, "removed"):
        system, path = _system(url)
        system.rm_file(path)


def _system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the path on it."""
    core = require("fsspec.core", extra="distributed", purpose="URLs need")
    try:
        system, path = core.url_to_fs(url)
    except ImportError as error:
        raise _without_driver(url, str(error)) from None
    except ValueError as error:
        if "rotocol not known" not in str(error):
            raise
        raise InputError(
            f"unknown scheme {_scheme(url)!r}", file=url, remedy="use a scheme of fsspec, such as s3 or gs"
        ) from None
    return system, str(path)


def _scheme(url: str) -> str:
    return url.split("://", 1)[0].rsplit("::", 1)[-1]


def _without_driver(url: str, reason: str) -> InputError:
    from fsspec.registry import known_implementations

    known = str(known_implementations.get(_scheme(url), {}).get("class", ""))
    package = known.split(".")[0]
    remedy = f"install it with: {pip_command()} install {package}" if package and package != "fsspec" else None
    return InputError(
        f"the scheme {_scheme(url)!r} needs a driver ({' '.join(reason.split())[:200]})", file=url, remedy=remedy
    )


@contextmanager
def _catch_driver_errors(url: str, deed: str) -> Iterator[None]:
    """Turn driver exceptions into an `InputError`; each driver has its own exception classes."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("no such file", file=url, remedy="check the URL") from None
    except Exception as error:
        denied = isinstance(error, PermissionError)
        reason = " ".join(str(error).split())[:200] or ("permission denied" if denied else type(error).__name__)
        remedy = "check its permissions, and the credentials that its driver uses"
        remedy = remedy if denied else "check the URL and the connection"
        raise InputError(f"cannot be {deed}: {reason}", file=url, remedy=remedy) from None
