"""The kernel: arrays in, arrays out."""

from typing import Any

import numpy as np
import numpy.typing as npt

_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]
_Float64 = npt.NDArray[np.float64]
_Float32 = npt.NDArray[np.float32]

class Settings:
    epsilon: float
    region_of_interest: bool
    rough_sigmas: float
    mahalanobis: float
    min_determinant: float
    min_probability: float
    single_precision: bool
    snap_zero: float
    snap_one: float
    min_quality: float
    label_weight: float
    mask_background: bool
    def __init__(self) -> None: ...

def score_images(settings: Settings, threads: int, *columns: Any) -> tuple[_Int64, _Int64, _Float64]: ...
def pair_qualities(settings: Settings, *columns: Any) -> _Float64: ...
def assign_pairs(
    offsets: _Int64, detection: _Int64, object: _Int64, quality: _Float64, greedy: bool
) -> npt.NDArray[np.bool_]: ...
def heatmap(settings: Settings, width: int, height: int, box: _Float64, covariances: _Float64) -> _Float64: ...
def bivariate_cdf(h: float, k: float, rho: float) -> float: ...
def normal_cdf_table(x: float) -> float: ...

_Problems = list[tuple[str, bool, int, list[tuple[int | None, str, str, str]]]]

# Readers of JSON: columns, and problems as (kind, fatal, count, examples of (image, entry, text, remedy)).
def read_coco_truth(data: bytes, lenient: bool) -> tuple[dict[str, Any], _Problems]: ...
def read_coco_results(
    data: bytes,
    ids_known: bool,
    image_ids: npt.NDArray[np.int64],
    category_ids: npt.NDArray[np.int64],
    lenient: bool,
) -> tuple[dict[str, Any], _Problems]: ...
def label_matrix_fits(rows: int, columns: int) -> bool: ...
def read_rvc1(data: bytes, lenient: bool) -> tuple[dict[str, Any], _Problems]: ...
def read_rvc1_labels(data: bytes, lenient: bool) -> tuple[dict[str, Any], _Problems]: ...

# Writers of JSON. Covariances have shape (N, 8), or (0, 8) if there are none.
def format_coco_results(
    image_ids: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32],
    category_ids: npt.NDArray[np.int64],
    boxes: npt.NDArray[np.float64],
    scores: npt.NDArray[np.float64],
    label_probs: npt.NDArray[np.float32],
    covariances: npt.NDArray[np.float64],
    has_covariances: npt.NDArray[np.uint8],
) -> bytes: ...
def format_rvc1(
    offsets: npt.NDArray[np.int64],
    boxes: npt.NDArray[np.float64],
    label_probs: npt.NDArray[np.float32],
    covariances: npt.NDArray[np.float64],
    has_covariances: npt.NDArray[np.uint8],
    mask_names: list[str],
    mask_files: npt.NDArray[np.int32],
    mask_ids: npt.NDArray[np.int64],
) -> bytes: ...

# Masks: boxes, pixels, offsets and runs, as probox.masks.Masks takes them.
def rasterise(
    order: npt.NDArray[np.int64],
    kinds: npt.NDArray[np.uint8],
    piece_offsets: npt.NDArray[np.int64],
    number_offsets: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.float64],
    box_pixels: npt.NDArray[np.int32],
    heights: npt.NDArray[np.int32],
    widths: npt.NDArray[np.int32],
    file_bytes: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32]]: ...
def label_runs(
    image: npt.NDArray[np.uint8] | npt.NDArray[np.uint16], values: npt.NDArray[np.int64], most_runs: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32]] | None: ...
def png_unfilter(data: bytes, above: npt.NDArray[np.uint8], pixel_bytes: int) -> npt.NDArray[np.uint8]: ...

# Box measures.
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

# Label probabilities: smallest (at most 0), largest (at least 0) and sum of each row.
def fill_rows_of_integers(
    matrix: _Float32, first: int, columns: list[_Int32], divisor: float, threads: int
) -> None: ...
def fill_rows_of_floats(
    matrix: _Float32, first: int, columns: list[_Float32], divisor: float, threads: int
) -> None: ...
def spread_scores(scores: _Float64, labels: _Int32, columns: int, threads: int) -> _Float32: ...
def row_ranges(
    matrix: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float64]]: ...

# Clustering of boxes, as probox.fusion.definition says it.
def cluster_sequentially(
    boxes: _Float64,
    iou: float,
    labels: _Int64 | None = None,
    label_probs: _Float64 | None = None,
    label_similarity: float = 0.0,
) -> _Int64: ...
def suppress(boxes: _Float64, groups: _Int64, order: _Int64, iou: float) -> _Int64: ...
def members_of_survivors(
    boxes: _Float64, groups: _Int64, stands_for: _Int64, survivors: _Int64, iou: float
) -> tuple[_Int64, _Int64]: ...
