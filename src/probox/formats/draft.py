"""Detections as a reader gathered them, before they are checked and become a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.tables.detections import Detections, nearest_covariances

__all__ = ["Draft"]

Heatmaps = list[npt.NDArray[np.generic] | None]


@dataclasses.dataclass
class Draft:
    """The columns of `Detections`, and where in which file each row stands."""

    classes: tuple[str, ...]
    image_ids: npt.NDArray[np.int64]
    boxes: npt.NDArray[np.float64]
    label_probs: npt.NDArray[np.float32]
    source: str
    place: Callable[[int], tuple[str, str]]
    """The file and the entry of a row, for messages."""
    covariances: npt.NDArray[np.float64] | None = None
    heatmaps: Heatmaps | None = None
    labels: npt.NDArray[np.int32] | None = None
    scores: npt.NDArray[np.float64] | None = None
    sizes: npt.NDArray[np.float64] | None = None
    notes: list[str] = dataclasses.field(default_factory=list)

    def __len__(self) -> int:
        return len(self.image_ids)

    def select(self, rows: npt.NDArray[np.int64]) -> Draft:
        """Return the draft of these rows alone."""
        place = self.place
        return dataclasses.replace(
            self,
            image_ids=self.image_ids[rows],
            boxes=self.boxes[rows],
            label_probs=self.label_probs[rows],
            place=lambda row: place(int(rows[row])),
            covariances=None if self.covariances is None else self.covariances[rows],
            heatmaps=None if self.heatmaps is None else [self.heatmaps[int(row)] for row in rows],
            labels=None if self.labels is None else self.labels[rows],
            scores=None if self.scores is None else self.scores[rows],
            sizes=None if self.sizes is None else self.sizes[rows],
        )

    def to_table(self, *, repair: bool = False) -> Detections:
        """Return the checked table; with `repair`, invalid covariances become the nearest valid ones."""
        notes = list(self.notes)
        covariances = self.covariances
        if repair and covariances is not None:
            covariances, changed = repaired(covariances)
            if changed:
                notes.append(repair_note(changed))
        return Detections(
            classes=self.classes,
            image_ids=_locked(self.image_ids),
            boxes=_locked(self.boxes),
            label_probs=_locked(self.label_probs),
            covariances=None if covariances is None else _locked(covariances),
            heatmaps=None if self.heatmaps is None else tuple(self.heatmaps),
            labels=self.labels,  # type: ignore[arg-type]  # None: the table chooses
            scores=self.scores,  # type: ignore[arg-type]
            sizes=self.sizes,  # type: ignore[arg-type]
            source=self.source,
            notes=tuple(notes),
        )


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


def repair_note(changed: int) -> str:
    """Say how many detections' covariances were replaced."""
    return f"{changed} detections had invalid covariances: replaced by the nearest valid ones"


def unknown_images_note(rows: int, images: int) -> str:
    """Say how many detections were left out because of their image."""
    return f"{rows} detections in {images} images that the ground truth does not have were left out"


def _locked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, which nobody else holds, so that the table need not copy it."""
    array.flags.writeable = False
    return array


def joined(
    drafts: Sequence[Draft], label_probs: npt.NDArray[np.float32], classes: tuple[str, ...], source: str
) -> Draft:
    """Return one draft of several files, with label probabilities brought to common classes."""
    starts = np.cumsum([0] + [len(draft) for draft in drafts])

    def place(row: int) -> tuple[str, str]:
        part = int(np.searchsorted(starts, row, side="right")) - 1
        return drafts[part].place(row - int(starts[part]))

    covariances = heatmaps = None
    if any(draft.covariances is not None for draft in drafts):
        parts = [np.zeros((len(d), 2, 2, 2)) if d.covariances is None else d.covariances for d in drafts]
        covariances = np.concatenate(parts)
    if any(draft.heatmaps is not None for draft in drafts):
        heatmaps = [h for d in drafts for h in (d.heatmaps or [None] * len(d))]
    return Draft(
        classes=classes,
        image_ids=np.concatenate([np.zeros(0, np.int64), *(draft.image_ids for draft in drafts)]),
        boxes=np.concatenate([np.zeros((0, 4)), *(draft.boxes for draft in drafts)]),
        label_probs=label_probs,
        source=source,
        place=place,
        covariances=covariances,
        heatmaps=heatmaps,
        notes=[note for draft in drafts for note in draft.notes],
    )
