"""Detections in Parquet: one row per detection, columns of numbers, row groups of whole images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.reading import Paths
from probox.formats.draft import Draft
from probox.formats.parquet.columns import SIZES, are_among
from probox.formats.parquet.file import ParquetFile, fingerprint_of
from probox.support.parallel import thread_count
from probox.tables.labels import require_label_matrix

__all__ = ["DetectionFile", "known_rows", "probability_names"]

COVARIANCES = ("cov1_xx", "cov1_xy", "cov1_yy", "cov2_xx", "cov2_xy", "cov2_yy")
TRANSPOSED = ("cov1_yx", "cov2_yx")

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


def known_rows(draft: Draft, image_ids: Ids) -> tuple[Draft, Ids]:
    """Return the rows in these images, whose ids ascend, and the image ids of the others."""
    known = are_among(draft.image_ids, image_ids)
    if known.all():
        return draft, np.zeros(0, np.int64)
    return draft.select(np.flatnonzero(known)), draft.image_ids[~known]


class DetectionFile:
    """An open Parquet file of detections, read whole or by row groups."""

    shards = 1

    def __init__(self, path: Paths) -> None:
        self._file = self.file = ParquetFile(path, "detections")
        self.name = self._file.name
        self.classes = self._file.classes
        self.notes: list[str] = list(self._file.words.get("notes", []))
        self._starts = self._file.group_starts()
        self.has_covariances = any(name in self._file.columns for name in (*COVARIANCES, *TRANSPOSED))

    def read(self, groups: Sequence[int] | None = None) -> Draft:
        """Return the rows of all or some row groups."""
        file, classes = self._file, self.classes
        probs = probability_names(len(classes))
        given = [name for name in probs if name in file.columns]
        stated = ["score"] if not given or "score" in file.columns else []
        columns = ["image_id", *file.box_names(), "label", *stated]
        columns += COVARIANCES if self.has_covariances else ()
        table = file.read(columns, groups, optional=TRANSPOSED)
        image_ids = file.numbers(table, "image_id", np.int64)
        file.check_order(image_ids)
        file.check_told(image_ids, groups)
        labels = file.numbers(table, "label", np.int32)
        self._check_labels(labels, image_ids)
        scores = file.numbers(table, "score", np.float64) if stated else None
        require_label_matrix(len(image_ids), len(classes), self.name)
        if given:
            label_probs = self._label_probs(probs, len(image_ids), groups)
        else:
            assert scores is not None
            label_probs = _core.spread_scores(scores, labels, len(classes), thread_count(None))
        boxes, extents = file.boxes(table)
        rows = file.row_numbers(groups)
        if scores is not None:
            file.check_values("score", scores, rows)
        if extents is not None:
            for name, column in zip(SIZES, extents.T, strict=True):
                file.check_values(name, column, rows, at_least=0.0)
        return Draft(
            classes=classes,
            image_ids=image_ids,
            boxes=boxes,
            label_probs=label_probs,
            covariances=self._covariances(table) if self.has_covariances else None,
            labels=labels,
            scores=scores,  # type: ignore[arg-type]  # None: the table finds them
            extents=extents,  # type: ignore[arg-type]
            source=self.name,
            place=lambda row: (self.name, f"row {rows[row]}"),
            notes=tuple(self.notes),
        )

    def pieces(self, image_ids: Ids | None = None) -> Iterator[Draft]:
        """Yield the rows of one row group after the other, of these images alone if ids are given, which ascend.

        Each image lies in one piece; row groups without rows that are wanted are not read.
        """
        if image_ids is None:
            groups = np.flatnonzero(np.diff(self._starts)).tolist()
        else:
            self._file.check_whole_images()
            groups = self._file.groups_of(image_ids)
        last: int | None = None
        for group in groups:
            draft = self.read([group])
            self._file.check_order(draft.image_ids, after=last)
            last = int(draft.image_ids[-1])
            yield draft if image_ids is None else known_rows(draft, image_ids)[0]

    def read_images(self, image_ids: Ids) -> Draft:
        """Return the rows of these images."""
        ids = np.unique(image_ids)
        return known_rows(self.read(self._file.groups_of(ids)), ids)[0]

    def image_counts(self) -> tuple[Ids, Ids]:
        """Return the images that have detections, ascending, and how many each has; their column alone is read."""
        return self._file.image_counts()

    def fingerprint(self) -> str:
        """Return a hash that tells the file from others, found by its footer alone."""
        return fingerprint_of([("", self._file.size, self._file.footer_hash)])

    def _label_probs(self, names: list[str], rows: int, groups: Sequence[int] | None) -> npt.NDArray[np.float32]:
        """Return the label probabilities of row groups; one by one, for together they would take twice the memory."""
        matrix = np.empty((rows, len(names)), np.float32)
        first = 0
        for group in range(self._file.row_groups) if groups is None else groups:
            table = self._file.read(names, [group])
            self._file.fill_rows(matrix, first, table, names)
            first += len(table)
        return matrix

    def _covariances(self, table: Any) -> Floats:
        columns = {name: self._file.numbers(table, name, np.float64) for name in COVARIANCES}
        for name in TRANSPOSED:
            given = name in table.column_names
            columns[name] = self._file.numbers(table, name, np.float64) if given else columns[name.replace("yx", "xy")]
        order = [columns[f"cov{corner}_{entry}"] for corner in (1, 2) for entry in ("xx", "xy", "yx", "yy")]
        return np.ascontiguousarray(np.stack(order).T).reshape(-1, 2, 2, 2)

    def _check_labels(self, labels: npt.NDArray[np.int32], image_ids: Ids) -> None:
        wrong = np.flatnonzero((labels < 0) | (labels >= max(1, len(self.classes))))
        if len(wrong):
            raise InputError(
                f"expected a label below {len(self.classes)}, but got {labels[wrong[0]]}",
                file=self.name, image=int(image_ids[wrong[0]]), remedy="count in the classes of the metadata, from 0",
            )  # fmt: skip


def probability_names(classes: int) -> list[str]:
    """Return the columns of label probabilities."""
    return [f"prob_{column}" for column in range(classes)]
