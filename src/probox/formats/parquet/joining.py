"""What shards hold, as one table by ascending image."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.formats.draft import Draft
from probox.tables.boxes import extents_of
from probox.tables.columns import joined
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import probabilities_of
from probox.tables.masks import Masks

__all__ = ["join_drafts", "join_truths"]

Array = npt.NDArray[Any]


def join_truths(parts: Sequence[GroundTruth], source: str, notes: tuple[str, ...]) -> GroundTruth:
    """Return the table of all images of shards, which share none."""
    datasets = [part.dataset for part in parts]
    if len(parts) == 1:
        return parts[0].replace(dataset=datasets[0].replace(source=source), notes=notes)
    ids = np.concatenate([dataset.image_ids for dataset in datasets])
    order = np.argsort(ids, kind="stable")
    row = np.empty(len(ids), np.int64)
    row[order] = np.arange(len(ids))
    before = np.cumsum([0, *map(len, datasets)])
    image_rows = row[np.concatenate([part.image_rows + at for part, at in zip(parts, before, strict=False)])]
    by_image = np.argsort(image_rows, kind="stable")
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])[by_image]
        for name in ("labels", "boxes", "extents", "areas", "crowd", "ids")
    }
    return parts[0].replace(
        dataset=joined(datasets, order).replace(source=source),
        image_rows=image_rows[by_image],
        masks=Masks.concatenate([part.masks for part in parts]).take(by_image),
        notes=notes,
        **columns,
    )


def join_drafts(drafts: Sequence[Draft], source: str, notes: tuple[str, ...]) -> Draft:
    """Return one draft of the rows of shards, which share no image."""
    starts = np.cumsum([0, *map(len, drafts)])
    ids = np.concatenate([draft.image_ids for draft in drafts])
    order = np.argsort(ids, kind="stable")

    def place(row: int) -> tuple[str, str]:
        at = int(order[row])
        part = int(np.searchsorted(starts, at, side="right")) - 1
        return drafts[part].place(at - int(starts[part]))

    columns: dict[str, Any] = {name: [getattr(draft, name) for draft in drafts] for name in drafts[0].columns()}
    columns["extents"] = [draft.extents if draft.extents is not None else extents_of(draft.boxes) for draft in drafts]
    columns["scores"] = [
        draft.scores if draft.scores is not None else probabilities_of(draft.label_probs, draft.labels)
        for draft in drafts
    ]
    ordered = np.array_equal(order, np.arange(len(order)))
    together: dict[str, Any] = {name: _together(parts, None if ordered else order) for name, parts in columns.items()}
    return _DraftOfShards(classes=drafts[0].classes, source=source, notes=notes, place=place, **together)


def _together(parts: list[Array], order: Array | None) -> Array:
    values = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return values if order is None else values[order]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class _DraftOfShards(Draft):
    """A draft that names the shard of a row that is wrong."""

    def to_table(self, *, repair: bool = False) -> Detections:
        try:
            return super().to_table(repair=repair)
        except InputError as error:
            if isinstance(error.image, int) and (self.image_ids == error.image).any():
                error.file = self.place(int(np.argmax(self.image_ids == error.image)))[0]
            raise
