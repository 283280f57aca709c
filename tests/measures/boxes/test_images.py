"""Average precision and LRP of each image alone: all at once against one image after the other."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.measures.boxes.test_properties import tables
from tests.strategies import random_world

import probox
from probox import Detections, Evaluation, GroundTruth
from probox.analysis.ranking import CHOICES, choose_images
from probox.measures.boxes import matching

KEYS = ("mAP", "AP50", "AP75", "moLRP", "moLRP_loc", "moLRP_fp", "moLRP_fn")


def check_each_image_alone(result: Evaluation) -> None:
    table = result.per_image().columns
    for row, image_id in enumerate(result.dataset.image_ids.tolist()):
        alone = result.select_images([image_id]).summary()
        for key in KEYS:
            assert table[key][row] == pytest.approx(alone[key], abs=1e-12, nan_ok=True), (image_id, key)


@given(tables(), st.sampled_from([1, 2, 50_000]))
@examples(40)
def test_an_image_has_the_numbers_that_it_has_alone(drawn: tuple[GroundTruth, Detections], groups: int) -> None:
    """Crowds, ties, areas that are not the boxes', empty images, more than 100 detections; groups in parts."""
    result = probox.evaluate(*drawn, measures=["map", "lrp"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_GROUPS", groups)
        check_each_image_alone(result)


@given(st.integers(0, 2**32 - 1))
@examples(25)
def test_an_image_has_the_numbers_that_it_has_alone_beside_pdq(seed: int) -> None:
    truth, found = random_world(seed, heatmaps=False, max_images=6)
    random = np.random.default_rng(seed)
    crowd = random.random(len(truth.labels)) < 0.2
    truth = truth.replace(crowd=crowd, areas=np.where(random.random(len(crowd)) < 0.2, 2e10, truth.areas))
    result = probox.evaluate(truth, found)
    check_each_image_alone(result)
    alone = [result.select_images([image_id]).summary()["PDQ"] for image_id in truth.image_ids.tolist()]
    assert result.per_image().columns["PDQ"].tolist() == pytest.approx(alone, nan_ok=True)


def cups_and_dogs() -> tuple[GroundTruth, Detections]:
    """Return four images: a cup found and a dog missed; a cup found after a wrong one; detections alone; nothing."""
    box, other = [10, 10, 40, 40], [50, 50, 90, 90]
    shapes = dict.fromkeys((1, 2, 3, 4), (99, 99))
    truth = GroundTruth.from_boxes(["cup", "dog"], shapes, [1, 1, 2], [box, other, box], [0, 1, 0])
    found = Detections(
        classes=["cup", "dog"], image_ids=[1, 2, 2, 3], boxes=[box, other, box, box],
        label_probs=[[0.5, 0], [0.75, 0], [0.25, 0], [0, 0.5]],
    )  # fmt: skip
    return truth, found


def test_numbers_by_hand() -> None:
    table = probox.evaluate(*cups_and_dogs(), measures=["map", "lrp"]).per_image().columns
    nan = math.nan
    assert table["image_id"].tolist() == [1, 2, 3, 4]
    for key in ("mAP", "AP50", "AP75"):  # AP 1 of cups and 0 of dogs; precision 1/2 at recall 1
        assert table[key].tolist() == pytest.approx([0.5, 0.5, nan, nan], nan_ok=True)
    assert table["moLRP"].tolist() == pytest.approx([(0 + 1) / 2, 1 / 2, nan, nan], nan_ok=True)
    assert table["moLRP_loc"].tolist() == pytest.approx([0, 0, nan, nan], nan_ok=True)
    assert table["moLRP_fp"].tolist() == pytest.approx([0, 1 / 2, nan, nan], nan_ok=True)
    assert table["moLRP_fn"].tolist() == pytest.approx([1 / 2, 0, nan, nan], nan_ok=True)


def test_a_detection_beyond_all_areas_is_neither_right_nor_wrong() -> None:
    truth, found = cups_and_dogs()
    boxes = found.boxes.copy()
    boxes[1] = [0, 0, 2e5, 2e5]  # image 2's wrong one
    result = probox.evaluate(truth, dataclasses.replace(found, boxes=boxes, extents=None), measures=["map", "lrp"])
    check_each_image_alone(result)
    table = result.per_image().columns
    assert (table["mAP"][1], table["moLRP_fp"][1]) == pytest.approx((1, 0))


def test_no_objects_and_no_detections() -> None:
    truth, found = cups_and_dogs()
    empty = probox.evaluate(truth.select_images([3, 4]), found, measures=["map", "lrp"]).per_image().columns
    assert all(np.isnan(empty[key]).tolist() == [True, True] for key in KEYS)
    silent = probox.evaluate(truth, found.select(np.zeros(0, np.int64)), measures=["map", "lrp"]).per_image().columns
    assert silent["mAP"].tolist() == pytest.approx([0, 0, math.nan, math.nan], nan_ok=True)
    assert silent["moLRP"].tolist() == pytest.approx([1, 1, math.nan, math.nan], nan_ok=True)


def test_what_nobody_asked_for_is_not_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found = cups_and_dogs()
    result = probox.evaluate(truth, found, measures=["pdq"])
    monkeypatch.setattr(matching, "_measure_groups", None)  # whoever calls it fails
    table = result.per_image()
    assert np.isnan(table.columns["mAP"]).all()
    assert "mAP" not in table.flat().columns
    assert "moLRP" not in table._repr_html_()
    everything = probox.evaluate(truth, found)
    with pytest.raises(TypeError):
        everything.per_image()
    for choice in CHOICES:  # who looks for the worst images needs no AP
        assert choose_images(everything, choice, 2)
