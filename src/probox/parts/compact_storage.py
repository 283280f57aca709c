"""What is stored of a compact evaluation: columns and words, and whether they could be those of one."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from probox.errors import InputError
from probox.evaluation.archive import Arrays, Column, digest, to_stored
from probox.evaluation.oddities import Oddity
from probox.evaluation.storage import FORMAT, canonical, check_words, convention_of, dataset_of, part_of
from probox.measures.boxes.matching import IOU_THRESHOLDS, SIZES
from probox.parts.box_columns import BoxColumns
from probox.parts.compact import CompactEvaluation
from probox.parts.exact import from_text, to_text
from probox.parts.keep import MEASURES
from probox.parts.totals import COUNTED, LEVELS, SUMMED, Curve, Total, Totals

__all__ = ["compact_of", "schema_of", "stored_of"]

_WORDS: dict[str, type] = {
    "format": int, "version": str, "convention": dict, "classes": list, "measures": list, "inputs": list,
    "notes": list, "digest": str, "dataset": dict, "keep": str, "part": dict, "warnings": list, "totals": dict,
    "types": dict, "left_out": int, "position": int, "scored_against": str,
}  # fmt: skip
_SINCE = {"position": 6, "scored_against": 6}
"""The formats that brought these words."""

_IMAGES = {"images.id": "<i8", "images.width": "<i4", "images.height": "<i4"}
_TYPES: dict[str, tuple[str, ...]] = {
    "scores": ("<f4", "<f8"),
    "labels": ("|u1", "<u2", "<i4"),
    "outcomes": ("<u2", "<i4"),
    "object_labels": ("|u1", "<u2", "<i4"),
}
"""Columns that take no more space than they need, and their types."""

_BOXES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "counts": ("<i4", (), "images"),
    "object_counts": ("<i4", (), "images"),
    "scores": ("", (), "detections"),
    "labels": ("", (), "detections"),
    "outcomes": ("", (), "detections"),
    "patterns": ("<u2", (2 * len(SIZES),), "patterns"),
    "overlaps": ("<f8", (), "right"),
    "odd_rows": ("<i8", (), "odd"),
    "odd_sizes": ("|u1", (), "odd"),
    "odd_overlaps": ("<f8", (), "odd"),
    "object_labels": ("", (), "objects"),
    "object_sizes": ("|u1", (), "objects"),
}
"""The columns of boxes: type, shape of a row, and what rows count."""


def schema_of(words: dict[str, Any], file: str) -> dict[str, Column]:
    """Return the columns that an archive with these words has; raise unless the words are those of one."""
    check_words(words, _WORDS, _SINCE, file)
    if words["keep"] not in MEASURES:
        _fail("expected `matches` or `summary`", file, "keep")
    if words.get("scored_against", "") not in ("", "masks", "boxes"):
        _fail("expected `masks`, `boxes` or nothing", file, "scored_against")
    if not set(words["measures"]) <= set(MEASURES[words["keep"]]):
        _fail(f"expected some of {', '.join(MEASURES[words['keep']])}", file, "measures")
    columns = {name: Column(dtype, (), "images") for name, dtype in _IMAGES.items()}
    columns |= {f"sums.{name}": Column("<f8", (), "images") for name in SUMMED}
    columns |= {f"sums.{name}": Column("<i4", (), "images") for name in COUNTED}
    types = words["types"]
    if not types:
        return columns
    if types.keys() != _TYPES.keys() or not all(types[name] in known for name, known in _TYPES.items()):
        _fail(f"expected the types of {', '.join(_TYPES)}", file, "types")
    for name, (dtype, row, counted) in _BOXES.items():
        columns[f"boxes.{name}"] = Column(dtype or types[name], row, counted)
    return columns


def stored_of(result: CompactEvaluation, position: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return words and columns as they are written; `position` orders the results of a folder."""
    images = result.dataset
    arrays: dict[str, Any] = {"images.id": images.image_ids, "images.width": images.widths}
    arrays["images.height"] = images.heights
    arrays |= {f"sums.{name}": result.sums[name] for name in (*SUMMED, *COUNTED)}
    types: dict[str, str] = {}
    if result.boxes is not None:
        arrays |= {f"boxes.{name}": getattr(result.boxes, name) for name in _BOXES}
        types = {name: arrays[f"boxes.{name}"].dtype.newbyteorder("<").str for name in _TYPES}
    words: dict[str, Any] = {
        "format": FORMAT,
        "version": result.version,
        "convention": result.convention.to_dict(),
        "classes": list(result.classes),
        "measures": list(result.measures),
        "inputs": list(result.inputs),
        "notes": list(result.plain_notes),
        "dataset": {"category_ids": images.category_ids.tolist(), "rules": images.rules, "source": images.source},
        "keep": result.keep,
        "part": {} if result.part is None else result.part.to_dict(),
        "warnings": [text for odd in result.warnings for text in (odd.kind, odd.text, odd.remedy)],
        "totals": _totals_to_words(result.totals),
        "types": types,
        "left_out": 0 if result.boxes is None else result.boxes.left_out,
        "position": position,
        "scored_against": result.scored_against or "",
        "digest": "",
    }
    schema = schema_of(words, "")
    stored = to_stored(arrays, schema)
    words["digest"] = digest(canonical(words), stored, schema)
    return words, stored


