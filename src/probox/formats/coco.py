"""COCO: ground truth in one JSON object, and results in a JSON list of detections."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.output import check_replaceable, json_bytes, write_files
from probox.files.reading import TRUTH_EXPANDS, Paths, Source
from probox.formats.coco_segmentation import fitting_run_lengths, mask_limits, rasterise
from probox.formats.format import (
    JSON_DETECTIONS,
    DetectionFormat,
    Draft,
    TruthFormat,
    copier,
    covariances_to_write,
    read_threads,
    require_sections,
    rows_to_write,
)
from probox.formats.label_tables import number_of, rows_beside_ids, rows_of_images
from probox.formats.problems import MAX_EXAMPLES, Problems, RawProblems
from probox.formats.rvc1_heatmaps import HeatmapFiles, refuse_copy, with_heatmaps
from probox.notes import InputWarning, Note
from probox.support.formatting import some_names
from probox.support.types import Floats
from probox.tables.dataset import MAX_PIXELS, Dataset
from probox.tables.detections import Detections
from probox.tables.geometry import extents_of, pixels_of_boxes
from probox.tables.groundtruth import GroundTruth
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import (
    align_labels,
    column_of_each,
    limit_to_distribution,
    probabilities_of,
    rows_above_one,
    unknown_classes,
)
from probox.tables.masks import Masks
from probox.tables.table import dataset_of

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def coco_truth_from_bytes(data: bytes, file: str, problems: Problems) -> GroundTruth:
    """Return the table of a COCO ground-truth file; in lenient mode rows with problems are dropped."""
    columns, found = _core.read_coco_truth(
        data,
        lenient=problems.lenient,
        max_examples=MAX_EXAMPLES,
        max_pixels=MAX_PIXELS,
        **mask_limits(data),
    )
    if problems.add_raw(found, file):
        require_sections(columns, _KEYS, file, problems, _REMEDY, _OTHERS)
    return _table(columns, file, problems, len(data), [])


_KEYS = ("images", "categories", "annotations")
_REMEDY = "give COCO ground truth (instances_*.json)"
_OTHERS = dict.fromkeys(
    ("classes", "detections"), "this looks like detections: name the ground truth first, then the detections"
)


def _table(columns: _core._CocoTruth, file: str, problems: Problems, file_bytes: int, notes: list[Note]) -> GroundTruth:
    image_order, image_ids = _distinct(columns["image_ids"], "images", file, problems)
    category_order, category_ids = _distinct(columns["category_ids"], "categories", file, problems)
    image_rows, image_known = _rows_of("image", columns["images"], image_ids, columns, file, problems)
    class_columns, class_known = _rows_of("category", columns["categories"], category_ids, columns, file, problems)
    object_ids = _object_ids(columns, file, problems)
    usable = image_known & class_known
    shapes = np.ones((len(usable), 2), np.int32)
    image_shapes = np.stack([columns["heights"], columns["widths"]], axis=1)[image_order]
    shapes[usable] = image_shapes[image_rows[usable]]
    segmentations = columns["segmentations"]

    def place(at: int, field: str) -> dict[str, Any]:
        return _place(columns, at, field, file)

    usable &= fitting_run_lengths(segmentations, shapes, usable, place, problems)

    order = np.flatnonzero(usable)
    order = order[np.argsort(image_rows[order], kind="stable")]
    box_pixels = pixels_of_boxes(np.nan_to_num(_corners(columns["boxes"]), nan=0.0), shapes[:, ::-1])
    masks = rasterise(segmentations, order, shapes, box_pixels, place, file_bytes)
    nothing = (masks.pixels == 0) & np.isnan(columns["boxes"][order, 0])
    if nothing.any():
        notes.append(Note("annotations-without-place", nothing.sum()))
        kept = np.flatnonzero(~nothing)
        order, masks = order[kept], masks.take(kept)
    without = int((segmentations["kinds"][order] == _core.NO_MASK).sum())
    if without:
        notes.append(Note("annotations-without-mask", without))
    corners, extents = _boxes(columns["boxes"][order], masks, notes)
    areas = columns["areas"][order]
    usual_areas = np.where(masks.pixels > 0, masks.pixels, extents[:, 0] * extents[:, 1])
    return GroundTruth(
        dataset=Dataset(
            classes=tuple(columns["category_names"][int(at)] for at in category_order),
            image_ids=image_ids,
            widths=image_shapes[:, 1],
            heights=image_shapes[:, 0],
            file_names=tuple(columns["file_names"][int(at)] for at in image_order),
            category_ids=category_ids,
            source=file,
            **_lvis_columns(columns, image_order, category_order, notes),
        ),
        image_rows=image_rows[order],
        labels=class_columns[order].astype(np.int32),
        boxes=corners,
        masks=masks,
        extents=extents,
        areas=np.where(np.isnan(areas), usual_areas, areas),
        crowd=columns["crowd"][order].astype(bool),
        ids=object_ids[order],
        notes=tuple(notes),
    )


_LISTS = ("negative", "not_exhaustive")


def _lvis_columns(
    columns: _core._CocoTruth, image_order: Ids, category_order: Ids, notes: list[Note]
) -> dict[str, Any]:
    """Return the columns of a dataset of LVIS, with a note; none if no image lists a category."""
    given: dict[str, Any] = {**columns}
    if not any(len(given[f"{name}_images"]) for name in _LISTS):
        return {}
    notes.append(Note("lvis-rules", len(image_order)))
    label_of = dict(zip(columns["category_ids"][category_order].tolist(), range(len(category_order)), strict=True))
    found: dict[str, Any] = {"rules": "lvis"}
    for name, key in zip(_LISTS, ("negatives", "not_exhaustive"), strict=True):
        lists: list[list[int]] = [[] for _ in range(len(columns["image_ids"]))]
        for image, category in zip(given[f"{name}_images"].tolist(), given[f"{name}_categories"].tolist(), strict=True):
            if category in label_of:  # others have no objects and no detections
                lists[image].append(label_of[category])
        found[key] = [lists[image] for image in image_order.tolist()]
    frequencies = [
        chr(word) if word else _frequency(images)
        for word, images in zip(columns["frequencies"].tolist(), columns["image_counts"].tolist(), strict=True)
    ]
    if all(frequencies):
        found["frequencies"] = [frequencies[category] for category in category_order.tolist()]
    return found


def _frequency(images: int) -> str:
    """Return the group of a class with objects in so many training images; nothing if the number is unknown.

    >>> [_frequency(images) for images in (1, 10, 11, 100, 101, -1)]
    ['r', 'r', 'c', 'c', 'f', '']
    """
    return "" if images < 0 else "r" if images <= 10 else "c" if images <= 100 else "f"


def _distinct(ids: Ids, section: str, file: str, problems: Problems) -> tuple[Ids, Ids]:
    """Return the order that sorts ids, and the sorted ids without duplicates, which are reported."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    second = np.concatenate([[False], ordered[1:] == ordered[:-1]]) if len(ids) else np.zeros(0, bool)

    def describe(at: int) -> InputError:
        first = int(order[np.searchsorted(ordered, ordered[at])])
        return InputError(
            f"id {ordered[at]} is already used by {section}[{first}]",
            file=file,
            entry=f"{section}[{order[at]}]",
            remedy="give every entry a unique id",
        )

    problems.add("duplicate id", np.flatnonzero(second).tolist(), describe)
    return order[~second], ordered[~second]


