"""The option --intervals of commands that print numbers: how sure each of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from probox.cli.console import note

if TYPE_CHECKING:
    from probox.analysis.resampling import Intervals
    from probox.evaluation.result import Evaluation
    from probox.evaluation.text import Limits

__all__ = ["intervals_of", "intervals_option", "limits_of", "say_intervals"]


def intervals_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --intervals to a command."""
    return click.option(
        "--intervals", is_flag=True, help="Say how sure each number is: 95 % intervals, by drawing images anew."
    )(command)


def intervals_of(evaluations: Iterable[Evaluation]) -> list[Intervals]:
    """Return the intervals of each evaluation."""
    from probox.analysis.resampling import bootstrap

    return [bootstrap(evaluation) for evaluation in evaluations]


def limits_of(intervals: Sequence[Intervals] | None) -> list[Limits] | None:
    """Return what tables show of intervals."""
    return None if intervals is None else [own.limits() for own in intervals]


def say_intervals(intervals: Sequence[Intervals] | None) -> None:
    """Say how intervals were made, and what is wrong with them, each once."""
    if not intervals:
        return
    first = intervals[0]
    if first.images > 1:
        note(f"[{100 * first.level:g} % intervals]: {first.replicates:,} draws of {first.images:,} images")
    for text in dict.fromkeys(text for own in intervals for text in own.notes):
        note(f"note: {text}")
