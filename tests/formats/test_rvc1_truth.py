"""RVC1 ground truth: folders of PNG masks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from probox import InputError
from probox.formats import read_rvc1_truth, read_truth

from .test_png import encode


def test_golden(golden_dir: Path) -> None:
    folder = golden_dir / "rvc1" / "gt"
    truth = read_truth(folder)
    assert truth.filter_small
    assert truth.classes[:3] == ("none", "bottle", "cup")
    assert len(truth.classes) == 31
    assert truth.image_ids.tolist() == list(range(10))
    assert truth.file_names[0] == "000000/000000"
    assert truth.file_names[9] == "000001/000004"
    expected = json.loads((golden_dir / "rvc1" / "expected.json").read_text())
    images = [image for sequence in expected["sequences"] for image in sequence]
    classes = [entry["correct_class"] for image in images for entry in image["gt_evals"]]
    assert truth.object_class.tolist() == classes
    assert np.bincount(truth.object_image, minlength=10).tolist() == [len(image["gt_evals"]) for image in images]
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
    assert [truth.classes[at] for at in truth.object_class] == ["cup", "couch"]
    expected = np.zeros((10, 12), bool)
    expected[2:5, 1:4] = True
    expected[7, 6:9] = True
    np.testing.assert_array_equal(truth.masks.to_array(0, 10, 12), expected)
    assert truth.boxes.tolist() == [[1, 2, 9, 8], [0, 0, 1, 1]]
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
        "1 objects whose mask has no pixel were left out",
        "1 objects of classes outside the challenge were left out",
    )


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
    (sequence / "labels.json").write_text('{"000": {}}')
    fails('000: expected a key "_metadata"')
    (sequence / "labels.json").write_text('{"000": {"_metadata"')
    fails("the file ends")
    shutil.rmtree(sequence)
    fails("expected folders of sequences")


def test_the_same_image_twice(sequence: Path) -> None:
    entry = '{"_metadata": {"mask_name": "m.png"}}'
    (sequence / "labels.json").write_text(f'{{"000": {entry}, "000": {entry}}}')
    with pytest.raises(InputError, match="image 000: the same image stands here twice"):
        read_rvc1_truth(sequence.parent)
