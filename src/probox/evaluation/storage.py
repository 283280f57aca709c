"""An evaluation on disk: a folder with a JSON file of words and a NumPy archive of columns."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.archive import (
    SCHEMA,
    SINCE_4,
    TABLES,
    Arrays,
    digest,
    file_names_of,
    labels_from_stored,
    labels_to_stored,
    read_archive,
    to_stored,
    write_archive,
)
from probox.evaluation.result import Evaluation
from probox.evaluation.storage_checks import check_evaluation, check_images, check_labels
from probox.files.output import write_files
from probox.files.reading import read_regular
from probox.files.replacing import EVALUATION, EVALUATION_WORDS, check_replaceable
from probox.files.staging import folder_made, named_errors
from probox.measures.registry import measure_names
from probox.tables.dataset import Dataset
from probox.tables.masks import Masks
from probox.tables.results import QUALITIES

__all__ = ["COLUMNS", "WORDS", "check_place", "load_evaluation", "save_evaluation", "save_evaluations"]

FORMAT = 4
"""Since 2, a digest says that words and columns belong together and that nobody changed them; since 3, all of the data
set is kept; since 4, label probabilities are, if the evaluation has them."""
READABLE = (2, 3, 4)
WORDS, COLUMNS = EVALUATION_WORDS, "tables.npz"
MAX_WORDS = 1 << 26
"""The most bytes that the words may have: those of an evaluation are a few thousand."""
_MASKS = ("boxes", "pixels", "offsets", "runs")
_WORDS: dict[str, type] = {
    "format": int, "version": str, "convention": dict, "classes": list, "measures": list, "inputs": list,
    "notes": list, "digest": str, "dataset": dict, "label_probs": bool,
}  # fmt: skip
_SINCE = {"dataset": 3, "label_probs": 4}
"""The formats that brought these words."""
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
    images = evaluation.dataset
    arrays |= {"images.id": images.image_ids, "images.width": images.widths, "images.height": images.heights}
    arrays["images.file_name"] = np.array(images.file_names, np.str_)
    for name in TABLES:
        table = getattr(evaluation, name)
        arrays |= {f"{name}.{quality}": table.quality(quality) for quality in QUALITIES}
        arrays |= {stored: getattr(table, column) for column, stored in file_names_of(name).items()}
    for name in ("objects", "detections"):
        arrays[f"{name}.image_id"] = images.image_ids[arrays[f"{name}.image_id"]]
    label_probs = evaluation.detections.label_probs
    arrays |= labels_to_stored(label_probs, len(evaluation.detections))
    stored = to_stored(arrays)
    words = {
        "format": FORMAT,
        "version": evaluation.version,
        "convention": evaluation.convention.to_dict(),
        "classes": list(evaluation.classes),
        "measures": list(evaluation.measures),
        "inputs": list(evaluation.inputs),
        "notes": list(evaluation.plain_notes),
        "dataset": {"category_ids": images.category_ids.tolist(), "rules": images.rules, "source": images.source},
        "label_probs": label_probs is not None,
    }
    words["digest"] = digest(_canonical(words), stored)
    text = json.dumps(words, indent=1)  # ASCII: names of files need not be valid text
    return {folder / COLUMNS: lambda file: write_archive(file, stored), folder / WORDS: text.encode()}


def load_evaluation(folder: Path) -> Evaluation:
    """Return the evaluation that `save_evaluation` wrote, whole and unchanged."""
    words = _read_words(folder)
    arrays = read_archive(folder / COLUMNS, [name for name in SCHEMA if name not in SINCE_4 or words["format"] > 3])
    if digest(_canonical(words), arrays) != words["digest"]:
        raise InputError(
            f"{WORDS} and {COLUMNS} are not of one evaluation, or were changed since",
            file=str(folder),
            remedy="evaluate anew",
        )
    check_images(arrays, str(folder / COLUMNS))
    if words.get("label_probs"):
        check_labels(arrays, len(words["classes"]), str(folder / COLUMNS))
    evaluation = Evaluation(
        convention=_convention(words, str(folder / WORDS)),
        measures=tuple(words["measures"]),
        masks=Masks(*(arrays[f"masks.{name}"] for name in _MASKS)),
        inputs=tuple(words["inputs"]),
        plain_notes=tuple(words["notes"]),
        version=words["version"],
        **_tables(words, arrays, str(folder / COLUMNS)),
    )
    check_evaluation(evaluation, str(folder / COLUMNS))
    return evaluation


def _tables(words: dict[str, Any], arrays: Arrays, file: str) -> dict[str, Any]:
    """Return the data set and the tables of results; a row of -1 stands for an image that there is not."""
    try:
        dataset = Dataset(
            classes=tuple(words["classes"]),
            image_ids=arrays["images.id"],
            widths=arrays["images.width"],
            heights=arrays["images.height"],
            file_names=tuple(arrays["images.file_name"].tolist()),
            **words.get("dataset", {}),
        )
    except InputError as error:
        raise InputError(error.problem, file=file, entry="dataset", remedy="evaluate anew") from None
    tables: dict[str, Any] = {"dataset": dataset}
    for name, kind in TABLES.items():
        columns = {column: arrays[stored] for column, stored in file_names_of(name).items() if stored in arrays}
        columns["qualities"] = np.stack([arrays[f"{name}.{quality}"] for quality in QUALITIES], axis=1)
        if "image_rows" in columns:
            columns["image_rows"] = dataset.rows_of(columns["image_rows"])
        if name == "detections" and "heatmaps" not in columns:  # nobody kept who they were
            columns["heatmaps"] = np.zeros(len(columns["boxes"]), bool)
        if name == "detections" and words.get("label_probs"):
            columns["label_probs"] = labels_from_stored(arrays, len(dataset.classes))
        tables[name] = kind(**columns)
    return tables


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
    if type(words["format"]) is not int or words["format"] not in READABLE:
        found = words["format"] if isinstance(words["format"], int) else "something else"
        readable = f"{READABLE[0]} to {READABLE[-1]}"
        raise InputError(f"is of format {found}, this probox reads {readable}", file=str(path), remedy="evaluate anew")
    expected = {name: kind for name, kind in _WORDS.items() if words["format"] >= _SINCE.get(name, 0)}
    if words.keys() != expected.keys():
        name = min(words.keys() ^ expected.keys())
        problem = f"expected a key {name!r}" if name in expected else f"does not know the key {name[:80]!r}"
        raise InputError(problem, file=str(path), remedy="evaluate anew")
    for name, kind in expected.items():
        value = words[name]
        texts = value if kind is list and isinstance(value, list) else []
        if type(value) is not kind or not all(type(text) is str for text in texts):
            what = {
                str: "text",
                list: "a list of texts",
                dict: "an object",
                int: "a whole number",
                bool: "true or false",
            }[kind]
            raise InputError(f"expected {what}", file=str(path), entry=name, remedy="evaluate anew")
    _check_dataset_words(words.get("dataset"), str(path))
    known = measure_names()
    if words["measures"] != [name for name in known if name in words["measures"]] or not words["measures"]:
        raise InputError(
            f"expected some of {', '.join(known)}", file=str(path), entry="measures", remedy="evaluate anew"
        )
    return words


def _check_dataset_words(words: dict[str, Any] | None, file: str) -> None:
    """Raise unless the words about a data set, which a result of format 2 does not have, are those that it needs."""
    if words is None:
        return
    kinds = {"category_ids": list, "rules": str, "source": str}
    fine = words.keys() == kinds.keys() and all(type(words[name]) is kind for name, kind in kinds.items())
    if not fine or not all(type(number) is int for number in words["category_ids"]):
        expected = "expected category_ids (whole numbers), rules and source (text)"
        raise InputError(expected, file=file, entry="dataset", remedy="evaluate anew")


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
