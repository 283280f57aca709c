"""Locations of the images and labels of a YOLO dataset: ``data.yaml`` and folders."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from probox.errors import InputError
from probox.files.reading import file_head, is_folder
from probox.formats.label_files import files_of, read_text
from probox.notes import Note
from probox.support.formatting import some_names

MOST_BYTES = 1 << 20
MOST_CLASSES, MOST_GAPS = 1 << 14, 1000
"""Limits on class numbers and on unused class numbers, to detect mistakes."""

MOST_VALUES = 3 * MOST_CLASSES
"""Limit on the values of a data.yaml, three per class: PyYAML reads 20,000 to 50,000 per second."""

_KEYS = re.compile(rb"""^["']?(names|nc|train|val|test)["']?[ \t]*:""", re.MULTILINE)
_NOT_SPLITS = {"path", "names", "nc", "download", "yaml_file", "kpt_shape", "flip_idx", "roboflow", "kpt_names"}


@dataclasses.dataclass(frozen=True)
class DataYaml:
    """Content of a ``data.yaml``."""

    file: Path
    classes: tuple[str, ...] | None
    """Class names by number; None if the file has none."""
    splits: dict[str, list[str]]
    """Folders or lists of images, as written, by split: train, val, test."""
    root: str
    """The key ``path`` as written; empty if it is missing."""
    keypoints: bool
    """True if labels have keypoints after their boxes."""
    notes: tuple[Note, ...]
    """Notes on defaults that were filled in."""


def looks_like_data_yaml(head: bytes) -> bool:
    """Return whether the head of a file has at least two keys of a data.yaml."""
    return len({found.group(1) for found in _KEYS.finditer(head)}) >= 2


def read_data_yaml(file: Path) -> DataYaml:
    """Read a ``data.yaml``."""
    content = _parse(file)
    if not isinstance(content, Mapping):
        raise InputError(
            f"expected keys such as val and names, but got {_kind(content)}",
            file=str(file),
            remedy="write data.yaml as ultralytics does: path, train, val, names",
        )
    notes: list[Note] = []
    splits = {
        str(key): paths
        for key, value in content.items()
        if str(key) not in _NOT_SPLITS and (paths := _paths(value)) is not None
    }
    root = content.get("path")
    if root is not None and not isinstance(root, str):
        raise InputError(f"expected a folder, but got {_kind(root)}", file=str(file), entry="path")
    classes = class_names(content.get("names"), content.get("nc"), str(file), notes)
    return DataYaml(file, classes, splits, root or "", content.get("kpt_shape") is not None, tuple(notes))


def _parse(file: Path) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Loader without anchors, which can expand to gigabytes and do not occur in data.yaml files."""

        left = MOST_VALUES

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases (*name) are not read: write the value itself")
            self.left -= 1
            if self.left < 0:
                raise yaml.YAMLError(f"expected at most {MOST_VALUES:,} values, but got more")
            return super().compose_node(parent, index)

    text = read_text(file, most=MOST_BYTES)
    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise InputError(
            f"cannot be read as YAML: {problem}",
            file=str(file),
            entry=None if mark is None else f"line {mark.line + 1}",
            remedy="correct it there",
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:  # invalid dates and numbers
        raise InputError(
            f"contains a value that cannot be read ({error})", file=str(file), remedy="put it in quotes"
        ) from None
    except RecursionError:
        raise InputError("values are nested too deeply", file=str(file), remedy="check what it is") from None


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} ({str(value)[:40]!r})"


def _paths(value: Any) -> list[str] | None:
    """Return the folders and image lists of a split; None for other values."""
    if isinstance(value, str):
        return [value] if value else None
    if isinstance(value, list) and value and all(isinstance(entry, str) and entry for entry in value):
        return list(value)
    return None


def class_names(names: Any, count: Any, file: str, notes: list[Note]) -> tuple[str, ...] | None:
    """Return class names by number, from a list or from a dictionary with numeric keys.

    >>> class_names({"0": "cup", 2: "dog"}, 3, "data.yaml", [])
    ('cup', 'class 1', 'dog')
    """
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= MOST_CLASSES):
        raise InputError(f"expected the number of classes, but got {_kind(count)}", file=file, entry="nc")
    if names is None:
        if count is None:
            return None
        notes.append(Note("classes-numbered", where=f"{file} names no classes", names="class 0, class 1, ..."))
        return tuple(f"class {number}" for number in range(count))
    fail = partial(InputError, file=file, entry="names")
    numbered = _list_names(names, file)
    if not numbered:
        raise fail("expected the names of classes, but got none")
    if count is not None and count != len(numbered) and count != max(numbered) + 1:
        raise fail(f"expected {count} names (nc), but got {len(numbered)}", remedy="correct nc or names")
    classes = tuple(numbered.get(number, f"class {number}") for number in range(max(numbered) + 1))
    if len(classes) > len(numbered) + MOST_GAPS:
        left_out = len(classes) - len(numbered)
        raise fail(f"leaves out the names of {left_out:,} class numbers", remedy="count classes from 0")
    if len(numbered) < len(classes):
        gaps = [str(number) for number in range(len(classes)) if number not in numbered]
        notes.append(Note("class-names-missing", len(gaps), file=file, names=some_names(gaps)))
    twice = sorted({name for name in classes if classes.count(name) > 1}) if len(set(classes)) < len(classes) else []
    if twice:
        problem = f"the name {twice[0]!r:.60} is given to several classes"
        raise fail(problem, remedy="give each class a unique name")
    return classes


def _list_names(names: Any, file: str) -> dict[int, str]:
    """Return names by number."""
    fail = partial(InputError, file=file, entry="names")
    if not isinstance(names, Mapping | list):
        problem = f"expected a list of names, or a number and a name in each line, but got {_kind(names)}"
        raise fail(problem, remedy="write names: [cup, dog]")
    found: dict[int, str] = {}
    for key, name in names.items() if isinstance(names, Mapping) else enumerate(names):
        text = str(key)
        if isinstance(key, bool) or not text.isascii() or not text.isdigit() or int(text[:9]) >= MOST_CLASSES:
            problem = f"expected class numbers from 0 to {MOST_CLASSES - 1}, but got {_kind(key)}"
            raise fail(problem, remedy="write 0: cup")
        if isinstance(name, bool) or not isinstance(name, str | int | float):
            raise InputError(
                f"expected a name, but got {_kind(name)}",
                file=file,
                entry=f"names[{text[:20]}]",
                remedy='put names such as yes, no, on and null in quotes: "no"',
            )
        if int(text) in found:
            raise fail(f"class {text} has two names", remedy="keep one of them")
        found[int(text)] = str(name)
    return found


ENDINGS = (
    ".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".dng", ".mpo", ".heic", ".pfm", ".avif",
)  # fmt: skip
"""Endings of image names; formats whose size cannot be read raise later."""

USUAL, OTHERS = ("val", "valid", "validation"), ("test", "train")
"""Names of the split that is used by default, and of the fallbacks."""

MOST_FOLDERS = 1 << 14
"""Limit on the folders of images of a split."""

YAML = (".yaml", ".yml")


@dataclasses.dataclass(frozen=True)
class Places:
    """Images of a split of a dataset."""

    root: Path
    """Folder of the dataset; file names of images are relative to it."""
    images: list[str]
    """Sorted paths of the images."""
    classes: tuple[str, ...] | None
    """Class names by number, None if they are unknown."""
    keypoints: bool
    """True if labels have keypoints after their boxes."""
    notes: tuple[Note, ...]
    """Notes on choices made by default."""


def find_places(path: Path, part: str) -> Places:
    """Return the images of a ``data.yaml``, of a folder with one, or of a folder with ``images`` and ``labels``.

    `part` is train, val, test, or another name in the file; empty for the default split.
    """
    own = yaml_in(path) if is_folder(path) else path
    return _of_folder(path, part) if own is None else _of_yaml(read_data_yaml(own), part)


def yaml_in(folder: Path) -> Path | None:
    """Return the data.yaml of a folder, under any name; None if there is none."""
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
    if not data.splits and (data.file.parent / "images").is_dir():  # as supervision writes it: with class names only
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
            remedy="check the folder, or use another split, such as data.yaml:test",
        )
    return Places(chosen, sorted(set(images)), data.classes, data.keypoints, tuple(notes))


def _part(wanted: str, splits: Sequence[str] | dict[str, list[str]], file: str) -> tuple[str, list[Note]]:
    """Return the name of the requested or default split, and notes on the choice."""
    if wanted:
        names = USUAL if wanted in USUAL else (wanted,)
        found = [name for name in names if name in splits]
        if found:
            return found[0], []
        raise InputError(
            f"split {wanted!r} not found" + (f", expected one of {some_names(list(splits))}" if splits else ""),
            file=file,
            remedy=f"use {file}:{next(iter(splits))}" if splits else f"add {wanted}: images/{wanted}",
        )
    for name in (*USUAL, *OTHERS):
        if name in splits:
            note = Note("split-chosen", file=str(file), name=name)
            return name, [] if name in USUAL else [note]
    raise InputError(
        "expected val: a folder of images, or a file that lists them",
        file=file,
        remedy=f"add it, or use another split: {file}:{next(iter(splits))}"
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
    """Return root and path of the first existing folder or list of images."""
    tried = []
    for root in roots:
        places = [root / Path(written).expanduser()]
        if written.startswith("../"):  # some exports write paths relative to a subfolder
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
        remedy="correct path, or remove it: then folders are relative to this file",
    )


def _images_at(place: Path, root: Path, file: str, entry: str) -> list[str]:
    """Return the images of a folder or of a text file that lists them, or a single image."""
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
    """Return the images in a folder and its subfolders.

    Links are followed inside the dataset's folder `root`, without cycles, but not out of it. If data.yaml names a
    folder outside `root`, its subfolders are not read.
    """
    home = Path(os.path.realpath(root))
    inside = home != home.parent and (
        Path(os.path.abspath(folder)).is_relative_to(os.path.abspath(root))
        or Path(os.path.realpath(folder)).is_relative_to(home)
    )
    fail = partial(InputError, file=file, entry=entry)
    found: list[str] = []
    seen: set[Path] = set()
    for path, folders, names in os.walk(folder, followlinks=True):
        real = Path(os.path.realpath(path))
        if inside and not real.is_relative_to(home):
            raise fail(
                f"the link {path} leads to {real}, outside the data set's folder {root}",
                remedy="put the images in place of the link, or set path to a folder that contains both",
            )
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        if len(seen) > MOST_FOLDERS:
            raise fail(
                f"expected at most {MOST_FOLDERS:,} folders of images, but {folder} contains more",
                remedy="name the folders of this part",
            )
        found += [os.path.join(path, name) for name in names if name.lower().endswith(ENDINGS) and name[0] != "."]
        if not inside:
            if folders:
                raise fail(
                    f"expected images in {folder} itself: folders below it are read only in the data set's folder",
                    remedy="set path to the data set's folder" + (", not to /" if home == home.parent else ""),
                )
            break
    return found


def _of_folder(folder: Path, part: str, data: DataYaml | None = None) -> Places:
    """Return the images of a folder with ``images`` and ``labels``, whose data.yaml, if any, names no images."""
    place = folder / "images"
    if not place.is_dir() or not (folder / "labels").is_dir():
        raise InputError(
            "expected a data.yaml, or folders images and labels",
            file=str(folder),
            remedy="give data.yaml, or the folder that contains images and labels",
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
    """Return the folder of images of a split, such as images/val2017 for val."""
    if part in inside:
        return folder / "images" / part, []
    wanted = (part,) if part else (*USUAL, *OTHERS)
    for name in wanted:
        found = [entry for entry in inside if entry.startswith(name)]
        if len(found) == 1:
            note = Note("folder-chosen", folder=str(folder), name=found[0])
            return folder / "images" / found[0], [] if part else [note]
    raise InputError(
        f"expected images of {part or 'val'}, but the folder images contains {some_names(inside) or 'no folders'}",
        file=str(folder),
        remedy=f"use {folder}:{inside[0]}" if inside else f"add images/{part or 'val'}",
    )


def _listed_classes(folder: Path) -> tuple[str, ...] | None:
    """Return class names from a text file with one name per line, as labeling tools write it."""
    for name in ("classes.txt", "labels/classes.txt", "obj.names", "labels/obj.names"):
        if (folder / name).is_file():
            names = [line.strip() for line in read_text(folder / name).splitlines() if line.strip()]
            if names and len(set(names)) == len(names):
                return tuple(names)
    return None


def label_file(image: str) -> str:
    """Return the label file of an image: the last folder `images` replaced by `labels`, and the ending by .txt.

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
