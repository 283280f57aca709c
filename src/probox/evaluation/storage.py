"""Storage of results: a folder with a JSON file and a NumPy archive of columns, or both as bytes."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.archive import (
    SCHEMA,
    TABLES,
    ArchiveColumn,
    Arrays,
    digest,
    file_names_of,
    labels_from_stored,
    labels_to_stored,
    lists_from_stored,
    lists_to_stored,
    read_arrays,
    read_words,
    to_stored,
    write_archive,
)
from probox.evaluation.box_columns import BoxColumns
from probox.evaluation.kept import COUNTED, LEVELS, SUMMED, Curve, Exact, Kept, NoTable, Total
from probox.evaluation.parts import KEEP, KEPT_MEASURES, Part
from probox.evaluation.result import Evaluation
from probox.evaluation.storage_checks import StorageChecks
from probox.evaluation.verdicts import ThresholdChoice
from probox.files.output import (
    EVALUATION,
    EVALUATION_WORDS,
    Content,
    check_file_place,
    check_replaceable,
    make_folder,
    named_errors,
    put_content,
    replace_folder,
    write_files,
)
from probox.files.reading import Paths, is_flattened, open_regular, read_regular
from probox.measures.boxes.matching import SIZES, BoxRules, Geometry
from probox.measures.registry import measure_names, measures_called
from probox.notes import InputWarning, read_notes
from probox.tables.dataset import Dataset
from probox.tables.masks import Masks
from probox.tables.results import QUALITIES
from probox.tables.table import expect_path

FORMAT = 10
"""Version of the format that is written and read."""
WORDS, COLUMNS = EVALUATION_WORDS, "tables.npz"
MAX_WORDS = 1 << 26
"""Maximum size of the JSON file in bytes; usual sizes are a few thousand."""
LONGEST_TEXT = 1 << 16
"""Maximum number of characters of a note or of the name of an input."""
_MASKS = ("boxes", "pixels", "offsets", "runs")
_WORDS: dict[str, type] = {
    "format": int, "version": str, "convention": dict, "classes": list, "measures": list, "inputs": list,
    "notes": list, "digest": str, "dataset": dict, "keep": str, "part": dict, "position": int,
}  # fmt: skip
_TABLE_WORDS: dict[str, type] = {"label_probs": bool, "threshold_choice": dict}
_KEPT_WORDS: dict[str, type] = {"warnings": list, "totals": dict, "types": dict, "left_out": int, "scored_against": str}
_KINDS = {str: "text", list: "a list of texts", dict: "an object", int: "a whole number", bool: "true or false"}
_REMEDY = "give a folder that `probox evaluate` or Evaluation.save wrote"

_IMAGES = {"images.id": "<i8", "images.width": "<i4", "images.height": "<i4"}
_TYPES: dict[str, tuple[str, ...]] = {
    "scores": ("<f4", "<f8"),
    "labels": ("|u1", "<u2", "<i4"),
    "outcomes": ("<u2", "<i4"),
    "object_labels": ("|u1", "<u2", "<i4"),
}
"""Box columns of variable type, and their possible types."""

_GEOMETRIES: dict[str, Geometry] = {"boxes": "box", "masks": "mask"}
"""Groups of columns of boxes, by their prefix in files."""

_BOXES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "counts": ("<i4", (), "images"),
    "object_counts": ("<i4", (), "images"),
    "scores": ("", (), "detections"),
    "labels": ("", (), "detections"),
    "outcomes": ("", (), "detections"),
    "patterns": ("<u2", (2 * len(SIZES),), "patterns"),
    "overlaps": ("<f8", (), "right"),
    "odd_rows": ("<i8", (), "exceptions"),
    "odd_sizes": ("|u1", (), "exceptions"),
    "odd_overlaps": ("<f8", (), "exceptions"),
    "object_labels": ("", (), "objects"),
    "object_sizes": ("|u1", (), "objects"),
}
"""Columns of boxes: type, shape of a row, and name of the row count."""


def load(folder: Paths) -> Evaluation:
    """Return the result in a folder.

    Parameters
    ----------
    folder : path
        Folder that ``probox evaluate --out`` or ``save`` of a result wrote. With several files, the former writes one
        folder per file.

    Returns
    -------
    Evaluation
        The result, with or without tables as it was saved.

    Examples
    --------
    >>> import probox
    >>> result = probox.load("results/ssd")  # doctest: +SKIP
    """
    expect_path(folder, "folder", "name a folder that Evaluation.save wrote")
    place = Path(folder)
    file = str(place / WORDS)
    words = words_from(read_words_of(place), file)
    schema = schema_of(words, file)
    with open_regular(place / COLUMNS, remedy="evaluate again") as opened:
        arrays = read_arrays(opened, str(place / COLUMNS), schema)
    if digest(canonical(words), arrays, schema) != words["digest"]:
        problem = f"{WORDS} and {COLUMNS} do not belong together, or were modified"
        raise InputError(problem, file=str(place), remedy="evaluate again")
    return _evaluation(words, arrays, file, str(place / COLUMNS))


def from_bytes(data: bytes) -> Evaluation:
    """Return the result in bytes from `Evaluation.to_bytes`.

    Parameters
    ----------
    data : bytes
        Output of `Evaluation.to_bytes`.

    Returns
    -------
    Evaluation
        The result, with or without tables as it was converted.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["probabilistic"])
    >>> probox.from_bytes(result.to_bytes()).pdq == result.pdq
    True
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InputError(
            f"expected bytes, but got {type(data).__name__}", file="bytes", remedy="give the output of to_bytes"
        )
    words = words_from(read_words(io.BytesIO(data), "bytes", WORDS, MAX_WORDS), "bytes")
    schema = schema_of(words, "bytes")
    arrays = read_arrays(io.BytesIO(data), "bytes", schema)
    if digest(canonical(words), arrays, schema) != words["digest"]:
        raise InputError("the checksum does not match", file="bytes", remedy="evaluate again")
    return _evaluation(words, arrays, "bytes", "bytes")


