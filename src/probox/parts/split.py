"""How the images of a whole are shared out among parts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.part import MOST_PARTS

__all__ = ["images_of_part", "parsed_part"]

Ids = npt.NDArray[np.int64]


def parsed_part(part: Any) -> tuple[int, int]:
    """Return number and count of a part that is given as ``"3/16"`` or ``(3, 16)``.

    >>> parsed_part("3/16")
    (3, 16)
    """
    given: Any = part
    if isinstance(part, str):
        found = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", part)
        given = (int(found[1]), int(found[2])) if found else None
    whole = isinstance(given, tuple | list) and len(given) == 2 and all(_is_whole(number) for number in given)
    if not whole or not 1 <= given[0] <= given[1] <= MOST_PARTS:
        raise InputError(f"expected a part such as 3/16, the third of sixteen, but got {part!r:.40}")
    return int(given[0]), int(given[1])


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def images_of_part(image_ids: Ids, number: int, of: int) -> Ids:
    """Return the ids of one part's images: the part's share of all of them, which ascend.

    Parts are ranges of ids that follow each other and differ by at most one image. Where there are more parts than
    images, some have none.

    >>> [images_of_part(np.arange(7), number, 3).tolist() for number in (1, 2, 3)]
    [[0, 1], [2, 3], [4, 5, 6]]
    """
    return image_ids[len(image_ids) * (number - 1) // of : len(image_ids) * number // of]
