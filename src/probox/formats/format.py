"""What a file format is: how its files are recognised, read and written. `probox.formats.registry` lists them all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from probox.files.kinds import Kind
from probox.files.reading import Paths
from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.problems import Problems
from probox.notes import Note
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["Copied", "DetectionFormat", "Format", "Notes", "TruthFormat"]

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
    check: Callable[[Source], None] | None = None
    copy: Callable[[Source, Paths, bool], Copied | None] | None = None
    heatmaps: bool = False
    standalone: bool = False
