"""Valid inputs to start from, small, with every kind of entry in them."""

from __future__ import annotations

import io
import json
import struct
import tempfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import probox
from probox import Detections, GroundTruth

__all__ = [
    "CLS_PROB", "LABELS", "PHOTOS", "RESULTS", "RVC1", "RVC1_HEATMAPS", "TRUTH", "challenge_files", "challenge_truth",
    "detections", "heatmaps", "npy", "parquet_files", "png", "result_folders", "truth",
]  # fmt: skip

COVARS = [[[4, 1], [1, 2]], [[9.5, 0], [0, 1]]]

TRUTH: dict[str, Any] = {
    "images": [
        {"id": 9, "width": 30, "height": 20, "file_name": "nine.jpg"},
        {"id": 4, "width": 16, "height": 12, "file_name": "four.jpg"},
        {"id": 77, "width": 5, "height": 40},
    ],
    "categories": [{"id": 7, "name": "dog"}, {"id": 3, "name": "cup"}],
    "annotations": [
        {
            "id": 50, "image_id": 9, "category_id": 7, "bbox": [2.5, 3.0, 6.0, 4.0], "area": 24.0, "iscrowd": 0,
            "segmentation": [[2.0, 3.0, 8.0, 3.0, 8.0, 7.0, 2.0, 7.0], [12.5, 1, 20, 9.25, 11, 15]],
        },
        {"id": 51, "image_id": 4, "category_id": 3, "bbox": [1.7, 2.0, 3.6, 4.0]},
        {
            "id": 52, "image_id": 9, "category_id": 3, "bbox": [0, 0, 30, 20], "iscrowd": 1,
            "segmentation": {"size": [20, 30], "counts": [0, 25, 40, 35, 500]},
        },
        {
            "id": 53, "image_id": 4, "category_id": 7, "bbox": [1, 2, 5, 4], "area": 17.0, "iscrowd": 0,
            "segmentation": {"size": [12, 16], "counts": ">48MI1720000f3"},
        },
    ],
}  # fmt: skip

RESULTS: list[dict[str, Any]] = [
    {"image_id": 9, "category_id": 7, "bbox": [2.5, 3, 5.1, 4], "score": 0.8, "covars": COVARS},
    {"image_id": 4, "category_id": 3, "bbox": [1.7, 2, 3.6, 4], "score": 0.25, "all_scores": [0.25, 0.5]},
    {"image_id": 4, "bbox": [1, 2, 4, 4], "all_scores": [0.3, 0.6]},
    {"image_id": 5, "category_id": 3, "bbox": [0, 0, 3, 3], "score": 1},
    {"image_id": 9, "category_id": 3, "bbox": [1, 1, 3, 3], "score": 0.5, "cls_prob": [0.5, 0.4, 0.1]},
    {"image_id": 9, "category_id": 3, "bbox": [1, 1, 3, 3], "score": 0.5, "bbox_covar": np.eye(4).tolist()},
    {"image_id": 9, "category_id": 3, "score": 0.5, "segmentation": {"size": [20, 30], "counts": "[14`000NAO?30000e="}},
    {
        "image_id": 9,
        "category_id": 7,
        "bbox": [2, 3, 6, 4],
        "score": 0.75,
        "segmentation": [[2.0, 3.0, 8.0, 3.0, 8.0, 7.0, 2.0, 7.0], [12.5, 1, 20, 9.25, 11, 15]],
    },
]

CLS_PROB: list[dict[str, Any]] = [
    {"image_id": 9, "category_id": 3, "bbox": [row, 1, 3, 3], "score": score, "cls_prob": [score, 0.9 - score, 0.1]}
    for row, score in enumerate((0.5, 0.6, 0.7, 0.75, 0.8, 0.85))
]
"""Enough rows that the order of their classes is looked at."""

RVC1: dict[str, Any] = {
    "classes": ["cup", "dog", "none"],
    "detections": [
        [{"bbox": [1, 2, 5, 6], "label_probs": [0.5, 0.25, 0.25]}],
        [
            {"bbox": [2.5, 3, 8, 7], "label_probs": [0, 1, 0], "covars": COVARS},
            {"bbox": [-3, 0.5, 1e1, 4], "label_probs": [0.125, 0.5, 0.1]},
        ],
        [],
    ],
}

RVC1_HEATMAPS: dict[str, Any] = {
    "classes": ["cup", "dog"],
    "detections": [
        [{"label_probs": [0.5, 0.25], "masks_file": "a.npy", "mask_id": 1}],
        [{"bbox": [2, 3, 8, 7], "label_probs": [0, 1], "masks_file": "b.npy", "mask_id": 0}],
        [],
    ],
}

LABELS: dict[str, Any] = {
    "000000": {
        "_metadata": {"mask_name": "000000.png", "mask_channel": 0},
        "00": {"class": "television", "mask_id": 10},
        "01": {"class": "cup", "mask_id": 200},
    },
    "000001": {"_metadata": {"mask_name": "000001.png", "mask_channel": 2}, "5": {"class": "person", "mask_id": 3}},
}

CALIBRATION: dict[str, Any] = {
    "format": "probox calibration 2",
    "version": "1",
    "corners": {"method": "isotonic", "target": "nll", "border": "keep", "curves": {
        "x1": [[0.01, 0.02], [0.1, 0.05]], "y1": [[0.01, 0.02]], "x2": [[0.01, 0.02], [0.1, 0.02]], "y2": [[0.3, 0.2]],
    }},
    "labels": {"method": "temperature", "temperature": 1.5},
    "classes": {"cup": 1, "dog": 3},
    "origin": {"truth": "truth.json", "images": 3},
}  # fmt: skip

