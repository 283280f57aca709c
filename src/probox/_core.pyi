"""The kernel: arrays in, arrays out.

Arrays that are not contiguous, misaligned or of another type are copied, except a matrix to fill, which is refused.
Arguments that do not fit together raise ValueError. Arrays that come back are read-only.
"""

from typing import Final, TypedDict

import numpy as np
import numpy.typing as npt

_Bool = npt.NDArray[np.bool_]
_UInt8 = npt.NDArray[np.uint8]
_UInt16 = npt.NDArray[np.uint16]
_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]
_Float32 = npt.NDArray[np.float32]
_Float64 = npt.NDArray[np.float64]

# ---- PDQ: cpp/bindings/settings.cpp, heatmap.cpp, pairs.cpp, assignment.cpp, verdicts.cpp

class Settings:
    """The numbers of a convention that the kernel needs; none has a usual value here."""

    def __init__(
        self,
        *,
        epsilon: float,
        region_of_interest: bool,
        reach_sigmas: float,
        mahalanobis: float,
        min_determinant: float,
        min_probability: float,
        single_precision: bool,
        snap_zero: float,
        snap_one: float,
        min_quality: float,
        label_weight: float,
        mask_background: bool,
    ) -> None: ...

def heatmap(settings: Settings, *, box: _Float64, covariances: _Float64, width: int, height: int) -> _Float64: ...
def bivariate_cdf(h: float, k: float, rho: float) -> float: ...
def normal_cdf_table(x: float) -> float: ...

# Kinds of detections: a plain box, a box with Gaussian corners, a heatmap, a mask.
PLAIN: Final[int]
GAUSSIAN: Final[int]
HEATMAP: Final[int]
MASK: Final[int]

class Images:
    """The sizes of images in pixels."""

    def __init__(self, *, widths: _Int32, heights: _Int32) -> None: ...

class Objects:
    """The objects of images, sorted by image; those of image i start at offsets[i]."""

    def __init__(
        self,
        *,
        offsets: _Int64,
        labels: _Int32,
        mask_boxes: _Int32,
        mask_pixels: _Int64,
        run_offsets: _Int64,
        runs: _Int32,
    ) -> None: ...

class Found:
    """The detections of images, sorted by image; those of image i start at offsets[i]."""

    def __init__(
        self,
        *,
        offsets: _Int64,
        boxes: _Float64,
        covariances: _Float64,
        kinds: _UInt8,
        label_probs: LabelTable,
        heatmaps: list[_Float32] | list[_Float64],
        heatmap_rows: _Int64,
        heatmap_corners: _Int32,
        mask_boxes: _Int32,
        mask_pixels: _Int64,
        run_offsets: _Int64,
        runs: _Int32,
    ) -> None: ...

class TooManyPairsError(Exception):
    """An image has more pairs with a quality than it may; the argument is its place."""

    args: tuple[int]

def score_images(
    settings: Settings, images: Images, objects: Objects, found: Found, *, max_pairs: int, threads: int
) -> tuple[_Int64, _Int64, _Float64]: ...
def pair_qualities(settings: Settings, images: Images, objects: Objects, found: Found) -> _Float64: ...
def assign_pairs(
    *, offsets: _Int64, detections: _Int64, objects: _Int64, qualities: _Float64, greedy: bool, threads: int
) -> _Bool: ...

_JudgedColumns = tuple[_UInt8, _Int64, _Float64]
"""Verdicts, partners, qualities."""

def judge_matches(
    *,
    matched: _Bool,
    detections: _Int64,
    objects: _Int64,
    qualities: _Float64,
    detection_count: int,
    ignored_objects: _Bool,
    ignored: int,
    right: int,
    wrong: int,
    missed: int,
) -> tuple[_JudgedColumns, _JudgedColumns]: ...

# ---- Instruction sets: cpp/bindings/instruction_sets.cpp

def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str) -> str: ...

# ---- Checks of box columns: cpp/bindings/box_checks.cpp

