"""What an export says of itself beside its graph: class names, input size, task. Ultralytics' exports do."""

from __future__ import annotations

import ast
import dataclasses
import re
import warnings
from collections.abc import Mapping
from typing import Any

from probox.errors import InputError

__all__ = ["Metadata", "parse_names", "read_metadata"]

MOST_CHARACTERS = 1 << 18
"""Limit of an entry: Python takes up to 500 bytes of memory for each character of a literal."""
LARGEST_SIDE = 1 << 13
"""Limit of the input's width and height in pixels: one image of this size takes 0.8 GB."""

_ITEM = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\w.-]+)"""
_PAIR = rf"\s*(?:\d+\s*:\s*)?{_ITEM}\s*"
_FLAT = re.compile(rf"\s*(?:{_ITEM}|[\[({{](?:{_PAIR},)*(?:{_PAIR}|\s*)[\])}}])\s*", re.DOTALL)
"""A literal, or a list or dictionary of them: what nests deeper may exhaust the stack of the parser."""


@dataclasses.dataclass(frozen=True)
class Metadata:
    """What is known; None where the export does not say, or says it in no way that can be read."""

    names: tuple[str, ...] | None = None
    size: tuple[int, int] | None = None
    """Width and height of the input."""
    task: str | None = None
    stride: int | None = None
    head: str | None = None
    """What the export calls the last module, ``RTDETRDecoder`` say."""


def read_metadata(entries: Mapping[str, str]) -> Metadata:
    """Return what an export's entries ``names``, ``imgsz``, ``task``, ``stride`` and ``head`` say.

    ``character`` has a name in each line: RapidAI's exports of Paddle's models. An entry above the limits is refused.

    >>> read_metadata({"names": "{0: 'cup', 1: 'dog'}", "imgsz": "[480, 640]", "task": "detect", "stride": "32"})
    Metadata(names=('cup', 'dog'), size=(640, 480), task='detect', stride=32, head=None)
    """
    for name in ("names", "character", "imgsz", "task", "stride", "head"):
        if len(entries.get(name, "")) > MOST_CHARACTERS:
            raise _make_limit_error(name, f"{MOST_CHARACTERS:,} characters", f"{len(entries[name]):,}")
    return Metadata(
        parse_names(entries.get("names", ""))
        or _names([line for line in entries.get("character", "").splitlines() if line]),
        _size(_literal(entries.get("imgsz", ""))),
        entries.get("task") or None,
        _whole(_literal(entries.get("stride", ""))),
        entries.get("head") or None,
    )


def parse_names(text: str) -> tuple[str, ...] | None:
    """Return the class names of the entry ``names``, a list or a dictionary by number; None if it is neither.

    >>> parse_names("{0: 'cup', 1: 'dog'}"), parse_names("a cup")
    (('cup', 'dog'), None)
    """
    return _names(_literal(text))


def _make_limit_error(name: str, most: str, got: str) -> InputError:
    return InputError(
        f"expected at most {most}, but got {got}",
        entry=f"metadata {name}",
        remedy="export the model again, or remove this entry from metadata_props",
    )


def _literal(text: str) -> Any:
    if len(text) > MOST_CHARACTERS or not _FLAT.fullmatch(text):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escape sequences that Python does not know
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _names(value: Any) -> tuple[str, ...] | None:
    numbered = dict(enumerate(value)) if isinstance(value, list | tuple) else value
    if not isinstance(numbered, dict) or set(numbered) != set(range(len(numbered))) or not numbered:
        return None
    try:
        names = tuple(str(numbered[number]) for number in range(len(numbered)))
        "".join(names).encode()
    except ValueError:  # a number of more digits than Python writes, or half of a surrogate pair
        return None
    return names


def _size(value: Any) -> tuple[int, int] | None:
    sides = [value, value] if isinstance(value, int) else value
    if not isinstance(sides, list | tuple) or not 1 <= len(sides) <= 2 or not all(_whole(side) for side in sides):
        return None
    if max(sides) > LARGEST_SIDE:
        raise _make_limit_error("imgsz", f"{LARGEST_SIDE:,} px", f"{max(sides)!s:.20}")
    return int(sides[-1]), int(sides[0])


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
