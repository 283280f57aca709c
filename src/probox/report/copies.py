"""Copies of photos for the explorer: as they are where a browser can show them, and small ones for the gallery."""

from __future__ import annotations

import base64
import io
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from probox.report.photos import require

__all__ = ["copy_photos", "embedded_photos", "small_png"]

_SHOWN = {".jpg": ".jpg", ".jpeg": ".jpg", ".png": ".png", ".webp": ".webp", ".gif": ".gif", ".bmp": ".bmp"}
_THUMB = 480
_EMBEDDED = 1024
_ORIENTATION = 274  # EXIF's tag

Progress = Callable[[int, int], None]


def copy_photos(
    photos: Sequence[Path | None], sizes: Sequence[tuple[int, int]], folder: Path, progress: Progress | None = None
) -> tuple[list[str], list[str]]:
    """Copy photos to ``photos/`` and make ``thumbs/``; return each one's ending ("" for none) and what went wrong."""
    require("PIL.Image")
    (folder / "photos").mkdir(parents=True, exist_ok=True)
    (folder / "thumbs").mkdir(parents=True, exist_ok=True)

    def one(number: int) -> str:
        path = photos[number]
        return "" if path is None else _copy(path, sizes[number], folder, number)

    return _each(one, photos, progress)


def embedded_photos(
    photos: Sequence[Path | None], sizes: Sequence[tuple[int, int]], progress: Progress | None = None
) -> tuple[list[str], list[str]]:
    """Return photos as data addresses ("" for none), none larger than 1,024 pixels, and what went wrong."""

    def one(number: int) -> str:
        path = photos[number]
        if path is None:
            return ""
        buffer = io.BytesIO()
        _reduced(path, sizes[number], _EMBEDDED).save(buffer, "JPEG", quality=82)
        return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")

    return _each(one, photos, progress)


def _each(
    work: Callable[[int], str], photos: Sequence[Path | None], progress: Progress | None
) -> tuple[list[str], list[str]]:
    """Work on all photos on a few threads; a photo that cannot be read counts as none."""
    failures: list[str] = []
    decompression_bomb = require("PIL.Image").DecompressionBombError

    def safely(number: int) -> str:
        try:
            return work(number)
        except (OSError, ValueError, SyntaxError, decompression_bomb) as error:
            failures.append(f"{photos[number]}: cannot be read as an image ({error})")
            return ""

    answers: list[str] = []
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for done, answer in enumerate(pool.map(safely, range(len(photos)))):
            answers.append(answer)
            if progress is not None:
                progress(done + 1, len(photos))
    return answers, sorted(failures)


def _copy(path: Path, size: tuple[int, int], folder: Path, number: int) -> str:
    pillow = require("PIL.Image")
    with pillow.open(path) as image:
        turned = image.getexif().get(_ORIENTATION, 1) != 1
    _reduced(path, size, _THUMB).save(folder / "thumbs" / f"{number}.jpg", quality=80)
    ending = _SHOWN.get(path.suffix.lower(), "")
    if ending and not turned:
        shutil.copyfile(path, folder / "photos" / f"{number}{ending}")
        return ending
    _reduced(path, size, 1 << 20).save(folder / "photos" / f"{number}.jpg", quality=92)
    return ".jpg"


def _reduced(path: Path, size: tuple[int, int], longest: int) -> Any:
    """Return a photo, turned as the truth's size says, scaled down if it is larger than `longest`."""
    pillow, ops = require("PIL.Image"), require("PIL.ImageOps")
    with pillow.open(path) as image:
        image.draft("RGB", (longest, longest))  # JPEG files can be decoded smaller, much faster
        turned = image if image.size[0] == 0 else ops.exif_transpose(image)
        upright = (turned.size[0] >= turned.size[1]) == (size[0] >= size[1])
        chosen = (turned if upright else image).convert("RGB")
        chosen.thumbnail((longest, longest))
        return chosen


def small_png(values: Any) -> str:
    """Return a uint8 array as the data address of a grey PNG picture."""
    buffer = io.BytesIO()
    require("PIL.Image").fromarray(values).save(buffer, "PNG", optimize=False)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
