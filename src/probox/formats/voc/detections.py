"""Pascal VOC detections: a text file for each class, in every line an image, a score and a box from 1."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from probox.formats.draft import Draft
from probox.formats.image_names import rows_of_images
from probox.formats.label_tables import LabelRows, columns_of_names, draft_of
from probox.formats.label_text import LineError, files_of, numbers_in, readable_texts, text_lines
from probox.formats.problems import Problems
from probox.formats.voc.truth import box_of_pixels
from probox.tables.dataset import Dataset

__all__ = ["check_voc_results", "voc_detections"]

_NAME = re.compile(r"(?:^|_)det_(?:test|trainval|train|val|[^_]+)_(.+)\.txt$")


def check_voc_results(folder: Path) -> None:
    """Raise if lines of a folder of detections are none."""
    _gather(folder, Problems())


def _gather(folder: Path, problems: Problems) -> tuple[LabelRows, list[str], list[str]]:
    """Return all lines with the names of their classes and images."""
    rows, classes, images = LabelRows(), list[str](), list[str]()
    class_of = {name: found[1] for name in files_of(folder, [".txt"]) if (found := _NAME.search(name))}
    for name, file, text in readable_texts(folder, class_of, problems):
        for line, words in text_lines(text):
            try:
                if len(words) != 6:
                    raise LineError(
                        "broken line",
                        f"expected an image, a score and 4 numbers, but got {len(words)} words",
                        "write IMAGE SCORE X1 Y1 X2 Y2",
                    )
                score, x1, y1, x2, y2 = numbers_in(words[1:])
            except LineError as error:
                problems.catch(error.at(file, line), error.kind)
                continue
            rows.files.append(file)
            rows.lines.append(line)
            rows.scores.append(score)
            rows.boxes.append(box_of_pixels(x1, y1, x2, y2))
            classes.append(class_of[name])
            images.append(words[0])
    return rows, classes, images


def voc_detections(folder: Path, name: str, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of a folder of detections."""
    rows, classes, images = _gather(folder, problems)
    columns, known = columns_of_names(list(dict.fromkeys(classes)), dataset.classes)
    rows.labels = [columns[entry] for entry in classes]
    names, which, counts = np.unique(np.array(images, object), return_inverse=True, return_counts=True)
    image_rows, notes = rows_of_images(names.tolist(), counts.tolist(), dataset, name, problems)
    rows.images = image_rows[which.reshape(-1)].tolist()
    return draft_of(rows, dataset, problems, classes=known, source=name, notes=notes)
