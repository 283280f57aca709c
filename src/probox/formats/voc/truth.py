"""Pascal VOC ground truth: ``Annotations/*.xml``, one for each image, with boxes that count pixels from 1."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from probox.errors import InputError
from probox.files.photos import image_size
from probox.files.reading import is_folder, read_regular
from probox.formats.label_tables import LabelRows, dataset_of_images, truth_of
from probox.formats.label_text import LineError, files_of, numbers_in, read_text
from probox.formats.problems import Problems
from probox.notes import Note
from probox.support.words import some_names
from probox.tables.dataset import is_image_size
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["annotations_of", "box_of_pixels", "voc_truth"]

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
        root = _parsed(file)
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


def _parsed(file: str) -> Element:
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
