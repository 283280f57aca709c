"""An evaluation on disk: a folder with a JSON file of words and a NumPy archive of columns; or both in some bytes."""

from __future__ import annotations

import dataclasses
import io
import json
import os
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
    Column,
    digest,
    file_names_of,
    labels_from_stored,
    labels_to_stored,
    read_archive,
    read_members,
    read_words,
    to_stored,
    write_archive,
)
from probox.evaluation.part import Part
from probox.evaluation.result import Evaluation
from probox.evaluation.storage_checks import check_evaluation, check_images, check_labels
from probox.evaluation.threshold_choice import ThresholdChoice
from probox.files.output import Content, check_file_place, put_content, write_files
from probox.files.reading import read_regular
from probox.files.remote import is_flattened
from probox.files.replacing import EVALUATION, EVALUATION_WORDS, check_replaceable
from probox.files.staging import folder_made, missing_folders, named_errors
from probox.files.whole_folder import whole_folder
from probox.measures.registry import measure_names
from probox.tables.dataset import Dataset
from probox.tables.masks import Masks
from probox.tables.results import QUALITIES

__all__ = [
    "COLUMNS",
    "FORMAT",
    "WORDS",
    "canonical",
    "check_digest",
    "check_place",
    "check_words",
    "convention_of",
    "dataset_of",
    "evaluation_from_bytes",
    "evaluation_to_bytes",
    "files_of",
    "load_evaluation",
    "parsed_words",
    "part_of",
    "read_words_of",
    "save_evaluation",
    "save_evaluations",
    "save_folders",
    "words_in",
]

FORMAT = 6
"""Since 2, a digest says that words and columns belong together and that nobody changed them; since 3, all of the data
set is kept; since 4, label probabilities are, if the evaluation has them; since 5, a part says of what it is one;
since 6, `position` orders the results of a folder, and label thresholds that were chosen are kept."""
READABLE = (2, 3, 4, 5, 6)
WORDS, COLUMNS = EVALUATION_WORDS, "tables.npz"
MAX_WORDS = 1 << 26
"""The most bytes that the words may have: those of an evaluation are a few thousand."""
LONGEST_TEXT = 1 << 16
"""The most characters of a note or of the name of an input."""
_MASKS = ("boxes", "pixels", "offsets", "runs")
_WORDS: dict[str, type] = {
    "format": int, "version": str, "convention": dict, "classes": list, "measures": list, "inputs": list,
    "notes": list, "digest": str, "dataset": dict, "label_probs": bool, "keep": str, "part": dict, "position": int,
    "threshold_choice": dict,
}  # fmt: skip
_SINCE = {"dataset": 3, "label_probs": 4, "keep": 5, "part": 5, "position": 6, "threshold_choice": 6}
"""The formats that brought these words."""
_REMEDY = "give a folder that `probox evaluate` or Evaluation.save wrote"


def save_evaluation(evaluation: Evaluation, folder: Path) -> None:
    """Write an evaluation into `folder`, which is made if it is missing; another one there is replaced."""
    save_evaluations({folder: evaluation})


def save_evaluations(evaluations: Mapping[Path, Evaluation]) -> None:
    """Write evaluations into folders, all of them or none; folders that are missing are made."""
    save_folders({folder: files_of(evaluation) for folder, evaluation in evaluations.items()})


def save_folders(folders: Mapping[Path, Mapping[str, Content]]) -> None:
    """Write the files of results into folders, all of them or none; see `save_evaluations`.

    The folder of one result, or the folder that holds several, is replaced as a whole, and other files in it stay.
    Where that is not possible, files are replaced one by one. A result that was interrupted between its two files is
    refused when it is loaded: their digest does not match.
    """

    def check() -> None:
        for folder in folders:
            check_place(folder)

    check()
    for folder in folders:
        missing_folders(folder)  # raises where a file is in the way
    first = next(iter(folders))
    whole = first if len(folders) == 1 else first.parent
    real = Path(os.path.realpath(whole))
    inside = {folder: Path(os.path.relpath(os.path.realpath(folder), real)) for folder in folders}
    if any(len(path.parts) > 1 or ".." in path.parts for path in inside.values()):  # links lead elsewhere
        with ExitStack() as stack:
            for folder in folders:
                stack.enter_context(folder_made(folder))
            write_files({folder / name: content for folder in folders for name, content in folders[folder].items()})
        return
    with whole_folder(whole, check, keep=True) as new:
        for folder, files in folders.items():
            (new / inside[folder]).mkdir(exist_ok=True)
            for name, content in files.items():
                with named_errors(folder / name):
                    put_content(new / inside[folder] / name, content, lasting=True)


def check_place(folder: Path) -> None:
    """Raise if an evaluation in `folder` would replace files that are of none, or if it is the URL of one."""
    if is_flattened(folder):
        raise InputError("results are kept in folders, not at URLs", file=str(folder), remedy="name a folder")
    with named_errors(folder):
        for name in (WORDS, COLUMNS):
            if folder.is_dir():
                check_file_place(folder / name)
            check_replaceable(folder / name, EVALUATION)


