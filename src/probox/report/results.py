"""Folders of results: one evaluation each, or a folder of several, under short names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from probox.errors import InputError
from probox.evaluation import Evaluation
from probox.storage import WORDS

__all__ = ["find_results", "load_results"]


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