def _rows_of(
    noun: str, wanted: Ids, known: Ids, columns: _core._CocoTruth, file: str, problems: Problems
) -> tuple[Ids, Flags]:
    """Return the row of each annotation's image or category, and whether it exists."""
    rows = _core.rows_of_ids(wanted, known)
    present = rows >= 0
    plural = "images" if noun == "image" else "categories"
    image = {"image": None} if noun == "image" else {}
    problems.add(f"unknown {noun}", np.flatnonzero(~present).tolist(), lambda at: InputError(
        f"expected the id of one of the {len(known)} {plural}, but got {wanted[at]}",
        **_place(columns, at, f".{noun}_id", file) | image, remedy=f"add the {noun}, or leave the annotation out",
    ))  # fmt: skip
    return rows, present


def _place(columns: _core._CocoTruth, at: int, field: str, file: str) -> dict[str, Any]:
    """Return file, image and entry of an annotation's field, for messages."""
    entry = f"annotations[{columns['entries'][at]}]{field}"
    return {"file": file, "image": int(columns["images"][at]), "entry": entry}


def _object_ids(columns: _core._CocoTruth, file: str, problems: Problems) -> Ids:
    has_id = columns["has_id"].astype(bool)
    entries: Ids = columns["entries"]
    if not has_id.any():
        return entries
    problems.add("missing key", np.flatnonzero(~has_id).tolist(), lambda at: InputError(
        'expected a key "id" as other annotations have',
        **_place(columns, at, "", file), remedy="give every annotation an id",
    ))  # fmt: skip
    ids: Ids = columns["ids"]
    _distinct(ids[has_id], "annotations", file, problems)
    return ids


