"""Measures named on the command line: ``--measures pdq,nll`` or ``--measures all``."""

from __future__ import annotations

import click

from probox.measures.registry import measure_names

__all__ = ["parse_measures"]


def parse_measures(text: str, flag: str = "--measures") -> tuple[str, ...]:
    """Return the measures that a list separated by commas names, or all; a name that is none is wrong usage.

    >>> parse_measures("PDQ, nll")
    ('pdq', 'nll')
    """
    known = measure_names()
    if text.strip().lower() == "all":
        return known
    names = tuple(name.strip().lower() for name in text.split(","))
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name!r} is none of {', '.join(known)}.", param_hint=flag)
    return tuple(dict.fromkeys(names))
