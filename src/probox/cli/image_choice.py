"""Which images a command is about: the option --images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["images_option", "parse_images"]


def images_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --images to a command."""
    return click.option(
        "--images",
        metavar="IDS",
        help="Only these images of TRUTH: a file with a JSON list of ids or an id per line, or ids between commas.",
    )(command)


def parse_images(text: str) -> list[int]:
    """Return the image ids that --images names.

    >>> parse_images("139, 285")
    [139, 285]
    """
    from probox.evaluation.inputs import parse_image_ids

    return list(parse_image_ids(text, "--images"))
