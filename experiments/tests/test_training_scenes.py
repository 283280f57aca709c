"""The scenes to train on: what is right by construction is so."""

from __future__ import annotations

import numpy as np
import pytest

from probox import Detections, InputError, evaluate
from probox_experiments.synthetic import edge_covariances
from probox_experiments.training.arms import best_sigma, measure_found
from probox_experiments.training.scenes import (
    BLURRED,
    CLASSES,
    FADED,
    KINDS,
    OCCLUDED,
    OUTLINE,
    SHARP,
    SHARP_SIGMA,
    SIDE,
    SIGMAS,
    Scenes,
    draw_scenes,
    render,
)


@pytest.fixture(scope="module")
def scenes() -> Scenes:
    return draw_scenes(3000, seed=7)


def test_true_edges_are_standard_normal_around_nominal_ones(scenes: Scenes) -> None:
    for kind in range(len(KINDS)):
        errors = ((scenes.boxes - scenes.nominal) / scenes.sigmas)[scenes.kinds == kind]
        error = 1 / np.sqrt(len(errors))
        assert abs(errors.mean()) < 4 * error
        assert abs(errors.var() - 1) < 6 * error
        for reach, share in ((0.6745, 0.5), (1.645, 0.9), (1.96, 0.95)):
            assert abs(np.mean(np.abs(errors) < reach) - share) < 4 * np.sqrt(share * (1 - share)) * error


def test_sigmas_follow_from_what_is_shown(scenes: Scenes) -> None:
    sharp = scenes.kinds == SHARP
    assert (scenes.sigmas[sharp] == SHARP_SIGMA).all()
    assert scenes.sigmas[~sharp].min() >= SIGMAS[0]
    assert scenes.sigmas[~sharp].max() <= SIGMAS[1]
    assert 0.38 < sharp.mean() < 0.42
    # The place of the truth within its Gaussian tells nothing about sigma.
    errors = (scenes.boxes - scenes.nominal) / scenes.sigmas
    assert abs(np.corrcoef(errors.ravel(), scenes.sigmas.ravel())[0, 1]) < 0.03


def test_objects_lie_in_the_image_and_apart(scenes: Scenes) -> None:
    assert scenes.boxes.min() >= 0
    assert scenes.boxes.max() <= SIDE - 1
    assert ((scenes.boxes == 0) | (scenes.boxes == SIDE - 1)).mean() < 0.002
    sides = scenes.nominal[:, 2:] - scenes.nominal[:, :2]
    assert sides.min() >= 20
    assert sides.max() <= 36
    same = np.flatnonzero(np.diff(scenes.image_rows) == 0)
    first, second = scenes.nominal[same], scenes.nominal[same + 1]
    shared = np.minimum(first[:, 2:], second[:, 2:]) - np.maximum(first[:, :2], second[:, :2])
    assert (shared.min(axis=1) <= 1).all()


def test_the_truth_is_what_the_measure_reads(scenes: Scenes) -> None:
    """Nominal box and true standard deviation give correct pixel probabilities and the highest score nearby."""
    few = draw_scenes(400, seed=8)
    assert few.truth.classes == CLASSES
    np.testing.assert_array_equal(few.pixel_boxes[:, :2], np.floor(few.boxes[:, :2]))
    np.testing.assert_array_equal(few.pixel_boxes[:, 2:], np.ceil(few.boxes[:, 2:]))

    def score(shift: float, factor: float) -> float:
        found = Detections(
            classes=CLASSES,
            image_ids=few.image_rows + 1,
            boxes=few.nominal + shift * np.array([1, 1, -1, -1]),
            label_probs=np.eye(3, dtype=np.float32)[few.labels],
            covariances=edge_covariances(factor * few.sigmas),
        )
        return evaluate(few.truth, found, measures=("pdq",), convention="paper").pdq

    best = score(0, 1)
    for shift, factor in ((0.4, 1), (-0.4, 1), (0, 0.8), (0, 1.25)):
        assert score(shift, factor) < best, (shift, factor)


def test_the_same_seed_gives_the_same_pictures_and_another_one_others() -> None:
    first, again, other = (render(draw_scenes(5, seed)) for seed in (1, 1, 2))
    assert first.shape == (5, 3, SIDE, SIDE)
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.5


