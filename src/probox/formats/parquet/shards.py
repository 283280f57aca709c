"""Which files make a set: Parquet files in a folder or at a URL, in folders of any depth."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from probox.errors import InputError
from probox.files.reading import Paths, is_folder
from probox.files.remote import check_not_flattened, is_url, remote_files
from probox.formats.label_text import has_sequences
from probox.formats.parquet.columns import REMEDY, is_parquet

__all__ = ["INDEX", "all_files", "find_shards", "is_parquet_source", "is_set", "is_shard_name"]

INDEX = "_index.parquet"
"""What says which images are in which shard; like all names that begin so, it is no shard."""

ENDING = ".parquet"


def is_shard_name(name: str) -> bool:
    """Return whether a file of a set is a shard: neither it nor a folder on the way to it is marked as something else.

    >>> [is_shard_name(name) for name in ("camera=front/part-0.parquet", "_index.parquet", ".tmp/part-0.parquet")]
    [True, False, False]
    """
    parts = PurePosixPath(name).parts
    return name.lower().endswith(ENDING) and not any(part.startswith(("_", ".")) for part in parts)


def is_parquet_source(path: Paths) -> bool:
    """Return whether this is a Parquet file, a folder that holds Parquet shards, or a URL, which may be either."""
    if is_url(path) or is_parquet(path):
        return True
    if not is_folder(path) or has_sequences(Path(path)):  # beside a challenge's sequences may lie what was found there
        return False
    try:
        return any(is_shard_name(name) or name == INDEX for name, _ in _walk(Path(path)))
    except OSError:
        return False


def is_set(path: Paths) -> bool:
    """Return whether a path or URL is a folder; raise for a URL at which there is nothing."""
    check_not_flattened(path)
    if not is_url(path):
        return is_folder(path)
    files = remote_files(str(path))
    if files is None:
        raise InputError("no such file or folder", file=str(path), remedy="check the URL")
    return list(files) != [""]


def find_shards(path: Paths) -> dict[str, int]:
    """Return the sizes of the shards of a set by their names in it, ascending."""
    found = {name: size for name, size in all_files(path).items() if is_shard_name(name)}
    if not found:
        raise InputError("expected Parquet files in this folder, but there are none", file=str(path), remedy=REMEDY)
    return dict(sorted(found.items()))


def all_files(path: Paths) -> dict[str, int]:
    """Return the sizes of all files in a folder and the folders in it, by their names in it."""
    if is_url(path):
        return remote_files(str(path)) or {}
    try:
        return {name: os.stat(found).st_size for name, found in _walk(Path(path))}
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}",
            file=str(error.filename or path),
            remedy="check its permissions",
        ) from None


def _walk(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield all files in a folder; linked folders are followed, each once, for a shard left out would go unnoticed."""
    seen: set[tuple[int, int]] = set()

    def stop(error: OSError) -> None:
        raise error

    for base, folders, files in os.walk(root, followlinks=True, onerror=stop):
        about = os.stat(base)
        if (about.st_dev, about.st_ino) in seen:
            folders.clear()
            continue
        seen.add((about.st_dev, about.st_ino))
        for name in files:
            found = Path(base) / name
            yield found.relative_to(root).as_posix(), found
