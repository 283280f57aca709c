"""Pascal VOC: annotations in XML, and a text file of detections per class."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from probox.errors import InputError
from probox.files.photos import image_size
from probox.files.reading import Source, is_folder, read_regular
from probox.formats.format import DetectionFormat, Draft, TruthFormat
from probox.formats.label_files import (
    LineError,
    files_of,
    has_sequences,
    kind_of_texts,
    numbers_in,
    read_text,
    readable_texts,
    split_part,
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
from probox.support.formatting import some_names
from probox.tables.dataset import Dataset, is_image_size
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


MOST_BYTES = 1 << 24
"""An annotation is smaller than this."""

PHOTOS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif")


def annotations_of(folder: Path) -> Path | None:
    """Return the folder of XML files: ``Annotations`` in a folder, or itself; None if there are none."""
    for place in (folder / "Annotations", folder):
        try:
            if is_folder(place) and files_of(place, [".xml"]):
                return place
        except InputError:
            continue
    return None


def voc_truth(folder: Path, part: str, name: str, problems: Problems) -> GroundTruth:
    """Return the table of a folder of annotations."""
    place = annotations_of(folder)
    if place is None:
        raise InputError(
            "expected XML files in a folder Annotations", file=name, remedy="give the folder that holds Annotations"
        )
    stems, notes = _chosen(place, part, name)
    images = _Images(place)
    for stem in stems:
        try:
            images.add(stem, problems)
        except InputError as error:
            problems.catch(error, "unusable file")
    return images.table(name, problems, notes)


def _chosen(place: Path, part: str, name: str) -> tuple[list[str], list[Note]]:
    """Return the names of the images that are wanted, and what to say of the choice."""
    lists = place.parent / "ImageSets" / "Main"
    known = [file[:-4] for file in files_of(lists, [".txt"])] if is_folder(lists) else []
    # Besides the parts, there is a list of each part for each class.
    parts = [entry for entry in known if not any(entry != other and entry.endswith(f"_{other}") for other in known)]
    there = [file[:-4] for file in files_of(place, [".xml"])]
    if not part:
        return there, [Note("all-annotations", len(there), file=name, part=parts[0])] if parts else []
    if part not in known:
        raise InputError(
            f"has no part {part!r}" + (f", but {some_names(parts)}" if parts else f": there is no {lists}"),
            file=name,
            remedy="name one that ImageSets/Main has",
        )
    file = lists / f"{part}.txt"
    wanted = [words[0] for words in map(str.split, read_text(file).splitlines()) if words]
    missing = sorted(set(wanted) - set(there))
    if missing:
        raise InputError(
            f"lists {len(missing)} images that have no annotation: {some_names(missing)}",
            file=str(file),
            remedy=f"put their XML files into {place}",
        )
    return sorted(set(wanted)), []


def box_of_pixels(x1: float, y1: float, x2: float, y2: float) -> tuple[float, float, float, float]:
    """Return x, y, width and height of a box whose corners are its first and last pixel, counted from 1.

    >>> box_of_pixels(1, 1, 10, 20)  # the first 10 x 20 pixels
    (0, 0, 10, 20)
    """
    return x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1


class _Images:
    """Images and objects as they are gathered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stems: list[str] = []
        self.names: list[str] = []
        self.sizes: list[tuple[int, int]] = []
        self.rows = LabelRows(entry="object")
        self.classes: list[str] = []
        self.from_zero = 0

    def add(self, stem: str, problems: Problems) -> None:
        """Add the image and the objects of an XML file."""
        file = str(self.folder / f"{stem}.xml")
        root = _parse(file)
        photo = (root.findtext("filename") or "").strip().replace("\\", "/").rsplit("/", 1)[-1]
        ending = os.path.splitext(photo)[1].lower()
        size = self._size(root, stem, photo, file)
        self.stems.append(stem)
        self.names.append(stem + (ending if ending in PHOTOS else ".jpg"))
        self.sizes.append(size)
        for number, found in enumerate(root.findall("object"), start=1):
            try:
                self._add_object(found, file, number)
            except LineError as error:
                where = InputError(error.problem, file=file, entry=f"object {number}", remedy=error.remedy)
                problems.catch(where, error.kind)

    def _add_object(self, found: Element, file: str, number: int) -> None:
        name = (found.findtext("name") or "").strip()
        if not name:
            raise LineError("class", "expected the name of a class", "write <name>dog</name>")
        box = found.find("bndbox")
        if box is None:
            raise LineError("missing key", "expected a bndbox", "write boxes, or leave the object out")
        words = [(box.findtext(key) or "").strip() for key in ("xmin", "ymin", "xmax", "ymax")]
        x1, y1, x2, y2 = numbers_in(words)
        if x2 < x1 or y2 < y1:
            raise LineError(
                "inverted box", f"expected xmin <= xmax and ymin <= ymax, but got {' '.join(words)}", "correct the box"
            )
        difficult = (found.findtext("difficult") or "0").strip()
        if difficult not in ("0", "1"):
            raise LineError("difficult", f"expected difficult to be 0 or 1, but got {difficult[:40]!r}")
        self.from_zero += x1 < 1 or y1 < 1
        rows = self.rows
        rows.files.append(file)
        rows.lines.append(number)
        rows.images.append(len(self.stems) - 1)
        rows.boxes.append(box_of_pixels(x1, y1, x2, y2))
        rows.crowd.append(difficult == "1")
        self.classes.append(name)

    def _size(self, root: Element, stem: str, photo: str, file: str) -> tuple[int, int]:
        words = [(root.findtext(f"size/{key}") or "0").strip() for key in ("width", "height")]
        try:
            width, height = (int(value) if value.is_integer() else 0 for value in numbers_in(words))
        except LineError as error:
            raise InputError(error.problem, file=file, entry="size", remedy=error.remedy) from None
        if is_image_size(width, height):
            return width, height
        photos = self.folder.parent / "JPEGImages"
        names = [photo, *(stem + ending for ending in PHOTOS)]
        place = next((photos / name for name in names if name and (photos / name).is_file()), None)
        if place is None:
            raise InputError(
                f"expected width and height of the image, but got {' x '.join(word[:20] for word in words)}",
                file=file,
                entry="size",
                remedy=f"write them, or put the image into {photos}",
            )
        return image_size(place)

    def table(self, source: str, problems: Problems, notes: list[Note]) -> GroundTruth:
        """Return the table of everything."""
        classes = sorted(set(self.classes))
        column = {name: at for at, name in enumerate(classes)}
        self.rows.labels = [column[name] for name in self.classes]
        dataset, row_of = dataset_of_images(self.stems, self.names, self.sizes, classes=tuple(classes), source=source)
        self.rows.images = [int(row_of[image]) for image in self.rows.images]
        difficult = sum(self.rows.crowd)
        if difficult:
            notes.append(Note("difficult-objects", difficult))
        if self.from_zero:
            notes.append(Note("boxes-before-first-pixel", self.from_zero))
        return truth_of(self.rows, dataset, problems, notes)


