"""Problems as the kernel reports them, on their way to an error or a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NoReturn

from probox.errors import InputError

__all__ = ["Finding", "RawProblems", "raise_first"]

RawProblems = Sequence[tuple[str, bool, int, Sequence[tuple[int | None, str, str, str]]]]
"""What the kernel's readers return: kind, fatal, count, and examples of (image, entry, text, remedy)."""


@dataclasses.dataclass
class Finding:
    """One kind of problem: how often it was found, and the first examples."""

    kind: str
    count: int
    examples: list[InputError]
    error: bool = True


def raise_first(problems: RawProblems, file: str) -> None:
    """Raise the first problem, if there is one."""
    if problems:
        _kind, _fatal, _count, examples = problems[0]
        _raise(examples[0], file)


def _raise(example: tuple[int | None, str, str, str], file: str) -> NoReturn:
    image, entry, text, remedy = example
    raise InputError(text, file=file, image=image, entry=entry or None, remedy=remedy or None)
