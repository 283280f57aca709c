"""KITTI: text files of labels and of detections, one per image."""

from __future__ import annotations

import os
from pathlib import Path

from probox.errors import InputError
from probox.files.photos import image_size
from probox.files.reading import Source, is_folder
from probox.formats.format import DetectionFormat, Draft, TruthFormat
from probox.formats.label_files import (
    LineError,
    files_of,
    has_sequences,
    kind_of_texts,
    numbers_in,
    readable_texts,
    text_lines,
)
from probox.formats.label_tables import LabelRows, draft_of, truth_of
from probox.formats.problems import Problems
from probox.notes import Note
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth

COLUMNS = 15
"""Type, truncated, occluded, alpha, x1, y1, x2, y2, 3 dimensions, 3 coordinates, rotation; then the score."""

DONT_CARE = "DontCare"
PHOTOS = (".png", ".jpg", ".jpeg")


def _labels_of(folder: Path) -> Path | None:
    """Return the folder of label files: ``label_2`` in a folder or in its ``training``, or itself; None if missing."""
    for place in (folder / "label_2", folder / "training" / "label_2", folder):
        if kind_of_texts(place) == "kitti" or (place.name == "label_2" and kind_of_texts(place) == "yolo"):
            return place  # if all files are empty, their format is unknown
    return None


def _gather(folder: Path, problems: Problems, *, scored: bool) -> tuple[LabelRows, list[str]]:
    """Return all lines, and the names of all files, to which image numbers refer."""
    rows, files = LabelRows(), list[str]()
    for name, file, text in readable_texts(folder, files_of(folder, [".txt"]), problems):
        files.append(name[:-4])
        for line, words in text_lines(text):
            try:
                values = _numbers(words, scored=scored)
            except LineError as error:
                problems.catch(error.at(file, line), error.kind)
                continue
            x1, y1, x2, y2 = values[3:7]
            rows.add(file, line, (x1, y1, x2 - x1, y2 - y1), image=len(files) - 1, name=words[0], score=values[-1])
    return rows, files


def _numbers(words: list[str], *, scored: bool) -> list[float]:
    wanted = COLUMNS + scored
    if len(words) != wanted:
        remedy = "write type, truncated, occluded, alpha, x1 y1 x2 y2, 7 numbers"
        if len(words) == COLUMNS:
            remedy = "write the score last, in column 16"
        elif len(words) == COLUMNS + 1:
            remedy = "these look like detections: name the ground truth first, then the detections"
        elif len(words) in (COLUMNS + 2, COLUMNS + 3):
            remedy = "these look like KITTI's tracks: write one file for each image"
        raise LineError("broken line", f"expected {wanted} columns, but got {len(words)}", remedy)
    values = numbers_in(words[1:])
    if values[5] < values[3] or values[6] < values[4]:
        raise LineError(
            "inverted box", f"expected x1 <= x2 and y1 <= y2, but got {' '.join(words[4:8])}", "correct the box"
        )
    return values


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    place = _labels_of(Path(source.path))
    if place is None:
        raise InputError(
            "expected label files with 15 columns",
            file=source.name,
            remedy="give the folder label_2, or the folder that contains it",
        )
    rows, files = _gather(place, problems, scored=False)
    images, sizes = _images(place, files, problems)
    number = {at: image for image, at in enumerate(images)}
    classes = sorted({name for name in rows.classes if name != DONT_CARE})
    objects, regions = LabelRows(), 0
    for at, name in enumerate(rows.classes):
        ignored, image = name == DONT_CARE, number.get(rows.images[at], -1)
        regions += ignored and image >= 0
        for label in range(len(classes)) if ignored else [classes.index(name)]:  # a region is one of each class
            if ignored:
                objects.regions.add(len(objects.boxes))
            objects.add(rows.files[at], rows.lines[at], rows.boxes[at], image=image, label=label, crowd=ignored)
    notes = [Note("regions-not-labelled", regions)] if regions else []
    names = list(images.values())
    return truth_of(objects, names, sizes, problems, notes=notes, classes=tuple(classes), source=source.name)


def _images(place: Path, files: list[str], problems: Problems) -> tuple[dict[int, str], list[tuple[int, int]]]:
    """Return file names of the existing images, by index of the label file, and their sizes."""
    folder = place.parent / "image_2"
    if not is_folder(folder):
        raise InputError(
            f"expected images beside the labels, for their sizes: {folder} is missing",
            file=str(place),
            remedy="put the images there, or write COCO ground truth, which contains the sizes",
        )
    there = {os.path.splitext(name)[0]: name for name in files_of(folder, PHOTOS)}
    names, sizes = dict[int, str](), list[tuple[int, int]]()
    for at, stem in enumerate(files):
        try:
            if stem not in there:
                raise InputError(
                    "has labels, but no image", file=str(folder / f"{stem}.png"), remedy="put the image there"
                )
            sizes.append(image_size(folder / there[stem]))
        except InputError as error:
            problems.catch(error, "unusable image")
            continue
        names[at] = f"image_2/{there[stem]}"
    return names, sizes


def _sniff_truth(source: Source) -> bool:
    place = Path(source.path)
    return is_folder(place) and not has_sequences(place) and _labels_of(place) is not None


def _folder(source: Source) -> Path:
    """Return the folder of detections: the folder itself, or ``data`` in it, as the benchmark requires."""
    place = Path(source.path)
    return place / "data" if kind_of_texts(place) == "none" and kind_of_texts(place / "data") == "kitti" else place


def _sniff_detections(source: Source) -> bool:
    return kind_of_texts(_folder(source)) == "kitti" or _sniff_truth(source)  # ground truth: reader raises


def _gather_detections(source: Source, problems: Problems) -> tuple[LabelRows, list[str]]:
    folder = _folder(source)
    if kind_of_texts(folder) != "kitti":
        raise InputError(
            "expected detections, but these are KITTI's labels",
            file=source.name,
            remedy="name the ground truth first, then the detections",
        )
    return _gather(folder, problems, scored=True)


def _read_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    rows, files = _gather_detections(source, problems)
    classes = rows.match_classes(dataset.classes)
    notes = rows.match_images(files, dataset, source.name, problems)
    return draft_of(rows, dataset, problems, classes=classes, source=source.name, notes=notes)


KITTI_TRUTH = TruthFormat(name="kitti", title="KITTI labels", sniff=_sniff_truth, read=_read_truth)

KITTI_DETECTIONS = DetectionFormat(
    name="kitti",
    title="KITTI detections",
    sniff=_sniff_detections,
    read=_read_detections,
    check=lambda source: _gather_detections(source, Problems()),
)
