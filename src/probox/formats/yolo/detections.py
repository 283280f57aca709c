"""YOLO predictions: a folder with a text file for each image, in every line a class, a box in fractions and a score."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.formats.draft import Draft
from probox.formats.image_names import rows_of_images
from probox.formats.label_tables import LabelRows, draft_of
from probox.formats.label_text import LineError, numbers_in, readable_texts, text_lines
from probox.formats.problems import Problems
from probox.formats.written_digits import rounding_of
from probox.formats.yolo.order import ORDERS, Order, find_order, fitting, in_order
from probox.formats.yolo.truth import class_number
from probox.notes import Note
from probox.tables.coco_classes import COCO_CATEGORY_IDS, COCO_CLASSES
from probox.tables.dataset import Dataset

__all__ = ["check_predictions", "folder_of_predictions", "yolo_predictions"]

FAR = 1.0
"""A box this many images outside its image is not in fractions."""

MANY_ONES = 10
"""So many scores of exactly 1, and no other, are the number of the first track of each file."""

SAVE_CONF = "run the detector with save_txt=True save_conf=True"


def folder_of_predictions(folder: Path) -> Path:
    """Return where the text files are: the folder itself, or ``labels`` in it, as in a folder of a run."""
    inside = folder / "labels"
    return inside if inside.is_dir() and not any(folder.glob("*.txt")) else folder


def check_predictions(folder: Path, name: str) -> None:
    """Raise if lines of a folder of predictions are none; images and classes may be any."""
    lines = _Lines(folder_of_predictions(folder), None, Problems())
    _boxes(lines, "", name, Problems())


def yolo_predictions(folder: Path, order: str, name: str, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of a folder of predictions; `order` is empty where the boxes are to tell."""
    if order and order not in get_args(Order):
        raise InputError(
            f"expected one of {', '.join(ORDERS)} behind the colon, but got {order!r}",
            file=str(folder),
            remedy="use one",
        )
    lines = _Lines(folder_of_predictions(folder), len(dataset.classes), problems)
    rows, written, notes = _boxes(lines, order, name, problems)
    counts = np.bincount(lines.file_of, minlength=len(lines.names)) if lines.file_of else [0] * len(lines.names)
    image_rows, unknown = rows_of_images(lines.names, [int(n) for n in counts], dataset, name, problems)
    rows.images = image_rows[lines.file_of].tolist() if lines.file_of else []
    notes += unknown
    usual = COCO_CATEGORY_IDS if dataset.classes == COCO_CLASSES else np.arange(1, len(dataset.classes) + 1)
    if not np.array_equal(dataset.category_ids, usual) and len(rows.boxes):
        first, *_, last = dataset.classes * 2
        notes.append(Note("class-numbers", first=first, last=len(dataset.classes) - 1, name=last))
    shapes = dataset.shapes[np.maximum(rows.images, 0)].tolist() if rows.images and len(dataset) else []
    for at, (width, height) in enumerate(shapes):
        cx, cy, w, h = rows.boxes[at]
        w, h = w * width, h * height
        rows.boxes[at] = (cx * width - w / 2, cy * height - h / 2, w, h)
    reach = rounding_of(written)
    rounding = [reach[file] for file in lines.file_of]
    return draft_of(rows, dataset, problems, classes=dataset.classes, source=name, notes=notes, rounding=rounding)


class _Lines:
    """The lines of all files of a folder, as numbers behind a class."""

    def __init__(self, folder: Path, classes: int | None, problems: Problems) -> None:
        self.names: list[str] = []
        self.files: list[str] = []
        self.file_of: list[int] = []
        self.lines: list[int] = []
        self.labels: list[int] = []
        self.words: list[list[str]] = []
        self.values: list[list[float]] = []
        for name, file, text in readable_texts(folder, _text_files_below(folder), problems):
            self.names.append(name.removesuffix(".txt"))
            self.files.append(file)
            for line, words in text_lines(text):
                try:
                    number, values = class_number(words[0], classes), numbers_in(words[1:])
                    self._check(values)
                except LineError as error:
                    problems.catch(error.at(file, line), error.kind)
                    continue
                self.file_of.append(len(self.names) - 1)
                self.lines.append(line)
                self.labels.append(number)
                self.words.append(words[1:])
                self.values.append(values)

    def _check(self, values: list[float]) -> None:
        if len(values) == 4:
            raise LineError("no score", "expected a score beside class cx cy w h, but there is none", SAVE_CONF)
        if len(values) < 4:
            raise LineError(
                "broken line",
                f"expected class cx cy w h score, but got {len(values) + 1} numbers",
                "write a line for each detection",
            )
        if max(values[:4]) > 1 + FAR or min(values[:4]) < -FAR:
            worst = max(values[:4], key=abs)
            raise LineError(
                "boxes in pixels",
                f"expected fractions of the image, from 0 to 1, but got {worst:g}",
                "divide pixels by the image's width and height",
            )

    def keep(self, rows: Sequence[int]) -> None:
        """Leave out all other lines."""
        for name in ("file_of", "lines", "labels", "words", "values"):
            column = getattr(self, name)
            setattr(self, name, [column[row] for row in rows])


