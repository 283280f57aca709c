"""Problems on their way to an error or a report: readers report them here, and the mode decides what follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from probox.errors import InputError
from probox.formats.wording import RawProblems, worded
from probox.notes import Note

__all__ = ["MAX_EXAMPLES", "Finding", "Problems"]

MAX_EXAMPLES = 3
"""How many problems of a kind are kept as examples."""


@dataclasses.dataclass
class Finding:
    """One kind of problem: how often it was found, the first examples, and whether it stops an evaluation."""

    kind: str
    count: int
    examples: list[InputError]
    is_error: bool = True

    @property
    def code(self) -> str:
        """Return the kind as a word for programs.

        >>> Finding("label probability outside [0, 1]", 1, []).code
        'label-probability-outside-0-1'
        """
        return "-".join("".join(c if c.isalnum() else " " for c in self.kind.lower()).split())


class Problems:
    """Where readers report what is wrong.

    Strictly, the first error is raised. Leniently, errors and warnings are gathered by kind, and the reader goes
    on without the rows that have them.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient
        self.findings: list[Finding] = []
        self.stopped = False
        """Whether a file could not be read to its end."""

    def add(self, kind: str, rows: Sequence[int], describe: Callable[[int], InputError]) -> None:
        """Report an error of the given rows; `describe` words it for one of them."""
        if len(rows) == 0:
            return
        if not self.lenient:
            raise describe(int(rows[0]))
        self._gather(kind, len(rows), [describe(int(row)) for row in rows[:MAX_EXAMPLES]], is_error=True)

    def warn(self, kind: str, rows: Sequence[int], describe: Callable[[int], InputError]) -> None:
        """Report a warning, which stops nothing; strict readers pass it over."""
        if self.lenient and len(rows):
            self._gather(kind, len(rows), [describe(int(row)) for row in rows[:MAX_EXAMPLES]], is_error=False)

    def warn_of_all(self, kind: str, count: int, examples: list[InputError]) -> None:
        """Report a warning about a whole file."""
        if self.lenient:
            self._gather(kind, count, examples, is_error=False)

    def warn_note(self, warning: Note, file: str) -> None:
        """Report a warning about a whole file, which is a note of its table too."""
        self.warn_of_all(warning.code.replace("-", " "), 1, [InputError(str(warning), file=file)])

    def add_raw(
        self, problems: RawProblems, file: str, remedies: Mapping[str, str | None] = MappingProxyType({})
    ) -> bool:
        """Report what the kernel found; return whether it read the file to its end.

        `remedies`, by kind, replace the usual ones where they are not None.
        """
        complete = True
        for kind, fatal, count, examples in worded(problems):
            errors = [
                InputError(text, file=file, image=image, entry=entry or None, remedy=remedies.get(kind) or remedy)
                for image, entry, text, remedy in examples[:MAX_EXAMPLES]
            ]
            if not self.lenient:
                raise errors[0]
            self._gather(kind, count, errors, is_error=True)
            complete = complete and not fatal
        self.stopped = self.stopped or not complete
        return complete

    def catch(self, error: InputError, kind: str) -> None:
        """Report an error that was raised; strictly, it is raised again."""
        if not self.lenient:
            raise error
        self._gather(kind, 1, [error], is_error=True)

    def stop(self, error: InputError, kind: str = "unusable file") -> None:
        """Report an error after which a file cannot be checked further."""
        self.stopped = True
        self.catch(error, kind)

    def _gather(self, kind: str, count: int, examples: list[InputError], *, is_error: bool) -> None:
        for finding in self.findings:
            if finding.kind == kind and finding.is_error == is_error:
                finding.count += count
                finding.examples += examples[: MAX_EXAMPLES - len(finding.examples)]
                return
        self.findings.append(Finding(kind, count, examples[:MAX_EXAMPLES], is_error))
