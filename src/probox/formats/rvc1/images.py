"""Which list of an RVC1 file belongs to which image: its ``img_names`` say so, or the order of the lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.formats.image_names import rows_by_name
from probox.formats.problems import Problems
from probox.notes import Note

__all__ = ["ImageCountError", "rows_of_lists"]

Ids = npt.NDArray[np.int64]


class ImageCountError(InputError):
    """A file that goes by position has lists for more or fewer images than the truth has."""


def rows_of_lists(
    columns: _core._Rvc1Detections, image_ids: Ids, file_names: Sequence[str], file: str, problems: Problems
) -> tuple[Ids, list[Note]]:
    """Return the row of each list's image, -1 for one that the truth does not have, and what to say of it.

    Parameters
    ----------
    columns : dict
        What the kernel read.
    image_ids, file_names
        The truth's images that the file may speak of.
    file : str
        For messages.
    problems : Problems
        Where they go.
    """
    count, names = int(columns["images"]), columns["image_names"]
    if not columns["has_image_names"]:
        return _in_order(count, len(image_ids), file, problems), []
    if len(names) != count:
        error = InputError(
            f"expected one name for each of the {count} lists of detections, but got {len(names)}",
            file=file,
            entry="img_names",
            remedy="write one name per list, or leave img_names out: then lists follow the order of image ids",
        )
        problems.catch(error, "image count")
        return np.full(count, -1), []
    rows = rows_by_name(names, file_names)
    if count and (rows < 0).all():
        if not any(file_names):
            return _in_order(count, len(image_ids), file, problems), [Note("lists-in-order")]
        error = InputError(
            f"none of the {count} names is an image of the ground truth (the first is {names[0][:80]!r}, "
            f"there {file_names[0][:80]!r})",
            file=file,
            entry="img_names",
            remedy="name the images as the ground truth does, or leave img_names out",
        )
        problems.catch(error, "unknown image")
        return rows, []
    _refuse_twins(rows, names, image_ids, file, problems)
    return rows, _left_out(rows, columns, file, problems)


def _in_order(lists: int, images: int, file: str, problems: Problems) -> Ids:
    """Return one row after the other, if there are as many lists as images."""
    if lists != images:
        error = ImageCountError(
            f"expected detections of {images} images, as the ground truth has, but got {lists}",
            file=file,
            entry="detections",
            remedy="write one list per image, in ascending order of image id, also for images without detections",
        )
        problems.catch(error, "image count")
    return np.arange(lists)


def _refuse_twins(rows: Ids, names: Sequence[str], image_ids: Ids, file: str, problems: Problems) -> None:
    known = np.flatnonzero(rows >= 0)
    order = known[np.argsort(rows[known], kind="stable")]
    again = order[1:][rows[order[1:]] == rows[order[:-1]]]
    problems.add("duplicate id", again.tolist(), lambda at: InputError(
        f"{names[at][:80]!r} names an image that another name stands for too",
        file=file, image=int(image_ids[rows[at]]), entry=f"img_names[{at}]", remedy="give each image one list",
    ))  # fmt: skip
    rows[again] = -1


def _left_out(rows: Ids, columns: _core._Rvc1Detections, file: str, problems: Problems) -> list[Note]:
    unknown = np.flatnonzero(rows < 0)
    detections = np.isin(columns["image_rows"], unknown)
    problems.warn("unknown image", unknown.tolist(), lambda at: InputError(
        "the ground truth does not have this image: its detections are left out",
        file=file, entry=f"img_names[{at}]",
    ))  # fmt: skip
    if not detections.any():
        return []
    return [Note("unknown-images", detections.sum(), images=len(np.unique(columns["image_rows"][detections])))]
