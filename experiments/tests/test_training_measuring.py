"""What is measured of a trained detector: known where the right answer is given, and what is wrong with it."""

from __future__ import annotations

import numpy as np
import pytest

from probox import Detections
from probox_experiments.training.arms import best_sigma, measure_found
from probox_experiments.training.scenes import CLASSES, OCCLUDED, SHARP, Scenes, draw_scenes


@pytest.fixture(scope="module")
def scenes() -> Scenes:
    return draw_scenes(400, seed=77)


def found_in(scenes: Scenes, sigmas: np.ndarray, boxes: np.ndarray | None = None) -> Detections:
    """Return a detection for each object: its nominal box, or another, with these sigmas."""
    return Detections(
        classes=CLASSES,
        image_ids=scenes.image_rows + 1,
        boxes=scenes.nominal if boxes is None else boxes,
        label_probs=np.where(np.arange(len(CLASSES)) == scenes.labels[:, None], 0.9, 0.05),
        covariances=(sigmas.reshape(-1, 2, 2) ** 2)[..., None] * np.eye(2),
    )


def test_the_right_answer_covers_what_it_says(scenes: Scenes) -> None:
    measured = measure_found(scenes, found_in(scenes, scenes.sigmas))
    for share in (50, 80, 90, 95):
        assert measured[f"coverage_{share}"] == pytest.approx(share / 100, abs=0.02)
    assert measured["sigma_ratio"] == pytest.approx(1.0)
    assert measured["sigma_correlation"] == pytest.approx(1.0)
    assert measured["mean_error"] == pytest.approx(0.0, abs=1e-9)
    assert measured["occluded_wider"] == 1.0
    assert measured["sharp_sigma"] == pytest.approx(0.5)
    assert 1.5 < measured["occluded_sigma"] < 2.5


def test_what_is_wrong_is_seen(scenes: Scenes) -> None:
    """Sigmas of half the size; kinds taken for one another; boxes off by a pixel."""
    half = measure_found(scenes, found_in(scenes, scenes.sigmas / 2))
    assert half["sigma_ratio"] == pytest.approx(0.5)
    assert half["coverage_90"] == pytest.approx(0.589, abs=0.02)  # 2 Phi(1.645 / 2) - 1
    swapped = np.where(scenes.kinds == OCCLUDED, 0.5, np.where(scenes.kinds == SHARP, 2.0, scenes.sigmas))
    wrong = measure_found(scenes, found_in(scenes, swapped))
    assert wrong["occluded_wider"] == 0.0
    assert wrong["sigma_correlation"] < 0.5
    off = measure_found(scenes, found_in(scenes, scenes.sigmas, scenes.nominal + 1.0))
    assert off["mean_error"] == pytest.approx(1.0)
    right = measure_found(scenes, found_in(scenes, scenes.sigmas))
    assert right["NLL"] < min(half["NLL"], wrong["NLL"], off["NLL"])
    assert right["PDQ"] > max(half["PDQ"], wrong["PDQ"], off["PDQ"])


@pytest.mark.torch
def test_the_best_one_sigma_is_that_of_the_errors(scenes: Scenes) -> None:
    pytest.importorskip("torch")
    errors = 2.0 * np.random.default_rng(3).standard_normal(scenes.boxes.shape)
    boxes = scenes.boxes + errors
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1.0)
    assert best_sigma(scenes, found_in(scenes, scenes.sigmas, boxes)) == pytest.approx(2.0, rel=0.15)
