"""What may come of an input: a table or an evaluation of possible numbers, or an error that names its file."""

from __future__ import annotations

import zlib

import numpy as np

from probox import Detections, Evaluation, GroundTruth, InputError
from probox.tables.masks import box_pixels, unusable_masks
from probox.tables.row_problems import FARTHEST, ROUNDING

__all__ = ["check_detections", "check_error", "check_evaluation", "check_summary", "check_truth"]

LONGEST_MESSAGE = 2000


def check_error(error: InputError, folder: str | None = None) -> None:
    """Raise unless an error fits on a line, and names a file of the input in this folder, if one is given."""
    text = str(error)
    if folder is not None:
        assert error.file is not None, f"names no file: {text}"
        assert error.file.startswith(folder), f"names another file: {text}"
    assert len(text) - len(error.file or "") <= LONGEST_MESSAGE, f"is {len(text)} characters long"
    assert len(text.splitlines()) == 1, f"has several lines: {text!r}"


def check_truth(truth: GroundTruth) -> None:
    """Raise unless the table could be one."""
    assert (np.diff(truth.image_ids) > 0).all(), "image ids do not ascend"
    assert ((truth.dataset.widths > 0) & (truth.dataset.heights > 0)).all(), "an image without pixels"
    assert len(truth.dataset.file_names) == len(truth.image_ids)
    for name in ("boxes", "extents", "areas"):
        assert np.isfinite(getattr(truth, name)).all(), f"{name} are not finite"
    assert ((truth.labels >= 0) & (truth.labels < len(truth.classes))).all(), "no such class"
    masks = truth.masks
    assert not unusable_masks(masks.boxes, masks.offsets, masks.runs).any(), "unusable masks"
    shapes = np.stack([truth.dataset.widths, truth.dataset.heights], axis=1)[truth.image_rows]
    assert ((masks.boxes[:, :2] >= 0) & (masks.boxes[:, 2:] < shapes)).all(), "a mask outside the image"
    filled = (masks.pixels > 0) == (masks.boxes[:, 2] >= masks.boxes[:, 0])  # a mask without pixels has no box
    assert (filled & (masks.pixels <= box_pixels(masks.boxes))).all(), "a mask of other pixels than its box"


def check_detections(found: Detections) -> None:
    """Raise unless the table could be one."""
    assert (np.abs(found.boxes) <= FARTHEST).all(), "boxes are not finite"
    assert (found.boxes[:, :2] <= found.boxes[:, 2:]).all(), "inverted boxes"
    probs = found.label_probs
    assert ((probs >= -ROUNDING) & (probs <= 1 + ROUNDING)).all(), "label probabilities outside [0, 1]"
    assert np.isfinite(found.scores).all(), "scores are not finite"
    assert np.isfinite(found.extents).all(), "sizes are not finite"
    assert (found.extents >= 0).all(), "negative sizes"
    if found.covariances is not None:
        assert (np.abs(found.covariances) <= FARTHEST**2).all(), "covariances are not finite"
    if len(found.classes):
        assert ((found.labels >= 0) & (found.labels < len(found.classes))).all(), "no such class"


def check_evaluation(result: Evaluation, *, always: bool = False) -> None:
    """Raise unless every number is possible; what costs most is looked at for one in eight, by content, or always."""
    check_summary(result.summary())
    if not always and zlib.crc32(result.detections.boxes.tobytes() + result.objects.boxes.tobytes()) % 8:
        return
    assert str(result)
    for part in (*result.per_class().values(), *result.per_size().values(), result.at_threshold(0.5).summary()):
        check_summary(part)
    per_image = result.per_image().columns
    if "pdq" in result.measures:
        assert per_image["TP"].sum() == result.tp
        assert result.tp + result.fn <= len(result.objects)


def check_summary(summary: dict[str, float]) -> None:
    """Raise unless the numbers are possible."""
    counts = [summary[name] for name in ("TP", "FP", "FN") if name in summary]
    for name, value in summary.items():
        if name in ("TP", "FP", "FN", "objects", "detections"):
            assert value >= 0, f"{name} is {value}"
        elif np.isnan(value):
            assert name != "PDQ" or sum(counts) == 0, "PDQ is NaN though there is something to score"
        else:
            assert 0.0 <= value <= 1.0 + 1e-9, f"{name} is {value}"
