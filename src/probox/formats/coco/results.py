"""COCO results: a JSON list of detections with ``image_id``, ``category_id``, ``bbox`` and ``score``."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.formats.coco.cls_prob import limited, other_order
from probox.formats.draft import Draft
from probox.formats.image_names import number_of, rows_beside_ids, rows_of_images
from probox.formats.problems import MAX_EXAMPLES, Problems
from probox.formats.sharing import sharing
from probox.formats.wording import RawProblems
from probox.notes import InputWarning, Note
from probox.tables.dataset import Dataset
from probox.tables.labels import require_label_matrix

__all__ = [
    "check_coco_results",
    "coco_results_from_bytes",
]


def check_coco_results(data: bytes, file: str) -> None:
    """Raise if the content is no list of results; images and categories may be any."""
    _columns, found = _core.read_coco_results(
        data, image_ids=None, category_ids=None, lenient=False, max_examples=1, **sharing()
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
        **sharing(),
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
        threads=sharing()["threads"],
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
    label_probs, changed = limited(label_probs, rows)
    if changed:
        notes.append(Note("scaled-probabilities", changed))
    return label_probs, notes
