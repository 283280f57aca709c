"""Names of a detector's score columns."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.formats.label_text import read_text
from probox.tables.coco_classes import COCO_CATEGORY_IDS, COCO_CLASSES

__all__ = ["COCO_CATEGORY_IDS", "COCO_CLASSES", "Columns", "name_columns", "read_classes"]


@dataclasses.dataclass(frozen=True)
class Columns:
    """Which columns of a detector's scores carry which class."""

    names: tuple[str, ...]
    take: npt.NDArray[np.int64]

    def select(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the columns (last axis) of the named classes."""
        if scores.shape[-1] == len(self.take):  # nothing is left out, so nothing need be copied
            return scores
        return np.ascontiguousarray(scores[..., self.take])


def name_columns(columns: int, classes: Sequence[str] | None = None, *, background: bool = True) -> Columns:
    """Return the names of a detector's score columns.

    Without `classes`, 80 columns are COCO's, 81 have a background first, 90 and 91 are COCO's category ids (from 1,
    from 0). With `classes`, one more column than names is a background, first; not for a head that has no
    `background`, where every column is a class and a name that is missing would move all others.
    """
    if classes is not None:
        # Names that can't be used must not make way for COCO's.
        twice = [name for name, count in Counter(classes).items() if count > 1]
        if twice:
            raise InputError(
                f"several classes are called {twice[0]!r:.60}",
                remedy="give names of the classes, each its own, in the order of the model's outputs",
            )
        if columns != len(classes) and not (background and columns == len(classes) + 1):
            raise InputError(f"expected {columns} class names for the model's {columns} scores, but got {len(classes)}")
        return Columns(tuple(classes), np.arange(len(classes)) + (columns - len(classes)))
    ids = np.array(COCO_CATEGORY_IDS)
    coco = {80: np.arange(80), 81: np.arange(1, 81), 90: ids - 1, 91: ids}
    if columns not in coco or (columns == 81 and not background):
        raise InputError(
            f"the model has {columns} classes, which are not COCO's",
            remedy="give the names of its classes in the order of its outputs",
        )
    return Columns(COCO_CLASSES, coco[columns])


def read_classes(path: str | Path) -> tuple[str, ...]:
    """Return class names from a file: one per line, or a JSON list of names."""
    text = read_text(path)
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"expected a JSON list of names ({error})", file=str(path)) from None
        if not all(isinstance(name, str) for name in names):
            raise InputError("expected a JSON list of names", file=str(path))
    else:
        names = [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise InputError("expected class names, one per line", file=str(path))
    return tuple(names)
