"""Merging of results in any order, with checks for missing, foreign and duplicate parts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.kept import merge_kept
from probox.evaluation.parts import Part, combine_parts, hash_ids
from probox.evaluation.result import Evaluation
from probox.evaluation.verdicts import join_choices
from probox.notes import merge_notes
from probox.support.formatting import some_names
from probox.tables.dataset import Dataset
from probox.tables.masks import Masks
from probox.tables.results import SomePairs, renumber_pairs
from probox.tables.table import Table, join_tables

_NO_IMAGE = 2**63
"""Sort key of parts without images, which come last."""


def merge(results: Iterable[Evaluation | str | os.PathLike[str]], *, complete: bool = True) -> Evaluation:
    """Merge the parts of an evaluation, in any order, bit-identical to one evaluation of all images.

    Parts from ``evaluate(part=...)`` are checked: an error names missing, foreign and duplicate parts. Complete results
    can be merged too, if they have the same convention, classes and metrics, and no image in common.

    Parameters
    ----------
    results : iterable of results or folders
        Results of `evaluate`, or the folders they were saved in.
    complete : bool
        Raise if parts are missing. Otherwise the result is a part itself, to be merged with the others later.

    Returns
    -------
    Evaluation
        The merged result.

    Examples
    --------
    >>> import probox
    >>> whole = probox.merge(["parts/1", "parts/2", "parts/3"])  # doctest: +SKIP
    """
    named = [_name_result(result, place) for place, result in enumerate(results, 1)]
    if not named:
        raise InputError("expected results to merge, but got none")
    _check_alike(named)
    _check_parts(named)
    _check_images(named)
    parts = [result for _, result in named]
    merged = merge_evaluations(parts)
    whole = parts[0].part
    if merged.part is not None and complete:
        missing = merged.part.missing
        words = f"part {missing[0]} of {merged.part.of} is" if len(missing) == 1 else (
            f"parts {some_names(list(map(str, missing)))} of {merged.part.of} are"
        )  # fmt: skip
        raise InputError(
            f"{words} missing",
            remedy=f"evaluate {'it' if len(missing) == 1 else 'them, the first'} with "
            f"{{option:part={missing[0]}/{merged.part.of}}}",
        )
    if whole is not None and merged.part is None and hash_ids(merged.dataset.image_ids) != whole.whole:
        raise InputError("the parts do not contain all images of the evaluation", remedy="evaluate all parts again")
    return merged


def merge_evaluations(parts: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of all images of all parts, which must be comparable and without common images."""
    if len(parts) == 1:
        return dataclasses.replace(parts[0], part=combine_parts([parts[0].part]))
    first = parts[0]
    if first.part is not None or first.kept is not None:  # the order of arguments must not change the result
        parts = sorted(parts, key=_first_image)
        first = parts[0]
    datasets = [part.dataset for part in parts]
    order = np.argsort(np.concatenate([dataset.image_ids for dataset in datasets]), kind="stable")
    kept = [part.kept for part in parts if part.kept is not None]
    merged = dataclasses.replace(
        first,
        dataset=join_tables(datasets, order),
        inputs=tuple(dict.fromkeys(name for part in parts for name in part.inputs)),
        input_notes=merge_notes([part.input_notes for part in parts], of_one=first.part is not None),
        part=combine_parts([part.part for part in parts]),
        threshold_choice=join_choices([part.threshold_choice for part in parts], list(map(len, datasets)), order),
        **({"kept": merge_kept(kept, order)} if kept else _merge_tables(parts, datasets, order)),
    )
    return merged.rematch() if merged.has_pairs and not kept else merged


def _first_image(part: Evaluation) -> int:
    return int(part.dataset.image_ids[0]) if len(part.dataset) else _NO_IMAGE