def to_bytes(evaluation: Evaluation) -> bytes:
    """Return the result as one uncompressed archive, for queues and collectives."""
    text, stored = _to_stored(evaluation)
    file = io.BytesIO()
    write_archive(file, stored, words={WORDS: text}, compressed=False)
    return file.getvalue()


def save_results(results: Mapping[Path, Evaluation], positions: Mapping[Path, int] | None = None) -> None:
    """Write results to folders, all or none; `positions` order the results of a folder (default 0).

    Missing folders are created. The folder of one result, or the folder of several, is replaced atomically, and other
    files in it are kept. If that is impossible, files are replaced one by one. A result interrupted between its two
    files cannot be loaded, because their digest does not match.
    """
    folders: dict[Path, dict[str, Content]] = {}
    for folder, result in results.items():
        text, stored = _to_stored(result, (positions or {}).get(folder, 0))
        folders[folder] = {COLUMNS: partial(write_archive, arrays=stored), WORDS: text}

    def check() -> None:
        for folder in folders:
            check_place(folder)

    check()
    first = next(iter(folders))
    whole = first if len(folders) == 1 else first.parent
    real = Path(os.path.realpath(whole))
    inside = {folder: Path(os.path.relpath(os.path.realpath(folder), real)) for folder in folders}
    if any(len(path.parts) > 1 or ".." in path.parts for path in inside.values()):  # symbolic links to other folders
        with ExitStack() as stack:
            for folder in folders:
                stack.enter_context(make_folder(folder))
            write_files({folder / name: content for folder in folders for name, content in folders[folder].items()})
        return
    with replace_folder(whole, check, keep=True) as new:
        for folder, files in folders.items():
            (new / inside[folder]).mkdir(exist_ok=True)
            for name, content in files.items():
                with named_errors(folder / name):
                    put_content(new / inside[folder] / name, content, lasting=True)


