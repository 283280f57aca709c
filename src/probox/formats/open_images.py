"""Open Images: CSV files of ground truth and of detections."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.photos import image_size
from probox.files.reading import TRUTH_EXPANDS, Source, file_head, is_folder
from probox.formats.format import DetectionFormat, Draft, TruthFormat
from probox.formats.label_files import LineError, decode, files_of, numbers_in, read_text, rounding_of
from probox.formats.label_tables import LabelRows, draft_of, number_names, truth_of
from probox.formats.problems import Problems
from probox.notes import Note
from probox.tables.dataset import Dataset, is_image_size
from probox.tables.groundtruth import GroundTruth

MOST_BYTES = 1 << 31
_MID = ("/m/", "/g/", "/t/", "/j/")


def heading_of(head: bytes) -> list[str]:
    """Return the column names in lower case from the head of a file; empty if it is not text."""
    try:
        line = head.split(b"\n", 1)[0].decode()
        return [cell.strip().lower() for cell in next(csv.reader([line]))]
    except (UnicodeDecodeError, csv.Error, StopIteration):
        return []


class CsvTable:
    """Rows of a CSV file, with case-insensitive column names."""

    def __init__(self, data: bytes, file: str) -> None:
        self.file = file
        self._reader = csv.reader(io.StringIO(decode(data, file), newline=""))
        self.heading = [cell.strip().lower() for cell in next(self._rows(), (0, [""]))[1]]

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        try:
            for cells in self._reader:
                yield self._reader.line_num, cells
        except csv.Error as error:
            raise InputError(
                f"cannot be read as CSV ({error})",
                file=self.file,
                entry=f"line {self._reader.line_num}",
                remedy="write or download it again",
            ) from None

    def column(self, *names: str) -> int:
        """Return the index of the first of these columns that exists, or raise."""
        for name in names:
            if self.heading.count(name.lower()) > 1:
                raise InputError(f"the column {name} occurs twice", file=self.file, remedy="keep one of them")
            if name.lower() in self.heading:
                return self.heading.index(name.lower())
        raise InputError(
            f"expected a column {names[0]}, but got {', '.join(self.heading)[:120]}",
            file=self.file,
            entry="line 1",
            remedy="begin the file with the names of its columns",
        )

    def has(self, name: str) -> bool:
        """Return whether a column exists."""
        return name.lower() in self.heading

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield line number and cells of each row that is not blank."""
        for line, cells in self._rows():
            if cells:
                yield line, cells

    def check(self, cells: Sequence[str]) -> None:
        """Raise `LineError` unless a row has one cell per column."""
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
    """Return class names by code, such as /m/011k07, from the first file of class descriptions in these folders."""
    for place in places:
        for folder in dict.fromkeys((place, place.parent, place.parent / "metadata")):
            try:
                names = [name for name in files_of(folder, [".csv"]) if "class" in name.lower()]
            except InputError:
                continue
            for name in sorted(names, key=lambda name: "boxable" not in name.lower()):
                found = _read_descriptions(folder / name)
                if found:
                    return found
    return {}


def _read_descriptions(file: Path) -> dict[str, str]:
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
    """Return image sizes from a CSV file in a folder with columns ImageID, Width and Height, and that file."""
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


PHOTOS = (".jpg", ".jpeg", ".png")


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    table = CsvTable(source.content(TRUTH_EXPANDS), source.name)
    if (table.has("score") or table.has("predictionstring")) and not table.has("isgroupof"):
        raise InputError(
            "expected boxes of objects, but these have scores",
            file=table.file,
            remedy="this looks like detections: name the ground truth first, then the detections",
        )
    image, label = table.column("ImageID"), table.column("LabelName")
    corners = [table.column(name) for name in CORNERS]
    group = table.column("IsGroupOf") if table.has("IsGroupOf") else -1
    rows, written, images = LabelRows(), list[list[str]](), list[str]()
    for line, cells in table.rows():
        try:
            table.check(cells)
            words = [cells[at].strip() for at in corners]
            box = fractions(words)
        except LineError as error:
            problems.catch(error.at(table.file, line), error.kind)
            continue
        is_group = group >= 0 and cells[group].strip() == "1"
        rows.add(table.file, line, box, name=cells[label].strip(), crowd=is_group)
        written.append(words)
        images.append(cells[image].strip())
    known, sizes = _images(Path(source.path), sorted(set(images)), problems)
    names = sorted(set(known.values()), key=os.path.splitext)
    number = {name: at for at, name in enumerate(names)}
    rows.images = [number[known[image]] if image in known else -1 for image in images]
    notes: list[Note] = []
    classes = _classes(Path(source.path).parent, rows, notes)
    if any(rows.crowd):
        notes.append(Note("groups-of-objects", sum(rows.crowd)))
    shapes = [sizes[name] for name in names]
    _to_pixels(rows, shapes)
    rounding = rounding_of(written)  # per line, because several tools contributed to these files
    truth = truth_of(
        rows,
        names,
        shapes,
        problems,
        notes=notes,
        rounding=rounding,
        stems=[os.path.splitext(name)[0] for name in names],  # an ImageID with a folder is not a number
        classes=classes,
        source=source.name,
    )
    return _with_image_labels(truth, Path(source.path), known)


