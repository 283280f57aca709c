"""Sentences about what an evaluation left out, and how those of several evaluations become those of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = [
    "empty_mask_note",
    "join_notes",
    "notes_at_threshold",
    "notes_of_part",
    "threshold_note",
    "unknown_image_note",
]


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


_OF_IMAGES = re.compile(
    r"(\d+) (detections lie in images that the truth does not have: left out"
    r"|detections are not above the label threshold .*"
    r"|objects whose .* are left out of PDQ; mAP and LRP count them)"
)
"""Sentences that count something in the images of one evaluation, so that the counts of several add up."""

_RESTRICTION = re.compile(r"restricted to [\d,]+ of ([\d,]+) images; .*")

_THRESHOLD = re.compile(r"(\d+) detections are not above the label threshold .*")


def join_notes(parts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the notes of evaluations of different images as those of one: counts add up, the rest is said once."""
    totals: dict[str, int] = {}
    for text in (text for part in parts for text in part):
        counted = _OF_IMAGES.fullmatch(text)
        if counted:
            totals[counted[2]] = totals.get(counted[2], 0) + int(counted[1])
        elif not _RESTRICTION.fullmatch(text):
            totals.setdefault(text, -1)
    return tuple(text if count < 0 else f"{count} {text}" for text, count in totals.items())


def notes_at_threshold(notes: Sequence[str], below: int, threshold: float) -> tuple[str, ...]:
    """Return notes after a label threshold left out `below` more detections: one sentence with all of them."""
    earlier = [_THRESHOLD.fullmatch(text) for text in notes]
    total = below + sum(int(found[1]) for found in earlier if found)
    others = [text for text, found in zip(notes, earlier, strict=True) if not found]
    return (*others, threshold_note(total, threshold))


def notes_of_part(notes: Sequence[str], part: int, whole: int) -> tuple[str, ...]:
    """Return the notes of `part` of an evaluation's images.

    What was counted in single images is not known of the part and not repeated.
    """
    if part == whole:
        return tuple(notes)
    earlier = [found for found in map(_RESTRICTION.fullmatch, notes) if found]
    whole = max([whole, *(int(found[1].replace(",", "")) for found in earlier)])
    kept = [text for text in notes if not _OF_IMAGES.fullmatch(text) and not _RESTRICTION.fullmatch(text)]
    return (*kept, f"restricted to {part:,} of {whole:,} images; what other notes count is of all of them")
