"""A folder that is made anew as a whole, and takes the place of one that was made in the same way."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from probox.errors import InputError
from probox.files.staging import exchange, named_errors, parents_made, staging, sweep, taking_turns

__all__ = ["whole_folder"]


@contextmanager
def whole_folder(target: str | os.PathLike[str], check: Callable[[], None]) -> Iterator[Path]:
    """Give a new folder to write into, which takes the place of `target` when the block ends without an error.

    Parameters
    ----------
    target : path
        The folder, made with those above it if it is missing. A link to a folder is followed.
    check : callable
        Raises if what is at the place may not be replaced: called before any work is done, and again at its end.
    """
    shown = Path(target)
    with named_errors(shown):
        place = Path(os.path.realpath(shown))
        here = Path(os.path.realpath(os.curdir))
        if os.path.lexists(place) and not place.is_dir():
            raise InputError("is a file, expected a folder to write to", file=str(target), remedy="choose another name")
        if place == here or place in here.parents:
            raise InputError(
                "is the folder in which this runs, which cannot be replaced",
                file=str(target),
                remedy="name a new folder in it",
            )
    check()
    with parents_made(place), named_errors(shown):
        sweep(place.parent, place.name)
        with staging(place.parent, place.name) as made:
            yield made.files
            with taking_turns(place.parent):
                check()
                _put(made.files, place, made.aside / "old")


def _put(new: Path, place: Path, aside: Path) -> None:
    """Move a folder to its place; what was there is removed with the place where the new one was made."""
    if not place.exists():
        os.rename(new, place)
        return
    os.chmod(new, stat.S_IMODE(place.stat().st_mode))
    if exchange(new, place):
        return
    os.rename(place, aside)
    try:
        os.rename(new, place)
    except OSError:
        with suppress(OSError):
            os.rename(aside, place)
        raise
