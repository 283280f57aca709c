"""``data.yaml``: where the images of a YOLO data set are, and what its classes are called."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from probox.errors import InputError
from probox.formats.label_text import read_text
from probox.notes import Note
from probox.support.words import some_names

__all__ = ["DataYaml", "class_names", "looks_like_data_yaml", "read_data_yaml"]

MOST_BYTES = 1 << 20
MOST_CLASSES, MOST_GAPS = 1 << 14, 1000
"""A class number beyond this is a mistake, and so are more numbers left out than this."""

MOST_VALUES = 3 * MOST_CLASSES
"""A name and a number for each class, and some more: PyYAML reads 20,000 to 50,000 in a second."""

_KEYS = re.compile(rb"""^["']?(names|nc|train|val|test)["']?[ \t]*:""", re.MULTILINE)
_NOT_SPLITS = {"path", "names", "nc", "download", "yaml_file", "kpt_shape", "flip_idx", "roboflow", "kpt_names"}


@dataclasses.dataclass(frozen=True)
class DataYaml:
    """What a ``data.yaml`` says.

    Parameters
    ----------
    file : Path
        Itself.
    classes : tuple of str or None
        Class names by number; None where it names none.
    splits : dict of str to list of str
        Folders or lists of images, as written, by the name of their part: train, val, test.
    root : str
        Its ``path``, as written; empty if there is none.
    keypoints : bool
        Whether labels have keypoints behind their boxes.
    notes : tuple of str
        What was filled in.
    """

    file: Path
    classes: tuple[str, ...] | None
    splits: dict[str, list[str]]
    root: str
    keypoints: bool
    notes: tuple[Note, ...]


def looks_like_data_yaml(head: bytes) -> bool:
    """Return whether a file that begins so has at least two of a data.yaml's keys."""
    return len({found.group(1) for found in _KEYS.finditer(head)}) >= 2


def read_data_yaml(file: Path) -> DataYaml:
    """Return what a ``data.yaml`` says."""
    content = _parsed(file)
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


def _parsed(file: Path) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Plain values alone: anchors can make a few bytes mean gigabytes, and no data.yaml has them."""

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
            f"is no YAML that can be read: {problem}",
            file=str(file),
            entry=None if mark is None else f"line {mark.line + 1}",
            remedy="correct it there",
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:  # dates and numbers that are none
        raise InputError(
            f"holds a value that cannot be read ({error})", file=str(file), remedy="put it in quotes"
        ) from None
    except RecursionError:
        raise InputError("values are nested too deeply", file=str(file), remedy="check what it is") from None


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} ({str(value)[:40]!r})"


def _paths(value: Any) -> list[str] | None:
    """Return a part's folders and lists of images; None for what is no such thing."""
    if isinstance(value, str):
        return [value] if value else None
    if isinstance(value, list) and value and all(isinstance(entry, str) and entry for entry in value):
        return list(value)
    return None


def class_names(names: Any, count: Any, file: str, notes: list[Note]) -> tuple[str, ...] | None:
    """Return class names by number, from a list, or a dictionary whose keys are the numbers.

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
    numbered = _numbered(names, file)
    if not numbered:
        raise InputError("expected the names of classes, but got none", file=file, entry="names")
    if count is not None and count != len(numbered) and count != max(numbered) + 1:
        raise InputError(
            f"expected {count} names, as nc says, but got {len(numbered)}",
            file=file,
            entry="names",
            remedy="correct nc or names",
        )
    classes = tuple(numbered.get(number, f"class {number}") for number in range(max(numbered) + 1))
    if len(classes) > len(numbered) + MOST_GAPS:
        raise InputError(
            f"leaves out the names of {len(classes) - len(numbered):,} class numbers",
            file=file,
            entry="names",
            remedy="count classes from 0",
        )
    if len(numbered) < len(classes):
        gaps = [str(number) for number in range(len(classes)) if number not in numbered]
        notes.append(Note("class-names-missing", len(gaps), file=file, names=some_names(gaps)))
    twice = sorted({name for name in classes if classes.count(name) > 1}) if len(set(classes)) < len(classes) else []
    if twice:
        raise InputError(
            f"the name {twice[0]!r:.60} stands for several classes",
            file=file,
            entry="names",
            remedy="give each class a name of its own",
        )
    return classes


def _numbered(names: Any, file: str) -> dict[int, str]:
    """Return names by their numbers."""
    pairs: Sequence[tuple[Any, Any]]
    if isinstance(names, Mapping):
        pairs = list(names.items())
    elif isinstance(names, list):
        pairs = list(enumerate(names))
    else:
        raise InputError(
            f"expected a list of names, or a number and a name in each line, but got {_kind(names)}",
            file=file,
            entry="names",
            remedy="write names: [cup, dog]",
        )
    found: dict[int, str] = {}
    for key, name in pairs:
        text = str(key)
        if isinstance(key, bool) or not text.isascii() or not text.isdigit() or int(text[:9]) >= MOST_CLASSES:
            raise InputError(
                f"expected class numbers from 0 to {MOST_CLASSES - 1}, but got {_kind(key)}",
                file=file,
                entry="names",
                remedy="write 0: cup",
            )
        if isinstance(name, bool) or not isinstance(name, str | int | float):
            raise InputError(
                f"expected a name, but got {_kind(name)}",
                file=file,
                entry=f"names[{text[:20]}]",
                remedy='put names such as yes, no, on and null in quotes: "no"',
            )
        if int(text) in found:
            raise InputError(f"class {text} has two names", file=file, entry="names", remedy="keep one of them")
        found[int(text)] = str(name)
    return found
