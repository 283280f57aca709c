"""Tables of results, and claims about them: numbers, their limits, and whether the claims hold."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from probox.convention import PRESETS
from probox.errors import InputError
from probox.files.output import write_files
from probox.support.formatting import csv_lines

Floats = npt.NDArray[np.float64]

# --- Results of an experiment: one row per point ---

PLAIN_PRESET = "reference"
"""The preset whose columns have no suffix."""


class ResultTable:
    """Named columns of equal length: settings first, then measured values.

    ``pandas.DataFrame(table.columns)`` converts it to a data frame.

    Examples
    --------
    >>> table = ResultTable.from_rows([{"shift": 0.0, "PDQ": 1.0}, {"shift": 0.1, "PDQ": 0.04}], settings=["shift"])
    >>> table["PDQ"]
    array([1.  , 0.04])
    >>> table.where(shift=0.1)
    ResultTable(1 rows: shift, PDQ)
    """

    def __init__(self, columns: Mapping[str, npt.ArrayLike], settings: Collection[str] = ()) -> None:
        self.columns: dict[str, npt.NDArray[Any]] = {name: np.asarray(values) for name, values in columns.items()}
        self.settings = tuple(name for name in self.columns if name in settings)
        if len({len(values) for values in self.columns.values()}) > 1:
            raise InputError("expected columns of equal length")

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], settings: Collection[str] = ()) -> ResultTable:
        """Return the table of these rows, all with the same keys; `settings` names columns that are not measured."""
        return cls({name: [row[name] for row in rows] for name in rows[0]} if rows else {}, settings)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def __repr__(self) -> str:
        return f"ResultTable({len(self)} rows: {', '.join(self.columns)})"

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dictionaries of plain Python values."""
        values = [column.tolist() for column in self.columns.values()]
        for row in zip(*values, strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def take(self, kept: npt.NDArray[Any]) -> ResultTable:
        """Return the rows selected by a mask or by indices."""
        return ResultTable({name: values[kept] for name, values in self.columns.items()}, self.settings)

    def where(self, **settings: Any) -> ResultTable:
        """Return the rows with these settings."""
        kept = np.ones(len(self), dtype=bool)
        for name, value in settings.items():
            kept &= self.columns[name] == value
        return self.take(kept)

    def replace(self, **columns: npt.ArrayLike) -> ResultTable:
        """Return the table with some columns replaced or added."""
        return ResultTable({**self.columns, **columns}, self.settings)

    def mean_over(self, setting: str) -> ResultTable:
        """Return the means over one setting, for example repeats, in the order of first occurrence.

        Missing values (NaN) are excluded from the mean.
        """
        others = [name for name in self.settings if name != setting]
        measured = [name for name in self.columns if name not in self.settings]
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.rows():
            groups.setdefault(tuple(row[name] for name in others), []).append(row)
        return ResultTable.from_rows(
            [
                dict(zip(others, key, strict=True)) | {name: _mean([row[name] for row in rows]) for name in measured}
                for key, rows in groups.items()
            ],
            others,
        )

    def to_csv(self) -> str:
        """Return the table as CSV; numbers have the shortest exact form, missing values are empty."""
        return "".join(csv_lines([list(self.columns), *(list(row.values()) for row in self.rows())]))

    def write_csv(self, path: str | Path) -> None:
        """Write the table as CSV."""
        write_files({Path(path): self.to_csv().encode()})


def column_of(key: str, preset: str) -> str:
    """Return the column name of a value that depends on the preset.

    >>> column_of("PDQ", "reference"), column_of("PDQ", "paper")
    ('PDQ', 'PDQ_paper')
    """
    return key if preset == PLAIN_PRESET else f"{key}_{preset}"


def presets_in(table: ResultTable, key: str = "PDQ") -> dict[str, str]:
    """Return the presets under which a value was measured at any point, each with its column.

    PDQ counts as measured if it has a column, even if all its values are NaN; claims then fail. Components of PDQ are
    NaN where nothing was matched.
    """
    named = {preset: column_of(key, preset) for preset in PRESETS} if len(table) else {}
    known = {preset: column for preset, column in named.items() if column in table}
    return {preset: name for preset, name in known.items() if key == "PDQ" or not np.isnan(table[name]).all()}


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


# --- Peak of a score on a grid of settings, and standard error of a mean over repeats ---


class Mean(NamedTuple):
    """A mean over repeats and its standard error (NaN for a single repeat)."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.4g}" if math.isnan(self.error) else f"{self.value:.4g} ± {self.error:.2g}"

    def __format__(self, form: str) -> str:
        """Return the mean in a format, and its standard error in the same format without a sign."""
        return f"{self.value:{form}} ± {self.error:{form.lstrip('+')}}" if form else str(self)

    def is_above(self, limit: float = 0.0) -> bool:
        """Return whether the mean is above a limit by more than two standard errors."""
        return self.value - limit > 2 * self.error


def mean_of(values: npt.ArrayLike) -> Mean:
    """Return the mean of one value per repeat, and its standard error.

    >>> print(mean_of([0.1, 0.2, 0.3]), mean_of([0.5]))
    0.2 ± 0.058 0.5
    """
    numbers = np.asarray(values, dtype=np.float64)
    count = len(numbers)
    error = float(numbers.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    return Mean(float(numbers.mean()), error)


def peak_of(settings: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Return the setting with the highest score, interpolated between grid points.

    A parabola in the logarithm of the setting goes through the best grid point and its neighbours. The result lies
    between these neighbours and within the grid.

    >>> grid = np.array([1.0, 2.0, 4.0, 8.0])
    >>> round(peak_of(grid, -((np.log(grid) - 1) ** 2)), 6) == round(math.e, 6)
    True
    >>> peak_of(grid, grid), peak_of([2.0, 1.0], [0.5, 0.7])
    (8.0, 1.0)
    """
    given = np.asarray(settings, dtype=np.float64)
    order = np.argsort(given)
    x, y = np.log(given[order]), np.asarray(scores, dtype=np.float64)[order]
    if np.isnan(y).any():
        return math.nan
    i = int(y.argmax())
    if i in (0, len(y) - 1):
        return float(given[order][i])
    a, b, _ = np.polyfit(x[i - 1 : i + 2] - x[i], y[i - 1 : i + 2], 2)
    top = -b / (2 * a) if a < 0 else 0.0
    return math.exp(float(np.clip(x[i] + top, x[i - 1], x[i + 1])))


# --- Claims: numbers, their limits, and whether the claims hold ---

EXACT = 1e-6
"""Tolerance between numbers that are equal in exact arithmetic; label probabilities are float32."""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim, its numbers, and whether it holds.

    Parameters
    ----------
    claim : str
        The claim, as a sentence.
    holds : bool or None
        The result; None if the data for it were not measured.
    measured, required : str
        The numbers and their limits, as text.
    numbers : dict
        The numbers by name.
    explanation : str
        Reason for the result, if it is not obvious.
    """

    claim: str
    holds: bool | None
    measured: str
    required: str
    numbers: Mapping[str, float] = dataclasses.field(default_factory=dict)
    explanation: str = ""

    def __str__(self) -> str:
        return f"{self.result}: {self.claim} ({self.measured}; required: {self.required})"

    @property
    def result(self) -> str:
        """The result as text: holds, does not hold, or not measured."""
        return result_text(self.holds)


def result_text(holds: bool | None) -> str:
    """Return the result of a claim as text."""
    return "not measured" if holds is None else "holds" if holds else "does not hold"


def all_hold(claims: Iterable[Claim]) -> bool | None:
    """Return whether all measured claims hold; None if no claim was measured."""
    measured = [claim.holds for claim in claims if claim.holds is not None]
    return all(measured) if measured else None


def not_measured(claim: str, missing: str) -> Claim:
    """Return a claim whose data a table does not contain.

    >>> print(not_measured("PDQ is 1/n", "n above 1"))
    not measured: PDQ is 1/n (nothing; required: n above 1)
    """
    return Claim(claim, None, "nothing", missing)


def at_most(claim: str, what: str, value: float, limit: float, explanation: str = "") -> Claim:
    """Return the claim that a number is at most a limit."""
    return Claim(claim, value <= limit, f"{what}: {value:.3g}", f"at most {limit:g}", {what: value}, explanation)


def equals(
    claim: str,
    table: ResultTable,
    expected: Mapping[str, npt.ArrayLike],
    tolerance: float = EXACT,
    explanation: str = "",
) -> Claim:
    """Return the claim that columns have expected values.

    Parameters
    ----------
    claim : str
        The sentence.
    table : ResultTable
        The results. Values that depend on the preset are compared under every preset in the table.
    expected : mapping of str to array
        Expected values, row by row; ``PDQ`` means PDQ under every preset, ``1 - moLRP`` the complement of that column.
    tolerance : float
        Largest accepted difference.
    explanation : str
        Reason for the result, if it is not obvious.

    Examples
    --------
    >>> table = ResultTable({"n": [1, 2], "PDQ": [1, 0.5], "PDQ_paper": [1, 0.5], "moLRP": [0, 0.5]})
    >>> equals("both are 1/n", table, {name: 1 / table["n"] for name in ("PDQ", "1 - moLRP")}).measured
    'largest difference: PDQ 0, PDQ under `paper` 0, 1 - moLRP 0'
    """
    apart: dict[str, float] = {}
    for name, values in expected.items():
        if name.startswith("1 - "):
            columns = {name: 1 - table[name[4:]]} if name[4:] in table else {}
        else:
            named = presets_in(table, name) or ({"": name} if name in table else {})
            columns = {
                name if preset in ("", "reference") else f"{name} under `{preset}`": table[column]
                for preset, column in named.items()
            }
        if not columns or not len(table):
            return not_measured(claim, f"{', '.join(expected)}, differing by at most {tolerance:g}")
        for words, column in columns.items():
            distance = np.abs(column - np.asarray(values, dtype=np.float64))
            apart[words] = float(distance.max(initial=0.0))  # NaN stays NaN and exceeds every tolerance
    return close_enough(claim, apart, tolerance, explanation)


def close_enough(claim: str, apart: Mapping[str, float], tolerance: float = EXACT, explanation: str = "") -> Claim:
    """Return the claim that named differences are within a tolerance; NaN is not."""
    return Claim(
        claim,
        all(value <= tolerance for value in apart.values()),
        "largest difference: " + ", ".join(f"{words} {value:.2g}" for words, value in apart.items()),
        f"at most {tolerance:g}",
        apart,
        explanation,
    )


Judgement = tuple[bool, str, Mapping[str, float]]
"""Whether a claim holds, its numbers as text, and by name."""


def judge_presets(
    claim: str,
    table: ResultTable,
    required: str,
    judge: Callable[[str, str], Judgement],
    *,
    key: str = "PDQ",
    missing: str = "PDQ",
    shown: str = "{}",
    between: str = "; ",
    explanation: str = "",
) -> Claim:
    """Return the claim that holds if it holds under every preset; `judge` takes a preset and its column of `key`.

    `missing` is the requirement if nothing was measured; `shown` is the template for the text of all presets.
    """
    judgements = [judge(preset, column) for preset, column in presets_in(table, key).items()]
    if not judgements:
        return not_measured(claim, missing)
    holds, words, named = zip(*judgements, strict=True)
    numbers = {name: number for numbers in named for name, number in numbers.items()}
    return Claim(claim, all(holds), shown.format(between.join(words)), required, numbers, explanation)


def falls(claim: str, table: ResultTable, along: str, rising: bool = False) -> Claim:
    """Return the claim that PDQ falls whenever a setting increases, or, with `rising`, whenever it decreases."""
    columns = presets_in(table)
    if not columns or len(table) < 2:
        return not_measured(claim, f"PDQ at two values of {along} or more")
    order = np.argsort(table[along], kind="stable")
    order = order[::-1] if rising else order
    steps = {preset: float(np.diff(table[column][order]).max()) for preset, column in columns.items()}
    first, last = (float(table[next(iter(columns.values()))][order[end]]) for end in (0, -1))
    return Claim(
        claim,
        all(step < 0 for step in steps.values()),
        f"from {first:.4f} to {last:.4f}; smallest decrease between neighbours {-max(steps.values()):.2g}",
        f"a decrease at every step, under {' and '.join(f'`{preset}`' for preset in columns)}",
        {"first": first, "last": last} | {f"largest step, {preset}": step for preset, step in steps.items()},
    )


def stays_perfect(table: ResultTable, tolerance: float = EXACT, measures: tuple[str, ...] = ("mAP", "moLRP")) -> Claim:
    """Return the claim that mAP stays 1 and moLRP stays 0."""
    claim = f"{' and '.join(measures)} {'is' if len(measures) == 1 else 'are'} perfect throughout"
    if not len(table) or any(name not in table for name in measures):
        return not_measured(claim, ", ".join(measures))
    worst = {name: float(table[name].min() if name == "mAP" else table[name].max()) for name in measures}
    shown = [f"{'lowest' if name == 'mAP' else 'highest'} {name}: {worst[name]:.6g}" for name in measures]
    limits = [f"mAP at least 1 - {tolerance:g}", f"moLRP at most {tolerance:g}"][: len(measures)]
    return Claim(
        claim,
        all(value >= 1 - tolerance if name == "mAP" else value <= tolerance for name, value in worst.items()),
        ", ".join(shown),
        ", ".join(limits),
        worst,
    )
