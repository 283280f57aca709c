"""Stories are found where they were put, by the rule that the module states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import probox
from probox import Detections, Evaluation, GroundTruth
from probox.analysis import stories as module
from probox.analysis.stories import KINDS, Story, stories

BOX = np.array([100.0, 100.0, 300.0, 300.0])


def result_of(*cases: dict[str, Any], size: int = 500) -> Evaluation:
    """Return the result of one image, one object and one detection for each case."""
    n = len(cases)
    ids = list(range(1, n + 1))
    truths = [np.asarray(case.get("truth", BOX)) for case in cases]
    boxes = [truth - np.asarray(case.get("error", [0.0] * 4)) for case, truth in zip(cases, truths, strict=True)]
    truth = GroundTruth.from_boxes(
        ["cat", "dog"],
        dict.fromkeys(ids, (size, size)),
        ids,
        np.array(truths),
        [case.get("label", 0) for case in cases],
    )
    spread = np.zeros((n, 2, 2, 2))
    for row, case in enumerate(cases):
        spread[row] = np.eye(2) * case.get("sigma", 0.0) ** 2
    found = Detections(
        classes=["cat", "dog"], image_ids=ids, boxes=np.array(boxes),
        label_probs=[case.get("probs", [0.8, 0.1]) for case in cases],
        covariances=spread if spread.any() else None,
    )  # fmt: skip
    return probox.evaluate(truth, found)


def kinds_of(result: Evaluation, n: int = 9) -> list[tuple[str, int]]:
    return [(story.kind, story.image_id) for story in stories(result, n)]


def error_of(distance: float, sigma: float) -> list[float]:
    """Return an error of the left edge alone that is so far, in squared sigmas."""
    return [float(np.sqrt(distance)) * sigma, 0.0, 0.0, 0.0]


def test_boxes_that_name_their_last_pixel_are_said_to(results: dict[str, Evaluation]) -> None:
    assert [note for note in stories(results["unsure"]).notes if "a pixel short" in note]
    cases = [{"sigma": 1.0, "error": [0.1 * (k % 3 - 1)] * 4} for k in range(9)]
    assert not stories(result_of(*cases)).notes
    short = [{**case, "error": np.add(case["error"], [0, 0, 1, 1])} for case in cases]
    assert ["a pixel short" in note for note in stories(result_of(*short)).notes] == [True]


def test_the_limits_are_the_quantiles_of_chi_squared() -> None:
    limits = [module.RARE_LOW, module.QUARTER, module.THREE_QUARTERS, module.RARE_HIGH]
    np.testing.assert_allclose(limits, chi2.ppf([0.01, 0.25, 0.75, 0.99], module.FREEDOM), rtol=1e-6)


@pytest.mark.parametrize(
    ("distance", "kind"),
    [
        (0.0, "under-sure"), (0.29, "under-sure"), (0.31, None), (1.9, None), (1.95, "well-sure"), (4.0, "well-sure"),
        (5.35, "well-sure"), (5.42, None), (13.2, None), (13.4, "over-sure"), (80.0, "over-sure"),
    ],
)  # fmt: skip
def test_a_box_is_told_by_its_distance(distance: float, kind: str | None) -> None:
    found = kinds_of(result_of({"error": error_of(distance, 4.0), "sigma": 4.0}))
    assert found == ([] if kind is None else [(kind, 1)])


def test_the_most_telling_come_first() -> None:
    result = result_of(
        {"error": error_of(20, 4.0), "sigma": 4.0},
        {"error": error_of(90, 4.0), "sigma": 4.0},
        {"error": error_of(40, 4.0), "sigma": 4.0},
        {"error": error_of(0.01, 20.0), "sigma": 20.0},
        {"error": error_of(0.2, 40.0), "sigma": 40.0},  # the larger sigma, though not the smaller distance
        {"error": error_of(4, 9.0), "sigma": 9.0},
        {"error": error_of(4, 3.0), "sigma": 3.0},  # the higher spatial quality
    )
    assert kinds_of(result, 2) == [
        ("over-sure", 2), ("over-sure", 3), ("under-sure", 5), ("under-sure", 4), ("well-sure", 7), ("well-sure", 6),
    ]  # fmt: skip


def test_captions_say_why_in_numbers() -> None:
    result = result_of(
        {"error": [0.0, 0.0, 0.0, -21.0], "sigma": 3.5},
        {"error": [1.0, -1.0, 1.0, 1.0], "sigma": 40.0},
        {"error": [3.0, 3.0, -3.0, 3.0], "sigma": 3.0},
    )
    over, under, well = stories(result)
    assert over.caption.startswith(
        "over-sure: the bottom edge is 21.0 px off with a sigma of 3.5 px, 6.0 sigmas; d² is 36,"
    )
    assert under.caption.startswith("under-sure: errors of 1.0 px with sigmas of 40.0 px; d² is 0.00,")
    assert well.caption.startswith("well-sure: errors of 3.0 px with sigmas of 3.0 px; d² is 4.0,")
    for story in (over, under, well):
        row = story.detection
        spatial = result.detections.quality("spatial")[row]
        assert story.numbers["spatial"] == spatial
        assert f"spatial {100 * spatial:.0f} %" in story.caption
        assert story.caption.endswith(f"(cat, image {story.image_id})")
    assert over.numbers["distance"] == pytest.approx(36.0)
    assert under.numbers["error"] == pytest.approx(1.0)
    assert under.numbers["sigma"] == pytest.approx(40.0)


def test_correlated_corners_are_measured_as_they_are() -> None:
    """An error along the long axis of the ellipse is no surprise; the same across it is one."""
    spread = np.array([[100.0, 96.0], [96.0, 100.0]])
    for error, expected in (([12.0, 12.0], 144 / 98), ([12.0, -12.0], 144 * 2 / 4)):
        truth = GroundTruth.from_boxes(["cat"], {1: (500, 500)}, [1], [BOX], [0])
        found = Detections(
            classes=["cat"], image_ids=[1], boxes=[BOX - np.array([*error, 0, 0])], label_probs=[[0.9]],
            covariances=[[spread, np.eye(2)]],
        )  # fmt: skip
        told = list(stories(probox.evaluate(truth, found)))
        if expected > module.RARE_HIGH:
            assert told[0].kind == "over-sure"
            assert told[0].numbers["distance"] == pytest.approx(expected)
        else:
            assert not told


def test_only_the_surer_half_and_only_edges_inside_the_image() -> None:
    wild = {"error": error_of(50, 4.0), "sigma": 4.0}
    result = result_of(
        {**wild, "probs": [0.9, 0.0]},
        {**wild, "probs": [0.5, 0.0]},
        {**wild, "probs": [0.8, 0.0], "truth": [0.0, 100.0, 200.0, 300.0]},
        {**wild, "probs": [0.3, 0.0]},
    )
    assert kinds_of(result) == [("over-sure", 1)]  # 0.5 and 0.3 are below the median, the third is cut by the border


def test_an_image_has_one_story_of_a_kind() -> None:
    truth = GroundTruth.from_boxes(["cat"], {1: (900, 500)}, [1, 1], [BOX, BOX + np.array([400, 0, 400, 0])], [0, 0])
    boxes = truth.boxes + np.array([[40.0, 0, 0, 0], [60.0, 0, 0, 0]])
    found = Detections(
        classes=["cat"], image_ids=[1, 1], boxes=boxes, label_probs=[[0.9], [0.9]],
        covariances=np.tile(np.eye(2) * 9.0, (2, 2, 1, 1)),
    )  # fmt: skip
    (story,) = stories(probox.evaluate(truth, found), 5)
    assert (story.kind, story.detection) == ("over-sure", 1)


def test_labels_that_were_sure_and_wrong() -> None:
    result = result_of(
        {"probs": [0.04, 0.9], "sigma": 3.0, "error": error_of(8, 3.0)},
        {"probs": [0.02, 0.95], "sigma": 3.0, "error": error_of(8, 3.0)},
        {"probs": [0.3, 0.45], "sigma": 3.0, "error": error_of(8, 3.0)},  # not sure
        {"probs": [0.9, 0.05], "sigma": 3.0, "error": error_of(8, 3.0)},  # right
    )
    told = [story for story in stories(result) if story.kind == "wrong-label"]
    assert [story.image_id for story in told] == [2, 1]
    assert told[1].caption.startswith("sure of the wrong class: dog 0.90, but it is cat, which got 0.04; qualities: ")


def test_plain_boxes_tell_of_overlaps_and_say_so() -> None:
    result = result_of(
        {"error": [0.0, 0.0, 60.0, 0.0]}, {"error": [1.0, 0.0, 0.0, 0.0]}, {"error": [0.0, 20.0, 0.0, 0.0]}, {}
    )
    told = stories(result, 1)
    assert [(story.kind, story.image_id) for story in told] == [("off", 1), ("close", 4)]
    assert "no box has a covariance to judge" in told.notes[0]
    assert "the right edge is 60.0 px off and no sigma says so" in next(iter(told)).caption
    assert np.isnan(next(iter(told)).numbers["sigma"])
    mixed = stories(result_of({}, {"error": error_of(50, 4.0), "sigma": 4.0}))
    assert [story.kind for story in mixed] == ["over-sure"]
    assert mixed.notes == ("1 pairs of plain boxes, which have no sigma to judge, were passed over",)


def test_nothing_to_tell_is_said() -> None:
    truth = GroundTruth.from_boxes(["cat"], {1: (500, 500)}, [1], [BOX], [0])
    nothing = Detections(classes=["cat"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
    told = stories(probox.evaluate(truth, nothing))
    assert len(told) == 0
    assert len(told.notes) == 1
    assert "nothing to tell" in told.notes[0]


def test_boxes_with_sigmas_are_not_called_plain_where_none_is_matched() -> None:
    far = {"error": [150.0, 150.0, 150.0, 150.0], "sigma": 3.0}
    assert not any("no box has a covariance" in note for note in stories(result_of(far)).notes)


def test_wrong_arguments_are_said(results: dict[str, Evaluation]) -> None:
    for n in (0, True, 1.5):
        with pytest.raises(probox.InputError, match="whole number"):
            probox.stories(results["unsure"], n)  # type: ignore[arg-type]
    with pytest.raises(probox.InputError, match="Evaluation"):
        probox.stories("results")  # type: ignore[arg-type]


def test_the_same_result_tells_the_same_stories(results: dict[str, Evaluation]) -> None:
    first, second = (list(probox.stories(results["unsure"], 2)) for _ in range(2))
    assert [story.caption for story in first] == [story.caption for story in second]
    assert {story.kind for story in first} <= set(KINDS)
    assert all(isinstance(story, Story) for story in first)
