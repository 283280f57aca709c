"""Parts of an evaluation: their images, their identity, and what a result keeps."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError

Keep = Literal["summary", "matches", "all"]
"""`all`: the tables of an `Evaluation`, about 200 bytes per detection. `matches`: about 10 bytes per detection, for mAP
and LRP, and sums per image. `summary`: sums only."""

KEEP: tuple[Keep, ...] = get_args(Keep)

KEPT_MEASURES: dict[Keep, tuple[str, ...]] = {
    "matches": ("pdq", "map", "lrp", "map-mask", "lrp-mask"),
    "summary": ("pdq",),
}
"""Metrics that can be computed from reduced results."""

MOST_PARTS = 10_000_000
"""Maximum number of parts, enough for ten parts for each of a million workers."""

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of an evaluation, or several merged ones.

    Parameters
    ----------
    numbers : tuple of int
        Numbers of the parts, from 1, ascending.
    of : int
        Total number of parts.
    whole : str
        Hash of the ids of all images of the evaluation.
    inputs : str
        Hash of the whole ground truth and detections.
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
        """Return the numbers of the missing parts."""
        return tuple(sorted(set(range(1, self.of + 1)) - set(self.numbers)))

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
        return {**dataclasses.asdict(self), "numbers": list(self.numbers)}

    @classmethod
    def from_dict(cls, words: dict[str, Any]) -> Part:
        """Return the part that `to_dict` described; raise `InputError` for an invalid one."""
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
    """Return the union of several parts; None if it is complete, or if they belong to different evaluations."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({(part.of, part.whole, part.inputs) for part in known}) != 1:
        return None
    numbers = tuple(sorted({number for part in known for number in part.numbers}))
    together = dataclasses.replace(known[0], numbers=numbers)
    return together if together.missing else None


def hash_ids(image_ids: npt.NDArray[np.int64]) -> str:
    """Return a hash of image ids."""
    import hashlib  # imports OpenSSL, which results that are not parts do not need

    return hashlib.sha256(np.ascontiguousarray(image_ids, "<i8").tobytes()).hexdigest()


def parse_part(part: Any) -> tuple[int, int]:
    """Return number and count of a part given as ``"3/16"`` or ``(3, 16)``.

    >>> parse_part("3/16")
    (3, 16)
    """
    given: Any = part
    if isinstance(part, str):
        found = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", part)
        given = (int(found[1]), int(found[2])) if found else None
    fine = isinstance(given, tuple | list) and len(given) == 2 and all(_is_whole(number) for number in given)
    if not fine or not 1 <= given[0] <= given[1] <= MOST_PARTS:
        raise InputError(f"expected a part such as 3/16 (part 3 of 16), but got {part!r:.40}")
    return int(given[0]), int(given[1])


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def images_of_part(image_ids: npt.NDArray[np.int64], number: int, of: int) -> npt.NDArray[np.int64]:
    """Return the ids of one part's images, given all ids in ascending order.

    Parts are consecutive ranges of ids whose lengths differ by at most one. If there are more parts than images, some
    are empty.

    >>> [images_of_part(np.arange(7), number, 3).tolist() for number in (1, 2, 3)]
    [[0, 1], [2, 3], [4, 5, 6]]
    """
    return image_ids[len(image_ids) * (number - 1) // of : len(image_ids) * number // of]


def check_keep(keep: Any) -> Keep:
    """Return `keep`, or raise if it is unknown."""
    if keep not in KEEP:
        raise InputError(f"expected keep to be one of {', '.join(KEEP)}, but got {keep!r:.40}")
    chosen: Keep = keep
    return chosen


def measures_to_keep(measures: Sequence[str], keep: Keep, *, asked: bool) -> tuple[str, ...]:
    """Return the metrics that can be kept.

    Parameters
    ----------
    measures : sequence of str
        Wanted metrics.
    keep : {"summary", "matches", "all"}
        Size of the result.
    asked : bool
        Raise if a metric cannot be kept, because the user named it.
    """
    if keep == "all":
        return tuple(measures)
    possible = tuple(name for name in measures if name in KEPT_MEASURES[keep])
    lacking = [name for name in measures if name not in possible]
    if (asked and lacking) or not possible:
        wider = "matches" if set(lacking) <= set(KEPT_MEASURES["matches"]) else "all"
        raise InputError(
            f"{', '.join(lacking)} cannot be computed with keep={keep!r}, which is for "
            f"{', '.join(KEPT_MEASURES[keep])}",
            remedy=f"use {{option:keep={wider}}}, or omit these metrics",
        )
    return possible