def check_place(folder: Path) -> None:
    """Raise if an evaluation in `folder` would replace foreign files, or if `folder` is a URL."""
    if is_flattened(folder):
        raise InputError("results are saved to folders, not to URLs", file=str(folder), remedy="name a folder")
    if "\0" in str(folder) or os.path.isfile(folder):
        problem = "is a file, expected a folder" if "\0" not in str(folder) else "is not a valid folder name"
        raise InputError(problem, file=str(folder), remedy="choose another folder")
    with named_errors(folder):
        for name in (WORDS, COLUMNS):
            if folder.is_dir():
                check_file_place(folder / name)
            check_replaceable(folder / name, EVALUATION)


def schema_of(words: dict[str, Any], file: str) -> dict[str, ArchiveColumn]:
    """Return the columns of an archive with these words; raise for invalid words."""
    if words.get("keep") not in list(KEEP):
        _fail(f"expected one of {', '.join(KEEP)}", file, "keep")
    _check_words(words, _WORDS | (_TABLE_WORDS if words["keep"] == "all" else _KEPT_WORDS), file)
    if words["keep"] == "all":
        return SCHEMA
    if words["scored_against"] not in ("", "masks", "boxes"):
        _fail("expected `masks`, `boxes` or nothing", file, "scored_against")
    if not set(words["measures"]) <= set(KEPT_MEASURES[words["keep"]]):
        _fail(f"expected some of {', '.join(KEPT_MEASURES[words['keep']])}", file, "measures")
    columns = {name: ArchiveColumn(dtype, (), "images") for name, dtype in _IMAGES.items()}
    columns |= {f"sums.{name}": ArchiveColumn("<f8", (), "images") for name in SUMMED}
    columns |= {f"sums.{name}": ArchiveColumn("<i4", (), "images") for name in COUNTED}
    types = words["types"]
    if not types.keys() <= _GEOMETRIES.keys():
        _fail(f"expected some of {', '.join(_GEOMETRIES)}", file, "types")
    for group, own in types.items():
        fine = isinstance(own, dict) and own.keys() == _TYPES.keys()
        if not fine or not all(own[name] in known for name, known in _TYPES.items()):
            _fail(f"expected the types of {', '.join(_TYPES)}", file, "types")
        for name, (dtype, row, counted) in _BOXES.items():
            alike = counted if counted in ("images", "detections", "objects") else f"{counted} of {group}"
            columns[f"{group}.{name}"] = ArchiveColumn(dtype or own[name], row, alike)
    return columns


def _to_stored(evaluation: Evaluation, position: int = 0) -> tuple[bytes, dict[str, Any]]:
    """Return words and columns to write."""
    images, kept = evaluation.dataset, evaluation.kept
    words: dict[str, Any] = {
        "format": FORMAT,
        "version": evaluation.version,
        "convention": evaluation.convention.to_dict(),
        "classes": list(evaluation.classes),
        "measures": list(evaluation.measures),
        "inputs": list(evaluation.inputs),
        "notes": [note.to_dict() for note in evaluation.input_notes],
        "dataset": {
            "category_ids": images.category_ids.tolist(),
            "rules": images.rules,
            "source": images.source,
            "frequencies": list(images.frequencies),
        },
        "keep": evaluation.keep,
        "part": {} if evaluation.part is None else evaluation.part.to_dict(),
        "position": position,
        "digest": "",
    }
    more, arrays = _stored_tables(evaluation) if kept is None else _stored_kept(kept)
    words |= more
    arrays |= {"images.id": images.image_ids, "images.width": images.widths, "images.height": images.heights}
    schema = schema_of(words, "")
    stored = to_stored(arrays, schema)
    words["digest"] = digest(canonical(words), stored, schema)
    return json.dumps(words, indent=1).encode(), stored  # escaped to ASCII, since file names may be invalid Unicode


