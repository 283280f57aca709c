"""YOLO: labels in fractions of the image size, and predictions with scores in two possible column orders."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.photos import image_size
from probox.files.reading import Source, file_head, is_folder
from probox.formats.format import DetectionFormat, Draft, TruthFormat
from probox.formats.label_files import (
    LineError,
    has_json,
    has_sequences,
    kind_of_texts,
    numbers_in,
    read_text,
    readable_texts,
    rounding_of,
    split_part,
    text_lines,
)
from probox.formats.label_tables import LabelRows, draft_of, truth_of
from probox.formats.problems import Problems
from probox.formats.yolo_places import (
    MOST_CLASSES,
    YAML,
    Places,
    find_places,
    label_file,
    looks_like_data_yaml,
    yaml_in,
)
from probox.notes import Note
from probox.support.formatting import with_count
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import COCO_CATEGORY_IDS, COCO_CLASSES

OVER = 0.01
"""Tolerance for labels outside their image, in fractions of the image; labels are rounded."""


def _category_ids(classes: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """Return category ids as in JSON results: COCO's ids for COCO's classes, otherwise 1, 2, 3, ..."""
    return np.array(COCO_CATEGORY_IDS) if classes == COCO_CLASSES else np.arange(1, len(classes) + 1)


def _read_truth(source: Source, problems: Problems, *, split: str | None = None) -> GroundTruth:
    path, part = split_part(source.path)
    if not _is_data_set(source):
        raise InputError(
            "expected a data.yaml, or folders images and labels, but this contains label files only",
            file=source.name,
            remedy="give data.yaml, or the folder that contains images and labels",
        )
    places = find_places(path, split or part)
    images, sizes = _sizes(places, problems)
    rows, written, notes = _labels(images, sizes, places, problems)
    reach = rounding_of(written)
    classes = places.classes
    if classes is None:
        classes = tuple(f"class {number}" for number in range(max(rows.labels, default=0) + 1))
        called = f"class 0 to class {len(classes) - 1}"
        notes.append(Note("classes-numbered", where=f"nothing names the classes of {source.name}", names=called))
    return truth_of(
        rows,
        [_relative(image, places.root) for image in images],
        sizes,
        problems,
        notes=[*places.notes, *notes],
        rounding=[reach[image] for image in rows.images],
        classes=classes,
        category_ids=_category_ids(classes),
        source=source.name,
    )


def _relative(image: str, root: Path) -> str:
    try:
        return Path(os.path.abspath(image)).relative_to(os.path.abspath(root)).as_posix()
    except ValueError:
        return Path(image).as_posix()


def _sizes(places: Places, problems: Problems) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the images with a readable size, and the sizes."""
    images, sizes = [], []
    for image in places.images:
        try:
            sizes.append(image_size(image, remedy="put the image there, or take it off the list"))
        except InputError as error:
            problems.catch(error, "unusable image")
            continue
        images.append(image)
    return images, sizes


def _labels(
    images: list[str], sizes: list[tuple[int, int]], places: Places, problems: Problems
) -> tuple[LabelRows, list[list[str]], list[Note]]:
    """Return the objects of all images, each image's numbers as written, and notes."""
    rows = LabelRows()
    written: list[list[str]] = [[] for _ in images]
    known: dict[str, dict[str, str]] = {}
    used: dict[str, set[str]] = {}
    copies = missing = 0
    for at, image in enumerate(images):
        file = label_file(image)
        folder, name = os.path.split(file)
        if folder not in known:
            known[folder] = _text_files(folder)
        used.setdefault(folder, set()).add(name)
        if name not in known[folder]:
            missing += 1
            continue
        file = os.path.join(folder, known[folder][name])
        try:
            copies += _read_labels(file, at, sizes[at], places, rows, written[at], problems)
        except InputError as error:
            problems.catch(error, "unusable file")
    if images and missing == len(images):
        raise InputError(
            f"none of the {len(images)} images has a label file: for example, {label_file(images[0])} is missing",
            file=images[0],
            remedy="keep labels beside images: images/val/7.jpg, labels/val/7.txt",
        )
    orphans = sum(len(set(names) - {"classes.txt"} - used[folder]) for folder, names in known.items())
    notes = [Note("labels-missing", missing, total=len(images))] if missing else []
    counts = {"repeated-lines": copies, "labels-of-no-image": orphans}
    notes += [Note(code, count) for code, count in counts.items() if count]
    if places.keypoints:
        notes.append(Note("keypoints-not-read"))
    return rows, written, notes


def _text_files(folder: str) -> dict[str, str]:
    """Return the text files of a folder, keyed by name with the ending in lower case."""
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in entries if entry.name.lower().endswith(".txt")]
    except OSError:
        return {}
    return {f"{name[:-4]}.txt": name for name in sorted(names)}  # 7.txt replaces 7.TXT


