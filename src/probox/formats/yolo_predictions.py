"""YOLO predictions: a text file per image, and the order of the numbers in its lines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.reading import Source, file_head, is_folder
from probox.formats.format import DetectionFormat, Draft, TruthFormat
from probox.formats.label_files import (
    LineError,
    has_json,
    has_sequences,
    kind_of_texts,
    numbers_in,
    readable_texts,
    rounding_of,
    split_part,
    text_lines,
)
from probox.formats.label_tables import LabelRows, draft_of, rows_of_images
from probox.formats.problems import Problems
from probox.formats.yolo_places import YAML, looks_like_data_yaml, yaml_in
from probox.formats.yolo_truth import class_number, yolo_truth
from probox.notes import Note
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import COCO_CATEGORY_IDS, COCO_CLASSES

Order = Literal["score-last", "score-first"]
ORDERS: tuple[Order, ...] = get_args(Order)

ROUNDING = 2e-3
"""How far a box may reach outside its image, in fractions of it, by rounding alone."""

CLEARLY = 4
"""An order is told if so many times more lines fit in it alone than in the other alone."""

FIRST, LAST = 0.15, 0.1
"""And if such lines are more than this share of all. They are about a third and more where the score is first, unless
all scores are about 0.5; boxes that lie outside their images are far fewer, and so decide nothing."""

MANY = 5
"""So many lines at least tell that the score is first, as ultralytics does not write."""

STEPS = 10
"""So many steps from line to line, all of them down, tell a score: other columns do not fall so often by chance."""

Numbers = npt.NDArray[np.float64]


def in_order(numbers: Numbers, order: Order) -> tuple[Numbers, Numbers]:
    """Return boxes cx, cy, w, h and scores of (N, 5) numbers that stand behind a class.

    >>> in_order(np.array([[0.9, 0.5, 0.5, 0.1, 0.2]]), "score-first")[1].tolist()
    [0.9]
    """
    if order == "score-first":
        return numbers[:, 1:], numbers[:, 0]
    return numbers[:, :4], numbers[:, 4]


def fitting(numbers: Numbers, order: Order) -> npt.NDArray[np.bool_]:
    """Return which lines, read in this order, have a box that lies in its image and a score from 0 to 1."""
    boxes, scores = in_order(numbers, order)
    low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
    inside = (low >= -ROUNDING).all(axis=1) & (high <= 1 + ROUNDING).all(axis=1)
    return np.asarray(inside & (boxes[:, 2:] >= 0).all(axis=1) & (scores >= 0) & (scores <= 1))


def find_order(numbers: Numbers, files: npt.NDArray[np.int64]) -> Order | None:
    """Return the order of the numbers behind the class, or None if they do not tell.

    A detector's boxes lie in their images; read in the wrong order many do not. So the lines that fit in one order
    alone tell, if they are many and nearly all agree: single boxes outside their images do not. Where they do not
    tell, the column that falls from line to line in every file is the score, as detectors write their surest first.

    Parameters
    ----------
    numbers : (N, 5) array
        All lines of all files.
    files : (N,) array
        The file of each line; lines of a file stand together.
    """
    fits_last, fits_first = (fitting(numbers, order) for order in ORDERS)
    last, first = int((fits_last & ~fits_first).sum()), int((fits_first & ~fits_last).sum())
    if last > LAST * len(numbers) and last >= CLEARLY * first:
        return "score-last"
    if first > FIRST * len(numbers) and first >= CLEARLY * last and first >= MANY:
        return "score-first"
    same = files[1:] == files[:-1]
    if same.sum() >= STEPS:
        falls_last, falls_first = (bool((np.diff(numbers[:, column])[same] <= 0).all()) for column in (4, 0))
        if falls_last and not falls_first:
            return "score-last"
        if falls_first and not falls_last and first >= last:
            return "score-first"
    return None


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
    lines = _LabelLines(folder_of_predictions(folder), None, Problems())
    _boxes(lines, "", name, Problems())


def yolo_predictions(folder: Path, order: str, name: str, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of a folder of predictions; `order` is empty where the boxes are to tell."""
    if order and order not in get_args(Order):
        raise InputError(
            f"expected one of {', '.join(ORDERS)} behind the colon, but got {order!r}",
            file=str(folder),
            remedy="use one",
        )
    lines = _LabelLines(folder_of_predictions(folder), len(dataset.classes), problems)
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


