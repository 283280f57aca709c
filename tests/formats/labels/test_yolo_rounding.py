"""Fractions of images in YOLO and Open Images files: pixels are those that were written, however they are rounded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import probox
from probox import GroundTruth, read_detections, read_truth
from probox.formats.label_files import rounding_of

from .world import data_set, header, predicted, put


def many_boxes(decimals: int | None) -> tuple[dict[str, tuple[int, int]], list[tuple[str, tuple[float, ...]]]]:
    """Return images of any sizes, and boxes with so many decimals of a pixel; None for all that there are."""
    rng = np.random.default_rng(5)
    images = {str(n): (int(w), int(h)) for n, (w, h) in enumerate(rng.integers(100, 660, (60, 2)))}
    boxes = []
    for stem, (width, height) in images.items():
        for _ in range(6):
            x, y = rng.uniform(0, width - 12), rng.uniform(0, height - 12)
            w, h = rng.uniform(4, width - x - 2), rng.uniform(4, height - y - 2)
            box = (x, y, w, h) if decimals is None else tuple(float(np.round(v, decimals)) for v in (x, y, w, h))
            boxes.append((stem, box))
    return images, boxes


WRITTEN = {
    "3 decimals": "{:.3f}",
    "4 decimals": "{:.4f}",
    "5 decimals": "{:.5f}",
    "6 decimals": "{:.6f}",
    "6 digits": "{:g}",
    "7 digits": "{:.7g}",
    "double precision": "{!r}",
}


def pixels_as_written(folder: Path, decimals: int | None, write: Callable[[float], str]) -> tuple[GroundTruth, ...]:
    """Return a COCO file, and the same as YOLO's labels, whose numbers are so written."""
    images, boxes = many_boxes(decimals)
    coco = {
        "images": [{"id": int(stem), "width": w, "height": h} for stem, (w, h) in images.items()],
        "categories": [{"id": 1, "name": "cup"}],
        "annotations": [
            {"id": n, "image_id": int(stem), "category_id": 1, "bbox": list(box)} for n, (stem, box) in enumerate(boxes)
        ],
    }
    lines: dict[str, list[str]] = {}
    for stem, (x, y, w, h) in boxes:
        width, height = images[stem]
        numbers = ((x + w / 2) / width, (y + h / 2) / height, w / width, h / height)
        lines.setdefault(stem, []).append(" ".join(["0", *map(write, numbers)]))
    for stem, size in images.items():
        put(folder / "images" / f"{stem}.png", header(*size))
        put(folder / "labels" / f"{stem}.txt", "\n".join(lines[stem]))
    yaml = put(folder / "data.yaml", "val: images\nnames: [cup]\n")
    return probox.read_truth(put(folder / "coco.json", json.dumps(coco))), read_truth(yaml)


@pytest.mark.parametrize("name", WRITTEN)
def test_rounding_adds_no_pixels(tmp_path: Path, name: str) -> None:
    """Boxes of whole pixels have the pixels that they have in COCO's files, though no fraction of 640 is exact."""
    coco, labels = pixels_as_written(tmp_path, 0, WRITTEN[name].format)
    np.testing.assert_array_equal(labels.masks.boxes, coco.masks.boxes)
    np.testing.assert_array_equal(labels.as_box_masks().boxes, coco.masks.boxes)
    np.testing.assert_allclose(labels.extents, coco.extents, rtol=0, atol=1e-9)


@pytest.mark.parametrize("write", [str, lambda number: str(np.float32(number)), lambda n: repr(float(np.float32(n)))])
def test_single_precision_adds_no_pixels(tmp_path: Path, write: Callable[[float], str]) -> None:
    coco, labels = pixels_as_written(tmp_path, 0, write)
    np.testing.assert_array_equal(labels.masks.boxes, coco.masks.boxes)


@pytest.mark.parametrize("decimals", [2, 3, 4, None])
def test_full_precision_is_not_rounded(tmp_path: Path, decimals: int | None) -> None:
    coco, labels = pixels_as_written(tmp_path, decimals, repr)
    np.testing.assert_array_equal(labels.masks.boxes, coco.masks.boxes)
    np.testing.assert_allclose(labels.boxes, coco.boxes, rtol=0, atol=1e-9)


def write_boxes(
    folder: Path, images: dict[str, tuple[int, int]], boxes: list[tuple[str, tuple[float, ...]]], form: str, name: str
) -> tuple[Path, Path]:
    """Write boxes as COCO results, and as predictions of another format with fractions of the image in this form."""
    results, lines = [], dict[str, list[str]]()
    for stem, (x, y, w, h) in boxes:
        width, height = images[stem]
        results.append({"image_id": int(stem), "category_id": 1, "bbox": [x, y, w, h], "score": 0.75})
        if name == "open images":
            numbers = [
                f"{stem},cup,0.75",
                *map(form.format, (x / width, (x + w) / width, y / height, (y + h) / height)),
            ]
            lines.setdefault("", ["ImageID,LabelName,Score,XMin,XMax,YMin,YMax"]).append(",".join(numbers))
            continue
        numbers = list(map(form.format, ((x + w / 2) / width, (y + h / 2) / height, w / width, h / height)))
        numbers.insert(0 if name == "score-first" else 4, "0.75")
        lines.setdefault(stem, []).append(" ".join(["0", *numbers]))
    coco = put(folder / "results.json", json.dumps(results))
    if name == "open images":
        return coco, put(folder / "found.csv", "\n".join(lines[""]))
    for stem, text in lines.items():
        predicted(folder, "\n".join(text), f"{stem}.txt")
    return coco, Path(f"{folder / 'runs' / 'labels'}:{name}")