def _read_labels(
    file: str,
    image: int,
    size: tuple[int, int],
    places: Places,
    rows: LabelRows,
    written: list[str],
    problems: Problems,
) -> int:
    """Add the objects of one image, and their numbers as written; return the count of repeated lines."""
    seen: set[tuple[str, ...]] = set()
    copies = 0
    for line, words in text_lines(read_text(file)):
        if tuple(words) in seen:
            copies += 1
            continue
        seen.add(tuple(words))
        try:
            number = class_number(words[0], None if places.classes is None else len(places.classes))
            numbers = words[1:5] if places.keypoints else words[1:]
            values = _fractions(numbers)
        except LineError as error:
            problems.catch(error.at(file, line), error.kind)
            continue
        if len(values) == 4:
            width, height = values[2] * size[0], values[3] * size[1]
            box = (values[0] * size[0] - width / 2, values[1] * size[1] - height / 2, width, height)
        else:
            points = np.array(values).reshape(-1, 2) * size
            low, high = points.min(axis=0), points.max(axis=0)
            box = (float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1]))
            rows.polygons[len(rows.boxes)] = points.reshape(-1)
        written += numbers
        rows.add(file, line, box, image=image, label=number)
    return copies


def class_number(word: str, classes: int | None) -> int:
    """Return the class at the start of a line, or raise `LineError`; `classes` is None if their number is unknown."""
    try:
        value = float(word)
        number = int(value)
    except (ValueError, OverflowError):
        value, number = -1.0, -1
    most = MOST_CLASSES if classes is None else classes
    if number != value or number < 0:
        raise LineError("class", f"expected the number of a class first, but got {word[:40]!r}", "count classes from 0")
    if number >= most:
        raise LineError(
            "class",
            f"class {number} is not among the {most} classes, 0 to {most - 1}",
            "name all classes in data.yaml, in the detector's order",
        )
    return number


def _fractions(words: list[str]) -> list[float]:
    """Return the numbers of a box (4) or polygon (6 or more), or raise `LineError`."""
    values = numbers_in(words)
    if len(values) == 5:
        raise LineError(
            "broken line",
            "expected class cx cy w h, but got one number more",
            "this looks like predictions: name the ground truth first, then the detections",
        )
    if len(values) != 4 and (len(values) < 6 or len(values) % 2):
        raise LineError(
            "broken line",
            f"expected class and 4 numbers (cx cy w h) or 6 and more (x1 y1 x2 y2 ...), but got {len(values)}",
            "correct the line; labels with keypoints need kpt_shape in data.yaml",
        )
    if max(values) > 1 + OVER or min(values) < -OVER:
        worst = max(values, key=lambda value: abs(value - 0.5))
        raise LineError(
            "label outside the image",
            f"expected fractions of the image, from 0 to 1, but got {worst:g}",
            "divide pixels by the image's width and height" if worst > 1 else "correct the label",
        )
    if len(values) == 4 and (values[2] < 0 or values[3] < 0):
        raise LineError("inverted box", "expected w and h of at least 0", "write class cx cy w h")
    return values


Order = Literal["score-last", "score-first"]
ORDERS: tuple[Order, ...] = get_args(Order)

ROUNDING = 2e-3
"""Tolerance for boxes outside their image due to rounding, in fractions of the image."""

CLEARLY = 4
"""Minimum ratio of the lines that fit one order only to those that fit the other only."""

FIRST, LAST = 0.15, 0.1
"""Minimum fraction of lines that fit one order only, for each order. If the score is first, about a third or more do,
unless all scores are near 0.5. Boxes outside their images are far rarer, so they do not decide."""

MANY = 5
"""Minimum number of lines to conclude that the score comes first, which ultralytics does not write."""

STEPS = 10
"""Minimum number of steps, all downward, to identify the score column; less than 0.1% probability by chance."""

Numbers = npt.NDArray[np.float64]


def in_order(numbers: Numbers, order: Order) -> tuple[Numbers, Numbers]:
    """Return boxes cx, cy, w, h and scores from the (N, 5) numbers after the class.

    >>> in_order(np.array([[0.9, 0.5, 0.5, 0.1, 0.2]]), "score-first")[1].tolist()
    [0.9]
    """
    if order == "score-first":
        return numbers[:, 1:], numbers[:, 0]
    return numbers[:, :4], numbers[:, 4]


def fitting(numbers: Numbers, order: Order) -> npt.NDArray[np.bool_]:
    """Return which lines, read in this order, have a box inside the image and a score in [0, 1]."""
    boxes, scores = in_order(numbers, order)
    low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
    inside = (low >= -ROUNDING).all(axis=1) & (high <= 1 + ROUNDING).all(axis=1)
    return np.asarray(inside & (boxes[:, 2:] >= 0).all(axis=1) & (scores >= 0) & (scores <= 1))


