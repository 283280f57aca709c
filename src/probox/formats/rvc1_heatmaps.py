"""Heatmaps beside RVC1 detections and COCO results: ``.npy`` files of maps, read lazily."""

from __future__ import annotations

import dataclasses
import io
import math
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.reading import open_regular
from probox.formats.format import Draft
from probox.formats.problems import Problems
from probox.tables.table import LazyArray

NO_NUMBER = _core.NO_MASK_ID
"""Value of the C++ reader for a missing ``mask_id``."""

_FORMAT = "store m x H x W float arrays in [0, 1] or uint8 arrays"
_HEADER = 1 << 14
"""Limit in bytes; headers of plain arrays are far shorter."""
_BLOCK = 1 << 24
"""Number of bytes of a Fortran-ordered array that are read at a time."""


@dataclasses.dataclass(frozen=True)
class HeatmapFile:
    """Header of an ``.npy`` file with maps m x H x W: shape, dtype and offset."""

    path: Path
    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    fortran: bool
    offset: int
    state: tuple[int, int]
    """Size and modification time, which must not change before a map is read."""

    @classmethod
    def open(cls, path: Path) -> HeatmapFile:
        """Read the header; an H x W array counts as 1 x H x W."""
        fail = partial(InputError, file=str(path), remedy=_FORMAT)
        with open_regular(path) as file:
            head = io.BytesIO(file.read(_HEADER))
            status = os.fstat(file.fileno())
        try:
            read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, fortran, dtype = read[np.lib.format.read_magic(head)](head)
        except KeyError:
            raise fail("is not a plain .npy file") from None
        except Exception as error:  # NumPy's header parser raises various errors for damaged headers
            reason = re.sub(r":? <.* object at \w+>", "", " ".join(str(error).split()))[:120]
            raise fail(f"is not a usable .npy file ({reason})") from None
        if dtype != np.uint8 and not np.issubdtype(dtype, np.floating):
            raise fail(f"expected floats or uint8, but got {dtype}")
        if len(shape) not in (2, 3) or min(shape) < 0:
            found = " x ".join(map(str, shape)) or "a single number"
            raise fail(f"expected maps of m x H x W, but got {found}")
        needed = head.tell() + math.prod(shape) * dtype.itemsize
        if needed > status.st_size:
            problem = f"is cut short: expected {needed:,} bytes, but got {status.st_size:,}"
            raise fail(problem, remedy="write or copy it again")
        count = shape[0] if len(shape) == 3 else 1
        return cls(
            path, (count, shape[-2], shape[-1]), dtype, fortran, head.tell(), (status.st_size, status.st_mtime_ns)
        )

    def read(self, number: int) -> npt.NDArray[np.generic]:
        """Read map `number`."""
        count, height, width = self.shape
        with open_regular(self.path) as file:
            status = os.fstat(file.fileno())
            if (status.st_size, status.st_mtime_ns) != self.state:
                raise self._change_error()
            if not self.fortran or count == 1:
                file.seek(self.offset + number * height * width * self.dtype.itemsize)
                values = self._read(file, height * width)
                return values.reshape((width, height)).T if self.fortran else values.reshape((height, width))
            # In Fortran order the maps alternate per pixel, column by column: read a few columns of all maps at a time.
            file.seek(self.offset)
            heatmap = np.empty((height, width), self.dtype)
            step = max(1, _BLOCK // max(1, count * height * self.dtype.itemsize))
            for first in range(0, width, step):
                columns = min(step, width - first)
                block = self._read(file, columns * height * count).reshape((columns, height, count))
                heatmap[:, first : first + columns] = block[:, :, number].T
            return heatmap

    def _read(self, file: Any, count: int) -> npt.NDArray[np.generic]:
        values: npt.NDArray[np.generic] = np.empty(count, self.dtype)
        if file.readinto(values.view(np.uint8)) != values.nbytes:
            raise self._change_error()
        return values

    def _change_error(self) -> InputError:
        return InputError("changed while it was in use", file=str(self.path), remedy="start again when it is complete")


class StoredHeatmap(LazyArray):
    """A map of a file that acts as an H x W array; it is read on each use and not kept."""

    def __init__(self, file: HeatmapFile, number: int) -> None:
        self.file = file
        self.number = number
        self.shape = file.shape[1:]
        self.dtype = file.dtype
        self.size = math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        self._range: tuple[Any, Any] | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self.file.read(self.number)
        return values if dtype is None else values.astype(dtype, copy=False)

    def __repr__(self) -> str:
        height, width = self.shape
        return f"StoredHeatmap({height} x {width} {self.dtype}, map {self.number} of {self.file.path.name})"

    def min(self) -> Any:
        """Return the smallest value; it is computed once."""
        return self._extremes()[0]

    def max(self) -> Any:
        """Return the largest value; it is computed once."""
        return self._extremes()[1]

    def _extremes(self) -> tuple[Any, Any]:
        if self._range is None:
            values = np.asarray(self)
            self._range = values.min(), values.max()
        return self._range


class HeatmapFiles:
    """The ``.npy`` files of a detection file. Headers are read once, maps on use."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder = folder
        self._names = names
        self._open: dict[int, HeatmapFile | InputError] = {}
        self._maps: dict[tuple[int, int], StoredHeatmap] = {}

    def heatmap(self, file: int, number: int, shape: npt.NDArray[np.int32]) -> npt.NDArray[np.generic]:
        """Return map `number` of a file, which must have the shape of the image."""
        if file not in self._open:
            self._open[file] = self._load(self._names[file])
        maps = self._open[file]
        if isinstance(maps, InputError):
            raise maps
        name = self._names[file]
        count = maps.shape[0]
        if maps.shape[1:] != tuple(shape):
            found = " x ".join(map(str, maps.shape))
            raise InputError(
                f"expected {name} to have shape m x {shape[0]} x {shape[1]} as the image, but got {found}",
                remedy=_FORMAT,
            )
        if number == NO_NUMBER and count == 1:
            number = 0
        if number == NO_NUMBER:
            raise InputError(
                f'expected a key "mask_id", for {name} has {count} maps', remedy="add the index of the map"
            )
        if not 0 <= number < count:
            raise InputError(
                f"expected mask_id to be one of the {count} maps of {name}, but got {number}",
                remedy="count maps from 0",
            )
        # Detections with the same map share it.
        stored = self._maps.setdefault((file, number), StoredHeatmap(maps, number))
        return cast("npt.NDArray[np.generic]", stored)

    def _load(self, name: str) -> HeatmapFile | InputError:
        parts = (*PurePosixPath(name).parts, *PureWindowsPath(name).parts)
        anchored = PurePosixPath(name).is_absolute() or bool(PureWindowsPath(name).anchor)
        if not name or "\0" in name or ".." in parts or anchored:
            return InputError(
                f"expected masks_file to lie beside this file, but got {name[:80]!r}", remedy="write a relative path"
            )
        path = self._folder / name
        try:
            return HeatmapFile.open(path)
        except InputError as error:
            if error.problem == "no such file":
                return InputError(f"no such file: {path}", remedy="keep the .npy files beside the JSON")
            return InputError(f"{path}: {error.problem}", remedy=error.remedy)


def with_heatmaps(
    draft: Draft,
    files: HeatmapFiles,
    file_numbers: npt.NDArray[np.int32],
    map_numbers: npt.NDArray[np.int64],
    shapes: npt.NDArray[np.int32],
    problems: Problems,
    *,
    last_pixel: bool = False,
) -> Draft:
    """Add the heatmaps, and boxes of detections that have only a heatmap, with the ground truth's far edge.

    Each detection has the number of a file, -1 without heatmap, and of a map in it. `shapes` are height and width of
    its image.
    """
    heatmaps: list[npt.NDArray[np.generic] | None] = [None] * len(draft)
    boxes: npt.NDArray[np.float64] = draft.boxes.copy()
    for row in np.flatnonzero(file_numbers >= 0):
        file, entry = draft.place(int(row))
        try:
            heatmap = files.heatmap(int(file_numbers[row]), int(map_numbers[row]), shapes[row])
        except InputError as error:
            problems.catch(
                InputError(error.problem, file=file, image=int(draft.image_ids[row]), entry=entry, remedy=error.remedy),
                "unusable heatmap",
            )
            boxes[row] = 0.0
            continue
        heatmaps[int(row)] = heatmap
        if np.isnan(boxes[row]).all():
            boxes[row] = box_of(heatmap, last_pixel=last_pixel)
    return draft.replace(boxes=boxes, heatmaps=tuple(heatmaps))


def refuse_copy(names: Sequence[str], file: str) -> None:
    """Raise if a file of detections names heatmap files, which a copy of it would lack."""
    if names:
        raise InputError(
            f"names heatmap files ({names[0][:80]!r}), which would not be copied",
            file=file,
            remedy="give the ground truth ({option:truth}), to write them too",
        )


def box_of(heatmap: npt.NDArray[Any], *, last_pixel: bool = False) -> list[float]:
    """Return the box of the pixels with P >= 0.5, or of those with P > 0 if there are none.

    ``x2, y2`` is the far edge of the last pixel, as in COCO boxes: a map that is 1 only at pixel (3, 4) has the box
    ``[3, 4, 4, 5]``. With `last_pixel` it is the pixel itself, as in RVC1 boxes: ``[3, 4, 3, 4]``. A map of zeros has
    the box ``[0, 0, 0, 0]``.
    """
    beyond = 0.0 if last_pixel else 1.0
    heatmap = np.asarray(heatmap)
    half = 127.5 if heatmap.dtype == np.uint8 else 0.5
    for chosen in (heatmap >= half, heatmap > 0):
        columns, rows = np.flatnonzero(chosen.any(axis=0)), np.flatnonzero(chosen.any(axis=1))
        if len(columns):
            return [float(columns[0]), float(rows[0]), columns[-1] + beyond, rows[-1] + beyond]
    return [0.0, 0.0, 0.0, 0.0]
