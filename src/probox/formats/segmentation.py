"""Probabilistic segmentation: heatmaps in ``.npy`` files beside an RVC1 file, mapped into memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError

__all__ = ["HeatmapFiles", "box_of"]

_FORMAT = "store m x H x W float arrays in [0, 1] or uint8 arrays"


class HeatmapFiles:
    """The ``.npy`` files that one detections file names; each is opened once and read only where it is used."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder = folder
        self._names = names
        self._open: dict[int, npt.NDArray[np.generic] | InputError] = {}

    def heatmap(self, file: int, number: int, shape: npt.NDArray[np.int32]) -> npt.NDArray[np.generic]:
        """Return map `number` of the file of that number, which must have the image's shape."""
        if file not in self._open:
            self._open[file] = self._load(self._names[file])
        maps = self._open[file]
        if isinstance(maps, InputError):
            raise maps
        name = self._names[file]
        if maps.ndim != 3 or maps.shape[1:] != tuple(shape):
            found = " x ".join(map(str, maps.shape))
            raise InputError(
                f"expected {name} to have shape m x {shape[0]} x {shape[1]} as the image, but got {found}",
                remedy=_FORMAT,
            )
        if not 0 <= number < len(maps):
            raise InputError(
                f"expected mask_id to be one of the {len(maps)} maps of {name}, but got {number}",
                remedy="count maps from 0",
            )
        heatmap: npt.NDArray[np.generic] = maps[number]
        return heatmap

    def _load(self, name: str) -> npt.NDArray[np.generic] | InputError:
        parts = (*PurePosixPath(name).parts, *PureWindowsPath(name).parts)
        anchored = PurePosixPath(name).is_absolute() or bool(PureWindowsPath(name).anchor)
        if not name or "\0" in name or ".." in parts or anchored:
            return InputError(
                f"expected masks_file to lie beside this file, but got {name[:80]!r}", remedy="write a relative path"
            )
        path = self._folder / name
        try:
            mapped = np.lib.format.open_memmap(path, mode="r")
        except FileNotFoundError:
            return InputError(f"no such file: {path}", remedy="keep the .npy files beside the JSON")
        except Exception as error:  # NumPy's reader of headers raises whatever a damaged header makes it stumble over
            reason = " ".join(str(error).split())[:120]
            return InputError(f"{path} is not a usable .npy file ({reason})", remedy=_FORMAT)
        if mapped.dtype != np.uint8 and not np.issubdtype(mapped.dtype, np.floating):
            return InputError(f"expected floats or uint8 in {path}, but got {mapped.dtype}", remedy=_FORMAT)
        return np.asarray(mapped)


def box_of(heatmap: npt.NDArray[Any], *, last_pixel: bool = False) -> list[float]:
    """Return the box around the pixels with P >= 0.5, or around those with P > 0 if there are none.

    ``x2, y2`` is the far edge of the last pixel, as in COCO's boxes: a map that is 1 on pixel (3, 4) alone has the
    box ``[3, 4, 4, 5]``; with `last_pixel` it is that pixel itself, as in the challenge's, ``[3, 4, 3, 4]``. A map of
    zeros has the box ``[0, 0, 0, 0]``.
    """
    beyond = 0.0 if last_pixel else 1.0
    half = 127.5 if heatmap.dtype == np.uint8 else 0.5
    for chosen in (heatmap >= half, heatmap > 0):
        columns, rows = np.flatnonzero(chosen.any(axis=0)), np.flatnonzero(chosen.any(axis=1))
        if len(columns):
            return [float(columns[0]), float(rows[0]), columns[-1] + beyond, rows[-1] + beyond]
    return [0.0, 0.0, 0.0, 0.0]