def find_order(numbers: Numbers, files: npt.NDArray[np.int64]) -> Order | None:
    """Return the order of the numbers after the class, or None if it is ambiguous.

    Read in the wrong order, many boxes reach outside their image. So lines that fit one order only decide, if there
    are many of them and nearly all agree; single boxes outside their image do not. Otherwise the column that falls
    from line to line in every file is the score, because detectors write detections by descending score.

    Parameters
    ----------
    numbers : (N, 5) array
        Lines of all files.
    files : (N,) array
        File of each line; lines of a file are contiguous.
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
"""Boxes that reach further outside than this, in fractions of the image, are not in fractions."""

MANY_ONES = 10
"""Scores of exactly 1, in so many lines and no others, are track numbers: each file has one track."""

SAVE_CONF = "run the detector with save_txt=True save_conf=True"


def folder_of_predictions(folder: Path) -> Path:
    """Return the folder of the text files: the folder itself, or ``labels`` in the folder of a run."""
    inside = folder / "labels"
    return inside if inside.is_dir() and not any(folder.glob("*.txt")) else folder


@dataclasses.dataclass
class _Line:
    """A line: numbers of its file and of itself, its class, and the numbers after the class, as text and values."""

    file: int
    number: int
    label: int
    words: list[str]
    values: list[float]


class _LabelLines:
    """The lines of all files of a folder."""

    def __init__(self, folder: Path, classes: int | None, problems: Problems) -> None:
        self.names: list[str] = []
        self.files: list[str] = []
        self.lines: list[_Line] = []
        for name, file, text in readable_texts(folder, _text_files_below(folder), problems):
            self.names.append(name.removesuffix(".txt"))
            self.files.append(file)
            for line, words in text_lines(text):
                try:
                    label, values = class_number(words[0], classes), numbers_in(words[1:])
                    self._check(values)
                except LineError as error:
                    problems.catch(error.at(file, line), error.kind)
                    continue
                self.lines.append(_Line(len(self.names) - 1, line, label, words[1:], values))

    def place(self, line: _Line) -> dict[str, str]:
        """Return the file and the entry of a line, for messages."""
        return {"file": self.files[line.file], "entry": f"line {line.number}"}

    @staticmethod
    def _check(values: list[float]) -> None:
        if len(values) == 4:
            raise LineError("no score", "expected a score beside class cx cy w h, but it is missing", SAVE_CONF)
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


def _gather(
    source: Source, classes: int | None, order: str, problems: Problems
) -> tuple[LabelRows, list[str], list[list[str]], list[Note]]:
    """Return boxes cx, cy, w, h with scores, names of images, each file's box numbers as written, and notes."""
    folder, _ = split_part(source.path)
    lines = _LabelLines(folder_of_predictions(folder), classes, problems)
    _drop_track_ids(lines, problems)
    _refuse_tracks_as_scores(lines, order)
    numbers = np.array([line.values if len(line.values) == 5 else [0.0] * 5 for line in lines.lines]).reshape(-1, 5)
    plain = np.array([len(line.values) == 5 for line in lines.lines], bool)
    chosen: Order = "score-last"
    notes: list[Note] = []
    if plain.any():
        files = np.array([line.file for line in lines.lines])
        chosen, notes = _chosen_order(numbers[plain], files[plain], order, source.name)
    centres, scores = in_order(numbers, chosen)
    for at in np.flatnonzero(~plain).tolist():
        *points, scores[at] = lines.lines[at].values
        corners = np.array(points).reshape(-1, 2)
        low, high = corners.min(axis=0), corners.max(axis=0)
        centres[at] = [*((low + high) / 2), *(high - low)]
    polygons = int((~plain).sum())
    if polygons:
        notes.append(Note("polygons", polygons))
    rows = LabelRows()
    written: list[list[str]] = [[] for _ in lines.names]
    for line, box, score in zip(lines.lines, centres.tolist(), scores.tolist(), strict=True):
        rows.add(lines.files[line.file], line.number, box, image=line.file, label=line.label, score=score)
        first = chosen == "score-first" and len(line.values) == 5
        written[line.file] += line.words[first : first + len(line.values) - 1]
    return rows, lines.names, written, notes


def _drop_track_ids(lines: _LabelLines, problems: Problems) -> None:
    """Remove the track number, which stands last. An even number of values without it means a missing score."""
    without_score = [line for line in lines.lines if len(line.values) % 2 == 0]
    if any(line.values[-1] > 1 and line.values[-1].is_integer() for line in without_score):
        for line in without_score:
            line.values = line.values[:-1]
        return
    problems.add("no score", range(len(without_score)), lambda at: InputError(
        f"expected class cx cy w h score, or class x1 y1 x2 y2 ... score, "
        f"but got {len(without_score[at].values) + 1} numbers",
        **lines.place(without_score[at]), remedy=f"{SAVE_CONF} (poses are not read)",
    ))  # fmt: skip
    lines.lines = [line for line in lines.lines if len(line.values) % 2]


