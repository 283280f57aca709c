"""Folders of results: one evaluation each, or a folder of several, under short names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.evaluation.storage import WORDS
from probox.formats import read_detections
from probox.support.words import some_names
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["find_results", "load_results", "only_result", "read_again"]


def find_results(paths: Sequence[str]) -> list[Path]:
    """Return the folders that hold an evaluation: those given, and those directly in a given one."""
    found: list[Path] = []
    for text in paths:
        path = Path(text)
        inside = sorted(entry.parent for entry in path.glob(f"*/{WORDS}")) if path.is_dir() else []
        if (path / WORDS).is_file() or not inside:
            found.append(path)  # if it holds nothing either, loading it says so
        else:
            found += inside
    return found


def only_result(path: str) -> Path | None:
    """Return the folder of the one evaluation in a folder, itself or one in it; None if there is none."""
    found = [folder for folder in find_results([path]) if (folder / WORDS).is_file()]
    if len(found) > 1:
        names = some_names([folder.name for folder in found])
        raise InputError(f"holds {len(found)} results ({names})", file=path, remedy=f"name one, say {found[0]}")
    return found[0] if found else None


def load_results(paths: Sequence[str]) -> dict[str, Evaluation]:
    """Load evaluations from folders, named by the last parts of their paths that tell them apart."""
    folders = find_results(paths)
    resolved = [folder.resolve() for folder in folders]
    if len(set(resolved)) < len(resolved):
        twice = next(folder for n, folder in enumerate(folders) if resolved[n] in resolved[:n])
        raise InputError("is given twice", file=str(twice), remedy="give each result once")
    depth = 1
    while len({path.parts[-depth:] for path in resolved}) < len(resolved):
        depth += 1
    return {
        "/".join(path.parts[-depth:]): Evaluation.load(folder) for path, folder in zip(resolved, folders, strict=True)
    }


def read_again(path: str, evaluation: Evaluation, truth: GroundTruth | None) -> Detections:
    """Read the detections that were evaluated: by the truth if it is at hand, else by what is kept of it."""
    if truth is None:
        try:
            return read_detections(path, evaluation.dataset)
        except InputError as error:  # say, a file by position with lists for images that were not evaluated
            raise InputError(
                error.problem, file=error.file, image=error.image, entry=error.entry,
                remedy="give the ground truth that it was evaluated on",
            ) from None  # fmt: skip
    return read_detections(path, truth)
