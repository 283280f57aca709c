"""YOLO's folders: where things are looked for, what lines mean, and a sentence for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import frameworks
from tests.amounts import examples

import probox
from probox import GroundTruth, InputError, read_detections, read_truth, read_yolo, read_yolo_truth
from probox.analysis.validation import validate
from probox.formats.written_digits import rounding_of
from probox.formats.yolo.order import find_order
from probox.tables.coco_classes import COCO_CLASSES

from .world import header, make_scene, put, yolo

LABELS = "0 0.5 0.5 0.25 0.5\n1 0.25 0.25 0.5 0.125\n"


def data_set(folder: Path, labels: str | bytes = LABELS, yaml: str = "val: images/val\nnames: [cup, dog]\n") -> Path:
    put(folder / "images" / "val" / "7.PNG", header(64, 32))
    put(folder / "labels" / "val" / "7.txt", labels)
    return put(folder / "data.yaml", yaml)


def predicted(folder: Path, text: str | bytes, name: str = "7.txt") -> Path:
    return put(folder / "runs" / "labels" / name, text).parent


# --- truth ---


def test_boxes_and_polygons(tmp_path: Path) -> None:
    polygon = "0 0.25 0.25 0.75 0.25 0.75 0.75 0.5 1.0\n"
    truth = read_truth(data_set(tmp_path, LABELS + polygon))
    assert (truth.classes, truth.image_ids.tolist(), truth.dataset.shapes.tolist()) == (("cup", "dog"), [7], [[64, 32]])
    assert truth.dataset.file_names == ("images/val/7.PNG",)
    assert truth.boxes.tolist() == [[24, 8, 40, 24], [0, 6, 32, 10], [16, 8, 48, 32]]
    assert truth.areas[:2].tolist() == [256, 128]
    coco = {
        "images": [{"id": 7, "width": 64, "height": 32}],
        "categories": [{"id": 1, "name": "cup"}],
        "annotations": [{"image_id": 7, "category_id": 1, "segmentation": [[16, 8, 48, 8, 48, 24, 32, 32]]}],
    }
    same = probox.read_coco(put(tmp_path / "coco.json", json.dumps(coco)))
    np.testing.assert_array_equal(truth.masks.to_array(2, 32, 64), same.masks.to_array(0, 32, 64))
    assert truth.areas[2] == same.areas[0]
    assert truth.notes == ("2 objects have no mask: their boxes are used as masks",)


@examples(15)
@given(
    st.tuples(st.integers(1, 3000), st.integers(1, 3000)),
    st.tuples(*[st.floats(0, 1) for _ in range(4)]),
    st.floats(0, 1),
)
def test_a_box_is_that_of_its_fractions(
    tmp_path_factory: pytest.TempPathFactory, size: tuple[int, int], box: tuple[float, ...], score: float
) -> None:
    """Width is w * W, and x is cx * W - w * W / 2, in truth and predictions alike."""
    folder = tmp_path_factory.mktemp("any")
    words = [f"{number:.20f}" for number in box]
    numbers, box = " ".join(words), tuple(map(float, words))
    yaml = data_set(folder, f"1 {numbers}\n")
    put(folder / "images" / "val" / "7.PNG", header(*size))
    truth = read_truth(yaml)
    w, h = box[2] * size[0], box[3] * size[1]
    x, y = box[0] * size[0] - w / 2, box[1] * size[1] - h / 2
    found = read_yolo(predicted(folder, f"1 {numbers} {score!r}"), truth, order="score-last")
    for table in (truth, found):
        np.testing.assert_allclose(table.extents, [[w, h]], rtol=0, atol=2e-9 * max(size))
        np.testing.assert_allclose(table.boxes, [[x, y, x + w, y + h]], rtol=0, atol=1e-7 * max(size))
    assert found.scores.tolist() == [score]


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
    return probox.read_coco(put(folder / "coco.json", json.dumps(coco))), read_truth(yaml)


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


YAMLS = {
    "list": "val: images/val\nnames: [cup, dog]\n",
    "numbers": "val: images/val\nnames:\n  0: cup\n  1: dog\nnc: 2\n",
    "numbers as text": "val: images/val\nnames: {'0': cup, '1': dog}\n",
    "path": "path: .\nval: images/val\nnames: [cup, dog]\n",
    "another path": "path: /nowhere/datasets/x\nval: images/val\nnames: [cup, dog]\n",
    "above": "val: ../images/val\nnames: [cup, dog]\n",
    "list of folders": "val: [images/val, images/val]\nnames: [cup, dog]\n",
    "a file that lists": "val: val.txt\nnames: [cup, dog]\n",
    "a file that lists from here": "val: here.txt\nnames: [cup, dog]\n",
    "an image": "val: images/val/7.PNG\nnames: [cup, dog]\n",
    "byte order mark": "\ufeffval: images/val\nnames: [cup, dog]\n",
    "valid": "train: images/val\nvalid: images/val\nnames: [cup, dog]\n",
}


@pytest.mark.parametrize("name", YAMLS)
def test_ways_to_write_it(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "data"
    yaml = data_set(folder, yaml=YAMLS[name])
    put(folder / "val.txt", "./images/val/7.PNG\n\n")
    put(folder / "here.txt", "images/val/7.PNG\r\n")
    truth = read_truth(yaml)
    assert (len(truth), truth.classes, truth.dataset.file_names) == (2, ("cup", "dog"), ("images/val/7.PNG",))
    said = "the path '/nowhere/datasets/x' is not there: images were looked for in"
    assert any(note.startswith(said) for note in truth.notes) == (name == "another path")


def test_gaps_in_names(tmp_path: Path) -> None:
    truth = read_truth(data_set(tmp_path, yaml="val: images/val\nnames: {0: cup, 1: dog, 4: cat}\nnc: 5\n"))
    assert truth.classes == ("cup", "dog", "class 2", "class 3", "cat")
    assert any("leaves out the names of 2 class numbers: 2, 3" in note for note in truth.notes)


def test_another_part(tmp_path: Path) -> None:
    yaml = data_set(tmp_path, yaml="train: images/train\nval: images/val\ntest: images/test\nnames: [cup, dog]\n")
    put(tmp_path / "images" / "test" / "8.jpg", header(10, 10))
    put(tmp_path / "labels" / "test" / "8.txt", "0 .5 .5 1 1\n")
    assert read_truth(yaml).image_ids.tolist() == [7]
    for truth in (read_truth(f"{yaml}:test"), read_yolo_truth(yaml, split="test"), read_truth(f"{tmp_path}:test")):
        assert truth.image_ids.tolist() == [8]
    yaml.write_text("train: images/train\ntest: images/test\nval:\nnames: [cup, dog]\n")
    truth = read_truth(yaml)
    assert (truth.image_ids.tolist(), any("has no val: its test images are used" in n for n in truth.notes)) == (
        [8],
        True,
    )


def test_a_folder_without_data_yaml(tmp_path: Path) -> None:
    data_set(tmp_path).unlink()
    truth = read_truth(tmp_path)
    assert (truth.classes, len(truth)) == (("class 0", "class 1"), 2)
    assert any("nothing names the classes" in note for note in truth.notes)
    put(tmp_path / "labels" / "classes.txt", "cup\ndog\ncat\n")
    assert read_truth(tmp_path).classes == ("cup", "dog", "cat")


@pytest.mark.parametrize("folder", ["", "val"])
def test_a_data_yaml_that_names_classes_alone(tmp_path: Path, folder: str) -> None:
    yaml = put(tmp_path / "data.yaml", "names:\n- cup\n- dog\nnc: 2\n")
    with pytest.raises(InputError, match=r"add it: val: images/val, or put folders images and labels beside this file"):
        read_truth(yaml)
    put(tmp_path / "images" / folder / "7.png", header(64, 32))
    put(tmp_path / "labels" / folder / "7.txt", LABELS)
    for path in (yaml, tmp_path):
        truth = read_truth(path)
        assert (truth.classes, truth.labels.tolist()) == (("cup", "dog"), [0, 1])
    with pytest.raises(InputError, match="expected images of test, but the folder images holds"):
        read_truth(f"{yaml}:test")


def test_a_data_set_that_supervision_wrote(tmp_path: Path) -> None:
    library = frameworks.supervision()
    path = str(tmp_path / "a.png")
    pytest.importorskip("PIL.Image").new("RGB", (261, 249)).save(path)
    held = library.Detections(xyxy=np.array([[56.0, 138, 106, 227], [0, 0, 261, 249]]), class_id=np.array([1, 0]))
    data = library.DetectionDataset(classes=["cup", "dog"], images=[path], annotations={path: held})
    out = tmp_path / "out"
    data.as_yolo(str(out / "images"), str(out / "labels"), str(out / "data.yaml"))
    truth = read_truth(out / "data.yaml")
    assert truth.boxes.tolist() == held.xyxy.tolist()
    assert (truth.classes, truth.labels.tolist()) == (("cup", "dog"), [1, 0])
    assert truth.dataset.file_names == ("images/a.png",)


def test_one_data_yaml_above(tmp_path: Path) -> None:
    """As exported: train/images, valid/images and a data.yaml beside train and valid."""
    put(tmp_path / "valid" / "images" / "a.jpg", header(10, 10))
    put(tmp_path / "valid" / "labels" / "a.txt", "1 .5 .5 1 1\n")
    put(tmp_path / "data.yaml", "train: ../train/images\nval: ../valid/images\nnames: [cup, dog]\nnc: 2\n")
    for path in (tmp_path / "data.yaml", tmp_path, tmp_path / "valid"):
        truth = read_truth(path)
        assert (truth.classes, truth.labels.tolist()) == (("cup", "dog"), [1])


def test_what_has_no_objects(tmp_path: Path) -> None:
    """An image without a label file, or with an empty one; a label file without an image is counted."""
    yaml = data_set(tmp_path)
    put(tmp_path / "images" / "val" / "8.jpeg", header(10, 20))
    put(tmp_path / "images" / "val" / "9.bmp", header(10, 20))
    put(tmp_path / "images" / "val" / "readme.md", "no image")
    put(tmp_path / "labels" / "val" / "9.txt", "\n \n")
    put(tmp_path / "labels" / "val" / "10.txt", LABELS)
    truth = read_truth(yaml)
    assert (truth.image_ids.tolist(), truth.image_rows.tolist()) == ([7, 8, 9], [0, 0])
    assert "1 label files belong to none of the images: left out" in truth.notes


def test_label_files_that_are_missing_are_counted(tmp_path: Path) -> None:
    file = data_set(tmp_path)
    put(tmp_path / "images" / "val" / "8.png", header(64, 32))
    put(tmp_path / "images" / "val" / "9.png", header(64, 32))
    put(tmp_path / "labels" / "val" / "9.TXT", LABELS)
    truth = read_truth(file)
    assert len(truth) == 4
    assert "1 of 3 images have no label file: taken for images without objects" in truth.notes


def test_lines_that_stand_twice(tmp_path: Path) -> None:
    truth = read_truth(data_set(tmp_path, LABELS + LABELS))
    assert (len(truth), "2 lines stand twice in their label file: one of each is used" in truth.notes) == (2, True)


def test_links_in_circles(tmp_path: Path) -> None:
    yaml = data_set(tmp_path / "data")
    (tmp_path / "data" / "images" / "val" / "again").symlink_to(tmp_path / "data" / "images")
    (tmp_path / "data" / "images" / "val" / "8.png").symlink_to(tmp_path / "data" / "images" / "val" / "7.PNG")
    assert read_truth(yaml).image_ids.tolist() == [7, 8]


@pytest.mark.parametrize(
    "written", ["val: /", "val: ../../..", "path: /\nval: .", "path: /\nval: {above}", "val: {above}"]
)
def test_folders_outside_the_data_set_are_not_walked(tmp_path: Path, written: str) -> None:
    """Neither the whole file system nor the folder above: images there may be anything."""
    put(tmp_path / "above" / "other" / "images" / "8.png", header(64, 32))
    yaml = data_set(
        tmp_path / "above" / "data", yaml=written.format(above=tmp_path / "above") + "\nnames: [cup, dog]\n"
    )
    with pytest.raises(InputError, match=r"data.yaml: val: expected images in .* itself: .*; set path to the data set"):
        read_truth(yaml)


def test_a_folder_outside_the_data_set_that_holds_images_is_read(tmp_path: Path) -> None:
    data_set(tmp_path / "other")
    put(tmp_path / "other" / "images" / "val" / "below" / "8.png", header(64, 32))
    yaml = put(tmp_path / "data" / "data.yaml", f"val: {tmp_path}/other/images/val\nnames: [cup, dog]\n")
    with pytest.raises(InputError, match=r"val: expected images in .* itself: folders below it are read only"):
        read_truth(yaml)
    (tmp_path / "other" / "images" / "val" / "below").rename(tmp_path / "below")
    assert read_truth(yaml).image_ids.tolist() == [7]
    (tmp_path / "below").rename(tmp_path / "other" / "images" / "val" / "below")
    put(yaml, f"path: {tmp_path}/other\nval: images/val\nnames: [cup, dog]\n")
    assert read_truth(yaml).image_ids.tolist() == [7, 8]


@pytest.mark.parametrize("link", ["images/val/more", "images/test"])
def test_links_out_of_the_data_set_are_refused(tmp_path: Path, link: str) -> None:
    put(tmp_path / "other" / "8.png", header(64, 32))
    yaml = data_set(tmp_path / "data", yaml="val: images/val\ntest: images/test\nnames: [cup, dog]\n")
    (tmp_path / "data" / link).symlink_to(tmp_path / "other")
    part = "test" if link.endswith("test") else "val"
    wanted = rf"data.yaml: {part}: the link \S+/{link} leads to \S+/other, outside the data set's folder"
    with pytest.raises(InputError, match=wanted):
        read_truth(f"{yaml}:{part}")
    yaml.unlink()
    with pytest.raises(InputError, match=rf"/data: the link \S+/{link} leads to "):
        read_truth(f"{tmp_path / 'data'}:{part}")


def test_folders_of_images_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probox.formats.yolo.places.MOST_FOLDERS", 2)
    yaml = data_set(tmp_path)
    put(tmp_path / "images" / "val" / "a" / "8.png", header(64, 32))
    assert len(read_truth(yaml).image_ids) == 2
    put(tmp_path / "images" / "val" / "b" / "9.png", header(64, 32))
    with pytest.raises(InputError, match=r"val: expected at most 2 folders of images, but .* holds more; name"):
        read_truth(yaml)


def test_many_values_in_a_data_yaml_are_refused(tmp_path: Path) -> None:
    yaml = data_set(tmp_path, yaml=f"val: [{'a,' * 60000}]\nnames: [cup, dog]\n")
    with pytest.raises(InputError, match="expected at most 49,152 values, but got more"):
        read_truth(yaml)


WRONG_LABELS = {
    b"x 0.5 0.5 0.5 0.5": "line 1: expected the number of a class first, but got 'x'; count classes from 0",
    b"\n-1 0.5 0.5 0.5 0.5": "line 2: expected the number of a class first, but got '-1'",
    b"0.5 0.5 0.5 0.5 0.5": "line 1: expected the number of a class first",
    b"2 0.5 0.5 0.5 0.5": "line 1: class 2 is not among the 2 classes, 0 to 1; name all classes in data.yaml",
    b"0 0.5 0.5 0.5": "line 1: expected class and 4 numbers",
    b"0 0.5 0.5 0.5 0.5 0.9": "line 1: expected class cx cy w h, but got one number more; this looks like predictions",
    b"0 0.5 0.5 0.5 0.5 0.5 0.5 0.5": "line 1: expected class and 4 numbers",
    b"0 nan 0.5 0.5 0.5": "line 1: expected finite numbers, but got 'nan'",
    b"0 0.5 inf 0.5 0.5": "line 1: expected finite numbers, but got 'inf'",
    b"0 0.5 half 0.5 0.5": "line 1: expected a number, but got 'half'",
    b"0 312 0.5 0.5 0.5": "from 0 to 1, but got 312; divide pixels by the image's width and height",
    b"0 0.5 0.5 -0.5 0.5": "from 0 to 1, but got -0.5",
    b"0 0.5 0.5 -0.005 0.5": "line 1: expected w and h of at least 0",
    b"0 0.5 0.5 0.5 0.5\n\xff": "line 2: expected UTF-8 text, but got byte 0xff; save the file as UTF-8",
    b"0 0.5 \0": "expected text, but this is a binary file",
}


@pytest.mark.parametrize("labels", WRONG_LABELS)
def test_wrong_labels(tmp_path: Path, labels: bytes) -> None:
    yaml = data_set(tmp_path, labels)
    with pytest.raises(InputError) as caught:
        read_truth(yaml)
    assert WRONG_LABELS[labels] in str(caught.value)
    assert str(tmp_path / "labels" / "val" / "7.txt") in str(caught.value)
    report = validate(yaml, predicted(tmp_path, ""))
    assert (report.ok, sum(finding.count for finding in report.errors)) == (False, 1)


WRONG_YAMLS = {
    "": "expected keys such as val and names, but got nothing",
    "- a\n- b\n": "expected keys such as val and names, but got list",
    "val: [": "line 1: is no YAML that can be read: expected the node content, but found '<stream end>'",
    "val:\nmine: images/val\nnames: [cup]\n": "expected val: a folder of images, or a file that lists them; add it, or",
    "val: images/other\nnames: [cup, dog]\n": "val: expected images at 'images/other', but found nothing: looked at",
    "path: ../datasets/x\nval: other\nnames: [cup]\n": "datasets/x/other",
    "val: labels\nnames: [cup, dog]\n": "val: expected images in 'labels', but found none",
    "val: images/val\nnames: 3\n": "names: expected a list of names",
    "val: images/val\nnames: []\n": "names: expected the names of classes, but got none",
    "val: images/val\nnames: [yes, no]\n": "names[0]: expected a name, but got bool ('True'); put names such as yes",
    "val: images/val\nnames: {cup: 0}\n": "names: expected class numbers from 0 to 16383, but got str ('cup')",
    "val: images/val\nnames: {99999999999: cup}\n": "expected class numbers from 0",
    "val: images/val\nnames: {0: cup, 9999: dog}\n": "names: leaves out the names of 9,998 class numbers",
    "val: images/val\nnames: [cup, cup]\n": "the name 'cup' stands for several classes",
    "val: images/val\nnames: [cup, dog]\nnc: 3\n": "expected 3 names, as nc says, but got 2",
    "val: images/val\nnc: many\n": "nc: expected the number of classes",
    "val: images/val\nnames: [cup, dog]\npath: 5\n": "path: expected a folder, but got int",
    "a: &a [1]\nval: images/val\nnames: *a\n": "aliases (*name) are not read",
    "val: images/val\nnames: [2024-13-45, dog]\n": "put it in quotes",
    "val: val.txt\nnames: [cup, dog]\n": "line 1: expected an image in every line, but got 'images/val/7.doc'",
    "val: missing.txt\nnames: [cup, dog]\n": "but found nothing",
    "val: gone.txt\nnames: [cup, dog]\n": "gone.png: no such file; put the image there, or take it off the list",
}


@pytest.mark.parametrize("yaml", WRONG_YAMLS)
def test_wrong_data_yaml(tmp_path: Path, yaml: str) -> None:
    path = data_set(tmp_path / "d", yaml=yaml)
    put(tmp_path / "d" / "val.txt", "images/val/7.doc\n")
    put(tmp_path / "d" / "gone.txt", "images/val/7.PNG\nimages/val/gone.png\n")
    with pytest.raises(InputError) as caught:
        read_truth(path)
    assert WRONG_YAMLS[yaml] in str(caught.value)


def test_what_is_not_there(tmp_path: Path) -> None:
    yaml = data_set(tmp_path)
    with pytest.raises(InputError, match="has no part 'test', but val; name one that it has behind a colon"):
        read_truth(f"{yaml}:test")
    put(tmp_path / "images" / "val" / "8.tif", b"II*\0" + bytes(40))
    with pytest.raises(InputError, match=r"8.tif: expected a PNG, JPEG, BMP, GIF or WebP image, but got a TIFF image"):
        read_truth(yaml)
    (tmp_path / "images" / "val" / "8.tif").unlink()
    (tmp_path / "labels" / "val" / "7.txt").unlink()
    with pytest.raises(InputError, match=r"none of the 1 images has a label file: .*7.txt is not there"):
        read_truth(yaml)
    put(tmp_path / "more.yaml", "val: images/val\nnames: [cup]\n")
    (tmp_path / "data.yaml").rename(tmp_path / "other.yaml")
    with pytest.raises(InputError, match=r"several files here name images and classes: more.yaml, other.yaml"):
        read_truth(tmp_path)


# --- predictions ---


@pytest.fixture
def truth(tmp_path: Path) -> GroundTruth:
    return read_truth(data_set(tmp_path / "truth"))


def test_predictions(truth: GroundTruth, tmp_path: Path) -> None:
    """Class numbers are columns, the other classes share the rest, folders of runs are looked into."""
    folder = predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n0 0.25 0.25 0.125 0.125 0.01\n")
    for path in (folder, folder.parent):
        found = read_detections(path, truth)
        assert found.boxes.tolist() == [[24, 8, 40, 24], [12, 6, 20, 10]]
        assert found.labels.tolist() == [1, 0]
        np.testing.assert_allclose(found.label_probs, [[0.25, 0.75], [0.01, 0.99]])


def test_polygons_and_tracks(truth: GroundTruth, tmp_path: Path) -> None:
    folder = predicted(tmp_path, "1 0.25 0.25 0.75 0.25 0.75 0.75 0.9\n")
    found = read_detections(folder, truth)
    assert (found.boxes.tolist(), found.scores.tolist()) == ([[16, 8, 48, 24]], [0.9])
    assert "1 detections are polygons: the boxes around them are used" in found.notes
    predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.9 1\n1 0.5 0.5 0.25 0.25 0.8 12\n")
    found = read_detections(folder, truth)
    assert (found.boxes[0].tolist(), found.scores.tolist()) == ([24, 8, 40, 24], [0.9, 0.8])


WRONG_PREDICTIONS = {
    "1 0.5 0.5 0.25 0.5": "line 1: expected a score beside class cx cy w h, but there is none; run the detector with "
    "save_txt=True save_conf=True",
    "1 0.5 0.5": "line 1: expected class cx cy w h score, but got 3 numbers",
    "1 0.1 0.1 0.5 0.1 0.5 0.5": "line 1: expected class cx cy w h score, or class x1 y1 x2 y2 ... score, but got 7",
    "2 0.5 0.5 0.25 0.5 0.9": "line 1: class 2 is not among the 2 classes, 0 to 1",
    "dog 0.5 0.5 0.25 0.5 0.9": "line 1: expected the number of a class first",
    "1 320 240 64 48 0.9": "from 0 to 1, but got 320; divide pixels by the image's width and height",
    "1 0.5 0.5 0.25 nan 0.9": "line 1: expected finite numbers",
    "1 0.9 0.9 0.9 0.9 0.9": "read as class cx cy w h score, 1 of 1 boxes reach outside their images",
}


@pytest.mark.parametrize("text", WRONG_PREDICTIONS)
def test_wrong_predictions(truth: GroundTruth, tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_detections(predicted(tmp_path, text), truth)
    assert WRONG_PREDICTIONS[text] in str(caught.value)
    report = validate(tmp_path / "truth" / "data.yaml", predicted(tmp_path, text))
    assert not report.ok


def test_tracks_in_place_of_scores(truth: GroundTruth, tmp_path: Path) -> None:
    folder = predicted(tmp_path, "0 0.5 0.5 0.25 0.5 1\n1 0.25 0.25 0.5 0.125 2\n")
    with pytest.raises(InputError, match=r"line 2: expected a score from 0 to 1, but .* up to 2: tracks; .*save_conf"):
        read_yolo(folder, truth)
    predicted(tmp_path, "0 0.5 0.5 0.25 0.5 1\n" * 10)
    with pytest.raises(InputError, match="up to 1: tracks"):
        read_yolo(folder, truth)
    assert len(read_yolo(folder, truth, order="score-last")) == 10
    predicted(tmp_path, "0 0.5 0.5 0.25 0.5 1\n" * 9)
    assert read_yolo(folder, truth).scores.tolist() == [1.0] * 9


def test_an_empty_folder_is_called_empty(truth: GroundTruth, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InputError, match="this folder is empty; name the folder of text files"):
        read_detections(tmp_path / "nothing", truth)


def test_scores_that_are_none(truth: GroundTruth, tmp_path: Path) -> None:
    folder = predicted(tmp_path, "1 0.5 0.5 0.25 0.5 90\n")
    with pytest.raises(InputError, match="line 1: expected a score between 0 and 1, but got 90"):
        read_yolo(folder, truth, order="score-last")
    with pytest.raises(InputError, match="expected order to be one of score-last, score-first, but got 'first'"):
        read_yolo(folder, truth, order="first")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected one of score-last, score-first behind the colon, but got 'first'"):
        read_detections(f"{folder}:first", truth)


def test_images_that_nobody_knows(truth: GroundTruth, tmp_path: Path) -> None:
    folder = predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n")
    predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n" * 2, "8.txt")
    predicted(tmp_path, "", "9.txt")
    found = read_detections(folder, truth)
    assert len(found) == 1
    assert "2 detections in 1 images that the ground truth does not have were left out" in found.notes
    (folder / "7.txt").unlink()
    with pytest.raises(InputError, match=r"none of the 2 images that it names is one of the ground truth .*'8', there"):
        read_detections(folder, truth)


def test_equal_names_in_two_folders(tmp_path: Path) -> None:
    for part in ("a", "b"):
        put(tmp_path / "images" / part / "7.png", header(64, 32))
        put(tmp_path / "labels" / part / "7.txt", LABELS)
    truth = read_truth(put(tmp_path / "data.yaml", "val: images\nnames: [cup, dog]\n"))
    assert truth.image_ids.tolist() == [1, 2]
    folder = predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n")
    with pytest.raises(InputError, match=r"'7' may be 'images/a/7.png' or 'images/b/7.png'; name images with their"):
        read_detections(folder, truth)
    (folder / "7.txt").unlink()
    predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n", "b/7.txt")
    assert read_detections(folder, truth).image_ids.tolist() == [2]


def test_truth_of_other_formats(tmp_path: Path) -> None:
    """COCO truth: names of files, or ids where there are none; class numbers count in order of category id."""
    coco = {
        "images": [{"id": 7, "width": 64, "height": 32}],
        "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "cup"}],
        "annotations": [],
    }
    folder = predicted(tmp_path, "1 0.5 0.5 0.25 0.5 0.75\n", "000007.txt")
    found = read_detections(folder, probox.read_coco(put(tmp_path / "c.json", json.dumps(coco))))
    assert (found.image_ids.tolist(), found.classes[found.labels[0]]) == ([7], "dog")
    assert any(
        "class numbers count the ground truth's classes in order of category id: 0 is cup" in n for n in found.notes
    )


def test_category_ids_are_those_of_results(tmp_path: Path) -> None:
    """Of COCO's 80 classes COCO's own, 1 to 90; of others, numbers from 1."""
    names = ", ".join(COCO_CLASSES)
    truth = read_truth(data_set(tmp_path, yaml=f"val: images/val\nnames: [{names}]\n"))
    assert (truth.dataset.category_ids[0], truth.dataset.category_ids[-1]) == (1, 90)
    result = [{"image_id": 7, "category_id": 90, "bbox": [1, 2, 3, 4], "score": 0.5}]
    found = read_detections(put(tmp_path / "predictions.json", json.dumps(result)), truth)
    assert found.classes[found.labels[0]] == "toothbrush"
    assert not read_detections(predicted(tmp_path, "79 0.5 0.5 0.1 0.1 0.9\n"), truth).notes
    plain = read_truth(data_set(tmp_path / "plain"))
    assert plain.dataset.category_ids.tolist() == [1, 2]


# --- the order of the numbers ---


def scene_numbers(order: str, folder: Path, seed: int) -> np.ndarray:
    _, found = yolo(make_scene(seed=seed, empty=False), folder, order=order)
    return np.array([line.split()[1:] for f in sorted(found.iterdir()) for line in f.read_text().splitlines()], float)


@pytest.mark.parametrize("order", ["score-last", "score-first"])
@pytest.mark.parametrize("seed", range(4))
def test_boxes_tell_the_order(tmp_path: Path, order: str, seed: int) -> None:
    numbers = scene_numbers(order, tmp_path, seed)
    assert find_order(numbers, np.arange(len(numbers))) == order


def lines_of(boxes: str, scores: str, outside: float, n: int = 400) -> np.ndarray:
    """Return cx, cy, w, h and scores, a share of the boxes reaching outside their images, and nothing sorted."""
    rng = np.random.default_rng(0)
    sides = {"small": (0.02, 0.15), "any": (0.02, 0.6), "large": (0.4, 0.98)}[boxes]
    w = rng.uniform(*sides, (n, 2))
    c = rng.uniform(w / 2, 1 - w / 2)
    stray = rng.permutation(n) < outside * n
    c[stray, 0] = rng.choice([0.0, 1.0], stray.sum())
    drawn = rng.uniform(0, 1, (n, 1))
    spread = {"sure": 0.8 + 0.19 * drawn, "above a quarter": 0.25 + 0.72 * drawn, "all": 0.001 + 0.9 * drawn**8}
    return np.concatenate([c, w, spread[scores]], axis=1)


@pytest.mark.parametrize("outside", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("scores", ["sure", "above a quarter", "all"])
@pytest.mark.parametrize("boxes", ["small", "any", "large"])
def test_boxes_outside_do_not_decide(boxes: str, scores: str, outside: float) -> None:
    last = lines_of(boxes, scores, outside)
    files = np.arange(len(last))
    assert find_order(last[:, [4, 0, 1, 2, 3]], files) == "score-first"
    # Unsure detections fit in both orders: then it is ultralytics', and a note says so.
    assert find_order(last, files) in (("score-last", None) if scores == "all" else ("score-last",))


def test_one_box_outside_among_boxes_that_fit_both_ways(truth: GroundTruth, tmp_path: Path) -> None:
    both = "1 0.5 0.5 0.4 0.4 0.6\n1 0.52 0.5 0.4 0.41 0.7\n1 0.5 0.5 0.41 0.4 0.65\n"
    stray = "1 0.05 0.5 0.4 0.4 0.7\n"
    found = read_detections(predicted(tmp_path, both * 5 + stray), truth)
    assert sorted(set(found.scores.tolist())) == [0.6, 0.65, 0.7]
    said = (
        "lines were read as class cx cy w h score, as ultralytics writes; 1 of 16 boxes then reach outside their "
        "images; read as class score cx cy w h, 0 do: if they are that, name "
    )
    assert any(n.startswith(said) and n.endswith(":score-first") for n in found.notes)
    assert read_detections(predicted(tmp_path, stray), truth).scores.tolist() == [0.7]
    assert not any(
        "reach" in n for n in read_detections(f"{predicted(tmp_path, both + stray)}:score-last", truth).notes
    )


def test_so_many_lines_tell_that_the_score_is_first() -> None:
    line = np.array([[0.9, 0.5, 0.5, 0.1, 0.2]])
    assert [find_order(np.repeat(line, n, axis=0), np.arange(n)) for n in (1, 4, 5)] == [None, None, "score-first"]
    both = np.array([[0.5, 0.5, 0.4, 0.4, 0.6]])
    for n, order in ((56, "score-first"), (57, None)):  # 10 of 66 are more than 15 %, 10 of 67 are not
        lines = np.concatenate([np.repeat(line, 10, axis=0), np.repeat(both, n, axis=0)])
        assert find_order(lines, np.arange(len(lines))) == order
    other = np.array([[0.5, 0.5, 0.1, 0.1, 0.9]])
    for n, order in ((3, "score-first"), (4, None)):
        lines = np.concatenate([np.repeat(line, 12, axis=0), np.repeat(other, n, axis=0)])
        assert find_order(lines, np.arange(len(lines))) == order
    assert find_order(other, np.zeros(1)) == "score-last"


def test_falling_scores_tell_where_boxes_do_not() -> None:
    numbers = np.tile([0.5, 0.5, 0.4, 0.4, 0.0], (11, 1))
    numbers[:, 4] = np.linspace(0.6, 0.4, 11)
    numbers[::2, 0] += 0.01
    numbers[::2, 3] += 0.01
    numbers[1::2, 1] += 0.01
    first = numbers[:, [4, 0, 1, 2, 3]]
    together, apart = np.zeros(11, int), np.arange(11)
    assert (find_order(numbers, together), find_order(numbers, apart)) == ("score-last", None)
    assert (find_order(first, together), find_order(first[:10], together[:10])) == ("score-first", None)


def test_what_is_said_of_the_order(truth: GroundTruth, tmp_path: Path) -> None:
    first = predicted(tmp_path, "1 0.9 0.5 0.5 0.1 0.2\n1 0.8 0.25 0.5 0.1 0.1\n" * 5)
    found = read_detections(first, truth)
    assert set(found.scores.tolist()) == {0.9, 0.8}
    assert any(n.startswith("lines were read as class score cx cy w h: ") for n in found.notes)
    forced = read_detections(f"{first}:score-last", truth)
    assert set(forced.scores.tolist()) == {0.2, 0.1}
    assert any("as was asked, 10 of 10 boxes reach outside their images" in n for n in forced.notes)
    doubt = read_detections(predicted(tmp_path, "1 0.5 0.5 0.4 0.4 0.6\n"), truth)
    assert doubt.scores.tolist() == [0.6]
    assert any("class score cx cy w h would fit too: if they are that, name" in n for n in doubt.notes)
    assert read_yolo(first, truth, order="score-first").scores.tolist() == [0.5]
    with pytest.raises(InputError, match=r"2 of 2 boxes reach outside .*; .*labels:score-last reads them all the same"):
        read_detections(predicted(tmp_path, "1 0.95 0.95 0.95 0.95 0.95\n0 0.05 0.05 0.9 0.9 0.9\n"), truth)
