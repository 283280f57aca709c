"""RVC1 detections: files, challenge folders and heatmaps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.readers import read_rvc1, read_rvc1_truth

from probox import Convention, Detections, GroundTruth, InputError, evaluate
from probox.formats import read_detections, write_rvc1
from probox.measures.pdq.kernel import pair_tables
from probox.notes import Note
from probox.pictures.view import view_of_image

Write = Callable[..., Path]
COVARS = [[[4.0, 1.0], [1.0, 2.0]], [[9.0, 0.0], [0.0, 1.0]]]


def entry(**changes: Any) -> dict[str, Any]:
    return {"bbox": [1.0, 2.0, 5.5, 6.0], "label_probs": [0.25, 0.5, 0.125]} | changes


def file(*images: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    return {"classes": ["dog", "background", "cup"], "detections": list(images)} | changes


def test_columns(write: Write, truth: GroundTruth) -> None:
    found = read_detections(write(file([entry()], [entry(covars=COVARS), entry(extra=[1])])), truth)
    assert found.image_ids.tolist() == [4, 9, 9]  # by position, in ascending order of image id
    assert found.classes == ("dog", "background", "cup")
    assert found.boxes[0].tolist() == [1.0, 2.0, 5.5, 6.0]
    np.testing.assert_array_equal(found.label_probs, np.array([[0.25, 0.5, 0.125]] * 3, np.float32))
    assert found.labels.tolist() == [1, 1, 1]
    assert found.covariances is not None
    assert found.covariances[1].tolist() == COVARS
    assert not found.covariances[[0, 2]].any()
    assert not found.boxes.flags.owndata
    assert found.notes == ()


def test_classes_may_come_last(write: Write, truth: GroundTruth) -> None:
    turned = {"detections": [[entry()], [entry()]], "classes": ["dog", "background", "cup"]}
    assert len(read_rvc1(write(turned), truth)) == 2
    turned["detections"][1].append({"bbox": [1], "label_probs": [1]})
    with pytest.raises(InputError, match=r"detections\[1\]\[1\]\.bbox: expected a list of 4, but got 1"):
        read_rvc1(write(turned), truth)


def test_no_detections(write: Write, truth: GroundTruth) -> None:
    found = read_detections(write(file([], [])), truth)
    assert len(found) == 0
    assert found.covariances is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (file([entry()]), "detections: expected detections of 2 images, as the ground truth has, but got 1"),
        (
            file([], [entry(label_probs=[1.0])]),
            "[1][0].label_probs: expected one probability for each of the 3 classes",
        ),
        (
            file([], [entry(label_probs=[5.0, 0, 0])]),
            "image 9: detection 0: expected label probabilities between 0 and 1",
        ),
        (file([], [entry(label_probs=[0.9, 0.9, 0])]), "expected label probabilities to add up to at most 1"),
        (
            file([], [entry(label_probs=["a", 0, 0])]),
            '[1][0].label_probs[0]: expected a number, but got the string "a"',
        ),
        (file([], [entry(label_probs=[float("nan"), 0, 0])]), "expected finite label probabilities"),
        (file([], [entry(bbox=[5, 2, 1, 6])]), "expected x1 <= x2 and y1 <= y2, but got [5.0, 2.0, 1.0, 6.0]"),
        (file([], [{"label_probs": [0, 0, 0]}]), 'detections[1][0]: expected a key "bbox"'),
        (file([], [{"bbox": [0, 0, 1, 1]}]), 'detections[1][0]: expected a key "label_probs"'),
        (file([], [entry(covars=[])]), "detections[1][0].covars: expected a list of 2, but got 0"),
        (file([], [entry(masks_file="a.npy")]), "detections[1][0]: no such file"),
        (file([], None), "detections[1]: expected a list of the image's detections, but got null"),
        (file([], [], classes=[1]), "classes[0]: expected a string, but got 1"),
        ({"classes": []}, 'expected a key "detections"'),
        ({"detections": []}, 'expected a key "classes"'),
        ({"images": [], "annotations": []}, "this is COCO ground truth: give a file of detections in its place"),
        ("text", "COCO results, RVC1 or Parquet, but the file begins with '\"text\"'"),
    ],
)
def test_what_is_wrong_is_named(write: Write, truth: GroundTruth, value: Any, message: str) -> None:
    path = write(value)
    with pytest.raises(InputError) as caught:
        read_detections(path, truth)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_needs_challenge_truth(tmp_path: Path, truth: GroundTruth) -> None:
    with pytest.raises(InputError, match="or sequences of RVC1 ground truth"):
        read_detections(tmp_path, truth)


class TestChallenge:
    """A folder of sequences, by the challenge's rules."""

    @pytest.fixture
    def truth(self, golden_dir: Path) -> GroundTruth:
        return read_rvc1_truth(golden_dir / "rvc1" / "gt")

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name in ("000000", "000001"):
            self.put(tmp_path, name, [[], [], [], [], []])
        return tmp_path

    def put(
        self, folder: Path, name: str, images: list[Any], classes: tuple[str, ...] = ("none", "cup", "tv", "dog")
    ) -> None:
        (folder / f"{name}.json").write_text(json.dumps({"classes": classes, "detections": images}))

    def test_golden_detections(self, golden_dir: Path, truth: GroundTruth) -> None:
        found = read_detections(golden_dir / "rvc1" / "det", truth)
        expected = json.loads((golden_dir / "rvc1" / "expected.json").read_text())
        scored = [len(image["det_evals"]) for sequence in expected["sequences"] for image in sequence]
        assert np.bincount(found.image_ids, minlength=10).tolist() == scored
        assert found.classes == truth.classes

    def test_label_rules(self, folder: Path, truth: GroundTruth) -> None:
        rows = [
            [0.0, 0.3, 0.2, 0.5],  # "dog" is dropped: what is left makes 0.5, too little
            [0.0, 0.3, 0.3, 0.4],
            [0.9, 0.1, 0.0, 0.0],  # background counts
            [0.0, 0.8, 0.8, 0.0],  # more than 1: normalised
        ]
        self.put(folder, "000001", [[], [{"bbox": [0, 0, 9, 9], "label_probs": row} for row in rows], [], [], []])
        found = read_detections(folder, truth)
        assert found.image_ids.tolist() == [6, 6, 6]
        columns = [truth.classes.index(name) for name in ("none", "cup", "television")]
        expected = np.array([[0, 0.3, 0.3], [0.9, 0.1, 0], [0, 0.5, 0.5]], np.float32)
        np.testing.assert_allclose(found.label_probs[:, columns], expected, rtol=1e-6)
        assert found.label_probs.shape == (3, 31)
        assert found.notes == (Note("unnamed-challenge-detections", 1, least=0.5),)

    def test_classes_may_differ_between_files(self, folder: Path, truth: GroundTruth) -> None:
        self.put(folder, "000000", [[{"bbox": [0, 0, 9, 9], "label_probs": [0.75]}], [], [], [], []], ("Sofa",))
        self.put(folder, "000001", [[{"bbox": [0, 0, 9, 9], "label_probs": [0.75]}], [], [], [], []], ("cup",))
        found = read_detections(folder, truth)
        assert [truth.classes[label] for label in found.labels] == ["couch", "cup"]
        assert found.image_ids.tolist() == [0, 5]

    def test_a_missing_sequence(self, folder: Path, truth: GroundTruth) -> None:
        (folder / "000001.json").unlink()
        with pytest.raises(InputError, match=r"expected a file 000001\.json"):
            read_detections(folder, truth)

    def test_other_files_are_noted(self, folder: Path, truth: GroundTruth) -> None:
        self.put(folder, "000002", [])
        assert read_detections(folder, truth).notes == (Note("files-of-no-sequence", 1, name="000002.json"),)

    def test_a_wrong_count_names_the_file(self, folder: Path, truth: GroundTruth) -> None:
        self.put(folder, "000001", [[]])
        with pytest.raises(InputError, match=r"000001\.json: detections: expected detections of 5 images"):
            read_detections(folder, truth)

    def test_too_much_probability_in_one_class_is_still_wrong(self, folder: Path, truth: GroundTruth) -> None:
        bad = {"bbox": [0, 0, 9, 9], "label_probs": [0.0, float("nan"), 0.0, 0.0]}
        self.put(folder, "000000", [[bad], [], [], [], []])
        with pytest.raises(InputError, match="finite label probabilities"):
            read_detections(folder, truth)