def _corners(boxes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Convert boxes x, y, w, h to x1, y1, x2, y2."""
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def _boxes(
    boxes: npt.NDArray[np.float64], masks: Masks, notes: list[Note]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return corners and sizes of boxes x, y, w, h; annotations without a box get that of their mask."""
    corners = _corners(boxes)
    sizes = boxes[:, 2:].copy()
    without = np.isnan(boxes[:, 0])
    if without.any():
        corners[without] = masks.boxes[without].astype(np.float64) + np.array([0.0, 0.0, 1.0, 1.0])
        sizes[without] = corners[without, 2:] - corners[without, :2]
        notes.append(Note("annotations-without-box", without.sum()))
    return corners, sizes


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    if source.first_character == "[":
        raise InputError(
            "expected COCO ground truth, but got a list",
            file=source.name,
            remedy="this looks like COCO results: name the ground truth first, then the detections",
        )
    return coco_truth_from_bytes(source.content(TRUTH_EXPANDS), source.name, problems)


COCO_TRUTH = TruthFormat(
    name="coco",
    title="COCO ground truth",
    sniff=lambda source: source.first_character in ("{", "["),  # a list: the reader reports the error
    read=_read_truth,
)


AGREE, MIN_ROWS, HALF = 0.8, 5, 0.5
"""Minimum fraction of rows whose probabilities agree with the stated class and score, minimum number of rows, and a
factor. Only rows with at least half of the highest score count. A class agrees if its probability is at least half of
its score."""


def other_order(
    label_probs: LabelProbs,
    labels: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64],
    key: str,
) -> InputWarning | None:
    """Return a warning if the probabilities of too many rows disagree with the stated class and score.

    A row agrees if its stated class has the largest probability, or about its score: class-wise suppression also keeps
    a box for the second best class, and scores may be calibrated. The columns follow the classes that the detector was
    trained on, which the file does not name.

    >>> probs = LabelProbs([[0.1, 0.2, 0.7]] * 9)
    >>> other_order(probs, np.zeros(9, np.int32), np.full(9, 0.7), np.arange(9), "all_scores").count
    0
    """
    least = HALF * scores[rows].max(initial=0.0)
    rows = rows[scores[rows] >= least]
    given, stated = label_probs[rows], labels[rows]
    near = probabilities_of(given, stated) >= HALF * scores[rows]
    agree = int(((given.argmax(axis=1) == stated) | near).sum())
    if len(rows) < MIN_ROWS or agree >= AGREE * len(rows):
        return None
    return InputWarning("probabilities-of-other-classes", agree, key=key, total=len(rows), least=float(least))


def check_coco_results(data: bytes, file: str) -> None:
    """Raise if the content is not a list of results without heatmaps; images and categories may be unknown."""
    columns, found = _core.read_coco_results(
        data, image_ids=None, category_ids=None, lenient=False, max_examples=1, **mask_limits(data), **read_threads()
    )
    Problems().add_raw(found, file)
    refuse_copy(columns["mask_file_names"], file)


