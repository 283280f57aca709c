"""Metrics by class, size and image, and the tables of an evaluation for CSV files."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from probox.evaluation.text import format_value, heading_of, list_directions, shown_columns, unit_of
from probox.measures import registry
from probox.measures.measure import Column, Evaluated, Groups, ImageColumns, Judged, Measure, Summary
from probox.support.formatting import one_line
from probox.support.text_table import grid, html_table, html_text
from probox.support.types import Ints
from probox.tables.flat import FlatTable, NumberTable, Readable, Row, image_columns, raise_unknown, text_column

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation
    from probox.tables.dataset import Dataset
    from probox.tables.results import DetectionTable, ObjectTable

CSV_TABLES = ("summary", "per_class", "per_size", "per_image", "confusion", "detections", "objects")
"""Names of the tables of `csv_tables`."""

COUNTS = ("objects", "detections")
"""Columns with the number of objects and detections of a group, regardless of their outcome."""

MOST_ROWS = 100
"""Maximum number of groups that a notebook shows."""


class Measured(Evaluated, Protocol):
    """An evaluation with the names of its metrics."""

    @property
    def measures(self) -> tuple[str, ...]: ...


class GroupTable(dict[str, Summary], Readable):
    """A summary per class or size by name: a dictionary that prints as a table.

    `Evaluation.per_class` and `Evaluation.per_size` return it. Tables show only the keys `asked` for, by default all.

    Examples
    --------
    >>> table = GroupTable("class", {"cup": {"objects": 3, "PDQ": 0.5}, "dog": {"objects": 0, "PDQ": math.nan}})
    >>> table["cup"]["PDQ"]
    0.5
    >>> print(table)
    class  objects    PDQ
                      [%]
    cup          3  50.00
    not shown: 1 empty
    """

    def __init__(self, group: str = "", groups: Groups | None = None, asked: Collection[str] | None = None) -> None:
        super().__init__({name: Row(numbers) for name, numbers in (groups or {}).items()})
        self.group = group
        self.asked = asked

    def __missing__(self, key: str) -> NoReturn:
        raise_unknown(self.group, key, self)

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the values of all groups by column."""
        names = next(iter(self.values()), {})
        return Row((name, np.array([numbers[name] for numbers in self.values()])) for name in names)

    def _measure(self) -> Groups:
        """Return the groups without columns of metrics that were not computed, where counts of 0 would mislead."""
        if self.asked is None:
            return self
        return {name: {key: own[key] for key in own if key in self.asked} for name, own in self.items()}

    def flat(self) -> FlatTable:
        """Return the names, under ``class`` or ``size``, and a column per number; fractions, not percentages."""
        columns: dict[str, npt.NDArray[Any]] = {self.group: text_column(self)}
        measured = self._measure()
        for key in next(iter(measured.values()), {}):
            numbers = [summary[key] for summary in measured.values()]
            whole = _is_count(key) and not any(map(math.isnan, numbers))
            columns[key] = np.array(numbers, np.int64 if whole else np.float64)
        return FlatTable(columns)

    def __str__(self) -> str:
        columns, rows = self._cells()
        headings = [self.group, *(str(column.heading) for column in columns)]
        units = ["", *map(unit_of, columns)]
        return "\n".join(filter(None, [grid([headings, *rows], units=units), self._about(columns, len(rows))]))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        columns, rows = self._cells()
        headings = [self.group, *map(heading_of, columns)]
        hints = [self.group, *(column.hint for column in columns)]
        table = html_table(headings, rows[:MOST_ROWS], texts=[True, *(False for _ in columns)], hints=hints)
        few = f"the first {MOST_ROWS} of {len(rows):,}; " if len(rows) > MOST_ROWS else ""
        return f"<div>{table}<p>{few}{html_text(self._about(columns, len(rows)))}</p></div>"

    def _cells(self) -> tuple[list[Column], list[list[str]]]:
        """Return the columns, and the rows of groups that are not empty."""
        rows = [(name, summary) for name, summary in self._measure().items() if is_filled(summary)]
        columns = [*_count_columns(self.group, rows), *(shown_columns(rows) if rows else ())]
        cells = [
            [one_line(name), *(format_value(column, column.shown(own)) for column in columns)] for name, own in rows
        ]
        return columns, cells

    def _about(self, columns: Sequence[Column], filled: int) -> str:
        """Return the columns for which lower is better, and the number of hidden groups."""
        empty = len(self) - filled
        return "; ".join(filter(None, [list_directions(columns), f"not shown: {empty:,} empty" * bool(empty)]))