def compact_of(words: dict[str, Any], arrays: Arrays, file: str) -> CompactEvaluation:
    """Return the compact evaluation of words and columns that belong together; raise unless it is a possible one."""
    dataset = dataset_of(words, arrays, file)
    sums = {name: arrays[f"sums.{name}"] for name in (*SUMMED, *COUNTED)}
    for name, values in sums.items():
        if not (np.isfinite(values) & (values >= 0)).all():
            _fail("expected finite numbers, at least 0", file, f"sums.{name}")
    boxes = None
    if words["types"]:
        columns = {name: arrays[f"boxes.{name}"] for name in _BOXES}
        boxes = BoxColumns(left_out=words["left_out"], **columns)
        _check_boxes(boxes, len(dataset.classes), file)
    elif set(words["measures"]) != {"pdq"}:
        _fail("expected the types of columns", file, "types")
    totals = _totals_from_words(words["totals"], len(dataset.classes), file)
    for name in COUNTED:
        if totals.overall.counted()[name] != int(sums[name].sum(dtype=np.int64)):
            _fail(f"expected as many {name} as in all images", file, "totals")
    return CompactEvaluation(
        convention=convention_of(words, file),
        dataset=dataset,
        keep=words["keep"],
        measures=tuple(words["measures"]),
        sums=sums,
        totals=totals,
        boxes=boxes,
        inputs=tuple(words["inputs"]),
        plain_notes=tuple(words["notes"]),
        version=words["version"],
        part=part_of(words, file),
        warnings=_warnings(words["warnings"], file),
        scored_against=words.get("scored_against") or None,
    )


def _warnings(texts: list[str], file: str) -> tuple[Oddity, ...]:
    """Return warnings, of each of which kind, text and remedy are there."""
    if len(texts) % 3:
        _fail("expected three texts for each", file, "warnings")
    return tuple(Oddity(*entry) for entry in zip(texts[::3], texts[1::3], texts[2::3], strict=True))


def _check_boxes(boxes: BoxColumns, classes: int, file: str) -> None:
    """Raise unless columns could be those of boxes: everything that is pointed at is there."""

    def require(fine: Any, entry: str, problem: str) -> None:
        if not fine:
            _fail(problem, file, f"boxes.{entry}")

    for name, rows in (("counts", boxes.scores), ("object_counts", boxes.object_labels)):
        values = getattr(boxes, name)
        require(
            (values >= 0).all() and int(values.sum(dtype=np.int64)) == len(rows), name, "expected as many as there are"
        )
    for name in ("labels", "object_labels"):
        values = getattr(boxes, name)
        require(not len(values) or (values.min() >= 0 and values.max() < classes), name, "no such class")
    known = len(boxes.patterns)
    outcomes = boxes.outcomes
    require(not len(outcomes) or (outcomes.min() >= 0 and outcomes.max() < known), "outcomes", "no such outcome")
    require(np.isfinite(boxes.scores).all(), "scores", "expected finite numbers")
    right = boxes.patterns[:, : len(SIZES)] & ~boxes.patterns[:, len(SIZES) :]
    kept = ((right & 1) == 1).any(axis=1)
    require(int(kept[outcomes].sum()) == len(boxes.overlaps), "overlaps", "expected one of each that is right")
    for name in ("overlaps", "odd_overlaps"):
        values = getattr(boxes, name)
        require((np.isnan(values) | ((values >= 0) & (values <= 1 + 1e-3))).all(), name, "expected 0 to 1")
    rows = np.flatnonzero((right != 0).any(axis=1)[outcomes])
    labels, found, objects = boxes.labels[rows], right[outcomes[rows]], boxes.objects_per_class(classes)
    for level, size in np.ndindex(len(IOU_THRESHOLDS), len(SIZES)):
        counts = np.bincount(labels[(found[:, size] >> level) & 1 == 1], minlength=classes)
        require((counts <= objects[:, size]).all(), "outcomes", "expected no more right detections than objects")
    odd = boxes.odd_rows
    inside = not len(odd) or (odd.min() >= 0 and odd.max() < len(outcomes) and (np.diff(odd) >= 0).all())
    require(inside and (boxes.odd_sizes < len(SIZES)).all(), "odd_rows", "no such detection")


def _totals_to_words(totals: Totals) -> dict[str, Any]:
    def total(one: Total) -> list[Any]:
        return [[to_text(number) for number in one.sums], list(one.counts)]

    curve = totals.curve
    return {
        "overall": total(totals.overall),
        "classes": [total(one) for one in totals.classes],
        "sizes": [total(one) for one in totals.sizes],
        "curve": {
            "pPDQ": [to_text(number) for number in curve.pPDQ],
            "cost": [to_text(number) for number in curve.cost],
            "TP": list(curve.tp),
            "FP": list(curve.fp),
            "objects": curve.objects,
        },
    }


def _totals_from_words(words: dict[str, Any], classes: int, file: str) -> Totals:
    def sums(texts: Any, count: int) -> tuple[int, ...]:
        numbers = tuple(from_text(text) for text in texts)
        if len(numbers) != count:
            raise ValueError
        return numbers

    def counts(numbers: Any, count: int) -> tuple[int, ...]:
        if len(numbers) != count or not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError
        return tuple(numbers)

    def total(one: Any) -> Total:
        texts, numbers = one
        return Total(sums(texts, len(SUMMED)), counts(numbers, len(COUNTED)))

    try:
        groups = [tuple(total(one) for one in words[name]) for name in ("classes", "sizes")]
        if [len(group) for group in groups] != [classes, len(SIZES) - 1]:
            raise ValueError
        curve, levels = words["curve"], len(LEVELS)
        return Totals(
            total(words["overall"]),
            groups[0],
            groups[1],
            Curve(
                sums(curve["pPDQ"], levels),
                sums(curve["cost"], levels),
                counts(curve["TP"], levels),
                counts(curve["FP"], levels),
                counts([curve["objects"]], 1)[0],
            ),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        _fail("expected sums and counts of everything, of classes, of sizes and of thresholds", file, "totals")


def _fail(problem: str, file: str, entry: str) -> NoReturn:
    raise InputError(problem, file=file, entry=entry, remedy="evaluate anew")