CALIBRATED_CLASSES: dict[str, Any] = {
    "format": "probox calibration 2",
    "version": "1",
    "corners": {"method": "class-scale", "target": "pdq", "border": "keep", "others": 1.25, "classes": {"cup": 0.5}},
    "labels": {"method": "isotonic", "others": [[0.1, 0.05], [0.9, 0.5]], "classes": {"cup": [[0.5, 0.75]]}},
    "classes": {"cup": 1, "dog": 3},
    "origin": {},
}

CALIBRATED_LEARNED: dict[str, Any] = {
    "format": "probox calibration 2",
    "version": "1",
    "corners": {"method": "learned", "target": "nll", "border": "keep", "level": -2.5,
                "edges": {"x1": 0.1, "y1": 0, "x2": 0, "y2": -0.1},
                "features": {
                    "score": {"mean": 1.5, "scale": 0.5, "slope": -0.3},
                    "side along": {"mean": 4, "scale": 1, "slope": -0.2},
                    "side across": {"mean": 4, "scale": 1, "slope": 0.1},
                    "own std": {"mean": -3, "scale": 0.5, "slope": 0.2},
                    "other edges' std": {"mean": -3, "scale": 0.5, "slope": 0.1},
                }, "classes": {"cup": 0.2}},
    "labels": {"method": "none"},
    "classes": {"cup": 1, "dog": 3},
    "origin": {"images": 3},
}  # fmt: skip

PHOTOS: dict[str, Any] = {
    "classes": ["none", "cup", "tv", "person"],
    "detections": [
        [{"bbox": [1, 2, 5, 6], "label_probs": [0.0, 0.75, 0.25, 0]}],
        [{"bbox": [2.5, 3, 8, 7], "label_probs": [0.25, 0, 0, 0.5], "covars": COVARS}],
    ],
}


def npy(array: np.ndarray) -> bytes:
    """Return the bytes of a ``.npy`` file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def heatmaps() -> dict[str, np.ndarray]:
    """Return the arrays that `RVC1_HEATMAPS` names, of the images' sizes."""
    rng = np.random.default_rng(1)
    return {
        "a.npy": rng.random((2, 12, 16)).astype(np.float32),
        "b.npy": rng.integers(0, 256, (1, 20, 30)).astype(np.uint8),
    }


def png(width: int, height: int, depth: int, color: int, rows: bytes, palette: bytes = b"") -> bytes:
    """Return a PNG of packed rows, each after the number of its filter."""
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))]
    if palette:
        chunks.append((b"PLTE", palette))
    chunks += [(b"IDAT", zlib.compress(rows, 1)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def challenge_files() -> dict[str, bytes]:
    """Return a folder of challenge ground truth: one sequence, a grey mask and one in colour."""
    grey = np.zeros((12, 16), np.uint8)
    grey[2:6, 1:5] = 10
    grey[7:11, 3:15] = 200
    color = np.zeros((20, 30, 3), np.uint8)
    color[3:7, 2:8, 0] = 3
    return {
        "seq/labels.json": json.dumps(LABELS).encode(),
        "seq/000000.png": png(16, 12, 8, 0, b"".join(b"\0" + row.tobytes() for row in grey)),
        "seq/000001.png": png(30, 20, 8, 2, b"".join(b"\0" + row.tobytes() for row in color)),
    }


@cache
def truth() -> GroundTruth:
    """Return the table of `TRUTH`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "truth.json"
        path.write_text(json.dumps(TRUTH))
        return probox.read_truth(path)


@cache
def challenge_truth() -> GroundTruth:
    """Return the table of `challenge_files`."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in challenge_files().items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return probox.read_truth(folder)


@cache
def detections() -> Detections:
    """Return the table of `RESULTS`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        path.write_text(json.dumps(RESULTS))
        return probox.read_detections(path, truth())


@cache
def parquet_files() -> dict[str, bytes]:
    """Return files of both tables, one of detections that says a score alone, and the files of a set."""
    plain = Detections(
        classes=["cup", "dog"], image_ids=[4, 9], boxes=[[1, 2, 5, 6], [2, 3, 8, 7]], labels=[0, 1],
        label_probs=[[0.75, 0.25], [0.5, 0.5]],
    )  # fmt: skip
    tables = {"truth": truth(), "detections": detections(), "plain": plain}
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables.items():
            probox.write_parquet(Path(folder) / name, table)
        files = {name: (Path(folder) / name).read_bytes() for name in tables}
        probox.write_parquet(Path(folder) / "set", detections(), shards=2)
        return files | {path.name: path.read_bytes() for path in (Path(folder) / "set").iterdir()}


@cache
def result_folders() -> dict[str, dict[str, bytes]]:
    """Return folders of results: of all images, and of both parts in each form in which parts are kept."""
    results: dict[str, Any] = {"whole": probox.evaluate(truth(), detections())}
    for keep in ("all", "matches", "summary"):
        for part in ("1/2", "2/2"):
            results[f"{keep} {part}"] = probox.evaluate(truth(), detections(), part=part, keep=keep)
    folders = {}
    for name, result in results.items():
        with tempfile.TemporaryDirectory() as folder:
            result.save(folder)
            folders[name] = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    return folders
