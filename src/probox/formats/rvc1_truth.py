"""Ground truth of the Robotic Vision Challenge: folders of sequences with labels and PNG masks."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.reading import TRUTH_EXPANDS, Source, read_bytes, read_regular
from probox.formats.format import TruthFormat
from probox.formats.problems import MAX_EXAMPLES, Problems
from probox.notes import Note
from probox.tables.dataset import MAX_SIDE, Dataset, is_image_size
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import canonical_name
from probox.tables.masks import Masks

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PALETTE = 3
_MAX_PIXELS = 1 << 28
_STRIP = 1 << 20
"""Number of bytes of rows decoded at a time; at least one row."""
_MAX_RUNS, _RUNS_PER_BYTE = 1 << 24, 4
"""Limit on the runs of pixels in the masks of a folder, and additional runs per byte of its files: far above the
needs of photos."""
_PIECE = 1 << 16
"""Number of compressed bytes that are decompressed at a time."""

Pixels = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]


def decode_png(data: bytes, file: str, choose: Callable[[int], int] | None = None) -> Pixels:
    """Decode a PNG to (H, W, channels): grey, grey + alpha, RGB or RGBA; palettes are resolved.

    Parameters
    ----------
    data : bytes
        Content of the file.
    file : str
        File name for messages.
    choose : callable, optional
        Maps the number of channels to the one channel that is decoded, as (H, W).
    """
    if not data.startswith(_SIGNATURE):
        raise InputError("expected a PNG image", file=file, remedy="save the mask as PNG")
    chunks = _chunks(data, file)
    header = b"".join(chunks.get(b"IHDR", []))
    if len(header) != 13 or b"IDAT" not in chunks:
        raise InputError("the PNG image has no header or no pixels", file=file, remedy="save the mask again")
    width, height, depth, color, compression, method, interlace = struct.unpack(">IIBBBBB", header)
    if depth not in _DEPTHS.get(color, ()) or compression != 0 or method != 0:
        raise InputError(f"expected a PNG image, but got colour type {color} with {depth} bits", file=file)
    if interlace != 0:
        raise InputError(
            "interlaced PNG images are not supported", file=file, remedy="save the mask without interlacing"
        )
    if not is_image_size(width, height, _MAX_PIXELS):
        raise InputError(
            f"expected a mask of up to {_MAX_PIXELS:,} pixels and {MAX_SIDE:,} per side, but got {width} x {height}",
            file=file,
            remedy="cut the image into smaller ones",
        )
    palette = np.frombuffer(b"".join(chunks.get(b"PLTE", [])), np.uint8)
    colors = palette[: len(palette) // 3 * 3].reshape(-1, 3) if color == _PALETTE else None
    channels = _CHANNELS[color] if colors is None else 3
    chosen = slice(None) if choose is None else choose(channels)
    shape = (height, width, channels) if choose is None else (height, width)
    pixels: Pixels = np.empty(shape, np.uint16 if depth == 16 else np.uint8)
    first = 0
    for rows in _rows(chunks[b"IDAT"], height, width * _CHANNELS[color], depth, _CHANNELS[color], file):
        samples = rows.reshape(len(rows), width, _CHANNELS[color])
        if colors is not None:
            samples = _look_up(samples[:, :, 0], colors, file)
        pixels[first : first + len(rows)] = samples[:, :, chosen]
        first += len(rows)
    if depth < 8 and colors is None:
        pixels *= np.uint8(255 // ((1 << depth) - 1))  # few-bit grey is scaled to 0..255, as image libraries do
    return pixels


def _rows(
    parts: list[memoryview], height: int, samples: int, depth: int, channels: int, file: str
) -> Iterator[npt.NDArray[Any]]:
    """Yield the samples of an image, some rows at a time."""
    row_bytes = (samples * depth + 7) // 8
    stream = _Inflater(parts)
    above = np.zeros(row_bytes, np.uint8)
    step = max(1, _STRIP // row_bytes)
    for first in range(0, height, step):
        size = min(step, height - first) * (row_bytes + 1)
        packed = stream.read(size)
        if len(packed) != size:
            raise _wrong_amount(file)
        try:
            rows = _core.png_unfilter(packed, above, max(1, channels * depth // 8))
        except ValueError as error:
            raise InputError(f"the PNG image is damaged ({error})", file=file, remedy="save the mask again") from None
        above = rows[-1].copy()
        yield _samples(rows, depth)[:, :samples]
    if stream.read(1):
        raise _wrong_amount(file)


def _wrong_amount(file: str) -> InputError:
    return InputError("the PNG image has the wrong amount of pixels", file=file, remedy="save or download it again")


class _Inflater:
    """Incremental decompression of several parts; damaged data ends early."""

    def __init__(self, parts: list[memoryview]) -> None:
        self._pieces = (part[at : at + _PIECE] for part in parts for at in range(0, len(part), _PIECE))
        self._unpack = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes."""
        found: list[bytes] = []
        try:
            while size > 0 and not self._unpack.eof:
                piece = self._unpack.unconsumed_tail or next(self._pieces, b"")
                part = self._unpack.decompress(piece, size)
                if not part and not piece:
                    break
                found.append(part)
                size -= len(part)
        except zlib.error:
            pass
        return b"".join(found)


