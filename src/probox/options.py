"""Scoring keywords of `probox.evaluate` and others: the preset and changes of it, named as in the command line."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
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
    """The preset, and fields of `Convention` that change it; None is as good as not given."""

    preset: str | None
    assignment: Assignment | None
    background: Background | None
    box_truth: bool | None
    fixed_variance: float | None
    label_threshold: LabelThreshold | None
    label_weight: float | None
    clip: Clip | None
    object_filter: bool | None


WORDS: tuple[str, ...] = tuple(Settings.__annotations__)
"""Every keyword."""

_ELSEWHERE = {
    "per_class": "call result.per_class()",
    "per_size": "call result.per_size()",
    "intervals": "call result.intervals()",
    "out": "call result.save(folder)",
    "json": "call result.summary()",
    "thresholds": "call result.at_threshold(threshold)",
}
"""What the command line has an option for and Python a method."""

Function = TypeVar("Function", bound=Callable[..., Any])


def takes_settings(function: Function) -> Function:
    """Let the signature of a function that ends in ``**settings`` name each of them, for help and completion."""
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
    """Return the convention that the keywords of a call ask for.

    Parameters
    ----------
    function : callable
        What was called: tells the keywords that it takes beside these.
    convention : str, Convention or None
        Where to start, unless ``settings["preset"]`` says it.
    settings : mapping
        The other keywords of the call: `Settings`, or one that nobody knows.
    auto : bool
        The function can choose the label threshold: it sees all images at once.

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
            "expected `preset` or `convention`, but got both", remedy="leave one out; other keywords change either"
        )
    start = (
        Convention.preset(preset)
        if preset is not None
        else resolve_convention("reference" if convention is None else convention)
    )
    for word, value in settings.items():
        own = getattr(start, word, None)
        if value is None and own is not None and getattr(_PLAIN, word, None) is None:
            # None is "not given" here and "off" in a Convention: where these differ, nobody can tell which is meant.
            raise InputError(
                f"{word}=None does not take away the convention's {word} of {own!r}",
                remedy=f"leave it out to keep that, or give convention=convention.replace({word}=None)",
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
        remedy = f"did you mean {near}?" if near else f"it takes {', '.join(known)}"
    return KeywordError(f"{name} does not know the keyword `{word}`", remedy=remedy)
