"""Golden cases as tables: what to evaluate and what must come out.

Deliberately not built on probox's own readers: a fault in a reader must not hide a fault in the measure.
"""

from __future__ import annotations

import json
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pycocotools import mask as coco_mask

from probox.convention import Convention
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks

GOLDEN = Path(__file__).resolve().parents[2] / "golden"

MODES: dict[str, dict[str, Any]] = {
    "": {},
    "set_cov_10": {"fixed_variance": 10.0},
    "bbox_gt": {"box_truth": True},
    "greedy": {"assignment": "greedy"},
    "segment": {"background": "mask"},
    "paper": {"name": "paper"},
}
"""What the middle of ``expected.MODE.json`` means, as fields of a convention."""

CHALLENGE_CLASSES = [
    *("none", "bottle", "cup", "knife", "bowl", "wine glass", "fork", "spoon", "banana", "apple", "orange", "cake"),
    *("potted plant", "mouse", "keyboard", "laptop", "cell phone", "book", "clock", "chair", "dining table", "couch"),
    *("bed", "toilet", "television", "microwave", "toaster", "refrigerator", "oven", "sink", "person"),
]
TABLES = ("overall", "spatial", "label", "fg", "bg")


class Case(NamedTuple):
    """One folder in one mode: the input, the convention and the expected numbers."""

    name: str
    truth: GroundTruth
    found: Detections
    convention: Convention
    images: list[dict[str, Any]]
    summary: dict[str, float]


def case_names(folder: Path = GOLDEN) -> list[str]:
    """Return all cases, ``folder`` or ``folder:mode``."""
    paths = sorted(folder.glob("*/expected*.json"))
    return [":".join([path.parent.name, *path.name.split(".")[1:-1]]) for path in paths]


def read_case(name: str, folder: Path = GOLDEN) -> Case:
    """Return the case of this name (see `case_names`)."""
    where, _, mode = name.partition(":")
    path = folder / where
    expected = json.loads((path / f"expected{'.' + mode if mode else ''}.json").read_text())
    changes = dict(MODES[mode])
    convention = Convention.preset(changes.pop("name", "reference"), **changes)
    if where == "rvc1":
        truth, found = read_challenge(path)
        images = [image for sequence in expected["sequences"] for image in sequence]
    else:
        truth = read_truth(path / "ground_truth.json")
        found = read_detections(path / "detections.json", truth)
        images = expected["images"]
    return Case(name, truth, found, convention, images, expected["summary"])


def matches_of(image: dict[str, Any]) -> list[tuple[int, int, bool]]:
    """Return the expected matches of an image: object, detection, ignored; without them an empty list."""
    entries = [entry for entry in image.get("gt_evals", []) if entry["matched"]]
    return sorted((entry["gt_id"], entry["det_id"], entry["ignore"]) for entry in entries)


def read_truth(path: Path) -> GroundTruth:
    """Return COCO annotations, rasterised by pycocotools; objects without pixels are left out."""
    data = json.loads(path.read_text())
    images = sorted(data["images"], key=lambda image: image["id"])
    categories = sorted(data["categories"], key=lambda category: category["id"])
    column = {category["id"]: number for number, category in enumerate(categories)}
    rows, masks = [], []
    for number, image in enumerate(images):
        for annotation in data["annotations"]:
            if annotation["image_id"] == image["id"]:
                mask = rasterise(annotation["segmentation"], image["height"], image["width"])
                if mask.any():
                    rows.append((number, annotation))
                    masks.append(mask)
    x, y, width, height = np.array([annotation["bbox"] for _, annotation in rows]).reshape(-1, 4).T
    return GroundTruth(
        dataset=Dataset(
            classes=tuple(category["name"] for category in categories),
            category_ids=np.array([category["id"] for category in categories]),
            image_ids=np.array([image["id"] for image in images]),
            widths=np.array([image["width"] for image in images]),
            heights=np.array([image["height"] for image in images]),
        ),
        image_rows=np.array([number for number, _ in rows], np.int64),
        labels=np.array([column[annotation["category_id"]] for _, annotation in rows], np.int32),
        boxes=np.stack([x, y, x + width, y + height], axis=1),
        extents=np.stack([width, height], axis=1),
        areas=np.array([annotation["area"] for _, annotation in rows], float),
        crowd=np.array([annotation["iscrowd"] for _, annotation in rows], bool),
        ids=np.array([annotation["id"] for _, annotation in rows], np.int64),
        masks=Masks.from_arrays(masks),
    )


def rasterise(segmentation: Any, height: int, width: int) -> npt.NDArray[np.bool_]:
    """Return a COCO segmentation, polygons or uncompressed run lengths, as an (H, W) array."""
    if isinstance(segmentation, list):
        runs = coco_mask.merge(coco_mask.frPyObjects(segmentation, height, width))
    else:
        runs = coco_mask.frPyObjects(segmentation, height, width)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pycocotools under NumPy 2
        return np.asarray(coco_mask.decode(runs), dtype=bool)


