"""Everything wrong or odd in a pair of files, found in one pass."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detections import find_problems
from probox.errors import InputError
from probox.formats import load_detections, load_truth
from probox.formats.draft import Draft
from probox.formats.files import Paths
from probox.formats.problems import Finding, Problems
from probox.groundtruth import GroundTruth

__all__ = ["Report", "validate"]


@dataclasses.dataclass(frozen=True)
class Report:
    """What `validate` found.

    Parameters
    ----------
    truth, detections : str
        The files.
    findings : tuple of Finding
        Kinds of problems, each with a count and its first examples; errors stop an evaluation, warnings do not.
    counts : dict of str to int
        What could be read: images, objects, classes, detections, probabilistic boxes, heatmaps.
    notes : tuple of str
        What readers leave out or replace.
    """

    truth: str
    detections: str
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    notes: tuple[str, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Return the kinds of problems that stop an evaluation."""
        return tuple(finding for finding in self.findings if finding.is_error)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Return the kinds of oddities that do not."""
        return tuple(finding for finding in self.findings if not finding.is_error)

    @property
    def ok(self) -> bool:
        """Return whether the files can be evaluated."""
        return not self.errors

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary that JSON can hold."""

        def plain(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
            return [{"kind": f.kind, "count": f.count, "examples": [str(e) for e in f.examples]} for f in findings]

        return {
            "ok": self.ok,
            "truth": self.truth,
            "detections": self.detections,
            "errors": plain(self.errors),
            "warnings": plain(self.warnings),
            "counts": self.counts,
            "notes": list(self.notes),
        }


def validate(truth: Paths, detections: Paths) -> Report:
    """Read ground truth and detections and report everything wrong or odd, by kind.

    A file that is not JSON, or not the kind of file that is expected, ends the reading of that file; everything
    else is gathered. The report has no errors exactly when an evaluation of the files would start.

    Examples
    --------
    >>> report = validate("instances_val2017.json", "detections.json")  # doctest: +SKIP
    >>> report.ok, [(finding.kind, finding.count) for finding in report.findings]  # doctest: +SKIP
    (False, [('inverted box', 3)])
    """
    problems = Problems(lenient=True)
    counts: dict[str, int] = {}
    notes: list[str] = []
    table = _read_truth(truth, problems)
    if table is not None:
        notes += table.notes
        counts |= {"images": len(table.image_ids), "objects": len(table), "classes": len(table.classes)}
    if table is None or problems.stopped:
        notes.append("the detections were not checked: the ground truth must be readable first")
    else:
        draft = _read_draft(detections, table, problems)
        if draft is not None:
            notes += draft.notes
            counts |= _counts(draft)
            _check_rows(draft, table, problems)
    return Report(str(truth), str(detections), tuple(problems.findings), counts, tuple(notes))


def _read_truth(path: Paths, problems: Problems) -> GroundTruth | None:
    try:
        return load_truth(path, problems)
    except InputError as error:
        problems.stop(error)
        return None


def _read_draft(path: Paths, truth: GroundTruth, problems: Problems) -> Draft | None:
    try:
        return load_detections(path, truth, problems)
    except InputError as error:
        problems.stop(error)
        return None


def _counts(draft: Draft) -> dict[str, int]:
    probabilistic = 0 if draft.covariances is None else int(draft.covariances.any(axis=(1, 2, 3)).sum())
    heatmaps = sum(heatmap is not None for heatmap in draft.heatmaps or ())
    return {"detections": len(draft), "probabilistic": probabilistic, "heatmaps": heatmaps}


def _check_rows(draft: Draft, truth: GroundTruth, problems: Problems) -> None:
    def located(row: int, text: str, remedy: str) -> InputError:
        file, entry = draft.place(row)
        return InputError(text, file=file, image=int(draft.image_ids[row]), entry=entry, remedy=remedy)

    unusable = np.zeros(len(draft), bool)
    for problem in find_problems(draft.boxes, draft.label_probs, draft.covariances, draft.heatmaps):
        unusable[problem.rows] = True
        text, remedy = problem.text, problem.remedy
        problems.add(
            problem.kind,
            problem.rows.tolist(),
            lambda row, text=text, remedy=remedy: located(row, text(row), remedy),  # type: ignore[misc]
        )
    if len(draft) == 0:
        return
    shapes = np.stack([truth.widths, truth.heights], axis=1)[np.searchsorted(truth.image_ids, draft.image_ids)]
    _warn_of_corners(draft, shapes, unusable, problems, located)
    low, high = draft.boxes[:, :2], draft.boxes[:, 2:]
    misses = ~unusable & ((high < 0) | (low >= shapes)).any(axis=1)
    problems.warn(
        "box outside the image",
        np.flatnonzero(misses).tolist(),
        lambda row: located(
            row,
            f"{draft.boxes[row].tolist()} lies outside the image of {shapes[row, 0]} x {shapes[row, 1]} pixels",
            "check the scale of boxes and the order of images",
        ),
    )


def _warn_of_corners(
    draft: Draft, shapes: npt.NDArray[np.int32], unusable: npt.NDArray[np.bool_], problems: Problems, located: Any
) -> None:
    """Warn of Gaussian corners outside the image: the probability mass out there is lost to the box."""
    if draft.covariances is None:
        return
    variances = np.where(unusable[:, None, None], 0.0, np.diagonal(draft.covariances, axis1=2, axis2=3))
    sigmas = np.sqrt(np.maximum(variances, 0.0)).reshape(-1, 4)
    beyond = np.concatenate([-draft.boxes[:, :2], draft.boxes[:, 2:] - (shapes - 1)], axis=1)
    probabilistic = ~unusable & draft.covariances.any(axis=(1, 2, 3))
    outside = probabilistic[:, None] & (beyond > 0) & (beyond > sigmas)

    def describe(row: int) -> InputError:
        side = int(np.flatnonzero(outside[row])[0])
        name = ("x1", "y1", "x2", "y2")[side]
        return located(  # type: ignore[no-any-return]
            row,
            f"{name} lies {beyond[row, side]:.4g} px outside the image with a sigma of {sigmas[row, side]:.4g} px: "
            "the probability outside is lost",
            "use --clip corners to move such corners onto the border first",
        )

    problems.warn(
        "corner outside the image by more than 1 sigma", np.flatnonzero(outside.any(axis=1)).tolist(), describe
    )
