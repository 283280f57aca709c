"""An evaluation on disk: a folder with a JSON file of words and a NumPy archive of columns."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.archive import digest, read_archive, to_stored, write_archive
from probox.evaluation.result import MEASURES, Evaluation
from probox.evaluation.storage_checks import check_evaluation
from probox.files.output import write_files
from probox.files.reading import read_regular
from probox.files.replacing import EVALUATION, EVALUATION_WORDS, check_replaceable
from probox.files.staging import folder_made, named_errors
from probox.tables.masks import Masks
from probox.tables.results import DetectionTable, ImageTable, ObjectTable, PairTable, Table

__all__ = ["COLUMNS", "WORDS", "check_place", "load_evaluation", "save_evaluation", "save_evaluations"]

FORMAT = 2
"""Since 2, a digest says that words and columns belong together and that nobody changed them."""
WORDS, COLUMNS = EVALUATION_WORDS, "tables.npz"
MAX_WORDS = 1 << 26
"""The most bytes that the words may have: those of an evaluation are a few thousand."""
_TABLES: dict[str, type[Table]] = {
    "images": ImageTable,
    "objects": ObjectTable,
    "detections": DetectionTable,
    "pairs": PairTable,
}
_MASKS = ("boxes", "pixels", "offsets", "runs")
_WORDS: dict[str, type] = {
    "format": int, "version": str, "convention": dict, "classes": list, "measures": list, "inputs": list,
    "notes": list, "digest": str,
}  # fmt: skip
_REMEDY = "give a folder that `probox evaluate` or Evaluation.save wrote"


def save_evaluation(evaluation: Evaluation, folder: Path) -> None:
    """Write an evaluation into `folder`, which is made if it is missing; another one there is replaced."""
    save_evaluations({folder: evaluation})


def save_evaluations(evaluations: Mapping[Path, Evaluation]) -> None:
    """Write evaluations into folders, all of them or none; folders that are missing are made.

    A folder that was interrupted between its two files is refused when it is loaded: their digest does not match.
    """
    files: dict[Path, Any] = {}
    with ExitStack() as stack:  # if anything fails: what was there before stays; of what was made, nothing does
        for folder, evaluation in evaluations.items():
            stack.enter_context(folder_made(folder))
            check_place(folder)
            files |= _files_of(evaluation, folder)
        write_files(files)


def check_place(folder: Path) -> None:
    """Raise if an evaluation in `folder` would replace files that are of none."""
    with named_errors(folder):
        for name in (WORDS, COLUMNS):
            check_replaceable(folder / name, EVALUATION)


def _files_of(evaluation: Evaluation, folder: Path) -> dict[Path, Any]:
    arrays: dict[str, Any] = {f"masks.{name}": getattr(evaluation.masks, name) for name in _MASKS}
    for name in _TABLES:
        arrays.update(getattr(evaluation, name).to_arrays(name))
    stored = to_stored(arrays)
    words = {
        "format": FORMAT,
        "version": evaluation.version,
        "convention": evaluation.convention.to_dict(),
        "classes": list(evaluation.classes),
        "measures": list(evaluation.measures),
        "inputs": list(evaluation.inputs),
        "notes": list(evaluation.plain_notes),
    }
    words["digest"] = digest(_canonical(words), stored)
    text = json.dumps(words, indent=1)  # ASCII: names of files need not be valid text
    return {folder / COLUMNS: lambda file: write_archive(file, stored), folder / WORDS: text.encode()}


def load_evaluation(folder: Path) -> Evaluation:
    """Return the evaluation that `save_evaluation` wrote, whole and unchanged."""
    words = _read_words(folder)
    arrays = read_archive(folder / COLUMNS)
    if digest(_canonical(words), arrays) != words["digest"]:
        raise InputError(
            f"{WORDS} and {COLUMNS} are not of one evaluation, or were changed since",
            file=str(folder),
            remedy="evaluate anew",
        )
    tables: dict[str, Any] = {name: kind.from_arrays(arrays, name) for name, kind in _TABLES.items()}
    evaluation = Evaluation(
        convention=_convention(words, str(folder / WORDS)),
        classes=tuple(words["classes"]),
        measures=tuple(words["measures"]),
        masks=Masks(*(arrays[f"masks.{name}"] for name in _MASKS)),
        inputs=tuple(words["inputs"]),
        plain_notes=tuple(words["notes"]),
        version=words["version"],
        **tables,
    )
    check_evaluation(evaluation, str(folder / COLUMNS))
    return evaluation


def _canonical(words: dict[str, Any]) -> bytes:
    """Return the words but their digest, as bytes that do not depend on white space or on the order of keys."""
    said = {name: value for name, value in words.items() if name != "digest"}
    return json.dumps(said, sort_keys=True, separators=(",", ":")).encode()


def _read_words(folder: Path) -> dict[str, Any]:
    """Return the words, each of its type; the convention's own are left to `_convention`."""
    path = folder / WORDS
    try:
        missing = not path.is_file()
    except (OSError, ValueError):  # a folder that may not be looked into, a null character in its name
        missing = True
    if missing:
        raise InputError(f"holds no {WORDS}", file=str(folder), remedy=_REMEDY)
    data = read_regular(path, most=MAX_WORDS, remedy=_REMEDY)
    try:
        words = json.loads(data.decode())
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, dict) or "format" not in words:
        raise InputError("expected the words of an evaluation in JSON", file=str(path), remedy=_REMEDY)
    if type(words["format"]) is not int or words["format"] != FORMAT:
        found = words["format"] if isinstance(words["format"], int) else "something else"
        raise InputError(f"is of format {found}, this probox reads {FORMAT}", file=str(path), remedy="evaluate anew")
    if words.keys() != _WORDS.keys():
        name = min(words.keys() ^ _WORDS.keys())
        problem = f"expected a key {name!r}" if name in _WORDS else f"does not know the key {name[:80]!r}"
        raise InputError(problem, file=str(path), remedy="evaluate anew")
    for name, kind in _WORDS.items():
        value = words[name]
        texts = value if kind is list and isinstance(value, list) else []
        if type(value) is not kind or not all(type(text) is str for text in texts):
            what = {str: "text", list: "a list of texts", dict: "an object", int: "a whole number"}[kind]
            raise InputError(f"expected {what}", file=str(path), entry=name, remedy="evaluate anew")
    if words["measures"] != [name for name in MEASURES if name in words["measures"]] or not words["measures"]:
        raise InputError(
            f"expected some of {', '.join(MEASURES)}", file=str(path), entry="measures", remedy="evaluate anew"
        )
    return words


def _convention(words: dict[str, Any], file: str) -> Convention:
    """Return the convention, every field of which must be there."""
    given = words["convention"]
    for field in dataclasses.fields(Convention):
        if field.name not in given:
            raise InputError(
                f"expected a value like {json.dumps(field.default)}",
                file=file, entry=f"convention.{field.name}", remedy="evaluate anew",
            )  # fmt: skip
    try:
        return Convention.from_dict(given)
    except InputError as error:
        raise InputError(error.problem, file=file, entry="convention", remedy=error.remedy or "evaluate anew") from None
