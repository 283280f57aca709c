"""Checks of tables that can be evaluated: one set for `evaluate`, `validate` and the command line.

Every check has a threshold, so that the output of a detector that was stored as it should be stays silent; what is
seen only in a few rows is left to `probox validate`, which lists it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probox.evaluation.input_checks.checks import (
    check_agreement,
    check_classes,
    check_clutter,
    check_coverage,
    check_duplicates,
    check_masks,
    check_objects,
    check_outside,
    check_scores,
    warn_of_clutter,
)
from probox.evaluation.input_checks.columns import Columns, Sample
from probox.evaluation.input_checks.misreadings import check_readings, check_uncertainty
from probox.notes import InputWarning

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation

__all__ = ["Columns", "check_columns", "check_evaluation", "check_tables", "warn_of_clutter"]


def check_columns(columns: Columns) -> list[InputWarning]:
    """Return all warnings about tables, the likeliest cause first."""
    warnings = check_objects(columns) + check_masks(columns) + check_classes(columns) + check_coverage(columns)
    warnings += check_duplicates(columns)
    sample = Sample.draw(columns)
    readings = check_readings(columns, sample)
    if readings:  # such boxes lie outside, far from objects and far from their variances: one warning is enough
        return warnings + readings
    uncertainty, outside = check_uncertainty(columns, sample), check_outside(columns)
    if uncertainty:  # corners lie outside by more than a standard deviation because that one is wrong
        outside = [warning for warning in outside if warning.code != "corner-outside-image"]
    return warnings + outside + check_agreement(columns, sample) + check_scores(columns, sample) + uncertainty


def check_tables(evaluation: Evaluation) -> list[InputWarning]:
    """Return warnings about the tables that were evaluated."""
    return check_columns(Columns.of_evaluation(evaluation))


def check_evaluation(evaluation: Evaluation) -> list[InputWarning]:
    """Return warnings about what was evaluated, and about false positives that dominate the result."""
    return [*check_tables(evaluation), *check_clutter(evaluation)]
