"""Sentences about what an evaluation left out, and how those of several evaluations become those of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def unknown_image_note(detections: int) -> str:
    """Say how many detections lie in images that nobody asked about."""
    return f"{detections} detections lie in images that the truth does not have: left out"


def threshold_note(detections: int, threshold: float) -> str:
    """Say how many detections a label threshold left out."""
    return f"{detections} detections are not above the label threshold {threshold:g}: left out"


def empty_mask_note(objects: int, *, box_truth: bool) -> str:
    """Say how many objects PDQ leaves out because there is nothing of them in the image."""
    what = "box lies outside the image" if box_truth else "mask has no pixel"
    return f"{objects} objects whose {what} are left out of PDQ; mAP and LRP count them"


def all_detections_note(mean_ap: float) -> str:
    """Name the mAP that a label threshold hides."""
    return f"mAP of all detections, without the label threshold: {100 * mean_ap:.2f}%"


_OF_IMAGES = tuple(
    map(
        re.compile,
        (
            r"(\d+) detections lie in images that the truth does not have: left out",
            r"(\d+) detections in (\d+) images that the ground truth does not have were left out",
            r"(\d+) detections had invalid covariances: replaced by the nearest valid ones",
            r"(\d+) detections are not above the label threshold .*",
            r"(\d+) objects whose .* are left out of PDQ; mAP and LRP count them",
            r"(\d+) detections have a mask, which is not read: .*",
        ),
    )
)
"""Sentences that count something in the images of one evaluation, so that the counts of several add up."""

_WARNINGS = re.compile(
    r"(all_scores|cls_prob): only .*|\d+ detections have a mask, .*|\d+ images are annotated in some .*"
    r"|.*: their (PDQ is|numbers are) not comparable"
)
"""Notes that warn of a likely mistake; those of readers have problem and remedy, with a semicolon between."""

_RESTRICTION = re.compile(r"restricted to [\d,]+ of ([\d,]+) images; .*")

_OF_THESE_IMAGES = re.compile(rf"{_RESTRICTION.pattern}|mAP of all detections, .*")
"""Notes that hold for the images of one evaluation alone: neither for some of them nor together with others."""

_THRESHOLD = re.compile(r"(\d+) detections are not above the label threshold .*")


def label_note(text: str) -> str:
    """Return a note as people read it, with what it is in front: a warning or a note."""
    return f"{'warning' if is_warning(text) else 'note'}: {text}"


def is_warning(text: str) -> bool:
    """Return whether a note warns of a likely mistake."""
    return _WARNINGS.fullmatch(text) is not None


def is_counted(text: str) -> bool:
    """Return whether a note counts something in the images of one evaluation."""
    return _counted(text) is not None


def said_by_part(notes: Iterable[str], *, first: bool) -> tuple[str, ...]:
    """Return the notes of all of a file that a part of it says: what is counted is said by the first part alone.

    Counts of parts add up.
    """
    return tuple(text for text in notes if first or not is_counted(text))


def _counted(text: str) -> re.Match[str] | None:
    return next((found for found in (pattern.fullmatch(text) for pattern in _OF_IMAGES) if found), None)


def join_notes(parts: Iterable[Sequence[str]], *, of_one: bool = False) -> tuple[str, ...]:
    """Return the notes of evaluations of different images as those of one: counts add up, the rest is said once.

    Notes stand in the order that they have in the parts, also those that not all parts have.

    Parameters
    ----------
    parts : iterable of sequence of str
        The notes of each.
    of_one : bool
        They are parts of one evaluation, so that what all of them were restricted to is said of it too. Default: what
        one of several evaluations was restricted to is not said of all.
    """
    order: list[str] = []
    totals: dict[str, list[int]] = {}
    for notes in parts:
        at = 0
        for text in notes:
            if _OF_THESE_IMAGES.fullmatch(text) and not (of_one and _RESTRICTION.fullmatch(text)):
                continue
            found = _counted(text)
            numbers = [] if found is None else [int(number) for number in found.groups()]
            words = text if found is None else _with_numbers(found, ["#"] * len(numbers))
            if words not in totals:
                order.insert(at, words)
            at = order.index(words) + 1
            before = totals.get(words, [0] * len(numbers))
            totals[words] = [a + b for a, b in zip(before, numbers, strict=True)]
    return tuple(_filled(words, totals[words]) for words in order)


def _with_numbers(found: re.Match[str], numbers: Sequence[str]) -> str:
    """Return the text of a match with other numbers."""
    text, end = "", 0
    for group, number in enumerate(numbers, 1):
        text += found.string[end : found.start(group)] + number
        end = found.end(group)
    return text + found.string[end:]


def _filled(words: str, numbers: Sequence[int]) -> str:
    """Return words with numbers in place of the first signs that stand for some."""
    for number in numbers:
        words = words.replace("#", str(number), 1)
    return words


def notes_at_threshold(notes: Sequence[str], below: int, threshold: float) -> tuple[str, ...]:
    """Return notes after a label threshold left out `below` more detections: one sentence with all of them."""
    earlier = [_THRESHOLD.fullmatch(text) for text in notes]
    total = below + sum(int(found[1]) for found in earlier if found)
    others = [text for text, found in zip(notes, earlier, strict=True) if not found]
    return (*others, threshold_note(total, threshold)) if total else tuple(others)


def notes_of_part(notes: Sequence[str], part: int, whole: int) -> tuple[str, ...]:
    """Return the notes of `part` of an evaluation's images.

    What was counted in single images is not known of the part and not repeated.
    """
    if part == whole:
        return tuple(notes)
    earlier = [found for found in map(_RESTRICTION.fullmatch, notes) if found]
    whole = max([whole, *(int(found[1].replace(",", "")) for found in earlier)])
    kept = [text for text in notes if not is_counted(text) and not _OF_THESE_IMAGES.fullmatch(text)]
    return (*kept, f"restricted to {part:,} of {whole:,} images; what other notes count is of all of them")
