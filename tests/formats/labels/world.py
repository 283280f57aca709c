"""One small scene as files of every format of labels, and of COCO, with numbers that all of them hold exactly."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path

import numpy as np

CLASSES = ("car", "cup", "dog")
CODES = {"car": "/m/0k4j", "cup": "/m/02p5f1q", "dog": "/m/0bt9lr"}

LABELS = "0 0.5 0.5 0.25 0.5\n1 0.25 0.25 0.5 0.125\n"
"""Two lines of a YOLO label file."""

Box = tuple[int, int, int, int]


def header(width: int, height: int) -> bytes:
    """Return how a PNG image begins, which is all that a reader of sizes looks at."""
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0) + bytes(16)


@dataclasses.dataclass(frozen=True)
class Scene:
    """Images by stem with width and height; objects and detections as stem, class, x, y, w, h (whole pixels)."""

    images: dict[str, tuple[int, int]]
    objects: list[tuple[str, str, Box, bool]]
    """The last entry: a crowd."""
    detections: list[tuple[str, str, Box, float]]

    def image_id(self, stem: str) -> int:
        return int(stem) if stem.isdigit() else 1 + sorted(self.images).index(stem)


def make_scene(
    images: int = 6, seed: int = 3, *, crowd: bool = False, stem: str = "{:06d}", empty: bool = True
) -> Scene:
    """Return images whose sides are powers of 2, so that whole pixels are exact fractions of them.

    One of them is empty, unless all are to have objects: Open Images' files name no others.
    """
    rng = np.random.default_rng(seed)
    sizes = {stem.format(40 + 7 * n): ((512, 256), (256, 512), (1024, 512))[n % 3] for n in range(images)}
    objects: list[tuple[str, str, Box, bool]] = []
    detections: list[tuple[str, str, Box, float]] = []
    for at, (name, (width, height)) in enumerate(sizes.items()):
        for n in range(0 if empty and at == 1 else 4):
            w, h = (int(side) for side in rng.integers(20, 120, 2))
            x, y = int(rng.integers(1, width - w - 8)), int(rng.integers(1, height - h - 8))
            label = CLASSES[(at + n) % 3]
            objects.append((name, label, (x, y, w, h), crowd and n == 3))
            if rng.random() < 0.8:
                dx, dy, dw, dh = (int(d) for d in rng.integers(-3, 4, 4))
                said = label if rng.random() < 0.8 else CLASSES[int(rng.integers(3))]
                box = (max(x + dx, 0), max(y + dy, 0), w + dw, h + dh)
                detections.append((name, said, box, float(np.round(rng.uniform(0.3, 0.99), 6))))
        if at != 2:
            detections.append((name, CLASSES[int(rng.integers(3))], (5, 6, 30, 40), 0.125))
    return Scene(sizes, objects, detections)


def put(path: Path, data: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def coco(scene: Scene, folder: Path) -> tuple[Path, Path]:
    """Write COCO ground truth and results."""
    truth = {
        "images": [
            {"id": scene.image_id(stem), "width": w, "height": h, "file_name": f"{stem}.png"}
            for stem, (w, h) in scene.images.items()
        ],
        "categories": [{"id": n + 1, "name": name} for n, name in enumerate(CLASSES)],
        "annotations": [
            {
                "id": n,
                "image_id": scene.image_id(stem),
                "category_id": CLASSES.index(label) + 1,
                "bbox": list(box),
                "area": box[2] * box[3],
                "iscrowd": int(crowd),
            }
            for n, (stem, label, box, crowd) in enumerate(scene.objects)
        ],
    }
    results = [
        {
            "image_id": scene.image_id(stem),
            "category_id": CLASSES.index(label) + 1,
            "bbox": list(box),
            "score": score,
        }
        for stem, label, box, score in scene.detections
    ]
    return put(folder / "truth.json", json.dumps(truth)), put(folder / "results.json", json.dumps(results))


def fractions(box: Box, size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Return cx, cy, w, h in fractions."""
    x, y, w, h = box
    return (x + w / 2) / size[0], (y + h / 2) / size[1], w / size[0], h / size[1]


def yolo(scene: Scene, folder: Path, *, order: str = "score-last") -> tuple[Path, Path]:
    """Write a data.yaml with images and labels, and a folder of predictions."""
    lines: dict[Path, list[str]] = {}
    found = folder / "runs" / "labels"
    found.mkdir(parents=True)
    for stem, size in scene.images.items():
        put(folder / "data" / "images" / "val" / f"{stem}.png", header(*size))
    for stem, label, box, _ in scene.objects:
        numbers = map(repr, fractions(box, scene.images[stem]))
        file = folder / "data" / "labels" / "val" / f"{stem}.txt"
        lines.setdefault(file, []).append(" ".join([str(CLASSES.index(label)), *numbers]))
    for stem, label, box, score in scene.detections:
        numbers = list(map(repr, fractions(box, scene.images[stem])))
        numbers = [repr(score), *numbers] if order == "score-first" else [*numbers, repr(score)]
        lines.setdefault(found / f"{stem}.txt", []).append(" ".join([str(CLASSES.index(label)), *numbers]))
    for file, text in lines.items():
        put(file, "\n".join(text) + "\n")
    names = "\n".join(f"  {n}: {name}" for n, name in enumerate(CLASSES))
    return put(
        folder / "data" / "data.yaml", f"path: .\ntrain: images/train\nval: images/val\nnames:\n{names}\n"
    ), found