def boxes_are_valid(
    boxes: _Float64, extents: _Float64, *, farthest: float, rounding: float, relative_rounding: float
) -> bool: ...

# ---- Box measures: cpp/bindings/box_measures.cpp, mask_overlaps.cpp, optimal_lrp.cpp

class _Matches(TypedDict):
    image_rows: _Int32
    labels: _Int32
    ranks: _Int32
    numbers: _Int32
    matched_objects: _Int32
    scores: _Float64
    ious: _Float64
    matched: _UInt16
    ignored: _UInt16

def match_boxes(
    *,
    image_rows: _Int64,
    labels: _Int32,
    boxes: _Float64,
    extents: _Float64,
    scores: _Float64,
    lenient: _Bool,
    object_offsets: _Int64,
    object_labels: _Int32,
    object_boxes: _Float64,
    object_extents: _Float64,
    object_areas: _Float64,
    object_crowd: _Bool,
    iou_thresholds: _Float64,
    area_ranges: _Float64,
    max_detections: int,
    threads: int,
    areas: _Float64 | None = None,
    overlap_offsets: _Int64 | None = None,
    overlap_objects: _Int64 | None = None,
    overlap_ious: _Float64 | None = None,
) -> _Matches: ...
def mask_overlaps(
    *,
    image_rows: _Int64,
    labels: _Int32,
    boxes: _Int32,
    pixels: _Int64,
    offsets: _Int64,
    runs: _Int32,
    object_offsets: _Int64,
    object_labels: _Int32,
    object_crowd: _Bool,
    object_boxes: _Int32,
    object_pixels: _Int64,
    object_run_offsets: _Int64,
    object_runs: _Int32,
    threads: int,
) -> tuple[_Int64, _Int64, _Float64]: ...
def score_order(labels: _Int32, scores: _Float64, classes: int, threads: int) -> tuple[_Int64, _Int64]: ...
def precision_at_recall(
    *,
    order: _Int64,
    offsets: _Int64,
    scores: _Float64,
    ranks: _Int32,
    matched: _UInt16,
    ignored: _UInt16,
    objects: _Int64,
    thresholds: int,
    recall_points: _Float64,
    limits: _Int64,
    threads: int,
) -> tuple[_Float64, _Float64, _Float64]: ...
def optimal_lrp(
    *,
    order: _Int64,
    offsets: _Int64,
    scores: _Float64,
    matched: _UInt16,
    ignored: _UInt16,
    ious: _Float64,
    objects: _Int64,
    slack: float,
    thresholds: _Float64,
) -> _Float64: ...

# ---- PMB-NLL, as probox.measures.pmb_definition says it: cpp/bindings/pmb_nll.cpp

def k_best_assignments(costs: _Float64, alone: _Float64, k: int) -> tuple[_Int32, _Float64]: ...
def pmb_nll(
    *,
    offsets: _Int64,
    boxes: _Float64,
    covariances: _Float64,
    label_probs: LabelTable | _Float64,
    object_offsets: _Int64,
    object_boxes: _Float64,
    object_labels: _Int32,
    log_floors: _Float64,
    clutter: float,
    min_probability: float,
    min_determinant: float,
    assignments: int,
    threads: int,
) -> _Float64: ...

# ---- Box measures of resampled images: cpp/bindings/box_resampling.cpp

def resampled_precision(
    *,
    order: _Int64,
    offsets: _Int64,
    image_rows: _Int32,
    scores: _Float64,
    right: _UInt16,
    wrong: _UInt16,
    object_offsets: _Int64,
    object_images: _Int32,
    weights: _Int64,
    thresholds: int,
    recall_points: _Float64,
    threads: int,
) -> _Float64: ...
def resampled_lrp(
    *,
    order: _Int64,
    offsets: _Int64,
    image_rows: _Int32,
    scores: _Float64,
    right: _UInt16,
    wrong: _UInt16,
    object_offsets: _Int64,
    object_images: _Int32,
    weights: _Int64,
    errors: _Float64,
    score_thresholds: _Float64,
    slack: float,
    threads: int,
) -> _Float64: ...

