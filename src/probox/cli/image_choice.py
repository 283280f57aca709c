"""Which images a command is about: the option --images."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from probox.errors import InputError

__all__ = ["images_option", "parse_images"]

_REMEDY = "give a JSON list of image ids, a text file with one id per line, or ids separated by commas"


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
    given = text
    file = None
    if os.path.isfile(text):  # unlike Path.is_file, this takes any length: a long list is no file
        file = text
        try:
            given = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read as text ({error})", file=file, remedy=_REMEDY) from None
        if given.lstrip().startswith(("[", "{")):
            return _from_json(given, file)
    words = given.replace(",", " ").split()
    wrong = [word for word in words if not _is_id(word)]
    if wrong or not words:
        problem = (
            f"expected image ids, but got {wrong[0][:80]!r}" if wrong else "expected image ids, but there are none"
        )
        if file is None and wrong and ("/" in text or "." in text):
            problem = "no such file"
        raise InputError(problem, file=file or (text if problem == "no such file" else "--images"), remedy=_REMEDY)
    return [int(word) for word in words]


def _from_json(text: str, file: str) -> list[int]:
    try:
        ids = json.loads(text)
    except (ValueError, RecursionError):
        ids = None
    if not isinstance(ids, list) or not ids or not all(type(entry) is int and _fits(entry) for entry in ids):
        raise InputError("expected a JSON list of image ids, all of them whole numbers", file=file, remedy=_REMEDY)
    return ids


def _is_id(word: str) -> bool:
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20 and _fits(int(word))


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**63
