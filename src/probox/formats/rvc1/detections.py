"""RVC1 detections: per image a list of boxes with label probabilities and, optionally, corner covariances."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.reading import Paths, read_bytes
from probox.formats.draft import Draft, joined
from probox.formats.problems import MAX_EXAMPLES, Problems
from probox.formats.rvc1.heatmaps import HeatmapFiles, box_of
from probox.formats.rvc1.images import rows_of_lists
from probox.formats.rvc1.truth import challenge_name
from probox.formats.sharing import sharing
from probox.notes import Note
from probox.tables.dataset import Dataset
from probox.tables.labels import align_labels, canonical_name, repeated_classes, unknown_classes

__all__ = ["check_rvc1", "rvc1_from_bytes", "rvc1_from_folder", "sequences_of"]

MIN_LABEL_SUM = 0.5
"""A challenge submission's detection counts when its label probabilities add up to more than this."""

FLOAT_ROUNDING = 1e-6
"""What a sum of float32 probabilities may be above 1 without being normalised again."""


def rvc1_from_bytes(data: bytes, path: Paths, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of an RVC1 file's content; heatmaps are looked for beside `path`."""
    draft = _draft(data, Path(path), dataset, slice(None), problems)
    if dataset.rules == "challenge":
        return _by_challenge_rules([draft], str(path), dataset)
    return draft


def check_rvc1(data: bytes, file: str) -> None:
    """Raise if the content is no RVC1 file that can stand alone; images may be any."""
    columns, found = _core.read_rvc1(data, lenient=False, max_examples=1, **sharing())
    Problems().add_raw(found, file)
    _require_keys(columns, file, Problems())
    if columns["mask_file_names"]:
        raise InputError(
            f"names heatmap files ({columns['mask_file_names'][0][:80]!r}), which would stay behind",
            file=file,
            remedy="give the ground truth ({option:truth}), to write them too",
        )


def rvc1_from_folder(folder: Path, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of a folder with one file per sequence of the challenge truth."""
    sequences = sequences_of(dataset)
    if not sequences:
        empty = not any(folder.iterdir())
        raise InputError(
            "this folder is empty" if empty else "expected a file of detections, but this is a folder",
            file=str(folder),
            remedy="name the folder of text files that the detector wrote, or a file"
            if empty
            else "folders are YOLO, KITTI or VOC text files, or sequences of challenge ground truth; name a file in it",
        )
    drafts: list[Draft] = []
    for name, rows in sequences.items():
        file = next((f for f in (folder / f"{name}.json", folder / f"{name}.json.gz") if f.exists()), None)
        try:
            if file is None:
                raise InputError(
                    f"expected a file {name}.json for the sequence of that name",
                    file=str(folder),
                    remedy="write one file per sequence, with an empty list for images without detections",
                )
            drafts.append(_draft(read_bytes(file, pipe=False), file, dataset, rows, problems))
        except InputError as error:
            problems.catch(error, "unusable file")
    draft = _by_challenge_rules(drafts, str(folder), dataset)
    others = sorted(f.name for f in folder.glob("*.json*") if f.name.split(".json")[0] not in sequences)
    if others:
        draft = draft.noting(Note("files-of-no-sequence", len(others), name=others[0]))
        problems.warn("unknown sequence", range(len(others)), lambda at: InputError(
            "belongs to no sequence of the ground truth", file=str(folder / others[at])
        ))  # fmt: skip
    return draft


def sequences_of(dataset: Dataset) -> dict[str, slice]:
    """Return the image rows of each sequence of a challenge data set, which file names ``SEQUENCE/IMAGE`` tell."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(dataset.file_names if dataset.rules == "challenge" else ()):
        if "/" in name:
            rows.setdefault(name.split("/")[0], []).append(row)
    return {name: slice(at[0], at[-1] + 1) for name, at in rows.items()}


def _draft(data: bytes, path: Path, dataset: Dataset, image_rows: slice, problems: Problems) -> Draft:
    """Return the draft of one file, whose images are these of the truth."""
    file = str(path)
    columns, found = _core.read_rvc1(data, lenient=problems.lenient, max_examples=MAX_EXAMPLES, **sharing())
    complete = problems.add_raw(found, file)
    image_ids, widths, heights = (
        dataset.image_ids[image_rows],
        dataset.widths[image_rows],
        dataset.heights[image_rows],
    )
    if complete:
        _require_keys(columns, file, problems)
    rows, notes = np.arange(columns["images"]), list[Note]()
    if complete and columns["has_detections"]:
        names = dataset.file_names[image_rows]
        if image_rows != slice(None):  # a sequence, whose name its images need not repeat
            names = tuple(name.split("/", 1)[-1] for name in names)
        rows, notes = rows_of_lists(columns, image_ids, names, file, problems)
    _warn_of_classes(columns, dataset, file, problems)
    positions, entries = columns["image_rows"], columns["entries"]
    draft = Draft(
        classes=tuple(columns["classes"]),
        image_ids=positions,
        boxes=columns["boxes"],
        label_probs=columns["label_probs"],
        covariances=columns["covariances"],
        source=file,
        place=lambda row: (file, f"detections[{positions[row]}][{entries[row]}]"),
        notes=tuple(notes),
    )
    images = np.append(rows, -1)[np.minimum(positions, len(rows))]
    kept = np.flatnonzero((images >= 0) & (images < len(image_ids)))
    if len(kept) < len(images):
        draft = draft.select(kept)
        images = images[kept]
        columns["mask_files"], columns["mask_ids"] = columns["mask_files"][kept], columns["mask_ids"][kept]
    draft = draft.replace(image_ids=image_ids[images])
    if (columns["mask_files"] >= 0).any():
        shapes = np.stack([heights, widths], axis=1)[images]
        files = HeatmapFiles(path.parent, columns["mask_file_names"])
        draft = _with_heatmaps(draft, files, columns, shapes, problems, last_pixel=dataset.rules == "challenge")
    return draft


def _require_keys(columns: Mapping[str, Any], file: str, problems: Problems) -> None:
    for key in ("classes", "detections"):
        if columns[f"has_{key}"]:
            continue
        found = ", ".join(f'"{name}"' for name in columns["other_keys"]) or "no other keys"
        remedy = "give RVC1 detections or COCO results"
        if {"images", "annotations"} & set(columns["other_keys"]):
            remedy = "this is COCO ground truth: give a file of detections in its place"
        problems.stop(InputError(f'expected a key "{key}", but got {found}', file=file, remedy=remedy), "missing key")


def _warn_of_classes(columns: _core._Rvc1Detections, dataset: Dataset, file: str, problems: Problems) -> None:
    classes: list[str] = columns["classes"]
    if not problems.lenient:
        return
    names = [challenge_name(name) for name in classes] if dataset.rules == "challenge" else classes
    problems.warn("unknown class", unknown_classes(names, dataset.classes), lambda at: InputError(
        f"{classes[at]!r} is not in the ground truth: its probability is lost", file=file, entry=f"classes[{at}]"
    ))  # fmt: skip
    last = dict(zip(map(canonical_name, names), range(len(names)), strict=True))
    problems.warn("duplicate class", repeated_classes(names, dataset.classes), lambda at: InputError(
        f"{classes[at]!r} means the same as classes[{last[canonical_name(names[at])]}], which counts alone: "
        "its probability is lost",
        file=file, entry=f"classes[{at}]",
    ))  # fmt: skip


def _with_heatmaps(
    draft: Draft,
    files: HeatmapFiles,
    columns: _core._Rvc1Detections,
    shapes: npt.NDArray[np.int32],
    problems: Problems,
    *,
    last_pixel: bool,
) -> Draft:
    """Fill in the heatmaps, and the boxes of detections that have only a heatmap: these end where the truth's do."""
    heatmaps: list[npt.NDArray[np.generic] | None] = [None] * len(draft)
    boxes: npt.NDArray[np.float64] = draft.boxes.copy()
    for row in np.flatnonzero(columns["mask_files"] >= 0):
        file, entry = draft.place(int(row))
        try:
            heatmap = files.heatmap(int(columns["mask_files"][row]), int(columns["mask_ids"][row]), shapes[row])
        except InputError as error:
            problems.catch(
                InputError(error.problem, file=file, image=int(draft.image_ids[row]), entry=entry, remedy=error.remedy),
                "unusable heatmap",
            )
            boxes[row] = 0.0
            continue
        heatmaps[int(row)] = heatmap
        if np.isnan(boxes[row]).all():
            boxes[row] = box_of(heatmap, last_pixel=last_pixel)
    return draft.replace(boxes=boxes, heatmaps=tuple(heatmaps))


def _by_challenge_rules(drafts: list[Draft], source: str, dataset: Dataset) -> Draft:
    """Bring label probabilities to the challenge's classes and leave out detections that name none of them."""
    notes: list[Note] = []
    aligned = []
    for part in drafts:
        names = [challenge_name(name) for name in part.classes]
        aligned.append(align_labels(part.label_probs, names, dataset.classes))
        repeated = [part.classes[column] for column in repeated_classes(names, dataset.classes)]
        if repeated:
            notes.append(Note("challenge-columns-repeated", len(repeated), names=repeated[0]))
    probs = np.concatenate([np.zeros((0, len(dataset.classes)), np.float32), *aligned])
    total = probs.sum(axis=1)
    above = np.isfinite(total) & (total > 1.0 + FLOAT_ROUNDING)  # what is not finite must stay to be rejected
    probs[above] /= total[above, None]
    draft = joined(drafts, probs, dataset.classes, source)
    draft = draft.noting(*dict.fromkeys(notes))
    left_out = total <= MIN_LABEL_SUM  # not "not above": NaN must stay to be rejected
    if left_out.any():
        draft = draft.select(np.flatnonzero(~left_out))
        count = int(left_out.sum())
        draft = draft.noting(Note("unnamed-challenge-detections", count, least=MIN_LABEL_SUM))
    return draft