# ---- Clustering, as probox.fusion.fusion_definition says it: cpp/bindings/clustering.cpp

def cluster_sequentially(
    boxes: _Float64,
    iou: float,
    *,
    labels: _Int64 | None = None,
    label_probs: _Float64 | None = None,
    label_similarity: float = 0.0,
) -> _Int64: ...
def suppress(boxes: _Float64, groups: _Int64, order: _Int64, iou: float) -> _Int64: ...
def members_of_survivors(
    *, boxes: _Float64, groups: _Int64, stands_for: _Int64, survivors: _Int64, iou: float
) -> tuple[_Int64, _Int64]: ...

# ---- Rows of a table by image: cpp/bindings/image_groups.cpp

def group_by_image(image_ids: _Int64, known: _Int64) -> tuple[_Int64, _Int64, _Int64, bool]: ...
def image_offsets(image_rows: _Int64, images: int) -> _Int64: ...
def rows_of_ids(image_ids: _Int64, known: _Int64) -> _Int64: ...

# ---- Label probabilities: cpp/bindings/labels.cpp

class LabelTable:
    """Label probabilities: a matrix (no offsets), or listed classes of rows, see `probox.tables.label_probs`."""

    def __init__(
        self, *, rows: int, offsets: _Int64, indices: _Int32, values: _Float32, rest: _Float32, sharing: _Bool
    ) -> None: ...

def row_ranges(labels: LabelTable) -> tuple[_Float32, _Float32, _Float64]: ...
def best_labels(labels: LabelTable) -> _Int32: ...
def label_values(labels: LabelTable, rows: _Int64, columns: _Int64) -> _Float32: ...
def expand_labels(labels: LabelTable) -> _Float32: ...
def list_labels(matrix: _Float32, sharing: _Bool, most: int) -> tuple[_Int64, _Int32, _Float32, _Float32] | None: ...
def even_rests(scores: _Float64, columns: int) -> _Float32: ...
def fill_rows_of_integers(
    matrix: _Float32, *, first: int, columns: list[_Int32], divisor: float, threads: int
) -> None: ...
def fill_rows_of_floats(
    matrix: _Float32, *, first: int, columns: list[_Float32], divisor: float, threads: int
) -> None: ...

# ---- Masks as boxes, pixels, offsets and runs, which probox.tables.groundtruth.Masks takes: cpp/bindings/masks.cpp

_Runs = tuple[_Int32, _Int64, _Int64, _Int32]

# Kinds of COCO's segmentations.
NO_MASK: Final[int]
POLYGONS: Final[int]
RUN_LENGTHS: Final[int]

def rasterise(
    *,
    order: _Int64,
    kinds: _UInt8,
    piece_offsets: _Int64,
    number_offsets: _Int64,
    numbers: _Float64,
    box_pixels: _Int32,
    heights: _Int32,
    widths: _Int32,
    max_runs: int,
    max_crossings: int,
    max_object_crossings: int,
) -> _Runs: ...
def label_runs(image: _UInt8 | _UInt16, values: _Int64, max_runs: int) -> _Runs | None: ...
def png_unfilter(data: bytes, above: _UInt8, pixel_bytes: int) -> _UInt8: ...

# ---- Readers of JSON: cpp/bindings/readers.cpp

_Problems = list[tuple[str, bool, int, list[tuple[int, int | None, str, list[str]]]]]
"""Trouble, fatal, count, and examples of (order, image, entry, values)."""

TROUBLES: Final[tuple[str, ...]]
NO_MASK_ID: Final[int]

class _Segmentations(TypedDict):
    kinds: _UInt8
    rle_sizes: _Int64
    piece_offsets: _Int64
    number_offsets: _Int64
    numbers: _Float64