class ImageTable(NumberTable):
    """Metrics per image by id: ``table[7]["PDQ"]``; ``table.columns["PDQ"]`` has those of all images.

    Tables show only the columns `asked` for, by default all, and file names of images.
    """

    def __init__(
        self,
        columns: dict[str, npt.NDArray[Any]],
        dataset: Dataset | None = None,
        asked: Collection[str] | None = None,
    ) -> None:
        super().__init__("image", columns["image_id"].tolist(), columns)
        self.dataset = dataset
        self.asked = asked

    def flat(self) -> FlatTable:
        """Return the columns, with file names of images if known."""
        columns = {name: values for name, values in self.columns.items() if self.asked is None or name in self.asked}
        if self.dataset is not None:
            columns = {**image_columns(self.dataset, np.arange(len(self.dataset))), **columns}
        return FlatTable(columns)

    def __repr__(self) -> str:
        return f"ImageTable({len(self)} images: {', '.join(self.columns)})"


def asked_columns(measures: Collection[str]) -> set[str]:
    """Return the columns that tables of groups show: counts, and those of the requested metrics."""
    columns = [column.key for measure in registry.measures_called(measures) for column in measure.columns]
    return {*COUNTS, *columns}


def with_measures(
    evaluated: Measured, groups: Groups, grouped: Callable[[Measure], Callable[[Any], Groups] | None]
) -> Groups:
    """Return groups with the columns of metrics added."""
    for measure in registry.all_measures():
        summaries = grouped(measure)
        asked = measure.name in evaluated.measures
        if summaries is None or not (asked or measure.standard):
            continue
        measured = summaries(evaluated) if asked else {}
        for name, summary in groups.items():
            summary.update(measured.get(name) or measure.nothing())
    return groups


def image_table(evaluated: Measured, measures: Collection[str], counts: dict[str, Ints]) -> ImageTable:
    """Return ids, counts and metrics per image, for metrics that are defined for an image."""
    images = len(evaluated.dataset)
    columns: ImageColumns = {"image_id": evaluated.dataset.image_ids, **counts}
    shown = set(columns)
    sums: ImageColumns = {}
    for measure in registry.all_measures():
        if measure.per_image is not None and measure.name in measures:
            own, keys = measure.per_image(evaluated), {column.key for column in measure.columns}
            columns.update({key: values for key, values in own.items() if key in keys})
            sums.update({key: values for key, values in own.items() if key not in keys})
            shown |= set(own)
        elif measure.per_image is not None and measure.standard:
            columns.update({key: np.full(images, value) for key, value in measure.nothing().items()})
    return ImageTable({**columns, **sums}, evaluated.dataset, shown)


def is_filled(summary: Summary) -> bool:
    """Return whether a group has any defined number or any count above 0."""
    return any(value > 0 if _is_count(key) else not math.isnan(value) for key, value in summary.items())


def counts_of(judged: Judged) -> Summary:
    """Return the number of objects and detections; crowd regions are not objects."""
    return dict(zip(COUNTS, (int(judged.objects.countable.sum()), len(judged.detections)), strict=True))


def counts_per_image(detections: DetectionTable, objects: ObjectTable, images: int) -> dict[str, Ints]:
    """Return the number of objects and detections per image; crowd regions are not objects."""
    rows = (objects.image_rows[objects.countable], detections.image_rows)
    counts = (np.bincount(own, minlength=images) for own in rows)
    return dict(zip(COUNTS, counts, strict=True))


def _count_columns(group: str, rows: Sequence[tuple[str, Summary]]) -> list[Column]:
    unmatched = {"class": "of this class", "size": "of this size"}.get(group, "")
    hints = {"objects": "in the ground truth", "detections": f"matches of these objects, and others {unmatched}"}
    there = [key for key in COUNTS if rows and key in rows[0][1]]
    return [Column(key=key, heading=key, unit="count", hint=hints[key]) for key in there]


def _is_count(key: str) -> bool:
    return key in COUNTS or any(
        column.key == key and column.unit == "count"
        for measure in registry.all_measures()
        for column in measure.columns
    )


def csv_tables(evaluation: Evaluation, name: str) -> dict[str, FlatTable]:
    """Return the tables by name; ``summary`` has one row, which begins with `name`."""
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
    """Return the counts of the confusion matrix; empty without matching by pixels."""
    if evaluation.has_pairs:
        table: FlatTable = evaluation.confusion().flat()
        return table
    none = text_column([])
    return FlatTable({"truth": none, "predicted": none, "count": np.zeros(0, np.int64)})
