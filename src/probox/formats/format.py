"""File formats: detection, reading and writing, and the draft that readers return."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.output import Kind, check_replaceable, json_bytes, write_files
from probox.files.reading import Paths, Source, file_head
from probox.formats.problems import Problems
from probox.notes import Note, merge_notes
from probox.support.formatting import with_count
from probox.support.parallel import thread_count
from probox.tables.dataset import Dataset
from probox.tables.detections import DetectionColumns, Detections, optional_columns
from probox.tables.geometry import nearest_covariances
from probox.tables.groundtruth import GroundTruth
from probox.tables.label_probs import LabelProbs


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Draft(DetectionColumns):
    """Unchecked columns from a reader, with the file and entry of each row."""

    adopts: ClassVar[bool] = True

    place: Callable[[int], tuple[str, str]]
    """Returns the file and entry of a row, for messages."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label_probs", LabelProbs(self.label_probs))  # assignment in a frozen dataclass
        super().__post_init__()

    def select(self, rows: npt.NDArray[np.int64]) -> Draft:
        """Return the draft of these rows only."""
        place = self.place
        return self.replace(place=lambda row: place(int(rows[row])), **self.columns_at(rows))

    def noting(self, *notes: Note) -> Draft:
        """Return the draft with additional notes."""
        return self.replace(notes=(*self.notes, *notes))

    def to_table(self, *, repair: bool = False) -> Detections:
        """Return the checked table; with `repair`, invalid covariances are replaced by the nearest valid ones."""
        draft = self.repair() if repair else self
        try:
            return Detections(classes=draft.classes, source=draft.source, notes=draft.notes, **draft.columns())
        except InputError as error:
            if isinstance(error.image, int) and error.image in self.image_ids:
                error.file, _ = self.place(int(np.argmax(self.image_ids == error.image)))
            raise

    def within(self, dataset: Dataset, problems: Problems) -> Draft:
        """Return the detections in images of the dataset; the others are counted in a note and a warning."""
        known = dataset.rows_of(self.image_ids) >= 0
        if known.all():
            return self
        elsewhere = self.image_ids[~known]
        images = np.unique(elsewhere)
        problems.warn("unknown image", images.tolist(), lambda image: InputError(
            "image missing from the ground truth: its detections are excluded", file=self.source, image=image
        ))  # fmt: skip
        return self.select(np.flatnonzero(known)).noting(Note("unknown-images", len(elsewhere), images=len(images)))

    def repair(self) -> Draft:
        """Return the draft with valid covariances, and a note if any changed."""
        if self.covariances is None:
            return self
        covariances, changed = repair_covariances(self.covariances)
        return self.replace(covariances=covariances).noting(Note("repaired-covariances", changed)) if changed else self


def repair_covariances(covariances: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], int]:
    """Return covariances made symmetric and positive semi-definite, and the number of detections that changed."""
    finite = np.flatnonzero(np.isfinite(covariances).all(axis=(1, 2, 3)))
    nearest = nearest_covariances(covariances[finite])
    changed = (nearest != covariances[finite]).any(axis=(1, 2, 3))
    if not changed.any():
        return covariances, 0
    result: npt.NDArray[np.float64] = covariances.copy()
    result[finite[changed]] = nearest[changed]
    return result, int(changed.sum())


def join_drafts(drafts: Sequence[Draft], label_probs: LabelProbs, classes: tuple[str, ...], source: str) -> Draft:
    """Concatenate the drafts of several files, with label probabilities of common classes."""
    starts = np.cumsum([0] + [len(draft) for draft in drafts])

    def place(row: int) -> tuple[str, str]:
        part = int(np.searchsorted(starts, row, side="right")) - 1
        return drafts[part].place(row - int(starts[part]))

    return Draft(
        classes=classes,
        image_ids=np.concatenate([np.zeros(0, np.int64), *(draft.image_ids for draft in drafts)]),
        boxes=np.concatenate([np.zeros((0, 4)), *(draft.boxes for draft in drafts)]),
        label_probs=label_probs,
        source=source,
        place=place,
        **optional_columns(drafts),
        notes=merge_notes(draft.notes for draft in drafts),
    )


Notes = tuple[Note, ...]
"""Data that a format cannot store."""

Copied = tuple[int | None, Notes]
"""Number of copied rows, None if it was not counted, and notes."""

