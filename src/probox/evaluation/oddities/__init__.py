"""What is odd in tables that can be evaluated: one set of checks for `evaluate`, `validate` and the command line.

Every check has a threshold, so that the output of a detector that was stored as it should be stays silent; what is
seen only in a few rows is left to `probox validate`, which lists it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probox.evaluation.oddities.checks import (
    CORNER,
    check_agreement,
    check_classes,
    check_coverage,
    check_duplicates,
    check_masks,
    check_objects,
    check_outside,
    check_scores,
)
from probox.evaluation.oddities.clutter import check_clutter
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
    found = check_objects(columns) + check_masks(columns) + check_classes(columns) + check_coverage(columns)
    found += check_duplicates(columns)
    sample = Sample.draw(columns)
    readings = check_readings(columns, sample)
    if readings:  # such boxes lie outside, far from objects and far from their variances: said once
        return found + readings
    uncertainty, outside = check_uncertainty(columns, sample), check_outside(columns)
    if uncertainty:  # corners lie outside by more than a standard deviation because that one is wrong
        outside = [oddity for oddity in outside if oddity.kind != CORNER]
    return found + outside + check_agreement(columns, sample) + check_scores(columns, sample) + uncertainty


def oddities_of(evaluation: Evaluation) -> list[Oddity]:
    """Return what is odd in what was evaluated."""
    return [*find_oddities(Columns.of_evaluation(evaluation)), *check_clutter(evaluation)]