def _stored_tables(evaluation: Evaluation) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the words and columns of tables."""
    arrays: dict[str, Any] = {f"masks.{name}": getattr(evaluation.masks, name) for name in _MASKS}
    arrays["images.file_name"] = np.array(evaluation.dataset.file_names, np.str_)
    for name in TABLES:
        table = getattr(evaluation, name)
        columns = table.columns()
        if "qualities" in columns:
            arrays |= {f"{name}.{quality}": table.quality(quality) for quality in QUALITIES}
        arrays |= {stored: columns[column] for column, stored in file_names_of(name).items() if column in columns}
    for name in ("objects", "detections"):
        arrays[f"{name}.image_id"] = evaluation.dataset.image_ids[arrays[f"{name}.image_id"]]
    label_probs, choice = evaluation.detections.label_probs, evaluation.threshold_choice
    arrays |= labels_to_stored(label_probs, len(evaluation.detections))
    arrays |= lists_to_stored(evaluation.dataset)
    return {
        "label_probs": label_probs is not None,
        "threshold_choice": {} if choice is None else choice.to_words(),
    }, arrays


def _stored_kept(kept: Kept) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the words and columns of a result without tables."""
    arrays: dict[str, Any] = {f"sums.{name}": kept.sums[name] for name in (*SUMMED, *COUNTED)}
    types: dict[str, dict[str, str]] = {}
    for group, geometry in _GEOMETRIES.items():
        if geometry in kept.columns:
            arrays |= {f"{group}.{name}": getattr(kept.columns[geometry], name) for name in _BOXES}
            types[group] = {name: arrays[f"{group}.{name}"].dtype.newbyteorder("<").str for name in _TYPES}
    return {
        "warnings": [warning.to_dict() for warning in kept.warnings],
        "totals": {
            "overall": dataclasses.astuple(kept.overall),
            "classes": [dataclasses.astuple(total) for total in kept.classes],
            "sizes": [dataclasses.astuple(total) for total in kept.sizes],
            "curve": dataclasses.astuple(kept.curve),
        },
        "types": types,
        "left_out": max((own.left_out for own in kept.columns.values()), default=0),
        "scored_against": kept.scored_against or "",
    }, arrays


def _evaluation(words: dict[str, Any], arrays: Arrays, words_file: str, columns_file: str) -> Evaluation:
    """Return the evaluation with these words and columns, checked for consistency."""
    tables = _tables_from if words["keep"] == "all" else _kept_from
    evaluation = Evaluation(
        convention=_convention_of(words, words_file),
        measures=tuple(words["measures"]),
        inputs=tuple(words["inputs"]),
        input_notes=read_notes(words["notes"], words_file),
        version=words["version"],
        part=_part_of(words, words_file),
        **tables(words, arrays, words_file, columns_file),
    )
    if evaluation.kept is None:
        StorageChecks(columns_file).check_evaluation(evaluation)
    return evaluation


def _tables_from(words: dict[str, Any], arrays: Arrays, words_file: str, file: str) -> dict[str, Any]:
    """Return the dataset and tables of a result; unknown image ids become row -1, which a check rejects."""
    checks = StorageChecks(file)
    checks.check_images(arrays)
    dataset = _dataset_of(words, arrays, file)
    if words["label_probs"]:
        checks.check_labels(arrays, len(dataset.classes))
    tables: dict[str, Any] = {"dataset": dataset}
    for name, kind in TABLES.items():
        columns: dict[str, Any] = {column: arrays.get(stored) for column, stored in file_names_of(name).items()}
        if f"{name}.{QUALITIES[0]}" in arrays:
            columns["qualities"] = np.stack([arrays[f"{name}.{quality}"] for quality in QUALITIES], axis=1)
        if "image_rows" in columns:
            columns["image_rows"] = dataset.rows_of(columns["image_rows"])
        if name == "detections" and words["label_probs"]:
            columns["label_probs"] = labels_from_stored(arrays)
        tables[name] = kind(**columns)
    tables["masks"] = Masks(*(arrays[f"masks.{name}"] for name in _MASKS))
    tables["threshold_choice"] = _choice_of(words, len(dataset), words_file)
    return tables


