"""Text files of labels: folders and lines, and the precision of the numbers written in them."""

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


def split_part(path: Paths) -> tuple[Path, str]:
    """Return a path and the word behind its colon, as in ``data.yaml:test``; no word where the path is there itself.

    >>> split_part("nowhere.yaml:test")[1]  # there is no nowhere.yaml
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


SINGLE, DOUBLE = 7, 12
"""Decimals that fractions of single precision have right, and those that calculating with double precision leaves."""

SINGLE_DIGITS = 9
"""Digits that tell a number of single precision from any other."""

COARSE = 3
"""Fewer decimals are those of numbers that happen to be short, such as 0.5, and are taken as they are."""


def written_digits(words: Sequence[str]) -> tuple[int, bool]:
    """Return with how many decimals fractions were written, and whether at least half of them have so many.

    These are all decimals of 0.062500, and the six digits that ``%g`` keeps of 0.00123457.

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
    """Return how many decimals a number has, and how many digits from the first that is not 0."""
    mantissa, _, power = word.replace("_", "").lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    return len(decimals) - int(power[:6] or 0), len((whole + decimals).lstrip("+-0"))


def rounding_of(groups: Sequence[Sequence[str]]) -> list[float]:
    """Return for each group of numbers how far rounding can have moved a corner of a box, in fractions of the image.

    A corner is a centre and half a side, so that is 3/4 of the last decimal. A group tells its decimals itself if at
    least half of its numbers have them; short ones, such as 0.5, may be those of any file, and all groups tell it.

    Parameters
    ----------
    groups : sequence of sequences of str
        The numbers of a file, or of a line, as they are written: numbers that can be read.

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
    """Return whether all numbers are those of single precision, written with all that double precision shows."""
    values = np.array([float(word) for word in words])
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32) == values).all())
