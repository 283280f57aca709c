"""RVC1 detections as a file, or as a folder of sequences, with heatmaps beside them."""

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
from probox.files.kinds import Kind, check_none_is_input, check_replaceable
from probox.files.output import Content, json_bytes, write_files
from probox.files.reading import Paths, file_head
from probox.formats.json_detections import JSON_DETECTIONS, covariances_to_write
from probox.formats.rvc1.detections import sequences_of
from probox.formats.rvc1.heatmaps import StoredHeatmap
from probox.notes import Note
from probox.tables.arguments import dataset_of
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["write_rvc1"]

_HEATMAPS = Kind("heatmaps", lambda path: file_head(path).startswith(b"\x93NUMPY"))


def write_rvc1(path: Paths, found: Detections, truth: GroundTruth | Dataset) -> tuple[Note, ...]:
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
    truth : GroundTruth or Dataset
        Gives the images and their order.

    Returns
    -------
    tuple of str
        What the file cannot hold, one sentence each.
    """
    target = Path(path)
    dataset = dataset_of(truth, "the order is write_rvc1(path, found, truth)")
    if target.name.lower().endswith((".json", ".json.gz")):
        parts = {target: slice(0, len(dataset))}
    else:
        parts = {target / f"{name}.json": rows for name, rows in sequences_of(dataset).items()}
        if not parts:
            raise InputError(
                "folders of sequences go with challenge ground truth",
                file=str(target),
                remedy="name a file that ends in .json or .json.gz",
            )
    rows = _image_rows(found, dataset, str(target))
    files: dict[Path, Content] = {}
    for file, images in parts.items():
        chosen = np.flatnonzero((rows >= images.start) & (rows < images.stop))
        chosen = chosen[np.argsort(rows[chosen], kind="stable")]
        offsets = np.searchsorted(rows[chosen], np.arange(images.start, images.stop + 1)).astype(np.int64)
        maps = _HeatmapWriter(file, found, chosen)
        files |= maps.files
        covariances, has_covariances = covariances_to_write(found)
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
        names = dataset.file_names[images]
        if all(names) and len(set(names)) == len(names) > 0:  # so that the lists find their images in any order
            described["img_names"] = list(names)
        head = json.dumps(described, ensure_ascii=False)[:-1].encode()
        files[file] = json_bytes(file, head + b', "detections": ' + body + b"}\n")
    heatmaps: Iterable[object] = found.heatmaps or ()
    check_none_is_input(files, {heatmap.file.path for heatmap in heatmaps if isinstance(heatmap, StoredHeatmap)})
    for file in files:
        check_replaceable(file, JSON_DETECTIONS if file in parts else _HEATMAPS)
    write_files(files)
    best = found.label_probs.argmax(axis=1) if found.label_probs.size else np.zeros(len(found), np.int64)
    stated = int((best != found.labels).sum())
    return (Note("stated-class-lost", stated),) if stated else ()


def _image_rows(found: Detections, dataset: Dataset, file: str) -> npt.NDArray[np.int64]:
    rows = dataset.rows_of(found.image_ids)
    elsewhere = found.image_ids[rows < 0]
    if len(elsewhere):
        raise InputError(
            f"{len(elsewhere)} detections lie in images that the ground truth does not have",
            file=file,
            image=int(elsewhere[0]),
            remedy="select the detections of its images first",
        )
    return rows


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