def _chunks(data: bytes, file: str) -> dict[bytes, list[memoryview]]:
    view = memoryview(data)
    parts: dict[bytes, list[memoryview]] = {}
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = view[at + 8 : at + 8 + size]
        checksum = data[at + 8 + size : at + 12 + size]
        if len(checksum) < 4 or zlib.crc32(body, zlib.crc32(kind)) != int.from_bytes(checksum, "big"):
            raise InputError("the PNG image is damaged", file=file, remedy="save or download it again")
        parts.setdefault(kind, []).append(body)
        at += 12 + size
        if kind == b"IEND":
            return parts
    raise InputError("the PNG image is cut short", file=file, remedy="save or download it again")


def _samples(rows: npt.NDArray[np.uint8], depth: int) -> npt.NDArray[Any]:
    if depth == 16:
        return rows.view(">u2")
    if depth == 8:
        return rows
    bits = np.unpackbits(rows, axis=1).reshape(len(rows), -1, depth)
    weights = (1 << np.arange(depth - 1, -1, -1)).astype(np.uint8)
    samples: npt.NDArray[np.uint8] = (bits * weights).sum(axis=2, dtype=np.uint8)
    return samples


def _look_up(indices: npt.NDArray[np.uint8], colors: npt.NDArray[np.uint8], file: str) -> npt.NDArray[np.uint8]:
    if indices.max() >= len(colors):
        raise InputError("a pixel has a colour index outside the palette", file=file, remedy="save the mask again")
    return colors[indices]


CHALLENGE_CLASSES = (
    "none", "bottle", "cup", "knife", "bowl", "wine glass", "fork", "spoon", "banana", "apple", "orange", "cake",
    "potted plant", "mouse", "keyboard", "laptop", "cell phone", "book", "clock", "chair", "dining table", "couch",
    "bed", "toilet", "television", "microwave", "toaster", "refrigerator", "oven", "sink", "person",
)  # fmt: skip
"""Classes of the Robotic Vision Challenge; the first means "no object"."""

_SYNONYMS = {"stool": "chair", "cellphone": "cell phone", "wineglass": "wine glass"}
"""Further synonyms of the challenge only; in other datasets a stool may not be a chair."""

_NAMES = {canonical_name(name): name for name in CHALLENGE_CLASSES}
_COLUMN = {name: column for column, name in enumerate(CHALLENGE_CLASSES)}