def _with_image_labels(truth: GroundTruth, path: Path, known: dict[str, str]) -> GroundTruth:
    """Return the ground truth with the verified image-level labels of a file beside it; unchanged without one."""
    split = next((word for word in ("train", "validation", "test") if word in path.name.lower()), "")
    names = [name for name in files_of(path.parent, [".csv"]) if "human-imagelabels" in name and split in name.lower()]
    if not names:
        return truth
    file = path.parent / min(names, key=lambda name: ("boxable" not in name, name))
    table = CsvTable(read_text(file, most=MOST_BYTES).encode(), str(file))
    image, label = table.column("ImageID"), table.column("LabelName")
    described = class_descriptions(path.parent)
    column = {name: at for at, name in enumerate(truth.classes)}
    listed: dict[str, set[int]] = {name: set() for name in truth.dataset.file_names}
    for line, cells in table.rows():
        try:
            table.check(cells)
        except LineError as error:
            raise error.at(str(file), line) from None
        name, code = known.get(cells[image].strip()), cells[label].strip()
        at = column.get(described.get(code, code))
        if name in listed and at is not None:  # others have neither boxes nor detections
            listed[name].add(at)
    negatives = [sorted(own) for own in listed.values()]
    note = Note("image-level-labels", sum(map(bool, negatives)), total=len(negatives), file=file.name)
    dataset = truth.dataset.replace(rules="openimages", negatives=negatives)
    return truth.replace(dataset=dataset, notes=(*truth.notes, note))


def _to_pixels(rows: LabelRows, sizes: npt.ArrayLike) -> None:
    """Convert rows from XMin, XMax, YMin, YMax in fractions to x, y, width, height in pixels."""
    sides = np.array(rows.boxes).reshape(-1, 2, 2) * rows.shapes(sizes)[:, :, None]
    rows.boxes = np.concatenate([sides[:, :, 0], sides[:, :, 1] - sides[:, :, 0]], axis=1)


def _classes(folder: Path, rows: LabelRows, notes: list[Note]) -> tuple[str, ...]:
    """Return class names, and set the labels to their indices."""
    named = class_descriptions(folder)
    present = sorted(set(rows.classes))
    missing = [code for code in present if code not in named]
    if named and len(missing) < len(present):
        known = [*named, *missing]
        names = [*named.values(), *missing]
    else:
        known = names = present
        if any(code.startswith("/") for code in present):
            notes.append(Note("classes-by-code", len(present)))
    column = {code: at for at, code in enumerate(known)}
    rows.labels = [column[code] for code in rows.classes]
    return tuple(names)


def _file_name(image: str) -> str:
    """Return the file name of an ImageID; globox writes ids with their ending."""
    return image if image.lower().endswith(PHOTOS) else f"{image}.jpg"


def _images(path: Path, images: list[str], problems: Problems) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    """Return the file name of each ImageID, and the size of each file."""
    stated = stated_sizes(path.parent, str(path))
    if stated is not None:
        return _check_sizes(images, *stated, problems)
    short = path.name.split(".")[0]
    split = short.split("-annotations")[0]
    tried = [
        folder / name
        for folder in (path.parent, path.parent.parent)
        for name in dict.fromkeys(("images", "data", split, short, "."))
    ]
    for folder in tried:
        there = files_of(folder, PHOTOS) if is_folder(folder) else []
        by_name = {os.path.splitext(name)[0]: name for name in there} | {name: name for name in there}
        if any(image in by_name for image in images):
            break
    else:
        if not images:
            return {}, {}
        raise InputError(
            f"expected the images, for their sizes: looked for {_file_name(images[0])[:80]} in "
            f"{', '.join(os.path.normpath(folder) for folder in tried[:4])} and one folder further up",
            file=str(path),
            remedy="put the images there, or a CSV file with columns ImageID, Width and Height beside this one",
        )
    names: dict[str, str] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for image in images:
        try:
            if image not in by_name:
                raise InputError(
                    f"{image[:80]!r} has boxes, but no image in {folder}", file=str(path), remedy="put it there"
                )
            sizes[by_name[image]] = image_size(folder / by_name[image])
            names[image] = by_name[image]
        except InputError as error:
            problems.catch(error, "unusable image")
    return names, sizes