def coco_results_from_bytes(data: bytes, file: str, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of a results file."""
    read = partial(
        _core.read_coco_results,
        image_ids=dataset.image_ids,
        category_ids=dataset.category_ids,
        lenient=problems.lenient,
        max_examples=MAX_EXAMPLES,
        **mask_limits(data),
        **read_threads(),
    )
    file_bytes = len(data)
    columns, found = read(data)
    problems.add_raw(found, file, {"unknown category": _category_remedy(found, dataset)})
    images, unknown, notes = _images_by_name(columns, dataset, file, problems)
    if images:
        columns, _ = read(data, names=list(images), name_image_ids=np.array(list(images.values()), np.int64))
    label_probs, said = _label_probs(columns, len(dataset.classes), file, problems)
    notes += said
    if columns["unknown_image_rows"]:
        others = np.unique(columns["unknown_images"])
        notes.append(Note("unknown-images", columns["unknown_image_rows"], images=len(others) + unknown))
        problems.warn("unknown image", others.tolist(), lambda image: InputError(
            "image missing from the ground truth: its detections are excluded", file=file, image=image
        ))  # fmt: skip
    entries = columns["entries"]
    draft = Draft(
        classes=dataset.classes,
        image_ids=columns["image_ids"],
        boxes=columns["boxes"],
        label_probs=label_probs,
        covariances=columns["covariances"],
        labels=columns["labels"],
        scores=columns["scores"],
        extents=columns["extents"],
        source=file,
        place=lambda row: (file, f"[{entries[row]}]"),
        notes=tuple(notes),
    )
    return _with_pixels(draft, columns, dataset, file_bytes, problems)


def _with_pixels(
    draft: Draft, columns: _core._CocoResults, dataset: Dataset, file_bytes: int, problems: Problems
) -> Draft:
    """Add masks and heatmaps, and the boxes of detections that have only one of these."""
    of_masks, of_heatmaps = columns["mask_rows"], columns["heatmap_rows"]
    if not len(of_masks) and not len(of_heatmaps):
        return draft
    boxless = columns["boxless_rows"]
    shapes = np.ascontiguousarray(dataset.shapes[dataset.rows_of(draft.image_ids), ::-1])
    usable = np.ones(len(draft), bool)
    last_pixel = dataset.rules == "challenge"
    if len(of_masks):
        draft, usable[of_masks] = _with_masks(draft, columns, shapes, file_bytes, problems, last_pixel=last_pixel)
    if len(of_heatmaps):
        mask_files, mask_ids = np.full(len(draft), -1, np.int32), np.zeros(len(draft), np.int64)
        mask_files[of_heatmaps], mask_ids[of_heatmaps] = columns["mask_files"], columns["mask_ids"]
        files = HeatmapFiles(Path(draft.source).parent, columns["mask_file_names"])
        draft = with_heatmaps(draft, files, mask_files, mask_ids, shapes, problems, last_pixel=last_pixel)
    if len(boxless):
        assert draft.extents is not None
        extents = draft.extents.copy()
        extents[boxless] = extents_of(draft.boxes[boxless])
        draft = draft.replace(extents=extents)
    if draft.masks is not None:
        draft = draft.replace(areas=_areas(draft, boxless))
    return draft if usable.all() else draft.select(np.flatnonzero(usable))


def _with_masks(
    draft: Draft,
    columns: _core._CocoResults,
    shapes: npt.NDArray[np.int32],
    file_bytes: int,
    problems: Problems,
    *,
    last_pixel: bool,
) -> tuple[Draft, Flags]:
    """Return the draft with masks, and which masks have the size of their image.

    Detections without a box get that of their mask. It ends at the far edge of the last pixel, or with `last_pixel` at
    the pixel itself.
    """
    rows, given, shapes = columns["mask_rows"], columns["segmentations"], shapes[columns["mask_rows"]]

    def place(at: int, field: str) -> dict[str, Any]:
        file, entry = draft.place(int(rows[at]))
        return {"file": file, "image": int(draft.image_ids[rows[at]]), "entry": entry + field}

    fits = fitting_run_lengths(given, shapes, np.ones(len(rows), bool), place, problems)
    order = np.flatnonzero(fits)
    some = rasterise(given, order, shapes, np.zeros((len(rows), 4), np.int32), place, file_bytes)
    chosen = np.full(len(draft), len(some))
    chosen[rows[order]] = np.arange(len(some))
    has_mask = chosen < len(some)
    masks = some if has_mask.all() else Masks.concatenate([some, Masks.empty(1)]).take(chosen)
    boxes: Floats = draft.boxes.copy()
    boxless = columns["boxless_rows"]
    tight = masks.boxes[boxless] + ([0.0, 0.0, 0.0, 0.0] if last_pixel else [0.0, 0.0, 1.0, 1.0])
    boxes[boxless] = np.where(has_mask[boxless, None], np.maximum(tight, 0.0), boxes[boxless])
    return draft.replace(masks=masks, has_mask=has_mask, boxes=boxes), fits


def _areas(draft: Draft, boxless: Ids) -> Floats:
    """Return areas as pycocotools does: of boxes if the first detection has one, else of masks."""
    assert draft.extents is not None
    of_boxes: Floats = draft.extents.prod(axis=1)
    if draft.masks is None or draft.has_mask is None or not len(boxless) or boxless[0] != 0:
        return of_boxes
    return np.where(draft.has_mask, draft.masks.pixels, of_boxes)


def _images_by_name(
    columns: _core._CocoResults, dataset: Dataset, file: str, problems: Problems
) -> tuple[dict[str, int], int, list[Note]]:
    """Return image ids for names that replace ``image_id``, the number of images with unknown names, and notes.

    ultralytics writes the stem of the file name as ``image_id``, as a number if it is numeric, and adds ``file_name``.
    Ambiguous names are ignored: those with several ids, and several names of one image.
    """
    entries, ids_of = dict[str, int](), dict[str, set[int | None]]()
    for name, entry, number, has_id in zip(
        columns["names"],
        columns["name_entries"].tolist(),
        columns["name_ids"].tolist(),
        columns["name_has_id"].tolist(),
        strict=True,
    ):
        entries.setdefault(name, entry)
        ids_of.setdefault(name, set()).add(number if has_id else None)

    def place(name: str) -> str:
        return f"[{entries[name]}].image_id"

    alone = [name for name, ids in ids_of.items() if None in ids]
    rows, _ = rows_of_images(alone, [0] * len(alone), dataset, file, problems, place=place)
    images = {name: int(dataset.image_ids[row]) for name, row in zip(alone, rows.tolist(), strict=True) if row >= 0}
    numbered = {
        name: number
        for name, (number, *more) in ids_of.items()
        if number is not None and not more and number_of(name) == str(number)  # other numbers are ids
    }
    rows = rows_beside_ids(list(numbered), np.array([*numbered.values()], np.int64), dataset, file, problems, place)
    others = {
        name: int(dataset.image_ids[row])
        for (name, number), row in zip(numbered.items(), rows.tolist(), strict=True)
        if row >= 0 and dataset.image_ids[row] != number
    }
    notes: list[Note] = []
    if others:
        name = next(iter(others))
        notes.append(Note("matched-by-name", len(others), name=name[:80], number=numbered[name], other=others[name]))
    return images | others, len(alone) - len(images), notes


def _category_remedy(found: RawProblems, dataset: Dataset) -> str | None:
    """Return the fix for category ids that look like class indices, from 0 or 1."""
    unknown = [
        int(values[0]) for kind, _, _, examples in found if kind == "unknown_category" for *_, values in examples
    ]
    many = len(dataset.category_ids)
    if not unknown or not many or not all(0 <= number <= many for number in unknown):
        return None
    first, last = int(dataset.category_ids[0]), int(dataset.category_ids[-1])
    gaps = " with gaps" if last - first >= many else ""
    return (
        f"class numbers (0 to {many - 1}, or 1 to {many}) are not category ids, which are {first} to {last}{gaps} in "
        "this ground truth: write the category id of each class, in ascending order"
    )


def _label_probs(
    columns: _core._CocoResults, classes: int, file: str, problems: Problems
) -> tuple[LabelProbs, list[Note]]:
    """Return label probabilities, with those of ``cls_prob`` limited to a sum of 1, and notes."""
    labels, scores, rows = columns["labels"], columns["scores"], columns["all_scores_rows"]
    given, notes = columns["all_scores"].reshape(len(rows), classes), list[Note]()
    label_probs = LabelProbs.from_scores(scores, labels, classes, rows, given)
    key = "cls_prob" if len(columns["cls_prob_rows"]) else "all_scores"
    order = other_order(label_probs, labels, scores, rows, key)
    if order is not None:
        notes.append(order)
        problems.warn_note(order, file)
    above = np.flatnonzero(np.isin(rows, columns["cls_prob_rows"]))
    above = np.intersect1d(above, rows_above_one(given)) if len(above) else above
    if len(above):  # detectors with a sigmoid per class, such as RetinaNet, exceed 1
        given = given.copy()
        given[above] = limit_to_distribution(given[above])
        label_probs = LabelProbs.from_scores(scores, labels, classes, rows, given)
        notes.append(Note("scaled-probabilities", len(above)))
    return label_probs, notes


def write_coco_results(path: Paths, found: Detections, truth: GroundTruth | Dataset) -> tuple[Note, ...]:
    """Write COCO results to a ``.json`` or ``.json.gz`` file.

    ``all_scores`` is written if the label probabilities contain more than the score, ``covars`` if corners have a
    covariance, ``segmentation`` (compressed run lengths) for masks. Reading the file restores boxes, scores, label
    probabilities (of the ground truth's classes), covariances and masks bit-identically.

    Parameters
    ----------
    path : path
        Output file; a missing folder is created. An existing file is replaced only if it holds detections.
    found : Detections
        Detections to write. Heatmaps are refused; `Detections.with_binary_masks` makes masks of them.
    truth : GroundTruth or Dataset
        Source of the category ids.

    Returns
    -------
    tuple of Note
        Data that the format cannot store.

    Examples
    --------
    >>> from probox.formats import write_coco_results
    >>> write_coco_results("detections.json", found, truth)  # doctest: +SKIP
    """
    check_replaceable(path, JSON_DETECTIONS)
    dataset = dataset_of(truth, "the order is write_coco_results(path, found, truth)")
    text, notes = coco_results_text(found, dataset, str(path))
    target = Path(path)
    write_files({target: json_bytes(target, text)})
    return notes


def coco_results_text(found: Detections, dataset: Dataset, file: str) -> tuple[bytes, tuple[Note, ...]]:
    """Return COCO results as JSON, and notes on what the format cannot store; `file` is named in errors."""
    if found.has_heatmap.any():
        raise InputError(
            "probox writes no heatmaps to COCO results",
            file=file,
            remedy="write RVC1 ({option:to=rvc1}), or masks (found.with_binary_masks())",
        )
    notes: list[Note] = []
    probs = align_labels(found.label_probs, found.classes, dataset.classes)
    labels, scores = _class_and_score(found, probs, dataset, notes)
    covariances, has_covariances = covariances_to_write(found)
    sizes = _sizes_that_add_up(found.boxes, found.extents)
    shapes = np.zeros((0, 2), np.int32)
    if found.masks is not None:
        shapes = dataset.shapes[rows_to_write(found, dataset, file)]
        found.check_masks(shapes)
    text = _core.format_coco_results(
        image_ids=found.image_ids,
        labels=labels,
        category_ids=dataset.category_ids,
        boxes=np.concatenate([found.boxes[:, :2], sizes], axis=1),
        scores=scores,
        label_probs=probs.table,
        covariances=covariances,
        has_covariances=has_covariances,
        has_mask=np.zeros(0, np.uint8) if found.has_mask is None else found.has_mask,
        widths=shapes[:, 0],
        heights=shapes[:, 1],
        **(Masks.empty(0) if found.masks is None else found.masks).kernel_columns(),
    )
    return text, tuple(notes)


def _class_and_score(
    found: Detections, probs: LabelProbs, dataset: Dataset, notes: list[Note]
) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return each detection's class and score; a class that the file cannot name becomes the most probable one."""
    if len(found) and not len(dataset.classes):
        raise InputError("the ground truth has no classes", file=dataset.source or None)
    labels, scores = found.named_classes(dataset.classes)
    own = column_of_each(dataset.classes, found.classes)
    other = own[labels] != found.labels if len(labels) else np.zeros(0, bool)
    if other.any():
        notes.append(Note("stated-class-replaced", other.sum()))
    unknown = [found.classes[column] for column in unknown_classes(found.classes, dataset.classes)]
    if unknown:
        notes.append(Note("lost-classes", len(unknown), total=len(found.classes), names=some_names(unknown)))
    nameless = labels < 0
    if nameless.any():
        labels = np.where(nameless, probs.argmax(axis=1), labels)
    return labels.astype(np.int32), scores


def _sizes_that_add_up(boxes: Floats, sizes: Floats) -> Floats:
    """Return widths and heights w with exactly x1 + w = x2, unchanged where that holds already."""
    start, end = boxes[:, :2], boxes[:, 2:]
    plain = end - start
    best = sizes
    for candidate in (plain, np.nextafter(plain, np.inf), np.nextafter(plain, -np.inf)):
        best = np.where((start + best != end) & (start + candidate == end), candidate, best)
    return np.where(start + best == end, best, plain)


def _read_results(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    return coco_results_from_bytes(source.content(), source.name, dataset, problems)


COCO_RESULTS = DetectionFormat(
    name="coco",
    title="COCO results",
    suffixes=(".coco.json", ".bbox.json"),
    gzip=True,
    sniff=lambda source: source.first_character == "[",
    read=_read_results,
    write=write_coco_results,
    check=lambda source: check_coco_results(source.content(), source.name),
    copy=copier(check_coco_results),
    kind=JSON_DETECTIONS,
    masks=True,
)