def _kept_from(words: dict[str, Any], arrays: Arrays, words_file: str, file: str) -> dict[str, Any]:
    """Return the dataset and reduced data of a result without tables."""
    dataset = _dataset_of(words, arrays, file)
    sums = {name: arrays[f"sums.{name}"] for name in (*SUMMED, *COUNTED)}
    for name, values in sums.items():
        if not (np.isfinite(values) & (values >= 0)).all():
            _fail("expected finite numbers, at least 0", file, f"sums.{name}")
    columns: dict[Geometry, BoxColumns] = {}
    rules = BoxRules.of(_convention_of(words, words_file), dataset)
    for group in words["types"]:
        own = {name: arrays[f"{group}.{name}"] for name in _BOXES}
        columns[_GEOMETRIES[group]] = boxes = BoxColumns(left_out=words["left_out"], **own)
        StorageChecks(file).check_boxes(boxes, len(dataset.classes), rules, group)
    needs = {need for measure in measures_called(words["measures"]) for need in measure.needs}
    if not needs & _GEOMETRIES.keys() <= words["types"].keys():
        _fail("expected the types of columns", file, "types")
    totals = _totals_from(words["totals"], len(dataset.classes), file)
    for name in COUNTED:
        if totals["overall"].count_by_name()[name] != int(sums[name].sum(dtype=np.int64)):
            _fail(f"expected as many {name} as in all images", file, "totals")
    notes = read_notes(words["warnings"], words_file, "warnings")
    warnings = tuple(note for note in notes if isinstance(note, InputWarning))
    if len(warnings) < len(notes):
        _fail("expected codes of warnings", words_file, "warnings")
    against = words["scored_against"] or None
    kept = Kept(keep=words["keep"], sums=sums, columns=columns, warnings=warnings, scored_against=against, **totals)
    return {"dataset": dataset, "kept": kept, **dict.fromkeys((*TABLES, "masks"), NoTable(kept.keep))}


def _totals_from(words: dict[str, Any], classes: int, file: str) -> dict[str, Any]:
    """Return the totals that `_stored_kept` wrote."""

    def exact(values: Any) -> Exact:
        if not all(type(value) is float and math.isfinite(value) for value in values):
            raise ValueError
        return tuple(values)

    def row(values: Any, count: int, entry: Any) -> tuple[Any, ...]:
        if not isinstance(values, list) or len(values) != count:
            raise ValueError
        return tuple(map(entry, values))

    def count(number: Any) -> int:
        if type(number) is not int or number < 0:
            raise ValueError
        return number

    def total(one: Any) -> Total:
        sums, counts = one
        return Total(row(sums, len(SUMMED), exact), row(counts, len(COUNTED), count))

    def at_levels(entry: Any) -> Any:
        return lambda values: row(values, len(LEVELS), entry)

    try:
        sums, counts, objects = words["curve"]
        return {
            "overall": total(words["overall"]),
            "classes": row(words["classes"], classes, total),
            "sizes": row(words["sizes"], len(SIZES) - 1, total),
            "curve": Curve(row(sums, 2, at_levels(exact)), row(counts, 2, at_levels(count)), count(objects)),
        }
    except (ValueError, TypeError, KeyError):
        _fail("expected sums and counts: overall, of classes, of sizes and of thresholds", file, "totals")


def _dataset_of(words: dict[str, Any], arrays: Arrays, file: str) -> Dataset:
    """Return the dataset of words and columns, with file names if they were kept."""
    own = words["dataset"]
    kinds = {"category_ids": list, "rules": str, "source": str, "frequencies": list}
    fine = own.keys() == kinds.keys() and all(type(own[name]) is kind for name, kind in kinds.items())
    fine = fine and len(own["source"]) <= LONGEST_TEXT
    if not fine or not all(type(number) is int for number in own["category_ids"]):
        _fail("expected category_ids (whole numbers), rules and source (text), frequencies (a list)", file, "dataset")
    names = arrays["images.file_name"].tolist() if "images.file_name" in arrays else ()
    with _problems_of(file, "dataset"):
        return Dataset(
            classes=tuple(words["classes"]),
            image_ids=arrays["images.id"],
            widths=arrays["images.width"],
            heights=arrays["images.height"],
            file_names=tuple(names),
            **lists_from_stored(arrays),
            **own,
        )


