"""Pascal VOC: annotations in XML, and a text file of detections per class."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

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
from probox.formats.label_tables import LabelRows, draft_of, number_names, truth_of
from probox.formats.problems import Problems
from probox.notes import Note
from probox.support.formatting import some_names
from probox.tables.dataset import Dataset, is_image_size
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


MOST_BYTES = 1 << 24
"""Size limit in bytes of an annotation."""

Box = tuple[float, float, float, float]
PHOTOS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif")


def _annotations_of(folder: Path) -> Path | None:
    """Return the folder of XML files: ``Annotations`` in a folder, or itself; None if there are none."""
    for place in (folder / "Annotations", folder):
        try:
            if is_folder(place) and files_of(place, [".xml"]):
                return place
        except InputError:
            continue
    return None


def _read_truth(source: Source, problems: Problems, *, split: str | None = None) -> GroundTruth:
    folder, part = split_part(source.path)
    place = _annotations_of(folder)
    if place is None:
        raise InputError(
            "expected XML files in a folder Annotations",
            file=source.name,
            remedy="give the folder that contains Annotations",
        )
    stems, notes = _chosen(place, split or part, source.name)
    rows, names, sizes = LabelRows(entry="object"), list[str](), list[tuple[int, int]]()
    from_zero = 0
    for stem in stems:
        file = str(place / f"{stem}.xml")
        try:
            root = _parse(file)
            photo = (root.findtext("filename") or "").strip().replace("\\", "/").rsplit("/", 1)[-1]
            sizes.append(_size(root, stem, photo, file))
        except InputError as error:
            problems.catch(error, "unusable file")
            continue
        ending = os.path.splitext(photo)[1].lower()
        names.append(stem + (ending if ending in PHOTOS else ".jpg"))
        for number, found in enumerate(root.findall("object"), start=1):
            try:
                name, box, difficult = _object(found)
            except LineError as error:
                where = InputError(error.problem, file=file, entry=f"object {number}", remedy=error.remedy)
                problems.catch(where, error.kind)
                continue
            from_zero += min(box[:2]) < 0
            rows.add(file, number, box, image=len(names) - 1, name=name, crowd=difficult)
    if any(rows.crowd):
        notes.append(Note("difficult-objects", sum(rows.crowd)))
    if from_zero:
        notes.append(Note("boxes-before-first-pixel", from_zero))
    return truth_of(rows, names, sizes, problems, notes=notes, classes=rows.sort_classes(), source=source.name)


def _chosen(place: Path, part: str, name: str) -> tuple[list[str], list[Note]]:
    """Return the names of the images of a split, and notes."""
    lists = place.parent / "ImageSets" / "Main"
    known = [file[:-4] for file in files_of(lists, [".txt"])] if is_folder(lists) else []
    # Main also has lists per class, such as val_dog beside val; they are not splits.
    parts = [entry for entry in known if not any(entry != other and entry.endswith(f"_{other}") for other in known)]
    there = [file[:-4] for file in files_of(place, [".xml"])]
    if not part:
        return there, [Note("all-annotations", len(there), file=name, part=parts[0])] if parts else []
    if part not in known:
        raise InputError(
            f"split {part!r} not found, expected "
            + (some_names(parts) if parts else f"a list in {lists}, which is missing"),
            file=name,
            remedy="use a split of ImageSets/Main",
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


def box_of_pixels(x1: float, y1: float, x2: float, y2: float) -> Box:
    """Convert a box of first and last pixels, counted from 1, to x, y, width and height.

    >>> box_of_pixels(1, 1, 10, 20)  # the first 10 x 20 pixels
    (0, 0, 10, 20)
    """
    return x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1


def _object(found: Element) -> tuple[str, Box, bool]:
    """Return class and box of an object, and whether it is difficult; or raise `LineError`."""
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
    return name, box_of_pixels(x1, y1, x2, y2), difficult == "1"


def _size(root: Element, stem: str, photo: str, file: str) -> tuple[int, int]:
    """Return width and height of the image as written, or read them from its photo."""
    words = [(root.findtext(f"size/{key}") or "0").strip() for key in ("width", "height")]
    try:
        width, height = (int(value) if value.is_integer() else 0 for value in numbers_in(words))
    except LineError as error:
        raise InputError(error.problem, file=file, entry="size", remedy=error.remedy) from None
    if is_image_size(width, height):
        return width, height
    photos = Path(file).parent.parent / "JPEGImages"
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


def _parse(file: str) -> Element:
    from xml.etree import ElementTree

    data = read_regular(file, most=MOST_BYTES)
    if b"\0" in data:
        raise InputError("expected XML in UTF-8, but this is binary or UTF-16", file=file, remedy="save it as UTF-8")
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        # Entities can expand to gigabytes or include other files; label tools do not write them.
        raise InputError("document types and entities are not read", file=file, remedy="leave them out")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InputError(f"is not complete XML ({error})", file=file, remedy="write or download it again") from None
    if root.tag != "annotation":
        raise InputError(
            f"expected <annotation>, but got <{root.tag[:40]}>", file=file, remedy="give Pascal VOC's XML files"
        )
    return root


_NAME = re.compile(r"(?:^|_)det_(?:test|trainval|train|val|[^_]+)_(.+)\.txt$")


def _gather_detections(source: Source, problems: Problems) -> tuple[LabelRows, list[str]]:
    """Return all lines, and the names of the images to which their numbers refer."""
    if _sniff_truth(source):
        raise InputError(
            "expected detections, but these are Pascal VOC annotations",
            file=source.name,
            remedy="name the ground truth first, then the detections",
        )
    folder, _ = split_part(source.path)
    rows, images = LabelRows(), list[str]()
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
            rows.add(file, line, box_of_pixels(x1, y1, x2, y2), name=class_of[name], score=score)
            images.append(words[0])
    names, rows.images = number_names(images)
    return rows, names


def _read_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    rows, images = _gather_detections(source, problems)
    classes = rows.match_classes(dataset.classes)
    notes = rows.match_images(images, dataset, source.name, problems)
    return draft_of(rows, dataset, problems, classes=classes, source=source.name, notes=notes)


def _sniff_truth(source: Source) -> bool:
    place, _ = split_part(source.path)
    return is_folder(place) and not has_sequences(place) and _annotations_of(place) is not None


def _sniff_detections(source: Source) -> bool:
    place, _ = split_part(source.path)
    return kind_of_texts(place) == "voc" or _sniff_truth(source)  # ground truth: the reader reports the error


VOC_TRUTH = TruthFormat(
    name="voc", title="Pascal VOC annotations", sniff=_sniff_truth, read=_read_truth, options=("split",)
)

VOC_DETECTIONS = DetectionFormat(
    name="voc",
    title="Pascal VOC detections",
    sniff=_sniff_detections,
    read=_read_detections,
    check=lambda source: _gather_detections(source, Problems()),
)
