"""Parts of an evaluation: which images each has, which part a result is, and how much of a result is kept."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError

Keep = Literal["summary", "matches", "all"]
"""`all`: the tables of an `Evaluation`, about 200 bytes a detection. `matches`: about 10 bytes a detection, from which
mAP and LRP follow, and sums for each image. `summary`: sums alone."""

KEEP: tuple[Keep, ...] = get_args(Keep)

KEPT_MEASURES: dict[Keep, tuple[str, ...]] = {"matches": ("pdq", "map", "lrp"), "summary": ("pdq",)}
"""The measures that follow from what is kept where that is not all."""

MOST_PARTS = 10_000_000
"""Maximum number of parts: as many as a million workers take in turns."""

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


def combine_parts(parts: Sequence[Part | None]) -> Part | None:
    """Return what several parts are together; None if that is the whole, or parts of nothing that they share."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({(part.of, part.whole, part.inputs) for part in known}) != 1:
        return None
    numbers = tuple(sorted({number for part in known for number in part.numbers}))
    together = dataclasses.replace(known[0], numbers=numbers)
    return together if together.missing else None


def hash_ids(image_ids: npt.NDArray[np.int64]) -> str:
    """Return a text that differs between lists of image ids that differ."""
    import hashlib  # which loads OpenSSL, and most results are no parts

    return hashlib.sha256(np.ascontiguousarray(image_ids, "<i8").tobytes()).hexdigest()


def parse_part(part: Any) -> tuple[int, int]:
    """Return number and count of a part that is given as ``"3/16"`` or ``(3, 16)``.

    >>> parse_part("3/16")
    (3, 16)
    """
    given: Any = part
    if isinstance(part, str):
        found = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", part)
        given = (int(found[1]), int(found[2])) if found else None
    fine = isinstance(given, tuple | list) and len(given) == 2 and all(_is_whole(number) for number in given)
    if not fine or not 1 <= given[0] <= given[1] <= MOST_PARTS:
        raise InputError(f"expected a part such as 3/16, the third of sixteen, but got {part!r:.40}")
    return int(given[0]), int(given[1])


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def images_of_part(image_ids: npt.NDArray[np.int64], number: int, of: int) -> npt.NDArray[np.int64]:
    """Return the ids of one part's images, given all of them ascending.

    Parts are ranges of ids that follow each other and differ by at most one image. Where there are more parts than
    images, some have none.

    >>> [images_of_part(np.arange(7), number, 3).tolist() for number in (1, 2, 3)]
    [[0, 1], [2, 3], [4, 5, 6]]
    """
    return image_ids[len(image_ids) * (number - 1) // of : len(image_ids) * number // of]


def check_keep(keep: Any) -> Keep:
    """Return what is to be kept, or raise."""
    if keep not in KEEP:
        raise InputError(f"expected keep to be one of {', '.join(KEEP)}, but got {keep!r:.40}")
    chosen: Keep = keep
    return chosen


def measures_to_keep(measures: Sequence[str], keep: Keep, *, asked: bool) -> tuple[str, ...]:
    """Return the measures that can be kept.

    Parameters
    ----------
    measures : sequence of str
        Those that are wanted.
    keep : {"summary", "matches", "all"}
        How much is kept.
    asked : bool
        The user named them, so that none may be left out.
    """
    if keep == "all":
        return tuple(measures)
    possible = tuple(name for name in measures if name in KEPT_MEASURES[keep])
    lacking = [name for name in measures if name not in possible]
    if (asked and lacking) or not possible:
        wider = "matches" if set(lacking) <= set(KEPT_MEASURES["matches"]) else "all"
        raise InputError(
            f"{', '.join(lacking)} cannot follow from what keep={keep!r} keeps, which is for "
            f"{', '.join(KEPT_MEASURES[keep])}",
            remedy=f"use {{option:keep={wider}}}, or leave out these measures",
        )
    return possible
