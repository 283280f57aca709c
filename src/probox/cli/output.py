"""Options of commands that make a file of detections: --out, --border and those of fusion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from probox.cli.option_groups import option
from probox.files.source import is_url
from probox.formats.registry import endings_in_words
from probox.fusion.gaussian import BORDERS, Spread

__all__ = ["PathOrUrl", "border_option", "detections_option", "fusion_options", "optional_detections_option"]


def border_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --border to a command."""
    return option(
        "--border",
        group="Uncertainty",
        type=click.Choice(BORDERS),
        default="keep",
        show_default=True,
        help="Edges at the image border: keep their estimated std, or pin it to half their distance to the border "
        "(PDQ-optimal; overconfident, not for a filter).",
    )(command)


def fusion_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of covariances from several boxes, which `probox.fusion` takes under the same names."""
    group, above_zero = "Fusion", click.FloatRange(0)
    for add in (
        option(
            "--shrinkage",
            group=group,
            type=above_zero,
            default=Spread.shrinkage,
            help="Weight of --prior-std, in members.",
        ),
        option(
            "--prior-std",
            group=group,
            type=above_zero,
            default=Spread.prior_std,
            help="Std of a single box, as a fraction of its sides.",
        ),
        option("--min-std", group=group, type=above_zero, default=Spread.min_std, help="Least std of a corner [px]."),
        option(
            "--absent-counts/--absent-ignored",
            group=group,
            default=True,
            help="Members without a detection lower its score, or are ignored.",
        ),
        option(
            "--min-members",
            group=group,
            type=click.IntRange(1),
            default=1,
            help="Keep detections with at least this many members.",
        ),
    ):
        command = add(command)
    return command


def detections_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --out to a command."""
    return _option(command, required=True)


def optional_detections_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add --out to a command that has a name of its own for the file, which `default` describes."""
    return lambda command: _option(command, f"  [default: {default}]", required=False, folders=True)


class PathOrUrl(click.Path):
    """A path, or the URL of what only Parquet can be: text, since a path would leave out one of its slashes."""

    def __init__(self, *, dir_okay: bool) -> None:
        super().__init__(dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path, or a URL as it is."""
        return value if is_url(value) else super().convert(value, param, ctx)


def _option(
    command: Callable[..., Any], default: str = "", *, required: bool, folders: bool = False
) -> Callable[..., Any]:
    return option(
        "--out",
        group="Output",
        required=required,
        type=PathOrUrl(dir_okay=folders),
        help=f"File to write: {endings_in_words()}; JSON also as .gz.{default}",
    )(command)
