"""What a file format is: how its files are recognised, read and written, and the draft that readers return."""

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
from probox.support.parallel import thread_count
from probox.tables.dataset import Dataset
from probox.tables.detections import DetectionColumns, Detections, optional_columns
from probox.tables.geometry import nearest_covariances
from probox.tables.groundtruth import GroundTruth


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Draft(DetectionColumns):
    """Columns that a reader has gathered and nobody has checked, and where in which file each row stands."""

    adopts: ClassVar[bool] = True

    place: Callable[[int], tuple[str, str]]
    """The file and the entry of a row, for messages."""

    def select(self, rows: npt.NDArray[np.int64]) -> Draft:
        """Return the draft of these rows alone."""
        place = self.place
        return self.replace(place=lambda row: place(int(rows[row])), **self.columns_at(rows))

    def noting(self, *notes: Note) -> Draft:
        """Return the draft with more to say about it."""
        return self.replace(notes=(*self.notes, *notes))

    def to_table(self, *, repair: bool = False) -> Detections:
        """Return the checked table; with `repair`, invalid covariances become the nearest valid ones."""
        draft = self.repair() if repair else self
        try:
            return Detections(classes=draft.classes, source=draft.source, notes=draft.notes, **draft.columns())
        except InputError as error:
            if isinstance(error.image, int) and error.image in self.image_ids:
                error.file, _ = self.place(int(np.argmax(self.image_ids == error.image)))
            raise

    def within(self, dataset: Dataset, problems: Problems) -> Draft:
        """Return the detections in images of the data set; the others are counted in a note and warned of."""
        known = dataset.rows_of(self.image_ids) >= 0
        if known.all():
            return self
        elsewhere = self.image_ids[~known]
        images = np.unique(elsewhere)
        problems.warn("unknown image", images.tolist(), lambda image: InputError(
            "the ground truth does not have this image: its detections are left out", file=self.source, image=image
        ))  # fmt: skip
        return self.select(np.flatnonzero(known)).noting(Note("unknown-images", len(elsewhere), images=len(images)))

    def repair(self) -> Draft:
        """Return the draft with valid covariances, and a note if any had to change."""
        if self.covariances is None:
            return self
        covariances, changed = repair_covariances(self.covariances)
        return self.replace(covariances=covariances).noting(Note("repaired-covariances", changed)) if changed else self


def repair_covariances(covariances: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], int]:
    """Return covariances that are symmetric and positive semi-definite, and how many detections needed it."""
    finite = np.flatnonzero(np.isfinite(covariances).all(axis=(1, 2, 3)))
    nearest = nearest_covariances(covariances[finite])
    changed = (nearest != covariances[finite]).any(axis=(1, 2, 3))
    if not changed.any():
        return covariances, 0
    result: npt.NDArray[np.float64] = covariances.copy()
    result[finite[changed]] = nearest[changed]
    return result, int(changed.sum())


def join_drafts(
    drafts: Sequence[Draft], label_probs: npt.NDArray[np.float32], classes: tuple[str, ...], source: str
) -> Draft:
    """Return one draft of several files, with label probabilities brought to common classes."""
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
"""What a file cannot hold."""

Copied = tuple[int | None, Notes]
"""How many rows were copied, where that was counted, and notes."""

