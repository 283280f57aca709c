"""RVC1 detections: per image a list of boxes with label probabilities and, optionally, corner covariances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.detections import Detections
from probox.errors import InputError
from probox.formats.files import Paths, is_folder, read_bytes
from probox.formats.problems import raise_first
from probox.formats.repair import repaired
from probox.formats.segmentation import HeatmapFiles
from probox.groundtruth import GroundTruth
from probox.labels import align_labels, column_of_each

__all__ = ["read_rvc1", "rvc1_from_bytes"]

MIN_LABEL_SUM = 0.5
"""A challenge submission's detection counts when its label probabilities add up to more than this."""


def read_rvc1(path: Paths, truth: GroundTruth, *, repair: bool = False) -> Detections:
    """Read RVC1 detections: a ``.json`` or ``.json.gz`` file, or a folder of sequences for challenge truth.

    A file's images are those of the truth in ascending order of id, and there must be as many. In a
    folder, ``SEQUENCE.json`` holds the detections of the truth's sequence of that name.

    For challenge truth the challenge's rules hold: probabilities of other classes are dropped, a detection
    whose remaining ones (background included) add up to at most one half is left out, and a sum above 1 is
    normalised.

    Parameters
    ----------
    path : path
        The file or folder.
    truth : GroundTruth
        What it was run on.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite by the nearest that are.
    """
    if is_folder(path):
        return _read_sequences(Path(path), truth, repair)
    return rvc1_from_bytes(read_bytes(path), path, truth, repair=repair)


def rvc1_from_bytes(data: bytes, path: Paths, truth: GroundTruth, *, repair: bool = False) -> Detections:
    """Return the table of an RVC1 file's content; heatmaps are looked for beside `path`."""
    part = _Part(data, Path(path), truth.image_ids, truth.widths, truth.heights)
    notes: list[str] = []
    if truth.filter_small:
        return _challenge_detections([part], str(path), truth, notes, repair)
    unknown = [
        name for name, at in zip(part.classes, column_of_each(part.classes, truth.classes), strict=True) if at < 0
    ]
    if unknown:
        named = ", ".join(unknown[:3]) + (", ..." if len(unknown) > 3 else "")
        notes.append(f"{len(unknown)} of {len(part.classes)} classes are not in the ground truth ({named})")
    return _table(part.classes, [part], part.label_probs, str(path), notes, repair)


def _read_sequences(folder: Path, truth: GroundTruth, repair: bool) -> Detections:
    sequences = _sequences(truth)
    if not sequences:
        raise InputError(
            "expected a file, but this is a folder",
            file=str(folder),
            remedy="folders of sequences go with challenge ground truth; name a JSON file in it",
        )
    notes: list[str] = []
    parts: list[_Part] = []
    for name, rows in sequences.items():
        file = next((f for f in (folder / f"{name}.json", folder / f"{name}.json.gz") if f.is_file()), None)
        if file is None:
            raise InputError(
                f"expected a file {name}.json for the sequence of that name",
                file=str(folder),
                remedy="write one file per sequence, with an empty list for images without detections",
            )
        parts.append(_Part(read_bytes(file), file, truth.image_ids[rows], truth.widths[rows], truth.heights[rows]))
    others = sorted(f.name for f in folder.glob("*.json*") if f.name.split(".json")[0] not in sequences)
    if others:
        notes.append(f"{len(others)} files belong to no sequence of the ground truth ({others[0]})")
    return _challenge_detections(parts, str(folder), truth, notes, repair)


def _sequences(truth: GroundTruth) -> dict[str, slice]:
    """Return the image rows of each sequence, which file names ``SEQUENCE/IMAGE`` tell."""
    starts: dict[str, list[int]] = {}
    for row, name in enumerate(truth.file_names):
        if truth.filter_small and "/" in name:
            starts.setdefault(name.split("/")[0], []).append(row)
    return {name: slice(rows[0], rows[-1] + 1) for name, rows in starts.items()}


