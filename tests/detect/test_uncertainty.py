"""From candidates to detections."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import probox
from probox.detect import Candidates, Detector, Dropout, Options, detect
from probox.detect.uncertainty import (
    MAX_CANDIDATES,
    ZOOMS,
    MaskCost,
    choose_candidates,
    collect_passes,
    detections_from,
    make_detections,
    mask_cost,
    pair_scores,
)
from probox.errors import InputError
from probox.formats import read_detections
from probox.formats.registry import write_detections
from probox.fusion import Spread
from probox.fusion.fuse import survivors_of
from probox.fusion.fusion_definition import box_iou, cluster_sequentially, suppress
from probox.fusion.gaussian import keep_inside
from probox.notes import as_notes

CLASSES = ("cup", "dog", "car")
IMAGE = np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)
SIZE = (60, 40)


class Scripted:
    class Family:
        name = "scripted"
        classes = CLASSES
        labels = "all"
        nms_iou = 0.5
        has_edges = False
        suppresses = False
        clips_first = True

    batch = 1
    fingerprint = "none"

    def __init__(self, *answers: Candidates, **traits: object) -> None:
        self.family = type("Family", (self.Family,), traits)()
        self.answers = answers
        self.seen: list[np.ndarray] = []

    def candidates(self, images: Sequence[np.ndarray]) -> list[Candidates]:
        self.seen.extend(images)
        return [self.answers[min(k, len(self.answers) - 1)] for k in range(len(images))]

    def sample(self, images: Sequence[np.ndarray], passes: int, image_ids: Sequence[int]) -> list[list[Candidates]]:
        return [[self.answers[k % len(self.answers)] for k in range(passes)] for _ in images]


def _candidates(*rows: tuple[Sequence[float], Sequence[float]]) -> Candidates:
    return Candidates(np.array([box for box, _ in rows], float), np.array([scores for _, scores in rows], np.float32))


def test_a_box_of_two_classes_makes_two_detections_or_one() -> None:
    detector = Scripted(_candidates(([10, 10, 30, 30], [0.6, 0.3, 0.01])))
    both = detect(detector, [IMAGE], [7], Options())[0]
    assert both.labels.tolist() == [0, 1]
    np.testing.assert_allclose(both.scores, [0.6, 0.3], rtol=1e-6)
    # The second leaves out the class that outranks it, so that its label is its most probable one.
    np.testing.assert_allclose(both.label_probs, [[0.6, 0.3, 0.01], [0.0, 0.3, 0.01]], rtol=1e-6)
    assert both.image_ids.tolist() == [7, 7]
    assert both.covariances is None
    best = detect(detector, [IMAGE], [7], Options(label_mode="best"))[0]
    assert best.labels.tolist() == [0]


def test_suppression_is_by_class_and_the_score_is_a_strict_bound() -> None:
    detector = Scripted(
        _candidates(
            ([10, 10, 30, 30], [0.6, 0.0, 0.0]),
            ([11, 10, 31, 30], [0.5, 0.0, 0.0]),
            ([11, 10, 31, 30], [0.0, 0.4, 0.0]),
            ([40, 10, 50, 30], [0.25, 0.0, 0.0]),
        )
    )
    found = detect(detector, [IMAGE], [1], Options(score_threshold=0.25))[0]
    assert found.scores.round(6).tolist() == [0.6, 0.4]
    assert len(detect(detector, [IMAGE], [1], Options(score_threshold=0.2))[0]) == 3
    assert len(detect(detector, [IMAGE], [1], Options(score_threshold=0.2, max_detections=1))[0]) == 1
    assert len(detect(detector, [IMAGE], [1], Options(nms_iou=0.95))[0]) == 4


def test_boxes_are_clipped_and_unusable_ones_left_out() -> None:
    candidates = _candidates(
        ([-10, -10, 30, 30], [0.6, 0.0, 0.0]),
        ([70, 10, 90, 30], [0.9, 0.0, 0.0]),  # outside
        ([np.nan, 0, 10, 10], [0.9, 0.0, 0.0]),
        ([0, 0, 10, 10], [np.nan, 0.0, 0.0]),
        ([20, 20, 10, 10], [0.9, 0.0, 0.0]),
    )
    assert choose_candidates(candidates, SIZE, 0.05, "all")[0].tolist() == [0]
    assert detect(Scripted(candidates), [IMAGE], [7], Options())[0].boxes.tolist() == [[0, 0, 30, 30]]


def test_boxes_are_clipped_before_suppression_or_after_it() -> None:
    """Overlaps outside the image count where the family suppresses boxes as they are."""
    candidates = _candidates(([-100, 10, 20, 30], [0.6, 0.0, 0.0]), ([-100, 10, 40, 30], [0.5, 0.0, 0.0]))
    first = detect(Scripted(candidates), [IMAGE], [7], Options())[0]
    assert first.boxes.tolist() == [[0, 10, 20, 30], [0, 10, 40, 30]]
    after = detect(Scripted(candidates, clips_first=False), [IMAGE], [7], Options())[0]
    assert after.boxes.tolist() == [[0, 10, 20, 30]]


@pytest.mark.parametrize("uncertainty", ["none", "nms-clusters", "mc-dropout"])
def test_labels_above_one_are_a_choice(uncertainty: str) -> None:
    detector = Scripted(
        _candidates(([10, 10, 30, 30], [0.9, 0.6, 0.0]), ([40, 10, 50, 30], [0.4, 0.1, 0.0])), labels="best"
    )

    def labels(choice: str) -> np.ndarray:
        options = Options(uncertainty=uncertainty, above_one=choice, passes=2)  # type: ignore[arg-type]
        found = detect(detector, [IMAGE], [7], options)[0]
        np.testing.assert_allclose(found.scores, [0.9, 0.4], rtol=1e-6)
        return found.label_probs

    np.testing.assert_allclose(labels("limit"), [[0.9, 0.1, 0.0], [0.4, 0.1, 0.0]], rtol=1e-5)
    normalised = labels("normalise")
    np.testing.assert_allclose(normalised.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(normalised[1], [0.8, 0.2, 0.0], rtol=1e-5)
    with pytest.raises(InputError, match=r'add up to 1\.5: .*; write above_one="limit"'):
        labels("refuse")


def test_candidates_alone_are_one_pass() -> None:
    detector = Scripted(_candidates(([10, 10, 30, 30], [0.9, 0.01, 0.0])))
    found = detections_from(detector.answers[0], detector.family, SIZE, 7, Options(uncertainty="nms-clusters"))
    assert found.image_ids.tolist() == [7]
    for uncertainty, message in (("mc-dropout", "several passes"), ("edge-distribution", "no edge distributions")):
        with pytest.raises(InputError, match=message):
            detections_from(detector.answers[0], detector.family, SIZE, 7, Options(uncertainty=uncertainty))  # type: ignore[arg-type]


def test_nms_clusters_have_covariances_from_what_is_suppressed() -> None:
    detector = Scripted(
        _candidates(
            ([10, 10, 30, 30], [0.8, 0.0, 0.0]), ([11, 10, 31, 31], [0.4, 0.0, 0.0]), ([9, 10, 29, 30], [0.4, 0, 0])
        )
    )
    found = detect(detector, [IMAGE], [1], Options(uncertainty="nms-clusters"))[0]
    assert len(found) == 1
    np.testing.assert_allclose(found.boxes[0], [10, 10, 30, 30.25])
    assert (np.linalg.eigvalsh(found.covariances[0]) >= 1.0 - 1e-9).all()


def test_samples_are_fused_over_passes() -> None:
    detector = Scripted(
        _candidates(([10, 10, 30, 30], [0.8, 0.0, 0.0])), _candidates(([12, 10, 30, 32], [0.6, 0.0, 0.0]))
    )
    found = detect(detector, [IMAGE], [1], Options(uncertainty="mc-dropout", passes=4))[0]
    np.testing.assert_allclose(found.boxes[0], [11, 10, 30, 31])
    assert found.scores[0] == pytest.approx(0.7)
    empty = Candidates(np.zeros((0, 4)), np.zeros((0, 3), np.float32))
    rare = Scripted(detector.answers[0], empty, empty, empty)
    assert detect(rare, [IMAGE], [1], Options(uncertainty="mc-dropout", passes=4))[0].scores[0] == pytest.approx(0.2)
    half = Scripted(_candidates(([10, 10, 30, 30], [0.5, 0.0, 0.0])), empty, empty, empty)
    for score, left in ((0.1, 1), (0.125, 0)):  # 0.5 in one of four passes
        options = Options(uncertainty="mc-dropout", passes=4, score_threshold=score)
        assert len(detect(half, [IMAGE], [1], options)[0]) == left
    ignoring = Options(uncertainty="mc-dropout", passes=4, absent_counts=False)
    assert detect(rare, [IMAGE], [1], ignoring)[0].scores[0] == pytest.approx(0.8)
    demanding = Options(uncertainty="mc-dropout", passes=4, min_members=2)
    assert len(detect(rare, [IMAGE], [1], demanding)[0]) == 0


def test_mirrored_and_shrunk_views_are_moved_back() -> None:
    object_box = np.array([10.0, 5.0, 30.0, 35.0])
    answers = []
    for zoom in ZOOMS:
        wide, high = round(60 / zoom), round(40 / zoom)
        left, top = (wide - 60) // 2, (high - 40) // 2
        moved = object_box + np.array([left, top, left, top])
        mirrored = [wide - moved[2], moved[1], wide - moved[0], moved[3]]
        answers += [_candidates((moved, [0.9, 0.0, 0.0])), _candidates((mirrored, [0.9, 0.0, 0.0]))]
    detector = Scripted(*answers)
    detector.batch = len(answers)
    found = detect(detector, [IMAGE], [1], Options(uncertainty="flip-scale"))[0]
    assert len(found) == 1
    np.testing.assert_allclose(found.boxes[0], object_box)
    np.testing.assert_array_equal(detector.seen[0], IMAGE)
    np.testing.assert_array_equal(detector.seen[1], IMAGE[:, ::-1])
    assert detector.seen[4].shape[1] > IMAGE.shape[1]


@pytest.mark.parametrize("batch", [1, 4])
def test_views_come_no_more_at_once_than_asked_for(batch: int) -> None:
    class Counting(Scripted):
        def candidates(self, images: Sequence[np.ndarray]) -> list[Candidates]:
            assert len(images) <= self.batch
            return super().candidates(images)

    detector = Counting(_candidates(([10, 10, 30, 30], [0.6, 0.0, 0.0])))
    detector.batch = batch
    detect(detector, [IMAGE], [1], Options(uncertainty="flip-scale"))
    assert len(detector.seen) == 2 * len(ZOOMS)


def test_each_box_has_the_variances_of_its_own_candidate() -> None:
    boxes = np.array([[20, 10, 30, 20], [10, 22, 18, 30], [40, 10, 48, 20], [20.5, 10, 30.5, 20]], float)
    scores = np.array([[0.3, 0, 0], [0.01, 0, 0], [0, 0.9, 0.4], [0.2, 0, 0]], np.float32)
    own = np.arange(2.0, 18.0).reshape(4, 2, 2)[..., None] * np.eye(2)
    detector = Scripted(Candidates(boxes, scores, own), has_edges=True)
    found = detect(detector, [IMAGE], [1], Options(uncertainty="edge-distribution", recipe="paper"))[0]
    # Best first: the third candidate in two classes, then the first, which suppresses the last.
    np.testing.assert_array_equal(found.boxes, boxes[[2, 2, 0]])
    np.testing.assert_array_equal(found.covariances, own[[2, 2, 0]])


def test_masks_that_do_not_come_are_said() -> None:
    detector = Scripted(_candidates(([10, 10, 30, 30], [0.6, 0.0, 0.0])), has_masks=True)
    with pytest.raises(InputError, match="scripted returned no masks for this image"):
        detect(detector, [IMAGE], [1], Options(uncertainty="masks"))


def test_edge_distributions_need_a_head_that_has_them() -> None:
    plain = Scripted(_candidates(([10, 10, 30, 30], [0.8, 0.0, 0.0])))
    with pytest.raises(InputError, match="no edge distributions"):
        detect(plain, [IMAGE], [1], Options(uncertainty="edge-distribution"))
    with_edges = Candidates(
        np.array([[10.0, 10, 30, 30]]), np.array([[0.8, 0, 0]], np.float32), np.array([[np.diag([9.0, 0.0])] * 2])
    )
    found = detect(Scripted(with_edges, has_edges=True), [IMAGE], [1], Options(uncertainty="edge-distribution"))[0]
    np.testing.assert_allclose(found.covariances[0], [np.diag([9.0, 1.0])] * 2)  # min_std is a pixel


@pytest.mark.parametrize("uncertainty", ["constant", "nms-clusters", "mc-dropout", "edge-distribution"])
@pytest.mark.parametrize("min_std", [1.0, 6.0])
def test_edges_at_the_border_keep_their_std(uncertainty: str, min_std: float) -> None:
    """An object 10 pixels inside the image that the detector places at the border: the std must be that of others."""
    candidates = Candidates(
        np.array([[-2.0, 10, 30, 40]]), np.array([[0.8, 0, 0]], np.float32), np.array([[np.diag([9.0, 9.0])] * 2])
    )
    detector = Scripted(candidates, has_edges=True)
    options = {"uncertainty": uncertainty, "passes": 1, "spread": Spread(min_std=min_std), "relative_std": 0.1}
    kept = detect(detector, [IMAGE], [1], Options(**options))[0]
    x1, std = kept.boxes[0, 0], np.sqrt(kept.covariances[0, 0, 0, 0])
    assert x1 == 0.0
    assert std == pytest.approx(3.0 if uncertainty == "constant" else max(3.0, min_std))
    pinned = detect(detector, [IMAGE], [1], Options(**options, border="pin"))[0]
    assert (pinned.boxes[0, 0], np.sqrt(pinned.covariances[0, 0, 0, 0])) == (0.5, pytest.approx(0.25))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"uncertainty": "guess"}, "uncertainty"),
        ({"border": "clip"}, "border .* keep, pin"),
        ({"passes": 0}, "pass"),
        ({"above_one": "softmax"}, "above_one to be one of"),
        *(({"uncertainty": "constant", "relative_std": std}, "relative_std") for std in (0.0, -0.1, np.inf, np.nan)),
        ({"score_threshold": 1.0}, "score"),
    ],
)
def test_wrong_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Options(**options)


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
        _candidates(([20, 10, 20.5, 30], [0.9, 0, 0]), ([12, 12, 52, 20], [0, 0.8, 0]), ([0, 5, 30, 40], [0, 0, 0.7]))
    )
    plain = detect(detector, [IMAGE], [7], Options())[0]
    found = detect(detector, [IMAGE], [7], Options(uncertainty="constant", relative_std=0.05))[0]
    for name in ("labels", "scores", "label_probs", "image_ids"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    np.testing.assert_array_equal(found.boxes, plain.boxes)
    for row, (width, height) in enumerate([(0.5, 20.0), (40.0, 8.0), (30.0, 35.0)]):
        wanted = np.diag([(0.05 * width) ** 2, (0.05 * height) ** 2])
        np.testing.assert_allclose(found.covariances[row], [wanted, wanted], rtol=1e-14)
    pinned = detect(detector, [IMAGE], [7], Options(uncertainty="constant", relative_std=0.05, border="pin"))[0]
    boxes, covariances = keep_inside(plain.boxes, found.covariances, SIZE)
    np.testing.assert_array_equal(pinned.boxes, boxes)
    np.testing.assert_array_equal(pinned.covariances, covariances)
    assert Options().relative_std == 0.07


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
    with pytest.raises(InputError, match=r"do not apply to the paper's recipe; leave them out"):
        Options(recipe="paper", spread=Spread(min_std=2.0))
    assert Options(spread=Spread(min_std=2.0)).fusing["min_std"] == 2.0
    assert Options(recipe="paper").fusing == {"min_std": 0.0, "prior_std": 0.0, "shrinkage": 0.0}
    with pytest.raises(InputError, match="recipe to be one of probox, paper"):
        Options(recipe="other")  # type: ignore[arg-type]


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
    assert tuple(map(str, cost.notes)) == (
        "with random masks, 2 of 3 detections above 0.5 remain, 1 disappear and 1 appear, which may be false "
        "positives. Mean score without masks 0.77, with masks 0.73.",
        "masks remove 33% and add 33% of the detections above 0.5: the network was not trained for such "
        "masks. Lower dropout_rate, or mask other layers.",
    )
    # More detections than before can still hide many that are gone, or wrong.
    assert _cost(remain=60, disappear=40, appear=60).large
    assert "600 of 692 detections above 0.5 remain, 92 disappear and 199 appear" in str(_cost(600, 92, 199).notes[0])
    # Three of ten is just not large.
    assert not _cost(7, 3, 3).large
    assert _cost(69, 31, 0).large
    assert _cost(69, 0, 31).large
    # All are gone; scores that are never above 0.5; nothing at all.
    gone = mask_cost([0.4], [[0.9, 0.4], [0.8, 0.0]])
    assert str(gone.notes[0]).endswith("2 disappear and 0 appear. Mean score without masks 0.85.")
    assert gone.as_dict()["masked_mean"] is None
    assert str(mask_cost([0.3], [[0.4, 0.3], [0.2, 0.0]]).notes[0]).startswith(
        "with random masks, 1 of 2 detections remain, 1"
    )
    assert mask_cost([0.3], []).notes == as_notes(["without masks there are no detections, with masks 1"])


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


WIDE_SIZE = (4000, 100)
WIDE_IMAGE = np.zeros((WIDE_SIZE[1], WIDE_SIZE[0], 3), np.uint8)


def apart(scores: np.ndarray) -> Candidates:
    left = np.arange(len(scores), dtype=float)
    boxes = np.stack([left, np.zeros(len(left)), left + 1, np.full(len(left), 9.0)], axis=1)
    columns = np.zeros((len(scores), 3), np.float32)
    columns[:, 0] = scores
    return Candidates(boxes, columns)


def shuffled(count: int) -> np.ndarray:
    return np.random.default_rng(count).permutation(np.linspace(0.1, 0.9, count)).astype(np.float32)


@pytest.mark.parametrize("labels", ["all", "best"])
@pytest.mark.parametrize("beyond", [-1, 0, 1, 2, 30])
def test_the_best_candidates_enter_suppression(beyond: int, labels: str) -> None:
    limit = 40
    scores = shuffled(limit + beyond)
    rows, columns = choose_candidates(apart(scores), WIDE_SIZE, 0.05, labels, limit)
    np.testing.assert_array_equal(rows, np.argsort(-scores, kind="stable")[:limit])
    assert not columns.any()


def test_a_named_class_s_candidates_are_limited_too() -> None:
    scores = shuffled(12)
    plain = apart(scores)
    named = Candidates(plain.boxes, plain.scores, labels=np.zeros(12, np.int64))
    assert choose_candidates(named, WIDE_SIZE, 0.05, "all", 5)[0].tolist() == np.argsort(-scores)[:5].tolist()


@pytest.mark.parametrize("beyond", [0, 1])
def test_the_usual_limit(beyond: int) -> None:
    assert MAX_CANDIDATES == 3000
    scores = shuffled(MAX_CANDIDATES + beyond)
    rows, _ = choose_candidates(apart(scores), WIDE_SIZE, 0.05, "all")
    assert len(rows) == MAX_CANDIDATES
    assert (scores.argmin() in rows) == (beyond == 0)


@pytest.mark.parametrize(
    ("uncertainty", "suppresses"), [("none", False), ("nms-clusters", False), ("mc-dropout", False), ("none", True)]
)
@pytest.mark.parametrize(("count", "most"), [(7, 7), (8, 7), (7, 8), (20, 1)])
def test_so_many_detections_are_kept_the_best(uncertainty: str, count: int, most: int, suppresses: bool) -> None:
    scores = shuffled(count)
    options = Options(uncertainty=uncertainty, max_detections=most, passes=2)
    (found,) = detect(Scripted(apart(scores), suppresses=suppresses), [WIDE_IMAGE], [1], options)
    np.testing.assert_allclose(found.scores, np.sort(scores)[::-1][:most], rtol=1e-6)


def test_an_overlap_of_exactly_the_bound_does_not_suppress() -> None:
    # Two boxes of 2 x 1 that share 1: IoU 1/3.
    boxes = np.array([[0, 0, 2, 1], [1, 0, 3, 1]], float)
    scores, labels = np.array([0.9, 0.8]), np.zeros(2, np.int64)
    third = 1 / 3
    assert survivors_of(boxes, scores, labels, third)[1].tolist() == [0, 1]
    assert survivors_of(boxes, scores, labels, np.nextafter(third, 0))[1].tolist() == [0]
