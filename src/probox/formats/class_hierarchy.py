"""Class hierarchy of Open Images: objects and detections that count for their class and all its superclasses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np

from probox.errors import InputError
from probox.files.reading import Paths, read_bytes
from probox.formats.open_images import class_descriptions
from probox.notes import Note
from probox.support.types import Ints
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.label_probs import LabelProbs

Superclasses = dict[str, tuple[str, ...]]
"""For each class, the classes above it."""

_DEEPEST = 100
"""Limit on the levels of a hierarchy."""


def read_hierarchy(path: Paths) -> Superclasses:
    """Return the superclasses of each class from a file such as ``bbox_labels_600_hierarchy.json``.

    The root, which stands for any object, is not a class. Parts of objects are not subclasses.
    """
    data = read_bytes(path)
    try:
        root = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({str(error)[:80]})", file=str(path)) from None
    above: dict[str, dict[str, None]] = {}

    def visit(node: Any, path_to: tuple[str, ...], entry: str) -> None:
        children = node.get("Subcategory", []) if isinstance(node, dict) else None
        if not isinstance(children, list) or not isinstance(node.get("LabelName"), str) or len(path_to) > _DEEPEST:
            raise InputError(
                "expected a class with LabelName, and a list Subcategory if it has subclasses",
                file=str(path),
                entry=entry,
                remedy="give the class hierarchy of Open Images (bbox_labels_600_hierarchy.json)",
            )
        name = node["LabelName"]
        if entry:
            above.setdefault(name, {}).update(dict.fromkeys(path_to))
        for number, child in enumerate(children):
            visit(child, (*path_to, name) if entry else (), f"{entry}.Subcategory[{number}]".lstrip("."))

    visit(root, (), "")
    return {name: tuple(others) for name, others in above.items()}


@overload
def expand_classes(table: GroundTruth, hierarchy: Paths) -> GroundTruth: ...
@overload
def expand_classes(table: Detections, hierarchy: Paths) -> Detections: ...
def expand_classes(table: GroundTruth | Detections, hierarchy: Paths) -> GroundTruth | Detections:
    """Return objects or detections, each repeated for the superclasses of its class, as Open Images evaluates mAP.

    An image whose class is verified as absent is verified for its subclasses, too. Use the tables for mAP and LRP only:
    PDQ would count an object several times.

    Parameters
    ----------
    table : GroundTruth or Detections
        Read the detections with the expanded ground truth.
    hierarchy : path
        JSON file of nested classes with ``LabelName`` and ``Subcategory``, by code or by name.

    Returns
    -------
    GroundTruth or Detections
        The expanded table.

    Examples
    --------
    >>> from probox.formats import expand_classes
    >>> expand_classes(truth, "bbox_labels_600_hierarchy.json")  # doctest: +SKIP
    """
    if not isinstance(table, GroundTruth | Detections):
        raise InputError(
            f"expected argument `table` to be GroundTruth or Detections, but got {type(table).__name__}",
            remedy="the order is expand_classes(table, hierarchy)",
        )
    of_codes = read_hierarchy(hierarchy)
    folders = [Path(str(hierarchy)).parent, *([Path(table.source).parent] if table.source else [])]
    named = class_descriptions(*folders)
    above = {named.get(code, code): tuple(named.get(one, one) for one in others) for code, others in of_codes.items()}
    if not set(table.classes) & set(above):
        raise InputError(
            f"has none of the classes {', '.join(map(repr, table.classes[:3]))} ...",
            file=str(hierarchy),
            remedy="put the file of class descriptions beside it, which names the codes",
        )
    file = Path(str(hierarchy)).name
    return _expand_truth(table, above, file) if isinstance(table, GroundTruth) else _expand_detections(table, above)


def _with_superclasses(classes: tuple[str, ...], above: Superclasses) -> list[list[int]]:
    """Return each class with its superclasses, as indices; those that are not among the classes are left out."""
    place = {name: at for at, name in enumerate(classes)}
    found = ([at, *(place[one] for one in above.get(name, ()) if one in place)] for at, name in enumerate(classes))
    return [[*dict.fromkeys(own)] for own in found]  # a class may be nested in itself


def _repeated(labels: Iterable[int], places: list[list[int]]) -> tuple[Ints, Ints]:
    """Return the row and the class of each copy."""
    copies = [places[label] for label in labels]
    rows = np.repeat(np.arange(len(copies)), [len(own) for own in copies])
    return rows, np.array([label for own in copies for label in own], np.int64)


def _expand_truth(truth: GroundTruth, above: Superclasses, file: str) -> GroundTruth:
    classes = (
        *truth.classes,
        *sorted({one for name in truth.classes for one in above.get(name, ())} - {*truth.classes}),
    )
    ids = truth.dataset.category_ids
    added = ids.max(initial=0) + 1 + np.arange(len(classes) - len(ids))
    dataset = truth.dataset.replace(classes=classes, category_ids=np.concatenate([ids, added]))
    places = _with_superclasses(classes, above)
    rows, labels = _repeated(truth.labels.tolist(), places)
    columns = truth.columns_at(rows) | {"labels": labels}
    if dataset.negatives is not None:
        below = [[at for at, own in enumerate(places) if label in own] for label in range(len(classes))]
        starts = dataset.offsets(truth.image_rows[rows]).tolist()
        present = [set(labels[begin:end].tolist()) for begin, end in pairwise(starts)]
        negatives = [
            sorted({one for label in own for one in ([label] if label in there else below[label])})
            for own, there in zip(dataset.negatives, present, strict=True)
        ]
        dataset = dataset.replace(negatives=negatives)
    note = Note("class-hierarchy", len(rows) - len(truth), file=file)
    return truth.replace(dataset=dataset, notes=(*truth.notes, note), **columns)


def _expand_detections(found: Detections, above: Superclasses) -> Detections:
    rows, labels = _repeated(found.labels.tolist(), _with_superclasses(found.classes, above))
    columns = found.columns_at(rows)
    probs = LabelProbs.from_scores(columns["scores"], labels, len(found.classes))
    return found.replace(**columns | {"labels": labels, "label_probs": probs})