class TestHeatmaps:
    """Probabilistic segmentation."""

    @pytest.fixture
    def maps(self, tmp_path: Path) -> np.ndarray:
        maps = np.zeros((3, 20, 30), np.float32)
        maps[0, 4:9, 3:11] = 0.5
        maps[0, 2, 2] = 0.49
        maps[1, 5, 7] = 0.25
        np.save(tmp_path / "nine.npy", maps)
        return maps

    def read(self, write: Write, truth: GroundTruth, **changes: Any) -> Any:
        row = {"label_probs": [0.5, 0, 0.5], "masks_file": "nine.npy", "mask_id": 0} | changes
        return read_detections(write(file([], [row])), truth)

    @pytest.mark.parametrize(("number", "box"), [(0, [3, 4, 11, 9]), (1, [7, 5, 8, 6]), (2, [0, 0, 0, 0])])
    def test_box_from_the_map(
        self, write: Write, truth: GroundTruth, maps: np.ndarray, number: int, box: list[float]
    ) -> None:
        found = self.read(write, truth, mask_id=number)
        assert found.boxes.tolist() == [box]
        np.testing.assert_array_equal(found.heatmaps[0], maps[number])

    def test_a_given_box_stays(self, write: Write, truth: GroundTruth, maps: np.ndarray) -> None:
        assert self.read(write, truth, bbox=[1, 2, 3, 4]).boxes.tolist() == [[1, 2, 3, 4]]

    def test_bytes(self, write: Write, truth: GroundTruth, tmp_path: Path) -> None:
        maps = np.zeros((1, 20, 30), np.uint8)
        maps[0, 1:3, 2:5] = 128
        maps[0, 0, 0] = 127
        np.save(tmp_path / "nine.npy", maps)
        assert self.read(write, truth).boxes.tolist() == [[2, 1, 5, 3]]

    @pytest.mark.parametrize(
        "name", ["/etc/passwd", "../file.json", "a/../../x.npy", "C:\\x.npy", "\\\\host\\x", "", "a\0b"]
    )
    def test_only_files_beside(self, write: Write, truth: GroundTruth, name: str) -> None:
        with pytest.raises(InputError, match="expected masks_file to lie beside this file"):
            self.read(write, truth, masks_file=name)

    @pytest.mark.parametrize("number", [-1, 3, 10**15])
    def test_numbers_of_maps(self, write: Write, truth: GroundTruth, maps: np.ndarray, number: int) -> None:
        with pytest.raises(
            InputError, match=r"image 9: detections\[1\]\[0\]: expected mask_id to be one of the 3 maps"
        ):
            self.read(write, truth, mask_id=number)

    def test_missing_file(self, write: Write, truth: GroundTruth) -> None:
        with pytest.raises(InputError, match=r"no such file: .*nine.npy; keep the .npy files beside the JSON"):
            self.read(write, truth)

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.zeros((1, 30, 20), np.float32), "expected nine.npy to have shape m x 20 x 30"),
            (np.zeros((30, 20), np.float32), "expected nine.npy to have shape m x 20 x 30"),
            (np.zeros((2, 1, 20, 30), np.float32), "expected maps of m x H x W, but got 2 x 1 x 20 x 30"),
            (np.zeros((), np.float32), "expected maps of m x H x W, but got a single number"),
            (np.zeros((1, 20, 30), np.int64), "expected floats or uint8"),
            (np.full((1, 20, 30), 1.5, np.float32), "expected heatmap values between 0 and 1"),
            (np.full((1, 20, 30), np.nan, np.float32), "expected heatmap values between 0 and 1"),
            (np.array([[["a"]]], dtype=object), "expected floats or uint8, but got object"),
        ],
    )
    def test_unusable_arrays(
        self, write: Write, truth: GroundTruth, tmp_path: Path, array: np.ndarray, message: str
    ) -> None:
        np.save(tmp_path / "nine.npy", array, allow_pickle=True)
        with pytest.raises(InputError, match=message):
            self.read(write, truth)

    @pytest.mark.parametrize(
        "data", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{'descr'", b"PK\x03\x04", b"\x80\x04."]
    )
    def test_damaged_files(self, write: Write, truth: GroundTruth, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "nine.npy").write_bytes(data)
        with pytest.raises(InputError, match=r"is not a usable \.npy file"):
            self.read(write, truth)

    def test_cut_short(self, write: Write, truth: GroundTruth, maps: np.ndarray, tmp_path: Path) -> None:
        data = (tmp_path / "nine.npy").read_bytes()
        (tmp_path / "nine.npy").write_bytes(data[: len(data) // 2])
        with pytest.raises(InputError, match=r"nine\.npy: is cut short: expected 7,328 bytes, but got 3,664; write or"):
            self.read(write, truth)


# --- which list belongs to which image ---


def named(names: list[Any], *images: list[dict[str, Any]]) -> dict[str, Any]:
    return file(*images, img_names=names)


@pytest.mark.parametrize(
    "names",
    [["nine.jpg", "four.jpg"], ["val/nine.jpg", "val\\four.jpg"], ["nine", "four.png"]],
    ids=["file names", "folders", "endings"],
)
def test_names_say_which_list_is_whose(write: Write, truth: GroundTruth, names: list[str]) -> None:
    found = read_rvc1(write(named(names, [entry()], [entry(bbox=[0, 0, 3, 3]), entry()])), truth)
    assert found.image_ids.tolist() == [9, 4, 4]
    assert found.boxes[1].tolist() == [0, 0, 3, 3]


def test_names_and_lists_may_be_turned_round_together(write: Write, truth: GroundTruth) -> None:
    lists = [[entry()], [entry(bbox=[2, 3, 8, 7]), entry(bbox=[0, 0, 1, 1])]]
    one = read_rvc1(write(named(["four.jpg", "nine.jpg"], *lists)), truth)
    other = read_rvc1(write(named(["nine.jpg", "four.jpg"], *lists[::-1])), truth)
    order = np.argsort(other.image_ids, kind="stable")
    np.testing.assert_array_equal(one.boxes, other.boxes[order])
    assert evaluate(truth, one).summary() == evaluate(truth, other).summary()


def test_numbers_in_names_are_enough(write: Write) -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (9, 9), 8: (9, 9)}, [7], [[1, 1, 4, 4]], [0])
    truth = truth.replace(dataset=truth.dataset.replace(file_names=("000007.jpg", "000008.jpg")))
    found = read_rvc1(write(named(["8", "7"], [entry()], [])), truth)
    assert found.image_ids.tolist() == [8]


def test_images_may_be_left_out_and_others_are_counted(write: Write, truth: GroundTruth) -> None:
    found = read_rvc1(write(named(["ten.jpg", "nine.jpg"], [entry(), entry()], [entry()])), truth)
    assert found.image_ids.tolist() == [9]
    assert any(note.startswith("2 detections") for note in tuple(map(str, found.notes)))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["nine.jpg"], "img_names: expected one name for each of the 2 lists of detections, but got 1"),
        (["a.jpg", "b.jpg"], "img_names: none of the 2 names is in the ground truth (the first is 'a.jpg', "),
        (
            ["y/nine.jpg", "x/nine.jpg"],
            "image 9: img_names[1]: 'x/nine.jpg' is a second name of this image",
        ),
        ([1, 2], "img_names[0]: expected a string, but got 1"),
    ],
)
def test_names_that_cannot_be_used(write: Write, truth: GroundTruth, names: list[Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_rvc1(write(named(names, [entry()], [])), truth)
    assert message in str(caught.value)


def test_names_that_two_images_share_name_neither(write: Write) -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (9, 9), 8: (9, 9)}, [], np.zeros((0, 4)), [])
    truth = truth.replace(dataset=truth.dataset.replace(file_names=("a/1.jpg", "b/1.jpg")))
    found = read_rvc1(write(named(["b/1.jpg", "1.jpg"], [entry()], [entry()])), truth)
    assert found.image_ids.tolist() == [8]


