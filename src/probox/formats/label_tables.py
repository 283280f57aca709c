"""Tables from labels of YOLO, Pascal VOC, KITTI and Open Images, which identify images and classes by name."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.formats.format import Draft
from probox.formats.problems import Problems
from probox.notes import Note
from probox.tables.dataset import Dataset
from probox.tables.geometry import pixels_of_boxes
from probox.tables.groundtruth import GroundTruth
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import canonical_name
from probox.tables.masks import Masks
from probox.tables.row_problems import FARTHEST, RowProblems

Ids = npt.NDArray[np.int64]

_LONGEST_NUMBER = 18
"""Largest number of digits of an image id."""


def _last_part(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).name


def _stem(name: str) -> str:
    return PurePosixPath(_last_part(name)).stem


def _folder_and_stem(name: str) -> str:
    folder = PurePosixPath(name.replace("\\", "/")).parent.name
    return f"{folder}/{_stem(name)}" if folder else ""


def number_of(name: str) -> str:
    """Return the number in a file name such as ``0007.jpg``, without leading zeros; empty if it is not a number."""
    stem = _stem(name)
    return str(int(stem)) if stem.isascii() and stem.isdigit() and len(stem) < 40 else ""


_WAYS: tuple[Callable[[str], str], ...] = (str, _last_part, _folder_and_stem, _stem, number_of)
"""Keys by which two names of an image are compared, the strictest first."""


def rows_by_name(names: Sequence[str], file_names: Sequence[str]) -> Ids:
    """Return the row of each name in `file_names`, -1 if missing; folders, endings and leading zeros may differ.

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
            place[key] = row if key not in place else -1  # a key shared by two images identifies neither
        place.pop("", None)
        taken = set(rows.tolist())  # matched by a stricter key
        for at in np.flatnonzero(rows < 0).tolist():
            row = place.get(way(names[at]), -1)
            if row not in taken and _folders_agree(names[at], file_names[row]):
                rows[at] = row
        if (rows >= 0).all():
            break
    return rows


def _folders_agree(one: str, other: str) -> bool:
    """Return whether two names may be in the same folder: one has no folder, or the folders have the same name."""
    folders = [PurePosixPath(name.replace("\\", "/")).parent.name for name in (one, other)]
    return not all(folders) or folders[0] == folders[1]


