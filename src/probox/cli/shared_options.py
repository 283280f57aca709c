"""Options and arguments shared by commands, and help texts that list options by group."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from probox.cli.completion import complete_named
from probox.cli.console import file_title

Function = TypeVar("Function", bound=Callable[..., Any])

OTHER = "Options"
"""The group of ungrouped options, including ``--help``; it comes last."""

FILE = click.Path(dir_okay=False, path_type=Path)

LONGEST = 100
"""Maximum length of a result's name: it must fit into tables and folder names."""


class GroupedOption(click.Option):
    """An option with the heading under which the help lists it."""

    def __init__(self, *args: Any, group: str = OTHER, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group = group


def option(*names: str, group: str, **settings: Any) -> Callable[[Function], Function]:
    """Declare an option like `click.option`, in a group of the help; N is an integer, X a float."""
    if isinstance(settings.get("type"), click.IntRange | click.FloatRange):
        settings.setdefault("metavar", "N" if isinstance(settings["type"], click.IntRange) else "X")
    return click.option(*names, cls=GroupedOption, group=group, **settings)


def option_group(name: str) -> Callable[..., Callable[[Function], Function]]:
    """Return a function that declares options of a group.

    >>> statistics_option = option_group("Statistics")
    """
    return functools.partial(option, group=name)


class GroupedCommand(click.Command):
    """A command whose help has a section for each group, in order of first appearance.

    Use ``@click.command(cls=GroupedCommand)`` and declare options with `option_group`.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group of options."""
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


output_option, input_option, execution_option = map(option_group, ("Output", "Input", "Execution"))
json_option = output_option("--json", "as_json", is_flag=True, help="Print one JSON object only.")
dask_option = execution_option(
    "--dask", metavar="ADDRESS", help="Run on Dask: local[:N], a scheduler's address or file (docs/cluster.md)."
)


@dataclasses.dataclass(frozen=True)
class Named:
    """A path with an optional name."""

    path: str
    name: str | None = None


def named_argument(variable: str, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an argument that takes one or more of `what`, each with an optional name."""

    def parse(context: click.Context, argument: click.Parameter, texts: Sequence[str]) -> tuple[Named, ...]:
        return parse_named(texts, what)

    return click.argument(
        variable,
        type=click.Path(),
        nargs=-1,
        required=True,
        metavar=f"[NAME=]{what}...",
        callback=parse,
        shell_complete=complete_named,
    )


def parse_named(texts: Iterable[str], what: str = "DETECTIONS") -> tuple[Named, ...]:
    """Split NAME=PATH arguments; URLs and existing paths are never split.

    >>> parse_named(["SSD=results/ssd.json", "yolo.json"])
    (Named(path='results/ssd.json', name='SSD'), Named(path='yolo.json', name=None))
    """
    from probox.files.reading import is_url

    named: list[Named] = []
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or is_url(text) or os.path.exists(text):
            named.append(Named(text))
            continue
        problem = _problem(name, path, what)
        if problem:
            raise click.BadParameter(f"{text!r}: {problem}.", param_hint=f"NAME={what}")
        if name in [other.name for other in named]:
            raise click.BadParameter(
                f"the name {name!r} is used twice; give one of them another name.", param_hint=f"NAME={what}"
            )
        named.append(Named(path, name))
    return tuple(named)


def make_titles(inputs: Sequence[Named]) -> list[str]:
    """Return a unique name for each file: the given name, or the file name without endings, numbered if necessary.

    >>> make_titles([Named("a/ssd.json"), Named("b/ssd.json.gz"), Named("yolo.json", "Y")])
    ['ssd', 'ssd-2', 'Y']
    """
    taken = {given.name for given in inputs if given.name is not None}
    titles: list[str] = []
    for given in inputs:
        title = given.name
        if title is None:
            base = file_title(given.path)
            base = base if base.strip(".") else "detections"  # "." and ".." are not valid folder names
            title, number = base, 2
            while title in taken:
                title, number = f"{base}-{number}", number + 1
            taken.add(title)
        titles.append(title)
    return titles


def load_named(inputs: Sequence[Named], *, tables: bool = True) -> dict[str, Any]:
    """Load results by their given or folder names; `tables`: require tables of detections."""
    from probox.evaluation.folders import load_results

    paths, names = [given.path for given in inputs], [given.name for given in inputs]
    return load_results(paths, names, tables=tables)


def _problem(name: str, path: str, what: str) -> str | None:
    """Return the problem of a result's name, which becomes a folder name, or None."""
    if not name.strip():
        return f"expected NAME={what}, but the name before = is empty"
    if not path:
        return f"expected NAME={what}, but the path after = is empty"
    if "/" in name or "\\" in name:
        return f"no such file, and {name!r} is not a valid folder name; leave out / and \\"
    if name.startswith(".") or name != name.strip():
        return f"{name!r} is not a valid folder name; begin with a letter or digit, without spaces at either end"
    if not name.isprintable():
        return "expected a name of printable characters"
    if len(name) > LONGEST:
        return f"expected a name of at most {LONGEST} characters, got {len(name)}"
    return None
