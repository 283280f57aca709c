"""What readers do with problems: raise the first, or gather them all, in sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from probox.errors import InputError
from probox.notes import Note

RawProblems = Sequence[tuple[str, bool, int, Sequence[tuple[int, int | None, str, Sequence[str]]]]]
"""What the readers return: trouble, fatal, count, and examples of (order, image, entry, values)."""


@dataclasses.dataclass(frozen=True)
class Wording:
    """The kind under which a trouble is counted, its sentence with gaps for the values, and what to do about it."""

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
    "duplicate_key": Wording("duplicate key", "the same key stands here twice", "keep one of them"),
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
        "the masks up to this one have more numbers than images of this size can need",
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
"""Every trouble by the name that the kernel gives it (cpp/readers/troubles.hpp)."""


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