def ids_of_names(stems: Sequence[str]) -> Ids:
    """Return an id for each image from its stem; the stems are sorted by path.

    If all stems are distinct numbers, these are the ids; otherwise images are numbered from 1.

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
    """Return the ground truth's row of each image in a detection file, -1 for unknown images, and notes.

    Parameters
    ----------
    names : sequence of str
        Distinct names, with or without folder and ending.
    detections : sequence of int
        Number of detections of each name.
    dataset : Dataset
        Images of the ground truth. If they have no file names, numeric names are compared with its image ids.
    file : str
        File name for messages.
    problems : Problems
        Receives the problems.
    place : callable
        Returns the entry of the file that contains a name, for messages.
    """
    if any(dataset.file_names):
        rows = rows_by_name(names, dataset.file_names)
        _refuse_doubtful(rows, names, dataset, file, problems, place)
    else:
        numbers = [number_of(name) for name in names]
        wanted = [int(text) if text and len(text) <= _LONGEST_NUMBER else -1 for text in numbers]
        rows = np.where(np.array(wanted, np.int64) >= 0, dataset.rows_of(np.array(wanted, np.int64)), -1)
    ids = dataset.image_ids
    again = refuse_twins(rows, names, ids, file, problems, lambda at: place(names[at]), "keep one of them")
    unknown = np.flatnonzero(rows < 0)
    if len(names) and len(unknown) == len(names) and len(dataset) and not len(again):
        there = dataset.file_names[0] or str(dataset.image_ids[0])
        error = InputError(
            f"none of its {len(names)} images is in the ground truth "
            f"(the first is {names[0][:80]!r}, in the ground truth {there[:80]!r})",
            file=file,
            entry=place(names[0]),
            remedy="check that the detector was run on these images"
            if any(dataset.file_names)
            else "add file_name to the images of the ground truth",
        )
        problems.catch(error, "unknown image")
    problems.warn("unknown image", unknown.tolist(), lambda at: InputError(
        "image missing from the ground truth: its detections are excluded",
        file=file, image=names[at], entry=place(names[at]),
    ))  # fmt: skip
    lost = sum(detections[at] for at in unknown.tolist())
    images = sum(detections[at] > 0 for at in unknown.tolist())
    return rows, (Note("unknown-images", lost, images=images),) if lost else ()


def refuse_twins(
    rows: Ids,
    names: Sequence[str],
    image_ids: Ids,
    file: str,
    problems: Problems,
    place: Callable[[int], str | None],
    remedy: str,
) -> Ids:
    """Report names of an image that has another name already, and set their rows to -1; return their indices."""
    order = np.argsort(rows, kind="stable")
    again: Ids = order[1:][(rows[order[1:]] == rows[order[:-1]]) & (rows[order[1:]] >= 0)]
    problems.add("duplicate id", again.tolist(), lambda at: InputError(
        f"{names[at][:80]!r} is a second name of this image",
        file=file, image=int(image_ids[rows[at]]), entry=place(at), remedy=remedy,
    ))  # fmt: skip
    rows[again] = -1
    return again


def rows_beside_ids(
    names: Sequence[str],
    ids: Ids,
    dataset: Dataset,
    file: str,
    problems: Problems,
    place: Callable[[str], str | None],
) -> Ids:
    """Return the ground truth's row of each image that has a name and an id, -1 for unknown images.

    The name decides, because ultralytics derives ids from file names, whatever ids the ground truth has. The id decides
    if the name is unknown or belongs to images with several ids. Other parameters are those of `rows_of_images`.
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
    """Report names that match several images; guessing could score detections on the wrong image."""
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


MOST_ROUNDING = 0.02
"""In pixels. Boxes with larger rounding errors are not snapped to pixel edges, as few true corners lie on them."""

_MAX_RUNS, _MAX_CROSSINGS, _MAX_OBJECT_CROSSINGS = 1 << 24, 1 << 27, 1 << 23
"""Limits for the masks of all polygons: runs of pixels, and crossings of edges with pixel columns. Both are far above
the needs of photos; they bound memory and time for malicious polygons."""

Polygon = npt.NDArray[np.float64]