@pytest.mark.parametrize("kind", range(4))
def test_pictures_show_where_an_edge_seems_to_be_and_of_which_kind(kind: int) -> None:
    nominal = np.array([[30.0, 30.0, 60.0, 60.0]])
    sigma = SHARP_SIGMA if kind == SHARP else 2.5
    kinds = np.array([[kind, SHARP, SHARP, SHARP]])
    sigmas = np.array([[sigma, SHARP_SIGMA, SHARP_SIGMA, SHARP_SIGMA]])
    zeros = np.zeros(1, np.int64)
    picture = render(Scenes(1, zeros, zeros, kinds, nominal, sigmas, nominal, seed=3))[0].astype(float)
    line = picture[:, 40:55].mean(axis=(0, 1))  # across the left edge, which is seen at 29.5
    seen = nominal[0, 0] + OUTLINE[0]
    inside, outside = line[45:55].mean(), line[:15].mean()
    assert inside > outside + 60
    if kind == OCCLUDED:
        hidden = picture[:, 40:55, 26:33].mean(axis=(1, 2))
        assert hidden[2] > hidden[0] + 80  # blue
        return
    share = (line - outside) / (inside - outside)
    centre = 45 - share[15:45].sum()  # where a step with the same area would be
    assert abs(centre - seen) < (1.0 if kind == FADED else 0.4)  # fading is random, pixel by pixel
    width = np.sum((share > 0.1) & (share < 0.9))
    assert width <= 2 if kind == SHARP else 6 <= width <= 11
    noise = picture[:, 40:55, 27:32].std(axis=1).mean()
    assert (noise > 40) == (kind == FADED)
    assert BLURRED != FADED


def test_no_image_is_refused() -> None:
    with pytest.raises(InputError, match="at least one image"):
        draw_scenes(0, seed=0)


# --- what is measured of detections ---


@pytest.fixture(scope="module")
def few() -> Scenes:
    return draw_scenes(400, seed=77)


def found_in(scenes: Scenes, sigmas: np.ndarray, boxes: np.ndarray | None = None) -> Detections:
    """Return a detection for each object: its nominal box, or another, with these sigmas."""
    return Detections(
        classes=CLASSES,
        image_ids=scenes.image_rows + 1,
        boxes=scenes.nominal if boxes is None else boxes,
        label_probs=np.where(np.arange(len(CLASSES)) == scenes.labels[:, None], 0.9, 0.05),
        covariances=edge_covariances(sigmas),
    )


def test_the_right_answer_covers_what_it_says(few: Scenes) -> None:
    measured = measure_found(few, found_in(few, few.sigmas))
    for share in (50, 80, 90, 95):
        assert measured[f"coverage_{share}"] == pytest.approx(share / 100, abs=0.02)
    assert measured["sigma_ratio"] == pytest.approx(1.0)
    assert measured["sigma_correlation"] == pytest.approx(1.0)
    assert measured["mean_error"] == pytest.approx(0.0, abs=1e-9)
    assert measured["occluded_wider"] == 1.0
    assert measured["sharp_sigma"] == pytest.approx(0.5)
    assert 1.5 < measured["occluded_sigma"] < 2.5


def test_what_is_wrong_is_seen(few: Scenes) -> None:
    """Sigmas of half the size; kinds taken for one another; boxes off by a pixel."""
    half = measure_found(few, found_in(few, few.sigmas / 2))
    assert half["sigma_ratio"] == pytest.approx(0.5)
    assert half["coverage_90"] == pytest.approx(0.589, abs=0.02)  # 2 Phi(1.645 / 2) - 1
    swapped = np.where(few.kinds == OCCLUDED, 0.5, np.where(few.kinds == SHARP, 2.0, few.sigmas))
    wrong = measure_found(few, found_in(few, swapped))
    assert wrong["occluded_wider"] == 0.0
    assert wrong["sigma_correlation"] < 0.5
    off = measure_found(few, found_in(few, few.sigmas, few.nominal + 1.0))
    assert off["mean_error"] == pytest.approx(1.0)
    right = measure_found(few, found_in(few, few.sigmas))
    assert right["NLL"] < min(half["NLL"], wrong["NLL"], off["NLL"])
    assert right["PDQ"] > max(half["PDQ"], wrong["PDQ"], off["PDQ"])


@pytest.mark.torch
def test_the_best_one_sigma_is_that_of_the_errors(few: Scenes) -> None:
    pytest.importorskip("torch")
    errors = 2.0 * np.random.default_rng(3).standard_normal(few.boxes.shape)
    boxes = few.boxes + errors
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1.0)
    assert best_sigma(few, found_in(few, few.sigmas, boxes)) == pytest.approx(2.0, rel=0.15)
