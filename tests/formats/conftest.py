"""Small files that tests write and change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probox.formats import read_truth
from probox.tables.groundtruth import GroundTruth

TRUTH: dict[str, Any] = {
    "images": [
        {"id": 9, "width": 30, "height": 20, "file_name": "nine.jpg"},
        {"id": 4, "width": 16, "height": 12, "file_name": "four.jpg"},
    ],
    "categories": [{"id": 7, "name": "dog"}, {"id": 3, "name": "cup"}],
    "annotations": [
        {
            "id": 50,
            "image_id": 9,
            "category_id": 7,
            "bbox": [2.5, 3.0, 6.0, 4.0],
            "area": 24.0,
            "iscrowd": 0,
            "segmentation": [[2.0, 3.0, 8.0, 3.0, 8.0, 7.0, 2.0, 7.0]],
        },
        {"id": 51, "image_id": 4, "category_id": 3, "bbox": [1.2, 2.0, 3.5, 4.0]},
        {
            "id": 52,
            "image_id": 9,
            "category_id": 3,
            "bbox": [0, 0, 30, 20],
            "iscrowd": 1,
            "segmentation": {"size": [20, 30], "counts": [0, 25, 575]},
        },
    ],
}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a value as JSON (bytes as they are) and returns the path."""

    def put(value: Any, name: str = "file.json") -> Path:
        path = tmp_path / name
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return path

    return put


@pytest.fixture
def truth_file(write: Callable[..., Path]) -> Path:
    """Return a small COCO ground truth: ids out of order, three kinds of masks."""
    return write(TRUTH, "truth.json")


@pytest.fixture
def truth(truth_file: Path) -> GroundTruth:
    """Return the table of `truth_file`."""
    return read_truth(truth_file)
