"""COCO results: a JSON list of detections with ``image_id``, ``category_id``, ``bbox`` and ``score``."""

from __future__ import annotations

import numpy as np

from probox import _core
from probox.detections import Detections
from probox.formats.files import Paths, read_bytes
from probox.formats.problems import raise_first
from probox.formats.repair import repaired
from probox.groundtruth import GroundTruth

__all__ = ["coco_results_from_bytes", "read_coco_results"]


def read_coco_results(path: Paths, truth: GroundTruth, *, repair: bool = False) -> Detections:
    """Read COCO results from a ``.json`` or ``.json.gz`` file.

    The stated class gets the `score`, the others share the rest evenly. Where a detection has
    ``all_scores`` (one per category, in order of category id) these are its label probabilities; where it
    has ``covars`` (2 x 2 x 2) its corners are Gaussian. Detections in images that the truth does not have
    are left out and counted in `notes`.

    Parameters
    ----------
    path : path
        The file.
    truth : GroundTruth
        What it was run on: tells images and categories.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite by the nearest that are.
    """
    return coco_results_from_bytes(read_bytes(path), str(path), truth, repair=repair)


def coco_results_from_bytes(data: bytes, file: str, truth: GroundTruth, *, repair: bool = False) -> Detections:
    """Return the table of a results file's content."""
    columns, problems = _core.read_coco_results(data, truth.image_ids, False, truth.category_ids, lenient=False)
    raise_first(problems, file)
    notes: list[str] = []
    if columns["unknown_image_rows"]:
        images = len(np.unique(columns["unknown_images"]))
        notes.append(
            f"{columns['unknown_image_rows']} detections in {images} images that the ground truth does not have "
            "were left out"
        )
    covariances = columns["covariances"]
    if repair and covariances is not None:
        covariances = repaired(covariances, notes)
    return Detections(
        classes=truth.classes,
        image_ids=columns["image_ids"],
        boxes=columns["boxes"],
        label_probs=columns["label_probs"],
        covariances=covariances,
        labels=columns["labels"],
        scores=columns["scores"],
        sizes=columns["sizes"],
        source=file,
        notes=tuple(notes),
    )