@dataclasses.dataclass
class LabelRows:
    """Boxes and their attributes while files are read: lists of equal length."""

    files: list[str] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)
    images: Any = dataclasses.field(default_factory=list)
    """Index of the image among those of the files, later its row in the dataset; -1 if it is unknown."""
    classes: list[str] = dataclasses.field(default_factory=list)
    """Class names as written, for formats with class names."""
    labels: list[int] = dataclasses.field(default_factory=list)
    boxes: Any = dataclasses.field(default_factory=list)
    """Four numbers as written, later x, y, width, height in pixels."""
    scores: list[float] = dataclasses.field(default_factory=list)
    """For detections only."""
    crowd: list[bool] = dataclasses.field(default_factory=list)
    """For ground truth only: a region that mAP and LRP ignore."""
    polygons: dict[int, Polygon] = dataclasses.field(default_factory=dict)
    """Polygons by row: x1, y1, x2, y2, ... in pixels, for objects with more than a box."""
    regions: set[int] = dataclasses.field(default_factory=set)
    """Rows of ignored regions, which get no mask."""

    entry: str = "line"
    """Name of a line in messages."""

    def add(
        self,
        file: str,
        line: int,
        box: Sequence[float],
        *,
        image: int = -1,
        name: str = "",
        label: int = 0,
        score: float = 0.0,
        crowd: bool = False,
    ) -> None:
        """Add a box; `name` is its class as written, `label` its class index."""
        self.files.append(file)
        self.lines.append(line)
        self.images.append(image)
        self.classes.append(name)
        self.labels.append(label)
        self.boxes.append(box)
        self.scores.append(score)
        self.crowd.append(crowd)

    def place(self, row: int) -> tuple[str, str]:
        """Return the file and the entry of a row, for messages."""
        return self.files[row], f"{self.entry} {self.lines[row]}"

    def shapes(self, sizes: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Return width and height of each row's image from the sizes of all images; 1 x 1 for unknown images."""
        known = np.append(np.array(sizes, np.int32).reshape(-1, 2), np.ones((1, 2), np.int32), axis=0)
        return known[np.array(self.images, np.int64)]

    def sort_classes(self) -> tuple[str, ...]:
        """Return the class names in alphabetical order, and set the labels to their indices."""
        known = sorted(set(self.classes))
        column = {name: at for at, name in enumerate(known)}
        self.labels = [column[name] for name in self.classes]
        return tuple(known)

    def match_classes(self, classes: Sequence[str]) -> tuple[str, ...]:
        """Return the ground truth's classes followed by unknown ones, and set the labels to their indices."""
        columns, known = columns_of_names(list(dict.fromkeys(self.classes)), classes)
        self.labels = [columns[name] for name in self.classes]
        return known

    def match_images(self, names: Sequence[str], dataset: Dataset, file: str, problems: Problems) -> tuple[Note, ...]:
        """Replace image indices by rows of the dataset; return notes on unknown images."""
        images = np.array(self.images, np.int64)
        counts = np.bincount(images, minlength=len(names)).tolist()
        rows, notes = rows_of_images(names, counts, dataset, file, problems)
        self.images = rows[images]
        return notes

    def usable(self, problems: Problems, *, scored: bool) -> npt.NDArray[np.int64]:
        """Return the valid rows in order; report the others."""
        boxes = np.array(self.boxes, np.float64).reshape(-1, 4)
        with np.errstate(over="ignore", invalid="ignore"):
            reach = np.concatenate([boxes, boxes[:, :2] + boxes[:, 2:]], axis=1)
            finite = (np.abs(reach) <= FARTHEST).all(axis=1)  # False for NaN
        good = finite & (boxes[:, 2:] >= 0).all(axis=1)
        found = [
            RowProblems(
                "non-finite box",
                np.flatnonzero(~finite),
                lambda row: f"expected a box of finite numbers, up to {FARTHEST:g} pixels",
                "leave it out, or correct it",
            ),
            RowProblems(
                "inverted box",
                np.flatnonzero(finite & ~good),
                lambda row: (
                    f"expected width and height of at least 0, but got {boxes[row, 2]:g} x {boxes[row, 3]:g} pixels"
                ),
                "check the order of the numbers",
            ),
        ]
        if scored:
            scores = np.array(self.scores, np.float64)
            fine = (scores >= 0) & (scores <= 1)
            found.append(
                RowProblems(
                    "label probability outside [0, 1]",
                    np.flatnonzero(good & ~fine),
                    lambda row: f"expected a score between 0 and 1, but got {scores[row]:g}",
                    "apply softmax or sigmoid before writing",
                )
            )
            good &= fine
        for problem in found:
            problems.add(problem.kind, problem.rows.tolist(), partial(self._error, problem))
        return np.flatnonzero(good)

    def _error(self, problem: RowProblems, row: int) -> InputError:
        file, entry = self.place(row)
        return InputError(problem.text(row), file=file, entry=entry, remedy=problem.remedy)


def number_names(names: Sequence[str]) -> tuple[list[str], Ids]:
    """Return the distinct names, sorted, and the index of each name among them."""
    known, which = np.unique(np.array(names, object), return_inverse=True)
    return known.tolist(), which.reshape(-1)


def truth_of(
    rows: LabelRows,
    names: Sequence[str],
    sizes: Sequence[tuple[int, int]],
    problems: Problems,
    *,
    notes: Sequence[Note],
    rounding: Sequence[float] = (),
    stems: Sequence[str] | None = None,
    **others: Any,
) -> GroundTruth:
    """Return the table of objects; objects without a polygon get their box as mask, as in COCO files.

    Parameters
    ----------
    rows : LabelRows
        The objects; those without an image are dropped.
    names, sizes
        File name, and width and height, of each image.
    problems : Problems
        Receives the problems.
    notes : sequence of Note
        Notes of the table; one on objects without masks is added.
    rounding : sequence of float
        Rounding errors for `_restore_corners`, for boxes written as fractions of the image.
    stems : sequence of str, optional
        Source of each image's id. Default: its file name without folder and ending.
    **others
        Further fields of the dataset, such as its classes.
    """
    if stems is None:
        stems = [os.path.splitext(os.path.basename(name))[0] for name in names]
    ids = ids_of_names(stems)
    order = np.argsort(ids, kind="stable")
    row_of = np.append(np.argsort(order), -1)
    shapes = np.array(sizes, np.int32).reshape(-1, 2)[order]
    dataset = Dataset(
        image_ids=ids[order],
        widths=shapes[:, 0],
        heights=shapes[:, 1],
        file_names=tuple(names[at] for at in order.tolist()),
        **others,
    )
    rows.images = images = row_of[np.array(rows.images, np.int64)]
    kept = rows.usable(problems, scored=False)
    kept = kept[images[kept] >= 0]
    kept = kept[np.argsort(images[kept], kind="stable")]
    shapes = rows.shapes(dataset.shapes)
    corners, extents = _restore_corners(np.array(rows.boxes, np.float64).reshape(-1, 4), shapes, rounding)
    masks = _masks(rows, kept, corners, shapes)
    sizes_kept = extents[kept]
    drawn = np.isin(kept, list(rows.polygons))
    plain = len(kept) - int(drawn.sum()) - len(rows.regions.intersection(kept.tolist()))
    return GroundTruth(
        dataset=dataset,
        image_rows=images[kept],
        labels=np.array(rows.labels, np.int32)[kept],
        boxes=corners[kept],
        masks=masks,
        extents=sizes_kept,
        areas=np.where(drawn & (masks.pixels > 0), masks.pixels, np.prod(sizes_kept, axis=1)),
        crowd=np.array(rows.crowd, bool)[kept],
        notes=(*notes, *([Note("objects-without-mask", plain)] if plain else [])),
    )


def _restore_corners(
    boxes: npt.NDArray[np.float64], shapes: npt.NDArray[np.int32], rounding: Sequence[float], most: float = math.inf
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return corners and extents of boxes (x, y, width, height), with rounding errors near pixel edges removed.

    Without this, a corner at 199.9999998 would cover a pixel more than one at 200. A corner within rounding error of a
    pixel edge is moved there, unless the box would become empty. `rounding` is the largest error of a corner of each
    box, in fractions of the image; it is empty for boxes written in pixels. If it exceeds `most` pixels, corners stay,
    because most of those near an edge would be there by chance.
    """
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    if not len(rounding):
        return corners, boxes[:, 2:]
    edges = np.round(corners)
    reach = np.array(rounding)[:, None] * np.tile(shapes, 2)
    moved = np.where(np.abs(corners - edges) <= np.where(reach <= most, reach, 0.0), edges, corners)
    thin = np.tile((moved[:, :2] == moved[:, 2:]) & (corners[:, :2] < corners[:, 2:]), 2)
    corners = np.where(thin, corners, moved)
    extents = corners[:, 2:] - corners[:, :2]
    whole = (corners[:, :2] == edges[:, :2]) & (corners[:, 2:] == edges[:, 2:])
    return corners, np.where(whole | (np.abs(extents - boxes[:, 2:]) > 1e-9), extents, boxes[:, 2:])


def _masks(
    rows: LabelRows, order: npt.NDArray[np.int64], corners: npt.NDArray[np.float64], shapes: npt.NDArray[np.int32]
) -> Masks:
    """Return the masks of the given rows, in this order."""
    n = len(rows.images)
    pixels = np.tile(np.array([0, 0, -1, -1], np.int32), (n, 1))
    pixels[order] = pixels_of_boxes(corners[order], shapes[order])
    pixels[list(rows.regions)] = [0, 0, -1, -1]
    drawn = np.zeros(n, bool)
    drawn[list(rows.polygons)] = True
    polygons = [rows.polygons[row] for row in sorted(rows.polygons)]
    numbers = np.concatenate([np.zeros(0), *polygons])
    masks = Masks(*_core.rasterise(
        order=order,
        kinds=np.where(drawn, _core.POLYGONS, _core.NO_MASK).astype(np.uint8),
        piece_offsets=np.concatenate([[0], np.cumsum(drawn)]).astype(np.int64),
        number_offsets=np.array(list(accumulate(map(len, polygons), initial=0)), np.int64),
        numbers=numbers,
        box_pixels=pixels,
        heights=np.ascontiguousarray(shapes[:, 1]),
        widths=np.ascontiguousarray(shapes[:, 0]),
        max_runs=_MAX_RUNS + 4 * len(numbers),
        max_crossings=_MAX_CROSSINGS + 32 * len(numbers),
        max_object_crossings=_MAX_OBJECT_CROSSINGS,
    ))  # fmt: skip
    if len(masks) < len(order):
        file, entry = rows.place(int(order[len(masks)]))
        raise InputError(
            "the masks up to this one need too much memory for polygons with so few points",
            file=file,
            entry=entry,
            remedy="check the polygon and the size of the image",
        )
    return masks


def draft_of(
    rows: LabelRows,
    dataset: Dataset,
    problems: Problems,
    *,
    classes: Sequence[str],
    source: str,
    notes: Sequence[Note] = (),
    rounding: Sequence[float] = (),
) -> Draft:
    """Return the draft of detections: the named class gets the score, the others share the rest evenly.

    `rounding` is that of `_restore_corners`, for boxes written as fractions of the image.
    """
    kept = rows.usable(problems, scored=True)
    images = np.array(rows.images, np.int64)
    kept = kept[images[kept] >= 0]
    boxes = np.array(rows.boxes, np.float64).reshape(-1, 4)
    corners, extents = _restore_corners(boxes, rows.shapes(dataset.shapes), rounding, most=MOST_ROUNDING)
    labels, scores = np.array(rows.labels, np.int32)[kept], np.array(rows.scores, np.float64)[kept]
    return Draft(
        classes=tuple(classes),
        image_ids=dataset.image_ids[images[kept]],
        boxes=corners[kept],
        label_probs=LabelProbs.from_scores(scores, labels, len(classes)),
        labels=labels,
        scores=scores,
        extents=extents[kept],
        source=source,
        place=lambda row: rows.place(int(kept[row])),
        notes=tuple(notes),
    )


def columns_of_names(names: Sequence[str], classes: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the column of each name, and all classes: the ground truth's, then unknown ones.

    Names are compared by equality first, then ignoring case and by synonyms. Detections of unknown classes are kept:
    they count as false positives.

    >>> columns_of_names(["Car", "ufo"], ["car", "dog"])
    ({'Car': 0, 'ufo': 2}, ('car', 'dog', 'ufo'))
    """
    known = list(classes)
    by_name = {name: at for at, name in reversed(list(enumerate(known)))}
    by_meaning: dict[str, int] = {}
    for at, name in enumerate(known):
        by_meaning[canonical_name(name)] = -1 if canonical_name(name) in by_meaning else at
    columns: dict[str, int] = {}
    for name in names:
        at = by_name.get(name, by_meaning.get(canonical_name(name), -1))
        if at < 0:
            at = by_name[name] = len(known)
            known.append(name)
        columns[name] = at
    return columns, tuple(known)
