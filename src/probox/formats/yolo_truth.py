"""YOLO ground truth: labels in fractions of their images."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from probox.errors import InputError
from probox.files.photos import image_size
from probox.formats.label_files import LineError, numbers_in, read_text, rounding_of, text_lines
from probox.formats.label_tables import LabelRows, dataset_of_images, truth_of
from probox.formats.problems import Problems
from probox.formats.yolo_places import MOST_CLASSES, Places, find_places, label_file
from probox.notes import Note
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import COCO_CATEGORY_IDS, COCO_CLASSES

OVER = 0.01
"""How far a label may reach outside its image, in fractions of it: labels are rounded."""


def yolo_truth(path: Path, part: str, name: str, problems: Problems) -> GroundTruth:
    """Return the table of a part of a data set."""
    places = find_places(path, part)
    images, sizes = _sizes(places, problems)
    names = [_relative(image, places.root) for image in images]
    rows, written, notes = _labels(images, sizes, places, problems)
    reach = rounding_of(written)
    rounding = [reach[image] for image in rows.images]
    classes = places.classes
    if classes is None:
        classes = tuple(f"class {number}" for number in range(max(rows.labels, default=0) + 1))
        called = f"class 0 to class {len(classes) - 1}"
        notes.append(Note("classes-numbered", where=f"nothing names the classes of {name}", names=called))
    dataset, row_of = dataset_of_images(
        [os.path.splitext(os.path.basename(image))[0] for image in images],
        names,
        sizes,
        classes=classes,
        # As results in JSON have them: COCO's own numbers for COCO's classes, others counted from 1.
        category_ids=np.array(COCO_CATEGORY_IDS) if classes == COCO_CLASSES else np.arange(1, len(classes) + 1),
        source=name,
    )
    rows.images = row_of[rows.images].tolist() if rows.images else []
    return truth_of(rows, dataset, problems, [*places.notes, *notes], rounding=rounding)


def _relative(image: str, root: Path) -> str:
    try:
        return Path(os.path.abspath(image)).relative_to(os.path.abspath(root)).as_posix()
    except ValueError:
        return Path(image).as_posix()


def _sizes(places: Places, problems: Problems) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the images whose size can be read, and the sizes."""
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
    """Return the objects of all images, the numbers of each image as they are written, and what to say of them."""
    rows, notes = LabelRows(), list[Note]()
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
            f"none of the {len(images)} images has a label file: {label_file(images[0])} is not there, for one",
            file=images[0],
            remedy="keep labels beside images: images/val/7.jpg, labels/val/7.txt",
        )
    orphans = sum(len(set(names) - {"classes.txt"} - used[folder]) for folder, names in known.items())
    if missing:
        notes.append(Note("labels-missing", missing, total=len(images)))
    if copies:
        notes.append(Note("repeated-lines", copies))
    if orphans:
        notes.append(Note("labels-of-no-image", orphans))
    if places.keypoints:
        notes.append(Note("keypoints-not-read"))
    return rows, written, notes


def _text_files(folder: str) -> dict[str, str]:
    """Return the text files of a folder by their names with the ending in small letters."""
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in entries if entry.name.lower().endswith(".txt")]
    except OSError:
        return {}
    return {f"{name[:-4]}.txt": name for name in sorted(names)}  # of 7.TXT and 7.txt the latter


def _read_labels(
    file: str,
    image: int,
    size: tuple[int, int],
    places: Places,
    rows: LabelRows,
    written: list[str],
    problems: Problems,
) -> int:
    """Add the objects of one image, and their numbers as they are written; return how many lines stand there twice."""
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
        rows.files.append(file)
        rows.lines.append(line)
        rows.images.append(image)
        rows.labels.append(number)
        rows.boxes.append(box)
    return copies


def class_number(word: str, classes: int | None) -> int:
    """Return the class that begins a line, or raise `LineError`; None if nobody knows how many there are."""
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
