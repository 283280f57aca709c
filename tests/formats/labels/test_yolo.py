"""YOLO's data sets: where things are looked for, what lines mean, and a sentence for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import frameworks
from tests.amounts import examples
from tests.readers import read_yolo, read_yolo_truth

from probox import InputError, read_truth
from probox.analysis.validation import validate
from probox.notes import Note

from .world import LABELS, data_set, header, predicted, put


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
    same = read_truth(put(tmp_path / "coco.json", json.dumps(coco)))
    np.testing.assert_array_equal(truth.masks.to_array(2, 32, 64), same.masks.to_array(0, 32, 64))
    assert truth.areas[2] == same.areas[0]
    assert truth.notes == (Note("objects-without-mask", 2),)


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
    said = "path '/nowhere/datasets/x' does not exist: images were searched in"
    assert any(note.startswith(said) for note in tuple(map(str, truth.notes))) == (name == "another path")


def test_gaps_in_names(tmp_path: Path) -> None:
    truth = read_truth(data_set(tmp_path, yaml="val: images/val\nnames: {0: cup, 1: dog, 4: cat}\nnc: 5\n"))
    assert truth.classes == ("cup", "dog", "class 2", "class 3", "cat")
    assert any("has no names for 2 class numbers: 2, 3" in note for note in tuple(map(str, truth.notes)))


def test_another_part(tmp_path: Path) -> None:
    yaml = data_set(tmp_path, yaml="train: images/train\nval: images/val\ntest: images/test\nnames: [cup, dog]\n")
    put(tmp_path / "images" / "test" / "8.jpg", header(10, 10))
    put(tmp_path / "labels" / "test" / "8.txt", "0 .5 .5 1 1\n")
    assert read_truth(yaml).image_ids.tolist() == [7]
    for truth in (read_truth(f"{yaml}:test"), read_yolo_truth(yaml, split="test"), read_truth(f"{tmp_path}:test")):
        assert truth.image_ids.tolist() == [8]
    yaml.write_text("train: images/train\ntest: images/test\nval:\nnames: [cup, dog]\n")
    truth = read_truth(yaml)
    assert (
        truth.image_ids.tolist(),
        any("has no val: its test images are used" in n for n in tuple(map(str, truth.notes))),
    ) == (
        [8],
        True,
    )


def test_a_folder_without_data_yaml(tmp_path: Path) -> None:
    data_set(tmp_path).unlink()
    truth = read_truth(tmp_path)
    assert (truth.classes, len(truth)) == (("class 0", "class 1"), 2)
    assert any("nothing names the classes" in note for note in tuple(map(str, truth.notes)))
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
    with pytest.raises(InputError, match="expected images of test, but the folder images contains"):
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
    assert Note("labels-of-no-image", 1) in truth.notes


def test_label_files_that_are_missing_are_counted(tmp_path: Path) -> None:
    file = data_set(tmp_path)
    put(tmp_path / "images" / "val" / "8.png", header(64, 32))
    put(tmp_path / "images" / "val" / "9.png", header(64, 32))
    put(tmp_path / "labels" / "val" / "9.TXT", LABELS)
    truth = read_truth(file)
    assert len(truth) == 4
    assert Note("labels-missing", 1, total=3) in truth.notes


def test_lines_that_stand_twice(tmp_path: Path) -> None:
    truth = read_truth(data_set(tmp_path, LABELS + LABELS))
    assert (len(truth), Note("repeated-lines", 2) in truth.notes) == (2, True)


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
    monkeypatch.setattr("probox.formats.yolo_places.MOST_FOLDERS", 2)
    yaml = data_set(tmp_path)
    put(tmp_path / "images" / "val" / "a" / "8.png", header(64, 32))
    assert len(read_truth(yaml).image_ids) == 2
    put(tmp_path / "images" / "val" / "b" / "9.png", header(64, 32))
    with pytest.raises(InputError, match=r"val: expected at most 2 folders of images, but .* contains more; name"):
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
    "val: [": "line 1: cannot be read as YAML: expected the node content, but found '<stream end>'",
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
    "val: images/val\nnames: [cup, cup]\n": "the name 'cup' is given to several classes",
    "val: images/val\nnames: [cup, dog]\nnc: 3\n": "expected 3 names (nc), but got 2",
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
    with pytest.raises(InputError, match=r"split 'test' not found, expected one of val; use .*data.yaml:val"):
        read_truth(f"{yaml}:test")
    put(tmp_path / "images" / "val" / "8.tif", b"II*\0" + bytes(40))
    with pytest.raises(InputError, match=r"8.tif: expected a PNG, JPEG, BMP, GIF or WebP image, but got a TIFF image"):
        read_truth(yaml)
    (tmp_path / "images" / "val" / "8.tif").unlink()
    (tmp_path / "labels" / "val" / "7.txt").unlink()
    with pytest.raises(InputError, match=r"none of the 1 images has a label file: .*7.txt is missing"):
        read_truth(yaml)
    put(tmp_path / "more.yaml", "val: images/val\nnames: [cup]\n")
    (tmp_path / "data.yaml").rename(tmp_path / "other.yaml")
    with pytest.raises(InputError, match=r"several files here name images and classes: more.yaml, other.yaml"):
        read_truth(tmp_path)
