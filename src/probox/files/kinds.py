"""Which existing files a writer may replace: those of the kind it writes, and never one that it reads."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

from probox.errors import InputError
from probox.files.reading import Paths, file_head

GENERATOR = b'name="generator" content="probox'
"""What a page of the explorer has near its beginning."""
GRAPH_MARK = "probox_dropout"
"""What the masks in a graph are called after."""
EVALUATION_WORDS = "evaluation.json"
"""The file of a stored evaluation that says what it is."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a file holds, in words, and how to tell from a file that is there."""

    words: str
    recognises: Callable[[Path], bool]


def check_replaceable(path: Paths, kind: Kind, *, folder: bool = False) -> None:
    """Raise if there is a file at `path` that is neither empty nor of this kind.

    Parameters
    ----------
    path : path
        Where a file is to be written.
    kind : Kind
        What it will hold.
    folder : bool
        Whether its folder must be there.
    """
    place = Path(path)
    if folder and not Path(os.path.realpath(place)).parent.is_dir():
        raise InputError("the folder of this file does not exist", file=str(path), remedy="make it first")
    if not place.is_file() or place.is_symlink():
        return  # nothing there, or something that writing refuses anyway
    if place.stat().st_size and not kind.recognises(place):
        raise InputError(
            f"is there already and does not hold {kind.words}",
            file=str(path),
            remedy="choose another name, or move it away",
        )


def check_not_input(path: Paths, inputs: Iterable[Paths | None]) -> None:
    """Raise if `path` is one of the files or folders that are read to make it."""
    check_none_is_input([path], inputs)


def check_none_is_input(paths: Iterable[Paths], inputs: Iterable[Paths | None]) -> None:
    """Raise if one of many files to write is one of the many files or folders that are read to make them."""
    known = {sign for given in inputs if given is not None for sign in _signs(given)}
    for path in paths:
        if not known.isdisjoint(_signs(path)):
            raise InputError("would replace what it is made from", file=str(path), remedy="choose another name")


def _signs(path: Paths) -> list[str | tuple[int, int]]:
    """Return what two names of one file have in common: where they lead to and, for a file that is there, itself."""
    signs: list[str | tuple[int, int]] = []
    with suppress(OSError, ValueError):  # it is not there, or cannot be
        signs.append(os.path.realpath(path))
        found = os.stat(path)
        signs.append((found.st_dev, found.st_ino))
    return signs


def _holds_mask_nodes(path: Path) -> bool:
    try:
        return GRAPH_MARK.encode() in path.read_bytes()
    except OSError:
        return False


def _is_evaluation(path: Path) -> bool:
    """Return whether a file is one of the two of an evaluation; beside its words, the archive may be a damaged one."""
    head = file_head(path)
    if head.startswith(b"PK\x03\x04"):
        return _holds_masks(path) or _is_words(file_head(path.with_name(EVALUATION_WORDS)))
    return _is_words(head)


def _is_words(head: bytes) -> bool:
    return bool(re.match(rb"\s*\{", head)) and b'"format"' in head and b'"convention"' in head


def _holds_masks(path: Path) -> bool:
    try:
        with ZipFile(path) as archive:
            return "masks.boxes.npy" in archive.namelist()
    except Exception:  # zipfile raises whatever a damaged directory makes it stumble over
        return False


REPORT = Kind("a report", lambda path: GENERATOR in file_head(path))
GRAPH = Kind("a graph with masks", _holds_mask_nodes)
EVALUATION = Kind("an evaluation", _is_evaluation)
