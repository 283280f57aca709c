"""The kernel: arrays in, arrays out."""

from typing import Any

import numpy as np
import numpy.typing as npt

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
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32]]: ...
def label_runs(
    image: npt.NDArray[np.uint16], values: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32]]: ...
def png_unfilter(data: bytes, height: int, row_bytes: int, pixel_bytes: int) -> npt.NDArray[np.uint8]: ...

# Label probabilities: smallest (at most 0), largest (at least 0) and sum of each row.
def row_ranges(
    matrix: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float64]]: ...
