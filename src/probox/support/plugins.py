"""Commands, metrics, formats and detector families of plugins: entry points, loaded on first use."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from probox.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class PluginWarning(UserWarning):
    """A plugin is ignored because it cannot be loaded or its name is in use."""


@cache
def _declared_groups() -> frozenset[str]:
    """Return the groups of probox that installed distributions declare.

    Importing `importlib.metadata` takes longer than checking whether any distribution declares such a group.
    """
    groups: set[str] = set()
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError), os.scandir(folder or ".") as entries:
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info")):
                    with suppress(OSError), open(os.path.join(entry.path, "entry_points.txt"), "rb") as file:
                        lines = [line.strip() for line in file if line.startswith(b"[probox.")]
                        groups.update(line.decode(errors="replace").strip("[]") for line in lines)
    return frozenset(groups)


@cache
def find_plugins(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group sorted by name, without importing them."""
    if group not in _declared_groups():
        return ()
    from importlib.metadata import entry_points

    return tuple(sorted(set(entry_points(group=group)), key=lambda entry: (entry.name, entry.value)))


def load_plugin(entry: EntryPoint, kind: type, *, subclass: bool = False) -> Any:
    """Import the object or subclass that an entry point names; errors are one line."""
    try:
        part = entry.load()
    except (Exception, SystemExit) as error:  # code of plugins may raise any type
        reason = " ".join(str(error).split())
        problem = f"cannot be loaded: {type(error).__name__}{reason and ': '}{reason:.200}"
    else:
        if (isinstance(part, type) and issubclass(part, kind)) if subclass else isinstance(part, kind):
            return part
        problem = f"expected a {'subclass of ' * subclass}{kind.__name__}, but got {part!r:.80}"
    name = name_distribution(entry)
    raise InputError(
        f"{problem}", file=name, entry=f"{entry.group}: {entry.name}", remedy=f"update or uninstall {name}"
    )


def load_plugins(
    group: str, kind: type, names_of: Callable[[Any], Iterable[str]], taken: Iterable[str], *, subclasses: bool = False
) -> tuple[Any, ...]:
    """Return the objects or `subclasses` of `kind` that plugins add to a registry.

    A plugin that cannot be loaded, or with a name that is `taken`, is ignored with a `PluginWarning`.
    """
    if not (entries := find_plugins(group)):
        return ()
    names, parts = set(taken), []
    for entry in entries:
        try:
            part = load_plugin(entry, kind, subclass=subclasses)
            own = set(names_of(part))
            if twice := sorted(own & names):
                place = {"file": name_distribution(entry), "entry": f"{group}: {entry.name}"}
                raise InputError(f"already in use: {', '.join(twice)}", **place)
        except InputError as error:
            warnings.warn(f"{error}; the plugin is ignored", PluginWarning, stacklevel=2)
        else:
            names |= own
            parts.append(part)
    return tuple(parts)


def name_distribution(entry: EntryPoint) -> str:
    """Return the name of the distribution of an entry point."""
    return entry.dist.name if entry.dist is not None else entry.value
