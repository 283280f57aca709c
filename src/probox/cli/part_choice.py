"""Which part of the images a command is about, and how much of its result is kept: --part and --keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from probox.errors import InputError
from probox.parts.keep import KEEP
from probox.parts.split import parsed_part

__all__ = ["keep_option", "part_option"]


def part_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --part to a command, which gets its number and count, or None."""

    def parse(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, int] | None:
        if text is None:
            return None
        try:
            return parsed_part(text)
        except InputError as error:
            raise click.BadParameter(f"{error.problem}.") from None

    return click.option(
        "--part", metavar="K/N", callback=parse, help="Only the K-th of N ranges of images; join them later."
    )(command)


def keep_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --keep to a command."""
    return click.option(
        "--keep",
        type=click.Choice(KEEP),
        default="all",
        show_default=True,
        help="All tables, what mAP and LRP follow from, or sums alone.",
    )(command)