def _check_sizes(
    images: list[str], file: Path, stated: dict[str, tuple[int, int]], problems: Problems
) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    by_name = {_file_name(image): size for image, size in stated.items()}

    def fits(image: str) -> bool:
        width, height = by_name.get(_file_name(image), (0, 0))
        return is_image_size(width, height)

    wrong = [at for at, image in enumerate(images) if not fits(image)]
    problems.add("image size", wrong, lambda at: InputError(
        f"expected width and height of {images[at][:80]!r}, but got {by_name.get(_file_name(images[at]), 'nothing')}",
        file=str(file), remedy="add a line for the image",
    ))  # fmt: skip
    names = {image: _file_name(image) for image in images if fits(image)}
    return names, {name: by_name[name] for name in names.values()}


CORNERS = ("XMin", "XMax", "YMin", "YMax")
SCORES = ("Score", "Conf", "Confidence")
STRING = "PredictionString"


def _read_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    rows, written, images = _gather_detections(source, problems)
    places = [Path(source.path).parent, *([Path(dataset.source).parent] if dataset.source else [])]
    known = set(dataset.classes)
    coded = any(code.startswith("/") and code not in known for code in rows.classes)
    described = class_descriptions(*places) if coded else {}
    rows.classes = [code if code in known else described.get(code, code) for code in rows.classes]
    classes = rows.match_classes(dataset.classes)
    names, rows.images = number_names(images)
    notes = rows.match_images(names, dataset, source.name, problems)
    _to_pixels(rows, dataset.shapes)
    rounding = rounding_of(written)
    return draft_of(rows, dataset, problems, classes=classes, source=source.name, notes=notes, rounding=rounding)


def _gather_detections(source: Source, problems: Problems) -> tuple[LabelRows, list[list[str]], list[str]]:
    """Return boxes (XMin, XMax, YMin, YMax) with scores, the numbers as written, and the image of each box."""
    table = CsvTable(source.content(), source.name)
    rows, written, images = LabelRows(), list[list[str]](), list[str]()

    def add(line: int, image: str, label: str, score: str, corners: Sequence[str]) -> None:
        (value,) = numbers_in([score])
        rows.add(table.file, line, fractions(corners), name=label.strip(), score=value)
        written.append([word.strip() for word in corners])
        images.append(image.strip())

    image = table.column("ImageID")
    group = table.column("IsGroupOf") if table.has("IsGroupOf") and not table.has("Score") else -1
    objects = InputError(
        "expected detections, but these are boxes of objects",
        file=table.file,
        remedy="name the ground truth first, then the detections",
    )
    if group >= 0 and not table.has("Confidence"):
        raise objects
    if table.has(STRING):
        string = table.column(STRING)
        columns = None
    else:
        columns = [table.column(name) for name in ("LabelName", *CORNERS)]
        score = table.column(*SCORES)
    for line, cells in table.rows():
        try:
            table.check(cells)
            if columns is None:
                for label, value, x1, y1, x2, y2 in _sixes(cells[string].split()):
                    add(line, cells[image], label, value, (x1, x2, y1, y2))
            else:
                if group >= 0 and (cells[group].strip() or not cells[score].strip()):
                    raise objects  # globox writes detections in columns of ground truth: Confidence, but no group
                label_at, *corners = columns
                add(line, cells[image], cells[label_at], cells[score], [cells[at] for at in corners])
        except LineError as error:
            problems.catch(error.at(table.file, line), error.kind)
    return rows, written, images


def _sixes(words: list[str]) -> list[list[str]]:
    if len(words) % 6:
        raise LineError(
            "broken line",
            f"expected label score xmin ymin xmax ymax for each box, but got {len(words)} words",
            "write labels without spaces: codes such as /m/011k07",
        )
    return [words[at : at + 6] for at in range(0, len(words), 6)]


def _sniff(source: Source) -> bool:
    """Return whether a file has the columns of ground truth or detections; the reader checks which."""
    if source.is_folder:
        return False
    columns = set(heading_of(source.head))
    return "imageid" in columns and bool(columns & {"xmin", STRING.lower()})


OPEN_IMAGES_TRUTH = TruthFormat(name="openimages", title="Open Images CSV", sniff=_sniff, read=_read_truth)

OPEN_IMAGES_DETECTIONS = DetectionFormat(
    name="openimages",
    title="Open Images CSV",
    sniff=_sniff,
    read=_read_detections,
    check=lambda source: _gather_detections(source, Problems()),
)
