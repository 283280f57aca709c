"""The kernel: arrays in, arrays out."""

from typing import Any

import numpy as np
import numpy.typing as npt

def match_boxes(
    image: npt.NDArray[np.int64],
    label: npt.NDArray[np.int32],
    boxes: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.float64],
    score: npt.NDArray[np.float64],
    object_offsets: npt.NDArray[np.int64],
    object_label: npt.NDArray[np.int32],
    object_boxes: npt.NDArray[np.float64],
    object_sizes: npt.NDArray[np.float64],
    object_area: npt.NDArray[np.float64],
    object_crowd: npt.NDArray[np.bool_],
    iou_thresholds: npt.NDArray[np.float64],
    area_ranges: npt.NDArray[np.float64],
    max_detections: int,
    threads: int,
) -> dict[str, npt.NDArray[Any]]: ...
def score_order(
    label: npt.NDArray[np.int32], score: npt.NDArray[np.float64], classes: int, threads: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
def precision_at_recall(
    order: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    score: npt.NDArray[np.float64],
    rank: npt.NDArray[np.int32],
    matched: npt.NDArray[np.uint16],
    ignored: npt.NDArray[np.uint16],
    objects: npt.NDArray[np.int64],
    thresholds: int,
    recall_points: npt.NDArray[np.float64],
    limits: npt.NDArray[np.int64],
    threads: int,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...