def challenge_name(name: str) -> str:
    """Return the challenge's name of a class, or the name itself if it is not one of its classes.

    >>> challenge_name("Stool"), challenge_name("tv"), challenge_name("bg"), challenge_name("dog")
    ('chair', 'television', 'none', 'dog')
    """
    known = canonical_name(name)
    return _NAMES.get(_SYNONYMS.get(known, known), name)


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    """Return the table of a folder of sequences."""
    folder = Path(source.path)
    try:
        sequences = sorted(path.parent for path in folder.glob("*/labels.json"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(folder)) from None
    if not sequences:
        raise InputError(
            "expected folders of sequences, each with a labels.json",
            file=str(folder),
            remedy="name the folder that contains the sequences' folders; for other data sets, the data.yaml, or the "
            "folder that contains Annotations or label_2",
        )
    found: list[_Sequence] = []
    runs = _MAX_RUNS
    for path in sequences:
        found.append(_Sequence(path, problems, runs))
        runs = found[-1].runs_left
    return _table(found, str(folder))


class _Sequence:
    """Images and objects of one sequence."""

    def __init__(self, folder: Path, problems: Problems, runs_left: int) -> None:
        self.folder = folder
        self.runs_left = runs_left
        self.file = str(folder / "labels.json")
        self.image_names: list[str] = []
        self.shapes: list[tuple[int, int] | None] = []  # None if no mask gives the size
        self.object_images: list[npt.NDArray[np.int64]] = []
        self.object_classes: list[npt.NDArray[np.int32]] = []
        self.boxes: list[npt.NDArray[np.float64]] = []
        self.masks: list[Masks] = []
        self.boxless = self.other_class = self.maskless = 0
        columns, found = _core.read_rvc1_labels(
            read_bytes(self.file, pipe=False, expansion=TRUTH_EXPANDS),
            lenient=problems.lenient,
            max_examples=MAX_EXAMPLES,
        )
        problems.add_raw(found, self.file)
        keys: list[str] = columns["images"]
        order = _in_order(keys)
        twice = [at for before, at in pairwise(order) if keys[at] == keys[before]]
        problems.add("duplicate id", twice, lambda at: InputError(
            "this image occurs twice", file=self.file, image=keys[at], remedy="keep one of them"
        ))  # fmt: skip
        objects_end = np.searchsorted(columns["object_images"], np.arange(len(keys)), side="right")
        objects_begin = np.searchsorted(columns["object_images"], np.arange(len(keys)))
        for image in order:
            rows = np.arange(objects_begin[image], objects_end[image])
            pixels = None
            if columns["has_mask"][image]:
                try:
                    pixels = self._pixels(columns, image)
                except InputError as error:
                    problems.catch(error, "unusable mask")
            else:
                self.maskless += len(rows)
            if pixels is not None:
                self._add_objects(columns, image, pixels, rows)
            self.image_names.append(f"{self.folder.name}/{keys[image]}")
            self.shapes.append(None if pixels is None else (pixels.shape[0], pixels.shape[1]))

    def _pixels(self, columns: _core._Rvc1Labels, image: int) -> Pixels:
        """Return the channel of the image's PNG that marks its objects."""
        name, channel = columns["mask_names"][image], int(columns["channels"][image])
        fail = partial(InputError, file=self.file, image=columns["images"][image])
        path = self.folder / name
        if PurePosixPath(name).name != name or PureWindowsPath(name).name != name or "\0" in name:
            raise fail(f"expected the name of a file beside labels.json, but got {name[:80]!r}", entry="mask_name")
        try:
            data = read_regular(path)
        except InputError as error:
            raise fail(
                f"{path}: {error.problem}", entry="mask_name", remedy="keep the masks beside labels.json"
            ) from None
        self.runs_left += _RUNS_PER_BYTE * len(data)

        def choose(channels: int) -> int:
            if channels <= 2:
                return 0  # grey: all colours are equal
            if not 0 <= channel < channels:
                raise fail(f"expected a channel from 0 to {channels - 1}, but got {channel}", entry="mask_channel")
            return 2 - channel if channel < 3 else 3  # RVC1 numbers channels as OpenCV: blue, green, red, alpha

        return decode_png(data, str(path), choose)

    def _add_objects(self, columns: _core._Rvc1Labels, image: int, pixels: Pixels, rows: npt.NDArray[np.int64]) -> None:
        """Add objects of the next image."""
        names = [columns["object_classes"][int(row)] for row in rows]
        classes = np.array([_COLUMN.get(challenge_name(label), -1) for label in names], dtype=np.int32)
        known = classes >= 0
        self.other_class += int((~known).sum())
        values, which = np.unique(columns["mask_ids"][rows[known]], return_inverse=True)
        masks = self._masks(pixels, values, which.reshape(-1).astype(np.int64), columns["images"][image])
        stated = columns["boxes"][rows[known]]
        boxes = np.where(np.isnan(stated), masks.boxes, stated)
        there = np.flatnonzero((masks.pixels > 0) | ~np.isnan(stated[:, 0]))
        self.boxless += len(masks) - len(there)
        self.object_images.append(np.full(len(there), len(self.image_names), dtype=np.int64))
        self.object_classes.append(classes[known][there])
        self.boxes.append(boxes[there])
        self.masks.append(masks.take(there))

    def _masks(self, pixels: Pixels, values: npt.NDArray[np.int64], which: npt.NDArray[np.int64], image: str) -> Masks:
        """Return the masks of objects, one per pixel value; raise if they exceed the remaining number of runs."""
        found = _core.label_runs(pixels, values, self.runs_left)
        masks = None if found is None else Masks(*found)
        if masks is not None:
            self.runs_left -= int(np.diff(masks.offsets)[which].sum())
        if masks is None or self.runs_left < 0:
            raise InputError(
                "the masks up to this one need too much memory for files of this size",
                file=self.file,
                image=image,
                remedy="check that the mask is not a photo, or split the folder by sequences",
            )
        return masks.take(which)


def _in_order(keys: list[str]) -> list[int]:
    """Return the order of images: by number, as in the challenge, or by name if a name is not a number."""
    numbers = all(key.isascii() and key.isdigit() and len(key) < 40 for key in keys)
    return sorted(range(len(keys)), key=lambda at: (int(keys[at]) if numbers else 0, keys[at]))


def _known_shapes(sequences: list[_Sequence]) -> npt.NDArray[np.int32]:
    """Return the sizes of all images; unknown ones are those of another image of the sequence, or of any."""
    everywhere = [shape for s in sequences for shape in s.shapes if shape is not None]
    shapes: list[tuple[int, int]] = []
    for sequence in sequences:
        own = [shape for shape in sequence.shapes if shape is not None]
        usual = (own or everywhere or [(1, 1)])[0]
        shapes += [usual if shape is None else shape for shape in sequence.shapes]
    return np.array(shapes, dtype=np.int32).reshape(-1, 2)


def _table(sequences: list[_Sequence], source: str) -> GroundTruth:
    shapes = _known_shapes(sequences)
    starts = np.cumsum([0] + [len(s.shapes) for s in sequences])
    masks = Masks.concatenate([part for s in sequences for part in s.masks])
    image_rows = [part + start for s, start in zip(sequences, starts, strict=False) for part in s.object_images]
    boxes = np.concatenate([np.zeros((0, 4)), *(part for s in sequences for part in s.boxes)])
    left_out = {
        "objects-without-place": sum(s.boxless for s in sequences),
        "objects-outside-challenge": sum(s.other_class for s in sequences),
        "objects-without-metadata": sum(s.maskless for s in sequences),
    }
    return GroundTruth(
        dataset=Dataset(
            classes=CHALLENGE_CLASSES,
            image_ids=np.arange(len(shapes)),
            widths=shapes[:, 1],
            heights=shapes[:, 0],
            file_names=tuple(name for s in sequences for name in s.image_names),
            category_ids=np.arange(len(CHALLENGE_CLASSES)),
            rules="challenge",
            source=source,
        ),
        image_rows=np.concatenate([np.zeros(0, np.int64), *image_rows]),
        labels=np.concatenate([np.zeros(0, np.int32), *(part for s in sequences for part in s.object_classes)]),
        boxes=boxes,
        masks=masks,
        areas=np.where(masks.pixels > 0, masks.pixels, np.prod(boxes[:, 2:] - boxes[:, :2] + 1.0, axis=1)),
        notes=tuple(Note(code, count) for code, count in left_out.items() if count),
    )


RVC1_TRUTH = TruthFormat(
    name="rvc1",
    title="challenge ground truth",
    sniff=lambda source: source.is_folder,
    last=True,
    read=_read_truth,
)
