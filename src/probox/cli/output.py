"""The option --out of commands that make a file of detections: its name says the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from probox.formats.registry import endings_in_words

__all__ = ["detections_option", "optional_detections_option"]


def detections_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --out to a command."""
    return _option(command, required=True)


def optional_detections_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add --out to a command that has a name of its own for the file, which `default` describes."""
    return lambda command: _option(command, f"  [default: {default}]", required=False)


def _option(command: Callable[..., Any], default: str = "", *, required: bool) -> Callable[..., Any]:
    return click.option(
        "--out",
        required=required,
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"File to write: {endings_in_words()}; JSON also as .gz.{default}",
    )(command)
