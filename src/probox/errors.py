"""Exceptions of probox. Messages name the place and the problem, what was expected, and a fix."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from probox.support.formatting import printable

Spelling = Callable[[str, str], str]
"""Function that formats a keyword and its value for a front end; the value is empty if only the keyword is named."""

_OPTION = re.compile(r"\{option:(\w+)=?([^{}]*)\}")

LONGEST = 500
"""Maximum number of characters of file content in a message."""


def python_keyword(name: str, value: str) -> str:
    """Return a keyword in Python syntax.

    >>> python_keyword("label_threshold", "auto"), python_keyword("repair", "True"), python_keyword("truth", "")
    ('label_threshold="auto"', 'repair=True', 'truth')
    """
    if not value:
        return name
    plain = value in ("True", "False") or value.replace(".", "", 1).isdigit()
    return f"{name}={value}" if plain else f'{name}="{value}"'


def spell_options(text: str, spell: Spelling = python_keyword) -> str:
    """Return a text with the keywords marked as ``{option:keyword=value}`` formatted for a front end.

    >>> spell_options("read them with {option:repair=True}")
    'read them with repair=True'
    """
    return _OPTION.sub(lambda found: spell(found[1], found[2]), text)


class ProboxError(Exception):
    """Base class of all exceptions that probox raises deliberately.

    Examples
    --------
    >>> import probox
    >>> try:
    ...     probox.Convention.preset("papre")
    ... except ProboxError as error:
    ...     print(error)
    expected preset to be one of reference, paper, challenge, got 'papre'; did you mean paper?
    """


class InputError(ProboxError, ValueError):
    """Invalid input; the message names file, image and entry, and suggests a fix.

    Parameters
    ----------
    problem : str
        The problem: expected and actual value. Here and in `remedy`, ``{option:keyword=value}`` is formatted as a
        keyword in Python and as an option on the command line.
    file : str, optional
        Name of the file.
    image : int or str, optional
        Image id.
    entry : str, optional
        Entry, for example ``"detection 3"`` or ``"annotations[7].bbox"``.
    remedy : str, optional
        Suggested fix.

    Examples
    --------
    >>> print(InputError("x2 is left of x1", file="d.json", image=7, entry="detection 3",
    ...                  remedy="write boxes as [x1, y1, x2, y2]"))
    d.json: image 7: detection 3: x2 is left of x1; write boxes as [x1, y1, x2, y2]
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        image: int | str | None = None,
        entry: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = file
        self.image = image
        self.entry = entry
        self.remedy = remedy
        super().__init__(problem)

    def __str__(self) -> str:
        return self.message()

    def message(self, spell: Spelling = python_keyword) -> str:
        """Return place, problem and fix, with keywords formatted for a front end.

        Parameters
        ----------
        spell : callable
            Formats a keyword and its value. Default: Python syntax.

        Returns
        -------
        str
            The message, in one line.

        Examples
        --------
        >>> error = InputError("invalid covariance", file="d.json", remedy="use {option:repair=True}")
        >>> error.message(lambda keyword, value: f"--{keyword}")
        'd.json: invalid covariance; use --repair'
        """
        where = [
            self.file,
            None if self.image is None else f"image {_short(str(self.image))}",
            _short(self.entry or ""),
        ]
        text = ": ".join([part for part in where if part] + [_short(spell_options(self.problem, spell))])
        text = f"{text}; {spell_options(self.remedy, spell)}" if self.remedy else text
        return printable(" ".join(text.splitlines()))  # names may contain line breaks and terminal control characters

    def __reduce__(self) -> tuple[object, ...]:
        words = {name: getattr(self, name) for name in ("problem", "file", "image", "entry", "remedy")}
        return functools.partial(type(self), **words), ()  # exceptions pickle positional arguments only


class KeywordError(InputError, TypeError):
    """Unknown keyword of a function; also a `TypeError`, as Python itself would raise."""


class UnknownKeyError(InputError, KeyError):
    """Unknown row or column of a table; also a `KeyError`, as for mappings."""


def _short(text: str) -> str:
    """Return a text shortened for messages, since names and values in files may have any length."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