def read_detections(path: Path, truth: GroundTruth) -> Detections:
    """Return RVC1 detections: one list per image, in the order of the truth's images."""
    data = json.loads(path.read_text())
    entries = [
        (int(image_id), entry)
        for image_id, entries in zip(truth.image_ids, data["detections"], strict=True)
        for entry in entries
    ]
    return table_of(data["classes"], entries, path.parent)


def table_of(classes: list[str], entries: list[tuple[int, dict[str, Any]]], folder: Path) -> Detections:
    """Return RVC1 entries with their image ids as a table."""
    heatmaps = [
        np.load(folder / entry["masks_file"])[entry["mask_id"]] if "masks_file" in entry else None
        for _, entry in entries
    ]
    none = np.zeros((2, 2, 2))
    return Detections(
        classes=tuple(classes),
        image_ids=np.array([image_id for image_id, _ in entries], np.int64),
        boxes=np.array([entry.get("bbox", [0, 0, 0, 0]) for _, entry in entries], float).reshape(-1, 4),
        covariances=np.array([entry.get("covars", none) for _, entry in entries], float).reshape(-1, 2, 2, 2),
        label_probs=np.array([entry["label_probs"] for _, entry in entries]).reshape(-1, len(classes)),
        heatmaps=heatmaps if any(heatmap is not None for heatmap in heatmaps) else None,
    )


def read_challenge(folder: Path) -> tuple[GroundTruth, Detections]:
    """Return challenge truth (a folder per sequence with masks as PNG) and its submission."""
    classes = CHALLENGE_CLASSES
    names = {"tv": "television"}
    masks: list[tuple[int, list[npt.ArrayLike], list[int]]] = []
    shapes: dict[int, tuple[int, int]] = {}
    entries: list[tuple[int, dict[str, Any]]] = []
    for sequence in sorted((folder / "gt").iterdir()):
        submission = json.loads((folder / "det" / f"{sequence.name}.json").read_text())
        labels = json.loads((sequence / "labels.json").read_text())
        for frame, detections in zip(sorted(labels), submission["detections"], strict=True):
            image_id = len(shapes)
            objects = dict(labels[frame])
            metadata = objects.pop("_metadata")
            pixels = read_png(sequence / metadata["mask_name"])
            if pixels.ndim == 3:
                pixels = pixels[:, :, 2 - metadata["mask_channel"]]  # the challenge counts blue, green, red
            shapes[image_id] = (pixels.shape[0], pixels.shape[1])
            listed = [objects[key] for key in sorted(objects)]
            masks.append(
                (
                    image_id,
                    [pixels == entry["mask_id"] for entry in listed],
                    [classes.index(names.get(entry["class"], entry["class"])) for entry in listed],
                )
            )
            for detection in detections:
                kept = challenge_labels(detection["label_probs"], submission["classes"], classes, names)
                if kept is not None:
                    entries.append((image_id, {**detection, "label_probs": kept}))
    truth = GroundTruth.from_masks(classes, masks, shapes=shapes)
    truth = truth.replace(dataset=truth.dataset.replace(rules="challenge"))
    return truth, table_of(classes, entries, folder)


def challenge_labels(
    probs: list[float], given: list[str], classes: list[str], names: dict[str, str]
) -> npt.NDArray[np.float64] | None:
    """Return the probabilities of the challenge's classes, background included; None if they add up to <= 0.5."""
    kept = np.zeros(len(classes))
    for name, prob in zip(given, probs, strict=True):
        name = names.get(name, name)
        if name in classes:
            kept[classes.index(name)] = prob
    total = kept.sum()
    if total <= 0.5:
        return None
    return kept / total if total > 1 else kept


def read_png(path: Path) -> npt.NDArray[np.uint8]:
    """Return an 8-bit PNG without interlacing as (H, W) or (H, W, channels)."""
    data = path.read_bytes()
    at, packed, header = 8, b"", b""
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        header, packed = (body, packed) if kind == b"IHDR" else (header, packed + body * (kind == b"IDAT"))
        at += length + 12
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", header)
    assert depth == 8, "expected 8 bits per sample"
    assert interlace == 0, "expected no interlacing"
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, width * channels + 1)
    result = np.zeros((height, width * channels), np.uint8)
    for y in range(height):
        above = result[y - 1] if y else np.zeros(width * channels, np.uint8)
        result[y] = unfilter(int(rows[y, 0]), rows[y, 1:], above, channels)
    return result if channels == 1 else result.reshape(height, width, channels)


def unfilter(kind: int, row: npt.NDArray[np.uint8], above: npt.NDArray[np.uint8], step: int) -> list[int]:
    """Return a PNG row without its filter."""
    out: list[int] = []
    for i, value in enumerate(map(int, row)):
        left, up = (out[i - step] if i >= step else 0), int(above[i])
        corner = int(above[i - step]) if i >= step else 0
        guess = left + up - corner
        nearest = min((left, up, corner), key=lambda near: abs(guess - near))
        out.append((value + (0, left, up, (left + up) // 2, nearest)[kind]) % 256)
    return out
