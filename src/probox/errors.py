"""What probox raises. Every message says where, what was found, what was expected and what to do."""

from __future__ import annotations

from probox.support.words import printable

__all__ = ["InputError", "KeywordError", "ProboxError", "UnknownKeyError"]


LONGEST = 500
"""So many characters of what a file says are repeated in a message."""


class ProboxError(Exception):
    """Base class of everything probox raises on purpose."""


class InputError(ProboxError, ValueError):
    """Something in the input is wrong; the message leads to the culprit.

    Parameters
    ----------
    problem : str
        What was found and what was expected.
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
        where = [
            self.file,
            None if self.image is None else f"image {_short(str(self.image))}",
            _short(self.entry or ""),
        ]
        text = ": ".join([part for part in where if part] + [_short(self.problem)])
        text = f"{text}; {self.remedy}" if self.remedy else text
        return printable(" ".join(text.splitlines()))  # names may hold line breaks, and what terminals obey

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.problem, self.file, self.image, self.entry, self.remedy))


class KeywordError(InputError, TypeError):
    """A function was given a keyword that it does not know; also a `TypeError`, as Python would raise."""


class UnknownKeyError(InputError, KeyError):
    """Raised for a row or column that a table does not have; also a `KeyError`, as mappings have it."""


def _short(text: str) -> str:
    """Return a text that fits a message: names and values in files may be of any length."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _rebuild(
    kind: type[InputError],
    problem: str,
    file: str | None,
    image: int | str | None,
    entry: str | None,
    remedy: str | None,
) -> InputError:
    """Unpickle an `InputError`: exceptions with keyword arguments need help crossing processes."""
    return kind(problem, file=file, image=image, entry=entry, remedy=remedy)
