"""Results on disk and as bytes, whatever was kept of them."""

from __future__ import annotations

from pathlib import Path

from probox.evaluation.result import Evaluation
from probox.evaluation.storage import evaluation_from_bytes, load_evaluation
from probox.files.reading import Paths
from probox.tables.arguments import expect_path

__all__ = ["from_bytes", "load"]


def load(folder: Paths) -> Evaluation:
    """Return the result in a folder, whatever was kept of it."""
    expect_path(folder, "folder", "name a folder that was written by save or `probox evaluate --out`")
    return load_evaluation(Path(folder))


def from_bytes(data: bytes) -> Evaluation:
    """Return the result that `to_bytes` made bytes of, whatever was kept of it."""
    return evaluation_from_bytes(data)
