"""RVC1 detections: per image a list of boxes with label probabilities and corner covariances."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.output import Content, Kind, check_none_is_input, check_replaceable, json_bytes, write_files
from probox.files.reading import Paths, Source, file_head, read_bytes
from probox.formats.format import (
    JSON_DETECTIONS,
    DetectionFormat,
    Draft,
    copier,
    covariances_to_write,
    join_drafts,
    read_threads,
    require_sections,
    rows_to_write,
)
from probox.formats.label_tables import refuse_twins, rows_by_name
from probox.formats.problems import MAX_EXAMPLES, Problems
from probox.formats.rvc1_heatmaps import HeatmapFiles, StoredHeatmap, refuse_copy, with_heatmaps
from probox.formats.rvc1_truth import challenge_name
from probox.notes import Note
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.heatmaps import pixel_maps
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import align_labels, canonical_name, repeated_classes, unknown_classes
from probox.tables.table import dataset_of

Ids = npt.NDArray[np.int64]


class ImageCountError(InputError):
    """Raised if a file without names has lists for more or fewer images than the ground truth."""


def rows_of_lists(
    columns: _core._Rvc1Detections, image_ids: Ids, file_names: Sequence[str], file: str, problems: Problems
) -> tuple[Ids, list[Note]]:
    """Return the row of each list's image, -1 for unknown images, and notes.

    Parameters
    ----------
    columns : dict
        Columns returned by the C++ reader.
    image_ids, file_names
        Images of the ground truth that the file may refer to.
    file : str
        File name for messages.
    problems : Problems
        Receives the problems.
    """
    count, names = int(columns["images"]), columns["image_names"]
    if not columns["has_image_names"]:
        return _in_order(count, len(image_ids), file, problems), []
    if len(names) != count:
        error = InputError(
            f"expected one name for each of the {count} lists of detections, but got {len(names)}",
            file=file,
            entry="img_names",
            remedy="write one name per list, or leave img_names out: then lists follow the order of image ids",
        )
        problems.catch(error, "image count")
        return np.full(count, -1), []
    rows = rows_by_name(names, file_names)
    if count and (rows < 0).all():
        if not any(file_names):
            return _in_order(count, len(image_ids), file, problems), [Note("lists-in-order")]
        error = InputError(
            f"none of the {count} names is in the ground truth (the first is {names[0][:80]!r}, "
            f"in the ground truth {file_names[0][:80]!r})",
            file=file,
            entry="img_names",
            remedy="name the images as the ground truth does, or leave img_names out",
        )
        problems.catch(error, "unknown image")
        return rows, []
    refuse_twins(rows, names, image_ids, file, problems, lambda at: f"img_names[{at}]", "give each image one list")
    return rows, _left_out(rows, columns, file, problems)


def _in_order(lists: int, images: int, file: str, problems: Problems) -> Ids:
    """Assign lists to rows in order, if there are as many lists as images."""
    if lists != images:
        error = ImageCountError(
            f"expected detections of {images} images, as the ground truth has, but got {lists}",
            file=file,
            entry="detections",
            remedy="write one list per image, in ascending order of image id, also for images without detections",
        )
        problems.catch(error, "image count")
    return np.arange(lists)


def _left_out(rows: Ids, columns: _core._Rvc1Detections, file: str, problems: Problems) -> list[Note]:
    unknown = np.flatnonzero(rows < 0)
    detections = np.isin(columns["image_rows"], unknown)
    problems.warn("unknown image", unknown.tolist(), lambda at: InputError(
        "image missing from the ground truth: its detections are excluded",
        file=file, entry=f"img_names[{at}]",
    ))  # fmt: skip
    if not detections.any():
        return []
    return [Note("unknown-images", detections.sum(), images=len(np.unique(columns["image_rows"][detections])))]


MIN_LABEL_SUM = 0.5
"""Challenge rule: detections with a smaller sum of label probabilities are excluded."""

FLOAT_ROUNDING = 1e-6
"""Tolerance of a sum of float32 probabilities above 1."""


def check_rvc1(data: bytes, file: str) -> None:
    """Raise if the content is not an RVC1 file without heatmaps; images may be unknown."""
    columns, found = _core.read_rvc1(data, lenient=False, max_examples=1, **read_threads())
    Problems().add_raw(found, file)
    _require_keys(columns, file, Problems())
    refuse_copy(columns["mask_file_names"], file)


def rvc1_from_folder(folder: Path, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of a folder with one file per sequence of RVC1 ground truth."""
    sequences = sequences_of(dataset)
    if not sequences:
        empty = not any(folder.iterdir())
        raise InputError(
            "this folder is empty" if empty else "expected a file of detections, but this is a folder",
            file=str(folder),
            remedy="name the folder of text files that the detector wrote, or a file"
            if empty
            else "folders are YOLO, KITTI or VOC text files, or sequences of RVC1 ground truth; name a file in it",
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
            "is not the name of a sequence of the ground truth", file=str(folder / others[at])
        ))  # fmt: skip
    return draft


