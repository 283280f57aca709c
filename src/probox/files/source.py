"""Inputs that the user named: files, folders, pipes, and URLs such as ``s3://bucket/found``, which fsspec reaches."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import PurePath
from typing import Any, BinaryIO

from probox.errors import InputError
from probox.files.output import Content
from probox.files.reading import (
    DETECTIONS_EXPAND,
    Paths,
    decompress,
    file_head,
    first_character,
    head_of,
    is_folder,
    read_bytes,
    read_regular,
)
from probox.support.optional import pip_command, require

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]+"
_URL = re.compile(rf"(?:{_SCHEME}::)*{_SCHEME}://")
_FLATTENED = re.compile(rf"(?:{_SCHEME}::)*{_SCHEME}:/(?!/)")


class Source:
    """A file, folder or pipe to read, or the URL of a file or folder: a pipe can be read only once."""

    def __init__(self, path: Paths) -> None:
        self.path = path
        self.name = str(path)
        check_not_flattened(path)
        self.is_url = is_url(path)
        self.is_folder = is_folder(path)

    def content(self, expansion: int = DETECTIONS_EXPAND) -> bytes:
        """Return the bytes of a text file, decompressed to at most so many times its size."""
        if self._piped is not None:
            return decompress(self._piped, self.name, expansion)
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


def is_url(path: object) -> bool:
    """Return whether a text names something by its URL.

    >>> is_url("s3://bucket/found"), is_url("found/part-0.parquet"), is_url("data.yaml:test")
    (True, False, False)
    """
    return isinstance(path, str) and _URL.match(path) is not None


def is_flattened(path: Paths) -> bool:
    """Return whether this is a URL that was made a `pathlib.Path`, which leaves one of its slashes out."""
    return isinstance(path, PurePath) and _FLATTENED.match(path.as_posix()) is not None and not os.path.lexists(path)


def check_not_flattened(path: Paths) -> None:
    """Raise for a URL that was made a `pathlib.Path`."""
    if is_flattened(path):
        raise InputError("looks like a URL that became a path", file=str(path), remedy="give URLs as text, not as Path")


def inside(path: Paths, name: str) -> str:
    """Return the path or URL of what is called `name` in a folder."""
    return f"{str(path).rstrip('/')}/{name}" if is_url(path) else os.path.join(path, name)


def remote_files(url: str) -> dict[str, int] | None:
    """Return the sizes of all files in a folder and the folders in it, by their names in it.

    One file is itself under an empty name; None if there is nothing.
    """
    with _catch_driver_errors(url, "read"):
        system, path = _system(url)
        system.invalidate_cache()  # what was written a moment ago belongs to it
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
    """Open a file for reading at any place in it."""
    with _catch_driver_errors(url, "read"):
        system, path = _system(url)
        file: BinaryIO = system.open(path, "rb")
        return file


def write_remote(url: str, content: Content) -> None:
    """Write a file, given as bytes or as a function that writes to an open one; a failure leaves none where it can."""
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
            if discard is not None:  # an upload in parts that nobody ends is no file
                discard()
            raise
        file.close()


def remove_remote(url: str) -> None:
    """Remove a file."""
    with _catch_driver_errors(url, "removed"):
        system, path = _system(url)
        system.rm_file(path)


def _system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the path there."""
    core = require("fsspec.core", extra="distributed", purpose="URLs need")
    try:
        system, path = core.url_to_fs(url)
    except ImportError as error:
        raise _without_driver(url, str(error)) from None
    except ValueError as error:
        if "rotocol not known" not in str(error):
            raise
        raise InputError(
            f"nothing is known of the scheme {_scheme(url)!r}", file=url, remedy="use one of fsspec, such as s3 or gs"
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
    """Turn whatever drivers raise into one sentence: each has exceptions of its own."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("no such file", file=url, remedy="check the URL") from None
    except PermissionError as error:
        reason = " ".join(str(error).split())[:200] or "permission denied"
        remedy = "check its permissions, and the credentials that its driver uses"
        raise InputError(f"cannot be {deed}: {reason}", file=url, remedy=remedy) from None
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"cannot be {deed}: {reason}", file=url, remedy="check the URL and the connection") from None
