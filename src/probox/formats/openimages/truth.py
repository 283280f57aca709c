"""Open Images ground truth: a CSV file with a line for each box, in fractions of the image."""

from __future__ import annotations

import os
from pathlib import Path

from probox.errors import InputError
from probox.files.photos import image_size
from probox.files.reading import TRUTH_EXPANDS, is_folder
from probox.files.source import Source
from probox.formats.label_tables import LabelRows, dataset_of_images, truth_of
from probox.formats.label_text import LineError, files_of
from probox.formats.openimages.table import CsvTable, class_descriptions, fractions, stated_sizes
from probox.formats.problems import Problems
from probox.formats.written_digits import rounding_of
from probox.notes import Note
from probox.tables.dataset import is_image_size
from probox.tables.groundtruth import GroundTruth

__all__ = [
    "open_images_truth",
]

PHOTOS = (".jpg", ".jpeg", ".png")


def open_images_truth(source: Source, problems: Problems) -> GroundTruth:
    """Return the table of a file of boxes."""
    file = source.name
    rows, written, codes, images = _gather(CsvTable(source.content(TRUTH_EXPANDS), file), problems)
    reach = rounding_of(written)  # of each line: several tools made these files
    names, sizes = _images(Path(source.path), sorted(set(images)), problems)
    known = sorted(set(names.values()), key=os.path.splitext)
    notes: list[Note] = []
    classes = _classes(Path(source.path).parent, codes, rows, notes)
    groups = sum(rows.crowd)
    if groups:
        notes.append(Note("groups-of-objects", groups))
    dataset, rows_of_known = dataset_of_images(
        [os.path.splitext(name)[0] for name in known],
        known,
        [sizes[name] for name in known],
        classes=classes,
        source=file,
    )
    row_of = dict(zip(known, rows_of_known.tolist(), strict=True))
    kept = [at for at, image in enumerate(images) if image in names]
    boxes = LabelRows()
    for at in kept:
        width, height = sizes[names[images[at]]]
        x1, x2, y1, y2 = rows.boxes[at]
        boxes.boxes.append((x1 * width, y1 * height, x2 * width - x1 * width, y2 * height - y1 * height))
        boxes.files.append(file)
        boxes.lines.append(rows.lines[at])
        boxes.labels.append(rows.labels[at])
        boxes.crowd.append(rows.crowd[at])
        boxes.images.append(row_of[names[images[at]]])
    return truth_of(boxes, dataset, problems, notes, rounding=[reach[at] for at in kept])


def _gather(table: CsvTable, problems: Problems) -> tuple[LabelRows, list[list[str]], list[str], list[str]]:
    """Return all boxes (XMin, XMax, YMin, YMax), the same as written, and the code of each class and the image."""
    if (table.has("score") or table.has("predictionstring")) and not table.has("isgroupof"):
        raise InputError(
            "expected boxes of objects, but these have scores",
            file=table.file,
            remedy="this looks like detections: name the ground truth first, then the detections",
        )
    image, label = table.column("ImageID"), table.column("LabelName")
    corners = [table.column(name) for name in ("XMin", "XMax", "YMin", "YMax")]
    group = table.column("IsGroupOf") if table.has("IsGroupOf") else -1
    rows, written, codes, images = LabelRows(), list[list[str]](), list[str](), list[str]()
    for line, cells in table.rows():
        try:
            table.check(cells)
            words = [cells[at].strip() for at in corners]
            box = fractions(words)
        except LineError as error:
            problems.catch(error.at(table.file, line), error.kind)
            continue
        rows.lines.append(line)
        rows.boxes.append(box)
        written.append(words)
        rows.crowd.append(group >= 0 and cells[group].strip() == "1")
        codes.append(cells[label].strip())
        images.append(cells[image].strip())
    return rows, written, codes, images


def _classes(folder: Path, codes: list[str], rows: LabelRows, notes: list[Note]) -> tuple[str, ...]:
    """Return the names of classes, and give each box its own."""
    named = class_descriptions(folder)
    present = sorted(set(codes))
    missing = [code for code in present if code not in named]
    if named and len(missing) < len(present):
        known = [*named, *missing]
        names = [*named.values(), *missing]
    else:
        known = names = present
        if any(code.startswith("/") for code in present):
            notes.append(Note("classes-by-code", len(present)))
    column = {code: at for at, code in enumerate(known)}
    rows.labels = [column[code] for code in codes]
    return tuple(names)


def _file_name(image: str) -> str:
    """Return the file name of an ImageID, which has its ending where globox wrote it."""
    return image if image.lower().endswith(PHOTOS) else f"{image}.jpg"


def _images(path: Path, images: list[str], problems: Problems) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    """Return the file name of each ImageID, and the size of each file."""
    stated = stated_sizes(path.parent, str(path))
    if stated is not None:
        return _check_sizes(images, *stated, problems)
    short = path.name.split(".")[0]
    split = short.split("-annotations")[0]
    tried = [
        folder / name
        for folder in (path.parent, path.parent.parent)
        for name in dict.fromkeys(("images", "data", split, short, "."))
    ]
    for folder in tried:
        there = files_of(folder, PHOTOS) if is_folder(folder) else []
        by_name = {os.path.splitext(name)[0]: name for name in there} | {name: name for name in there}
        if any(image in by_name for image in images):
            break
    else:
        if not images:
            return {}, {}
        raise InputError(
            f"expected the images, for their sizes: looked for {_file_name(images[0])[:80]} in "
            f"{', '.join(os.path.normpath(folder) for folder in tried[:4])} and one folder further up",
            file=str(path),
            remedy="put the images there, or a CSV file with columns ImageID, Width and Height beside this one",
        )
    names: dict[str, str] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for image in images:
        try:
            if image not in by_name:
                raise InputError(
                    f"{image[:80]!r} has boxes, but no image in {folder}", file=str(path), remedy="put it there"
                )
            sizes[by_name[image]] = image_size(folder / by_name[image])
            names[image] = by_name[image]
        except InputError as error:
            problems.catch(error, "unusable image")
    return names, sizes


def _check_sizes(
    images: list[str], file: Path, stated: dict[str, tuple[int, int]], problems: Problems
) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    by_name = {_file_name(image): size for image, size in stated.items()}

    def fits(image: str) -> bool:
        width, height = by_name.get(_file_name(image), (0, 0))
        return is_image_size(width, height)

    wrong = [at for at, image in enumerate(images) if not fits(image)]
    problems.add("image size", wrong, lambda at: InputError(
        f"expected width and height of {images[at][:80]!r}, but got {by_name.get(_file_name(images[at]), 'nothing')}",
        file=str(file), remedy="add a line for the image",
    ))  # fmt: skip
    names = {image: _file_name(image) for image in images if fits(image)}
    return names, {name: by_name[name] for name in names.values()}
