"""An evaluation as tables for spreadsheets and scripts: one for its numbers, one for each kind of group and row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from probox.evaluation.grouped import counts_of
from probox.tables.flat import FlatTable, text_column

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation

__all__ = ["TABLES", "csv_tables"]

TABLES = ("summary", "per_class", "per_size", "per_image", "confusion", "detections", "objects")
"""Names of the tables."""


def csv_tables(evaluation: Evaluation, name: str) -> dict[str, FlatTable]:
    """Return the tables by their names; that of the numbers has one row, which begins with `name`."""
    return {
        "summary": _summary(evaluation, name),
        "per_class": evaluation.per_class().flat(),
        "per_size": evaluation.per_size().flat(),
        "per_image": evaluation.per_image().flat(),
        "confusion": _confusion(evaluation),
        "detections": evaluation.detections.flat(),
        "objects": evaluation.objects.flat(),
    }


def _summary(evaluation: Evaluation, name: str) -> FlatTable:
    convention = evaluation.convention
    words = {"name": name, "convention": convention.describe()}
    numbers: dict[str, Any] = {
        "images": len(evaluation.dataset),
        **counts_of(evaluation),
        **evaluation.summary(),
    }
    columns = {key: text_column([value]) for key, value in words.items()}
    return FlatTable(columns | {key: np.array([value]) for key, value in numbers.items()})


def _confusion(evaluation: Evaluation) -> FlatTable:
    """Return which classes are taken for which; nothing where nobody was matched."""
    if evaluation.has_pairs:
        table: FlatTable = evaluation.confusion().flat()
        return table
    none = text_column([])
    return FlatTable({"truth": none, "predicted": none, "count": np.zeros(0, np.int64)})
