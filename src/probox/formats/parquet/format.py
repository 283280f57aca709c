"""Parquet formats of detections and ground truth; writing of single files and sets."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.output import Kind, check_replaceable, drop_hidden, put_content, replace_folder, write_files
from probox.files.reading import (
    Paths,
    Source,
    check_not_flattened,
    inside,
    is_folder,
    is_url,
    open_remote,
    remote_files,
    remove_remote,
    write_remote,
)
from probox.formats.format import Copied, DetectionFormat, Draft, Notes, TruthFormat
from probox.formats.parquet.sets import open_detections, open_truth
from probox.formats.parquet.shards import OWN_NAME, all_files, is_parquet_source
from probox.formats.parquet.writing import (
    DETECTIONS_FILE,
    TRUTH_FILE,
    by_images,
    rounding_notes,
    says,
    table_content,
)
from probox.formats.problems import Problems
from probox.notes import Note
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.table import expect_path, frozen, to_numpy

KINDS = {"detections": DETECTIONS_FILE, "truth": TRUTH_FILE}

Ids = npt.NDArray[np.int64]
Part = Callable[[], Detections | GroundTruth]


def _ids(given: npt.ArrayLike) -> npt.NDArray[np.int64]:
    return frozen(to_numpy(given, "image_ids").reshape(-1), np.int64, (-1,), "image_ids")


def write_parquet(path: Paths, table: Detections | GroundTruth, *, shards: int | None = None) -> Notes:
    """Write detections or ground truth to Parquet; reading restores all values bit-identically, except heatmaps.

    Heatmaps are rounded to 8 bits. Detections are written by ascending image id, otherwise in table order.

    Parameters
    ----------
    path : path
        Output file, or with `shards` a folder; or the URL of either, as text.
    table : Detections or GroundTruth
        Table to write.
    shards : int, optional
        Write a folder of this many files with about equally many rows; each image is in one file. An existing folder
        is replaced only if it holds such a set of the same kind of table and nothing else.

    Returns
    -------
    tuple of Note
        Notes on rounded heatmaps, and on fewer images than requested files.

    Examples
    --------
    >>> import probox
    >>> probox.write_parquet("detections.parquet", found)  # doctest: +SKIP
    """
    expect_path(path, remedy="the order is write_parquet(path, table)")
    if not isinstance(table, Detections | GroundTruth):
        raise InputError(
            f"expected argument `table` to be Detections or GroundTruth, but got {type(table).__name__}",
            remedy="save evaluations with Evaluation.save",
        )
    kind = "truth" if isinstance(table, GroundTruth) else "detections"
    notes = rounding_notes(table) if isinstance(table, Detections) else ()
    if shards is not None:
        return notes + _write_set(path, table, kind, _check_shards(shards))
    check_parquet_output(path, kind)
    content = table_content(table)
    if is_url(path):
        write_remote(str(path), content)
    else:
        write_files({Path(path): content})
    return notes


def _check_shards(shards: object) -> int:
    """Return the number of shards as an integer; raise if it is invalid."""
    try:
        number = operator.index(shards)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1 or isinstance(shards, bool):
        raise InputError(f"expected argument `shards` to be a whole number, at least 1, but got {shards!r:.40}")
    return number


def check_parquet_output(path: Paths, table: str, *, shards: int | None = None, folder: bool = False) -> None:
    """Raise if existing data may not be replaced; called before any work is done.

    Parameters
    ----------
    path : path
        Path of a file, or with `shards` of a set.
    table : {"detections", "truth"}
        Kind of the new table.
    shards : int, optional
        Number of files of the set.
    folder : bool
        Raise if the parent folder is missing.
    """
    check_not_flattened(path)
    if shards is not None:
        _check_set(path, KINDS[table], table)
    elif not is_url(path):
        check_replaceable(path, KINDS[table], folder=folder)
    else:
        there = remote_files(str(path))
        if there is None or there == {"": 0}:
            return
        if list(there) != [""]:
            raise InputError("cannot be written: it is a folder", file=str(path), remedy="name a file")
        if not _holds(str(path), table):
            raise _in_the_way(path, KINDS[table])


def files_to_replace(path: Paths) -> list[str]:
    """Return the files in a folder, which a set written there replaces."""
    return [] if is_url(path) or not is_folder(path) else [inside(path, name) for name in all_files(path)]


def _in_the_way(path: Paths, kind: Kind) -> InputError:
    return InputError(
        f"exists and does not contain {kind.words}",
        file=str(path),
        remedy="choose another name, or move it",
    )


def _check_set(path: Paths, kind: Kind, table: str) -> None:
    """Raise unless the folder is missing, empty, or holds only shards written by probox."""
    files = all_files(path) if is_url(path) or is_folder(path) else {}
    if not is_url(path):
        files = drop_hidden(files, Path(path).resolve().name)  # hidden folders of this run or of a killed one
    if "" in files:
        raise InputError("is a file, expected a folder to write to", file=str(path), remedy="choose another name")
    own = [name for name in files if OWN_NAME.fullmatch(name)]
    if files and not own:
        raise InputError(
            "is not empty, and probox did not write its files",
            file=str(path),
            remedy="choose another name, or move it",
        )
    for name in files:
        if name not in own:
            raise InputError(
                "is in the way: not part of the set written by probox",
                file=inside(path, name),
                remedy="move it, or choose another name for the set",
            )
        if files[name] and not _holds(inside(path, name), table):
            raise _in_the_way(path, kind)


def _holds(place: str, table: str) -> bool:
    """Return whether probox wrote such a table to a file."""
    if not is_url(place):
        return KINDS[table].recognises(Path(place))
    with open_remote(place) as file:
        return says(file, table)


def _write_set(path: Paths, table: Detections | GroundTruth, kind: str, shards: int) -> Notes:
    check_parquet_output(path, kind, shards=shards)
    if isinstance(table, Detections):
        table = by_images(table)
    images, offsets = _images_of(table)
    borders = list(_borders(offsets, shards))
    parts: dict[str, Part] = {
        f"part-{number:05d}-of-{len(borders):05d}.parquet": (
            partial(table.select, np.arange(offsets[begin], offsets[end]))
            if isinstance(table, Detections)
            else partial(table.select_images, images[begin:end])
        )
        for number, (begin, end) in enumerate(borders)
    }
    if is_url(path):
        # No atomic rename here; the names of shards contain their number, so an incomplete set is detected.
        for name in all_files(path):
            remove_remote(inside(path, name))
        for name, part in parts.items():
            write_remote(inside(path, name), table_content(part()))
    else:
        with replace_folder(path, lambda: _check_set(path, KINDS[kind], kind)) as new:
            for name, part in parts.items():
                put_content(new / name, table_content(part()), lasting=True)
    if len(parts) == shards:
        return ()
    return (Note("fewer-shards", len(parts), wanted=int(shards or 0), images=len(images)),)


def _images_of(table: Detections | GroundTruth) -> tuple[Ids, Ids]:
    """Return the ascending image ids of a table, and the start of each image's rows; one more entry than images."""
    if isinstance(table, GroundTruth):
        return table.image_ids, table.dataset.offsets(table.image_rows)
    images, starts = np.unique(table.image_ids, return_index=True)
    return images, np.append(starts, len(table)).astype(np.int64)


