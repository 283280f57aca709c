"""Text files of labels: folders, lines, and the precision of the written numbers."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from probox.errors import InputError
from probox.files.reading import Paths, file_head, is_folder, read_regular
from probox.formats.problems import Problems

MOST_BYTES = 1 << 26
"""Size limit in bytes of a text file: labels of one image, or a list of images."""

_LOOKED_AT = 20
"""Number of text files inspected to identify the content of a folder."""

_VOC_RESULTS = re.compile(r"(?:^|_)det_\w+_.+\.txt$")
_NO_LABELS = {"classes.txt", "requirements.txt"}

Texts = Literal["yolo", "kitti", "voc", "other", "none"]


class LineError(Exception):
    """A problem in a line or file, raised where its location is unknown."""

    def __init__(self, kind: str, problem: str, remedy: str | None = None) -> None:
        self.kind, self.problem, self.remedy = kind, problem, remedy
        super().__init__(problem)

    def at(self, file: str, line: int | None = None) -> InputError:
        """Return the error with its file and line."""
        entry = None if line is None else f"line {line}"
        return InputError(self.problem, file=file, entry=entry, remedy=self.remedy)


def split_part(path: Paths) -> tuple[Path, str]:
    """Split ``data.yaml:test`` into path and word; the word is empty if the whole path exists.

    >>> split_part("nowhere.yaml:test")[1]  # there is no nowhere.yaml
    ''
    """
    whole = Path(path)
    found = re.fullmatch(r"(.+):([\w.-]+)", str(path), flags=re.DOTALL)
    try:
        if found and not whole.exists() and Path(found[1]).exists():
            return Path(found[1]), found[2]
    except (OSError, ValueError):  # the reader reports the error
        pass
    return whole, ""


def read_text(path: Paths, *, remedy: str | None = None, most: int = MOST_BYTES) -> str:
    """Return the text of a UTF-8 file, with or without a byte order mark."""
    text = decode(read_regular(path, most=most, remedy=remedy), str(path))
    if "\0" in text:
        raise InputError("expected text, but this is a binary file", file=str(path), remedy="check what it is")
    return text


def decode(data: bytes, file: str) -> str:
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
    """Yield name, path and text of files in a folder; report unreadable ones."""
    for name in names:
        file = str(folder / name)
        try:
            text = read_text(file)
        except InputError as error:
            problems.catch(error, "unusable file")
            continue
        yield name, file, text


def text_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield number and words of each line that is not blank."""
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words:
            yield number, words


def numbers_in(words: Sequence[str]) -> list[float]:
    """Convert words to finite numbers, or raise `LineError`."""
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
    """Return the sorted names of the files in a folder with one of these endings, in any case."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name.lower().endswith(tuple(endings)))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(folder)) from None


def has_sequences(folder: Path) -> bool:
    """Return whether a folder holds ground truth of the Robotic Vision Challenge: folders with a ``labels.json``."""
    try:
        return any(folder.glob("*/labels.json"))
    except OSError:
        return False


def has_json(folder: Path) -> bool:
    """Return whether a folder holds JSON files, as detections of the Robotic Vision Challenge do."""
    try:
        return any(folder.glob("*.json")) or any(folder.glob("*.json.gz"))
    except OSError:
        return False


def kind_of_texts(folder: Path) -> Texts:
    """Return the kind of the text files in a folder, from their first lines; "none" if there are no text files."""
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


SINGLE, DOUBLE = 7, 12
"""Decimals that are exact in single precision, and decimals that survive arithmetic in double precision."""

SINGLE_DIGITS = 9
"""Digits that identify a number in single precision."""

COARSE = 3
"""Numbers with fewer decimals, such as 0.5, are taken as exact."""


def written_digits(words: Sequence[str]) -> tuple[int, bool]:
    """Return the number of decimals of written fractions, and whether at least half of the fractions have it.

    Counts all decimals of 0.062500, and the six significant digits that ``%g`` keeps of 0.00123457.

    >>> written_digits(["0.500000", "0.062500"]), written_digits(["0.123457", "0.00123457", "1e-05", "0.5"])
    ((6, True), (6, True))
    """
    counted = [_digits(word) for word in words]
    if not counted:
        return 0, False
    most = min(max(decimals for decimals, _ in counted), max(digits for _, digits in counted))
    have = sum(decimals >= most or digits >= most for decimals, digits in counted)
    return most, 2 * have >= len(counted)


def _digits(word: str) -> tuple[int, int]:
    """Return the numbers of decimals and of significant digits."""
    mantissa, _, power = word.replace("_", "").lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    return len(decimals) - int(power[:6] or 0), len((whole + decimals).lstrip("+-0"))


def rounding_of(groups: Sequence[Sequence[str]]) -> list[float]:
    """Return for each group of numbers the largest rounding error of a box corner, in fractions of the image.

    A corner is center + side / 2, each with an error of half the last decimal, so the error is 3/4 of the last
    decimal. A group decides its decimals itself if at least half of its numbers have them; otherwise, and for short
    numbers such as 0.5, the largest number of decimals of all groups counts.

    Parameters
    ----------
    groups : sequence of sequences of str
        Numbers of a file, or of a line, as written; all valid.

    Examples
    --------
    >>> rounding_of([["0.1234", "0.2500"], ["0.5", "0.25"]])
    [7.5e-05, 7.5e-05]
    """
    told = [written_digits(words) for words in groups]
    most = max((decimals for decimals, _ in told), default=0)
    result = []
    for words, (decimals, clear) in zip(groups, told, strict=True):
        own = decimals if clear and decimals >= COARSE else most
        if own > SINGLE:
            own = SINGLE if own <= SINGLE_DIGITS or _is_single(words) else DOUBLE
        elif own < COARSE:
            own = DOUBLE
        result.append(0.75 / 10.0**own)
    return result


def _is_single(words: Sequence[str]) -> bool:
    """Return whether all numbers are exact in single precision, although written with digits of double precision."""
    values = np.array([float(word) for word in words])
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32) == values).all())
