"""Folders of results: one evaluation each, or a folder of several, under short names."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.evaluation.storage import WORDS, load, read_words_of, words_from
from probox.formats import read_detections
from probox.support.formatting import some_names
from probox.support.parallel import thread_count
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth


def find_results(paths: Sequence[str]) -> list[Path]:
    """Return the folders that hold an evaluation: those given, and those directly in a given one.

    The latter are in the order of `probox evaluate --out`, or by name if Python saved them.
    """
    found: list[Path] = []
    for text in paths:
        path = Path(text)
        positions = _positions(path)
        inside = sorted(positions, key=lambda folder: (positions[folder], folder))
        if (path / WORDS).is_file() or not inside:
            found.append(path)  # loading reports a folder without a result
        else:
            found += inside
    return found


def count_positions(out: Path, names: Sequence[str]) -> dict[Path, int]:
    """Return the positions of results that will be written to a folder under these names, in this order.

    Replaced results keep their positions if others remain in the folder, and new ones come last.
    """
    there = _positions(out)
    if {folder.name for folder in there} <= set(names):
        there = {}
    first = max(there.values(), default=-1) + 1
    return {out / name: there.get(out / name, first + number) for number, name in enumerate(names)}


def _positions(path: Path) -> dict[Path, int]:
    """Return the folders of evaluations directly in a folder, and their positions; 0 without one."""
    positions: dict[Path, int] = {}
    for entry in path.glob(f"*/{WORDS}") if path.is_dir() else ():
        position = 0
        with suppress(InputError):  # loading reports the problem
            position = words_from(read_words_of(entry.parent), str(entry)).get("position", 0)
        positions[entry.parent] = position if type(position) is int else 0
    return positions


def only_result(path: str) -> Path | None:
    """Return the folder of the only evaluation in a folder, itself or one in it; None if there is none."""
    found = [folder for folder in find_results([path]) if (folder / WORDS).is_file()]
    if len(found) > 1:
        names = some_names([folder.name for folder in found])
        raise InputError(
            f"expected one result, but contains {len(found)} ({names})",
            file=path,
            remedy=f"give one, such as {found[0]}",
        )
    return found[0] if found else None


def load_results(
    paths: Sequence[str],
    names: Sequence[str | None] | None = None,
    *,
    tables: bool = True,
) -> dict[str, Evaluation]:
    """Load evaluations from folders, by the names given or the shortest unique ends of their paths.

    With `tables`, raise for results without tables.
    """
    folders: list[Path] = []
    given: list[str | None] = []
    for path, name in zip(paths, [None] * len(paths) if names is None else names, strict=True):
        inside = find_results([path])
        if name is not None and len(inside) > 1:
            there = some_names([folder.name for folder in inside])
            raise InputError(
                f"contains {len(inside)} results ({there}), expected one for the name {name}",
                file=path,
                remedy=f"give one, such as {name}={inside[0]}",
            )
        folders += inside
        given += [name] * len(inside)
    resolved = [folder.resolve() for folder in folders]
    if len(set(resolved)) < len(resolved):
        twice = next(folder for n, folder in enumerate(folders) if resolved[n] in resolved[:n])
        raise InputError("is given twice", file=str(twice), remedy="give each result once")
    nameless = [path for path, name in zip(resolved, given, strict=True) if name is None]
    depth = 1
    while len({path.parts[-depth:] for path in nameless}) < len(nameless):
        depth += 1
    titles: list[str] = []
    for name, place, folder in zip(given, resolved, folders, strict=True):
        title = "/".join(place.parts[-depth:]) if name is None else name
        if title in titles:
            raise InputError(
                f"has the name {title} of another result",
                file=str(folder),
                remedy="give it another name, NAME=DIR",
            )
        titles.append(title)
    # Loading is mostly decompression, which threads can do in parallel; errors are raised in the given order.
    with ThreadPoolExecutor(min(max(len(folders), 1), thread_count(None))) as pool:
        results = list(pool.map(load, folders))
    for folder, result in zip(folders, results, strict=True):
        if tables:
            result.expect_tables(str(folder / WORDS))
    return dict(zip(titles, results, strict=True))


def read_again(path: str, evaluation: Evaluation, truth: GroundTruth | None) -> Detections:
    """Read the detections of an evaluation: with the ground truth if given, else with the evaluation's own dataset."""
    if truth is None:
        try:
            return read_detections(path, evaluation.dataset)
        except InputError as error:  # for example a file with lists by position, for images that were not evaluated
            raise InputError(
                error.problem, file=error.file, image=error.image, entry=error.entry,
                remedy="give the ground truth of the evaluation",
            ) from None  # fmt: skip
    return read_detections(path, truth)