class _Part:
    """One file's columns, its image positions already turned into image ids."""

    def __init__(
        self,
        data: bytes,
        path: Path,
        image_ids: npt.NDArray[np.int64],
        widths: npt.NDArray[np.int32],
        heights: npt.NDArray[np.int32],
    ) -> None:
        columns, problems = _core.read_rvc1(data, lenient=False)
        file = str(path)
        raise_first(problems, file)
        require_keys(columns, file)
        if columns["images"] != len(image_ids):
            raise InputError(
                f"expected detections of {len(image_ids)} images, as the ground truth has, but got {columns['images']}",
                file=file,
                entry="detections",
                remedy="write one list per image, in ascending order of image id, also for images without detections",
            )
        rows = columns["image_rows"]
        self.classes: tuple[str, ...] = tuple(columns["classes"])
        self.image_ids = image_ids[rows]
        self.label_probs: npt.NDArray[np.float32] = columns["label_probs"]
        self.covariances: npt.NDArray[np.float64] | None = columns["covariances"]
        self.boxes: npt.NDArray[np.float64] = columns["boxes"]
        self.heatmaps: list[npt.NDArray[np.generic] | None] | None = None
        if (columns["mask_files"] >= 0).any():
            files = HeatmapFiles(path.parent, columns["mask_file_names"], file)
            shapes = np.stack([heights, widths], axis=1)[rows]
            self.heatmaps, self.boxes = files.take(columns, self.image_ids, shapes)


def require_keys(columns: dict[str, Any], file: str) -> None:
    """Raise if the file lacks one of its two keys, saying what it may be instead."""
    for key in ("classes", "detections"):
        if columns[f"has_{key}"]:
            continue
        found = ", ".join(f'"{name}"' for name in columns["other_keys"]) or "no other keys"
        remedy = "give RVC1 detections or COCO results"
        if {"images", "annotations"} & set(columns["other_keys"]):
            remedy = "this looks like COCO ground truth: name the ground truth first, then the detections"
        raise InputError(f'expected a key "{key}", but got {found}', file=file, remedy=remedy)


def _challenge_detections(
    parts: list[_Part], source: str, truth: GroundTruth, notes: list[str], repair: bool
) -> Detections:
    """Apply the challenge's rules to label probabilities."""
    aligned = [align_labels(part.label_probs, part.classes, truth.classes) for part in parts]
    probs = np.concatenate(aligned) if aligned else np.zeros((0, len(truth.classes)), np.float32)
    total = probs.sum(axis=1)
    above = total > 1.0
    if above.any():
        probs = np.where(above[:, None], probs / np.where(above, total, 1.0)[:, None], probs)
    kept = total > MIN_LABEL_SUM
    table = _table(truth.classes, parts, probs, source, notes, repair)
    if kept.all():
        return table
    left_out = int((~kept).sum())
    notes.append(f"{left_out} detections whose label probabilities add up to at most {MIN_LABEL_SUM} were left out")
    chosen = table.select(kept)
    object.__setattr__(chosen, "notes", tuple(notes))
    return chosen


def _table(
    classes: tuple[str, ...],
    parts: list[_Part],
    label_probs: npt.NDArray[np.float32],
    source: str,
    notes: list[str],
    repair: bool,
) -> Detections:
    covariances = None
    if any(part.covariances is not None for part in parts):
        covariances = _joined(
            [np.zeros((len(p.boxes), 2, 2, 2)) if p.covariances is None else p.covariances for p in parts]
        )
        if repair:
            covariances = repaired(covariances, notes)
    heatmaps = None
    if any(part.heatmaps is not None for part in parts):
        heatmaps = tuple(h for p in parts for h in (p.heatmaps or [None] * len(p.boxes)))
    label_probs.flags.writeable = False
    return Detections(
        classes=classes,
        image_ids=_joined([part.image_ids for part in parts]),
        boxes=_joined([part.boxes for part in parts]),
        label_probs=label_probs,
        covariances=covariances,
        heatmaps=heatmaps,
        source=source,
        notes=tuple(notes),
    )


def _joined(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    joined.flags.writeable = False
    return joined