def test_a_name_that_fits_better_goes_first(write: Write, truth: GroundTruth) -> None:
    found = read_rvc1(write(named(["nine.png", "nine.jpg"], [entry(), entry()], [entry(bbox=[0, 0, 3, 3])])), truth)
    assert found.boxes.tolist() == [[0, 0, 3, 3]]
    assert any(note.startswith("2 detections") for note in tuple(map(str, found.notes)))


def test_without_file_names_the_order_counts(write: Write) -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (9, 9), 8: (9, 9)}, [], np.zeros((0, 4)), [])
    found = read_rvc1(write(named(["b.jpg", "a.jpg"], [entry()], [])), truth)
    assert found.image_ids.tolist() == [7]
    assert any("no file names" in note for note in tuple(map(str, found.notes)))


def test_written_files_name_their_images(tmp_path: Path, write: Write, truth: GroundTruth) -> None:
    found = read_rvc1(write(file([entry()], [entry(bbox=[0, 0, 3, 3])])), truth)
    write_rvc1(tmp_path / "out.json", found, truth)
    said = json.loads((tmp_path / "out.json").read_text())
    assert said["img_names"] == ["four.jpg", "nine.jpg"]
    part = truth.select_images([9])
    assert read_rvc1(tmp_path / "out.json", part).boxes.tolist() == [[0, 0, 3, 3]]
    nameless = truth.replace(dataset=truth.dataset.replace(file_names=("a.jpg", "a.jpg")))
    write_rvc1(tmp_path / "out.json", found, nameless)
    assert "img_names" not in json.loads((tmp_path / "out.json").read_text())


