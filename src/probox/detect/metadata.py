"""What an export says of itself beside its graph: class names, input size, task. Ultralytics' exports do."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from typing import Any

__all__ = ["Metadata", "read_metadata"]


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

    ``character`` has a name in each line: RapidAI's exports of Paddle's models.

    >>> read_metadata({"names": "{0: 'cup', 1: 'dog'}", "imgsz": "[480, 640]", "task": "detect", "stride": "32"})
    Metadata(names=('cup', 'dog'), size=(640, 480), task='detect', stride=32, head=None)
    """
    return Metadata(
        _names(_literal(entries.get("names")))
        or _names([line for line in entries.get("character", "").splitlines() if line]),
        _size(_literal(entries.get("imgsz"))),
        entries.get("task") or None,
        _whole(_literal(entries.get("stride"))),
        entries.get("head") or None,
    )


def _literal(text: str | None) -> Any:
    try:
        return None if text is None else ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _names(value: Any) -> tuple[str, ...] | None:
    numbered = dict(enumerate(value)) if isinstance(value, list | tuple) else value
    if not isinstance(numbered, dict) or set(numbered) != set(range(len(numbered))) or not numbered:
        return None
    return tuple(str(numbered[number]) for number in range(len(numbered)))


def _size(value: Any) -> tuple[int, int] | None:
    sides = [value, value] if isinstance(value, int) else value
    if not isinstance(sides, list | tuple) or not 1 <= len(sides) <= 2 or not all(_whole(side) for side in sides):
        return None
    return int(sides[-1]), int(sides[0])


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
