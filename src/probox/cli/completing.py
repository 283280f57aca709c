"""What a shell is offered where click alone would not know: lists of measures, NAME=FILE."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["complete_files", "complete_measures", "complete_named"]


def complete_files(context: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Leave a word to the shell's own completion of files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(text, type="file")]


def complete_named(context: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete the file of NAME=FILE; a shell that takes a word apart at = asks for the file alone."""
    from click.shell_completion import CompletionItem

    name, equals, path = text.partition("=")
    if not equals or os.path.exists(name):
        return complete_files(context, parameter, text)
    folder, start = os.path.split(path)
    try:
        found = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    return [
        CompletionItem(f"{name}={os.path.join(folder, entry.name)}{'/' if entry.is_dir() else ''}")
        for entry in found
        if entry.name.startswith(start) and (start or not entry.name.startswith("."))
    ]


def complete_measures(context: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete the last name of a list that is separated by commas."""
    from click.shell_completion import CompletionItem

    from probox.measures.registry import measure_names

    *before, start = text.split(",")
    names = (*measure_names(), *(() if before else ("all",)))
    chosen = "".join(f"{name}," for name in before)
    return [
        CompletionItem(chosen + name) for name in names if name.startswith(start.strip().lower()) and name not in before
    ]
