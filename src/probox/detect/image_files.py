"""Choose the photos for a detector, and find the image id of each."""

from __future__ import annotations

import dataclasses
import glob
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from probox.errors import InputError
from probox.files.photos import ENDINGS, EXTRACT_FRAMES, OTHER_PICTURES, VIDEOS, is_photo_name
from probox.files.reading import TRUTH_EXPANDS, Source, file_head, first_character, read_regular
from probox.formats import read_truth
from probox.formats.label_tables import rows_by_name
from probox.notes import Note, as_notes

Places = str | Path | Sequence[str | Path]
Size = tuple[int, int]
_PICTURES_AS_TEXT = re.compile(rb"P[1-7]\s")
"""First bytes of PPM and related formats, which may be plain text."""
_NO_PHOTOS = (
    ("video", VIDEOS, EXTRACT_FRAMES),
    ("HEIC or JPEG XL picture", OTHER_PICTURES, "save them as PNG or JPEG"),
)
"""Files beside photos that are not supported, with a remedy."""
_NOT_YET = Path()
"""Placeholder path of a ground truth image without a photo yet."""
_ENDINGS = ", ".join(ENDINGS)
_LONGEST_NUMBER = 18
"""Number of digits that fit an image id."""


@dataclasses.dataclass(frozen=True)
class ImageFile:
    """A photo and the image id of its detections; `find_images` returns a list of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> ImageFile(Path("photos/000000000139.jpg"), 139).counted
    False
    """

    image_id: int
    path: Path
    size: Size | None = None
    """Width and height according to the ground truth."""
    name: str = ""
    """File name in the ground truth."""
    counted: bool = False
    """Whether the id is only a running number that matches no ground truth."""


@dataclasses.dataclass(frozen=True)
class PhotoSelection:
    """Result of `choose_images`: images in order of their ids, and notes."""

    images: tuple[ImageFile, ...]
    notes: tuple[Note, ...] = ()
    categories: dict[int, str] | None = None
    """Class names of the ground truth by category id."""


def find_images(images: Places, truth: str | Path | None = None) -> list[ImageFile]:
    """Return the images of a folder, or of other places, in order of their ids.

    Parameters
    ----------
    images, truth
        As in `choose_images`, which also returns notes on the selection.

    Returns
    -------
    list of ImageFile

    Examples
    --------
    >>> photos = find_images("photos", "truth.json")                                              # doctest: +SKIP
    """
    return list(choose_images(images, truth).images)


def choose_images(images: Places, truth: str | Path | None = None) -> PhotoSelection:
    """Return the selected images in order of their ids, with notes on the selection.

    Parameters
    ----------
    images : path, or sequence of paths
        A photo; a folder, without its subfolders; a pattern such as ``photos/**/*.jpg``; or a text file with one photo
        per line, relative to the file's folder.
    truth : path, optional
        Ground truth with file names, ids and sizes of images: any supported format, or a COCO file with ``images``
        only. Photos missing from it are excluded. Without it, ids are the numbers in the file names
        (``000000000139.jpg`` is 139). If a name is not a number, or two are equal, images are numbered from 0 in order
        of their paths, and `ImageFile.counted` is true.

    Returns
    -------
    PhotoSelection

    Examples
    --------
    >>> choose_images("photos", "truth.json").notes                                               # doctest: +SKIP
    ('3 photos not in truth.json: excluded (the first: cat.jpg)',)
    """
    places = [images] if isinstance(images, str | Path) else list(images)
    if not places:
        raise InputError("expected at least one image", remedy="name a photo, a folder, a pattern or a list")
    notes: list[str] = []
    found = _once([path for place in places for path in _photos_of(Path(place), notes)], notes)
    video = next((path for path in found if path.suffix.lower() in VIDEOS), None)
    if video is not None:
        raise InputError("expected a photo, but got a video", file=str(video), remedy=EXTRACT_FRAMES)
    categories = None
    if truth is None:
        numbered = _by_number(found, notes)
    else:
        known, categories = _images_of(truth)
        numbered = _by_truth(found, known, str(truth), notes)
    return PhotoSelection(tuple(sorted(numbered, key=lambda image: image.image_id)), as_notes(notes), categories)