def data_set_of(images: dict[str, tuple[int, int]]) -> probox.Dataset:
    widths, heights = np.array(list(images.values()), np.int32).T
    ids = np.array(list(map(int, images)))
    return probox.Dataset(image_ids=ids, widths=widths, heights=heights, classes=("cup", "dog"))


@pytest.mark.parametrize("name", ["score-last", "score-first", "open images"])
@pytest.mark.parametrize("form", list(WRITTEN)[2:])
def test_predictions_of_whole_pixels_are_those_of_coco_results(tmp_path: Path, form: str, name: str) -> None:
    images, boxes = many_boxes(0)
    truth = data_set_of(images)
    coco, found = (read_detections(path, truth) for path in write_boxes(tmp_path, images, boxes, WRITTEN[form], name))
    order = np.argsort(coco.image_ids, kind="stable")
    again = np.argsort(found.image_ids, kind="stable")
    for column in ("image_ids", "boxes", "extents", "label_probs", "labels", "scores"):
        np.testing.assert_array_equal(getattr(found, column)[again], getattr(coco, column)[order], err_msg=column)


@pytest.mark.parametrize("name", ["score-last", "open images"])
def test_predictions_between_pixels_stay(tmp_path: Path, name: str) -> None:
    images, boxes = many_boxes(0)
    rng = np.random.default_rng(2)
    boxes = [
        (stem, (x + rng.uniform(0.1, 0.4), y + rng.uniform(0.1, 0.4), w + 0.5, h + 0.5)) for stem, (x, y, w, h) in boxes
    ]
    _, path = write_boxes(tmp_path, images, boxes, "{:.6f}", name)
    found = read_detections(path, data_set_of(images))
    assert len(found) == len(boxes)
    assert (np.abs(found.boxes - np.round(found.boxes)) > 0.05).all()


def test_predictions_of_few_decimals_stay(tmp_path: Path) -> None:
    """Four decimals of 640 pixels: one corner of ten would be put on the edge of a pixel by chance."""
    data_set(tmp_path)
    put(tmp_path / "images" / "val" / "7.PNG", header(640, 640))
    found = read_detections(
        predicted(tmp_path, "0 0.5000 0.5000 0.1001 0.2500 0.9\n"), read_truth(tmp_path / "data.yaml")
    )
    np.testing.assert_allclose(found.boxes, [[320 - 32.032, 240, 320 + 32.032, 400]], rtol=0, atol=1e-9)


def test_a_prediction_of_whole_pixels(tmp_path: Path) -> None:
    """Six digits of 261 x 249 pixels moved a corner across a pixel, which changed PDQ from 0.50 to 0.63."""
    data_set(tmp_path, "0 0.310345 0.732932 0.191571 0.357430\n")
    put(tmp_path / "images" / "val" / "7.PNG", header(261, 249))
    truth = read_truth(tmp_path / "data.yaml")
    results = [{"image_id": 7, "category_id": 1, "bbox": [56, 138, 52, 89], "score": 0.9}]
    coco = put(tmp_path / "results.json", json.dumps(results))
    labels = predicted(tmp_path, "0 0.314176 0.732932 0.199234 0.357430 0.9\n")
    values = [probox.evaluate(truth, read_detections(path, truth)).pdq for path in (coco, labels)]
    assert values[0] == values[1]
    assert round(values[0], 4) == 0.5042


def test_a_corner_just_before_a_pixel(tmp_path: Path) -> None:
    """199.9998 of 640 pixels is what it says in full, and pixel 200 where six decimals cannot say more."""
    truth = []
    for x1, write in ((199.9998, repr), (199.9998, "{:.6f}".format), (200.0, "{:.6f}".format), (199.99, "{:g}".format)):
        numbers = [(x1 + 260.0) / 2 / 640, 0.5, (260.0 - x1) / 640, 0.5]
        folder = tmp_path / str(len(truth))
        data_set(folder, " ".join(["0", *map(write, numbers)]))
        put(folder / "images" / "val" / "7.PNG", header(640, 480))
        truth.append(int(read_truth(folder / "data.yaml").masks.boxes[0, 0]))
    assert truth == [199, 200, 200, 199]


def test_files_of_several_tools_in_a_folder(tmp_path: Path) -> None:
    """A file tells its decimals itself; one of a few short numbers takes those of the folder."""
    assert rounding_of([["0.123456", "0.250000"], ["0.5", "0.25"]]) == [0.75e-6, 0.75e-6]
    assert rounding_of([["0.1234", "0.2500"], ["0.12345678901234", "0.1"]]) == [0.75e-4, 0.75e-12]
    assert rounding_of([["0.12346", "0.1", "0.2"], ["0.12345678901234", "0.1"]]) == [0.75e-12, 0.75e-12]
    assert rounding_of([["0.5", "0.25"]]) == rounding_of([[], ["0.5"]])[1:] == [0.75e-12]
    assert rounding_of([["0.123457", "0.00123457", "1.23457e-05"]]) == [0.75e-6]
    assert rounding_of([["1e-1234_5", "1_0e-2", "+.5", "0", "1"]]) == [0.75e-12]
    assert rounding_of([]) == []


def test_thin_boxes_stay(tmp_path: Path) -> None:
    truth = read_truth(data_set(tmp_path, "0 0.500 0.500 0.001 0.125\n"))
    assert truth.extents.tolist() == [[0.064, 4.0]]
