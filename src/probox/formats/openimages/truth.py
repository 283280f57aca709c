"""Open Images ground truth: a CSV file with a line for each box, in fractions of the image."""

from __future__ import annotations

import os
from pathlib import Path

from probox.errors import InputError
from probox.files.image_size import image_size
from probox.files.reading import TRUTH_EXPANDS, Paths, is_folder
from probox.files.source import Source
from probox.formats.label_tables import LabelRows, dataset_of_images, truth_of
from probox.formats.label_text import LineError, files_of
from probox.formats.openimages.table import CsvTable, class_descriptions, fractions, stated_sizes
from probox.formats.problems import Problems
from probox.formats.written_digits import rounding_of
from probox.tables.arguments import expect_path
from probox.tables.dataset import MAX_PIXELS, MAX_SIDE
from probox.tables.groundtruth import GroundTruth

__all__ = ["open_images_truth", "read_open_images_truth"]

PHOTOS = (".jpg", ".jpeg", ".png")


def read_open_images_truth(path: Paths) -> GroundTruth:
    """Read Open Images ground truth: a CSV file of boxes, such as ``validation-annotations-bbox.csv``.

    Class names come from ``class-descriptions-boxable.csv`` beside it; without it, codes such as /m/011k07 are the
    names. Image sizes come from a CSV file beside it with columns ImageID, Width and Height, or from the headers of the
    images: in a folder ``images``, ``data`` or of the file's name, beside it or one further up. Images without a box
    are not in the file, and so not in the truth. IsGroupOf makes a crowd: mAP and LRP ignore it,
    in PDQ it is an object like any other.

    Parameters
    ----------
    path : path
        The file.

    Examples
    --------
    >>> truth = read_open_images_truth("validation-annotations-bbox.csv")  # doctest: +SKIP
    """
    expect_path(path)
    return open_images_truth(Source(path), Problems())


def open_images_truth(source: Source, problems: Problems) -> GroundTruth:
    """Return the table of a file of boxes."""
    file = source.name
    rows, written, codes, images = _gather(CsvTable(source.content(TRUTH_EXPANDS), file), problems)
    reach = rounding_of(written)  # of each line: several tools made these files
    stems = sorted(set(images))
    names, sizes = _images(Path(source.path), stems, problems)
    known = [stem for stem in stems if stem in sizes]
    notes: list[str] = []
    classes = _classes(Path(source.path).parent, codes, rows, notes)
    groups = sum(rows.crowd)
    if groups:
        notes.append(
            f"{groups} groups of objects (IsGroupOf): mAP and LRP ignore them, in PDQ they are objects like any other"
        )
    dataset, rows_of_known = dataset_of_images(
        known, [names[stem] for stem in known], [sizes[stem] for stem in known], classes=classes, source=file
    )
    row_of = dict(zip(known, rows_of_known.tolist(), strict=True))
    kept = [at for at, image in enumerate(images) if image in row_of]
    boxes = LabelRows()
    for at in kept:
        width, height = sizes[images[at]]
        x1, x2, y1, y2 = rows.boxes[at]
        boxes.boxes.append((x1 * width, y1 * height, x2 * width - x1 * width, y2 * height - y1 * height))
        boxes.files.append(file)
        boxes.lines.append(rows.lines[at])
        boxes.labels.append(rows.labels[at])
        boxes.crowd.append(rows.crowd[at])
        boxes.images.append(row_of[images[at]])
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


def _classes(folder: Path, codes: list[str], rows: LabelRows, notes: list[str]) -> tuple[str, ...]:
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
            notes.append(
                f"no class-descriptions-boxable.csv beside the file: classes are called by their codes, "
                f"the {len(present)} that occur"
            )
    column = {code: at for at, code in enumerate(known)}
    rows.labels = [column[code] for code in codes]
    return tuple(names)


def _images(path: Path, stems: list[str], problems: Problems) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    """Return file names and sizes of images."""
    stated = stated_sizes(path.parent, str(path))
    if stated is not None:
        return _checked(stems, *stated, problems)
    short = path.name.split(".")[0]
    split = short.split("-annotations")[0]
    tried = [
        folder / name
        for folder in (path.parent, path.parent.parent)
        for name in dict.fromkeys(("images", "data", split, short, "."))
    ]
    for folder in tried:
        there = {os.path.splitext(name)[0]: name for name in files_of(folder, PHOTOS)} if is_folder(folder) else {}
        if any(stem in there for stem in stems):
            break
    else:
        if not stems:
            return {}, {}
        raise InputError(
            f"expected the images, for their sizes: looked for {stems[0][:80]}.jpg in "
            f"{', '.join(os.path.normpath(folder) for folder in tried[:4])} and one folder further up",
            file=str(path),
            remedy="put the images there, or a CSV file with columns ImageID, Width and Height beside this one",
        )
    sizes: dict[str, tuple[int, int]] = {}
    for stem in stems:
        try:
            if stem not in there:
                raise InputError("has boxes, but no image", file=str(folder / f"{stem}.jpg"), remedy="put it there")
            sizes[stem] = image_size(folder / there[stem])
        except InputError as error:
            problems.catch(error, "unusable image")
    return {stem: there[stem] for stem in sizes}, sizes


def _checked(
    stems: list[str], file: Path, stated: dict[str, tuple[int, int]], problems: Problems
) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    def fits(stem: str) -> bool:
        width, height = stated.get(stem, (0, 0))
        return 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE and width * height <= MAX_PIXELS

    wrong = [at for at, stem in enumerate(stems) if not fits(stem)]
    problems.add("image size", wrong, lambda at: InputError(
        f"expected width and height of {stems[at][:80]!r}, but got {stated.get(stems[at], 'nothing')}",
        file=str(file), remedy="add a line for the image",
    ))  # fmt: skip
    sizes = {stem: stated[stem] for stem in stems if fits(stem)}
    return {stem: f"{stem}.jpg" for stem in sizes}, sizes
