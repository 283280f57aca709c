"""Who matched whom, and what that makes of every object and detection."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.convention import Convention
from probox.measures.pdq.kernel import assign
from probox.tables.results import DetectionTable, ObjectTable, PairTable, Verdict

Columns = dict[str, npt.NDArray[Any]]


def judge(
    objects: ObjectTable, detections: DetectionTable, pairs: PairTable, convention: Convention
) -> tuple[ObjectTable, DetectionTable]:
    """Return both tables with partners, verdicts and qualities that follow from the pairs."""
    there, found = matched_columns(objects.ignored, detections.image_rows, pairs, convention.assignment)
    return objects.replace(**there), detections.replace(**found)


def matched_columns(
    ignored: npt.NDArray[np.bool_], image_rows: npt.NDArray[np.int64], pairs: PairTable, how: str
) -> tuple[Columns, Columns]:
    """Return the columns about matches of the tables of objects and of detections.

    Parameters
    ----------
    ignored : (N,) bool
        Which objects PDQ passes over.
    image_rows : (M,) int64
        The image of each detection.
    pairs : PairTable
        Who could be matched with whom.
    how : {"optimal", "greedy"}
        How matches are chosen.
    """
    found, there = _core.judge_matches(
        matched=assign(image_rows[pairs.detections], pairs, how),
        detections=pairs.detections,
        objects=pairs.objects,
        qualities=pairs.qualities,
        detection_count=len(image_rows),
        ignored_objects=ignored,
        ignored=Verdict.IGNORED,
        right=Verdict.TP,
        wrong=Verdict.FP,
        missed=Verdict.FN,
    )
    names = ("verdicts", "partners", "qualities")
    return dict(zip(names, there, strict=True)), dict(zip(names, found, strict=True))
