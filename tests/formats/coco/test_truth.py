"""COCO ground truth."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from tests.readers import read_coco, read_coco_results

from probox import Convention, Detections, GroundTruth, InputError, evaluate
from probox.formats import read_truth
from probox.notes import Note
from probox.tables.results import Verdict

from ..conftest import TRUTH

Write = Callable[..., Path]


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    value = copy.deepcopy(TRUTH)
    change(value)
    return value


def test_columns(truth: GroundTruth) -> None:
    assert truth.image_ids.tolist() == [4, 9]
    assert truth.dataset.widths.tolist() == [16, 30]
    assert truth.dataset.heights.tolist() == [12, 20]
    assert truth.dataset.file_names == ("four.jpg", "nine.jpg")
    assert truth.dataset.category_ids.tolist() == [3, 7]
    assert truth.classes == ("cup", "dog")
    assert truth.ids.tolist() == [51, 50, 52]
    assert truth.image_rows.tolist() == [0, 1, 1]
    assert truth.labels.tolist() == [0, 1, 0]
    assert truth.crowd.tolist() == [False, False, True]
    assert truth.boxes.tolist() == [[1.2, 2.0, 4.7, 6.0], [2.5, 3.0, 8.5, 7.0], [0, 0, 30, 20]]
    assert truth.extents.tolist() == [[3.5, 4.0], [6.0, 4.0], [30, 20]]
    assert truth.areas.tolist() == [25, 24, 25]  # stated where it is, otherwise the pixels of the mask
    assert truth.dataset.rules == "coco"


def test_the_box_is_the_mask_where_there_is_no_segmentation(truth: GroundTruth) -> None:
    assert truth.masks.boxes[0].tolist() == [1, 2, 5, 6]  # floor(1.2)..ceil(4.7), floor(2)..ceil(6)
    np.testing.assert_array_equal(truth.masks.boxes[0], truth.as_box_masks().boxes[0])
    assert truth.notes == (Note("annotations-without-mask", 1),)


@pytest.mark.parametrize("nothing", [None, []])
def test_an_empty_segmentation_is_none(write: Write, nothing: Any) -> None:
    truth = read_coco(write(changed(lambda t: t["annotations"][0].update(segmentation=nothing))))
    assert truth.notes[0] == Note("annotations-without-mask", 2)


NOWHERE = [[100.0, 100, 110, 100, 110, 110]]
"""A polygon outside every image."""


def test_an_annotation_without_pixels_keeps_its_box(write: Write) -> None:
    truth = read_coco(write(changed(lambda t: t["annotations"][0].update(segmentation=NOWHERE))))
    assert truth.ids.tolist() == [51, 50, 52]
    assert truth.masks.pixels.tolist() == [25, 0, 25]
    assert truth.boxes[1].tolist() == [2.5, 3.0, 8.5, 7.0]
    none = Detections(classes=truth.classes, image_ids=[], boxes=[], label_probs=np.zeros((0, 2)))
    evaluation = evaluate(truth, none)
    assert evaluation.fn == 2  # PDQ leaves it out
    assert evaluation.average_precision.objects[:, 0].tolist() == [1, 1]  # mAP counts it, not the crowd
    assert evaluation.objects.verdicts.tolist() == [Verdict.FN, Verdict.IGNORED, Verdict.FN]
    assert Note("empty-masks", 1) in evaluation.notes
    by_box = evaluate(truth, none, convention=Convention(box_truth=True))
    assert by_box.fn == 3
    assert by_box.objects.pixels[1] == 8 * 5


def test_a_perfect_box_of_an_annotation_without_pixels_scores(write: Write) -> None:
    truth = read_coco(write(changed(lambda t: t["annotations"][0].update(segmentation=NOWHERE))))
    found = Detections(classes=["dog"], image_ids=[9], boxes=[[2, 3, 9, 7]], label_probs=[[1.0]])
    assert evaluate(truth, found, convention=Convention(box_truth=True)).summary()["pPDQ"] == 1.0
    assert evaluate(truth, found).tp == 0


@pytest.mark.parametrize("nothing", [[[]], [], None, NOWHERE, {"size": [20, 30], "counts": [600]}])
def test_ways_to_have_no_pixels(write: Write, nothing: Any) -> None:
    """With box truth all of them are their box."""
    truth = read_coco(write(changed(lambda t: t["annotations"][0].update(segmentation=nothing))))
    assert truth.ids.tolist() == [51, 50, 52]
    assert truth.as_box_masks().pixels[1] == 8 * 5


def test_an_annotation_without_pixels_or_box_is_left_out(write: Write) -> None:
    def spoil(value: dict[str, Any]) -> None:
        value["annotations"][0].update(segmentation=NOWHERE)
        del value["annotations"][0]["bbox"]

    truth = read_coco(write(changed(spoil)))
    assert truth.ids.tolist() == [51, 52]
    assert Note("annotations-without-place", 1) in truth.notes


@pytest.mark.parametrize(
    ("box", "pixels"),
    [
        ([-20.0, 3, 15, 4], 0),  # left of the image
        ([-20.0, 3, 20, 4], 5),  # touches its first column: rows 3 to 7
        ([30.0, 3, 5, 4], 0),  # begins where the image ends
        ([29.5, 3, 5, 4], 5),
        ([2.0, -9, 4, 8], 0),
        ([2.0, 20, 4, 8], 0),
    ],
)
def test_a_box_outside_the_image_has_no_pixels(write: Write, box: list[float], pixels: int) -> None:
    def move(value: dict[str, Any]) -> None:
        value["annotations"][0]["bbox"] = box
        del value["annotations"][0]["segmentation"]

    truth = read_coco(write(changed(move)))
    assert truth.masks.pixels[1] == truth.as_box_masks().pixels[1] == pixels
    none = Detections(classes=truth.classes, image_ids=[], boxes=[], label_probs=np.zeros((0, 2)))
    notes = evaluate(truth, none, convention=Convention(box_truth=True)).notes
    said = Note("objects-outside", 1)
    assert (said in notes) == (pixels == 0)


def test_objects_without_pixels_count_as_in_pycocotools(write: Write, tmp_path: Path) -> None:
    value = changed(lambda t: t["annotations"][0].update(segmentation=NOWHERE))
    del value["annotations"][2]  # a crowd, which counts for nobody
    for annotation in value["annotations"]:
        annotation |= {"iscrowd": 0, "area": annotation.get("area", 14.0)}
    path = write(value)
    results = [{"image_id": 4, "category_id": 3, "bbox": [1.2, 2.0, 3.5, 4.0], "score": 0.9},
               {"image_id": 9, "category_id": 7, "bbox": [2.5, 3.0, 6.0, 3.5], "score": 0.8}]  # fmt: skip
    truth = read_coco(path)
    found = read_coco_results(write(results, "results.json"), truth)
    coco = COCO(str(path))
    theirs = COCOeval(coco, coco.loadRes(str(tmp_path / "results.json")), "bbox")
    theirs.evaluate()
    theirs.accumulate()
    theirs.summarize()
    ours = evaluate(truth, found).average_precision.summary()
    np.testing.assert_allclose(list(ours.values()), np.where(theirs.stats < 0, np.nan, theirs.stats), atol=1e-12)


def test_the_box_of_an_annotation_without_one_is_its_masks(write: Write) -> None:
    truth = read_coco(write(changed(lambda t: t["annotations"][2].pop("bbox"))))
    assert truth.boxes[2].tolist() == [0, 0, 2, 20]
    assert truth.extents[2].tolist() == [2, 20]
    assert Note("annotations-without-box", 1) in truth.notes


def test_lvis_lists_of_each_image(write: Write) -> None:
    def lists(file: dict[str, Any]) -> None:
        nine, four = file["images"]  # in the file, 9 precedes 4, and the dog, 7, precedes the cup, 3
        nine |= {"neg_category_ids": [3, 99], "not_exhaustive_category_ids": [7.0, 3]}
        four |= {"neg_category_ids": None}

    truth = read_coco(write(changed(lists)))
    assert truth.dataset.rules == "lvis"
    assert truth.dataset.negatives == ((), (0,))
    assert truth.dataset.not_exhaustive == ((), (1, 0))
    assert Note("lvis-rules", 2) in truth.notes
    some = truth.select_images([9]).dataset
    assert (some.negatives, some.not_exhaustive) == (((0,),), ((1, 0),))


@pytest.mark.parametrize(
    ("dog", "cup", "expected"),
    [
        ({"frequency": "f", "image_count": 1}, {"image_count": 10}, ("r", "f")),
        ({"frequency": "x", "image_count": 11}, {"frequency": 0.5, "image_count": 100}, ("c", "c")),
        ({"frequency": "r"}, {"image_count": 101}, ("f", "r")),
        ({"frequency": "r"}, {}, ()),
        ({"frequency": "r"}, {"image_count": "many"}, ()),
    ],
)
def test_frequencies_of_lvis(dog: Any, cup: Any, expected: tuple[str, ...], write: Write) -> None:
    def add(file: dict[str, Any]) -> None:
        file["images"][0]["neg_category_ids"] = [3]
        file["categories"][0] |= dog
        file["categories"][1] |= cup

    assert read_coco(write(changed(add))).dataset.frequencies == expected


@pytest.mark.parametrize("key", ["neg_category_ids", "not_exhaustive_category_ids"])
@pytest.mark.parametrize("value", ["3", {"3": 1}, [[3]], ["3"]])
def test_other_lists_are_refused(write: Write, key: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"images\[0\]\.{key}"):
        read_coco(write(changed(lambda file: file["images"][0].update({key: value}))))


@pytest.mark.parametrize("value", [[], None])
def test_lvis_keys_that_name_no_category_are_no_lvis(write: Write, value: Any) -> None:
    keys = {"neg_category_ids": value, "not_exhaustive_category_ids": value}
    path = write(changed(lambda file: [image.update(keys) for image in file["images"]]))
    assert read_coco(path).notes == read_coco(write(changed(lambda file: None), "plain.json")).notes


def test_one_image_that_names_categories_makes_the_file_lvis(write: Write) -> None:
    def one(file: dict[str, Any]) -> None:
        for image, names in zip(file["images"], ([], [3]), strict=True):
            image["neg_category_ids"] = names

    assert Note("lvis-rules", 2) in read_coco(write(changed(one))).notes


def test_annotations_without_ids_are_numbered(write: Write) -> None:
    truth = read_coco(write(changed(lambda t: [a.pop("id") for a in t["annotations"]])))
    assert truth.ids.tolist() == [1, 0, 2]


def test_sections_in_any_order_and_compressed(write: Write, truth: GroundTruth) -> None:
    turned = {key: TRUTH[key] for key in ("annotations", "categories", "images")} | {"info": {"more": [1, {"x": None}]}}
    again = read_truth(write(gzip.compress(json.dumps(turned).encode()), "named.json"))
    assert again.ids.tolist() == truth.ids.tolist()
    np.testing.assert_array_equal(again.masks.runs, truth.masks.runs)


def test_whole_numbers_written_as_floats(write: Write) -> None:
    def floats(t: dict[str, Any]) -> None:
        t["images"][0]["id"] = 9.0
        t["annotations"][0]["image_id"] = 9.0
        t["annotations"][0]["iscrowd"] = False

    assert read_coco(write(changed(floats))).image_ids.tolist() == [4, 9]


def test_no_objects_and_no_images_are_valid(write: Write) -> None:
    assert len(read_coco(write(changed(lambda t: t.update(annotations=[]))))) == 0
    empty = read_coco(write({"images": [], "categories": [], "annotations": []}))
    assert (len(empty), len(empty.image_ids), empty.classes) == (0, 0, ())


def entry(file: dict[str, Any], at: int) -> Any:
    return file["annotations"][at]


def mask(file: dict[str, Any], at: int) -> Any:
    return file["annotations"][at]["segmentation"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: entry(t, 1).update(image_id=5), "annotations[1].image_id: expected the id of one of the 2 images"),
        (lambda t: entry(t, 1).update(category_id=5), "image 4: annotations[1].category_id: expected the id of one"),
        (lambda t: t["images"][0].update(id=4), "images[1]: id 4 is already used by images[0]"),
        (lambda t: t["categories"][0].update(id=3), "categories[1]: id 3 is already used by categories[0]"),
        (lambda t: entry(t, 2).update(id=50), "annotations[2]: id 50 is already used by annotations[0]"),
        (lambda t: entry(t, 2).pop("id"), 'annotations[2]: expected a key "id" as other annotations have'),
        (lambda t: entry(t, 1).pop("bbox"), 'annotations[1]: expected a key "bbox"'),
        (lambda t: entry(t, 1).pop("image_id"), 'annotations[1]: expected a key "image_id"'),
        (lambda t: entry(t, 1).update(bbox=[1, 2, 3]), "annotations[1].bbox: expected a list of 4, but got 3"),
        (lambda t: entry(t, 1).update(bbox=[1, 2, -3, 4]), "expected width and height of at least 0"),
        (lambda t: entry(t, 1).update(bbox=[1, 2, float("nan"), 4]), "expected four finite numbers"),
        (lambda t: entry(t, 1).update(bbox=[1, 2, 1e300, 4]), "expected four finite numbers"),
        (lambda t: entry(t, 1).update(bbox="1,2,3,4"), 'expected a list of 4, but got the string "1,2,3,4"'),
        (lambda t: entry(t, 1).update(area=-1), "annotations[1].area: expected a finite area of at least 0"),
        (lambda t: entry(t, 1).update(iscrowd=2), "annotations[1].iscrowd: expected 0 or 1, but got 2"),
        (lambda t: entry(t, 0).update(segmentation=[[1, 2, 3]]), "segmentation[0]: expected x and y of at least"),
        (lambda t: entry(t, 0).update(segmentation=[1, 2, 3]), "segmentation[0]: expected a list, but got 1"),
        (lambda t: entry(t, 0).update(segmentation="x"), "expected a list of polygons or an object"),
        (lambda t: entry(t, 0).update(segmentation=[[1e9, 0, 1, 1, 2, 2]]), "expected coordinates from -1e8 to 1e8"),
        (lambda t: mask(t, 2).update(counts=[1, 2]), "expected run lengths that add up to 600"),
        (lambda t: mask(t, 2).update(counts=[-1, 601]), "expected run lengths of at least 0"),
        (lambda t: mask(t, 2).update(counts="not~~"), "expected compressed run lengths"),
        (lambda t: mask(t, 2).update(size=[30, 20]), "expected run lengths of size [20, 30]"),
        (lambda t: mask(t, 2).update(size=[20]), "size: expected a list of 2, but got 1"),
        (lambda t: mask(t, 2).pop("counts"), 'expected a key "counts"'),
        (lambda t: t["images"][1].update(width=0), "image 4: images[1].width: expected a size from 1 to 1000000"),
        (lambda t: t["images"][1].update(width=10**9), "expected a size from 1 to 1000000 pixels"),
        (lambda t: t["images"][1].update(id="4"), 'images[1].id: expected a whole number, but got the string "4"'),
        (lambda t: t["images"][1].update(id=4.5), "images[1].id: expected a whole number, but got 4.5"),
        (lambda t: t["images"][1].pop("height"), 'images[1]: expected a key "height"'),
        (lambda t: t["categories"][1].update(name=None), "categories[1].name: expected a string, but got null"),
        (lambda t: t.pop("categories"), 'expected a key "categories", but got no other keys'),
        (lambda t: t.update(images={}), "images: expected a list, but got an object"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(write: Write, change: Callable[[dict[str, Any]], Any], message: str) -> None:
    path = write(changed(change))
    with pytest.raises(InputError) as caught:
        read_coco(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert message in text
    assert "\n" not in text


def test_detections_in_the_place_of_truth(write: Write) -> None:
    with pytest.raises(InputError, match="name the ground truth first"):
        read_truth(write([{"image_id": 1}]))
    with pytest.raises(InputError, match="name the ground truth first"):
        read_truth(write({"classes": [], "detections": []}))


def test_val2017(coco_dir: Path) -> None:
    truth = read_coco(coco_dir / "val2017_boxes.json")
    assert (len(truth.image_ids), len(truth), len(truth.classes)) == (5000, 36781, 80)
    assert int(truth.crowd.sum()) == 446
    raw = json.loads((coco_dir / "val2017_boxes.json").read_bytes())
    first = {}
    for annotation in raw["annotations"]:
        first.setdefault(annotation["image_id"], []).append(annotation["bbox"])
    expected = np.array([box for image in sorted(first) for box in first[image]])
    np.testing.assert_array_equal(truth.extents, expected[:, 2:])
    np.testing.assert_array_equal(truth.boxes[:, 2:], expected[:, :2] + expected[:, 2:])