class _CocoTruth(TypedDict):
    image_ids: _Int64
    widths: _Int32
    heights: _Int32
    file_names: list[str]
    category_ids: _Int64
    category_names: list[str]
    entries: _Int64
    ids: _Int64
    has_id: _UInt8
    images: _Int64
    categories: _Int64
    boxes: _Float64
    areas: _Float64
    crowd: _UInt8
    segmentations: _Segmentations
    other_keys: list[str]
    negative_images: _Int64
    negative_categories: _Int64
    not_exhaustive_images: _Int64
    not_exhaustive_categories: _Int64
    frequencies: _UInt8
    image_counts: _Int64
    has_images: bool
    has_annotations: bool
    has_categories: bool

class _CocoResults(TypedDict):
    entries: _Int64
    image_ids: _Int64
    labels: _Int32
    scores: _Float64
    boxes: _Float64
    extents: _Float64
    all_scores_rows: _Int64
    all_scores: _Float32
    cls_prob_rows: _Int64
    covariances: _Float64 | None
    unknown_image_rows: int
    mask_rows: _Int64
    boxless_rows: _Int64
    segmentations: _Segmentations
    heatmap_rows: _Int64
    mask_files: _Int32
    mask_ids: _Int64
    mask_file_names: list[str]
    unknown_images: _Int64
    names: list[str]
    name_entries: _Int64
    name_ids: _Int64
    name_has_id: _UInt8

class _Rvc1Detections(TypedDict):
    classes: list[str]
    images: int
    image_names: list[str]
    image_rows: _Int64
    entries: _Int64
    boxes: _Float64
    label_probs: _Float32
    covariances: _Float64 | None
    mask_files: _Int32
    mask_ids: _Int64
    mask_file_names: list[str]
    other_keys: list[str]
    has_classes: bool
    has_detections: bool
    has_image_names: bool

class _Rvc1Labels(TypedDict):
    images: list[str]
    mask_names: list[str]
    channels: _Int64
    object_images: _Int64
    object_keys: list[str]
    object_classes: list[str]
    mask_ids: _Int64
    boxes: _Float64
    has_mask: _UInt8

def read_file(descriptor: int, size: int, threads: int) -> bytes | None: ...
def read_coco_truth(
    data: bytes,
    *,
    lenient: bool,
    max_examples: int,
    max_side: int,
    max_pixels: int,
    max_mask_numbers: int,
    max_numbers: int,
) -> tuple[_CocoTruth, _Problems]: ...
def read_coco_results(
    data: bytes,
    *,
    image_ids: _Int64 | None,
    category_ids: _Int64 | None,
    lenient: bool,
    max_examples: int,
    max_side: int,
    max_mask_numbers: int,
    max_numbers: int,
    names: list[str] = [],
    name_image_ids: _Int64 | None = None,
    threads: int = 1,
    least_piece: int = 1,
) -> tuple[_CocoResults, _Problems]: ...
def read_rvc1(
    data: bytes, *, lenient: bool, max_examples: int, threads: int = 1, least_piece: int = 1
) -> tuple[_Rvc1Detections, _Problems]: ...
def read_rvc1_labels(data: bytes, *, lenient: bool, max_examples: int) -> tuple[_Rvc1Labels, _Problems]: ...

# ---- Writers of JSON: cpp/bindings/writers.cpp. Covariances have shape (N, 8), or (0, 8) if there are none.

def format_coco_results(
    *,
    image_ids: _Int64,
    labels: _Int32,
    category_ids: _Int64,
    boxes: _Float64,
    scores: _Float64,
    label_probs: LabelTable,
    covariances: _Float64,
    has_covariances: _UInt8,
    has_mask: _Bool | _UInt8,
    widths: _Int32,
    heights: _Int32,
    mask_boxes: _Int32,
    mask_pixels: _Int64,
    run_offsets: _Int64,
    runs: _Int32,
) -> bytes: ...
def format_rvc1(
    *,
    offsets: _Int64,
    boxes: _Float64,
    label_probs: LabelTable,
    covariances: _Float64,
    has_covariances: _UInt8,
    mask_names: list[str],
    mask_files: _Int32,
    mask_ids: _Int64,
) -> bytes: ...
