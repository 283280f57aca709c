"""Detections without ground truth: images and classes come from the file and the photos."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from probox.errors import InputError
from probox.files.photos import find_photo, is_photo_name, photo_size
from probox.files.reading import Source, is_folder, read_bytes
from probox.formats import read_detections
from probox.formats.coco import COCO_RESULTS
from probox.formats.parquet.shards import is_parquet_source
from probox.formats.registry import format_of_detections
from probox.formats.rvc1_detections import RVC1_DETECTIONS
from probox.formats.rvc1_heatmaps import HeatmapFile
from probox.tables.dataset import MAX_SIDE, Dataset
from probox.tables.detections import Detections
from probox.tables.labels import COCO_CATEGORY_IDS, COCO_CLASSES


@dataclasses.dataclass(frozen=True)
class StandaloneDetections:
    """Detections, with width, height and photo of each image."""

    detections: Detections
    sizes: dict[int, tuple[int, int]]
    photos: dict[int, Path | None]


def read_standalone(path: str, images: Path | None) -> StandaloneDetections:
    """Read COCO results, an RVC1 file or Parquet without ground truth.

    Sizes come from the photos in `images`, else from heatmaps, else from the extent of the boxes. COCO results identify
    images by id and classes by number. Parquet stores both. An RVC1 file names classes; its images are the photos in
    order of their names, if the numbers agree. 80 scores are read as COCO's classes, if these fit the category ids.
    """
    if is_parquet_source(path):
        return _of_parquet(read_detections(path, format="parquet"), images)
    form = format_of_detections(Source(path))
    if form is RVC1_DETECTIONS and is_folder(path):
        raise InputError(
            "folders of sequences cannot be read without ground truth",
            file=path,
            remedy="name the ground truth on which it was run ({option:truth})",
        )
    if form not in (RVC1_DETECTIONS, COCO_RESULTS):
        raise InputError(
            f"{form.title} cannot be read alone: images, their sizes and classes come from the ground truth",
            file=path,
            remedy="name the ground truth on which it was run ({option:truth})",
        )
    data = read_bytes(path)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        content = []  # the reader reports the error with its location
    dataset, photos = _of_rvc1(content, path, images) if isinstance(content, dict) else _of_coco(content, path, images)
    sizes = dict(zip(dataset.image_ids.tolist(), map(tuple, dataset.shapes.tolist()), strict=True))
    return StandaloneDetections(read_detections(path, dataset), sizes, photos)


def _of_parquet(found: Detections, images: Path | None) -> StandaloneDetections:
    ids = np.unique(found.image_ids).tolist()
    photos = {image_id: find_photo(images, image_id) if images else None for image_id in ids}
    reach: dict[int, tuple[int, int]] = {}
    corners = found.boxes[:, 2:]
    if found.masks is not None:
        corners = np.maximum(corners, found.masks.boxes[:, 2:])
    for image_id, (x, y) in zip(found.image_ids.tolist(), np.minimum(corners, 1e6).tolist(), strict=True):
        _stretch(reach, image_id, x, y)
    maps = zip(found.image_ids.tolist(), found.heatmaps or (), strict=False)
    sizes = {image_id: heatmap.shape[::-1] for image_id, heatmap in maps if heatmap is not None}
    sizes = {image_id: sizes.get(image_id) or _photo_size(photos[image_id]) or reach[image_id] for image_id in ids}
    return StandaloneDetections(found, sizes, photos)


def _of_coco(content: Any, path: str, images: Path | None) -> tuple[Dataset, dict[int, Path | None]]:
    entries = [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
    for number, entry in enumerate(entries):
        if isinstance(entry.get("image_id"), str):
            raise InputError(
                f"expected the number of an image, but got the name {entry['image_id'][:80]!r}",
                file=path,
                entry=f"[{number}].image_id",
                remedy="name the ground truth on which it was run ({option:truth})",
            )
    ids = sorted({entry["image_id"] for entry in entries if _is_id(entry.get("image_id"))})
    categories = {entry["category_id"] for entry in entries if _is_id(entry.get("category_id"))}
    given = [entry.get("all_scores", entry.get("cls_prob")) for entry in entries]
    scores = [len(values) for values in given if isinstance(values, list)]
    names: dict[int, str] = {}
    if scores and max(scores) == len(COCO_CLASSES) and _has_coco_ids(entries, categories):
        names = dict(zip(COCO_CATEGORY_IDS, COCO_CLASSES, strict=True))
        categories = set(names)
    elif scores and categories and max(categories) <= max(scores):
        categories = set(range(1, max(scores) + 1))  # one score per category: ids count from 1
    photos = {image_id: find_photo(images, image_id) if images else None for image_id in ids}
    reach: dict[int, tuple[int, int]] = {}
    for entry in entries:
        box: Any = entry.get("bbox")
        if _is_id(entry.get("image_id")) and _is_box(box):
            _stretch(reach, entry["image_id"], box[0] + box[2], box[1] + box[3])
    sizes = {image_id: _photo_size(photos[image_id]) or reach.get(image_id, (64, 64)) for image_id in ids}
    sizes |= _mask_sizes(entries)
    classes = [names.get(number, f"class {number}") for number in sorted(categories)]
    return Dataset.from_sizes(classes, sizes, category_ids=sorted(categories)), photos


def _mask_sizes(entries: list[dict[str, Any]]) -> dict[int, tuple[int, int]]:
    """Return the sizes of images with run lengths, which must have the size of their image."""
    sizes: dict[int, tuple[int, int]] = {}
    for entry in entries:
        mask = entry.get("segmentation")
        size = mask.get("size") if isinstance(mask, dict) else None
        if isinstance(size, list) and len(size) == 2 and all(_is_id(side) and 0 < side <= MAX_SIDE for side in size):
            sizes.setdefault(entry.get("image_id", -1), (size[1], size[0]))
    return {image_id: size for image_id, size in sizes.items() if _is_id(image_id)}


def _of_rvc1(content: dict[str, Any], path: str, images: Path | None) -> tuple[Dataset, dict[int, Path | None]]:
    classes = content.get("classes")
    lists = content.get("detections")
    lists = lists if isinstance(lists, list) else []
    names = tuple(name for name in classes if isinstance(name, str)) if isinstance(classes, list) else ()
    files = sorted(file for file in images.iterdir() if is_photo_name(file)) if images else []
    photos: dict[int, Path | None] = {
        number: files[number] if len(files) == len(lists) else None for number in range(len(lists))
    }
    sizes: dict[int, tuple[int, int]] = {}
    reach: dict[int, tuple[int, int]] = {}
    for number, entries in enumerate(lists):
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, dict):
                continue
            if isinstance(entry.get("masks_file"), str) and number not in sizes:
                known = _map_size(Path(path).parent, entry["masks_file"])
                sizes.update({number: known} if known else {})
            if _is_box(entry.get("bbox")):
                _stretch(reach, number, entry["bbox"][2], entry["bbox"][3])
        sizes[number] = sizes.get(number) or _photo_size(photos[number]) or reach.get(number, (64, 64))
    return Dataset.from_sizes(names, sizes), photos


def _has_coco_ids(entries: list[dict[str, Any]], categories: set[int]) -> bool:
    """Return whether categories have COCO's ids, which have gaps, and are not numbered from 1.

    If both fit, the numbering that more often matches the best score of an entry is chosen.
    """
    if not categories <= set(COCO_CATEGORY_IDS):
        return False
    if max(categories, default=0) > len(COCO_CLASSES):
        return True
    by_id = counted = 0
    for entry in entries:
        values = entry.get("all_scores", entry.get("cls_prob"))
        if not isinstance(values, list) or len(values) != len(COCO_CLASSES):
            continue
        try:
            best = values.index(max(values))
        except TypeError:  # invalid numbers: the reader reports the error
            continue
        by_id += entry.get("category_id") == COCO_CATEGORY_IDS[best]
        counted += entry.get("category_id") == best + 1
    return by_id >= counted


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _is_box(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 4
        and all(isinstance(number, int | float) and abs(number) < 1e6 for number in value)
    )


def _stretch(reach: dict[int, tuple[int, int]], image: int, x: float, y: float) -> None:
    """Enlarge an image to include a point and a margin."""
    width, height = reach.get(image, (64, 64))
    reach[image] = max(width, int(x) + 17), max(height, int(y) + 17)


def _map_size(folder: Path, name: str) -> tuple[int, int] | None:
    """Return the size of the heatmaps in a file; None if unreadable, which their reader reports."""
    base = folder.resolve()
    try:
        if base not in (folder / name).resolve().parents:
            return None
        _, height, width = HeatmapFile.open(folder / name).shape
    except (OSError, ValueError):
        return None
    return (width, height) if min(width, height) > 0 else None


def _photo_size(path: Path | None) -> tuple[int, int] | None:
    return None if path is None else photo_size(path)
