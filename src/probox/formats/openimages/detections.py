"""Open Images detections: a CSV file with a line for each box, or one for each image as the challenge wants it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from probox.errors import InputError
from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.image_names import rows_of_images
from probox.formats.label_tables import LabelRows, columns_of_names, draft_of
from probox.formats.label_text import LineError, numbers_in
from probox.formats.openimages.table import CsvTable, class_descriptions, fractions
from probox.formats.problems import Problems
from probox.formats.written_digits import rounding_of
from probox.tables.dataset import Dataset

__all__ = [
    "check_open_images",
    "open_images_detections",
]

SCORES = ("Score", "Conf", "Confidence")
STRING = "PredictionString"


def check_open_images(source: Source) -> None:
    """Raise if lines of a file of detections are none."""
    _gather(CsvTable(source.content(), source.name), Problems())


def open_images_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of a file of detections."""
    rows, written, codes, images = _gather(CsvTable(source.content(), source.name), problems)
    places = [Path(source.path).parent, *([Path(dataset.source).parent] if dataset.source else [])]
    known = set(dataset.classes)
    coded = any(code.startswith("/") and code not in known for code in codes)
    described = class_descriptions(*places) if coded else {}
    names = [code if code in known else described.get(code, code) for code in codes]
    columns, classes = columns_of_names(list(dict.fromkeys(names)), dataset.classes)
    rows.labels = [columns[name] for name in names]
    stems, which, counts = np.unique(np.array(images, object), return_inverse=True, return_counts=True)
    image_rows, notes = rows_of_images(stems.tolist(), counts.tolist(), dataset, source.name, problems)
    rows.images = image_rows[which.reshape(-1)].tolist()
    shapes = dataset.shapes[np.maximum(rows.images, 0)].tolist() if rows.images and len(dataset) else []
    for at, (width, height) in enumerate(shapes):
        x1, x2, y1, y2 = rows.boxes[at]
        rows.boxes[at] = (x1 * width, y1 * height, x2 * width - x1 * width, y2 * height - y1 * height)
    reach = rounding_of(written)
    return draft_of(rows, dataset, problems, classes=classes, source=source.name, notes=notes, rounding=reach)


def _gather(table: CsvTable, problems: Problems) -> tuple[LabelRows, list[list[str]], list[str], list[str]]:
    """Return all boxes (XMin, XMax, YMin, YMax) with scores, the same as written, and the label and image of each."""
    rows, written, labels, images = LabelRows(), list[list[str]](), list[str](), list[str]()

    def add(line: int, image: str, label: str, score: str, corners: Sequence[str]) -> None:
        (value,) = numbers_in([score])
        rows.boxes.append(fractions(corners))
        rows.scores.append(value)
        rows.files.append(table.file)
        rows.lines.append(line)
        written.append([word.strip() for word in corners])
        labels.append(label.strip())
        images.append(image.strip())

    image = table.column("ImageID")
    group = table.column("IsGroupOf") if table.has("IsGroupOf") and not table.has("Score") else -1
    objects = InputError(
        "expected detections, but these are boxes of objects",
        file=table.file,
        remedy="name the ground truth first, then the detections",
    )
    if group >= 0 and not table.has("Confidence"):
        raise objects
    if table.has(STRING):
        string = table.column(STRING)
        columns = None
    else:
        columns = [table.column(name) for name in ("LabelName", "XMin", "XMax", "YMin", "YMax")]
        score = table.column(*SCORES)
    for line, cells in table.rows():
        try:
            table.check(cells)
            if columns is None:
                for label, value, x1, y1, x2, y2 in _sixes(cells[string].split()):
                    add(line, cells[image], label, value, (x1, x2, y1, y2))
            else:
                if group >= 0 and (cells[group].strip() or not cells[score].strip()):
                    raise objects  # globox writes detections with the columns of objects: a confidence, but no group
                label_at, *corners = columns
                add(line, cells[image], cells[label_at], cells[score], [cells[at] for at in corners])
        except LineError as error:
            problems.catch(error.at(table.file, line), error.kind)
    return rows, written, labels, images


def _sixes(words: list[str]) -> list[list[str]]:
    if len(words) % 6:
        raise LineError(
            "broken line",
            f"expected label score xmin ymin xmax ymax for each box, but got {len(words)} words",
            "write labels without spaces: codes such as /m/011k07",
        )
    return [words[at : at + 6] for at in range(0, len(words), 6)]
