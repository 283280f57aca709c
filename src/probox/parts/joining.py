"""Parts of one evaluation as the whole, whatever their order; what is missing, foreign or there twice is named."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from probox.errors import InputError
from probox.evaluation.joining import join_evaluations
from probox.evaluation.part import Part, hash_of_ids
from probox.evaluation.result import Evaluation
from probox.parts.compact import CompactEvaluation, join_compact
from probox.parts.storage import Result, load
from probox.support.words import some_names

__all__ = ["join"]


def join(results: Iterable[Result | str | os.PathLike[str]], *, complete: bool = True) -> Result:
    """Return one result of the parts of a whole, equal to the bit to that of one machine, whatever their order.

    Parts of `evaluate_part` know of what they are parts: missing and foreign ones are named, and such that are there
    twice. Results that are no parts are joined too, if they were measured alike and share no image.

    Parameters
    ----------
    results : iterable of results or folders
        What `evaluate_part` returned, or where it was saved.
    complete : bool
        Raise if parts are missing. Otherwise the result is a part itself, to be joined with the rest later.

    Returns
    -------
    Evaluation or CompactEvaluation
        Of the kind that the parts are.

    Examples
    --------
    >>> import probox
    >>> whole = probox.join(["parts/1", "parts/2", "parts/3"])  # doctest: +SKIP
    """
    named = [_named(result, place) for place, result in enumerate(results, 1)]
    if not named:
        raise InputError("expected results to join, but there are none")
    _check_alike(named)
    _check_parts(named)
    _check_images(named)
    parts = [result for _, result in named]
    joined = _joined(parts)
    whole = parts[0].part
    if joined.part is not None and complete:
        missing = joined.part.missing
        words = f"part {missing[0]} of {joined.part.of} is" if len(missing) == 1 else (
            f"parts {some_names(list(map(str, missing)))} of {joined.part.of} are"
        )  # fmt: skip
        raise InputError(f"{words} missing", remedy=f"evaluate with part {missing[0]}/{joined.part.of}, and so on")
    if whole is not None and joined.part is None and hash_of_ids(joined.dataset.image_ids) != whole.whole:
        raise InputError("the parts do not hold all images of the whole", remedy="evaluate all parts anew")
    return joined


def _joined(parts: list[Result]) -> Result:
    tables = [part for part in parts if isinstance(part, Evaluation)]
    if tables:
        return join_evaluations(tables)
    return join_compact([part for part in parts if isinstance(part, CompactEvaluation)])


def _named(result: Any, place: int) -> tuple[str, Result]:
    """Return a result and what messages call it: its folder, or which part it is."""
    if isinstance(result, str | os.PathLike):
        return os.fspath(result), load(Path(result))
    if not isinstance(result, Evaluation | CompactEvaluation):
        raise InputError(f"expected results or folders of results, but got {type(result).__name__}")
    return str(result.part or f"result {place}"), result


_ALIKE: dict[str, Callable[[Result], Any]] = {
    "and kept otherwise": lambda result: getattr(result, "keep", "all"),
    "by another convention": lambda result: result.convention,
    "for other classes": lambda result: result.classes,
    "for other measures": lambda result: result.measures,
    "by another version of probox": lambda result: result.version,
    "under other rules": lambda result: result.dataset.rules,
    "for other category ids": lambda result: result.dataset.category_ids.tolist(),
}
"""What parts of one evaluation have in common, and what is said where they do not."""

_WHOLE: dict[str, Callable[[Part], Any]] = {
    "is of another number of parts": lambda part: part.of,
    "is of a whole of other images": lambda part: part.whole,
    "is of other ground truth or detections": lambda part: part.inputs,
}


def _check_alike(named: list[tuple[str, Result]]) -> None:
    first_name, first = named[0]
    for name, result in named[1:]:
        for how, value in _ALIKE.items():
            if value(result) != value(first):
                raise InputError(f"was measured {how} than {first_name}", file=name, remedy="evaluate both alike")


def _check_parts(named: list[tuple[str, Result]]) -> None:
    """Raise if a part is of something else than the others, or there twice."""
    first_name, first = named[0][0], named[0][1].part
    owner: dict[int, str] = {}
    for name, result in named:
        part = result.part
        if (part is None) != (first is None):
            which, other = (name, first_name) if part is None else (first_name, name)
            raise InputError(f"is no part of anything, but {other} is", file=which, remedy="join parts of one whole")
        if part is None or first is None:
            continue
        for how, value in _WHOLE.items():
            if value(part) != value(first):
                raise InputError(f"{how} than {first_name}", file=name, remedy="join parts of one whole")
        for number in part.numbers:
            if number in owner:
                raise InputError(
                    f"is part {number} of {part.of}, as {owner[number]} is", file=name, remedy="give each part once"
                )
            owner[number] = name


def _check_images(named: list[tuple[str, Result]]) -> None:
    """Raise if an image is in two results."""
    ids = np.concatenate([result.dataset.image_ids for _, result in named])
    owners = np.repeat(np.arange(len(named)), [len(result.dataset) for _, result in named])
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(again):
        one, other = (named[owners[order[at]]][0] for at in (again[0], again[0] + 1))
        raise InputError(
            f"is in {one} too", file=other, image=int(ids[order[again[0]]]), remedy="evaluate each image once"
        )