def sequences_of(dataset: Dataset) -> dict[str, slice]:
    """Return the image rows of each sequence, taken from file names ``SEQUENCE/IMAGE``."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(dataset.file_names if dataset.rules == "challenge" else ()):
        if "/" in name:
            rows.setdefault(name.split("/")[0], []).append(row)
    return {name: slice(at[0], at[-1] + 1) for name, at in rows.items()}


def _draft(data: bytes, path: Path, dataset: Dataset, image_rows: slice, problems: Problems) -> Draft:
    """Return the draft of one file, whose images are these rows of the ground truth."""
    file = str(path)
    columns, found = _core.read_rvc1(data, lenient=problems.lenient, max_examples=MAX_EXAMPLES, **read_threads())
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
        if image_rows != slice(None):  # in the file of a sequence, names may omit the sequence
            names = tuple(name.split("/", 1)[-1] for name in names)
        rows, notes = rows_of_lists(columns, image_ids, names, file, problems)
    _warn_of_classes(columns, dataset, file, problems)
    positions, entries = columns["image_rows"], columns["entries"]
    draft = Draft(
        classes=tuple(columns["classes"]),
        image_ids=positions,
        boxes=columns["boxes"],
        label_probs=LabelProbs(columns["label_probs"]),
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
        last_pixel = dataset.rules == "challenge"
        draft = with_heatmaps(
            draft, files, columns["mask_files"], columns["mask_ids"], shapes, problems, last_pixel=last_pixel
        )
    return draft


_OTHERS = dict.fromkeys(("images", "annotations"), "this is COCO ground truth: give a file of detections in its place")


def _require_keys(columns: Mapping[str, Any], file: str, problems: Problems) -> None:
    remedy = "give RVC1 detections or COCO results"
    require_sections(columns, ("classes", "detections"), file, problems, remedy, _OTHERS)


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


def _by_challenge_rules(drafts: list[Draft], source: str, dataset: Dataset) -> Draft:
    """Bring label probabilities to the challenge's classes and leave out detections that name none of them."""
    notes: list[Note] = []
    aligned = []
    for part in drafts:
        names = [challenge_name(name) for name in part.classes]
        aligned.append(np.asarray(align_labels(part.label_probs, names, dataset.classes)))
        repeated = [part.classes[column] for column in repeated_classes(names, dataset.classes)]
        if repeated:
            notes.append(Note("challenge-columns-repeated", len(repeated), names=repeated[0]))
    probs = np.concatenate([np.zeros((0, len(dataset.classes)), np.float32), *aligned])
    total = probs.sum(axis=1)
    above = np.isfinite(total) & (total > 1.0 + FLOAT_ROUNDING)  # keep non-finite rows to be rejected later
    probs[above] /= total[above, None]
    draft = join_drafts(drafts, LabelProbs(probs), dataset.classes, source)
    draft = draft.noting(*dict.fromkeys(notes))
    left_out = total <= MIN_LABEL_SUM  # not "total > MIN": NaN must be kept to be rejected later
    if left_out.any():
        draft = draft.select(np.flatnonzero(~left_out))
        count = int(left_out.sum())
        draft = draft.noting(Note("unnamed-challenge-detections", count, least=MIN_LABEL_SUM))
    return draft


_HEATMAPS = Kind("heatmaps", lambda path: file_head(path).startswith(b"\x93NUMPY"))


