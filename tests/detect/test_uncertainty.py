"""From candidates to detections."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from probox.detect import Candidates, Detector, Dropout, Options, detect
from probox.detect.uncertainty import ZOOMS, choose_candidates, detections_from
from probox.errors import InputError
from probox.fusion import Spread

CLASSES = ("cup", "dog", "car")
IMAGE = np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)
SIZE = (60, 40)


class Scripted:
    """A detector that answers what it was told to, and remembers what it saw."""

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
    with pytest.raises(InputError, match=r'add up to 1\.5: .* is no distribution; write above_one="limit"'):
        labels("refuse")


def test_candidates_alone_are_one_pass() -> None:
    detector = Scripted(_candidates(([10, 10, 30, 30], [0.9, 0.01, 0.0])))
    found = detections_from(detector.answers[0], detector.family, SIZE, 7, Options(uncertainty="nms-clusters"))
    assert found.image_ids.tolist() == [7]
    for uncertainty, message in (("mc-dropout", "several passes"), ("edge-distribution", "no distribution")):
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
        _candidates(([10, 10, 30, 30], [0.8, 0.0, 0.0])),
        _candidates(([12, 10, 30, 32], [0.6, 0.0, 0.0])),
    )
    found = detect(detector, [IMAGE], [1], Options(uncertainty="mc-dropout", passes=4))[0]
    np.testing.assert_allclose(found.boxes[0], [11, 10, 30, 31])
    assert found.scores[0] == pytest.approx(0.7)
    empty = Candidates(np.zeros((0, 4)), np.zeros((0, 3), np.float32))
    rare = Scripted(detector.answers[0], empty, empty, empty)
    assert detect(rare, [IMAGE], [1], Options(uncertainty="mc-dropout", passes=4))[0].scores[0] == pytest.approx(0.2)
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


def test_what_few_passes_see_is_left_out_by_its_mean_score() -> None:
    seen, unseen = _candidates(([10, 10, 30, 30], [0.5, 0.0, 0.0])), Candidates(np.zeros((0, 4)), np.zeros((0, 3)))
    detector = Scripted(seen, unseen, unseen, unseen)
    for score, left in ((0.1, 1), (0.125, 0)):  # 0.5 in one of four passes
        options = Options(uncertainty="mc-dropout", passes=4, score_threshold=score)
        assert len(detect(detector, [IMAGE], [1], options)[0]) == left


def test_masks_that_do_not_come_are_said() -> None:
    detector = Scripted(_candidates(([10, 10, 30, 30], [0.6, 0.0, 0.0])), has_masks=True)
    with pytest.raises(InputError, match="scripted gave no masks for this image"):
        detect(detector, [IMAGE], [1], Options(uncertainty="masks"))


def test_edge_distributions_need_a_head_that_has_them() -> None:
    plain = Scripted(_candidates(([10, 10, 30, 30], [0.8, 0.0, 0.0])))
    with pytest.raises(InputError, match="no distribution of its edges"):
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
        ({"score_threshold": 1.0}, "score"),
    ],
)
def test_wrong_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Options(**options)


@pytest.mark.parametrize("uncertainty", ["none", "nms-clusters", "mc-dropout", "flip-scale"])
def test_a_real_graph_gives_valid_detections(ssd: Path, uncertainty: str) -> None:
    dropout = Dropout(rate=0.2) if uncertainty == "mc-dropout" else None
    detector = Detector(ssd, classes=CLASSES, dropout=dropout, threads=1)
    found = detect(detector, [IMAGE, IMAGE[:, ::-1].copy()], [4, 9], Options(uncertainty=uncertainty, passes=5))
    assert [set(part.image_ids.tolist()) for part in found] == [{4}, {9}]
    for part in found:
        assert (np.diff(part.scores) <= 0).all()
        assert (part.covariances is None) == (uncertainty == "none")
