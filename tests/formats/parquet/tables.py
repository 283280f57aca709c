"""Tables to write, and whether what is read is the same to the last bit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from probox import Detections
from probox.tables.dataset import Dataset
from probox.tables.label_probs import LabelProbs
from probox.tables.masks import Masks


def assert_same(one: Any, other: Any, *, but: tuple[str, ...] = ("source",)) -> None:
    """Compare two tables bit for bit, column by column, types included."""
    for field in dataclasses.fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if field.name in but:
            continue
        if isinstance(left, Masks):
            for name in ("boxes", "pixels", "offsets", "runs"):
                assert_same_bits(getattr(left, name), getattr(right, name), name)
        elif isinstance(left, Dataset):
            assert_same(left, right)
        elif isinstance(left, np.ndarray | LabelProbs):
            assert_same_bits(np.asarray(left), np.asarray(right), field.name)
        else:
            assert left == right, field.name


def assert_same_bits(left: np.ndarray, right: np.ndarray, name: str) -> None:
    assert left.dtype == right.dtype, name
    assert left.shape == right.shape, name
    assert left.tobytes() == right.tobytes(), name


def by_image(found: Detections) -> Detections:
    return found.select(np.argsort(found.image_ids, kind="stable"))


def some_detections(n: int = 40, classes: int = 5, seed: int = 0, **changes: Any) -> Detections:
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 300, (n, 2))
    columns: dict[str, Any] = {
        "classes": [f"class {i}" for i in range(classes)],
        "image_ids": rng.integers(0, 9, n) * 3,
        "boxes": np.concatenate([corner, corner + rng.uniform(0, 90, (n, 2))], axis=1),
        "label_probs": rng.dirichlet(np.ones(classes), n).astype(np.float32) * np.float32(0.99),
    }
    return Detections(**(columns | changes))
