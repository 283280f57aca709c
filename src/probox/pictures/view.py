"""Data to draw for one image: objects, detections and their outcomes."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.analysis.thresholds import find_best_pdq
from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.pdq.kernel import heatmap
from probox.pictures.style import Palette
from probox.tables.detections import Detections
from probox.tables.masks import Masks
from probox.tables.results import DetectionTable, ObjectTable, Verdict, unmatched_columns

MOST_SHOWN = 20
"""Maximum number of detections drawn per image by default, by score."""
SHOWN_ABOVE = 0.3
"""The label threshold of detections without ground truth, unless one is given."""
MAX_DRAWN = 1 << 27
"""Maximum number of pixels of a drawn image."""


@dataclasses.dataclass(frozen=True, eq=False)
class ImageView:
    """One image of an evaluation, or of detections alone.

    `objects` and `detections` hold the image's rows; their `partner` is a row number in the other table of the view.
    `heatmaps`, `found_masks` and `has_mask` have an entry for each detection. `judged` tells whether there is ground
    truth.
    """

    image_id: int
    width: int
    height: int
    file_name: str
    classes: tuple[str, ...]
    convention: Convention
    objects: ObjectTable
    masks: Masks
    detections: DetectionTable
    heatmaps: tuple[npt.NDArray[Any] | None, ...]
    found_masks: Masks
    has_mask: npt.NDArray[np.bool_]
    judged: bool = True

    def __post_init__(self) -> None:
        if self.width * self.height > MAX_DRAWN:  # images need several layers of all pixels
            problem = f"expected at most {MAX_DRAWN:,} pixels to draw, but got {self.width} x {self.height}"
            raise InputError(problem, image=self.image_id, remedy="draw other images")
        reach = (self.found_masks.boxes[:, 2:].max(axis=0, initial=-1) + 1).tolist()
        if reach[0] > self.width or reach[1] > self.height:
            problem = (
                f"the image is {self.width} x {self.height}, but a detection's mask reaches {reach[0]}, {reach[1]}"
            )
            raise InputError(problem, image=self.image_id, remedy="give masks of the original image")

    def shown(self, above: float | None = None) -> tuple[npt.NDArray[np.int64], str]:
        """Return the rows of the detections to draw, and a remark on the limit; empty without a limit.

        Matched detections are drawn, and others with a confidence `above` the limit; by default the `MOST_SHOWN`
        highest above the label threshold.
        """
        confidences = self.detections.confidences
        if above is not None:
            kept = (confidences > np.float32(above)) | (above == 0)
            if self.judged:
                kept |= self.detections.verdicts == Verdict.TP
            hidden = len(kept) - int(kept.sum())
            remark = f"{hidden} {'unmatched ' * self.judged}not above {above:g}: not drawn" if hidden else ""
            return np.flatnonzero(kept), remark
        threshold = self.convention.label_threshold
        rows = np.flatnonzero(confidences > np.float32(threshold)) if threshold else np.arange(len(confidences))
        shown = np.sort(rows[np.argsort(-confidences[rows], kind="stable")[:MOST_SHOWN]])
        part = f"{len(shown)} of {len(rows)} " if len(shown) < len(rows) else ""
        limit = f" above {threshold:.4g}" if threshold else ""
        return shown, f"{part}detections{limit}" if part or limit else ""

    @cached_property
    def wrong_class(self) -> npt.NDArray[np.bool_]:
        """Return which detections are matched with an object of another class than their most probable class."""
        found = self.detections
        wrong: npt.NDArray[np.bool_] = (found.verdicts == Verdict.TP) & (found.partners >= 0)
        wrong[wrong] = found.labels[wrong] != self.objects.labels[found.partners[wrong]]
        return wrong

    def colours(self, palette: Palette) -> tuple[list[str], list[str]]:
        """Return the colour of each detection and of each object."""
        found, there = self.detections, self.objects
        if not self.judged:
            return [palette.right] * len(found), []
        of_object = np.zeros(len(there), bool)
        of_object[found.partners[self.wrong_class]] = True
        return (
            [palette.of_verdict(v, wrong_class=w) for v, w in zip(found.verdicts, self.wrong_class, strict=True)],
            [palette.of_verdict(v, wrong_class=w) for v, w in zip(there.verdicts, of_object, strict=True)],
        )

    def heatmap(self, row: int) -> npt.NDArray[np.float64]:
        """Return P(x) of detection `row`: as given, 1 in its mask, or computed from its box and corner covariances."""
        given = self.heatmaps[row]
        if given is not None:
            scale = 255.0 if given.dtype == np.uint8 else 1.0
            return np.asarray(given, dtype=np.float64) / scale
        if self.has_mask[row]:
            return self.found_masks.to_array(row, self.height, self.width).astype(np.float64)
        table = self.detections
        return heatmap(table.boxes[row], table.covariances[row], self.width, self.height, self.convention)

    def class_name(self, index: int) -> str:
        """Return the name of a class; a class unknown to the ground truth has an empty name."""
        return self.classes[index] if 0 <= index < len(self.classes) else "unknown class"


def at_best_threshold(evaluation: Evaluation) -> Evaluation:
    """Return an evaluation of all detections at the label threshold of highest PDQ; other evaluations are unchanged."""
    if evaluation.convention.label_threshold or not evaluation.has_pairs or not len(evaluation.detections):
        return evaluation
    best = find_best_pdq(evaluation).threshold
    return evaluation if best is None else evaluation.at_threshold(best)


def view_of_image(evaluation: Evaluation, image_id: int, detections: Detections | None = None) -> ImageView:
    """Return one image of an evaluation.

    An evaluation does not keep masks and heatmaps of detections: they are taken from `detections`, which must be those
    that were evaluated.
    """
    image = int(evaluation.dataset.rows_of([image_id])[0])
    if image < 0:
        raise InputError(
            "the evaluation does not contain this image", image=image_id, remedy="see result.dataset.image_ids"
        )
    rows_found = np.flatnonzero(evaluation.detections.image_rows == image)
    rows_there = np.flatnonzero(evaluation.objects.image_rows == image)
    found, there = evaluation.detections.take(rows_found), evaluation.objects.take(rows_there)
    width, height = evaluation.dataset.shapes[image].tolist()
    found = found.replace(
        partners=_local(found.partners, rows_there),
        boxes=scored_boxes(evaluation.convention, found.boxes, np.full(len(found), width), np.full(len(found), height)),
        covariances=scored_covariances(evaluation.convention, found.covariances),
    )
    return ImageView(
        image_id=image_id,
        width=width,
        height=height,
        file_name=evaluation.dataset.file_names[image],
        classes=evaluation.classes,
        convention=evaluation.convention.replace(sum_zero_is_plain=False),  # in the table, zeros mean no covariance
        objects=there.replace(partners=_local(there.partners, rows_found)),
        masks=evaluation.masks.take(rows_there),
        detections=found,
        **_given_pixels(detections, image_id, found.numbers),
    )


def view_of_detections(
    detections: Detections,
    image_id: int,
    size: tuple[int, int],
    file_name: str = "",
    threshold: float | None = None,
) -> ImageView:
    """Return one image of detections without ground truth. `size` is the image's width and height."""
    rows = np.flatnonzero(detections.image_ids == image_id)
    kept = detections.select(rows)
    n = len(rows)
    pixels = _given_pixels(detections, image_id, np.arange(n))
    judged = DetectionTable(
        image_rows=np.zeros(n, np.int64),
        numbers=np.arange(n),
        labels=kept.labels,
        scores=kept.scores,
        confidences=kept.label_probs.max(axis=1, initial=0.0),
        costs=kept.label_probs.max(axis=1, initial=0.0),
        boxes=kept.boxes,
        extents=kept.extents,
        covariances=np.zeros((n, 2, 2, 2)) if kept.covariances is None else kept.covariances,
        heatmaps=kept.has_heatmap,
        masks=np.zeros(n, bool) if kept.has_mask is None else kept.has_mask,
        **unmatched_columns(n),
    )
    return ImageView(
        image_id=image_id,
        width=size[0],
        height=size[1],
        file_name=file_name,
        classes=detections.classes,
        convention=Convention(label_threshold=SHOWN_ABOVE if threshold is None else threshold),
        objects=ObjectTable.none(),
        masks=Masks.empty(0),
        detections=judged,
        judged=False,
        **pixels,
    )


