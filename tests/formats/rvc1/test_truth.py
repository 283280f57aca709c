"""RVC1 ground truth: folders of PNG masks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.readers import read_rvc1_truth

from probox import Convention, Detections, InputError, evaluate
from probox.formats import read_detections, read_truth
from probox.notes import Note

from .test_png import encode


def test_golden(golden_dir: Path) -> None:
    folder = golden_dir / "rvc1" / "gt"
    truth = read_truth(folder)
    assert truth.dataset.rules == "challenge"
    assert truth.classes[:3] == ("none", "bottle", "cup")
    assert len(truth.classes) == 31
    assert truth.image_ids.tolist() == list(range(10))
    assert truth.dataset.file_names[0] == "000000/000000"
    assert truth.dataset.file_names[9] == "000001/000004"
    expected = json.loads((golden_dir / "rvc1" / "expected.json").read_text())
    images = [image for sequence in expected["sequences"] for image in sequence]
    classes = [entry["correct_class"] for image in images for entry in image["gt_evals"]]
    assert truth.labels.tolist() == classes
    assert np.bincount(truth.image_rows, minlength=10).tolist() == [len(image["gt_evals"]) for image in images]
    row = 0
    for sequence in ("000000", "000001"):
        for image in json.loads((folder / sequence / "labels.json").read_text()).values():
            for name, entry in image.items():
                if name == "_metadata":
                    continue
                assert truth.masks.pixels[row] == entry["num_pixels"]
                assert truth.masks.boxes[row].tolist() == entry["bounding_box"]
                row += 1
    assert row == len(truth) == 18


@pytest.fixture
def sequence(tmp_path: Path) -> Path:
    """Return the folder of one sequence with one image: an object of two parts and a small one."""
    folder = tmp_path / "gt" / "A"
    folder.mkdir(parents=True)
    pixels = np.zeros((10, 12, 3), np.uint16)
    pixels[2:5, 1:4, 2] = 40  # blue, which OpenCV and so the challenge counts as channel 0
    pixels[7, 6:9, 2] = 40
    pixels[0, 0, 2] = 50
    (folder / "m.png").write_bytes(encode(pixels, 2, 8, [4] * 10))
    put(folder, {"0": {"class": "cup", "mask_id": 40}, "1": {"class": "Sofa", "mask_id": 50}})
    return folder


def put(folder: Path, objects: object, mask_name: str = "m.png", channel: int = 0) -> None:
    metadata = {"_metadata": {"mask_name": mask_name, "mask_channel": channel}}
    (folder / "labels.json").write_text(
        json.dumps({"000": metadata | objects if isinstance(objects, dict) else objects})
    )


def test_masks(sequence: Path) -> None:
    truth = read_rvc1_truth(sequence.parent)
    assert [truth.classes[at] for at in truth.labels] == ["cup", "couch"]
    expected = np.zeros((10, 12), bool)
    expected[2:5, 1:4] = True
    expected[7, 6:9] = True
    np.testing.assert_array_equal(truth.masks.to_array(0, 10, 12), expected)
    assert truth.boxes.tolist() == [[1, 2, 8, 7], [0, 0, 0, 0]]  # boxes end on the last pixel
    assert truth.notes == ()


def test_objects_that_cannot_be_scored_are_counted(sequence: Path) -> None:
    put(sequence, {
        "0": {"class": "cup", "mask_id": 40},
        "1": {"class": "unicorn", "mask_id": 50},
        "2": {"class": "cup", "mask_id": 99},
    })  # fmt: skip
    truth = read_rvc1_truth(sequence.parent)
    assert len(truth) == 1
    assert truth.notes == (
        Note("objects-without-place", 1),
        Note("objects-outside-challenge", 1),
    )


def test_the_file_says_where_a_box_ends(sequence: Path) -> None:
    """The box of the file is used, whether the mask fills it or has no pixel at all."""
    put(sequence, {
        "0": {"class": "cup", "mask_id": 40, "bounding_box": [1, 2, 9, 8]},
        "1": {"class": "cup", "mask_id": 99, "bounding_box": [3, 1, 6, 4]},
    })  # fmt: skip
    truth = read_rvc1_truth(sequence.parent)
    assert truth.boxes.tolist() == [[1, 2, 9, 8], [3, 1, 6, 4]]
    assert truth.masks.pixels.tolist() == [12, 0]
    assert truth.areas.tolist() == [12, 16]
    assert truth.as_box_masks().boxes.tolist() == [[1, 2, 9, 8], [3, 1, 6, 4]]


@pytest.mark.parametrize("box_truth", [False, True])
def test_a_perfect_detection_is_perfect(sequence: Path, box_truth: bool) -> None:
    pixels = np.zeros((40, 40, 1), np.uint16)
    pixels[10:26, 5:21] = 7
    (sequence / "m.png").write_bytes(encode(pixels, 0, 8, [0] * 40))
    put(sequence, {"0": {"class": "cup", "mask_id": 7, "bounding_box": [5, 10, 20, 25]}})
    truth = read_rvc1_truth(sequence.parent)
    found = Detections(classes=["cup"], image_ids=[0], boxes=[[5, 10, 20, 25]], label_probs=[[1.0]])
    summary = evaluate(truth, found, convention=Convention(box_truth=box_truth)).summary()
    assert [summary[name] for name in ("PDQ", "mAP", "moLRP")] == pytest.approx([1.0, 1.0, 0.0], abs=1e-12)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("stool", "chair"), ("Cellphone", "cell phone"), ("wineglass", "wine glass"), ("bg", "none"),
        ("background", "none"), ("__background__", "none"), ("none", "none"), ("tv", "television"),
        ("computer monitor", "television"), ("diningtable", "dining table"), ("pottedplant", "potted plant"),
    ],
)  # fmt: skip
def test_the_challenges_names(sequence: Path, name: str, meant: str) -> None:
    put(sequence, {"0": {"class": name, "mask_id": 40}})
    truth = read_rvc1_truth(sequence.parent)
    assert [truth.classes[at] for at in truth.labels] == [meant]


def test_objects_of_no_class_are_scored(sequence: Path) -> None:
    """Truth of class none is an object like any other: found by a detection that says none."""
    put(sequence, {"0": {"class": "none", "mask_id": 40}})
    truth = read_rvc1_truth(sequence.parent)
    found = Detections(classes=["none"], image_ids=[0], boxes=[[1, 2, 8, 7]], label_probs=[[0.9]])
    assert evaluate(truth, found, convention=Convention(object_filter=False)).tp == 1


def test_images_are_in_the_order_of_their_numbers(sequence: Path) -> None:
    """Names without leading zeros: 2 stands before 10, as detections by position expect."""
    keys = [str(number) for number in range(12)]
    labels = {}
    for number, key in enumerate(keys):
        pixels = np.zeros((30, 30, 1), np.uint16)
        pixels[number : number + 15, 3:20] = 9
        (sequence / f"{key}.png").write_bytes(encode(pixels, 0, 8, [0] * 30))
        labels[key] = {"_metadata": {"mask_name": f"{key}.png"}, "0": {"class": "cup", "mask_id": 9}}
    (sequence / "labels.json").write_text(json.dumps(labels))
    truth = read_rvc1_truth(sequence.parent)
    assert truth.dataset.file_names == tuple(f"A/{key}" for key in keys)
    lists = [[{"bbox": [3, number, 19, number + 14], "label_probs": [1.0]}] for number in range(12)]
    folder = sequence.parent.parent / "det"
    folder.mkdir()
    (folder / "A.json").write_text(json.dumps({"classes": ["cup"], "detections": lists}))
    assert evaluate(truth, read_detections(folder, truth)).pdq == 1.0


def test_an_image_without_metadata_is_empty(sequence: Path) -> None:
    metadata = {"mask_name": "m.png", "mask_channel": 0}
    (sequence / "labels.json").write_text(json.dumps({
        "0": {}, "1": {"_metadata": metadata, "_more": 3, "0": {"class": "cup", "mask_id": 40}},
        "2": {"0": {"class": "cup", "mask_id": 40}},
    }))  # fmt: skip
    truth = read_rvc1_truth(sequence.parent)
    assert truth.image_rows.tolist() == [1]
    assert truth.dataset.widths.tolist() == [12] * 3  # as the sequence's other image
    assert truth.notes == (Note("objects-without-metadata", 1),)


def test_two_objects_of_one_mask(sequence: Path) -> None:
    put(sequence, {"0": {"class": "cup", "mask_id": 40}, "1": {"class": "bowl", "mask_id": 40}})
    assert read_rvc1_truth(sequence.parent).masks.pixels.tolist() == [12, 12]


def test_grey_masks_have_one_channel(sequence: Path) -> None:
    pixels = np.zeros((10, 12, 1), np.uint16)
    pixels[3, 3] = 40
    (sequence / "m.png").write_bytes(encode(pixels, 0, 8, [2] * 10))
    put(sequence, {"0": {"class": "cup", "mask_id": 40}}, channel=2)
    assert read_rvc1_truth(sequence.parent).masks.boxes.tolist() == [[3, 3, 3, 3]]


def test_what_is_wrong_is_named(sequence: Path) -> None:
    def fails(message: str) -> None:
        with pytest.raises(InputError, match=message) as caught:
            read_rvc1_truth(sequence.parent)
        assert "\n" not in str(caught.value)

    put(sequence, {"0": {"class": "cup"}})
    fails('labels.json: 000.0: expected a key "mask_id"')
    put(sequence, {"0": {"class": 3, "mask_id": 40}})
    fails("000.0.class: expected a string, but got 3")
    put(sequence, [])
    fails("000: expected an object, but got a list")
    put(sequence, {}, channel=7)
    fails("image 000: mask_channel: expected a channel from 0 to 2, but got 7")
    put(sequence, {}, mask_name="../A/m.png")
    fails("expected the name of a file beside labels.json")
    put(sequence, {}, mask_name="missing.png")
    fails("missing.png: no such file")
    for box in ([1, 2, 3], [4, 2, 3, 5], [1, 2, 3, float("nan")], [1, 2, 1e10, 5]):
        put(sequence, {"0": {"class": "cup", "mask_id": 40, "bounding_box": box}})
        fails(r"000.0.bounding_box: expected a list of 4" if len(box) == 3 else r"000.0.*: expected \[left, top, right")
    (sequence / "labels.json").write_text('{"000": {"_metadata"')
    fails("the file ends")
    shutil.rmtree(sequence)
    fails("expected folders of sequences")


def test_the_same_image_twice(sequence: Path) -> None:
    entry = '{"_metadata": {"mask_name": "m.png"}}'
    (sequence / "labels.json").write_text(f'{{"000": {entry}, "000": {entry}}}')
    with pytest.raises(InputError, match="image 000: this image occurs twice"):
        read_rvc1_truth(sequence.parent)