NOTHING = Kind("anything that may be replaced", lambda path: False)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Format:
    """A file format of ground truth or of detections.

    Parameters
    ----------
    name : str
        Name in commands; a format of ground truth and one of detections may share it.
    title : str
        Name in messages.
    sniff : callable
        Returns whether a file or folder looks like this format, by its content. The expected table is known, so a
        format may accept a file of the other table to report the mistake.
    suffixes : tuple of str
        File suffixes of the format, the usual one first; unique among formats.
    gzip : bool
        Whether names may end in ``.gz`` too.
    kind : Kind
        Existing files that a writer of this format may replace; none by default.
    urls : bool
        Whether files may be given by URL.
    last : bool
        Whether the format accepts any folder, so that it is tried last.
    options : tuple of str
        Options of the public readers that this format supports.
    """

    name: str
    title: str
    sniff: Callable[[Source], bool]
    suffixes: tuple[str, ...] = ()
    gzip: bool = False
    kind: Kind = NOTHING
    urls: bool = False
    last: bool = False
    options: tuple[str, ...] = ()

    def suffix_in(self, path: Paths) -> str:
        """Return the longest suffix of the format that a file name ends in; empty if there is none."""
        name = Path(path).name.lower()
        name = name.removesuffix(".gz") if self.gzip else name
        return max((suffix for suffix in self.suffixes if name.endswith(suffix)), key=len, default="")


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class TruthFormat(Format):
    """A format of ground truth.

    Parameters
    ----------
    read : callable
        ``read(source, problems, **options)`` returns the table and reports problems to `problems`.
    write : callable, optional
        Writes a table to a path.
    """

    read: Callable[..., GroundTruth]
    write: Callable[[Paths, GroundTruth], Notes] | None = None


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class DetectionFormat(Format):
    """A format of detections.

    Parameters
    ----------
    read : callable
        ``read(source, dataset, problems, **options)`` returns the draft of detections in images of the dataset and
        reports problems to `problems`.
    write : callable, optional
        ``write(path, detections, dataset)`` writes a table, with the dataset's images and category ids.
    read_part : callable, optional
        Like `read` for a part of the dataset, given the whole and the part. Needed if a file may belong to either and
        dropping rows outside the part is not enough.
    check : callable, optional
        Raises unless a file is complete and of this format, for any dataset.
    copy : callable, optional
        Copies a file after a check, optionally with repaired covariances, without a dataset. Returns None, with
        nothing written, if a dataset is needed.
    heatmaps : bool
        Whether the format can store heatmaps.
    masks : bool
        Whether the format can store masks.
    standalone : bool
        Whether files contain images and classes, so that `read` accepts None as dataset.
    """

    read: Callable[..., Draft]
    write: Callable[[Paths, Detections, Dataset], Notes] | None = None
    read_part: Callable[[Source, Dataset, Dataset, Problems], Draft] | None = None
    check: Callable[[Source], object] | None = None
    copy: Callable[[Source, Paths, bool], Copied | None] | None = None
    heatmaps: bool = False
    masks: bool = False
    standalone: bool = False


def _is_detections(path: Path) -> bool:
    head = file_head(path)
    if re.match(rb"\s*\[", head):
        return b'"image_id"' in head or not head.strip(b"[] \t\r\n")
    named = b'"classes"' in head and b'"img_names"' in head  # names of many images may fill the head of the file
    return bool(re.match(rb"\s*\{", head)) and (b'"detections"' in head or named)


JSON_DETECTIONS = Kind("detections", _is_detections)
"""COCO results and RVC1 may replace each other."""


def copier(check: Callable[[bytes, str], None]) -> Callable[[Source, Paths, bool], Copied | None]:
    """Return a function that copies a detection file, compressed or not, after `check` accepted its content."""

    def copy(source: Source, target: Paths, repair: bool) -> Copied | None:
        if repair:
            return None
        data = source.content()
        check(data, source.name)
        check_replaceable(target, JSON_DETECTIONS)
        write_files({Path(target): json_bytes(Path(target), data)})
        return None, ()

    return copy


def covariances_to_write(found: Detections) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
    """Return covariances as (N, 8) and which rows to write: all rows if all are zero, to keep the information."""
    if found.covariances is None:
        return np.zeros((0, 8)), np.zeros(len(found), np.uint8)
    flat = found.covariances.reshape(-1, 8)
    some = flat.any(axis=1)
    return flat, np.asarray(some if some.any() else ~some, dtype=np.uint8)


def rows_to_write(found: Detections, dataset: Dataset, file: str) -> npt.NDArray[np.int64]:
    """Return the row of each detection's image; raise if one is missing from the dataset."""
    rows = dataset.rows_of(found.image_ids)
    elsewhere = found.image_ids[rows < 0]
    if len(elsewhere):
        raise InputError(
            f"{with_count(len(elsewhere), 'detection')} in images that are missing from the ground truth",
            file=file,
            image=int(elsewhere[0]),
            remedy="select the detections of its images first",
        )
    return rows


LEAST_PIECE = 1 << 18
"""Minimum number of bytes per thread, which take half a millisecond to read."""


class Sharing(TypedDict):
    """Thread settings of the C++ readers."""

    threads: int
    least_piece: int


def read_threads() -> Sharing:
    """Return the thread settings: all processors, or as many as `threads_at_most` allows."""
    return {"threads": thread_count(None), "least_piece": LEAST_PIECE}


def require_sections(
    columns: Mapping[str, Any], keys: Sequence[str], file: str, problems: Problems, remedy: str, others: dict[str, str]
) -> None:
    """Report missing sections of the object in a JSON file.

    `others` maps keys of other kinds of files to the fix for them.
    """
    given = columns["other_keys"]
    for key in keys:
        if not columns[f"has_{key}"]:
            found = ", ".join(f'"{name}"' for name in given) or "no other keys"
            advice = next((others[name] for name in given if name in others), remedy)
            error = InputError(f'expected a key "{key}", but got {found}', file=file, remedy=advice)
            problems.stop(error, "missing key")