def _text_files_below(folder: Path) -> list[str]:
    """Return the text files of a folder and those one level below, relative to it, sorted; links are followed."""
    found: list[str] = []
    try:
        for entry in os.scandir(folder):
            if entry.name.endswith(".txt") and entry.name != "classes.txt":
                found.append(entry.name)
            elif entry.is_dir():
                found += [f"{entry.name}/{inner.name}" for inner in os.scandir(entry) if inner.name.endswith(".txt")]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(folder)) from None
    return sorted(found)


def _boxes(lines: _Lines, order: str, name: str, problems: Problems) -> tuple[LabelRows, list[list[str]], list[Note]]:
    """Return boxes cx, cy, w, h in fractions, with scores, the boxes' numbers as each file has them, and notes."""
    notes: list[Note] = []
    _drop_track_ids(lines, problems)
    _refuse_tracks_as_scores(lines, order)
    numbers = np.array([values if len(values) == 5 else [0.0] * 5 for values in lines.values]).reshape(-1, 5)
    plain = np.array([len(values) == 5 for values in lines.values], bool)
    chosen: Order = "score-last"
    if plain.any():
        chosen, said = _chosen_order(numbers[plain], np.array(lines.file_of)[plain], order, name)
        notes += said
    centres, scores = in_order(numbers, chosen)
    for at in np.flatnonzero(~plain).tolist():
        *points, scores[at] = lines.values[at]
        corners = np.array(points).reshape(-1, 2)
        low, high = corners.min(axis=0), corners.max(axis=0)
        centres[at] = [*((low + high) / 2), *(high - low)]
    polygons = int((~plain).sum())
    if polygons:
        notes.append(Note("polygons", polygons))
    rows = LabelRows(
        files=[lines.files[file] for file in lines.file_of],
        lines=lines.lines,
        labels=lines.labels,
        boxes=[tuple(box) for box in centres.tolist()],
        scores=scores.tolist(),
    )
    written: list[list[str]] = [[] for _ in lines.names]
    for file, words, values in zip(lines.file_of, lines.words, lines.values, strict=True):
        first = chosen == "score-first" and len(values) == 5
        written[file] += words[first : first + len(values) - 1]
    return rows, written, notes


def _drop_track_ids(lines: _Lines, problems: Problems) -> None:
    """Take off the number of a track, which stands last; without one, an odd number of columns lacks the score."""
    odd = [at for at, values in enumerate(lines.values) if len(values) % 2 == 0]
    if not odd:
        return
    tracked = any(lines.values[at][-1] > 1 and lines.values[at][-1].is_integer() for at in odd)
    if tracked:
        for at in odd:
            lines.values[at] = lines.values[at][:-1]
        return
    problems.add("no score", odd, lambda at: InputError(
        f"expected class cx cy w h score, or class x1 y1 x2 y2 ... score, but got {len(lines.values[at]) + 1} numbers",
        file=lines.files[lines.file_of[at]], entry=f"line {lines.lines[at]}",
        remedy=f"{SAVE_CONF} (poses are not read)",
    ))  # fmt: skip
    wrong = set(odd)
    lines.keep([at for at in range(len(lines.values)) if at not in wrong])


def _refuse_tracks_as_scores(lines: _Lines, order: str) -> None:
    """Raise if the last of five numbers is that of a track: ultralytics writes it where no score is asked for."""
    last = [(at, values[-1]) for at, values in enumerate(lines.values) if len(values) == 5]
    if order or not last or not all(value.is_integer() and value >= 1 for _, value in last):
        return
    if all(value == 1 for _, value in last) and len(last) < MANY_ONES:
        return
    at = max(last, key=lambda entry: entry[1])[0]
    raise InputError(
        f"expected a score from 0 to 1, but all lines end in whole numbers, up to {lines.values[at][-1]:g}: tracks",
        file=lines.files[lines.file_of[at]],
        entry=f"line {lines.lines[at]}",
        remedy=f"{SAVE_CONF}; a folder with :score-last or :score-first is read as it stands",
    )


def _chosen_order(
    numbers: npt.NDArray[np.float64], files: npt.NDArray[np.int64], order: str, name: str
) -> tuple[Order, list[Note]]:
    """Return the order of the numbers in lines, and what to say of it unless it was given or is ultralytics'."""
    outside = {known: int((~fitting(numbers, known)).sum()) for known in ORDERS}
    found = find_order(numbers, files)
    most = len(numbers)
    for known in ORDERS:
        if order == known:
            other, words = min(outside.values()), known.replace("-", " ")
            doubt = Note("order-doubtful", outside[known], total=most, order=words, other=other)
            return known, [doubt] if found not in (known, None) or outside[known] > most / 2 else []
    if min(outside.values()) > most / 2:
        raise InputError(
            f"read as class cx cy w h score, {outside['score-last']} of {most} boxes reach outside their images; "
            f"read as class score cx cy w h, {outside['score-first']}",
            file=name,
            remedy=f"write fractions of the image in one of these orders; {name}:score-last reads them all the same",
        )
    if found == "score-first":
        return found, [Note("score-first", outside["score-last"], total=most, file=name)]
    if found == "score-last":
        return found, []
    if not outside["score-last"]:
        return "score-last", [Note("order-unknown", file=name)]
    note = Note("order-unfit", outside["score-last"], total=most, file=name, other=outside["score-first"])
    return "score-last", [note]
