"""Where the images and labels of a YOLO data set are: which folder or list is meant, and which label file is whose."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from probox.errors import InputError
from probox.files.reading import file_head, is_folder
from probox.formats.label_text import files_of, read_text
from probox.formats.yolo.data_yaml import DataYaml, looks_like_data_yaml, read_data_yaml
from probox.notes import Note
from probox.support.words import some_names

__all__ = ["Places", "find_places", "label_file", "yaml_in"]

ENDINGS = (
    ".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".dng", ".mpo", ".heic", ".pfm", ".avif",
)  # fmt: skip
"""What names of images end in; the size of some of them cannot be read, which is said then."""

USUAL, OTHERS = ("val", "valid", "validation"), ("test", "train")
"""The part of a data set that is used unless another is named, under its names; and the next best ones."""

MOST_FOLDERS = 1 << 14
"""Limit of the folders that the images of one part are in."""

YAML = (".yaml", ".yml")


@dataclasses.dataclass(frozen=True)
class Places:
    """The images of a part of a data set.

    Parameters
    ----------
    root : Path
        The folder of the data set, to which file names of images are relative.
    images : list of str
        Paths of images, sorted.
    classes : tuple of str or None
        Class names by number, if anything tells them.
    keypoints : bool
        Whether labels have keypoints behind their boxes.
    notes : tuple of str
        What was chosen for the user.
    """

    root: Path
    images: list[str]
    classes: tuple[str, ...] | None
    keypoints: bool
    notes: tuple[Note, ...]


def find_places(path: Path, part: str) -> Places:
    """Return the images of a ``data.yaml``, or of a folder with one, or of a folder with ``images`` and ``labels``.

    Parameters
    ----------
    path : Path
        The file or folder.
    part : str
        Which part: train, val, test, or what the file calls it; empty for the usual one.
    """
    if not is_folder(path):
        return _of_yaml(read_data_yaml(path), part)
    own = yaml_in(path)
    if own is not None:
        return _of_yaml(read_data_yaml(own), part)
    return _of_folder(path, part)


def yaml_in(folder: Path) -> Path | None:
    """Return the data.yaml of a folder, whatever its name; None if there is none."""
    try:
        names = [name for name in files_of(folder, YAML) if looks_like_data_yaml(file_head(folder / name))]
    except InputError:
        return None
    usual = [name for name in names if name.lower() in ("data.yaml", "dataset.yaml", "data.yml")]
    if len(usual) != 1 and len(names) > 1:
        raise InputError(
            f"several files here name images and classes: {some_names(names)}",
            file=str(folder),
            remedy=f"name one of them: {folder / names[0]}",
        )
    return folder / (usual or names)[0] if names else None


def _of_yaml(data: DataYaml, part: str) -> Places:
    if not data.splits and (data.file.parent / "images").is_dir():  # as supervision writes: classes alone
        return _of_folder(data.file.parent, part, data)
    name, notes = _part(part, data.splits, str(data.file))
    roots = _roots(data)
    notes = [*data.notes, *notes]
    images: list[str] = []
    chosen = roots[0]
    for written in data.splits[name]:
        place = _first_there(written, roots, data, name)
        chosen = place[0]
        images += _images_at(place[1], chosen, str(data.file), name)
    if data.root and chosen != roots[0]:
        notes.append(Note("images-looked-for", path=data.root, folder=str(chosen)))
    if not images:
        raise InputError(
            f"expected images in {data.splits[name][0]!r:.120}, but found none",
            file=str(data.file),
            entry=name,
            remedy="check the folder, or name another part: data.yaml:test",
        )
    return Places(chosen, sorted(set(images)), data.classes, data.keypoints, tuple(notes))


def _part(wanted: str, splits: Sequence[str] | dict[str, list[str]], file: str) -> tuple[str, list[Note]]:
    """Return the name of the part that is wanted, or of the usual one, and what to say of that choice."""
    if wanted:
        names = USUAL if wanted in USUAL else (wanted,)
        found = [name for name in names if name in splits]
        if found:
            return found[0], []
        raise InputError(
            f"has no part {wanted!r}" + (f", but {some_names(list(splits))}" if splits else ""),
            file=file,
            remedy="name one that it has behind a colon: data.yaml:val",
        )
    for name in (*USUAL, *OTHERS):
        if name in splits:
            note = Note("split-chosen", file=str(file), name=name)
            return name, [] if name in USUAL else [note]
    raise InputError(
        "expected val: a folder of images, or a file that lists them",
        file=file,
        remedy="add it, or name a part behind a colon: data.yaml:test"
        if splits
        else "add it: val: images/val, or put folders images and labels beside this file",
    )


def _roots(data: DataYaml) -> list[Path]:
    """Return the folders that paths may be relative to, the stated one first."""
    beside = data.file.parent
    if not data.root:
        return [beside]
    stated = Path(data.root).expanduser()
    return list(dict.fromkeys([beside / stated, Path.cwd() / stated, beside]))


def _first_there(written: str, roots: Sequence[Path], data: DataYaml, part: str) -> tuple[Path, Path]:
    """Return the root and the place of a folder or list of images that is there."""
    tried = []
    for root in roots:
        places = [root / Path(written).expanduser()]
        if written.startswith("../"):  # some exports write paths as seen from a folder further down
            places.append(root / written[3:])
        for place in places:
            try:
                if place.exists():
                    return root, place
            except (OSError, ValueError):
                pass
            tried.append(os.path.normpath(place))
    raise InputError(
        f"expected images at {written!r:.120}, but found nothing: looked at {', '.join(dict.fromkeys(tried))}",
        file=str(data.file),
        entry=part,
        remedy="correct path, or leave it out: then folders are relative to this file",
    )


def _images_at(place: Path, root: Path, file: str, entry: str) -> list[str]:
    """Return the images of a folder, or those that a text file lists, or an image itself."""
    if place.is_dir():
        return _images_below(place, root, file, entry)
    if place.suffix.lower() in ENDINGS:
        return [str(place)]
    listed = [line.strip() for line in read_text(place).splitlines() if line.strip()]
    images = [line for line in listed if line.lower().endswith(ENDINGS)]
    if len(images) < len(listed):
        other = next(line for line in listed if not line.lower().endswith(ENDINGS))
        raise InputError(
            f"expected an image in every line, but got {other[:80]!r}",
            file=str(place),
            entry=f"line {listed.index(other) + 1}",
            remedy="list paths of images",
        )
    bases = [base for base in (place.parent, root, Path()) if images and (base / images[0]).exists()]
    base = bases[0] if bases else place.parent
    return [os.path.normpath(base / image) for image in images]


def _images_below(folder: Path, root: Path, file: str, entry: str | None = None) -> list[str]:
    """Return the images in a folder and in those below it.

    Links are followed inside the data set's folder `root`, but not in circles, and none out of it. Where data.yaml
    names a folder outside it, the folders below that one are left alone.
    """
    home = Path(os.path.realpath(root))
    inside = home != home.parent and (
        Path(os.path.abspath(folder)).is_relative_to(os.path.abspath(root))
        or Path(os.path.realpath(folder)).is_relative_to(home)
    )
    found: list[str] = []
    seen: set[Path] = set()
    for path, folders, names in os.walk(folder, followlinks=True):
        real = Path(os.path.realpath(path))
        if inside and not real.is_relative_to(home):
            raise InputError(
                f"the link {path} leads to {real}, outside the data set's folder {root}",
                file=file,
                entry=entry,
                remedy="put the images in place of the link, or set path to a folder that holds both",
            )
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        if len(seen) > MOST_FOLDERS:
            raise InputError(
                f"expected at most {MOST_FOLDERS:,} folders of images, but {folder} holds more",
                file=file,
                entry=entry,
                remedy="name the folders of this part",
            )
        found += [os.path.join(path, name) for name in names if name.lower().endswith(ENDINGS) and name[0] != "."]
        if not inside:
            if folders:
                raise InputError(
                    f"expected images in {folder} itself: folders below it are read only in the data set's folder",
                    file=file,
                    entry=entry,
                    remedy="set path to the data set's folder" + (", not to /" if home == home.parent else ""),
                )
            break
    return found


def _of_folder(folder: Path, part: str, data: DataYaml | None = None) -> Places:
    """Return the images of a folder with ``images`` and ``labels``; its data.yaml, if any, names no images."""
    place = folder / "images"
    if not place.is_dir() or not (folder / "labels").is_dir():
        raise InputError(
            "expected a data.yaml, or folders images and labels",
            file=str(folder),
            remedy="give data.yaml, or the folder that holds images and labels",
        )
    notes: list[Note] = []
    inside = sorted(entry.name for entry in place.iterdir() if entry.is_dir())
    direct = bool(files_of(place, ENDINGS))
    if part or (inside and not direct):
        place, notes = _folder_of_part(folder, inside, part)
    images = sorted(_images_below(place, folder, str(folder)))
    if not images:
        raise InputError("expected images, but found none", file=str(place), remedy="check the folder")
    above = None if data else yaml_in(folder.parent)  # beside train and valid, which hold train/images, valid/images
    data = read_data_yaml(above) if above else data
    classes, keypoints = None, False
    if data is not None:
        classes, keypoints = data.classes, data.keypoints
        notes += data.notes
    return Places(folder, images, classes or _listed_classes(folder), keypoints, tuple(notes))


def _folder_of_part(folder: Path, inside: Sequence[str], part: str) -> tuple[Path, list[Note]]:
    """Return the folder of images of a part, such as images/val2017 for val."""
    if part in inside:
        return folder / "images" / part, []
    wanted = (part,) if part else (*USUAL, *OTHERS)
    for name in wanted:
        found = [entry for entry in inside if entry.startswith(name)]
        if len(found) == 1:
            note = Note("folder-chosen", folder=str(folder), name=found[0])
            return folder / "images" / found[0], [] if part else [note]
    raise InputError(
        f"expected images of {part or 'val'}, but the folder images holds {some_names(inside) or 'no folders'}",
        file=str(folder),
        remedy=f"name one behind a colon: {folder.name}:{inside[0] if inside else 'val'}",
    )


def _listed_classes(folder: Path) -> tuple[str, ...] | None:
    """Return the class names in a text file, one per line, as tools for drawing labels write it."""
    for name in ("classes.txt", "labels/classes.txt", "obj.names", "labels/obj.names"):
        if (folder / name).is_file():
            names = [line.strip() for line in read_text(folder / name).splitlines() if line.strip()]
            if names and len(set(names)) == len(names):
                return tuple(names)
    return None


def label_file(image: str) -> str:
    """Return where the labels of an image are: its last folder `images` is `labels`, its ending .txt.

    >>> label_file("data/images/val/images/7.JPG")
    'data/images/val/labels/7.txt'
    >>> label_file("photos/7.png")
    'photos/7.txt'
    """
    folder, name = os.path.split(image)
    parts = folder.split(os.sep)
    for at in range(len(parts) - 1, -1, -1):
        if parts[at] == "images":
            parts[at] = "labels"
            break
    return os.path.join(os.sep.join(parts), os.path.splitext(name)[0] + ".txt")
