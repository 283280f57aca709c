"""Masks and heatmaps of COCO results: pixels, boxes and areas as pycocotools has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.mask as coco_mask
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.readers import read_coco_results

from probox import Detections, GroundTruth, InputError, evaluate
from probox.demo import make_demo
from probox.files.reading import Source
from probox.formats import read_detections, write_coco_results, write_rvc1
from probox.formats.coco import coco_results_from_bytes
from probox.formats.problems import Problems
from probox.formats.registry import COCO_RESULTS, dataset_alone, load_detections
from probox.tables.dataset import Dataset

Write = Callable[..., Path]


def entry(**changes: Any) -> dict[str, Any]:
    """Return a detection in the image of 30 x 20 pixels."""
    return {"image_id": 9, "category_id": 7, "score": 0.8} | changes


def coded(mask: np.ndarray) -> dict[str, Any]:
    code = coco_mask.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": [int(side) for side in code["size"]], "counts": code["counts"].decode()}


def counted(mask: np.ndarray) -> dict[str, Any]:
    flat = mask.ravel(order="F")
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flat]).astype(int))) if len(flat) else []
    return {"size": list(mask.shape), "counts": np.diff([0, *edges, len(flat)]).tolist()}


def blobs(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Return a mask that is noise, a few rectangles, empty or full."""
    mask = rng.random((height, width)) < 0.4 * (rng.random() < 0.3)
    for _ in range(int(rng.integers(0, 4))):
        y, x = rng.integers(0, height), rng.integers(0, width)
        mask[y : y + rng.integers(1, 20), x : x + rng.integers(1, 20)] = rng.random() < 0.8
    return mask | (rng.random() < 0.05)


def read(rows: list[dict[str, Any]], dataset: Dataset) -> Detections:
    return coco_results_from_bytes(json.dumps(rows).encode(), "results.json", dataset, Problems()).to_table()