def files_of(evaluation: Evaluation, position: int = 0) -> dict[str, Content]:
    """Return the files of an evaluation and what goes into them; `position` orders the results of a folder."""
    text, stored = _stored(evaluation, position)
    return {COLUMNS: lambda file: write_archive(file, stored), WORDS: text}


def evaluation_to_bytes(evaluation: Evaluation) -> bytes:
    """Return everything in one archive, for queues and collectives: words and columns, not compressed."""
    text, stored = _stored(evaluation)
    file = io.BytesIO()
    write_archive(file, stored, words={WORDS: text}, compressed=False)
    return file.getvalue()


def evaluation_from_bytes(data: bytes, name: str = "bytes") -> Evaluation:
    """Return the evaluation that `evaluation_to_bytes` made; `name` is what messages call it."""
    words = parsed_words(words_in(data, name), name)
    _check_words(words, name)
    arrays = read_members(io.BytesIO(data), len(data), name, _names(words))
    check_digest(words, arrays, name, "was changed since it was made")
    return _evaluation(words, arrays, name, name)


def words_in(data: bytes, name: str) -> bytes:
    """Return the words in the bytes of an evaluation."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InputError(
            f"expected bytes, but got {type(data).__name__}", file=name, remedy="give what to_bytes returned"
        )
    return read_words(io.BytesIO(data), name, WORDS, MAX_WORDS)


def _stored(evaluation: Evaluation, position: int = 0) -> tuple[bytes, dict[str, Any]]:
    """Return words and columns as they are written."""
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
        "keep": "all",
        "part": {} if evaluation.part is None else evaluation.part.to_dict(),
        "position": position,
        "threshold_choice": {} if evaluation.threshold_choice is None else evaluation.threshold_choice.to_words(),
    }
    words["digest"] = digest(canonical(words), stored)
    return json.dumps(words, indent=1).encode(), stored  # ASCII: names of files need not be valid text


def load_evaluation(folder: Path) -> Evaluation:
    """Return the evaluation that `save_evaluation` wrote, whole and unchanged."""
    words = parsed_words(read_words_of(folder), str(folder / WORDS))
    _check_words(words, str(folder / WORDS))
    arrays = read_archive(folder / COLUMNS, _names(words))
    check_digest(words, arrays, str(folder), f"{WORDS} and {COLUMNS} are not of one evaluation, or were changed since")
    return _evaluation(words, arrays, str(folder / WORDS), str(folder / COLUMNS))


def check_digest(
    words: dict[str, Any], arrays: Arrays, file: str, problem: str, schema: Mapping[str, Column] | None = None
) -> None:
    """Raise unless words and columns are those that the digest is of."""
    if digest(canonical(words), arrays, schema) != words["digest"]:
        raise InputError(problem, file=file, remedy="evaluate anew")


def _names(words: dict[str, Any]) -> list[str]:
    """Return the columns that an archive of this format has."""
    return [name for name in SCHEMA if name not in SINCE_4 or words["format"] > 3]


def _evaluation(words: dict[str, Any], arrays: Arrays, words_file: str, columns_file: str) -> Evaluation:
    """Return the evaluation that words and columns make, which must be possible."""
    check_images(arrays, columns_file)
    if words.get("label_probs"):
        check_labels(arrays, len(words["classes"]), columns_file)
    evaluation = Evaluation(
        convention=convention_of(words, words_file),
        measures=tuple(words["measures"]),
        masks=Masks(*(arrays[f"masks.{name}"] for name in _MASKS)),
        inputs=tuple(words["inputs"]),
        plain_notes=tuple(words["notes"]),
        version=words["version"],
        part=part_of(words, words_file),
        threshold_choice=_choice_of(words, len(arrays["images.id"]), words_file),
        **_tables(words, arrays, columns_file),
    )
    check_evaluation(evaluation, columns_file)
    return evaluation


def _tables(words: dict[str, Any], arrays: Arrays, file: str) -> dict[str, Any]:
    """Return the data set and the tables of results; a row of -1 stands for an image that there is not."""
    dataset = dataset_of(words, arrays, file)
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


def dataset_of(words: dict[str, Any], arrays: Arrays, file: str) -> Dataset:
    """Return the data set that words and columns describe; file names where they were kept."""
    _check_dataset_words(words.get("dataset"), file)
    names = arrays["images.file_name"].tolist() if "images.file_name" in arrays else ()
    try:
        return Dataset(
            classes=tuple(words["classes"]),
            image_ids=arrays["images.id"],
            widths=arrays["images.width"],
            heights=arrays["images.height"],
            file_names=tuple(names),
            **words.get("dataset", {}),
        )
    except InputError as error:
        raise InputError(
            error.problem, file=file, image=error.image, entry=error.entry or "dataset", remedy="evaluate anew"
        ) from None


def canonical(words: dict[str, Any]) -> bytes:
    """Return the words but their digest, as bytes that do not depend on white space or on the order of keys."""
    said = {name: value for name, value in words.items() if name != "digest"}
    return json.dumps(said, sort_keys=True, separators=(",", ":")).encode()


def read_words_of(folder: Path) -> bytes:
    """Return the words of a folder as they are."""
    path = folder / WORDS
    if not os.path.isfile(path):  # which unlike pathlib's, before Python 3.14, raises for no name
        problem = f"holds no {WORDS}" if os.path.exists(folder) else "no such folder"
        raise InputError(problem, file=str(folder), remedy=_REMEDY)
    return read_regular(path, most=MAX_WORDS, remedy=_REMEDY)


def parsed_words(data: bytes, file: str) -> dict[str, Any]:
    """Return words of a format that can be read, whatever was kept."""
    try:
        words = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, dict) or "format" not in words:
        raise InputError("expected the words of an evaluation in JSON", file=file, remedy=_REMEDY)
    if type(words["format"]) is not int or words["format"] not in READABLE:
        found = words["format"] if isinstance(words["format"], int) else "something else"
        readable = f"{READABLE[0]} to {READABLE[-1]}"
        remedy = "evaluate anew"
        if type(words["format"]) is int and words["format"] > READABLE[-1]:
            remedy = f"use a newer probox, or {remedy}"
        raise InputError(f"is of format {found}, this probox reads {readable}", file=file, remedy=remedy)
    return words


def _check_words(words: dict[str, Any], file: str) -> None:
    """Raise unless the words are those of an evaluation of which everything was kept."""
    if words.get("keep", "all") in ("matches", "summary"):
        raise InputError(
            f"holds the {words['keep']} of an evaluation, not its tables",
            file=file,
            remedy='evaluate anew with keep="all"',
        )
    check_words(words, _WORDS, _SINCE, file)
    if words.get("keep", "all") != "all":
        raise InputError("expected `all`", file=file, entry="keep", remedy="evaluate anew")


def check_words(words: dict[str, Any], kinds: Mapping[str, type], since: Mapping[str, int], file: str) -> None:
    """Raise unless there are just these words, each of its type, and the measures are known."""
    expected = {name: kind for name, kind in kinds.items() if words["format"] >= since.get(name, 0)}
    if words.keys() != expected.keys():
        name = min(words.keys() ^ expected.keys())
        problem = f"expected a key {name!r}" if name in expected else f"does not know the key {name[:80]!r}"
        raise InputError(problem, file=file, remedy="evaluate anew")
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
            raise InputError(f"expected {what}", file=file, entry=name, remedy="evaluate anew")
        longest = max(map(len, texts if kind is list else [value] if kind is str else []), default=0)
        if longest > LONGEST_TEXT:
            problem = f"expected texts of at most {LONGEST_TEXT:,} characters, but got one of {longest:,}"
            raise InputError(problem, file=file, entry=name, remedy="evaluate anew")
    known = measure_names()
    if words["measures"] != [name for name in known if name in words["measures"]] or not words["measures"]:
        raise InputError(f"expected some of {', '.join(known)}", file=file, entry="measures", remedy="evaluate anew")


def part_of(words: dict[str, Any], file: str) -> Part | None:
    """Return of what it is a part; None where it is a whole."""
    if not words.get("part"):
        return None
    try:
        return Part.from_dict(words["part"])
    except InputError as error:
        raise InputError(error.problem, file=file, entry="part", remedy="evaluate anew") from None


def _choice_of(words: dict[str, Any], images: int, file: str) -> ThresholdChoice | None:
    """Return the label thresholds that were chosen; None unless the convention leaves it to choose them."""
    chosen = words.get("threshold_choice")
    if (words["convention"].get("label_threshold") == "auto") != bool(chosen):
        raise InputError(
            "expected one for label_threshold `auto` alone", file=file, entry="threshold_choice", remedy="evaluate anew"
        )
    if not chosen:
        return None
    try:
        return ThresholdChoice.from_words(chosen, images)
    except InputError as error:
        raise InputError(error.problem, file=file, entry="threshold_choice", remedy="evaluate anew") from None


def _check_dataset_words(words: dict[str, Any] | None, file: str) -> None:
    """Raise unless the words about a data set, which a result of format 2 does not have, are those that it needs."""
    if words is None:
        return
    kinds = {"category_ids": list, "rules": str, "source": str}
    fine = words.keys() == kinds.keys() and all(type(words[name]) is kind for name, kind in kinds.items())
    fine = fine and len(words["source"]) <= LONGEST_TEXT
    if not fine or not all(type(number) is int for number in words["category_ids"]):
        expected = "expected category_ids (whole numbers), rules and source (text)"
        raise InputError(expected, file=file, entry="dataset", remedy="evaluate anew")


def convention_of(words: dict[str, Any], file: str) -> Convention:
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