# --- several columns of one class ---


def test_of_two_columns_of_one_class_the_last_counts(write: Write, truth: GroundTruth) -> None:
    columns = file([], [entry(bbox=[2, 3, 7, 6], label_probs=[0.2, 0.1, 0.7])], classes=["dog", "cup", "Dog"])
    result = evaluate(truth, read_rvc1(write(columns), truth))
    assert result.detections.quality("label").max() == pytest.approx(0.7)
    assert any((note.code, note.count) == ("repeated-classes", 1) for note in result.notes)


def test_covariances_that_add_up_to_zero() -> None:
    """They make a plain box by COCO truth; by challenge truth only zeros do."""
    turned = [[[2.0, -2.0], [-2.0, 2.0]]] * 2
    for challenge in (False, True):
        truth = GroundTruth.from_boxes(["cup"], {0: (60, 60)}, [0], [[10, 10, 40, 40]], [0])
        truth = truth.replace(dataset=truth.dataset.replace(rules="challenge" if challenge else "coco"))
        found = Detections(
            classes=["cup"], image_ids=[0], boxes=[[10, 10, 40, 40]], label_probs=[[1]], covariances=[turned]
        )
        assert (evaluate(truth, found).pdq == 1.0) == (not challenge)
        shown = view_of_image(evaluate(truth, found), 0).heatmap(0)
        assert (np.unique(shown).tolist() == [0, 1]) == (not challenge)  # pictures show what was scored
        assert (pair_tables(truth, found, Convention(), 0)[0, 0, 0] == 1.0) == (not challenge)
        assert evaluate(truth, found, convention=Convention(sum_zero_is_plain=True)).pdq == 1.0
        assert evaluate(truth, found, convention=Convention(sum_zero_is_plain=False)).pdq < 1.0


