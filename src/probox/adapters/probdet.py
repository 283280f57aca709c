"""probdet's and pod_compare's results as they are in memory, before they become a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from probox.errors import InputError
from probox.formats.coco.results import coco_results_from_bytes
from probox.formats.problems import Problems
from probox.tables.arguments import dataset_of
from probox.tables.arrays import to_numpy
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["from_probdet"]


def from_probdet(entries: Any, truth: GroundTruth | Dataset, *, repair: bool = False) -> Detections:
    """Return the detections of a list of results, exactly as from a file of them: see `probox.read_detections`.

    Parameters
    ----------
    entries : list of dict
        COCO results with ``cls_prob`` (all classes, perhaps with background last) and ``bbox_covar`` (4 x 4, of x, y,
        width and height).
    truth : GroundTruth or Dataset
        Tells images and categories.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite by the nearest that are.

    Examples
    --------
    >>> truth = Dataset.from_sizes(["cup", "dog"], {7: (64, 48)})
    >>> entry = {"image_id": 7, "category_id": 2, "bbox": [1, 2, 30, 40], "score": 0.8,
    ...          "cls_prob": [0.1, 0.8, 0.1], "bbox_covar": [[4, 0, 0, 0], [0, 4, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]}
    >>> from_probdet([entry], truth).covariances[0, 1].tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    dataset = dataset_of(truth, "the order is from_probdet(entries, truth)")
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, Mapping) for entry in entries):
        raise InputError(
            f"expected a list of dictionaries, but got {type(entries).__name__}",
            remedy="read files with probox.read_detections(path, truth)",
        )
    text = json.dumps([dict(entry) for entry in entries], default=_plain)
    return coco_results_from_bytes(text.encode(), "", dataset, Problems()).to_table(repair=repair)


def _plain(value: Any) -> Any:
    """Return arrays, tensors and numbers of other libraries as lists and numbers."""
    return to_numpy(value, "an entry").tolist()
