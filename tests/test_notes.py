"""Notes and warnings: a case per code with its sentence for one and for two, and merging."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from probox.cli.console import as_option
from probox.errors import InputError
from probox.notes import (
    NOTES,
    WARNINGS,
    InputWarning,
    Note,
    as_notes,
    merge_notes,
    notes_at_threshold,
    notes_of_images,
    notes_of_part,
    read_notes,
)

SENTENCES = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""The sentence of each code for one and for two; a text has the name of its field, and a number is 0.5."""

FILE = Note("annotations-without-mask", 3)


def threshold_note(count: int, threshold: float) -> Note:
    return Note("below-threshold", count, threshold=threshold)


def test_counts_of_images_add_up_and_those_of_a_file_stay() -> None:
    parts = [
        (FILE, threshold_note(2, 0.5), Note("empty-masks", 1)),
        (FILE, threshold_note(5, 0.5)),
        (threshold_note(1, 0.5), Note("empty-masks", 4)),
    ]
    assert merge_notes(parts) == (FILE, threshold_note(8, 0.5), Note("empty-masks", 5))


def test_counts_of_several_files_add_up() -> None:
    merged = merge_notes([[Note("polygons", 3), FILE], [Note("polygons", 2), Note("annotations-without-mask", 2)]])
    assert merged == (Note("polygons", 5), Note("annotations-without-mask", 5))
    assert merged[0].message == "5 detections are polygons: their boxes are used"


def test_images_add_up_with_their_detections() -> None:
    parts = [[Note("unknown-images", 1, images=1)], [Note("unknown-images", 3, images=2)]]
    assert merge_notes(parts) == (Note("unknown-images", 4, images=3),)


def test_other_values_are_other_notes() -> None:
    notes = (threshold_note(1, 0.25), threshold_note(1, 0.5))
    assert set(merge_notes([notes[:1], notes[1:]])) == set(notes)


def test_one_note_about_the_threshold() -> None:
    assert notes_at_threshold((threshold_note(2, 0.25), FILE), 7, 0.5) == (FILE, threshold_note(9, 0.5))


def test_a_part_of_a_part_is_one_of_the_whole() -> None:
    half = notes_of_images((FILE, threshold_note(2, 0.25)), 6, 1200)
    assert half == (FILE, Note("restricted", 6, total=1200))
    assert notes_of_images(half, 2, 6)[1:] == (Note("restricted", 2, total=1200),)
    assert notes_of_images(half, 6, 6) == half
    assert merge_notes([half, half]) == (FILE,)
    assert merge_notes([half, half], of_one=True) == half


def test_what_counts_in_images_stands_in_the_first_part() -> None:
    notes = (FILE, Note("repaired-covariances", 2))
    assert notes_of_part(notes, first=True) == notes
    assert notes_of_part(notes, first=False) == (FILE,)


@pytest.mark.parametrize("note", [FILE, Note("keypoints-not-read"), InputWarning("photos-dark", 4, first="7.jpg")])
def test_notes_are_stored_and_read(note: Note) -> None:
    assert read_notes([note.to_dict()], "file") == (note,)


@pytest.mark.parametrize(
    "words",
    [
        "3 detections",
        {"code": "no-such-code", "count": 1, "fields": {}},
        {"code": "polygons", "count": -1, "fields": {}},
        {"code": "polygons", "count": True, "fields": {}},
        {"code": "below-threshold", "count": 1, "fields": {}},
        {"code": "below-threshold", "count": 1, "fields": {"threshold": [0.5]}},
        {"code": "polygons", "count": 1},
    ],
)
def test_what_is_no_note_is_refused(words: object) -> None:
    with pytest.raises(InputError, match="file: notes: expected notes"):
        read_notes([words], "file")


def test_keywords_are_spelled_by_the_front_end() -> None:
    warning = InputWarning("corner-outside-image", 1, total=2)
    assert warning.message.endswith('with clip="corners"')
    assert warning.to_dict(as_option)["message"].endswith("with --clip corners")


def test_texts_of_others_and_names_of_results() -> None:
    (note,) = as_notes(["a reader's own words"])
    assert (note.code, str(note)) == ("text", "a reader's own words")
    assert note.replace(None, result="ssd").with_label() == "note: ssd: a reader's own words"


def _fields(sentence: str, count: int) -> dict[str, int | float | str]:
    """Return values for the places of a sentence; whole numbers are `count`."""
    fields: dict[str, int | float | str] = {}
    for name, spec in re.findall(r"\{(\w+)(?:![rs])?(?::([^{}]*))?\}", sentence):
        if name in ("count", "option"):
            continue
        if "|" in spec or spec == "," or (len(spec) > 1 and spec[0].isalpha()):
            fields[name] = count
        elif spec.endswith(("g", "f", "%")):
            fields.setdefault(name, 0.5)
        else:
            fields.setdefault(name, name.upper())
    return fields


def written(code: str, count: int) -> str:
    kind = InputWarning if code in WARNINGS else Note
    sentence = (WARNINGS if code in WARNINGS else NOTES)[code]
    return kind(code, count, **_fields(sentence, count)).message


@pytest.mark.parametrize("code", sorted(NOTES | WARNINGS))
def test_the_sentence_of_each_code(code: str) -> None:
    assert (code, written(code, 1), written(code, 2)) == (code, *SENTENCES[code])


def test_each_code_has_one_sentence() -> None:
    assert not NOTES.keys() & WARNINGS.keys()
    assert SENTENCES.keys() == NOTES.keys() | WARNINGS.keys()