def voc(scene: Scene, folder: Path) -> tuple[Path, Path]:
    """Write annotations in XML and a file of detections for each class; corners count pixels from 1."""
    root, found = folder / "VOC2007", folder / "results"
    found.mkdir(parents=True)
    for stem, (width, height) in scene.images.items():
        parts = [f"<annotation><filename>{stem}.png</filename>"]
        parts.append(f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>")
        for name, label, (x, y, w, h), crowd in scene.objects:
            if name == stem:
                corners = {"xmin": x + 1, "ymin": y + 1, "xmax": x + w, "ymax": y + h}
                inner = "".join(f"<{key}>{value}</{key}>" for key, value in corners.items())
                parts.append(f"<object><name>{label}</name><difficult>{int(crowd)}</difficult>")
                parts.append(f"<bndbox>{inner}</bndbox><part><bndbox><xmin>1</xmin></bndbox></part></object>")
        put(root / "Annotations" / f"{stem}.xml", "".join([*parts, "</annotation>"]))
    for label in CLASSES:
        lines = [
            f"{stem} {score!r} {x + 1} {y + 1} {x + w} {y + h}"
            for stem, said, (x, y, w, h), score in scene.detections
            if said == label
        ]
        put(found / f"comp4_det_test_{label}.txt", "\n".join(lines) + "\n")
    return root, found


def kitti(scene: Scene, folder: Path) -> tuple[Path, Path]:
    """Write label_2, image_2 and a folder of detections; a crowd becomes a DontCare region."""
    root, found = folder / "training", folder / "data"
    (root / "label_2").mkdir(parents=True)
    found.mkdir(parents=True)
    for stem, size in scene.images.items():
        put(root / "image_2" / f"{stem}.png", header(*size))
        lines = [
            f"{'DontCare' if crowd else label} 0.00 0 -1.57 {x}.00 {y}.00 {x + w} {y + h} 1.5 1.6 3.7 1 2 3 -1.5"
            for name, label, (x, y, w, h), crowd in scene.objects
            if name == stem
        ]
        put(root / "label_2" / f"{stem}.txt", "\n".join(lines) + "\n")
        lines = [
            f"{label} -1 -1 -10 {x} {y} {x + w}.0 {y + h}.0 -1 -1 -1 -1000 -1000 -1000 -10 {score!r}"
            for name, label, (x, y, w, h), score in scene.detections
            if name == stem
        ]
        put(found / f"{stem}.txt", "\n".join(lines))
    return root, found


def open_images(scene: Scene, folder: Path, *, described: bool = True) -> tuple[Path, Path]:
    """Write CSV files of boxes and of detections, the images, and the classes' descriptions."""
    heading = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf"
    lines = [heading]
    for stem in scene.images:
        put(folder / "validation" / f"{stem}.jpg", header(*scene.images[stem]))

    def corners(box: Box, stem: str) -> list[str]:
        (x, y, w, h), (width, height) = box, scene.images[stem]
        return [repr(v) for v in (x / width, (x + w) / width, y / height, (y + h) / height)]

    for stem, label, box, crowd in scene.objects:
        lines.append(",".join([stem, "xclick", CODES[label], "1", *corners(box, stem), "0", "0", str(int(crowd))]))
    truth = put(folder / "validation-annotations-bbox.csv", "\n".join(lines) + "\n")
    lines = ["ImageID,LabelName,Score,XMin,XMax,YMin,YMax"]
    for stem, label, box, score in scene.detections:
        lines.append(",".join([stem, CODES[label], repr(score), *corners(box, stem)]))
    if described:
        names = "".join(f"{CODES[name]},{name}\n" for name in CLASSES)
        put(folder / "class-descriptions-boxable.csv", names)
    return truth, put(folder / "detections.csv", "\n".join(lines) + "\n")


def data_set(folder: Path, labels: str | bytes = LABELS, yaml: str = "val: images/val\nnames: [cup, dog]\n") -> Path:
    """Write a YOLO data set of one image, 7, of 64 x 32 pixels; return its data.yaml."""
    put(folder / "images" / "val" / "7.PNG", header(64, 32))
    put(folder / "labels" / "val" / "7.txt", labels)
    return put(folder / "data.yaml", yaml)


def predicted(folder: Path, text: str | bytes, name: str = "7.txt") -> Path:
    """Write a file of YOLO's predictions; return its folder."""
    return put(folder / "runs" / "labels" / name, text).parent
