"""KITTI: text files of labels and of detections, one per image."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

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
from probox.formats.label_tables import (
    LabelRows,
    columns_of_names,
    dataset_of_images,
    draft_of,
    rows_of_images,
    truth_of,
)
from probox.formats.problems import Problems
from probox.notes import Note
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth

COLUMNS = 15
"""Type, truncated, occluded, alpha, x1, y1, x2, y2, three sizes, three places and a rotation; then a score."""

DONT_CARE = "DontCare"
PHOTOS = (".png", ".jpg", ".jpeg")


def labels_of(folder: Path) -> Path | None:
    """Return the folder of label files: ``label_2`` in a folder or in its ``training``, or itself; None for none."""
    for place in (folder / "label_2", folder / "training" / "label_2", folder):
        if kind_of_texts(place) == "kitti" or (place.name == "label_2" and kind_of_texts(place) == "yolo"):
            return place  # files that are all empty could be anybody's
    return None


def _gather(folder: Path, problems: Problems, *, scored: bool) -> tuple[LabelRows, list[str], list[str], list[int]]:
    """Return all lines with their types, the names of all files, and the file of each line."""
    rows, types, files, file_of = LabelRows(), list[str](), list[str](), list[int]()
    for name, file, text in readable_texts(folder, files_of(folder, [".txt"]), problems):
        files.append(name[:-4])
        for line, words in text_lines(text):
            try:
                values = _numbers(words, scored=scored)
            except LineError as error:
                problems.catch(error.at(file, line), error.kind)
                continue
            x1, y1, x2, y2 = values[3:7]
            rows.files.append(file)
            rows.lines.append(line)
            rows.boxes.append((x1, y1, x2 - x1, y2 - y1))
            if scored:
                rows.scores.append(values[-1])
            types.append(words[0])
            file_of.append(len(files) - 1)
    return rows, types, files, file_of


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


def kitti_truth(folder: Path, name: str, problems: Problems) -> GroundTruth:
    """Return the table of a folder of labels."""
    place = labels_of(folder)
    if place is None:
        raise InputError(
            "expected label files with 15 columns",
            file=name,
            remedy="give the folder label_2, or the one that holds it",
        )
    rows, types, files, file_of = _gather(place, problems, scored=False)
    names, sizes, known = _images(place, files, problems)
    classes = sorted({entry for entry in types if entry != DONT_CARE})
    dataset, rows_of_known = dataset_of_images(
        [files[at] for at in known], names, sizes, classes=tuple(classes), source=name
    )
    row_of = np.full(len(files), -1)
    row_of[known] = rows_of_known
    gathered, regions = _objects(rows, types, row_of[file_of].tolist() if file_of else [], classes)
    notes = []
    if regions:
        notes.append(Note("regions-not-labelled", regions))
    return truth_of(gathered, dataset, problems, notes)


def _objects(rows: LabelRows, types: list[str], images: list[int], classes: list[str]) -> tuple[LabelRows, int]:
    """Return the objects, with a region of each class for every DontCare, and how many of these there are."""
    result, regions = LabelRows(), 0
    for at, entry in enumerate(types):
        if images[at] < 0:
            continue
        ignored = entry == DONT_CARE
        regions += ignored
        for label in range(len(classes)) if ignored else [classes.index(entry)]:
            if ignored:
                result.regions.add(len(result.boxes))
            result.files.append(rows.files[at])
            result.lines.append(rows.lines[at])
            result.images.append(images[at])
            result.labels.append(label)
            result.boxes.append(rows.boxes[at])
            result.crowd.append(ignored)
    return result, regions


def _images(place: Path, files: list[str], problems: Problems) -> tuple[list[str], list[tuple[int, int]], list[int]]:
    """Return file names and sizes of the images that are there, and which of the label files they belong to."""
    folder = place.parent / "image_2"
    if not is_folder(folder):
        raise InputError(
            f"expected images beside the labels, for their sizes: {folder} is not there",
            file=str(place),
            remedy="put the images there, or write COCO ground truth, which says sizes itself",
        )
    there = {os.path.splitext(name)[0]: name for name in files_of(folder, PHOTOS)}
    names, sizes, known = [], [], []
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
        names.append(f"image_2/{there[stem]}")
        known.append(at)
    return names, sizes, known


def check_kitti(folder: Path) -> None:
    """Raise if lines of a folder of detections are none."""
    _gather(folder, Problems(), scored=True)


def kitti_detections(folder: Path, name: str, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of a folder of detections."""
    rows, types, files, file_of = _gather(folder, problems, scored=True)
    columns, classes = columns_of_names(list(dict.fromkeys(types)), dataset.classes)
    rows.labels = [columns[entry] for entry in types]
    counts = np.bincount(file_of, minlength=len(files)).tolist() if file_of else [0] * len(files)
    image_rows, notes = rows_of_images(files, counts, dataset, name, problems)
    rows.images = image_rows[file_of].tolist() if file_of else []
    return draft_of(rows, dataset, problems, classes=classes, source=name, notes=notes)


def _sniff_truth(source: Source) -> bool:
    place = Path(source.path)
    return is_folder(place) and not has_sequences(place) and labels_of(place) is not None


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    return kitti_truth(Path(source.path), source.name, problems)


def _folder(source: Source) -> Path:
    """Return where detections are: the folder itself, or ``data`` in it, as the benchmark wants them."""
    place = Path(source.path)
    return place / "data" if kind_of_texts(place) == "none" and kind_of_texts(place / "data") == "kitti" else place


def _sniff_detections(source: Source) -> bool:
    return kind_of_texts(_folder(source)) == "kitti" or _sniff_truth(source)  # truth is none, as the reader says


def _refuse_truth(source: Source) -> None:
    if kind_of_texts(_folder(source)) != "kitti":
        raise InputError(
            "expected detections, but these are KITTI's labels",
            file=source.name,
            remedy="name the ground truth first, then the detections",
        )


def _read_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    _refuse_truth(source)
    return kitti_detections(_folder(source), source.name, dataset, problems)


def _check(source: Source) -> None:
    _refuse_truth(source)
    check_kitti(_folder(source))


KITTI_TRUTH = TruthFormat(name="kitti", title="KITTI labels", sniff=_sniff_truth, read=_read_truth)

KITTI_DETECTIONS = DetectionFormat(
    name="kitti",
    title="KITTI detections",
    sniff=_sniff_detections,
    read=_read_detections,
    check=_check,
)
