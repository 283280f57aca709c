"""Whether results may be compared: the same ground truth, by the same convention."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from probox.errors import InputError
from probox.evaluation.merge import merge_evaluations
from probox.evaluation.result import Evaluation
from probox.notes import InputWarning, Note
from probox.support.formatting import format_list

CHANGES_DETECTIONS = ("label_threshold", "fixed_variance")
"""Fields of a convention that change the detections and not how they are measured: these may differ."""


def check_same_truth(results: Mapping[str, Evaluation]) -> tuple[Note, ...]:
    """Raise if a result was not measured as the first was, naming what differs; return what may differ but does."""
    (name, first), *others = results.items()
    regions = _compare_regions(results)
    if regions is not None:
        raise InputError(str(regions), remedy="evaluate all of them on the same truth, with or without box truth")
    for other, result in others:
        for difference in (_compare_keep, _compare_classes, _compare_images, _compare_objects, _compare_conventions):
            found = difference(name, first, other, result)
            if found is not None:
                raise InputError(
                    f"{other} cannot be compared with {name}: {found}", remedy="evaluate both on the same truth alike"
                )
    return _detection_notes(results)


def describe_differences(results: Mapping[str, Evaluation]) -> tuple[Note, ...]:
    """Return notes and warnings on how results of the same objects were measured differently."""
    (name, first), *others = results.items()
    regions = _compare_regions(results)
    conventions = [_compare_conventions(name, first, other, result) for other, result in others]
    found = [InputWarning("conventions-differ", text=text) for text in conventions if text is not None]
    return (*(found if regions is None else [regions]), *_detection_notes(results))


def _compare_regions(results: Mapping[str, Evaluation]) -> InputWarning | None:
    """Return a warning if some results were scored against masks and some against boxes."""
    masks, boxes = (
        [name for name, result in results.items() if result.scored_against == kind] for kind in ("masks", "boxes")
    )
    if not masks or not boxes:
        return None
    return InputWarning("regions-differ", masks=format_list(masks), boxes=format_list(boxes), many=len(masks))


def _detection_notes(results: Mapping[str, Evaluation]) -> tuple[Note, ...]:
    (name, first), *others = results.items()
    notes = []
    for other, result in others:
        for field in CHANGES_DETECTIONS:
            a, b = getattr(first.convention, field), getattr(result.convention, field)
            if a != b:
                words = field.replace("_", " ")
                values = {"a": _format_value(a), "b": _format_value(b)}
                notes.append(Note("settings-differ", first=name, second=other, setting=words, **values))
    return tuple(notes)


def align_classes(first: Any, second: Any, measures: tuple[str, ...]) -> Any:
    """Return one evaluation of both: row 2 i is image i of the first, row 2 i + 1 the same image of the second.

    Each image thus keeps its place among the others, whoever it is taken from.
    """
    mine, theirs = (
        dataclasses.replace(
            part,
            convention=first.convention,
            measures=measures,
            part=None,
            dataset=part.dataset.replace(image_ids=2 * np.arange(len(part.dataset)) + side),
        )
        for side, part in enumerate((first, second))
    )
    return merge_evaluations([mine, theirs])


def _compare_classes(name: str, first: Evaluation, other: str, second: Evaluation) -> str | None:
    if first.classes == second.classes:
        return None
    for mine, a, b in ((name, first, second), (other, second, first)):
        alone = [c for c in a.classes if c not in b.classes]
        if alone:
            return f"the class {alone[0]} is in the truth of {mine} alone"
    return "their truths have classes in different orders"


def _compare_images(name: str, first: Evaluation, other: str, second: Evaluation) -> str | None:
    a, b = first.dataset, second.dataset
    for mine, rest, ids in (
        (name, other, np.setdiff1d(a.image_ids, b.image_ids)),
        (other, name, np.setdiff1d(b.image_ids, a.image_ids)),
    ):
        if len(ids):
            more = f" and {len(ids) - 1:,} more" if len(ids) > 1 else ""
            return f"image {ids[0]}{more} of {mine} {'are' if more else 'is'} not in {rest}"
    sizes = np.flatnonzero((a.shapes != b.shapes).any(axis=1))
    return f"image {a.image_ids[sizes[0]]} has another size" if len(sizes) else None


def _compare_keep(name: str, first: Evaluation, other: str, second: Evaluation) -> str | None:
    return None if first.keep == second.keep else f"of {name} {first.keep} was kept, of {other} {second.keep}"


def _compare_objects(name: str, first: Evaluation, other: str, second: Evaluation) -> str | None:
    (mine, columns), (theirs, others) = first.known_of_objects(), second.known_of_objects()
    differ = np.flatnonzero(mine != theirs)
    if len(differ):
        row = int(differ[0])
        many = f"{mine[row]} objects in {name} and {theirs[row]} in {other}"
        return f"image {first.dataset.image_ids[row]} has {many}"
    for column, values in columns.items():
        rows = np.nonzero(values != others[column])[0]
        if len(rows):
            image = first.dataset.image_ids[np.searchsorted(np.cumsum(mine), rows[0], side="right")]
            return f"the objects of image {image} differ in {column.replace('_', ' ')}"
    return None


def _compare_conventions(name: str, first: Evaluation, other: str, second: Evaluation) -> str | None:
    for field in dataclasses.fields(first.convention):
        a, b = getattr(first.convention, field.name), getattr(second.convention, field.name)
        if a != b and field.name not in (*CHANGES_DETECTIONS, "name"):
            return f"{name} was measured with {field.name} {_format_value(a)}, {other} with {_format_value(b)}"
    return None


def _format_value(value: object) -> str:
    return {None: "none", True: "on", False: "off"}.get(value, f"{value:g}" if isinstance(value, float) else str(value))  # type: ignore[call-overload, no-any-return]
