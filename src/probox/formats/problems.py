"""Problems found by readers: their messages, and whether the first is raised or all are collected."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from probox.errors import InputError
from probox.notes import Note

RawProblems = Sequence[tuple[str, bool, int, Sequence[tuple[int, int | None, str, Sequence[str]]]]]
"""Problems from the C++ readers: name, fatal, count, and examples of (order, image, entry, values)."""


@dataclasses.dataclass(frozen=True, eq=False)
class Wording:
    """Message of a problem: the kind under which it is counted, a text with gaps for values, and a fix."""

    kind: str
    text: str
    remedy: str | None = None


WORDINGS = {
    # JSON itself
    "cut_short": Wording(
        "not JSON", "{}: expected {}, but the file ends", "the file is cut short: write or download it again"
    ),
    "not_json": Wording(
        "not JSON", "{}: expected {}, but got {}", "check that the file is complete, valid JSON in UTF-8"
    ),
    "not_utf8": Wording("not UTF-8", "{}: expected UTF-8 text, but got byte {}", "save the file as UTF-8"),
    "nested_too_deeply": Wording(
        "nested too deeply",
        "values are nested more than {} levels deep",
        "check that this is a file of detections or ground truth",
    ),
    "wrong_type": Wording("wrong type", "expected {}, but got {}"),
    "wrong_length": Wording("wrong length", "expected a list of {}, but got {}"),
    "number_too_large": Wording(
        "number too large", "expected a number below 1.8e308, but got {}", "leave out values that diverged"
    ),
    "duplicate_key": Wording("duplicate key", "this key occurs twice", "keep one of them"),
    "missing_key": Wording("missing key", 'expected a key "{}"', "add it to the entry"),
    # COCO ground truth
    "image_side": Wording(
        "image size", "expected a size from 1 to {} pixels, but got {}", "write the image's size in pixels"
    ),
    "image_pixels": Wording(
        "image size", "expected at most {} pixels, but got {} x {}", "cut the image into smaller ones"
    ),
    "area": Wording("area", "expected a finite area of at least 0", "write the area in pixels, or leave it out"),
    "box_not_finite": Wording(
        "non-finite number",
        "expected four finite numbers [x, y, width, height], up to 1e9",
        "correct the annotation",
    ),
    "box_inverted": Wording(
        "inverted box", "expected width and height of at least 0", "write boxes as [x, y, width, height]"
    ),
    "iscrowd": Wording("iscrowd", "expected 0 or 1, but got {}"),
    "polygon_range": Wording("polygon", "expected coordinates from -1e8 to 1e8", "write polygons in pixels"),
    "polygon_points": Wording(
        "polygon",
        "expected x and y of at least two points, but got {} numbers",
        "write polygons as [x1, y1, x2, y2, ...]",
    ),
    "run_lengths_size": Wording(
        "run lengths", "expected a size of [height, width] in pixels", "write the size of the image"
    ),
    "run_lengths_code": Wording(
        "run lengths",
        "expected compressed run lengths as the COCO API writes them",
        "write them again, or as a list of numbers",
    ),
    "run_lengths_negative": Wording("run lengths", "expected run lengths of at least 0, but got {}"),
    "run_lengths_total": Wording(
        "run lengths",
        "expected run lengths that add up to {} ({} x {}), but they make {}",
        "write size as [height, width] and all runs",
    ),
    "mask_numbers": Wording(
        "mask size",
        "the masks up to this one have too many numbers for images of this size",
        "check the mask, or split the file by images",
    ),
    # COCO results
    "score_not_finite": Wording(
        "non-finite label probability", "expected a finite score", "leave out detections that diverged"
    ),
    "score_range": Wording(
        "label probability outside [0, 1]",
        "expected a score between 0 and 1, but got {}",
        "apply softmax or sigmoid before writing",
    ),
    "all_scores_length": Wording(
        "wrong length",
        "expected {} probabilities, but got {}",
        "write one per category of the ground truth, in order of category id",
    ),
    "cls_prob_length": Wording(
        "wrong length",
        "expected {} probabilities, or one more with background last, but got {}",
        "read it with the ground truth of the classes that the detector was trained on, or drop the other columns",
    ),
    "unknown_category": Wording(
        "unknown category",
        "category {} is not among the {} categories of the ground truth",
        "use the ground truth's category ids",
    ),
    # The robotic vision challenge
    "label_probs_length": Wording(
        "wrong length",
        "expected one probability for each of the {} classes, but got {}",
        'write label_probs in the order of "classes"',
    ),
    "box_of_pixels": Wording(
        "unusable box",
        "expected [left, top, right, bottom] with left <= right and top <= bottom",
        "write the first and the last pixel's column and row",
    ),
}
"""Messages by the names that the C++ readers use (cpp/readers/troubles.hpp)."""


MAX_EXAMPLES = 3
"""Number of examples kept per kind."""


@dataclasses.dataclass
class Finding:
    """One kind of problem: its count, the first examples, and whether it is an error."""

    kind: str
    count: int
    examples: list[InputError]
    is_error: bool = True

    @property
    def code(self) -> str:
        """Return the kind as an identifier for programs.

        >>> Finding("label probability outside [0, 1]", 1, []).code
        'label-probability-outside-0-1'
        """
        return "-".join("".join(c if c.isalnum() else " " for c in self.kind.lower()).split())


class Problems:
    """Collector of the problems that readers find.

    In strict mode the first error is raised. In lenient mode errors and warnings are collected by kind, and the reader
    continues without the affected rows.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient
        self.findings: list[Finding] = []
        self.stopped = False
        """True if a file could not be read to its end."""

    def add(self, kind: str, rows: Sequence[int], describe: Callable[[int], InputError]) -> None:
        """Report an error of the given rows; `describe` returns the error of a row."""
        if len(rows) == 0:
            return
        if not self.lenient:
            raise describe(int(rows[0]))
        self._gather(kind, len(rows), [describe(int(row)) for row in rows[:MAX_EXAMPLES]], is_error=True)

    def warn(self, kind: str, rows: Sequence[int], describe: Callable[[int], InputError]) -> None:
        """Report a warning about the given rows; strict mode ignores it."""
        if self.lenient and len(rows):
            self._gather(kind, len(rows), [describe(int(row)) for row in rows[:MAX_EXAMPLES]], is_error=False)

    def warn_of_all(self, kind: str, count: int, examples: list[InputError]) -> None:
        """Report a warning about a whole file; strict mode ignores it."""
        if self.lenient:
            self._gather(kind, count, examples, is_error=False)

    def warn_note(self, warning: Note, file: str) -> None:
        """Report a warning about a whole file that is also a note of its table."""
        self.warn_of_all(warning.code.replace("-", " "), 1, [InputError(str(warning), file=file)])

    def add_raw(
        self, problems: RawProblems, file: str, remedies: Mapping[str, str | None] = MappingProxyType({})
    ) -> bool:
        """Report the problems of a C++ reader; return whether it read the file to its end.

        `remedies` replace the usual fixes of these kinds unless they are None.
        """
        counts: dict[str, int] = {}
        errors: dict[str, list[tuple[int, InputError]]] = {}
        for trouble, _, count, examples in problems:
            wording = WORDINGS[trouble]
            counts[wording.kind] = counts.get(wording.kind, 0) + count
            remedy = remedies.get(wording.kind) or wording.remedy
            errors.setdefault(wording.kind, []).extend(
                (
                    order,
                    InputError(wording.text.format(*values), file=file, image=at, entry=entry or None, remedy=remedy),
                )
                for order, at, entry, values in examples
            )
        for kind, count in counts.items():
            in_order = [error for _, error in sorted(errors.get(kind, []), key=lambda found: found[0])]  # of the file
            if not self.lenient:
                raise in_order[0]
            self._gather(kind, count, in_order, is_error=True)
        complete = not any(fatal for _, fatal, _, _ in problems)
        self.stopped = self.stopped or not complete
        return complete

    def catch(self, error: InputError, kind: str) -> None:
        """Report an error that was caught; strict mode raises it again."""
        if not self.lenient:
            raise error
        self._gather(kind, 1, [error], is_error=True)

    def stop(self, error: InputError, kind: str = "unusable file") -> None:
        """Report an error that ends the check of a file."""
        self.stopped = True
        self.catch(error, kind)

    def _gather(self, kind: str, count: int, examples: list[InputError], *, is_error: bool) -> None:
        for finding in self.findings:
            if finding.kind == kind and finding.is_error == is_error:
                finding.count += count
                finding.examples += examples[: MAX_EXAMPLES - len(finding.examples)]
                return
        self.findings.append(Finding(kind, count, examples[:MAX_EXAMPLES], is_error))
