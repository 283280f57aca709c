"""Scoring keywords of `probox.evaluate` and other functions: preset and settings, named like command-line options."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from probox.convention import (
    Assignment,
    Background,
    Clip,
    Convention,
    LabelThreshold,
    resolve_convention,
)
from probox.errors import InputError, KeywordError
from probox.support.formatting import nearest_word


class Settings(TypedDict, total=False):
    """The preset, and fields of `Convention` that change it; None means not given."""

    preset: str | None
    assignment: Assignment | None
    background: Background | None
    box_truth: bool | None
    fixed_variance: float | None
    label_threshold: LabelThreshold | None
    label_weight: float | None
    clip: Clip | None
    object_filter: bool | None
    iou_thresholds: Sequence[float] | None
    max_detections: Sequence[int] | None
    area_ranges: Sequence[tuple[float, float]] | None


WORDS: tuple[str, ...] = tuple(Settings.__annotations__)
"""Names of all settings."""

_ELSEWHERE = {
    "per_class": "call result.per_class()",
    "per_size": "call result.per_size()",
    "intervals": "call result.intervals()",
    "out": "call result.save(folder)",
    "json": "call result.summary()",
    "thresholds": "call result.at_threshold(threshold)",
}
"""Python methods that correspond to options of the command line."""

Function = TypeVar("Function", bound=Callable[..., Any])


def takes_settings(function: Function) -> Function:
    """Add the settings to the signature of a function that ends in ``**settings``, for help and completion."""
    signature = inspect.signature(function)
    own = [entry for entry in signature.parameters.values() if entry.kind is not inspect.Parameter.VAR_KEYWORD]
    kinds = Settings.__annotations__
    added = [
        inspect.Parameter(
            word, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=getattr(kinds[word], "__forward_arg__", "")
        )
        for word in WORDS
    ]
    function.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return function


def resolve_settings(
    function: Callable[..., Any],
    convention: str | Convention | None,
    settings: Mapping[str, Any],
    *,
    auto: bool = False,
) -> Convention:
    """Return the convention that the keywords of a call specify.

    Parameters
    ----------
    function : callable
        The called function, whose own keywords are suggested for unknown ones.
    convention : str, Convention or None
        Convention to change, unless ``settings["preset"]`` names one.
    settings : mapping
        Other keywords of the call: `Settings`, or unknown ones.
    auto : bool
        The function accepts ``label_threshold="auto"``, which needs all images.

    Examples
    --------
    >>> import probox
    >>> resolve_settings(probox.evaluate, None, {"preset": "paper", "fixed_variance": 4}).describe()
    'paper, fixed variance 4'
    """
    for word in settings:
        if word not in WORDS:
            raise _explain_unknown(function, word)
    preset = settings.get("preset")
    if preset is not None and convention is not None:
        raise InputError(
            "expected `preset` or `convention`, but got both", remedy="omit one; other keywords change either"
        )
    start = (
        Convention.preset(preset)
        if preset is not None
        else resolve_convention("reference" if convention is None else convention)
    )
    for word, value in settings.items():
        own = getattr(start, word, None)
        if value is None and own is not None and getattr(_PLAIN, word, None) is None:
            # None means "not given" here and "off" in a Convention, so the intention is ambiguous.
            raise InputError(
                f"{word}=None does not remove the convention's {word} of {own!r}",
                remedy=f"omit it to keep that value, or give convention=convention.replace({word}=None)",
            )
    chosen = start.replace(
        **{word: value for word, value in settings.items() if word != "preset" and value is not None}
    )
    if chosen.label_threshold == "auto" and not auto:
        raise InputError(
            f'{function.__name__} does not take label_threshold="auto", which needs an evaluation of all images',
            remedy='give a number, or call at_threshold("auto") of such an evaluation',
        )
    return chosen


_PLAIN = Convention()


def _explain_unknown(function: Callable[..., Any], word: str) -> KeywordError:
    name = function.__name__
    known = [
        entry.name for entry in inspect.signature(function).parameters.values() if entry.kind is entry.KEYWORD_ONLY
    ]
    near = nearest_word(word, known)
    if word in _ELSEWHERE and name.startswith("evaluate"):
        remedy = _ELSEWHERE[word]
    elif word in {field.name for field in dataclasses.fields(Convention)}:
        remedy = f'give convention=probox.Convention.preset("reference", {word}=...)'
    else:
        remedy = f"did you mean {near}?" if near else f"use one of {', '.join(known)}"
    return KeywordError(f"{name} does not know the keyword `{word}`", remedy=remedy)