NOTHING = Kind("anything that may be replaced", lambda path: False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Format:
    """One kind of file, of ground truth or of detections.

    Parameters
    ----------
    name : str
        What commands call it; those of ground truth and of detections may share one.
    title : str
        What messages call it.
    sniff : callable
        Whether a file or folder looks like this format, by its content. Which of the two tables is expected is
        known by then, so a format may take whatever it can say best what is wrong with.
    suffixes : tuple of str
        Endings of file names that ask for this format, the usual one first; no two formats share one.
    gzip : bool
        Whether names may end in ``.gz`` besides.
    kind : Kind
        Which files that are there a writer of this format may replace; none unless said.
    urls : bool
        Whether its files may be named by URLs.
    last : bool
        Whether it takes any folder, and so is asked only when no other format takes one.
    options : tuple of str
        Keywords of the public readers that its reader takes.
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
        """Return the longest of the suffixes that a file name ends in; an empty text if there is none."""
        name = Path(path).name.lower()
        name = name.removesuffix(".gz") if self.gzip else name
        return max((suffix for suffix in self.suffixes if name.endswith(suffix)), key=len, default="")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TruthFormat(Format):
    """A format of ground truth.

    Parameters
    ----------
    read : callable
        ``read(source, problems, **options)`` returns the table; problems go where they are told.
    write : callable, optional
        Writes a table to a path.
    """

    read: Callable[..., GroundTruth]
    write: Callable[[Paths, GroundTruth], Notes] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class DetectionFormat(Format):
    """A format of detections.

    Parameters
    ----------
    read : callable
        ``read(source, dataset, problems, **options)`` returns the draft of detections in images of the data set;
        problems go where they are told.
    write : callable, optional
        Writes a table, given the data set's images and category ids, to a path.
    read_part : callable, optional
        The same as `read` for a part of the data set, given the whole and the part: where a file may be of either, and
        leaving out what is not in the part is not enough.
    check : callable, optional
        Raises unless a file is a complete one of this format, whatever the data set.
    copy : callable, optional
        Writes a file again, checked and, if asked, with valid covariances, without knowing the data set; returns
        None, and writes nothing, if that takes the data set.
    heatmaps : bool
        Whether its files can hold heatmaps.
    standalone : bool
        Whether its files say which images and classes there are, so that `read` takes None for the data set.
    """

    read: Callable[..., Draft]
    write: Callable[[Paths, Detections, Dataset], Notes] | None = None
    read_part: Callable[[Source, Dataset, Dataset, Problems], Draft] | None = None
    check: Callable[[Source], object] | None = None
    copy: Callable[[Source, Paths, bool], Copied | None] | None = None
    heatmaps: bool = False
    standalone: bool = False


def _is_detections(path: Path) -> bool:
    head = file_head(path)
    if re.match(rb"\s*\[", head):
        return b'"image_id"' in head or not head.strip(b"[] \t\r\n")
    named = b'"classes"' in head and b'"img_names"' in head  # names of many images may fill the beginning
    return bool(re.match(rb"\s*\{", head)) and (b'"detections"' in head or named)


JSON_DETECTIONS = Kind("detections", _is_detections)
"""COCO results and RVC1 may replace each other."""


def copier(check: Callable[[bytes, str], None]) -> Callable[[Source, Paths, bool], Copied | None]:
    """Return what copies a file of detections, with or without compression, once `check` has looked at its content."""

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
    """Return covariances as (N, 8) and which rows to write; if all are zero all are written, to say so."""
    if found.covariances is None:
        return np.zeros((0, 8)), np.zeros(len(found), np.uint8)
    flat = found.covariances.reshape(-1, 8)
    some = flat.any(axis=1)
    return flat, np.asarray(some if some.any() else ~some, dtype=np.uint8)


LEAST_PIECE = 1 << 18
"""How many bytes are worth a thread, which has read them in half a millisecond."""


class Sharing(TypedDict):
    """What the kernel's readers want to know."""

    threads: int
    least_piece: int


def read_threads() -> Sharing:
    """Return how a file is read: by all processors, or by as many as `threads_at_most` allows."""
    return {"threads": thread_count(None), "least_piece": LEAST_PIECE}


def require_sections(
    columns: Mapping[str, Any], keys: Sequence[str], file: str, problems: Problems, remedy: str, others: dict[str, str]
) -> None:
    """Report the sections that the object of a JSON file lacks.

    `others` maps keys of other files to what to do about these.
    """
    given = columns["other_keys"]
    for key in keys:
        if not columns[f"has_{key}"]:
            found = ", ".join(f'"{name}"' for name in given) or "no other keys"
            advice = next((others[name] for name in given if name in others), remedy)
            error = InputError(f'expected a key "{key}", but got {found}', file=file, remedy=advice)
            problems.stop(error, "missing key")
