"""CSV files of Open Images: columns by name, whatever their order; and what stands beside them: classes and sizes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from probox.errors import InputError
from probox.files.reading import file_head
from probox.formats.label_text import LineError, decoded, files_of, numbers_in, read_text

__all__ = ["CsvTable", "class_descriptions", "heading_of", "stated_sizes"]

MOST_BYTES = 1 << 31
_MID = ("/m/", "/g/", "/t/", "/j/")


def heading_of(head: bytes) -> list[str]:
    """Return the names of columns in small letters, of a file that begins so; none if that is no text."""
    try:
        line = head.split(b"\n", 1)[0].decode()
        return [cell.strip().lower() for cell in next(csv.reader([line]))]
    except (UnicodeDecodeError, csv.Error, StopIteration):
        return []


class CsvTable:
    """Rows of a CSV file, their cells by the names of columns in any case of letters."""

    def __init__(self, data: bytes, file: str) -> None:
        self.file = file
        self._reader = csv.reader(io.StringIO(decoded(data, file), newline=""))
        self.heading = [cell.strip().lower() for cell in next(self._rows(), (0, [""]))[1]]

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        try:
            for cells in self._reader:
                yield self._reader.line_num, cells
        except csv.Error as error:
            raise InputError(
                f"is no CSV that can be read ({error})",
                file=self.file,
                entry=f"line {self._reader.line_num}",
                remedy="write or download it again",
            ) from None

    def column(self, *names: str) -> int:
        """Return where the first of these columns stands, or raise."""
        for name in names:
            if self.heading.count(name.lower()) > 1:
                raise InputError(f"the column {name} stands there twice", file=self.file, remedy="keep one of them")
            if name.lower() in self.heading:
                return self.heading.index(name.lower())
        raise InputError(
            f"expected a column {names[0]}, but got {', '.join(self.heading)[:120]}",
            file=self.file,
            entry="line 1",
            remedy="begin the file with the names of its columns",
        )

    def has(self, name: str) -> bool:
        """Return whether there is such a column."""
        return name.lower() in self.heading

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line and the cells of each row that is not blank."""
        for line, cells in self._rows():
            if cells:
                yield line, cells

    def check(self, cells: Sequence[str]) -> None:
        """Raise `LineError` unless a row has a cell for each column."""
        if len(cells) != len(self.heading):
            raise LineError(
                "broken line",
                f"expected {len(self.heading)} columns, as the heading has, but got {len(cells)}",
                "write one cell for each column",
            )


def fractions(words: Sequence[str]) -> tuple[float, float, float, float]:
    """Return XMin, XMax, YMin and YMax, or raise `LineError`."""
    x1, x2, y1, y2 = numbers_in(words)
    worst = max((x1, x2, y1, y2), key=lambda value: abs(value - 0.5))
    if not -1.0 <= worst <= 2.0:
        raise LineError(
            "boxes in pixels",
            f"expected fractions of the image, from 0 to 1, but got {worst:g}",
            "divide pixels by the image's width and height",
        )
    if x2 < x1 or y2 < y1:
        raise LineError(
            "inverted box",
            f"expected XMin <= XMax and YMin <= YMax, but got {x1:g}, {x2:g}, {y1:g}, {y2:g}",
            "check the order of the columns",
        )
    return x1, x2, y1, y2


def class_descriptions(*places: Path) -> dict[str, str]:
    """Return class names by their codes (/m/011k07), from the first file of class descriptions in these folders."""
    for place in places:
        for folder in dict.fromkeys((place, place.parent, place.parent / "metadata")):
            try:
                names = [name for name in files_of(folder, [".csv"]) if "class" in name.lower()]
            except InputError:
                continue
            for name in sorted(names, key=lambda name: "boxable" not in name.lower()):
                found = _described(folder / name)
                if found:
                    return found
    return {}


def _described(file: Path) -> dict[str, str]:
    if not file_head(file).lstrip(b'"').startswith((b"/", b"LabelName")):
        return {}
    names: dict[str, str] = {}
    taken: set[str] = set()
    for line, cells in CsvTable(b"code,name\n" + read_text(file, most=1 << 24).encode(), str(file)).rows():
        if len(cells) == 2 and cells[0].startswith(_MID):
            name = cells[1].strip() or cells[0]
            names[cells[0]] = name if name not in taken else f"{name} ({cells[0]})"
            taken.add(names[cells[0]])
        elif line > 2:
            return {}
    return names


def stated_sizes(folder: Path, but: str) -> tuple[Path, dict[str, tuple[int, int]]] | None:
    """Return image sizes from a CSV file with columns ImageID, Width and Height in a folder, and that file."""
    for name in files_of(folder, [".csv"]):
        file = folder / name
        if str(file) == but or not {"imageid", "width", "height"} <= set(heading_of(file_head(file))):
            continue
        table = CsvTable(read_text(file, most=MOST_BYTES).encode(), str(file))
        at = [table.column(key) for key in ("ImageID", "Width", "Height")]
        sizes: dict[str, tuple[int, int]] = {}
        for line, cells in table.rows():
            try:
                table.check(cells)
                width, height = numbers_in([cells[at[1]], cells[at[2]]])
                sizes[cells[at[0]]] = int(width), int(height)
            except LineError as error:
                raise error.at(str(file), line) from None
        return file, sizes
    return None
