"""Images by their names: which image of the truth a name in a file of detections means, and ids for images with names
alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.formats.problems import Problems
from probox.notes import Note
from probox.tables.dataset import Dataset

__all__ = ["ids_of_names", "number_of", "rows_beside_ids", "rows_by_name", "rows_of_images"]

Ids = npt.NDArray[np.int64]

_LONGEST_NUMBER = 18
"""So many digits fit an image id."""


def _last_part(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).name


def _stem(name: str) -> str:
    return PurePosixPath(_last_part(name)).stem


def _folder_and_stem(name: str) -> str:
    folder = PurePosixPath(name.replace("\\", "/")).parent.name
    return f"{folder}/{_stem(name)}" if folder else ""


def number_of(name: str) -> str:
    """Return the number that the stem of a file name is, without leading zeros; nothing if it is none."""
    stem = _stem(name)
    return str(int(stem)) if stem.isascii() and stem.isdigit() and len(stem) < 40 else ""


_WAYS: tuple[Callable[[str], str], ...] = (str, _last_part, _folder_and_stem, _stem, number_of)
"""What two names of one image have in common, the strictest first."""


def rows_by_name(names: Sequence[str], file_names: Sequence[str]) -> Ids:
    """Return the row of each name in `file_names`, -1 for none; folders, endings and leading zeros may differ.

    >>> rows_by_name(["a/7.txt", "9"], ["images/0007.jpg", "8.jpg"]).tolist()
    [-1, -1]
    >>> rows_by_name(["7.txt", "9"], ["images/0007.jpg", "8.jpg"]).tolist()
    [0, -1]
    """
    rows = np.full(len(names), -1, np.int64)
    for way in _WAYS:
        place: dict[str, int] = {}
        for row, name in enumerate(file_names):
            key = way(name)
            place[key] = row if key not in place else -1  # what two images have in common names neither
        place.pop("", None)
        taken = set(rows.tolist())  # by a stricter way
        for at in np.flatnonzero(rows < 0).tolist():
            row = place.get(way(names[at]), -1)
            if row not in taken and _folders_agree(names[at], file_names[row]):
                rows[at] = row
        if (rows >= 0).all():
            break
    return rows


def _folders_agree(one: str, other: str) -> bool:
    """Return whether two names may lie in the same folder: where both say which, it must have the same name."""
    folders = [PurePosixPath(name.replace("\\", "/")).parent.name for name in (one, other)]
    return not all(folders) or folders[0] == folders[1]


def ids_of_names(stems: Sequence[str]) -> Ids:
    """Return an id for each image, given its name without folder and ending, in sorted order of their paths.

    Names that are all numbers, each another one, are the ids; other images are counted from 1.

    >>> ids_of_names(["000000000139", "000000000285"]).tolist(), ids_of_names(["cat", "dog"]).tolist()
    ([139, 285], [1, 2])
    """
    if all(stem.isascii() and stem.isdigit() and len(stem) <= _LONGEST_NUMBER for stem in stems):
        numbers = np.array([int(stem) for stem in stems], np.int64)
        if len(np.unique(numbers)) == len(numbers):
            return numbers
    return np.arange(1, len(stems) + 1, dtype=np.int64)


def rows_of_images(
    names: Sequence[str],
    detections: Sequence[int],
    dataset: Dataset,
    file: str,
    problems: Problems,
    *,
    place: Callable[[str], str | None] = lambda name: None,
) -> tuple[Ids, tuple[Note, ...]]:
    """Return the truth's row of each image that a file of detections names, -1 for those it lacks, and notes.

    Parameters
    ----------
    names : sequence of str
        Distinct names, with or without folder and ending.
    detections : sequence of int
        How many detections each has.
    dataset : Dataset
        The truth's images. Without file names, names that are numbers are its image ids.
    file : str
        For messages.
    problems : Problems
        Where they go.
    place : callable
        The entry of the file in which a name stands, for messages.
    """
    if any(dataset.file_names):
        rows = rows_by_name(names, dataset.file_names)
        _refuse_doubtful(rows, names, dataset, file, problems, place)
    else:
        numbers = [number_of(name) for name in names]
        wanted = [int(text) if text and len(text) <= _LONGEST_NUMBER else -1 for text in numbers]
        rows = np.where(np.array(wanted, np.int64) >= 0, dataset.rows_of(np.array(wanted, np.int64)), -1)
    order = np.argsort(rows, kind="stable")
    again = order[1:][(rows[order[1:]] == rows[order[:-1]]) & (rows[order[1:]] >= 0)]
    problems.add("duplicate id", again.tolist(), lambda at: InputError(
        f"{names[at][:80]!r} names an image that another name stands for too",
        file=file, image=int(dataset.image_ids[rows[at]]), entry=place(names[at]), remedy="keep one of them",
    ))  # fmt: skip
    rows[again] = -1
    unknown = np.flatnonzero(rows < 0)
    if len(names) and len(unknown) == len(names) and len(dataset) and not len(again):
        there = dataset.file_names[0] or str(dataset.image_ids[0])
        error = InputError(
            f"none of the {len(names)} images that it names is one of the ground truth "
            f"(the first is {names[0][:80]!r}, there {there[:80]!r})",
            file=file,
            entry=place(names[0]),
            remedy="check that the detector was run on these images"
            if any(dataset.file_names)
            else "add file_name to the images of the ground truth",
        )
        problems.catch(error, "unknown image")
    problems.warn("unknown image", unknown.tolist(), lambda at: InputError(
        "the ground truth does not have this image: its detections are left out",
        file=file, image=names[at], entry=place(names[at]),
    ))  # fmt: skip
    lost = sum(detections[at] for at in unknown.tolist())
    images = sum(detections[at] > 0 for at in unknown.tolist())
    return rows, (Note("unknown-images", lost, images=images),) if lost else ()


def rows_beside_ids(
    names: Sequence[str],
    ids: Ids,
    dataset: Dataset,
    file: str,
    problems: Problems,
    place: Callable[[str], str | None],
) -> Ids:
    """Return the truth's row of each image that has a name and an id, -1 for none.

    The name decides: ultralytics' ids are the numbers of file names, whatever ids the ground truth has. The id decides
    where the name is unknown, or stands for images with several ids. Other parameters are those of `rows_of_images`.
    """
    own = dataset.rows_of(ids)
    if not any(dataset.file_names):
        return own
    rows = rows_by_name(names, dataset.file_names)
    _, which, counts = np.unique(rows, return_inverse=True, return_counts=True)
    rows[counts[which] > 1] = -1
    for at in np.flatnonzero((rows < 0) & (own >= 0)).tolist():
        if _stem(dataset.file_names[own[at]]) == _stem(names[at]):
            rows[at] = own[at]
    _refuse_doubtful(rows, names, dataset, file, problems, place)
    return np.where(rows >= 0, rows, own)


def _refuse_doubtful(
    rows: Ids,
    names: Sequence[str],
    dataset: Dataset,
    file: str,
    problems: Problems,
    place: Callable[[str], str | None],
) -> None:
    """Report names that may mean any of several images: which one is not for us to guess."""
    missing = np.flatnonzero(rows < 0).tolist()
    if not missing:
        return
    by_stem: dict[str, list[int]] = {}
    for row, name in enumerate(dataset.file_names):
        by_stem.setdefault(_stem(name), []).append(row)
    doubtful = [at for at in missing if len(by_stem.get(_stem(names[at]), ())) > 1 and not _has_folder(names[at])]

    def describe(at: int) -> InputError:
        first, second, *_ = (dataset.file_names[row] for row in by_stem[_stem(names[at])])
        return InputError(
            f"{names[at][:80]!r} may be {first[:80]!r} or {second[:80]!r}",
            file=file,
            entry=place(names[at]),
            remedy="name images with their folders, as the ground truth does, or rename them",
        )

    problems.add("image in doubt", doubtful, describe)


def _has_folder(name: str) -> bool:
    return "/" in name or "\\" in name