def _parse(file: str) -> Element:
    from xml.etree import ElementTree

    data = read_regular(file, most=MOST_BYTES)
    if b"\0" in data:
        raise InputError("expected XML in UTF-8, but this is binary or UTF-16", file=file, remedy="save it as UTF-8")
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        # Entities can make a few bytes mean gigabytes, or another file; no tool for labels writes them.
        raise InputError("document types and entities are not read", file=file, remedy="leave them out")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InputError(f"is no complete XML ({error})", file=file, remedy="write or download it again") from None
    if root.tag != "annotation":
        raise InputError(
            f"expected <annotation>, but got <{root.tag[:40]}>", file=file, remedy="give Pascal VOC's XML files"
        )
    return root


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


def _sniff_truth(source: Source) -> bool:
    place, _ = split_part(source.path)
    return is_folder(place) and not has_sequences(place) and annotations_of(place) is not None


def _read_truth(source: Source, problems: Problems, *, split: str | None = None) -> GroundTruth:
    place, part = split_part(source.path)
    return voc_truth(place, split or part, source.name, problems)


def _sniff_detections(source: Source) -> bool:
    place, _ = split_part(source.path)
    return kind_of_texts(place) == "voc" or _sniff_truth(source)  # truth is none, as the reader says


def _read_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    _refuse_truth(source)
    place, _ = split_part(source.path)
    return voc_detections(place, source.name, dataset, problems)


def _refuse_truth(source: Source) -> None:
    if _sniff_truth(source):
        raise InputError(
            "expected detections, but these are Pascal VOC annotations",
            file=source.name,
            remedy="name the ground truth first, then the detections",
        )


def _check(source: Source) -> None:
    _refuse_truth(source)
    check_voc_results(split_part(source.path)[0])


VOC_TRUTH = TruthFormat(
    name="voc", title="Pascal VOC annotations", sniff=_sniff_truth, read=_read_truth, options=("split",)
)

VOC_DETECTIONS = DetectionFormat(
    name="voc",
    title="Pascal VOC detections",
    sniff=_sniff_detections,
    read=_read_detections,
    check=_check,
)
