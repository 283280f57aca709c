"""Options of commands that make a file of detections: --out, whose name says the format, and --border."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from probox.files.remote import is_url
from probox.formats.registry import endings_in_words
from probox.fusion.gaussian import BORDERS

__all__ = ["PathOrUrl", "border_option", "detections_option", "optional_detections_option"]


def border_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --border to a command."""
    return click.option(
        "--border",
        type=click.Choice(BORDERS),
        default="keep",
        show_default=True,
        help="Edges at the image border: keep their estimated std, or pin it to half their distance to the border "
        "(PDQ-optimal; overconfident, not for a filter).",
    )(command)


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
    return click.option(
        "--out",
        required=required,
        type=PathOrUrl(dir_okay=folders),
        help=f"File to write: {endings_in_words()}; JSON also as .gz.{default}",
    )(command)