@examples(60)
@given(seed=st.integers(0, 2**32 - 1))
def test_masks_are_those_of_the_coco_api(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = (int(side) for side in rng.integers(1, 60, 2))
    dataset = Dataset.from_sizes(["cup"], {9: (width, height)}, category_ids=[7])
    rows, codes = [], []
    for _ in range(5):
        kind = rng.integers(0, 3)
        if kind == 2:
            given_ = (rng.random((int(rng.integers(1, 3)), 8)) * ([width, height] * 4)).tolist()
            codes.append(coco_mask.merge(coco_mask.frPyObjects(given_, height, width)))
        else:
            mask = blobs(rng, height, width)
            given_ = (coded, counted)[kind](mask)
            codes.append(coco_mask.encode(np.asfortranarray(mask.astype(np.uint8))))
        rows.append(entry(segmentation=given_))
    found = read(rows, dataset)
    assert found.has_mask.all()
    for row, code in enumerate(codes):
        np.testing.assert_array_equal(found.masks.to_array(row, height, width), coco_mask.decode(code))
        assert [*found.boxes[row, :2], *found.extents[row]] == coco_mask.toBbox(code).tolist()
        assert found.areas[row] == found.masks.pixels[row] == coco_mask.area(code)


@examples(40)
@given(seed=st.integers(0, 2**32 - 1))
def test_masks_are_written_as_the_coco_api_codes_them(tmp_path_factory: Any, seed: int) -> None:
    path = tmp_path_factory.mktemp("masks") / "results.json"
    rng = np.random.default_rng(seed)
    height, width = (int(side) for side in rng.integers(1, 60, 2))
    dataset = Dataset.from_sizes(["cup"], {9: (width, height)}, category_ids=[7])
    masks = [blobs(rng, height, width) for _ in range(5)]
    rows = [entry(segmentation=coded(mask)) for mask in masks] + [entry(bbox=[1, 2, 3, 4])]
    found = read(rows, dataset)
    write_coco_results(path, found, dataset)
    assert [row.get("segmentation") for row in json.loads(path.read_bytes())] == [coded(m) for m in masks] + [None]
    again = read_detections(path, dataset)
    for name in ("boxes", "pixels", "offsets", "runs"):
        np.testing.assert_array_equal(getattr(again.masks, name), getattr(found.masks, name))
    assert again.has_mask.tolist() == [True] * 5 + [False]


MASK = np.zeros((20, 30), bool)
MASK[3:9, 4:7] = True
MASK[5, 5] = False


def test_boxes_and_areas(write: Write, truth: GroundTruth) -> None:
    with_box, without = entry(segmentation=coded(MASK), bbox=[4.5, 3, 10, 10]), entry(segmentation=coded(MASK))
    first = read_coco_results(write([with_box, without]), truth)
    assert first.boxes.tolist() == [[4.5, 3, 14.5, 13], [4, 3, 7, 9]]
    assert first.extents.tolist() == [[10, 10], [3, 6]]
    assert first.areas.tolist() == [100, 18]
    assert read([without], truth.dataset.replace(rules="challenge")).boxes.tolist() == [[4, 3, 6, 8]]
    second = read_coco_results(write([without, with_box, entry(bbox=[0, 0, 2, 3])]), truth)
    assert second.areas.tolist() == [17, 17, 6]
    assert second.has_mask.tolist() == [True, True, False]


@pytest.mark.parametrize("nothing", [None, []])
def test_no_segmentation(write: Write, truth: GroundTruth, nothing: Any) -> None:
    found = read_coco_results(write([entry(segmentation=nothing, bbox=[1, 2, 3, 4], masks_file=None)]), truth)
    assert (found.masks, found.has_mask, found.areas, found.heatmaps) == (None, None, None, None)
    with pytest.raises(InputError, match='expected a key "bbox"'):
        read_coco_results(write([entry(segmentation=nothing)]), truth)


@pytest.mark.parametrize("empty", [[[]], {"size": [20, 30], "counts": [600]}, coded(np.zeros((20, 30), bool))])
def test_an_empty_mask(write: Write, truth: GroundTruth, empty: Any) -> None:
    found = read_coco_results(write([entry(segmentation=empty)]), truth)
    assert (found.has_mask.tolist(), found.masks.pixels.tolist(), found.areas.tolist()) == ([True], [0], [0])
    assert found.boxes.tolist() == [[0, 0, 0, 0]]
    assert evaluate(truth, found).summary()["FP"] == 1


HUGE = 1 << 40
WRONG = [
    ("a mask", "[1].segmentation: expected a list of polygons or an object with run lengths, but got the string"),
    ([[1, 2, 3]], "[1].segmentation[0]: expected x and y of at least two points, but got 3 numbers"),
    ([[1, 2, 3, 1e300]], "[1].segmentation[0][3]: expected coordinates from -1e8 to 1e8"),
    ([[[[[[]]]]]], "[1].segmentation[0][0]: expected a number, but got a list"),
    ({"size": [20, 30]}, '[1].segmentation: expected a key "counts"'),
    ({"counts": [600]}, '[1].segmentation: expected a key "size"'),
    ({"size": [20, 30], "counts": [1, 2]}, "expected run lengths that add up to 600 (20 x 30), but they make 3"),
    ({"size": [20, 30], "counts": [HUGE] * 9}, "expected run lengths that add up to 600 (20 x 30)"),
    ({"size": [20, 30], "counts": [601, -1]}, "expected run lengths of at least 0, but got -1"),
    ({"size": [20, 30], "counts": "~"}, "expected compressed run lengths as the COCO API writes them"),
    ({"size": [20, 30], "counts": "oooooooooooooo"}, "expected compressed run lengths as the COCO API writes them"),
    ({"size": [0, 30], "counts": []}, "expected a size of [height, width] in pixels"),
    ({"size": [HUGE, HUGE], "counts": [HUGE * HUGE]}, "expected a size of [height, width] in pixels"),
    (
        {"size": [30, 20], "counts": [600]},
        "image 9: [1].segmentation.size: expected run lengths of size [20, 30], the image's height and width, but got "
        "[30, 20]; correct the size of the image or of the mask",
    ),
]


@pytest.mark.parametrize(("mask", "message"), WRONG)
def test_what_is_wrong_is_named(write: Write, truth: GroundTruth, mask: Any, message: str) -> None:
    path = write([entry(segmentation=coded(MASK)), entry(segmentation=mask), entry(bbox=[0, 0, 2, 3])])
    with pytest.raises(InputError) as caught:
        read_detections(path, truth)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    problems = Problems(lenient=True)
    found = load_detections(path, truth.dataset, problems)
    assert [(finding.count, finding.is_error) for finding in problems.findings] == [(1, True)]
    assert found.has_mask.tolist() == [True, False]


def test_deep_nesting_is_refused(write: Write, truth: GroundTruth) -> None:
    path = write(b'[{"image_id": 9, "segmentation": {"size": ' + b"[" * 9999 + b"]" * 9999 + b"}}]")
    with pytest.raises(InputError, match=r"expected a number, but got a list|nested more than"):
        read_detections(path, truth)


def test_masks_that_need_too_much_memory_are_refused(write: Write) -> None:
    dataset = Dataset.from_sizes(["cup"], {9: (1 << 15, 1 << 15)}, category_ids=[7])
    zigzag = [value for x in range(0, 1 << 15, 2) for value in (x, 0, x + 1, 1 << 15)]
    path = write([entry(segmentation=[zigzag]), entry(segmentation=[[0.0, 0.0, 1e8, 5.0] * 400])])
    with pytest.raises(InputError, match=r"image 9: \[\d\]\.segmentation: the masks up to this one"):
        read_detections(path, dataset)


@example(fraction=0.0)
@given(fraction=st.floats(0, 1))
@examples(5)
def test_without_ground_truth_images_have_the_size_of_their_masks(tmp_path_factory: Any, fraction: float) -> None:
    path = tmp_path_factory.mktemp("alone") / "results.json"
    path.write_text(json.dumps([entry(segmentation=coded(MASK), score=fraction), entry(image_id=4, bbox=[1, 2, 3, 4])]))
    dataset = dataset_alone(Source(path), COCO_RESULTS, [("dog", 7)])
    assert dataset.shapes.tolist() == [[1, 1], [30, 20]]
    found = read_detections(path, dataset)
    write_coco_results(path, found, dataset)
    assert json.loads(path.read_bytes())[0]["segmentation"] == coded(MASK)


def test_without_ground_truth_polygons_and_heatmaps_have_no_size(write: Write) -> None:
    for row, message in (
        (
            entry(segmentation=[[1, 1, 5, 1, 5, 5]]),
            r"image 9: \[0\].segmentation: expected run lengths, but got polygons",
        ),
        (entry(masks_file="a.npy"), "names heatmap files"),
    ):
        with pytest.raises(InputError, match=message):
            dataset_alone(Source(write([row])), COCO_RESULTS, [("dog", 7)])


def test_heatmaps_beside_the_results(write: Write, truth: GroundTruth, tmp_path: Path) -> None:
    maps = np.stack([MASK * 0.75, MASK * 0.25])
    np.save(tmp_path / "maps.npy", maps)
    rows = [
        entry(masks_file="maps.npy", mask_id=1),
        entry(masks_file="maps.npy", mask_id=0, bbox=[1, 2, 3, 4]),
        entry(image_id=4, bbox=[1, 2, 3, 4]),
        entry(image_id=77, masks_file="others.npy"),
        entry(masks_file="maps.npy", mask_id=0, segmentation=coded(MASK)),
    ]
    found = read_coco_results(write(rows), truth)
    assert found.has_heatmap.tolist() == [True, True, False, True]
    np.testing.assert_array_equal(np.asarray(found.heatmaps[0]), maps[1])
    np.testing.assert_array_equal(np.asarray(found.heatmaps[1]), maps[0])
    assert found.boxes.tolist() == [[4, 3, 7, 9], [1, 2, 4, 6], [1, 2, 4, 6], [4, 3, 7, 9]]
    assert found.extents.tolist() == [[3, 6], [3, 4], [3, 4], [3, 6]]
    assert found.has_mask.tolist() == [False, False, False, True]
    with pytest.raises(InputError, match="probox writes no heatmaps to COCO results"):
        write_coco_results(tmp_path / "out.json", found, truth)
    for row, message in (
        (entry(masks_file="maps.npy"), r'image 9: \[0\]: expected a key "mask_id", for maps.npy has 2 maps'),
        (entry(masks_file="none.npy"), "no such file"),
        (entry(masks_file="../maps.npy", mask_id=0), "to lie beside this file"),
    ):
        with pytest.raises(InputError, match=message):
            read_detections(write([row]), truth)


def test_masks_of_other_images_cannot_be_written(tmp_path: Path, truth: GroundTruth) -> None:
    found = read([entry(segmentation=coded(MASK))], truth.dataset)
    with pytest.raises(InputError, match="1 detection in images that are missing from the ground truth"):
        write_coco_results(tmp_path / "out.json", found.replace(image_ids=[5]), truth)
    mask = np.zeros((20, 30), bool)
    mask[19, 29] = True
    large = read([entry(segmentation=coded(mask))], truth.dataset).replace(image_ids=[4])
    with pytest.raises(InputError, match="image 4: detection 0: expected a mask in an image of 16 x 12 pixels"):
        write_coco_results(tmp_path / "out.json", large, truth)


def test_the_demo_s_masks_reach_the_pdq_of_their_labels(tmp_path: Path) -> None:
    truth = make_demo(images=3).truth
    found = Detections(
        classes=truth.classes,
        image_ids=truth.image_ids[truth.image_rows],
        boxes=truth.boxes,
        label_probs=0.9 * np.eye(len(truth.classes))[truth.labels],
        masks=truth.masks,
    )
    for write, name in ((write_coco_results, "found.json"), (write_rvc1, "found.rvc1.json")):
        write(tmp_path / name, found, truth)
        result = evaluate(truth, tmp_path / name)
        assert round(100 * result.pdq, 2) == 94.87
        assert (result.detections.masks.all(), result.detections.heatmaps.any()) == (
            name == "found.json",
            name != "found.json",
        )
