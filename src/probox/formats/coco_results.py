"""COCO results: a JSON list of detections with ``image_id``, ``category_id``, ``bbox`` and ``score``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.output import check_replaceable, json_bytes, write_files
from probox.files.reading import Paths, Source
from probox.formats.format import (
    JSON_DETECTIONS,
    DetectionFormat,
    Draft,
    copier,
    covariances_to_write,
    read_threads,
)
from probox.formats.label_tables import number_of, rows_beside_ids, rows_of_images
from probox.formats.problems import MAX_EXAMPLES, Problems, RawProblems
from probox.notes import InputWarning, Note
from probox.support.formatting import some_names
from probox.support.types import Floats
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import (
    align_labels,
    best_classes,
    column_of_each,
    limit_to_distribution,
    probabilities_of,
    require_label_matrix,
    rows_above_one,
    unknown_classes,
)
from probox.tables.table import dataset_of

AGREE, MIN_ROWS, HALF = 0.8, 5, 0.5
"""Probabilities must go with the stated class and score in this share of the rows with at least half of the highest
score, if there are so many. A class has at least half of its score as its probability."""


def limit_sums(
    label_probs: npt.NDArray[np.float32], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float32], int]:
    """Return label probabilities that add up to at most 1 in these rows, and how many had to change.

    Detectors with a sigmoid per class (RetinaNet) write what adds up to more. Values that are no probabilities are
    left for those who say so.

    >>> limit_sums(np.array([[0.9, 0.3], [0.5, 0.5]], np.float32), np.array([0, 1]))[1]
    1
    """
    if not len(rows):
        return label_probs, 0
    above = np.intersect1d(rows, rows_above_one(label_probs))
    if not len(above):
        return label_probs, 0
    result: npt.NDArray[np.float32] = label_probs.copy()
    result[above] = limit_to_distribution(label_probs[above])
    return result, len(above)


def other_order(
    label_probs: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64],
    key: str,
) -> InputWarning | None:
    """Return a warning if probabilities of too many of these rows do not go with the class and score stated.

    They do where the stated class has the largest probability, or about its score (of a box that is suppressed class
    by class, the second best class stays too; a score may be calibrated). Columns count in the classes that the
    detector was trained on, which nothing in the file names.

    >>> probs = np.tile(np.array([[0.1, 0.2, 0.7]], np.float32), (9, 1))
    >>> other_order(probs, np.zeros(9, np.int32), np.full(9, 0.7), np.arange(9), "all_scores").count
    0
    """
    least = HALF * scores[rows].max(initial=0.0)
    rows = rows[scores[rows] >= least]
    given, stated = label_probs[rows], labels[rows]
    near = probabilities_of(given, stated) >= HALF * scores[rows]
    agree = int(((best_classes(given) == stated) | near).sum())
    if len(rows) < MIN_ROWS or agree >= AGREE * len(rows):
        return None
    return InputWarning("probabilities-of-other-classes", agree, key=key, total=len(rows), least=float(least))


def check_coco_results(data: bytes, file: str) -> None:
    """Raise if the content is no list of results; images and categories may be any."""
    _columns, found = _core.read_coco_results(
        data, image_ids=None, category_ids=None, lenient=False, max_examples=1, **read_threads()
    )
    Problems().add_raw(found, file)


def coco_results_from_bytes(data: bytes, file: str, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of a results file's content."""
    read = partial(
        _core.read_coco_results,
        image_ids=dataset.image_ids,
        category_ids=dataset.category_ids,
        lenient=problems.lenient,
        max_examples=MAX_EXAMPLES,
        **read_threads(),
    )
    columns, found = read(data)
    problems.add_raw(found, file, {"unknown category": _category_remedy(found, dataset)})
    images, unknown, notes = _images_by_name(columns, dataset, file, problems)
    if images:
        columns, _ = read(data, names=list(images), name_image_ids=np.array(list(images.values()), np.int64))
    del data  # nobody else may hold it: its memory is free for the label probabilities
    require_label_matrix(len(columns["image_ids"]), len(dataset.classes), file)
    label_probs = _label_probs(columns, len(dataset.classes))
    label_probs, said = _with_cls_prob(label_probs, columns, file, problems)
    notes += said
    if columns["masked_rows"]:
        notes.append(InputWarning("masks-not-read", columns["masked_rows"]))
        problems.warn_note(notes[-1], file)
    if columns["unknown_image_rows"]:
        others = np.unique(columns["unknown_images"])
        notes.append(Note("unknown-images", columns["unknown_image_rows"], images=len(others) + unknown))
        problems.warn("unknown image", others.tolist(), lambda image: InputError(
            "the ground truth does not have this image: its detections are left out", file=file, image=image
        ))  # fmt: skip
    entries = columns["entries"]
    return Draft(
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


def _images_by_name(
    columns: _core._CocoResults, dataset: Dataset, file: str, problems: Problems
) -> tuple[dict[str, int], int, list[Note]]:
    """Return image ids of names that go before ``image_id``, how many images of names alone are unknown, and notes.

    ultralytics writes the stem of the file name as ``image_id``, as a number if it is one, and ``file_name`` beside it.
    A name that several numbers or names share tells nothing.
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
        if number is not None and not more and number_of(name) == str(number)  # other numbers are ids of their own
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
    """Return what to do about category ids that seem to count the classes, from 0 or 1."""
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


def _label_probs(columns: _core._CocoResults, classes: int) -> npt.NDArray[np.float32]:
    given = columns["all_scores_rows"]
    if len(given) and len(given) == len(columns["scores"]):  # as large as the file: not copied
        return columns["all_scores"].reshape(len(given), classes)
    return _core.label_matrix(
        scores=columns["scores"],
        labels=columns["labels"],
        columns=classes,
        given_rows=given,
        given=columns["all_scores"],
        threads=read_threads()["threads"],
    )


def _with_cls_prob(
    label_probs: npt.NDArray[np.float32], columns: _core._CocoResults, file: str, problems: Problems
) -> tuple[npt.NDArray[np.float32], list[Note]]:
    """Return label probabilities where those of ``cls_prob`` add up to at most 1, and notes on given ones."""
    rows, notes = columns["cls_prob_rows"], list[Note]()
    key = "cls_prob" if len(rows) else "all_scores"
    order = other_order(label_probs, columns["labels"], columns["scores"], columns["all_scores_rows"], key)
    if order is not None:
        notes.append(order)
        problems.warn_note(order, file)
    label_probs, changed = limit_sums(label_probs, rows)
    if changed:
        notes.append(Note("scaled-probabilities", changed))
    return label_probs, notes


def write_coco_results(path: Paths, found: Detections, truth: GroundTruth | Dataset) -> tuple[Note, ...]:
    """Write COCO results to a ``.json`` or ``.json.gz`` file.

    ``all_scores`` is written where the label probabilities say more than the score, ``covars`` where corners
    have a covariance. Boxes, scores, label probabilities (of the truth's classes) and covariances come back
    exactly when the file is read.

    Parameters
    ----------
    path : path
        The file; its folder is made if it is missing. A file that is there is replaced if it holds detections.
    found : Detections
        What to write. Heatmaps cannot be held by this format.
    truth : GroundTruth or Dataset
        Gives the category ids.

    Returns
    -------
    tuple of str
        What the file cannot hold, one sentence each.

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
    """Return COCO results as JSON, and what they cannot hold; `file` is named in errors."""
    if found.has_heatmap.any():
        raise InputError("COCO results cannot hold heatmaps", file=file, remedy="write RVC1 instead ({option:to=rvc1})")
    notes: list[Note] = []
    probs = align_labels(found.label_probs, found.classes, dataset.classes)
    labels, scores = _class_and_score(found, probs, dataset, notes)
    covariances, has_covariances = covariances_to_write(found)
    sizes = _sizes_that_add_up(found.boxes, found.extents)
    text = _core.format_coco_results(
        image_ids=found.image_ids,
        labels=labels,
        category_ids=dataset.category_ids,
        boxes=np.concatenate([found.boxes[:, :2], sizes], axis=1),
        scores=scores,
        label_probs=probs,
        covariances=covariances,
        has_covariances=has_covariances,
    )
    return text, tuple(notes)


def _class_and_score(
    found: Detections, probs: npt.NDArray[np.float32], dataset: Dataset, notes: list[Note]
) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return class and score as stated in the file; a class that it cannot name gives way to the most probable one."""
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
    """Return widths and heights w with x1 + w = x2 to the last bit, the stated ones where they do."""
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
)
