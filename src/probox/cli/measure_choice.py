"""Measures named on the command line: ``--measures pdq,nll`` or ``--measures all``."""

from __future__ import annotations

import click

from probox.errors import InputError
from probox.measures.registry import COCO_REMEDY, named_measures

__all__ = ["checked_measures", "parse_measures"]


def parse_measures(text: str, flag: str = "--measures") -> tuple[str, ...]:
    """Return the measures that a list separated by commas names, or all; a name that is none is wrong usage.

    >>> parse_measures("PDQ, nll")
    ('pdq', 'nll')
    """
    try:
        return named_measures(text)
    except InputError as error:
        remedy = error.remedy or ""
        near = f" D{remedy[1:]}" if remedy.startswith("did you mean") else ""  # the rest is Python
        if remedy == COCO_REMEDY:
            near = " `probox evaluate --measures map --coco` prints COCO's twelve numbers, AP50, AP75 and AR included."
        raise click.BadParameter(f"{error.problem}.{near}", param_hint=flag) from None


def checked_measures(text: str) -> str:
    """Return a list of measures as it is, or raise: for what is asked by `all` is not all there is."""
    parse_measures(text)
    return text