def _borders(offsets: Ids, shards: int) -> Iterator[tuple[int, int]]:
    """Yield the first image of each shard and the one after its last: at least one, with about equally many rows.

    An image without objects counts as one row.

    >>> list(_borders(np.array([0, 1, 2, 10, 11, 12]), 3))
    [(0, 2), (2, 3), (3, 5)]
    """
    images = len(offsets) - 1
    shards = max(1, min(shards, images))
    ends = np.concatenate([[0], np.cumsum(np.maximum(np.diff(offsets), 1))])
    wanted = ends[-1] * np.arange(1, shards) / shards
    after = np.searchsorted(ends, wanted)  # at least 1, because wanted > 0
    nearest = after - (wanted - ends[after - 1] <= ends[after] - wanted)
    begin = 0
    for number, fair in enumerate(nearest.tolist(), 1):
        end = min(max(fair, begin + 1), images - (shards - number))
        yield begin, end
        begin = end
    yield begin, images


def _sniff(source: Source) -> bool:
    return is_parquet_source(source.path)


def _read_truth(source: Source, problems: Problems, *, image_ids: npt.ArrayLike | None = None) -> GroundTruth:
    truth = open_truth(source.path)
    return truth.read() if image_ids is None else truth.select_images(_ids(image_ids))


def _read_detections(
    source: Source, dataset: Dataset | None, problems: Problems, *, image_ids: npt.ArrayLike | None = None
) -> Draft:
    detections = open_detections(source.path)
    draft = detections.read() if image_ids is None else detections.read_images(_ids(image_ids))
    return draft if dataset is None else draft.within(dataset, problems)


def _copy(source: Source, target: Paths, repair: bool, shards: int | None = None) -> Copied:
    found = open_detections(source.path).read().to_table(repair=repair)
    return len(found), found.notes + write_parquet(target, found, shards=shards)


PARQUET_DETECTIONS = DetectionFormat(
    name="parquet",
    title="Parquet",
    suffixes=(".parquet",),
    sniff=_sniff,
    read=_read_detections,
    write=lambda path, found, dataset: write_parquet(path, found),
    check=lambda source: open_detections(source.path),
    copy=_copy,
    kind=DETECTIONS_FILE,
    urls=True,
    options=("image_ids",),
    heatmaps=True,
    standalone=True,
)

PARQUET_TRUTH = TruthFormat(
    name="parquet",
    title="Parquet",
    suffixes=(".parquet",),
    sniff=_sniff,
    read=_read_truth,
    write=write_parquet,
    kind=TRUTH_FILE,
    urls=True,
    options=("image_ids",),
)


def in_shards(shards: int | None) -> tuple[DetectionFormat, TruthFormat]:
    """Return the formats that write sets of `shards` files; None: single files."""
    if shards is None:
        return PARQUET_DETECTIONS, PARQUET_TRUTH
    return (
        dataclasses.replace(
            PARQUET_DETECTIONS,
            write=lambda path, found, dataset: write_parquet(path, found, shards=shards),
            copy=partial(_copy, shards=shards),
        ),
        dataclasses.replace(PARQUET_TRUTH, write=lambda path, truth: write_parquet(path, truth, shards=shards)),
    )