class _LabelLines:
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


def _boxes(
    lines: _LabelLines, order: str, name: str, problems: Problems
) -> tuple[LabelRows, list[list[str]], list[Note]]:
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


def _drop_track_ids(lines: _LabelLines, problems: Problems) -> None:
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


def _refuse_tracks_as_scores(lines: _LabelLines, order: str) -> None:
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


_LOOKED_AT = 20
"""So many folders in a folder are looked into."""


def _is_data_set(source: Source) -> bool:
    """Return whether this is a data.yaml, or a folder of a data set."""
    place, _ = split_part(source.path)
    if not is_folder(place):
        named = place.suffix.lower() in YAML and place.is_file()
        return named or looks_like_data_yaml(source.head if place == Path(source.path) else file_head(place))
    if has_sequences(place):
        return False
    if (place / "images").is_dir() and (place / "labels").is_dir():
        return True
    try:
        return yaml_in(place) is not None
    except InputError:
        return True  # several, which the reader says


def _sniff_truth(source: Source) -> bool:
    if _is_data_set(source):
        return True
    place, _ = split_part(source.path)
    return kind_of_texts(place) == "yolo" and not has_sequences(place)  # labels alone, which the reader says


def _read_truth(source: Source, problems: Problems, *, split: str | None = None) -> GroundTruth:
    place, part = split_part(source.path)
    if not _is_data_set(source):
        raise InputError(
            "expected a data.yaml, or folders images and labels, but this is a folder of label files alone",
            file=source.name,
            remedy="give data.yaml, or the folder that holds images and labels",
        )
    return yolo_truth(place, split or part, source.name, problems)


def _sniff_predictions(source: Source) -> bool:
    place, _ = split_part(source.path)
    if not is_folder(place):
        return _is_data_set(source)  # which is none, as its reader says
    if has_sequences(place):
        return False
    kind = kind_of_texts(folder_of_predictions(place))
    if kind == "none" and not _is_data_set(source):
        kinds = [kind_of_texts(entry) for entry in sorted(folder_of_predictions(place).iterdir())[:_LOOKED_AT]]
        kind = "yolo" if "yolo" in kinds else kind  # a folder of predictions for each folder of images
    if kind == "yolo":
        return True
    if kind == "other":
        return not has_json(place)
    empty = kind == "none" and place.name == "labels" and not any(place.iterdir())  # of a detector that found nothing
    return empty or (kind == "none" and _is_data_set(source))


def _read_predictions(source: Source, dataset: Dataset, problems: Problems, *, order: Order | None = None) -> Draft:
    _refuse_data_set(source)
    if order is not None and order not in ORDERS:
        raise InputError(f"expected order to be one of {', '.join(ORDERS)}, but got {order!r:.40}")
    place, word = split_part(source.path)
    return yolo_predictions(place, order or word, source.name, dataset, problems)


def _refuse_data_set(source: Source) -> None:
    place, _ = split_part(source.path)
    if not is_folder(place) or ((place / "images").is_dir() and _is_data_set(source)):
        raise InputError(
            "expected a folder of predictions, but this is a data set",
            file=source.name,
            remedy="name the ground truth first, then the detections: data.yaml runs/detect/predict/labels",
        )


def _check(source: Source) -> None:
    _refuse_data_set(source)
    check_predictions(split_part(source.path)[0], source.name)


YOLO_TRUTH = TruthFormat(name="yolo", title="YOLO data.yaml", sniff=_sniff_truth, read=_read_truth, options=("split",))

YOLO_DETECTIONS = DetectionFormat(
    name="yolo",
    title="YOLO predictions",
    sniff=_sniff_predictions,
    read=_read_predictions,
    check=_check,
    options=("order",),
)
