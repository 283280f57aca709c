"""Validation of a pair of files: all errors and warnings in one pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from probox.errors import InputError, Spelling, python_keyword
from probox.evaluation.input_checks import (
    CLIP,
    Columns,
    Rows,
    boxes_outside,
    check_columns,
    corners_outside,
    describe_corner,
)
from probox.files.reading import Paths
from probox.formats.format import Draft
from probox.formats.problems import Finding, Problems
from probox.formats.registry import load_detections, load_truth
from probox.notes import Note
from probox.tables.groundtruth import GroundTruth
from probox.tables.row_problems import find_problems

Content = TypeVar("Content")

Located = Callable[[int, str, str], InputError]
"""Makes an error from a row of the draft, a text and a remedy."""


@dataclasses.dataclass(frozen=True)
class Report:
    """Result of `validate`.

    Parameters
    ----------
    truth, detections : str
        The files.
    findings : tuple of Finding
        Kinds of problems with a count and examples; errors stop an evaluation, warnings do not.
    counts : dict of str to int
        Number of images, objects, classes, detections, probabilistic boxes and heatmaps that could be read.
    notes : tuple of Note
        Data that readers exclude or replace.
    """

    truth: str
    detections: str
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    notes: tuple[Note, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Return the kinds of problems that stop an evaluation."""
        return tuple(finding for finding in self.findings if finding.is_error)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Return the kinds of problems that do not stop an evaluation."""
        return tuple(finding for finding in self.findings if not finding.is_error)

    @property
    def ok(self) -> bool:
        """Return whether the files can be evaluated."""
        return not self.errors

    def to_dict(self, spell: Spelling = python_keyword) -> dict[str, Any]:
        """Return a dictionary for JSON; `spell` formats keywords."""

        def plain(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
            return [
                {"code": f.code, "count": f.count, "message": messages[0], "examples": messages}
                for f in findings
                for messages in [[example.message(spell) for example in f.examples]]
            ]

        return {
            "ok": self.ok,
            "truth": self.truth,
            "detections": self.detections,
            "errors": plain(self.errors),
            "warnings": plain(self.warnings),
            "counts": self.counts,
            "notes": [note.to_dict(spell) for note in self.notes],
        }


def validate(truth: Paths, detections: Paths) -> Report:
    """Check ground truth and detections for errors and likely mistakes.

    All problems are collected, by kind, except that a file of the wrong type is not read any further. The report is
    free of errors if and only if the files can be evaluated.

    Parameters
    ----------
    truth : path
        Ground truth.
    detections : path
        Detections.

    Returns
    -------
    Report
        Errors, warnings, counts and notes.

    Examples
    --------
    >>> report = validate("instances_val2017.json", "detections.json")  # doctest: +SKIP
    >>> report.ok, [(finding.kind, finding.count) for finding in report.findings]  # doctest: +SKIP
    (False, [('inverted box', 3)])
    """
    problems = Problems(lenient=True)
    counts: dict[str, int] = {}
    notes: list[Note] = []
    table = _read(problems, lambda: load_truth(truth, problems))
    if table is not None:
        notes += table.notes
        counts |= {"images": len(table.image_ids), "objects": len(table), "classes": len(table.classes)}
    if table is None or problems.stopped:
        notes.append(Note("detections-not-checked"))
    else:
        draft = _read(problems, lambda: load_detections(detections, table.dataset, problems))
        if draft is not None:
            notes += draft.notes
            covariances, heatmaps = draft.covariances, draft.heatmaps or ()
            counts |= {
                "detections": len(draft),
                "probabilistic": 0 if covariances is None else int(covariances.any(axis=(1, 2, 3)).sum()),
                "heatmaps": sum(heatmap is not None for heatmap in heatmaps),
                "masks": 0 if draft.has_mask is None else int(draft.has_mask.sum()),
            }
            _check_rows(draft, table, problems)
    return Report(str(truth), str(detections), tuple(problems.findings), counts, tuple(notes))


def _read(problems: Problems, read: Callable[[], Content]) -> Content | None:
    """Return the content of a file; None, with a problem reported, if it cannot be read."""
    try:
        return read()
    except InputError as error:
        problems.stop(error)
        return None


def _check_rows(draft: Draft, truth: GroundTruth, problems: Problems) -> None:
    def locate(row: int, text: str, remedy: str) -> InputError:
        file, entry = draft.place(row)
        return InputError(text, file=file, image=int(draft.image_ids[row]), entry=entry, remedy=remedy or None)

    usable = np.ones(len(draft), bool)
    for problem in find_problems(
        draft.boxes,
        draft.label_probs,
        draft.covariances,
        draft.heatmaps,
        draft.extents,
        draft.scores,
        draft.masks,
        draft.areas,
    ):
        usable[problem.rows] = False
        text, remedy = problem.text, problem.remedy
        problems.add(
            problem.kind,
            problem.rows.tolist(),
            lambda row, text=text, remedy=remedy: locate(row, text(row), remedy),  # type: ignore[misc]
        )
    rows = np.flatnonzero(usable)
    columns = Columns.of_draft(truth, draft, rows)
    _warn_of_places(columns, rows, locate, problems)
    partial = problems.stopped or any(finding.kind == "image count" for finding in problems.findings)
    if partial or (len(draft) and not len(rows)):
        return  # checks need a complete file of the same images, or they report its gaps
    for warning in check_columns(columns):
        if warning.code not in ("box-outside-image", "corner-outside-image"):  # reported above, even if few
            file = truth.source if warning.on_truth else draft.source
            places = rows[warning.rows]
            examples = [InputError(str(warning), file=file)]
            examples += [locate(int(row), "is one of them", "") for row in places[:2]]
            problems.warn_of_all(warning.code.replace("-", " "), max(1, len(places)), examples)


def _warn_of_places(columns: Columns, rows: Rows, locate: Located, problems: Problems) -> None:
    """Report every Gaussian corner and every box outside the image; `rows` are those of the draft."""

    def box(at: int) -> InputError:
        width, height = columns.shapes[columns.image_rows[at]].astype(int)
        text = f"{columns.boxes[at].tolist()} lies outside the image of {width} x {height} pixels"
        return locate(int(rows[at]), text, "check the box scale and the order of images")

    def corner(at: int) -> InputError:
        return locate(int(rows[at]), describe_corner(columns, at), CLIP)

    problems.warn("corner outside image", corners_outside(columns).tolist(), corner)
    problems.warn("box outside image", boxes_outside(columns).tolist(), box)
