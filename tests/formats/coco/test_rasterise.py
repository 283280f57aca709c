"""Masks from polygons and run lengths: pixel for pixel those of the COCO API."""

from __future__ import annotations

import contextlib
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.mask as coco_mask
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocotools.coco import COCO
from tests.amounts import examples
from tests.readers import read_coco

from probox.formats.coco import coco_truth_from_bytes
from probox.formats.problems import Problems
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks

# The COCO API's own way of making arrays, on today's NumPy.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def truth_of(height: int, width: int, segmentations: list[Any]) -> GroundTruth:
    annotations = [
        {"id": at, "image_id": 1, "category_id": 1, "segmentation": segmentation}
        for at, segmentation in enumerate(segmentations)
    ]
    file = {
        "images": [{"id": 1, "width": width, "height": height}],
        "categories": [{"id": 1, "name": "thing"}],
        "annotations": annotations,
    }
    return coco_truth_from_bytes(json.dumps(file).encode(), "truth.json", Problems())


def assert_same(truth: GroundTruth, at: int, expected: np.ndarray) -> None:
    """Check one annotation: the mask, or that it was left out because it has no pixel."""
    rows = np.flatnonzero(truth.ids == at)
    if not expected.any():
        assert len(rows) == 0
        return
    row = int(rows[0])
    np.testing.assert_array_equal(truth.masks.to_array(row, *expected.shape), expected)
    assert truth.masks.pixels[row] == expected.sum()
    ys, xs = np.nonzero(expected)
    assert truth.masks.boxes[row].tolist() == [xs.min(), ys.min(), xs.max(), ys.max()]
    runs = truth.masks.runs[truth.masks.offsets[row] : truth.masks.offsets[row + 1]]
    full = (xs.max() - xs.min() + 1) * (ys.max() - ys.min() + 1)
    assert (len(runs) == 0) == (expected.sum() == full)
    assert all(tuple(a) < tuple(b) for a, b in pairwise(runs))
    touching = (runs[1:, 0] == runs[:-1, 0]) & (runs[1:, 1] <= runs[:-1, 2])
    assert not touching.any()


# Coordinates inside and outside, on pixel edges, on centres, on the fifths that decide, and in between.
coordinates = st.one_of(
    st.floats(-80, 160, allow_nan=False),
    st.integers(-20, 80).map(float),
    st.integers(-200, 400).map(lambda k: k / 5),
    st.integers(-200, 400).map(lambda k: k / 10),
    st.floats(-1e7, 1e7, allow_nan=False),
)
polygon = st.lists(coordinates, min_size=6, max_size=20).map(lambda xs: xs[: len(xs) // 2 * 2])
sizes = st.integers(1, 70)


@given(sizes, sizes, st.lists(polygon, min_size=1, max_size=3))
@examples(300)
def test_polygons(height: int, width: int, pieces: list[list[float]]) -> None:
    # The COCO API walks an edge step by step: the steps of very long ones are only few enough if there are few.
    assumed = [[max(-3e3, min(3e3, value)) for value in piece] for piece in pieces]
    merged = coco_mask.merge(coco_mask.frPyObjects(assumed, height, width))
    expected = coco_mask.decode(merged).astype(bool)
    truth = truth_of(height, width, [assumed, {"size": [height, width], "counts": merged["counts"].decode()}])
    assert_same(truth, 0, expected)
    assert_same(truth, 1, expected)


@given(st.data(), sizes, sizes)
def test_run_lengths(data: st.DataObject, height: int, width: int) -> None:
    bits = data.draw(st.binary(min_size=height * width, max_size=height * width))
    mask = (np.frombuffer(bits, np.uint8) % 3 == 0).reshape(height, width)
    flat = mask.reshape(-1, order="F")
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flat]))) if flat.size else np.zeros(0, int)
    counts = np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()
    compressed = coco_mask.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"].decode()
    truth = truth_of(
        height,
        width,
        [{"size": [height, width], "counts": counts}, {"size": [height, width], "counts": compressed}],
    )
    assert_same(truth, 0, mask)
    assert_same(truth, 1, mask)


def check_file(path: Path) -> int:
    """Compare all masks of a file, in order; return how many there were."""
    truth = read_coco(path)
    with contextlib.redirect_stdout(io.StringIO()):
        oracle = COCO(str(path))
    row = 0
    for image in truth.image_ids:
        for number in oracle.getAnnIds(imgIds=[int(image)]):
            expected = oracle.annToMask(oracle.anns[number]).astype(bool)
            if expected.any():
                assert truth.ids[row] == number
                assert truth.masks.pixels[row] == expected.sum()
                x0, y0, x1, y1 = truth.masks.boxes[row]
                inside = Masks.from_arrays([expected[y0 : y1 + 1, x0 : x1 + 1]])
                assert inside.pixels[0] == expected.sum()
                assert inside.boxes[0].tolist() == [0, 0, x1 - x0, y1 - y0]
                begin, end = truth.masks.offsets[row : row + 2]
                shifted = inside.runs + np.array([y0, x0, x0])
                np.testing.assert_array_equal(truth.masks.runs[begin:end], shifted)
                row += 1
    assert row == len(truth)
    return row


@pytest.mark.parametrize("case", ["bbox", "mixed", "outside", "pbox_corr", "probseg"])
def test_golden_files(golden_dir: Path, case: str) -> None:
    assert check_file(golden_dir / case / "ground_truth.json") > 10


@pytest.mark.slow
def test_real_masks(coco_dir: Path) -> None:
    assert check_file(coco_dir / "val2017_masks_206.json") == 1786
