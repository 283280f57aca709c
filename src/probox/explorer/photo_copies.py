"""Copies of photos for the page: as they are where a browser can show them, and small ones for the gallery."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from probox.files.output import OutputFolder
from probox.files.photos import UNREADABLE, orientation_of, to_rgb, turn_upright
from probox.support.optional import require

_SHOWN = {".jpg": ".jpg", ".jpeg": ".jpg", ".png": ".png", ".webp": ".webp", ".gif": ".gif", ".bmp": ".bmp"}

_THUMB = 480

_EMBEDDED = 1024

Progress = Callable[[int, int], None]

Read = TypeVar("Read")


def copy_photos(
    photos: Sequence[Path | None],
    sizes: Sequence[tuple[int, int]],
    folder: OutputFolder,
    progress: Progress | None = None,
) -> tuple[list[str], list[str]]:
    """Copy photos to ``photos/`` and make ``thumbs/``; return each one's ending ("" for none) and what went wrong."""

    def read(number: int) -> tuple[str, bytes, bytes]:
        path = photos[number]
        assert path is not None
        return _copy(path, sizes[number])

    def write(number: int, copy: tuple[str, bytes, bytes]) -> str:
        ending, photo, thumb = copy
        folder.write(f"thumbs/{number}.jpg", thumb)
        folder.write(f"photos/{number}{ending}", photo)
        return ending

    return _each(read, write, photos, progress)


def embed_photos(
    photos: Sequence[Path | None], sizes: Sequence[tuple[int, int]], progress: Progress | None = None
) -> tuple[list[str], list[str]]:
    """Return photos as data addresses ("" for none), none larger than 1,024 pixels, and what went wrong."""

    def read(number: int) -> bytes:
        path = photos[number]
        assert path is not None
        return _jpeg(_reduce(path, sizes[number], _EMBEDDED), 82)

    def encode(number: int, photo: bytes) -> str:
        return "data:image/jpeg;base64," + base64.b64encode(photo).decode("ascii")

    return _each(read, encode, photos, progress)


def _each(
    read: Callable[[int], Read],
    use: Callable[[int, Read], str],
    photos: Sequence[Path | None],
    progress: Progress | None,
) -> tuple[list[str], list[str]]:
    """Work on all photos on a few threads; a photo that cannot be read counts as none."""
    failures: list[str] = []
    decompression_bomb = require("PIL.Image", extra="report").DecompressionBombError

    def one(number: int) -> str:
        if photos[number] is None:
            return ""
        try:
            copy = read(number)
        except (*UNREADABLE, decompression_bomb) as error:
            # What cannot be written is another matter, and ends the work.
            failures.append(f"{photos[number]}: cannot be read as an image ({error})")
            return ""
        return use(number, copy)

    answers: list[str] = []
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for done, answer in enumerate(pool.map(one, range(len(photos)))):
            answers.append(answer)
            if progress is not None:
                progress(done + 1, len(photos))
    return answers, sorted(failures)


def _copy(path: Path, size: tuple[int, int]) -> tuple[str, bytes, bytes]:
    """Return the ending and bytes of a photo that a browser can show, and a small one."""
    pillow = require("PIL.Image", extra="report")
    with pillow.open(path) as image:
        as_it_is = orientation_of(image) == 1
    thumb = _jpeg(_reduce(path, size, _THUMB), 80)
    ending = _SHOWN.get(path.suffix.lower(), "")
    if ending and as_it_is:
        return ending, path.read_bytes(), thumb
    return ".jpg", _jpeg(_reduce(path, size, 1 << 20), 92), thumb


def _jpeg(image: Any, quality: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def _reduce(path: Path, size: tuple[int, int], longest: int) -> Any:
    """Return a photo, turned as the truth's size says, scaled down if it is larger than `longest`."""
    with require("PIL.Image", extra="report").open(path) as image:
        chosen, _ = to_rgb(turn_upright(image, size, longest=longest))
        chosen.thumbnail((longest, longest))
        return chosen


def encode_png(values: Any) -> str:
    """Return a uint8 array as the data address of a grey PNG picture."""
    buffer = io.BytesIO()
    require("PIL.Image", extra="report").fromarray(values).save(buffer, "PNG", optimize=False)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
