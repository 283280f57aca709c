"""Writers of detections: COCO results and RVC1."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.evaluation.notes import some_names
from probox.files.output import Content, json_bytes, write_files
from probox.files.reading import Paths
from probox.files.replacing import check_none_is_input, check_replaceable
from probox.formats.rvc1.detections import sequences_of
from probox.formats.rvc1.heatmaps import StoredHeatmap
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import align_labels, column_of_each, unknown_classes

__all__ = ["coco_results_text", "write_coco_results", "write_rvc1"]

Floats = npt.NDArray[np.float64]


def write_coco_results(path: Paths, found: Detections, truth: GroundTruth) -> tuple[str, ...]:
    """Write COCO results to a ``.json`` or ``.json.gz`` file.

    ``all_scores`` is written where the label probabilities say more than the score, ``covars`` where corners
    have a covariance. Boxes, scores, label probabilities (of the truth's classes) and covariances come back
    exactly when the file is read.

    Parameters
    ----------
    path : path
        The file; its folder is made if it is missing. A file that is there is replaced if it holds detections.
    found : Detections
        What to write. Heatmaps cannot be held by this format.
    truth : GroundTruth
        Gives the category ids.

    Returns
    -------
    tuple of str
        What the file cannot hold, one sentence each.
    """
    check_replaceable(path, "detections")
    text, notes = coco_results_text(found, truth, str(path))
    target = Path(path)
    write_files({target: json_bytes(target, text)})
    return notes


def coco_results_text(found: Detections, truth: GroundTruth, file: str) -> tuple[bytes, tuple[str, ...]]:
    """Return COCO results as JSON, and what they cannot hold; `file` is named in errors."""
    if found.heatmaps is not None and any(heatmap is not None for heatmap in found.heatmaps):
        raise InputError("COCO results cannot hold heatmaps", file=file, remedy="write RVC1 instead")
    notes: list[str] = []
    probs = align_labels(found.label_probs, found.classes, truth.classes)
    labels, scores = _stated(found, probs, truth, notes)
    covariances, has_covariances = _covariances(found)
    sizes = _sizes_that_add_up(found.boxes, found.sizes)
    text = _core.format_coco_results(
        image_ids=found.image_ids,
        labels=labels,
        category_ids=truth.category_ids,
        boxes=np.concatenate([found.boxes[:, :2], sizes], axis=1),
        scores=scores,
        label_probs=probs,
        covariances=covariances,
        has_covariances=has_covariances,
    )
    return text, tuple(notes)


def write_rvc1(path: Paths, found: Detections, truth: GroundTruth) -> tuple[str, ...]:
    """Write RVC1 detections to a ``.json`` or ``.json.gz`` file, or to a folder for challenge truth.

    A name that does not end in ``.json`` or ``.json.gz`` is a folder: one file per sequence of the challenge
    truth. Heatmaps are written as ``.npy`` files beside the JSON, and ``img_names`` where every image has a file
    name of its own. Boxes, label probabilities, covariances and
    heatmaps come back exactly when the file is read, grouped by image.

    Parameters
    ----------
    path : path
        The file or folder; its parent is made if it is missing. Files that are there are replaced if they hold
        detections, but no file that heatmaps of `found` are read from.
    found : Detections
        What to write; all in images of the truth.
    truth : GroundTruth
        Gives the images and their order.

    Returns
    -------
    tuple of str
        What the file cannot hold, one sentence each.
    """
    target = Path(path)
    if target.name.endswith((".json", ".json.gz")):
        parts = {target: slice(0, len(truth.image_ids))}
    else:
        parts = {target / f"{name}.json": rows for name, rows in sequences_of(truth).items()}
        if not parts:
            raise InputError(
                "folders of sequences go with challenge ground truth",
                file=str(target),
                remedy="name a file that ends in .json or .json.gz",
            )
    rows = _image_rows(found, truth, str(target))
    files: dict[Path, Content] = {}
    for file, images in parts.items():
        chosen = np.flatnonzero((rows >= images.start) & (rows < images.stop))
        chosen = chosen[np.argsort(rows[chosen], kind="stable")]
        offsets = np.searchsorted(rows[chosen], np.arange(images.start, images.stop + 1)).astype(np.int64)
        maps = _HeatmapWriter(file, found, chosen)
        files |= maps.files
        covariances, has_covariances = _covariances(found)
        body = _core.format_rvc1(
            offsets=offsets,
            boxes=found.boxes[chosen],
            label_probs=found.label_probs[chosen],
            covariances=covariances[chosen] if len(covariances) else covariances,
            has_covariances=has_covariances[chosen],
            mask_names=maps.names,
            mask_files=maps.file_of,
            mask_ids=maps.number_of,
        )
        described: dict[str, list[str]] = {"classes": list(found.classes)}
        names = truth.file_names[images]
        if all(names) and len(set(names)) == len(names) > 0:  # so that the lists find their images in any order
            described["img_names"] = list(names)
        head = json.dumps(described, ensure_ascii=False)[:-1].encode()
        files[file] = json_bytes(file, head + b', "detections": ' + body + b"}\n")
    heatmaps: Iterable[object] = found.heatmaps or ()
    check_none_is_input(files, {heatmap.file.path for heatmap in heatmaps if isinstance(heatmap, StoredHeatmap)})
    for file in files:
        check_replaceable(file, "detections" if file in parts else "heatmaps")
    write_files(files)
    best = found.label_probs.argmax(axis=1) if found.label_probs.size else np.zeros(len(found), np.int64)
    stated = int((best != found.labels).sum())
    return (f"{stated} detections name another class than their most probable one: not kept",) if stated else ()


def _image_rows(found: Detections, truth: GroundTruth, file: str) -> npt.NDArray[np.int64]:
    rows = np.searchsorted(truth.image_ids, found.image_ids)
    present = rows < len(truth.image_ids)
    present[present] = truth.image_ids[rows[present]] == found.image_ids[present]
    if not present.all():
        image = int(found.image_ids[np.flatnonzero(~present)[0]])
        raise InputError(
            f"{int((~present).sum())} detections lie in images that the ground truth does not have",
            file=file,
            image=image,
            remedy="select the detections of its images first",
        )
    return rows.astype(np.int64)


def _stated(
    found: Detections, probs: npt.NDArray[np.float32], truth: GroundTruth, notes: list[str]
) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return class and score as stated in the file; a class that it cannot name gives way to the most probable one."""
    if len(found) and not len(truth.classes):
        raise InputError("the ground truth has no classes", file=truth.source or None)
    labels, scores = found.named_classes(truth.classes)
    own = column_of_each(truth.classes, found.classes)
    other = own[labels] != found.labels if len(labels) else np.zeros(0, bool)
    if other.any():
        notes.append(
            f"{int(other.sum())} detections name a class that the ground truth lacks: "
            "their most probable other class is stated instead"
        )
    unknown = [found.classes[column] for column in unknown_classes(found.classes, truth.classes)]
    if unknown:
        notes.append(
            f"{len(unknown)} of {len(found.classes)} classes are not in the ground truth ({some_names(unknown)}): "
            "their probability is lost"
        )
    nameless = labels < 0
    if nameless.any():
        labels = np.where(nameless, probs.argmax(axis=1), labels)
    return labels.astype(np.int32), scores


def _covariances(found: Detections) -> tuple[Floats, npt.NDArray[np.uint8]]:
    """Return covariances as (N, 8) and which rows to write; if all are zero all are written, to say so."""
    if found.covariances is None:
        return np.zeros((0, 8)), np.zeros(len(found), np.uint8)
    flat = found.covariances.reshape(-1, 8)
    some = flat.any(axis=1)
    return flat, np.asarray(some if some.any() else ~some, dtype=np.uint8)


def _sizes_that_add_up(boxes: Floats, sizes: Floats) -> Floats:
    """Return widths and heights w with x1 + w = x2 to the last bit, the stated ones where they do."""
    start, end = boxes[:, :2], boxes[:, 2:]
    plain = end - start
    best = sizes
    for candidate in (plain, np.nextafter(plain, np.inf), np.nextafter(plain, -np.inf)):
        best = np.where((start + best != end) & (start + candidate == end), candidate, best)
    return np.where(start + best == end, best, plain)


class _HeatmapWriter:
    """The ``.npy`` files of one JSON file: one per image, and per type where an image mixes them."""

    def __init__(self, file: Path, found: Detections, chosen: npt.NDArray[np.int64]) -> None:
        self.files: dict[Path, Content] = {}
        self.names: list[str] = []
        self.file_of = np.full(len(chosen), -1, np.int32)
        self.number_of = np.zeros(len(chosen), np.int64)
        maps: dict[Path, list[npt.NDArray[np.generic]]] = {}
        numbers: dict[Path, int] = {}
        stem = file.name.removesuffix(".gz").removesuffix(".json")
        for at, row in enumerate(chosen if found.heatmaps is not None else ()):
            assert found.heatmaps is not None
            heatmap = found.heatmaps[int(row)]
            if heatmap is None:
                continue
            path = file.with_name(f"{stem}.{found.image_ids[row]}.{heatmap.dtype.name}.npy")
            if path not in maps:
                maps[path] = []
                numbers[path] = len(numbers)
                self.names.append(json.dumps(path.name))
            if maps[path] and maps[path][0].shape != heatmap.shape:
                raise InputError("heatmaps of one image differ in shape", image=int(found.image_ids[row]))
            self.file_of[at] = numbers[path]
            self.number_of[at] = len(maps[path])
            maps[path].append(heatmap)
        self.files = {path: _saver(parts) for path, parts in maps.items()}


def _saver(maps: list[npt.NDArray[np.generic]]) -> Callable[[BinaryIO], None]:
    return partial(_save, maps)


def _save(maps: list[npt.NDArray[np.generic]], file: BinaryIO) -> None:
    np.save(file, np.stack(maps), allow_pickle=False)
