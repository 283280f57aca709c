"""Probabilistic segmentation: heatmaps in ``.npy`` files beside an RVC1 file, mapped into memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError

__all__ = ["HeatmapFiles", "box_of_heatmap"]

_FORMAT = "store m x H x W float arrays in [0, 1] or uint8 arrays"


class HeatmapFiles:
    """The ``.npy`` files that one detections file names; each is opened once and read only where it is used."""

    def __init__(self, folder: Path, names: Sequence[str], source: str) -> None:
        self._folder = folder
        self._names = names
        self._source = source
        self._open: dict[int, npt.NDArray[np.generic]] = {}

    def take(
        self, columns: dict[str, Any], image_ids: npt.NDArray[np.int64], shapes: npt.NDArray[np.int32]
    ) -> tuple[list[npt.NDArray[np.generic] | None], npt.NDArray[np.float64]]:
        """Return each detection's heatmap or None, and the boxes with those that were not given filled in."""
        heatmaps: list[npt.NDArray[np.generic] | None] = [None] * len(image_ids)
        boxes: npt.NDArray[np.float64] = columns["boxes"].copy()
        for row in np.flatnonzero(columns["mask_files"] >= 0):
            entry = f"detections[{columns['image_rows'][row]}][{columns['entries'][row]}]"
            file, number = int(columns["mask_files"][row]), int(columns["mask_ids"][row])
            heatmap = self._heatmap(file, number, tuple(shapes[row]), int(image_ids[row]), entry)
            heatmaps[row] = heatmap
            if np.isnan(boxes[row]).all():
                boxes[row] = box_of_heatmap(heatmap)
        boxes.flags.writeable = False
        return heatmaps, boxes

    def size_of(self, file: int) -> tuple[int, int]:
        """Return the width and height of the maps in one of the files, for readers without a truth to tell."""
        maps = self._load(self._names[file], 0, "detections")
        return (int(maps.shape[2]), int(maps.shape[1])) if maps.ndim == 3 else (1, 1)

    def _heatmap(
        self, file: int, number: int, shape: tuple[int, ...], image: int, entry: str
    ) -> npt.NDArray[np.generic]:
        if file not in self._open:
            self._open[file] = self._load(self._names[file], image, entry)
        maps = self._open[file]
        fail = partial(InputError, file=self._source, image=image, entry=entry)
        name = self._names[file]
        if maps.ndim != 3 or maps.shape[1:] != shape:
            found = " x ".join(map(str, maps.shape))
            raise fail(
                f"expected {name} to have shape m x {shape[0]} x {shape[1]} as the image, but got {found}",
                remedy=_FORMAT,
            )
        if not 0 <= number < len(maps):
            raise fail(f"expected mask_id from 0 to {len(maps) - 1}, the maps of {name}, but got {number}")
        heatmap: npt.NDArray[np.generic] = maps[number]
        return heatmap

    def _load(self, name: str, image: int, entry: str) -> npt.NDArray[np.generic]:
        fail = partial(InputError, file=self._source, image=image, entry=f"{entry}.masks_file")
        parts = (*PurePosixPath(name).parts, *PureWindowsPath(name).parts)
        if (
            not name
            or "\0" in name
            or ".." in parts
            or PurePosixPath(name).is_absolute()
            or PureWindowsPath(name).drive
        ):
            raise fail(f"expected a file beside this one, but got {name[:80]!r}", remedy="write a relative path")
        path = self._folder / name
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise fail(f"no such file: {path}", remedy="keep the .npy files beside the JSON") from None
        except Exception as error:
            # NumPy's reader of headers raises whatever the damaged header makes it stumble over.
            reason = " ".join(str(error).split())[:120]
            raise fail(f"{path} is not a usable .npy file ({reason})", remedy=_FORMAT) from None
        if not isinstance(mapped, np.ndarray) or not (
            mapped.dtype == np.uint8 or np.issubdtype(mapped.dtype, np.floating)
        ):
            found = getattr(mapped, "dtype", type(mapped).__name__)
            raise fail(f"expected floats or uint8 in {path}, but got {found}", remedy=_FORMAT)
        return np.asarray(mapped)


def box_of_heatmap(heatmap: npt.NDArray[Any]) -> list[float]:
    """Return the box around the pixels with P >= 0.5, or around those with P > 0 if there are none.

    ``x2, y2`` is the far edge of the last pixel: a map that is 1 on pixel (3, 4) alone has the box
    ``[3, 4, 4, 5]``. A map of zeros has the box ``[0, 0, 0, 0]``.
    """
    half = 127.5 if heatmap.dtype == np.uint8 else 0.5
    for chosen in (heatmap >= half, heatmap > 0):
        columns, rows = np.flatnonzero(chosen.any(axis=0)), np.flatnonzero(chosen.any(axis=1))
        if len(columns):
            return [float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)]
    return [0.0, 0.0, 0.0, 0.0]
