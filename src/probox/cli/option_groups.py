"""Options in groups: the help of a command with many options lists them by what they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["GroupedCommand", "option"]

Function = TypeVar("Function", bound=Callable[..., Any])

OTHER = "Options"
"""The group of options that name none, ``--help`` among them; it comes last."""


class GroupedOption(click.Option):
    """An option that says under which heading the help lists it."""

    def __init__(self, *args: Any, group: str = OTHER, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group = group


def option(*names: str, group: str, **settings: Any) -> Callable[[Function], Function]:
    """Declare an option as `click.option` does, in a group of the help."""
    return click.option(*names, cls=GroupedOption, group=group, **settings)


class GroupedCommand(click.Command):
    """A command whose help has a section for each group, in the order in which groups first appear.

    Use ``@click.command(cls=GroupedCommand)`` and declare options with `option`.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each group under its name."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                groups.setdefault(getattr(parameter, "group", OTHER), []).append(record)
        last = groups.pop(OTHER, [])
        for name, records in [*groups.items(), (OTHER, last)]:
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
