"""What is odd in tables that can be evaluated: one set of checks for `evaluate`, `validate` and the command line.

Every check has a threshold, so that the output of a detector that was stored as it should be stays silent; what is
seen only in a few rows is left to `probox validate`, which lists it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probox.evaluation.oddities.checks import (
    check_agreement,
    check_classes,
    check_coverage,
    check_duplicates,
    check_objects,
    check_outside,
)
from probox.evaluation.oddities.columns import Columns, Oddity
from probox.evaluation.oddities.overlaps import Sample
from probox.evaluation.oddities.readings import check_readings
from probox.evaluation.oddities.uncertainty import check_uncertainty

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation

__all__ = ["Columns", "Oddity", "find_oddities", "oddities_of"]


def find_oddities(columns: Columns) -> list[Oddity]:
    """Return everything odd, the likeliest cause first.

    Parameters
    ----------
    columns : Columns
        The tables.
    """
    found = check_objects(columns) + check_classes(columns) + check_coverage(columns) + check_duplicates(columns)
    sample = Sample.draw(columns)
    readings = check_readings(columns, sample)
    if readings:  # such boxes lie outside, far from objects and far from their variances: said once
        return found + readings
    return found + check_outside(columns) + check_agreement(columns, sample) + check_uncertainty(columns, sample)


def oddities_of(evaluation: Evaluation) -> list[Oddity]:
    """Return what is odd in what was evaluated."""
    return find_oddities(Columns.of_evaluation(evaluation))
