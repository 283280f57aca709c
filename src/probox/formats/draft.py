"""Detections as a reader gathered them, before they are checked and become a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.formats.problems import Problems
from probox.notes import Note, merge_notes
from probox.tables.covariances import nearest_covariances
from probox.tables.dataset import Dataset
from probox.tables.detections import DetectionColumns, Detections, optional_columns

__all__ = ["Draft", "joined", "repaired"]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Draft(DetectionColumns):
    """Columns that a reader has gathered and nobody has checked, and where in which file each row stands."""

    adopts: ClassVar[bool] = True

    place: Callable[[int], tuple[str, str]]
    """The file and the entry of a row, for messages."""

    def select(self, rows: npt.NDArray[np.int64]) -> Draft:
        """Return the draft of these rows alone."""
        place = self.place
        return self.replace(place=lambda row: place(int(rows[row])), **self.columns_at(rows))

    def noting(self, *notes: Note) -> Draft:
        """Return the draft with more to say about it."""
        return self.replace(notes=(*self.notes, *notes))

    def to_table(self, *, repair: bool = False) -> Detections:
        """Return the checked table; with `repair`, invalid covariances become the nearest valid ones."""
        draft = self.repaired() if repair else self
        try:
            return Detections(classes=draft.classes, source=draft.source, notes=draft.notes, **draft.columns())
        except InputError as error:
            if isinstance(error.image, int) and error.image in self.image_ids:
                error.file, _ = self.place(int(np.argmax(self.image_ids == error.image)))
            raise

    def within(self, dataset: Dataset, problems: Problems) -> Draft:
        """Return the detections in images of the data set; the others are counted in a note and warned of."""
        known = dataset.rows_of(self.image_ids) >= 0
        if known.all():
            return self
        elsewhere = self.image_ids[~known]
        images = np.unique(elsewhere)
        problems.warn("unknown image", images.tolist(), lambda image: InputError(
            "the ground truth does not have this image: its detections are left out", file=self.source, image=image
        ))  # fmt: skip
        return self.select(np.flatnonzero(known)).noting(Note("unknown-images", len(elsewhere), images=len(images)))

    def repaired(self) -> Draft:
        """Return the draft with valid covariances, and a note if any had to change."""
        if self.covariances is None:
            return self
        covariances, changed = repaired(self.covariances)
        return self.replace(covariances=covariances).noting(Note("repaired-covariances", changed)) if changed else self


def repaired(covariances: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], int]:
    """Return covariances that are symmetric and positive semi-definite, and how many detections needed it."""
    finite = np.flatnonzero(np.isfinite(covariances).all(axis=(1, 2, 3)))
    nearest = nearest_covariances(covariances[finite])
    changed = (nearest != covariances[finite]).any(axis=(1, 2, 3))
    if not changed.any():
        return covariances, 0
    result: npt.NDArray[np.float64] = covariances.copy()
    result[finite[changed]] = nearest[changed]
    return result, int(changed.sum())


def joined(
    drafts: Sequence[Draft], label_probs: npt.NDArray[np.float32], classes: tuple[str, ...], source: str
) -> Draft:
    """Return one draft of several files, with label probabilities brought to common classes."""
    starts = np.cumsum([0] + [len(draft) for draft in drafts])

    def place(row: int) -> tuple[str, str]:
        part = int(np.searchsorted(starts, row, side="right")) - 1
        return drafts[part].place(row - int(starts[part]))

    return Draft(
        classes=classes,
        image_ids=np.concatenate([np.zeros(0, np.int64), *(draft.image_ids for draft in drafts)]),
        boxes=np.concatenate([np.zeros((0, 4)), *(draft.boxes for draft in drafts)]),
        label_probs=label_probs,
        source=source,
        place=place,
        **optional_columns(drafts),
        notes=merge_notes(draft.notes for draft in drafts),
    )
