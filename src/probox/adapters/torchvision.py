"""torchvision's dictionaries: what its detectors return."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.adapters.images import ImageRows, image_ids_of, listed, stacked
from probox.errors import InputError
from probox.tables.arguments import check_classes
from probox.tables.arrays import to_numpy
from probox.tables.detections import Detections
from probox.tables.distributions import AboveOne
from probox.tables.labels import background_classes

__all__ = ["NO_CLASS", "arrays_of", "class_columns", "from_torchvision", "labels_from_one", "own_id"]

NO_CLASS = "N/A"
"""The name of numbers that COCO never gave to a class, in torchvision's lists of categories."""


def from_torchvision(
    outputs: Any,
    *,
    classes: Sequence[str],
    image_ids: Any = None,
    above_one: AboveOne = "limit",
) -> Detections:
    """Return the detections of torchvision's dictionaries.

    Parameters
    ----------
    outputs : dict, or list of them
        Of each image: ``boxes (n, 4)`` in pixels, ``labels (n,)`` and ``scores (n,)``. Optional: ``label_probs``, the
        probabilities of all classes, perhaps with background first, and ``covariances`` in any shape that
        `Detections.from_scores` takes.
    classes : sequence of str
        ``weights.meta["categories"]``, which begins with background, or the names of classes alone. Labels count from 1
        either way, as 0 is background.
    image_ids : int or sequence of int
        The id of each image; by default that of an entry ``image_id``.
    above_one : {"limit", "normalise", "refuse"}
        What happens to `label_probs` that add up to more than 1, see `Detections.from_scores`.

    Examples
    --------
    >>> output = {"boxes": [[10, 20, 50, 60]], "labels": [2], "scores": [0.8]}
    >>> from_torchvision(output, classes=["__background__", "cup", "dog"], image_ids=7).labels.tolist()
    [1]
    """
    results = listed(outputs, isinstance(outputs, Mapping))
    ids = image_ids_of(image_ids, len(results), [own_id(result) for result in results])
    names, columns = class_columns(classes)
    kept = [name for name, column in zip(names, columns, strict=True) if column >= 0]
    images, nameless = [], 0
    for image, result in zip(ids, results, strict=True):
        given = arrays_of(result, image, ("boxes", "labels", "scores"), ("label_probs", "covariances"))
        named = labels_from_one(given.pop("labels"), names, image)
        rows = ImageRows(**given, labels=named).without_background(len(names), "first", image)
        if rows.label_probs is not None and len(named):
            rows = dataclasses.replace(rows, label_probs=rows.label_probs[:, columns >= 0])
        real = columns[named] >= 0
        nameless += int((~real).sum())
        images.append(dataclasses.replace(rows, labels=columns[named]).take(np.flatnonzero(real)))
    notes = (f"{nameless} detections of {NO_CLASS}, which is no class, were left out",) if nameless else ()
    return stacked(images, ids, kept, above_one=above_one, notes=notes)


def own_id(result: Any) -> Any:
    value = result.get("image_id") if isinstance(result, Mapping) else None
    return None if value is None else to_numpy(value, "image_id").reshape(-1)[0]


def class_columns(classes: Sequence[str]) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return the names of labels 1, 2, ..., and the column that each gets; -1 for numbers that are no class."""
    names = check_classes(classes)
    if names and background_classes(names[:1])[0]:
        names = names[1:]
    if background_classes(names).any():
        at = int(np.argmax(background_classes(names)))
        raise InputError(f"background ({names[at]!r}) stands in the middle of classes", remedy="put it first")
    real = np.array([name != NO_CLASS for name in names], bool)
    return names, np.where(real, np.cumsum(real) - 1, -1).astype(np.int32)


def labels_from_one(labels: npt.NDArray[Any], names: tuple[str, ...], image: int) -> npt.NDArray[np.int64]:
    """Return labels that count in the names from 0; torchvision's count from 1."""
    if labels.size == 0:
        return np.zeros(0, np.int64)
    if labels.dtype.kind not in "iu":
        raise InputError(f"expected labels to be whole numbers, but got {labels.dtype}", image=image)
    low, high = int(labels.min()), int(labels.max())
    if low == 0:
        raise InputError(
            "label 0 is background, of which there is no detection",
            image=image,
            remedy="torchvision's labels count from 1; where yours count from 0, use Detections.from_scores",
        )
    if low < 0 or high > len(names):
        raise InputError(
            f"expected labels from 1 to {len(names)}, but got {low if low < 0 else high}",
            image=image,
            remedy='give all classes: weights.meta["categories"], or as many names as there are labels',
        )
    return labels.astype(np.int64) - 1


def arrays_of(holder: Any, image: int, needed: Sequence[str], optional: Sequence[str]) -> dict[str, Any]:
    """Return entries of a dictionary as arrays, None for optional ones that are not there."""
    missing = [name for name in needed if not isinstance(holder, Mapping) or name not in holder]
    if missing:
        got = ", ".join(map(str, holder)) if isinstance(holder, Mapping) else type(holder).__name__
        remedy = None
        if missing == ["scores"]:
            remedy = "this looks like what a detector is trained on: use truth_from_torchvision"
        elif isinstance(holder, Mapping) and "loss_classifier" in holder:
            remedy = "put the model into model.eval()"
        raise InputError(
            f"expected a dictionary with {', '.join(needed)}, but got {got:.80}", image=image, remedy=remedy
        )
    given = {name: holder[name] for name in needed} | {name: holder.get(name) for name in optional}
    return {name: None if values is None else to_numpy(values, name) for name, values in given.items()}
