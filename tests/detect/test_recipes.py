"""The constant sigma, the paper's recipes to the letter, and what is kept of a network without masks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import probox
from probox.detect import Candidates, Detector, Dropout, Options, detect
from probox.detect.random_masks import MaskCost, mask_cost, pair_scores
from probox.detect.uncertainty import collect_passes, make_detections
from probox.errors import InputError
from probox.formats import read_detections
from probox.formats.writing import write_detections
from probox.fusion import Spread
from probox.fusion.fusion_definition import box_iou, cluster_sequentially, suppress
from probox.fusion.gaussian import keep_inside

from .test_uncertainty import CLASSES, IMAGE, SIZE, Scripted, _candidates

LITERAL = {"recipe": "paper"}


def _random(seed: int, count: int = 14) -> Candidates:
    """Boxes around two places, some of them over the border, each sure of one of two classes."""
    rng = np.random.default_rng(seed)
    centres = np.array([[14.0, 12.0], [46.0, 26.0]])[rng.integers(0, 2, count)] + rng.normal(0, 1.0, (count, 2))
    half = rng.uniform(11, 14, (count, 2))
    scores = np.zeros((count, 3), np.float32)
    scores[np.arange(count), rng.integers(0, 2, count)] = rng.uniform(0.3, 0.9, count)
    return Candidates(np.concatenate([centres - half, centres + half], axis=1), scores)


def test_constant_is_a_share_of_the_side_and_the_boxes_are_the_plain_ones() -> None:
    detector = Scripted(
        _candidates(([20, 10, 40, 30], [0.9, 0, 0]), ([12, 12, 52, 20], [0, 0.8, 0]), ([0, 5, 30, 40], [0, 0, 0.7]))
    )
    plain = detect(detector, [IMAGE], [7], Options())[0]
    found = detect(detector, [IMAGE], [7], Options(uncertainty="constant", relative_std=0.05))[0]
    for name in ("labels", "scores", "label_probs", "image_ids"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    np.testing.assert_array_equal(found.boxes, plain.boxes)
    for row, (width, height) in enumerate([(20.0, 20.0), (40.0, 8.0), (30.0, 35.0)]):
        wanted = np.diag([(0.05 * width) ** 2, (0.05 * height) ** 2])
        np.testing.assert_allclose(found.covariances[row], [wanted, wanted], rtol=1e-14)
    pinned = detect(detector, [IMAGE], [7], Options(uncertainty="constant", relative_std=0.05, border="pin"))[0]
    boxes, covariances = keep_inside(plain.boxes, found.covariances, SIZE)
    np.testing.assert_array_equal(pinned.boxes, boxes)
    np.testing.assert_array_equal(pinned.covariances, covariances)
    assert Options().relative_std == 0.07


def test_constant_is_a_share_of_sides_below_a_pixel_too() -> None:
    detector = Scripted(_candidates(([20, 10, 20.5, 30], [0.9, 0, 0])))
    found = detect(detector, [IMAGE], [7], Options(uncertainty="constant", relative_std=0.1))[0]
    np.testing.assert_allclose(found.covariances[0, 0], np.diag([0.05**2, 2.0**2]), rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, -0.1, float("inf"), float("nan")])
def test_a_share_is_above_0_and_finite(share: float) -> None:
    with pytest.raises(InputError, match="relative_std"):
        Options(uncertainty="constant", relative_std=share)


@pytest.mark.parametrize("seed", range(6))
def test_the_papers_clusters_to_the_letter(seed: int) -> None:
    """probFRCNN: survivors with all they suppress at an IoU above 0.75, moments weighted by winning confidence."""
    candidates = _random(seed)
    boxes = candidates.boxes.clip(0, [*SIZE, *SIZE])
    scores, labels = candidates.scores.max(axis=1), candidates.scores.argmax(axis=1)
    order = np.argsort(-scores, kind="stable")
    stands_for = suppress(boxes, labels, order, 0.5)
    survivors = [row for row in order if stands_for[row] == row]
    found = detect(Scripted(candidates), [IMAGE], [7], Options(uncertainty="nms-clusters", **LITERAL))[0]
    assert found.scores.tolist() == scores[survivors].astype(float).tolist()
    for row, survivor in enumerate(survivors):
        members = [survivor] + [
            other
            for other in range(len(boxes))
            if stands_for[other] != other
            and labels[other] == labels[survivor]
            and box_iou(boxes[survivor], boxes[other]) > 0.75
        ]
        weights = scores[members].astype(float)
        np.testing.assert_allclose(found.boxes[row], np.average(boxes[members], axis=0, weights=weights))
        for corner in (0, 1):
            wanted = np.zeros((2, 2))  # one alone has no covariance: a plain box
            if len(members) > 1:
                wanted = np.cov(boxes[members][:, 2 * corner : 2 * corner + 2].T, aweights=weights)
            np.testing.assert_allclose(found.covariances[row, corner], wanted, atol=1e-9)
    assert len(found) < len(boxes)


@pytest.mark.parametrize("seed", range(4))
def test_the_papers_samples_to_the_letter(seed: int) -> None:
    """MC-Dropout SSD: BSAS at IoU 0.7 with the same label, distributions averaged over samples, mean and covariance."""
    passes = [_random(10 * seed + number) for number in range(5)]
    options = Options(uncertainty="mc-dropout", passes=5, **LITERAL)
    found = detect(Scripted(*passes), [IMAGE], [7], options)[0]
    alone = [detect(Scripted(one), [IMAGE], [7], Options())[0] for one in passes]
    boxes = np.concatenate([one.boxes for one in alone])
    probs = np.concatenate([one.label_probs for one in alone]).astype(float)
    cluster = cluster_sequentially(boxes, 0.7, probs.argmax(axis=1))
    assert len(found) == cluster.max() + 1
    expected = []
    for number in range(cluster.max() + 1):
        own = cluster == number
        corners = boxes[own].reshape(-1, 2, 2)
        spread = [np.cov(corners[:, k].T) if own.sum() > 1 else np.zeros((2, 2)) for k in (0, 1)]
        expected.append((probs[own].mean(axis=0), boxes[own].mean(axis=0), np.array(spread)))
    expected.sort(key=lambda entry: -entry[0].max())
    np.testing.assert_allclose(found.label_probs, [entry[0] for entry in expected], rtol=1e-5)
    np.testing.assert_allclose(found.boxes, [entry[1] for entry in expected], rtol=1e-9)
    np.testing.assert_allclose(found.covariances, [entry[2] for entry in expected], atol=1e-9)


def test_plain_and_probabilistic_boxes_are_judged_side_by_side(tmp_path: Path) -> None:
    """A covariance of 0 in a table of others is the plain box, to the bit, also after a file."""
    masks = np.zeros((2, 60, 80), bool)
    masks[0, 10:30, 10:40], masks[1, 30:50, 45:70] = True, True
    truth = probox.GroundTruth.from_masks(CLASSES, [(1, list(masks), [0, 1])])
    mixed = probox.Detections(
        classes=CLASSES,
        image_ids=[1, 1],
        boxes=[[10, 10, 40, 29], [46, 31, 68, 48]],
        label_probs=[[0.9, 0, 0], [0, 0.8, 0]],
        covariances=[np.zeros((2, 2, 2)), np.stack([np.diag([4.0, 2.0])] * 2)],
    )
    both = probox.evaluate(truth, mixed)
    alone = [
        probox.evaluate(truth, mixed.select([0]).replace(covariances=None)).detections.quality("spatial")[0],
        probox.evaluate(truth, mixed.select([1])).detections.quality("spatial")[0],
    ]
    assert both.detections.quality("spatial").tolist() == alone
    assert all(0 < value < 1 for value in alone)
    for name in ("found.json", "found.coco.json"):
        write_detections(tmp_path / name, mixed, truth)
        back = read_detections(tmp_path / name, truth)
        assert probox.evaluate(truth, back).pdq == pytest.approx(both.pdq, rel=1e-12)


def test_the_papers_recipe_has_no_numbers_of_ours() -> None:
    with pytest.raises(InputError, match=r"do not belong to the paper's recipe; leave them out"):
        Options(recipe="paper", spread=Spread(min_std=2.0))
    assert Options(spread=Spread(min_std=2.0)).fusing["min_std"] == 2.0
    assert Options(recipe="paper").fusing == {"min_std": 0.0, "prior_std": 0.0, "shrinkage": 0.0}
    with pytest.raises(InputError, match="recipe to be one of probox, paper"):
        Options(recipe="other")  # type: ignore[arg-type]


def test_edges_keep_their_own_variances_to_the_letter() -> None:
    covariances = np.array([[np.diag([400.0, 0.01])] * 2])
    head = Candidates(np.array([[0.0, 10, 30, 30]]), np.array([[0.8, 0, 0]], np.float32), covariances)
    found = detect(
        Scripted(head, has_edges=True), [IMAGE], [1], Options(uncertainty="edge-distribution", recipe="paper")
    )[0]
    np.testing.assert_array_equal(found.covariances, covariances)
    np.testing.assert_array_equal(found.boxes, head.boxes)


def test_what_the_network_says_without_masks_is_kept(ssd: Path) -> None:
    detector = Detector(ssd, classes=CLASSES, dropout=Dropout(rate=0.4), threads=1)
    options = Options(uncertainty="mc-dropout", passes=3)
    (seen,) = collect_passes(detector, [IMAGE], [5], options)
    assert len(seen) == 3
    kept = make_detections(seen, detector.family, SIZE, 5, options)
    plain = detect(Detector(ssd, classes=CLASSES, threads=1), [IMAGE], [5], Options())[0]
    np.testing.assert_allclose(kept.plain_scores[:, 0], plain.scores, rtol=1e-5)
    assert set(kept.plain_scores[:, 1]) - {0} <= set(kept.detections.scores.astype(np.float32))
    assert not np.array_equal(kept.detections.scores, plain.scores)
    # A detector of one's own says it by its candidates; other ways have nothing to compare.
    own = Scripted(_candidates(([10, 10, 30, 30], [0.8, 0.0, 0.0])))
    (seen,) = collect_passes(own, [IMAGE], [1], options)
    assert make_detections(seen, own.family, SIZE, 1, options).plain_scores.tolist() == [[np.float32(0.8)] * 2]
    for uncertainty in ("none", "flip-scale"):
        other = dataclasses.replace(options, uncertainty=uncertainty)
        (seen,) = collect_passes(own, [IMAGE], [1], other)
        assert make_detections(seen, own.family, SIZE, 1, other).plain_scores is None


def _cost(remain: int, disappear: int, appear: int, masked: float = 0.9) -> MaskCost:
    """Detections without masks score 0.9."""
    pairs = [[0.9, masked]] * remain + [[0.9, 0.0]] * disappear
    return mask_cost([masked] * (remain + appear), pairs)


def test_masks_are_reported_in_both_directions() -> None:
    cost = mask_cost([0.9, 0.7, 0.6, 0.5, 0.2], [[0.9, 0.9], [0.8, 0.7], [0.6, 0.5], [0.5, 0.6], [0.1, 0.0]])
    assert (cost.level, cost.plain, cost.masked) == (0.5, 3, 3)  # 0.5 itself is not above
    assert (cost.remain, cost.disappear, cost.appear) == (2, 1, 1)
    assert cost.notes == (
        "With random masks, 2 of 3 detections above 0.5 remain, 1 disappear and 1 appear, which may be false "
        "positives. Mean score without masks 0.77, with masks 0.73.",
        "warning: masks remove 33% and add 33% of the detections above 0.5: the network was not trained for such "
        "masks. Lower --dropout-rate, or mask other layers.",
    )
    # More detections than before can still hide many that are gone, or wrong.
    assert _cost(remain=60, disappear=40, appear=60).large
    assert "600 of 692 detections above 0.5 remain, 92 disappear and 199 appear" in _cost(600, 92, 199).notes[0]
    # Three of ten is just not large.
    assert not _cost(7, 3, 3).large
    assert _cost(69, 31, 0).large
    assert _cost(69, 0, 31).large
    # All are gone; scores that are never above 0.5; nothing at all.
    gone = mask_cost([0.4], [[0.9, 0.4], [0.8, 0.0]])
    assert gone.notes[0].endswith("2 disappear and 0 appear. Mean score without masks 0.85.")
    assert gone.as_dict()["masked_mean"] is None
    assert (
        mask_cost([0.3], [[0.4, 0.3], [0.2, 0.0]]).notes[0].startswith("With random masks, 1 of 2 detections remain, 1")
    )
    assert mask_cost([0.3], []).notes == (
        "Without masks there are no detections, with masks 1: probox can't compare them.",
    )


def test_detections_are_paired_by_class_and_overlap() -> None:
    boxes = np.array([[0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10], [0, 0, 10, 10]], np.float64)
    masked = probox.Detections.from_scores(
        boxes=[[40, 0, 50, 4], [0, 0, 10, 9], [1, 0, 11, 10], [20, 0, 30, 10]],
        scores=[0.9, 0.8, 0.7, 0.6],
        labels=[0, 0, 0, 1],
        classes=CLASSES,
        image_ids=1,
    )
    pairs = pair_scores(boxes, np.array([0, 0, 0, 1]), np.array([0.9, 0.8, 0.7, 0.6]), masked)
    # The second overlaps the first most; the third comes too late, the fourth is of another class, the first too flat.
    np.testing.assert_allclose(pairs, [[0.9, 0.8], [0.8, 0], [0.7, 0], [0.6, 0]])
    assert pair_scores(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0), masked).shape == (0, 2)