@pytest.mark.parametrize("chosen", [1, 2])
def test_images_of_the_same_name_in_other_folders_stay_apart(write: Write, chosen: int) -> None:
    """By a part of the truth too: neither a clash, nor the detections of the other image."""
    truth = GroundTruth.from_boxes(["cup"], {1: (9, 9), 2: (9, 9)}, [], np.zeros((0, 4)), [])
    truth = truth.replace(dataset=truth.dataset.replace(file_names=("a/001.jpg", "b/001.jpg")))
    both = write(named(["a/001.jpg", "b/001.jpg"], [entry()], [entry(), entry()]))
    assert read_rvc1(both, truth.select_images([chosen])).image_ids.tolist() == [chosen] * chosen
    alone = write(named(["a/001.jpg"], [entry()]), "alone.json")
    if chosen == 2:
        with pytest.raises(InputError, match="none of the 1 names is in the ground truth"):
            read_rvc1(alone, truth.select_images([2]))


def test_names_in_a_sequence_need_not_repeat_it(golden_dir: Path, tmp_path: Path) -> None:
    truth = read_rvc1_truth(golden_dir / "rvc1" / "gt")
    found = read_detections(golden_dir / "rvc1" / "det", truth)
    for sequence in ("000000", "000001"):
        said = json.loads((golden_dir / "rvc1" / "det" / f"{sequence}.json").read_text())
        names = [f"photos/{number}.png" for number in range(5)]
        turned = said | {"img_names": names[::-1], "detections": said["detections"][::-1]}
        (tmp_path / f"{sequence}.json").write_text(json.dumps(turned))
    again = read_detections(tmp_path, truth)
    assert evaluate(truth, again).summary() == evaluate(truth, found).summary()