def _photos_of(place: Path, notes: list[str]) -> list[Path]:
    """Return the photos of one file, folder or list."""
    try:
        if place.is_dir():
            return _of_folder(place, notes)
        if place.is_file():
            return _of_list(place) if _is_list(place) else [place]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(place)) from None
    if glob.has_magic(str(place)):
        matching = sorted(map(Path, glob.glob(os.path.expanduser(place), recursive=True)))
        found = _select_photos(matching, place, notes)
        if found:
            return found
        raise InputError("no photo matches this pattern", file=str(place), remedy=f"expected {_ENDINGS}")
    raise InputError(
        "no such file or folder",
        file=str(place),
        remedy="name a photo, a folder of photos, a pattern in quotes, or a text file with one photo per line",
    )


def _of_folder(folder: Path, notes: list[str]) -> list[Path]:
    inside = sorted(folder.iterdir())
    found = _select_photos(inside, folder, notes)
    below = [path for path in inside if path.is_dir() and any(is_photo_name(file) for file in _files(path))]
    pattern = f"'{folder}/**/*{found[0].suffix if found else '.jpg'}'"
    if found:
        if below:
            notes.append(
                f"photos in {_count(below, 'subfolder')} of {folder} are excluded (the first: {below[0].name}); "
                f"name the subfolders, or a pattern such as {pattern}"
            )
        return found
    if below:
        raise InputError(
            f"no images in this folder itself, but in {_count(below, 'subfolder')} of it (the first: {below[0].name})",
            file=str(folder),
            remedy=f"name the subfolders, or a pattern such as {pattern}",
        )
    raise InputError("no images in this folder", file=str(folder), remedy=f"expected {_ENDINGS}")


def _select_photos(paths: Sequence[Path], place: Path, notes: list[str]) -> list[Path]:
    """Return the photos among files; videos and unsupported images are reported."""
    files = [path for path in paths if path.is_file()]
    found = [path for path in files if is_photo_name(path)]
    for kind, endings, remedy in _NO_PHOTOS:
        others = [path for path in files if path.suffix.lower() in endings]
        if others and not found:
            problem = f"expected photos, but got {_count(others, kind)} (the first: {others[0].name})"
            raise InputError(problem, file=str(place), remedy=remedy)
        if others:
            notes.append(f"{place}: {_count(others, kind)} excluded (the first: {others[0].name}); {remedy}")
    return found


def _files(folder: Path) -> Iterable[Path]:
    try:
        yield from folder.iterdir()
    except OSError:  # no permission to list the folder
        return


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


def _is_list(path: Path) -> bool:
    """Return whether a file lists photos: it is text, and not a text-based image format.

    Text with the extension of a photo, such as a saved web page, is a list only if it names an existing file.
    """
    head = file_head(path)
    if _PICTURES_AS_TEXT.match(head) or (is_photo_name(path) and not head.strip()):
        return False
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # the last character may be truncated
            return False
        text = head[: error.start].decode("utf-8-sig")
    if re.search(r"[\x00-\x08\x0e-\x1f]", text):
        return False
    return not is_photo_name(path) or _is_there(path.parent / text.strip().split("\n", 1)[0].strip())


