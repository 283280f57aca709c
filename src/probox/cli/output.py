"""The option --out of commands that make a file of detections: its name says the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from probox.formats.registry import endings_in_words

__all__ = ["detections_option"]


def detections_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --out to a command."""
    return click.option(
        "--out",
        required=True,
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"File to write: {endings_in_words()}; JSON also as .gz.",
    )(command)
