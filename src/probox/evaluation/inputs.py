"""What is to be evaluated: tables, or files that hold them; all images or some."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.notes import notes_of_part
from probox.files.reading import Paths
from probox.formats.reading import read_detections_of_part, read_truth
from probox.tables.arguments import check_tables
from probox.tables.dataset import chosen_ids
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["Images", "image_ids_in", "part_of_truth", "read_inputs"]

Images = str | os.PathLike[str] | npt.ArrayLike
"""Image ids, or a file of them, or ids in one text between commas."""

_REMEDY = "give a JSON list of image ids, a text file with one id per line, or ids separated by commas"


def read_inputs(
    truth: GroundTruth | Paths,
    found: Detections | Paths,
    call: str,
    *,
    images: Images | None = None,
    repair: bool = False,
) -> tuple[GroundTruth, Detections]:
    """Return the tables that ``call(truth, found)`` is about, read from files where paths are given."""
    if _is_path(truth) and isinstance(found, Detections | str | os.PathLike):
        whole = read_truth(truth)  # type: ignore[arg-type]
    elif isinstance(truth, GroundTruth) and _is_path(found):
        whole = truth
    else:
        check_tables(truth, found, call)
        whole = truth  # type: ignore[assignment]
    part = whole if images is None else part_of_truth(whole, images)
    if not isinstance(found, Detections):
        return part, read_detections_of_part(found, whole, part, repair=repair)
    if part is not whole:
        elsewhere = (whole.dataset.rows_of(found.image_ids) >= 0) & (part.dataset.rows_of(found.image_ids) < 0)
        found = found.select(~elsewhere)
    return part, found


def part_of_truth(whole: GroundTruth, images: Images) -> GroundTruth:
    """Return the truth of some images, with notes that say so."""
    ids = chosen_ids(image_ids_in(images), whole.image_ids, file=whole.source or None)
    notes = notes_of_part(whole.notes, len(ids), len(whole.image_ids))
    return dataclasses.replace(whole.select_images(ids), notes=notes)


def image_ids_in(images: Images, name: str = "images") -> npt.NDArray[np.int64] | list[int]:
    """Return image ids as they are, or those that a text or a file names; `name` is what messages call it.

    >>> image_ids_in("139, 285")
    [139, 285]
    """
    if not _is_path(images):
        return images  # type: ignore[return-value]
    text = given = os.fspath(images)  # type: ignore[arg-type]
    file = None
    if os.path.isfile(text):  # unlike Path.is_file, this takes any length: a long list is no file
        file = text
        try:
            given = Path(text).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read as text ({error})", file=file, remedy=_REMEDY) from None
        if given.lstrip().startswith(("[", "{")):
            return _from_json(given, file)
    words = given.replace(",", " ").split()
    wrong = [word for word in words if not _is_id(word)]
    if wrong or not words:
        problem = (
            f"expected image ids, but got {wrong[0][:80]!r}" if wrong else "expected image ids, but there are none"
        )
        if file is None and os.path.isdir(text):
            problem = f"is a folder, but {name} expects image ids"
        elif file is None and wrong and ("/" in text or "." in text):
            problem = "no such file"
        elif file is None:
            text = name
        raise InputError(problem, file=file or text, remedy=_REMEDY)
    return [int(word) for word in words]


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _from_json(text: str, file: str) -> list[int]:
    try:
        ids = json.loads(text)
    except (ValueError, RecursionError):
        ids = None
    if not isinstance(ids, list) or not ids or not all(type(entry) is int and _fits(entry) for entry in ids):
        raise InputError("expected a JSON list of image ids, all of them whole numbers", file=file, remedy=_REMEDY)
    return ids


def _is_id(word: str) -> bool:
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20 and _fits(int(word))


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**63