def canonical(words: dict[str, Any]) -> bytes:
    """Return the words except their digest, as bytes independent of white space and key order."""
    hashed = {name: value for name, value in words.items() if name != "digest"}
    return json.dumps(hashed, sort_keys=True, separators=(",", ":")).encode()


def read_words_of(folder: Path) -> bytes:
    """Return the content of a folder's JSON file."""
    path = folder / WORDS
    if not os.path.isfile(path):  # unlike Path.is_file, which raises for invalid names before Python 3.14
        problem = f"contains no {WORDS}, expected a result" if os.path.exists(folder) else "no such folder"
        raise InputError(problem, file=str(folder), remedy=_REMEDY)
    return read_regular(path, most=MAX_WORDS, remedy=_REMEDY)


def words_from(data: bytes, file: str) -> dict[str, Any]:
    """Return words of the supported format version."""
    try:
        words = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, dict) or "format" not in words:
        raise InputError("expected an evaluation in JSON", file=file, remedy=_REMEDY)
    number = words["format"]
    if type(number) is not int or number != FORMAT:
        newer = type(number) is int and number > FORMAT
        raise InputError(
            f"expected format {FORMAT}, but got {number if isinstance(number, int) else 'something else'}",
            file=file,
            remedy="use a newer probox, or evaluate again" if newer else "evaluate again",
        )
    return words


def _check_words(words: dict[str, Any], expected: Mapping[str, type], file: str) -> None:
    """Raise unless the words have exactly the expected keys and types, and known metrics."""
    if words.keys() != expected.keys():
        name = min(words.keys() ^ expected.keys())
        problem = f"expected a key {name!r}" if name in expected else f"unknown key {name[:80]!r}"
        raise InputError(problem, file=file, remedy="evaluate again")
    for name, kind in expected.items():
        value = words[name]
        texts = value if isinstance(value, list) and name not in ("notes", "warnings") else []
        if type(value) is not kind or not all(type(text) is str for text in texts):
            _fail(f"expected {_KINDS[kind]}", file, name)
        longest = max(map(len, [value] if kind is str else texts), default=0)
        if longest > LONGEST_TEXT:
            _fail(f"expected texts of at most {LONGEST_TEXT:,} characters, but got {longest:,}", file, name)
    known = measure_names()
    if words["measures"] != [name for name in known if name in words["measures"]] or not words["measures"]:
        _fail(f"expected some of {', '.join(known)}", file, "measures")


def _part_of(words: dict[str, Any], file: str) -> Part | None:
    """Return the part; None for a whole result."""
    with _problems_of(file, "part"):
        return Part.from_dict(words["part"]) if words["part"] else None


def _choice_of(words: dict[str, Any], images: int, file: str) -> ThresholdChoice | None:
    """Return the chosen label thresholds; None unless the convention has threshold ``"auto"``."""
    chosen = words["threshold_choice"]
    if (words["convention"].get("label_threshold") == "auto") != bool(chosen):
        _fail("expected thresholds if and only if label_threshold is `auto`", file, "threshold_choice")
    with _problems_of(file, "threshold_choice"):
        return ThresholdChoice.from_words(chosen, images) if chosen else None


def _convention_of(words: dict[str, Any], file: str) -> Convention:
    """Return the convention, which must have every field."""
    given = words["convention"]
    for field in dataclasses.fields(Convention):
        if field.name not in given:
            _fail(f"expected a value like {json.dumps(field.default)}", file, f"convention.{field.name}")
    with _problems_of(file, "convention", remedies=True):
        return Convention.from_dict(given)


@contextmanager
def _problems_of(file: str, entry: str, *, remedies: bool = False) -> Iterator[None]:
    """Add file and entry to errors; `remedies` keeps remedies, which otherwise address users who pass the entry."""
    try:
        yield
    except InputError as error:
        remedy = (error.remedy if remedies else None) or "evaluate again"
        entry = error.entry or entry
        raise InputError(error.problem, file=file, image=error.image, entry=entry, remedy=remedy) from None


def _fail(problem: str, file: str, entry: str) -> NoReturn:
    raise InputError(problem, file=file, entry=entry, remedy="evaluate again")
