"""The flat columns that tables for people are made of, and what each is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.flat import maybe_missing, named_once, text_column

if TYPE_CHECKING:
    from probox.tables.dataset import Dataset

__all__ = ["box_columns", "class_columns", "corner_columns", "image_columns", "plain_columns", "probability_columns"]

Flat = dict[str, npt.NDArray[Any]]

EDGES = ("x1", "y1", "x2", "y2")
CORNERS = ("tl", "br")
"""Top-left and bottom-right."""


def image_columns(dataset: Dataset, rows: npt.NDArray[np.int64]) -> Flat:
    """Return ids and, if the data set knows any, file names of images by their rows."""
    columns: Flat = {"image_id": dataset.image_ids[rows]}
    if any(dataset.file_names):
        columns["file_name"] = text_column([name or None for name in dataset.file_names])[rows]
    return columns


def class_columns(labels: npt.NDArray[np.int32], classes: Sequence[str], *, optional: bool = False) -> Flat:
    """Return names of classes, and the numbers that count in them from 0; of those below 0, neither if `optional`."""
    names = text_column([*classes, None])  # -1 is the last
    return {"class": names[labels], "class_index": maybe_missing(labels) if optional else labels}


def box_columns(boxes: npt.NDArray[np.float64]) -> Flat:
    """Return the four edges."""
    return {name: boxes[:, number] for number, name in enumerate(EDGES)}


def corner_columns(covariances: npt.NDArray[np.float64]) -> Flat:
    """Return the standard deviations of the edges in pixels, then the covariances of each corner in square pixels."""
    variances = np.diagonal(covariances, axis1=2, axis2=3).reshape(-1, 4)
    # Rounding may leave a variance just below 0, which is none.
    sigmas = np.sqrt(np.maximum(variances, 0.0))
    columns: Flat = {f"sigma_{name}": sigmas[:, number] for number, name in enumerate(EDGES)}
    for number, corner in enumerate(CORNERS):
        own = covariances[:, number]
        columns |= {f"{corner}_xx": own[:, 0, 0], f"{corner}_xy": own[:, 0, 1], f"{corner}_yy": own[:, 1, 1]}
    return columns


def probability_columns(classes: Sequence[str], label_probs: npt.NDArray[np.float32] | None) -> Flat:
    """Return the probability of each class, called ``p_`` and its name."""
    if label_probs is None:
        raise InputError(
            "the probabilities of all classes were not kept",
            remedy='evaluate with measures="all" or, image by image, with Evaluator(keep_labels=True)',
        )
    names = named_once([f"p_{name}" for name in text_column(classes).tolist()])
    return {name: label_probs[:, number] for number, name in enumerate(names)}


def plain_columns(columns: dict[str, Any]) -> Flat:
    """Return columns of a table that has no others for people; those of several numbers are numbered."""
    flat: Flat = {}
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            rows = values.reshape(len(values), -1) if values.size else np.zeros((len(values), 0), values.dtype)
            single = values.ndim == 1
            flat |= {name: values} if single else {f"{name}_{n}": rows[:, n] for n in range(rows.shape[1])}
        elif isinstance(values, tuple) and all(isinstance(value, str) for value in values):
            flat[name] = text_column(values)
    return flat