def _merge_tables(
    parts: Sequence[Evaluation], datasets: Sequence[Dataset], order: npt.NDArray[np.int64]
) -> dict[str, Any]:
    """Return the merged tables of all parts, by image."""
    row = np.argsort(order)
    of_objects = [part.objects for part in parts]
    of_detections = [part.detections for part in parts]
    objects, detections = join_tables(of_objects), join_tables(of_detections)
    objects = objects.replace(image_rows=row[objects.image_rows + _shift(datasets, of_objects)])
    detections = detections.replace(image_rows=row[detections.image_rows + _shift(datasets, of_detections)])
    pairs = _shift_pairs([part.pairs for part in parts], of_objects, of_detections)
    overlaps = _shift_pairs([part.overlaps for part in parts], of_objects, of_detections)
    masks = Masks.concatenate([part.masks for part in parts])
    if not np.array_equal(row, np.arange(len(row))):  # consecutive parts need no reordering
        object_order = np.argsort(objects.image_rows, kind="stable")
        detection_order = np.argsort(detections.image_rows, kind="stable")
        new_object, new_detection = np.argsort(object_order), np.argsort(detection_order)
        pair_order = np.argsort(objects.image_rows[pairs.objects], kind="stable")
        overlap_order = np.argsort(objects.image_rows[overlaps.objects], kind="stable")
        pairs = renumber_pairs(pairs.take(pair_order), new_detection, new_object)
        overlaps = renumber_pairs(overlaps.take(overlap_order), new_detection, new_object)
        objects, detections = objects.take(object_order), detections.take(detection_order)
        masks = masks.take(object_order)
    return {"objects": objects, "detections": detections, "pairs": pairs, "overlaps": overlaps, "masks": masks}


def _shift_pairs(parts: Sequence[SomePairs], of_objects: Sequence[Table], of_detections: Sequence[Table]) -> SomePairs:
    """Return the pairs of all parts, with rows of the joined tables."""
    pairs = join_tables(parts)
    return pairs.replace(
        objects=pairs.objects + _shift(of_objects, parts), detections=pairs.detections + _shift(of_detections, parts)
    )


def _shift(tables: Sequence[Table], pointing: Sequence[Table]) -> npt.NDArray[np.int64]:
    """Return the offset of each row of the parts `pointing` when `tables` become one table."""
    before = np.cumsum([0, *map(len, tables)])[:-1]
    return np.repeat(before, [len(table) for table in pointing])


def _name_result(result: Any, place: int) -> tuple[str, Evaluation]:
    """Return a result and its name in messages: its folder or part."""
    if isinstance(result, str | os.PathLike):
        from probox.evaluation.storage import load

        return os.fspath(result), load(Path(result))
    if not isinstance(result, Evaluation):
        raise InputError(f"expected results or folders of results, but got {type(result).__name__}")
    return str(result.part or f"result {place}"), result


_ALIKE: dict[str, Callable[[Evaluation], Any]] = {
    "with another keep": lambda result: result.keep,
    "by another convention": lambda result: result.convention,
    "for other classes": lambda result: result.classes,
    "for other metrics": lambda result: result.measures,
    "by another version of probox": lambda result: result.version,
    "under other rules": lambda result: result.dataset.rules,
    "for other frequencies of classes": lambda result: result.dataset.frequencies,
    "for other category ids": lambda result: result.dataset.category_ids.tolist(),
}
"""Properties that results must have in common, by the words for a difference."""

_WHOLE: dict[str, Callable[[Part], Any]] = {
    "has another number of parts": lambda part: part.of,
    "is a part of other images": lambda part: part.whole,
    "was computed from other ground truth or detections": lambda part: part.inputs,
}


def _check_alike(named: list[tuple[str, Evaluation]]) -> None:
    first_name, first = named[0]
    for name, result in named[1:]:
        for how, value in _ALIKE.items():
            if value(result) != value(first):
                raise InputError(
                    f"was evaluated {how} than {first_name}", file=name, remedy="evaluate both in the same way"
                )


def _check_parts(named: list[tuple[str, Evaluation]]) -> None:
    """Raise if a part belongs to another evaluation, or is given twice."""
    first_name, first = named[0][0], named[0][1].part
    owner: dict[int, str] = {}
    for name, result in named:
        part = result.part
        if (part is None) != (first is None):
            which, other = (name, first_name) if part is None else (first_name, name)
            raise InputError(
                f"is a complete result, but {other} is a part", file=which, remedy="merge parts of the same evaluation"
            )
        if part is None or first is None:
            continue
        for how, value in _WHOLE.items():
            if value(part) != value(first):
                raise InputError(f"{how} than {first_name}", file=name, remedy="merge parts of the same evaluation")
        for number in part.numbers:
            if number in owner:
                raise InputError(
                    f"duplicate of part {number} of {part.of} (also {owner[number]})",
                    file=name,
                    remedy="give each part once",
                )
            owner[number] = name


def _check_images(named: list[tuple[str, Evaluation]]) -> None:
    """Raise if an image is in two results."""
    ids = np.concatenate([result.dataset.image_ids for _, result in named])
    owners = np.repeat(np.arange(len(named)), [len(result.dataset) for _, result in named])
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(again):
        one, other = (named[owners[order[at]]][0] for at in (again[0], again[0] + 1))
        raise InputError(
            f"is in {one} too", file=other, image=int(ids[order[again[0]]]), remedy="evaluate each image once"
        )
