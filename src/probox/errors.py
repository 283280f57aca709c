"""What probox raises. Every message says where, what was found, what was expected and what to do."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from probox.support.formatting import printable

Spelling = Callable[[str, str], str]
"""How a front end writes a keyword with a value, which is empty where only the keyword is named."""

_OPTION = re.compile(r"\{option:(\w+)=?([^{}]*)\}")

LONGEST = 500
"""So many characters of what a file says are repeated in a message."""


def python_keyword(name: str, value: str) -> str:
    """Return a keyword as Python writes it.

    >>> python_keyword("label_threshold", "auto"), python_keyword("repair", "True"), python_keyword("truth", "")
    ('label_threshold="auto"', 'repair=True', 'truth')
    """
    if not value:
        return name
    plain = value in ("True", "False") or value.replace(".", "", 1).isdigit()
    return f"{name}={value}" if plain else f'{name}="{value}"'


def spell_options(text: str, spell: Spelling = python_keyword) -> str:
    """Return a text with keywords, marked as ``{option:keyword=value}``, as a front end spells them.

    >>> spell_options("read them with {option:repair=True}")
    'read them with repair=True'
    """
    return _OPTION.sub(lambda found: spell(found[1], found[2]), text)


class ProboxError(Exception):
    """Base class of everything probox raises on purpose."""


class InputError(ProboxError, ValueError):
    """Something in the input is wrong; the message leads to the culprit.

    Parameters
    ----------
    problem : str
        What was found and what was expected. Here and in `remedy`, ``{option:keyword=value}`` is a keyword in Python
        and an option on the command line.
    file : str, optional
        The file it stands in.
    image : int or str, optional
        The image's id.
    entry : str, optional
        The entry, e.g. ``"detection 3"`` or ``"annotations[7].bbox"``.
    remedy : str, optional
        What the user can do about it.

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
        """Return place, problem and remedy as a front end spells keywords."""
        where = [
            self.file,
            None if self.image is None else f"image {_short(str(self.image))}",
            _short(self.entry or ""),
        ]
        text = ": ".join([part for part in where if part] + [_short(spell_options(self.problem, spell))])
        text = f"{text}; {spell_options(self.remedy, spell)}" if self.remedy else text
        return printable(" ".join(text.splitlines()))  # names may hold line breaks, and what terminals obey

    def __reduce__(self) -> tuple[object, ...]:
        words = {name: getattr(self, name) for name in ("problem", "file", "image", "entry", "remedy")}
        return functools.partial(type(self), **words), ()  # keywords need help crossing processes


class KeywordError(InputError, TypeError):
    """A function was given a keyword that it does not know; also a `TypeError`, as Python would raise."""


class UnknownKeyError(InputError, KeyError):
    """Raised for a row or column that a table does not have; also a `KeyError`, as mappings have it."""


def _short(text: str) -> str:
    """Return a text that fits a message: names and values in files may be of any length."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