def scored_boxes(
    convention: Convention, boxes: npt.NDArray[np.float64], widths: npt.NDArray[Any], heights: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Return the evaluated boxes: the detector's, or clipped to the image if the convention requires it."""
    if convention.clip != "corners":
        return boxes
    last = np.stack([widths, heights], axis=1).astype(np.float64) - 1.0
    return np.clip(boxes, 0.0, np.concatenate([last, last], axis=1))


def scored_covariances(convention: Convention, covariances: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the evaluated covariances: the detector's, or the constant of the convention."""
    if convention.fixed_variance is None:
        return covariances
    return np.ascontiguousarray(np.broadcast_to(np.eye(2) * convention.fixed_variance, covariances.shape))


def _local(partner: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return matches as indices into `rows`, which are ascending; -1 stays -1."""
    return np.where(partner >= 0, np.searchsorted(rows, partner), -1)


def _given_pixels(detections: Detections | None, image_id: int, numbers: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return heatmaps and masks of an image's detections, given by their numbers in the image."""
    n = len(numbers)
    none = {"heatmaps": (None,) * n, "found_masks": Masks.empty(n), "has_mask": np.zeros(n, bool)}
    if detections is None:
        return none
    rows = np.flatnonzero(detections.image_ids == image_id)
    if n and int(numbers.max()) >= len(rows):
        raise InputError(
            "the detections differ from those that were evaluated",
            image=image_id,
            remedy="give the file that was evaluated",
        )
    own = detections.take(rows[numbers])
    given = {"heatmaps": own.heatmaps, "found_masks": own.masks, "has_mask": own.has_mask}
    return none | {name: values for name, values in given.items() if values is not None}
