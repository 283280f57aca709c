"""Sentences of several evaluations as those of one."""

from __future__ import annotations

from probox.evaluation.notes import empty_mask_note, join_notes, notes_at_threshold, notes_of_part, threshold_note

FILE = "3 annotations have no segmentation: their boxes are used as masks"


def test_counts_of_images_add_up_and_files_are_said_once() -> None:
    parts = [
        (FILE, threshold_note(2, 0.5), empty_mask_note(1, box_truth=False)),
        (FILE, threshold_note(5, 0.5)),
        (threshold_note(1, 0.5), empty_mask_note(4, box_truth=False)),
    ]
    assert join_notes(parts) == (FILE, threshold_note(8, 0.5), empty_mask_note(5, box_truth=False))


def test_one_sentence_about_the_threshold() -> None:
    assert notes_at_threshold((threshold_note(2, 0.25), FILE), 7, 0.5) == (FILE, threshold_note(9, 0.5))


def test_a_part_of_a_part_is_one_of_the_whole() -> None:
    half = notes_of_part((FILE, threshold_note(2, 0.25)), 6, 1200)
    assert half == (FILE, "restricted to 6 of 1,200 images; what other notes count is of all of them")
    assert notes_of_part(half, 2, 6)[1:] == (
        "restricted to 2 of 1,200 images; what other notes count is of all of them",
    )
    assert notes_of_part(half, 6, 6) == half
    assert join_notes([half, half]) == (FILE,)