def write_rvc1(path: Paths, found: Detections, truth: GroundTruth | Dataset) -> tuple[Note, ...]:
    """Write RVC1 detections to a ``.json`` or ``.json.gz`` file, or to a folder of sequences.

    A name without ``.json`` or ``.json.gz`` is a folder with one file per sequence of RVC1 ground truth. Heatmaps are
    written as ``.npy`` files beside the JSON, masks as heatmaps of 0 and 255. ``img_names`` is written if all images
    have distinct file names. Reading the file restores boxes, label probabilities, covariances and heatmaps
    bit-identically, sorted by image.

    Parameters
    ----------
    path : path
        Output file or folder; a missing parent is created. Existing files are replaced only if they hold detections,
        and not if heatmaps of `found` are read from them.
    found : Detections
        Detections to write, all in images of the ground truth.
    truth : GroundTruth or Dataset
        Images and their order.

    Returns
    -------
    tuple of Note
        Data that the format cannot store.

    Examples
    --------
    >>> from probox.formats import write_rvc1
    >>> write_rvc1("detections.json", found, truth)  # doctest: +SKIP
    """
    target = Path(path)
    dataset = dataset_of(truth, "the order is write_rvc1(path, found, truth)")
    if target.name.lower().endswith((".json", ".json.gz")):
        parts = {target: slice(0, len(dataset))}
    else:
        parts = {target / f"{name}.json": rows for name, rows in sequences_of(dataset).items()}
        if not parts:
            raise InputError(
                "folders of sequences need RVC1 ground truth",
                file=str(target),
                remedy="name a file that ends in .json or .json.gz",
            )
    rows = rows_to_write(found, dataset, str(target))
    heatmaps = pixel_maps(found, dataset.shapes[rows])
    files: dict[Path, Content] = {}
    for file, images in parts.items():
        chosen = np.flatnonzero((rows >= images.start) & (rows < images.stop))
        chosen = chosen[np.argsort(rows[chosen], kind="stable")]
        offsets = np.searchsorted(rows[chosen], np.arange(images.start, images.stop + 1)).astype(np.int64)
        maps = _HeatmapFiles(file, found, heatmaps, chosen)
        files |= maps.contents
        covariances, has_covariances = covariances_to_write(found)
        body = _core.format_rvc1(
            offsets=offsets,
            boxes=found.boxes[chosen],
            label_probs=found.label_probs[chosen].table,
            covariances=covariances[chosen] if len(covariances) else covariances,
            has_covariances=has_covariances[chosen],
            mask_names=[json.dumps(path.name) for path in maps.maps],
            mask_files=maps.file_of,
            mask_ids=maps.number_of,
        )
        described: dict[str, list[str]] = {"classes": list(found.classes)}
        names = dataset.file_names[images]
        if all(names) and len(set(names)) == len(names) > 0:  # lets readers match the lists by name
            described["img_names"] = list(names)
        head = json.dumps(described, ensure_ascii=False)[:-1].encode()
        files[file] = json_bytes(file, head + b', "detections": ' + body + b"}\n")
    read: Iterable[object] = heatmaps
    check_none_is_input(files, {heatmap.file.path for heatmap in read if isinstance(heatmap, StoredHeatmap)})
    for file in files:
        check_replaceable(file, JSON_DETECTIONS if file in parts else _HEATMAPS)
    write_files(files)
    stated = int((found.label_probs.argmax(axis=1) != found.labels).sum())
    return (Note("stated-class-lost", stated),) if stated else ()


class _HeatmapFiles:
    """The ``.npy`` files of one JSON file: one per image and dtype."""

    def __init__(
        self,
        file: Path,
        found: Detections,
        heatmaps: Sequence[npt.NDArray[np.generic] | None],
        chosen: npt.NDArray[np.int64],
    ) -> None:
        self.maps: dict[Path, list[npt.NDArray[np.generic]]] = {}
        self.file_of = np.full(len(chosen), -1, np.int32)
        self.number_of = np.zeros(len(chosen), np.int64)
        numbers: dict[Path, int] = {}
        stem = file.name.removesuffix(".gz").removesuffix(".json")
        for at, row in enumerate(chosen.tolist() if heatmaps else ()):
            heatmap = heatmaps[row]
            if heatmap is None:
                continue
            path = file.with_name(f"{stem}.{found.image_ids[row]}.{heatmap.dtype.name}.npy")
            maps = self.maps.setdefault(path, [])
            if maps and maps[0].shape != heatmap.shape:
                raise InputError("heatmaps of one image differ in shape", image=int(found.image_ids[row]))
            self.file_of[at] = numbers.setdefault(path, len(numbers))
            self.number_of[at] = len(maps)
            maps.append(heatmap)

    @property
    def contents(self) -> dict[Path, Content]:
        """Return the content of each file."""
        return {path: partial(_save, maps) for path, maps in self.maps.items()}


def _save(maps: list[npt.NDArray[np.generic]], file: BinaryIO) -> None:
    np.save(file, np.stack(maps), allow_pickle=False)


def _read(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    if source.is_folder:
        return rvc1_from_folder(Path(source.path), dataset, problems)
    draft = _draft(source.content(), Path(source.path), dataset, slice(None), problems)
    return _by_challenge_rules([draft], str(source.path), dataset) if dataset.rules == "challenge" else draft


def _read_part(source: Source, whole: Dataset, part: Dataset, problems: Problems) -> Draft:
    """Read a file whose lists are matched by position, for the images of the whole dataset or of the part.

    In a folder, sequences outside the part may be missing.
    """
    first, second = (part, whole) if source.is_folder else (whole, part)
    try:
        return _read(source, first, problems)
    except ImageCountError:
        return _read(source, second, problems)


RVC1_DETECTIONS = DetectionFormat(
    name="rvc1",
    title="RVC1",
    suffixes=(".json", ".rvc1.json"),
    gzip=True,
    sniff=lambda source: source.is_folder or source.first_character == "{",
    last=True,
    read=_read,
    read_part=_read_part,
    write=write_rvc1,
    check=lambda source: check_rvc1(source.content(), source.name),
    copy=copier(check_rvc1),
    kind=JSON_DETECTIONS,
    heatmaps=True,
)
