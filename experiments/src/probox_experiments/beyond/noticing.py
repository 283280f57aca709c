"""How clearly each measure notices each change of a detector: paired differences in standard errors."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from probox.measures.measure import Column
from probox.measures.pdq.pdq_measure import PDQ
from probox.measures.registry import MEASURES
from probox_experiments.claims import Claim, not_measured
from probox_experiments.peaks import mean_of
from probox_experiments.table import ResultTable, presets_in

__all__ = ["BASE", "LIMIT", "UNCHANGED", "Cell", "Matrix", "blind", "listed", "noticed", "repeated", "unchanged"]

BASE = "none"
"""What the table calls detections that nothing was done to."""
LIMIT = 5.0
"""From so many standard errors on a change counts as noticed.

With eight repeats a measure that notices nothing gets there once in 640 cells (Student's t, 7 degrees of freedom),
about once in a matrix of 20 x 24. With a limit of 3 it would be ten cells.
"""
UNCHANGED = 1e-9
"""Numbers that differ by no more than this, relative to their size, are the same: sums have rounding errors."""
MOST = 999.0
"""What a difference that is the same in all repeats, whose standard error is 0, counts as; and all above it."""
LEAST_REPEATS = 3
IDEALS = {"NEES": 4.0, "coverage_90": 0.9}
"""What numbers should be of which neither high nor low is better."""
SHOWN = 8
"""How many cells a verdict lists."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """What a measure makes of a change.

    Parameters
    ----------
    measure, perturbation : str
        The column of the measure's number, and the change.
    z : float
        Mean paired difference over its standard error; 0: the same number in all repeats; NaN: not measured.
    harm : int
        1 if the number got worse on average, -1 if it got better, 0 if neither, or nobody can say.
    """

    measure: str
    perturbation: str
    z: float
    harm: int

    @property
    def seen(self) -> bool:
        """Return whether the change counts as noticed."""
        return abs(self.z) >= LIMIT

    @property
    def worse(self) -> bool:
        """Return whether it is noticed, and for the worse."""
        return self.seen and self.harm > 0

    @property
    def better(self) -> bool:
        """Return whether it is noticed, and for the better."""
        return self.seen and self.harm < 0

    def __str__(self) -> str:
        how = "changed" if math.isnan(self.z) else f"{self.z:+.3g}"
        return f"{self.measure} by `{self.perturbation}` {how}"


class Matrix:
    """All cells of a table that has a row for each perturbation and repeat.

    Parameters
    ----------
    table : ResultTable
        `perturbation` ("none" for the detections as they were), `repeat`; numbers by the keys of measures' headlines.

    Attributes
    ----------
    repeats : int
        How many repeats have detections as they were.
    perturbations, measures : tuple of str
        Rows and columns. A number that depends on the preset has a column for each.
    """

    def __init__(self, table: ResultTable) -> None:
        self.table = table
        self._columns = dict(_headlines(table)) if len(table) else {}
        self.measures = tuple(self._columns)
        names = table["perturbation"].tolist() if len(table) else []
        self.perturbations = tuple(name for name in dict.fromkeys(names) if name != BASE)
        self._rows: dict[str, dict[int, dict[str, float]]] = {name: {} for name in (BASE, *self.perturbations)}
        for row in table.rows():
            self._rows[row["perturbation"]][row["repeat"]] = row
        self.repeats = len(self._rows[BASE])
        self._cells = {
            (measure, name): self._cell(measure, name) for name in self.perturbations for measure in self.measures
        }

    def __getitem__(self, key: tuple[str, str]) -> Cell:
        """Return the cell of a measure and a perturbation."""
        return self._cells[key]

    def columns_of(self, measure: str) -> list[str]:
        """Return the columns of a measure's number: of PDQ one for each preset; none if it was not measured."""
        if measure == PDQ.headline.key:
            return [column for column in presets_in(self.table).values() if column in self._columns]
        return [measure] if measure in self._columns else []

    def cells(self, measures: Sequence[str], perturbations: Sequence[str]) -> list[Cell]:
        """Return the cells that were measured of these measures, PDQ under every preset, and perturbations."""
        return [cell for cell in self._chosen(measures, perturbations) if not math.isnan(cell.z)]

    def changed(self, measures: Sequence[str], perturbations: Sequence[str]) -> list[Cell]:
        """Return the cells whose numbers changed, but in too few repeats to tell by how many standard errors."""
        unclear = [cell for cell in self._chosen(measures, perturbations) if math.isnan(cell.z)]
        numbers = [np.concatenate(self.values(cell.measure, cell.perturbation)) for cell in unclear]
        return [cell for cell, of in zip(unclear, numbers, strict=True) if len(of) and not np.isnan(of).any()]

    def _chosen(self, measures: Sequence[str], perturbations: Sequence[str]) -> list[Cell]:
        columns = [column for measure in measures for column in self.columns_of(measure)]
        return [self._cells[c, name] for name in perturbations if name in self.perturbations for c in columns]

    def every(self) -> list[Cell]:
        """Return all cells that were measured."""
        return [cell for cell in self._cells.values() if not math.isnan(cell.z)]

    def values(self, column: str, perturbation: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the numbers of all repeats, as they were and after a change."""
        base, changed = self._rows[BASE], self._rows.get(perturbation, {})
        pairs = [(row[column], changed[repeat][column]) for repeat, row in base.items() if repeat in changed]
        before, after = np.array(pairs, np.float64).reshape(-1, 2).T
        return before, after

    def _cell(self, column: str, perturbation: str) -> Cell:
        before, after = self.values(column, perturbation)
        headline = self._columns[column]
        return Cell(column, perturbation, _standard_errors(before, after), _harm(headline, before, after))


def _headlines(table: ResultTable) -> Iterator[tuple[str, Column]]:
    """Yield the columns of a table that are the headlines of measures."""
    for measure in MEASURES:
        key = measure.headline.key
        named = presets_in(table, key).values() if measure is PDQ else [key] if key in table else []
        yield from ((name, measure.headline) for name in named)


def _standard_errors(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]) -> float:
    """Return the mean difference over its standard error (ddof 1), between -MOST and MOST; 0 if nothing changed."""
    differences = after - before
    if not len(differences) or np.isnan(differences).any():
        return math.nan
    if np.all(np.abs(differences) <= UNCHANGED * np.maximum(1.0, np.abs(before))):
        return 0.0
    if len(differences) < LEAST_REPEATS:
        return math.nan
    mean, error = mean_of(differences)
    if abs(mean) >= MOST * error:
        return math.copysign(MOST, mean)
    return mean / error


def _harm(headline: Column, before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]) -> int:
    if headline.key in IDEALS:
        ideal = IDEALS[headline.key]
        gone = float((np.abs(after - ideal) - np.abs(before - ideal)).sum())
    elif headline.better is None:
        return 0
    else:
        gone = float((after - before).sum()) * (1 if headline.better == "low" else -1)
    return 0 if math.isnan(gone) else int(np.sign(gone))


# --- claims about cells ---

Asked = Mapping[tuple[str, ...], Sequence[str]]
"""Which measures, by their headlines, and which perturbations."""


def _asked(matrix: Matrix, asked: Asked) -> list[Cell]:
    return [cell for measures, names in asked.items() for cell in matrix.cells(measures, names)]


def repeated(matrix: Matrix) -> bool:
    """Return whether there are repeats enough for standard errors."""
    return matrix.repeats >= LEAST_REPEATS


def noticed(claim: str, matrix: Matrix, asked: Asked, harm: int = 0, explanation: str = "") -> Claim:
    """Return the claim that measures notice changes; with a `harm` of 1 for the worse, of -1 for the better."""
    how = {0: "", 1: " for the worse", -1: " for the better"}[harm]
    required = f"|z| of at least {LIMIT:g} in every cell{',' * bool(how)}{how}"
    cells = _asked(matrix, asked)
    if not cells or not repeated(matrix):
        return not_measured(claim, required)
    failing = [cell for cell in cells if not cell.seen or (harm and cell.harm != harm)]
    least = min(cells, key=lambda cell: abs(cell.z))
    return _verdict(claim, cells, failing, f"least: {least}", required, explanation)


def blind(claim: str, matrix: Matrix, asked: Asked, explanation: str = "") -> Claim:
    """Return the claim that measures do not notice changes."""
    required = f"|z| below {LIMIT:g} in every cell"
    cells = _asked(matrix, asked)
    if not cells or not repeated(matrix):
        return not_measured(claim, required)
    most = max(cells, key=lambda cell: abs(cell.z))
    return _verdict(claim, cells, [cell for cell in cells if cell.seen], f"greatest: {most}", required, explanation)


def unchanged(claim: str, matrix: Matrix, asked: Asked, explanation: str = "") -> Claim:
    """Return the claim that measures give the same numbers, whatever is changed."""
    required = f"the same number in every repeat, within {UNCHANGED:g}"
    changed = [cell for measures, names in asked.items() for cell in matrix.changed(measures, names)]
    cells = [*changed, *_asked(matrix, asked)]  # one repeat is enough to tell that a number is another one
    if not cells:
        return not_measured(claim, required)
    failing = [cell for cell in cells if cell.z != 0.0]
    most = changed[0] if changed else max(cells, key=lambda cell: abs(cell.z))
    return _verdict(claim, cells, failing, f"greatest: {most}", required, explanation)


def listed(cells: Sequence[Cell]) -> str:
    """Return cells in words, not too many."""
    more = f" and {len(cells) - SHOWN} more" if len(cells) > SHOWN else ""
    return ", ".join(map(str, cells[:SHOWN])) + more


def _verdict(
    claim: str, cells: Sequence[Cell], failing: Sequence[Cell], extreme: str, required: str, explanation: str
) -> Claim:
    wrong = f"; not so: {listed(failing)}" if failing else ""
    measured = f"{len(cells) - len(failing)} of {len(cells)} cells; {extreme}{wrong}"
    numbers = {f"{cell.measure} by {cell.perturbation}": cell.z for cell in (failing or cells)}
    return Claim(claim, not failing, measured, required, numbers, explanation)
