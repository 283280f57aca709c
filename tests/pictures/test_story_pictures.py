"""The picture of a story has its detection and its object, all that the caption speaks of, and nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np

import probox
from probox import Evaluation
from probox.pictures.stories import crop_around, story_view
from probox.tables.results import Verdict


def test_a_view_has_the_two_that_the_story_is_about(results: dict[str, Evaluation]) -> None:
    result = results["unsure"]
    told = list(probox.stories(result, 3))
    assert told
    for story in told:
        view = story_view(result, story)
        assert (len(view.detections), len(view.objects), len(view.masks), len(view.heatmaps)) == (1, 1, 1, 1)
        np.testing.assert_array_equal(view.detections.boxes[0], result.detections.boxes[story.detection])
        np.testing.assert_array_equal(view.objects.boxes[0], result.objects.boxes[story.object])
        matched = result.detections.partners[story.detection] == story.object
        assert view.detections.partners.tolist() == view.objects.partners.tolist() == [0 if matched else -1]
        assert (view.detections.verdicts[0] == Verdict.TP) == matched


def test_a_pair_that_pdq_does_not_match_is_none_in_the_view(results: dict[str, Evaluation]) -> None:
    result = results["unsure"]
    (story, *_) = probox.stories(result, 1)
    there = result.objects.image_rows == result.objects.image_rows[story.object]
    other = next(row for row in np.flatnonzero(there).tolist() if row != story.object)
    assert story_view(result, dataclasses.replace(story, object=other)).detections.partners.tolist() == [-1]


def test_the_part_that_is_shown_holds_two_sigmas_and_stays_in_the_image(results: dict[str, Evaluation]) -> None:
    result = results["unsure"]
    (story, *_) = probox.stories(result, 1)
    view = story_view(result, story)
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
