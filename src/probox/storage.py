"""An evaluation on disk: a folder with a JSON file of words and a NumPy archive of columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation import Evaluation
from probox.formats.output import write_files
from probox.masks import Masks
from probox.tables import DetectionTable, ImageTable, ObjectTable, PairTable, Table

__all__ = ["load_evaluation", "save_evaluation", "save_evaluations"]

FORMAT = 1
WORDS, COLUMNS = "evaluation.json", "tables.npz"
_TABLES: dict[str, type[Table]] = {
    "images": ImageTable,
    "objects": ObjectTable,
    "detections": DetectionTable,
    "pairs": PairTable,
}
_REMEDY = "give a folder that `probox evaluate --out` wrote"


def save_evaluation(evaluation: Evaluation, folder: Path) -> None:
    """Write an evaluation into `folder`, which is made if it is missing."""
    save_evaluations({folder: evaluation})


def save_evaluations(evaluations: Mapping[Path, Evaluation]) -> None:
    """Write evaluations into folders, all of them or none; folders that are missing are made."""
    made: list[Path] = []
    files: dict[Path, Any] = {}
    try:
        for folder, evaluation in evaluations.items():
            made += _make_folders(folder)
            files |= _files_of(evaluation, folder)
        write_files(files)
    except BaseException:
        for folder in reversed(made):  # what was there before stays; of what was made, nothing does
            if not any(folder.iterdir()):
                folder.rmdir()
        raise


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it that are missing; return them, the topmost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise InputError("is a file, expected a folder to write to", file=str(path), remedy="choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def _files_of(evaluation: Evaluation, folder: Path) -> dict[Path, Any]:
    arrays: dict[str, Any] = {
        "masks.boxes": evaluation.masks.boxes,
        "masks.pixels": evaluation.masks.pixels,
        "masks.offsets": evaluation.masks.offsets,
        "masks.runs": evaluation.masks.runs,
    }
    for name in _TABLES:
        arrays.update(getattr(evaluation, name).to_arrays(name))
    words = {
        "format": FORMAT,
        "version": evaluation.version,
        "convention": evaluation.convention.to_dict(),
        "classes": list(evaluation.classes),
        "measures": list(evaluation.measures),
        "inputs": list(evaluation.inputs),
        "notes": list(evaluation.notes),
    }
    text = json.dumps(words, indent=1, ensure_ascii=False)
    return {folder / COLUMNS: lambda file: _write_archive(file, arrays), folder / WORDS: text.encode()}


def _write_archive(file: IO[bytes], arrays: dict[str, Any]) -> None:
    """Write what `numpy.savez_compressed` would, in a third of its time: columns gain little from more effort."""
    with ZipFile(file, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def load_evaluation(folder: Path) -> Evaluation:
    """Return the evaluation that `save_evaluation` wrote."""
    path = folder / WORDS
    if not path.is_file():
        raise InputError(f"holds no {WORDS}", file=str(folder), remedy=_REMEDY)
    try:
        words = json.loads(path.read_text(encoding="utf-8"))
        if words["format"] != FORMAT:
            raise InputError(
                f"is of format {words['format']}, this probox reads {FORMAT}", file=str(path), remedy="evaluate anew"
            )
        with np.load(folder / COLUMNS, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        tables: dict[str, Any] = {name: kind.from_arrays(arrays, name) for name, kind in _TABLES.items()}
        masks = Masks(*(arrays[f"masks.{name}"] for name in ("boxes", "pixels", "offsets", "runs")))
        return Evaluation(
            convention=Convention.from_dict(words["convention"]),
            classes=tuple(words["classes"]),
            measures=tuple(words["measures"]),
            masks=masks,
            inputs=tuple(words["inputs"]),
            notes=tuple(words["notes"]),
            version=words["version"],
            **tables,
        )
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError, EOFError, BadZipFile) as error:
        problem = f"cannot be read ({type(error).__name__}: {error})"
        raise InputError(problem, file=str(folder), remedy=_REMEDY) from None
