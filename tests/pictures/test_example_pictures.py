"""The picture of an example has its detection and its object, all that the caption speaks of, and nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np

import probox
from probox import Evaluation
from probox.pictures.example_pictures import crop_around, view_of_example
from probox.tables.results import Verdict


def test_a_view_has_the_two_that_the_example_is_about(results: dict[str, Evaluation]) -> None:
    result = results["unsure"]
    told = list(probox.example_detections(result, 3))
    assert told
    for example in told:
        view = view_of_example(result, example)
        assert (len(view.detections), len(view.objects), len(view.masks), len(view.heatmaps)) == (1, 1, 1, 1)
        np.testing.assert_array_equal(view.detections.boxes[0], result.detections.boxes[example.detection])
        np.testing.assert_array_equal(view.objects.boxes[0], result.objects.boxes[example.object])
        matched = result.detections.partners[example.detection] == example.object
        assert view.detections.partners.tolist() == view.objects.partners.tolist() == [0 if matched else -1]
        assert (view.detections.verdicts[0] == Verdict.TP) == matched


def test_a_pair_that_pdq_does_not_match_is_none_in_the_view(results: dict[str, Evaluation]) -> None:
    result = results["unsure"]
    (example, *_) = probox.example_detections(result, 1)
    there = result.objects.image_rows == result.objects.image_rows[example.object]
    other = next(row for row in np.flatnonzero(there).tolist() if row != example.object)
    assert view_of_example(result, dataclasses.replace(example, object=other)).detections.partners.tolist() == [-1]


def test_the_part_that_is_shown_holds_two_sigmas_and_stays_in_the_image(results: dict[str, Evaluation]) -> None:
    result = results["unsure"]
    (example, *_) = probox.example_detections(result, 1)
    view = view_of_example(result, example)
    for sigma in (1.0, 60.0, 5000.0):
        spread = np.broadcast_to(np.eye(2) * sigma**2, (1, 2, 2, 2)).astype(view.detections.covariances.dtype)
        wide = dataclasses.replace(view, detections=view.detections.replace(covariances=spread))
        x1, y1, x2, y2 = crop_around(wide)
        edge = np.array([view.width, view.height]) - 0.5
        boxes = np.stack([view.detections.boxes[0], view.objects.boxes[0]])
        low = np.minimum(view.detections.boxes[0, :2] - 2 * sigma, boxes[:, :2].min(axis=0))
        high = np.maximum(view.detections.boxes[0, 2:] + 2 * sigma, boxes[:, 2:].max(axis=0))
        assert (np.array([x1, y1]) >= -0.5).all()
        assert (np.array([x2, y2]) <= edge).all()
        assert (np.array([x1, y1]) <= np.maximum(low, -0.5)).all()
        assert (np.array([x2, y2]) >= np.minimum(high, edge)).all()
        assert (x2 - x1 < view.width) or sigma > 1.0  # it is cut out
