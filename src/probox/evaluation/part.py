"""Which part of a whole an evaluation is: what a join needs to know to say that parts are missing or foreign."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError

__all__ = ["MOST_PARTS", "Part", "hash_of_ids", "part_of_all"]

MOST_PARTS = 10_000_000
"""A whole is cut into at most so many parts: as many as a million workers take in turns."""

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of an evaluation, or several that are joined already.

    Parameters
    ----------
    numbers : tuple of int
        Which ones, counted from 1, ascending.
    of : int
        How many there are.
    whole : str
        The hash of the ids of all images that were shared out among the parts.
    inputs : str
        The hash of what was evaluated: ground truth and detections, all of them.
    """

    numbers: tuple[int, ...]
    of: int
    whole: str
    inputs: str

    def __str__(self) -> str:
        one = len(self.numbers) == 1
        return f"part {self.numbers[0]} of {self.of}" if one else f"{len(self.numbers)} of {self.of} parts"

    @property
    def missing(self) -> tuple[int, ...]:
        """Return the numbers of the parts that are not here."""
        return tuple(sorted(set(range(1, self.of + 1)) - set(self.numbers)))

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**dataclasses.asdict(self), "numbers": list(self.numbers)}

    @classmethod
    def from_dict(cls, words: dict[str, Any]) -> Part:
        """Return the part that `to_dict` described; what cannot be one is an `InputError`."""
        names = {field.name for field in dataclasses.fields(cls)}
        if words.keys() != names:
            raise InputError(f"expected {', '.join(sorted(names))}")
        numbers, of = words["numbers"], words["of"]
        if type(of) is not int or not 1 <= of <= MOST_PARTS:
            raise InputError("expected `of` to be a number of parts")
        if not isinstance(numbers, list) or not numbers or not all(type(number) is int for number in numbers):
            raise InputError("expected `numbers` to be a list of whole numbers")
        if numbers != sorted(set(numbers)) or numbers[0] < 1 or numbers[-1] > of:
            raise InputError(f"expected `numbers` from 1 to {of}, each once and ascending")
        for name in ("whole", "inputs"):
            if not isinstance(words[name], str) or not _HASH.fullmatch(words[name]):
                raise InputError(f"expected `{name}` to be a hash")
        return cls(tuple(numbers), of, words["whole"], words["inputs"])


def part_of_all(parts: Sequence[Part | None]) -> Part | None:
    """Return what several parts are together; None if that is the whole, or parts of nothing that they share."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({(part.of, part.whole, part.inputs) for part in known}) != 1:
        return None
    numbers = tuple(sorted({number for part in known for number in part.numbers}))
    together = dataclasses.replace(known[0], numbers=numbers)
    return together if together.missing else None


def hash_of_ids(image_ids: npt.NDArray[np.int64]) -> str:
    """Return a text that differs between lists of image ids that differ."""
    import hashlib  # which loads OpenSSL, and most results are no parts

    return hashlib.sha256(np.ascontiguousarray(image_ids, "<i8").tobytes()).hexdigest()
