"""Labels as text: paths with a word behind a colon, lines, and what the text files of a folder hold."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from probox.errors import InputError
from probox.files.reading import Paths, file_head, is_folder, read_regular
from probox.formats.problems import Problems

__all__ = [
    "LineError",
    "decoded",
    "divided",
    "files_of",
    "has_json",
    "has_sequences",
    "kind_of_texts",
    "numbers_in",
    "read_text",
    "readable_texts",
    "text_lines",
]

MOST_BYTES = 1 << 26
"""A text file of labels of one image, or a list of images, is smaller than this."""

_LOOKED_AT = 20
"""So many text files of a folder tell what it holds."""

_VOC_RESULTS = re.compile(r"(?:^|_)det_\w+_.+\.txt$")
_NO_LABELS = {"classes.txt", "requirements.txt"}

Texts = Literal["yolo", "kitti", "voc", "other", "none"]


class LineError(Exception):
    """What is wrong with a line or a file, before it is known where that stands."""

    def __init__(self, kind: str, problem: str, remedy: str | None = None) -> None:
        self.kind, self.problem, self.remedy = kind, problem, remedy
        super().__init__(problem)

    def at(self, file: str, line: int | None = None) -> InputError:
        """Return the error of this file and line."""
        entry = None if line is None else f"line {line}"
        return InputError(self.problem, file=file, entry=entry, remedy=self.remedy)


def divided(path: Paths) -> tuple[Path, str]:
    """Return a path and the word behind its colon, as in ``data.yaml:test``; no word where the path is there itself.

    >>> divided("nowhere.yaml:test")[1]  # there is no nowhere.yaml
    ''
    """
    whole = Path(path)
    found = re.fullmatch(r"(.+):([\w.-]+)", str(path), flags=re.DOTALL)
    try:
        if found and not whole.exists() and Path(found[1]).exists():
            return Path(found[1]), found[2]
    except (OSError, ValueError):  # whoever reads it says why
        pass
    return whole, ""


def read_text(path: Paths, *, remedy: str | None = None, most: int = MOST_BYTES) -> str:
    """Return the text of a UTF-8 file, with or without a byte order mark."""
    text = decoded(read_regular(path, most=most, remedy=remedy), str(path))
    if "\0" in text:
        raise InputError("expected text, but this is a binary file", file=str(path), remedy="check what it is")
    return text


def decoded(data: bytes, file: str) -> str:
    """Return the text of a file's content in UTF-8, with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"expected UTF-8 text, but got byte 0x{data[error.start]:02x}",
            file=file,
            entry=f"line {line}",
            remedy="save the file as UTF-8",
        ) from None


def readable_texts(folder: Path, names: Iterable[str], problems: Problems) -> Iterator[tuple[str, str, str]]:
    """Yield name, path and text of files of a folder; those that cannot be read are reported."""
    for name in names:
        file = str(folder / name)
        try:
            text = read_text(file)
        except InputError as error:
            problems.catch(error, "unusable file")
            continue
        yield name, file, text


def text_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the words of each line that is not blank."""
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words:
            yield number, words


def numbers_in(words: Sequence[str]) -> list[float]:
    """Return words as finite numbers, or raise `LineError`."""
    try:
        values = [float(word) for word in words]
    except ValueError:
        word = next(word for word in words if not _is_number(word))
        raise LineError("broken line", f"expected a number, but got {word[:40]!r}", "correct the line") from None
    if not all(map(math.isfinite, values)):
        word = next(word for word, value in zip(words, values, strict=True) if not math.isfinite(value))
        raise LineError(
            "non-finite number", f"expected finite numbers, but got {word[:40]!r}", "leave out values that diverged"
        )
    return values


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def files_of(folder: Path, endings: Sequence[str]) -> list[str]:
    """Return the names of the files in a folder that end in one of these, in any case of letters, sorted."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name.lower().endswith(tuple(endings)))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(folder)) from None


def has_sequences(folder: Path) -> bool:
    """Return whether a folder holds ground truth of the robotic vision challenge: folders with a ``labels.json``."""
    try:
        return any(folder.glob("*/labels.json"))
    except OSError:
        return False


def has_json(folder: Path) -> bool:
    """Return whether a folder holds JSON files, as one of the challenge's detections does."""
    try:
        return any(folder.glob("*.json")) or any(folder.glob("*.json.gz"))
    except OSError:
        return False


def kind_of_texts(folder: Path) -> Texts:
    """Return what the text files of a folder hold, by their first lines; "none" if there are no text files."""
    if not is_folder(folder):
        return "none"
    try:
        names = [name for name in files_of(folder, [".txt"]) if name.lower() not in _NO_LABELS]
    except InputError:
        return "none"
    if not names:
        return "none"
    empty = 0
    for name in names[:_LOOKED_AT]:
        head = file_head(folder / name).decode("utf-8", errors="replace")
        first = next((line.split() for line in head.split("\n") if line.strip()), None)
        if first is None:
            empty += 1
        elif _VOC_RESULTS.search(name) and len(first) == 6:
            return "voc"
        elif 15 <= len(first) <= 18 and not _is_number(first[0]) and all(map(_is_number, first[4:8])):
            return "kitti"
        elif len(first) >= 5 and all(map(_is_number, first)):
            return "yolo"
    if empty == len(names[:_LOOKED_AT]):
        return "voc" if _VOC_RESULTS.search(names[0]) else "yolo"
    return "other"