def _of_list(path: Path) -> list[Path]:
    try:
        lines = read_regular(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError("expected a list of photos in UTF-8", file=str(path)) from None
    named = {number: path.parent / line.strip() for number, line in enumerate(lines, 1) if line.strip()}
    missing = [number for number, photo in named.items() if not _is_there(photo)]
    if missing:
        others = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise InputError(
            f"no such photo: {lines[missing[0] - 1].strip()[:80]!r}{others}",
            file=str(path),
            entry=f"line {missing[0]}",
            remedy=f"write one photo per line, relative to {path.parent}",
        )
    if not named:
        raise InputError(
            "expected a list of photos, but it is empty", file=str(path), remedy="write one photo per line"
        )
    return list(named.values())


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that the file system does not allow
        return False


def _once(paths: Sequence[Path], notes: list[str]) -> list[Path]:
    """Return each file once, in order of names."""
    found: dict[Path, Path] = {}
    again: list[Path] = []
    for path in paths:
        real = path.resolve()
        if real in found:
            again.append(path)
        found.setdefault(real, path)
    if again:
        notes.append(f"{_count(again, 'photo')} named more than once are processed once (the first: {again[0]})")
    return sorted(found.values())


def _by_number(found: Sequence[Path], notes: list[str]) -> list[ImageFile]:
    by_number: dict[int, Path] = {}
    why = ""
    for path in found:
        stem = path.stem
        if not (stem.isascii() and stem.isdigit() and len(stem) <= _LONGEST_NUMBER):
            why = f"{path.name} is not a number"
            break
        first = by_number.setdefault(int(stem), path)
        if first is not path:
            why = f"{first} and {path} have the same number"
            break
    if not why:
        return [ImageFile(number, path) for number, path in by_number.items()]
    if len(found) > 1:
        notes.append(
            f"images are numbered from 0 in order of their paths, because {why}; "
            "give the ground truth to use its image ids ({option:truth})"
        )
    return [ImageFile(number, path, counted=True) for number, path in enumerate(found)]


def _by_truth(found: Sequence[Path], known: Sequence[ImageFile], truth: str, notes: list[str]) -> list[ImageFile]:
    if any(image.name for image in known):
        rows = rows_of_photos(found, [image.name for image in known])
    else:
        ids = {image.image_id: row for row, image in enumerate(known)}
        stems = [path.stem if path.stem.isascii() and path.stem.isdigit() else "-1" for path in found]
        rows = [ids.get(int(stem), -1) for stem in stems]
    photos: dict[int, Path] = {}
    for path, row in zip(found, rows, strict=True):
        if row >= 0 and row in photos:
            raise InputError(
                f"{photos[row]} and {path} both fit the image {known[row].name or known[row].image_id}",
                file=truth,
                remedy="name one of them only",
            )
        if row >= 0:
            photos[row] = path
    if not photos:
        theirs = known[0].name or str(known[0].image_id) if known else "none"
        raise InputError(
            f"none of its images is among the photos (first image: {theirs}, first photo: {found[0].name})",
            file=truth,
            remedy="check the folder and the file ({option:images}, {option:truth})",
        )
    unknown = [path for path, row in zip(found, rows, strict=True) if row < 0]
    if unknown:
        notes.append(f"{_count(unknown, 'photo')} not in {truth}: excluded (the first: {unknown[0].name})")
    missing = [image for row, image in enumerate(known) if row not in photos]
    if missing:
        first = missing[0].name or missing[0].image_id
        notes.append(f"{_count(missing, 'image')} of {truth} without a photo here (the first: {first})")
    return [dataclasses.replace(known[row], path=path) for row, path in photos.items()]


def rows_of_photos(found: Sequence[Path], names: Sequence[str]) -> list[int]:
    """Return the row of each photo among the names of images, -1 for none; folders are compared where names repeat."""
    alike: dict[str, int] = {}
    for path in found:
        alike[path.name] = alike.get(path.name, 0) + 1
    with_folder = [f"{path.resolve().parent.name}/{path.name}" for path in found]
    plain = [path.name if alike[path.name] == 1 else longer for path, longer in zip(found, with_folder, strict=True)]
    rows = rows_by_name(plain, names)
    left = np.flatnonzero(rows < 0)
    second = rows_by_name([with_folder[at] for at in left], names)
    rows[left] = np.where(np.isin(second, rows), -1, second)
    return [int(row) for row in rows]


def _images_of(truth: str | Path) -> tuple[list[ImageFile], dict[int, str]]:
    """Return images and categories of ground truth; other parts of COCO files are not parsed."""
    if not Path(truth).is_file() or first_character(file_head(truth)) != "{":
        dataset = read_truth(str(truth)).dataset
        columns = (dataset.image_ids.tolist(), dataset.file_names, map(tuple, dataset.shapes.tolist()))
        known = [ImageFile(image_id, _NOT_YET, size, name) for image_id, name, size in zip(*columns, strict=True)]
        return known, dict(zip(dataset.category_ids.tolist(), dataset.classes, strict=True))
    try:
        content = json.loads(Source(truth).content(TRUTH_EXPANDS))
        images = [_of_entry(entry) for entry in content["images"]]
        categories = {int(entry["id"]): str(entry["name"]) for entry in content.get("categories", ())}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"expected COCO annotations with a list of images ({error!r})", file=str(truth)) from None
    seen: set[int] = set()
    for image in images:
        if image.image_id in seen:
            raise InputError("two images have this id", file=str(truth), image=image.image_id, remedy="correct one")
        seen.add(image.image_id)
    return images, categories


def _of_entry(entry: dict[str, object]) -> ImageFile:
    image_id, name = entry["id"], entry.get("file_name")
    if not isinstance(image_id, int) or isinstance(image_id, bool):
        raise TypeError(f"an image's id is {image_id!r:.40}")
    width, height = entry.get("width"), entry.get("height")
    size = (width, height) if isinstance(width, int) and isinstance(height, int) and min(width, height) > 0 else None
    return ImageFile(image_id, _NOT_YET, size, name if isinstance(name, str) else "")