def _refuse_tracks_as_scores(lines: _LabelLines, order: str) -> None:
    """Raise if the last of five numbers is a track number: ultralytics writes it if scores were not requested."""
    last = [line.values[-1] for line in lines.lines if len(line.values) == 5]
    if order or not last or not all(value.is_integer() and value >= 1 for value in last):
        return
    if all(value == 1 for value in last) and len(last) < MANY_ONES:
        return
    most = max((line for line in lines.lines if len(line.values) == 5), key=lambda line: line.values[-1])
    raise InputError(
        f"expected a score from 0 to 1, but all lines end in whole numbers, up to {most.values[-1]:g}: tracks",
        **lines.place(most),
        remedy=f"{SAVE_CONF}; a folder with :score-last or :score-first is read without this check",
    )


def _chosen_order(
    numbers: npt.NDArray[np.float64], files: npt.NDArray[np.int64], order: str, name: str
) -> tuple[Order, list[Note]]:
    """Return the order of the numbers in lines, and notes unless it was given or is ultralytics' own."""
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
            f"expected boxes within images, but with the score in the last column {outside['score-last']} of "
            f"{with_count(most, 'box')} {'exceeds its image' if most == 1 else 'exceed their images'}; with the score "
            f"second, {outside['score-first']}",
            file=name,
            remedy=f"write fractions of the image in one of these orders; {name}:score-last skips this check",
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
"""Number of folders inspected in a folder."""


def _is_data_set(source: Source) -> bool:
    """Return whether this is a data.yaml, or the folder of a dataset."""
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
        return True  # several data.yaml files: the reader reports them


def _sniff_truth(source: Source) -> bool:
    if _is_data_set(source):
        return True
    place, _ = split_part(source.path)
    return kind_of_texts(place) == "yolo" and not has_sequences(place)  # labels without images: the reader reports them


def _sniff_predictions(source: Source) -> bool:
    place, _ = split_part(source.path)
    if not is_folder(place):
        return _is_data_set(source)  # a dataset, not predictions: the reader reports it
    if has_sequences(place):
        return False
    kind = kind_of_texts(folder_of_predictions(place))
    if kind == "none" and not _is_data_set(source):
        kinds = [kind_of_texts(entry) for entry in sorted(folder_of_predictions(place).iterdir())[:_LOOKED_AT]]
        kind = "yolo" if "yolo" in kinds else kind  # one folder of predictions per folder of images
    if kind == "yolo":
        return True
    if kind == "other":
        return not has_json(place)
    empty = kind == "none" and place.name == "labels" and not any(place.iterdir())  # of a detector without detections
    return empty or (kind == "none" and _is_data_set(source))


def _read_predictions(source: Source, dataset: Dataset, problems: Problems, *, order: Order | None = None) -> Draft:
    _refuse_data_set(source)
    if order is not None and order not in ORDERS:
        raise InputError(f"expected order to be one of {', '.join(ORDERS)}, but got {order!r:.40}")
    folder, word = split_part(source.path)
    if not order and word and word not in ORDERS:
        raise InputError(
            f"expected one of {', '.join(ORDERS)} after the colon, but got {word!r}",
            file=str(folder),
            remedy="use one",
        )
    classes = dataset.classes
    rows, names, written, notes = _gather(source, len(classes), order or word, problems)
    reach = rounding_of(written)
    rounding = [reach[file] for file in rows.images]
    notes += rows.match_images(names, dataset, source.name, problems)
    if not np.array_equal(dataset.category_ids, _category_ids(classes)) and len(rows.boxes):
        first, *_, last = classes * 2
        notes.append(Note("class-numbers", first=first, last=len(classes) - 1, name=last))
    boxes = np.array(rows.boxes).reshape(-1, 4) * np.tile(rows.shapes(dataset.shapes), 2)
    rows.boxes = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]], axis=1)
    return draft_of(rows, dataset, problems, classes=classes, source=source.name, notes=notes, rounding=rounding)


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
    _gather(source, None, "", Problems())


YOLO_TRUTH = TruthFormat(name="yolo", title="YOLO data.yaml", sniff=_sniff_truth, read=_read_truth, options=("split",))

YOLO_DETECTIONS = DetectionFormat(
    name="yolo",
    title="YOLO predictions",
    sniff=_sniff_predictions,
    read=_read_predictions,
    check=_check,
    options=("order",),
)
