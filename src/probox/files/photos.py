"""Photos of images: which file of a folder shows which image, and its pixels."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.support.optional import require

__all__ = ["ENDINGS", "UNREADABLE", "find_photo", "load_photo"]

UNREADABLE = (OSError, ValueError, SyntaxError, ImportError)
"""What Pillow raises for a damaged photo. The last is of ultralytics, which puts a function of its own in the place of
Pillow's `open`: for files that are no images it asks for one more package."""

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif")


def find_photo(folder: Path, image_id: int, file_name: str = "") -> Path | None:
    """Return the file of `folder` that shows an image, or None.

    Looked for by the truth's file name, with and without its folders, then by the image's number, plain or
    with leading zeros as COCO writes it; without a file name also by the number that a photo's name ends in.
    Names that lead out of the folder are not followed.
    """
    names = []
    if file_name:
        plain = file_name.replace("\\", "/")
        names += [plain, plain.rsplit("/", 1)[-1]]
    for stem in (str(image_id), f"{image_id:012d}", f"{image_id:06d}"):
        names += [stem + ending for ending in ENDINGS]
    if not file_name:
        names += _numbered(folder).get(image_id, [])
    base = folder.resolve()
    for name in names:
        path = folder / name
        try:
            if path.is_file() and base in path.resolve().parents:
                return path
        except (OSError, ValueError):  # a name that no file system would take
            continue
    return None


@lru_cache(maxsize=4)
def _numbered(folder: Path) -> dict[int, list[str]]:
    """Return the photos of a folder whose names end in a number that no other ends in, by that number."""
    by_number: dict[int, list[str]] = {}
    for path in folder.iterdir():
        digits = re.search(r"(\d{1,18})$", path.stem)
        if digits and path.suffix.lower() in ENDINGS:
            by_number.setdefault(int(digits[1]), []).append(path.name)
    return {number: names for number, names in by_number.items() if len(names) == 1}


def load_photo(path: Path) -> npt.NDArray[np.uint8]:
    """Return a photo as an (H, W, 3) RGB array."""
    image_module, ops = (require(name, extra="report") for name in ("PIL.Image", "PIL.ImageOps"))
    try:
        with image_module.open(path) as image:
            return np.asarray(ops.exif_transpose(image).convert("RGB"))
    except (*UNREADABLE, image_module.DecompressionBombError) as error:
        raise InputError(f"cannot be read as an image ({error})", file=str(path)) from None
